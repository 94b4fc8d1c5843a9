//! Operators that are kept verbatim, and bodies, in two models that are compared without a certificate.

use regraft::equivalence::compare;
use regraft_equate::Effort;
use regraft_onnx::Model;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Tensor, Value};
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto, ValueInfoProto,
};

/// A value of type `f32[N,4]`, or a boolean scalar.
fn declared(name: &str) -> ValueInfoProto {
    let symbol = |name: &str| Dimension { value: Some(dimension::Value::DimParam(name.into())), denotation: None };
    let size = |size| Dimension { value: Some(dimension::Value::DimValue(size)), denotation: None };
    let (elem_type, dim) = if name == "c" { (9, Vec::new()) } else { (1, vec![symbol("N"), size(4)]) };
    let tensor = Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// `out = Kind(in, ..)`, or `out = domain.Kind(in, ..)`; words without meaning between them.
fn node(text: &str) -> NodeProto {
    let (out, call) = text.split_once(" = ").expect("a result");
    let (kind, inputs) = call.trim_end_matches(')').split_once('(').expect("operands");
    let (domain, kind) = kind.rsplit_once('.').unwrap_or(("", kind));
    NodeProto {
        output: vec![out.into()],
        input: inputs.split(", ").filter(|n| !n.is_empty()).map(Into::into).collect(),
        op_type: Some(kind.into()),
        domain: Some(domain.into()),
        ..NodeProto::default()
    }
}

fn nodes(text: &str) -> Vec<NodeProto> {
    text.split("; ").filter(|line| !line.is_empty()).map(node).collect()
}

/// `r = If(c)` with a body of these nodes, which returns `out`.
fn branch(body: &str, out: &str) -> NodeProto {
    let graph = || GraphProto { name: Some("body".into()), node: nodes(body), output: vec![declared(out)], ..GraphProto::default() };
    let attribute = |name: &str| AttributeProto { name: Some(name.into()), r#type: Some(5), g: Some(graph()), ..AttributeProto::default() };
    NodeProto { attribute: vec![attribute("then_branch"), attribute("else_branch")], ..node("r = If(c)") }
}

fn model(nodes: Vec<NodeProto>, output: &str) -> Model {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let graph = GraphProto {
        name: Some("g".into()),
        input: vec![declared("x"), declared("z"), declared("c")],
        output: vec![declared(output)],
        node: nodes,
        ..GraphProto::default()
    };
    let proto = ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset("", 17), opset("com.example", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    };
    Model::from_proto(proto).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn check(word: &str, a: &Model, b: &Model) {
    let found = compare(a, b, &Effort::default()).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(found.word, word, "{found:?}");
    assert_eq!(found.gaps.is_empty(), word == "proved", "{found:?}");
}

#[test]
fn unknown_operators_are_the_same_function_on_the_same_operands() {
    let a = model(nodes("t = Relu(x); u = Relu(t); f = com.example.F(u, z); y = Relu(f)"), "y");
    check("proved", &a, &model(nodes("v = Relu(x); f = com.example.F(v, z); y = Relu(f)"), "y"));
    check("unproved", &a, &model(nodes("v = Relu(x); f = com.example.F(z, v); y = Relu(f)"), "y"));
    check("unproved", &a, &model(nodes("v = Relu(x); f = com.example.G(v, z); y = Relu(f)"), "y"));
    let mut other = nodes("v = Relu(x); f = com.example.F(v, z); y = Relu(f)");
    other[1].attribute.push(AttributeProto { name: Some("axis".into()), r#type: Some(2), i: Some(1), ..AttributeProto::default() });
    check("unproved", &a, &model(other, "y"));
}

#[test]
fn random_operators_are_equal_to_nothing() {
    let random = || model(nodes("r = RandomNormalLike(x); y = Add(r, z)"), "y");
    check("unproved", &random(), &random());
}

#[test]
fn bodies_are_compared_under_equal_captured_values() {
    let a = |body: &str| model([nodes("t = Relu(x); i = Identity(t)"), vec![branch(body, "o")], nodes("y = Relu(r)")].concat(), "y");
    let plain = a("p = Mul(i, z); o = Tanh(p)");
    // Other names inside, the same value under another name outside.
    check("proved", &plain, &a("q = Mul(t, z); o = Tanh(q)"));
    check("proved", &plain, &a("q = Mul(z, t); w = Identity(q); o = Tanh(w)"));
    check("unproved", &plain, &a("p = Mul(x, z); o = Tanh(p)"));
    check("unproved", &plain, &a("p = Mul(i, z); o = Sigmoid(p)"));
    let mut deaf = nodes("t = Relu(x); i = Identity(t)");
    deaf.push(branch("p = RandomNormalLike(i); o = Mul(p, z)", "o"));
    deaf.extend(nodes("y = Relu(r)"));
    check("unproved", &model(deaf.clone(), "y"), &model(deaf, "y"));
}
