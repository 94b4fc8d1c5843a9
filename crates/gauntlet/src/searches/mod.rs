//! `searches`: random graphs and families of rules, on which the exhaustive searches must visit the
//! same states.
//!
//! Sleep sets and the table leave out only what is reached otherwise, whatever the rules, so they
//! visit the graphs that `enumerate` visits, each after as few steps. `prune` and `dpp` do where
//! all rules are monotone (`regraft_rules::reaches`).

mod draft;
mod families;

use std::collections::HashMap;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, SplitMix64, canonical_key, normal};
use regraft_rules::{Anything, Library};
use regraft_search::{Dpp, Engine, Enumerate, Exhaustive, Matcher, Order, Prune, SleepSets, Table, all_moves};

use self::draft::Draft;
use self::families::Family;
use crate::summary::Summary;

/// Operators of a graph, at most.
const OPERATORS: usize = 7;
/// Rewrites in a sequence, at most.
const STEPS: usize = 4;
/// Rewrites that should be possible at first, and how often a graph is drawn again where fewer are.
const CHOICES: usize = 3;
const DRAWS: usize = 20;
/// Where `enumerate` visits more states, sequences are made shorter: the same graph in fewer steps.
const STATES: u64 = 4000;
/// Cases of the short mode.
const SHORT: u64 = 400;
/// Failures that are made smaller.
const SHRUNK: usize = 3;

/// Random graphs and rules: the exhaustive searches visit the same states
#[derive(ClapArgs)]
pub struct Args {
    /// Graphs
    #[arg(long, default_value_t = 100_000)]
    cases: u64,
    /// Seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first case
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only the family of rules with this name
    #[arg(long)]
    family: Option<String>,
    /// A few hundred cases
    #[arg(long)]
    short: bool,
}

/// What a campaign has gone through.
#[derive(Default)]
struct Tally {
    summary: Summary,
    /// Cases by their longest sequence.
    by_steps: [u64; STEPS + 1],
    /// States that `enumerate`, sleep sets, the table, `prune` and `dpp` visit.
    visited: [u64; SEARCHES.len()],
    /// Graphs reached, by family.
    reached: [u64; families::ALL.len()],
}

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let cases = if args.short { SHORT.min(args.cases) } else { args.cases };
    let known = |name: &String| families::ALL.iter().any(|family| family.name == name);
    ensure!(args.family.as_ref().is_none_or(known), "families are {}", families::ALL.map(|family| family.name).join(", "));
    let tally = campaign(args.seed, args.from..args.from + cases, args.family.as_deref());
    let by_steps: Vec<String> = (1..=STEPS).map(|steps| format!("{} of {steps}", tally.by_steps[steps])).collect();
    let reached: Vec<String> = families::ALL.iter().zip(tally.reached).map(|(family, n)| format!("{} {n}", family.name)).collect();
    println!("cases by steps: {}", by_steps.join(", "));
    println!("graphs reached: {}", reached.join(", "));
    let visited: Vec<String> = SEARCHES.iter().zip(tally.visited).map(|(search, n)| format!("{} {n}", search.name())).collect();
    println!("states visited: {}", visited.join(", "));
    Ok(tally.summary.conclude("searches", args.seed))
}

fn campaign(seed: u64, numbers: std::ops::Range<u64>, only: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let libraries: Vec<(Library, Library)> = families::ALL.iter().map(|family| (family.library(), family.monotone())).collect();
    for number in numbers {
        let at = (number % families::ALL.len() as u64) as usize;
        let (family, (all, monotone)) = (&families::ALL[at], &libraries[at]);
        if only.is_some_and(|only| only != family.name) {
            continue;
        }
        let (draft, steps) = drawn(family, all, seed, number);
        match try_out(&draft, steps, (all, monotone), &mut tally) {
            Ok(reached) => {
                tally.reached[at] += reached;
                tally.summary.held += 1;
            }
            Err(why) => {
                let told = if tally.summary.broken.len() < SHRUNK {
                    shrunk(draft, steps, all, monotone)
                } else {
                    format!("{why}: {}", draft.text())
                };
                tally.summary.broken.push(format!("{}, case {number}: {told}", family.name));
            }
        }
    }
    tally
}

/// The graph of a case, and the most rewrites of a sequence.
fn drawn(family: &Family, library: &Library, seed: u64, number: u64) -> (Draft, usize) {
    let mut random = SplitMix64(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
    let steps = STEPS - random.below(2) * random.below(STEPS);
    let mut draft = family.draw(&mut random, OPERATORS);
    // Where little can be rewritten, there is little to lose.
    for _ in 0..DRAWS {
        if moves(&draft, library) >= CHOICES {
            break;
        }
        draft = family.draw(&mut random, OPERATORS);
    }
    (draft, steps)
}

/// How many rewrites are possible at first.
fn moves(draft: &Draft, library: &Library) -> usize {
    let prices = Roofline::new(Bindings::new());
    all_moves(&mut Engine::new(draft.graph(), &prices), &mut Matcher::new(library, &Anything)).len()
}

/// A search to compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    Enumerate,
    SleepSets,
    Table,
    Prune,
    Dpp,
}

const SEARCHES: [Search; 5] = [Search::Enumerate, Search::SleepSets, Search::Table, Search::Prune, Search::Dpp];

impl Search {
    fn name(self) -> &'static str {
        match self {
            Search::Enumerate => Enumerate::NAME,
            Search::SleepSets => SleepSets::NAME,
            Search::Table => Table::NAME,
            Search::Prune => Prune::NAME,
            Search::Dpp => Dpp::NAME,
        }
    }
}

/// The graphs that a search reaches, by their keys, with the fewest steps to each.
///
/// That a graph computes something twice does not count: a target reuses what is there already, so
/// whether there are two depends on the order.
type Reached = HashMap<u128, usize>;

/// What a search reaches, and how many states it visits; `None` if more than `most`.
fn reached(graph: &Graph, library: &Library, search: Search, steps: usize, most: u64) -> Result<Option<(Reached, u64)>> {
    let prices = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph.clone(), &prices);
    let (key, cost) = (engine.key(), engine.cost());
    let mut found = Reached::new();
    let mut visit = |engine: &Engine<'_>| {
        let mut graph = engine.graph().clone();
        normal::dce(&mut graph);
        normal::cse(&mut graph);
        let fewest = found.entry(canonical_key(&graph)).or_insert(engine.depth());
        *fewest = engine.depth().min(*fewest);
    };
    let mut checks = 0;
    let mut budget = || {
        checks += 1;
        checks > most
    };
    let (e, m, b, order) = (&mut engine, &mut Matcher::new(library, &Anything), &mut budget, Order::Monotone);
    let outcome = match search {
        Search::Enumerate => Enumerate { steps }.visiting(e, m, b, &mut visit),
        Search::SleepSets => SleepSets { steps }.visiting(e, m, b, &mut visit),
        Search::Table => Table { steps }.visiting(e, m, b, &mut visit),
        Search::Prune => Prune { steps, order }.visiting(e, m, b, &mut visit),
        Search::Dpp => Dpp { steps, order }.visiting(e, m, b, &mut visit),
    };
    ensure!((engine.key(), engine.cost(), engine.depth()) == (key, cost, 0), "{} leaves another state behind", search.name());
    Ok(outcome.complete.then_some((found, outcome.visited)))
}

/// Compares all searches on a graph: those that are right whatever the rules with all of them, the
/// others with those that are monotone. Returns how many graphs are reached.
fn try_out(draft: &Draft, mut steps: usize, (all, monotone): (&Library, &Library), tally: &mut Tally) -> Result<u64> {
    let graph = draft.graph();
    let whole = loop {
        match reached(&graph, all, Search::Enumerate, steps, STATES)? {
            Some(whole) => break whole,
            None => steps -= 1,
        }
    };
    tally.by_steps[steps] += 1;
    let graphs = whole.0.len() as u64;
    tally.visited[0] += whole.1;
    let mut compare = |search: Search, library: &Library, whole: &Reached| {
        // None of them visits a state more often than `enumerate` does.
        let Some((found, visited)) = reached(&graph, library, search, steps, STATES)? else {
            anyhow::bail!("{} visits more states than enumerate", search.name());
        };
        tally.visited[SEARCHES.iter().position(|one| *one == search).unwrap_or(0)] += visited;
        same(whole, &found).map_err(|why| anyhow::anyhow!("{} with at most {steps} rewrites: {why}", search.name()))
    };
    compare(Search::SleepSets, all, &whole.0)?;
    compare(Search::Table, all, &whole.0)?;
    if !monotone.rules().is_empty() {
        let Some((whole, _)) = reached(&graph, monotone, Search::Enumerate, steps, STATES)? else {
            anyhow::bail!("fewer rules lead to more states");
        };
        compare(Search::Prune, monotone, &whole)?;
        compare(Search::Dpp, monotone, &whole)?;
    }
    Ok(graphs)
}

/// Whether two searches reach the same graphs in as few steps.
fn same(whole: &Reached, found: &Reached) -> Result<()> {
    let lost = whole.keys().filter(|key| !found.contains_key(key)).count();
    let strange = found.keys().filter(|key| !whole.contains_key(key)).count();
    let late = whole.iter().filter(|(key, steps)| found.get(key).is_some_and(|other| other != *steps)).count();
    ensure!(
        lost + strange + late == 0,
        "of {} graphs, {lost} are lost, {late} take another number of steps; {strange} are strange",
        whole.len()
    );
    Ok(())
}

/// The smallest case like this one that fails, as text: fewer rewrites, rules, operators and
/// outputs.
fn shrunk(mut draft: Draft, mut steps: usize, all: &Library, monotone: &Library) -> String {
    let (mut all, mut monotone) = (all.clone(), monotone.clone());
    let failure =
        |draft: &Draft, steps, all: &Library, monotone: &Library| try_out(draft, steps, (all, monotone), &mut Tally::default()).err();
    while steps > 1 && failure(&draft, steps - 1, &all, &monotone).is_some() {
        steps -= 1;
    }
    let names: Vec<String> = all.rules().iter().map(|rule| rule.name.to_string()).collect();
    for name in names {
        let [fewer, fewer_monotone] = [&all, &monotone].map(|library| library.clone().filter(|rule| *rule.name != *name));
        if failure(&draft, steps, &fewer, &fewer_monotone).is_some() {
            (all, monotone) = (fewer, fewer_monotone);
        }
    }
    while let Some(smaller) = draft.smaller().into_iter().find(|one| failure(one, steps, &all, &monotone).is_some()) {
        draft = smaller;
    }
    let rules: Vec<&str> = all.rules().iter().map(|rule| &*rule.name).collect();
    let why = failure(&draft, steps, &all, &monotone).map_or_else(String::new, |why| why.to_string());
    format!("{why}; {}; rules {}", draft.text(), rules.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_search::next_moves;

    #[test]
    fn searches_visit_the_same_states() {
        let tally = campaign(1, 0..SHORT, None);
        assert!(tally.summary.broken.is_empty(), "{}", tally.summary.broken.join("\n"));
        let [enumerate, rest @ ..] = tally.visited;
        assert!(rest.iter().all(|visited| *visited > 0 && *visited < enumerate), "{:?}", tally.visited);
        assert!(tally.by_steps[STEPS] * 4 > SHORT, "{:?}", tally.by_steps);
    }

    #[test]
    fn every_rule_fires() {
        for (at, family) in families::ALL.iter().enumerate() {
            let library = family.library();
            let mut fired = vec![false; library.rules().len()];
            for number in 0..1000 {
                let (draft, _) = drawn(family, &library, 1, number * families::ALL.len() as u64 + at as u64);
                let prices = Roofline::new(Bindings::new());
                let mut engine = Engine::new(draft.graph(), &prices);
                let mut matcher = Matcher::new(&library, &Anything);
                let moves = all_moves(&mut engine, &mut matcher);
                // Some rules need what another one leaves.
                for step in &moves {
                    fired[step.rule] = true;
                    engine.apply(step);
                    next_moves(&mut engine, &mut matcher, &moves).iter().for_each(|next| fired[next.rule] = true);
                    engine.undo();
                }
            }
            let silent: Vec<_> = library.rules().iter().zip(fired).filter(|(_, fired)| !fired).map(|(rule, _)| &rule.name).collect();
            assert!(silent.is_empty(), "{}: {silent:?}", family.name);
            assert!(!family.monotone().rules().is_empty(), "{}", family.name);
        }
    }

    #[test]
    fn a_search_that_loses_a_graph_is_found_out() {
        // One rewrite less reaches fewer graphs, and later.
        let family = &families::ALL[0];
        let library = family.library();
        let (draft, _) = drawn(family, &library, 1, 5);
        let sets =
            [1, 2].map(|steps| reached(&draft.graph(), &library, Search::Enumerate, steps, STATES).expect("undone").expect("small").0);
        assert!(same(&sets[1], &sets[1]).is_ok() && (sets[0].len() == sets[1].len() || same(&sets[1], &sets[0]).is_err()));
    }
}
