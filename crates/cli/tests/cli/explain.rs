//! `regraft explain`.

use crate::models::{mlp, mlp_respelled};
use crate::run::Bench;

#[test]
fn two_models_are_compared_node_by_node() {
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    bench.write("b.onnx", mlp_respelled().bytes());
    let text = bench.ok("explain a.onnx b.onnx");
    for part in ["MatMul", "added (3)", "MatMul_h1 (MatMul)", "removed (1)", "MatMul_h (MatMul)", "changed (2)", "Add_g (Add)"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let json = bench.json("explain a.onnx b.onnx --json");
    assert_eq!((&json["nodes"][0], &json["nodes"][1]), (&5.into(), &7.into()));
    assert_eq!(json["operators"]["MatMul"], serde_json::json!([2, 3]));
    assert!(bench.ok("explain a.onnx a.onnx").contains("the graphs have the same nodes"));
}

#[test]
fn a_model_without_a_report_is_told_so() {
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    bench.fails("explain a.onnx", &["a.onnx has no report beside it (a.report.json)", "--report", "regraft explain IN OUT"]);
    bench.fails("explain none.onnx", &["there is no file none.onnx"]);
    bench.fails("explain none.json", &["cannot read none.json"]);
}

#[test]
fn what_is_no_report_is_told() {
    let bench = Bench::new();
    for (text, part) in [
        ("{", "is no report"),
        ("{}", "it names no layout"),
        ("{\"schema\": 99}", "has layout 99"),
        ("{\"schema\": 1}", "is no report: missing field"),
    ] {
        bench.write("r.json", text);
        bench.fails("explain r.json", &[part, "r.json", "(hint: "]);
    }
}
