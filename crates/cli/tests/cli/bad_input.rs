//! Damaged and alien models: one line of cause, place and hint, exit code 2, nothing written.

use regraft_onnx::proto::tensor_proto::DataType;

use crate::models::{Builder, mlp};
use crate::run::{Bench, has_runtime};

/// A kind of bad input: the file's name, its bytes if there is a file, and what the error must say.
pub struct Bad(pub &'static str, pub Option<Vec<u8>>, pub &'static [&'static str]);

pub fn table() -> Vec<Bad> {
    let good = mlp("4").bytes();
    let cyclic = Builder::new().input("x", &["2"]).node("Add", &["x", "b"], &["a"]).node("Relu", &["a"], &["b"]).output("b", &["2"]);
    let undefined = Builder::new().input("x", &["2"]).node("Add", &["x", "w_17"], &["y"]).output("y", &["2"]);
    let twice = Builder::new().input("x", &["2"]).node("Relu", &["x"], &["y"]).node("Abs", &["x"], &["y"]).output("y", &["2"]);
    let no_output = Builder::new().input("x", &["2"]).node("Relu", &["x"], &["y"]).output("z", &["2"]);
    let (missing, _) = mlp("4").external("weights.bin");
    let (outside, _) = mlp("4").external("../weights.bin");
    let mut dtype = mlp("4");
    dtype.graph().initializer[0].data_type = Some(99);
    let mut short = mlp("4");
    short.graph().initializer[0].raw_data = Some(vec![0u8; 12].into());
    let mut negative = mlp("4");
    negative.graph().initializer[0].dims = vec![-4, 16];
    let mut no_graph = mlp("4");
    no_graph.0.graph = None;
    let mut untyped = mlp("4");
    untyped.graph().initializer[0].data_type = Some(DataType::Undefined as i32);
    vec![
        Bad("missing.onnx", None, &["missing.onnx", "check the path"]),
        Bad("empty.onnx", Some(Vec::new()), &["the file is empty", "empty.onnx"]),
        Bad("truncated.onnx", Some(good[..good.len() / 2].to_vec()), &["cut off", "truncated.onnx", "fetch the file again"]),
        Bad("readme.onnx", Some(b"# A model\n\nSee below.\n".to_vec()), &["not an ONNX model", "readme.onnx"]),
        Bad("page.onnx", Some(b"<!DOCTYPE html><html><body>404</body></html>".to_vec()), &["not an ONNX model", "web page"]),
        Bad("pointer.onnx", Some(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n".to_vec()), &["not an ONNX model"]),
        Bad("cyclic.onnx", Some(cyclic.bytes()), &["cycle", "cyclic.onnx", "graph `main`"]),
        Bad("undefined.onnx", Some(undefined.bytes()), &["reads `w_17`, which nothing defines", "undefined.onnx", "graph `main`"]),
        Bad("twice.onnx", Some(twice.bytes()), &["`y` is defined twice", "twice.onnx"]),
        Bad("no-output.onnx", Some(no_output.bytes()), &["`z`", "nothing defines", "no-output.onnx"]),
        Bad("external.onnx", Some(missing.bytes()), &["tensor `w`", "weights.bin", "copy the data file"]),
        Bad("outside.onnx", Some(outside.bytes()), &["tensor `w`", "leaves the model's folder"]),
        Bad("dtype.onnx", Some(dtype.bytes()), &["tensor `w` has the unknown element type 99", "dtype.onnx"]),
        Bad("undefined-dtype.onnx", Some(untyped.bytes()), &["tensor `w`", "undefined-dtype.onnx"]),
        Bad("short.onnx", Some(short.bytes()), &["tensor `w`", "2048 bytes, 12 are stored"]),
        Bad("negative.onnx", Some(negative.bytes()), &["tensor `w`", "impossible shape"]),
        Bad("no-graph.onnx", Some(no_graph.bytes()), &["no graph"]),
    ]
}

#[test]
fn every_kind_is_told_in_one_line_and_nothing_is_written() {
    let bench = Bench::new();
    bench.write("good.onnx", mlp("4").bytes());
    for Bad(name, bytes, parts) in table() {
        if let Some(bytes) = bytes {
            bench.write(name, bytes);
        }
        let before = bench.files();
        let parts: Vec<&str> = parts.iter().copied().chain(["(hint: "]).collect();
        for words in [
            format!("optimize {name} -o out.onnx"),
            format!("{name} out.onnx"),
            format!("optimize {name} --json --report r.json"),
            format!("check good.onnx {name}"),
            format!("check {name} good.onnx"),
            format!("bench good.onnx {name}"),
            format!("explain good.onnx {name}"),
            format!("cost show {name}"),
        ] {
            bench.fails(&words, &parts);
        }
        assert_eq!(bench.files(), before, "{name}");
    }
}

#[test]
fn folders_are_no_models() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("folder.onnx")).expect("the folder can be written");
    bench.fails("optimize folder.onnx -o out.onnx", &["folder.onnx", "this is a folder"]);
    assert_eq!(bench.files(), ["folder.onnx"]);
}

#[test]
fn places_that_cannot_be_written_are_told_before_the_run() {
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.fails("optimize m.onnx -o no/such/out.onnx", &["there is no folder", "create it first"]);
    bench.fails("optimize m.onnx -o .", &["this is a folder", "-o"]);
    bench.fails("optimize m.onnx -o out.onnx --report no/r.json", &["no/r.json", "there is no folder"]);
    bench.fails("optimize m.onnx -o m.onnx", &["the input itself", "--force-overwrite"]);
    bench.fails("optimize m.onnx -o ./m.onnx", &["the input itself"]);
    for (option, part) in [
        ("--report m.onnx", "the report would overwrite the input"),
        ("--report out.onnx", "the report would overwrite the result"),
        ("--report out.certificate", "the report would overwrite the certificate"),
        ("--certificate ./m.onnx", "the certificate would overwrite the input"),
    ] {
        bench.fails(&format!("optimize m.onnx -o out.onnx {option}"), &[part, "name another file"]);
    }
    assert_eq!(bench.files(), ["m.onnx"]);
    assert_eq!(bench.read("m.onnx"), mlp("4").bytes());
}

#[test]
fn sizes_that_no_memory_holds_are_told() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("N").bytes());
    bench.fails("optimize m.onnx -o out.onnx --bind N=99999999999999", &["too large for memory"]);
    assert_eq!(bench.files(), ["m.onnx"]);
}

#[test]
fn rules_that_cannot_be_used_are_told_with_their_place() {
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.write("my.rules", "(rule mine\n  (relu ?x)  =>  (relu ?y)\n  (numeric exact))\n");
    bench.write("cut.rules", "(rule mine (relu ?x)");
    bench.fails("optimize m.onnx --rules my.rules", &["my.rules:2:", "?y"]);
    bench.fails("optimize m.onnx --rules cut.rules", &["cut.rules:1:"]);
    bench.fails("optimize m.onnx --rules none.rules", &["none.rules", "cannot read the rule file"]);
    bench.fails("optimize m.onnx --deny fast", &["`fast`", "neither a rule nor a numeric class"]);
    assert_eq!(bench.files(), ["cut.rules", "m.onnx", "my.rules"]);
}

#[test]
fn a_runtime_that_is_not_there_is_told() {
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.fails("optimize m.onnx --runtime-library none.so", &["none.so", "pip install onnxruntime"]);
    assert_eq!(bench.files(), ["m.onnx"]);
}
