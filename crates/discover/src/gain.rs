//! What rewriting one side of a pair to the other saves, and whether existing rules save as much.

use std::collections::BTreeSet;

use regraft_cost::{CostModel, Ns, Roofline};
use regraft_ir::{Bindings, Graph};
use regraft_rules::{Anything, Library};
use regraft_search::{Backtrack, Engine, Matcher, Steps, Strategy};

use crate::candidate::{Candidate, Written};
use crate::lower::{Constants, lowered};
use crate::spec::Spec;

/// Sizes that parameters take in turn: typical of models, small to large.
const TYPICAL: [i64; 4] = [8, 32, 128, 512];
/// Number of assignments of these sizes to evaluate.
const ASSIGNMENTS: usize = 8;
/// Savings below this part of the cost are ignored: prices are not that exact.
const LEAST: f64 = 0.05;
/// States expanded when searching for what rules reach, and how much more expensive than the best
/// they may be.
const EXPANSIONS: usize = 48;
const ALPHA: f64 = 1.6;
/// Budget checks per search.
const STEPS: u64 = 4096;

/// A pair read in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    /// What is replaced.
    pub source: Vec<Written>,
    /// By what.
    pub target: Vec<Written>,
    /// What must be constant for it to save something.
    pub constants: Constants,
    /// Where it saves something.
    pub savings: Vec<Saving>,
}

/// What a rewrite saves at some sizes, by the roofline.
#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// The sizes.
    pub sizes: Bindings,
    /// Price of the source, ns.
    pub before: Ns,
    /// Price of the target, ns.
    pub after: Ns,
}

impl Saving {
    /// The speedup.
    pub fn factor(&self) -> f64 {
        self.before as f64 / self.after.max(1) as f64
    }
}

impl Rewrite {
    /// Distinct operators of the source.
    pub fn operators(&self) -> usize {
        fn add<'a>(written: &'a Written, met: &mut Vec<&'a Written>) {
            let Written::Result { operands, .. } = written else { return };
            if !met.contains(&written) {
                met.push(written);
                operands.iter().for_each(|o| add(o, met));
            }
        }
        let mut met = Vec::new();
        self.source.iter().for_each(|written| add(written, &mut met));
        met.len()
    }

    /// The geometric mean of the speedup over all sizes evaluated; where it saves nothing, it need
    /// not be used.
    pub fn gain(&self) -> f64 {
        // A target that costs nothing counts as a hundredfold saving.
        let sum: f64 = self.savings.iter().map(|saving| saving.factor().min(100.0).ln()).sum();
        (sum / ASSIGNMENTS as f64).exp()
    }
}

/// Assignments of typical sizes to the parameters of a specification: each parameter cycles through
/// all of them at its own pace.
fn assignments(spec: &Spec) -> impl Iterator<Item = Bindings> {
    (0..ASSIGNMENTS).map(|at| {
        let size = |place: usize| TYPICAL[(at / TYPICAL.len() + at * (2 * place + 1) + place * (1 + at / TYPICAL.len())) % TYPICAL.len()];
        spec.sizes.iter().enumerate().map(|(place, name)| (name.clone(), size(place))).collect()
    })
}

/// The directions of a pair that save something somewhere: with all operands unknown, or else with
/// constant weights and scalars.
pub fn rewrites(spec: &Spec, candidate: &Candidate) -> Vec<Rewrite> {
    let directions = [(&candidate.left, &candidate.right), (&candidate.right, &candidate.left)];
    directions.into_iter().filter_map(|(source, target)| rewrite(spec, source, target)).collect()
}

fn rewrite(spec: &Spec, source: &[Written], target: &[Written]) -> Option<Rewrite> {
    [Constants::None, Constants::Weights].into_iter().find_map(|constants| {
        let saving = |sizes: Bindings| {
            let price = |side| Some(Roofline::new(Bindings::new()).total(&lowered(spec, side, &sizes, constants).ok()?));
            let (before, after) = (price(source)?, price(target)?);
            (before > 0 && after as f64 <= before as f64 * (1.0 - LEAST)).then_some(Saving { sizes, before, after })
        };
        let savings: Vec<Saving> = assignments(spec).filter_map(saving).collect();
        (!savings.is_empty()).then(|| Rewrite { source: source.to_vec(), target: target.to_vec(), constants, savings })
    })
}

/// The rules by which a library saves as much as a rewrite, wherever the rewrite saves something;
/// `None` if it falls short somewhere.
pub fn done_by(spec: &Spec, rewrite: &Rewrite, library: &Library) -> Option<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for saving in &rewrite.savings {
        let graph = lowered(spec, &rewrite.source, &saving.sizes, rewrite.constants).ok()?;
        used.extend(reached(graph, library, saving.after)?);
    }
    Some(used)
}

/// The rules on a path from a graph to one that costs at most `goal`.
fn reached(graph: Graph, library: &Library, goal: Ns) -> Option<Vec<String>> {
    let model = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph, &model);
    let mut matcher = Matcher::new(library, &Anything);
    for (expansions, alpha) in [(0, 1.0), (EXPANSIONS, ALPHA)] {
        let search = Backtrack { alpha, expansions, keep: 1, descend_first: expansions == 0, ..Backtrack::default() };
        let outcome = search.search(&mut engine, &mut matcher, &mut Steps(STEPS));
        if let Some(script) = outcome.scripts.iter().find(|script| script.cost <= goal) {
            return Some(script.moves.iter().map(|step| library.rules()[step.rule].name.to_string()).collect());
        }
    }
    None
}
