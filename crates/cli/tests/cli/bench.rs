//! `regraft bench`.

use regraft_runtime::NO_TELEMETRY;

use crate::models::{mlp, mlp_respelled};
use crate::run::{Bench, has_runtime};

#[test]
fn models_are_timed_against_the_first() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    bench.write("b.onnx", mlp_respelled().bytes());
    let json = bench.json("bench a.onnx b.onnx a.onnx --runs 10 --json");
    let rows = json["models"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|r| r["model"].as_str()).collect::<Vec<_>>(), [Some("a.onnx"), Some("b.onnx"), Some("a.onnx")]);
    for row in rows {
        assert!(row["median_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        assert_eq!(row["speedup"]["pairs"], 10, "{row}");
    }
    let text = bench.run("bench a.onnx b.onnx --budget 1s");
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(text.verdict().contains(" runs each"), "{text:?}");
    let three = bench.run("bench a.onnx b.onnx a.onnx --runs 3 -q");
    assert!(three.verdict().starts_with("verdict: b.onnx ") && three.verdict().contains(", a.onnx "), "{three:?}");
    let one = bench.run("bench a.onnx --runs 3 -q");
    assert_eq!((one.out.lines().count(), one.verdict().contains(" a run")), (1, true), "{one:?}");
}

#[test]
fn the_runtime_collects_nothing_in_the_home_folder() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    let mut command = bench.command(&["bench", "a.onnx", "--runs", "3"]);
    command.env("HOME", bench.path("home")).env_remove("XDG_CACHE_HOME").env_remove(NO_TELEMETRY);
    assert!(command.output().expect("the command starts").status.success());
    assert!(!bench.path("home").exists(), "something was written to the home folder");
}

#[test]
fn models_with_other_inputs_are_refused() {
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    let mut other = mlp("4");
    other.graph().input[0].name = Some("z".into());
    other.graph().node[0].input[0] = "z".into();
    bench.write("b.onnx", other.bytes());
    bench.fails("bench a.onnx b.onnx", &["b.onnx does not take the inputs of a.onnx"]);
}

#[test]
fn the_engine_is_timed_and_restored() {
    let bench = Bench::new();
    bench.write("m.onnx", crate::models::convolutional().bytes());
    let json = bench.json("bench --engine m.onnx --budget 200ms --json");
    assert_eq!(json["restored"], true, "{json}");
    assert!(json["moves"].as_u64().is_some_and(|n| n > 0), "{json}");
    assert!(json["pairs_per_second"].as_f64().is_some_and(|n| n > 0.0), "{json}");
    assert!(json["expansions_per_second"].as_f64().is_some_and(|n| n > 0.0), "{json}");
    let text = bench.run("bench --engine paper-resnet-n2 --budget 100ms");
    assert!(text.verdict().contains("key and cost restored bit for bit"), "{text:?}");
    bench.fails("bench --engine no-such-network", &["no-such-network", "regraft zoo list"]);
    bench.fails("bench --engine --threads 2", &["cannot be used with"]);
}
