//! Computed sizes that can be treated as opaque.

use regraft_ir::dim::Factor;
use regraft_ir::{Attr, Dim, Graph, Op, TensorType};

use crate::carried::carried;
use crate::rebuild::rebuilt;

/// Both graphs with a fresh symbol for each input size that is computed from symbols that occur
/// nowhere else: a proof for all values of the fresh symbol covers every value of the size. `None`
/// if there is no such size.
pub(crate) fn by_wholes(before: &Graph, after: &Graph) -> Option<[Graph; 2]> {
    let carried = carried([before, after]);
    let graphs = carried.as_ref().map_or([before, after], |[before, after]| [before, after]);
    let wholes = Wholes::of(graphs)?;
    let [before, after] = graphs.map(|graph| wholes.graph(graph));
    Some([before?, after?])
}

/// A size, the symbols that it is computed from, and the symbol that stands for it.
struct Whole {
    size: Dim,
    parts: Vec<String>,
    symbol: Dim,
}

impl Whole {
    fn new(size: &Dim, symbol: String) -> Whole {
        Whole { size: size.clone(), parts: symbols(size), symbol: Dim::symbol(&symbol) }
    }

    /// Whether another size uses no part of the whole.
    fn is_apart(&self, size: &Dim) -> bool {
        !size.has_symbol(|name| self.parts.iter().any(|part| part == name))
    }

    /// Another size in terms of the symbol; `None` if it uses parts of the whole.
    fn within(&self, size: &Dim) -> Option<Dim> {
        let free = |dim: &Dim| self.is_apart(dim);
        if free(size) {
            return Some(size.clone());
        }
        let more = size.clone() - self.size.clone();
        let times = size.exact_div(&self.size);
        let sum = free(&more).then(|| self.symbol.clone() + more);
        sum.or_else(|| times.filter(free).map(|times| self.symbol.clone() * times)).or_else(|| self.within_factors(size))
    }

    /// The same factor by factor, inside quotients as well.
    fn within_factors(&self, size: &Dim) -> Option<Dim> {
        size.products().into_iter().try_fold(Dim::from(0), |sum, (coefficient, factors)| {
            let factor = |factor| match factor {
                Factor::Symbol(name) => Some(Dim::symbol(name)).filter(|symbol| self.is_apart(symbol)),
                Factor::FloorDiv(a, b) if a.floor_div(b) == self.size => Some(self.symbol.clone()),
                Factor::FloorDiv(a, b) => Some(self.within(a)?.floor_div(&self.within(b)?)),
                Factor::Broadcast(a, b) if a.broadcast(b).as_ref() == Some(&self.size) => Some(self.symbol.clone()),
                Factor::Broadcast(a, b) => self.within(a)?.broadcast(&self.within(b)?),
            };
            let product = factors.into_iter().map(factor).try_fold(Dim::from(coefficient), |product, factor| Some(product * factor?));
            Some(sum + product?)
        })
    }
}

/// The wholes of two graphs, in the order of replacement.
struct Wholes(Vec<Whole>);

impl Wholes {
    fn of(graphs: [&Graph; 2]) -> Option<Wholes> {
        let (mut met, mut names) = (Vec::new(), Vec::new());
        let mut candidates: Vec<Dim> = Vec::new();
        for graph in graphs {
            for id in graph.ids() {
                match &graph.node(id).op {
                    Op::Input(input) => candidates.extend(input.ty.shape.iter().cloned()),
                    op => met.extend(op.attrs().into_iter().filter_map(|(_, attr)| sizes(attr)).flatten()),
                }
            }
        }
        met.extend(candidates.iter().cloned());
        met.iter().for_each(|dim| dim.symbols(&mut names));
        // Where a size is not met as such, as `2 floor(H / 2)` is not in its half, its factors may
        // be.
        candidates.extend(candidates.iter().flat_map(positive_factors).collect::<Vec<_>>());
        candidates.retain(|dim| dim.known().is_none() && dim.as_symbol().is_none());
        let mut fresh = (0..).map(|at| format!("s{at}")).filter(|name| !names.contains(name)).peekable();
        let mut wholes = Vec::new();
        for size in &candidates {
            let whole = Whole::new(size, fresh.peek()?.clone());
            // Already replaced through another one, or a duplicate.
            if met.iter().all(|dim| whole.is_apart(dim)) {
                continue;
            }
            if let Some(said) = met.iter().map(|dim| whole.within(dim)).collect() {
                met = said;
                wholes.push(whole);
                fresh.next();
            }
        }
        (!wholes.is_empty()).then_some(Wholes(wholes))
    }

    fn size(&self, size: &Dim) -> Option<Dim> {
        self.0.iter().try_fold(size.clone(), |size, whole| whole.within(&size))
    }

    fn sizes(&self, sizes: &[Dim]) -> Option<Vec<Dim>> {
        sizes.iter().map(|size| self.size(size)).collect()
    }

    fn graph(&self, graph: &Graph) -> Option<Graph> {
        let input = |ty: &TensorType| Some(TensorType { shape: self.sizes(&ty.shape)?.into(), ..ty.clone() });
        rebuilt(graph, input, |node| self.operator(&node.op))
    }

    fn operator(&self, op: &Op) -> Option<Op> {
        let mut attrs = op.attrs();
        let mut changed = false;
        for (_, attr) in &mut attrs {
            if let Attr::Dims(dims) = attr {
                (*dims, changed) = (self.sizes(dims)?, true);
            }
        }
        if !changed {
            return Some(op.clone());
        }
        let attrs: Vec<(String, Attr)> = attrs.into_iter().map(|(name, attr)| (name.to_string(), attr)).collect();
        op.kind().with_attrs(&attrs).ok()
    }
}

/// Quotients and broadcast sizes that a size is computed from and that are at least 1, as sizes
/// are.
fn positive_factors(size: &Dim) -> Vec<Dim> {
    let factors = size.products().into_iter().flat_map(|(_, factors)| factors).filter_map(|factor| match factor {
        Factor::Symbol(_) => None,
        Factor::FloorDiv(a, b) => Some(a.floor_div(b)),
        Factor::Broadcast(a, b) => a.broadcast(b),
    });
    factors.filter(|factor| factor.at_least(1)).collect()
}

fn sizes(attr: Attr) -> Option<Vec<Dim>> {
    if let Attr::Dims(dims) = attr { Some(dims) } else { None }
}

fn symbols(dim: &Dim) -> Vec<String> {
    let mut names = Vec::new();
    dim.symbols(&mut names);
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::text;

    /// Types of the inputs and of the output, the graph read twice.
    fn types(graph: &str) -> Option<String> {
        let graph = text::parse(graph).expect("a graph");
        let [before, _] = by_wholes(&graph, &graph)?;
        let values = before.inputs().iter().map(|id| id.out()).chain(before.outputs().iter().map(|o| o.value));
        Some(values.map(|v| before.ty(v).map_or_else(|| "?".into(), ToString::to_string)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn sizes_that_are_met_as_a_whole_become_symbols() {
        let twice = "floor(floor(H + 1, 2) + 1, 2)";
        let reshaped = format!("graph (x: f32[N,4,{twice},W]) {{ y = Reshape(x, shape=[N, 4*{twice}, W]) output y }}");
        assert_eq!(types(&reshaped).as_deref(), Some("f32[N,4,s0,W] f32[N,4*s0,W]"));
        let longer =
            format!("graph (x: f32[{twice},floor(W, 4)], z: f32[{twice} + 1,floor(W, 4)]) {{ y = Concat(x, z, axis=0) output y }}");
        assert_eq!(types(&longer).as_deref(), Some("f32[s0,s1] f32[s0 + 1,s1] f32[2*s0 + 1,s1]"));
        // Tiles of four elements, and halves of an even size.
        let tiled = format!("graph (x: f32[1,{twice}], z: f32[1]) {{ y = Expand(z, shape=[4*floor({twice} + 3, 4)]) output y }}");
        assert_eq!(types(&tiled).as_deref(), Some("f32[1,s0] f32[1] f32[4*floor(s0 + 3, 4)]"));
        let halved = format!("graph (x: f32[2*{twice}]) {{ y = Reshape(x, shape=[2, {twice}]) output y }}");
        assert_eq!(types(&halved).as_deref(), Some("f32[2*s0] f32[2,s0]"));
    }

    #[test]
    fn sizes_whose_parts_are_met_elsewhere_stay() {
        assert_eq!(types("graph (x: f32[N,W]) { y = Relu(x) output y }"), None);
        assert_eq!(types("graph (x: f32[floor(H, 2)], z: f32[H]) { y = Concat(x, z, axis=0) output y }"), None);
        let beside = "graph (x: f32[floor(H + 1, 2)], z: f32[H]) { y = Concat(x, z, axis=0) output y }";
        assert_eq!(types(beside), None);
        assert_eq!(types("graph (x: f32[floor(s0, 2)]) { y = Relu(x) output y }").as_deref(), Some("f32[s1] f32[s1]"));
    }
}
