//! What a rewrite does to operators around it: it is charged to the rewrite.
//!
//! A runtime that computes several operators in one kernel no longer does so when one of them is
//! rewritten. Then others take longer that look as before, further than a [`Signature`] sees: where
//! a factor is moved out of a GELU, its error function, which cost nothing, is a kernel. Prices of
//! signatures would tell that of half of their places and believe none. So what such an operator
//! takes beyond what it takes in the input is added to the nearest operators that the input does
//! not have; likewise what others near it take less.

use std::collections::BTreeMap;

use regraft_ir::{Bindings, Graph, NodeId, NodeSet};

use crate::signature::Signature;
use crate::table::is_priced;

/// An operator is a kernel of its own now if it takes so many times as long as any of its signature
/// in the input, and so many nanoseconds more. Less is left to prices: caches are others in every
/// model.
const OWN: f64 = 4.0;
const NOTABLE: f64 = 1_000.0;
/// Near such an operator, one that takes less than this part of what it took no longer computes
/// others.
const RELIEVED: f64 = 0.8;
/// How far away the cause may be, in operators.
const FAR: usize = 6;

/// What operators of the input take: the shortest and the longest time of each signature, ns.
#[derive(Default)]
pub(crate) struct Usual(BTreeMap<Signature, (f64, f64)>);

impl Usual {
    /// In this graph, where nodes take so long.
    pub(crate) fn of(graph: &Graph, bindings: &Bindings, times: &[f64]) -> Usual {
        let mut usual = BTreeMap::new();
        for id in graph.ids().filter(|id| is_priced(graph, *id)) {
            let ns = times[id.0 as usize];
            let (low, high) = usual.entry(Signature::of(graph, bindings, id)).or_insert((ns, ns));
            (*low, *high) = (low.min(ns), high.max(ns));
        }
        Usual(usual)
    }

    /// How much longer than usual an operator takes that is a kernel of its own now.
    fn more(&self, signature: &Signature, ns: f64) -> Option<f64> {
        let (_, high) = self.0.get(signature)?;
        (ns > high * OWN + NOTABLE).then_some(ns - high)
    }

    /// How much less than usual an operator takes, as a negative number, if it does.
    fn less(&self, signature: &Signature, ns: f64) -> Option<f64> {
        let (low, _) = self.0.get(signature)?;
        (ns < low * RELIEVED).then_some(ns - low)
    }

    /// Moves what operators take beyond the usual to the nearest new ones, if any are near; the sum
    /// stays.
    pub(crate) fn charge(&self, graph: &Graph, bindings: &Bindings, times: &mut [f64]) {
        let priced: Vec<NodeId> = graph.ids().filter(|id| is_priced(graph, *id)).collect();
        let signatures: Vec<Signature> = priced.iter().map(|id| Signature::of(graph, bindings, *id)).collect();
        let new = NodeSet::of(graph, priced.iter().zip(&signatures).filter(|(_, s)| !self.0.contains_key(s)).map(|(id, _)| *id));
        let of = |excess: &dyn Fn(&Signature, f64) -> Option<f64>| -> Vec<(NodeId, f64)> {
            let all = priced.iter().zip(&signatures);
            all.filter_map(|(id, signature)| Some((*id, excess(signature, times[id.0 as usize])?))).collect()
        };
        let (more, mut less) = (of(&|s, ns| self.more(s, ns)), of(&|s, ns| self.less(s, ns)));
        let own = NodeSet::of(graph, more.iter().map(|(id, _)| *id));
        less.retain(|(id, _)| !nearest(graph, *id, &own).is_empty());
        for (id, excess) in more.into_iter().chain(less) {
            let causes = nearest(graph, id, &new);
            let share = excess / causes.len().max(1) as f64;
            for cause in causes {
                // Nothing takes less than no time.
                let moved = share.max(-times[cause.0 as usize]);
                times[cause.0 as usize] += moved;
                times[id.0 as usize] -= moved;
            }
        }
    }
}

/// The nodes of a set that are nearest to a node, constants not counted as ways; none if all are
/// far.
fn nearest(graph: &Graph, from: NodeId, set: &NodeSet) -> Vec<NodeId> {
    let (mut seen, mut level) = (NodeSet::of(graph, std::iter::once(from)), vec![from]);
    for _ in 0..FAR {
        let around = level.iter().flat_map(|id| {
            let node = graph.node(*id);
            node.inputs.iter().map(|value| value.node).chain(node.users.iter().map(|(user, _)| *user))
        });
        level = around.filter(|id| !graph.node(*id).constant && seen.insert(*id)).collect();
        let found: Vec<NodeId> = level.iter().copied().filter(|id| set.contains(*id)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use regraft_ir::text;

    use super::*;

    /// The times of the nodes of a graph by their kinds, in the order of the graph, and what is
    /// charged then.
    fn charged(usual: (&str, &[f64]), graph: (&str, &[f64])) -> Vec<f64> {
        let read = |(text, given): (&str, &[f64])| {
            let graph = text::parse(text).unwrap_or_else(|e| panic!("{e}"));
            let mut times = vec![0.0; graph.capacity()];
            let priced: Vec<NodeId> = graph.ids().filter(|id| is_priced(&graph, *id)).collect();
            assert_eq!(priced.len(), given.len());
            priced.iter().zip(given).for_each(|(id, ns)| times[id.0 as usize] = *ns);
            (graph, times, priced)
        };
        let bindings = Bindings::new();
        let (before, times, _) = read(usual);
        let usual = Usual::of(&before, &bindings, &times);
        let (after, mut times, priced) = read(graph);
        usual.charge(&after, &bindings, &mut times);
        priced.iter().map(|id| times[id.0 as usize]).collect()
    }

    const BEFORE: &str = "graph (x: f32[64,64]) {
        a = Relu(x) b = Tanh(a) c = Erf(b) d = Sqrt(c) e = Exp(d) f = Neg(e) g = Sigmoid(f) output g }";

    #[test]
    fn what_becomes_slower_is_charged_to_what_is_new() {
        // The runtime computed `b` to `d` at once, and does not since `f` is another operator.
        let after = BEFORE.replace("Neg", "Abs");
        let usual = [9e3, 0.0, 0.0, 30e3, 8e3, 5e3, 7e3];
        let seen = [9.5e3, 20e3, 40e3, 10e3, 8e3, 5e3, 7e3];
        let charged = charged((BEFORE, &usual), (&after, &seen));
        // `e`, `f` and `g` have other neighbours; `e` is nearest to all that changed.
        assert_eq!(charged, [9.5e3, 0.0, 0.0, 30e3, 48e3, 5e3, 7e3]);
        assert_eq!(charged.iter().sum::<f64>(), seen.iter().sum::<f64>());
    }

    #[test]
    fn what_is_far_from_anything_new_or_hardly_differs_stays() {
        let usual = [9e3, 2e3, 3e3, 30e3, 8e3, 5e3, 7e3];
        let seen = [9e3, 2.9e3, 3e3, 36e3, 8e3, 5e3, 7e3];
        assert_eq!(charged((BEFORE, &usual), (&BEFORE.replace("Neg", "Abs"), &seen)), seen);
        let twice = seen.map(|ns| 2.0 * ns);
        assert_eq!(charged((BEFORE, &usual), (BEFORE, &twice)), twice);
    }
}
