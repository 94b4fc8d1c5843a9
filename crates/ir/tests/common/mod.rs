//! Helpers for operator tests: ONNX round trips, agreement of types with values, and shorthands for
//! operands.

#![allow(dead_code, reason = "every test crate uses its own part of these helpers")]

pub mod table;

use regraft_ir::onnx::{Attrs, ImportOperand, Imported, OnnxInput, OnnxNode, OnnxSpelling, SpellingInput};
use regraft_ir::{
    Attr, Bindings, Class, Const, DType, Dim, EvalContext, EvalError, Float, Op, OpKind, SplitMix64, Tensor, TensorType, TypeError, Value,
};

/// Opset versions tried in round trips.
pub const VERSIONS: std::ops::RangeInclusive<i64> = 7..=21;

/// The operator `name` with these attributes.
pub fn op(name: &str, attrs: &[(&str, Attr)]) -> Op {
    let kind = OpKind::from_name(name).unwrap_or_else(|| panic!("no operator `{name}`"));
    let attrs: Vec<(String, Attr)> = attrs.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    kind.with_attrs(&attrs).unwrap_or_else(|e| panic!("{e}"))
}

/// A float attribute, rounded to the precision of ONNX files.
pub fn float(value: f32) -> Attr {
    Attr::Float(Float(f64::from(value)))
}

/// A 32-bit float type of known sizes.
pub fn f32s(shape: &[i64]) -> TensorType {
    TensorType::new(DType::F32, shape.iter().copied())
}

/// A real tensor.
pub fn reals(shape: &[usize], data: &[f64]) -> Value<f64> {
    Value::real(Tensor::new(shape.to_vec(), data.to_vec()))
}

/// An integer tensor.
pub fn ints(shape: &[usize], data: &[i64]) -> Value<f64> {
    Value::int(Tensor::new(shape.to_vec(), data.to_vec()))
}

/// A boolean tensor.
pub fn bools(shape: &[usize], data: &[bool]) -> Value<f64> {
    Value::bool(Tensor::new(shape.to_vec(), data.to_vec()))
}

/// The results of `op` on values of these types, after checking that result types and result values
/// agree.
///
/// # Panics
/// If the type rule refuses the operands, or a result differs from its type in shape or kind.
pub fn eval(op: &Op, types: &[TensorType], values: &[Value<f64>], bindings: &Bindings) -> Result<Vec<Value<f64>>, EvalError> {
    let outputs = op.infer(types).unwrap_or_else(|e| panic!("{op:?} on {types:?}: {e}"));
    let context = EvalContext { bindings, input_types: types, output_types: &outputs };
    let results = op.eval(values, &context)?;
    assert_eq!(results.len(), outputs.len(), "{op:?}: number of results");
    for (result, ty) in results.iter().zip(&outputs) {
        assert_eq!(Some(result.shape().to_vec()), ty.bind(bindings), "{op:?} on {types:?}: shape of the result, typed {ty}");
        let class = match result {
            Value::Real(_) => Class::Real,
            Value::Int(_) => Class::Int,
            Value::Bool(_) => Class::Bool,
        };
        assert_eq!(class, ty.dtype.class(), "{op:?} on {types:?}: kind of the result, typed {ty}");
    }
    Ok(results)
}

/// Test data.
pub struct Random(SplitMix64);

impl Random {
    /// Data for a seed.
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64(seed))
    }

    /// A number in `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// A double in `-2..2` with few digits.
    pub fn real(&mut self) -> f64 {
        self.below(129) as f64 / 32.0 - 2.0
    }

    /// A value of a type whose sizes are known under `bindings`.
    pub fn value(&mut self, ty: &TensorType, bindings: &Bindings) -> Value<f64> {
        let shape = ty.bind(bindings).unwrap_or_else(|| panic!("{ty} is not bound"));
        let n: usize = shape.iter().product();
        match ty.dtype.class() {
            Class::Int => Value::int(Tensor::new(shape, (0..n).map(|_| self.below(7) as i64).collect())),
            Class::Bool => Value::bool(Tensor::new(shape, (0..n).map(|_| self.below(2) == 1).collect())),
            _ => Value::real(Tensor::new(shape, (0..n).map(|_| self.real()).collect())),
        }
    }
}

/// A spelled node as its reader sees it: attributes only of the kinds and precision of files.
pub fn as_read(spelling: &OnnxSpelling, inputs: &[TensorType], results: usize, version: i64) -> OnnxNode {
    let attrs: Attrs = spelling.attrs.iter().map(|(name, value)| (name.to_string(), stored(value))).collect();
    let inputs = spelling
        .inputs
        .iter()
        .map(|input| match input {
            SpellingInput::Operand(at) => Some(OnnxInput { ty: Some(inputs[*at].clone()), value: None, dims: None }),
            SpellingInput::Const(value) => {
                let dims = value.to_i64().map(|v| v.into_iter().map(Into::into).collect());
                Some(OnnxInput { ty: Some(value.ty()), value: Some(value.clone()), dims })
            }
            SpellingInput::Dims(sizes) => Some(OnnxInput {
                ty: Some(TensorType::new(DType::I64, [sizes.len() as i64])),
                value: sizes
                    .iter()
                    .map(Dim::known)
                    .collect::<Option<Vec<i64>>>()
                    .and_then(|v| Const::from_i64(DType::I64, &[v.len() as i64], &v)),
                dims: Some(sizes.clone()),
            }),
            SpellingInput::Missing => None,
        })
        .collect();
    let version = if spelling.domain.is_empty() { version } else { 1 };
    OnnxNode {
        op_type: spelling.op_type.to_string(),
        domain: spelling.domain.to_string(),
        version,
        attrs,
        inputs,
        outputs: vec![true; results],
    }
}

fn stored(attr: &Attr) -> Attr {
    let narrow = |v: &Float| Float(f64::from(v.0 as f32));
    match attr {
        Attr::Bool(v) => Attr::Int(i64::from(*v)),
        Attr::DType(v) => Attr::Int(i64::from(v.to_onnx())),
        Attr::Float(v) => Attr::Float(narrow(v)),
        Attr::Floats(v) => Attr::Floats(v.iter().map(narrow).collect()),
        Attr::Dims(_) | Attr::Absent => panic!("ONNX has no attribute like {attr}"),
        other => other.clone(),
    }
}

/// The type of an import's operand, if it is known and inferred.
fn operand_type(node: &OnnxNode, operand: &ImportOperand) -> Result<Option<TensorType>, TypeError> {
    Ok(match operand {
        ImportOperand::Input(at) => node.inputs[*at].as_ref().and_then(|input| input.ty.clone()),
        ImportOperand::Const(value) => Some(value.ty()),
        ImportOperand::Node(inner) => inferred(node, inner)?.map(|types| types[0].clone()),
    })
}

fn inferred(node: &OnnxNode, imported: &Imported) -> Result<Option<Vec<TensorType>>, TypeError> {
    let operands = imported.operands.iter().map(|operand| operand_type(node, operand)).collect::<Result<Option<Vec<_>>, _>>()?;
    operands.map(|types| imported.op.infer(&types)).transpose()
}

/// Imports a node as a reader does: by the first operator that accepts its type and domain; then
/// infers its types.
pub fn import(node: &OnnxNode) -> Result<(Op, Vec<ImportOperand>), String> {
    let key = if node.domain.is_empty() { node.op_type.clone() } else { format!("{}:{}", node.domain, node.op_type) };
    let mut why = format!("no operator imports {key}");
    for kind in OpKind::ALL.iter().filter(|kind| kind.onnx_types().contains(&key.as_str())) {
        match kind.import(node) {
            Ok(imported) => match inferred(node, &imported) {
                Ok(_) => return Ok((imported.op, imported.operands)),
                Err(error) => why = error.to_string(),
            },
            Err(opaque) => why = opaque.to_string(),
        }
    }
    Err(why)
}

/// Checks that `op` survives writing and reading at every version where it can be written; returns
/// those versions.
///
/// # Panics
/// If a written node reads back as anything but `op` on the same operands in the same order.
pub fn round_trip(op: &Op, inputs: &[TensorType]) -> Vec<i64> {
    let outputs = op.infer(inputs).unwrap_or_else(|e| panic!("{op:?} on {inputs:?}: {e}"));
    VERSIONS
        .filter(|version| {
            let Ok(spelling) = op.spell(inputs, &outputs, *version) else { return false };
            let node = as_read(&spelling, inputs, outputs.len(), *version);
            let (read, operands) = import(&node).unwrap_or_else(|why| panic!("{op:?} at opset {version} reads back as opaque: {why}"));
            assert_eq!(&read, op, "at opset {version}");
            let slots: Vec<Option<usize>> = operands
                .iter()
                .map(|operand| match operand {
                    ImportOperand::Input(at) => match spelling.inputs.get(*at) {
                        Some(SpellingInput::Operand(slot)) => Some(*slot),
                        _ => None,
                    },
                    _ => None,
                })
                .collect();
            assert_eq!(slots, (0..inputs.len()).map(Some).collect::<Vec<_>>(), "operands of {op:?} at opset {version}");
            true
        })
        .collect()
}
