//! `Template`: a rewrite of nodes that are known by number.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_ir::{Graph, NewNode, NodeId, Patch, PatchValue, ValueId, View};
use regraft_rules::{Edit, Found, Rule};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::hash::core;

/// A rewrite at any place where the surroundings are as they were where it was found. Its nodes are
/// numbers; see [`Automaton`](super::automaton::Automaton).
#[derive(Debug)]
pub(super) struct Template {
    /// Index of the rule in the library.
    pub(super) rule: usize,
    /// The most operators on a path of the pattern that is rooted at the anchor.
    pub(super) depth: usize,
    /// Whether several roots become one rewrite.
    pub(super) is_merge: bool,
    /// Whether readers of the operands matter to the rule.
    pub(super) asks_for_readers: bool,
    /// The edit may close a cycle.
    pub(super) reads_below: bool,
    /// Existing nodes that stand for nodes of the target.
    reused: SmallVec<[NodeId; 4]>,
    /// Readers of the result may depend on more than before: several roots became one, or an
    /// existing node is reused.
    pub(super) adds_paths: bool,
    /// Readers of a result may depend on less than before: a root no longer depends on an operand
    /// of its source.
    pub(super) drops_paths: bool,
    /// Hashes of the new operators with their operand types, in the order of the patch.
    pub(super) cores: SmallVec<[u64; 4]>,
    /// Hash of the rule's name, which does not depend on the other rules of a library.
    name: u64,
    nodes: SmallVec<[NodeId; 6]>,
    covers: SmallVec<[ValueId; 12]>,
    patch: Patch,
    /// Which of the graph's inputs stand behind the numbered nodes: the patch reads their sizes.
    inputs: SmallVec<[u32; 2]>,
}

/// A [`Template`] at one place.
pub(super) struct Rewrite {
    /// Operators of the source.
    pub(super) nodes: SmallVec<[NodeId; 6]>,
    /// Existing nodes that stand for nodes of the target.
    pub(super) reused: SmallVec<[NodeId; 4]>,
    /// The edit.
    pub(super) patch: Patch,
}

impl Template {
    /// The rewrite of a match, its nodes being ids.
    pub(super) fn new(view: &dyn View, graph: &Graph, rule: usize, depth: usize, by: &Rule, found: Found, edit: Edit) -> Template {
        let Edit { patch, reads_below, reused } = edit;
        let operands = || found.nodes.iter().flat_map(|n| graph.node(*n).inputs.iter());
        Template {
            rule,
            depth,
            is_merge: found.is_merge(),
            asks_for_readers: by.asks_for_readers(),
            reads_below,
            adds_paths: patch.replace.len() > 1 || patch.reads().any(|v| !operands().any(|o| *o == v)),
            reused,
            drops_paths: drops_paths(view, &found.nodes, &patch),
            cores: cores(graph, &patch),
            name: hash_of_name(by),
            covers: found.covers(),
            nodes: found.nodes,
            patch,
            inputs: SmallVec::new(),
        }
    }

    /// The same with numbers in place of ids. `None` if one of its nodes has no number and is no
    /// input of the graph.
    pub(super) fn numbered(&self, graph: &Graph, nodes: &[NodeId]) -> Option<Template> {
        let mut inputs: SmallVec<[u32; 2]> = SmallVec::new();
        let mut number = |id: NodeId| {
            if let Some(at) = nodes.iter().position(|n| *n == id) {
                return Some(NodeId(at as u32));
            }
            let input = graph.inputs().iter().position(|input| *input == id)? as u32;
            let at = inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
                inputs.push(input);
                inputs.len() - 1
            });
            Some(NodeId((nodes.len() + at) as u32))
        };
        let patch = renumbered(&self.patch, &mut number)?;
        let ids = self.nodes.iter().map(|id| number(*id)).collect::<Option<_>>()?;
        let reused = self.reused.iter().map(|id| number(*id)).collect::<Option<_>>()?;
        let covers = self.covers.iter().map(|v| Some(number(v.node)?.port(v.port))).collect::<Option<_>>()?;
        Some(Template { nodes: ids, reused, covers, patch, inputs, cores: self.cores.clone(), ..*self })
    }

    /// The same with ids in place of numbers, where the numbered nodes are these.
    pub(super) fn with_ids(&self, nodes: &[NodeId]) -> Template {
        let Rewrite { nodes: ids, reused, patch } = self.at(nodes);
        let covers = self.covers.iter().map(|v| nodes[v.node.0 as usize].port(v.port)).collect();
        Template { nodes: ids, reused, covers, patch, inputs: SmallVec::new(), cores: self.cores.clone(), ..*self }
    }

    /// The nodes that it speaks of, by number, where the numbered ones are these.
    pub(super) fn place<'n>(&self, graph: &Graph, nodes: &'n [NodeId]) -> Cow<'n, [NodeId]> {
        if self.inputs.is_empty() {
            return Cow::Borrowed(nodes);
        }
        nodes.iter().copied().chain(self.inputs.iter().map(|at| graph.inputs()[*at as usize])).collect()
    }

    /// Identity of the match at a place.
    pub(super) fn identity(&self, nodes: &[NodeId]) -> u64 {
        let at = self.covers.iter().map(|v| nodes[v.node.0 as usize].port(v.port)).collect();
        identity(self.name, self.is_merge, at)
    }

    /// The rewrite at a place.
    pub(super) fn at(&self, nodes: &[NodeId]) -> Rewrite {
        let here = |id: NodeId| nodes[id.0 as usize];
        let value = |v: &PatchValue| match v {
            PatchValue::Old(v) => PatchValue::Old(here(v.node).port(v.port)),
            new @ PatchValue::New { .. } => *new,
        };
        let create =
            |new: &NewNode| NewNode { op: new.op.clone(), inputs: new.inputs.iter().map(value).collect(), types: new.types.clone() };
        Rewrite {
            nodes: self.nodes.iter().map(|id| here(*id)).collect(),
            reused: self.reused.iter().map(|id| here(*id)).collect(),
            patch: Patch {
                cause: Arc::clone(&self.patch.cause),
                create: self.patch.create.iter().map(create).collect(),
                replace: self.patch.replace.iter().map(|(old, new)| (here(old.node).port(old.port), value(new))).collect(),
            },
        }
    }
}

/// Identity of a match of this rule: the same in every run from the same graph, whatever other
/// rules there are.
pub(super) fn place_of(rule: &Rule, found: &Found) -> u64 {
    identity(hash_of_name(rule), found.is_merge(), found.covers())
}

fn hash_of_name(rule: &Rule) -> u64 {
    let mut hasher = FxHasher::default();
    (*rule.name).hash(&mut hasher);
    hasher.finish()
}

fn identity(name: u64, is_merge: bool, mut covers: SmallVec<[ValueId; 12]>) -> u64 {
    if is_merge {
        covers.sort_unstable();
    }
    let mut hasher = FxHasher::default();
    (name, covers).hash(&mut hasher);
    hasher.finish()
}

fn renumbered(patch: &Patch, number: &mut dyn FnMut(NodeId) -> Option<NodeId>) -> Option<Patch> {
    let mut patch = patch.clone();
    let mut value = |v: &mut PatchValue| {
        if let PatchValue::Old(v) = v {
            v.node = number(v.node)?;
        }
        Some(())
    };
    patch.create.iter_mut().flat_map(|new| &mut new.inputs).try_for_each(&mut value)?;
    patch.replace.iter_mut().try_for_each(|(_, new)| value(new))?;
    for (old, _) in &mut patch.replace {
        old.node = number(old.node)?;
    }
    Some(patch)
}

/// Whether a replaced value depended, through the operators of the source, on an operand that its
/// replacement does not read.
fn drops_paths(view: &dyn View, source: &[NodeId], patch: &Patch) -> bool {
    patch.replace.iter().any(|(old, new)| {
        let (before, after) = (operands(view, source, patch, PatchValue::Old(*old)), operands(view, source, patch, *new));
        before.iter().any(|id| !after.contains(id))
    })
}

/// The nodes outside the source and the new ones that a value is computed from; constants do not
/// count.
fn operands(view: &dyn View, source: &[NodeId], patch: &Patch, value: PatchValue) -> SmallVec<[NodeId; 8]> {
    let mut operands: SmallVec<[NodeId; 8]> = SmallVec::new();
    let mut stack: SmallVec<[PatchValue; 8]> = SmallVec::from_iter([value]);
    while let Some(value) = stack.pop() {
        match value {
            PatchValue::New { index, .. } => stack.extend(patch.create[index as usize].inputs.iter().copied()),
            PatchValue::Old(v) if source.contains(&v.node) => stack.extend(view.inputs(v.node).iter().map(|v| PatchValue::Old(*v))),
            PatchValue::Old(v) if view.is_constant(v) || operands.contains(&v.node) => {}
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
