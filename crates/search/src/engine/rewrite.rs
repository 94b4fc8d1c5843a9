//! `Move`: a rewrite that can be applied in the state where it was found.

use std::sync::{Arc, OnceLock};

use regraft_ir::{Ancestors, Graph, NodeId, Patch};
use regraft_rules::{Edit, Found, Rule};
use smallvec::SmallVec;

use super::near::Near;
use super::template::{Place, Placed, Template, place_of};

/// A rewrite that can be applied in the state where it was found: one rule at one place.
#[derive(Debug)]
pub struct Move {
    /// Index of the rule in the library.
    pub rule: usize,
    /// Operators of the source.
    pub nodes: SmallVec<[NodeId; 6]>,
    template: Arc<Template>,
    /// The nodes that the template speaks of.
    place: Place,
    patch: OnceLock<Patch>,
    /// Nodes whose change may change this move.
    near: Near,
    identity: u64,
}

impl Move {
    /// A template at a place of this graph, the match having this identity.
    pub(super) fn new(graph: &Graph, Placed { template, place }: Placed, identity: u64) -> Move {
        let nodes: SmallVec<[NodeId; 6]> = template.nodes(&place).collect();
        let operands = nodes.iter().filter(|_| template.asks_for_readers).flat_map(|id| &graph.node(*id).inputs).map(|value| value.node);
        let near = Near::of(nodes.iter().copied().chain(operands).chain(template.reused(&place)).chain(template.reads(&place)));
        Move { rule: template.rule, nodes, template, place, patch: OnceLock::new(), near, identity }
    }

    /// The same, its match being identified by its place.
    fn of(graph: &Graph, placed: Placed) -> Move {
        let identity = placed.identity();
        Move::new(graph, placed, identity)
    }

    /// The rewrite of a match of `by`, which has this index in its library, by its `edit`. The
    /// caller knows that it closes no cycle.
    pub fn of_match(graph: &Graph, rule: usize, by: &Rule, found: Found, edit: Edit) -> Move {
        Move::of(graph, Placed::new(graph, graph, rule, by, found, edit))
    }

    /// An edit of `graph` that no matcher found: `edit` replaces the nodes `replaces`. The caller
    /// knows that it is sound, and that it closes no cycle; `rule` is the one to name for it.
    pub fn given(graph: &Graph, rule: usize, replaces: &[NodeId], edit: &Patch) -> Move {
        Move::of(graph, Placed::given(graph, rule, replaces, edit))
    }

    /// Whether it is an edit that no matcher finds: see [`Move::given`].
    pub fn is_given(&self) -> bool {
        self.template.is_given
    }

    /// The edit.
    pub fn patch(&self) -> &Patch {
        self.patch.get_or_init(|| self.template.patch(&self.place))
    }

    /// The edit, of numbered nodes, and which nodes they are.
    pub(super) fn edit(&self) -> (&Patch, &[NodeId]) {
        (self.template.edit(), &self.place)
    }

    /// How many nodes it makes.
    pub fn makes(&self) -> usize {
        self.template.edit().create.len()
    }

    /// Nodes that the edit reads or puts in the place of others.
    pub fn reads(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.template.reads(&self.place)
    }

    /// The nodes whose results are replaced.
    pub(super) fn roots(&self) -> SmallVec<[NodeId; 2]> {
        self.template.roots(&self.place).collect()
    }

    /// Whether several roots become one rewrite.
    pub(crate) fn is_merge(&self) -> bool {
        self.template.edit().replace.len() > 1
    }

    /// Nodes whose change may change this move.
    pub(super) fn near(&self) -> &Near {
        &self.near
    }

    /// Whether it would close a cycle in this graph, whose `ancestors` these are.
    pub(super) fn closes_cycle(&self, graph: &Graph, ancestors: &mut Ancestors<'_>) -> bool {
        let roots = self.roots();
        // What all of them read themselves depends on none of them.
        let is_above = |id: &NodeId| roots.iter().all(|root| graph.node(*root).inputs.iter().any(|value| value.node == *id));
        // What depends on constants alone does not depend on a root that does not.
        let all_vary = roots.iter().all(|root| !graph.node(*root).constant);
        let read = self.reads().filter(|id| !(all_vary && graph.node(*id).constant || is_above(id)));
        regraft_rules::depends(ancestors, read, &roots)
    }

    /// Identity of the match: rule, operators, operand order.
    ///
    /// The same in every run from the same graph, regardless of the other rules.
    pub fn match_id(&self) -> u64 {
        self.identity
    }

    /// Whether this move rewrites this match of `rule`, with the same operand order.
    pub fn is_at(&self, rule: &Rule, found: &Found) -> bool {
        self.identity == place_of(rule, found)
    }

    /// Existing nodes that stand for nodes of the target.
    pub fn reused(&self) -> impl ExactSizeIterator<Item = NodeId> + '_ {
        self.template.reused(&self.place)
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
