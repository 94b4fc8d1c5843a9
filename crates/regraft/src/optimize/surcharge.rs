//! Weights that a model keeps in memory, and prices that make rewriting shun them.

use std::collections::BTreeMap;

use regraft_cost::{CostModel, Ns};
use regraft_ir::{Bindings, Graph, NodeId, ValueId};
use regraft_search::Engine;

use crate::optimize::script::Script;

/// Bytes of a value; 0 if its size is not known.
fn bytes(graph: &Graph, bindings: &Bindings, value: ValueId) -> f64 {
    let Some(ty) = graph.ty(value) else { return 0.0 };
    ty.bind(bindings).map_or(0.0, |shape| ty.dtype.bytes(&shape))
}

/// Bytes of the constants that are there when a graph runs: those that are computed ahead of time,
/// and not those that they are computed from.
pub fn weights(graph: &Graph, bindings: &Bindings) -> f64 {
    let is_read = |value: ValueId| {
        let is_output = graph.outputs().iter().any(|output| output.value == value);
        let users = &graph.node(value.node).users;
        is_output || users.iter().any(|(user, _)| !graph.node(*user).constant && graph.node(*user).inputs.contains(&value))
    };
    let constants = graph.ids().filter(|id| graph.node(*id).constant);
    let values = constants.flat_map(|id| (0..graph.node(id).types.len()).map(move |port| id.port(port as u32)));
    values.filter(|value| is_read(*value)).map(|value| bytes(graph, bindings, value)).sum()
}

/// By how many bytes the weights grow under each rule of a script, from `start`; the rule that adds
/// most first. Those that add none are left out.
pub fn growth(start: &Graph, script: &Script, bindings: &Bindings, prices: &dyn CostModel) -> Vec<(String, f64)> {
    let mut engine = Engine::new(start.clone(), prices);
    let (mut before, mut rules) = (weights(start, bindings), BTreeMap::<&str, f64>::new());
    for rewrite in &script.main {
        engine.apply(&rewrite.step);
        let after = weights(engine.graph(), bindings);
        *rules.entry(&rewrite.applied.rule).or_default() += after - before;
        before = after;
    }
    let mut rules: Vec<(String, f64)> = rules.into_iter().filter(|(_, more)| *more > 0.0).map(|(rule, more)| (rule.into(), more)).collect();
    rules.sort_by(|a, b| b.1.total_cmp(&a.1));
    rules
}

/// Prices with a surcharge on every byte of weights that a node reads.
pub struct Surcharged<'a> {
    /// Prices without.
    pub prices: &'a dyn CostModel,
    /// Values of the symbols.
    pub bindings: &'a Bindings,
    /// Surcharge, ns per byte.
    pub rate: f64,
}

impl CostModel for Surcharged<'_> {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let (node, price) = (graph.node(id), self.prices.price(graph, id));
        if node.constant {
            return price;
        }
        let constants = node.inputs.iter().filter(|value| graph.node(value.node).constant);
        let read: f64 = constants.map(|value| bytes(graph, self.bindings, *value)).sum();
        price.saturating_add((self.rate * read) as Ns)
    }

    fn overhead(&self) -> Ns {
        self.prices.overhead()
    }

    fn bindings(&self) -> Option<&Bindings> {
        Some(self.bindings)
    }
}

#[cfg(test)]
mod tests {
    use regraft_cost::Roofline;
    use regraft_ir::text;

    use super::*;

    #[test]
    fn weights_are_what_is_there_when_the_graph_runs() {
        let bindings = Bindings::default();
        let graph = |body: &str| text::parse(&format!("graph (x: f32[2,4]) {{ {body} }}")).expect("a graph");
        // A table that is computed ahead of time counts, and not what it is computed from.
        let sum = graph("const w: f32[4,8] const v: f32[4,8] m = Add(w, v) y = MatMul(x, m) output y");
        assert_eq!(weights(&sum, &bindings), 4.0 * 8.0 * 4.0);
        let both = graph("const w: f32[4,8] const v: f32[4,8] a = MatMul(x, w) b = MatMul(x, v) y = Add(a, b) output y");
        assert_eq!(weights(&both, &bindings), 2.0 * 4.0 * 8.0 * 4.0);
        // One that two operators read is there once.
        let twice = graph("const w: f32[4,4] a = MatMul(x, w) y = MatMul(a, w) output y");
        assert_eq!(weights(&twice, &bindings), 4.0 * 4.0 * 4.0);
        let roofline = Roofline::new(bindings.clone());
        let free = Surcharged { prices: &roofline, bindings: &bindings, rate: 0.0 };
        let dear = Surcharged { prices: &roofline, bindings: &bindings, rate: 10.0 };
        assert_eq!(free.total(&both), roofline.total(&both));
        assert_eq!(dear.total(&both) - roofline.total(&both), 2560);
        assert!(dear.total(&sum) < dear.total(&both));
    }
}
