//! Extractions, checked.

use crate::egraph::EGraph;
use crate::error::{EGraphError, Flaw};
use crate::method::Extractor;
use regraft_ir::Budget;

/// Why there is no extraction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The e-graph has none.
    #[error(transparent)]
    EGraph(#[from] EGraphError),
    /// What was given as the input is no extraction.
    #[error("the input is not an extraction of this e-graph: {0}")]
    Input(Flaw),
    /// A defect of the method.
    #[error("the method {method} is wrong: {flaw}")]
    Method {
        /// Its name.
        method: &'static str,
        /// What is wrong with its choice.
        flaw: Flaw,
    },
}

/// One node for each class that the roots need, without a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Extraction {
    /// The chosen nodes by their numbers, children first.
    pub nodes: Vec<usize>,
    /// Sum of their costs, each counted once, in the unit of the e-graph.
    pub cost: f64,
    /// What every extraction costs at least, in the same unit; `None` if the method shows nothing.
    /// Never above `cost`; equal if the extraction is shown to be the cheapest.
    pub bound: Option<f64>,
}

impl Extraction {
    /// How far the cost may be above the least, as a share of the cost: 0 if it is the least.
    pub fn gap(&self) -> Option<f64> {
        self.bound.map(|bound| if self.cost > bound { (self.cost - bound) / self.cost } else { 0.0 })
    }
}

impl EGraph {
    /// Chooses a node for each class that the roots need. `input` is a known extraction, by the
    /// numbers of its nodes: the result costs no more.
    ///
    /// The choice is checked, whatever the method: it is complete and has no cycle.
    pub fn extract(&self, method: &dyn Extractor, input: Option<&[usize]>, budget: &mut dyn Budget) -> Result<Extraction, ExtractError> {
        let input = input.map(|nodes| self.check(nodes)).transpose().map_err(ExtractError::Input)?;
        let (problem, unit) = self.problem();
        let answer = match method.solve(&problem, budget) {
            Some(answer) => answer,
            None => return Err(self.infinite(&problem).into()),
        };
        let chosen: Vec<usize> = answer.nodes.iter().map(|&node| node as usize).collect();
        let mut nodes = self.check(&chosen).map_err(|flaw| ExtractError::Method { method: method.name(), flaw })?;
        if let Some(input) = input
            && self.cost(&input) < self.cost(&nodes)
        {
            nodes = input;
        }
        let cost = self.cost(&nodes);
        let units = problem.total(&nodes.iter().map(|&node| node as u32).collect::<Vec<_>>());
        // Rounding a node's cost to units changes it by one at most.
        let rounding = problem.classes() as u64;
        let bound = answer.bound.map(|bound| if bound >= units { cost } else { (bound.saturating_sub(rounding) as f64 * unit).min(cost) });
        Ok(Extraction { nodes, cost, bound })
    }

    /// Sum of the costs of some nodes, in the order of their numbers.
    pub fn cost(&self, nodes: &[usize]) -> f64 {
        let mut sorted = nodes.to_vec();
        sorted.sort_unstable();
        sorted.iter().map(|&node| self.nodes()[node].cost).sum()
    }
}
