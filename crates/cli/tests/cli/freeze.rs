//! `--freeze`: a result for some of the sizes that its input accepts.

use regraft_onnx::{Model, Signature};

use crate::models::{mlp, node, value};
use crate::run::{Bench, has_runtime};

/// A perceptron of an open number of rows.
fn open() -> Bench {
    let bench = Bench::new();
    bench.write("m.onnx", mlp("N").bytes());
    bench
}

#[test]
fn what_cannot_be_frozen_is_told() {
    let bench = open();
    for (freeze, parts) in [
        ("--freeze y:1,2", &["`y` is no input", "hint: inputs: x:N,"][..]),
        ("--freeze x:1", &["declares 2 sizes, not 1"]),
        ("--freeze x:1,7", &["at axis 1, not 7", "hint: sizes that the model fixes"]),
        ("--freeze M=1", &["`M`, which is no size of an input", "hint: inputs: x:N,"]),
        ("--freeze N=1 --freeze N=2", &["`N` cannot be 1 and 2"]),
        ("--freeze x:M,16", &["names `M`", "hint: "]),
        ("--freeze x:1,16 --freeze x:1,16", &["gives `x` twice"]),
    ] {
        bench.fails(&format!("optimize m.onnx -o f.onnx {freeze}"), parts);
        bench.fails(&format!("check m.onnx m.onnx --no-certificate {freeze}"), parts);
    }
    assert_eq!(bench.files(), ["m.onnx"]);
}

#[test]
fn a_frozen_model_is_the_input_at_its_sizes_only() {
    if !has_runtime() {
        return;
    }
    let bench = open();
    let report = bench.json("optimize m.onnx -o f.onnx --freeze N=3 --budget 4s --json");
    assert_eq!(report["frozen"], serde_json::json!([["x", [3, 16]]]), "{report}");
    assert_eq!(report["shapes"], serde_json::json!([["x", [3, 16]]]), "{report}");
    let declared = |name: &str| Signature::of(Model::read(bench.path(name)).expect("a model").proto());
    assert_eq!(declared("f.onnx").inputs[0].to_string(), "f32[3,16]");
    assert_eq!(declared("f.onnx").outputs[0].sizes.as_ref().map(|sizes| sizes[0].as_str()), Some("3"));
    assert_eq!(declared("m.onnx").inputs[0].to_string(), "f32[N,16]");

    let text = String::from_utf8(bench.read("f.certificate")).expect("a text");
    assert!(text.starts_with("regraft certificate 3\n") && text.contains("\nfreeze x:3,16\n"), "{text}");
    let verdict = bench.ok("check m.onnx f.onnx");
    assert!(verdict.contains("same") && verdict.contains("for x:3,16 only"), "{verdict}");
    assert_eq!(bench.run("check m.onnx f.onnx --require proved").code, Some(0));
    assert_eq!(bench.run("check m.onnx f.onnx --require proved:exact").code, Some(1), "a limit is an assumption");
    let json = bench.json("check m.onnx f.onnx --json --no-certificate --freeze x:3,16");
    assert_eq!((&json["same"], &json["limited"]), (&true.into(), &"for x:3,16 only".into()), "{json}");
    // Nobody says that it is for these sizes only.
    let ended = bench.run("check m.onnx f.onnx --no-certificate");
    assert!(ended.code == Some(1) && ended.out.contains("hint: --freeze x:3,16"), "{ended:?}");
}

#[test]
fn what_is_no_faster_is_frozen_all_the_same() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let mut sum = mlp("N");
    let graph = sum.graph();
    (graph.node, graph.initializer) = (vec![node("Add", &["x", "z"], &["y"])], Vec::new());
    graph.input = vec![value("x", &["N", "H"]), value("z", &["N", "H"])];
    graph.output = vec![value("y", &["N", "H"])];
    bench.write("m.onnx", sum.bytes());
    let text = bench.ok("optimize m.onnx -o f.onnx --freeze x:2,H --budget 3s");
    assert!(text.contains("written at fixed sizes") && text.contains("for x:2,? z:2,? only"), "{text}");
    let signature = Signature::of(Model::read(bench.path("f.onnx")).expect("a model").proto());
    let shown: Vec<String> = signature.inputs.iter().chain(&signature.outputs).map(ToString::to_string).collect();
    assert_eq!(shown, ["f32[2,H]", "f32[2,H]", "f32[2,H]"]);
    assert!(bench.ok("check m.onnx f.onnx").contains("for x:2,? z:2,? only"));
}
