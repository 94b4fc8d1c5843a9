//! All instances of a rule with sizes up to a bound.

use crate::path::Path;
use crate::rule::Rule;
use crate::sample::{Instance, Known, Stop, instance_on};

/// The outcome of one combination of a rule's parameters.
#[derive(Clone, Debug)]
pub enum Case {
    /// An instance.
    Instance(Box<Instance>),
    /// The operators of the source reject such operands (a window larger than the image).
    Untyped,
    /// The guards refuse it.
    Guarded,
    /// The same as another combination, with two axes swapped that the rule treats alike.
    Mirrored,
    /// The rule accepts it and cannot build its target: a guard is missing.
    Wrong(String),
}

/// Enumerates all combinations of a rule's parameters, in a fixed order.
///
/// Sizes are `1..=bound`; every attribute and operand with choices in the instance clause takes
/// each of them. Commutative operands stay in their written order. Integers and booleans take all
/// values in operands of up to four elements, and eight patterns in larger ones. Whether the rule
/// pays does not matter.
#[derive(Debug)]
pub struct Domain {
    rule: Rule,
    bound: i64,
    path: Option<Path>,
    known: Known,
}

impl Domain {
    /// The combinations whose first choices are `prefix`; all of them if it is empty.
    pub fn new(rule: &Rule, bound: i64, prefix: &[u64]) -> Domain {
        Domain { rule: rule.anywhere(), bound, path: Some(Path::new(prefix)), known: Known::default() }
    }

    /// Prefixes that partition the domain: the choices of the first parameters with more than one,
    /// enough of them for `wanted` parts if possible.
    pub fn parts(rule: &Rule, bound: i64, wanted: usize) -> Vec<Vec<u64>> {
        let mut parts = vec![Vec::new()];
        for (var, choices) in &rule.instance.parameters {
            let ways = if rule.instance.sizes.contains(var) { bound.max(1) as u64 } else { choices.len() as u64 };
            if parts.len() >= wanted {
                break;
            }
            if ways > 1 {
                parts = parts.iter().flat_map(|p| (0..ways).map(move |way| [p.as_slice(), &[way]].concat())).collect();
            }
        }
        parts
    }
}

impl Iterator for Domain {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        loop {
            let path = self.path.take()?;
            let (result, mut path) = instance_on(&self.rule, path, self.bound, &mut self.known);
            if path.advance() {
                self.path = Some(path);
            }
            return Some(match result {
                Ok(instance) => Case::Instance(Box::new(instance)),
                Err(Stop::Repeated) if self.path.is_some() => continue,
                Err(Stop::Repeated) => return None,
                Err(Stop::Mirrored) => Case::Mirrored,
                Err(Stop::Untyped(_)) => Case::Untyped,
                Err(Stop::Guarded) => Case::Guarded,
                Err(Stop::Wrong(why)) => Case::Wrong(why),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const RULE: &str =
        "(rule two-products (add (matmul ?x ?y) (matmul ?x ?z)) => (matmul ?x (add ?y ?z)) (when (same-shape ?y ?z)) (numeric reassociates)
        (instance (size m k n) (l n 1) (fixed e 0 (if (= k 1) 0 1)) (within (* m k)) (mirror (m) (n)) (?x m k) (?y k n) (?z k l)))";

    fn cases(bound: i64, prefix: &[u64]) -> Vec<&'static str> {
        let rules = parse("test", RULE).unwrap();
        let name = |case: Case| match case {
            Case::Instance(_) => "instance",
            Case::Untyped => "untyped",
            Case::Guarded => "guarded",
            Case::Mirrored => "mirrored",
            Case::Wrong(_) => "wrong",
        };
        Domain::new(&rules[0], bound, prefix).map(name).collect()
    }

    #[test]
    fn every_combination_comes_once() {
        let found = cases(2, &[]);
        let count = |name: &str| found.iter().filter(|n| **n == name).count();
        // m k <= 2 leaves (1, 1), (1, 2), (2, 1); m <= n leaves one n for m = 2; l is 1 once where
        // n is 1; e has one value where k is 1. (1,1): n 1 and 2, l 1 + 2; (1,2): the same, twice;
        // (2,1): n 1 mirrored, n 2 with two l. An unequal l fails the guard.
        assert_eq!((count("instance"), count("guarded"), count("mirrored"), count("untyped")), (2 + 4 + 1, 1 + 2 + 1, 1, 0));
        assert_eq!(found.len(), 12);
    }

    #[test]
    fn parts_make_up_the_whole() {
        let rules = parse("test", RULE).unwrap();
        let parts = Domain::parts(&rules[0], 3, 5);
        assert_eq!(parts.len(), 9);
        let mut whole = cases(3, &[]);
        let mut joined: Vec<_> = parts.iter().flat_map(|part| cases(3, part)).collect();
        whole.sort_unstable();
        joined.sort_unstable();
        assert_eq!(whole, joined);
    }
}
