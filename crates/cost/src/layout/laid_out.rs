//! `LaidOut`: prices under which a graph costs what it costs in the best layouts.

use std::collections::BTreeMap;

use regraft_ir::{Bindings, Graph, NodeId};

use super::assign::{Assignment, assign, total};
use super::kernel::{Kernel, Kernels, kernels};
use super::target::{Chooser, LayoutTarget};
use crate::model::{CostModel, Ns};
use crate::signature::Signature;

/// Which kernels operators may use.
#[derive(Clone, Debug)]
enum Policy {
    /// All of them.
    Any,
    /// Plain ones.
    Plain,
    /// Those of a signature between these layouts; all of them for other signatures.
    Kept(BTreeMap<String, Vec<Kernel>>),
}

/// Prices of plain kernels, and the layouts that a target has besides.
pub struct LaidOut<'a> {
    prices: &'a dyn CostModel,
    target: &'a LayoutTarget,
    bindings: Bindings,
    policy: Policy,
}

impl<'a> LaidOut<'a> {
    /// These prices are those of plain kernels, or, if the target chooses, whatever a list says.
    pub fn new(prices: &'a dyn CostModel, target: &'a LayoutTarget, bindings: Bindings) -> LaidOut<'a> {
        LaidOut { prices, target, bindings, policy: Policy::Any }
    }

    /// The same with the plain layout alone.
    pub fn plain(&self) -> LaidOut<'a> {
        self.under(Policy::Plain)
    }

    /// The same, where operators like those of `graph` keep the layouts that they have there under
    /// `assignment`. Others have all layouts.
    pub fn keeping(&self, graph: &Graph, assignment: &Assignment) -> LaidOut<'a> {
        let mut kept: BTreeMap<String, Vec<Kernel>> = BTreeMap::new();
        for id in graph.ids().filter(|id| !graph.node(*id).constant) {
            let chosen = self.kernels(graph, id, self.prices.price(graph, id)).all.swap_remove(assignment.kernels[id.0 as usize]);
            kept.entry(Signature::of(graph, &self.bindings, id).core).or_default().push(chosen);
        }
        self.under(Policy::Kept(kept))
    }

    fn under(&self, policy: Policy) -> LaidOut<'a> {
        LaidOut { prices: self.prices, target: self.target, bindings: self.bindings.clone(), policy }
    }

    /// The target.
    pub fn target(&self) -> &'a LayoutTarget {
        self.target
    }

    /// The kernels of a node whose plain one costs `price`, without those that cannot be better
    /// than another one.
    pub fn kernels(&self, graph: &Graph, id: NodeId, price: Ns) -> Kernels {
        let mut known = kernels(self.target, &self.bindings, graph, id, price);
        let between = |a: &Kernel, b: &Kernel| (&a.operands, &a.results) == (&b.operands, &b.results);
        match &self.policy {
            Policy::Any => {}
            Policy::Plain => known.keep(Kernel::is_plain),
            Policy::Kept(kept) if known.all.len() > 1 => {
                if let Some(kept) = kept.get(&Signature::of(graph, &self.bindings, id).core) {
                    known.keep(|kernel| kept.iter().any(|one| between(one, kernel)));
                }
            }
            Policy::Kept(_) => {}
        }
        if self.target.is_uniform() && self.target.chosen_by == Chooser::Search {
            known.drop_dominated();
        }
        known
    }

    /// What a graph costs in its layouts, the overhead of a run included, if these are its kernels.
    pub fn total_of<'k>(&self, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Ns {
        self.prices.overhead().saturating_add(total(self.target, graph, kernels))
    }

    /// The kernels of a graph's nodes: the cheapest choice, or that of the target.
    pub fn assignment(&self, graph: &Graph) -> Assignment {
        let all = self.all_kernels(graph);
        assign(self.target, graph, &|id| &all[id.0 as usize])
    }

    /// The kernels of all nodes, by id.
    pub fn all_kernels(&self, graph: &Graph) -> Vec<Kernels> {
        let of = |id| if graph.get(id).is_some() { self.kernels(graph, id, self.prices.price(graph, id)) } else { Kernels::default() };
        (0..graph.capacity() as u32).map(|id| of(NodeId(id))).collect()
    }
}

impl CostModel for LaidOut<'_> {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        self.prices.price(graph, id)
    }

    fn overhead(&self) -> Ns {
        self.prices.overhead()
    }

    fn layouts(&self) -> Option<&LaidOut<'_>> {
        Some(self)
    }

    fn bindings(&self) -> Option<&Bindings> {
        self.prices.bindings()
    }

    fn total(&self, graph: &Graph) -> Ns {
        let all = self.all_kernels(graph);
        self.total_of(graph, &|id| &all[id.0 as usize])
    }
}
