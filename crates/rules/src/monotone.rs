//! Which rules change nothing around their source but what they say.

use std::fmt;

use crate::rule::{Pattern, Rule, Target, Var};

/// A way in which a rewrite may make another one possible, or impossible, that shares no operator
/// with it.
///
/// Without any, rewrites that consume different operators can be applied in either order, to the
/// same effect: the condition under which sequences of rewrites may be searched in one fixed order
/// (OCGGS, PVLDB 13(11) 2020, Theorems 4 and 5, which do not state it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// An operand of the source is not read by the target: its other readers may be alone with it.
    DropsOperand,
    /// A result no longer depends on an operand: what was above and below may now be merged.
    DropsPath,
    /// A result becomes a value that was there before: its readers meet the operator that computes
    /// it.
    PassesThrough,
    /// Two results become one value: their readers share an operand.
    JoinsResults,
    /// A guard asks what is around the source.
    AsksAround,
    /// The operators of the source stay.
    KeepsSource,
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reach::DropsOperand => "drops an operand",
            Reach::DropsPath => "drops a path",
            Reach::PassesThrough => "passes an operand through",
            Reach::JoinsResults => "joins results",
            Reach::AsksAround => "asks what is around its source",
            Reach::KeepsSource => "keeps its source",
        })
    }
}

/// How a rule may reach beyond its source; none if it is monotone.
pub fn reaches(rule: &Rule) -> Vec<Reach> {
    let targets: Vec<Vec<Var>> = rule.target.iter().map(|target| read(rule, target)).collect();
    let sources: Vec<Vec<Var>> = rule.source.iter().map(operands).collect();
    let any = |vars: &[Vec<Var>], var: &Var| vars.iter().any(|vars| vars.contains(var));
    let mut reaches = Vec::new();
    if sources.iter().flatten().any(|var| !any(&targets, var)) {
        reaches.push(Reach::DropsOperand);
    }
    if sources.iter().zip(&targets).any(|(before, after)| before.iter().any(|var| !after.contains(var))) {
        reaches.push(Reach::DropsPath);
    }
    if rule.target.iter().any(|target| passes(rule, target)) {
        reaches.push(Reach::PassesThrough);
    }
    let same = |a: &Target, b: &Target| format!("{a:?}") == format!("{b:?}");
    if rule.target.iter().enumerate().any(|(at, a)| rule.target[..at].iter().any(|b| same(a, b))) {
        reaches.push(Reach::JoinsResults);
    }
    // For readers, or for the operator above an operand.
    if rule.asks_for_readers() || rule.asks(&["computed-by"]) {
        reaches.push(Reach::AsksAround);
    }
    if rule.shared {
        reaches.push(Reach::KeepsSource);
    }
    reaches
}

/// Variables that stand for operands. Constants do not count: who else reads them is never asked.
fn operands(pattern: &Pattern) -> Vec<Var> {
    match pattern {
        Pattern::Any(var) | Pattern::Optional(var) | Pattern::Rest(var) => vec![*var],
        Pattern::Constant(_) | Pattern::Number(_) => Vec::new(),
        Pattern::Each(inner, _) | Pattern::Elementwise(_, _, inner) => operands(inner),
        Pattern::Node(node) => node.operands.iter().flat_map(operands).collect(),
    }
}

/// Variables of the source that a target reads.
fn read(rule: &Rule, target: &Target) -> Vec<Var> {
    let of = |target: &Target| read(rule, target);
    match target {
        Target::Use(var) | Target::Item(_, var) => match rule.lets.iter().find(|(bound, _)| bound == var) {
            Some((_, body)) => of(body),
            None => vec![*var],
        },
        // The items of a list are those of the list's variable, which keeps its name within.
        Target::Each(_, body) | Target::Repeat(_, _, body) | Target::Out(_, body) | Target::Vector(_, body) => of(body),
        Target::With(_, value, body) => [of(value), of(body)].concat(),
        Target::Node { operands, .. } | Target::Combine(_, operands) => operands.iter().flat_map(of).collect(),
        Target::Apply(_, body, _) | Target::Unshifted(_, body, _) => of(body),
        Target::If(_, yes, no) => {
            // Only what both branches read is sure to be read.
            let (yes, no) = (of(yes), no.as_deref().map_or_else(Vec::new, of));
            yes.into_iter().filter(|var| no.contains(var)).collect()
        }
        Target::Shift(..) | Target::Scalar(..) | Target::Tensor(..) | Target::Ints(_) | Target::Counted(_) | Target::Fill(..) => Vec::new(),
    }
}

/// Whether a target may be a value that is there already.
fn passes(rule: &Rule, target: &Target) -> bool {
    match target {
        Target::Use(var) => rule.lets.iter().find(|(bound, _)| bound == var).is_none_or(|(_, body)| passes(rule, body)),
        Target::Item(..) => true,
        Target::If(_, yes, no) => passes(rule, yes) || no.as_deref().is_none_or(|no| passes(rule, no)),
        Target::Each(_, body) | Target::Repeat(_, _, body) | Target::Vector(_, body) | Target::With(_, _, body) => passes(rule, body),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    #[test]
    fn each_way_is_told() {
        for (rule, wanted) in [
            ("(relu (neg ?x)) => (abs ?x)", vec![]),
            ("(mul (add ?x ?y) ?z) => (add (mul ?x ?z) (mul ?y ?z))", vec![]),
            ("(add ?x (const ?c)) => (neg ?x)", vec![]),
            ("(mul ?x ?y) => (neg ?x)", vec![Reach::DropsOperand, Reach::DropsPath]),
            ("(neg (neg ?x)) => ?x", vec![Reach::PassesThrough]),
            ("(all (as ?a (neg ?x)) (as ?b (abs ?x))) => (all ?m ?m) (let (?m (relu ?x)))", vec![Reach::JoinsResults]),
            ("(all (as ?a (add ?x ?y)) (as ?b (mul ?x ?z))) => (all (neg (add ?x ?y)) (mul (add ?x ?z) ?y))", vec![]),
            ("(all (as ?a (add ?x ?y)) (as ?b (mul ?x ?z))) => (all (add ?x ?z) (mul ?x ?y))", vec![Reach::DropsPath]),
            ("(relu ?x) => (abs ?x) (when (= (users ?x) 1))", vec![Reach::AsksAround]),
            ("(relu (neg ?x)) => (abs ?x) (shared)", vec![Reach::KeepsSource]),
            ("(add ?x ?y) => (if (= (rank ?x) 1) (neg ?x) (add ?y ?x))", vec![Reach::DropsOperand, Reach::DropsPath]),
        ] {
            let rules = parse("t", &format!("(rule r {rule} (numeric exact))")).unwrap_or_else(|e| panic!("{rule}: {e}"));
            assert_eq!(reaches(&rules[0]), wanted, "{rule}");
        }
    }
}
