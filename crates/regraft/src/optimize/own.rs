//! Rewrites by rules of the user's, proved where they are made: a rule is proved on the instances that its author wrote, which may be narrower than what it
//! matches.

use std::collections::BTreeSet;

use regraft_certify::{GraphPlace, Replayer, Stop, Word};
use regraft_ir::Graph;
use regraft_rules::Library;

use crate::optimize::candidate::Candidate;
use crate::optimize::evidence::Rewritten;

/// The first rewrite of `candidate` by a rule in `own` that the prover does not show, and why. `read` is the model's graph as it was read.
pub fn unproved_step(candidate: &Candidate, read: &Graph, library: &Library, own: &BTreeSet<String>) -> Option<String> {
    let is_own = |rule: &str| own.contains(rule);
    let main = Rewritten { place: GraphPlace::default(), label: String::new(), read: read.clone(), moves: candidate.moves.clone() };
    for rewritten in std::iter::once(&main).chain(&candidate.rewritten) {
        let Some(named) = rewritten.moves.iter().find(|step| is_own(&step.patch.cause)) else { continue };
        let cause = &named.patch.cause;
        let Some(trail) = rewritten.trail(library) else { return Some(format!("{cause}: it reads a value of unknown type")) };
        let mut replayer = Replayer::default();
        if let Err(Stop::Broken(why) | Stop::Differs(why)) = replayer.follow(&mut rewritten.read.clone(), &trail) {
            return Some(format!("{cause}: {why}"));
        }
        let open = replayer.judged.into_iter().find(|step| is_own(&step.rule) && step.word < Word::Bounded);
        if let Some(step) = open {
            return Some(format!("{} at {}: {}", step.rule, step.at, step.why));
        }
    }
    None
}
