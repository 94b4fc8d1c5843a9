//! Rotation of pairs of elements by the angles of their positions.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::gather::Gather;
use crate::ops::operands::{equal_sizes, floats, reals};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(23, Types::FLOATS.and(Types::BF16))];

operator! {
    /// `(x, cosines, sines)`: pairs of elements of each head, rotated: `(a, b)` becomes
    /// `(a cos - b sin, a sin + b cos)`.
    ///
    /// `x` is `[B,H,S,E]`, or `[B,S,H*E]`; the others are `[B,S,R/2]`, one angle for each pair.
    pub struct RotaryEmbedding {
        /// Pairs are neighbours, rather than elements half of `R` apart.
        pub interleaved: bool,
        /// `R`: how many elements of each head are rotated, the first ones; even, ≥ 2.
        pub rotary_embedding_dim: i64,
        /// `H` for an operand of three axes; 0 for one of four.
        pub num_heads: i64,
    }
}

impl Operator for RotaryEmbedding {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        floats("RotaryEmbedding", inputs, 3..=3)?;
        let (x, angles) = (&inputs[0], &inputs[1..]);
        let refused = || TypeError::invalid(format!("{self:?} of {x}"));
        let (batch, positions, size) = match (x.shape.as_slice(), self.num_heads) {
            ([batch, _, positions, size], 0) => (batch, positions, size.known()),
            ([batch, positions, width], heads @ 1..) => (batch, positions, width.known().filter(|w| w % heads == 0).map(|w| w / heads)),
            _ => return Err(refused()),
        };
        let rotated = self.rotary_embedding_dim;
        if size.is_none_or(|size| rotated < 2 || rotated % 2 != 0 || rotated > size) {
            return Err(refused());
        }
        for angle in angles {
            let [own_batch, own_positions, pairs] = angle.shape.as_slice() else { return Err(refused()) };
            equal_sizes("RotaryEmbedding", "angles for each batch", batch, own_batch)?;
            equal_sizes("RotaryEmbedding", "an angle for each position", positions, own_positions)?;
            equal_sizes("RotaryEmbedding", "an angle for each pair", &Dim::from(rotated / 2), pairs)?;
        }
        Ok(vec![x.clone()])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("RotaryEmbedding", inputs)?;
        let [x, cosines, sines] = tensors.as_slice() else { return Err(EvalError::value("RotaryEmbedding takes three operands")) };
        let refused = || EvalError::value(format!("{self:?} of {:?} by {:?}", x.shape, cosines.shape));
        let half = usize::try_from(self.rotary_embedding_dim).map_err(|_| refused())? / 2;
        // Rows of one head at one position each.
        let (batch, positions, heads, size, outer) = match (x.shape.as_slice(), usize::try_from(self.num_heads)) {
            (&[batch, heads, positions, size], Ok(0)) => (batch, positions, heads, size, true),
            (&[batch, positions, width], Ok(heads)) if heads > 0 && width % heads == 0 => (batch, positions, heads, width / heads, false),
            _ => return Err(refused()),
        };
        if [&cosines.shape, &sines.shape].iter().any(|shape| shape.as_slice() != [batch, positions, half]) || 2 * half > size || size == 0 {
            return Err(refused());
        }
        let mut data = x.data.clone();
        for (row, (from, to)) in x.data.chunks_exact(size).zip(data.chunks_exact_mut(size)).enumerate() {
            let position = if outer { row / (heads * positions) * positions + row % positions } else { row / heads };
            for pair in 0..half {
                let (a, b) = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
                let (cos, sin) = (&cosines.data[position * half + pair], &sines.data[position * half + pair]);
                to[a] = from[a].mul(cos).sub(&from[b].mul(sin));
                to[b] = from[a].mul(sin).add(&from[b].mul(cos));
            }
        }
        Ok(vec![Value::real(Tensor::new(x.shape.clone(), data))])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["RotaryEmbedding"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let written = node.int("num_heads").unwrap_or(0);
        let (num_heads, size) = match (x.shape.as_slice(), written) {
            ([_, heads, _, size], written) if written == 0 || heads.is(written) => (0, size.known()),
            ([_, _, width], heads @ 1..) => (heads, width.known().map(|w| w / heads)),
            _ => return Err(Opaque(format!("RotaryEmbedding of {x} with {written} heads"))),
        };
        let size = size.ok_or_else(|| Opaque("RotaryEmbedding of open widths".into()))?;
        let rotary_embedding_dim = node.int("rotary_embedding_dim").filter(|r| *r != 0).unwrap_or(size);
        let interleaved = node.flag("interleaved", false)?;
        let op = crate::Op::RotaryEmbedding(RotaryEmbedding { interleaved, rotary_embedding_dim, num_heads });
        if !node.has(3) {
            return Ok(node.import_with(op, &[0, 1, 2]));
        }
        if node.ty(1)?.rank() != 2 || node.ty(2)?.rank() != 2 || node.ty(3)?.rank() != 2 {
            return Err(Opaque("RotaryEmbedding by positions needs tables of angles".into()));
        }
        let angles = |table: usize| ImportOperand::Node(Box::new(node.import_with(crate::Op::Gather(Gather { axis: 0 }), &[table, 3])));
        Ok(Imported { op, operands: vec![ImportOperand::Input(0), angles(1), angles(2)] })
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("RotaryEmbedding", TYPES, version, inputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("RotaryEmbedding", 3)
            .with("interleaved", Attr::Int(i64::from(self.interleaved)))
            .with("rotary_embedding_dim", Attr::Int(self.rotary_embedding_dim));
        Ok(if self.num_heads > 0 { spelling.with("num_heads", Attr::Int(self.num_heads)) } else { spelling })
    }

    fn work(&self, _: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        Work { flops: 3.0 * out as f64, ..Work::default() }
    }
}
