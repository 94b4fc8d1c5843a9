//! Random models with one constant or attribute changed by the smallest step its type allows, or
//! one operator replaced.

use bytes::Bytes;
use regraft_ir::DType;
use regraft_onnx::proto::{ModelProto, TensorProto};

use crate::foreign::tamper::{self, Kind};
use crate::generate::random::Random;

/// What was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An element of an integer constant, by one.
    Integer,
    /// The other changes, shared with the campaign on foreign simplifiers.
    Tampered(Kind),
}

impl Change {
    /// All of them.
    pub const ALL: [Change; 6] = [
        Change::Integer,
        Change::Integer,
        Change::Tampered(Kind::Attribute),
        Change::Tampered(Kind::Weight),
        Change::Tampered(Kind::Operator),
        Change::Tampered(Kind::Swap),
    ];
}

/// The model with one change, and its description; `None` if it has nothing of that kind.
pub fn mutated(model: &ModelProto, change: Change, random: &mut Random) -> Option<(ModelProto, String)> {
    match change {
        Change::Tampered(kind) => tamper::tampered(model, kind, random),
        Change::Integer => {
            let mut model = model.clone();
            let graph = model.graph.as_mut()?;
            let nodes = graph.node.iter_mut().flat_map(|n| &mut n.attribute).filter_map(|a| a.t.as_mut());
            let mut constants: Vec<&mut TensorProto> = graph.initializer.iter_mut().chain(nodes).filter(|t| is_whole(t)).collect();
            let at = random.below(constants.len());
            let what = nudge(constants.get_mut(at)?, random)?;
            Some((model, what))
        }
    }
}

fn is_whole(tensor: &TensorProto) -> bool {
    let ty = DType::from_onnx(tensor.data_type());
    ty.class() == regraft_ir::Class::Int && tensor.raw_data().len() >= ty.size().max(1)
}

/// Adds or subtracts one at an element.
fn nudge(tensor: &mut TensorProto, random: &mut Random) -> Option<String> {
    let size = DType::from_onnx(tensor.data_type()).size();
    let mut raw = tensor.raw_data.take()?.to_vec();
    let at = random.below(raw.len() / size) * size;
    let up = random.once_in(2);
    for byte in &mut raw[at..at + size] {
        let (next, carried) = if up { byte.overflowing_add(1) } else { byte.overflowing_sub(1) };
        *byte = next;
        if !carried {
            break;
        }
    }
    tensor.raw_data = Some(Bytes::from(raw));
    Some(format!("element {} of `{}`", at / size, tensor.name()))
}
