//! Normal forms: the only edits of a graph that are not made by rules.
//!
//! Each is a sequence of patches, so each leaves the same trail as a rule and can be undone.
//! Neither changes what an output computes: merging unifies two equal computations, and dropping
//! removes dead nodes.

mod cse;
mod dce;

pub use cse::{CSE, cse, cse_steps};
pub use dce::{DCE, dce, dce_steps};

use crate::graph::Graph;
use crate::patch::{Applied, Patch};

/// One edit of a normal form, and how to undo it.
#[derive(Debug)]
pub struct Step {
    /// The edit.
    pub patch: Patch,
    /// What it changed, for [`Graph::undo`].
    pub applied: Applied,
}

impl Step {
    fn take(graph: &mut Graph, patch: Patch) -> Step {
        let applied = graph.apply(&patch);
        Step { patch, applied }
    }
}

/// Undoes steps, latest first. Nothing else may have been applied since.
pub fn undo(graph: &mut Graph, steps: Vec<Step>) {
    for step in steps.into_iter().rev() {
        graph.undo(step.applied);
    }
}

fn removed(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.applied.removed.len()).sum()
}
