//! Cutting a tensor into consecutive parts along an axis.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{axis_below, block, copy, equal_sizes, ints, moved, operands, sizes_of, values};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

operator! {
    /// Results of the given sizes along `axis`, one after another; the sizes sum to the operand's.
    pub struct Split {
        /// Axis, ≥ 0.
        pub axis: i64,
        /// Size of each result along the axis.
        pub sizes: Vec<i64>,
    }
}

impl Operator for Split {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Split", inputs)?;
        let axis = axis_below("Split", self.axis, x.rank())?;
        if self.sizes.is_empty() || self.sizes.iter().any(|s| *s < 0) {
            return Err(TypeError::invalid(format!("Split needs sizes of at least 0, not {:?}", self.sizes)));
        }
        let sum = self.sizes.iter().fold(0i64, |sum, s| sum.saturating_add(*s));
        let part = |size: &i64| {
            let mut ty = x.clone();
            ty.shape[axis] = Dim::from(*size);
            ty
        };
        let types: Vec<TensorType> = self.sizes.iter().map(part).collect();
        equal_sizes(&Dim::from(sum), &x.shape[axis], || format!("Split needs sizes that sum to that of axis {axis}"))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Split", inputs)?;
        let axis = self.axis as usize;
        let sizes: Vec<usize> = self.sizes.iter().map(|s| *s as usize).collect();
        if x.shape().get(axis) != Some(&sizes.iter().sum()) {
            return Err(EvalError::value(format!("Split of {:?} along axis {axis} into {sizes:?}", x.shape())));
        }
        let mut start = 0;
        let mut part = |size: usize| {
            let from = start;
            start += size;
            moved!(x, |t| block(t, axis, from, size))
        };
        Ok(sizes.into_iter().map(&mut part).collect())
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Split"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let axis = node.axis(node.int("axis").unwrap_or(0), x.rank())?;
        let given = match node.ints("split").filter(|_| node.version < 13) {
            Some(sizes) => Some(sizes),
            None if node.version >= 13 || node.version < 2 => match sizes_of(node, 1)? {
                Some(sizes) => {
                    let known: Option<Vec<i64>> = sizes.iter().map(Dim::known).collect();
                    Some(known.ok_or_else(|| Opaque("Split into symbolic sizes".into()))?)
                }
                None => None,
            },
            None => None,
        };
        let sizes = match given {
            Some(sizes) => sizes,
            None => equal_parts(node, &x.shape[axis as usize])?,
        };
        if sizes.len() != node.outputs.len() {
            return Err(Opaque(format!("Split names {} outputs for {} sizes", node.outputs.len(), sizes.len())));
        }
        Ok(node.import_with(crate::Op::Split(Split { axis, sizes }), &[0]))
    }

    fn spell(&self, _: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let spelling = OnnxSpelling::plain("Split", 1).with("axis", Attr::Int(self.axis));
        Ok(if version < 13 { spelling.with("split", ints(&self.sizes)) } else { spelling.with_ints(&self.sizes) })
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

/// The sizes of parts if not given: equal ones; since opset 18 the last may be smaller.
fn equal_parts(node: &OnnxNode, whole: &Dim) -> Result<Vec<i64>, Opaque> {
    let parts = node.int("num_outputs").unwrap_or(node.outputs.len() as i64);
    let whole = whole.known().ok_or_else(|| Opaque("Split of a symbolic size into equal parts".into()))?;
    if parts < 1 || parts > node.outputs.len() as i64 {
        return Err(Opaque(format!("Split into {parts} parts")));
    }
    let part = (whole + parts - 1) / parts;
    let last = whole - part * (parts - 1);
    if last < 0 || (last != part && (node.version < 18 || last == 0)) {
        return Err(Opaque(format!("Split of {whole} into {parts} equal parts")));
    }
    let mut sizes = vec![part; parts as usize - 1];
    sizes.push(last);
    Ok(sizes)
}
