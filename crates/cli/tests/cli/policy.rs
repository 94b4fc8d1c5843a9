//! `regraft policy`, and searches that a policy guides.

use crate::run::Bench;

#[test]
fn the_program_that_trains_is_asked_for_where_it_is_missing() {
    Bench::new().fails("policy train -o prior.bin", &["regraft-train is not there", "hint: build it", "REGRAFT_TRAINER"]);
    Bench::new().fails("policy", &["required", "ARGUMENT"]);
}

#[test]
fn a_policy_finds_what_a_descent_finds() {
    let bench = Bench::new();
    let json = bench.json("compare paper-vit-base --search greedy,prior --frozen --json");
    let found = |at: usize| &json["searches"][at];
    assert_eq!((&found(0)["search"], &found(1)["search"]), (&"greedy".into(), &"prior".into()), "{json}");
    // Weights are multiplied before anything runs, where nothing is between them.
    let cost = |at: usize| found(at)["cost"].as_u64().unwrap_or_else(|| panic!("{json}"));
    assert!(cost(1) <= cost(0), "{json}");
    let again = bench.json("compare paper-vit-base --search prior --frozen --json");
    assert_eq!(again["searches"][0]["cost"], found(1)["cost"]);
}
