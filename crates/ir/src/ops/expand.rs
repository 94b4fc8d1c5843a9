//! Repeating axes of size 1.

use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::elementwise::since;
use crate::ops::movement::{concrete_shape, copy, moved, no_spelling, operands, read_strided, required_sizes, values};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::{Shape, TensorType, broadcast_shapes};

operator! {
    /// The operand broadcast to the shape `shape`: the result has exactly these sizes.
    pub struct Expand {
        /// The result's sizes; where the operand's size is not 1, the same size.
        pub shape: Vec<Dim>,
    }
}

impl Operator for Expand {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Expand", inputs)?;
        let Some(added) = self.shape.len().checked_sub(x.rank()) else {
            return Err(TypeError::invalid(format!("Expand of {x} to the lower rank of {:?}", self.shape)));
        };
        let types = vec![TensorType { dtype: x.dtype, shape: Shape::from(self.shape.as_slice()) }];
        for (have, want) in x.shape.iter().zip(&self.shape[added..]) {
            if have.broadcast(want).as_ref() != Some(want) {
                let message = format!("Expand of {x} to {:?} needs {have} to be 1 or {want}", self.shape);
                let known = have.known().is_some() && want.known().is_some();
                return Err(if known { TypeError::Invalid(message) } else { TypeError::undecided(message).with_types(types) });
            }
        }
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Expand", inputs)?;
        let shape = concrete_shape(&self.shape, inputs, context)?;
        let misfit = || EvalError::value(format!("Expand of {:?} to {shape:?}", x.shape()));
        let added = shape.len().checked_sub(x.shape().len()).ok_or_else(misfit)?;
        let mut steps = vec![0; added];
        for ((have, want), stride) in x.shape().iter().zip(&shape[added..]).zip(strides(x.shape())) {
            match have {
                _ if have == want => steps.push(stride as isize),
                1 => steps.push(0),
                _ => return Err(misfit()),
            }
        }
        Ok(vec![moved!(x, |t| Tensor::new(shape.clone(), read_strided(&t.data, &shape, &steps, 0)))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Expand"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let wanted = required_sizes(node, 1)?;
        if wanted.iter().any(|d| d.known().is_some_and(|d| d < 0)) {
            return Err(Opaque(format!("Expand to a negative size: {wanted:?}")));
        }
        let shape =
            broadcast_shapes([x.shape.as_slice(), wanted.as_slice()]).ok_or_else(|| Opaque(format!("Expand of {x} to {wanted:?}")))?;
        Ok(node.import_with(crate::Op::Expand(Expand { shape: shape.to_vec() }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        since("Expand", version, 8)?;
        let [x] = inputs else { return Err(no_spelling("Expand", "it takes one operand")) };
        let added = self.shape.len().saturating_sub(x.rank());
        let same = |at: usize| at.checked_sub(added).and_then(|at| x.shape.get(at)) == Some(&self.shape[at]);
        let number = |(at, d): (usize, &Dim)| d.known().or_else(|| same(at).then_some(1));
        let sizes: Option<Vec<i64>> = self.shape.iter().enumerate().map(number).collect();
        let spelling = OnnxSpelling::plain("Expand", 1);
        Ok(match sizes {
            Some(sizes) => spelling.with_ints(&sizes),
            None => spelling.with_dims(&self.shape),
        })
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        copy()
    }
}
