//! Integers and booleans, and reals derived from them: at the steps of functions, operands are
//! exact.

use regraft_ir::DType;

use super::attribute::{int, word};
use super::draft::{Draft, Val};
use super::size::{Size, broadcast};

/// Largest integers to use further.
const LARGEST: f64 = 2000.0;

fn integers(d: &mut Draft) -> Option<Val> {
    let val = d.choose(|v| matches!(v.ty, DType::I64 | DType::I32) && v.mag <= LARGEST);
    if val.is_some() && !d.random.once_in(6) {
        return val;
    }
    let like = d.inputs.first()?.dims.clone();
    let ty = d.random.pick(&[DType::I64, DType::I64, DType::I32]);
    (d.inputs.len() < 5).then(|| d.input(ty, like))
}

fn cast(d: &mut Draft, x: &Val, to: DType) -> Val {
    d.emit("Cast", &[x], vec![int("to", i64::from(to.to_onnx()))], to, x.dims.clone(), x.mag.max(1.0))
}

/// Integers as reals, away from halves, so that roundings and signs do not jump.
fn exact(d: &mut Draft) -> Option<Val> {
    let x = integers(d)?;
    let x = cast(d, &x, d.real);
    let (by, shift) = (d.scalar(0.7), d.scalar(0.13));
    let x = d.mul(&x, &by)?;
    d.add(&x, &shift)
}

/// Arithmetic of integers.
pub fn arithmetic(d: &mut Draft) -> Option<Val> {
    let x = integers(d)?;
    let op = d.random.pick(&["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Neg", "Abs", "Sum"]);
    let since = match op {
        "Mod" => 10,
        "Max" | "Min" => 12,
        "Sum" => return None,
        _ => 7,
    };
    if d.opset < since {
        return None;
    }
    if matches!(op, "Neg" | "Abs") {
        return Some(d.unary(op, &x, x.mag));
    }
    let like = x.dims.clone();
    let other = d.choose(|v| v.ty == x.ty && v.mag <= 50.0 && broadcast(&v.dims, &like).is_some());
    let y = match other {
        Some(y) if !matches!(op, "Div" | "Mod") && d.random.once_in(2) => y,
        _ => {
            let dims = d.side_dims(&x);
            let count = dims.iter().product::<i64>();
            let values: Vec<f64> = (0..count).map(|_| d.random.int(1, 4) as f64).collect();
            d.constant(x.ty, &dims, &values)
        }
    };
    d.binary(op, &x, &y)
}

fn truth(d: &mut Draft) -> Option<Val> {
    if d.random.once_in(3) {
        let like = d.inputs.first()?.dims.clone();
        return d.choose(|v| v.ty == DType::Bool).or_else(|| (d.inputs.len() < 5).then(|| d.input(DType::Bool, like)));
    }
    compare(d)
}

/// A comparison of integers, or of reals derived from them.
pub fn compare(d: &mut Draft) -> Option<Val> {
    let x = integers(d)?;
    let op = d.random.pick(&["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"]);
    if op.ends_with("OrEqual") && d.opset < 12 {
        return None;
    }
    let like = x.dims.clone();
    let other = d.choose(|v| v.ty == x.ty && v.name != x.name && broadcast(&v.dims, &like).is_some());
    let y = match other {
        Some(y) if d.random.once_in(2) => y,
        _ => {
            let value = d.random.int(0, 4) as f64;
            d.constant(x.ty, &[], &[value])
        }
    };
    let dims = broadcast(&x.dims, &y.dims)?;
    let reals = if op == "Equal" { d.opset >= 11 && d.random.once_in(2) } else { d.opset < 9 || d.random.once_in(2) };
    let (x, y) = if reals { (cast(d, &x, DType::F32), cast(d, &y, DType::F32)) } else { (x, y) };
    Some(d.emit(op, &[&x, &y], vec![], DType::Bool, dims, 1.0))
}

/// Logic on booleans.
pub fn logic(d: &mut Draft) -> Option<Val> {
    let x = truth(d)?;
    let op = d.random.pick(&["And", "Or", "Xor", "Not", "Not"]);
    if op == "Not" {
        return Some(d.unary(op, &x, 1.0));
    }
    let like = x.dims.clone();
    let y = d.choose(|v| v.ty == DType::Bool && broadcast(&v.dims, &like).is_some()).unwrap_or_else(|| x.clone());
    let dims = broadcast(&x.dims, &y.dims)?;
    Some(d.emit(op, &[&x, &y], vec![], DType::Bool, dims, 1.0))
}

/// A choice between reals by a boolean, which may be constant.
pub fn choice(d: &mut Draft) -> Option<Val> {
    if d.opset < 9 {
        return None;
    }
    let x = d.real(1..=4)?;
    let like = x.dims.clone();
    let condition = match d.choose(|v| v.ty == DType::Bool && broadcast(&v.dims, &like).is_some()) {
        Some(condition) if !d.random.once_in(3) => condition,
        _ => {
            let dims = d.side_dims(&x);
            let count = dims.iter().product::<i64>();
            let same = d.random.once_in(2).then(|| d.random.int(0, 1) as f64);
            let values: Vec<f64> = (0..count).map(|_| same.unwrap_or_else(|| d.random.int(0, 1) as f64)).collect();
            d.constant(DType::Bool, &dims, &values)
        }
    };
    let condition = if d.random.once_in(3) { d.unary("Not", &condition, 1.0) } else { condition };
    let other = if d.random.once_in(4) { x.clone() } else { d.side(&x, -1.0, 1.0) };
    let dims = broadcast(&broadcast(&condition.dims, &x.dims)?, &other.dims)?;
    let operands: [&Val; 3] = if d.random.once_in(2) { [&condition, &x, &other] } else { [&condition, &other, &x] };
    Some(d.emit("Where", &operands, vec![], x.ty, dims, x.mag.max(1.0)))
}

/// Conversions between element types, there and back.
pub fn convert(d: &mut Draft) -> Option<Val> {
    let real = d.real;
    if d.random.once_in(2) {
        let x = d.choose(|v| matches!(v.ty, DType::I64 | DType::I32 | DType::Bool))?;
        let x = if x.ty == DType::Bool || x.mag <= LARGEST { x } else { return None };
        let to = d.random.pick(&[real, real, DType::I64, DType::I32, DType::F32]);
        let y = cast(d, &x, to);
        let back = y.ty.is_float() && d.random.once_in(3);
        return Some(if back { cast(d, &y, DType::I32) } else { y });
    }
    let x = d.real(1..=4)?;
    let wide = cast(d, &x, DType::F64);
    Some(cast(d, &wide, real))
}

/// Roundings, signs and the like of exact reals.
pub fn rounding(d: &mut Draft) -> Option<Val> {
    let x = exact(d)?;
    let op = d.random.pick(&["Floor", "Ceil", "Round", "Sign", "ThresholdedRelu"]);
    match op {
        "Round" if d.opset < 11 => None,
        "Sign" if d.opset < 9 => None,
        "ThresholdedRelu" if d.opset < 10 => None,
        "ThresholdedRelu" => Some(d.emit(op, &[&x], vec![super::attribute::float("alpha", 1.2)], x.ty, x.dims.clone(), x.mag)),
        _ => Some(d.unary(op, &x, x.mag)),
    }
}

/// Tests for infinity and NaN.
pub fn finite(d: &mut Draft) -> Option<Val> {
    if d.opset < 10 || d.real == DType::F16 {
        return None;
    }
    let x = d.real(1..=4)?;
    let dims = d.side_dims(&x);
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count).map(|_| d.random.pick(&[0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN])).collect();
    let odd = d.constant(d.real, &dims, &values);
    let y = d.add(&x, &odd)?;
    let op = d.random.pick(&["IsNaN", "IsInf"]);
    let attributes = if op == "IsInf" && d.random.once_in(2) { vec![int("detect_negative", 0)] } else { vec![] };
    Some(d.emit(op, &[&y], attributes, DType::Bool, y.dims.clone(), 1.0))
}

/// The position of an extreme, among values that are far apart or exact.
pub fn arg_extreme(d: &mut Draft) -> Option<Val> {
    let op = d.random.pick(&["ArgMax", "ArgMin"]);
    let (apart, axis) = apart(d)?;
    let size = apart.dims[axis].known()?;
    let keep = d.random.once_in(2);
    let negative = d.opset >= 11 && d.random.once_in(2);
    let mut attributes = vec![int("axis", axis as i64 - if negative { apart.rank() as i64 } else { 0 }), int("keepdims", i64::from(keep))];
    if d.opset >= 12 && d.random.once_in(3) {
        attributes.push(int("select_last_index", 1));
    }
    let mut dims = apart.dims.clone();
    if keep {
        dims[axis] = Size::fixed(1);
    } else {
        dims.remove(axis);
    }
    Some(d.emit(op, &[&apart], attributes, DType::I64, dims, size as f64))
}

/// Several extremes along an axis, and where they are.
pub fn extremes(d: &mut Draft) -> Option<Val> {
    let (apart, axis) = apart(d)?;
    let size = apart.dims[axis].known()?;
    let k = d.random.int(1, size);
    let negative = d.opset >= 11 && d.random.once_in(2);
    let mut attributes = vec![int("axis", axis as i64 - if negative { apart.rank() as i64 } else { 0 })];
    if d.opset >= 11 {
        for name in ["largest", "sorted"] {
            let value = if name == "sorted" { 1 } else { d.random.int(0, 1) };
            attributes.extend(d.random.once_in(2).then(|| int(name, value)));
        }
    }
    let mut operands = vec![apart.clone()];
    if d.opset < 10 {
        attributes.push(int("k", k));
    } else {
        operands.push(d.ints(&[k]));
    }
    let mut dims = apart.dims.clone();
    dims[axis] = Size::fixed(k);
    let values = Val { name: d.fresh(), dims: dims.clone(), constant: false, ..apart };
    let indices = Val { name: d.fresh(), ty: DType::I64, dims, mag: size as f64, constant: false };
    d.node("TopK", "", &operands.iter().collect::<Vec<_>>(), vec![values.name.clone(), indices.name.clone()], attributes);
    let (kept, other) = if d.random.once_in(2) { (values, indices) } else { (indices, values) };
    d.pool.push(other);
    Some(kept)
}

/// A value, and an axis along which its elements are so far apart that rounding does not change
/// their order.
fn apart(d: &mut Draft) -> Option<(Val, usize)> {
    let x = d.choose(|v| v.ty.is_float() && v.rank() >= 1 && v.dims.iter().any(|s| s.known().is_some_and(|s| s > 1)))?;
    let x = if x.ty == d.real { d.tame(x) } else { return None };
    let axis = (0..x.rank()).find(|a| x.dims[*a].known().is_some_and(|s| s > 1))?;
    let size = x.dims[axis].known()?;
    let mut dims = vec![1; x.rank()];
    dims[axis] = size;
    let ramp: Vec<f64> = d.random.order(size as usize).iter().map(|v| *v as f64 * 2.0).collect();
    let bounded = d.unary("Tanh", &x, 1.0);
    let half = d.scalar(0.5);
    let small = d.mul(&bounded, &half)?;
    let ramp = d.constant(x.ty, &dims, &ramp);
    Some((d.add(&small, &ramp)?, axis))
}

/// One-hot rows of integers, alone or times a matrix.
pub fn one_hot(d: &mut Draft) -> Option<Val> {
    if d.opset < 9 {
        return None;
    }
    let x = d.choose(|v| v.ty == DType::I64 && v.rank() <= 2 && v.mag <= 50.0)?;
    let depth = d.random.int(4, 7);
    let depth_val = d.constant(DType::I64, &[], &[depth as f64]);
    let values = d.constant(DType::F32, &[2], &[0.0, 1.0]);
    let mut dims = x.dims.clone();
    let last = d.random.once_in(2);
    let axis = if last { -1 } else { d.random.int(0, x.rank() as i64) };
    let at = if last { x.rank() } else { axis as usize };
    dims.insert(at, Size::fixed(depth));
    // Some integers are out of range: rows of zeros. Negative ones count from the end.
    let hot = d.emit("OneHot", &[&x, &depth_val, &values], vec![int("axis", axis)], DType::F32, dims.clone(), 1.0);
    if d.real == DType::F32 && last && d.random.once_in(2) {
        let table = d.reals(&[depth, 3], -1.0, 1.0);
        dims[at] = Size::fixed(3);
        return Some(d.emit("MatMul", &[&hot, &table], vec![], DType::F32, dims, 1.0));
    }
    Some(hot)
}

/// A counting sequence, of constants or of sizes.
pub fn range(d: &mut Draft) -> Option<Val> {
    if d.opset < 11 {
        return None;
    }
    let x = d.choose(|v| v.rank() >= 1)?;
    let axis = d.random.below(x.rank());
    let (limit, size) = match d.random.below(2) {
        0 => {
            let shape = d.emit("Shape", &[&x], vec![], DType::I64, vec![Size::fixed(x.rank() as i64)], 8.0);
            let at = d.constant(DType::I64, &[], &[axis as f64]);
            (d.emit("Gather", &[&shape, &at], vec![int("axis", 0)], DType::I64, vec![], 8.0), x.dims[axis])
        }
        _ => {
            let n = d.random.int(2, 5);
            (d.constant(DType::I64, &[], &[n as f64]), Size::fixed(n))
        }
    };
    let (start, step) = (d.constant(DType::I64, &[], &[0.0]), d.constant(DType::I64, &[], &[1.0]));
    Some(d.emit("Range", &[&start, &limit, &step], vec![], DType::I64, vec![size], 12.0))
}

/// A tensor of one number, in the shape of another value.
pub fn filled(d: &mut Draft) -> Option<Val> {
    if d.opset < 9 {
        return None;
    }
    let x = d.real(1..=4)?;
    let shape = d.emit("Shape", &[&x], vec![], DType::I64, vec![Size::fixed(x.rank() as i64)], 8.0);
    let value = d.tensor("", d.real, &[1], &[0.75]);
    let full = d.emit("ConstantOfShape", &[&shape], vec![super::attribute::tensor("value", value)], d.real, x.dims.clone(), 0.75);
    if d.random.once_in(2) { d.mul(&x, &full) } else { Some(full) }
}

/// Sizes as values.
pub fn sizes(d: &mut Draft) -> Option<Val> {
    let x = d.choose(|v| v.rank() >= 1)?;
    if d.random.once_in(2) {
        return Some(d.emit("Size", &[&x], vec![], DType::I64, vec![], LARGEST));
    }
    if d.opset >= 15 && x.rank() > 1 && d.random.once_in(2) {
        let rank = x.rank() as i64;
        return Some(d.emit("Shape", &[&x], vec![int("start", -1)], DType::I64, vec![Size::fixed(1)], rank as f64));
    }
    Some(d.emit("Shape", &[&x], vec![], DType::I64, vec![Size::fixed(x.rank() as i64)], 16.0))
}

/// Shifts of unsigned integers.
pub fn shift(d: &mut Draft) -> Option<Val> {
    if d.opset < 11 || d.inputs.len() >= 5 {
        return None;
    }
    let like = d.inputs.first()?.dims.clone();
    let x = d.input(DType::U32, like);
    let dims = d.side_dims(&x);
    let count = dims.iter().product::<i64>();
    let values: Vec<f64> = (0..count).map(|_| d.random.int(0, 3) as f64).collect();
    let by = d.constant(DType::U32, &dims, &values);
    let way = d.random.pick(&["LEFT", "RIGHT"]);
    Some(d.emit("BitShift", &[&x, &by], vec![word("direction", way)], DType::U32, x.dims.clone(), 40.0))
}
