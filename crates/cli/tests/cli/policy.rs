//! `regraft policy`, and searches that a policy guides.

use regraft_xrlflow::{About, Settings, Weights};

use crate::run::{Bench, trainer};

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

#[test]
fn an_agent_walks_in_the_model_that_it_was_trained_on() {
    let bench = Bench::new();
    let missing = ["--search xrlflow needs an agent", "hint: ", "regraft policy xrlflow"];
    bench.fails("compare paper-sru --search xrlflow", &missing);
    bench.fails("compare paper-sru --search xrlflow --agent none.bin", &["none.bin", "No such file"]);
    bench.write("foreign.bin", b"not an agent");
    bench.fails("optimize none.onnx --search xrlflow --agent foreign.bin", &["foreign.bin: this is no agent of X-RLflow", "hint: "]);
    let settings = Settings { slots: 40, horizon: 6, ..Settings::default() };
    let agent = Weights::random(About { model: "paper-sru".into(), episodes: 0, settings }, 0).to_bytes();
    bench.write("cut.bin", &agent[..agent.len() - 4]);
    bench.fails("compare paper-sru --search xrlflow --agent cut.bin", &["an agent with 40 slots has"]);
    bench.write("agent.bin", agent);
    let walk = "compare paper-sru --search xrlflow --agent agent.bin --frozen --json";
    let json = bench.json(walk);
    assert_eq!(json["searches"][0]["search"], "xrlflow", "{json}");
    // Of all states that a walk comes by, one is the first.
    assert!(json["searches"][0]["cost"].as_u64() <= json["cost"].as_u64(), "{json}");
    assert_eq!(json, bench.json(walk));
    let json = bench.json("compare paper-sru --search random --budget 1s --json");
    assert!(json["searches"][0]["speedup"].as_f64() >= Some(1.0), "{json}");
}

#[test]
fn an_agent_is_trained_by_the_program_that_trains() {
    let bench = Bench::new();
    let Some(trainer) = trainer() else { return };
    let words = ["policy", "xrlflow", "paper-sru", "-o", "agent.bin", "--episodes", "2", "--horizon", "4", "--slots", "40"];
    let done = bench
        .command(&[&words[..], &["--json", "figures.json", "--curves", "curves.svg"]].concat())
        .env("REGRAFT_TRAINER", trainer)
        .output();
    let done = done.expect("the program runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let figures: serde_json::Value = serde_json::from_slice(&bench.read("figures.json")).expect("figures");
    assert_eq!(figures["rounds"][0]["episodes"], 2, "{figures}");
    assert!(figures["best"].as_f64() >= Some(1.0), "{figures}");
    let json = bench.json("compare paper-sru --search xrlflow --agent agent.bin --frozen --json");
    assert!(json["searches"][0]["speedup"].as_f64() >= Some(1.0), "{json}");
}
