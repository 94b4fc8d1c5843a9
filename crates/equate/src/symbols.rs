//! Symbols of the second graph in terms of those of the first.

use regraft_ir::{Attr, Dim, Op, TensorType};
use rustc_hash::FxHashMap;

/// What symbols of the second graph stand for. One that is not known is a symbol that the first graph does not have.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: FxHashMap<String, Dim>,
}

impl Symbols {
    /// Learns from two types that must be equal; false if they cannot be, or if sizes would have to be equal that the first graph does not know to be.
    pub fn declare(&mut self, a: &TensorType, b: &TensorType) -> bool {
        self.learn(a, b);
        a.dtype == b.dtype && self.ty(b) == *a
    }

    /// Learns from the types of two values that are equal.
    pub fn learn(&mut self, a: &TensorType, b: &TensorType) {
        if a.rank() != b.rank() {
            return;
        }
        for (size, named) in a.shape.iter().zip(&b.shape) {
            if let Some(symbol) = named.as_symbol() {
                self.known.entry(symbol.into()).or_insert_with(|| size.clone());
            }
        }
    }

    /// True if all symbols of a size are known.
    pub fn knows(&self, size: &Dim) -> bool {
        let mut symbols = Vec::new();
        size.symbols(&mut symbols);
        symbols.iter().all(|s| self.known.contains_key(s))
    }

    fn dim(&self, size: &Dim) -> Dim {
        let meaning = |symbol: &str| Some(self.known.get(symbol).cloned().unwrap_or_else(|| foreign(symbol)));
        size.substitute(&meaning).unwrap_or_else(|| foreign(&size.to_string()))
    }

    /// A type in terms of the first graph.
    pub fn ty(&self, ty: &TensorType) -> TensorType {
        TensorType { dtype: ty.dtype, shape: ty.shape.iter().map(|d| self.dim(d)).collect() }
    }

    /// An operator in terms of the first graph; `None` if it cannot be.
    pub fn op(&self, op: &Op) -> Option<Op> {
        let attrs = op.attrs();
        if !attrs.iter().any(|(_, value)| matches!(value, Attr::Dims(_))) {
            return Some(op.clone());
        }
        let one = |(name, value): (&str, Attr)| {
            let value = match value {
                Attr::Dims(sizes) => Attr::Dims(sizes.iter().map(|d| self.dim(d)).collect()),
                other => other,
            };
            (name.to_string(), value)
        };
        op.kind().with_attrs(&attrs.into_iter().map(one).collect::<Vec<_>>()).ok()
    }
}

/// A symbol that only the second graph has.
fn foreign(symbol: &str) -> Dim {
    Dim::symbol(&format!("{symbol}\u{2032}"))
}
