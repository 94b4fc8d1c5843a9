//! Every shipped rule is exercised on the reference executor.

use regraft_rules::{Library, sample};

/// Instances per rule; the long campaign is `regraft rules exercise`.
const INSTANCES: usize = 200;

#[test]
fn every_rule_holds_on_random_instances() {
    let library = Library::shipped().unwrap_or_else(|e| panic!("{e}"));
    let mut failures = Vec::new();
    for rule in library.rules() {
        let seed = rule.name.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let result = sample::exercise(rule, INSTANCES, INSTANCES * 60, seed);
        if let Some(counterexample) = result.counterexample {
            failures.push(format!("{} ({}:{}): {counterexample}", rule.name, rule.file, rule.line));
        } else if result.instances < INSTANCES {
            failures.push(format!(
                "{} ({}:{}): only {} instances in {} draws; last miss: {}",
                rule.name, rule.file, rule.line, result.instances, result.draws, result.last_miss
            ));
        }
    }
    assert!(failures.is_empty(), "{} rules fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_rule_is_documented() {
    let library = Library::shipped().unwrap_or_else(|e| panic!("{e}"));
    for rule in library.rules() {
        assert!(!rule.algebra.is_empty(), "{} has no algebra above it", rule.name);
        assert!(!rule.doc.is_empty(), "{} has no (doc ..)", rule.name);
    }
}
