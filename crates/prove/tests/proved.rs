//! Which shipped rules the prover shows for all sizes.

use std::collections::BTreeSet;

use regraft_prove::{Word, judge};
use regraft_rules::Library;

/// Rules that are true, but that the prover does not show yet, each with the reason.
const UNPROVED: &str = include_str!("unproved.txt");

#[test]
fn shipped_rules_are_proved_but_for_those_listed() {
    let library = Library::shipped().unwrap();
    let listed: BTreeSet<&str> = UNPROVED.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().next()).collect();
    let rules: Vec<_> = library.rules().iter().filter(|r| !r.name.starts_with("winograd")).collect();
    let unproved = |part: &[&regraft_rules::Rule]| -> BTreeSet<String> {
        part.iter().filter(|r| judge(r, 2, 0).word() != Word::Proved).map(|r| r.name.to_string()).collect()
    };
    let (left, right) = rules.split_at(rules.len() / 2);
    let found: BTreeSet<String> = std::thread::scope(|scope| {
        let other = scope.spawn(|| unproved(right));
        unproved(left).into_iter().chain(other.join().unwrap()).collect()
    });
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let news: Vec<_> = found.difference(&listed).collect();
    assert!(news.is_empty(), "no longer proved: {news:?}");
    let gone: Vec<_> = listed.iter().filter(|name| !name.starts_with("winograd") && !found.contains(*name)).collect();
    assert!(gone.is_empty(), "proved now, so to be taken off the list: {gone:?}");
}
