//! `Outcome`: what a rule does with a graph.

use regraft_ir::{Graph, Patch};

use crate::instantiate::{Anything, Refusal, instantiate};
use crate::matcher::{Found, matches_at};
use crate::rule::Rule;

/// What a rule does with a graph.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It rewrites a match.
    Fires(Box<Found>, Patch),
    /// Its source matches and its guards hold, but its target cannot be built: why.
    Unbuildable(Box<Found>, String),
    /// Its source does not match, a guard does not hold, or nothing would change.
    Refused,
}

impl Outcome {
    /// The match, if the guards hold.
    pub fn found(&self) -> Option<&Found> {
        match self {
            Outcome::Fires(found, _) | Outcome::Unbuildable(found, _) => Some(found),
            Outcome::Refused => None,
        }
    }
}

/// What `rule` does at the first node where it fires, in node order.
pub fn outcome(graph: &Graph, rule: &Rule) -> Outcome {
    let mut result = Outcome::Refused;
    for found in graph.ids().flat_map(|id| matches_at(graph, rule, 0, id)) {
        match instantiate(graph, rule, &found, &Anything) {
            Ok(patch) => return Outcome::Fires(Box::new(found), patch),
            Err(Refusal::Guard | Refusal::Nothing | Refusal::Cycle) => {}
            Err(why) => result = Outcome::Unbuildable(Box::new(found), why.to_string()),
        }
    }
    result
}
