//! Symbols of the second graph in terms of those of the first.

use regraft_ir::{Attr, Dim, Graph, Op, TensorType};
use rustc_hash::FxHashMap;

/// What symbols of the second graph stand for. An unknown symbol is one that the first graph does
/// not have.
#[derive(Debug)]
pub(crate) struct Symbols {
    known: FxHashMap<String, Dim>,
    /// Suffix of symbols that only the second graph has: no symbol of the first one ends in it.
    mark: String,
}

impl Symbols {
    /// Nothing is known yet.
    pub fn new(a: &Graph) -> Symbols {
        let mut symbols = Vec::new();
        let types = a.ids().flat_map(|id| a.node(id).types.iter().flatten());
        types.flat_map(|ty| &ty.shape).for_each(|size| size.symbols(&mut symbols));
        let attrs = a.ids().flat_map(|id| a.node(id).op.attrs());
        let sizes = attrs.filter_map(|(_, value)| if let Attr::Dims(sizes) = value { Some(sizes) } else { None });
        sizes.flatten().for_each(|size| size.symbols(&mut symbols));
        let mut mark = "\u{2032}".to_string();
        while symbols.iter().any(|symbol| symbol.ends_with(&mark)) {
            mark.push('\u{2032}');
        }
        Symbols { known: FxHashMap::default(), mark }
    }

    /// Learns from two types that must be equal; false if they cannot be, or if that would equate
    /// sizes that the first graph does not know to be equal.
    pub fn declare(&mut self, a: &TensorType, b: &TensorType) -> bool {
        self.learn(a, b);
        a.dtype == b.dtype && self.ty(b) == *a
    }

    /// Learns from the types of two equal values.
    pub fn learn(&mut self, a: &TensorType, b: &TensorType) {
        if a.rank() != b.rank() {
            return;
        }
        for (size, named) in a.shape.iter().zip(&b.shape) {
            if let Some((symbol, size)) = named.solve(size) {
                self.known.entry(symbol.into()).or_insert(size);
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
        let meaning = |symbol: &str| Some(self.known.get(symbol).cloned().unwrap_or_else(|| self.foreign(symbol)));
        size.substitute(&meaning).unwrap_or_else(|| self.foreign(&size.to_string()))
    }

    /// A symbol that only the second graph has.
    fn foreign(&self, symbol: &str) -> Dim {
        Dim::symbol(&format!("{symbol}{}", self.mark))
    }

    /// A type in terms of the first graph.
    pub fn ty(&self, ty: &TensorType) -> TensorType {
        TensorType { dtype: ty.dtype, shape: ty.shape.iter().map(|d| self.dim(d)).collect() }
    }

    /// An operator in terms of the first graph; `None` if that is impossible.
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

#[cfg(test)]
mod tests {
    use regraft_ir::DType;
    use regraft_ir::text::parse;

    use super::*;

    fn ty(sizes: &[&str]) -> TensorType {
        TensorType::new(DType::F32, sizes.iter().map(|s| s.parse().map_or_else(|_| Dim::symbol(s), |n: i64| Dim::from(n))))
    }

    #[test]
    fn sizes_are_those_of_the_first_graph_or_of_no_graph() {
        let a = parse("graph (x: f32[N,M], y: f32[`K\u{2032}`]) { output x }").expect("a graph");
        let mut symbols = Symbols::new(&a);
        assert!(symbols.declare(&ty(&["N", "M"]), &ty(&["batch", "M"])));
        assert_eq!(symbols.ty(&ty(&["batch", "M"])), ty(&["N", "M"]));
        assert_eq!(symbols.ty(&ty(&["K"])), ty(&["K\u{2032}\u{2032}"]), "another size than any of the first graph");
        // Two sizes that the second graph assumes to be equal, and the first one does not.
        let mut symbols = Symbols::new(&a);
        assert!(!symbols.declare(&ty(&["N", "M"]), &ty(&["s", "s"])));
        assert!(!Symbols::new(&a).declare(&ty(&["N", "M"]), &ty(&["4", "M"])));
    }
}
