//! A small model, a rewritten version of it, and their certificate, as files.

use std::path::PathBuf;

use prost::Message;
use regraft_certify::{Certificate, Finding, GraphPath, ModelDigest, Replay, Step, Trail};
use regraft_ir::{Graph, ValueId, canonical_key};
use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Tensor, Value};
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use regraft_onnx::{FixedSizes, Model, WriteOptions};
use tempfile::TempDir;

/// A value declared as `f32` of these sizes.
pub fn declared(name: &str, sizes: &[&str]) -> ValueInfoProto {
    let size = |size: &&str| Dimension {
        value: Some(size.parse().map_or_else(|_| dimension::Value::DimParam((*size).into()), dimension::Value::DimValue)),
        denotation: None,
    };
    let shape = Some(TensorShapeProto { dim: sizes.iter().map(size).collect() });
    let ty = TypeProto { value: Some(Value::TensorType(Tensor { elem_type: Some(1), shape })), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// A weight whose elements look random.
pub fn weight(name: &str, sizes: &[i64]) -> TensorProto {
    let elements = sizes.iter().product::<i64>() as usize;
    let seed = name.bytes().fold(7u32, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b)));
    let value =
        |at: usize| ((seed.wrapping_add(at as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1u32 << 23) as f32 - 1.0).to_le_bytes();
    let raw: Vec<u8> = (0..elements).flat_map(value).collect();
    TensorProto { name: Some(name.into()), dims: sizes.to_vec(), data_type: Some(1), raw_data: Some(raw.into()), ..TensorProto::default() }
}

/// A node.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    NodeProto { op_type: Some(op.into()), input: names(inputs), output: names(outputs), ..NodeProto::default() }
}

/// A model around a graph.
pub fn model(graph: GraphProto) -> ModelProto {
    let opset = OperatorSetIdProto { domain: None, version: Some(17) };
    ModelProto { ir_version: Some(8), opset_import: vec![opset], graph: Some(graph), ..ModelProto::default() }
}

/// `y = relu(relu((x w) s))`, with one product more than needed.
pub fn scaled() -> ModelProto {
    model(GraphProto {
        name: Some("scaled".into()),
        input: vec![declared("x", &["N", "6"])],
        output: vec![declared("y", &["N", "5"]), declared("z", &["N", "5"])],
        initializer: vec![weight("w", &[6, 5]), weight("s", &[1])],
        node: vec![
            node("MatMul", &["x", "w"], &["p"]),
            node("MatMul", &["x", "w"], &["q"]),
            node("Mul", &["p", "s"], &["m"]),
            node("Relu", &["m"], &["r"]),
            node("Relu", &["r"], &["y"]),
            node("Tanh", &["q"], &["z"]),
        ],
        ..GraphProto::default()
    })
}

/// A body, as an attribute of this name.
pub fn body(name: &str, graph: GraphProto) -> AttributeProto {
    let graph = GraphProto { name: Some(name.into()), ..graph };
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Graph as i32), g: Some(graph), ..AttributeProto::default() }
}

/// A whole number as an attribute.
pub fn attribute(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Int as i32), i: Some(value), ..AttributeProto::default() }
}

/// The type of a boolean scalar.
pub fn boolean() -> Option<TypeProto> {
    scalar(9)
}

fn scalar(elem_type: i32) -> Option<TypeProto> {
    let tensor = Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto::default()) };
    Some(TypeProto { value: Some(Value::TensorType(tensor)), denotation: None })
}

/// `u, v = u - v, v`, repeated.
pub fn looping() -> ModelProto {
    let named = |name: &str, ty: Option<TypeProto>| ValueInfoProto { r#type: ty, ..declared(name, &[]) };
    let inner = GraphProto {
        input: vec![named("i", scalar(7)), named("go", boolean()), declared("p", &["3"]), declared("q", &["3"])],
        output: vec![named("on", boolean()), declared("d", &["3"]), declared("e", &["3"])],
        node: vec![node("Identity", &["go"], &["on"]), node("Sub", &["p", "q"], &["d"]), node("Identity", &["q"], &["e"])],
        ..GraphProto::default()
    };
    let around = NodeProto { attribute: vec![body("body", inner)], ..node("Loop", &["n", "c", "u", "v"], &["y", "z"]) };
    model(GraphProto {
        name: Some("looping".into()),
        input: vec![named("n", scalar(7)), named("c", boolean()), declared("u", &["3"]), declared("v", &["3"])],
        output: vec![declared("y", &["3"]), declared("z", &["3"])],
        node: vec![around],
        ..GraphProto::default()
    })
}

/// A certificate without steps, whatever it is about: a forgery.
pub fn empty() -> Certificate {
    let digest = ModelDigest(Vec::new());
    Certificate {
        tool: "test".into(),
        input: digest.clone(),
        output: digest,
        fixed: FixedSizes::default(),
        opset: None,
        trails: Vec::new(),
    }
}

/// `y, z = c ? (---x, -x) : (x + x, -x)`, where both branches read an outer value.
pub fn branching() -> ModelProto {
    let branch = |name: &str, nodes: Vec<NodeProto>, results: [&str; 2]| {
        let output = results.iter().map(|result| declared(result, &["3"])).collect();
        body(name, GraphProto { output, node: nodes, ..GraphProto::default() })
    };
    let mut choice = node("If", &["c"], &["y", "z"]);
    let thrice = vec![node("Neg", &["x"], &["a"]), node("Neg", &["a"], &["b"]), node("Neg", &["b"], &["d"])];
    let twice = vec![node("Add", &["x", "x"], &["e"]), node("Neg", &["x"], &["f"])];
    choice.attribute = vec![branch("then_branch", thrice, ["d", "a"]), branch("else_branch", twice, ["e", "f"])];
    let condition = ValueInfoProto { r#type: boolean(), ..declared("c", &[]) };
    model(GraphProto {
        name: Some("branching".into()),
        input: vec![condition, declared("x", &["3"])],
        output: vec![declared("y", &["3"]), declared("z", &["3"])],
        node: vec![choice],
        ..GraphProto::default()
    })
}

/// The value of this name.
pub fn value(graph: &Graph, name: &str) -> ValueId {
    let found = graph.ids().flat_map(|id| (0..graph.node(id).types.len() as u32).map(move |port| id.port(port)));
    let mut named = found.filter(|v| graph.node(v.node).names[v.port as usize].as_deref() == Some(name));
    named.next().unwrap_or_else(|| panic!("no value is called {name}"))
}

/// A step on values given by name: `redirects` as pairs, `fragment` with `{name}` for a value.
pub fn step(graph: &Graph, rule: &str, replaces: &[&str], redirects: &[(&str, &str)], fragment: &str) -> Step {
    let mut text = fragment.to_string();
    while let Some((start, rest)) = text.split_once('<') {
        let (name, end) = rest.split_once('>').expect("a name ends");
        let v = value(graph, name);
        text = format!("{start}n{}.{}{end}", v.node.0, v.port);
    }
    Step {
        rule: rule.into(),
        replaces: replaces.iter().map(|name| value(graph, name).node).collect(),
        redirects: redirects.iter().map(|(old, new)| (value(graph, old), value(graph, new))).collect(),
        fragment: text,
        ..Step::default()
    }
}

/// Applies steps, each built for the graph before it.
pub fn follow(graph: &mut Graph, steps: &[&dyn Fn(&Graph) -> Step]) -> Vec<Step> {
    let mut done = Vec::new();
    for make in steps {
        let step = make(graph);
        let patch = step.patch(graph).unwrap_or_else(|why| panic!("{}: {why}", step.rule));
        graph.apply(&patch);
        done.push(step);
    }
    done
}

/// How the scaled model is rewritten: products merged, the factor moved into the weight, one Relu.
pub fn rewrites(graph: &mut Graph) -> Vec<Step> {
    follow(
        graph,
        &[&|g| step(g, "cse", &["q"], &[("q", "p")], ""), &|g| step(g, "relu-relu", &["r", "y"], &[("y", "r")], ""), &|g| {
            let fragment = "graph (<x>: f32[N,6], <w>: f32[6,5], <s>: f32[1]) { v = Mul(<w>, <s>) u = MatMul(<x>, v) output u as <m> }\n";
            Step { bindings: vec!["x = n0.0: f32[N,6]".into()], ..step(g, "matmul-scale", &["p", "m"], &[], fragment) }
        }],
    )
}

/// The files of a case, and its certificate.
pub struct Case {
    pub folder: TempDir,
    pub certificate: Certificate,
}

impl Case {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The scaled model, rewritten; the weights of both in separate files if `external`.
    pub fn scaled(external: bool) -> Case {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (input, output) = (folder.path().join("a.onnx"), folder.path().join("b.onnx"));
        let mut proto = scaled();
        if external {
            // Only tensors above some size move out.
            let graph = proto.graph.get_or_insert_default();
            graph.input[0] = declared("x", &["N", "300"]);
            graph.initializer[0] = weight("w", &[300, 5]);
        }
        let read = Model::from_proto(proto).expect("a model");
        read.write(read.graph(), &WriteOptions::default()).and_then(|w| w.save(&input, external)).expect("saved");
        let read = Model::read(&input).expect("a model");
        let mut graph = read.graph().clone();
        let steps =
            if external { follow(&mut graph, &[&|g| step(g, "relu-relu", &["r", "y"], &[("y", "r")], "")]) } else { rewrites(&mut graph) };
        read.save(&graph, &output, &WriteOptions::default()).expect("saved");
        let trail = Trail { place: GraphPath::default(), label: "the model".into(), start: canonical_key(read.graph()), steps };
        let certificate = Certificate {
            tool: "test 1".into(),
            input: ModelDigest::of(&input).expect("a digest"),
            output: ModelDigest::of(&output).expect("a digest"),
            fixed: FixedSizes::default(),
            opset: None,
            trails: vec![trail],
        };
        Case { folder, certificate }
    }

    /// What the certificate says about the files.
    pub fn verify(&self) -> Finding {
        self.certificate.verify(&self.path("a.onnx"), &self.path("b.onnx")).expect("readable")
    }
}

/// The replay of a finding, which must have one.
pub fn replayed(finding: Finding) -> Replay {
    match finding {
        Finding::Replayed(replay) => replay,
        other => panic!("{other:?}"),
    }
}

/// The bytes of a model.
pub fn bytes(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
