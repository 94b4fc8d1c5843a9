//! Where a rule matches in an e-graph.

use std::hash::{Hash, Hasher};

use regraft_ir::{NodeId, OpKind, Patch, PatchValue, ValueId, View};
use regraft_rules::expr::Val;
use regraft_rules::rule::Pattern;
use regraft_rules::{Found, Rule, Writable, accept, edit, sources_at};
use rustc_hash::{FxHashSet, FxHasher};
use smallvec::SmallVec;

use crate::choice::{Choice, Frozen};

/// A rewrite that an e-graph offers.
#[derive(Clone, Debug)]
pub struct Application {
    /// Index of the rule in its library.
    pub rule: usize,
    /// What identifies the match.
    pub(crate) place: u64,
    /// The e-nodes of its source, each with its operands as they were read.
    pub source: SmallVec<[(NodeId, SmallVec<[ValueId; 3]>); 4]>,
    /// The edit. What it replaces stays; the two are equal.
    pub patch: Patch,
}

impl Application {
    /// E-nodes that it makes, at least 1.
    pub(crate) fn weight(&self) -> usize {
        self.patch.create.len().max(1)
    }
}

/// The kinds of operators that a rule tells apart; `None` if it asks in other ways than by the
/// operators of its source.
pub(crate) fn kinds(rule: &Rule) -> Option<Vec<OpKind>> {
    let mut kinds = Vec::new();
    let is_plain = rule.source.iter().all(|pattern| collect(pattern, &mut kinds));
    (is_plain && !rule.asks(&["computed-by"])).then_some(kinds)
}

fn collect(pattern: &Pattern, kinds: &mut Vec<OpKind>) -> bool {
    match pattern {
        Pattern::Node(node) => {
            kinds.push(node.kind);
            node.operands.iter().all(|operand| collect(operand, kinds))
        }
        Pattern::Each(inner, _) => collect(inner, kinds),
        Pattern::Elementwise(..) => false,
        _ => true,
    }
}

/// Who looks for matches, and where.
pub(crate) struct Search<'f> {
    pub(crate) frozen: &'f Frozen<'f>,
    pub(crate) writable: &'f dyn Writable,
    /// Most choices of e-nodes looked at for one rule at one e-node.
    pub(crate) choices: usize,
}

impl Search<'_> {
    /// Adds all matches of a rule whose root number `root` is `anchor`, but those `seen`, and those
    /// that do nothing new: `done` is what the others do.
    pub(crate) fn at(
        &self,
        (at, rule, root): (usize, &Rule, usize),
        kinds: Option<&[OpKind]>,
        anchor: NodeId,
        (seen, done): (&mut FxHashSet<u64>, &mut FxHashSet<u64>),
        into: &mut Vec<Application>,
    ) -> bool {
        self.frozen.all(anchor, self.choices, kinds, |view| {
            for mut found in sources_at(view, rule, root, anchor) {
                let place = self.place(at, &found);
                if seen.contains(&place) || !accept(view, rule, &mut found) {
                    continue;
                }
                seen.insert(place);
                view.quietly(|| {
                    if let Ok(edit) = edit(view, rule, &found, self.writable)
                        && self.frozen.space.meaning(&edit.patch).is_some_and(|meaning| done.insert(meaning))
                    {
                        into.push(Application { rule: at, place, source: source(view, &found), patch: edit.patch });
                    }
                });
            }
        })
    }

    /// What identifies a match: its e-nodes, and the classes of its operands.
    fn place(&self, rule: usize, found: &Found) -> u64 {
        let space = self.frozen.space;
        let mut hasher = FxHasher::default();
        (rule, &found.nodes).hash(&mut hasher);
        found.roots.iter().for_each(|root| root.hash(&mut hasher));
        let mut value = |value: &Val| {
            if let Val::Value(PatchValue::Old(value)) = value {
                space.class(*value).hash(&mut hasher);
            }
        };
        for bound in found.env.iter().flatten() {
            match bound {
                Val::List(items) => items.iter().for_each(&mut value),
                one => value(one),
            }
        }
        hasher.finish()
    }
}

fn source(view: &Choice<'_>, found: &Found) -> SmallVec<[(NodeId, SmallVec<[ValueId; 3]>); 4]> {
    found.nodes.iter().map(|id| (*id, SmallVec::from_slice(view.inputs(*id)))).collect()
}
