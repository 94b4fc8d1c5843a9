//! Normalizations against their formulas.

use regraft_ir::{Attr, DType, Tensor, TensorType};

use crate::common::{Random, f32s, float, op, round_trip};
use crate::naive::{check_symbolic, close, counted, run, signed, tensor, typed};

const EPSILON: f32 = 0.25;

fn moments(items: &[f64]) -> (f64, f64) {
    let n = items.len() as f64;
    let mean = items.iter().sum::<f64>() / n;
    (mean, items.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

fn normalized(items: &[f64]) -> Vec<f64> {
    let (mean, variance) = moments(items);
    items.iter().map(|x| (x - mean) / (variance + f64::from(EPSILON)).sqrt()).collect()
}

/// `v` scaled and shifted by the channel of each element.
fn per_channel(shape: &[usize], v: &[f64], scale: &[f64], bias: &[f64]) -> Tensor<f64> {
    let plane: usize = shape[2..].iter().product();
    let channel = |i: usize| i / plane % shape[1];
    Tensor::new(shape.to_vec(), v.iter().enumerate().map(|(i, x)| x * scale[channel(i)] + bias[channel(i)]).collect())
}

#[test]
fn batch_normalization_matches_its_formula() {
    let mut random = Random::new(11);
    let op = op("BatchNormalization", &[("epsilon", float(EPSILON))]);
    for shape in [vec![2, 3], vec![1, 4, 5], vec![2, 3, 2, 3], vec![2, 2, 1, 2, 3], vec![0, 2, 3]] {
        let c = shape[1];
        let [x, scale, bias, mean] = [shape.as_slice(), &[c], &[c], &[c]].map(|s| tensor(&mut random, s));
        let variance = Tensor::new(vec![c as usize], (0..c).map(|i| 0.5 + i as f64).collect());
        let plane: usize = x.shape[2..].iter().product();
        let unscaled: Vec<f64> = (x.data.iter().enumerate())
            .map(|(i, v)| {
                let c = i / plane % x.shape[1];
                (v - mean.data[c]) / (variance.data[c] + f64::from(EPSILON)).sqrt()
            })
            .collect();
        let want = per_channel(&x.shape, &unscaled, &scale.data, &bias.data);
        close(&run(&op, &[&x, &scale, &bias, &mean, &variance]).unwrap(), &want, 1e-12, &format!("{shape:?}"));
        let shapes = vec![shape, vec![c], vec![c], vec![c], vec![c]];
        check_symbolic(&op, &shapes, &[0]);
        assert_eq!(round_trip(&op, &shapes.iter().map(|s| f32s(s)).collect::<Vec<_>>()), (7..=21).collect::<Vec<_>>());
    }
    assert!(op.infer(&[f32s(&[2, 3]), f32s(&[3]), f32s(&[3]), f32s(&[3]), f32s(&[2])]).is_err());
    assert!(op.infer(&[f32s(&[2, 3]), f32s(&[3]), f32s(&[3])]).is_err());
    assert!(op.infer(&[typed(&["N", "C"]), typed(&["C"]), typed(&["C"]), typed(&["C"]), typed(&["C"])]).is_ok());
}

#[test]
fn instance_and_group_normalization_match_their_formulas() {
    let mut random = Random::new(12);
    for (shape, groups) in [
        (vec![2, 3, 5], 3),
        (vec![1, 6, 2, 3], 2),
        (vec![2, 6, 4], 6),
        (vec![2, 4, 1, 2, 3], 1),
        (vec![1, 2, 30, 31], 2),
        (vec![0, 2, 3], 1),
    ] {
        let c = shape[1];
        let [x, scale, bias] = [shape.as_slice(), &[c], &[c]].map(|s| tensor(&mut random, s));
        let image: usize = x.shape[1..].iter().product();
        let shapes = [shape.clone(), vec![c], vec![c]];
        let types: Vec<TensorType> = shapes.iter().map(|s| f32s(s)).collect();
        let group_op = op("GroupNormalization", &[("num_groups", Attr::Int(groups)), ("epsilon", float(EPSILON))]);
        let instance_op = op("InstanceNormalization", &[("epsilon", float(EPSILON))]);
        let first = if groups == c { 18 } else { 21 };
        for (op, groups, first) in [(&group_op, groups, first), (&instance_op, c, 7)] {
            let unscaled: Vec<f64> = x.data.chunks(image / groups as usize).flat_map(normalized).collect();
            let want = per_channel(&x.shape, &unscaled, &scale.data, &bias.data);
            close(&run(op, &[&x, &scale, &bias]).unwrap(), &want, 1e-9, &format!("{op:?} on {shape:?}"));
            check_symbolic(op, &shapes, &[0, 2]);
            assert_eq!(round_trip(op, &types), (first..=21).collect::<Vec<_>>());
        }
    }
    let op = op("GroupNormalization", &[("num_groups", Attr::Int(4)), ("epsilon", float(EPSILON))]);
    assert!(op.infer(&[f32s(&[1, 6, 2]), f32s(&[6]), f32s(&[6])]).is_err(), "4 groups of 6 channels");
}

#[test]
fn layer_normalization_matches_its_formula() {
    let mut random = Random::new(13);
    for (shape, axis, scale, bias) in [
        (vec![2, 3, 4], 2, vec![4], Some(vec![4])),
        (vec![2, 3, 4], 1, vec![3, 4], Some(vec![3, 4])),
        (vec![2, 3, 4], 1, vec![4], None),
        (vec![2, 3, 4], 1, vec![3, 1], Some(vec![1, 1, 4])),
        (vec![3, 2], 0, vec![3, 1], Some(vec![])),
        (vec![2, 300], 1, vec![300], None),
        (vec![0, 4], 1, vec![4], None),
    ] {
        let x = tensor(&mut random, &shape);
        let run_of: usize = x.shape[axis as usize..].iter().product();
        let mut want = Tensor::new(x.shape.clone(), x.data.chunks(run_of).flat_map(normalized).collect());
        let scale_t = tensor(&mut random, &scale);
        let bias_t = bias.as_ref().map(|b| tensor(&mut random, b));
        let factor = scale_t.broadcast_index(&x.shape);
        want.data.iter_mut().zip(factor).for_each(|(v, i)| *v *= scale_t.data[i]);
        if let Some(b) = &bias_t {
            want.data.iter_mut().zip(b.broadcast_index(&x.shape)).for_each(|(v, i)| *v += b.data[i]);
        }
        let op = op("LayerNormalization", &[("axis", Attr::Int(axis)), ("epsilon", float(EPSILON))]);
        let mut operands = vec![&x, &scale_t];
        operands.extend(&bias_t);
        close(&run(&op, &operands).unwrap(), &want, 1e-9, &format!("{op:?} on {shape:?}"));
        let types: Vec<TensorType> = operands.iter().map(|t| f32s(&signed(&t.shape))).collect();
        assert_eq!(round_trip(&op, &types), (17..=21).collect::<Vec<_>>());
    }
    let op = op("LayerNormalization", &[("axis", Attr::Int(1)), ("epsilon", float(EPSILON))]);
    for types in [
        [f32s(&[2, 4]), f32s(&[3])],
        [f32s(&[1, 4]), f32s(&[2, 4])],
        [f32s(&[4]), f32s(&[4])],
        [f32s(&[2, 4]), f32s(&[4]).with_dtype(DType::F64)],
    ] {
        assert!(op.infer(&types).is_err(), "{types:?}");
    }
}

#[test]
fn lrn_matches_its_formula_and_onnx_runtime() {
    let lrn = |size: i64, alpha: f32, beta: f32, bias: f32| {
        op("LRN", &[("size", Attr::Int(size)), ("alpha", float(alpha)), ("beta", float(beta)), ("bias", float(bias))])
    };
    let mut random = Random::new(14);
    for (shape, size) in [(vec![2, 7, 3], 5), (vec![1, 5, 2, 3], 2), (vec![1, 6, 2, 2], 4), (vec![2, 2, 3], 9), (vec![1, 4, 3, 1, 2], 1)] {
        let x = tensor(&mut random, &shape);
        let plane: usize = x.shape[2..].iter().product();
        let channels = shape[1];
        let value = |i: usize| {
            let (head, c, p) = (i / plane / channels as usize, (i / plane) as i64 % channels, i % plane);
            let (low, high) = ((c - (size - 1) / 2).max(0), (c + (size - 1) - (size - 1) / 2).min(channels - 1));
            let squares: f64 = (low..=high).map(|c| x.data[(head * channels as usize + c as usize) * plane + p].powi(2)).sum();
            x.data[i] / (1.5 + 0.5 / size as f64 * squares).powf(0.75)
        };
        let want = Tensor::new(x.shape.clone(), (0..x.data.len()).map(value).collect());
        let op = lrn(size, 0.5, 0.75, 1.5);
        close(&run(&op, &[&x]).unwrap(), &want, 1e-12, &format!("size {size} on {shape:?}"));
        assert_eq!(round_trip(&op, &[f32s(&shape)]), (7..=21).collect::<Vec<_>>());
    }
    // ONNX Runtime's answers for 1, 2, .., 6 channels.
    for (size, want) in [
        (1, [0.666_666_69, 0.666_666_69, 0.545_454_56, 0.444_444_45, 0.370_370_39, 0.315_789_46]),
        (3, [0.545_454_56, 0.600_000_02, 0.514_285_68, 0.428_571_43, 0.361_445_81, 0.537_313_46]),
        (5, [0.416_666_66, 0.5, 0.461_538_49, 0.400_000_01, 0.520_833_31, 0.689_655_13]),
    ] {
        let found = run(&lrn(size, 0.5, 1.0, 1.0), &[&counted(&[1, 6, 1, 1])]).unwrap();
        close(&found, &Tensor::new(vec![1, 6, 1, 1], want.to_vec()), 1e-7, &format!("size {size}"));
    }
}
