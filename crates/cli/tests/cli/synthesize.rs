//! `regraft synthesize`.

use crate::models::{Builder, mlp};
use crate::run::{Bench, has_runtime};

/// Two convolutions, of which the second repeats 16 channels of 4 kinds: nearly any operator with
/// fewer weights matches it.
fn convolutions() -> Builder {
    Builder::new()
        .input("x", &["N", "16", "12", "12"])
        .output("y", &["N", "32", "12", "12"])
        .weight("v", &[16, 16, 3, 3])
        .weight("w", &[32, 16, 3, 3])
        .node("Conv", &["x", "v"], &["a"])
        .ints("pads", &[1, 1, 1, 1])
        .node("Relu", &["a"], &["b"])
        .node("Conv", &["b", "w"], &["y"])
        .ints("pads", &[1, 1, 1, 1])
}

#[test]
fn a_model_is_approximated_and_told_apart() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutions().bytes());
    // Any error is allowed, so that something is written wherever something is faster.
    let ended = bench.run("synthesize m.onnx -o close.onnx --budget 8s --threads 1 --max-error 100% --report found.json");
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&bench.read("found.json")).expect("JSON");
    assert_eq!(report["kinds"].as_array().map(Vec::len), Some(2), "{report}");
    assert!(report["kinds"][0]["timed"].as_u64().is_some_and(|n| n > 0), "{report}");
    let errors: Vec<f64> = report["front"].as_array().expect("a front").iter().filter_map(|point| point["error"].as_f64()).collect();
    assert!(errors.is_sorted() && errors.iter().all(|error| error.is_finite()), "{errors:?}");
    match ended.code {
        Some(0) => {
            assert!(ended.verdict().contains("approximates the input: "), "{ended:?}");
            let named = bench.read("close.onnx").windows(20).any(|bytes| bytes == b"regraft.approximates");
            assert!(named, "the result does not say that it approximates a model");
            let check = bench.run("check m.onnx close.onnx --bind N=1");
            assert_eq!(check.code, Some(1), "an approximation passes for an equal model: {check:?}");
        }
        _ => {
            assert!(ended.verdict().contains("the input, unchanged"), "{ended:?}");
            assert_eq!(bench.read("m.onnx"), bench.read("close.onnx"));
        }
    }
}

/// Products of features in three spellings, each with its bias.
#[test]
fn products_are_approximated() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let model = Builder::new()
        .input("x", &["N", "24", "96"])
        .output("y", &["r", "64"])
        .weight("v", &[96, 128])
        .weight("b", &[128])
        .node("MatMul", &["x", "v"], &["a"])
        .node("Add", &["a", "b"], &["c"])
        .node("Relu", &["c"], &["d"])
        .indices("rows", &[-1, 128])
        .node("Reshape", &["d", "rows"], &["e"])
        .weight("w", &[96, 128])
        .weight("g", &[96])
        .node("Gemm", &["e", "w", "g"], &["f"])
        .int("transB", 1)
        .weight("u", &[96, 64])
        .node("MatMul", &["f", "u"], &["y"]);
    bench.write("m.onnx", model.bytes());
    let ended = bench.run("synthesize m.onnx -o close.onnx --bind N=4 --budget 8s --threads 1 --max-error 100% --report found.json");
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&bench.read("found.json")).expect("JSON");
    let kinds: Vec<&str> = report["kinds"].as_array().expect("kinds").iter().filter_map(|kind| kind["layer"].as_str()).collect();
    assert_eq!(kinds.len(), 3, "{kinds:?}");
    assert!(kinds.iter().all(|kind| kind.ends_with(", 96 rows")), "{kinds:?}");
    let fitted = report["kinds"].as_array().expect("kinds").iter().flat_map(|kind| kind["operators"].as_array().expect("a list"));
    assert!(fitted.flat_map(|operator| operator["errors"].as_array().expect("errors")).all(|e| e.as_f64().is_some_and(|e| e < 1.0)));
    if ended.code == Some(0) {
        // What is written takes other batches, too.
        let other = bench.run("check m.onnx close.onnx --bind N=7");
        assert_eq!(other.code, Some(1), "{other:?}");
    }
}

#[test]
fn operators_are_found_for_a_specification() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("layers.toml", SPEC);
    // A busy machine needs more time for a first operator.
    let search = |budget: &str| bench.run(&format!("synthesize --spec layers.toml --budget {budget} --threads 1 --emit found --json"));
    let mut budgets = ["4s", "20s", "90s"].into_iter().map(search);
    let ended = budgets.find(|ended| !ended.err.contains("was found in time")).expect("an operator is found in time");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(report["spec"], "layers", "{report}");
    let front = report["front"].as_array().expect("a front");
    for operated in front {
        assert!(operated["faster"].as_f64().is_some_and(|times| times > 1.0), "{operated}");
        assert!(operated["formula"].as_str().is_some_and(|formula| formula.contains("x[")), "{operated}");
    }
    for at in 1..=front.len() {
        for suffix in [".txt", "-layer-1.onnx", ".py", "-tvm.py"] {
            assert!(bench.path(&format!("found/operator-{at:02}{suffix}")).is_file(), "{at}{suffix}");
        }
    }
}

pub const SPEC: &str = r#"
input = ["N", "C_in", "H", "H"]
output = ["N", "C_out", "H", "H"]
batch = ["N"]
unordered = ["C_in", "C_out"]
dense = "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]"
[variables]
C_in = 3
C_out = 4
[coefficients]
k = [3, 2]
s = [2, 2]
g = [4, 2]
[[layers]]
N = 1
C_in = 32
C_out = 32
H = 16
"#;

/// The pieces that a farm makes of a search, by hand.
#[test]
fn a_search_can_be_cut_into_pieces() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("layers.toml", SPEC);
    bench.ok("synthesize --spec layers.toml --draw 3 -o drawn.txt");
    let drawn = |file: &str| String::from_utf8(bench.read(file)).expect("text").lines().map(str::to_owned).collect::<Vec<_>>();
    let first = drawn("drawn.txt");
    assert_eq!(first.len(), 3);
    for part in 1..=2 {
        bench.ok(&format!("synthesize --spec layers.toml --operators drawn.txt --part {part}/2 --threads 1 --report part-{part}.json"));
    }
    let report = bench.json("synthesize --spec layers.toml --join part-1.json part-2.json --emit found --json");
    let timed: std::collections::BTreeSet<&str> =
        report["timed"].as_array().expect("a list").iter().filter_map(|operated| operated["formula"].as_str()).collect();
    assert_eq!(timed, first.iter().map(String::as_str).collect());
    let front = report["front"].as_array().expect("a front").len();
    assert_eq!((1..=3).filter(|at| bench.path(&format!("found/operator-{at:02}.py")).is_file()).count(), front);
    // What was judged is not drawn again.
    bench.ok("synthesize --spec layers.toml --draw 3 -o more.txt --known part-1.json part-2.json");
    let more = drawn("more.txt");
    assert!(more.len() == 3 && more.iter().all(|formula| !first.contains(formula)), "{more:?}");

    bench.fails("synthesize --spec layers.toml -o x", &["a search without a model has no result", "--emit"]);
    bench.fails("synthesize --spec layers.toml --draw 2", &["--draw lacks a file", "-o operators.txt"]);
    bench.fails("synthesize --spec layers.toml --operators drawn.txt --part 3/2", &["`3/2` is no part"]);
    bench.fails("synthesize --spec layers.toml --operators none.txt", &["none.txt"]);
    bench.fails("synthesize --spec layers.toml --join drawn.txt", &["drawn.txt", "--report"]);
    bench.fails("synthesize --preset vit-linear --join part-1.json", &["the reports are of layers, not of vit-linear"]);
}

#[test]
fn mistakes_are_told_in_a_line() {
    let bench = Bench::new();
    bench.fails("synthesize m.onnx", &["--output"]);
    bench.fails("synthesize m.onnx -o c.onnx --max-error 200%", &["200%", "between 0 and 100%"]);
    bench.fails("synthesize --preset no-such-layer", &["no preset is called `no-such-layer`", "resnet-18-layer"]);
    bench.fails("synthesize --preset vit-linear --max-error 5%", &["--max-error", "--preset"]);
    bench.fails("synthesize --spec nothing.toml", &["nothing.toml"]);
    for (from, to, parts) in [
        ("C_out = 32\n", "", &["layers.toml", "no value for `C_out` in a layer"][..]),
        ("s = [2, 2]", "s = [2, 2", &["layers.toml: line 13"][..]),
        ("k = [3, 2]", "k = 3", &["layers.toml", "`k`: a coefficient is `[value, uses]`"]),
        ("\"H\", \"H\"]\nbatch", "\"H\", \"H/s\"]\nbatch", &["layers.toml", "`H/s` is no size"]),
    ] {
        assert!(SPEC.contains(from), "{from}");
        bench.write("layers.toml", SPEC.replace(from, to));
        bench.fails("synthesize --spec layers.toml", parts);
    }
    if !has_runtime() {
        return;
    }
    bench.write("m.onnx", mlp("4").bytes());
    bench.fails("synthesize m.onnx -o c.onnx", &["m.onnx: no layer that an operator could replace", "stride 1"]);
    assert!(!bench.path("c.onnx").exists());
    bench.write("layers.toml", SPEC.replace("w[i0, r0, r1, r2]", "max(w[i0, r0, r1, r2])"));
    bench.fails("synthesize --spec layers.toml --budget 1s", &["the dense layer", "expected `w` at `max"]);
    bench.write("layers.toml", format!("{SPEC}[limits]\nmost-parameters = 0.00001\n"));
    bench.fails("synthesize --spec layers.toml --budget 1s", &["no operator within the limits was found", "[limits]"]);
    bench.write("file", "");
    bench.write("layers.toml", SPEC);
    bench.fails("synthesize --spec layers.toml --budget 1s --emit file", &["file: ", "--emit names a folder"]);
    bench.write("layers.toml", SPEC.replace("C_in = 32", "C_in = 17").replace("C_out = 32", "C_out = 19"));
    bench.ok("synthesize --spec layers.toml --draw 1 -o drawn.txt");
    let drawn = std::fs::read_to_string(bench.path("drawn.txt")).unwrap();
    assert_eq!(drawn.lines().count(), 1, "sizes without a common factor still have operators: {drawn}");
}
