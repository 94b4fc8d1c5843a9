//! Models that arrive broken: declared wrongly, or refused by the runtime's own optimizer.

use std::path::{Path, PathBuf};

use prost::Message;
use regraft_onnx::proto::{ModelProto, ValueInfoProto};

use crate::models::Builder;
use crate::run::{Bench, Ended, has_runtime};
use crate::skipped::skipped;

const BUDGET: &str = "--budget 3s";

/// A file beside the checkout; `None`, with a message, where there is none.
fn shared(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !file.is_file() {
        skipped("../shared/data");
    }
    file.canonicalize().ok()
}

fn outputs(bytes: &[u8]) -> Vec<ValueInfoProto> {
    ModelProto::decode(bytes).expect("a model").graph.expect("a graph").output
}

/// Rows of eight reshaped to two times four, with sizes taken from the value at run time; the
/// output is declared with these dimensions.
fn reshaped(declared: &[&str]) -> Builder {
    Builder::new()
        .input("x", &["N", "8"])
        .indices("first", &[0])
        .indices("rest", &[2, 4])
        .node("Relu", &["x"], &["r"])
        .node("Neg", &["r"], &["n"])
        .node("Neg", &["n"], &["m"])
        .node("Shape", &["m"], &["s"])
        .node("Gather", &["s", "first"], &["rows"])
        .node("Concat", &["rows", "rest"], &["sizes"])
        .int("axis", 0)
        .node("Reshape", &["m", "sizes"], &["y"])
        .output("y", declared)
}

#[test]
fn an_output_declared_with_a_wrong_rank_is_no_obstacle() {
    if !has_runtime() {
        return;
    }
    for declared in [&["N", "2", "4"][..], &["N", "8"], &["1"], &["1", "length"], &["N", "M", "K", "4"]] {
        let bench = Bench::new();
        bench.write("m.onnx", reshaped(declared).bytes());
        let ended = bench.run("optimize m.onnx -o f.onnx --shape x:3,8 --report f.json --untimed");
        assert_eq!(ended.code, Some(0), "{declared:?}: {ended:?}");
        assert!(!ended.err.contains("dropped") && !ended.err.contains("to blame"), "{declared:?}: {ended:?}");
        let report: serde_json::Value = serde_json::from_slice(&bench.read("f.json")).expect("a report");
        assert!(report["applied"].as_array().is_some_and(|applied| !applied.is_empty()), "{declared:?}: {report}");
        assert_eq!(outputs(&bench.read("f.onnx")), outputs(&bench.read("m.onnx")), "the declaration stays");
        assert_eq!(bench.run("check m.onnx f.onnx --shape x:5,8").code, Some(0), "{declared:?}");
    }
}

#[test]
fn a_recurrent_recognizer_declared_wrongly_is_rewritten() {
    let Some(file) = shared("wrong_output_rank.onnx").filter(|_| has_runtime()) else { return };
    let bench = Bench::new();
    bench.write("m.onnx", std::fs::read(file).expect("a model"));
    let ended = bench.run("optimize m.onnx -o f.onnx --shape x:1,1,16,64 --report f.json --untimed");
    assert!(ended.code == Some(0) && !ended.err.contains("dropped") && !ended.err.contains("to blame"), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&bench.read("f.json")).expect("a report");
    assert_ne!(report["applied"], serde_json::json!([]), "{report}");
    assert_eq!(outputs(&bench.read("f.onnx")), outputs(&bench.read("m.onnx")), "the declaration stays");
}

/// A value that is padded for a convolution, and is an output by another name as well: while it
/// fuses the padding, the optimizer of ONNX Runtime 1.31 loses the value.
fn padded(parts: usize) -> Builder {
    let mut model = Builder::new().input("x", &["1", "2", "4", "6"]).indices("pads", &[0, 0, 1, 1, 0, 0, 1, 1]).weight("w", &[2, 2, 3, 3]);
    let mut at = "x".to_string();
    for part in 0..parts {
        let name = |what: &str| format!("{what}{part}");
        model = model
            .node("Relu", &[&at], &[&name("t")])
            .node("Pad", &[&name("t"), "pads"], &[&name("p")])
            .node("Conv", &[&name("p"), "w"], &[&name("c")])
            .ints("pads", &[0, 0, 0, 0])
            .node("Identity", &[&name("t")], &[&name("z")])
            .node("Relu", &[&name("c")], &[&name("y")])
            .output(&name("z"), &["1", "2", "4", "6"]);
        at = name("y");
    }
    model.output(&at, &["1", "2", "4", "6"])
}

/// The model in a folder, if the installed runtime refuses it with its optimizer on.
fn refused(model: &[u8]) -> Option<Bench> {
    let bench = Bench::new();
    bench.write("m.onnx", model);
    let timed = bench.json("bench m.onnx --runs 3 --json");
    let level = timed["models"][0]["refused"]["level"].as_str().map(str::to_owned);
    if level.is_none() {
        skipped("a runtime whose optimizer refuses the model");
        return None;
    }
    assert_eq!(level.as_deref(), Some("disabled"));
    Some(bench)
}

fn is_rescued(ended: &Ended) -> bool {
    ended.code == Some(0) && ended.verdict().starts_with("verdict: rescued: the runtime loads it with its own optimizer fully on")
}

#[test]
fn a_model_that_loads_only_unoptimized_is_written_so_that_it_loads() {
    if !has_runtime() {
        return;
    }
    for parts in [1, 3] {
        let Some(bench) = refused(&padded(parts).bytes()) else { return };
        let ended = bench.run(&format!("optimize m.onnx -o f.onnx --report f.report.json {BUDGET}"));
        assert!(is_rescued(&ended), "{ended:?}");
        assert!(ended.err.starts_with("regraft: warning: m.onnx: the runtime refuses it with its own optimizer fully on"), "{ended:?}");
        let report: serde_json::Value = serde_json::from_slice(&bench.read("f.report.json")).expect("a report");
        assert_eq!((&report["rescued"], &report["refused"]["level"]), (&true.into(), &"disabled".into()));
        assert!(report["check"]["passed"] == true && report["speedup"]["pairs"].as_u64() > Some(0), "{report}");
        assert_eq!(bench.ok("explain f.onnx").lines().last(), ended.out.lines().last());
        // With the optimizer on, and beside the input without.
        let timed = bench.json("bench m.onnx f.onnx --runs 5 --json");
        assert!(timed["models"][1]["refused"].is_null() && !timed["models"][0]["refused"].is_null(), "{timed}");
        let checked = bench.run("check m.onnx f.onnx --no-certificate --effort 0");
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert!(
            checked.out.contains("note: A: the runtime refuses it with its own optimizer fully on, and it is run with it off"),
            "{checked:?}"
        );
        // Once known, it is found again without a search.
        let again = bench.run(&format!("optimize m.onnx -o g.onnx {BUDGET}"));
        assert!(is_rescued(&again), "{again:?}");
        let frozen = bench.run("optimize m.onnx -o h.onnx --frozen");
        assert!(is_rescued(&frozen), "{frozen:?}");
    }
}

#[test]
fn without_a_rewrite_that_helps_the_input_is_written_unchanged() {
    if !has_runtime() {
        return;
    }
    let Some(bench) = refused(&padded(1).bytes()) else { return };
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx --deny exact,reassociates,rounds-constants,fast-bilinear {BUDGET}"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("no rewrite was found that it loads; the input was written unchanged"), "{ended:?}");
    assert_eq!(bench.read("f.onnx"), bench.read("m.onnx"));
    let text = bench.run("bench m.onnx --runs 3");
    assert!(text.code == Some(0) && text.out.contains("m.onnx: the runtime refuses it"), "{text:?}");
}

#[test]
fn a_model_found_by_random_generation_is_rescued() {
    let Some(file) = shared("loads_only_unoptimized.onnx").filter(|_| has_runtime()) else { return };
    let Some(bench) = refused(&std::fs::read(file).expect("a model")) else { return };
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
    assert!(is_rescued(&ended), "{ended:?}");
    assert!(bench.json("bench f.onnx --runs 3 --json")["models"][0]["refused"].is_null());
    assert_eq!(bench.run("check m.onnx f.onnx --require proved").code, Some(0));
}
