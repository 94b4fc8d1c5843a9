//! Nearest-neighbour upsampling by integer factors.

use crate::attr::Attr;
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque, SpellingInput};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::LARGEST_SIZE;
use crate::ops::resize;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(7, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (13, Types::BF16)];

operator! {
    /// `x[d..] → y[d * scale..]` with `y[i..] = x[floor(i / scale)..]`; any element type.
    pub struct Upsample {
        /// Integer factor of every axis, ≥ 1.
        pub scales: Vec<i64>,
    }
}

impl Operator for Upsample {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = inputs else { return Err(TypeError::invalid("Upsample takes one operand")) };
        if x.rank() != self.scales.len() || !self.scales.iter().all(|s| (1..=LARGEST_SIZE).contains(s)) {
            return Err(TypeError::invalid(format!("Upsample of {x} by {:?}", self.scales)));
        }
        let shape = x.shape.iter().zip(&self.scales).map(|(d, s)| d.clone() * Dim::from(*s)).collect();
        Ok(vec![TensorType { dtype: x.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = inputs else { return Err(EvalError::value("Upsample takes one operand")) };
        let scales: Vec<usize> = self.scales.iter().filter_map(|s| usize::try_from(*s).ok()).collect();
        if x.shape().len() != self.scales.len() || scales.len() != self.scales.len() {
            return Err(EvalError::value(format!("Upsample of {:?} by {:?}", x.shape(), self.scales)));
        }
        Ok(vec![match x {
            Value::Real(t) => Value::real(repeated(t, &scales)),
            Value::Int(t) => Value::int(repeated(t, &scales)),
            Value::Bool(t) => Value::bool(repeated(t, &scales)),
        }])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Upsample", "Resize"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        repetition(node).or_else(|_| resize::import(node))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("Upsample", TYPES, version, outputs[0].dtype)?;
        let scales: Vec<f64> = self.scales.iter().map(|s| *s as f64).collect();
        let floats = |values: &[f64]| {
            let value = Const::from_f64(DType::F32, &[values.len() as i64], values);
            value.ok_or_else(|| NoSpelling { op: "Upsample", why: "its scales are not a vector".into() })
        };
        let nearest = Attr::Str("nearest".into());
        if version < 9 {
            let scales = scales.into_iter().map(crate::attr::Float).collect();
            return Ok(OnnxSpelling::plain("Upsample", 1).with("mode", nearest).with("scales", Attr::Floats(scales)));
        }
        let spelling = OnnxSpelling::plain(if version == 9 { "Upsample" } else { "Resize" }, 1).with("mode", nearest);
        if version < 11 {
            return Ok(spelling.with_const(floats(&scales)?));
        }
        // The region of interest is a required input until opset 12, so an empty one is given.
        let mut spelling =
            spelling.with("coordinate_transformation_mode", Attr::Str("asymmetric".into())).with("nearest_mode", Attr::Str("floor".into()));
        spelling.inputs.push(if version < 13 { SpellingInput::Const(floats(&[])?) } else { SpellingInput::Missing });
        Ok(spelling.with_const(floats(&scales)?))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        Work { flops: 0.0, extra_bytes: 0.0, kernel: Kernel::Copy }
    }
}

/// A node that repeats every element by whole factors.
fn repetition(node: &OnnxNode) -> Result<Imported, Opaque> {
    if node.str("mode").unwrap_or("nearest") != "nearest" {
        return Err(Opaque(format!("{} between neighbours", node.op_type)));
    }
    // They concern interpolation, and positions outside the operand.
    node.attrs.ignore(&["antialias", "cubic_coeff_a", "exclude_outside", "extrapolation_value"]);
    if node.flag("antialias", false)? {
        return Err(Opaque("Resize with antialias".into()));
    }
    if node.str("keep_aspect_ratio_policy").unwrap_or("stretch") != "stretch" {
        return Err(Opaque("Resize that keeps the aspect ratio".into()));
    }
    let x = node.ty(0)?;
    let given = if node.op_type == "Upsample" { legacy_scales(node, x)? } else { resize_scales(node, x)? };
    let scales = on_all_axes(node, x.rank(), given)?;
    if node.op_type == "Resize" && node.version >= 11 {
        let transform = node.str("coordinate_transformation_mode").unwrap_or("half_pixel");
        let rounding = node.str("nearest_mode").unwrap_or("round_prefer_floor");
        for (scale, d) in scales.iter().zip(&x.shape) {
            if !repeats(transform, rounding, *scale, d.known()) {
                return Err(Opaque(format!("Resize by {scale} with {transform} and {rounding} is not a plain repetition")));
            }
        }
    }
    Ok(Imported { op: crate::Op::Upsample(Upsample { scales }), operands: vec![ImportOperand::Input(0)] })
}

/// Scales of an `Upsample` node, one per axis.
fn legacy_scales(node: &OnnxNode, x: &TensorType) -> Result<Vec<i64>, Opaque> {
    if node.version < 9 {
        return match node.attrs.get("scales") {
            Some(Attr::Floats(v)) => whole(node, v.iter().map(|f| f.0)),
            Some(Attr::Ints(v)) => whole(node, v.iter().map(|i| *i as f64)),
            _ => Err(Opaque(format!("{} without scales for {x}", node.op_type))),
        };
    }
    constant_scales(node, 1)?.ok_or_else(|| Opaque("Upsample without scales".into()))
}

/// Factors of a `Resize` node, one per listed axis, from its scales or from its sizes.
fn resize_scales(node: &OnnxNode, x: &TensorType) -> Result<Vec<i64>, Opaque> {
    let at = if node.version < 11 { 1 } else { 2 };
    if let Some(scales) = constant_scales(node, at)? {
        return Ok(scales);
    }
    let Some(sizes) = node.inputs.get(3).and_then(Option::as_ref).filter(|_| node.version >= 11) else {
        return Err(Opaque("Resize without scales or sizes".into()));
    };
    let constant = sizes.value.as_ref().and_then(Const::to_i64).map(|v| v.into_iter().map(Dim::from).collect::<Vec<_>>());
    let Some(sizes) = constant.or_else(|| sizes.dims.clone()) else { return Err(Opaque("Resize to sizes computed at run time".into())) };
    let axes = listed_axes(node, x.rank())?;
    if axes.len() != sizes.len() {
        return Err(Opaque(format!("Resize of {x} to {} sizes", sizes.len())));
    }
    let factor = |(axis, size): (&usize, &Dim)| size.exact_div(&x.shape[*axis]).and_then(|f| f.known()).filter(|f| *f >= 1);
    let factors: Option<Vec<i64>> = axes.iter().zip(&sizes).map(factor).collect();
    factors.ok_or_else(|| Opaque(format!("Resize of {x} to sizes that are no whole multiples")))
}

/// The constant scales at input `at` as integers; `None` if they are left out or empty.
fn constant_scales(node: &OnnxNode, at: usize) -> Result<Option<Vec<i64>>, Opaque> {
    let empty = |t: &TensorType| t.shape.as_slice() == [Dim::from(0)];
    if node.ty(at).is_ok_and(empty) {
        return Ok(None);
    }
    let Some(value) = node.constant(at)? else { return Ok(None) };
    if value.dtype().class() != Class::Real {
        return Err(Opaque(format!("{} has scales of type {}", node.op_type, value.dtype())));
    }
    match value.to_f64() {
        Some(v) if v.is_empty() => Ok(None),
        Some(v) => whole(node, v.into_iter()).map(Some),
        None => Err(Opaque(format!("{} has no readable scales", node.op_type))),
    }
}

fn whole(node: &OnnxNode, scales: impl Iterator<Item = f64>) -> Result<Vec<i64>, Opaque> {
    scales
        .map(|s| {
            if s >= 1.0 && s.fract() == 0.0 && s <= LARGEST_SIZE as f64 {
                Ok(s as i64)
            } else {
                Err(Opaque(format!("{} by the factor {s}", node.op_type)))
            }
        })
        .collect()
}

/// The axes that a `Resize` node lists, all by default.
fn listed_axes(node: &OnnxNode, rank: usize) -> Result<Vec<usize>, Opaque> {
    match node.ints("axes") {
        Some(axes) if !axes.is_empty() => axes.into_iter().map(|a| node.axis(a, rank).map(|a| a as usize)).collect(),
        _ => Ok((0..rank).collect()),
    }
}

fn on_all_axes(node: &OnnxNode, rank: usize, given: Vec<i64>) -> Result<Vec<i64>, Opaque> {
    let axes = listed_axes(node, rank)?;
    if axes.len() != given.len() {
        return Err(Opaque(format!("{} of rank {rank} by {} factors", node.op_type, given.len())));
    }
    let mut scales = vec![1; rank];
    for (axis, scale) in axes.into_iter().zip(given) {
        scales[axis] = scale;
    }
    Ok(scales)
}

/// Sizes up to which single-precision coordinates are exact enough for the `align_corners` argument
/// below.
const EXACT_CORNERS: i64 = 1024;
/// Factors up to which they are exact enough for half-pixel centres.
const EXACT_CENTRES: i64 = 64;

/// True if the coordinate rule reads `x[floor(i / scale)]` at every position `i`.
///
/// With `i = scale * q + r`, the coordinate is
/// * asymmetric: `q + r / scale`, so `floor` gives `q`; and half or less of a step off for a factor
///   of 2, so preferring the floor does;
/// * a half-pixel mode: `q + (r + 1/2) / scale - 1/2`, less than half a step off `q`, so rounding
///   to nearest gives `q`. The variants differ only for results of size 1 and for fractional
///   factors;
/// * half-pixel of old TensorFlow: `q + (r + 1/2) / scale`, so `floor` gives `q`;
/// * aligned corners: 0 on a size of 1; for a factor of 2 on size `n` it is `q - q / (2n - 1)` or
///   `q + (n - 1 - q) / (2n - 1)`, less than half a step off.
///
/// A factor of 1 is exact in all modes but old TensorFlow's, where the coordinate is `i + 1/2`.
fn repeats(transform: &str, rounding: &str, scale: i64, size: Option<i64>) -> bool {
    let to_nearest = matches!(rounding, "round_prefer_floor" | "round_prefer_ceil");
    if !to_nearest && !matches!(rounding, "floor" | "ceil") {
        return false;
    }
    match transform {
        "asymmetric" => scale == 1 || rounding == "floor" || (scale == 2 && rounding == "round_prefer_floor"),
        "half_pixel" | "pytorch_half_pixel" | "half_pixel_symmetric" => scale == 1 || (to_nearest && scale <= EXACT_CENTRES),
        "tf_half_pixel_for_nn" => rounding == "floor" || (scale == 1 && rounding == "round_prefer_floor"),
        "align_corners" => {
            scale == 1 || size == Some(1) || (scale == 2 && to_nearest && size.is_some_and(|n| (1..=EXACT_CORNERS).contains(&n)))
        }
        _ => false,
    }
}

fn repeated<T: Clone>(x: &Tensor<T>, scales: &[usize]) -> Tensor<T> {
    let mut shape = x.shape.clone();
    let mut data = x.data.clone();
    // Innermost first: the runs copied for outer axes are long.
    for (axis, scale) in scales.iter().enumerate().rev().filter(|(_, s)| **s > 1) {
        let run: usize = shape[axis + 1..].iter().product();
        shape[axis] *= scale;
        let mut next = Vec::with_capacity(data.len() * scale);
        if run == 1 {
            data.iter().for_each(|v| next.extend(std::iter::repeat_n(v, *scale).cloned()));
        } else if run > 0 {
            data.chunks_exact(run).for_each(|block| (0..*scale).for_each(|_| next.extend_from_slice(block)));
        }
        data = next;
    }
    Tensor::new(shape, data)
}
