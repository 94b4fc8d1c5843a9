//! Rule sets: the shipped library and user files.

use std::hash::{Hash, Hasher};
use std::path::Path;

use regraft_ir::{OpKind, Trust};

use crate::elementwise;
use crate::error::RuleError;
use crate::parse::parse;
use crate::proof::Proofs;
use crate::rule::{Pattern, Rule};

/// The files of the shipped library, compiled in.
pub const SHIPPED: &[(&str, &str)] = &[
    ("matmul.rules", include_str!("../../../rules/matmul.rules")),
    ("blocks.rules", include_str!("../../../rules/blocks.rules")),
    ("conv.rules", include_str!("../../../rules/conv.rules")),
    ("winograd.rules", include_str!("../../../rules/winograd.rules")),
    ("concat-split.rules", include_str!("../../../rules/concat-split.rules")),
    ("elementwise.rules", include_str!("../../../rules/elementwise.rules")),
    ("activation.rules", include_str!("../../../rules/activation.rules")),
    ("pool.rules", include_str!("../../../rules/pool.rules")),
    ("layout.rules", include_str!("../../../rules/layout.rules")),
    ("normalize.rules", include_str!("../../../rules/normalize.rules")),
    ("attention.rules", include_str!("../../../rules/attention.rules")),
    ("recurrent.rules", include_str!("../../../rules/recurrent.rules")),
    ("runtime-onnxruntime.rules", include_str!("../../../rules/runtime-onnxruntime.rules")),
];

/// Machine-discovered rules that the shipped ones do not subsume, compiled in. No search applies
/// them unless they are given as a file: they saved nothing on the networks tried, and some take
/// apart what shipped rules join.
pub const FOUND: &[(&str, &str)] = &[("generated.rules", include_str!("../../../rules/generated.rules"))];

/// The axioms, compiled in. No search applies them: they define the operators.
pub const AXIOMS: &[(&str, &str)] = &[
    ("axioms/elementwise.rules", include_str!("../../../rules/axioms/elementwise.rules")),
    ("axioms/concat.rules", include_str!("../../../rules/axioms/concat.rules")),
    ("axioms/transpose.rules", include_str!("../../../rules/axioms/transpose.rules")),
    ("axioms/matmul.rules", include_str!("../../../rules/axioms/matmul.rules")),
    ("axioms/conv.rules", include_str!("../../../rules/axioms/conv.rules")),
    ("axioms/pool.rules", include_str!("../../../rules/axioms/pool.rules")),
    ("axioms/constants.rules", include_str!("../../../rules/axioms/constants.rules")),
    ("axioms/cook-toom.rules", include_str!("../../../rules/axioms/cook-toom.rules")),
    ("axioms/reduce.rules", include_str!("../../../rules/axioms/reduce.rules")),
    ("axioms/softmax.rules", include_str!("../../../rules/axioms/softmax.rules")),
    ("axioms/normalize.rules", include_str!("../../../rules/axioms/normalize.rules")),
    ("axioms/layout.rules", include_str!("../../../rules/axioms/layout.rules")),
    ("axioms/definitions.rules", include_str!("../../../rules/axioms/definitions.rules")),
];

/// A set of rules, indexed by the operators of their roots.
#[derive(Clone, Debug, Default)]
pub struct Library {
    rules: Vec<Rule>,
    by_kind: Vec<Vec<Rooted>>,
}

/// A root of a rule, as an index entry.
#[derive(Clone, Copy, Debug)]
pub struct Rooted {
    /// Index of the rule.
    pub rule: usize,
    /// Which of its roots.
    pub root: usize,
    /// Number of operators on the longest path of this root's pattern, plus operands if guards ask
    /// for their readers: a change further above does not affect a match.
    pub depth: usize,
}

fn depth(pattern: &Pattern) -> usize {
    match pattern {
        Pattern::Node(node) => 1 + node.operands.iter().map(depth).max().unwrap_or(0),
        Pattern::Each(inner, _) => depth(inner),
        Pattern::Elementwise(_, _, inner) => elementwise::LARGEST + depth(inner),
        _ => 0,
    }
}

impl Library {
    /// The shipped library.
    pub fn shipped() -> Result<Library, RuleError> {
        let mut library = Library::of(SHIPPED)?;
        Proofs::shipped().grant(&mut library.rules);
        Ok(library)
    }

    /// The axioms: laws of operators, usable in both directions, from which other rules are
    /// derived.
    pub fn axioms() -> Result<Library, RuleError> {
        Library::of(AXIOMS)
    }

    fn of(files: &[(&str, &str)]) -> Result<Library, RuleError> {
        let mut rules = Vec::new();
        for (file, text) in files {
            rules.extend(parse(file, text)?);
        }
        Library::new(rules)
    }

    /// A digest of the rules' texts and order.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        self.rules.iter().for_each(|r| (&r.name, &r.text, &r.runtime).hash(&mut hasher));
        hasher.finish()
    }

    /// A library of these rules. Names must be unique.
    pub fn new(rules: Vec<Rule>) -> Result<Library, RuleError> {
        for (at, rule) in rules.iter().enumerate() {
            if let Some(twin) = rules[..at].iter().find(|r| r.name == rule.name) {
                return Err(RuleError {
                    file: rule.file.to_string(),
                    line: rule.line,
                    column: 1,
                    message: format!("rule `{}` is already defined in {}:{}", rule.name, twin.file, twin.line),
                    hint: "rule names are unique over all files".into(),
                });
            }
        }
        let mut library = Library { rules, by_kind: Vec::new() };
        library.index();
        Ok(library)
    }

    /// This library and the rules of one more file.
    pub fn with_file(mut self, path: &Path, text: &str) -> Result<Library, RuleError> {
        self.rules.extend(parse(&path.display().to_string(), text)?);
        Library::new(self.rules)
    }

    /// The same rules with other trust.
    pub fn trusting(mut self, trust: impl Fn(&Rule) -> Trust) -> Library {
        self.rules.iter_mut().for_each(|rule| rule.trust = trust(rule));
        self
    }

    /// Only the rules that `keep` accepts.
    pub fn filter(mut self, keep: impl Fn(&Rule) -> bool) -> Library {
        self.rules.retain(|r| keep(r));
        self.index();
        self
    }

    /// All rules, in file order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The rule of this name.
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|r| r.name.as_ref() == name)
    }

    /// Rules with a root of this kind.
    pub fn rooted_at(&self, kind: OpKind) -> &[Rooted] {
        self.by_kind.get(kind as usize).map_or(&[], Vec::as_slice)
    }

    /// The longest path from a root to an operator over all rules: how far below a change a match
    /// can start, plus one.
    pub fn radius(&self) -> usize {
        self.by_kind.iter().flatten().map(|entry| entry.depth).max().unwrap_or(0)
    }

    fn index(&mut self) {
        self.by_kind = vec![Vec::new(); OpKind::ALL.len()];
        for (at, rule) in self.rules.iter().enumerate() {
            for (root, pattern) in rule.source.iter().enumerate() {
                if let Pattern::Node(node) = pattern {
                    let depth = depth(pattern) + usize::from(rule.asks_for_readers());
                    self.by_kind[node.kind as usize].push(Rooted { rule: at, root, depth });
                }
            }
        }
    }
}
