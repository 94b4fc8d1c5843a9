//! `regraft egraph`.

use crate::run::Bench;

/// Two nodes may share `s`, which trees count twice.
const SHARING: &str = r#"{"nodes": {
    "r": {"op": "f", "eclass": "r", "children": ["a.s", "b.s"], "cost": 1},
    "a.s": {"op": "g", "eclass": "a", "children": ["s"], "cost": 0}, "a.t": {"op": "x", "eclass": "a", "cost": 3},
    "b.s": {"op": "h", "eclass": "b", "children": ["s"], "cost": 0}, "b.t": {"op": "y", "eclass": "b", "cost": 3},
    "s": {"op": "s", "eclass": "s", "cost": 4}}, "root_eclasses": ["r"]}"#;

#[test]
fn the_cheapest_choice_is_extracted_and_written() {
    let bench = Bench::new();
    bench.write("e.json", SHARING);
    for (method, cost, optimal) in [("tree", 7.0, false), ("shared", 7.0, false), ("greedy-dag", 5.0, false), ("ilp", 5.0, true)] {
        let report = bench.json(&format!("egraph extract e.json --method {method} --json"));
        assert_eq!((report["cost"].as_f64(), report["optimal"].as_bool()), (Some(cost), Some(optimal)), "{report}");
    }
    let told = bench.ok("egraph extract e.json -o chosen.json");
    assert!(told.starts_with("verdict: cost 5 by ilp · the least · 4 of 6 nodes · "), "{told}");
    assert_eq!(bench.json("egraph extract chosen.json --json")["cost"], 5.0);
}

#[test]
fn methods_are_held_against_each_other() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("all/family")).expect("the folder can be written");
    bench.write("all/one.json", SHARING);
    bench.write("all/family/two.json", SHARING);
    bench.write("all/family/notes.txt", "no e-graph");
    let rows = bench.json("egraph bench all --json");
    let files: Vec<&str> = rows.as_array().into_iter().flatten().filter_map(|row| row["file"].as_str()).collect();
    assert_eq!(files, ["family/two.json", "one.json"]);
    let told = bench.ok("egraph bench all --progress none");
    assert!(told.contains("verdict: 2 e-graphs · tree 40.00 % above the best"), "{told}");
    assert!(bench.ok("egraph bench all --markdown --progress none").contains("| all | 2 | 40.00 % (40.00 %), "));
}

#[test]
fn the_e_graph_of_a_model_is_written_and_extracted() {
    let bench = Bench::new();
    let mut costs = Vec::new();
    for (limits, ended) in [("--iterations 0", "no more iterations are allowed"), ("--nodes 300", "no more operators are allowed")] {
        let told = bench.ok(&format!("egraph dump paper-sru -o e.json {limits}"));
        assert!(told.contains(ended), "{told}");
        let report = bench.json("egraph extract e.json --json");
        assert_eq!(report["optimal"].as_bool(), Some(true), "{report}");
        costs.push(report["cost"].as_f64().expect("a number"));
    }
    assert!(0.0 < costs[1] && costs[1] < costs[0], "{costs:?}");
    bench.fails("egraph dump none.onnx", &["none.onnx"]);
}

#[test]
fn e_graphs_are_searched_and_results_repeat() {
    let bench = Bench::new();
    let found = |words: &str| {
        let found = bench.json(&format!("egraph search paper-sru --nodes 300 --trace --json {words}"));
        let steps = found["steps"].as_array().expect("steps").clone();
        assert!(steps.len() > 1 && steps.iter().all(|step| step["nodes"].as_u64() <= Some(315)), "{found}");
        assert!(found["cost"].as_u64() < found["input"].as_u64(), "{found}");
        (found["cost"].clone(), found["rewrites"].clone(), steps)
    };
    let searched = found("--seed 1 --threads 1");
    assert_eq!(searched, found("--seed 1 --threads 2"));
    found("--by saturation --final greedy-dag");
    let told = bench.ok("egraph search paper-sru --nodes 300 --main shared --final shared");
    assert!(told.starts_with("verdict: ") && told.contains(" rewrites, "), "{told}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_in_one_line() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("empty")).expect("the folder can be written");
    bench.write("cut.json", &SHARING[..SHARING.len() / 2]);
    bench.write("list.json", "[]");
    bench.write("cyclic.json", r#"{"nodes": {"n": {"op": "x", "eclass": "c", "children": ["n"]}}, "root_eclasses": ["c"]}"#);
    for (words, parts) in [
        ("extract none.json", &["none.json", "check the path"][..]),
        ("extract cut.json", &["cut.json: the file ends in the middle", "again"]),
        ("extract list.json", &["list.json: not an e-graph", "egraph-serialize"]),
        ("extract cyclic.json", &["cyclic.json: the root class `c` has no finite term", "hint: "]),
        ("bench none", &["the folder none", "check the path"]),
        ("bench empty", &["empty: there are no .json files"]),
        ("extract cut.json --method best", &["best", "greedy-dag"]),
        ("extract cut.json -o no/such.json", &["there is no folder"]),
    ] {
        bench.fails(&format!("egraph {words}"), parts);
    }
}
