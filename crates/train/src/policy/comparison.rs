//! A policy against prices alone, on problems that it was not trained on.

use std::time::Instant;

use anyhow::Result;
use regraft_cost::{Ns, Roofline};
use regraft_ir::{Graph, Steps};
use regraft_policy::{Guide, Prior, Weights};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Exact, Matcher, Strategy};
use serde::Serialize;

use super::problem::{network, problem, seeded};

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Blocks of each network.
    pub blocks: usize,
    /// Random moves that make them worse, at most.
    pub detours: usize,
    /// States that each search expands at most.
    pub expansions: usize,
    /// Seed.
    pub seed: u64,
}

/// A search on one block.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reached {
    /// States that it expanded until it was within 1 % of the cheapest known one; `None` if it never was.
    pub expansions: Option<usize>,
    /// Seconds until then, or until it ended.
    pub seconds: f64,
    /// What its cheapest state costs, relative to that one.
    pub cost: f64,
    /// Milliseconds that a state took, all of it: finding and scoring its rewrites, and getting there.
    pub state_ms: f64,
}

/// One block.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The network that it is of.
    pub model: String,
    /// Its number.
    pub block: usize,
    /// Its nodes.
    pub nodes: usize,
    /// What it costs, relative to the cheapest known state.
    pub start: f64,
    /// The cheapest state first, by price.
    pub delta: Reached,
    /// The same, guided by the policy.
    pub prior: Reached,
    /// Exact search; its states are not counted in the same way.
    pub exact: f64,
    /// The fewest moves known to lead within 1 %: no search expands fewer states.
    pub fewest: usize,
}

/// Within so much of the cheapest known state is as good as there.
const CLOSE: f64 = 1.01;
/// Blocks of this number on are for comparisons, and never for training.
const UNSEEN: usize = 1 << 32;
/// Budget of the exact search.
const VISITS: u64 = 20_000;

impl Comparison {
    /// Compares on blocks of a network.
    ///
    /// # Errors
    ///
    /// If there is no such network.
    pub fn run(&self, model: &str, weights: &Weights, library: &Library) -> Result<Vec<Row>> {
        let graph = network(model)?;
        let block = |block: usize| {
            let mut random = seeded(self.seed, model, UNSEEN + block);
            problem(&graph, library, self.detours, &mut random)
                .map(|(graph, prices)| self.row(model, block, &graph, &prices, weights, library))
        };
        Ok((0..self.blocks).filter_map(block).collect())
    }

    fn row(&self, model: &str, block: usize, graph: &Graph, prices: &Roofline, weights: &Weights, library: &Library) -> Row {
        let mut ways: Vec<(usize, Ns)> = Vec::new();
        let mut search = |guide: Guide<'_>| {
            let mut engine = Engine::new(graph.clone(), prices);
            let mut matcher = Matcher::new(library, &Anything);
            let mut curve = Vec::new();
            let begun = Instant::now();
            let search = Prior { expansions: self.expansions, keep: 16, ..Prior::new(guide) };
            let found = search.observed(&mut engine, &mut matcher, &mut Steps(u64::MAX), &mut |_, cost| {
                curve.push((cost, begun.elapsed().as_secs_f64()));
            });
            ways.extend(found.scripts.iter().map(|script| (script.moves.len(), script.cost)));
            curve
        };
        let [delta, prior] = [Guide::Delta, Guide::Policy(weights)].map(&mut search);
        let mut engine = Engine::new(graph.clone(), prices);
        let start = engine.cost();
        let exact = Exact::default().search(&mut engine, &mut Matcher::new(library, &Anything), &mut Steps(VISITS));
        // Prefixes of what exact search found are ways, too.
        for script in &exact.scripts {
            for (at, step) in script.moves.iter().enumerate() {
                engine.apply(step);
                ways.push((at + 1, engine.cost()));
            }
            engine.rewind(0);
        }
        ways.push((0, start));
        let best = ways.iter().map(|(_, cost)| *cost).min().unwrap_or(start).max(1) as f64;
        let reached = |curve: &[(Ns, f64)]| {
            let at = curve.iter().position(|(cost, _)| *cost as f64 <= best * CLOSE);
            let last = curve.last().copied().unwrap_or((start, 0.0));
            Reached {
                expansions: at,
                seconds: at.map_or(last.1, |at| curve[at].1),
                cost: last.0 as f64 / best,
                state_ms: 1e3 * last.1 / curve.len().max(1) as f64,
            }
        };
        let [delta, prior] = [&delta, &prior].map(|curve| reached(curve));
        // A state that was reached by so many expansions is as many moves away at most.
        let close = ways.iter().filter(|(_, cost)| *cost as f64 <= best * CLOSE).map(|(steps, _)| *steps);
        let fewest = close.chain([&delta, &prior].iter().filter_map(|one| one.expansions)).min();
        Row {
            model: model.into(),
            block,
            nodes: graph.len(),
            start: start as f64 / best,
            delta,
            prior,
            exact: exact.scripts[0].cost as f64 / best,
            fewest: fewest.unwrap_or(0),
        }
    }
}

/// Several blocks together, without those that are within 1 % as they are.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// Blocks.
    pub blocks: usize,
    /// Expansions by price over those by the policy, the geometric mean; a search that never got there
    /// counts with all that it expanded.
    pub fewer: f64,
    /// The same over the fewest moves that are known: no policy can be better than that.
    pub bound: f64,
    /// Seconds by price over those by the policy, the geometric mean.
    pub sooner: f64,
    /// Blocks where prices alone, the policy, and exact search got there.
    pub reached: [usize; 3],
    /// Milliseconds of a state, by price and by the policy: geometric means.
    pub state_ms: [f64; 2],
    /// What is found by each of these at last, relative to the best known: geometric means.
    pub costs: [f64; 3],
}

impl Totals {
    /// Of these rows, where searches expanded so many states at most.
    pub fn of(rows: &[Row], expansions: usize) -> Totals {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.start > CLOSE).collect();
        let mean = |of: &dyn Fn(&Row) -> f64| (rows.iter().map(|row| of(row).ln()).sum::<f64>() / rows.len().max(1) as f64).exp();
        let taken = |reached: &Reached| reached.expansions.unwrap_or(expansions).max(1) as f64;
        let count = |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| of(row)).count();
        Totals {
            blocks: rows.len(),
            fewer: mean(&|row| taken(&row.delta) / taken(&row.prior)),
            bound: mean(&|row| taken(&row.delta) / row.fewest.max(1) as f64),
            sooner: mean(&|row| row.delta.seconds.max(1e-6) / row.prior.seconds.max(1e-6)),
            reached: [
                count(&|row| row.delta.expansions.is_some()),
                count(&|row| row.prior.expansions.is_some()),
                count(&|row| row.exact <= CLOSE),
            ],
            state_ms: [mean(&|row| row.delta.state_ms.max(1e-6)), mean(&|row| row.prior.state_ms.max(1e-6))],
            costs: [mean(&|row| row.delta.cost), mean(&|row| row.prior.cost), mean(&|row| row.exact)],
        }
    }
}
