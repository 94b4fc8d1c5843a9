//! `regraft check`.

use std::io::Write;

use prost::Message;
use regraft_onnx::proto::{TensorProto, type_proto};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::models::{Builder, mlp, mlp_respelled};
use crate::run::{Bench, Ended, has_runtime};

/// Checks `b` against a plain network.
fn against_mlp(b: &Builder, flags: &str) -> Ended {
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    bench.write("b.onnx", b.bytes());
    bench.run(&format!("check a.onnx b.onnx {flags}"))
}

#[test]
fn the_same_graph_in_other_words_is_identical() {
    // No runtime is needed for that.
    let ended = against_mlp(&mlp_respelled(), "--runtime-library none.so");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.verdict().starts_with("verdict: same: identical graph"), "{ended:?}");
}

#[test]
fn other_signatures_are_named() {
    let mut renamed = mlp("4");
    renamed.graph().output[0].name = Some("z".into());
    renamed.graph().node[4].output[0] = "z".into();
    for (b, part) in [
        (renamed, "outputs are `z` instead of `y`"),
        (mlp("N"), "input `x` is f32[N,16] instead of f32[4,16]"),
        (mlp("5"), "input `x` is f32[5,16] instead of f32[4,16]"),
    ] {
        let ended = against_mlp(&b, "");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.verdict().starts_with(&format!("verdict: different: {part}")), "{ended:?}");
    }
}

/// The network with one weight changed by `factor`.
fn with_weight_scaled(factor: f32) -> Builder {
    let mut model = mlp("4");
    let tensor = &mut model.graph().initializer[2];
    let mut bytes = tensor.raw_data.take().expect("it has data").to_vec();
    let first = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) * factor;
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    tensor.raw_data = Some(bytes.into());
    model
}

#[test]
fn outputs_are_compared_where_graphs_differ() {
    if !has_runtime() {
        return;
    }
    let same = against_mlp(&with_weight_scaled(1.000_001), "");
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.verdict().contains("same outputs to ") && same.verdict().contains("tested on 3 fills"), "{same:?}");
    assert!(same.out.contains("before saturation") && same.verdict().contains("reference executor agrees to"), "{same:?}");

    let different = against_mlp(&with_weight_scaled(1.5), "");
    assert_eq!(different.code, Some(1), "{different:?}");
    assert!(different.verdict().starts_with("verdict: different: output, fill `normal`: `y` differs by "), "{different:?}");
    let tolerated = against_mlp(&with_weight_scaled(1.5), "--tolerance 10");
    assert_eq!(tolerated.code, Some(0), "{tolerated:?}");
}

/// A product in half precision, with a weight of these bits.
fn in_half(bits: u16) -> Builder {
    let mut model = Builder::new().input("x", &["4", "16"]).output("y", &["4", "16"]);
    model = model.node("Cast", &["x"], &["h"]).int("to", 10).node("Mul", &["h", "w"], &["p"]).node("Cast", &["p"], &["y"]).int("to", 1);
    let raw_data = Some(bits.to_le_bytes().to_vec().into());
    model.graph().initializer.push(TensorProto { name: Some("w".into()), data_type: Some(10), raw_data, ..TensorProto::default() });
    model
}

#[test]
fn half_precision_is_compared_by_what_it_holds() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.onnx", in_half(0x3c00).bytes());
    // One unit in the last place, and eight of them.
    for (bits, code) in [(0x3c01, 0), (0x3c08, 1)] {
        bench.write("b.onnx", in_half(bits).bytes());
        let ended = bench.run("check a.onnx b.onnx");
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

/// The network with its first layer as one operator.
fn with_gemm(rows: &str) -> Builder {
    let mut model = mlp(rows);
    let nodes = &mut model.graph().node;
    nodes.remove(1);
    nodes[0].op_type = Some("Gemm".into());
    nodes[0].input.push("b".into());
    nodes[0].output[0] = "g".into();
    model
}

#[test]
fn what_another_tool_wrote_is_proved_without_a_certificate() {
    let bench = Bench::new();
    bench.write("a.onnx", mlp("N").bytes());
    bench.write("b.onnx", with_gemm("N").bytes());
    // No runtime is needed for that.
    let ended = bench.run("check a.onnx b.onnx --require proved --runtime-library none.so");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.verdict().starts_with("verdict: same · proved over the reals, for all inputs and all sizes of at least 1"), "{ended:?}");
    // Products are of reals, which is an assumption; there is none where a model is itself.
    let ended = bench.run("check a.onnx b.onnx --require proved:exact --runtime-library none.so");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("proved under assumptions only, where proved:exact was asked for"), "{ended:?}");
    assert_eq!(bench.run("check a.onnx a.onnx --require proved:exact --runtime-library none.so").code, Some(0));
    let json = bench.json("check a.onnx b.onnx --json --runtime-library none.so");
    assert_eq!((&json["word"], &json["equivalence"]["word"]), (&"proved".into(), &"proved".into()), "{json}");
    assert!(json["equivalence"]["shown"].as_u64() >= Some(1), "{json}");
    assert_eq!(json["equivalence"]["assumptions"], serde_json::json!(["over the reals"]), "{json}");
}

#[test]
fn less_than_was_asked_for_is_said() {
    if !has_runtime() {
        return;
    }
    let ended = against_mlp(&with_weight_scaled(1.000_001), "--require bounded");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.verdict().contains("no proof for `y`") && ended.verdict().contains("tested only, where bounded was asked for"),
        "{ended:?}"
    );
    assert!(ended.out.contains("no proof at "), "{ended:?}");
    assert_eq!(against_mlp(&with_weight_scaled(1.000_001), "--require tested").code, Some(0));
}

#[test]
fn saturated_outputs_hide_nothing() {
    if !has_runtime() {
        return;
    }
    // A constant shift before a softmax leaves its results as they are, but not what goes into it.
    let shifted = mlp("4");
    let mut model = shifted.weight("c", &[1]);
    let softmax = model.graph().node.pop().expect("a node");
    let mut model = model.node("Add", &["s", "c"], &["t"]);
    model.graph().node.push(softmax);
    model.graph().node.last_mut().expect("a node").input[0] = "t".into();
    let ended = against_mlp(&model, "--effort 0");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("before saturation"), "{ended:?}");
    // It is the same function, though, and that can be proved without running anything.
    let ended = against_mlp(&model, "--runtime-library none.so --require proved");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.verdict().starts_with("verdict: same · proved over the reals, for all inputs and all sizes of at least 1"), "{ended:?}");
}

#[test]
fn reports_are_complete_and_data_is_used() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.onnx", mlp("N").bytes());
    let mut b = with_weight_scaled(1.000_001);
    b.graph().input = mlp("batch").graph().input.clone();
    b.graph().output = mlp("batch").graph().output.clone();
    bench.write("b.onnx", b.bytes());
    bench.write("x.npy", npy(&[2, 16], &[0.25; 32]));
    let json = bench.json("check a.onnx b.onnx --shape x:2,16 --data x:x.npy --json");
    assert_eq!((&json["same"], &json["word"], &json["shapes"][0][1]), (&true.into(), &"tested".into(), &serde_json::json!([2, 16])));
    let fills: Vec<_> = json["runs"].as_array().expect("runs").iter().map(|r| r["fill"].as_str().unwrap_or_default()).collect();
    assert_eq!(fills, ["normal", "zeros", "large", "data"]);
    assert!(json["notes"].to_string().contains("f32[batch,16]"), "{json}");
    for set in ["test_data_set_0", "test_data_set_1"] {
        std::fs::create_dir_all(bench.path(&format!("data/{set}"))).expect("the folder can be written");
        let x = TensorProto { dims: vec![2, 16], data_type: Some(1), float_data: vec![0.5; 32], ..TensorProto::default() };
        bench.write(&format!("data/{set}/input_0.pb"), x.encode_to_vec());
    }
    let mut archive = ZipWriter::new(std::fs::File::create(bench.path("x.npz")).expect("the file can be written"));
    archive
        .start_file("x.npy", SimpleFileOptions::default())
        .and_then(|()| Ok(archive.write_all(&npy(&[2, 16], &[0.75; 32]))?))
        .expect("written");
    archive.finish().expect("written");
    let json = bench.json("check a.onnx b.onnx --shape x:2,16 --data data --data x.npz --json");
    let fills: Vec<_> = json["runs"].as_array().expect("runs").iter().map(|r| r["fill"].as_str().unwrap_or_default()).collect();
    assert_eq!(fills, ["normal", "zeros", "large", "data/test_data_set_0", "data/test_data_set_1", "x.npz"]);
    // Guesses are told, and data takes nothing from a proof.
    let json = bench.json("check a.onnx b.onnx --json");
    assert!(json["notes"].to_string().contains("were guessed"), "{json}");
    bench.write("g.onnx", with_gemm("N").bytes());
    let ended = bench.run("check a.onnx g.onnx --shape x:2,16 --data x:x.npy --require proved");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.verdict().contains("tested on 4 fills") && ended.verdict().contains("proved over the reals, for all inputs"),
        "{ended:?}"
    );
    bench.fails("check a.onnx b.onnx --shape x:3,16 --data x:x.npy", &["data holds f32[2, 16] for input `x`", "f32[3, 16]"]);
    // Data says how large open sizes are.
    let json = bench.json("check a.onnx b.onnx --data x:x.npy --json");
    assert_eq!(json["shapes"][0][1], serde_json::json!([2, 16]));
    assert!(!json["notes"].to_string().contains("were guessed"), "{json}");
    bench.fails("check a.onnx b.onnx --shape z:3,16", &["`z`", "inputs: x"]);
    bench.fails("check a.onnx b.onnx --bind M=3", &["`M`", "sizes: N"]);
}

#[test]
fn a_changed_weight_is_named() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("a.onnx", mlp("4").bytes());
    bench.write("b.onnx", with_weight_scaled(1.5).bytes());
    let ended = bench.run("check a.onnx b.onnx");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("the models differ in weights only: `") && said.contains("` (1 of "), "{said}");
}

/// A file of `f32` in NumPy's format.
fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|d| format!("{d}, ")).collect();
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

/// A model of one operator, `x` to `y`.
fn single(op: &str, dims: &[&str]) -> Builder {
    Builder::new().input("x", dims).node(op, &["x"], &["y"]).output("y", dims)
}

/// The same on 64-bit integers.
fn whole(mut model: Builder) -> Builder {
    let graph = model.graph();
    for info in graph.input.iter_mut().chain(&mut graph.output) {
        if let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_mut().and_then(|ty| ty.value.as_mut()) {
            tensor.elem_type = Some(7);
        }
    }
    model
}

#[test]
fn differences_that_one_small_run_hides_are_found() {
    if !has_runtime() {
        return;
    }
    let product = |weight: &str| {
        let mut model = Builder::new().input("x", &["4", "16"]).input("w", &["16", "8"]).weight(weight, &[16, 8]);
        model.graph().initializer[0].name = Some("w".into());
        model.node("MatMul", &["x", "w"], &["y"]).output("y", &["4", "8"])
    };
    let mut dropout = Builder::new().input("x", &["64"]).weight("ratio", &[]);
    dropout.graph().initializer[0].raw_data = Some(0.5f32.to_le_bytes().to_vec().into());
    let train = TensorProto { name: Some("train".into()), data_type: Some(9), raw_data: Some(vec![1].into()), ..TensorProto::default() };
    dropout.graph().initializer.push(train);
    let dropout = dropout.node("Dropout", &["x", "ratio", "train"], &["y"]).output("y", &["64"]);
    let cases = [
        (product("w"), product("another"), "different: input `w` has another value where it is not given"),
        (whole(single("Abs", &["64"])), whole(single("Identity", &["64"])), "different: output, fill `normal`"),
        (single("Transpose", &["N", "N"]), single("Identity", &["N", "N"]), "different: output, fill `x:3,3`"),
        (dropout, single("Identity", &["64"]), "undecided: no comparison of outputs tells anything"),
    ];
    for (a, b, wanted) in cases {
        let bench = Bench::new();
        bench.write("a.onnx", a.bytes());
        bench.write("b.onnx", b.bytes());
        let ended = bench.run("check a.onnx b.onnx");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.verdict().starts_with(&format!("verdict: {wanted}")), "{ended:?}");
    }
}
