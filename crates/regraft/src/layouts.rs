//! When layouts are chosen: with the rewrites, before or after them, or not at all.

use std::fmt;

use regraft_cost::layout::{Chooser, LaidOut, PLAIN, Relaid};
use regraft_cost::{CostModel, LayoutTarget, Ns};
use regraft_ir::{Bindings, Graph};
use serde::Serialize;

/// When layouts are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutMode {
    /// Never: rewrites are searched with everything in the plain layout. Where the target chooses,
    /// it does so in the result, and the search goes by the price list alone.
    None,
    /// Layouts are chosen for the model as it is, and nothing is rewritten.
    Only,
    /// Rewrites are searched as with [`LayoutMode::None`]; then layouts are chosen for the result.
    Last,
    /// Layouts are chosen for the model as it is; then rewrites are searched, where operators like
    /// those of the model keep the layouts that they got, and others take the best ones.
    First,
    /// Every state of the search costs what it costs in the best layouts for it.
    Joint,
}

impl LayoutMode {
    /// All of them.
    pub const ALL: [LayoutMode; 5] = [LayoutMode::None, LayoutMode::Only, LayoutMode::Last, LayoutMode::First, LayoutMode::Joint];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            LayoutMode::None => "none",
            LayoutMode::Only => "only",
            LayoutMode::Last => "last",
            LayoutMode::First => "first",
            LayoutMode::Joint => "joint",
        }
    }
}

impl fmt::Display for LayoutMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The layouts of a result.
#[derive(Clone, Debug, Serialize)]
pub struct Layouts {
    /// When they were chosen.
    pub mode: LayoutMode,
    /// Operators that take or make another layout than the plain one.
    pub laid_out: usize,
    /// Changes of layout.
    pub changes: usize,
    /// What these cost, ns; part of the cost.
    pub changes_cost: Ns,
    /// No choice of layouts costs less, ns, rewrites aside; equal to the cost if this is shown of
    /// the layouts.
    pub bound: Ns,
}

/// The prices of a model under all modes.
pub(crate) struct Stage<'a> {
    listed: &'a dyn CostModel,
    laid: LaidOut<'a>,
    plain: LaidOut<'a>,
    first: LaidOut<'a>,
}

impl<'a> Stage<'a> {
    /// For a model, under prices of the plain layout.
    pub(crate) fn new(listed: &'a dyn CostModel, target: &'a LayoutTarget, symbols: Bindings, graph: &Graph) -> Stage<'a> {
        let laid = LaidOut::new(listed, target, symbols);
        let (plain, first) = (laid.plain(), laid.keeping(graph, &laid.assignment(graph)));
        Stage { listed, laid, plain, first }
    }

    fn is_chosen_by_target(&self) -> bool {
        self.laid.target().chosen_by == Chooser::Target
    }

    /// The prices that rewrites are searched by.
    pub(crate) fn searched(&self, mode: LayoutMode) -> &dyn CostModel {
        match mode {
            LayoutMode::Joint => &self.laid,
            LayoutMode::First if !self.is_chosen_by_target() => &self.first,
            _ if self.is_chosen_by_target() => self.listed,
            _ => &self.plain,
        }
    }

    /// What a result costs, and in which layouts.
    pub(crate) fn judged(&self, mode: LayoutMode, graph: &Graph) -> (Ns, Layouts) {
        let model = match mode {
            _ if self.is_chosen_by_target() => &self.laid,
            LayoutMode::None => &self.plain,
            LayoutMode::First => &self.first,
            _ => &self.laid,
        };
        let (assignment, all) = (model.assignment(graph), model.all_kernels(graph));
        let running = graph.ids().filter(|id| !graph.node(*id).constant);
        let is_laid_out = |id: &regraft_ir::NodeId| {
            let kernel = &all[id.0 as usize].all[assignment.kernels[id.0 as usize]];
            kernel.operands.iter().flatten().chain(&kernel.results).any(|layout| *layout != PLAIN)
        };
        let overhead = model.overhead();
        let layouts = Layouts {
            mode,
            laid_out: running.filter(is_laid_out).count(),
            changes: assignment.changes.len(),
            changes_cost: assignment.changes.iter().map(|Relaid { cost, .. }| *cost).sum(),
            bound: assignment.bound.saturating_add(overhead),
        };
        (assignment.total.saturating_add(overhead), layouts)
    }
}
