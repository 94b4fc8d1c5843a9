//! Exchanges between channels and spatial blocks.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::operands::{LARGEST_SIZE, enforced_divided};
use crate::ops::strided::gather;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value, strides};
use crate::ty::{Shape, TensorType};

/// Element types by opset.
const TYPES: &[Since] = &[(1, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (13, Types::BF16)];

operator! {
    /// `x[N, C, H, W] → [N, C / b², H b, W b]`; any element type.
    ///
    /// Mode `DCR` reads channels as `[b, b, C / b²]`, mode `CRD` as `[C / b², b, b]`.
    pub struct DepthToSpace {
        /// Side `b` of a block.
        pub blocksize: i64,
        /// `DCR` or `CRD`.
        pub mode: String,
    }
}

operator! {
    /// `x[N, C, H, W] → [N, b² C, H / b, W / b]`, with channels `[b, b, C]`; any element type. The
    /// inverse of `DepthToSpace` in mode `DCR`.
    pub struct SpaceToDepth {
        /// Side `b` of a block; divides height and width.
        pub blocksize: i64,
    }
}

const COPY: Work = Work { flops: 0.0, extra_bytes: 0.0, kernel: Kernel::Copy };

/// The operand, if it has rank 4 and the square of the block is far below the limits of 64 bits.
fn image<'a>(name: &str, inputs: &'a [TensorType], blocksize: i64) -> Result<&'a TensorType, TypeError> {
    match inputs {
        [x] if x.rank() == 4 && (1..=LARGEST_SIZE >> 8).contains(&blocksize) => Ok(x),
        [x] => Err(TypeError::invalid(format!("{name} of {x} by {blocksize}"))),
        _ => Err(TypeError::invalid(format!("{name} takes one operand"))),
    }
}

fn block_attr(node: &OnnxNode) -> Result<i64, Opaque> {
    if node.ty(0)?.rank() != 4 {
        return Err(Opaque(format!("{} of rank {}", node.op_type, node.ty(0)?.rank())));
    }
    node.int("blocksize").ok_or_else(|| Opaque(format!("{} without blocksize", node.op_type)))
}

/// `x` viewed with six axes `split`, permuted by `perm`, as a tensor of `shape`.
fn regrouped<S: Scalar>(x: &Value<S>, split: [usize; 6], perm: [usize; 6], shape: &[usize]) -> Result<Value<S>, EvalError> {
    fn of<T: Clone>(t: &Tensor<T>, split: [usize; 6], perm: [usize; 6], shape: &[usize]) -> Tensor<T> {
        let steps = strides(&split);
        Tensor::new(shape.to_vec(), gather(&t.data, &perm.map(|a| split[a]), &perm.map(|a| steps[a])))
    }
    let count: usize = x.shape().iter().product();
    if split.iter().product::<usize>() != count || shape.iter().product::<usize>() != count {
        return Err(EvalError::value(format!("a block move of {:?} to {shape:?}", x.shape())));
    }
    Ok(match x {
        Value::Real(t) => Value::real(of(t, split, perm, shape)),
        Value::Int(t) => Value::int(of(t, split, perm, shape)),
        Value::Bool(t) => Value::bool(of(t, split, perm, shape)),
    })
}

impl Operator for DepthToSpace {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let x = image("DepthToSpace", inputs, self.blocksize)?;
        if self.mode != "DCR" && self.mode != "CRD" {
            return Err(TypeError::invalid(format!("DepthToSpace has no mode `{}`", self.mode)));
        }
        let [n, c, h, w] = x.shape.as_slice() else { return Err(TypeError::invalid(format!("DepthToSpace of {x}"))) };
        let (b, area) = (Dim::from(self.blocksize), self.blocksize * self.blocksize);
        let shape = Shape::from_iter([n.clone(), c.floor_div(&area.into()), h.clone() * b.clone(), w.clone() * b]);
        let types = vec![TensorType { dtype: x.dtype, shape }];
        enforced_divided("DepthToSpace", c, area).map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = inputs else { return Err(EvalError::value("DepthToSpace takes one operand")) };
        let (&[n, c, h, w], Some(b)) = (x.shape(), usize::try_from(self.blocksize).ok().filter(|b| *b > 0)) else {
            return Err(EvalError::value(format!("DepthToSpace of {:?}", x.shape())));
        };
        let depth = c / (b * b);
        let (split, perm) =
            if self.mode == "CRD" { ([n, depth, b, b, h, w], [0, 1, 4, 2, 5, 3]) } else { ([n, b, b, depth, h, w], [0, 3, 4, 1, 5, 2]) };
        Ok(vec![regrouped(x, split, perm, &[n, depth, h * b, w * b])?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["DepthToSpace"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let mode = node.str("mode").unwrap_or("DCR").to_string();
        if mode != "DCR" && mode != "CRD" {
            return Err(Opaque(format!("DepthToSpace with mode {mode}")));
        }
        node.import(crate::Op::DepthToSpace(DepthToSpace { blocksize: block_attr(node)?, mode }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("DepthToSpace", TYPES, version, outputs[0].dtype)?;
        let spelling = OnnxSpelling::plain("DepthToSpace", 1).with("blocksize", Attr::Int(self.blocksize));
        if self.mode == "DCR" && version < 11 {
            return Ok(spelling);
        }
        crate::ops::elementwise::since("DepthToSpace", version, 11)?;
        Ok(spelling.with("mode", Attr::Str(self.mode.clone())))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        COPY
    }
}

impl Operator for SpaceToDepth {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let x = image("SpaceToDepth", inputs, self.blocksize)?;
        let [n, c, h, w] = x.shape.as_slice() else { return Err(TypeError::invalid(format!("SpaceToDepth of {x}"))) };
        let b = Dim::from(self.blocksize);
        let shape = Shape::from_iter([n.clone(), c.clone() * b.clone() * b.clone(), h.floor_div(&b), w.floor_div(&b)]);
        let types = vec![TensorType { dtype: x.dtype, shape }];
        for size in [h, w] {
            enforced_divided("SpaceToDepth", size, self.blocksize).map_err(|e| e.with_types(types.clone()))?;
        }
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = inputs else { return Err(EvalError::value("SpaceToDepth takes one operand")) };
        let (&[n, c, h, w], Some(b)) = (x.shape(), usize::try_from(self.blocksize).ok().filter(|b| *b > 0)) else {
            return Err(EvalError::value(format!("SpaceToDepth of {:?}", x.shape())));
        };
        Ok(vec![regrouped(x, [n, c, h / b, b, w / b, b], [0, 3, 5, 1, 2, 4], &[n, c * b * b, h / b, w / b])?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["SpaceToDepth"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        // The attribute came with opset 28; the earlier behaviour is its default.
        if let Some(mode) = node.str("mode").filter(|mode| *mode != "DCR") {
            return Err(Opaque(format!("SpaceToDepth with mode {mode}")));
        }
        node.import(crate::Op::SpaceToDepth(SpaceToDepth { blocksize: block_attr(node)? }))
    }

    fn spell(&self, _: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        accepts::spelled("SpaceToDepth", TYPES, version, outputs[0].dtype)?;
        Ok(OnnxSpelling::plain("SpaceToDepth", 1).with("blocksize", Attr::Int(self.blocksize)))
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        COPY
    }
}
