//! Every shipped rule on every element type that its guards and operators admit.

use regraft_rules::vary::types;
use regraft_rules::{Library, parse};

/// Instances of a rule to retype, and inputs of each.
const INSTANCES: usize = 8;
const ROUNDS: u64 = 12;
/// Minimum number of admitted pairs of rules and types: what is not admitted is not tried.
const ADMITTED: usize = 1000;

#[test]
fn shipped_rules_hold_for_all_element_types_that_they_admit() {
    let library = Library::shipped().unwrap();
    let (mut wrong, mut admitted) = (Vec::new(), 0);
    for rule in library.rules().iter().filter(|rule| !rule.name.starts_with("winograd")) {
        let found = types(rule, INSTANCES, ROUNDS);
        admitted += found.admitted.len();
        wrong.extend(found.wrong.into_iter().map(|(dtype, why)| format!("{} ({}) on {dtype}: {why}", rule.name, rule.file)));
    }
    assert!(wrong.is_empty(), "{} are false:\n{}", wrong.len(), wrong.join("\n"));
    assert!(admitted >= ADMITTED, "only {admitted} pairs of rules and types were tried");
}

#[test]
fn false_types_are_found() {
    let text = "(rule relu-of-abs (relu (abs ?x)) => (abs ?x) (numeric exact) (instance (?x 2 3)))
        (rule mean-as-sum (mul (reduce-mean ?x :axes (list 1) :keepdims ?k) 2.0) => (reduce-sum ?x :axes (list 1) :keepdims ?k) (numeric exact)
          (instance (?x 3 2) (?k choice true false)))
        (rule less-of-difference (greater (sub ?x ?y) 0.0) => (greater ?x ?y) (numeric exact) (instance (?x 2 3) (?y 2 3)))
        (rule sum-commutes (add ?x ?y) => (add ?y ?x) (numeric exact) (instance (?x 2 3) (?y 2 3)))";
    let found: Vec<(bool, bool)> = parse("t", text)
        .unwrap()
        .iter()
        .map(|rule| {
            let found = types(rule, 4, 12);
            (found.admitted.len() >= 2, found.wrong.is_empty())
        })
        .collect();
    assert_eq!(found, [(true, false), (true, false), (true, false), (true, true)]);
}
