//! Models that run at some sizes only, as what they compute tells.

use crate::models::Builder;
use crate::run::{Bench, has_runtime};

/// A map is joined with its half, made twice as large again: height and width are even. The join
/// and another map are multiplied by the same matrix, which one product can do.
fn joined() -> Builder {
    Builder::new()
        .input("x", &["N", "8", "H", "W"])
        .input("z", &["N", "16", "H", "W"])
        .weight("t", &[8, 8, 2, 2])
        .weight("w", &[16, 384])
        .node("MaxPool", &["x"], &["half"])
        .ints("kernel_shape", &[2, 2])
        .ints("strides", &[2, 2])
        .node("ConvTranspose", &["half", "t"], &["up"])
        .ints("strides", &[2, 2])
        .node("Concat", &["up", "x"], &["both"])
        .int("axis", 1)
        .node("Transpose", &["both"], &["a"])
        .ints("perm", &[0, 2, 3, 1])
        .node("Transpose", &["z"], &["b"])
        .ints("perm", &[0, 2, 3, 1])
        .node("MatMul", &["a", "w"], &["p"])
        .node("MatMul", &["b", "w"], &["q"])
        .node("Add", &["p", "q"], &["s"])
        .node("Relu", &["s"], &["y"])
        .output("y", &["N", "H", "W", "384"])
}

const FACT: &str = "H is a multiple of 2, since Concat_both (Concat) needs it";

#[test]
fn a_join_of_maps_of_open_sizes_is_rewritten_and_proved() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", joined().bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --bind N=1 --bind H=48 --bind W=32 --untimed --json");
    assert_ne!(report["applied"], serde_json::json!([]), "{report}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains(FACT) && !warnings.contains("kept as"), "{report}");

    let json = bench.json("check m.onnx f.onnx --json");
    assert_eq!((&json["certificate"]["word"], &json["same"]), (&"proved".into(), &true.into()), "{json}");
    assert!(json["notes"].to_string().contains(FACT), "{json}");
    let json = bench.json("check m.onnx f.onnx --no-certificate --json");
    let summary = json["equivalence"]["summary"].as_str().unwrap_or_default();
    assert!(summary.contains("proved") && summary.contains("all sizes at which A runs"), "{json}");

    // They are run at sizes of which some are given and the others made up, all even.
    for sizes in ["--bind H=6", "--shape x:2,8,10,4", ""] {
        let json = bench.json(&format!("check m.onnx f.onnx --no-certificate --effort 0 --json {sizes}"));
        assert!(json["same"] == true && json["compared"].as_u64() > Some(0), "{json}");
    }
}

#[test]
fn sizes_at_which_a_model_does_not_run_are_told() {
    let bench = Bench::new();
    bench.write("m.onnx", joined().bytes());
    let told = ["input `x` cannot have size 7 at axis 2", FACT, "hint: the model does not run at such sizes"];
    for command in ["optimize m.onnx -o f.onnx", "check m.onnx m.onnx --no-certificate"] {
        bench.fails(&format!("{command} --freeze H=7"), &told);
    }
    if has_runtime() {
        bench.fails("optimize m.onnx -o f.onnx --bind H=7", &told);
        bench.fails("optimize m.onnx -o f.onnx --shape x:1,8,7,4", &told);
    }
    assert_eq!(bench.files(), ["m.onnx"]);
}
