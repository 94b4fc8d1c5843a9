//! Strided ranges along axes.

use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{
    axes_below, concrete, copy, ints, moved, no_spelling, not_negative, operands, read_strided, required_sizes, values,
};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::{PartialType, TensorType};

/// Bounds from here on mean "to the end" even if the size is unknown.
const FAR: i64 = i32::MAX as i64;
const FAR_BACK: i64 = -FAR;

operator! {
    /// Along each axis the elements at `start, start + step, ..` before `end`.
    ///
    /// Bounds are inside the tensor, counted from the front: `0 ≤ start ≤ end ≤ size` for a
    /// positive step, and `-1 ≤ end ≤ start ≤ size - 1` for a negative one (an end of -1 is one
    /// before the first element).
    pub struct Slice {
        /// Axes, ascending; all others are kept whole.
        pub axes: Vec<i64>,
        /// First index along each of the axes.
        pub starts: Vec<Dim>,
        /// The index before which each range ends.
        pub ends: Vec<Dim>,
        /// Distance between indices, not 0.
        pub steps: Vec<i64>,
    }
}

/// A range along one axis.
struct Range {
    start: Dim,
    end: Dim,
    step: i64,
}

impl Range {
    /// The lowest index that may be read and the first index beyond the highest.
    fn span(&self) -> (Dim, Dim) {
        if self.step > 0 {
            (self.start.clone(), self.end.clone())
        } else {
            (self.end.clone() + Dim::from(1), self.start.clone() + Dim::from(1))
        }
    }
}

impl Slice {
    fn ranges(&self) -> Result<Vec<Range>, TypeError> {
        let n = self.axes.len();
        if self.starts.len() != n || self.ends.len() != n || self.steps.len() != n || self.steps.contains(&0) {
            return Err(TypeError::invalid("Slice needs a start, an end and a step other than 0 for every axis"));
        }
        let bounds = self.starts.iter().zip(&self.ends).zip(&self.steps);
        Ok(bounds.map(|((start, end), step)| Range { start: start.clone(), end: end.clone(), step: *step }).collect())
    }
}

impl Operator for Slice {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Slice", inputs)?;
        let mut result = x.clone();
        let axes = axes_below("Slice", &self.axes, x.rank())?;
        // ONNX clamps bounds outside the tensor.
        let sure = || {
            let size = |(at, size): (usize, &Dim)| (!axes.contains(&at)).then(|| size.clone());
            PartialType { dtype: x.dtype, shape: x.shape.iter().enumerate().map(size).collect() }
        };
        for (range, axis) in self.ranges()?.iter().zip(axes.iter().copied()) {
            let (low, high) = range.span();
            let whole = &x.shape[axis];
            let length = high.clone() - low.clone();
            // The size of an existing axis is not negative, even where that cannot be shown.
            let shown = if length == *whole { Dim::from(0) } else { length.clone() };
            not_negative(&low, || format!("the lower bound of Slice along axis {axis}"))
                .and_then(|()| not_negative(&shown, || format!("the length of Slice along axis {axis}")))
                .and_then(|()| not_negative(&(whole.clone() - high), || format!("what Slice leaves of axis {axis} of {x}")))
                .map_err(|e| e.with_types([sure()]))?;
            // A step beyond the range acts like one of its length, and does not overflow.
            let step = length.known().map_or(i64::MAX, |n| n.max(1)).min(range.step.saturating_abs());
            result.shape[axis] = length.ceil_div(&Dim::from(step));
        }
        Ok(vec![result])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Slice", inputs)?;
        let (starts, ends) = (concrete(&self.starts, inputs, context)?, concrete(&self.ends, inputs, context)?);
        let own = strides(x.shape());
        let mut shape = x.shape().to_vec();
        let mut view: Vec<isize> = own.iter().map(|s| *s as isize).collect();
        let mut offset = 0usize;
        for (((axis, start), end), step) in self.axes.iter().zip(starts).zip(ends).zip(&self.steps) {
            let misfit = || EvalError::value(format!("Slice {start}..{end} of {:?} along axis {axis}", x.shape()));
            let axis = usize::try_from(*axis).ok().filter(|a| *a < shape.len()).ok_or_else(misfit)?;
            let size = shape[axis] as i64;
            let (low, high) = if *step > 0 { (start, end) } else { (end + 1, start + 1) };
            if low < 0 || high < low || size < high || *step == 0 {
                return Err(misfit());
            }
            shape[axis] = (high - low).unsigned_abs().div_ceil(step.unsigned_abs()) as usize;
            if shape[axis] > 0 {
                offset += start as usize * own[axis];
                // A range of one element never steps, and its step may be arbitrarily large.
                view[axis] = if shape[axis] == 1 { 0 } else { *step as isize * own[axis] as isize };
            }
        }
        Ok(vec![moved!(x, |t| Tensor::new(shape.clone(), read_strided(&t.data, &shape, &view, offset)))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Slice"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let missing = |what: &str| Opaque(format!("Slice without {what}"));
        let (starts, ends, axes, steps) = if node.version < 10 {
            let list = |name: &str| node.ints(name).map(|v| v.into_iter().map(Dim::from).collect::<Vec<_>>()).ok_or_else(|| missing(name));
            (list("starts")?, list("ends")?, node.ints("axes"), None)
        } else {
            (required_sizes(node, 1)?, required_sizes(node, 2)?, node.constant_ints(3)?, node.constant_ints(4)?)
        };
        let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
        if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() || steps.contains(&0) {
            return Err(missing("a start, an end and a step for every axis"));
        }
        let mut parts = Vec::with_capacity(axes.len());
        for (((axis, start), end), step) in axes.iter().zip(&starts).zip(&ends).zip(&steps) {
            let axis = node.axis(*axis, x.rank())?;
            parts.push((axis, clamp(&x.shape[axis as usize], start, end, *step)?));
        }
        parts.sort_by_key(|(axis, _)| *axis);
        let op = Slice {
            axes: parts.iter().map(|p| p.0).collect(),
            starts: parts.iter().map(|p| p.1.start.clone()).collect(),
            ends: parts.iter().map(|p| p.1.end.clone()).collect(),
            steps: parts.iter().map(|p| p.1.step).collect(),
        };
        Ok(node.import_with(crate::Op::Slice(op), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let [x] = inputs else { return Err(no_spelling("Slice", "it takes one operand")) };
        let ranges = self.ranges().map_err(|e| no_spelling("Slice", e.to_string()))?;
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (range, axis) in ranges.iter().zip(&self.axes) {
            let open = x.shape.get(*axis as usize).is_some_and(|size| size.known().is_none());
            if version == 10 && open && range.step.abs() != 1 {
                // Inference then forgets the step, and runtimes plan memory by its result.
                return Err(no_spelling("Slice", "opset 10 says wrong sizes of steps through an open size"));
            }
            let whole = x.shape.get(*axis as usize).ok_or_else(|| no_spelling("Slice", format!("axis {axis} is not there")))?;
            // An empty tensor read backwards starts at -1 here.
            starts.push(if range.start.is(-1) { Dim::from(0) } else { written(&range.start, whole)? });
            // Before the first element: -1 would be the last one in ONNX.
            ends.push(if range.step < 0 && range.end.is(-1) { Dim::from(i64::MIN) } else { written(&range.end, whole)? });
        }
        let spelling = OnnxSpelling::plain("Slice", 1);
        if version >= 10 {
            return Ok(spelling.with_dims(&starts).with_dims(&ends).with_ints(&self.axes).with_ints(&self.steps));
        }
        if self.steps.iter().any(|s| *s != 1) {
            return Err(no_spelling("Slice", format!("steps other than 1 exist since opset 10, the model has {version}")));
        }
        let numbers = |bounds: &[Dim]| bounds.iter().map(Dim::known).collect::<Option<Vec<i64>>>();
        let (Some(starts), Some(ends)) = (numbers(&starts), numbers(&ends)) else {
            return Err(no_spelling(
                "Slice",
                format!("a bound that is unknown before run time can be written since opset 10, not {version}"),
            ));
        };
        Ok(spelling.with("starts", ints(&starts)).with("ends", ints(&ends)).with("axes", ints(&self.axes)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

/// A bound as ONNX writes it: the number, the far end, counted from the end, or a size that is not
/// negative.
fn written(bound: &Dim, whole: &Dim) -> Result<Dim, NoSpelling> {
    if bound == whole {
        return Ok(Dim::from(i64::MAX));
    }
    if bound.known().is_some() {
        return Ok(bound.clone());
    }
    match (whole.clone() - bound.clone()).known() {
        Some(back) if back > 0 => Ok(Dim::from(-back)),
        _ if bound.at_least(0) => Ok(bound.clone()),
        _ => Err(no_spelling("Slice", format!("the bound {bound} may be negative, which would count from the end"))),
    }
}

/// The range that ONNX means by `start`, `end` and `step` along an axis of size `whole`.
fn clamp(whole: &Dim, start: &Dim, end: &Dim, step: i64) -> Result<Range, Opaque> {
    if step < 0 && end.known().is_some_and(|end| end >= FAR) {
        return Err(Opaque("Slice backwards to the far end: runtimes read it as none or as all elements".into()));
    }
    if let (Some(size), Some(start), Some(end)) = (whole.known(), start.known(), end.known()) {
        let from_front = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
        let (start, end) = (from_front(start), from_front(end));
        // The order of clamps matters for empty axes, whose highest index is below the lowest.
        let (start, end) = if step > 0 {
            let start = start.clamp(0, size);
            (start, end.clamp(0, size).max(start))
        } else {
            let start = start.max(0).min(size - 1);
            (start, end.max(-1).min(size - 1).min(start))
        };
        return Ok(Range { start: start.into(), end: end.into(), step });
    }
    let (start, end) = if step > 0 {
        (bound(whole, start, Dim::from(0), whole.clone(), 0)?, bound(whole, end, Dim::from(0), whole.clone(), 0)?)
    } else {
        let last = whole.clone() - Dim::from(1);
        (bound(whole, start, Dim::from(0), last.clone(), 1)?, bound(whole, end, Dim::from(-1), last, 1)?)
    };
    let reversed = match (start.known(), end.known()) {
        (Some(start), Some(end)) => (end - start) * step.signum() < 0,
        _ => false,
    };
    let end = if reversed { start.clone() } else { end };
    Ok(Range { start, end, step })
}

/// One bound along an axis of symbolic size, if it can be shown to lie inside; far bounds become
/// `lowest` or `highest`.
///
/// `room` is by how much the size must exceed a bound counted from the front.
fn bound(whole: &Dim, given: &Dim, lowest: Dim, highest: Dim, room: i64) -> Result<Dim, Opaque> {
    let doubt = || Opaque(format!("Slice at {given} may be outside a size of {whole}"));
    match given.known() {
        Some(FAR..) => Ok(highest),
        Some(..=FAR_BACK) => Ok(lowest),
        Some(back @ ..0) if whole.at_least(-back) => Ok(whole.clone() + Dim::from(back)),
        Some(at @ 0..) if whole.at_least(at + room) => Ok(Dim::from(at)),
        None if given.at_least(0) && (highest - given.clone()).at_least(0) => Ok(given.clone()),
        _ => Err(doubt()),
    }
}
