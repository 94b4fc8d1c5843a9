//! Prices and predictions, human-readable.

use regraft_ir::{Graph, NodeId};
use serde::Serialize;

use crate::measured::{Measured, Source};
use crate::model::{CostModel, Ns};
use crate::signature::Signature;

/// One node of a model and its price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Name of its first result in the model, or its operator and id.
    pub name: String,
    /// The node's id.
    #[serde(skip)]
    pub id: NodeId,
    /// What its price belongs to.
    pub signature: String,
    /// Price, ns.
    pub ns: Ns,
    /// Part of the model's total, in thousandths.
    pub per_mille: u32,
    /// Where the price comes from.
    pub source: Source,
    /// Observations behind the price; 0 for guesses.
    pub count: u32,
    /// Spread of the observations, ns.
    pub spread: Ns,
}

/// The `limit` most expensive nodes of a graph, most expensive first; ties by id. Free nodes are
/// left out.
pub fn describe(model: &Measured, graph: &Graph, limit: usize) -> Vec<Row> {
    let total = model.total(graph).max(1);
    let mut quotes: Vec<(Ns, Source, NodeId)> = graph
        .ids()
        .map(|id| {
            let (ns, source) = model.quote(graph, id);
            (ns, source, id)
        })
        .filter(|(_, source, _)| *source != Source::Free)
        .collect();
    quotes.sort_by_key(|(ns, _, id)| (std::cmp::Reverse(*ns), *id));
    quotes.truncate(limit);
    quotes
        .into_iter()
        .map(|(ns, source, id)| {
            let node = graph.node(id);
            let signature = Signature::of(graph, &model.bindings, id);
            let entry = model.table().get(&signature);
            Row {
                name: node.names.iter().flatten().next().map_or_else(|| format!("{}#{}", node.op.kind().name(), id.0), |n| n.to_string()),
                id,
                ns,
                per_mille: (u128::from(ns) * 1000 / u128::from(total)) as u32,
                source,
                count: entry.map_or(0, |e| e.count),
                spread: entry.map_or(0, |e| e.spread.round() as Ns),
                signature: signature.to_string(),
            }
        })
        .collect()
}

/// Predicted against measured time of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// The model, human-readable.
    pub model: String,
    /// Sum of prices and overhead, ns.
    pub predicted: f64,
    /// Median of whole runs, ns.
    pub measured: f64,
}

impl Total {
    /// Predicted / measured − 1.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// Predicted against measured gain of one rewritten model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The model, human-readable.
    pub model: String,
    /// Predicted time of the input, ns.
    pub predicted_before: f64,
    /// Predicted time of the result, ns.
    pub predicted_after: f64,
    /// Measured ratio input / result: above 1 the result is faster.
    pub measured: f64,
}

impl Gain {
    /// Predicted ratio input / result.
    pub fn predicted(&self) -> f64 {
        self.predicted_before / self.predicted_after
    }

    /// Predicted minus measured gain, in percentage points.
    pub fn error_points(&self) -> f64 {
        100.0 * (self.predicted() - self.measured)
    }
}

/// How well prices predict.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Calibration {
    /// Times of models.
    pub totals: Vec<Total>,
    /// Gains of rewritten models.
    pub gains: Vec<Gain>,
}

impl Calibration {
    /// Median of the absolute errors of totals; `None` without totals.
    pub fn median_error(&self) -> Option<f64> {
        let mut errors: Vec<f64> = self.totals.iter().map(|t| t.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let last = errors.len().checked_sub(1)?;
        Some(0.5 * (errors[last / 2] + errors[last.div_ceil(2)]))
    }

    /// Number of totals whose error is within `bound` (0.1 for 10 %).
    pub fn totals_within(&self, bound: f64) -> usize {
        self.totals.iter().filter(|t| t.error().abs() <= bound).count()
    }

    /// Number of gains predicted within `points` percentage points.
    pub fn gains_within(&self, points: f64) -> usize {
        self.gains.iter().filter(|g| g.error_points().abs() <= points).count()
    }
}
