//! What a definition says about a node that it does not define: the shape of its first result, as
//! if it were a node of real numbers, ignoring its other results.

use std::collections::HashMap;
use std::sync::OnceLock;

use regraft_ir::onnx::{Attrs, OnnxInput, OnnxNode};
use regraft_ir::{Const, DType, Dim, OpKind, PartialType, TypeError};

use crate::refusal::operand_type;
use crate::symbolic::View;

/// The operators that import an ONNX type: `Conv`, `com.microsoft:FastGelu`.
pub(crate) fn kinds() -> &'static HashMap<&'static str, Vec<OpKind>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<OpKind>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Vec<OpKind>> = HashMap::new();
        for kind in OpKind::ALL {
            for onnx_type in kind.onnx_types() {
                table.entry(onnx_type).or_default().push(*kind);
            }
        }
        table
    })
}

/// What is certain about the first result's type for a node with these attributes.
pub(crate) fn first_result(view: &View<'_>, attrs: &Attrs) -> Option<PartialType> {
    let node = |parameters: bool| OnnxNode {
        op_type: view.op_type.to_string(),
        domain: String::new(),
        version: view.version,
        attrs: attrs.clone(),
        inputs: (0..view.given.len()).map(|at| view.given[at].then(|| input(view, at, parameters))).collect(),
        outputs: vec![true],
    };
    let kinds = kinds().get(view.op_type)?;
    // Small integer tensors are sizes and axes, or data like any other.
    [true, false].into_iter().map(node).find_map(|node| kinds.iter().find_map(|kind| inferred(*kind, &node)))
}

fn inferred(kind: OpKind, node: &OnnxNode) -> Option<PartialType> {
    let imported = kind.import(node).ok()?;
    let input = |at: usize| node.ty(at).cloned().map_err(|opaque| opaque.0);
    let operands = imported.operands.iter().map(|operand| operand_type(operand, &input).ok()).collect::<Option<Vec<_>>>()?;
    match imported.op.infer(&operands) {
        Ok(types) => types.into_iter().map(PartialType::from).next(),
        Err(TypeError::Undecided { types, .. }) => types.into_iter().next(),
        Err(TypeError::Invalid(_)) => None,
    }
}

/// An input of real numbers; with `parameters`, integers with known values stay as they are.
fn input(view: &View<'_>, at: usize, parameters: bool) -> OnnxInput {
    let (ty, sizes) = (view.ty(at), view.sizes.get(at).and_then(Option::as_ref).filter(|_| parameters));
    let numbers: Option<Vec<i64>> = sizes.and_then(|sizes| sizes.dims.iter().map(Dim::known).collect());
    OnnxInput {
        ty: ty.map(|ty| if sizes.is_some() { ty.clone() } else { ty.with_dtype(DType::F32) }),
        value: ty.zip(numbers).and_then(|(ty, numbers)| Const::from_i64(ty.dtype, &ty.known_shape()?, &numbers)),
        dims: sizes.map(|sizes| sizes.dims.clone()),
    }
}
