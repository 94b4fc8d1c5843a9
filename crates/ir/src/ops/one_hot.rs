//! Indices as rows of zeros and ones.

use crate::attr::Attr;
use crate::constant::Const;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{copy, moved, no_spelling, operands, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

operator! {
    /// `(indices, values)`: along a new axis of size `depth`, `values[1]` where the position is the
    /// index and `values[0]` elsewhere.
    ///
    /// Negative indices count from the end; an index outside `-depth .. depth` gives `values[0]`
    /// everywhere.
    pub struct OneHot {
        /// Position of the new axis in the result, ≥ 0.
        pub axis: i64,
        /// Its size.
        pub depth: i64,
    }
}

impl Operator for OneHot {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [indices, pair] = operands("OneHot", inputs)?;
        let axis = usize::try_from(self.axis).ok().filter(|a| *a <= indices.rank());
        let (Some(axis), 0..) = (axis, self.depth) else {
            return Err(TypeError::invalid(format!("OneHot of {indices} with depth {} at axis {}", self.depth, self.axis)));
        };
        if indices.dtype.class() != Class::Int || pair.rank() != 1 || !pair.shape[0].is(2) {
            return Err(TypeError::invalid(format!("OneHot needs integer indices and two values, not {indices} and {pair}")));
        }
        let mut shape = indices.shape.clone();
        shape.insert(axis, self.depth.into());
        Ok(vec![TensorType { dtype: pair.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [Value::Int(indices), pair] = values("OneHot", inputs)? else {
            return Err(EvalError::value("OneHot needs integer indices"));
        };
        let axis = usize::try_from(self.axis).unwrap_or(usize::MAX);
        if pair.shape() != [2] || axis > indices.shape.len() || self.depth < 0 {
            return Err(EvalError::value(format!("OneHot of {:?} with values of shape {:?}", indices.shape, pair.shape())));
        }
        Ok(vec![moved!(pair, |t| self.rows(indices, axis, t))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["OneHot"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        if node.version < 11 {
            return Err(Opaque(format!("OneHot of opset {} leaves negative indices open", node.version)));
        }
        let depth = match node.constant_ints(1)?.as_deref() {
            Some([depth]) => *depth,
            _ => return Err(Opaque("OneHot needs one depth".into())),
        };
        let axis = node.axis(node.int("axis").unwrap_or(-1), node.ty(0)?.rank() + 1)?;
        Ok(node.import_with(crate::Op::OneHot(OneHot { axis, depth }), &[0, 2]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("OneHot", version, 11)?;
        // Runtimes have kernels for depths of the same type as the indices.
        let dtype = inputs.first().map_or(DType::I64, |t| t.dtype);
        let depth = Const::from_i64(dtype, &[], &[self.depth]).ok_or_else(|| no_spelling("OneHot", format!("a depth of type {dtype}")))?;
        let mut spelling = OnnxSpelling::plain("OneHot", 1).with("axis", Attr::Int(self.axis)).with_const(depth);
        spelling.inputs.push(crate::onnx::SpellingInput::Operand(1));
        Ok(spelling)
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}

impl OneHot {
    fn rows<T: Clone>(&self, indices: &Tensor<i64>, axis: usize, pair: &Tensor<T>) -> Tensor<T> {
        let depth = self.depth as usize;
        let inner: usize = indices.shape[axis..].iter().product();
        let mut shape = indices.shape.clone();
        shape.insert(axis, depth);
        let mut result = Tensor::filled(shape, pair.data[0].clone());
        for (at, index) in indices.data.iter().enumerate() {
            let from_front = if *index < 0 { index + self.depth } else { *index };
            if (0..self.depth).contains(&from_front) {
                result.data[(at / inner * depth + from_front as usize) * inner + at % inner] = pair.data[1].clone();
            }
        }
        result
    }
}
