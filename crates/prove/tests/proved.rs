//! Which shipped rules the prover shows for all sizes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use regraft_prove::{Word, judge};
use regraft_rules::Library;

/// Rules that are true, but that the prover does not show yet, each with the reason.
const UNPROVED: &str = include_str!("unproved.txt");

#[test]
fn shipped_rules_are_proved_but_for_those_listed() {
    let library = Library::shipped().unwrap();
    let listed: BTreeSet<&str> = UNPROVED.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().next()).collect();
    // Fast convolutions take seconds each: one instance of a kind has to do, and the costliest come first.
    let wanted = |rule: &regraft_rules::Rule| if rule.name.starts_with("winograd") { 1 } else { 2 };
    let next = AtomicUsize::new(0);
    let mut rules: Vec<_> = library.rules().iter().collect();
    rules.sort_by_key(|rule| wanted(rule));
    let unproved = || {
        let mut found = Vec::new();
        while let Some(rule) = rules.get(next.fetch_add(1, Ordering::Relaxed)) {
            if judge(rule, wanted(rule), 0).word() != Word::Proved {
                found.push(rule.name.to_string());
            }
        }
        found
    };
    let found: BTreeSet<String> = std::thread::scope(|scope| {
        let other = scope.spawn(unproved);
        unproved().into_iter().chain(other.join().unwrap()).collect()
    });
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let news: Vec<_> = found.difference(&listed).collect();
    assert!(news.is_empty(), "no longer proved: {news:?}");
    let gone: Vec<_> = listed.iter().filter(|name| !found.contains(*name)).collect();
    assert!(gone.is_empty(), "proved now, so to be taken off the list: {gone:?}");
}
