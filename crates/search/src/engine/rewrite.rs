//! `Move`: a rewrite that can be applied in the state where it was found.

use std::sync::Arc;

use regraft_ir::{NodeId, Patch};
use regraft_rules::{Found, Rule};
use smallvec::SmallVec;

use super::template::{Rewrite, Template, place_of};

/// A rewrite that can be applied in the state where it was found: one rule at one place.
#[derive(Debug)]
pub struct Move {
    /// Index of the rule in the library.
    pub rule: usize,
    /// Operators of the source.
    pub nodes: SmallVec<[NodeId; 6]>,
    /// The edit.
    pub patch: Patch,
    template: Arc<Template>,
    /// Existing nodes that stand for nodes of the target.
    reused: SmallVec<[NodeId; 4]>,
    /// Nodes that the edit reads or puts in the place of others.
    reads: SmallVec<[NodeId; 8]>,
    place: u64,
}

impl Move {
    /// A template at a place with this identity.
    pub(super) fn new(template: &Arc<Template>, Rewrite { nodes, reused, patch }: Rewrite, place: u64) -> Move {
        let mut reads: SmallVec<[NodeId; 8]> = patch.reads().map(|v| v.node).collect();
        reads.sort_unstable();
        reads.dedup();
        Move { rule: template.rule, nodes, patch, template: template.clone(), reused, reads, place }
    }

    /// Nodes that the edit reads or puts in the place of others.
    pub(super) fn reads(&self) -> &[NodeId] {
        &self.reads
    }

    /// Identity of the match: rule, operators, operand order.
    ///
    /// The same in every run from the same graph, regardless of the other rules.
    pub fn match_id(&self) -> u64 {
        self.place
    }

    /// Whether this move rewrites this match of `rule`, with the same operand order.
    pub fn is_at(&self, rule: &Rule, found: &Found) -> bool {
        self.place == place_of(rule, found)
    }

    /// Existing nodes that stand for nodes of the target.
    pub fn reused(&self) -> &[NodeId] {
        &self.reused
    }

    /// Hashes of the new operators with their operand types, in the order of the patch.
    pub(super) fn cores(&self) -> &[u64] {
        &self.template.cores
    }

    /// Whether readers of the operands matter to the rule.
    pub(super) fn asks_for_readers(&self) -> bool {
        self.template.asks_for_readers
    }

    /// Readers of the result may depend on more than before: several roots became one, or an
    /// existing node is reused.
    pub(super) fn adds_paths(&self) -> bool {
        self.template.adds_paths
    }

    /// Readers of a result may depend on less than before: a root no longer depends on an operand
    /// of its source.
    pub(super) fn drops_paths(&self) -> bool {
        self.template.drops_paths
    }
}
