//! Types and ONNX forms of element-wise operators, activations, softmax, reductions and casts.

mod common;

use common::table::{axes, flag, position, word};
use common::{Random, eval, f32s, float, import, ints, op, round_trip};
use regraft_ir::onnx::{ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, Const, DType, Dim, Op, TensorType, TypeError, Value};

/// Every operator of these families, with attributes and operand types, and the first opset where
/// it can be written (`None`: none of 7..=21).
fn inventory() -> Vec<(Op, Vec<TensorType>, Option<i64>)> {
    let x = || f32s(&[2, 3, 4]);
    let of = |dtype: DType| TensorType::new(dtype, [2, 3, 4]);
    let half = || float(0.5);
    let mut all: Vec<(Op, Vec<TensorType>, Option<i64>)> = Vec::new();
    let mut add = |name: &str, attrs: &[(&str, Attr)], types: Vec<TensorType>, first: i64| {
        all.push((op(name, attrs), types, Some(first).filter(|v| *v <= 21)))
    };
    for (name, first) in [
        ("Neg", 7),
        ("Abs", 7),
        ("Sign", 9),
        ("Reciprocal", 7),
        ("Sqrt", 7),
        ("Exp", 7),
        ("Log", 7),
        ("Floor", 7),
        ("Ceil", 7),
        ("Round", 11),
        ("Erf", 9),
        ("Sin", 7),
        ("Cos", 7),
        ("Tan", 7),
        ("Asin", 7),
        ("Acos", 7),
        ("Atan", 7),
        ("Sinh", 9),
        ("Cosh", 9),
        ("Asinh", 9),
        ("Acosh", 9),
        ("Atanh", 9),
        ("Relu", 7),
        ("Sigmoid", 7),
        ("Tanh", 7),
        ("HardSwish", 14),
        ("Softplus", 7),
        ("Softsign", 7),
        ("Mish", 18),
        ("FastGelu", 7),
        ("IsNaN", 9),
        ("Identity", 7),
        ("Dropout", 7),
        ("Clip", 7),
        ("Sum", 7),
        ("Max", 7),
        ("Min", 7),
        ("Mean", 7),
    ] {
        add(name, &[], vec![x()], first);
    }
    for (name, first) in [
        ("Add", 7),
        ("Sub", 7),
        ("Mul", 7),
        ("Div", 7),
        ("Pow", 7),
        ("PRelu", 7),
        ("Equal", 11),
        ("Greater", 7),
        ("GreaterOrEqual", 12),
        ("Less", 7),
        ("LessOrEqual", 12),
        ("Sum", 8),
        ("Max", 8),
        ("Min", 8),
        ("Mean", 8),
    ] {
        add(name, &[], vec![x(), f32s(&[4])], first);
    }
    for (name, first) in [("LeakyRelu", 7), ("Elu", 7), ("Celu", 12), ("ThresholdedRelu", 10), ("QuickGelu", 7)] {
        add(name, &[("alpha", half())], vec![x()], first);
    }
    add("Selu", &[("alpha", half()), ("gamma", float(1.25))], vec![x()], 7);
    add("HardSigmoid", &[("alpha", half()), ("beta", float(0.1))], vec![x()], 7);
    add("Gelu", &[("approximate", word("none"))], vec![x()], 20);
    add("Gelu", &[("approximate", word("tanh"))], vec![x()], 20);
    add("Clip", &[("min", half())], vec![x()], 7);
    add("Clip", &[("max", half())], vec![x()], 7);
    add("Clip", &[("min", half()), ("max", float(6.0))], vec![of(DType::F16)], 7);
    add("Clip", &[("min", float(-3.0)), ("max", float(6.0))], vec![of(DType::I8)], 12);
    add("Relu", &[], vec![of(DType::I32)], 14);
    add("Relu", &[], vec![of(DType::BF16)], 13);
    add("Add", &[], vec![of(DType::I8), of(DType::I8)], 14);
    add("Add", &[], vec![of(DType::I64), of(DType::I64)], 7);
    add("Sin", &[], vec![of(DType::BF16)], 22);
    add("Max", &[], vec![of(DType::I64), of(DType::I64)], 12);
    add("Pow", &[], vec![x(), of(DType::I64)], 12);
    add("Pow", &[], vec![of(DType::BF16), of(DType::BF16)], 15);
    for direct in [false, true] {
        add("Mod", &[("fmod", flag(direct))], vec![of(DType::I32), of(DType::I32)], 10);
        add("IsInf", &[("detect_negative", flag(direct)), ("detect_positive", flag(!direct))], vec![x()], 10);
    }
    add("Mod", &[("fmod", flag(true))], vec![x(), x()], 10);
    add("BitShift", &[("direction", word("LEFT"))], vec![of(DType::U8), of(DType::U8)], 11);
    add("BitShift", &[("direction", word("RIGHT"))], vec![of(DType::U64), of(DType::U64)], 11);
    add("Equal", &[], vec![of(DType::I64), of(DType::I64)], 7);
    add("Less", &[], vec![of(DType::I64), of(DType::I64)], 9);
    for name in ["And", "Or", "Xor"] {
        add(name, &[], vec![of(DType::Bool), TensorType::new(DType::Bool, [1])], 7);
    }
    add("Not", &[], vec![of(DType::Bool)], 7);
    add("Where", &[], vec![of(DType::Bool), x(), f32s(&[1])], 9);
    for name in ["Softmax", "LogSoftmax"] {
        add(name, &[("axis", Attr::Int(2))], vec![x()], 7);
        add(name, &[("axis", Attr::Int(1))], vec![x()], 13);
        add(name, &[("axis", Attr::Int(1))], vec![f32s(&[2, 5, 1, 1])], 7);
    }
    let reductions = [
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceSumSquare",
    ];
    for name in reductions {
        for keepdims in [false, true] {
            add(name, &axes(&[0, 2], keepdims), vec![x()], 7);
            add(name, &axes(&[0, 1, 2], keepdims), vec![x()], 7);
            add(name, &axes(&[], keepdims), vec![f32s(&[])], 7);
            let none = match name {
                "ReduceSum" => 13,
                "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" => 18,
                _ => 22,
            };
            add(name, &axes(&[], keepdims), vec![x()], none);
        }
    }
    add("ReduceMax", &axes(&[1], true), vec![of(DType::U8)], 12);
    add("ReduceMax", &axes(&[1], true), vec![of(DType::Bool)], 20);
    for name in ["ArgMax", "ArgMin"] {
        for keepdims in [false, true] {
            add(name, &position(1, keepdims, false), vec![x()], 7);
            add(name, &position(2, keepdims, true), vec![x()], 12);
        }
    }
    for (dtype, first) in [(DType::F16, 7), (DType::I64, 7), (DType::Bool, 7), (DType::U8, 7), (DType::BF16, 13)] {
        add("Cast", &[("to", Attr::DType(dtype))], vec![x()], first);
    }
    all
}

#[test]
fn every_operator_survives_writing_and_reading() {
    for (op, types, first) in inventory() {
        let want: Vec<i64> = first.map_or_else(Vec::new, |first| (first..=21).collect());
        assert_eq!(round_trip(&op, &types), want, "versions that {op:?} of {types:?} can be written at");
    }
}

#[test]
fn results_have_the_inferred_shapes() {
    let mut random = Random::new(7);
    let bindings = Bindings::from([("N".to_string(), 3), ("M".to_string(), 2)]);
    for (op, types, _) in inventory() {
        // The first two sizes become symbols, sizes of 1 stay.
        let open: Vec<TensorType> = types
            .iter()
            .map(|t| {
                let symbol = |at: usize| if at == 0 { Dim::symbol("N") } else { Dim::symbol("M") };
                let dims =
                    t.shape.iter().enumerate().map(|(at, d)| if at < 2 && t.rank() == 3 && !d.is(1) { symbol(at) } else { d.clone() });
                TensorType::new(t.dtype, dims)
            })
            .collect();
        for types in [&types, &open] {
            for _ in 0..4 {
                let values: Vec<Value<f64>> = types.iter().map(|t| random.value(t, &bindings)).collect();
                let values = if matches!(op, Op::Mod(_)) { vec![values[0].clone(), positive(&values[1])] } else { values };
                eval(&op, types, &values, &bindings).unwrap_or_else(|e| panic!("{op:?} of {types:?}: {e}"));
            }
        }
    }
}

/// The same integers plus one; other values as they are.
fn positive(value: &Value<f64>) -> Value<f64> {
    match value {
        Value::Int(t) => ints(&t.shape.clone(), &t.data.iter().map(|v| v + 1).collect::<Vec<_>>()),
        other => other.clone(),
    }
}

#[test]
fn ill_typed_operators_are_refused() {
    let n = || TensorType::new(DType::F32, [Dim::symbol("N")]);
    let x = || f32s(&[2, 3]);
    let ints = || TensorType::new(DType::I32, [2, 3]);
    let bound = |v: f32| float(v);
    type Row = (&'static str, Vec<(&'static str, Attr)>, Vec<TensorType>);
    let refused: Vec<Row> = vec![
        ("Add", vec![], vec![x()]),
        ("Add", vec![], vec![x(), f32s(&[2])]),
        ("Add", vec![], vec![x(), ints()]),
        ("Exp", vec![], vec![ints()]),
        ("Neg", vec![], vec![TensorType::new(DType::U8, [2])]),
        ("And", vec![], vec![x(), x()]),
        ("Not", vec![], vec![x()]),
        ("Where", vec![], vec![x(), x(), x()]),
        ("Where", vec![], vec![TensorType::new(DType::Bool, [3]), x(), ints()]),
        ("Mod", vec![("fmod", flag(false))], vec![x(), x()]),
        ("BitShift", vec![("direction", word("UP"))], vec![TensorType::new(DType::U8, [2]), TensorType::new(DType::U8, [2])]),
        ("BitShift", vec![("direction", word("LEFT"))], vec![ints(), ints()]),
        ("Gelu", vec![("approximate", word("erf"))], vec![x()]),
        ("Clip", vec![("min", bound(0.5))], vec![ints()]),
        ("Clip", vec![("max", bound(f32::NAN))], vec![x()]),
        ("Clip", vec![("min", bound(-1.0))], vec![TensorType::new(DType::U8, [2])]),
        ("PRelu", vec![], vec![f32s(&[1]), f32s(&[3])]),
        ("PRelu", vec![], vec![f32s(&[3]), x()]),
        ("Softmax", vec![("axis", Attr::Int(2))], vec![x()]),
        ("Softmax", vec![("axis", Attr::Int(-1))], vec![x()]),
        ("ReduceSum", axes(&[1, 0], true).to_vec(), vec![x()]),
        ("ReduceSum", axes(&[1, 1], true).to_vec(), vec![x()]),
        ("ReduceSum", axes(&[2], true).to_vec(), vec![x()]),
        ("ReduceL2", axes(&[0], true).to_vec(), vec![ints()]),
        ("ArgMax", position(2, true, false).to_vec(), vec![x()]),
        ("ArgMax", position(0, true, false).to_vec(), vec![f32s(&[0, 3])]),
        ("Cast", vec![("to", Attr::DType(DType::Str))], vec![x()]),
        ("Sum", vec![], vec![]),
    ];
    for (name, attrs, types) in refused {
        let op = op(name, &attrs);
        assert!(matches!(op.infer(&types), Err(TypeError::Invalid(_))), "{op:?} of {types:?}: {:?}", op.infer(&types));
    }
    let open = op("PRelu", &[]).infer(&[n(), f32s(&[3])]);
    assert!(matches!(open, Err(TypeError::Undecided { .. })), "{open:?}");
    assert_eq!(op("Add", &[]).infer(&[n(), f32s(&[1])]), Ok(vec![n()]));
}

/// A node as seen by a reader of an old or new model.
fn node(op_type: &str, version: i64, attrs: &[(&str, Attr)], inputs: Vec<Option<OnnxInput>>) -> OnnxNode {
    let (domain, op_type) = op_type.split_once(':').unwrap_or(("", op_type));
    OnnxNode {
        op_type: op_type.to_string(),
        domain: domain.to_string(),
        version,
        attrs: attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect(),
        inputs,
        outputs: vec![true],
    }
}

fn computed(ty: TensorType) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(ty), value: None, dims: None })
}

fn given(value: Const) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(value.ty()), value: Some(value), dims: None })
}

#[test]
fn old_and_new_forms_are_read() {
    let x = || computed(f32s(&[2, 3, 4]));
    let list = |v: &[i64]| given(Const::from_i64(DType::I64, &[v.len() as i64], v).unwrap());
    let number = |v: f64| given(Const::scalar(DType::F32, v).unwrap());
    let i = |v: i64| Attr::Int(v);
    let rows: Vec<(OnnxNode, Op)> = vec![
        (node("LeakyRelu", 6, &[], vec![x()]), op("LeakyRelu", &[("alpha", float(0.01))])),
        (node("HardSigmoid", 1, &[], vec![x()]), op("HardSigmoid", &[("alpha", float(0.2)), ("beta", float(0.5))])),
        (node("Selu", 6, &[], vec![x()]), op("Selu", &[("alpha", float(1.673_263_2)), ("gamma", float(1.050_701))])),
        (node("Clip", 6, &[("max", float(6.0))], vec![x()]), op("Clip", &[("max", float(6.0))])),
        (node("Clip", 11, &[], vec![x(), None, number(6.0)]), op("Clip", &[("max", float(6.0))])),
        (node("Clip", 13, &[], vec![x()]), op("Clip", &[])),
        (node("ReduceSum", 11, &[("axes", Attr::Ints(vec![-1, 0]))], vec![x()]), op("ReduceSum", &axes(&[0, 2], true))),
        (node("ReduceSum", 13, &[("keepdims", i(0))], vec![x(), list(&[-2])]), op("ReduceSum", &axes(&[1], false))),
        (node("ReduceSum", 13, &[], vec![x()]), op("ReduceSum", &axes(&[0, 1, 2], true))),
        (node("ReduceSum", 13, &[("noop_with_empty_axes", i(1))], vec![x(), list(&[])]), op("ReduceSum", &axes(&[], true))),
        (node("ReduceMean", 13, &[("axes", Attr::Ints(vec![2]))], vec![x()]), op("ReduceMean", &axes(&[2], true))),
        (node("ReduceMean", 18, &[], vec![x(), list(&[2])]), op("ReduceMean", &axes(&[2], true))),
        (node("ArgMax", 11, &[("axis", i(-1)), ("keepdims", i(0))], vec![x()]), op("ArgMax", &position(2, false, false))),
        (node("ArgMax", 13, &[], vec![x()]), op("ArgMax", &position(0, true, false))),
        (node("Softmax", 13, &[], vec![x()]), op("Softmax", &[("axis", i(2))])),
        (node("Softmax", 11, &[("axis", i(-1))], vec![x()]), op("Softmax", &[("axis", i(2))])),
        (node("Softmax", 9, &[], vec![computed(f32s(&[2, 1000, 1, 1]))]), op("Softmax", &[("axis", i(1))])),
        (node("Softmax", 9, &[], vec![computed(f32s(&[2, 1, 5, 1]))]), op("Softmax", &[("axis", i(2))])),
        (node("Cast", 1, &[("to", word("FLOAT16"))], vec![x()]), op("Cast", &[("to", Attr::DType(DType::F16))])),
        (node("Cast", 13, &[("to", i(7))], vec![x()]), op("Cast", &[("to", Attr::DType(DType::I64))])),
        (
            node("IsInf", 10, &[("detect_negative", i(0))], vec![x()]),
            op("IsInf", &[("detect_negative", flag(false)), ("detect_positive", flag(true))]),
        ),
        (node("Mod", 10, &[("fmod", i(1))], vec![x(), x()]), op("Mod", &[("fmod", flag(true))])),
        (node("Dropout", 7, &[("ratio", float(0.5))], vec![x()]), op("Dropout", &[])),
        (node("Dropout", 6, &[("is_test", i(1))], vec![x()]), op("Dropout", &[])),
        (node("Dropout", 12, &[], vec![x(), number(0.5), given(Const::from_i64(DType::Bool, &[], &[0]).unwrap())]), op("Dropout", &[])),
        (node("com.microsoft:Gelu", 1, &[], vec![x()]), op("Gelu", &[("approximate", word("none"))])),
        (node("com.microsoft:QuickGelu", 1, &[], vec![x()]), op("QuickGelu", &[("alpha", float(1.702))])),
        (node("com.microsoft:FastGelu", 1, &[], vec![x()]), op("FastGelu", &[])),
        (node("Gelu", 20, &[("approximate", word("tanh"))], vec![x()]), op("Gelu", &[("approximate", word("tanh"))])),
        (node("Add", 6, &[], vec![x(), x()]), op("Add", &[])),
        (node("Sum", 6, &[], vec![x(), x(), x()]), op("Sum", &[])),
    ];
    for (node, want) in rows {
        let (read, operands) = import(&node).unwrap_or_else(|why| panic!("{node:?}: {why}"));
        assert_eq!(read, want, "{node:?}");
        assert!(operands.iter().all(|o| matches!(o, ImportOperand::Input(_))), "{node:?}: {operands:?}");
    }
}

#[test]
fn unsafe_forms_stay_opaque() {
    let x = || computed(f32s(&[2, 3, 4]));
    let i = |v: i64| Attr::Int(v);
    let scalar = || computed(f32s(&[]));
    let mut masked = node("Dropout", 7, &[], vec![x()]);
    masked.outputs.push(true);
    let mut rows = vec![
        masked,
        node("Dropout", 6, &[], vec![x()]),
        node("Dropout", 12, &[], vec![x(), None, computed(TensorType::new(DType::Bool, [0i64; 0]))]),
        node("Dropout", 12, &[], vec![x(), None, given(Const::from_i64(DType::Bool, &[], &[1]).unwrap())]),
        // Flags that are neither 0 nor 1.
        node("ReduceL2", 11, &[("keepdims", i(2))], vec![x()]),
        node("ReduceSum", 13, &[("noop_with_empty_axes", i(-1))], vec![x()]),
        node("ArgMin", 13, &[("select_last_index", i(2))], vec![x()]),
        node("IsInf", 10, &[("detect_negative", i(2))], vec![x()]),
        node("Clip", 11, &[], vec![x(), scalar()]),
        node(
            "Clip",
            12,
            &[],
            vec![computed(TensorType::new(DType::I64, [2])), given(Const::from_i64(DType::I64, &[], &[(1 << 53) + 1]).unwrap())],
        ),
        node("ReduceSum", 13, &[], vec![x(), computed(TensorType::new(DType::I64, [1]))]),
        node("ReduceL2", 18, &[("noop_with_empty_axes", i(1))], vec![x()]),
        node("ReduceLogSum", 13, &[], vec![computed(TensorType::new(DType::I32, [2]))]),
        node("ReduceSum", 11, &[("axes", Attr::Ints(vec![3]))], vec![x()]),
        node("Cast", 9, &[("to", i(8))], vec![x()]),
        node("Cast", 13, &[], vec![x()]),
        node("Add", 6, &[("broadcast", i(1)), ("axis", i(2))], vec![x(), computed(f32s(&[4, 1]))]),
        node("PRelu", 6, &[], vec![x(), computed(f32s(&[3, 1]))]),
    ];
    let mut untyped = node("Softmax", 13, &[], vec![x()]);
    untyped.inputs = vec![Some(OnnxInput { ty: None, value: None, dims: None })];
    rows.push(untyped);
    for node in rows {
        assert!(import(&node).is_err(), "{node:?} reads as {:?}", import(&node));
    }
}

#[test]
fn old_broadcasting_is_aligned() {
    let x = || computed(f32s(&[2, 3, 4, 5]));
    let slope = given(Const::from_f64(DType::F32, &[3], &[1.0, 2.0, 3.0]).unwrap());
    let along = [("broadcast", Attr::Int(1)), ("axis", Attr::Int(1))];
    for (node, want) in [(node("Add", 6, &along, vec![x(), slope.clone()]), "Add"), (node("PRelu", 6, &[], vec![x(), slope]), "PRelu")] {
        let (read, operands) = import(&node).unwrap();
        assert_eq!(read, op(want, &[]));
        let [ImportOperand::Input(0), ImportOperand::Const(aligned)] = operands.as_slice() else { panic!("{operands:?}") };
        assert_eq!(aligned.shape(), [3, 1, 1]);
    }
    let (_, operands) = import(&node("Mul", 6, &along, vec![x(), computed(f32s(&[3, 4]))])).unwrap();
    let [ImportOperand::Input(0), ImportOperand::Node(lifted)] = operands.as_slice() else { panic!("{operands:?}") };
    assert_eq!(lifted.op, op("Unsqueeze", &[("axes", Attr::Ints(vec![2]))]));
    for (inputs, attrs) in [
        (vec![x(), computed(f32s(&[4, 5]))], &along[..1]),
        (vec![x(), computed(f32s(&[]))], &along[..]),
        (vec![x(), computed(f32s(&[3, 4, 5]))], &along[..]),
    ] {
        let (_, operands) = import(&node("Sub", 6, attrs, inputs)).unwrap();
        assert!(matches!(operands.as_slice(), [ImportOperand::Input(0), ImportOperand::Input(1)]), "{operands:?}");
    }
}

#[test]
fn old_softmax_normalizes_several_axes_together() {
    let n = Dim::symbol("N");
    let ty = TensorType::new(DType::F32, [n.clone(), Dim::from(3), Dim::from(4)]);
    let (outer, operands) = import(&node("LogSoftmax", 11, &[], vec![computed(ty.clone())])).unwrap();
    assert_eq!(outer, op("Reshape", &[("shape", Attr::Dims(ty.shape.to_vec()))]));
    let [ImportOperand::Node(softmax)] = operands.as_slice() else { panic!("{operands:?}") };
    assert_eq!(softmax.op, op("LogSoftmax", &[("axis", Attr::Int(1))]));
    let [ImportOperand::Node(flat)] = softmax.operands.as_slice() else { panic!("{softmax:?}") };
    assert_eq!(flat.op, op("Reshape", &[("shape", Attr::Dims(vec![n, Dim::from(12)]))]));
    assert!(matches!(flat.operands.as_slice(), [ImportOperand::Input(0)]));
}

#[test]
fn a_biased_fast_gelu_is_an_addition_first() {
    let (read, operands) = import(&node("com.microsoft:FastGelu", 1, &[], vec![computed(f32s(&[2, 4])), computed(f32s(&[4]))])).unwrap();
    assert_eq!(read, op("FastGelu", &[]));
    let [ImportOperand::Node(add)] = operands.as_slice() else { panic!("{operands:?}") };
    assert_eq!(add.op, op("Add", &[]));
}
