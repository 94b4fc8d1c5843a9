//! How far a graph is from what its machine can do: arithmetic, and the operators with the most
//! time above their roofline.

use regraft_ir::{Bindings, Graph, Kernel, NodeId, Op, OpKind};
use serde::{Deserialize, Serialize};

use crate::attribute::Attribution;
use crate::workload::{Workload, is_product};

/// The most that a machine reaches with a runtime and a number of threads, by measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Arithmetic of a product, in flop per ns.
    pub flops: f64,
    /// Memory traffic of an element-wise operator, in bytes per ns.
    pub bandwidth: f64,
}

impl Ceiling {
    /// The least time that a workload takes, ns: the roofline.
    pub fn time(&self, load: &Workload) -> f64 {
        match load.work.kernel {
            Kernel::Free => 0.0,
            _ => (load.work.flops / self.flops).max(load.bytes / self.bandwidth),
        }
    }

    /// The larger of both, each by itself.
    #[must_use]
    pub fn max(self, other: Ceiling) -> Ceiling {
        Ceiling { flops: self.flops.max(other.flops), bandwidth: self.bandwidth.max(other.bandwidth) }
    }
}

/// Floating-point operations of all products and convolutions in one run of a graph; a multiply-add
/// counts two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arithmetic {
    /// Those that are known.
    pub flops: f64,
    /// Operators that may hold products and whose arithmetic is not known: opaque ones, and
    /// products of unknown size.
    pub uncounted: usize,
}

impl Arithmetic {
    /// The arithmetic of a graph under concrete sizes.
    pub fn of(graph: &Graph, bindings: &Bindings) -> Arithmetic {
        let mut all = Arithmetic::default();
        for id in graph.ids().filter(|id| runs(graph, *id)) {
            let load = Workload::of(graph, bindings, id);
            let kind = graph.node(id).op.kind();
            match load.map(|load| load.work) {
                _ if kind == OpKind::Opaque => all.uncounted += 1,
                Some(work) if matches!(work.kernel, Kernel::Dense | Kernel::Thin) => all.flops += work.flops,
                None if is_product(kind) => all.uncounted += 1,
                _ => {}
            }
        }
        all
    }
}

/// An operator and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// The operator; those that the runtime fuses into it have no time of their own.
    pub node: NodeId,
    /// Its time in a run, ns.
    pub ns: f64,
    /// Its floating-point operations.
    pub flops: f64,
    /// Its least time by the ceiling, ns.
    pub limit_ns: f64,
}

impl Spot {
    /// Its time above the roofline, ns. In caches, operators may be faster than memory is.
    pub fn above(&self) -> f64 {
        (self.ns - self.limit_ns).max(0.0)
    }
}

/// The operators of a profiled run whose work is known, that with the most time above the roofline
/// first; ties by id.
pub fn spots(graph: &Graph, bindings: &Bindings, attribution: &Attribution, ceiling: &Ceiling) -> Vec<Spot> {
    let spot = |node: NodeId| {
        let ns = attribution.nodes.get(node.0 as usize).copied().filter(|ns| *ns > 0.0)?;
        let load = Workload::of(graph, bindings, node)?;
        Some(Spot { node, ns, flops: load.work.flops, limit_ns: ceiling.time(&load) })
    };
    let mut spots: Vec<Spot> = graph.ids().filter(|id| runs(graph, *id)).filter_map(spot).collect();
    spots.sort_by(|a, b| b.above().total_cmp(&a.above()).then(a.node.cmp(&b.node)));
    spots
}

/// Whether a node computes something in a run.
fn runs(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    !node.constant && !matches!(node.op, Op::Input(_))
}

#[cfg(test)]
mod tests {
    use regraft_ir::text;

    use super::*;

    const CEILING: Ceiling = Ceiling { flops: 100.0, bandwidth: 10.0 };

    fn graph(body: &str) -> Graph {
        text::parse(&format!("graph (x: f32[N,64]) {{ {body} }}")).expect("a graph")
    }

    fn at(rows: i64) -> Bindings {
        Bindings::from([("N".into(), rows)])
    }

    #[test]
    fn products_are_counted_at_the_given_sizes() {
        let products = graph("const w: f32[64,32] const v: f32[32,64] a = MatMul(x, w) r = Relu(a) y = MatMul(r, v) output y");
        let of = |rows| Arithmetic::of(&products, &at(rows));
        assert_eq!(of(10), Arithmetic { flops: 2.0 * 2.0 * 10.0 * 64.0 * 32.0, uncounted: 0 });
        assert_eq!(of(20).flops, 2.0 * of(10).flops);
        assert_eq!(Arithmetic::of(&products, &Bindings::default()), Arithmetic { flops: 0.0, uncounted: 2 });
        // A recurrent layer multiplies each element, and the state before it.
        let layer = "direction=\"forward\", activations=[\"Tanh\"], alphas=[], betas=[], optional=[]";
        let recurrent =
            format!("const w: f32[1,3,64] const r: f32[1,3,3] t = Unsqueeze(x, axes=[1]) y, h = RNN(t, w, r, {layer}) output y");
        assert_eq!(Arithmetic::of(&graph(&recurrent), &at(10)).flops, 2.0 * 10.0 * 3.0 * (64.0 + 3.0));
        assert_eq!(Arithmetic::of(&graph(&recurrent), &Bindings::default()).uncounted, 1);
        // What is computed ahead of time costs nothing in a run.
        let folded = graph("const w: f32[64,32] const v: f32[32,64] m = MatMul(w, v) y = MatMul(x, m) output y");
        assert_eq!(Arithmetic::of(&folded, &at(1)).flops, 2.0 * 64.0 * 64.0);
    }

    #[test]
    fn the_operator_furthest_above_its_roofline_comes_first() {
        let all = graph("const w: f32[64,64] a = MatMul(x, w) b = Relu(a) y = Tanh(b) output y");
        let id = |kind: &str| all.ids().find(|id| all.node(*id).op.kind().name() == kind).expect("a node");
        let mut attribution = Attribution { nodes: vec![0.0; all.capacity()], ..Attribution::default() };
        // At its roofline by arithmetic, far above it, and faster than memory.
        for (kind, ns) in [("MatMul", 81_920.0), ("Tanh", 100_000.0), ("Relu", 10.0)] {
            attribution.nodes[id(kind).0 as usize] = ns;
        }
        let found = spots(&all, &at(1000), &attribution, &CEILING);
        assert_eq!(found.iter().map(|spot| spot.node).collect::<Vec<_>>(), ["Tanh", "MatMul", "Relu"].map(id));
        let [tanh, matmul, relu] = found[..] else { panic!("{found:?}") };
        let bytes = 2.0 * 1000.0 * 64.0 * 4.0;
        assert_eq!((tanh.limit_ns, tanh.above()), (bytes / 10.0, 100_000.0 - bytes / 10.0));
        assert_eq!((matmul.flops, matmul.limit_ns, matmul.above()), (8_192_000.0, 81_920.0, 0.0));
        assert_eq!(relu.above(), 0.0);
        attribution.nodes[id("Tanh").0 as usize] = 0.0;
        assert_eq!(spots(&all, &at(1000), &attribution, &CEILING).len(), 2);
        assert!(spots(&all, &Bindings::default(), &attribution, &CEILING).is_empty());
    }
}
