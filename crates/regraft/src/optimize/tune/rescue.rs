//! Models that the runtime refuses with its own optimizer on: which rewrite makes them load, and
//! which one stops them from loading.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use regraft_ir::{Graph, NodeId};
use regraft_rules::Library;
use regraft_runtime::RuntimeError;
use regraft_search::{Engine, Matcher, Move, Script, all_moves};

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::observer::Phase;
use crate::optimize::run::Run;
use crate::optimize::script::Rewrite;
use crate::optimize::tune::propose::{Proposal, everywhere, replay};
use crate::optimize::tune::record::retrace;

/// Models that are rewritten further, one for each thing that the runtime says.
const COMPLAINTS: usize = 32;

/// Where searches start: a graph, and the rewrites of the input that lead to it.
#[derive(Clone, Debug)]
pub struct Start {
    /// The graph.
    pub graph: Graph,
    /// The rewrites.
    pub rewrites: Vec<Rewrite>,
}

impl Start {
    /// The proposals of a search from here, as rewrites of the input.
    pub fn extend(&self, mut proposal: Proposal) -> Proposal {
        proposal.rewrites.splice(0..0, self.rewrites.iter().cloned());
        proposal
    }
}

/// The first model found that runs as deployed, where the input does not; `None` if there is none,
/// or time is up.
///
/// Nothing is known of why the runtime refuses the input but what it says: its optimizer trips over
/// some pattern, and a rewrite that touches the pattern may help. These are tried in turn: the
/// input written anew, `known` proposals, those of a search, each rule wherever it matches, and
/// each rewrite alone, those first that are next to a value that the runtime names. There may be
/// several such patterns: where the runtime begins to complain of something else, the same is tried
/// again.
pub fn rescue(run: &mut Run<'_>, known: Vec<Proposal>) -> Result<Option<Candidate>, Failure> {
    let (graph, cost) = (run.job.input.graph.clone(), run.evaluator.prices().total(&run.job.input.graph));
    let anew = Proposal { key: Engine::new(graph.clone(), run.evaluator.prices().model()).key(), graph, rewrites: Vec::new(), cost };
    let mut rescue = Rescue { run, tried: HashSet::new(), complaints: HashSet::new(), open: VecDeque::new() };
    for proposal in std::iter::once(anew).chain(known) {
        if let Some(found) = rescue.attempt(proposal)? {
            return Ok(Some(found));
        }
    }
    while let Some((start, complaint)) = rescue.open.pop_front() {
        for proposal in rescue.searched(&start) {
            if let Some(found) = rescue.attempt(start.extend(proposal))? {
                return Ok(Some(found));
            }
        }
        for attempt in rescue.attempts(&start, &complaint) {
            let Some(proposal) = rescue.proposal(&start, &attempt) else { continue };
            if let Some(found) = rescue.attempt(start.extend(proposal))? {
                return Ok(Some(found));
            }
            if rescue.is_out_of_time() {
                return Ok(None);
            }
        }
    }
    Ok(None)
}

struct Rescue<'r, 'a> {
    run: &'r mut Run<'a>,
    /// Keys of models that were tried.
    tried: HashSet<u128>,
    /// What the runtime has said so far.
    complaints: HashSet<String>,
    /// Models to rewrite further, with what the runtime says of each.
    open: VecDeque<(Start, String)>,
}

/// What may help.
enum Attempt {
    /// A rule, wherever it matches.
    Rule(String),
    /// One rewrite.
    Single(Arc<Move>),
}

impl Rescue<'_, '_> {
    fn is_out_of_time(&self) -> bool {
        self.run.is_interrupted() || self.run.evaluator.is_timed() && Instant::now() >= self.run.clock.tuning_ends()
    }

    /// The model, if it runs. If the runtime says something new of it, it is built upon.
    fn attempt(&mut self, proposal: Proposal) -> Result<Option<Candidate>, Failure> {
        if !self.tried.insert(proposal.key) || self.is_out_of_time() {
            return Ok(None);
        }
        let start = Start { graph: proposal.graph.clone(), rewrites: proposal.rewrites.clone() };
        let name = self.run.next_name();
        self.run.phase(Phase::Search, &format!("what the runtime loads: {name}, {} rewrites", proposal.rewrites.len()));
        let Some(candidate) = self.run.realize(name, proposal)? else { return Ok(None) };
        let Some(source) = candidate.artifact.source() else { return Ok(None) };
        match self.run.job.run_once(source) {
            Ok(()) => return Ok(Some(candidate)),
            Err(RuntimeError::Load { cause, .. }) if self.complaints.len() < COMPLAINTS && self.complaints.insert(cause.clone()) => {
                self.open.push_back((start, cause));
            }
            Err(_) => {}
        }
        Ok(None)
    }

    fn searched(&mut self, start: &Start) -> Vec<Proposal> {
        let until = self.run.clock.search_ends();
        self.run.search(&start.graph, &self.run.job.rules.library, &*self.run.job.request.search.strategy(), until).best
    }

    /// Every rule that matches, then every match: the nearest to what the runtime names first.
    fn attempts(&self, start: &Start, complaint: &str) -> Vec<Attempt> {
        let (job, prices) = (self.run.job, self.run.evaluator.prices().model());
        let (library, writable) = (&job.rules.library, job.writable());
        let far = distances(&start.graph, complaint);
        let distance = |step: &Move| step.nodes.iter().filter_map(|node| far.get(node)).min().copied().unwrap_or(usize::MAX);
        let mut engine = Engine::new(start.graph.clone(), prices);
        let mut moves: Vec<Arc<Move>> = all_moves(&mut engine, &mut Matcher::new(library, &writable)).iter().cloned().collect();
        moves.sort_by_key(|step| distance(step));
        let mut rules: Vec<&str> = Vec::new();
        for step in &moves {
            let rule = &*library.rules()[step.rule].name;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let rules = rules.into_iter().map(|rule| Attempt::Rule(rule.to_string()));
        rules.chain(moves.into_iter().map(Attempt::Single)).collect()
    }

    fn proposal(&self, start: &Start, attempt: &Attempt) -> Option<Proposal> {
        let (job, prices) = (self.run.job, self.run.evaluator.prices().model());
        match attempt {
            Attempt::Rule(rule) => {
                let writable = job.writable();
                everywhere(&start.graph, prices, &mut Matcher::new(&job.rules.library, &writable), &|r| *r.name == **rule)
            }
            Attempt::Single(step) => {
                let mut engine = Engine::new(start.graph.clone(), prices);
                engine.apply(step);
                let script = Script { moves: vec![step.clone()], cost: engine.cost(), key: engine.key() };
                engine.undo();
                let proposal = replay(&mut engine, &job.rules.library, &script)?;
                Some(Proposal { cost: script.cost, key: script.key, ..proposal })
            }
        }
    }
}

/// How far nodes are from the values that a text names. Empty if it names none.
fn distances(graph: &Graph, text: &str) -> HashMap<NodeId, usize> {
    let words: HashSet<&str> =
        text.split(|c: char| c.is_whitespace() || "'\"`,;()".contains(c)).map(|w| w.trim_end_matches(['.', ':'])).collect();
    let is_named = |id: &NodeId| graph.node(*id).names.iter().flatten().any(|name| words.contains(&**name));
    let mut far: HashMap<NodeId, usize> = graph.ids().filter(is_named).map(|id| (id, 0)).collect();
    let mut frontier: VecDeque<NodeId> = far.keys().copied().collect();
    while let Some(id) = frontier.pop_front() {
        let (next, node) = (far[&id] + 1, graph.node(id));
        let around = node.inputs.iter().map(|value| value.node).chain(node.users.iter().map(|(user, _)| *user));
        for neighbour in around {
            far.entry(neighbour).or_insert_with(|| {
                frontier.push_back(neighbour);
                next
            });
        }
    }
    far
}

/// The first rewrite after which a candidate is refused: its rule, its place, and what the runtime
/// says. `None` if the runtime takes the candidate, if it does not come from `start`, which the
/// runtime takes, or if there is no time to find out.
pub fn refused_since(
    run: &mut Run<'_>,
    library: &Library,
    start: &Start,
    candidate: &Candidate,
) -> Result<Option<(String, String, String)>, Failure> {
    let places = candidate.script.places();
    let (mut right, mut wrong) = (start.rewrites.len(), places.len());
    if right >= wrong || start.rewrites.iter().zip(&places).any(|(rewrite, place)| rewrite.place != *place) {
        return Ok(None);
    }
    let mut cause = match candidate.artifact.source().map(|source| run.job.run_once(source)) {
        Some(Err(RuntimeError::Load { cause, .. })) => cause,
        _ => return Ok(None),
    };
    while wrong - right > 1 {
        if run.is_interrupted() || run.evaluator.is_timed() && Instant::now() >= run.clock.tuning_ends() {
            return Ok(None);
        }
        let middle = (right + wrong) / 2;
        let (job, prices) = (run.job, run.evaluator.prices().model());
        let Some(proposal) = retrace(&places[..middle], &job.input.graph, prices, library, &job.writable()) else { return Ok(None) };
        let name = run.next_name();
        let Some(shorter) = run.realize(name, proposal)? else { return Ok(None) };
        match shorter.artifact.source().map(|source| run.job.run_once(source)) {
            Some(Ok(())) => right = middle,
            Some(Err(RuntimeError::Load { cause: why, .. })) => (wrong, cause) = (middle, why),
            _ => return Ok(None),
        }
    }
    let applied = candidate.script.applied().nth(wrong - 1);
    Ok(applied.map(|applied| (applied.rule.clone(), applied.at.clone(), cause)))
}
