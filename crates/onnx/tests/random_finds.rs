//! Minimized findings from random and damaged models: one test per bug.

mod common;

use std::sync::Arc;

use common::*;
use regraft_ir::{NewNode, OpKind, Patch, PatchValue};
use regraft_onnx::proto::{GraphProto, ModelProto, NodeProto};
use regraft_onnx::{Model, WriteOptions};
use smallvec::smallvec;

fn write(model: &Model) -> ModelProto {
    model.write(model.graph(), &WriteOptions::default()).unwrap_or_else(|e| panic!("{e}")).proto
}

/// Equal parts are counted by the outputs that a split lists, not by those that are read.
#[test]
fn a_split_whose_second_part_is_not_read_still_has_two() {
    for opset in [7, 11, 12] {
        let split = with(node("Split", "x", "y,unread"), int("axis", 1));
        let g = graph(vec![value("x", "N,8")], vec![value("y", "N,4")], vec![split], vec![]);
        let model = read(&versions(g, 8, opset));
        let ty = model.outputs()[0].ty.clone().expect("a defined operator");
        assert_eq!(ty.to_string(), "f32[N,4]", "opset {opset}");
        assert_eq!(listing(&write(&model)), ["y,unread = Split(x)"]);
    }
}

/// Before opset 13 a softmax is a reshape to rows, a softmax, and a reshape back. If the rows now
/// come from elsewhere, it is no longer the original node, which would take over the other
/// operand's shape.
#[test]
fn a_node_of_several_operators_is_verbatim_only_on_its_own_operand() {
    let softmax = with(node("LogSoftmax", "f", "y"), int("axis", 0));
    let flatten = with(node("Flatten", "x", "f"), int("axis", 2));
    let g = graph(vec![value("x", "2,3,4,5")], vec![value("y", "6,20")], vec![flatten, softmax], vec![]);
    let model = read(&versions(g, 8, 11));
    let mut graph = model.graph().clone();
    let rows = graph.ids().find(|id| {
        let node = graph.node(*id);
        node.op.kind() == OpKind::Reshape && graph.node(node.inputs[0].node).op.kind() == OpKind::Flatten
    });
    let rows = rows.expect("the rows of the softmax").out();
    // A reshape of a flatten is one reshape of the input.
    let x = graph.inputs()[0].out();
    let op = graph.node(rows.node).op.clone();
    let types: Vec<_> = graph.infer(&op, &[x]).unwrap().into_iter().map(Some).collect();
    assert_eq!(types[0].as_ref(), graph.ty(rows));
    let create = vec![NewNode::new(op, smallvec![PatchValue::Old(x)], types.into())];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace: smallvec![(rows, PatchValue::New { index: 0, port: 0 })] });
    let written = model.write(&graph, &WriteOptions::default()).unwrap().proto;
    let again = Model::from_proto(written).unwrap();
    assert_eq!(again.outputs()[0].ty.as_ref().map(ToString::to_string).as_deref(), Some("f32[6,20]"));
}

/// Sums and products of sizes need no operator newer than opset 7.
#[test]
fn a_computed_shape_is_written_before_opset_11() {
    let flat = with(node("Flatten", "x", "f"), int("axis", 2));
    let nodes = vec![flat, node("Shape", "f", "s"), node("ConstantOfShape", "s", "y")];
    let model = read(&versions(graph(vec![value("x", "N,3,M")], vec![value("y", "P,M")], nodes, vec![]), 8, 9));
    let written = write(&model);
    assert!(listing(&written).iter().any(|line| line.contains("ConstantOfShape")), "{:?}", listing(&written));
    let again = Model::from_proto(written).unwrap();
    assert_eq!(again.outputs()[0].ty.as_ref().map(|t| t.rank()), Some(2));
}

/// A damaged file may hold an empty node.
#[test]
fn a_node_without_operator_and_results_is_no_panic() {
    let g = GraphProto { node: vec![NodeProto::default()], name: Some("g".into()), ..GraphProto::default() };
    if let Ok(model) = Model::from_proto(model(g)) {
        assert!(model.opaque_nodes().len() == 1 && model.outputs().is_empty());
        let _ = model.write(model.graph(), &WriteOptions::default());
    }
}

/// Only the shape of `v` is read: were that shape an attribute, `v` and its open size would be
/// removed.
#[test]
fn a_value_that_only_lends_its_shape_stays() {
    let odd = NodeProto { domain: Some("mine".into()), ..node("Odd", "x", "v") };
    let nodes = vec![odd, node("Shape", "v", "s"), node("ConstantOfShape", "s", "y")];
    let mut g = graph(vec![value("x", "N,3")], vec![value("y", "P,3")], nodes, vec![]);
    g.value_info.push(value("v", "M,3"));
    let mut model = versions(g, 8, 13);
    model.opset_import.push(regraft_onnx::proto::OperatorSetIdProto { domain: Some("mine".into()), version: Some(1) });
    let model = read(&model);
    let mut clean = model.graph().clone();
    regraft_ir::normal::dce(&mut clean);
    let written = model.write(&clean, &WriteOptions::default()).unwrap_or_else(|e| panic!("{e}")).proto;
    assert_eq!(listing(&written), ["v = Odd(x)", "s = Shape(v)", "y = ConstantOfShape(s)"]);
}
