//! Elementwise operators.

use super::attribute::{float, ints};
use super::draft::{Draft, Val};
use super::size::broadcast;

/// What an operator requires of its operand so that its result is finite and smooth.
#[derive(Clone, Copy)]
enum Domain {
    Any,
    /// At least 0.5.
    Positive,
    /// Within ±0.9.
    Inside,
    /// At least 1.25.
    AboveOne,
    /// Within ±3.
    Small,
}

const UNARY: &[(&str, i64, Domain)] = &[
    ("Neg", 7, Domain::Any),
    ("Abs", 7, Domain::Any),
    ("Reciprocal", 7, Domain::Positive),
    ("Sqrt", 7, Domain::Positive),
    ("Exp", 7, Domain::Small),
    ("Log", 7, Domain::Positive),
    ("Erf", 9, Domain::Any),
    ("Sin", 7, Domain::Any),
    ("Cos", 7, Domain::Any),
    ("Tan", 7, Domain::Inside),
    ("Asin", 7, Domain::Inside),
    ("Acos", 7, Domain::Inside),
    ("Atan", 7, Domain::Any),
    ("Sinh", 9, Domain::Small),
    ("Cosh", 9, Domain::Small),
    ("Asinh", 9, Domain::Any),
    ("Acosh", 9, Domain::AboveOne),
    ("Atanh", 9, Domain::Inside),
    ("Relu", 7, Domain::Any),
    ("Sigmoid", 7, Domain::Any),
    ("Tanh", 7, Domain::Any),
    ("LeakyRelu", 7, Domain::Any),
    ("Elu", 7, Domain::Any),
    ("Selu", 7, Domain::Any),
    ("Celu", 12, Domain::Any),
    ("ThresholdedRelu", 10, Domain::Any),
    ("HardSigmoid", 7, Domain::Any),
    ("HardSwish", 14, Domain::Any),
    ("Softplus", 7, Domain::Any),
    ("Softsign", 7, Domain::Any),
    ("Mish", 18, Domain::Any),
    ("Gelu", 20, Domain::Any),
    ("Identity", 7, Domain::Any),
];

/// Activations that appear most often.
const COMMON: &[&str] = &["Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Neg", "Sqrt", "Exp", "Abs"];

/// Applies an elementwise operator to one value.
pub fn unary(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=5)?;
    let known: Vec<_> = UNARY.iter().filter(|u| u.1 <= d.opset && (d.opset > 11 || !d.random.once_in(2) || u.1 > 7)).collect();
    let (op, _, domain) = *known[d.random.below(known.len())];
    through(d, op, domain, &x)
}

/// Applies one of the most common activations to one value.
pub fn activation(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=5)?;
    let op = d.random.pick(COMMON);
    let (_, _, domain) = *UNARY.iter().find(|u| u.0 == op)?;
    through(d, op, domain, &x)
}

/// Applies every elementwise operator in turn, so that none is left to chance.
pub fn each_unary(d: &mut Draft) -> Option<Val> {
    let mut last = None;
    for _ in 0..4 {
        let known: Vec<_> = UNARY.iter().filter(|u| u.1 <= d.opset).collect();
        let (op, _, domain) = *known[d.random.below(known.len())];
        let x = d.real(0..=5)?;
        last = through(d, op, domain, &x);
    }
    last
}

fn through(d: &mut Draft, op: &str, domain: Domain, x: &Val) -> Option<Val> {
    let x = match domain {
        Domain::Any => x.clone(),
        Domain::Positive => d.positive(x, 0.5)?,
        Domain::AboveOne => d.positive(x, 1.25)?,
        Domain::Inside => {
            let bounded = d.unary("Tanh", x, 1.0);
            let scale = d.scalar(0.9);
            d.mul(&bounded, &scale)?
        }
        Domain::Small if x.mag > 3.0 => {
            let bounded = d.unary("Tanh", x, 1.0);
            let scale = d.scalar(2.0);
            d.mul(&bounded, &scale)?
        }
        Domain::Small => x.clone(),
    };
    let mag = match op {
        "Exp" | "Sinh" | "Cosh" => 20.0,
        "Reciprocal" => 2.0,
        "Sigmoid" | "Tanh" | "HardSigmoid" | "Softsign" | "Sin" | "Cos" | "Erf" => 1.0,
        "Tan" | "Asin" | "Atan" | "Atanh" | "Acos" => 3.2,
        "Selu" => x.mag * 1.8 + 1.0,
        _ => x.mag + 1.0,
    };
    let given = d.random.once_in(2);
    let attributes = match op {
        "LeakyRelu" if given => vec![float("alpha", d.random.pick(&[0.0, 0.1, 0.5, 1.5, -0.25]))],
        "Elu" | "Celu" if given => vec![float("alpha", d.random.pick(&[0.5, 1.5]))],
        // At any other threshold the function jumps.
        "ThresholdedRelu" => vec![float("alpha", 0.0)],
        "HardSigmoid" if given => vec![float("alpha", d.random.pick(&[1.0 / 6.0, 0.25, -0.2])), float("beta", d.random.pick(&[0.5, 0.25]))],
        "Gelu" if given => vec![super::attribute::word("approximate", d.random.pick(&["none", "tanh"]))],
        _ => vec![],
    };
    Some(d.emit(op, &[&x], attributes, x.ty, x.dims.clone(), mag))
}

/// An arithmetic operator with a constant that broadcasts, or with another value.
pub fn arithmetic(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=5)?;
    let op = d.random.pick(&["Add", "Sub", "Mul", "Div"]);
    if !d.random.once_in(3) {
        // Rarely larger than the value itself.
        let c = if op == "Div" {
            let low = d.random.pick(&[0.5, -2.0]);
            d.side(&x, low, low + 1.5)
        } else {
            d.side(&x, -1.5, 1.5)
        };
        return match (op, d.random.once_in(3)) {
            ("Sub", true) => d.sub(&c, &x),
            ("Div", true) => {
                let below = d.positive(&x, 0.5)?;
                d.div(&c, &below)
            }
            ("Add", _) => d.add(&x, &c),
            ("Mul", _) => d.mul(&x, &c),
            _ => d.binary(op, &x, &c),
        };
    }
    let (ty, dims) = (x.ty, x.dims.clone());
    let y = d.choose(|v| v.ty == ty && broadcast(&v.dims, &dims).is_some())?;
    let y = d.tame(y);
    if op == "Div" {
        let below = d.positive(&y, 0.5)?;
        return d.div(&x, &below);
    }
    d.binary(op, &x, &y)
}

/// A power with a constant exponent.
pub fn power(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=5)?;
    let e = d.random.pick(&[1.0, 2.0, 3.0, 0.5, 0.75, 1.5, -1.0, -0.5, 0.0]);
    let whole = e == 2.0 || e == 3.0 || e == 1.0;
    let base = if whole && x.mag < 5.0 { x } else { d.positive(&x, 0.5)? };
    let e = d.number(e, &base);
    d.binary("Pow", &base, &e)
}

/// Sums, means and extremes of one to four values.
pub fn variadic(d: &mut Draft) -> Option<Val> {
    let op = d.random.pick(&["Sum", "Max", "Min", "Mean"]);
    let first = d.real(0..=4)?;
    let mut dims = first.dims.clone();
    let mut operands = vec![first];
    for _ in 0..d.random.below(4) {
        let (ty, want) = (d.real, dims.clone());
        let wide = d.opset >= 8;
        let next = if wide && d.random.once_in(2) {
            let like = operands[0].clone();
            d.side(&like, -1.0, 1.0)
        } else {
            match d.choose(|v| v.ty == ty && v.mag < 50.0 && if wide { broadcast(&v.dims, &want).is_some() } else { v.dims == want }) {
                Some(next) => next,
                None => continue,
            }
        };
        dims = broadcast(&dims, &next.dims)?;
        operands.push(next);
    }
    let mag = operands.iter().map(|v| v.mag).sum();
    let operands: Vec<&Val> = operands.iter().collect();
    Some(d.emit(op, &operands, vec![], d.real, dims, mag))
}

/// A clip, with constants or attributes as bounds.
pub fn clip(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=5)?;
    let low = d.random.pick(&[Some(0.0), Some(-0.5), Some(0.25), None]);
    let high = d.random.pick(&[Some(1.0), Some(6.0), Some(0.5), None]);
    clipped(d, &x, low, high)
}

/// `x` within bounds, in the opset's form.
pub fn clipped(d: &mut Draft, x: &Val, low: Option<f64>, high: Option<f64>) -> Option<Val> {
    if d.opset < 11 {
        let mut attributes = Vec::new();
        attributes.extend(low.map(|v| float("min", v)));
        attributes.extend(high.map(|v| float("max", v)));
        return Some(d.emit("Clip", &[x], attributes, x.ty, x.dims.clone(), x.mag));
    }
    let mut bound = |value: Option<f64>| value.map_or_else(Val::none, |v| d.constant(d.real, &[], &[v]));
    let (low, high) = (bound(low), bound(high));
    Some(d.emit("Clip", &[x, &low, &high], vec![], x.ty, x.dims.clone(), x.mag))
}

/// A leaky activation with a slope per element, channel or row.
pub fn prelu(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let slope = d.side(&x, -0.5, 0.5);
    Some(d.emit("PRelu", &[&x, &slope], vec![], x.ty, x.dims.clone(), x.mag))
}

/// A dropout that does nothing, with or without its mask.
pub fn dropout(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=5)?;
    let ratio = if d.opset < 12 { vec![float("ratio", 0.3)] } else { vec![] };
    if d.opset >= 12 && d.random.once_in(2) {
        let (ratio, training) = (d.constant(regraft_ir::DType::F32, &[], &[0.3]), d.constant(regraft_ir::DType::Bool, &[], &[0.0]));
        let with_mode = d.random.once_in(2);
        let operands: &[&Val] = if with_mode { &[&x, &ratio, &training] } else { &[&x, &ratio] };
        return Some(d.emit("Dropout", operands, vec![], x.ty, x.dims.clone(), x.mag));
    }
    Some(d.emit("Dropout", &[&x], ratio, x.ty, x.dims.clone(), x.mag))
}

/// A shrink, an operator not defined here.
pub fn shrink(d: &mut Draft) -> Option<Val> {
    if d.opset < 9 {
        return None;
    }
    let x = d.real(1..=4)?;
    // Continuous where the bias is the threshold.
    Some(d.emit("Shrink", &[&x], vec![float("lambd", 0.5), float("bias", 0.5)], x.ty, x.dims.clone(), x.mag))
}

/// A softmax or its logarithm along any axis; before opset 13 over all axes from one on.
pub fn softmax(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let rank = x.rank() as i64;
    let axis = if d.opset >= 11 { d.random.int(-rank, rank - 1) } else { d.random.int(0, rank - 1) };
    let op = d.random.pick(&["Softmax", "Softmax", "LogSoftmax"]);
    let attributes = if d.random.once_in(4) && rank > 1 { vec![] } else { vec![super::attribute::int("axis", axis)] };
    Some(d.emit(op, &[&x], attributes, x.ty, x.dims.clone(), if op == "Softmax" { 1.0 } else { 4.0 }))
}

/// A reduction over any axes.
pub fn reduce(d: &mut Draft) -> Option<Val> {
    const OPS: &[&str] = &[
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
    let op = d.random.pick(OPS);
    let x = d.real(1..=4)?;
    let x = if matches!(op, "ReduceLogSum" | "ReduceL2" | "ReduceProd") || x.mag > 8.0 {
        let gentle = d.unary("Sigmoid", &x, 1.0);
        if op == "ReduceL2" { gentle } else { d.positive(&gentle, 0.5)? }
    } else {
        x
    };
    let count = d.random.int(1, x.rank() as i64) as usize;
    let mut axes: Vec<usize> = d.random.order(x.rank())[..count].to_vec();
    if d.random.once_in(2) {
        axes.sort_unstable();
    }
    let all = d.random.once_in(6);
    let keep = d.random.once_in(2);
    reduced(d, op, &x, if all { None } else { Some(&axes) }, keep)
}

/// `op` over `axes` (all, if not given), in the opset's form.
pub fn reduced(d: &mut Draft, op: &str, x: &Val, axes: Option<&[usize]>, keep: bool) -> Option<Val> {
    let rank = x.rank();
    let gone = |axis: usize| axes.is_none_or(|a| a.contains(&axis));
    let mut dims = Vec::new();
    for (axis, size) in x.dims.iter().enumerate() {
        match (gone(axis), keep) {
            (true, true) => dims.push(super::size::Size::fixed(1)),
            (true, false) => {}
            (false, _) => dims.push(*size),
        }
    }
    let as_input = d.opset >= if op == "ReduceSum" { 13 } else { 18 };
    let negative = d.opset >= 11 && d.random.once_in(2);
    let list: Option<Vec<i64>> = axes.map(|a| a.iter().map(|v| *v as i64 - if negative { rank as i64 } else { 0 }).collect());
    let mut attributes = if keep && d.random.once_in(2) { vec![] } else { vec![super::attribute::int("keepdims", i64::from(keep))] };
    let terms = super::size::product(&x.dims).0.into_iter().max().unwrap_or(1) as f64;
    let mag = match op {
        "ReduceMean" | "ReduceMax" | "ReduceMin" => x.mag,
        "ReduceSum" => x.mag * terms.sqrt(),
        "ReduceLogSum" | "ReduceLogSumExp" => 6.0 + x.mag,
        "ReduceProd" => 40.0,
        _ => x.mag.max(x.mag * x.mag) * terms,
    };
    match list {
        Some(list) if as_input => {
            let list = d.ints(&list);
            Some(d.emit(op, &[x, &list], attributes, x.ty, dims, mag))
        }
        Some(list) => {
            attributes.push(ints("axes", &list));
            Some(d.emit(op, &[x], attributes, x.ty, dims, mag))
        }
        None => Some(d.emit(op, &[x], attributes, x.ty, dims, mag)),
    }
}
