//! Every shipped rule is exercised on the reference executor.

use regraft_ir::parallel;
use regraft_rules::{Library, Rule, sample};

/// Instances per rule; the long campaign is `regraft rules exercise`.
const INSTANCES: usize = 60;

#[test]
fn every_rule_holds_on_random_instances() {
    let library = Library::shipped().unwrap_or_else(|e| panic!("{e}"));
    let failure = |rule: &Rule| {
        let seed = rule.name.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let result = sample::exercise(rule, INSTANCES, INSTANCES * 60, seed);
        let why = match result.counterexample {
            Some(counterexample) => counterexample.to_string(),
            None if result.instances >= INSTANCES => return None,
            None => format!("only {} instances in {} draws; last miss: {}", result.instances, result.draws, result.last_miss),
        };
        Some(format!("{} ({}:{}): {why}", rule.name, rule.file, rule.line))
    };
    let failures: Vec<String> = parallel::map(library.rules(), parallel::cores(), failure).into_iter().flatten().collect();
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

#[test]
fn rules_that_prepare_others_exist() {
    let library = Library::shipped().unwrap();
    for rule in library.rules() {
        for name in &rule.prepared_by {
            assert!(library.get(name).is_some(), "{} names {name}", rule.name);
        }
    }
}
