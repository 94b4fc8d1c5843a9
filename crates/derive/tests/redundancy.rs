//! Which laws follow from the others.

use regraft_derive::{Laws, Limits, redundant};
use regraft_rules::parse;

const LAWS: &str = "
(rule distributes (mul (add ?x ?y) ?z) => (add (mul ?x ?z) (mul ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule associates (add (add ?x ?y) ?z) => (add ?x (add ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule expands (mul (add ?x ?y) (add ?z ?w)) => (add (add (mul ?x ?z) (mul ?x ?w)) (add (mul ?y ?z) (mul ?y ?w)))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n) (?w n)))
(rule swaps (mul ?x ?y) => (mul ?y ?x)
  (numeric exact) (instance (n 1 2 3) (?x n) (?y n)))";

#[test]
fn laws_that_follow_from_the_others_are_told_with_their_derivations() {
    let rules = parse("t", LAWS).unwrap();
    let laws = Laws::new(rules.clone()).unwrap();
    let steps = |name: &str| {
        let rule = laws.get(name).unwrap();
        let derivations = redundant(rule, &laws, 2, 0, &Limits { graphs: 60, growth: 6 })?;
        assert!(derivations.iter().all(|d| d.links.iter().all(|link| link.law.as_ref() != name)), "{name} is not used for itself");
        Some(derivations[0].links.len())
    };
    assert_eq!(steps("distributes"), None);
    assert_eq!(steps("associates"), None);
    assert_eq!(steps("expands"), Some(3));
    // Operands of commutative operators have no order: the law is trivial.
    assert_eq!(steps("swaps"), Some(0));
}
