//! Near misses: graphs on which one guard alone keeps a rule from firing.

use std::collections::HashMap;

use regraft_ir::{Bindings, Graph, eval};

use super::guard::{Guard, guards};
use super::nearby::{axes, joined, larger, nearby};
use super::outcome::{Outcome, outcome};
use super::search::Search;
use crate::draft::Draft;
use crate::matcher::Found;
use crate::rule::Rule;
use crate::sample::{self, Instance};
use crate::spelling::Spelling;
use crate::variants::finite_difference;
use crate::vary::difference_beyond;

/// Number of random sources to examine.
const DRAWS: u64 = 400;
/// Number of sources to change twice.
const CHANGED: usize = 60;
/// Number of random sources to change once.
const DRAWN: usize = 30;
/// Rounds of changing sources on which a guard without a near miss fails among few.
const ROUNDS_OF_LEADS: usize = 3;
/// One in this many is for guards with a near miss, in case the rule is false on another.
const IMPROVED: usize = 5;
/// Number of inputs on which both sides are computed.
const ROUNDS: u64 = 4;
/// Relative difference above which the sides disagree: attributes are in single precision.
const TOLERANCE: f64 = 1e-5;
/// Maximum number of operations of a graph to compute.
const COMPUTED: f64 = 1e6;

/// What a rule would do where one of its guards refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It would be false.
    False,
    /// It may be true: a few inputs show no difference, or the graph cannot be computed.
    Open,
    /// Its target could not be built.
    Unbuildable,
}

/// What would happen on this graph without this guard; `None` if it is not a near miss.
pub fn verdict(graph: &Graph, rule: &Rule, guard: &Guard) -> Option<Verdict> {
    judged(graph, rule, &guard.lifted(rule)).map(|(verdict, _)| verdict)
}

/// What the search for a guard's near miss found.
#[derive(Clone, Debug)]
pub enum NearMiss {
    /// A graph that the guard alone refuses.
    Found(Graph),
    /// Nothing: the guard held on all sources tried.
    Held,
    /// Nothing: wherever the guard failed, these failed too.
    With(Vec<Guard>),
    /// Nothing: where the guard failed, the `where` names had no values.
    Undefined,
    /// Nothing: where the guard failed, some other guard always failed too.
    Crowded,
    /// Nothing: where only the guard failed, the source also matched in another way.
    Symmetric,
}

/// For each wanted guard, the graph closest to the examples on which it alone refuses the rule.
/// Graphs on which the rule would be false come first. Deterministic.
pub fn near_misses(rule: &Rule, wanted: &[Guard], examples: &[Graph]) -> Vec<NearMiss> {
    let mut search = Search::new(rule, wanted);
    let mut drafts: Vec<Draft> = examples.iter().filter_map(Draft::of).collect();
    let larger: Vec<Draft> = drafts.iter().filter_map(larger).collect();
    drafts.extend(larger);
    let mut changed: Vec<Draft> = Vec::new();
    let numbers = numbers(rule);
    for draft in drafts.iter().flat_map(|draft| nearby(draft, &numbers)) {
        if search.visit_draft(&draft, 1) {
            changed.push(draft);
        }
    }
    drafts.iter().flat_map(joined).for_each(|draft| {
        search.visit_draft(&draft, 2);
    });
    let mut drawn: Vec<Draft> = Vec::new();
    for graph in (0..DRAWS).filter_map(|seed| sample::graph(rule, seed).ok()).map(|(graph, _)| graph) {
        if search.is_open() && search.visit(&graph, 3) && drawn.len() < DRAWN {
            drawn.extend(Draft::of(&graph));
        }
    }
    // Include all kinds of changes in the few that are changed again.
    drawn.retain(|draft| !draft.is_large());
    changed.retain(|draft| !draft.is_large());
    let step = changed.len().div_ceil(CHANGED).max(1);
    for (at, draft) in drawn.iter().chain(changed.iter().step_by(step)).enumerate() {
        if search.is_incomplete() || (search.is_open() && at % IMPROVED == 0) {
            for draft in nearby(draft, &numbers) {
                search.visit_draft(&draft, 4);
            }
        }
    }
    for round in 0..ROUNDS_OF_LEADS {
        for draft in search.leads().into_iter().filter(|draft| round == 0 || !draft.is_large()) {
            for draft in nearby(&draft, &numbers) {
                search.visit_draft(&draft, 5);
            }
        }
    }
    // A source that is not well typed may become so by another change.
    for draft in drafts.iter().filter(|draft| !draft.is_large()).flat_map(|draft| nearby(draft, &numbers)) {
        if search.is_incomplete() && draft.graph().is_none() {
            let mut repaired = Vec::new();
            axes(&draft, &mut repaired);
            repaired.iter().for_each(|draft| {
                search.visit_draft(draft, 6);
            });
        }
    }
    for graph in drafts.iter().flat_map(spelled).filter(|_| search.is_incomplete()).collect::<Vec<_>>() {
        search.visit(&graph, 7);
    }
    search.closest(examples)
}

/// Numbers in the conditions of a rule, and their neighbours.
fn numbers(rule: &Rule) -> Vec<f64> {
    let texts: Vec<String> = guards(rule).iter().map(Guard::to_string).collect();
    let words = texts.iter().flat_map(|text| text.split(|c: char| c.is_whitespace() || c == '(' || c == ')'));
    let mut all: Vec<f64> = words.filter_map(|word| word.parse().ok()).flat_map(|n: f64| [n, n + 1.0]).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The source with symbolic sizes: all of them, and each.
fn spelled(draft: &Draft) -> Vec<Graph> {
    let each = (0..16).map(|bit| Spelling::Symbols(Some(1 << bit)));
    let all = draft.opened().into_iter().chain(each.filter_map(|spelling| draft.spelled(spelling)));
    all.map(|(graph, _)| graph).collect()
}

/// The rule without the guard on a graph that the guard refuses.
pub(super) fn judged(graph: &Graph, rule: &Rule, lifted: &Rule) -> Option<(Verdict, Found)> {
    let without = outcome(graph, lifted);
    let found = without.found()?.clone();
    if !matches!(outcome(graph, rule), Outcome::Refused) {
        return None;
    }
    let Outcome::Fires(_, patch) = without else { return Some((Verdict::Unbuildable, found)) };
    let mut after = graph.clone();
    after.apply(&patch);
    if eval::effort(graph, &Bindings::default()).is_none_or(|effort| effort > COMPUTED) {
        return Some((Verdict::Open, found));
    }
    let instance = Instance { before: graph.clone(), after, feeds: HashMap::new() };
    let verdict = if difference_beyond(TOLERANCE, finite_difference, &instance, ROUNDS).is_some() { Verdict::False } else { Verdict::Open };
    Some((verdict, found))
}
