//! Which axioms the prover shows for all sizes, and that all of them hold on random instances.

use std::collections::BTreeMap;

use regraft_prove::{Word, judge};
use regraft_rules::{Library, Rule, sample};

/// Axioms that the prover does not show for all sizes, each with the word it gives and the reason.
const EXCEPTIONS: &str = include_str!("unproved-axioms.txt");

#[test]
fn axioms_are_proved_but_for_those_listed() {
    let library = Library::axioms().unwrap();
    let listed: BTreeMap<&str, &str> = EXCEPTIONS
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| {
            let mut words = l.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let judged = |part: &[Rule]| -> Vec<(String, Word, Option<String>)> {
        part.iter().map(|r| (judge(r, 2, 0), r)).map(|(j, r)| (r.name.to_string(), j.word(), j.first)).collect()
    };
    let (left, right) = library.rules().split_at(library.rules().len() / 2);
    let all: Vec<_> = std::thread::scope(|scope| {
        let other = scope.spawn(|| judged(right));
        judged(left).into_iter().chain(other.join().unwrap()).collect()
    });
    let wrong: Vec<String> = all
        .iter()
        .filter(|(name, word, _)| word.to_string() != *listed.get(name.as_str()).unwrap_or(&"proved"))
        .map(|(name, word, first)| format!("{name}: {word} {}", first.as_deref().unwrap_or_default()))
        .collect();
    assert!(wrong.is_empty(), "{} axioms are not as listed:\n{}", wrong.len(), wrong.join("\n"));
    let gone: Vec<_> = listed.keys().filter(|n| library.get(n).is_none()).collect();
    assert!(gone.is_empty(), "listed, but no axioms: {gone:?}");
}

#[test]
fn axioms_hold_on_random_instances() {
    const INSTANCES: usize = 60;
    let library = Library::axioms().unwrap();
    let mut failures = Vec::new();
    for rule in library.rules() {
        let result = sample::exercise(rule, INSTANCES, INSTANCES * 100, 11);
        match result.counterexample {
            Some(why) => failures.push(format!("{}: {why}", rule.name)),
            None if result.instances < INSTANCES => {
                failures.push(format!("{}: {} instances; last miss: {}", rule.name, result.instances, result.last_miss));
            }
            None => {}
        }
    }
    assert!(failures.is_empty(), "{} axioms fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn axioms_are_documented_and_have_names_of_their_own() {
    let (axioms, shipped) = (Library::axioms().unwrap(), Library::shipped().unwrap());
    for rule in axioms.rules() {
        assert!(!rule.doc.is_empty(), "{} has no (doc ..)", rule.name);
        assert!(shipped.get(&rule.name).is_none(), "{} is a shipped rule too", rule.name);
    }
}
