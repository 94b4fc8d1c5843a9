//! A policy against prices alone, on problems that it was not trained on.

use std::time::Instant;

use anyhow::Result;
use regraft_cost::{Ns, Roofline, is_priced};
use regraft_ir::{Bindings, Graph, Steps};
use regraft_policy::{Embedding, Guide, Gumbel, Prior, Weights};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Exact, Guided, Matcher, Outcome, Sample, Strategy, all_moves};
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
    /// Budget of exact searches, in checks.
    pub visits: u64,
    /// Seed.
    pub seed: u64,
}

/// A search on one block.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Reached {
    /// States that it expanded until it was within 1 % of the cheapest known one; `None` if it
    /// never was.
    pub expansions: Option<usize>,
    /// Seconds until then, or until it ended.
    pub seconds: f64,
    /// What its cheapest state costs, relative to that one.
    pub cost: f64,
    /// Milliseconds that a state took, all of it: finding and scoring its rewrites, and getting
    /// there.
    pub state_ms: f64,
}

/// An exact search on one block.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Visited {
    /// What it finds, relative to the cheapest known state: with all its budget, and with a tenth
    /// of it.
    pub costs: [f64; 2],
    /// States that it visited with all of it.
    pub visits: u64,
    /// Seconds that it took with all of it.
    pub seconds: f64,
}

/// What guided searches had found within a twentieth of the time of another, relative to what that
/// one found at last. All know which moves the block has as it is: to find them out takes any as
/// long.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Early {
    /// The policy.
    pub policy: f64,
    /// The order of prices alone.
    pub price: f64,
    /// Seconds that the other one took.
    pub seconds: f64,
}

/// One block.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The network that it is of.
    pub model: String,
    /// Its number.
    pub block: usize,
    /// Its nodes, and those of them that are computed in a run.
    pub nodes: [usize; 2],
    /// What it costs, relative to the cheapest known state.
    pub start: f64,
    /// The cheapest state first, by price.
    pub delta: Reached,
    /// The same, guided by the policy.
    pub prior: Reached,
    /// Each move decided by simulations that the policy guides.
    pub gumbel: Reached,
    /// Within a twentieth of the time of exact search.
    pub early: Early,
    /// Within a twentieth of the time of a [`thorough`] one.
    pub early_thorough: Early,
    /// What the thorough search found, relative to the cheapest known state.
    pub thorough: f64,
    /// Exact search, and exact search with advice from the policy; their states are not counted in
    /// the same way.
    pub exact: [Visited; 2],
    /// The fewest moves known to lead within 1 %: no search expands fewer states.
    pub fewest: usize,
}

/// How long it takes to encode a whole network, as a search does once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Encoding {
    /// Its nodes.
    pub nodes: usize,
    /// Milliseconds, the least of a few times.
    pub ms: f64,
}

impl Encoding {
    /// Of a network of the zoo.
    ///
    /// # Errors
    ///
    /// If there is no such network.
    pub fn of(model: &str, weights: &Weights) -> Result<Encoding> {
        let prices = Roofline::new(Bindings::new());
        let engine = Engine::new(network(model)?, &prices);
        let encode = |_| {
            let begun = Instant::now();
            std::hint::black_box(Embedding::new(weights, &engine));
            1e3 * begun.elapsed().as_secs_f64()
        };
        Ok(Encoding { nodes: engine.graph().len(), ms: (0..5).map(encode).fold(f64::INFINITY, f64::min) })
    }
}

/// Within so much of the cheapest known state is as good as there.
const CLOSE: f64 = 1.01;
/// The share of the time of another search that a policy gets to be compared with what that found.
const EARLY: f64 = 1.0 / 20.0;
/// Blocks with more nodes that are computed in a run are sampled by a thorough search.
const SOLVED: usize = 20;
/// Checks of the budget of a thorough search.
const THOROUGH: u64 = 50_000;
/// Blocks of this number on are for comparisons, and never for training.
const UNSEEN: usize = 1 << 32;

/// What is searched so that nothing better is to be expected: a small block exactly, a larger one
/// by the widest beam that was published for it (OCGGS, Algorithm 3, Q = 200, eta = 2).
fn thorough(computed: usize) -> Box<dyn Strategy> {
    if computed <= SOLVED { Box::new(Exact::default()) } else { Box::new(Sample { steps: None, beam: 200, raising: 2 }) }
}

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
        let mut search = |search: &Observed<'_>| {
            let mut engine = Engine::new(graph.clone(), prices);
            let mut matcher = begun(&mut engine, library);
            let mut curve = Vec::new();
            let begun = Instant::now();
            let found = search(&mut engine, &mut matcher, &mut |cost| curve.push((cost, begun.elapsed().as_secs_f64())));
            ways.extend(found.scripts.iter().map(|script| (script.moves.len(), script.cost)));
            curve
        };
        let (expansions, keep, policy) = (self.expansions, 16, Guide::Policy(weights));
        let [delta, prior] = [Guide::Delta, policy].map(|guide| {
            let prior = Prior { expansions, keep, ..Prior::new(guide) };
            search(&|engine, matcher, told| prior.observed(engine, matcher, &mut endless(), &mut |_, cost| told(cost)))
        });
        let gumbel = Gumbel { expansions, keep, ..Gumbel::new(policy) };
        let gumbel = search(&|engine, matcher, told| gumbel.observed(engine, matcher, &mut endless(), &mut |_, cost| told(cost)).outcome);
        let mut engine = Engine::new(graph.clone(), prices);
        let start = engine.cost();
        let exact = Exact::default();
        let exact: [&dyn Strategy; 2] = [&exact, &Guided { exact, advisor: weights }];
        let exact = exact.map(|exact| {
            let mut within = |visits| {
                let mut matcher = begun(&mut engine, library);
                let begun = Instant::now();
                (exact.search(&mut engine, &mut matcher, &mut Steps(visits)), begun.elapsed().as_secs_f64())
            };
            let (all, seconds) = within(self.visits);
            let (tenth, _) = within(self.visits / 10);
            // Prefixes of what exact search found are ways, too.
            for script in all.scripts.iter().chain(&tenth.scripts) {
                for (at, step) in script.moves.iter().enumerate() {
                    engine.apply(step);
                    ways.push((at + 1, engine.cost()));
                }
                engine.rewind(0);
            }
            ([all.scripts[0].cost, tenth.scripts[0].cost], all.visited, seconds)
        });
        let computed = graph.ids().filter(|id| is_priced(graph, *id)).count();
        let mut matcher = begun(&mut engine, library);
        let begun_at = Instant::now();
        let found = thorough(computed).search(&mut engine, &mut matcher, &mut Steps(THOROUGH));
        let (thorough, seconds) = (found.scripts[0].cost, begun_at.elapsed().as_secs_f64());
        ways.extend(found.scripts.iter().map(|script| (script.moves.len(), script.cost)));
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
        let early = |found: Ns, seconds: f64| {
            let within = |guide| {
                let prior = Prior { expansions: usize::MAX, keep: 1, ..Prior::new(guide) };
                let mut engine = Engine::new(graph.clone(), prices);
                let mut matcher = begun(&mut engine, library);
                let begun = Instant::now();
                let in_time = || begun.elapsed().as_secs_f64() <= seconds * EARLY;
                let mut cost = start;
                let mut observe = |_, least| cost = if in_time() { least } else { cost };
                prior.observed(&mut engine, &mut matcher, &mut || !in_time(), &mut observe);
                cost as f64 / found.max(1) as f64
            };
            Early { policy: within(policy), price: within(Guide::Delta), seconds }
        };
        let early_thorough = early(thorough, seconds);
        let ([found, _], _, seconds) = exact[0];
        let early = early(found, seconds);
        let [delta, prior, gumbel] = [&delta, &prior, &gumbel].map(|curve| reached(curve));
        // A state that was reached by so many expansions is as many moves away at most.
        let close = ways.iter().filter(|(_, cost)| *cost as f64 <= best * CLOSE).map(|(steps, _)| *steps);
        let fewest = close.chain([&delta, &prior, &gumbel].iter().filter_map(|one| one.expansions)).min();
        Row {
            model: model.into(),
            block,
            nodes: [graph.len(), computed],
            start: start as f64 / best,
            delta,
            prior,
            gumbel,
            early,
            early_thorough,
            thorough: thorough as f64 / best,
            exact: exact.map(|(costs, visits, seconds)| Visited { costs: costs.map(|cost| cost as f64 / best), visits, seconds }),
            fewest: fewest.unwrap_or(0),
        }
    }
}

/// A search that tells of each cheapest cost.
type Observed<'s> = dyn Fn(&mut Engine<'_>, &mut Matcher<'_>, &mut dyn FnMut(Ns)) -> Outcome + 's;

/// A matcher that knows which moves there are at first.
fn begun<'a>(engine: &mut Engine<'_>, library: &'a Library) -> Matcher<'a> {
    let mut matcher = Matcher::new(library, &Anything);
    all_moves(engine, &mut matcher);
    matcher
}

fn endless() -> Steps {
    Steps(u64::MAX)
}

/// Several blocks together, without those that are within 1 % as they are. Means are geometric.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Totals {
    /// Blocks.
    pub blocks: usize,
    /// Expansions by price over those by the policy, and over those of simulations; a search that
    /// never got there counts with all that it expanded.
    pub fewer: [f64; 2],
    /// The same over the fewest moves that are known: no policy can be better than that.
    pub bound: f64,
    /// Seconds by price over those by the policy, and over those of simulations.
    pub sooner: [f64; 2],
    /// Blocks where each of these got there: prices alone, the policy, simulations, exact search,
    /// the same with advice, and both with a tenth of the budget.
    pub reached: [usize; 7],
    /// What is found by each of these at last, relative to the best known.
    pub costs: [f64; 7],
    /// Milliseconds of a state, by price, by the policy, and in simulations.
    pub state_ms: [f64; 3],
    /// Within a twentieth of the time of exact search.
    pub early: Early,
    /// Within a twentieth of the time of a thorough search.
    pub early_thorough: Early,
    /// Seconds of exact search with advice over those without.
    pub advice: f64,
}

impl Totals {
    /// Of these rows, where searches expanded so many states at most.
    pub fn of(rows: &[Row], expansions: usize) -> Totals {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.start > CLOSE).collect();
        let mean = |of: &dyn Fn(&Row) -> f64| (rows.iter().map(|row| of(row).ln()).sum::<f64>() / rows.len().max(1) as f64).exp();
        let taken = |reached: &Reached| reached.expansions.unwrap_or(expansions).max(1) as f64;
        let seconds = |reached: &Reached| reached.seconds.max(1e-6);
        type Found = fn(&Row) -> f64;
        let found: [Found; 7] = [
            |row| row.delta.cost,
            |row| row.prior.cost,
            |row| row.gumbel.cost,
            |row| row.exact[0].costs[0],
            |row| row.exact[1].costs[0],
            |row| row.exact[0].costs[1],
            |row| row.exact[1].costs[1],
        ];
        let early = |of: fn(&Row) -> &Early| Early {
            policy: mean(&|row| of(row).policy),
            price: mean(&|row| of(row).price),
            seconds: rows.iter().map(|row| of(row).seconds).sum::<f64>() / rows.len().max(1) as f64,
        };
        type Of = fn(&Row) -> &Reached;
        let guided: [Of; 2] = [|row| &row.prior, |row| &row.gumbel];
        let each: [Of; 3] = [|row| &row.delta, |row| &row.prior, |row| &row.gumbel];
        Totals {
            blocks: rows.len(),
            fewer: guided.map(|of| mean(&|row| taken(&row.delta) / taken(of(row)))),
            bound: mean(&|row| taken(&row.delta) / row.fewest.max(1) as f64),
            sooner: guided.map(|of| mean(&|row| seconds(&row.delta) / seconds(of(row)))),
            reached: found.map(|of| rows.iter().filter(|row| of(row) <= CLOSE).count()),
            costs: found.map(|of| mean(&|row| of(row))),
            state_ms: each.map(|of| mean(&|row| of(row).state_ms.max(1e-6))),
            early: early(|row| &row.early),
            early_thorough: early(|row| &row.early_thorough),
            advice: mean(&|row| row.exact[1].seconds.max(1e-6) / row.exact[0].seconds.max(1e-6)),
        }
    }
}
