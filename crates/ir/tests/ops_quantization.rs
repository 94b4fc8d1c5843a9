//! Quantizing operators: values by hand or by a second loop, types, what stays opaque, ONNX round
//! trips.

mod common;

use common::{Random, as_read, eval, f32s, import, ints, op, reals, round_trip};
use regraft_ir::onnx::{Attrs, ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, Const, DType, Dim, Graph, Op, OpKind, TensorType, TypeError, Value, text};

fn of(dtype: DType, shape: &[i64]) -> TensorType {
    TensorType::new(dtype, shape.iter().copied())
}

fn grain(name: &str, axis: Option<i64>, block_size: Option<i64>, to: DType) -> Op {
    let optional = |v: Option<i64>| v.map_or(Attr::Absent, Attr::Int);
    op(name, &[("axis", optional(axis)), ("block_size", optional(block_size)), ("output_dtype", Attr::DType(to))])
}

fn quantize(axis: Option<i64>, block_size: Option<i64>, to: DType) -> Op {
    grain("QuantizeLinear", axis, block_size, to)
}

fn dequantize(axis: Option<i64>, block_size: Option<i64>, to: DType) -> Op {
    grain("DequantizeLinear", axis, block_size, to)
}

fn convolution(name: &str, stride: i64, pad: i64, group: i64) -> Op {
    let ints = |v: &[i64]| Attr::Ints(v.to_vec());
    op(name, &[("strides", ints(&[stride; 2])), ("pads", ints(&[pad; 4])), ("dilations", ints(&[1, 1])), ("group", Attr::Int(group))])
}

fn one(op: &Op, types: &[TensorType], values: &[Value<f64>]) -> Value<f64> {
    eval(op, types, values, &Bindings::new()).unwrap().remove(0)
}

/// The numbers of an integer or real value.
fn data(value: &Value<f64>) -> Vec<f64> {
    match value {
        Value::Int(t) => t.data.iter().map(|v| *v as f64).collect(),
        Value::Real(t) => t.data.clone(),
        Value::Bool(_) => panic!("no numbers"),
    }
}

/// 8-bit integers of a type.
fn bytes(random: &mut Random, dtype: DType, shape: &[usize]) -> Value<f64> {
    let low = if dtype == DType::U8 { 0 } else { -128 };
    let count = shape.iter().product();
    ints(shape, &(0..count).map(|_| random.below(256) as i64 + low).collect::<Vec<_>>())
}

fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

#[test]
fn quotients_are_rounded_to_even_and_saturate() {
    let types = [f32s(&[9]), f32s(&[]), of(DType::I8, &[])];
    let x = reals(&[9], &[0.5, 1.0, 1.5, 2.5, -1.25, 1000.0, -1000.0, f64::INFINITY, f64::NAN]);
    let found = one(&quantize(None, None, DType::I8), &types, &[x.clone(), reals(&[], &[0.5]), ints(&[], &[3])]);
    assert_eq!(found, ints(&[9], &[4, 5, 6, 8, 1, 127, -128, 127, -128]));
    let types = [f32s(&[9]), f32s(&[1]), of(DType::U16, &[1])];
    let found = one(&quantize(None, None, DType::U16), &types, &[x, reals(&[1], &[1.0]), ints(&[1], &[10])]);
    assert_eq!(found, ints(&[9], &[10, 11, 12, 12, 9, 1010, 0, 65535, 0]));
    // Without a zero point. In single precision the quotient is 7.5, over the reals it is less.
    let fifth = f64::from(0.2f32);
    let found = one(&quantize(None, None, DType::U8), &[f32s(&[2]), f32s(&[])], &[reals(&[2], &[1.5, -0.3]), reals(&[], &[fifth])]);
    assert_eq!(found, ints(&[2], &[8, 0]));
    let empty = one(&quantize(None, None, DType::U8), &[f32s(&[2, 0]), f32s(&[])], &[reals(&[2, 0], &[]), reals(&[], &[1.0])]);
    assert_eq!(empty, ints(&[2, 0], &[]));
}

#[test]
fn scales_belong_to_an_axis_or_to_blocks() {
    let x: Vec<i64> = (0..30).map(|i| i * 7 % 23 - 11).collect();
    let shape = [2usize, 5, 3];
    let known = |shape: &[usize]| shape.iter().map(|d| *d as i64).collect::<Vec<_>>();
    for (axis, block, parameters) in [
        (None, None, vec![]),
        (Some(0), None, vec![2]),
        (Some(1), None, vec![5]),
        (Some(2), None, vec![3]),
        (Some(1), Some(2), vec![2, 3, 3]),
        (Some(0), Some(2), vec![1, 5, 3]),
        (Some(2), Some(1), vec![2, 5, 3]),
    ] {
        let count: usize = parameters.iter().product();
        let scales: Vec<f64> = (0..count).map(|i| (i + 1) as f64 / 4.0).collect();
        let zeros: Vec<i64> = (0..count).map(|i| i as i64 * 3 % 7 - 2).collect();
        let place = |index: [usize; 3]| match (axis, block) {
            (None, _) => 0,
            (Some(axis), None) => index[axis as usize],
            (Some(axis), Some(block)) => {
                let mut at = index;
                at[axis as usize] /= block as usize;
                (at[0] * parameters[1] + at[1]) * parameters[2] + at[2]
            }
        };
        let places: Vec<usize> = (0..30).map(|flat| place([flat / 15, flat / 3 % 5, flat % 3])).collect();
        let (s, z) = (reals(&parameters, &scales), ints(&parameters, &zeros));
        let types = |x: DType, zero: DType| [of(x, &[2, 5, 3]), of(DType::F32, &known(&parameters)), of(zero, &known(&parameters))];
        let want: Vec<f64> = x.iter().zip(&places).map(|(x, at)| (x - zeros[*at]) as f64 * scales[*at]).collect();
        let found = one(&dequantize(axis, block, DType::F32), &types(DType::I8, DType::I8), &[ints(&shape, &x), s.clone(), z.clone()]);
        assert_eq!(found, reals(&shape, &want), "{axis:?} {block:?}");
        // And back.
        let found = one(&quantize(axis, block, DType::I8), &types(DType::F32, DType::I8), &[found, s, z]);
        assert_eq!(found, ints(&shape, &x), "{axis:?} {block:?}");
    }
    let wide =
        one(&dequantize(None, None, DType::F32), &[of(DType::I32, &[2]), f32s(&[])], &[ints(&[2], &[1 << 30, -7]), reals(&[], &[0.5])]);
    assert_eq!(wide, reals(&[2], &[f64::from(1 << 29), -3.5]));
}

#[test]
fn types_are_checked() {
    let invalid = |op: &Op, types: &[TensorType]| assert!(matches!(op.infer(types), Err(TypeError::Invalid(_))), "{op:?} {types:?}");
    let (q, d) = (quantize(None, None, DType::U8), dequantize(None, None, DType::F32));
    invalid(&q, &[of(DType::I32, &[3]), f32s(&[])]);
    invalid(&q, &[f32s(&[3]), of(DType::F16, &[])]);
    invalid(&q, &[f32s(&[3]), f32s(&[]), of(DType::I8, &[])]);
    invalid(&q, &[f32s(&[3]), f32s(&[3])]);
    invalid(&q, &[f32s(&[3])]);
    invalid(&quantize(None, None, DType::I32), &[f32s(&[3]), f32s(&[])]);
    invalid(&quantize(Some(1), None, DType::U8), &[f32s(&[3]), f32s(&[3])]);
    invalid(&quantize(Some(-1), None, DType::U8), &[f32s(&[3]), f32s(&[3])]);
    invalid(&quantize(Some(0), Some(0), DType::U8), &[f32s(&[3]), f32s(&[3])]);
    invalid(&quantize(Some(0), Some(2), DType::U8), &[f32s(&[5]), f32s(&[2])]);
    invalid(&quantize(None, Some(2), DType::U8), &[f32s(&[5]), f32s(&[3])]);
    invalid(&d, &[of(DType::I64, &[3]), f32s(&[])]);
    invalid(&d, &[of(DType::I32, &[3]), f32s(&[]), of(DType::I32, &[])]);
    invalid(&d, &[of(DType::I8, &[3]), f32s(&[]), of(DType::U8, &[])]);
    let symbolic = |shape: Vec<Dim>| TensorType { dtype: DType::F32, shape: shape.into_iter().collect() };
    let (n, one) = (|| Dim::symbol("n"), Dim::from(1));
    let undecided = quantize(Some(0), None, DType::U8).infer(&[symbolic(vec![n()]), symbolic(vec![Dim::from(4)])]);
    assert!(matches!(undecided, Err(TypeError::Undecided { types, .. }) if types.len() == 1));
    assert!(quantize(Some(0), None, DType::U8).infer(&[symbolic(vec![n(), one]), symbolic(vec![n()])]).is_ok());
    let product = op("MatMulInteger", &[]);
    invalid(&product, &[of(DType::U8, &[2, 3]), of(DType::U8, &[4, 2])]);
    invalid(&product, &[of(DType::I32, &[2, 3]), of(DType::U8, &[3, 2])]);
    invalid(&product, &[of(DType::U8, &[2, 3]), of(DType::U8, &[3, 2]), of(DType::U8, &[2])]);
    invalid(&product, &[of(DType::U8, &[2, 3]), of(DType::U8, &[3, 2]), of(DType::I8, &[])]);
    let conv = convolution("ConvInteger", 1, 0, 1);
    invalid(&conv, &[of(DType::U8, &[1, 2, 4, 4]), of(DType::U8, &[3, 2, 2, 2]), of(DType::U8, &[]), of(DType::U8, &[3])]);
    invalid(&conv, &[of(DType::U8, &[1, 2, 4, 4]), of(DType::U8, &[3, 1, 2, 2])]);
    invalid(&convolution("QLinearConv", 1, 0, 1), &[of(DType::U8, &[1, 2, 4, 4]), of(DType::U8, &[3, 2, 2, 2])]);
}

#[test]
fn the_range_decides_the_scale() {
    let op = op("DynamicQuantizeLinear", &[]);
    let run = |x: &[f64]| eval(&op, &[f32s(&[x.len() as i64])], &[reals(&[x.len()], x)], &Bindings::new());
    let scale = single(3.0 / 255.0);
    for (x, y, scale, zero) in [
        ([1.0, 2.0, 3.0], [85, 170, 255], scale, 0),
        ([-1.0, -2.0, -3.0], [170, 85, 0], scale, 255),
        ([0.0, -0.0, 0.0], [0, 0, 0], 1.0, 0),
        ([-1.0, 0.0, 2.0], [0, 85, 255], scale, 85),
    ] {
        assert_eq!(run(&x).unwrap(), [ints(&[3], &y), reals(&[], &[scale]), ints(&[], &[zero])], "{x:?}");
    }
    assert!(run(&[f64::INFINITY, 0.0]).is_err());
    assert_eq!(run(&[]).unwrap(), [ints(&[0], &[]), reals(&[], &[1.0]), ints(&[], &[0])]);
}

/// The sums of products by three loops.
fn product(a: &[f64], b: &[f64], a_zero: f64, b_zero: impl Fn(usize) -> f64, [m, k, n]: [usize; 3]) -> Vec<f64> {
    let sum = |i: usize, j: usize| (0..k).map(|l| (a[i * k + l] - a_zero) * (b[l * n + j] - b_zero(j))).sum();
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}

#[test]
fn products_of_integers() {
    let mut random = Random::new(7);
    let [m, k, n] = [3usize, 5, 4];
    for (left, right) in [(DType::U8, DType::U8), (DType::U8, DType::I8), (DType::I8, DType::U8), (DType::I8, DType::I8)] {
        let (a, b) = (bytes(&mut random, left, &[m, k]), bytes(&mut random, right, &[k, n]));
        let (a_zero, b_zeros) = (bytes(&mut random, left, &[]), bytes(&mut random, right, &[n]));
        let types = [of(left, &[3, 5]), of(right, &[5, 4]), of(left, &[]), of(right, &[4])];
        let zeros = data(&b_zeros);
        let sums = product(&data(&a), &data(&b), data(&a_zero)[0], |j| zeros[j], [m, k, n]);
        let values = [a.clone(), b.clone(), a_zero.clone(), b_zeros.clone()];
        assert_eq!(data(&one(&op("MatMulInteger", &[]), &types, &values)), sums);
        let plain = product(&data(&a), &data(&b), 0.0, |_| 0.0, [m, k, n]);
        assert_eq!(data(&one(&op("MatMulInteger", &[]), &types[..2], &values[..2])), plain);
        // The same, scaled to 8 bits again.
        let scales = [0.013, 0.02, 0.5, 0.031, 2.7].map(single);
        let (low, high) = if left == DType::U8 { (0.0, 255.0) } else { (-128.0, 127.0) };
        let want: Vec<f64> = sums
            .iter()
            .enumerate()
            .map(|(at, sum)| {
                let factor = scales[0] as f32 * [scales[1], scales[2], scales[3], scales[1]][at % n] as f32 / scales[4] as f32;
                (f64::from((*sum as f32 * factor).round_ties_even()) + 9.0).clamp(low, high)
            })
            .collect();
        let b_scales = reals(&[1, n], &[scales[1], scales[2], scales[3], scales[1]]);
        let types =
            [of(left, &[3, 5]), f32s(&[]), of(left, &[]), of(right, &[5, 4]), f32s(&[1, 4]), of(right, &[4]), f32s(&[1]), of(left, &[])];
        let values = [a, reals(&[], &scales[..1]), a_zero, b, b_scales, b_zeros, reals(&[1], &scales[4..]), ints(&[], &[9])];
        assert_eq!(data(&one(&op("QLinearMatMul", &[]), &types, &values)), want);
    }
    // Sums wrap: 2 · 33,026 · 255² exceeds 32 bits.
    let size = 33_026usize;
    let (row, column) = (ints(&[1, size], &vec![255; size]), ints(&[size, 1], &vec![255; size]));
    let types = [of(DType::U8, &[1, size as i64]), of(DType::U8, &[size as i64, 1])];
    let sum = 255 * 255 * size as i64;
    assert!(sum > i64::from(i32::MAX));
    assert_eq!(one(&op("MatMulInteger", &[]), &types, &[row, column]), ints(&[1, 1], &[i64::from(sum as i32)]));
}

/// Sums of a convolution by its definition; `zeros` of `w` by result channel.
fn convolved(x: &[f64], w: &[f64], x_zero: f64, zeros: &[f64], stride: i64, pad: i64, group: usize) -> Vec<f64> {
    let (channels, size, results, inner, kernel) = (4usize, 5i64, 6usize, 4 / group, 3i64);
    let out = (size + 2 * pad - kernel) / stride + 1;
    let mut sums = Vec::new();
    for result in 0..results {
        let first = result / (results / group) * inner;
        for at in 0..out * out {
            let mut sum = 0.0;
            for channel in 0..inner {
                for tap in 0..kernel * kernel {
                    let (y, z) = (at / out * stride + tap / kernel - pad, at % out * stride + tap % kernel - pad);
                    if !(0..size).contains(&y) || !(0..size).contains(&z) {
                        continue;
                    }
                    let element = x[(first + channel) * (size * size) as usize + (y * size + z) as usize] - x_zero;
                    sum += element * (w[(result * inner + channel) * 9 + tap as usize] - zeros[result]);
                }
            }
            sums.push(sum);
        }
    }
    assert_eq!(channels, inner * group);
    sums
}

#[test]
fn convolutions_of_integers() {
    let mut random = Random::new(3);
    for (left, right, stride, pad, group) in
        [(DType::U8, DType::U8, 1, 1, 1usize), (DType::U8, DType::I8, 2, 0, 2), (DType::I8, DType::I8, 2, 1, 1)]
    {
        let inner = 4 / group;
        let (x, w) = (bytes(&mut random, left, &[1, 4, 5, 5]), bytes(&mut random, right, &[6, inner, 3, 3]));
        let (x_zero, zeros) = (bytes(&mut random, left, &[]), bytes(&mut random, right, &[6]));
        let types = [of(left, &[1, 4, 5, 5]), of(right, &[6, inner as i64, 3, 3]), of(left, &[]), of(right, &[])];
        let first = data(&zeros)[0];
        let sums = convolved(&data(&x), &data(&w), data(&x_zero)[0], &[first; 6], stride, pad, group);
        let values = [x.clone(), w.clone(), x_zero.clone(), ints(&[], &[first as i64])];
        assert_eq!(data(&one(&convolution("ConvInteger", stride, pad, group as i64), &types, &values)), sums);
        let sums = convolved(&data(&x), &data(&w), data(&x_zero)[0], &data(&zeros), stride, pad, group);
        let scales: Vec<f64> = (0..6).map(|i| single(0.01 + 0.003 * f64::from(i))).collect();
        let bias: Vec<i64> = (0..6).map(|i| i * 1000 - 2500).collect();
        let (x_scale, y_scale) = (single(0.3), single(1.7));
        let (low, high, zero) = if left == DType::U8 { (0.0, 255.0, 7) } else { (-128.0, 127.0, -5) };
        let area = sums.len() / 6;
        let rescaled = |(at, sum): (usize, &f64)| {
            let factor = x_scale as f32 * scales[at / area] as f32 / y_scale as f32;
            let sum = (sum + bias[at / area] as f64) as f32;
            (f64::from((sum * factor).round_ties_even()) + f64::from(zero)).clamp(low, high)
        };
        let want: Vec<f64> = sums.iter().enumerate().map(rescaled).collect();
        let types = [
            of(left, &[1, 4, 5, 5]),
            f32s(&[]),
            of(left, &[]),
            of(right, &[6, inner as i64, 3, 3]),
            f32s(&[6]),
            of(right, &[6]),
            f32s(&[]),
            of(left, &[]),
            of(DType::I32, &[6]),
        ];
        let values = [
            x,
            reals(&[], &[x_scale]),
            x_zero,
            w,
            reals(&[6], &scales),
            zeros,
            reals(&[], &[y_scale]),
            ints(&[], &[i64::from(zero)]),
            ints(&[6], &bias),
        ];
        let found = data(&one(&convolution("QLinearConv", stride, pad, group as i64), &types, &values));
        assert_eq!(found, want);
    }
}

fn input(ty: TensorType) -> OnnxInput {
    OnnxInput { ty: Some(ty), value: None, dims: None }
}

fn constant(value: Const) -> OnnxInput {
    OnnxInput { ty: Some(value.ty()), value: Some(value), dims: None }
}

fn node(op_type: &str, version: i64, attrs: &[(&str, Attr)], inputs: Vec<Option<OnnxInput>>, results: usize) -> OnnxNode {
    let attrs: Attrs = attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    OnnxNode { op_type: op_type.into(), domain: String::new(), version, attrs, inputs, outputs: vec![true; results] }
}

#[test]
fn nodes_become_explicit_operators() {
    let q = |version: i64, attrs: &[(&str, Attr)], types: &[TensorType]| {
        let node = node("QuantizeLinear", version, attrs, types.iter().cloned().map(|ty| Some(input(ty))).collect(), 1);
        import(&node).ok().filter(|_| node.attrs.unread().is_empty()).map(|(op, _)| op)
    };
    let (x, scalar, vector) = (f32s(&[2, 3, 4]), f32s(&[]), f32s(&[3]));
    let zero = |shape: &[i64]| of(DType::I8, shape);
    let (axis, to) = (|a: i64| ("axis", Attr::Int(a)), |dtype: DType| ("output_dtype", Attr::Int(dtype.to_onnx().into())));
    assert_eq!(q(10, &[], &[x.clone(), scalar.clone()]), Some(quantize(None, None, DType::U8)));
    assert_eq!(q(13, &[axis(7)], &[x.clone(), f32s(&[1]), zero(&[])]), Some(quantize(None, None, DType::I8)));
    assert_eq!(q(13, &[], &[x.clone(), vector.clone(), zero(&[3])]), Some(quantize(Some(1), None, DType::I8)));
    assert_eq!(q(13, &[axis(-2)], &[x.clone(), vector.clone()]), Some(quantize(Some(1), None, DType::U8)));
    assert_eq!(q(19, &[("saturate", Attr::Int(0))], &[x.clone(), scalar.clone()]), Some(quantize(None, None, DType::U8)));
    assert_eq!(q(21, &[to(DType::I16)], &[x.clone(), scalar.clone()]), Some(quantize(None, None, DType::I16)));
    let block = ("block_size", Attr::Int(2));
    assert_eq!(q(21, &[axis(-1), block.clone()], &[x.clone(), f32s(&[2, 3, 2])]), Some(quantize(Some(2), Some(2), DType::U8)));
    let (half, halves) = (of(DType::F16, &[]), of(DType::F16, &[3]));
    let single = ("precision", Attr::Int(1));
    assert_eq!(q(23, std::slice::from_ref(&single), &[halves.clone(), half.clone()]), Some(quantize(None, None, DType::U8)));
    assert_eq!(q(23, std::slice::from_ref(&single), &[x.clone(), scalar.clone()]), Some(quantize(None, None, DType::U8)));
    for (version, attrs, types) in [
        (10, vec![], vec![x.clone(), vector.clone()]),
        (13, vec![axis(0)], vec![x.clone(), vector.clone()]),
        (13, vec![axis(3)], vec![x.clone(), vector.clone()]),
        (13, vec![to(DType::I16)], vec![x.clone(), scalar.clone()]),
        (21, vec![to(DType::I16)], vec![x.clone(), scalar.clone(), zero(&[])]),
        (21, vec![to(DType::F16)], vec![x.clone(), scalar.clone()]),
        (21, vec![("output_dtype", Attr::Int(21))], vec![x.clone(), scalar.clone()]),
        (21, vec![block.clone()], vec![x.clone(), scalar.clone()]),
        (19, vec![block], vec![x.clone(), f32s(&[2, 2, 4])]),
        (21, vec![], vec![x.clone(), f32s(&[2, 2, 4])]),
        (13, vec![], vec![of(DType::I32, &[3]), scalar.clone()]),
        (21, vec![], vec![halves.clone(), half.clone()]),
        (22, vec![single], vec![halves.clone(), half.clone()]),
        (23, vec![("precision", Attr::Int(10))], vec![halves, half]),
        (23, vec![("precision", Attr::Int(10))], vec![x, scalar]),
    ] {
        assert_eq!(q(version, &attrs, &types), None, "{version} {attrs:?} {types:?}");
    }
}

#[test]
fn integers_of_32_bits_have_no_zero_point() {
    let zeros = |value: Option<Const>| {
        let zero = value.map_or_else(|| input(of(DType::I32, &[])), constant);
        let inputs = vec![Some(input(of(DType::I32, &[4]))), Some(input(f32s(&[]))), Some(zero)];
        import(&node("DequantizeLinear", 13, &[], inputs, 1))
    };
    let scalar = |value| Const::from_i64(DType::I32, &[], &[value]);
    let (op, operands) = zeros(scalar(0)).unwrap();
    assert_eq!(op, dequantize(None, None, DType::F32));
    assert!(matches!(operands.as_slice(), [ImportOperand::Input(0), ImportOperand::Input(1)]));
    assert!(zeros(scalar(3)).is_err() && zeros(None).is_err());
}

#[test]
fn products_that_may_saturate_stay_opaque() {
    let weights = |dtype: DType, values: &[i64]| constant(Const::from_i64(dtype, &[2, 1], values).unwrap());
    let kernel = |dtype: DType, values: &[i64]| constant(Const::from_i64(dtype, &[1, 1, 2, 1], values).unwrap());
    let (u, s) = (|| input(of(DType::U8, &[3, 2])), || input(of(DType::I8, &[3, 2])));
    let product = |a: OnnxInput, b: OnnxInput| import(&node("MatMulInteger", 10, &[], vec![Some(a), Some(b)], 1)).is_ok();
    assert!(product(u(), input(of(DType::U8, &[2, 1]))) && product(s(), input(of(DType::I8, &[2, 1]))));
    assert!(!product(u(), input(of(DType::I8, &[2, 1]))));
    assert!(product(u(), weights(DType::I8, &[64, -64])) && !product(u(), weights(DType::I8, &[64, -65])));
    assert!(product(s(), weights(DType::U8, &[127, 0])) && !product(s(), weights(DType::U8, &[128, 0])));
    let conv = |x: DType, w: OnnxInput| import(&node("ConvInteger", 10, &[], vec![Some(input(of(x, &[1, 1, 4, 4]))), Some(w)], 1)).is_ok();
    assert!(conv(DType::U8, kernel(DType::I8, &[-64, 3])) && !conv(DType::U8, kernel(DType::I8, &[-65, 3])));
    assert!(conv(DType::U8, kernel(DType::U8, &[255, 3])));
    // A zero point that is left out before another one is 0.
    let inputs = vec![Some(u()), Some(input(of(DType::U8, &[2, 1]))), None, Some(input(of(DType::U8, &[])))];
    let (_, operands) = import(&node("MatMulInteger", 10, &[], inputs, 1)).unwrap();
    let [ImportOperand::Input(0), ImportOperand::Input(1), ImportOperand::Const(zero), ImportOperand::Input(3)] = operands.as_slice()
    else {
        panic!("{operands:?}")
    };
    assert_eq!((zero.dtype(), zero.to_i64()), (DType::U8, Some(vec![0])));
}

#[test]
fn round_trips_at_every_version() {
    let since = |first: i64| (first..=21).collect::<Vec<i64>>();
    let byte = |shape: &[i64]| of(DType::U8, shape);
    let q = |to: DType| quantize(None, None, to);
    let x = || f32s(&[2, 3, 4]);
    let linear = |a: &[i64], b: &[i64]| vec![byte(a), f32s(&[]), byte(&[]), byte(b), f32s(&[]), byte(&[]), f32s(&[]), byte(&[])];
    let with_bias = [linear(&[1, 2, 5, 5], &[3, 2, 3, 3]), vec![of(DType::I32, &[3])]].concat();
    for (op, inputs, versions) in [
        (q(DType::U8), vec![x(), f32s(&[])], since(10)),
        (q(DType::I8), vec![x(), f32s(&[]), of(DType::I8, &[])], since(10)),
        (q(DType::I8), vec![x(), f32s(&[])], since(21)),
        (q(DType::U16), vec![x(), f32s(&[]), of(DType::U16, &[])], since(21)),
        (quantize(Some(2), None, DType::U8), vec![x(), f32s(&[4]), byte(&[4])], since(13)),
        (quantize(Some(1), Some(2), DType::U8), vec![x(), f32s(&[2, 2, 4])], since(21)),
        (dequantize(None, None, DType::F32), vec![of(DType::I32, &[2, 3]), f32s(&[])], since(10)),
        (dequantize(Some(0), None, DType::F32), vec![byte(&[2, 3]), f32s(&[2]), byte(&[2])], since(13)),
        (dequantize(None, None, DType::F16), vec![byte(&[2, 3]), of(DType::F16, &[])], since(19)),
        (dequantize(Some(1), Some(3), DType::F32), vec![of(DType::I16, &[2, 4]), f32s(&[2, 2])], since(21)),
        (op("DynamicQuantizeLinear", &[]), vec![x()], since(11)),
        (op("MatMulInteger", &[]), vec![byte(&[2, 3]), byte(&[3, 4]), byte(&[]), byte(&[4])], since(10)),
        (op("QLinearMatMul", &[]), linear(&[2, 3], &[3, 4]), since(10)),
        (convolution("ConvInteger", 2, 1, 1), vec![byte(&[1, 2, 5, 5]), byte(&[3, 2, 3, 3])], since(10)),
        (convolution("QLinearConv", 1, 0, 1), with_bias, since(10)),
    ] {
        assert_eq!(round_trip(&op, &inputs), versions, "{op:?}");
    }
    // What later versions add.
    let (half, single) = ([of(DType::F16, &[3]), of(DType::F16, &[])], [byte(&[3]), f32s(&[])]);
    for (op, inputs) in [(q(DType::I8), half), (dequantize(None, None, DType::F16), single)] {
        let outputs = op.infer(&inputs).unwrap();
        assert!(op.spell(&inputs, &outputs, 22).is_err());
        let spelling = op.spell(&inputs, &outputs, 23).unwrap();
        assert_eq!(import(&as_read(&spelling, &inputs, 1, 23)).unwrap().0, op);
    }
}

#[test]
fn results_on_constants_are_computed_when_the_model_runs() {
    let graph: Graph = text::parse(
        "graph (x: f32[2,4]) { const w: u8[4,3] const s: f32[] = 0.5 const z: u8[] = 7
           d = DequantizeLinear(w, s, z, output_dtype=f32) t = Transpose(w, perm=[1,0]) r = Relu(d)
           q = QuantizeLinear(s, s, z, output_dtype=u8)
           output MatMul(x, r) as y, t, q }",
    )
    .unwrap();
    for id in graph.ids() {
        let constant = match graph.node(id).op.kind() {
            OpKind::Constant | OpKind::Transpose => true,
            OpKind::Input | OpKind::MatMul | OpKind::Relu | OpKind::DequantizeLinear | OpKind::QuantizeLinear => false,
            other => panic!("{other:?}"),
        };
        assert_eq!(graph.node(id).constant, constant, "{:?}", graph.node(id).op);
    }
}
