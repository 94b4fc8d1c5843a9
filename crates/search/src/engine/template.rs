//! `Template`: a rewrite of nodes that are known by number, at a place or another.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_ir::{Graph, NodeId, Patch, PatchValue, ValueId, View};
use regraft_rules::{Edit, Found, Rule};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::hash::core;

/// A rewrite at any place where the surroundings are as they were where it was found. Its nodes are
/// known by their numbers here; a [`Place`] says which ones they are.
#[derive(Debug)]
pub(super) struct Template {
    /// Index of the rule in the library.
    pub(super) rule: usize,
    /// Whether no matcher finds it: see [`Placed::given`].
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
}

/// The nodes that a template speaks of: by their ids, or by their numbers in the surroundings of an
/// anchor.
pub(super) type Place = SmallVec<[NodeId; 12]>;

/// A template at a place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) template: Arc<Template>,
    pub(super) place: Place,
}

/// Numbers nodes as they are met.
#[derive(Default)]
struct Members(Place);

impl Members {
    fn number(&mut self, id: &mut NodeId) {
        let at = self.0.iter().position(|known| known == id).unwrap_or_else(|| {
            self.0.push(*id);
            self.0.len() - 1
        });
        *id = NodeId(at as u32);
    }
}

impl Placed {
    /// The rewrite of a match, where it was found.
    pub(super) fn new(view: &dyn View, graph: &Graph, rule: usize, by: &Rule, found: Found, edit: Edit) -> Placed {
        let Edit { patch, reads_below, reused } = edit;
        let operands = || found.nodes.iter().flat_map(|n| graph.node(*n).inputs.iter());
        let template = Template {
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
        };
        Placed::numbered(template)
    }

    /// An edit that replaces these nodes, found by whatever means.
    pub(super) fn given(graph: &Graph, rule: usize, replaces: &[NodeId], edit: &Patch) -> Placed {
        let mut name = FxHasher::default();
        (&*edit.cause, edit.create.iter().map(|new| &new.op).collect::<Vec<_>>()).hash(&mut name);
        Placed::numbered(Template {
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
            nodes: SmallVec::from_slice(replaces),
            covers: edit.replace.iter().map(|(old, _)| *old).collect(),
            reads: distinct(edit.reads().map(|value| value.node)),
            patch: edit.clone(),
        })
    }

    /// A template whose nodes are ids so far.
    fn numbered(mut template: Template) -> Placed {
        let mut members = Members::default();
        template.nodes.iter_mut().for_each(|id| members.number(id));
        template.reused.iter_mut().for_each(|id| members.number(id));
        template.covers.iter_mut().for_each(|value| members.number(&mut value.node));
        template.reads.iter_mut().for_each(|id| members.number(id));
        rename(&mut template.patch, |id| members.number(id));
        Placed { template: Arc::new(template), place: members.0 }
    }

    /// The same where nodes go by other names; `None` if one of them has none.
    pub(super) fn renamed(&self, name: impl Fn(NodeId) -> Option<NodeId>) -> Option<Placed> {
        let place = self.place.iter().map(|id| name(*id)).collect::<Option<Place>>()?;
        Some(Placed { template: self.template.clone(), place })
    }

    /// Identity of the match.
    pub(super) fn identity(&self) -> u64 {
        self.template.identity(&self.place)
    }
}

impl Template {
    /// Identity of the match at a place.
    fn identity(&self, place: &[NodeId]) -> u64 {
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
        rename(&mut patch, |id| *id = place[id.0 as usize]);
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

/// Has a patch speak of other nodes.
fn rename(patch: &mut Patch, mut name: impl FnMut(&mut NodeId)) {
    let operands = patch.create.iter_mut().flat_map(|new| &mut new.inputs);
    for value in operands.chain(patch.replace.iter_mut().map(|(_, new)| new)) {
        if let PatchValue::Old(old) = value {
            name(&mut old.node);
        }
    }
    patch.replace.iter_mut().for_each(|(old, _)| name(&mut old.node));
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
