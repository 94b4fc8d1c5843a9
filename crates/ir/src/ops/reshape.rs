//! The same elements under another shape.

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::op::{EvalContext, Operator, Work};
use crate::operator;
use crate::ops::movement::{
    concrete_shape, equal_sizes, floats_before, free, ints, no_spelling, operands, product, required_sizes, reshaped, values,
};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::{Shape, TensorType};

operator! {
    /// The operand's elements, in order, under the shape `shape`: all sizes written out, no 0 or -1
    /// with a special meaning.
    pub struct Reshape {
        /// The result's sizes.
        pub shape: Vec<Dim>,
    }
}

impl Operator for Reshape {
    const MOVES: bool = true;

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Reshape", inputs)?;
        if self.shape.iter().any(|d| d.known().is_some_and(|d| d < 0)) {
            return Err(TypeError::invalid(format!("Reshape to a negative size: {:?}", self.shape)));
        }
        let types = vec![TensorType { dtype: x.dtype, shape: Shape::from(self.shape.as_slice()) }];
        equal_sizes(&x.elements(), &product(&self.shape), || format!("Reshape of {x} to {:?} needs as many elements", self.shape))
            .map_err(|e| e.with_types(types.clone()))?;
        Ok(types)
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Reshape", inputs)?;
        Ok(vec![reshaped("Reshape", x, &concrete_shape(&self.shape, inputs, context)?)?])
    }

    fn onnx_types() -> &'static [&'static str] {
        &["Reshape"]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        let x = node.ty(0)?;
        let wanted = match node.ints("shape").filter(|_| node.version < 5) {
            Some(sizes) => sizes.into_iter().map(Dim::from).collect(),
            None => required_sizes(node, 1)?,
        };
        let shape = resolve(&x.shape, &wanted, node.version >= 14 && node.int("allowzero") == Some(1))?;
        Ok(node.import_with(crate::Op::Reshape(Reshape { shape }), &[0]))
    }

    fn spell(&self, inputs: &[TensorType], _: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let [x] = inputs else { return Err(no_spelling("Reshape", "it takes one operand")) };
        let spelling = OnnxSpelling::plain("Reshape", 1);
        if version < 5 {
            floats_before("Reshape", x.dtype, version, 5)?;
            let why = "its sizes are unknown before run time, and no operand of it before opset 5";
            return Ok(spelling.with("shape", ints(&self.sizes(x).ok_or_else(|| no_spelling("Reshape", why))?)));
        }
        if let Some(sizes) = self.sizes(x) {
            return Ok(spelling.with_ints(&sizes));
        }
        let spelling = spelling.with_dims(&self.shape);
        match (self.shape.iter().any(|d| d.is(0)), version) {
            (false, _) => Ok(spelling),
            (true, 14..) => Ok(spelling.with("allowzero", Attr::Int(1))),
            (true, _) => Err(no_spelling("Reshape", format!("a size of 0 can be written since opset 14, the model has {version}"))),
        }
    }

    fn work(&self, _: &[Vec<usize>], _: &[Vec<usize>]) -> Work {
        free()
    }
}

impl Reshape {
    /// The sizes as numbers, where 0 copies the operand's size and one -1 is the remaining size;
    /// `None` if that cannot express them.
    fn sizes(&self, x: &TensorType) -> Option<Vec<i64>> {
        let mut inferred = self.shape.iter().any(|d| d.is(0));
        let mut sizes = Vec::with_capacity(self.shape.len());
        for (at, d) in self.shape.iter().enumerate() {
            let same = x.shape.get(at) == Some(d);
            sizes.push(match d.known() {
                Some(0) if !same => return None,
                Some(size) => size,
                None if same => 0,
                None if !std::mem::replace(&mut inferred, true) => -1,
                None => return None,
            });
        }
        Some(sizes)
    }
}

/// The sizes that ONNX means by `wanted`: 0 copies the operand's size (unless `allow_zero`), one -1
/// is the remaining size.
fn resolve(have: &[Dim], wanted: &[Dim], allow_zero: bool) -> Result<Vec<Dim>, Opaque> {
    let mut shape = Vec::with_capacity(wanted.len());
    let mut inferred = None;
    for (at, d) in wanted.iter().enumerate() {
        shape.push(match d.known() {
            Some(0) if !allow_zero => {
                have.get(at).cloned().ok_or_else(|| Opaque(format!("Reshape copies the size of axis {at}, which is not there")))?
            }
            Some(-1) if inferred.replace(at).is_some() => return Err(Opaque("Reshape infers two sizes".into())),
            Some(..-1) => return Err(Opaque(format!("Reshape to the size {d}"))),
            _ => d.clone(),
        });
    }
    let Some(inferred) = inferred else { return Ok(shape) };
    // Equal factors cancel before the division, which is exact only for single terms.
    let mut left: Vec<Dim> = have.to_vec();
    let mut divisor = Dim::from(1);
    for (_, d) in shape.iter().enumerate().filter(|(at, _)| *at != inferred) {
        match left.iter().position(|have| have == d && !d.is(0)) {
            Some(at) => drop(left.swap_remove(at)),
            None => divisor = divisor * d.clone(),
        }
    }
    if divisor.is(0) {
        return Err(Opaque("Reshape infers a size in a tensor without elements".into()));
    }
    shape[inferred] = product(&left).floor_div(&divisor);
    Ok(shape)
}
