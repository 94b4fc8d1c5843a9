//! A price list for simplifying: fewer operators, as long as that takes no more arithmetic.

use regraft_ir::{Graph, NodeId};

use crate::model::{CostModel, Ns};
use crate::roofline::Roofline;
use crate::table::is_priced;

/// Prices every operator that is computed in a run alike, and so much of the roofline that a merger which
/// multiplies arithmetic does not pay.
#[derive(Clone, Debug)]
pub struct Operators(pub Roofline);

impl Operators {
    /// What an operator is worth, ns of the roofline.
    pub const EACH: Ns = 5_000;
}

impl CostModel for Operators {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        if is_priced(graph, id) { Operators::EACH + self.0.price(graph, id) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::Bindings;
    use regraft_ir::text::parse;

    use super::*;

    #[test]
    fn what_the_roofline_gives_away_counts() {
        let graph = parse("graph (x: f32[4]) { a = Identity(x) b = Relu(a) output b }").expect("a graph");
        let fewer = parse("graph (x: f32[4]) { b = Relu(x) output b }").expect("a graph");
        let prices = Operators(Roofline::new(Bindings::new()));
        assert!(prices.total(&graph) >= prices.total(&fewer) + Operators::EACH);
    }
}
