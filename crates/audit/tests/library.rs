//! Every shipped rule in the prime field.

use std::collections::BTreeSet;

use regraft_audit::fingerprint;
use regraft_ir::parallel;
use regraft_rules::Library;

/// Instances per rule.
const INSTANCES: usize = 20;

/// Rules that are not identities of the field, each with the law of the reals it needs. Reviewed by
/// people.
const BEYOND: &str = include_str!("beyond-the-field.txt");

#[test]
fn every_rule_is_an_identity_of_the_field_or_needs_a_law_that_is_named() {
    let reviewed: BTreeSet<&str> =
        BEYOND.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(": ")).map(|(name, _)| name).collect();
    let library = Library::shipped().unwrap_or_else(|e| panic!("{e}"));
    let mut known = BTreeSet::new();
    let mut surprises = Vec::new();
    let results = parallel::map(library.rules(), parallel::cores(), |rule| {
        let seed = rule.name.bytes().fold(11u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        fingerprint(rule, INSTANCES, INSTANCES * 60, seed)
    });
    for (rule, result) in library.rules().iter().zip(results) {
        if reviewed.contains(rule.name.as_ref()) {
            known.insert(rule.name.to_string());
            if result.is_identical() {
                surprises.push(format!("{}: it is an identity of the field; take it off the list", rule.name));
            }
        } else if !result.is_identical() {
            surprises.push(format!("{}: {}", rule.name, result.first.unwrap_or_else(|| "no instances".into())));
        }
    }
    let gone: Vec<&&str> = reviewed.iter().filter(|name| !known.contains(**name)).collect();
    assert!(surprises.is_empty() && gone.is_empty(), "{}\nno rules: {gone:?}", surprises.join("\n"));
}
