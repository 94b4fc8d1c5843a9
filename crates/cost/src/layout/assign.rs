//! `Assignment`: a kernel for every node of a graph.

use regraft_ir::{Graph, NodeId, ValueId};

use super::kernel::{Kernel, Kernels};
use super::problem::{Layouts, Problem, Reader, wanted_outside};
use super::prune::Useful;
use super::target::{Chooser, LayoutId, LayoutTarget};
use crate::model::Ns;

/// Entries of the largest table by which assignments are found.
const LIMIT: usize = 1 << 16;

/// A kernel for every node of a graph, and what follows from that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// By node id: number of its kernel, 0 for the plain one and for nodes that do not run.
    pub kernels: Vec<usize>,
    /// Values that are brought into other layouts.
    pub changes: Vec<Relaid>,
    /// Prices of the kernels and costs of the changes.
    pub total: Ns,
    /// No assignment costs less; equal to `total` if it is the cheapest. If the target chooses,
    /// there is no other.
    pub bound: Ns,
}

/// A value that is brought into another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaid {
    /// The value.
    pub value: ValueId,
    /// The layout that it is made in.
    pub from: LayoutId,
    /// The layout that some readers want.
    pub to: LayoutId,
    /// What it costs.
    pub cost: Ns,
}

/// What a graph costs in its layouts, without the overhead of a run.
pub(super) fn total<'k>(target: &LayoutTarget, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Ns {
    match target.chosen_by {
        Chooser::Target => cost(graph, &forward(graph, kernels), kernels, &mut |_| {}),
        Chooser::Search => {
            let problem = problem(target, graph, kernels);
            let (least, is_exact) = problem.sum.least(LIMIT);
            if is_exact { least } else { problem.sum.solve(LIMIT).total }
        }
    }
}

/// The kernels of a graph's nodes: the cheapest choice, or that of the target.
pub(super) fn assign<'k>(target: &LayoutTarget, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Assignment {
    let (chosen, bound) = match target.chosen_by {
        Chooser::Target => (forward(graph, kernels), None),
        Chooser::Search => {
            let problem = problem(target, graph, kernels);
            let found = problem.sum.solve(LIMIT);
            let chosen = problem.choices.iter().map(|choice| {
                choice.as_ref().map_or(0, |choice| usize::from(choice.kernels[found.labels[choice.variable as usize] as usize]))
            });
            (chosen.collect(), Some(found.bound))
        }
    };
    let mut changes = Vec::new();
    let total = cost(graph, &chosen, kernels, &mut |change| changes.push(change));
    Assignment { kernels: chosen, changes, total, bound: bound.unwrap_or(total) }
}

fn problem<'k>(target: &LayoutTarget, graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Problem {
    let useful = Useful::of(target, graph, kernels);
    Problem::new(graph, kernels, &|id, kernel| useful.admits(graph, id, kernel))
}

/// What kernels cost, and the changes between them, each of which is told.
pub(super) fn cost<'k>(graph: &Graph, chosen: &[usize], kernels: &dyn Fn(NodeId) -> &'k Kernels, tell: &mut dyn FnMut(Relaid)) -> Ns {
    let kernel = |id: NodeId| &kernels(id).all[chosen[id.0 as usize]];
    let mut total: Ns = 0;
    for id in graph.ids().filter(|id| !graph.node(*id).constant) {
        total = total.saturating_add(kernel(id).price);
        for (port, from) in kernel(id).results.iter().enumerate() {
            let value = id.port(port as u32);
            let readers = Reader::all(graph, value);
            let wanted = readers.iter().fold(wanted_outside(graph, value), |wanted, reader| wanted | reader.wants(kernel(reader.id)));
            for to in (0..Layouts::BITS as LayoutId).filter(|to| to != from && wanted >> to & 1 == 1) {
                let cost = kernels(id).changes(value.port, *from, 1 << to);
                if cost > 0 {
                    tell(Relaid { value, from: *from, to, cost });
                }
                total = total.saturating_add(cost);
            }
        }
    }
    total
}

/// What a target chooses that goes from the operands to the results.
fn forward<'k>(graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels) -> Vec<usize> {
    let mut chosen = vec![0; graph.capacity()];
    for id in graph.topological().into_iter().filter(|id| !graph.node(*id).constant) {
        let inputs = &graph.node(id).inputs;
        let is_there = |(value, layout): (&ValueId, &Option<LayoutId>)| {
            let maker = || &kernels(value.node).all[chosen[value.node.0 as usize]];
            layout.is_none_or(|layout| maker().results[value.port as usize] == layout)
        };
        let fits = |kernel: &Kernel| inputs.iter().zip(&kernel.operands).all(is_there);
        let all = &kernels(id).all;
        let eager = all.iter().position(|kernel| kernel.eager);
        chosen[id.0 as usize] = eager.or_else(|| all.iter().skip(1).position(fits).map(|at| at + 1)).unwrap_or(0);
    }
    chosen
}
