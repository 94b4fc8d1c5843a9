//! Forms of activations, arithmetic and normalizations that rules look for, some of them broken on
//! purpose.

use regraft_ir::DType;

use super::arrange;
use super::attribute::{float, int};
use super::draft::{Draft, Val};
use super::elementwise::{clipped, reduced};
use super::layer;

/// A decomposed activation.
pub fn activation(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let x = if x.mag > 6.0 { d.unary("Tanh", &x, 1.0) } else { x };
    match d.random.below(14) {
        0 => {
            let below = one_plus_exp_of_neg(d, &x)?;
            let top = if d.random.once_in(2) { x.clone() } else { d.number(1.0, &x) };
            if d.random.once_in(4) { Some(d.unary("Reciprocal", &below, 1.0)) } else { d.div(&top, &below) }
        }
        1 => {
            let half = d.number(0.5, &x);
            let t = d.mul(&x, &half)?;
            let t = d.unary("Tanh", &t, 1.0);
            let one = d.number(1.0, &x);
            let t = d.add(&t, &one)?;
            let half = d.number(0.5, &x);
            d.mul(&t, &half)
        }
        2 => {
            let e = d.unary("Exp", &x, 30.0);
            let one = d.number(1.0, &x);
            let e = d.add(&e, &one)?;
            Some(d.unary("Log", &e, 7.0))
        }
        3 => {
            let s = d.unary("Softplus", &x, x.mag + 1.0);
            let t = d.unary("Tanh", &s, 1.0);
            d.mul(&x, &t)
        }
        4 => {
            let a = d.unary("Abs", &x, x.mag);
            let one = d.number(1.0, &x);
            let a = d.add(&a, &one)?;
            d.div(&x, &a)
        }
        5 => {
            let alpha = d.random.pick(&[0.1, 0.5, 1.0, 1.5, -0.2]);
            let a = d.number(alpha, &x);
            let scaled = d.mul(&x, &a)?;
            if d.opset >= 9 && d.random.once_in(2) {
                // Both sides agree at 0, where the choice jumps; the condition is not used further.
                let zero = d.scalar(0.0);
                let condition = d.emit("Greater", &[&x, &zero], vec![], DType::Bool, x.dims.clone(), 1.0);
                if scaled.dims != x.dims {
                    return None;
                }
                return Some(d.emit("Where", &[&condition, &x, &scaled], vec![], x.ty, x.dims.clone(), x.mag * 2.0));
            }
            if d.opset < 8 && scaled.dims != x.dims {
                return None;
            }
            d.binary("Max", &x, &scaled)
        }
        6 => {
            let up = d.unary("Relu", &x, x.mag);
            let down = d.unary("Neg", &x, x.mag);
            let down = d.unary("Relu", &down, x.mag);
            let a = d.side(&x, -0.5, 0.5);
            let down = d.mul(&down, &a)?;
            if d.random.once_in(2) { d.sub(&up, &down) } else { d.add(&up, &down) }
        }
        7 | 8 => gelu(d, &x),
        9 => hard_swish(d, &x),
        10 => {
            let scale = d.random.pick(&[1.0, 1.702, -0.5]);
            let inner = if scale == 1.0 {
                x.clone()
            } else {
                let c = d.number(scale, &x);
                d.mul(&x, &c)?
            };
            let s = d.unary("Sigmoid", &inner, 1.0);
            d.mul(&x, &s)
        }
        11 => {
            let e = d.unary("Exp", &x, 30.0);
            let axis = d.random.below(x.rank());
            let sum = reduced(d, "ReduceSum", &e, Some(&[axis]), true)?;
            let y = d.div(&e, &sum)?;
            if d.random.once_in(2) { Some(d.unary("Log", &y, 8.0)) } else { Some(y) }
        }
        12 => {
            let axis = x.rank() - 1;
            let shift = match d.random.below(3) {
                0 => reduced(d, "ReduceMax", &x, Some(&[axis]), true)?,
                1 => d.side(&x, -1.0, 1.0),
                _ => d.scalar(0.5),
            };
            let y = d.sub(&x, &shift)?;
            let y = d.emit("Softmax", &[&y], vec![int("axis", axis as i64)], y.ty, y.dims.clone(), 1.0);
            if d.random.once_in(2) { Some(d.unary("Log", &y, 12.0)) } else { Some(y) }
        }
        _ => {
            let first = d.random.pick(&[Some(-0.5), Some(0.0), None]);
            let y = clipped(d, &x, first, Some(1.0))?;
            let last = d.random.pick(&[Some(0.75), None, Some(-0.25)]);
            if d.random.once_in(2) { Some(d.unary("Relu", &y, y.mag)) } else { clipped(d, &y, Some(0.0), last) }
        }
    }
}

fn one_plus_exp_of_neg(d: &mut Draft, x: &Val) -> Option<Val> {
    let n = d.unary("Neg", x, x.mag);
    let e = d.unary("Exp", &n, 20.0);
    let one = d.number(1.0, x);
    d.add(&e, &one)
}

/// Both forms of GELU, in the orders exporters write.
fn gelu(d: &mut Draft, x: &Val) -> Option<Val> {
    let gate = if d.opset >= 9 && d.random.once_in(2) {
        let y = if d.random.once_in(2) {
            let c = d.number(std::f64::consts::SQRT_2, x);
            d.div(x, &c)?
        } else {
            let c = d.number(std::f64::consts::FRAC_1_SQRT_2, x);
            d.mul(x, &c)?
        };
        d.unary("Erf", &y, 1.0)
    } else {
        let c = d.number(0.044715, x);
        let inner = if d.random.once_in(2) {
            let three = d.number(3.0, x);
            let cube = d.binary("Pow", x, &three)?;
            let cube = d.mul(&cube, &c)?;
            d.add(x, &cube)?
        } else {
            let square = d.mul(x, x)?;
            let cube = d.mul(x, &square)?;
            let cube = d.mul(&cube, &c)?;
            d.add(x, &cube)?
        };
        let root = d.number((2.0 / std::f64::consts::PI).sqrt(), x);
        let y = d.mul(&inner, &root)?;
        d.unary("Tanh", &y, 1.0)
    };
    let one = d.number(1.0, x);
    let gate = d.add(&gate, &one)?;
    let half = |d: &mut Draft, y: &Val| {
        if d.random.once_in(3) {
            let two = d.number(2.0, y);
            d.div(y, &two)
        } else {
            let half = d.number(0.5, y);
            d.mul(y, &half)
        }
    };
    match d.random.below(3) {
        0 => {
            let h = half(d, x)?;
            d.mul(&h, &gate)
        }
        1 => {
            let y = d.mul(x, &gate)?;
            half(d, &y)
        }
        _ => {
            let h = half(d, &gate)?;
            d.mul(x, &h)
        }
    }
}

fn hard_swish(d: &mut Draft, x: &Val) -> Option<Val> {
    let m = d.random.pick(&[6.0, 4.0]);
    let b = d.number(3.0, x);
    let y = d.add(x, &b)?;
    let gate = clipped(d, &y, Some(0.0), Some(m))?;
    let last = |d: &mut Draft, y: &Val| {
        if d.random.once_in(2) {
            let c = d.number(m, y);
            d.div(y, &c)
        } else {
            let c = d.number(1.0 / m, y);
            d.mul(y, &c)
        }
    };
    match d.random.below(3) {
        0 => last(d, &gate),
        1 => {
            let y = d.mul(x, &gate)?;
            last(d, &y)
        }
        _ => {
            let gate = d.emit("HardSigmoid", &[x], vec![float("alpha", 1.0 / 6.0)], x.ty, x.dims.clone(), 1.0);
            d.mul(x, &gate)
        }
    }
}

/// Chains of constants, factors, squares and roots.
pub fn algebra(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let constant = |d: &mut Draft, x: &Val| {
        if d.random.once_in(2) {
            let v = d.random.pick(&[0.5, 2.0, -1.5]);
            d.number(v, x)
        } else {
            d.side(x, 0.5, 1.5)
        }
    };
    match d.random.below(12) {
        0..=2 => {
            let mut y = x;
            for _ in 0..3 {
                let c = constant(d, &y);
                let op = d.random.pick(&["Add", "Sub", "Mul", "Div", "Neg"]);
                let swap = d.random.once_in(3);
                y = match op {
                    "Neg" => d.unary("Neg", &y, y.mag),
                    "Sub" if swap => d.sub(&c, &y)?,
                    "Add" => d.add(&y, &c)?,
                    "Mul" => d.mul(&y, &c)?,
                    other => d.binary(other, &y, &c)?,
                };
            }
            Some(y)
        }
        3 => {
            // A common factor.
            let like = x.clone();
            let z = d.choose(move |v| v.ty == like.ty && v.dims == like.dims)?;
            let z = d.tame(z);
            let c = constant(d, &x);
            let (a, b) = (d.mul(&x, &c)?, d.mul(&z, &c)?);
            let op = d.random.pick(&["Add", "Sub"]);
            d.binary(op, &a, &b)
        }
        4 => {
            let p = d.positive(&x, 0.5)?;
            let root = d.unary("Sqrt", &p, p.mag);
            match d.random.below(3) {
                0 => d.mul(&root, &root),
                1 => Some(d.unary("Reciprocal", &root, 2.0)),
                _ => {
                    let one = d.number(1.0, &root);
                    d.div(&one, &root)
                }
            }
        }
        5 => {
            let square = d.mul(&x, &x)?;
            if d.random.once_in(2) { d.mul(&square, &x) } else { Some(d.unary("Sqrt", &square, x.mag)) }
        }
        6 => {
            let t = d.unary("Tanh", &x, 1.0);
            let a = d.unary("Exp", &t, 2.8);
            let s = d.unary("Sigmoid", &x, 1.0);
            let b = d.unary("Exp", &s, 2.8);
            let y = d.mul(&a, &b)?;
            if d.random.once_in(2) { Some(d.unary("Log", &y, 2.0)) } else { Some(y) }
        }
        7 => {
            let n = d.unary("Neg", &x, x.mag);
            let like = x.clone();
            let other = d.choose(move |v| v.ty == like.ty && v.dims == like.dims)?;
            let other = d.tame(other);
            let m = d.unary("Neg", &other, other.mag);
            match d.random.below(4) {
                0 => d.add(&n, &other),
                1 => d.sub(&other, &n),
                2 => d.mul(&n, &m),
                _ => Some(d.unary("Neg", &n, x.mag)),
            }
        }
        8 => {
            // A blend of two values by a gate.
            let like = x.clone();
            let z = d.choose(move |v| v.ty == like.ty && v.dims == like.dims)?;
            let z = d.tame(z);
            let gate = if d.random.once_in(2) { d.unary("Sigmoid", &z, 1.0) } else { constant(d, &x) };
            let one = d.number(1.0, &gate);
            let rest = d.sub(&one, &gate)?;
            let (a, b) = (d.mul(&x, &gate)?, d.mul(&z, &rest)?);
            d.add(&a, &b)
        }
        9 => {
            // A scaled branch next to its operand.
            let c = constant(d, &x);
            let y = d.mul(&x, &c)?;
            if d.random.once_in(2) { d.add(&y, &x) } else { d.sub(&x, &y) }
        }
        10 => {
            let c = constant(d, &x);
            let below = d.positive(&x, 0.5)?;
            let y = d.div(&x, &below)?;
            let y = d.mul(&y, &c)?;
            let r = d.unary("Reciprocal", &below, 2.0);
            d.mul(&y, &r)
        }
        _ => {
            let double = d.add(&x, &x)?;
            if d.opset >= 8 {
                let c = constant(d, &x);
                let dims = super::size::broadcast(&super::size::broadcast(&double.dims, &c.dims)?, &x.dims)?;
                return Some(d.emit("Sum", &[&double, &c, &x], vec![], x.ty, dims, x.mag * 4.0));
            }
            Some(double)
        }
    }
}

/// Decomposed normalizations, also with residuals, scales and shifts around them.
pub fn normalization(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    if d.random.once_in(4) {
        return affine(d);
    }
    let first = if x.rank() > 2 && d.random.once_in(3) { 2 } else { x.rank() - 1 };
    let axes: Vec<usize> = (first..x.rank()).collect();
    if super::size::product(&x.dims[first..]).least() < 3 {
        return None;
    }
    let x = if d.random.once_in(2) {
        let residual = d.side(&x, -1.0, 1.0);
        d.add(&x, &residual)?
    } else {
        x
    };
    let mean = reduced(d, "ReduceMean", &x, Some(&axes), true)?;
    let c = d.sub(&x, &mean)?;
    let square = if d.random.once_in(2) {
        d.mul(&c, &c)?
    } else {
        let two = d.number(2.0, &c);
        d.binary("Pow", &c, &two)?
    };
    let variance = reduced(d, "ReduceMean", &square, Some(&axes), true)?;
    let e = d.scalar(0.01);
    let variance = d.add(&variance, &e)?;
    let y = if d.random.once_in(2) {
        let root = d.unary("Sqrt", &variance, 2.0);
        d.div(&c, &root)?
    } else {
        let root = d.unary("Sqrt", &variance, 2.0);
        let r = d.unary("Reciprocal", &root, 10.0);
        d.mul(&c, &r)?
    };
    let y = Val { mag: 4.0, ..y };
    let s = d.side(&y, 0.5, 1.5);
    let y = d.mul(&y, &s)?;
    let b = d.side(&y, -0.5, 0.5);
    d.add(&y, &b)
}

/// Affine maps per channel (or not quite), before and after normalizations and pools.
pub fn affine(d: &mut Draft) -> Option<Val> {
    let x = layer::image(d)?;
    let constant = |d: &mut Draft, x: &Val| if d.random.once_in(3) { Some(d.side(x, 0.5, 1.5)) } else { d.per_channel(x, 0.5, 1.5) };
    let mut y = x;
    for _ in 0..2 + d.random.below(3) {
        y = match d.random.below(7) {
            0 => layer::batch_normalized(d, &y)?,
            1 => {
                let c = constant(d, &y)?;
                d.add(&y, &c)?
            }
            2 => {
                let c = constant(d, &y)?;
                d.sub(&y, &c)?
            }
            3 => {
                let c = constant(d, &y)?;
                d.mul(&y, &c)?
            }
            4 => {
                let c = constant(d, &y)?;
                d.div(&y, &c)?
            }
            5 => {
                let op = d.random.pick(&["MaxPool", "AveragePool"]);
                let mut window = layer::Window::random(d, y.rank() - 2, 3);
                window.dilations = vec![1; y.rank() - 2];
                layer::pooled(d, op, &y, &window)?
            }
            _ if d.random.once_in(2) => d.unary("Relu", &y, y.mag),
            _ => d.emit("LeakyRelu", &[&y], vec![float("alpha", 0.2)], y.ty, y.dims.clone(), y.mag),
        };
        if y.rank() < 3 {
            return Some(y);
        }
        y = d.tame(y);
    }
    Some(y)
}

/// Data movement around an operator, as left by layout conversions.
pub fn layout(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    let perm = if x.rank() == 4 && d.random.once_in(2) { vec![0, 2, 3, 1] } else { d.random.order(x.rank()) };
    let mut back = vec![0; perm.len()];
    perm.iter().enumerate().for_each(|(at, p)| back[*p] = at);
    let mut y = arrange::permuted(d, &x, &perm);
    for _ in 0..1 + d.random.below(2) {
        y = match d.random.below(7) {
            0 => {
                let c = d.side(&y, -1.0, 1.0);
                d.add(&y, &c)?
            }
            1 => {
                let c = d.side(&y, -1.0, 1.0);
                let op = d.random.pick(&["Sub", "Mul"]);
                if d.random.once_in(2) { d.binary(op, &y, &c)? } else { d.binary(op, &c, &y)? }
            }
            2 => {
                let axis = d.random.int(0, y.rank() as i64 - 1);
                d.emit("Softmax", &[&y], vec![int("axis", axis)], y.ty, y.dims.clone(), 1.0)
            }
            3 => {
                let axis = d.random.below(y.rank());
                let keep = d.random.once_in(2);
                let y = reduced(d, "ReduceMean", &y, Some(&[axis]), keep)?;
                if !keep {
                    return Some(y);
                }
                y
            }
            4 => {
                let axis = d.random.below(y.rank());
                let other = d.unary("Neg", &y, y.mag);
                arrange::concat(d, &[y, other], axis)?
            }
            5 => {
                let axis = d.random.below(y.rank());
                let size = y.dims[axis].known().filter(|s| *s > 1)?;
                let parts = arrange::parts_of(d, size);
                let parts = arrange::split_into(d, &y, axis, &parts);
                parts.last()?.clone()
            }
            _ => {
                let op = d.random.pick(&["Relu", "Sigmoid", "Tanh", "Neg", "LeakyRelu"]);
                d.unary(op, &y, y.mag + 1.0)
            }
        };
    }
    if d.random.once_in(4) {
        back = d.random.order(back.len());
    }
    Some(arrange::permuted(d, &y, &back))
}
