//! Running sums, triangles, elements picked one by one, and the root mean square: values by hand or
//! by a second loop, types, ONNX round trips.

mod common;

use common::{Random, bools, eval, f32s, import, ints, op, reals, round_trip};
use regraft_ir::onnx::{ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, Const, DType, Dim, Float, Op, TensorType, TypeError, Value};

fn cum_sum(axis: i64, exclusive: bool, reverse: bool) -> Op {
    op("cum-sum", &[("axis", Attr::Int(axis)), ("exclusive", Attr::Bool(exclusive)), ("reverse", Attr::Bool(reverse))])
}

fn trilu(upper: bool, k: i64) -> Op {
    op("trilu", &[("upper", Attr::Bool(upper)), ("k", Attr::Int(k))])
}

fn gather_elements(axis: i64) -> Op {
    op("gather-elements", &[("axis", Attr::Int(axis))])
}

fn of(dtype: DType, shape: &[i64]) -> TensorType {
    TensorType::new(dtype, shape.iter().copied())
}

fn one(op: &Op, types: &[TensorType], values: &[Value<f64>]) -> Value<f64> {
    eval(op, types, values, &Bindings::new()).unwrap().remove(0)
}

#[test]
fn running_sums() {
    let x = reals(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (axis, exclusive, reverse, want) in [
        (1, false, false, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]),
        (1, true, false, [0.0, 1.0, 3.0, 0.0, 4.0, 9.0]),
        (1, false, true, [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]),
        (1, true, true, [5.0, 3.0, 0.0, 11.0, 6.0, 0.0]),
        (0, false, false, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]),
        (0, true, true, [4.0, 5.0, 6.0, 0.0, 0.0, 0.0]),
    ] {
        assert_eq!(one(&cum_sum(axis, exclusive, reverse), &[f32s(&[2, 3])], std::slice::from_ref(&x)), reals(&[2, 3], &want));
    }
    let wide = [i64::from(i32::MAX), 1, -1];
    let wrapped = [wide[0], i64::from(i32::MIN), wide[0]];
    assert_eq!(one(&cum_sum(0, false, false), &[of(DType::I32, &[3])], &[ints(&[3], &wide)]), ints(&[3], &wrapped));
    assert_eq!(one(&cum_sum(1, false, false), &[f32s(&[2, 0])], &[reals(&[2, 0], &[])]), reals(&[2, 0], &[]));
    assert!(matches!(cum_sum(0, false, false).infer(&[of(DType::Bool, &[3])]), Err(TypeError::Invalid(_))));
    assert!(matches!(cum_sum(1, false, false).infer(&[f32s(&[3])]), Err(TypeError::Invalid(_))));
}

#[test]
fn triangles() {
    let x = ints(&[2, 2, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for (upper, k, want) in [
        (true, 0, [1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 11, 12]),
        (true, 1, [0, 2, 3, 0, 0, 6, 0, 8, 9, 0, 0, 12]),
        (false, 0, [1, 0, 0, 4, 5, 0, 7, 0, 0, 10, 11, 0]),
        (false, -1, [0, 0, 0, 4, 0, 0, 0, 0, 0, 10, 0, 0]),
        (true, i64::MAX, [0; 12]),
        (true, i64::MIN, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ] {
        assert_eq!(one(&trilu(upper, k), &[of(DType::I64, &[2, 2, 3])], std::slice::from_ref(&x)), ints(&[2, 2, 3], &want), "{upper} {k}");
    }
    let flags = bools(&[2, 2], &[true; 4]);
    assert_eq!(one(&trilu(false, 0), &[of(DType::Bool, &[2, 2])], &[flags]), bools(&[2, 2], &[true, false, true, true]));
    assert!(matches!(trilu(true, 0).infer(&[f32s(&[3])]), Err(TypeError::Invalid(_))));
}

#[test]
fn elements_one_by_one() {
    let data = reals(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let types = |rows, columns| [f32s(&[3, 3]), of(DType::I64, &[rows, columns])];
    let picked = one(&gather_elements(0), &types(2, 3), &[data.clone(), ints(&[2, 3], &[1, 2, 0, 2, 0, 0])]);
    assert_eq!(picked, reals(&[2, 3], &[4.0, 8.0, 3.0, 7.0, 2.0, 3.0]));
    let picked = one(&gather_elements(1), &types(2, 4), &[data.clone(), ints(&[2, 4], &[-1, 0, 0, 1, 2, -3, 1, 1])]);
    assert_eq!(picked, reals(&[2, 4], &[3.0, 1.0, 1.0, 2.0, 6.0, 4.0, 5.0, 5.0]));
    for out in [3, -4] {
        let values = [data.clone(), ints(&[1, 1], &[out])];
        assert!(eval(&gather_elements(0), &types(1, 1), &values, &Bindings::new()).is_err(), "{out}");
    }
    let refused = |indices: TensorType| gather_elements(0).infer(&[f32s(&[3, 3]), indices]);
    assert!(matches!(refused(of(DType::I64, &[2, 4])), Err(TypeError::Invalid(_))));
    assert!(matches!(refused(of(DType::F32, &[2, 3])), Err(TypeError::Invalid(_))));
    assert!(matches!(refused(of(DType::I64, &[2])), Err(TypeError::Invalid(_))));
    let open = TensorType::new(DType::I64, [Dim::from(2), Dim::symbol("N")]);
    assert!(matches!(refused(open), Err(TypeError::Undecided { .. })));
}

#[test]
fn slices_by_tuples() {
    let gather = |batch| op("gather-nd", &[("batch_dims", Attr::Int(batch))]);
    let pairs = reals(&[2, 2], &[0.0, 1.0, 2.0, 3.0]);
    let cube = reals(&[2, 2, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    // The examples of the standard.
    for (batch, data, indices, places, want) in [
        (0, &pairs, vec![2, 2], vec![0, 0, 1, 1], reals(&[2], &[0.0, 3.0])),
        (0, &pairs, vec![2, 1], vec![1, 0], reals(&[2, 2], &[2.0, 3.0, 0.0, 1.0])),
        (0, &cube, vec![2, 2], vec![0, 1, 1, 0], reals(&[2, 2], &[2.0, 3.0, 4.0, 5.0])),
        (0, &cube, vec![2, 1, 2], vec![0, 1, -1, -2], reals(&[2, 1, 2], &[2.0, 3.0, 4.0, 5.0])),
        (1, &cube, vec![2, 1], vec![1, 0], reals(&[2, 2], &[2.0, 3.0, 4.0, 5.0])),
    ] {
        let shape: Vec<i64> = data.shape().iter().map(|d| *d as i64).collect();
        let types = [f32s(&shape), TensorType::new(DType::I64, indices.iter().map(|d| *d as i64))];
        assert_eq!(one(&gather(batch), &types, &[data.clone(), ints(&indices, &places)]), want);
    }
    let out = [cube.clone(), ints(&[1, 1], &[2])];
    assert!(eval(&gather(0), &[f32s(&[2, 2, 2]), of(DType::I64, &[1, 1])], &out, &Bindings::new()).is_err());
    for (data, indices) in [(f32s(&[2]), of(DType::I64, &[3, 2])), (f32s(&[2]), of(DType::F32, &[3, 1])), (f32s(&[2]), of(DType::I64, &[]))]
    {
        assert!(matches!(gather(0).infer(&[data, indices]), Err(TypeError::Invalid(_))));
    }
    let open = TensorType::new(DType::I64, [Dim::from(3), Dim::symbol("K")]);
    assert!(matches!(gather(0).infer(&[f32s(&[2, 2]), open]), Err(TypeError::Undecided { .. })));
}

#[test]
fn slices_are_written_in_order() {
    let scatter = op("scatter-nd", &[]);
    let data = reals(&[4, 2], &[0.0; 8]);
    let types = [f32s(&[4, 2]), of(DType::I64, &[3, 1]), f32s(&[3, 2])];
    let updates = reals(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let result = one(&scatter, &types, &[data.clone(), ints(&[3, 1], &[2, 0, -2]), updates]);
    assert_eq!(result, reals(&[4, 2], &[3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0]));
    let types = [f32s(&[4, 2]), of(DType::I64, &[2, 2]), f32s(&[2])];
    let result = one(&scatter, &types, &[data.clone(), ints(&[2, 2], &[0, 1, 3, 0]), reals(&[2], &[7.0, 8.0])]);
    assert_eq!(result, reals(&[4, 2], &[0.0, 7.0, 0.0, 0.0, 0.0, 0.0, 8.0, 0.0]));
    let values = [data, ints(&[2, 2], &[0, 1, 4, 0]), reals(&[2], &[7.0, 8.0])];
    assert!(eval(&scatter, &types, &values, &Bindings::new()).is_err());
    assert!(matches!(scatter.infer(&[f32s(&[4, 2]), of(DType::I64, &[2, 2]), f32s(&[3])]), Err(TypeError::Invalid(_))));
}

#[test]
fn root_mean_squares() {
    let norm = |axis| op("rms-normalization", &[("axis", Attr::Int(axis)), ("epsilon", Attr::Float(Float(0.5)))]);
    let mut random = Random::new(3);
    let x: Vec<f64> = (0..24).map(|_| random.below(9) as f64 - 4.0).collect();
    for (axis, scale) in [(2usize, vec![4usize]), (1, vec![3, 4]), (2, vec![1])] {
        let weights: Vec<f64> = (0..scale.iter().product()).map(|i| 1.0 + i as f64 / 4.0).collect();
        let size: usize = [2, 3, 4][axis..].iter().product();
        let want: Vec<f64> = x
            .iter()
            .enumerate()
            .map(|(at, v)| {
                let row = &x[at / size * size..][..size];
                let square = row.iter().map(|v| v * v).sum::<f64>() / size as f64;
                v / (square + 0.5).sqrt() * weights[at % weights.len()]
            })
            .collect();
        let types = [f32s(&[2, 3, 4]), TensorType::new(DType::F32, scale.iter().map(|s| *s as i64))];
        let Value::Real(have) = one(&norm(axis as i64), &types, &[reals(&[2, 3, 4], &x), reals(&scale, &weights)]) else { panic!() };
        assert!(have.data.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-12), "{have:?} {want:?}");
    }
    assert!(matches!(norm(0).infer(&[f32s(&[3]), f32s(&[4])]), Err(TypeError::Invalid(_))));
    let spelling = norm(1).spell(&[f32s(&[2, 4]), f32s(&[4])], &[f32s(&[2, 4])], 23).unwrap();
    assert_eq!(import(&common::as_read(&spelling, &[f32s(&[2, 4]), f32s(&[4])], 1, 23)).unwrap().0, norm(1));
    assert!(norm(1).spell(&[f32s(&[2, 4]), f32s(&[4])], &[f32s(&[2, 4])], 22).is_err());
}

fn top_k(axis: i64, k: i64, largest: bool) -> Op {
    op("top-k", &[("axis", Attr::Int(axis)), ("k", Attr::Int(k)), ("largest", Attr::Bool(largest))])
}

#[test]
fn extreme_elements_in_order() {
    let x = [3.0, 1.0, 3.0, 2.0, 5.0, 3.0];
    let found = |axis, k, largest, shape: &[i64], data: &[f64]| {
        let sizes: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        eval(&top_k(axis, k, largest), &[f32s(shape)], &[reals(&sizes, data)], &Bindings::new())
    };
    // As ONNX Runtime finds them; of equal elements the first comes first.
    for (axis, k, largest, shape, sizes, values, indices) in [
        (0, 3, true, vec![6], vec![3], vec![5.0, 3.0, 3.0], vec![4, 0, 2]),
        (0, 6, false, vec![6], vec![6], vec![1.0, 2.0, 3.0, 3.0, 3.0, 5.0], vec![1, 3, 0, 2, 5, 4]),
        (0, 0, true, vec![6], vec![0], vec![], vec![]),
        (1, 2, true, vec![2, 3], vec![2, 2], vec![3.0, 3.0, 5.0, 3.0], vec![0, 2, 1, 2]),
        (0, 1, false, vec![2, 3], vec![1, 3], vec![2.0, 1.0, 3.0], vec![1, 0, 0]),
        (1, 2, false, vec![1, 3, 2], vec![1, 2, 2], vec![3.0, 1.0, 3.0, 2.0], vec![0, 0, 1, 1]),
        (0, 1, true, vec![1, 1, 6], vec![1, 1, 6], x.to_vec(), vec![0; 6]),
    ] {
        assert_eq!(found(axis, k, largest, &shape, &x).unwrap(), [reals(&sizes, &values), ints(&sizes, &indices)], "{axis} {k} {largest}");
    }
    assert_eq!(found(1, 2, true, &[0, 3], &[]).unwrap(), [reals(&[0, 2], &[]), ints(&[0, 2], &[])]);
    assert_eq!(found(0, 3, true, &[3], &[-0.0, 0.0, -0.0]).unwrap()[1], ints(&[3], &[0, 1, 2]));
    assert!(found(0, 2, true, &[3], &[1.0, f64::NAN, 2.0]).is_err());
    // Integers are compared as their type is: -1 is the largest unsigned one.
    let wide = [ints(&[3], &[1, -1, i64::MAX])];
    for (dtype, first) in [(DType::I64, 2), (DType::U64, 1)] {
        let results = eval(&top_k(0, 1, true), &[of(dtype, &[3])], &wide, &Bindings::new()).unwrap();
        assert_eq!(results[1], ints(&[1], &[first]), "{dtype}");
    }
    let by_sorting = |data: &[f64]| {
        let mut order: Vec<i64> = (0..data.len() as i64).collect();
        order.sort_by(|a, b| data[*b as usize].total_cmp(&data[*a as usize]));
        order
    };
    let mut random = Random::new(3);
    for _ in 0..50 {
        let size = 1 + random.below(40);
        let data: Vec<f64> = (0..size).map(|_| random.below(9) as f64).collect();
        let k = random.below(size + 1);
        let indices = found(0, k as i64, true, &[size as i64], &data).unwrap().remove(1);
        assert_eq!(indices, ints(&[k], &by_sorting(&data)[..k]), "{data:?}");
    }
}

#[test]
fn types_of_extreme_elements() {
    let open = TensorType::new(DType::F32, [Dim::symbol("N"), Dim::from(4)]);
    let types = top_k(1, 3, true).infer(std::slice::from_ref(&open)).unwrap();
    let shape = [Dim::symbol("N"), Dim::from(3)];
    assert_eq!(types, [TensorType::new(DType::F32, shape.clone()), TensorType::new(DType::I64, shape)]);
    assert!(matches!(top_k(0, 3, true).infer(std::slice::from_ref(&open)), Err(TypeError::Undecided { types, .. }) if types.len() == 2));
    for (op, operand) in [
        (top_k(1, 5, true), open.clone()),
        (top_k(2, 1, true), open.clone()),
        (top_k(0, -1, true), open),
        (top_k(0, 1, true), of(DType::Bool, &[3])),
        (top_k(0, 1, true), f32s(&[])),
    ] {
        assert!(matches!(op.infer(&[operand]), Err(TypeError::Invalid(_))), "{op:?}");
    }
}

#[test]
fn a_number_of_elements_is_an_attribute_or_a_constant() {
    let number = |k: &[i64], shape: &[i64]| {
        let value = Const::from_i64(DType::I64, shape, k);
        OnnxInput { ty: Some(of(DType::I64, shape)), value, dims: None }
    };
    let node = |version, attrs: &[(&str, i64)], k: Option<OnnxInput>| OnnxNode {
        op_type: "TopK".into(),
        domain: String::new(),
        version,
        attrs: attrs.iter().map(|(name, value)| (name.to_string(), Attr::Int(*value))).collect(),
        inputs: [Some(OnnxInput { ty: Some(f32s(&[2, 4])), value: None, dims: None })].into_iter().chain([k]).collect(),
        outputs: vec![true; 2],
    };
    let read = |node: &OnnxNode| import(node).map(|(op, operands)| (op, operands.len()));
    assert_eq!(read(&node(9, &[("k", 3)], None)), Ok((top_k(1, 3, true), 1)));
    assert_eq!(read(&node(10, &[("axis", -2)], Some(number(&[2], &[1])))), Ok((top_k(0, 2, true), 1)));
    assert_eq!(read(&node(11, &[("largest", 0)], Some(number(&[2], &[1])))), Ok((top_k(1, 2, false), 1)));
    // The order of one element is known.
    assert_eq!(read(&node(11, &[("sorted", 0)], Some(number(&[1], &[1])))), Ok((top_k(1, 1, true), 1)));
    let computed = OnnxInput { ty: Some(of(DType::I64, &[1])), value: None, dims: None };
    for opaque in [
        node(9, &[], None),
        node(11, &[], None),
        node(11, &[], Some(computed)),
        node(11, &[], Some(number(&[5], &[1]))),
        node(11, &[], Some(number(&[1, 1], &[2]))),
        node(11, &[("sorted", 0)], Some(number(&[2], &[1]))),
        node(11, &[("largest", 2)], Some(number(&[2], &[1]))),
        node(11, &[("axis", 2)], Some(number(&[2], &[1]))),
    ] {
        assert!(read(&opaque).is_err(), "{opaque:?}");
    }
}

#[test]
fn round_trips_at_every_version() {
    let since = |first: i64| (first..=21).collect::<Vec<i64>>();
    let half = || of(DType::F16, &[2, 3]);
    for (op, inputs, versions) in [
        (cum_sum(1, true, false), vec![f32s(&[2, 3])], since(11)),
        (cum_sum(0, false, true), vec![half()], since(14)),
        (trilu(true, 0), vec![f32s(&[2, 3])], since(14)),
        (trilu(false, -2), vec![of(DType::Bool, &[2, 3])], since(14)),
        (gather_elements(1), vec![f32s(&[2, 3]), of(DType::I64, &[2, 5])], since(11)),
        (op("gather-nd", &[("batch_dims", Attr::Int(0))]), vec![f32s(&[2, 3]), of(DType::I64, &[5, 2])], since(11)),
        (op("gather-nd", &[("batch_dims", Attr::Int(1))]), vec![f32s(&[2, 3]), of(DType::I64, &[2, 1])], since(12)),
        (top_k(1, 2, true), vec![f32s(&[2, 3])], since(7)),
        (top_k(0, 2, false), vec![f32s(&[2, 3])], since(11)),
        (top_k(0, 2, true), vec![of(DType::I32, &[2, 3])], since(11)),
        (op("scatter-nd", &[]), vec![f32s(&[2, 3]), of(DType::I64, &[5, 2]), f32s(&[5])], since(11)),
    ] {
        assert_eq!(round_trip(&op, &inputs), versions, "{op:?}");
    }
}

#[test]
fn what_is_computed_stays_opaque() {
    let node = |op_type: &str, axis: Option<Const>| OnnxNode {
        op_type: op_type.into(),
        domain: String::new(),
        version: 14,
        attrs: regraft_ir::onnx::Attrs::default(),
        inputs: vec![
            Some(OnnxInput { ty: Some(f32s(&[2, 3])), value: None, dims: None }),
            Some(OnnxInput { ty: Some(of(DType::I64, &[])), value: axis, dims: None }),
        ],
        outputs: vec![true],
    };
    let scalar = |value| Const::from_i64(DType::I64, &[], &[value]);
    for op_type in ["CumSum", "Trilu"] {
        assert!(import(&node(op_type, None)).is_err(), "{op_type}");
        let (_, operands) = import(&node(op_type, scalar(-1))).unwrap();
        assert!(matches!(operands.as_slice(), [ImportOperand::Input(0)]), "{op_type}");
    }
    assert_eq!(import(&node("CumSum", scalar(-1))).unwrap().0, cum_sum(1, false, false));
    assert!(import(&node("CumSum", scalar(2))).is_err());
}
