//! Attention of several heads at once.

use crate::attr::{Attr, Float};
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{ImportOperand, Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque, SpellingInput};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::arithmetic::Add;
use crate::ops::movement::{no_spelling, read_strided};
use crate::ops::operands::{divided, equal_sizes, floats, one_result, reals};
use crate::ops::slice::Slice;
use crate::ops::softmax::softmax_line;
use crate::scalar::{Scalar, zeros};
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// The domain of ONNX Runtime's own operators.
const MICROSOFT: &str = "com.microsoft";
const TYPES: &[Since] = &[(1, Types::F32.and(Types::F16))];

operator! {
    /// `(queries, keys, values, bias?)`, of shapes `[B,S,H*E]`, `[B,T,H*E]` and `[B,T,H*V]`: for
    /// each of the `H` heads `softmax(scale * queries · keysᵀ + bias) · values`, beside each other
    /// in `[B,S,H*V]`.
    ///
    /// The bias has the shape `[B or 1, H or 1, S, T]`. ONNX Runtime's operator of this name.
    pub struct MultiHeadAttention {
        /// How many heads, ≥ 1.
        pub num_heads: i64,
        /// Factor of the products, a single-precision number other than 0.
        pub scale: Float,
    }
}

impl Operator for MultiHeadAttention {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let dtype = floats("MultiHeadAttention", inputs, 3..=4)?;
        let [q, k, v] = [0, 1, 2].map(|at| inputs[at].shape.as_slice());
        let ([b, s, width], [kb, t, kwidth], [vb, vt, vwidth]) = (q, k, v) else {
            return Err(TypeError::invalid(format!("MultiHeadAttention needs three axes, not {:?}", &inputs[..3])));
        };
        if self.num_heads < 1 || self.scale.0 == 0.0 || !self.scale.0.is_finite() {
            return Err(TypeError::invalid(format!("MultiHeadAttention of {} heads by {}", self.num_heads, self.scale.0)));
        }
        for (name, x, y) in
            [("equal batches", b, kb), ("equal batches", b, vb), ("a value for each key", t, vt), ("keys like queries", width, kwidth)]
        {
            equal_sizes("MultiHeadAttention", name, x, y)?;
        }
        divided("MultiHeadAttention", width, self.num_heads)?;
        divided("MultiHeadAttention", vwidth, self.num_heads)?;
        if let Some(bias) = inputs.get(3) {
            let [first, heads, rows, columns] = bias.shape.as_slice() else {
                return Err(TypeError::invalid(format!("MultiHeadAttention needs a bias of four axes, not {bias}")));
            };
            equal_sizes("MultiHeadAttention", "a bias for each query", s, rows)?;
            equal_sizes("MultiHeadAttention", "a bias for each key", t, columns)?;
            if !first.is(1) {
                equal_sizes("MultiHeadAttention", "a bias for each batch", b, first)?;
            }
            if !heads.is(1) {
                equal_sizes("MultiHeadAttention", "a bias for each head", &Dim::from(self.num_heads), heads)?;
            }
        }
        Ok(vec![TensorType { dtype, shape: [b, s, vwidth].into_iter().cloned().collect() }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let tensors = reals("MultiHeadAttention", inputs)?;
        let shapes: Vec<&[usize]> = tensors.iter().map(|t| t.shape.as_slice()).collect();
        let refused = || EvalError::value(format!("MultiHeadAttention of {shapes:?} with {} heads", self.num_heads));
        let heads = usize::try_from(self.num_heads).ok().filter(|h| *h > 0).ok_or_else(refused)?;
        let (&[batch, s, width], &[kb, t, kwidth], &[vb, vt, vwidth]) = (
            <&[usize; 3]>::try_from(*shapes.first().ok_or_else(refused)?).map_err(|_| refused())?,
            <&[usize; 3]>::try_from(*shapes.get(1).ok_or_else(refused)?).map_err(|_| refused())?,
            <&[usize; 3]>::try_from(*shapes.get(2).ok_or_else(refused)?).map_err(|_| refused())?,
        );
        if [kb, vb] != [batch, batch] || vt != t || kwidth != width || width % heads != 0 || vwidth % heads != 0 {
            return Err(refused());
        }
        let bias = match shapes.get(3).copied() {
            None => None,
            Some(&[b, h, rows, columns]) if [1, batch].contains(&b) && [1, heads].contains(&h) && (rows, columns) == (s, t) => {
                Some((if b == 1 { 0 } else { h * s * t }, if h == 1 { 0 } else { s * t }))
            }
            Some(_) => return Err(refused()),
        };
        let (e, o) = (width / heads, vwidth / heads);
        let scale = S::from_f64(self.scale.0);
        let mut result = Tensor::filled(vec![batch, s, vwidth], S::zero());
        for b in 0..batch {
            for h in 0..heads {
                let queries = read_strided(&tensors[0].data, &[s, e], &[width as isize, 1], b * s * width + h * e);
                let keys = read_strided(&tensors[1].data, &[e, t], &[1, width as isize], b * t * width + h * e);
                let values = read_strided(&tensors[2].data, &[t, o], &[vwidth as isize, 1], b * t * vwidth + h * o);
                let mut weights = zeros(s * t);
                S::gemm(s, e, t, &queries, &keys, &mut weights);
                weights.iter_mut().for_each(|w| *w = scale.mul(w));
                if let Some((per_batch, per_head)) = bias {
                    let own = &tensors[3].data[b * per_batch + h * per_head..][..s * t];
                    weights.iter_mut().zip(own).for_each(|(w, own)| *w = w.add(own));
                }
                for row in 0..s {
                    softmax_line(&mut weights, (row * t..(row + 1) * t).step_by(1))?;
                }
                let mut own = zeros(s * o);
                S::gemm(s, t, o, &weights, &values, &mut own);
                for (row, own) in own.chunks_exact(o.max(1)).enumerate() {
                    result.data[(b * s + row) * vwidth + h * o..][..o].clone_from_slice(own);
                }
            }
        }
        Ok(vec![Value::real(result)])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["com.microsoft:MultiHeadAttention"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        one_result(node)?;
        let (q, k, v) = (node.ty(0)?, node.ty(1)?, node.ty(2)?);
        if [q, k, v].iter().any(|t| t.rank() != 3) {
            return Err(Opaque("MultiHeadAttention of packed or transposed operands".into()));
        }
        if (4..node.inputs.len()).any(|at| at != 5 && node.has(at)) {
            return Err(Opaque("MultiHeadAttention with a mask of keys, or what was computed before".into()));
        }
        if node.flag("unidirectional", false)? {
            return Err(Opaque("MultiHeadAttention that looks at earlier keys only".into()));
        }
        // It stands for what is masked.
        node.attrs.ignore(&["mask_filter_value"]);
        let num_heads = node.int("num_heads").filter(|h| *h >= 1).ok_or_else(|| Opaque("MultiHeadAttention without heads".into()))?;
        let width = |t: &TensorType| t.shape[2].known().ok_or_else(|| Opaque("MultiHeadAttention of open widths".into()));
        let widths = [width(q)?, width(k)?, width(v)?];
        let own = 1.0 / ((widths[0] / num_heads) as f32).sqrt();
        let scale = node.float("scale").filter(|s| *s != 0.0).unwrap_or(f64::from(own));
        let op = MultiHeadAttention { num_heads, scale: Float(scale) };
        let mut operands: Vec<ImportOperand> = Vec::new();
        let mut start = 0;
        for (at, width) in widths.into_iter().enumerate() {
            let end = start + width;
            operands.push(if node.has(3) {
                let part = Slice { axes: vec![0], starts: vec![start.into()], ends: vec![end.into()], steps: vec![1] };
                let part = node.import_with(crate::Op::Slice(part), &[3]);
                let operands = vec![ImportOperand::Input(at), ImportOperand::Node(Box::new(part))];
                ImportOperand::Node(Box::new(Imported { op: crate::Op::Add(Add {}), operands }))
            } else {
                ImportOperand::Input(at)
            });
            start = end;
        }
        if node.has(3) && node.ty(3)?.shape.as_slice() != [Dim::from(start)] {
            return Err(Opaque(format!("MultiHeadAttention with a bias {} of its projections", node.ty(3)?)));
        }
        if node.has(5) {
            operands.push(ImportOperand::Input(5));
        }
        Ok(Imported { op: crate::Op::MultiHeadAttention(op), operands })
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], _: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("MultiHeadAttention", TYPES, 1, inputs[0].dtype)?;
        if f64::from(self.scale.0 as f32) != self.scale.0 {
            return Err(no_spelling("MultiHeadAttention", format!("the factor {} is no single-precision number", self.scale.0)));
        }
        let plain = OnnxSpelling { domain: MICROSOFT, ..OnnxSpelling::plain("MultiHeadAttention", 3) };
        let mut spelling = plain.with("num_heads", Attr::Int(self.num_heads)).with("scale", Attr::Float(self.scale));
        if inputs.len() == 4 {
            spelling.inputs.extend([SpellingInput::Missing, SpellingInput::Missing, SpellingInput::Operand(3)]);
        }
        Ok(spelling)
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let size = |at: usize, axis: usize| inputs.get(at).and_then(|s| s.get(axis)).map_or(0.0, |d| *d as f64);
        let pairs = size(0, 0) * size(0, 1) * size(1, 1);
        let out = outputs.first().and_then(|o| o.last()).map_or(0.0, |d| *d as f64);
        // Both products, and a dozen for each exponential.
        let flops = pairs * (2.0 * (size(0, 2) + out) + 12.0 * self.num_heads as f64);
        Work { flops, extra_bytes: 0.0, kernel: if size(0, 1) < 4.0 { Kernel::Thin } else { Kernel::Dense } }
    }
}
