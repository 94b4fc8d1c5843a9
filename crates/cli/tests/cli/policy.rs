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
    let names = ["greedy", "prior", "gumbel", "guided-exact"];
    let json = bench.json(&format!("compare paper-vit-base --search {} --frozen --json", names.join(",")));
    let found = |at: usize| &json["searches"][at];
    let cost = |at: usize| found(at)["cost"].as_u64().unwrap_or_else(|| panic!("{json}"));
    for (at, name) in names.into_iter().enumerate() {
        assert_eq!(found(at)["search"], name, "{json}");
        // Weights are multiplied before anything runs, where nothing is between them.
        assert!(cost(at) <= cost(0), "{json}");
    }
    for (at, name) in names.into_iter().enumerate().skip(1).take(2) {
        let again = bench.json(&format!("compare paper-vit-base --search {name} --frozen --json"));
        assert_eq!(again["searches"][0]["cost"], found(at)["cost"], "{name}");
    }
}
