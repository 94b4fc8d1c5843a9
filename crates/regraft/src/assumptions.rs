//! What a proof about two models assumes, in words.

use std::collections::BTreeMap;

use regraft_ir::{Const, Op, OpKind};
use regraft_onnx::proto::{TensorShapeProto, ValueInfoProto, tensor_shape_proto::dimension, type_proto};
use regraft_onnx::{FixedSizes, Model};
use regraft_prove::Premises;

/// The assumptions of a proof that `a` equals another model, each a clause to follow `proved`;
/// empty if the proof is unconditional.
pub fn clauses(premises: Premises, a: &Model) -> Vec<String> {
    let mut clauses = Vec::new();
    if premises.reals {
        clauses.push("over the reals".to_string());
    }
    // A value may be undefined because of an operator that no step touches.
    let partial = premises.defined || premises.reals && may_lack_values(a);
    match partial {
        true if premises.valued => clauses.push("where no divisor is 0 and roots and logarithms exist".to_string()),
        true => clauses.push("with values in the same places".to_string()),
        false => {}
    }
    if premises.fits {
        clauses.push("where sums of integers fit their type".to_string());
    }
    if believes_names(a) {
        clauses.push("if sizes named alike are equal".to_string());
    }
    clauses
}

/// The clause about constants that were computed ahead of time, if any was rounded: the bound on
/// their error, relative to the largest magnitude of each.
pub fn rounding(constants: usize, bound: f64) -> Option<String> {
    let word = if constants == 1 { "constant" } else { "constants" };
    (bound > 0.0).then(|| format!("with {constants} folded {word} within {bound:.1e} of their expressions"))
}

/// The clause about sizes that the input was fixed at, if any were.
pub fn limited(fixed: &FixedSizes) -> Option<String> {
    (!fixed.is_empty()).then(|| format!("for {fixed} only"))
}

/// Whether some operator of the model is undefined for some numbers, or may be, as far as is known.
fn may_lack_values(model: &Model) -> bool {
    use OpKind::*;
    let graph = model.graph();
    graph.ids().any(|id| {
        let operands = &graph.node(id).inputs;
        // Whether all elements of an operand are known and satisfy `holds`.
        let all = |at: usize, holds: &dyn Fn(f64) -> bool| {
            let known = operands.get(at).and_then(|value| graph.constant(*value)).and_then(Const::to_f64);
            known.is_some_and(|known| known.into_iter().all(holds))
        };
        match &graph.node(id).op {
            Op::Input(_) => false,
            Op::LayerNormalization(op) => op.epsilon.0 <= 0.0,
            Op::InstanceNormalization(op) => op.epsilon.0 <= 0.0,
            Op::GroupNormalization(op) => op.epsilon.0 <= 0.0,
            Op::LRN(op) => op.bias.0 <= 0.0 || op.alpha.0 < 0.0,
            Op::BatchNormalization(op) => op.epsilon.0 <= 0.0 || !all(VARIANCE, &|variance| variance >= 0.0),
            Op::Div(_) | Op::Mod(_) => !all(1, &|divisor| divisor != 0.0),
            Op::Pow(_) => !all(1, &|exponent| exponent >= 0.0 && exponent.fract() == 0.0),
            op => matches!(op.kind(), Reciprocal | Sqrt | Log | Tan | Asin | Acos | Acosh | Atanh | ReduceLogSum | Opaque),
        }
    })
}

/// Which operand of a batch normalization is the variance.
const VARIANCE: usize = 4;

/// Whether some input size is known only by a name that also occurs elsewhere: the runtime does not
/// enforce such names. Sizes that files declare for results count where their type is not inferred.
fn believes_names(model: &Model) -> bool {
    let Some(graph) = &model.proto().graph else { return false };
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |value| names(value).for_each(|name| *met.entry(name).or_default() += 1);
    let is_initializer = |value: &&ValueInfoProto| graph.initializer.iter().any(|tensor| tensor.name() == value.name());
    graph.input.iter().filter(|value| !is_initializer(value)).for_each(&mut count);
    let nodes = model.graph();
    if nodes.ids().any(|id| nodes.node(id).op.kind() == OpKind::Opaque && !matches!(nodes.node(id).op, Op::Input(_))) {
        graph.output.iter().chain(&graph.value_info).for_each(&mut count);
    }
    met.values().any(|count| *count > 1)
}

/// Names of the sizes declared for a value.
fn names(value: &ValueInfoProto) -> impl Iterator<Item = &str> {
    let shape: Option<&TensorShapeProto> = value.r#type.as_ref().and_then(|ty| match ty.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => tensor.shape.as_ref(),
        _ => None,
    });
    shape.into_iter().flat_map(|shape| &shape.dim).filter_map(|dim| match dim.value.as_ref()? {
        dimension::Value::DimParam(name) if !name.is_empty() => Some(name.as_str()),
        _ => None,
    })
}
