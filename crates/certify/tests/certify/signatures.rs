//! What a model declares to its callers is part of the certificate.

use crate::models::{Case, bytes, declared, empty, model, node, replayed, weight};
use regraft_certify::{Finding, ModelDigest};
use regraft_ir::Trust;
use regraft_onnx::Model;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Optional, Sequence, Value};
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto};

/// `y = x + s` and `z = s`, where `s` may be omitted, and a sequence and an optional value that
/// pass through.
fn wide() -> ModelProto {
    let sequence = |name: &str| {
        let element = declared("", &["2"]).r#type.map(Box::new);
        typed(name, Value::SequenceType(Box::new(Sequence { elem_type: element })))
    };
    let optional = |name: &str| {
        let element = declared("", &["2"]).r#type.map(Box::new);
        typed(name, Value::OptionalType(Box::new(Optional { elem_type: element })))
    };
    model(GraphProto {
        name: Some("wide".into()),
        input: vec![declared("x", &["N", "2"]), declared("s", &["2"]), sequence("q"), optional("o")],
        output: vec![declared("y", &["N", "2"]), declared("z", &["2"]), sequence("q"), optional("o")],
        initializer: vec![weight("s", &[2])],
        node: vec![node("Add", &["x", "s"], &["y"]), node("Neg", &["s"], &["z"])],
        ..GraphProto::default()
    })
}

fn typed(name: &str, value: Value) -> ValueInfoProto {
    let ty = TypeProto { value: Some(value), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

fn shape(info: &mut ValueInfoProto) -> &mut Option<TensorShapeProto> {
    match info.r#type.as_mut().and_then(|t| t.value.as_mut()) {
        Some(Value::TensorType(tensor)) => &mut tensor.shape,
        _ => panic!("a tensor"),
    }
}

fn element(info: &mut ValueInfoProto) -> &mut TypeProto {
    match info.r#type.as_mut().and_then(|t| t.value.as_mut()) {
        Some(Value::SequenceType(sequence)) => sequence.elem_type.as_mut().expect("an element type"),
        Some(Value::OptionalType(optional)) => optional.elem_type.as_mut().expect("an element type"),
        _ => panic!("a sequence or an optional value"),
    }
}

fn size(at: &mut Option<TensorShapeProto>, axis: usize, value: dimension::Value) {
    at.as_mut().expect("a shape").dim[axis].value = Some(value);
}

/// A change to what a model declares, and the message.
type Change = (fn(&mut GraphProto), &'static str);

const CHANGES: [Change; 16] = [
    (|g| size(shape(&mut g.output[1]), 0, dimension::Value::DimValue(5)), "output `z` is f32[5] instead of f32[2]"),
    (|g| size(shape(&mut g.output[0]), 0, dimension::Value::DimValue(3)), "output `y` is f32[3,2] instead of f32[N,2]"),
    (|g| size(shape(&mut g.output[0]), 0, dimension::Value::DimParam("M".into())), "output `y` is called f32[M,2] and f32[N,2]"),
    (|g| size(shape(&mut g.output[1]), 0, dimension::Value::DimParam("2".into())), "output `z` is f32[\"2\"] instead of f32[2]"),
    (|g| shape(&mut g.output[1]).as_mut().expect("a shape").dim.push(Dimension::default()), "output `z` is f32[2,?] instead of f32[2]"),
    (|g| *shape(&mut g.output[1]) = None, "output `z` is f32[..] instead of f32[2]"),
    (|g| g.output[1] = ValueInfoProto { r#type: None, ..g.output[1].clone() }, "output `z` is ?[..] instead of f32[2]"),
    (|g| g.output.swap(0, 1), "outputs are `z`, `y`, `q`, `o` instead of `y`, `z`, `q`, `o`"),
    (|g| g.input.swap(0, 1), "inputs are `s`, `x`, `q`, `o` instead of `x`, `s`, `q`, `o`"),
    (|g| size(shape(&mut g.input[0]), 0, dimension::Value::DimValue(4)), "input `x` is f32[4,2] instead of f32[N,2]"),
    (|g| g.output.truncate(3), "outputs are `y`, `z`, `q` instead of `y`, `z`, `q`, `o`"),
    (|g| g.initializer[0] = weight("t", &[2]).renamed("s"), "input `s` has another value where it is not given"),
    (|g| g.initializer.clear(), "input `s` has another value where it is not given"),
    (|g| *element(&mut g.output[2]) = declared("", &["3"]).r#type.expect("a type"), "output `q` is sequence of f32[3]"),
    (|g| *element(&mut g.input[2]) = declared("", &["3"]).r#type.expect("a type"), "input `q` is sequence of f32[3]"),
    (|g| *element(&mut g.output[3]) = declared("", &["2", "2"]).r#type.expect("a type"), "output `o` is optional f32[2,2]"),
];

trait Renamed {
    fn renamed(self, name: &str) -> Self;
}

impl Renamed for TensorProto {
    fn renamed(self, name: &str) -> TensorProto {
        TensorProto { name: Some(name.into()), ..self }
    }
}

#[test]
fn another_signature_is_never_certified() {
    let input = Model::from_proto(wide()).expect("a model");
    let same = replayed(empty().replay(&input, &input).expect("comparable"));
    assert_eq!((same.arrival.clone(), same.trust()), (Ok(()), Trust::Proved));
    for (change, want) in CHANGES {
        let mut proto = wide();
        change(proto.graph.get_or_insert_default());
        let output = Model::from_proto(proto).unwrap_or_else(|e| panic!("{want}: {e}"));
        match empty().replay(&input, &output).expect("comparable") {
            Finding::Tampered(why) => assert!(why.contains(want), "{why}, and not {want}"),
            other => panic!("{want}: {other:?}"),
        }
    }
}

#[test]
fn a_resealed_certificate_of_another_signature_is_told() {
    let mut case = Case::scaled(false);
    let mut proto = Model::read(case.path("b.onnx")).expect("a model").proto().clone();
    proto.graph.get_or_insert_default().output[0] = declared("y", &["N", "7"]);
    std::fs::write(case.path("b.onnx"), bytes(&proto)).expect("writable");
    case.certificate.output = ModelDigest::of(&case.path("b.onnx")).expect("a digest");
    let Finding::Tampered(why) = case.verify() else { panic!("it was certified") };
    assert!(why.contains("output `y` is f32[N,7] instead of f32[N,5]"), "{why}");
}

/// Formal inputs of a body are identified by position: swapped, they are different inputs.
#[test]
fn bodies_declare_their_inputs_in_order() {
    use crate::models::looping;
    let input = Model::from_proto(looping()).expect("a model");
    let same = replayed(empty().replay(&input, &input).expect("comparable"));
    assert_eq!((same.arrival.clone(), same.trust()), (Ok(()), Trust::Proved));
    let mut proto = looping();
    let body = proto.graph.get_or_insert_default().node[0].attribute[0].g.get_or_insert_default();
    body.input.swap(2, 3);
    let output = Model::from_proto(proto).expect("a model");
    let replay = replayed(empty().replay(&input, &output).expect("comparable"));
    assert_eq!(replay.trust(), Trust::Unproved);
    assert!(replay.arrival.is_err_and(|why| why.contains("a body does not declare what it did: inputs are")));
}
