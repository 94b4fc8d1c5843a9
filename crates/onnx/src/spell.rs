//! Operators as ONNX spells them at the model's opset versions, symbolic sizes included.

use std::collections::HashSet;

use regraft_ir::dim::Factor;
use regraft_ir::onnx::{NoSpelling, OnnxSpelling, SpellingInput};
use regraft_ir::{Dim, Graph, Op, TensorType, ValueId};

use crate::attribute;
use crate::model::Model;

/// First opset version where sums and products of sizes can be computed from shapes.
const SIZES_SINCE: i64 = 7;
/// First opset version with a choice between sizes (`Where`).
const BROADCAST_SINCE: i64 = 9;
/// First opset version with a modulus.
const FLOOR_SINCE: i64 = 10;

/// First opset version where this size can be computed with operators on `int64`.
fn since(size: &Dim) -> i64 {
    let both = |a: &Dim, b: &Dim| since(a).max(since(b));
    let of = |factor: &Factor<'_>| match factor {
        Factor::Symbol(_) => SIZES_SINCE,
        Factor::FloorDiv(a, b) if a.at_least(0) && b.at_least(1) => both(a, b),
        Factor::FloorDiv(a, b) => both(a, b).max(FLOOR_SINCE),
        Factor::Broadcast(a, b) => both(a, b).max(BROADCAST_SINCE),
    };
    size.products().iter().flat_map(|(_, factors)| factors).map(of).max().unwrap_or(SIZES_SINCE)
}

/// Tells whether and how operators can be written in one model. Cheap to clone; does not refer to
/// the model.
#[derive(Clone, Debug)]
pub struct Speller {
    version: i64,
    symbols: HashSet<String>,
}

impl Speller {
    pub(crate) fn new(model: &Model) -> Speller {
        let graph = model.graph();
        let carriers = graph.ids().filter(|id| matches!(graph.node(*id).op, Op::Input(_) | Op::Opaque(_)));
        let mut symbols = Vec::new();
        carriers.flat_map(|id| graph.node(id).types.iter().flatten().flat_map(|t| t.shape.iter())).for_each(|d| d.symbols(&mut symbols));
        symbols.sort();
        symbols.dedup();
        let symbols = symbols.into_iter().filter(|symbol| graph.carrier(symbol).is_some()).collect();
        Speller { version: model.opset("").unwrap_or(1), symbols }
    }

    /// Opset version of the standard domain.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// `Ok` if the operator on these types can be written in the model; the reason otherwise.
    /// Rewrites that cannot be written must not be applied.
    pub fn can_spell(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), NoSpelling> {
        self.spell(op, inputs, outputs).map(|_| ())
    }

    /// The spelling, checked to be writable.
    pub(crate) fn spell(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<OnnxSpelling, NoSpelling> {
        let spelling = op.spell(inputs, outputs, self.version)?;
        let refuse = |why: String| NoSpelling { op: op.kind().name(), why };
        for (name, value) in &spelling.attrs {
            attribute::encode(name, value).map_err(refuse)?;
        }
        for input in &spelling.inputs {
            let SpellingInput::Dims(sizes) = input else { continue };
            for size in sizes.iter().filter(|d| d.known().is_none()) {
                if self.version < since(size) {
                    return Err(refuse(format!("the size {size} needs opset {}, the model has {}", since(size), self.version)));
                }
                let mut symbols = Vec::new();
                size.symbols(&mut symbols);
                if let Some(lost) = symbols.iter().find(|s| !self.symbols.contains(*s)) {
                    return Err(refuse(format!("no input carries the size {lost}")));
                }
            }
        }
        Ok(spelling)
    }

    /// Values whose shapes the symbols of `size` are read from.
    pub(crate) fn carriers(&self, graph: &Graph, size: &Dim) -> Vec<ValueId> {
        let mut symbols = Vec::new();
        size.symbols(&mut symbols);
        symbols.iter().filter_map(|s| graph.carrier(s)).map(|carrier| carrier.value).collect()
    }
}
