//! `Move`: a rewrite that can be applied in the state where it was found.

use std::hash::{Hash, Hasher};

use regraft_ir::{Graph, NodeId, Patch, PatchValue};
use regraft_rules::{Found, Rule};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::hash::core;

/// A rewrite that can be applied in the state where it was found: one rule at one place.
#[derive(Debug)]
pub struct Move {
    /// Index of the rule in the library.
    pub rule: usize,
    /// Operators of the source.
    pub nodes: SmallVec<[NodeId; 6]>,
    /// The edit.
    pub patch: Patch,
    /// Hashes of the new operators with their operand types.
    cores: SmallVec<[u64; 4]>,
    adds_paths: bool,
    drops_paths: bool,
    place: u64,
}

impl Move {
    /// The rewrite of a match of the rule with this index, by this patch.
    pub(super) fn new(graph: &Graph, rule: usize, found: Found, patch: Patch, place: u64) -> Move {
        let operands = || found.nodes.iter().flat_map(|n| graph.node(*n).inputs.iter());
        let adds_paths = patch.replace.len() > 1 || patch.reads().any(|v| !operands().any(|o| *o == v));
        let drops_paths = drops_paths(graph, &found.nodes, &patch);
        let cores = cores(graph, &patch);
        Move { rule, nodes: found.nodes, patch, cores, adds_paths, drops_paths, place }
    }

    /// Identity of the match: rule, operators, operand order.
    ///
    /// The same in every run from the same graph, regardless of the other rules.
    pub fn match_id(&self) -> u64 {
        self.place
    }

    /// Whether this move rewrites this match of `rule`, with the same operand order.
    pub fn is_at(&self, rule: &Rule, found: &Found) -> bool {
        self.place == place(rule, found)
    }

    /// Hashes of the new operators with their operand types, in the order of the patch.
    pub(super) fn cores(&self) -> &[u64] {
        &self.cores
    }

    /// Readers of the result may depend on more than before: several roots became one, or an
    /// existing node is reused.
    pub(super) fn adds_paths(&self) -> bool {
        self.adds_paths
    }

    /// Readers of a result may depend on less than before: a root no longer depends on an operand
    /// of its source.
    pub(super) fn drops_paths(&self) -> bool {
        self.drops_paths
    }
}

/// Identity of a match: the rule's name, and what it found.
///
/// Indices differ between libraries, which may leave out rules.
pub(super) fn place(rule: &Rule, found: &Found) -> u64 {
    let mut hasher = FxHasher::default();
    (&*rule.name, found.identity()).hash(&mut hasher);
    hasher.finish()
}

/// Whether a replaced value depended, through the operators of the source, on an operand that its
/// replacement does not read.
fn drops_paths(graph: &Graph, source: &[NodeId], patch: &Patch) -> bool {
    patch.replace.iter().any(|(old, new)| {
        let (before, after) = (operands(graph, source, patch, PatchValue::Old(*old)), operands(graph, source, patch, *new));
        before.iter().any(|id| !after.contains(id))
    })
}

/// The nodes outside the source and the new ones that a value is computed from; constants do not
/// count.
fn operands(graph: &Graph, source: &[NodeId], patch: &Patch, value: PatchValue) -> SmallVec<[NodeId; 8]> {
    let mut operands: SmallVec<[NodeId; 8]> = SmallVec::new();
    let mut stack: SmallVec<[PatchValue; 8]> = SmallVec::from_iter([value]);
    while let Some(value) = stack.pop() {
        match value {
            PatchValue::New { index, .. } => stack.extend(patch.create[index as usize].inputs.iter().copied()),
            PatchValue::Old(v) if source.contains(&v.node) => stack.extend(graph.node(v.node).inputs.iter().map(|v| PatchValue::Old(*v))),
            PatchValue::Old(v) if graph.is_constant(v) || operands.contains(&v.node) => {}
            PatchValue::Old(v) => operands.push(v.node),
        }
    }
    operands
}

fn cores(graph: &Graph, patch: &Patch) -> SmallVec<[u64; 4]> {
    let ty = |value: &PatchValue| match value {
        PatchValue::Old(v) => graph.ty(*v),
        PatchValue::New { index, port } => patch.create[*index as usize].types[*port as usize].as_ref(),
    };
    patch.create.iter().map(|new| core(&new.op, new.inputs.iter().map(ty))).collect()
}
