//! Operators that move data: types, values of every kind of element, ONNX round trips. The numbers
//! are ONNX Runtime's.

mod common;

use common::{as_read, eval, f32s, import, ints, op, reals, round_trip};
use regraft_ir::onnx::{ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{
    Attr, Bindings, Class, Const, DType, Dim, EvalContext, EvalError, Float, Op, Scalar, Tensor, TensorType, TypeError, Value,
};

fn list(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

/// Sizes from text: numbers and symbols, `N-1`.
fn dims(text: &str) -> Vec<Dim> {
    let one = |s: &str| match s.split_once('-').filter(|(symbol, _)| !symbol.is_empty()) {
        Some((symbol, less)) => Dim::symbol(symbol) - Dim::from(less.parse::<i64>().unwrap()),
        None => match s.split_once('*') {
            Some((k, symbol)) => Dim::from(k.parse::<i64>().unwrap()) * Dim::symbol(symbol),
            None => s.parse::<i64>().map_or_else(|_| Dim::symbol(s), Dim::from),
        },
    };
    text.split_whitespace().map(one).collect()
}

fn sym(text: &str) -> TensorType {
    TensorType::new(DType::F32, dims(text))
}

fn slice(axes: &[i64], starts: &str, ends: &str, steps: &[i64]) -> Op {
    op("slice", &[("axes", list(axes)), ("starts", Attr::Dims(dims(starts))), ("ends", Attr::Dims(dims(ends))), ("steps", list(steps))])
}

fn pad(pads: &[i64], mode: &str, value: f64) -> Op {
    op("pad", &[("pads", list(pads)), ("mode", Attr::Str(mode.into())), ("value", Attr::Float(Float(value)))])
}

fn sized(name: &str, shape: &str) -> Op {
    op(name, &[("shape", Attr::Dims(dims(shape)))])
}

/// `0, 1, 2, ..` in this shape.
fn iota(shape: &[usize]) -> Value<f64> {
    Value::real(Tensor::new(shape.to_vec(), (0..shape.iter().product::<usize>()).map(|i| i as f64).collect()))
}

/// The same positions as integers, and as their lowest bits.
fn as_kind(value: &Value<f64>, class: Class) -> Value<f64> {
    let Value::Real(t) = value else { return value.clone() };
    let shape = t.shape.clone();
    match class {
        Class::Int => Value::int(Tensor::new(shape, t.data.iter().map(|v| *v as i64).collect())),
        Class::Bool => Value::bool(Tensor::new(shape, t.data.iter().map(|v| *v as i64 & 1 == 1).collect())),
        _ => value.clone(),
    }
}

/// Evaluates on `iota` of the shape, as reals, integers and booleans, and compares with the
/// expected results.
fn check(op: &Op, shape: &[usize], wanted: &[(&[usize], &[f64])]) {
    for dtype in [DType::F32, DType::I64, DType::Bool] {
        let ty = TensorType::new(dtype, shape.iter().map(|d| *d as i64));
        let x = as_kind(&iota(shape), dtype.class());
        let results = eval(op, &[ty], &[x], &Bindings::new()).unwrap_or_else(|e| panic!("{op:?}: {e}"));
        assert_eq!(results.len(), wanted.len());
        for (result, (shape, data)) in results.iter().zip(wanted) {
            let wanted = as_kind(&reals(shape, data), dtype.class());
            assert_eq!(*result, wanted, "{op:?} on {dtype}");
        }
    }
}

#[test]
fn values_are_those_of_onnx_runtime() {
    let five: &[usize] = &[5];
    check(&slice(&[0], "4", "-1", &[-1]), five, &[(&[5], &[4.0, 3.0, 2.0, 1.0, 0.0])]);
    check(&slice(&[0], "4", "-1", &[-2]), five, &[(&[3], &[4.0, 2.0, 0.0])]);
    check(&slice(&[0], "3", "0", &[-2]), five, &[(&[2], &[3.0, 1.0])]);
    check(&slice(&[0], "1", "5", &[3]), five, &[(&[2], &[1.0, 4.0])]);
    check(&slice(&[0], "2", "2", &[1]), five, &[(&[0], &[])]);
    check(&slice(&[0, 2], "0 1", "1 3", &[1, 1]), &[2, 2, 3], &[(&[1, 2, 2], &[1.0, 2.0, 4.0, 5.0])]);
    check(&slice(&[0, 1], "1 2", "-1 -1", &[-1, -2]), &[2, 3], &[(&[2, 2], &[5.0, 3.0, 2.0, 0.0])]);
    check(&slice(&[0], "1", "2", &[i64::MAX]), five, &[(&[1], &[1.0])]);

    let split = op("split", &[("axis", Attr::Int(1)), ("sizes", list(&[1, 0, 2]))]);
    check(&split, &[2, 3], &[(&[2, 1], &[0.0, 3.0]), (&[2, 0], &[]), (&[2, 2], &[1.0, 2.0, 4.0, 5.0])]);

    let transpose = |perm: &[i64]| op("transpose", &[("perm", list(perm))]);
    check(&transpose(&[1, 0]), &[2, 3], &[(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0])]);
    check(&transpose(&[0, 2, 1]), &[2, 1, 2], &[(&[2, 2, 1], &[0.0, 1.0, 2.0, 3.0])]);
    check(&transpose(&[2, 0, 1]), &[1, 2, 3], &[(&[3, 1, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0])]);

    let six: &[f64] = &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    check(&sized("reshape", "3 2"), &[2, 3], &[(&[3, 2], six)]);
    check(&op("flatten", &[("axis", Attr::Int(1))]), &[2, 1, 3], &[(&[2, 3], six)]);
    check(&op("flatten", &[("axis", Attr::Int(0))]), &[2, 3], &[(&[1, 6], six)]);
    check(&op("flatten", &[("axis", Attr::Int(2))]), &[2, 3], &[(&[6, 1], six)]);
    check(&op("squeeze", &[("axes", list(&[0, 2]))]), &[1, 6, 1], &[(&[6], six)]);
    check(&op("unsqueeze", &[("axes", list(&[0, 2]))]), &[6], &[(&[1, 6, 1], six)]);
    check(&op("tile", &[("repeats", list(&[2, 1]))]), &[1, 2], &[(&[2, 2], &[0.0, 1.0, 0.0, 1.0])]);
    check(&op("tile", &[("repeats", list(&[1, 2]))]), &[2, 2], &[(&[2, 4], &[0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0])]);
    check(&op("tile", &[("repeats", list(&[0]))]), five, &[(&[0], &[])]);
    let expanded: &[f64] = &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0];
    check(&sized("expand", "2 3 2"), &[3, 1], &[(&[2, 3, 2], expanded)]);

    check(&pad(&[2, 1], "reflect", 0.0), five, &[(&[8], &[2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 3.0])]);
    let mirrored: &[f64] = &[4.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0, 0.0];
    check(&pad(&[4, 4], "reflect", 0.0), five, &[(&[13], mirrored)]);
    check(&pad(&[2, 1], "edge", 0.0), five, &[(&[8], &[0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 4.0])]);
    check(&pad(&[2, 1], "constant", 9.0), five, &[(&[8], &[9.0, 9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 9.0])]);
    check(&pad(&[-1, 2], "constant", 9.0), five, &[(&[6], &[1.0, 2.0, 3.0, 4.0, 9.0, 9.0])]);
    check(&pad(&[0, 1, 1, 0], "constant", 3.0), &[2, 2], &[(&[3, 3], &[3.0, 0.0, 1.0, 3.0, 2.0, 3.0, 3.0, 3.0, 3.0])]);
    check(&pad(&[1, 0, 0, 1], "edge", 0.0), &[2, 2], &[(&[3, 3], &[0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0])]);
}

#[test]
fn several_operands_are_joined_and_indexed() {
    let concat = |axis: i64| op("concat", &[("axis", Attr::Int(axis))]);
    for (axis, shapes, wanted) in [
        (0, [[1usize, 2], [2, 2]], (vec![3, 2], vec![0.0, 1.0, 0.0, 1.0, 2.0, 3.0])),
        (1, [[2, 1], [2, 2]], (vec![2, 3], vec![0.0, 0.0, 1.0, 1.0, 2.0, 3.0])),
        (1, [[2, 0], [2, 1]], (vec![2, 1], vec![0.0, 1.0])),
    ] {
        for dtype in [DType::F32, DType::I64, DType::Bool] {
            let types = shapes.map(|s| TensorType::new(dtype, s.map(|d| d as i64)));
            let values = shapes.map(|s| as_kind(&iota(&s), dtype.class()));
            let result = eval(&concat(axis), &types, &values, &Bindings::new()).unwrap();
            assert_eq!(result[0], as_kind(&reals(&wanted.0, &wanted.1), dtype.class()));
        }
    }

    let gather = |axis: i64| op("gather", &[("axis", Attr::Int(axis))]);
    let index = |shape: &[i64]| TensorType::new(DType::I64, shape.iter().copied());
    let at = |axis, data: &[usize], shape: &[usize], picks: &[i64]| {
        let types =
            [f32s(&data.iter().map(|d| *d as i64).collect::<Vec<_>>()), index(&shape.iter().map(|d| *d as i64).collect::<Vec<_>>())];
        eval(&gather(axis), &types, &[iota(data), ints(shape, picks)], &Bindings::new())
    };
    assert_eq!(at(0, &[5], &[2], &[-1, 0]).unwrap(), [reals(&[2], &[4.0, 0.0])]);
    assert_eq!(at(1, &[2, 3], &[1, 2], &[2, 0]).unwrap(), [reals(&[2, 1, 2], &[2.0, 0.0, 5.0, 3.0])]);
    assert_eq!(at(0, &[3, 2], &[], &[1]).unwrap(), [reals(&[2], &[2.0, 3.0])]);
    for outside in [5, -6] {
        assert!(matches!(at(0, &[5], &[1], &[outside]), Err(EvalError::Value(_))));
    }

    let hot = |axis: i64| op("one-hot", &[("axis", Attr::Int(axis)), ("depth", Attr::Int(3))]);
    let run = |axis, shape: &[usize], picks: &[i64]| {
        let types = [index(&shape.iter().map(|d| *d as i64).collect::<Vec<_>>()), f32s(&[2])];
        eval(&hot(axis), &types, &[ints(shape, picks), reals(&[2], &[2.0, 5.0])], &Bindings::new()).unwrap().remove(0)
    };
    let rows: Vec<f64> = [[5, 2, 2], [2, 2, 5], [2, 2, 5], [5, 2, 2], [2, 2, 2], [2, 2, 2]].concat().into_iter().map(f64::from).collect();
    assert_eq!(run(1, &[6], &[0, 2, -1, -3, 3, -4]), reals(&[6, 3], &rows));
    assert_eq!(run(0, &[2], &[0, 2]), reals(&[3, 2], &[5.0, 2.0, 2.0, 2.0, 2.0, 5.0]));

    let scalar = TensorType::new(DType::I64, [0i64; 0]);
    let range = |length: &str, values: [i64; 3]| {
        eval(&sized("range", length), &[scalar.clone(), scalar.clone(), scalar.clone()], &values.map(|v| ints(&[], &[v])), &Bindings::new())
    };
    assert_eq!(range("3", [5, 0, -2]).unwrap(), [ints(&[3], &[5, 3, 1])]);
    assert_eq!(range("0", [5, 9, -2]).unwrap(), [ints(&[0], &[])]);
    let real = f32s(&[]);
    let thirds = [1.0f32, 2.0, 0.3].map(|v| Value::<f32>::real(Tensor::new(Vec::new(), vec![v])));
    let types = [real.clone(), real.clone(), real];
    let outputs = sized("range", "4").infer(&types).unwrap();
    let context = regraft_ir::EvalContext { bindings: &Bindings::new(), input_types: &types, output_types: &outputs };
    let steps = sized("range", "4").eval(&thirds, &context).unwrap();
    let Value::Real(steps) = &steps[0] else { panic!("reals") };
    for (got, want) in steps.data.iter().zip([1.0, 1.299_999_952_316_284_2, 1.599_999_904_632_568_4, 1.899_999_856_948_852_5]) {
        assert!((f64::from(*got) - want).abs() < 5e-7, "{got} is not {want}");
    }
    assert!(matches!(sized("range", "5").eval(&thirds, &context), Err(EvalError::Value(_))), "values give another length");
}

#[test]
fn sizes_are_values_too() {
    let x = [f32s(&[2, 3, 4])];
    let run = |op: &Op| eval(op, &x, &[iota(&[2, 3, 4])], &Bindings::new()).unwrap().remove(0);
    assert_eq!(run(&op("shape", &[("start", Attr::Int(1)), ("end", Attr::Int(3))])), ints(&[2], &[3, 4]));
    assert_eq!(run(&op("shape", &[("start", Attr::Int(2)), ("end", Attr::Int(2))])), ints(&[0], &[]));
    assert_eq!(run(&op("size", &[])), ints(&[], &[24]));
    let seven = Const::from_i64(DType::I32, &[1], &[7]).unwrap();
    let filled = op("constant-of-shape", &[("shape", list(&[2])), ("value", Attr::Tensor(seven))]);
    assert_eq!(eval(&filled, &[], &[], &Bindings::new()).unwrap(), [ints(&[2], &[7, 7])]);
}

#[test]
fn symbolic_sizes_are_inferred_and_bound_late() {
    let bindings = Bindings::from([("N".to_string(), 3)]);
    let cases: Vec<(Op, TensorType, &str)> = vec![
        (sized("reshape", "N 2 3"), sym("N 6"), "f32[N,2,3]"),
        (sized("reshape", "6*N"), sym("N 6"), "f32[6*N]"),
        (sized("expand", "N 2"), sym("N 1"), "f32[N,2]"),
        (sized("expand", "N 2"), sym("1 2"), "f32[N,2]"),
        (slice(&[0], "1", "N", &[1]), sym("N 2"), "f32[N - 1,2]"),
        (slice(&[0], "N-1", "N", &[1]), sym("N 2"), "f32[1,2]"),
        (slice(&[0], "N-1", "-1", &[-1]), sym("N 2"), "f32[N,2]"),
        (pad(&[1, 0, 1, 0], "reflect", 0.0), sym("N 2"), "f32[N + 2,2]"),
        (op("tile", &[("repeats", list(&[2, 1]))]), sym("N 2"), "f32[2*N,2]"),
        (op("flatten", &[("axis", Attr::Int(1))]), sym("2 N 2"), "f32[2,2*N]"),
    ];
    for (op, ty, wanted) in cases {
        assert_eq!(op.infer(std::slice::from_ref(&ty)).unwrap()[0].to_string(), wanted, "{op:?} of {ty}");
        let shape = ty.bind(&bindings).unwrap();
        let bound = eval(&op, std::slice::from_ref(&ty), &[iota(&shape)], &bindings).unwrap();
        // A symbol that only the operand carries is bound from it.
        if ty.shape.iter().any(|d| d.as_symbol() == Some("N")) {
            let outputs = op.infer(std::slice::from_ref(&ty)).unwrap();
            let context = regraft_ir::EvalContext { bindings: &Bindings::new(), input_types: &[ty], output_types: &outputs };
            assert_eq!(op.eval(&[iota(&shape)], &context).unwrap(), bound);
        }
    }
}

#[test]
fn wrong_types_are_refused_and_open_ones_undecided() {
    let open = |op: Op, ty: &str| assert!(matches!(op.infer(&[sym(ty)]), Err(TypeError::Undecided { .. })), "{op:?} of {ty}");
    let wrong = |op: Op, ty: &str| assert!(matches!(op.infer(&[sym(ty)]), Err(TypeError::Invalid(_))), "{op:?} of {ty}");
    open(sized("reshape", "M 6"), "N 6");
    wrong(sized("reshape", "4 2"), "2 3");
    wrong(sized("reshape", "2 -1"), "2 3");
    open(op("squeeze", &[("axes", list(&[0]))]), "N 6");
    wrong(op("squeeze", &[("axes", list(&[1]))]), "N 6");
    wrong(op("unsqueeze", &[("axes", list(&[1, 1]))]), "N 6");
    open(sized("expand", "M 6"), "N 6");
    wrong(sized("expand", "2 6"), "3 6");
    open(slice(&[0], "0", "3", &[1]), "N");
    wrong(slice(&[0], "0", "6", &[1]), "5");
    wrong(slice(&[0], "3", "2", &[1]), "5");
    wrong(slice(&[0], "0", "2", &[0]), "5");
    open(op("split", &[("axis", Attr::Int(0)), ("sizes", list(&[2, 2]))]), "N");
    wrong(op("split", &[("axis", Attr::Int(0)), ("sizes", list(&[2, 2]))]), "5");
    wrong(op("transpose", &[("perm", list(&[0, 0]))]), "2 3");
    wrong(pad(&[5, 0], "reflect", 0.0), "5");
    wrong(pad(&[-1, 0], "edge", 0.0), "5");
    wrong(pad(&[-3, -3], "constant", 0.0), "5");
    wrong(pad(&[0, 0], "wrap", 0.0), "5");
    let concat = op("concat", &[("axis", Attr::Int(1))]);
    assert!(matches!(concat.infer(&[sym("N 2"), sym("M 2")]), Err(TypeError::Undecided { .. })));
    assert!(matches!(concat.infer(&[sym("2 2"), sym("3 2")]), Err(TypeError::Invalid(_))));
    assert!(matches!(concat.infer(&[sym("2 2"), sym("2 2").with_dtype(DType::I64)]), Err(TypeError::Invalid(_))));
}

#[test]
fn round_trips_at_every_version() {
    let all: Vec<i64> = (7..=21).collect();
    let since = |first: i64| (first..=21).collect::<Vec<i64>>();
    let i64s = |shape: &[i64]| TensorType::new(DType::I64, shape.iter().copied());
    let scalar = i64s(&[]);
    let seven = Const::from_i64(DType::I32, &[1], &[7]).unwrap();
    let cases: Vec<(Op, Vec<TensorType>, Vec<i64>)> = vec![
        (op("concat", &[("axis", Attr::Int(1))]), vec![f32s(&[2, 3]), f32s(&[2, 1])], all.clone()),
        (op("split", &[("axis", Attr::Int(1)), ("sizes", list(&[1, 2]))]), vec![f32s(&[2, 3])], all.clone()),
        (slice(&[0], "1", "3", &[1]), vec![f32s(&[4, 5])], all.clone()),
        (slice(&[0, 1], "1 0", "4 2", &[1, 1]), vec![f32s(&[4, 5])], all.clone()),
        (slice(&[1], "4", "-1", &[-2]), vec![f32s(&[4, 5])], since(10)),
        (slice(&[0], "0", "0", &[1]), vec![f32s(&[0, 5])], all.clone()),
        (slice(&[0], "-1", "-1", &[-1]), vec![f32s(&[0, 5])], since(10)),
        (slice(&[0], "1", "N", &[1]), vec![sym("N 5")], all.clone()),
        (slice(&[0], "N-1", "N", &[1]), vec![sym("N 5")], all.clone()),
        (slice(&[0], "N-1", "-1", &[-1]), vec![sym("N 5")], since(10)),
        (slice(&[0], "N", "2*N", &[1]), vec![sym("3*N 5")], since(10)),
        (op("transpose", &[("perm", list(&[1, 0]))]), vec![sym("N 5")], all.clone()),
        (sized("reshape", "6 4"), vec![f32s(&[4, 6])], all.clone()),
        (sized("reshape", "N 3 2"), vec![sym("N 6")], all.clone()),
        (sized("reshape", "6*N"), vec![sym("N 6")], all.clone()),
        (sized("reshape", "N M 4"), vec![sym("N 4 M")], all.clone()),
        (sized("reshape", "M N 4"), vec![sym("N 4 M")], all.clone()),
        (sized("reshape", "0 3"), vec![f32s(&[0, 6])], all.clone()),
        (sized("reshape", "3 0"), vec![f32s(&[0, 6])], since(14)),
        (op("flatten", &[("axis", Attr::Int(3))]), vec![f32s(&[2, 3, 4])], all.clone()),
        (op("flatten", &[("axis", Attr::Int(1))]), vec![i64s(&[2, 3])], since(9)),
        (op("squeeze", &[("axes", list(&[0, 2]))]), vec![f32s(&[1, 3, 1])], all.clone()),
        (op("unsqueeze", &[("axes", list(&[0, 2]))]), vec![f32s(&[3])], all.clone()),
        (sized("expand", "2 3"), vec![f32s(&[1, 3])], since(8)),
        (sized("expand", "2 N 3"), vec![sym("N 1")], since(8)),
        (sized("expand", "N 3"), vec![sym("1 3")], since(8)),
        (op("tile", &[("repeats", list(&[2, 1]))]), vec![f32s(&[1, 3])], all.clone()),
        (pad(&[1, 0, 0, 2], "constant", 0.5), vec![f32s(&[2, 2])], all.clone()),
        (pad(&[1, 0, 0, 2], "edge", 0.0), vec![sym("N 2")], all.clone()),
        (pad(&[1, 0, 0, 2], "constant", 3.0), vec![i64s(&[2, 2])], since(11)),
        (pad(&[1, 1], "constant", 1.0), vec![TensorType::new(DType::Bool, [2i64])], since(13)),
        (op("gather", &[("axis", Attr::Int(1))]), vec![sym("N 5"), i64s(&[3])], all.clone()),
        (op("one-hot", &[("axis", Attr::Int(0)), ("depth", Attr::Int(3))]), vec![i64s(&[4]), f32s(&[2])], since(11)),
        (op("shape", &[("start", Attr::Int(0)), ("end", Attr::Int(2))]), vec![sym("N 5")], all.clone()),
        (op("shape", &[("start", Attr::Int(1)), ("end", Attr::Int(2))]), vec![sym("N 5 M")], since(15)),
        (op("size", &[]), vec![sym("N 5")], all.clone()),
        (op("constant-of-shape", &[("shape", list(&[2, 3])), ("value", Attr::Tensor(seven.clone()))]), vec![], since(9)),
        (op("constant-of-shape", &[("shape", Attr::Dims(dims("N 3"))), ("value", Attr::Tensor(seven))]), vec![], since(9)),
    ];
    for (op, inputs, versions) in cases {
        assert_eq!(round_trip(&op, &inputs), versions, "{op:?} on {inputs:?}");
    }
    let range = sized("range", "3");
    let spelling = range.spell(&[scalar.clone(), scalar.clone(), scalar.clone()], &[], 11).unwrap();
    let mut node = as_read(&spelling, &[scalar.clone(), scalar.clone(), scalar.clone()], 1, 11);
    assert!(import(&node).is_err(), "the length is not known");
    for (at, value) in [5, 0, -2].into_iter().enumerate() {
        node.inputs[at].as_mut().unwrap().value = Const::from_i64(DType::I64, &[], &[value]);
    }
    assert_eq!(import(&node).unwrap().0, range);
    assert!(range.spell(&[scalar.clone(), scalar.clone(), scalar], &[], 10).is_err());
}

/// An input of an ONNX node under test.
enum In {
    /// A computed tensor.
    Of(&'static str),
    /// A constant vector of `i64`.
    Ints(&'static [i64]),
    /// A computed shape that is known.
    Sizes(&'static str),
    /// Computed and unknown.
    Unknown,
    /// Left out.
    Out,
}

fn node(op_type: &str, version: i64, attrs: &[(&str, Attr)], inputs: &[In], outputs: usize) -> OnnxNode {
    let vector = |n: usize| Some(TensorType::new(DType::I64, [n as i64]));
    let inputs = inputs.iter().map(|input| match input {
        In::Of(ty) => Some(OnnxInput { ty: Some(sym(ty)), value: None, dims: None }),
        In::Ints(v) => Some(OnnxInput { ty: vector(v.len()), value: Const::from_i64(DType::I64, &[v.len() as i64], v), dims: None }),
        In::Sizes(d) => Some(OnnxInput { ty: vector(dims(d).len()), value: None, dims: Some(dims(d)) }),
        In::Unknown => Some(OnnxInput { ty: vector(2), value: None, dims: None }),
        In::Out => None,
    });
    OnnxNode {
        op_type: op_type.into(),
        domain: String::new(),
        version,
        attrs: attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect(),
        inputs: inputs.collect(),
        outputs: vec![true; outputs],
    }
}

#[test]
fn onnx_forms_become_explicit() {
    use In::{Ints, Of, Out, Sizes};
    const MAX: i64 = i64::MAX;
    let cases: Vec<(OnnxNode, Op)> = vec![
        (node("Concat", 13, &[("axis", Attr::Int(-1))], &[Of("2 3"), Of("2 3")], 1), op("concat", &[("axis", Attr::Int(1))])),
        (node("Reshape", 13, &[], &[Of("N 4 6"), Ints(&[0, -1, 3])], 1), sized("reshape", "N 8 3")),
        (node("Reshape", 14, &[("allowzero", Attr::Int(1))], &[Of("0 3"), Ints(&[3, 0])], 1), sized("reshape", "3 0")),
        (node("Reshape", 13, &[], &[Of("N 4 6"), Sizes("N -1")], 1), sized("reshape", "N 24")),
        (node("Reshape", 13, &[], &[Of("N M-1 4"), Sizes("M-1 -1")], 1), sized("reshape", "M-1 4*N")),
        (node("Reshape", 13, &[], &[Of("N 6 M"), Sizes("N 2 3 M")], 1), sized("reshape", "N 2 3 M")),
        (node("Expand", 13, &[], &[Of("1 3"), Sizes("N 1")], 1), sized("expand", "N 3")),
        (node("Expand", 13, &[], &[Of("3 1"), Ints(&[2, 1, 2])], 1), sized("expand", "2 3 2")),
        (node("Flatten", 13, &[], &[Of("2 3 4")], 1), op("flatten", &[("axis", Attr::Int(1))])),
        (node("Flatten", 13, &[("axis", Attr::Int(-1))], &[Of("2 3 4")], 1), op("flatten", &[("axis", Attr::Int(2))])),
        (node("Squeeze", 13, &[], &[Of("1 3 1")], 1), op("squeeze", &[("axes", list(&[0, 2]))])),
        (node("Squeeze", 13, &[], &[Of("1 3 1"), Ints(&[])], 1), op("squeeze", &[("axes", list(&[0, 2]))])),
        (node("Squeeze", 11, &[("axes", list(&[-1, 0]))], &[Of("1 N 1")], 1), op("squeeze", &[("axes", list(&[0, 2]))])),
        (node("Unsqueeze", 13, &[], &[Of("5"), Ints(&[-1, 0])], 1), op("unsqueeze", &[("axes", list(&[0, 2]))])),
        (node("Unsqueeze", 11, &[("axes", list(&[2, 0]))], &[Of("5")], 1), op("unsqueeze", &[("axes", list(&[0, 2]))])),
        (node("Transpose", 13, &[], &[Of("2 3 4")], 1), op("transpose", &[("perm", list(&[2, 1, 0]))])),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[-100]), Ints(&[-7]), Ints(&[0]), Ints(&[-1])], 1), slice(&[0], "0", "-1", &[-1])),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[MAX]), Ints(&[i64::MIN]), Ints(&[-1]), Ints(&[-1])], 1), slice(&[0], "4", "-1", &[-1])),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[4]), Ints(&[2]), Ints(&[0])], 1), slice(&[0], "4", "4", &[1])),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[10]), Ints(&[20])], 1), slice(&[0], "5", "5", &[1])),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[1]), Ints(&[4]), Out, Ints(&[-1])], 1), slice(&[0], "1", "1", &[-1])),
        (node("Slice", 9, &[("starts", list(&[-2])), ("ends", list(&[MAX]))], &[Of("5")], 1), slice(&[0], "3", "5", &[1])),
        (node("Slice", 13, &[], &[Of("4 N"), Ints(&[0, 1]), Ints(&[MAX, 2]), Ints(&[1, 0])], 1), slice(&[0, 1], "1 0", "2 N", &[1, 1])),
        (node("Slice", 13, &[], &[Of("N 2"), Ints(&[-1]), Ints(&[MAX])], 1), slice(&[0], "N-1", "N", &[1])),
        (node("Slice", 13, &[], &[Of("2*N 2"), Sizes("N"), Sizes("2*N")], 1), slice(&[0], "N", "2*N", &[1])),
        (node("Split", 13, &[], &[Of("4 2")], 2), op("split", &[("axis", Attr::Int(0)), ("sizes", list(&[2, 2]))])),
        (
            node("Split", 11, &[("split", list(&[1, 3])), ("axis", Attr::Int(-2))], &[Of("4 2")], 2),
            op("split", &[("axis", Attr::Int(0)), ("sizes", list(&[1, 3]))]),
        ),
        (
            node("Split", 18, &[("num_outputs", Attr::Int(3))], &[Of("5")], 3),
            op("split", &[("axis", Attr::Int(0)), ("sizes", list(&[2, 2, 1]))]),
        ),
        (node("Pad", 10, &[("pads", list(&[1, 0])), ("value", Attr::Float(Float(2.0)))], &[Of("5")], 1), pad(&[1, 0], "constant", 2.0)),
        (node("Pad", 18, &[], &[Of("2 2"), Ints(&[1, 0]), Out, Ints(&[-1])], 1), pad(&[0, 1, 0, 0], "constant", 0.0)),
        (
            node("Shape", 15, &[("start", Attr::Int(-2)), ("end", Attr::Int(9))], &[Of("2 3 4")], 1),
            op("shape", &[("start", Attr::Int(1)), ("end", Attr::Int(3))]),
        ),
        (
            node("Shape", 15, &[("start", Attr::Int(2)), ("end", Attr::Int(1))], &[Of("2 3 4")], 1),
            op("shape", &[("start", Attr::Int(2)), ("end", Attr::Int(2))]),
        ),
    ];
    for (node, wanted) in cases {
        let (op, operands) = import(&node).unwrap_or_else(|why| panic!("{why}: {node:?}"));
        assert_eq!(op, wanted, "{node:?}");
        assert!(matches!(operands.first(), Some(ImportOperand::Input(0))));
        // A computed shape is not an operand: the import stands alone, and can be written.
        let types: Vec<TensorType> = operands.iter().map(|_| node.inputs[0].as_ref().unwrap().ty.clone().unwrap()).collect();
        let outputs = op.infer(&types).unwrap();
        op.spell(&types, &outputs, node.version).unwrap();
    }
}

#[test]
fn doubt_keeps_nodes_opaque() {
    use In::{Ints, Of, Sizes, Unknown};
    let cases: Vec<(OnnxNode, &str)> = vec![
        (node("Reshape", 13, &[], &[Of("N 6"), Unknown], 1), "run time"),
        (node("Reshape", 13, &[], &[Of("N 6"), Sizes("M 6")], 1), "as many elements"),
        (node("Reshape", 13, &[], &[Of("2 3"), Ints(&[-1, -1])], 1), "two sizes"),
        (node("Reshape", 13, &[], &[Of("0 3"), Ints(&[0, -1])], 1), "without elements"),
        (node("Expand", 13, &[], &[Of("N 3"), Sizes("M 3")], 1), "needs N"),
        (node("Squeeze", 13, &[], &[Of("N 1")], 1), "1 at run time"),
        (node("Slice", 13, &[], &[Of("N"), Ints(&[0]), Ints(&[3])], 1), "may be outside"),
        (node("Slice", 13, &[], &[Of("4 N"), Ints(&[0, -1]), Ints(&[i64::MAX, 1])], 1), "must not be negative"),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[-100]), Ints(&[i64::MAX]), Ints(&[0]), Ints(&[-1])], 1), "backwards"),
        (node("Slice", 13, &[], &[Of("N"), Ints(&[-2]), Ints(&[i64::MAX])], 1), "may be outside"),
        (node("Slice", 13, &[], &[Of("5"), Ints(&[0, 0]), Ints(&[1, 1]), Ints(&[0, -1])], 1), "ascending"),
        (node("Split", 18, &[("num_outputs", Attr::Int(4))], &[Of("5")], 4), "equal parts"),
        (node("Split", 13, &[], &[Of("5")], 2), "equal parts"),
        (node("Split", 13, &[], &[Of("N")], 2), "symbolic"),
        (node("Pad", 19, &[("mode", Attr::Str("wrap".into()))], &[Of("5"), Ints(&[1, 0])], 1), "wrap"),
        (node("Tile", 13, &[], &[Of("5"), Unknown], 1), "run time"),
        (node("Concat", 13, &[("axis", Attr::Int(2))], &[Of("5")], 1), "outside rank"),
    ];
    for (node, part) in cases {
        let why = import(&node).expect_err(&format!("{node:?}"));
        assert!(why.contains(part), "{why}, not {part}: {node:?}");
    }
}

/// A scalar that can only be copied.
#[derive(Clone, Debug, PartialEq)]
struct Label(u64);

impl Scalar for Label {
    #[inline(never)]
    fn eval(op: &Op, inputs: &[Value<Label>], context: &EvalContext<'_>) -> Result<Vec<Value<Label>>, EvalError> {
        op.meaning(inputs, context)
    }

    fn from_f64(value: f64) -> Self {
        Label(value.to_bits())
    }
    fn to_f64(&self) -> Result<f64, regraft_ir::scalar::Unsupported> {
        Err(regraft_ir::scalar::Unsupported("doubles"))
    }
    fn add(&self, _: &Self) -> Self {
        unreachable!("data movement adds nothing")
    }
    fn sub(&self, _: &Self) -> Self {
        unreachable!("data movement subtracts nothing")
    }
    fn mul(&self, _: &Self) -> Self {
        unreachable!("data movement multiplies nothing")
    }
    fn div(&self, _: &Self) -> Result<Self, regraft_ir::scalar::Unsupported> {
        Err(regraft_ir::scalar::Unsupported("division"))
    }
    fn pow(&self, _: &Self) -> Result<Self, regraft_ir::scalar::Unsupported> {
        Err(regraft_ir::scalar::Unsupported("powers"))
    }
    fn apply(&self, _: regraft_ir::Function) -> Result<Self, regraft_ir::scalar::Unsupported> {
        Err(regraft_ir::scalar::Unsupported("functions"))
    }
    fn compare(&self, _: &Self) -> Result<Option<std::cmp::Ordering>, regraft_ir::scalar::Unsupported> {
        Err(regraft_ir::scalar::Unsupported("order"))
    }
}

#[test]
fn strided_copies_agree_with_indexing_for_any_scalar() {
    let shape = [2usize, 3, 4];
    let x = Tensor::new(shape.to_vec(), (0..24).map(Label).collect());
    let ty = [f32s(&[2, 3, 4])];
    let run = |op: &Op| {
        let outputs = op.infer(&ty).unwrap();
        let context = regraft_ir::EvalContext { bindings: &Bindings::new(), input_types: &ty, output_types: &outputs };
        match op.eval(&[Value::real(x.clone())], &context).unwrap().remove(0) {
            Value::Real(t) => t.as_ref().clone(),
            other => panic!("{other:?}"),
        }
    };
    let at = |i: &[usize]| Label((i[0] * 12 + i[1] * 4 + i[2]) as u64);
    for perm in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let got = run(&op("transpose", &[("perm", list(&perm))]));
        let wanted = Tensor::from_fn(perm.iter().map(|p| shape[*p as usize]).collect(), |i| {
            let mut back = [0; 3];
            for (to, from) in perm.iter().enumerate() {
                back[*from as usize] = i[to];
            }
            at(&back)
        });
        assert_eq!(got, wanted, "{perm:?}");
    }
    let got = run(&slice(&[0, 1, 2], "1 2 3", "-1 0 -1", &[-1, -1, -3]));
    assert_eq!(got, Tensor::from_fn(vec![2, 2, 2], |i| at(&[1 - i[0], 2 - i[1], 3 - 3 * i[2]])));
    let got = run(&op("tile", &[("repeats", list(&[2, 1, 3]))]));
    assert_eq!(got, Tensor::from_fn(vec![4, 3, 12], |i| at(&[i[0] % 2, i[1], i[2] % 4])));
    // A triangle wave: up to the last index and back.
    let fold = |i: usize, before: usize, n: usize| {
        let at = (i as i64 - before as i64).unsigned_abs() as usize % (2 * n - 2);
        at.min(2 * n - 2 - at)
    };
    let got = run(&pad(&[1, 0, 2, 0, 1, 3], "reflect", 0.0));
    assert_eq!(got, Tensor::from_fn(vec![3, 4, 9], |i| at(&[fold(i[0], 1, 2), fold(i[1], 0, 3), fold(i[2], 2, 4)])));
}
