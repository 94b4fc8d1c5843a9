//! `engine`: random rewrites of every network of the zoo, applied and undone. After each, the cost
//! that the engine keeps by deltas is that of the graph; after undoing it, key and cost are what
//! they were, bit for bit; and at the end of every walk the graph is, too.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use regraft::optimize::clean;
use regraft_cost::{CostModel, Roofline};
use regraft_ir::text::inventory;
use regraft_ir::{Bindings, Graph, SplitMix64, canonical_key};
use regraft_onnx::Model;
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Move, all_moves, next_moves};
use regraft_zoo::{Options, Weights};

use crate::summary::Summary;

/// Rewrites of a walk, before all of them are undone.
const WALK: usize = 40;
/// Networks and rewrites of the short mode.
const SHORT: [&str; 3] = ["paper-inception-e-n1", "paper-sru", "mobilenet-v2"];
const SHORT_STEPS: usize = 600;

/// Random rewrites of every network: sums of deltas, and undoing
#[derive(ClapArgs)]
pub struct Args {
    /// Rewrites in all
    #[arg(long, default_value_t = 100_000)]
    steps: usize,
    /// Seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Networks whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// A few networks and rewrites
    #[arg(long)]
    short: bool,
}

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    Ok(campaign(args)?.conclude("engine", args.seed))
}

/// All networks; a rewrite that holds counts.
fn campaign(args: &Args) -> Result<Summary> {
    let library = Library::shipped()?;
    let wanted = |name: &&str| args.only.as_ref().is_none_or(|part| name.contains(part.as_str())) && (!args.short || SHORT.contains(name));
    let networks: Vec<&str> = regraft_zoo::list().iter().map(|entry| entry.name).filter(wanted).collect();
    ensure!(!networks.is_empty(), "no network is called like that");
    let steps = if args.short { SHORT_STEPS.min(args.steps) } else { args.steps };
    let mut summary = Summary::default();
    for (at, name) in networks.iter().enumerate() {
        let share = steps * (at + 1) / networks.len() - steps * at / networks.len();
        let options = Options { weights: Weights::Outlines, ..Options::default() };
        let model = Model::from_proto(regraft_zoo::build(name, &options)?)?;
        let part = walks(&clean(model.graph()).0, &library, args.seed.wrapping_add(at as u64), share);
        println!("{name}: {} rewrites held, {} did not", part.held, part.broken.len());
        summary.join(Summary { broken: part.broken.iter().map(|why| format!("{name}: {why}")).collect(), ..part });
    }
    Ok(summary)
}

/// So many rewrites of a graph, in walks.
fn walks(graph: &Graph, library: &Library, seed: u64, steps: usize) -> Summary {
    let (mut random, mut summary, prices) = (SplitMix64(seed), Summary::default(), Roofline::new(Bindings::new()));
    let mut engine = Engine::new(graph.clone(), &prices);
    let mut matcher = Matcher::new(library, &Anything);
    let first = all_moves(&mut engine, &mut matcher);
    let start = inventory(engine.graph());
    let mut keys: HashMap<u128, u128> = HashMap::new();
    let mut taken = 0;
    while taken < steps {
        let (mut moves, mut trail) = (first.clone(), Vec::new());
        while taken < steps && trail.len() < WALK {
            let Some(step) = pick(moves.iter(), &mut random) else { break };
            let title = library.rules()[step.rule].name.to_string();
            trail.push((engine.key(), engine.cost(), title));
            engine.apply(&step);
            moves = next_moves(&mut engine, &mut matcher, &moves);
            taken += 1;
            match stands(&engine, &prices, &mut keys) {
                Ok(()) => summary.held += 1,
                Err(why) => {
                    let rules: Vec<&str> = trail.iter().map(|(.., rule)| rule.as_str()).collect();
                    summary.broken.push(format!("{why:#} after {}", rules.join(", ")));
                    break;
                }
            }
        }
        if trail.is_empty() {
            break;
        }
        for (key, cost, rule) in trail.into_iter().rev() {
            engine.undo();
            if (engine.key(), engine.cost()) != (key, cost) {
                summary.broken.push(format!(
                    "{rule} is not undone: key {:x} and cost {} instead of {key:x} and {cost}",
                    engine.key(),
                    engine.cost()
                ));
            }
        }
        if inventory(engine.graph()) != start {
            summary.broken.push("the graph is not what it was".into());
        }
    }
    summary
}

/// Whether cost and key fit the graph.
fn stands(engine: &Engine<'_>, prices: &Roofline, keys: &mut HashMap<u128, u128>) -> Result<()> {
    let (cost, total) = (engine.cost(), prices.total(engine.graph()));
    ensure!(cost == total, "the cost is {cost}, and that of the graph {total}");
    let canonical = canonical_key(engine.graph());
    let known = *keys.entry(engine.key()).or_insert(canonical);
    ensure!(known == canonical, "two graphs have the key {:x}", engine.key());
    Ok(())
}

/// A move; a rule is drawn first, so that those with many places do not crowd out the others.
fn pick<'m>(moves: impl Iterator<Item = &'m Arc<Move>> + Clone, random: &mut SplitMix64) -> Option<Arc<Move>> {
    let mut rules: Vec<usize> = moves.clone().map(|step| step.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rule = *rules.get(random.below(rules.len()))?;
    let places: Vec<&Arc<Move>> = moves.filter(|step| step.rule == rule).collect();
    places.get(random.below(places.len())).map(|step| (*step).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_add_up_and_rewrites_are_undone() {
        let summary = campaign(&Args { steps: SHORT_STEPS, seed: 1, only: None, short: true }).expect("networks of the zoo");
        assert!(summary.broken.is_empty(), "{}", summary.broken.join("\n"));
        assert_eq!(summary.held, SHORT_STEPS);
    }

    #[test]
    fn a_wrong_cost_is_found_out() {
        /// Prices that the engine does not ask for again when they change.
        struct Fickle;
        impl CostModel for Fickle {
            fn price(&self, graph: &Graph, _: regraft_ir::NodeId) -> u64 {
                graph.len() as u64
            }
        }
        let graph = regraft_ir::text::parse("graph (x: f32[4]) { a = Neg(x) b = Relu(a) c = Relu(b) output c }").expect("a graph");
        let mut engine = Engine::new(graph, &Fickle);
        let library = Library::new(regraft_rules::parse("t", "(rule r (relu (relu ?x)) => (relu ?x) (numeric exact))").expect("a rule"))
            .expect("one");
        let moves = all_moves(&mut engine, &mut Matcher::new(&library, &Anything));
        engine.apply(moves.iter().next().expect("it fits"));
        assert!(stands(&engine, &Roofline::new(Bindings::new()), &mut HashMap::new()).is_err());
    }
}
