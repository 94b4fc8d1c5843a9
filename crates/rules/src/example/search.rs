//! `Search`: what a number of sources reveals about a rule's guards.

use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

use regraft_ir::{Graph, text};

use super::guard::{Guard, bare, guards};
use super::near_miss::{NearMiss, Verdict, judged};
use super::tidy::tidied;
use crate::draft::Draft;
use crate::matcher::{Found, accept, sources_at};
use crate::rule::Rule;

/// Number of graphs per guard and verdict to compare with the examples.
const COMPARED: usize = 10;
/// Number of sources to keep on which a guard fails along with a given number of others.
const LEADS: usize = 20;
/// Number of those to change further in one round.
const FOLLOWED: usize = 4;
/// Maximum number of guards failing on them.
const FAILING: usize = 4;

/// A graph that one guard refuses.
struct Miss {
    verdict: Verdict,
    /// Stage of the search at which it was found.
    stage: usize,
    graph: Graph,
}

/// What is known about a guard.
#[derive(Default)]
struct State {
    misses: Vec<Miss>,
    /// The guards that failed wherever it did, by index; `None` if it never failed.
    with: Option<BTreeSet<usize>>,
    /// It failed alone where the source also matched in another way.
    symmetric: bool,
    /// It failed where the `where` names had no values.
    undefined: bool,
    /// Sources on which it failed among few, and how many failed.
    leads: Vec<(usize, Draft)>,
}

/// The sources seen so far, and what they reveal about the guards.
pub(super) struct Search<'r> {
    rule: &'r Rule,
    guards: Vec<Guard>,
    /// Indices of the guards whose near misses are wanted.
    wanted: Vec<usize>,
    bare: Rule,
    /// The rule with only each guard, and without it.
    alone: Vec<Rule>,
    lifted: Vec<Rule>,
    states: Vec<State>,
    /// Hashes of visited drafts.
    seen: HashSet<u64>,
}

impl Search<'_> {
    pub(super) fn new<'r>(rule: &'r Rule, wanted: &[Guard]) -> Search<'r> {
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

    /// Whether some guard has no near miss.
    pub(super) fn is_incomplete(&self) -> bool {
        self.wanted.iter().any(|at| self.states[*at].misses.is_empty())
    }

    /// Whether a guard lacks a near miss on which the rule is false without it, but may have one.
    pub(super) fn is_open(&self) -> bool {
        let is_false = |miss: &Miss| miss.verdict == Verdict::False;
        self.wanted.iter().any(|at| {
            let misses = &self.states[*at].misses;
            misses.is_empty() || !(self.guards[*at].is_of_structure() || misses.iter().any(is_false))
        })
    }

    /// Sources, not returned before, on which guards without a near miss fail among few.
    pub(super) fn leads(&mut self) -> Vec<Draft> {
        let mut leads: Vec<Draft> = Vec::new();
        for at in &self.wanted {
            let State { misses, leads: known, .. } = &mut self.states[*at];
            if !misses.is_empty() {
                continue;
            }
            known.sort_by_key(|(failing, _)| *failing);
            leads.extend(known.drain(..FOLLOWED.min(known.len())).map(|(_, draft)| draft));
        }
        leads
    }

    /// True if the draft is a source of the rule.
    pub(super) fn visit_draft(&mut self, draft: &Draft, stage: usize) -> bool {
        let mut hasher = rustc_hash::FxHasher::default();
        draft.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return false;
        }
        let Some((graph, _)) = draft.graph() else { return false };
        let failing = self.failing(&graph);
        for failed in failing.iter().flatten().filter(|failed| (2..=FAILING).contains(&failed.len())) {
            for at in failed {
                let state = &mut self.states[*at];
                if state.misses.is_empty() && state.leads.iter().filter(|(count, _)| *count == failed.len()).count() < LEADS {
                    state.leads.push((failed.len(), draft.clone()));
                }
            }
        }
        self.note(&graph, &failing, stage)
    }

    /// True if the graph has a source of the rule.
    pub(super) fn visit(&mut self, graph: &Graph, stage: usize) -> bool {
        let failing = self.failing(graph);
        self.note(graph, &failing, stage)
    }

    /// The guards that fail on each source of the graph; `None` where `where` names have no values.
    fn failing(&mut self, graph: &Graph) -> Vec<Option<BTreeSet<usize>>> {
        let sources: Vec<Found> = graph.ids().flat_map(|id| sources_at(graph, &self.bare, 0, id)).collect();
        let mut all = Vec::new();
        for found in &sources {
            let fails = |at: &usize| !self.guards[*at].holds(graph, &self.alone[*at], found);
            let failed: BTreeSet<usize> = (0..self.guards.len()).filter(fails).collect();
            let defined = accept(graph, &self.bare, &mut found.clone());
            if !defined {
                failed.iter().for_each(|guard| self.states[*guard].undefined = true);
            }
            all.push(Some(failed).filter(|_| defined));
        }
        all
    }

    /// Records which guards failed, and the graph if it is a near miss; true if it has a source.
    fn note(&mut self, graph: &Graph, failing: &[Option<BTreeSet<usize>>], stage: usize) -> bool {
        for failed in failing.iter().flatten() {
            for guard in failed {
                let others: BTreeSet<usize> = failed.iter().copied().filter(|other| other != guard).collect();
                let with = self.states[*guard].with.get_or_insert_with(|| others.clone());
                with.retain(|other| others.contains(other));
            }
        }
        let single: BTreeSet<usize> = failing.iter().flatten().filter(|failed| failed.len() == 1).flatten().copied().collect();
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
        !failing.is_empty()
    }

    /// The closest graph of each guard, made readable.
    pub(super) fn closest(mut self, examples: &[Graph]) -> Vec<NearMiss> {
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

/// Lines that differ from the most similar example, and the length of the text.
fn difference(text: &str, examples: &[String]) -> (usize, usize) {
    let unlike = |example: &String| {
        let lines: HashSet<&str> = example.lines().collect();
        text.lines().filter(|line| !lines.contains(line)).count() + example.lines().count().abs_diff(text.lines().count())
    };
    (examples.iter().map(unlike).min().unwrap_or(0), text.len())
}
