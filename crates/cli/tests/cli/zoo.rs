//! `regraft zoo`.

use prost::Message;
use regraft_onnx::proto::ModelProto;

use crate::run::Bench;

#[test]
fn all_networks_are_listed() {
    let bench = Bench::new();
    let text = bench.ok("zoo list");
    let rows = bench.json("zoo list --json");
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), regraft_zoo::list().len());
    assert_eq!(text.lines().count(), rows.len() + 1);
    for entry in regraft_zoo::list() {
        assert!(text.lines().any(|l| l.starts_with(&format!("{} ", entry.name))), "{}", entry.name);
    }
}

#[test]
fn a_network_is_written_whole_and_the_same_every_time() {
    let bench = Bench::new();
    let out = bench.ok("zoo emit sru -o a.onnx --dynamic");
    assert!(out.starts_with("wrote a.onnx ("), "{out}");
    assert_eq!(bench.ok("zoo emit sru -o b.onnx --dynamic -q"), "");
    bench.ok("zoo emit sru --seed 7");
    assert_eq!(bench.files(), ["a.onnx", "b.onnx", "sru.onnx"]);
    assert_eq!(bench.read("a.onnx"), bench.read("b.onnx"));
    assert_ne!(bench.read("a.onnx"), bench.read("sru.onnx"));
    let model = ModelProto::decode(bench.read("a.onnx").as_slice()).expect("a model");
    assert_eq!(model.graph.expect("a graph").input.len(), 2);
}

#[test]
fn mistakes_are_told() {
    let bench = Bench::new();
    bench.fails("zoo emit resnet50", &["no network `resnet50`", "resnet-50", "`regraft zoo list`"]);
    bench.fails("zoo emit sru -o no/sru.onnx", &["there is no folder no"]);
    bench.fails("zoo emit paper-bert --dynamic", &["paper-bert", "no batch dimension"]);
    assert!(bench.files().is_empty());
}
