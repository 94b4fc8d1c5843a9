//! Near misses: graphs on which one guard alone keeps a rule from firing.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use regraft_ir::{Bindings, Graph, eval, text};

use super::guard::{Guard, bare, guards};
use super::nearby::{joined, larger, nearby};
use super::outcome::{Outcome, outcome};
use super::tidy::tidied;
use crate::draft::Draft;
use crate::matcher::{Found, accept, sources_at};
use crate::rule::Rule;
use crate::sample::{self, Instance};
use crate::spelling::Spelling;
use crate::vary::difference_within;

/// Random sources that are looked at.
const DRAWS: u64 = 400;
/// Sources that are changed twice.
const CHANGED: usize = 60;
/// Those of the random sources that are changed once.
const DRAWN: usize = 30;
/// One of so many of them is for guards that have a near miss, in case the rule is false on another.
const IMPROVED: usize = 5;
/// Graphs of one guard and one verdict that are compared with the examples.
const COMPARED: usize = 10;
/// Inputs on which both sides are computed.
const ROUNDS: u64 = 4;
/// Relative difference above which both sides disagree: attributes are in single precision.
const TOLERANCE: f64 = 1e-5;
/// Operations of a graph that is computed, at most.
const COMPUTED: f64 = 1e6;

/// What a rule would do where one of its guards refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It would be false.
    False,
    /// It may be true: a few inputs show no difference, or nobody can compute it.
    Open,
    /// Its target could not be built.
    Unbuildable,
}

/// What would happen on this graph without this guard; `None` if it is no near miss.
pub fn verdict(graph: &Graph, rule: &Rule, guard: &Guard) -> Option<Verdict> {
    judged(graph, rule, &guard.lifted(rule)).map(|(verdict, _)| verdict)
}

/// What the search for a guard's near miss found.
#[derive(Clone, Debug)]
pub enum NearMiss {
    /// A graph that the guard alone refuses.
    Found(Graph),
    /// Nothing: the guard held on all sources that were tried.
    Held,
    /// Nothing: wherever the guard failed, these failed too.
    With(Vec<Guard>),
    /// Nothing: where the guard failed, the names of `where` had no values.
    Undefined,
    /// Nothing: where the guard failed, one or another failed too.
    Crowded,
    /// Nothing: where the guard alone failed, the source was found in another way too.
    Symmetric,
}

/// For each of the wanted guards, the graph closest to the examples on which it alone refuses the
/// rule. Where the rule would be false comes first. Deterministic.
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
    // All kinds of changes among the few that are changed again.
    drawn.retain(|draft| !draft.is_large());
    changed.retain(|draft| !draft.is_large());
    let step = changed.len().div_ceil(CHANGED).max(1);
    for (at, draft) in drawn.iter().chain(changed.iter().step_by(step)).enumerate() {
        if search.is_empty() || (search.is_open() && at % IMPROVED == 0) {
            for draft in nearby(draft, &numbers) {
                search.visit_draft(&draft, 4);
            }
        }
    }
    for graph in drafts.iter().flat_map(spelled).filter(|_| search.is_empty()).collect::<Vec<_>>() {
        search.visit(&graph, 5);
    }
    search.closest(examples)
}

/// Numbers that the conditions of a rule name, and those next to them.
fn numbers(rule: &Rule) -> Vec<f64> {
    let texts: Vec<String> = guards(rule).iter().map(Guard::to_string).collect();
    let words = texts.iter().flat_map(|text| text.split(|c: char| c.is_whitespace() || c == '(' || c == ')'));
    let mut all: Vec<f64> = words.filter_map(|word| word.parse().ok()).flat_map(|n: f64| [n, n + 1.0]).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The source with symbols for its sizes: for all, and for each.
fn spelled(draft: &Draft) -> Vec<Graph> {
    let each = (0..16).map(|bit| Spelling::Symbols(Some(1 << bit)));
    let all = draft.opened().into_iter().chain(each.filter_map(|spelling| draft.spelled(spelling)));
    all.map(|(graph, _)| graph).collect()
}

/// The rule without the guard on a graph that the guard refuses.
fn judged(graph: &Graph, rule: &Rule, lifted: &Rule) -> Option<(Verdict, Found)> {
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
    let verdict = if difference_within(&instance, ROUNDS, TOLERANCE).is_some() { Verdict::False } else { Verdict::Open };
    Some((verdict, found))
}

/// A graph that one guard refuses.
struct Miss {
    verdict: Verdict,
    /// Stage of the search at which it was found.
    stage: usize,
    graph: Graph,
}

/// What is known of a guard.
#[derive(Default)]
struct State {
    misses: Vec<Miss>,
    /// The guards that failed wherever it did, by their places; `None` if it never failed.
    with: Option<BTreeSet<usize>>,
    /// It failed alone where the source was found in another way as well.
    symmetric: bool,
    /// It failed where the names of `where` had no values.
    undefined: bool,
}

struct Search<'r> {
    rule: &'r Rule,
    guards: Vec<Guard>,
    /// Places of the guards whose near misses are wanted.
    wanted: Vec<usize>,
    bare: Rule,
    /// The rule with each guard alone, and without it.
    alone: Vec<Rule>,
    lifted: Vec<Rule>,
    states: Vec<State>,
    /// Hashes of the drafts that were visited.
    seen: HashSet<u64>,
}

impl Search<'_> {
    fn new<'r>(rule: &'r Rule, wanted: &[Guard]) -> Search<'r> {
        let guards = guards(rule);
        Search {
            rule,
            wanted: wanted.iter().filter_map(|guard| guards.iter().position(|known| known == guard)).collect(),
            bare: bare(rule),
            alone: guards.iter().map(|guard| guard.alone(rule)).collect(),
            lifted: guards.iter().map(|guard| guard.lifted(rule)).collect(),
            states: guards.iter().map(|_| State::default()).collect(),
            guards,
            seen: HashSet::new(),
        }
    }

    /// Whether a guard has no near miss.
    fn is_empty(&self) -> bool {
        self.wanted.iter().any(|at| self.states[*at].misses.is_empty())
    }

    /// Whether a guard has no near miss on which the rule is false without it, and could have one.
    fn is_open(&self) -> bool {
        let is_false = |miss: &Miss| miss.verdict == Verdict::False;
        self.wanted.iter().any(|at| {
            let misses = &self.states[*at].misses;
            misses.is_empty() || !(self.guards[*at].is_of_structure() || misses.iter().any(is_false))
        })
    }

    /// True if the draft is a source of the rule.
    fn visit_draft(&mut self, draft: &Draft, stage: usize) -> bool {
        let mut hasher = rustc_hash::FxHasher::default();
        draft.hash(&mut hasher);
        self.seen.insert(hasher.finish()) && draft.graph().is_some_and(|(graph, _)| self.visit(&graph, stage))
    }

    /// True if the graph has a source of the rule.
    fn visit(&mut self, graph: &Graph, stage: usize) -> bool {
        let sources: Vec<Found> = graph.ids().flat_map(|id| sources_at(graph, &self.bare, 0, id)).collect();
        let mut single: BTreeSet<usize> = BTreeSet::new();
        for found in &sources {
            let fails = |at: &usize| !self.guards[*at].holds(graph, &self.alone[*at], found);
            let failed: BTreeSet<usize> = (0..self.guards.len()).filter(fails).collect();
            if !accept(graph, &self.bare, &mut found.clone()) {
                failed.iter().for_each(|guard| self.states[*guard].undefined = true);
                continue;
            }
            for guard in &failed {
                let others: BTreeSet<usize> = failed.iter().copied().filter(|other| other != guard).collect();
                let with = self.states[*guard].with.get_or_insert_with(|| others.clone());
                with.retain(|other| others.contains(other));
            }
            single.extend(failed.first().filter(|_| failed.len() == 1));
        }
        for at in single {
            let misses = &self.states[at].misses;
            if !self.wanted.contains(&at) || misses.iter().any(|miss| miss.verdict == Verdict::False && miss.stage < stage) {
                continue;
            }
            let judged = judged(graph, self.rule, &self.lifted[at]);
            self.states[at].symmetric |= judged.is_none();
            let misses = &self.states[at].misses;
            if let Some((verdict, _)) = judged
                && misses.iter().filter(|miss| miss.verdict == verdict).count() < COMPARED
            {
                self.states[at].misses.push(Miss { verdict, stage, graph: graph.clone() });
            }
        }
        !sources.is_empty()
    }

    /// The closest graph of each guard, made readable.
    fn closest(mut self, examples: &[Graph]) -> Vec<NearMiss> {
        let examples: Vec<String> = examples.iter().map(text::print).collect();
        let mut states = std::mem::take(&mut self.states);
        self.wanted.iter().map(|at| self.found(std::mem::take(&mut states[*at]), &self.lifted[*at], &examples)).collect()
    }

    fn found(&self, mut state: State, lifted: &Rule, examples: &[String]) -> NearMiss {
        state.misses.sort_by_key(|miss| (miss.verdict, miss.stage, miss.graph.len()));
        let best = state.misses.first().map(|miss| (miss.verdict, miss.stage));
        let readable = state.misses.iter().filter(|miss| Some((miss.verdict, miss.stage)) == best).filter_map(|miss| {
            let judged = |graph: &Graph| judged(graph, self.rule, lifted);
            tidied(self.rule, &miss.graph, &|graph| judged(graph).filter(|(verdict, _)| *verdict == miss.verdict).map(|(_, found)| found))
        });
        match (readable.min_by_key(|graph| difference(&text::print(graph), examples)), state.with) {
            (Some(graph), _) => NearMiss::Found(graph),
            (None, None) if state.undefined => NearMiss::Undefined,
            (None, None) => NearMiss::Held,
            (None, _) if state.symmetric => NearMiss::Symmetric,
            (None, Some(with)) if with.is_empty() => NearMiss::Crowded,
            (None, Some(with)) => NearMiss::With(with.into_iter().map(|at| self.guards[at].clone()).collect()),
        }
    }
}

/// Lines that differ from the example that is most alike, and the length of the text.
fn difference(text: &str, examples: &[String]) -> (usize, usize) {
    let unlike = |example: &String| {
        let lines: HashSet<&str> = example.lines().collect();
        text.lines().filter(|line| !lines.contains(line)).count() + example.lines().count().abs_diff(text.lines().count())
    };
    (examples.iter().map(unlike).min().unwrap_or(0), text.len())
}
