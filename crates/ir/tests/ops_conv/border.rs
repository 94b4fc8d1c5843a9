//! How ONNX nodes are imported: implicit pads, resize modes, old opsets, and what stays opaque.

use regraft_ir::onnx::{Attrs, ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Const, DType, Dim, Float, Op, OpKind, Tensor, TensorType};

use crate::common::{f32s, import};
use crate::naive::{close, ramp, run, typed};

/// A node as seen by a reader, with inputs of known type and unknown value.
fn node(op_type: &str, version: i64, attrs: &[(&str, Attr)], inputs: Vec<Option<OnnxInput>>) -> OnnxNode {
    let attrs: Attrs = attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    OnnxNode { op_type: op_type.into(), domain: String::new(), version, attrs, inputs, outputs: vec![true] }
}

fn value(ty: TensorType) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(ty), value: None, dims: None })
}

fn constant(value: Const) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(value.ty()), value: Some(value), dims: None })
}

fn floats(values: &[f64]) -> Option<OnnxInput> {
    constant(Const::from_f64(DType::F32, &[values.len() as i64], values).unwrap())
}

fn sizes(values: &[i64]) -> Option<OnnxInput> {
    constant(Const::from_i64(DType::I64, &[values.len() as i64], values).unwrap())
}

fn ints(values: &[i64]) -> Attr {
    Attr::Ints(values.to_vec())
}

fn word(value: &str) -> Attr {
    Attr::Str(value.into())
}

fn operator(node: &OnnxNode) -> Op {
    import(node).unwrap_or_else(|why| panic!("{node:?}: {why}")).0
}

fn opaque(node: &OnnxNode) {
    if let Ok((op, _)) = import(node) {
        panic!("{node:?} became {op:?}");
    }
}

fn check(node: &OnnxNode, operands: &[&Tensor<f64>], want: &[f64]) {
    let found = run(&operator(node), operands).unwrap_or_else(|e| panic!("{node:?}: {e}"));
    close(&found, &Tensor::new(vec![1, 1, want.len()], want.to_vec()), 1e-12, &format!("{node:?}"));
}

/// Answers of ONNX Runtime: mode, size, kernel, stride, and results of maxima, of means, and of a
/// correlation with `1, 10, 100, ..`.
#[test]
fn same_pads_answer_as_onnx_runtime() {
    type Row = (&'static str, usize, i64, i64, &'static [f64], &'static [f64], &'static [f64]);
    let rows: [Row; 12] = [
        ("SAME_UPPER", 5, 2, 1, &[2.0, 3.0, 4.0, 5.0, 5.0], &[1.5, 2.5, 3.5, 4.5, 5.0], &[21.0, 32.0, 43.0, 54.0, 5.0]),
        ("SAME_UPPER", 6, 3, 2, &[3.0, 5.0, 6.0], &[2.0, 4.0, 5.5], &[321.0, 543.0, 65.0]),
        ("SAME_UPPER", 5, 3, 2, &[2.0, 4.0, 5.0], &[1.5, 3.0, 4.5], &[]),
        ("SAME_UPPER", 7, 4, 3, &[3.0, 6.0, 7.0], &[2.0, 4.5, 6.5], &[3210.0, 6543.0, 76.0]),
        ("SAME_LOWER", 5, 2, 1, &[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 1.5, 2.5, 3.5, 4.5], &[10.0, 21.0, 32.0, 43.0, 54.0]),
        ("SAME_LOWER", 6, 3, 2, &[2.0, 4.0, 6.0], &[1.5, 3.0, 5.0], &[210.0, 432.0, 654.0]),
        ("SAME_LOWER", 5, 3, 2, &[2.0, 4.0, 5.0], &[1.5, 3.0, 4.5], &[]),
        ("SAME_LOWER", 7, 4, 3, &[2.0, 5.0, 7.0], &[1.5, 3.5, 6.0], &[2100.0, 5432.0, 765.0]),
        ("VALID", 5, 2, 1, &[2.0, 3.0, 4.0, 5.0], &[1.5, 2.5, 3.5, 4.5], &[21.0, 32.0, 43.0, 54.0]),
        ("VALID", 6, 3, 2, &[3.0, 5.0], &[2.0, 4.0], &[321.0, 543.0]),
        ("VALID", 6, 1, 3, &[1.0, 4.0], &[1.0, 4.0], &[1.0, 4.0]),
        ("VALID", 7, 4, 3, &[4.0, 7.0], &[2.5, 5.5], &[4321.0, 7654.0]),
    ];
    for (mode, n, kernel, stride, largest, means, sums) in rows {
        let x = ramp(n);
        let of = |op_type: &str, ceil: i64, inputs: Vec<Option<OnnxInput>>| {
            let attrs =
                [("kernel_shape", ints(&[kernel])), ("strides", ints(&[stride])), ("auto_pad", word(mode)), ("ceil_mode", Attr::Int(ceil))];
            node(op_type, 12, &attrs, inputs)
        };
        let input = || value(f32s(&[1, 1, n as i64]));
        for ceil in if mode == "VALID" { 0..1 } else { 0..2 } {
            check(&of("MaxPool", ceil, vec![input()]), &[&x], largest);
            check(&of("AveragePool", ceil, vec![input()]), &[&x], means);
        }
        let weights = Tensor::new(vec![1, 1, kernel as usize], (0..kernel).map(|k| 10f64.powi(k as i32)).collect());
        if !sums.is_empty() {
            check(&of("Conv", 0, vec![input(), value(f32s(&[1, 1, kernel]))]), &[&x, &weights], sums);
        }
    }
    // A stride longer than the kernel: convolutions pad nothing; the runtime rejects such pools,
    // and they stay opaque.
    for mode in ["SAME_UPPER", "SAME_LOWER"] {
        let attrs = [("kernel_shape", ints(&[1])), ("strides", ints(&[3])), ("auto_pad", word(mode))];
        let conv = node("Conv", 12, &attrs, vec![value(f32s(&[1, 1, 6])), value(f32s(&[1, 1, 1]))]);
        check(&conv, &[&ramp(6), &ramp(1)], &[1.0, 4.0]);
        opaque(&node("MaxPool", 12, &attrs, vec![value(f32s(&[1, 1, 6]))]));
    }
}

/// Answers of ONNX Runtime to transposed convolutions of `1, 2, 3` with `1, 10, 100, ..`.
#[test]
fn transposed_pads_answer_as_onnx_runtime() {
    let of = |mode: &str, kernel: i64, stride: i64, dilation: i64, added: i64, shape: Option<i64>| {
        let mut attrs = vec![
            ("strides", ints(&[stride])),
            ("dilations", ints(&[dilation])),
            ("output_padding", ints(&[added])),
            ("auto_pad", word(mode)),
        ];
        attrs.extend(shape.map(|s| ("output_shape", ints(&[s]))));
        node("ConvTranspose", 11, &attrs, vec![value(f32s(&[1, 1, 3])), value(f32s(&[1, 1, kernel]))])
    };
    type Row = (&'static str, [i64; 4], Option<i64>, &'static [f64]);
    let rows: [Row; 16] = [
        ("SAME_UPPER", [2, 1, 1, 0], None, &[1.0, 12.0, 23.0]),
        ("SAME_UPPER", [3, 2, 1, 0], None, &[1.0, 10.0, 102.0, 20.0, 203.0, 30.0]),
        ("SAME_UPPER", [4, 2, 1, 0], None, &[10.0, 102.0, 1020.0, 203.0, 2030.0, 300.0]),
        ("SAME_UPPER", [4, 1, 1, 0], None, &[12.0, 123.0, 1230.0]),
        ("SAME_UPPER", [3, 2, 2, 0], None, &[0.0, 12.0, 0.0, 123.0, 0.0, 230.0]),
        ("SAME_UPPER", [3, 2, 1, 1], None, &[10.0, 102.0, 20.0, 203.0, 30.0, 300.0]),
        ("SAME_UPPER", [1, 2, 1, 0], None, &[1.0, 0.0, 2.0, 0.0, 3.0]),
        ("SAME_LOWER", [2, 1, 1, 0], None, &[12.0, 23.0, 30.0]),
        ("SAME_LOWER", [3, 2, 1, 0], None, &[10.0, 102.0, 20.0, 203.0, 30.0, 300.0]),
        ("SAME_LOWER", [4, 1, 1, 0], None, &[123.0, 1230.0, 2300.0]),
        ("SAME_LOWER", [3, 2, 2, 0], None, &[12.0, 0.0, 123.0, 0.0, 230.0, 0.0]),
        ("VALID", [3, 2, 1, 1], None, &[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0, 0.0]),
        ("NOTSET", [3, 2, 1, 0], Some(4), &[102.0, 20.0, 203.0, 30.0]),
        ("NOTSET", [3, 2, 1, 0], Some(6), &[10.0, 102.0, 20.0, 203.0, 30.0, 300.0]),
        ("SAME_UPPER", [3, 2, 1, 0], Some(4), &[10.0, 102.0, 20.0, 203.0]),
        ("SAME_LOWER", [3, 2, 1, 0], Some(5), &[10.0, 102.0, 20.0, 203.0, 30.0]),
    ];
    for (mode, [kernel, stride, dilation, added], shape, want) in rows {
        let weights = Tensor::new(vec![1, 1, kernel as usize], (0..kernel).map(|k| 10f64.powi(k as i32)).collect());
        check(&of(mode, kernel, stride, dilation, added, shape), &[&ramp(3), &weights], want);
    }
    opaque(&of("NOTSET", 3, 2, 1, 0, Some(8)));
    opaque(&OnnxNode { version: 1, ..of("SAME_UPPER", 2, 1, 1, 0, None) });
    let mut symbolic = of("NOTSET", 3, 2, 1, 0, Some(6));
    symbolic.inputs[0] = value(typed(&["1", "1", "L"]));
    opaque(&symbolic);
}

#[test]
fn same_pads_of_symbolic_sizes() {
    let of = |stride: i64, size: Dim| {
        let attrs = [("strides", ints(&[stride])), ("auto_pad", word("SAME_UPPER"))];
        let x = TensorType::new(DType::F32, [Dim::from(1), Dim::from(1), size]);
        node("Conv", 13, &attrs, vec![value(x), value(f32s(&[1, 1, 3]))])
    };
    let pads = |node: &OnnxNode| operator(node).attr("pads");
    assert_eq!(pads(&of(1, Dim::symbol("L"))), Some(ints(&[1, 1])));
    assert_eq!(pads(&of(2, Dim::symbol("L") * Dim::from(2))), Some(ints(&[0, 1])));
    opaque(&of(2, Dim::symbol("L")));
}

/// For every coordinate and rounding mode, the factors up to 8 at which ONNX Runtime repeats
/// elements, on sizes up to 39.
#[test]
fn resize_modes_are_imported_only_where_they_repeat() {
    const ALL: &[i64] = &[1, 2, 3, 4, 5, 6, 7, 8];
    let rows: [(&str, [&[i64]; 4]); 6] = [
        ("asymmetric", [ALL, &[1], &[1, 2], &[1]]),
        ("half_pixel", [&[1], &[1], ALL, ALL]),
        ("pytorch_half_pixel", [&[1], &[1], ALL, ALL]),
        ("half_pixel_symmetric", [&[1], &[1], ALL, ALL]),
        ("align_corners", [&[1], &[1], &[1, 2], &[1, 2]]),
        ("tf_half_pixel_for_nn", [ALL, &[], &[1], &[]]),
    ];
    for (transform, by_rounding) in rows {
        for (rounding, factors) in ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"].iter().zip(by_rounding) {
            for version in [11, 13, 18, 19] {
                for scale in 1..=8 {
                    let attrs =
                        [("coordinate_transformation_mode", word(transform)), ("nearest_mode", word(rounding)), ("mode", word("nearest"))];
                    // Axes of size 1 and factor 1 repeat in all modes except those that never do.
                    let node = node("Resize", version, &attrs, vec![value(f32s(&[7])), floats(&[]), floats(&[scale as f64])]);
                    match import(&node) {
                        Ok((op, operands)) if op.kind() == OpKind::Upsample => {
                            assert!(factors.contains(&scale), "{transform} {rounding} by {scale}");
                            assert_eq!(op.attr("scales"), Some(ints(&[scale])));
                            assert!(matches!(operands.as_slice(), [ImportOperand::Input(0)]));
                        }
                        other => assert!(!factors.contains(&scale), "{transform} {rounding} by {scale}: {other:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn resize_inputs_of_every_version() {
    let x = || value(f32s(&[1, 2, 3, 4]));
    let floor = [("coordinate_transformation_mode", word("asymmetric")), ("nearest_mode", word("floor"))];
    let scales = |node: &OnnxNode| operator(node).attr("scales");
    let want = Some(ints(&[1, 1, 2, 3]));
    let factors = [1.0, 1.0, 2.0, 3.0];
    let listed = Attr::Floats(factors.iter().map(|f| Float(*f)).collect());
    assert_eq!(scales(&node("Upsample", 7, &[("scales", listed)], vec![x()])), want);
    assert_eq!(scales(&node("Upsample", 9, &[], vec![x(), floats(&factors)])), want);
    assert_eq!(scales(&node("Resize", 10, &[], vec![x(), floats(&factors)])), want);
    assert_eq!(scales(&node("Resize", 11, &floor, vec![x(), floats(&[]), floats(&factors)])), want);
    assert_eq!(scales(&node("Resize", 11, &floor, vec![x(), floats(&[]), floats(&[]), sizes(&[1, 2, 6, 12])])), want);
    assert_eq!(scales(&node("Resize", 13, &floor, vec![x(), None, floats(&factors)])), want);
    assert_eq!(scales(&node("Resize", 13, &floor, vec![x(), None, None, sizes(&[1, 2, 6, 12])])), want);
    let axes = [floor.as_slice(), &[("axes", ints(&[3, -2]))]].concat();
    assert_eq!(scales(&node("Resize", 18, &axes, vec![x(), None, floats(&[3.0, 2.0])])), want);
    assert_eq!(scales(&node("Resize", 19, &axes, vec![x(), None, None, sizes(&[12, 6])])), want);

    // As PyTorch 2 writes it, with every attribute: all are understood.
    let (zero, number) = (Attr::Int(0), Attr::Float(Float(0.0)));
    let every = [
        floor.as_slice(),
        &[("mode", word("nearest")), ("keep_aspect_ratio_policy", word("stretch")), ("antialias", zero.clone())],
        &[("exclude_outside", zero), ("cubic_coeff_a", Attr::Float(Float(-0.75))), ("extrapolation_value", number)],
    ];
    for inputs in [vec![x(), None, floats(&factors)], vec![x(), None, None, sizes(&[1, 2, 6, 12])]] {
        let written = node("Resize", 18, &every.concat(), inputs);
        assert_eq!(scales(&written), want);
        assert!(written.attrs.unread().is_empty(), "{:?}", written.attrs.unread());
    }

    // A shape computed from the operand's own symbolic sizes.
    let (n, l) = (Dim::symbol("N"), Dim::symbol("L"));
    let open = || value(TensorType::new(DType::F32, [n.clone(), l.clone()]));
    let computed = |dims: Vec<Dim>| Some(OnnxInput { ty: Some(TensorType::new(DType::I64, [2])), value: None, dims: Some(dims) });
    let doubled = computed(vec![n.clone(), l.clone() * Dim::from(2)]);
    assert_eq!(scales(&node("Resize", 13, &floor, vec![open(), None, None, doubled])), Some(ints(&[1, 2])));

    for (node, why) in [
        (node("Resize", 13, &floor, vec![x(), None, value(f32s(&[4]))]), "scales computed at run time"),
        (node("Resize", 13, &floor, vec![x()]), "neither scales nor sizes"),
        (node("Upsample", 1, &[("width_scale", Attr::Float(Float(2.0)))], vec![x()]), "opset 1"),
    ] {
        assert!(import(&node).is_err(), "{why}: {node:?}");
    }
    let kept = [floor.as_slice(), &[("keep_aspect_ratio_policy", word("not_larger"))]].concat();
    for (node, why) in [
        (node("Resize", 13, &floor, vec![x(), None, floats(&[1.0, 1.0, 1.5, 2.0])]), "a fractional factor"),
        (node("Resize", 13, &floor, vec![x(), None, floats(&[1.0, 1.0, 0.5, 2.0])]), "a shrinking factor"),
        (node("Resize", 13, &floor, vec![x(), None, None, sizes(&[1, 2, 7, 12])]), "a size that is no multiple"),
        (node("Resize", 13, &floor, vec![open(), None, None, sizes(&[2, 4])]), "sizes for symbols"),
        (node("Resize", 13, &[("mode", word("linear"))], vec![x(), None, floats(&factors)]), "linear"),
        (node("Resize", 13, &[("nearest_mode", word("ceil"))], vec![x(), None, floats(&factors)]), "ceil"),
        (node("Resize", 18, &kept, vec![x(), None, None, sizes(&[1, 2, 6, 8])]), "an aspect ratio that is kept"),
        (node("Upsample", 9, &[("mode", word("linear"))], vec![x(), floats(&factors)]), "linear"),
    ] {
        assert_eq!(operator(&node).kind(), OpKind::Resize, "{why}");
    }
    // Each axis keeps its size.
    let same = computed(vec![n.clone(), l.clone()]);
    for (inputs, mode) in [(vec![x(), None, None, sizes(&[1, 2, 3, 4])], "cubic"), (vec![open(), None, None, same], "linear")] {
        assert_eq!(operator(&node("Resize", 18, &[("mode", word(mode))], inputs)).kind(), OpKind::Identity, "{mode}");
    }
}

#[test]
fn unusual_nodes_stay_opaque() {
    let x = || value(f32s(&[1, 4, 8, 8]));
    let c = || value(f32s(&[4]));
    let batch = || vec![x(), c(), c(), c(), c()];
    let used_twice = |node: OnnxNode| OnnxNode { outputs: vec![true, true], ..node };
    let pool = [("kernel_shape", ints(&[2, 2]))];
    let conv = |attrs: &[(&str, Attr)]| node("Conv", 13, attrs, vec![x(), value(f32s(&[4, 4, 3, 3]))]);
    for node in [
        used_twice(node("MaxPool", 12, &pool, vec![x()])),
        node("MaxPool", 12, &[], vec![x()]),
        node("MaxPool", 12, &[("kernel_shape", ints(&[2, 2])), ("dilations", ints(&[2, 2])), ("auto_pad", word("SAME_UPPER"))], vec![x()]),
        node("AveragePool", 12, &[("kernel_shape", ints(&[2, 2])), ("ceil_mode", Attr::Int(1)), ("auto_pad", word("VALID"))], vec![x()]),
        node("AveragePool", 12, &[("kernel_shape", ints(&[2, 2])), ("auto_pad", word("SIDEWAYS"))], vec![x()]),
        node("AveragePool", 12, &[("kernel_shape", ints(&[2, 2])), ("strides", ints(&[2]))], vec![x()]),
        conv(&[("kernel_shape", ints(&[5, 5]))]),
        conv(&[("pads", ints(&[1, 1, 1, 1])), ("auto_pad", word("SAME_UPPER"))]),
        conv(&[("dilations", ints(&[2, 2])), ("auto_pad", word("SAME_UPPER"))]),
        node("Conv", 13, &[], vec![x(), value(typed(&["4", "4", "K", "3"]))]),
        node("Conv", 13, &[], vec![x(), None]),
        used_twice(node("BatchNormalization", 13, &[], batch())),
        node("BatchNormalization", 14, &[("training_mode", Attr::Int(1))], batch()),
        node("BatchNormalization", 7, &[("spatial", Attr::Int(0))], batch()),
        node("BatchNormalization", 6, &[("is_test", Attr::Int(0))], batch()),
        node("BatchNormalization", 6, &[], batch()),
        used_twice(node("LayerNormalization", 17, &[], vec![x(), value(f32s(&[8]))])),
        node("LayerNormalization", 17, &[("stash_type", Attr::Int(11))], vec![x(), value(f32s(&[8]))]),
        node("LayerNormalization", 17, &[("axis", Attr::Int(4))], vec![x(), value(f32s(&[8]))]),
        node("GroupNormalization", 18, &[("num_groups", Attr::Int(2))], vec![x(), value(f32s(&[2])), value(f32s(&[2]))]),
        node("GroupNormalization", 21, &[], vec![x(), c(), c()]),
        node("LRN", 13, &[], vec![x()]),
        node("DepthToSpace", 13, &[("blocksize", Attr::Int(2)), ("mode", word("RDC"))], vec![x()]),
        node("DepthToSpace", 13, &[], vec![x()]),
        node("Einsum", 12, &[("equation", word("...ij->ji"))], vec![x()]),
        node("Einsum", 12, &[("equation", word("ijklm...->i"))], vec![x()]),
        node("Einsum", 12, &[], vec![x()]),
        node("Gemm", 11, &[], vec![value(f32s(&[2, 2]).with_dtype(DType::I32)), value(f32s(&[2, 2]).with_dtype(DType::I32))]),
        node("Gemm", 6, &[], vec![value(f32s(&[2, 2])), value(f32s(&[2, 2])), value(f32s(&[2]))]),
    ] {
        opaque(&node);
    }
    for node in [
        node("BatchNormalization", 6, &[("is_test", Attr::Int(1)), ("consumed_inputs", ints(&[0, 0, 0, 1, 1]))], batch()),
        node("BatchNormalization", 7, &[("spatial", Attr::Int(1)), ("momentum", Attr::Float(Float(0.9)))], batch()),
        node("Gemm", 6, &[("broadcast", Attr::Int(1))], vec![value(f32s(&[2, 2])), value(f32s(&[2, 2])), value(f32s(&[2]))]),
        OnnxNode { outputs: vec![true, false], ..node("MaxPool", 12, &pool, vec![x()]) },
        node("Einsum", 12, &[("equation", word("...ij->...ji"))], vec![x()]),
    ] {
        operator(&node);
    }
}

#[test]
fn scales_per_group_are_spread_over_channels() {
    let attrs = [("num_groups", Attr::Int(2))];
    let node = node("GroupNormalization", 18, &attrs, vec![value(f32s(&[1, 4, 2])), floats(&[1.0, 2.0]), floats(&[0.0, 1.0])]);
    let (op, operands) = import(&node).unwrap();
    let [ImportOperand::Input(0), ImportOperand::Const(scale), ImportOperand::Const(bias)] = operands.as_slice() else {
        panic!("{operands:?}");
    };
    assert_eq!((scale.to_f64(), bias.to_f64()), (Some(vec![1.0, 1.0, 2.0, 2.0]), Some(vec![0.0, 0.0, 1.0, 1.0])));
    // ONNX Runtime's answer for 1, 2, .., 8.
    let want = [-1.341_635_5, -0.447_211_83, 0.447_211_83, 1.341_635_5, -1.683_270_9, 0.105_576_34, 1.894_423_7, 3.683_270_9];
    let vector = |c: &Const| Tensor::new(vec![4], c.to_f64().unwrap());
    let found = run(&op, &[&crate::naive::counted(&[1, 4, 2]), &vector(scale), &vector(bias)]).unwrap();
    close(&found, &Tensor::new(vec![1, 4, 2], want.to_vec()), 1e-6, "two groups");
}

#[test]
fn the_zero_that_stands_in_for_an_addend_of_gemm_is_none() {
    let matrix = || value(f32s(&[2, 2]));
    let of = |opset: i64, c: Option<OnnxInput>, beta: f64| {
        let (op, operands) = import(&node("Gemm", opset, &[("beta", Attr::Float(Float(beta)))], vec![matrix(), matrix(), c])).unwrap();
        (op.attr("beta"), operands.len())
    };
    let (without, with) = ((Some(Attr::Float(Float(1.0))), 2), (Some(Attr::Float(Float(0.5))), 3));
    assert_eq!(of(9, floats(&[0.0]), 0.5), without);
    assert_eq!(of(11, floats(&[0.0]), 0.5), with);
    assert_eq!(of(9, floats(&[0.0, 0.0]), 0.5), with);
    assert_eq!(of(9, floats(&[0.0, 1.0]), 0.5), with);
    assert_eq!(of(9, value(f32s(&[2])), 0.5), with);
}

/// Absurd numbers are refused or carried; they never cause a panic.
#[test]
fn absurd_attributes_do_no_harm() {
    let extremes = [i64::MIN, -1, 0, 1, 2, 1 << 30, (1 << 30) + 1, 1 << 40, i64::MAX];
    for big in extremes {
        for size in extremes.into_iter().filter(|s| *s >= 0) {
            let x = || value(f32s(&[1, size, size]));
            let w = || value(f32s(&[size, 1, size]));
            let all = [
                ("kernel_shape", ints(&[big])),
                ("strides", ints(&[big])),
                ("dilations", ints(&[big])),
                ("output_padding", ints(&[big])),
                ("output_shape", ints(&[big])),
                ("size", Attr::Int(big)),
                ("num_groups", Attr::Int(big)),
                ("group", Attr::Int(big)),
                ("blocksize", Attr::Int(big)),
                ("axis", Attr::Int(big)),
            ];
            for mode in ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"] {
                let attrs = [all.as_slice(), &[("auto_pad", word(mode)), ("ceil_mode", Attr::Int(i64::from(big > 0)))]].concat();
                let vector = || floats(&[1.0]);
                let nodes = [
                    node("Conv", 13, &attrs, vec![x(), w()]),
                    node("ConvTranspose", 13, &attrs, vec![x(), w()]),
                    node("MaxPool", 13, &attrs, vec![x()]),
                    node("AveragePool", 19, &attrs, vec![x()]),
                    node("LRN", 13, &attrs, vec![x()]),
                    node("GroupNormalization", 18, &attrs, vec![x(), vector(), vector()]),
                    node("LayerNormalization", 17, &attrs, vec![x(), vector()]),
                    node("DepthToSpace", 13, &attrs, vec![value(f32s(&[1, size, size, size]))]),
                    node("SpaceToDepth", 13, &attrs, vec![value(f32s(&[1, size, size, size]))]),
                    node("Resize", 13, &[], vec![value(f32s(&[size])), None, floats(&[big as f64])]),
                    node("Resize", 13, &[], vec![value(f32s(&[size])), None, None, sizes(&[big])]),
                ];
                for node in &nodes {
                    let Ok((op, operands)) = import(node) else { continue };
                    let types: Vec<TensorType> = operands
                        .iter()
                        .filter_map(|operand| match operand {
                            ImportOperand::Input(at) => node.inputs[*at].as_ref().and_then(|i| i.ty.clone()),
                            ImportOperand::Const(c) => Some(c.ty()),
                            ImportOperand::Node(_) => None,
                        })
                        .collect();
                    if let Ok(results) = op.infer(&types) {
                        assert!(results[0].shape.iter().all(|d| d.known().is_some_and(|v| v >= 0)), "{op:?} on {types:?}: {}", results[0]);
                    }
                }
            }
        }
    }
}
