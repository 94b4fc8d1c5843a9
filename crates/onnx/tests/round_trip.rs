//! Reading and writing without a change preserves every byte, whatever the model holds.

mod common;

use common::*;
use prost::Message;
use regraft_ir::{Op, OpKind};
use regraft_onnx::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto, StringStringEntryProto, TensorAnnotation,
    TrainingInfoProto,
};
use regraft_onnx::{Model, WriteOptions};

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) }
}

/// Everything that a model can hold besides plain operators.
fn rich() -> ModelProto {
    let branch = |op: &str| graph(vec![], vec![value("inner", "N,4")], vec![node(op, "h,w", "inner")], vec![]);
    let condition =
        with(with(node("If", "flag", "chosen"), subgraph("then_branch", branch("Add"))), subgraph("else_branch", branch("Mul")));
    let custom = NodeProto { domain: Some("my.domain".into()), ..node("Strange", "chosen,,w", "odd,") };
    let call = NodeProto { domain: Some("local".into()), ..node("Twice", "odd", "called") };
    let mut graph = graph(
        vec![value("x", "N,4"), typed("flag", 9, "1")],
        vec![value("y", "N,4"), value("z", "?,4")],
        vec![
            with(node("Constant", "", "two"), tensor("value", floats("", &[], &[2.0]))),
            node("Relu", "x", "h"),
            node("Shape", "h", "shape"),
            node("Reshape", "h,shape", "same"),
            condition,
            custom,
            call,
            node("Mul", "called,two", "y"),
            node("Add", "same,w", "z"),
            node("Neg", "x", "nobody_reads_this"),
        ],
        vec![floats("w", &[4], &[1.0, 2.0, 3.0, 4.0]), floats("unused", &[2], &[0.0, 1.0])],
    );
    graph.doc_string = Some("documented".into());
    graph.value_info = vec![value("h", "N,4"), value("odd", "N,4"), value("called", "N,4")];
    graph.metadata_props = vec![entry("k", "v")];
    graph.quantization_annotation =
        vec![TensorAnnotation { tensor_name: Some("h".into()), quant_parameter_tensor_names: vec![entry("SCALE_TENSOR", "unused")] }];
    graph.sparse_initializer =
        vec![SparseTensorProto { values: Some(floats("sparse", &[1], &[5.0])), indices: Some(ints("", &[2])), dims: vec![8] }];
    let mut model = model(graph);
    model.opset_import.push(OperatorSetIdProto { domain: Some("my.domain".into()), version: Some(3) });
    model.opset_import.push(OperatorSetIdProto { domain: Some("local".into()), version: Some(1) });
    model.metadata_props = vec![entry("author", "someone")];
    model.doc_string = Some("a model".into());
    model.functions = vec![FunctionProto {
        name: Some("Twice".into()),
        domain: Some("local".into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: vec![node("Add", "a,a", "b")],
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        ..FunctionProto::default()
    }];
    model.training_info = vec![TrainingInfoProto { algorithm: Some(GraphProto::default()), ..TrainingInfoProto::default() }];
    model
}

fn unchanged(proto: &ModelProto) -> Vec<u8> {
    let model = read(proto);
    model.write(model.graph(), &WriteOptions::default()).unwrap().to_bytes().unwrap()
}

#[test]
fn a_rich_model_comes_back_byte_for_byte() {
    let proto = rich();
    assert_eq!(listing(&ModelProto::decode(unchanged(&proto).as_slice()).unwrap()), listing(&proto));
    assert_eq!(unchanged(&proto), proto.encode_to_vec());
}

#[test]
fn old_models_come_back_byte_for_byte() {
    // Before IR version 4, initializers are listed as inputs but are constants all the same.
    let graph = graph(
        vec![value("x", "1,4"), value("w", "4"), typed("shape", 7, "1")],
        vec![value("y", "1,4")],
        vec![node("ConstantOfShape", "shape", "zeros"), node("Add", "x,w", "h"), node("Add", "h,zeros", "y")],
        vec![floats("w", &[4], &[1.0; 4]), ints("shape", &[4])],
    );
    let proto = versions(graph, 3, 9);
    let model = read(&proto);
    assert_eq!(model.inputs().len(), 1);
    assert_eq!(model.graph().inputs().len(), 1);
    assert!(model.opaque_nodes().is_empty(), "{:?}", model.opaque_nodes());
    assert_eq!(unchanged(&proto), proto.encode_to_vec());
}

#[test]
fn defaults_of_inputs_are_no_constants() {
    let graph = graph(
        vec![value("x", "4"), value("w", "4")],
        vec![value("y", "4")],
        vec![node("Add", "x,w", "y")],
        vec![floats("w", &[4], &[1.0; 4])],
    );
    let proto = model(graph);
    let model = read(&proto);
    assert_eq!(model.graph().inputs().len(), 2);
    assert_eq!(model.inputs()[1].default.as_ref().and_then(|d| d.splat()), Some(1.0));
    assert_eq!(unchanged(&proto), proto.encode_to_vec());
}

#[test]
fn every_node_can_be_spelled_anew() {
    let proto = rich();
    let model = read(&proto);
    let written = model.write(model.graph(), &WriteOptions { respell: true, ..WriteOptions::default() }).unwrap();
    let again = Model::from_proto(written.proto.clone()).unwrap();
    assert_eq!(
        again.outputs().iter().map(|o| o.ty.clone()).collect::<Vec<_>>(),
        model.outputs().iter().map(|o| o.ty.clone()).collect::<Vec<_>>()
    );
    let lines = listing(&written.proto);
    // The subgraphs still find what they capture; the custom operator is verbatim, including its
    // missing inputs and outputs.
    assert!(lines.contains(&"h = Relu(x)".to_string()), "{lines:#?}");
    assert!(lines.contains(&"odd, = Strange(chosen,,w)".to_string()), "{lines:#?}");
    // A Reshape to the operand's own shape no longer needs a computed shape.
    assert!(!lines.iter().any(|l| l.contains("Shape(h)")), "{lines:#?}");
    assert!(initializers(&written.proto).contains(&"w"));
}

#[test]
fn sizes_computed_from_shapes_become_symbols() {
    // x.view(x.size(0), -1) as exporters write it.
    let mut nodes = vec![
        node("Shape", "x", "s"),
        with(node("Gather", "s,zero", "n"), int("axis", 0)),
        node("Unsqueeze", "n,axes", "n1"),
        with(node("Concat", "n1,rest", "target"), int("axis", 0)),
        node("Reshape", "x,target", "y"),
    ];
    nodes.insert(
        0,
        with(node("Constant", "", "zero"), tensor("value", regraft_onnx::proto::TensorProto { dims: vec![], ..ints("", &[0]) })),
    );
    let graph = graph(vec![value("x", "-1,3,H,H")], vec![value("y", "_,_")], nodes, vec![ints("axes", &[0]), ints("rest", &[-1])]);
    let model = read(&common::model(graph));
    assert!(model.opaque_nodes().is_empty(), "{:?}", model.opaque_nodes());
    let reshape = model.graph().ids().map(|id| model.graph().node(id)).find(|n| n.op.kind() == OpKind::Reshape).expect("a Reshape");
    assert_eq!(reshape.types[0].as_ref().unwrap().to_string(), "f32[x_d0,3*H*H]");
    assert!(matches!(&reshape.op, Op::Reshape(op) if op.shape.len() == 2));
}

#[test]
fn meaningless_sizes_are_distinct() {
    let graph = graph(
        vec![value("x", "?,-1,_,N,None"), value("z", "?,N")],
        vec![value("y", "?,?,?,?,?")],
        vec![node("Relu", "x", "y"), node("Relu", "z", "unread")],
        vec![],
    );
    let model = read(&common::model(graph));
    let types: Vec<String> = model.inputs().iter().map(|i| i.ty.as_ref().unwrap().to_string()).collect();
    assert_eq!(types, ["f32[x_d0,x_d1,x_d2,N,x_d4]", "f32[z_d0,N]"]);
}

#[test]
fn wrong_declared_sizes_are_not_believed() {
    // `h` is declared with a batch of 1 although the input's batch varies: so the declaration of
    // `odd` is not trusted either.
    let custom = || NodeProto { domain: Some("my.domain".into()), ..node("Strange", "h", "odd") };
    let make = |declared: &str| {
        let mut g = graph(
            vec![value("x", "N,4")],
            vec![value("y", "_,4")],
            vec![node("Relu", "x", "h"), custom(), node("Relu", "odd", "y")],
            vec![],
        );
        g.value_info = vec![value("h", declared), value("odd", "1,4")];
        read(&common::model(g))
    };
    let good = make("N,4");
    assert_eq!(good.outputs()[0].ty.as_ref().unwrap().to_string(), "f32[1,4]");
    assert!(good.notes().is_empty());
    let stale = make("1,4");
    assert_eq!(stale.outputs()[0].ty.as_ref().unwrap().to_string(), "f32[odd_d0,odd_d1]");
    assert_eq!(stale.notes().len(), 1, "{:?}", stale.notes());
}

#[test]
fn unsorted_models_are_sorted() {
    let graph = graph(vec![value("x", "4")], vec![value("y", "4")], vec![node("Neg", "h", "y"), node("Relu", "x", "h")], vec![]);
    let model = read(&common::model(graph));
    let written = model.write(model.graph(), &WriteOptions::default()).unwrap();
    assert_eq!(listing(&written.proto), ["h = Relu(x)", "y = Neg(h)"]);
}

#[test]
fn unknown_fields_are_noticed() {
    let proto = rich();
    let mut bytes = proto.encode_to_vec();
    assert_eq!(Model::from_bytes(bytes.clone().into(), None).unwrap().unknown_field(), None);
    bytes.extend([0xb8, 0x3e, 0x01]);
    assert_eq!(Model::from_bytes(bytes.into(), None).unwrap().unknown_field(), Some("Model.999"));
}

#[test]
fn randomness_and_strings_stay_opaque() {
    let text = regraft_onnx::proto::TensorProto {
        data_type: Some(8),
        dims: vec![1],
        string_data: vec![b"word".to_vec()],
        name: Some("text".into()),
        ..Default::default()
    };
    let graph = graph(
        vec![value("x", "4")],
        vec![value("y", "4"), typed("words", 8, "1")],
        vec![node("RandomNormalLike", "x", "r"), node("Add", "x,r", "y"), node("Identity", "text", "words")],
        vec![text],
    );
    let proto = common::model(graph);
    let opaque: Vec<String> = read(&proto).opaque_nodes().iter().map(|n| n.op_type.clone()).collect();
    assert!(opaque.contains(&"RandomNormalLike".to_string()), "{opaque:?}");
    assert_eq!(unchanged(&proto), proto.encode_to_vec());
}
