//! Quantized layers as tools write them: products and convolutions of 8-bit integers, and reals
//! that are quantized and dequantized around others. Scales are powers of two, so that quotients
//! and sums are exact.

use regraft_ir::DType;

use super::attribute::{int, ints};
use super::draft::{Draft, Val};
use super::size::Size;

/// The first opset with scales per axis.
const SINCE_AXIS: i64 = 13;
/// Largest magnitude of weights: pairs of their products with unsigned bytes fit 16 bits.
const LARGEST_WEIGHT: i64 = 20;

/// Quantization of reals away from halves, and weights stored as integers.
pub fn pointwise(d: &mut Draft) -> Option<Val> {
    if !possible(d) {
        return None;
    }
    let scale = d.constant(DType::F32, &[], &[0.3]);
    let zero = d.constant(DType::U8, &[], &[20.0]);
    if d.random.once_in(2) {
        let x = halves(d)?;
        let q = d.emit("QuantizeLinear", &[&x, &scale, &zero], vec![], DType::U8, x.dims.clone(), 40.0);
        return Some(d.emit("DequantizeLinear", &[&q, &scale, &zero], vec![], DType::F32, x.dims.clone(), x.mag));
    }
    let x = d.real(2..=4)?;
    let last = x.dims[x.rank() - 1].known()?;
    let values: Vec<f64> = (0..last).map(|_| d.random.int(17, 23) as f64).collect();
    let stored = d.constant(DType::U8, &[last], &values);
    let w = d.emit("DequantizeLinear", &[&stored, &scale, &zero], vec![], DType::F32, stored.dims.clone(), 1.0);
    d.mul(&x, &w)
}

/// A matrix product of integers, scaled or not, or of dequantized ones.
pub fn product(d: &mut Draft) -> Option<Val> {
    let x = bytes(d, 2..=3)?;
    let (inner, columns) = (x.dims[x.rank() - 1].known()?, d.random.int(1, 5));
    let mut dims = x.dims.clone();
    *dims.last_mut()? = Size::fixed(columns);
    let (w, weight) = weights(d, &[inner, columns]);
    let (zero, zeros) = (byte(d, DType::U8), zero_points(d, weight, columns, true));
    let mag = inner as f64 * 200.0;
    match d.random.below(3) {
        0 => {
            let y = match d.random.below(3) {
                0 => d.emit("MatMulInteger", &[&x, &w], vec![], DType::I32, dims, mag),
                1 => d.emit("MatMulInteger", &[&x, &w, &Val::none(), &zeros], vec![], DType::I32, dims, mag),
                _ => d.emit("MatMulInteger", &[&x, &w, &zero, &zeros], vec![], DType::I32, dims, mag),
            };
            real_again(d, &y)
        }
        1 => {
            let (a, b, c) = (scale(d), scales(d, columns, true), d.constant(DType::F32, &[], &[4.0]));
            let to = byte(d, DType::U8);
            let y = d.emit("QLinearMatMul", &[&x, &a, &zero, &w, &b, &zeros, &c, &to], vec![], DType::U8, dims, 255.0);
            dequantized(d, &y)
        }
        _ => {
            let x = dequantized(d, &x)?;
            let w = dequantized_weights(d, &w, 1, columns)?;
            let y = d.emit("MatMul", &[&x, &w], vec![], DType::F32, dims, mag / 8.0);
            quantized(d, &y)
        }
    }
}

/// A convolution of integers, scaled or not, or of dequantized ones.
pub fn convolution(d: &mut Draft) -> Option<Val> {
    let x = bytes(d, 4..=4)?;
    let (channels, results) = (x.dims[1].known()?, d.random.pick(&[2, 4]));
    let (group, kernel) = (if channels % 2 == 0 { d.random.pick(&[1, 2]) } else { 1 }, d.random.pick(&[1, 3]));
    let mut dims = x.dims.clone();
    dims[1] = Size::fixed(results);
    let attributes = vec![ints("pads", &[kernel / 2; 4]), int("group", group)];
    let inner = channels / group;
    let (w, weight) = weights(d, &[results, inner, kernel, kernel]);
    let zero = byte(d, DType::U8);
    let mag = (inner * kernel * kernel) as f64 * 200.0;
    match d.random.below(3) {
        0 => {
            let zeros = byte(d, weight);
            let y = match d.random.below(2) {
                0 => d.emit("ConvInteger", &[&x, &w, &zero], attributes, DType::I32, dims, mag),
                _ => d.emit("ConvInteger", &[&x, &w, &zero, &zeros], attributes, DType::I32, dims, mag),
            };
            real_again(d, &y)
        }
        1 => {
            let (a, b, c) = (scale(d), scales(d, results, true), d.constant(DType::F32, &[], &[4.0]));
            let (zeros, to) = (zero_points(d, weight, results, b.rank() == 1), byte(d, DType::U8));
            let bias: Vec<f64> = (0..results).map(|_| d.random.int(-100, 100) as f64).collect();
            let bias = if d.random.once_in(2) { d.constant(DType::I32, &[results], &bias) } else { Val::none() };
            let y = d.emit("QLinearConv", &[&x, &a, &zero, &w, &b, &zeros, &c, &to, &bias], attributes, DType::U8, dims, 255.0);
            dequantized(d, &y)
        }
        _ => {
            let x = dequantized(d, &x)?;
            let w = dequantized_weights(d, &w, 0, results)?;
            let y = d.emit("Conv", &[&x, &w], attributes, DType::F32, dims, mag / 8.0);
            quantized(d, &y)
        }
    }
}

/// A product of integers whose scale their range decides.
pub fn dynamic(d: &mut Draft) -> Option<Val> {
    if d.opset < 11 || !possible(d) {
        return None;
    }
    let x = halves(d)?;
    if x.rank() < 2 {
        return None;
    }
    let (q, scale, zero) = (d.fresh(), d.fresh(), d.fresh());
    d.node("DynamicQuantizeLinear", "", &[&x], vec![q.clone(), scale.clone(), zero.clone()], vec![]);
    let result = |name: String, ty: DType, dims: Vec<Size>, mag: f64| Val { name, ty, dims, mag, constant: false };
    let (q, scale, zero) =
        (result(q, DType::U8, x.dims.clone(), 255.0), result(scale, DType::F32, vec![], 1.0), result(zero, DType::U8, vec![], 255.0));
    let (inner, columns) = (x.dims[x.rank() - 1].known()?, d.random.int(1, 4));
    let (w, _) = weights(d, &[inner, columns]);
    let mut dims = x.dims.clone();
    *dims.last_mut()? = Size::fixed(columns);
    let y = d.emit("MatMulInteger", &[&q, &w, &zero], vec![], DType::I32, dims, inner as f64 * 2000.0);
    let y = real_again(d, &y)?;
    d.mul(&y, &scale)
}

/// Whether there are such operators.
fn possible(d: &Draft) -> bool {
    d.opset >= 10 && d.real == DType::F32
}

/// Multiples of one half.
fn halves(d: &mut Draft) -> Option<Val> {
    let ints = d.choose(|v| v.ty == DType::I64 && v.mag <= 50.0)?;
    let x = d.emit("Cast", &[&ints], vec![int("to", 1)], DType::F32, ints.dims.clone(), ints.mag);
    let half = d.scalar(0.5);
    d.mul(&x, &half)
}

/// Bytes of a rank in this range: from integers of the model, or of an input of its own.
fn bytes(d: &mut Draft, ranks: std::ops::RangeInclusive<usize>) -> Option<Val> {
    if !possible(d) {
        return None;
    }
    let fits = |v: &Val| v.ty == DType::I64 && v.mag <= 50.0 && ranks.contains(&v.rank()) && !v.constant;
    let ints = match d.choose(fits) {
        Some(ints) => ints,
        None => {
            let first = *d.inputs.first()?.dims.first()?;
            let rest = (1..*ranks.start()).map(|_| Size::fixed(d.random.int(3, 6)));
            let dims = std::iter::once(first).chain(rest.collect::<Vec<_>>()).collect();
            d.input(DType::I64, dims)
        }
    };
    let ints = d.emit("Abs", &[&ints], vec![], DType::I64, ints.dims.clone(), ints.mag);
    Some(d.emit("Cast", &[&ints], vec![int("to", DType::U8.to_onnx().into())], DType::U8, ints.dims.clone(), ints.mag))
}

/// Stored weights, and their type.
fn weights(d: &mut Draft, dims: &[i64]) -> (Val, DType) {
    let ty = d.random.pick(&[DType::U8, DType::I8]);
    let low = if ty == DType::U8 { 0 } else { -LARGEST_WEIGHT };
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count).map(|_| d.random.int(low, LARGEST_WEIGHT) as f64).collect();
    (d.constant(ty, dims, &values), ty)
}

/// A zero point.
fn byte(d: &mut Draft, ty: DType) -> Val {
    let value = d.random.int(0, 9) as f64;
    d.constant(ty, &[], &[value])
}

/// One zero point, or, on request and sometimes, one for each of `count`.
fn zero_points(d: &mut Draft, ty: DType, count: i64, each: bool) -> Val {
    if !each || d.random.once_in(2) {
        return byte(d, ty);
    }
    let values: Vec<f64> = (0..count).map(|_| d.random.int(0, 9) as f64).collect();
    d.constant(ty, &[count], &values)
}

fn scale(d: &mut Draft) -> Val {
    let value = d.random.pick(&[0.25, 0.5, 1.0]);
    d.constant(DType::F32, &[], &[value])
}

/// One scale, or, on request and sometimes, one for each of `count`.
fn scales(d: &mut Draft, count: i64, each: bool) -> Val {
    if !each || d.random.once_in(2) {
        return scale(d);
    }
    let values: Vec<f64> = (0..count).map(|_| d.random.pick(&[0.25, 0.5, 1.0])).collect();
    d.constant(DType::F32, &[count], &values)
}

/// 32-bit sums as reals.
fn real_again(d: &mut Draft, y: &Val) -> Option<Val> {
    let x = d.emit("Cast", &[y], vec![int("to", 1)], DType::F32, y.dims.clone(), y.mag);
    let small = d.scalar(1.0 / 1024.0);
    d.mul(&x, &small)
}

/// Bytes as reals.
fn dequantized(d: &mut Draft, q: &Val) -> Option<Val> {
    let (scale, zero) = (scale(d), byte(d, q.ty));
    Some(d.emit("DequantizeLinear", &[q, &scale, &zero], vec![], DType::F32, q.dims.clone(), q.mag))
}

/// Stored weights as reals, by scales along an axis of `count`, where there are such.
fn dequantized_weights(d: &mut Draft, w: &Val, axis: i64, count: i64) -> Option<Val> {
    let each = d.opset >= SINCE_AXIS;
    let scales = scales(d, count, each);
    let attributes = if scales.rank() == 1 { vec![int("axis", axis)] } else { vec![] };
    // Zero points are as many as the scales.
    let zeros = if scales.rank() == 1 {
        let values: Vec<f64> = (0..count).map(|_| d.random.int(0, 9) as f64).collect();
        d.constant(w.ty, &[count], &values)
    } else {
        byte(d, w.ty)
    };
    Some(d.emit("DequantizeLinear", &[w, &scales, &zeros], attributes, DType::F32, w.dims.clone(), 20.0))
}

/// Reals as bytes and back.
fn quantized(d: &mut Draft, y: &Val) -> Option<Val> {
    let scale = d.constant(DType::F32, &[], &[8.0]);
    let ty = d.random.pick(&[DType::U8, DType::I8]);
    let zero = byte(d, ty);
    let q = d.emit("QuantizeLinear", &[y, &scale, &zero], vec![], ty, y.dims.clone(), 255.0);
    Some(d.emit("DequantizeLinear", &[&q, &scale, &zero], vec![], DType::F32, y.dims.clone(), y.mag.min(2048.0)))
}
