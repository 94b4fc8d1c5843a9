//! Resize against ONNX Runtime's own numbers: values, ONNX round trips, and which nodes stay
//! opaque.

mod common;

use common::{eval, f32s, import, op, reals, round_trip};
use regraft_ir::onnx::{ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, Const, DType, Dim, Float, Op, TensorType, TypeError, Value};

const CASES: &str = include_str!("ops_resize/onnxruntime.txt");
const NODE_TESTS: &str = include_str!("ops_resize/onnx.txt");

fn numbers(field: &str) -> Option<Vec<f64>> {
    (field != "-").then(|| field.split(',').map(|v| v.parse().unwrap()).collect())
}

fn whole(field: &str) -> Option<Vec<i64>> {
    numbers(field).map(|v| v.into_iter().map(|v| v as i64).collect())
}

fn constant(value: Const) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(value.ty()), value: Some(value), dims: None })
}

fn floats(values: &[f64]) -> Option<OnnxInput> {
    constant(Const::from_f64(DType::F32, &[values.len() as i64], values).unwrap())
}

fn integers(values: &[i64]) -> Option<OnnxInput> {
    constant(Const::from_i64(DType::I64, &[values.len() as i64], values).unwrap())
}

fn word(text: &str) -> Attr {
    Attr::Str(text.into())
}

fn node(op_type: &str, version: i64, attrs: &[(&str, Attr)], inputs: Vec<Option<OnnxInput>>) -> OnnxNode {
    let attrs = attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    OnnxNode { op_type: op_type.into(), domain: String::new(), version, attrs, inputs, outputs: vec![true] }
}

fn open(ty: TensorType) -> Option<OnnxInput> {
    Some(OnnxInput { ty: Some(ty), value: None, dims: None })
}

/// A line of the table: the node, the operand's shape, the result's, and its elements.
fn case(line: &str) -> (OnnxNode, Vec<i64>, Vec<i64>, Vec<f64>) {
    let fields: Vec<&str> = line.split(' ').take(17).collect();
    let [name, opset, mode, coordinates, nearest, smooth, exclude, a, outside, policy, x, axes, scales, sizes, roi, y, elements] =
        fields[..]
    else {
        panic!("{line}")
    };
    let version: i64 = opset.parse().unwrap();
    let number = |text: &str| Attr::Float(Float(text.parse().unwrap()));
    let flag = |text: &str| Attr::Int(text.parse().unwrap());
    let shape = whole(x).unwrap();
    let mut attrs = vec![("mode", word(mode))];
    if version >= 11 {
        attrs.extend([("coordinate_transformation_mode", word(coordinates)), ("nearest_mode", word(nearest))]);
        attrs.extend([("exclude_outside", flag(exclude)), ("cubic_coeff_a", number(a)), ("extrapolation_value", number(outside))]);
    }
    if version >= 18 {
        attrs.extend([("antialias", flag(smooth)), ("keep_aspect_ratio_policy", word(policy))]);
        attrs.extend(whole(axes).map(|axes| ("axes", Attr::Ints(axes))));
    }
    let scales = numbers(scales).map(|v| v.into_iter().map(|v| f64::from(v as f32)).collect::<Vec<f64>>());
    let mut inputs = vec![open(f32s(&shape))];
    match version {
        ..9 => attrs.push(("scales", Attr::Floats(scales.unwrap().into_iter().map(Float).collect()))),
        9 | 10 => inputs.push(floats(&scales.unwrap())),
        _ => {
            let roi = numbers(roi);
            inputs.push(if roi.is_none() && version >= 13 { None } else { floats(&roi.unwrap_or_default()) });
            inputs.push(scales.map_or_else(|| if version < 13 { floats(&[]) } else { None }, |scales| floats(&scales)));
            inputs.extend(whole(sizes).map(|sizes| integers(&sizes)));
        }
    }
    (node(name, version, &attrs, inputs), shape, whole(y).unwrap(), numbers(elements).unwrap())
}

fn operand(shape: &[i64]) -> Value<f64> {
    let count = shape.iter().product::<i64>() as usize;
    let sizes: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
    reals(&sizes, &(0..count).map(|i| ((i * 7 % 11) as f64 - 5.0) / 2.0).collect::<Vec<f64>>())
}

#[test]
fn values_are_those_of_the_runtime() {
    let (mut defined, mut resized) = (0, 0);
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let (node, shape, result, elements) = case(line);
        let op = match import(&node) {
            Ok((op, _)) => op,
            Err(_) => continue,
        };
        defined += 1;
        let types = [f32s(&shape)];
        assert_eq!(op.infer(&types), Ok(vec![f32s(&result)]), "{line}");
        let Value::Real(found) = eval(&op, &types, &[operand(&shape)], &Bindings::new()).unwrap().remove(0) else { panic!("{line}") };
        for (at, (found, wanted)) in found.data.iter().zip(&elements).enumerate() {
            assert!((found - wanted).abs() <= 1e-5, "element {at} is {found} and not {wanted}: {line}");
        }
        if let Op::Resize(_) = op {
            resized += 1;
            assert!(round_trip(&op, &types).contains(&node.version.min(21)), "{line}");
        }
    }
    assert!(defined >= 95 && resized >= 80, "{defined} of them are defined, {resized} as Resize");
}

#[test]
fn node_tests_agree() {
    let (mut defined, mut opaque) = (0, Vec::new());
    for line in NODE_TESTS.lines().filter(|line| !line.starts_with('#')) {
        let (node, shape, result, elements) = case(line);
        let (op, _) = match import(&node) {
            Ok(found) => found,
            Err(why) => {
                opaque.push(format!("{why}: {line}"));
                continue;
            }
        };
        defined += 1;
        let types = [f32s(&shape)];
        assert_eq!(op.infer(&types), Ok(vec![f32s(&result)]), "{line}");
        let sizes: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
        let x = reals(&sizes, &line.rsplit(' ').next().and_then(numbers).unwrap());
        let Value::Real(found) = eval(&op, &types, &[x], &Bindings::new()).unwrap().remove(0) else { panic!("{line}") };
        for (at, (found, wanted)) in found.data.iter().zip(&elements).enumerate() {
            assert!((found - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "element {at} is {found} and not {wanted}: {line}");
        }
    }
    // Corners of sizes that a factor rounds, on which the runtime differs, and what else is not
    // decided.
    assert!(defined >= 30, "{defined} are defined, and not\n{}", opaque.join("\n"));
}

#[test]
fn open_sizes() {
    let linear = [("mode", word("linear"))];
    let images = |h: Dim| TensorType::new(DType::F32, [Dim::symbol("N"), 3.into(), h.clone(), h]);
    let doubled = node("Resize", 13, &linear, vec![open(images(Dim::symbol("H"))), None, floats(&[1.0, 1.0, 2.0, 2.0])]);
    let (op, operands) = import(&doubled).unwrap();
    assert!(matches!(operands.as_slice(), [ImportOperand::Input(0)]));
    assert_eq!(op.infer(&[images(Dim::symbol("H"))]), Ok(vec![images(Dim::symbol("H") * Dim::from(2))]));
    let bindings = Bindings::from([("N".to_string(), 1), ("H".to_string(), 2)]);
    eval(&op, &[images(Dim::symbol("H"))], &[operand(&[1, 3, 2, 2])], &bindings).unwrap();
    // The batch keeps its size, whatever it is.
    let input = open(images(8.into()));
    let batch = OnnxInput {
        ty: Some(TensorType::new(DType::I64, [4])),
        value: None,
        dims: Some([Dim::symbol("N"), 3.into(), 5.into(), 11.into()].to_vec()),
    };
    let (op, _) = import(&node("Resize", 13, &linear, vec![input, None, None, Some(batch)])).unwrap();
    assert_eq!(op.attr("axes"), Some(Attr::Ints(vec![2, 3])));
    assert_eq!(round_trip(&op, &[images(8.into())]), (11..=21).collect::<Vec<i64>>());
    // Where the size is open, rounding may decide which position is nearest.
    for (nearest, defined) in [("round_prefer_ceil", false), ("floor", true)] {
        let attrs = [("nearest_mode", word(nearest))];
        let attrs = [attrs.as_slice(), &[("axes", Attr::Ints(vec![2, 3]))]].concat();
        let shrunk = node("Resize", 18, &attrs, vec![open(images(Dim::symbol("H"))), None, None, integers(&[5, 5])]);
        assert_eq!(import(&shrunk).is_ok(), defined, "{nearest}");
    }
}

#[test]
fn what_runtimes_and_the_standard_do_not_agree_on_stays_opaque() {
    let x = || open(f32s(&[1, 2, 5, 7]));
    let crop = |roi: &[f64], scales: &[f64]| {
        node("Resize", 13, &[("coordinate_transformation_mode", word("tf_crop_and_resize"))], vec![x(), floats(roi), floats(scales)])
    };
    let by = |attrs: &[(&str, Attr)], scales: &[f64]| node("Resize", 18, attrs, vec![x(), None, floats(scales)]);
    let linear = ("mode", word("linear"));
    let mapped = |name: &str| ("coordinate_transformation_mode", word(name));
    assert!(import(&crop(&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 1.0], &[1.0, 1.0, 2.0, 2.0])).is_ok());
    for (node, why) in [
        (crop(&[0.0, 0.5, 0.0, 0.0, 1.0, 1.0, 0.5, 1.0], &[1.0, 1.0, 2.0, 2.0]), "crops channels without resizing them"),
        (crop(&[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 1.0], &[1.0, 1.0, 1.5, 1.5]), "crops by a factor that is rounded"),
        (by(&[linear.clone(), mapped("align_corners")], &[1.0, 1.0, 1.5, 1.5]), "corners by a factor that is rounded"),
        (by(&[linear.clone(), mapped("pytorch_half_pixel"), ("antialias", Attr::Int(1))], &[1.0, 1.0, 0.2, 1.0]), "a single position"),
        (by(&[linear.clone(), mapped("tf_half_pixel_for_nn")], &[1.0, 1.0, 2.0, 2.0]), "half a pixel aside"),
        (by(std::slice::from_ref(&linear), &[1.0, 1.0, 1.125, 2.0]), "a size that stays"),
        (by(std::slice::from_ref(&linear), &[1.0, 2.0, 2.0, 2.0]), "three axes"),
        (by(&[("mode", word("cubic"))], &[2.0, 2.0, 1.0, 1.0]), "batches interpolated"),
        (by(&[("antialias", Attr::Int(1))], &[1.0, 1.0, 0.5, 0.5]), "smoothed, but nearest"),
        (by(&[linear.clone(), ("exclude_outside", Attr::Int(1))], &[1.0, 1.0, 0.5, 0.5]), "excludes nothing"),
        (by(&[("mode", word("quintic"))], &[1.0, 1.0, 0.5, 0.5]), "no mode"),
        (by(std::slice::from_ref(&linear), &[1.0, 1.0, f64::NAN, 0.5]), "no factor"),
        (by(std::slice::from_ref(&linear), &[1.0, 1.0, -2.0, 0.5]), "a negative factor"),
        (by(std::slice::from_ref(&linear), &[1.0, 1.0, 1e30, 0.5]), "a huge factor"),
        (by(std::slice::from_ref(&linear), &[1.0, 1.0, 0.1, 1.0]), "an empty result"),
        (node("Resize", 10, &[], vec![x(), floats(&[1.0, 1.0, 0.5, 0.5])]), "nearest, before it was said which it is"),
        (node("Resize", 13, std::slice::from_ref(&linear), vec![x(), None, None, open(TensorType::new(DType::I64, [4]))]), "open sizes"),
    ] {
        assert!(import(&node).is_err(), "{why}");
    }
    let bytes = TensorType::new(DType::U8, [1, 2, 5, 7]);
    let scales = || floats(&[1.0, 1.0, 1.5, 1.5]);
    assert!(import(&node("Resize", 18, std::slice::from_ref(&linear), vec![open(bytes.clone()), None, scales()])).is_err());
    let (nearest, _) = import(&node("Resize", 18, &[("nearest_mode", word("floor"))], vec![open(bytes), None, scales()])).unwrap();
    assert!(nearest.infer(&[f32s(&[3])]).is_err());
    assert!(matches!(op_of("linear").infer(&[TensorType::new(DType::I32, [1, 4])]), Err(TypeError::Invalid(_))));
}

/// By one and a half along the second axis.
fn op_of(mode: &str) -> Op {
    let none = || Attr::Ints(vec![]);
    op(
        "resize",
        &[
            ("axes", Attr::Ints(vec![1])),
            ("sizes", none()),
            ("scales", Attr::Floats(vec![Float(1.5)])),
            ("keep_aspect_ratio_policy", word("stretch")),
            ("mode", word(mode)),
            ("coordinate_transformation_mode", word("half_pixel")),
            ("nearest_mode", word("floor")),
            ("cubic_coeff_a", Attr::Float(Float(-0.75))),
            ("exclude_outside", Attr::Bool(false)),
            ("antialias", Attr::Bool(false)),
            ("roi", none()),
            ("extrapolation_value", Attr::Float(Float(0.0))),
        ],
    )
}
