//! `Template`: a rewrite of nodes that are known by number.

use std::hash::{Hash, Hasher};

use regraft_ir::{Graph, NodeId, Patch, PatchValue, ValueId, View};
use regraft_rules::{Edit, Found, Rule};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::hash::core;
use super::numbering::Numbering;

/// A rewrite at any place where the surroundings are as they were where it was found. Its nodes are
/// numbers; see [`Automaton`](super::automaton::Automaton).
#[derive(Debug)]
pub(super) struct Template {
    /// Index of the rule in the library.
    pub(super) rule: usize,
    /// Whether no matcher finds it: see [`Template::given`].
    pub(super) is_given: bool,
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
    /// Nodes that the edit reads or puts in the place of others.
    reads: SmallVec<[NodeId; 8]>,
    /// The nodes that it speaks of, in the order of their numbers here, by their numbers in the
    /// surroundings of the anchor; none if these are ids.
    members: SmallVec<[u32; 12]>,
}

/// The nodes that a template speaks of.
pub(super) type Place = SmallVec<[NodeId; 12]>;

impl Template {
    /// The rewrite of a match, its nodes being ids.
    pub(super) fn new(view: &dyn View, graph: &Graph, rule: usize, by: &Rule, found: Found, edit: Edit) -> Template {
        let Edit { patch, reads_below, reused } = edit;
        let operands = || found.nodes.iter().flat_map(|n| graph.node(*n).inputs.iter());
        Template {
            rule,
            is_given: false,
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
            reads: distinct(patch.reads().map(|value| value.node)),
            patch,
            members: SmallVec::new(),
        }
    }

    /// The same with numbers in place of ids, and the nodes that it speaks of.
    pub(super) fn placed(&self) -> (Template, Place) {
        let mut place = Place::new();
        let mut number = |id: NodeId| {
            let at = place.iter().position(|known| *known == id).unwrap_or_else(|| {
                place.push(id);
                place.len() - 1
            });
            Some(NodeId(at as u32))
        };
        // Every id gets a number.
        let template = self.renamed(&mut number);
        (template.unwrap_or_else(|| unreachable!("every id has a number")), place)
    }

    /// An edit that replaces these nodes, found by whatever means, and the nodes that it speaks of.
    pub(super) fn given(graph: &Graph, rule: usize, replaces: &[NodeId], edit: &Patch) -> (Template, Place) {
        let mut place = Place::new();
        let mut number = |id: NodeId| {
            let at = place.iter().position(|known| *known == id).unwrap_or_else(|| {
                place.push(id);
                place.len() - 1
            });
            NodeId(at as u32)
        };
        let nodes = replaces.iter().map(|id| number(*id)).collect();
        let covers = edit.replace.iter().map(|(old, _)| number(old.node).port(old.port)).collect();
        let reads = distinct(edit.reads().map(|value| value.node)).into_iter().map(&mut number).collect();
        // Every id gets a number.
        let patch = renamed(edit, &mut |id| Some(number(id))).unwrap_or_else(|| edit.clone());
        let mut name = FxHasher::default();
        (&*edit.cause, patch.create.iter().map(|new| &new.op).collect::<Vec<_>>()).hash(&mut name);
        let template = Template {
            rule,
            is_given: true,
            is_merge: edit.replace.len() > 1,
            asks_for_readers: false,
            reads_below: true,
            reused: SmallVec::new(),
            adds_paths: true,
            drops_paths: true,
            cores: cores(graph, edit),
            name: name.finish(),
            nodes,
            covers,
            patch,
            reads,
            members: SmallVec::new(),
        };
        (template, place)
    }

    /// The same with numbers in place of ids. `None` if one of its nodes has no number.
    pub(super) fn numbered(&self, graph: &Graph, nodes: &Numbering) -> Option<Template> {
        let mut members: SmallVec<[u32; 12]> = SmallVec::new();
        let mut number = |id: NodeId| {
            let member = nodes.get(graph, id)?;
            let at = members.iter().position(|known| *known == member).unwrap_or_else(|| {
                members.push(member);
                members.len() - 1
            });
            Some(NodeId(at as u32))
        };
        let template = self.renamed(&mut number)?;
        Some(Template { members, ..template })
    }

    /// The same with ids in place of numbers, where those known at the anchor are these.
    pub(super) fn with_ids(&self, graph: &Graph, nodes: &Numbering) -> Option<Template> {
        let place = self.place(graph, nodes);
        self.renamed(&mut |at| place.get(at.0 as usize).copied())
    }

    /// The same of other nodes.
    fn renamed(&self, name: &mut dyn FnMut(NodeId) -> Option<NodeId>) -> Option<Template> {
        Some(Template {
            nodes: self.nodes.iter().map(|id| name(*id)).collect::<Option<_>>()?,
            reused: self.reused.iter().map(|id| name(*id)).collect::<Option<_>>()?,
            covers: self.covers.iter().map(|v| Some(name(v.node)?.port(v.port))).collect::<Option<_>>()?,
            reads: self.reads.iter().map(|id| name(*id)).collect::<Option<_>>()?,
            patch: renamed(&self.patch, name)?,
            members: SmallVec::new(),
            cores: self.cores.clone(),
            ..*self
        })
    }

    /// The nodes that it speaks of, where those known at the anchor are these.
    pub(super) fn place(&self, graph: &Graph, nodes: &Numbering) -> Place {
        self.members.iter().map(|at| nodes.node(graph, *at)).collect()
    }

    /// Identity of the match at a place.
    pub(super) fn identity(&self, place: &[NodeId]) -> u64 {
        let at = self.covers.iter().map(|v| place[v.node.0 as usize].port(v.port)).collect();
        identity(self.name, self.is_merge, at)
    }

    /// Operators of the source at a place.
    pub(super) fn nodes<'p>(&'p self, place: &'p [NodeId]) -> impl Iterator<Item = NodeId> + 'p {
        self.nodes.iter().map(|id| place[id.0 as usize])
    }

    /// Existing nodes that stand for nodes of the target at a place.
    pub(super) fn reused<'p>(&'p self, place: &'p [NodeId]) -> impl ExactSizeIterator<Item = NodeId> + 'p {
        self.reused.iter().map(|id| place[id.0 as usize])
    }

    /// Nodes that the edit reads or puts in the place of others.
    pub(super) fn reads<'p>(&'p self, place: &'p [NodeId]) -> impl Iterator<Item = NodeId> + 'p {
        self.reads.iter().map(|id| place[id.0 as usize])
    }

    /// The nodes whose results are replaced.
    pub(super) fn roots<'p>(&'p self, place: &'p [NodeId]) -> impl Iterator<Item = NodeId> + 'p {
        self.patch.replace.iter().map(|(old, _)| place[old.node.0 as usize])
    }

    /// The edit, of numbered nodes.
    pub(super) fn edit(&self) -> &Patch {
        &self.patch
    }

    /// The edit at a place.
    pub(super) fn patch(&self, place: &[NodeId]) -> Patch {
        let mut patch = self.patch.clone();
        let here = |id: &mut NodeId| *id = place[id.0 as usize];
        let operands = patch.create.iter_mut().flat_map(|new| &mut new.inputs);
        for value in operands.chain(patch.replace.iter_mut().map(|(_, new)| new)) {
            if let PatchValue::Old(old) = value {
                here(&mut old.node);
            }
        }
        patch.replace.iter_mut().for_each(|(old, _)| here(&mut old.node));
        patch
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

fn distinct(ids: impl Iterator<Item = NodeId>) -> SmallVec<[NodeId; 8]> {
    let mut distinct: SmallVec<[NodeId; 8]> = ids.collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

fn renamed(patch: &Patch, name: &mut dyn FnMut(NodeId) -> Option<NodeId>) -> Option<Patch> {
    let mut patch = patch.clone();
    let mut value = |v: &mut PatchValue| {
        if let PatchValue::Old(v) = v {
            v.node = name(v.node)?;
        }
        Some(())
    };
    patch.create.iter_mut().flat_map(|new| &mut new.inputs).try_for_each(&mut value)?;
    patch.replace.iter_mut().try_for_each(|(_, new)| value(new))?;
    for (old, _) in &mut patch.replace {
        old.node = name(old.node)?;
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
