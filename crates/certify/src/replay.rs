//! Replays the rewrites of one graph: each is judged on its own, then applied.

use std::collections::HashMap;

use regraft_ir::{Graph, NodeId, Patch, PatchValue, Trust, ValueId, canonical_key};
use regraft_prove::{Premises, Verdict};

use crate::certificate::Trail;
use crate::congruence::describe;
use crate::oracle::{Oracle, Prover};
use crate::region::{Claim, Region, Scope};
use crate::trial::trial;

/// How much of the surroundings the region includes at each attempt at a proof.
const SCOPES: [(Scope, &str); 4] = [
    (Scope::Matched, ""),
    (Scope::Weights, ", given its constants"),
    (Scope::Constants, ", given how its constants are computed"),
    (Scope::Common, ", given what computes its operands"),
];

/// Consecutive unproved rewrites after which a rule is given up.
const VAIN: usize = 3;

/// What is known about one rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// A human-readable label of its graph.
    pub graph: String,
    /// Its number in that graph, from 1.
    pub number: usize,
    /// What made it.
    pub rule: String,
    /// What it replaced, by the model's own names where there are any.
    pub at: String,
    /// How well it is known that the result computes the same.
    pub trust: Trust,
    /// What a proof of it takes for granted.
    pub premises: Premises,
    /// How that is known, or why nothing stronger is.
    pub why: String,
}

/// Why two models cannot be shown to be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The certificate contradicts itself or the input.
    Broken(String),
    /// The models differ, or cannot be compared.
    Differs(String),
}

/// Follows trails, with one work budget for all of them.
pub struct Replayer<'o> {
    /// Answers the questions, and is trusted.
    pub(crate) oracle: Box<dyn Oracle + 'o>,
    /// Operations spent on trials.
    work: f64,
    /// The prover's verdicts on regions: repeated blocks are proved once.
    known: HashMap<Claim, Verdict>,
    /// Consecutive unproved rewrites, by rule.
    vain: HashMap<String, usize>,
    /// What has been found so far.
    pub judged: Vec<Judged>,
}

impl Default for Replayer<'_> {
    fn default() -> Self {
        Replayer { work: 0.0, ..Replayer::asking(Prover) }
    }
}

impl<'o> Replayer<'o> {
    /// A replayer that asks `oracle`, and runs no numeric trials.
    pub fn asking(oracle: impl Oracle + 'o) -> Replayer<'o> {
        Replayer { oracle: Box::new(oracle), work: f64::INFINITY, known: HashMap::new(), vain: HashMap::new(), judged: Vec::new() }
    }

    /// Follows `trail` from `graph`, as it was read, to the graph it leads to. Unproved steps are
    /// applied too. Fails if the reader, being another version, reads another graph.
    pub fn follow(&mut self, graph: &mut Graph, trail: &Trail) -> Result<(), Stop> {
        if canonical_key(graph) != trail.start {
            return Err(Stop::Differs(format!("the graph {} is not read as it was", trail.place)));
        }
        for (number, step) in (1..).zip(&trail.steps) {
            let lost = |why: String| Stop::Broken(format!("step {number} ({}) of graph {} fits nowhere: {why}", step.rule, trail.place));
            let patch = step.patch(graph).map_err(lost)?;
            let (trust, premises, why) = self.judge(graph, &patch, &step.replaces);
            let places: Vec<String> = patch.replace.iter().map(|(old, _)| describe(graph, *old)).collect();
            let graph_label = trail.label.clone();
            self.judged.push(Judged { graph: graph_label, number, rule: step.rule.clone(), at: places.join(", "), trust, premises, why });
            let doubtful = reaches_replaced(graph, &patch);
            graph.apply(&patch);
            if doubtful && graph.topological().len() != graph.len() {
                return Err(lost("its result would depend on itself".into()));
            }
        }
        Ok(())
    }

    fn judge(&mut self, graph: &Graph, patch: &Patch, matched: &[NodeId]) -> (Trust, Premises, String) {
        if patch.replace.iter().all(|(old, new)| matches!(new, PatchValue::Old(new) if is_twin(graph, *old, *new))) {
            return (Trust::Proved, Premises::default(), "the same operator on the same operands".into());
        }
        let mut unproved = String::new();
        let mut regions: Vec<Region> = Vec::new();
        for (scope, given) in SCOPES {
            let why = match Region::cut(graph, patch, matched, scope) {
                Err(why) => why,
                Ok(region) if regions.last().is_some_and(|last| last.shown == region.shown) => continue,
                Ok(region) => {
                    let verdict = self.ask(&patch.cause, &region);
                    regions.push(region);
                    let Verdict::Unproved(why) = verdict else {
                        self.vain.remove(patch.cause.as_ref());
                        let trust = if verdict.is_proved() { Trust::Proved } else { Trust::Bounded };
                        return (trust, verdict.premises(), format!("{verdict}, for all sizes{given}"));
                    };
                    why
                }
            };
            unproved = why;
        }
        *self.vain.entry(patch.cause.to_string()).or_default() += 1;
        let mut untested = None;
        for region in if self.work.is_finite() { &regions[..] } else { &[] } {
            match trial(region, &mut self.work) {
                Ok(sizes) => return (Trust::Tested, Premises::default(), format!("{sizes}; no proof: {unproved}")),
                Err(why) => drop(untested.get_or_insert(why)),
            }
        }
        (Trust::Unproved, Premises::default(), untested.map_or(unproved.clone(), |why| format!("{unproved}; not tested: {why}")))
    }

    /// The prover's verdict on a region, unless its rule has been given up.
    fn ask(&mut self, rule: &str, region: &Region) -> Verdict {
        let claim = region.claim();
        if let Some(known) = self.known.get(&claim) {
            return known.clone();
        }
        if self.vain.get(rule).is_some_and(|vain| *vain >= VAIN) {
            return Verdict::Unproved("others of its rule could not be proved, and it was not tried".into());
        }
        let verdict = self.oracle.equal(region);
        self.known.insert(claim, verdict.clone());
        verdict
    }
}

/// True if both are the same result of the same operator on the same operands, in either order
/// where it is commutative.
fn is_twin(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (x, y) = (graph.node(a.node), graph.node(b.node));
    let mut swapped = y.inputs.clone();
    swapped.reverse();
    let operands = x.inputs == y.inputs || (x.op.kind().commutative() && x.inputs.len() == 2 && x.inputs == swapped);
    a.port == b.port && x.op == y.op && operands
}

/// True if something the patch reads is computed, by existing nodes, from a value that the patch
/// replaces.
fn reaches_replaced(graph: &Graph, patch: &Patch) -> bool {
    let mut seen = vec![false; graph.capacity()];
    let mut stack: Vec<NodeId> = patch.reads().map(|v| v.node).collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        let inputs = &graph.node(id).inputs;
        if inputs.iter().any(|v| patch.replace.iter().any(|(old, _)| old == v)) {
            return true;
        }
        stack.extend(inputs.iter().map(|v| v.node));
    }
    false
}
