//! `Instance`: a source of a rule, and its rewritten form.

use std::collections::HashMap;

use regraft_ir::{Const, Graph, Patch, ValueId};

use crate::instantiate::{Anything, Refusal, instantiate};
use crate::matcher::matches_at;
use crate::rule::Rule;

/// An instance of a rule.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The source as a graph with its roots as outputs.
    pub before: Graph,
    /// The same graph, rewritten.
    pub after: Graph,
    /// Values of the inputs, by name.
    pub feeds: HashMap<String, Const>,
}

/// Why a draw does not support the rule, or refutes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The draw is not an instance of the rule.
    Draw(String),
    /// It is an instance, and the rule misbehaves on it.
    Wrong(String),
}

/// The instance whose source is this graph, without input values.
pub(crate) fn rewritten(rule: &Rule, before: Graph, roots: &[ValueId]) -> Result<Instance, Miss> {
    let patch = patch(rule, &before, roots)?;
    let mut after = before.clone();
    after.apply(&patch);
    if after.topological().len() != after.len() {
        return Err(Miss::Wrong("the target makes a cycle".into()));
    }
    Ok(Instance { before, after, feeds: HashMap::new() })
}

/// The patch of the first match at these roots that changes something.
fn patch(rule: &Rule, before: &Graph, roots: &[ValueId]) -> Result<Patch, Miss> {
    let mut why = Miss::Draw("the guards do not hold".into());
    for found in matches_at(before, rule, 0, roots[0].node) {
        if !found.roots.iter().all(|r| roots.contains(r)) {
            continue;
        }
        match instantiate(before, rule, &found, &Anything) {
            Ok(patch) => return Ok(patch),
            // In the other order, operands of a commutative operator may already be those of the
            // target.
            Err(Refusal::Nothing) => why = Miss::Draw("refused".into()),
            Err(Refusal::Guard | Refusal::Cycle) => return Err(Miss::Draw("refused".into())),
            // A target that fails on an accepted source is a defect of the rule: a guard is
            // missing.
            Err(why) => return Err(Miss::Wrong(format!("the target cannot be built: {why}"))),
        }
    }
    Err(why)
}
