//! A price list for simplifying: fewer operators first.

use regraft_ir::{Bindings, Graph, NodeId};

use crate::model::{CostModel, Ns};
use crate::roofline::Roofline;
use crate::table::is_priced;

/// Prices every operator that is computed in a run alike; of graphs with equally many, the roofline
/// tells which is better.
#[derive(Clone, Debug)]
pub struct Operators(pub Roofline);

impl Operators {
    /// What every operator costs beside its share of the roofline, ns: more than nearly any does
    /// there.
    pub const EACH: Ns = 1_000_000;
    /// Part of the roofline that is added to it.
    const SHARE: Ns = 1_000;

    /// What a difference of prices is: operators, and ns of the roofline.
    pub fn parts(difference: i64) -> (i64, i64) {
        let each = Operators::EACH as i64;
        let operators = (difference + difference.signum() * each / 2) / each;
        (operators, (difference - operators * each) * Operators::SHARE as i64)
    }
}

impl CostModel for Operators {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        if is_priced(graph, id) { Operators::EACH + self.0.price(graph, id) / Operators::SHARE } else { 0 }
    }

    fn bindings(&self) -> Option<&Bindings> {
        self.0.bindings()
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::text::parse;

    use super::*;

    #[test]
    fn what_the_roofline_gives_away_counts() {
        let graph = parse("graph (x: f32[4]) { a = Identity(x) b = Relu(a) output b }").expect("a graph");
        let fewer = parse("graph (x: f32[4]) { b = Relu(x) output b }").expect("a graph");
        let prices = Operators(Roofline::new(Bindings::new()));
        assert!(prices.total(&graph) >= prices.total(&fewer) + Operators::EACH);
    }

    #[test]
    fn a_difference_tells_of_both() {
        for (difference, parts) in [(2_000_300, (2, 300_000)), (-999_900, (-1, 100_000)), (-40, (0, -40_000)), (0, (0, 0))] {
            assert_eq!(Operators::parts(difference), parts, "{difference}");
        }
    }
}
