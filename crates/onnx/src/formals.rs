//! Formal inputs of bodies: their sources, and what is known about their types.

use regraft_ir::TensorType;

use crate::proto::type_proto::Value;
use crate::proto::{GraphProto, NodeProto, TypeProto, ValueInfoProto};

/// From this version on, `Scan` has no batch axis.
const SCAN_SINCE: i64 = 9;

/// Where a formal input gets its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Link {
    /// Values whose sizes are not tracked.
    Declared,
    /// Values that have this type in every run of the body.
    Fixed(TensorType),
    /// A value of type `start` in the first run, then the body's previous result for this output.
    Carried {
        /// The first value's type, if known.
        start: Option<TensorType>,
        /// Index of the output that is fed back.
        output: usize,
    },
}

impl Link {
    /// The type of the first value, if known.
    pub(crate) fn start(&self) -> Option<&TensorType> {
        match self {
            Link::Declared => None,
            Link::Fixed(ty) => Some(ty),
            Link::Carried { start, .. } => start.as_ref(),
        }
    }

    /// The type to declare for the formal input: that of the first value, without the sizes that
    /// are `open`; or, if it is `lost`, element type and rank as declared. `None` if nothing is
    /// known, so that its readers are kept as they are.
    pub(crate) fn declare(
        &self,
        declared: &ValueInfoProto,
        open: &[bool],
        lost: bool,
        encode: &mut dyn FnMut(&TensorType) -> TypeProto,
    ) -> Option<TypeProto> {
        // Sizes are assumed to be at least 1: one that starts at 0 and changes cannot be reasoned
        // about.
        let starts_empty = |axes: &dyn Fn(usize) -> bool| {
            self.start().is_some_and(|ty| ty.shape.iter().enumerate().any(|(axis, size)| axes(axis) && size.is(0)))
        };
        let Some(start) = self.start().filter(|ty| !lost && fits(declared, ty)) else {
            return if starts_empty(&|_| true) { None } else { open_sizes(declared) };
        };
        let is_open = |axis: usize| open.get(axis).copied().unwrap_or(false);
        if starts_empty(&is_open) {
            return None;
        }
        let mut ty = encode(start);
        if let Some(Value::TensorType(tensor)) = &mut ty.value {
            let dims = tensor.shape.iter_mut().flat_map(|s| s.dim.iter_mut()).enumerate();
            dims.filter(|(axis, _)| is_open(*axis)).for_each(|(_, dim)| dim.value = None);
        }
        Some(ty)
    }
}

/// Whether a declaration does not contradict a type.
fn fits(declared: &ValueInfoProto, ty: &TensorType) -> bool {
    let Some(declared) = declared.r#type.as_ref().and_then(|t| t.value.as_ref()) else { return true };
    let Value::TensorType(tensor) = declared else { return false };
    let same_element = tensor.elem_type.is_none_or(|code| code == 0 || code == ty.dtype.to_onnx());
    same_element && tensor.shape.as_ref().is_none_or(|shape| shape.dim.len() == ty.rank())
}

/// The declared type with every size left open: a body's declarations are not enforced.
fn open_sizes(declared: &ValueInfoProto) -> Option<TypeProto> {
    let mut ty = declared.r#type.clone()?;
    if let Some(Value::TensorType(tensor)) = &mut ty.value {
        tensor.shape.iter_mut().flat_map(|s| s.dim.iter_mut()).for_each(|dim| dim.value = None);
    }
    Some(ty)
}

/// How the formal inputs of a body are fed; `None` for nodes whose bodies are kept as they are.
/// `types` are those of the node's inputs.
pub(crate) fn links(node: &NodeProto, body: &GraphProto, types: &[Option<TensorType>], version: i64) -> Option<Vec<Link>> {
    let formals = body.input.len();
    let input = |at: usize| types.get(at).cloned().flatten();
    let fixed = |ty: Option<TensorType>| ty.map_or(Link::Declared, Link::Fixed);
    match node.op_type() {
        "If" => Some(vec![Link::Declared; formals]),
        // The body receives the iteration number, the condition, and the carried values; it returns
        // the condition and the carried values.
        "Loop" => {
            let link = |at: usize| if at < 2 { Link::Declared } else { Link::Carried { start: input(at), output: at - 1 } };
            Some((0..formals).map(link).collect())
        }
        "Scan" if version < SCAN_SINCE => Some(vec![Link::Declared; formals]),
        "Scan" => {
            let attribute = |name: &str| node.attribute.iter().find(|a| a.name() == name);
            let scanned = usize::try_from(attribute("num_scan_inputs")?.i()).ok()?;
            let states = formals.checked_sub(scanned)?;
            let axes = attribute("scan_input_axes").map_or(&[][..], |a| a.ints.as_slice());
            let link = |at: usize| {
                if at < states {
                    Link::Carried { start: input(at), output: at }
                } else {
                    fixed(slice(input(at), axes.get(at - states).copied()))
                }
            };
            Some((0..formals).map(link).collect())
        }
        _ => None,
    }
}

/// The type of one slice of a scanned tensor.
fn slice(whole: Option<TensorType>, axis: Option<i64>) -> Option<TensorType> {
    let mut ty = whole?;
    let axis = axis.unwrap_or(0);
    let axis = usize::try_from(if axis < 0 { axis + ty.rank() as i64 } else { axis }).ok().filter(|a| *a < ty.rank())?;
    ty.shape.remove(axis);
    Some(ty)
}
