//! Attention of several heads and rotary embeddings, against ONNX Runtime's own numbers; ONNX round
//! trips; which nodes stay opaque.

mod common;

use common::{eval, f32s, float, import, op, reals, round_trip};
use regraft_ir::onnx::{ImportOperand, Imported, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, DType, Op, OpKind, TensorType, TypeError, Value};

/// Element `i` is `((7 i + offset) mod 11 - 5) / 4`.
fn of(shape: &[usize], offset: usize) -> Value<f64> {
    let count: usize = shape.iter().product();
    reals(shape, &(0..count).map(|i| (((i * 7 + offset) % 11) as f64 - 5.0) / 4.0).collect::<Vec<f64>>())
}

fn typed(value: &Value<f64>) -> TensorType {
    f32s(&value.shape().iter().map(|d| *d as i64).collect::<Vec<i64>>())
}

fn node(op_type: &str, domain: &str, attrs: &[(&str, Attr)], inputs: &[Option<TensorType>]) -> OnnxNode {
    let attrs = attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    let inputs = inputs.iter().map(|ty| ty.as_ref().map(|ty| OnnxInput { ty: Some(ty.clone()), value: None, dims: None })).collect();
    let version = if domain.is_empty() { 23 } else { 1 };
    OnnxNode { op_type: op_type.into(), domain: domain.into(), version, attrs, inputs, outputs: vec![true] }
}

fn attention(attrs: &[(&str, Attr)], inputs: &[Option<TensorType>]) -> OnnxNode {
    node("MultiHeadAttention", "com.microsoft", &[&[("num_heads", Attr::Int(2))], attrs].concat(), inputs)
}

/// The value that a node imports as.
fn computed(imported: &Imported, inputs: &[Value<f64>]) -> Value<f64> {
    let operands: Vec<Value<f64>> = imported
        .operands
        .iter()
        .map(|operand| match operand {
            ImportOperand::Input(at) => inputs[*at].clone(),
            ImportOperand::Node(inner) => computed(inner, inputs),
            ImportOperand::Const(value) => Value::from_const(value).unwrap(),
        })
        .collect();
    // Positions, the only integers here, are 64 bits wide.
    let types: Vec<TensorType> = operands
        .iter()
        .map(|v| TensorType { dtype: if matches!(v, Value::Int(_)) { DType::I64 } else { DType::F32 }, ..typed(v) })
        .collect();
    eval(&imported.op, &types, &operands, &Bindings::new()).unwrap().remove(0)
}

fn close(found: &Value<f64>, wanted: &[f64]) {
    let Value::Real(found) = found else { panic!("{found:?}") };
    assert_eq!(found.data.len(), wanted.len());
    for (at, (found, wanted)) in found.data.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= 2e-6, "element {at} is {found} and not {wanted}");
    }
}

#[test]
fn attention_is_that_of_the_runtime() {
    let (q, k, v, bias, projection) = (of(&[2, 2, 4], 0), of(&[2, 3, 4], 1), of(&[2, 3, 6], 2), of(&[1, 2, 2, 3], 3), of(&[14], 4));
    let types = [&q, &k, &v].map(|value| Some(typed(value)));
    let plain = OpKind::MultiHeadAttention.import(&attention(&[], &types)).unwrap();
    close(
        &computed(&plain, &[q.clone(), k.clone(), v.clone()]),
        &[
            -0.042785, 0.530336, -0.469664, 0.602608, 0.233732, -0.766268, -0.674154, 0.509516, -0.490484, 0.689811, 0.230974, -0.769026,
            0.002953, -0.637555, 0.752953, -0.221475, -0.704794, 0.528525, 0.000000, 0.156326, 0.750000, -0.278525, -0.604956, 0.471475,
        ],
    );
    let with_bias = [types.as_slice(), &[None, None, Some(typed(&bias))]].concat();
    let biased = OpKind::MultiHeadAttention.import(&attention(&[("scale", float(0.25))], &with_bias)).unwrap();
    close(
        &computed(&biased, &[q.clone(), k.clone(), v.clone(), q.clone(), q.clone(), bias.clone()]),
        &[
            -0.422967, 0.416393, -0.583607, 0.940165, 0.193803, -0.806197, -0.786587, 0.452367, -0.547633, 0.959561, 0.196091, -0.803909,
            -0.040142, -0.615726, 0.709858, -0.293460, -0.796726, 0.456540, -0.077595, -0.268752, 0.672405, -0.306005, -0.765512, 0.443995,
        ],
    );
    let projected = [types.as_slice(), &[Some(typed(&projection))]].concat();
    let projected = OpKind::MultiHeadAttention.import(&attention(&[], &projected)).unwrap();
    close(
        &computed(&projected, &[q.clone(), k.clone(), v.clone(), projection]),
        &[
            -0.276860, -0.420623, 0.329377, 0.352608, -1.016268, -0.266268, -0.974876, -0.480303, 0.269697, 0.439811, -1.019026, -0.269026,
            0.037901, -1.387125, 1.537901, -0.485239, -2.217863, 1.014761, 0.061542, -0.823735, 1.561542, -0.514761, -2.166198, 0.985238,
        ],
    );
    let own = [&q, &k, &v].map(typed);
    assert_eq!(round_trip(&plain.op, &own), (7..=21).collect::<Vec<i64>>());
    assert_eq!(round_trip(&biased.op, &[own.as_slice(), &[typed(&bias)]].concat()).len(), 15);
}

#[test]
fn other_attention_stays_opaque() {
    let ty = |shape: &[i64]| Some(f32s(shape));
    let plain = [ty(&[2, 2, 4]), ty(&[2, 3, 4]), ty(&[2, 3, 6])];
    let zero = attention(&[("scale", float(0.0))], &plain);
    assert_eq!(import(&zero).unwrap().0, import(&attention(&[], &plain)).unwrap().0);
    let more = |others: &[Option<TensorType>]| attention(&[], &[plain.as_slice(), others].concat());
    for (node, why) in [
        (attention(&[("unidirectional", Attr::Int(1))], &plain), "earlier keys only"),
        (attention(&[], &[ty(&[2, 3, 2, 3, 2])]), "packed operands"),
        (attention(&[], &[ty(&[2, 2, 4]), ty(&[2, 2, 3, 2]), ty(&[2, 2, 3, 3])]), "keys computed before"),
        (more(&[None, ty(&[2, 3])]), "a mask of keys"),
        (more(&[None, None, None, ty(&[2, 2, 1, 2]), ty(&[2, 2, 1, 3])]), "a past"),
        (more(&[ty(&[12])]), "too short a bias of the projections"),
        (more(&[None, None, ty(&[2, 3])]), "a bias of two axes"),
        (more(&[None, None, ty(&[1, 1, 1, 3])]), "a bias for all queries"),
        (attention(&[], &[ty(&[2, 2, 5]), ty(&[2, 3, 5]), ty(&[2, 3, 6])]), "heads of a half"),
        (attention(&[], &[ty(&[2, 2, 4]), ty(&[1, 3, 4]), ty(&[2, 3, 6])]), "one batch of keys"),
        (OnnxNode { outputs: vec![true, true], ..attention(&[], &plain) }, "keys as a result"),
        (node("MultiHeadAttention", "com.microsoft", &[], &plain), "no heads"),
    ] {
        assert!(import(&node).is_err(), "{why}");
    }
    let halves = op("multi-head-attention", &[("num_heads", Attr::Int(0)), ("scale", float(1.0))]);
    assert!(matches!(halves.infer(&plain.map(Option::unwrap)), Err(TypeError::Invalid(_))));
}

#[test]
fn rotations_are_those_of_the_runtime() {
    let x = of(&[1, 2, 2, 6], 0);
    let (cosines, sines) = (of(&[1, 2, 2], 1), of(&[1, 2, 2], 2));
    let wide = of(&[1, 2, 8], 0);
    let (table, other) = (of(&[3, 2], 1), of(&[3, 2], 2));
    let positions = common::ints(&[1, 2], &[2, 0]);
    let integers = Some(TensorType::new(DType::I64, [1, 2]));
    let expected: [[&[f64]; 2]; 2] = [
        [
            &[
                0.875000, -0.875000, 1.437500, 1.437500, 0.250000, -0.750000, -0.250000, 0.750000, 0.250000, -0.937500, -0.250000,
                -1.250000, 0.437500, -0.625000, -1.625000, -0.312500, -0.750000, 1.000000, -0.000000, 1.000000, -0.187500, 1.312500,
                -1.250000, 0.500000,
            ],
            &[
                -0.250000, 0.062500, -1.187500, -0.750000, -0.625000, 0.375000, 0.687500, 0.187500, 0.812500, 1.812500, 1.000000,
                -0.187500, 0.437500, -0.625000, -1.625000, -0.312500,
            ],
        ],
        [
            &[
                1.625000, 0.437500, -1.625000, 0.437500, 0.250000, -0.750000, -0.250000, 0.000000, 2.000000, 0.062500, -0.250000,
                -1.250000, -0.875000, 0.125000, 0.687500, 1.437500, -0.750000, 1.000000, 0.000000, 0.250000, -1.187500, -0.437500,
                -1.250000, 0.500000,
            ],
            &[
                -1.000000, -0.687500, 0.562500, -0.500000, 0.687500, -0.187500, -0.500000, -0.250000, 1.562500, 0.000000, 1.062500,
                -1.187500, -0.875000, 0.125000, 0.687500, 1.437500,
            ],
        ],
    ];
    for (interleaved, [partly, by_position]) in (0..).zip(expected) {
        let types = [&x, &cosines, &sines].map(|value| Some(typed(value)));
        let attrs = [("interleaved", Attr::Int(interleaved)), ("rotary_embedding_dim", Attr::Int(4))];
        let four = OpKind::RotaryEmbedding.import(&node("RotaryEmbedding", "", &attrs, &types)).unwrap();
        close(&computed(&four, &[x.clone(), cosines.clone(), sines.clone()]), partly);
        let types = [Some(typed(&wide)), Some(typed(&table)), Some(typed(&other)), integers.clone()];
        let attrs = [("interleaved", Attr::Int(interleaved)), ("num_heads", Attr::Int(2))];
        let three = OpKind::RotaryEmbedding.import(&node("RotaryEmbedding", "", &attrs, &types)).unwrap();
        close(&computed(&three, &[wide.clone(), table.clone(), other.clone(), positions.clone()]), by_position);
        let Op::RotaryEmbedding(_) = three.op else { panic!("{three:?}") };
        let own = [&x, &cosines, &sines].map(typed);
        let spelling = four.op.spell(&own, &own[..1], 23).unwrap();
        let read = import(&common::as_read(&spelling, &own, 1, 23)).unwrap();
        assert_eq!(read.0, four.op);
        assert!(four.op.spell(&own, &own[..1], 22).is_err());
    }
}

#[test]
fn odd_rotations_stay_opaque() {
    let ty = |shape: &[i64]| Some(f32s(shape));
    for (attrs, x, angles) in [
        (vec![("rotary_embedding_dim", Attr::Int(3))], [1, 2, 2, 6].as_slice(), [1, 2, 2].as_slice()),
        (vec![("rotary_embedding_dim", Attr::Int(8))], &[1, 2, 2, 6], &[1, 2, 4]),
        (vec![("rotary_embedding_dim", Attr::Int(-2))], &[1, 2, 2, 6], &[1, 2, 1]),
        (vec![], &[1, 2, 8], &[1, 2, 4]),
        (vec![("num_heads", Attr::Int(3))], &[1, 2, 8], &[1, 2, 1]),
        (vec![("num_heads", Attr::Int(3))], &[1, 2, 2, 6], &[1, 2, 3]),
        (vec![], &[1, 2, 2, 6], &[1, 3, 3]),
    ] {
        assert!(import(&node("RotaryEmbedding", "", &attrs, &[ty(x), ty(angles), ty(angles)])).is_err(), "{attrs:?} of {x:?}");
    }
}
