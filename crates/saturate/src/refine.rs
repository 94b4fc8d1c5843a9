//! Extraction under prices that depend on neighbours.

use regraft_cost::Ns;
use regraft_ir::{Budget, NodeId, ValueId};
use regraft_search::{Engine, Script};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::extract::{Alone, Method, Priced};
use crate::grow::Growth;
use crate::plan::Plan;

/// Extractions before it is given up that prices and extraction agree.
const ROUNDS: usize = 8;

/// The best extraction found, and how far prices of nodes alone are from those in context.
#[derive(Clone, Debug)]
pub struct Refined {
    /// How the engine's graph becomes it.
    pub script: Script,
    /// What the first extraction costs, each e-node priced alone, ns.
    pub alone: f64,
    /// What every extraction costs at least under those prices, ns; 0 if nothing was shown.
    pub bound: f64,
    /// What the first extraction costs in context, ns, overhead included.
    pub first: Ns,
    /// Extractions.
    pub rounds: usize,
}

/// Extracts, prices the result in context, and extracts again under those prices, until the choice
/// stays. The engine's graph is the one that the e-graph began with, and is left as it is.
///
/// Nothing that costs more than the engine's graph is returned: if there is nothing better, its own
/// empty script is.
pub fn refine(
    growth: &Growth<'_>,
    alone: &mut Alone<'_>,
    method: Method,
    engine: &mut Engine<'_>,
    prices: &dyn Fn(&Engine<'_>, NodeId) -> Ns,
    budget: &mut dyn Budget,
) -> Refined {
    let start = engine.depth();
    let mut best = Script::here(engine);
    let mut told = Refined { script: best.clone(), alone: 0.0, bound: 0.0, first: engine.cost(), rounds: 0 };
    let mut in_context: FxHashMap<NodeId, Ns> = FxHashMap::default();
    let mut seen: FxHashSet<Vec<ValueId>> = FxHashSet::default();
    while told.rounds < ROUNDS {
        let mut price = |space: &_, id: NodeId| in_context.get(&id).copied().unwrap_or_else(|| alone.price(space, id)) as f64;
        let Ok(priced) = Priced::of(growth, &mut price) else { break };
        let Ok((chosen, found)) = priced.cheapest(method, budget) else { break };
        if !seen.insert(chosen.clone()) {
            break;
        }
        let plan = Plan::follow(growth, &chosen, engine);
        let cost = engine.cost();
        if told.rounds == 0 {
            (told.alone, told.bound, told.first) = (found.cost, found.bound.unwrap_or(0.0), cost);
        }
        told.rounds += 1;
        if cost < best.cost {
            best = Script { moves: plan.moves, cost, key: engine.key() };
        }
        in_context.extend(plan.nodes.iter().map(|(e_node, id)| (*e_node, prices(engine, *id))));
        engine.rewind(start);
        if budget.exhausted() {
            break;
        }
    }
    Refined { script: best, ..told }
}
