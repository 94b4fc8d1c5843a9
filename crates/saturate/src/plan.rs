//! `Plan`: how an engine gets from its graph to an extraction.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_ir::key::op_key;
use regraft_ir::{NewNode, NodeId, OpKind, Patch, PatchValue, ValueId};
use regraft_rules::{accept, closes_cycle, edit, sources_at, twin};
use regraft_search::{Engine, Move};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::{SmallVec, smallvec};

use crate::forest::Reason;
use crate::grow::Growth;
use crate::moved::{Moved, moved};
use crate::space::{Class, Space};

/// What a step that takes several rewrites is called.
pub const CAUSE: &str = "saturate";
/// A step of more rewrites is not taken one by one.
const REPLAYED: usize = 64;
/// Longest path through the nodes that a step replaces.
const DEEP: usize = 16;
/// Most nodes looked at to find those that a step replaces.
const WIDE: usize = 400;

/// Steps from the graph that an e-graph began with to one of its extractions.
///
/// Classes are taken care of one after the other, operands first. Where the graph computes a value
/// of a class by another node than the chosen one, a step puts what was chosen in its place: it
/// reads only what was chosen before, so no step closes a cycle. Each step is true by itself; the
/// rewrites that made the two equal are what it is called after.
pub struct Plan {
    /// The steps.
    pub moves: Vec<Arc<Move>>,
    /// The node of the engine's graph that each chosen e-node has become.
    pub nodes: FxHashMap<NodeId, NodeId>,
}

impl Plan {
    /// The steps to these values, one for each class that the outputs need, operands first. They
    /// are applied to the engine, whose graph is the one that the e-graph began with.
    pub fn follow(growth: &Growth<'_>, chosen: &[ValueId], engine: &mut Engine<'_>) -> Plan {
        let space = growth.space();
        let by: FxHashMap<Class, ValueId> = chosen.iter().map(|value| (space.class(*value), *value)).collect();
        let mut live: FxHashMap<Class, SmallVec<[ValueId; 1]>> = FxHashMap::default();
        for id in engine.graph().ids() {
            for port in 0..engine.graph().node(id).types.len() as u32 {
                live.entry(space.class(id.port(port))).or_default().push(id.port(port));
            }
        }
        let moved = moved(space, chosen, &by, &live);
        let mut planner = Planner { growth, by, become_of: FxHashMap::default(), moved: FxHashSet::default(), moves: Vec::new() };
        for value in chosen {
            let class = space.class(*value);
            if let Some(olds) = live.get(&class) {
                planner.replace(*value, olds, engine);
            }
            for moved in moved.get(&class).into_iter().flatten() {
                planner.move_to(moved, *value, &live[&moved.class], engine);
            }
        }
        let mut plan = Plan { moves: planner.moves, nodes: planner.become_of };
        plan.nodes.retain(|_, id| engine.graph().get(*id).is_some());
        plan
    }
}

struct Planner<'p, 'r> {
    growth: &'p Growth<'r>,
    /// What was chosen for each class.
    by: FxHashMap<Class, ValueId>,
    /// The node of the engine's graph that each e-node has become.
    become_of: FxHashMap<NodeId, NodeId>,
    /// Classes that were not chosen, whose values are by now what was chosen for others, moved.
    moved: FxHashSet<Class>,
    moves: Vec<Arc<Move>>,
}

/// An edit that is being made.
#[derive(Default)]
struct Draft {
    create: Vec<NewNode>,
    /// The e-nodes that are made.
    of: Vec<NodeId>,
}

impl Planner<'_, '_> {
    /// Puts a chosen value in the place of others of its class.
    fn replace(&mut self, value: ValueId, olds: &[ValueId], engine: &mut Engine<'_>) {
        let mut draft = Draft::default();
        let new = at_port(self.realize(value.node, engine, &mut draft), value.port);
        let replace = replacements(engine, olds, new);
        if replace.is_empty() {
            return;
        }
        let rewrites = self.rewrites(value, &draft.of, &replace);
        if (2..=REPLAYED).contains(&rewrites.len()) && self.replayed(value, olds, &rewrites, engine) {
            return;
        }
        self.take(draft, replace, &rewrites, engine);
    }

    /// Puts a chosen value, moved, in the place of others.
    fn move_to(&mut self, moved: &Moved, chosen: ValueId, olds: &[ValueId], engine: &mut Engine<'_>) {
        let operand = at_port(self.realize(chosen.node, engine, &mut Draft::default()), chosen.port);
        let first = olds.iter().find(|old| engine.graph().get(old.node).is_some());
        let (Some(first), PatchValue::Old(_)) = (first, operand) else { return };
        let (inputs, types) = (smallvec![operand], smallvec![engine.graph().ty(*first).cloned()]);
        let mut draft = Draft::default();
        let new = match twin(engine.graph(), &moved.op, &inputs) {
            Some(known) => PatchValue::Old(known.out()),
            None => {
                draft.create.push(NewNode::new(moved.op.clone(), inputs, types));
                PatchValue::New { index: 0, port: 0 }
            }
        };
        let replace = replacements(engine, olds, new);
        if replace.is_empty() {
            return;
        }
        let told = if self.growth.space().class(moved.by.out()) == moved.class { *first } else { chosen };
        let rewrites = self.rewrites(moved.by.out(), &[], &[(told, new)]);
        self.take(draft, replace, &rewrites, engine);
        self.moved.insert(moved.class);
    }

    /// Takes the step of an edit.
    fn take(&mut self, draft: Draft, replace: SmallVec<[(ValueId, PatchValue); 2]>, rewrites: &[u32], engine: &mut Engine<'_>) {
        let rules = self.growth.rules().rules();
        let last = rewrites.last().map_or(0, |number| self.growth.applied()[*number as usize].rule);
        let cause = if rewrites.len() == 1 { rules[last].name.clone() } else { CAUSE.into() };
        let patch = Patch { cause, create: draft.create, replace };
        let step = Arc::new(match self.ordinary(engine, &patch, rewrites) {
            Some(step) => step,
            None => Move::given(engine.graph(), last, &self.matched(engine, &patch, rewrites), &patch),
        });
        engine.apply(&step);
        let (own, made) = (made(&patch), made(step.patch()));
        for (id, own) in draft.of.into_iter().zip(own) {
            if let Some(at) = made.iter().position(|made| *made == own) {
                self.become_of.insert(id, engine.created()[at]);
            }
        }
        self.moves.push(step);
    }

    /// The first result of what computes a chosen e-node, from what was chosen for its operands.
    fn realize(&mut self, id: NodeId, engine: &Engine<'_>, draft: &mut Draft) -> PatchValue {
        if let Some(known) = self.become_of.get(&id).filter(|known| engine.graph().get(**known).is_some()) {
            return PatchValue::Old(known.out());
        }
        if let Some(at) = draft.of.iter().position(|known| *known == id) {
            return PatchValue::New { index: at as u32, port: 0 };
        }
        let space = self.growth.space();
        let node = space.graph().node(id);
        let operand = |planner: &mut Self, draft: &mut Draft, value: &ValueId| {
            let by = planner.by.get(&space.class(*value)).copied().unwrap_or(*value);
            at_port(planner.realize(by.node, engine, draft), by.port)
        };
        let mut inputs: SmallVec<[PatchValue; 3]> = SmallVec::new();
        for value in &node.inputs {
            let operand = operand(self, draft, value);
            inputs.push(operand);
        }
        let is_there = engine.graph().get(id).is_some() && space.is_original(id);
        let known = if node.inputs.is_empty() { is_there.then_some(id) } else { twin(engine.graph(), &node.op, &inputs) };
        if let Some(known) = known {
            self.become_of.insert(id, known);
            return PatchValue::Old(known.out());
        }
        draft.create.push(NewNode { computation: node.computation.clone(), inputs });
        draft.of.push(id);
        PatchValue::New { index: draft.of.len() as u32 - 1, port: 0 }
    }

    /// The rewrites that made a chosen value, with the e-nodes that are `made` for it, equal to
    /// those that it replaces, in order.
    fn rewrites(&self, value: ValueId, made: &[NodeId], replace: &[(ValueId, PatchValue)]) -> Vec<u32> {
        let space = self.growth.space();
        let number = |value: &ValueId| space.number(*value);
        let mut found: FxHashSet<u32> = FxHashSet::default();
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut open: Vec<(u32, u32)> = replace.iter().map(|(old, _)| (number(old), number(&value))).collect();
        let is_open = |(a, b): &(u32, u32)| !self.is_done(*a, *b);
        // What is made reads what was chosen, and not what its e-node was made from.
        let inputs = made.iter().chain([&value.node]).flat_map(|id| &space.graph().node(*id).inputs);
        let chosen = inputs.filter_map(|input| Some((number(input), number(self.by.get(&space.class(*input))?))));
        open.extend(chosen.filter(is_open));
        while let Some((a, b)) = open.pop() {
            if a == b || !seen.insert((a.min(b), a.max(b))) {
                continue;
            }
            for (_, reason) in space.forest().path(a, b) {
                match reason {
                    Reason::Rule(rewrite) if found.insert(rewrite) => {
                        // Its source was read by other e-nodes, perhaps, than it was made from.
                        for (id, read) in &self.growth.applied()[rewrite as usize].source {
                            let own = &space.graph().node(*id).inputs;
                            open.extend(own.iter().map(number).zip(read.iter().map(number)).filter(is_open));
                        }
                    }
                    Reason::Rule(_) => {}
                    Reason::Congruent(x, y) => open.extend(operands(space, x, y).filter(is_open)),
                }
            }
        }
        let mut found: Vec<u32> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    /// Whether two equal values are the same by now: both are in the engine's graph, or chosen, and
    /// a step before this one has put what was chosen in the place of the other.
    fn is_done(&self, a: u32, b: u32) -> bool {
        let space = self.growth.space();
        let class = space.class(space.numbered(a));
        let chosen = self.by.get(&class);
        let is_there = |number: u32| {
            let value = space.numbered(number);
            space.is_original(value.node) || chosen == Some(&value)
        };
        (chosen.is_some() || self.moved.contains(&class)) && is_there(a) && is_there(b)
    }

    /// The move of a rule that does what a step of one rewrite does, if its match is there. It may
    /// do more: a merge replaces several values.
    fn ordinary(&self, engine: &Engine<'_>, patch: &Patch, rewrites: &[u32]) -> Option<Move> {
        let [number] = *rewrites else { return None };
        let wanted = meaning(patch);
        let does = |edit: &Patch| {
            let done = meaning(edit);
            wanted.iter().all(|one| done.contains(one))
        };
        self.again(engine, number, &FxHashMap::default(), &does)
    }

    /// The move of a rewrite whose source is in the engine's graph, and whose edit is as wanted.
    fn again(
        &self,
        engine: &Engine<'_>,
        number: u32,
        passing: &FxHashMap<NodeId, NodeId>,
        is_wanted: &dyn Fn(&Patch) -> bool,
    ) -> Option<Move> {
        let (graph, application) = (engine.graph(), &self.growth.applied()[number as usize]);
        let rule = &self.growth.rules().rules()[application.rule];
        let source: Vec<NodeId> = application.source.iter().map(|(id, _)| self.here(engine, *id, passing)).collect::<Option<_>>()?;
        let found = (0..rule.source.len()).flat_map(|root| sources_at(graph, rule, root, source[0]));
        found.filter(|found| found.nodes.as_slice() == source).find_map(|mut found| {
            let edit = accept(graph, rule, &mut found).then(|| edit(graph, rule, &found, self.growth.writable()).ok())??;
            let is_possible = is_wanted(&edit.patch) && !(edit.reads_below && closes_cycle(graph, &edit.patch));
            // Where others read values within the source, no matcher finds it.
            let is_match = self.growth.rules().is_shared(application.rule) || found.is_private(graph, rule);
            is_possible.then(|| match is_match {
                true => Move::of_match(graph, application.rule, rule, found, edit),
                false => Move::given(graph, application.rule, &found.nodes, &edit.patch),
            })
        })
    }

    /// The node of the engine's graph that an e-node is.
    fn here(&self, engine: &Engine<'_>, id: NodeId, passing: &FxHashMap<NodeId, NodeId>) -> Option<NodeId> {
        let known = passing.get(&id).or_else(|| self.become_of.get(&id)).copied();
        let here = known.or_else(|| self.growth.space().is_original(id).then_some(id));
        here.filter(|here| engine.graph().get(*here).is_some())
    }

    /// Applies several rewrites as moves of their rules, one after the other, if all their matches
    /// are there, and if they lead from `olds` to `value`. Otherwise nothing happens.
    fn replayed(&mut self, value: ValueId, olds: &[ValueId], rewrites: &[u32], engine: &mut Engine<'_>) -> bool {
        let depth = engine.depth();
        let (mut moves, mut passing) = (Vec::new(), FxHashMap::default());
        for number in rewrites {
            let Some(step) = self.again(engine, *number, &passing, &|_| true) else { break };
            engine.apply(&step);
            let application = &self.growth.applied()[*number as usize];
            let mut left: Vec<(NodeId, &NewNode)> = engine.created().iter().copied().zip(&step.patch().create).collect();
            for (id, new) in self.growth.made(*number).iter().zip(&application.patch.create) {
                if let Some(at) = left.iter().position(|(_, made)| made.op == new.op) {
                    passing.insert(*id, left.remove(at).0);
                }
            }
            moves.push(Arc::new(step));
        }
        let mut draft = Draft::default();
        let known = self.become_of.clone();
        let is_there = moves.len() == rewrites.len() && {
            let new = at_port(self.realize(value.node, engine, &mut draft), value.port);
            draft.create.is_empty() && olds.iter().all(|old| engine.graph().get(old.node).is_none() || PatchValue::Old(*old) == new)
        };
        if is_there {
            self.moves.extend(moves);
        } else {
            engine.rewind(depth);
            self.become_of = known;
        }
        is_there
    }

    /// What a step replaces: the source of its rewrite; if there are several, or it is not there,
    /// the nodes between the values that it reads and those in whose place it puts others as well.
    fn matched(&self, engine: &Engine<'_>, patch: &Patch, rewrites: &[u32]) -> Vec<NodeId> {
        let sources = rewrites.iter().flat_map(|number| &self.growth.applied()[*number as usize].source);
        let sources: Vec<Option<NodeId>> = sources.map(|(id, _)| self.here(engine, *id, &FxHashMap::default())).collect();
        let is_plain = rewrites.len() == 1 && sources.iter().all(Option::is_some);
        let mut matched = if is_plain { Vec::new() } else { between(engine, patch) };
        let olds = patch.replace.iter().map(|(old, _)| old.node);
        for id in olds.chain(sources.into_iter().flatten()) {
            if !matched.contains(&id) {
                matched.push(id);
            }
        }
        if !is_plain {
            // What an operand is by a sum or a product may be what the step is about; a convolution
            // is not. What nothing replaced reads is shown with all that leads to it.
            let graph = engine.graph();
            let is_light = |kind: OpKind| kind.elementwise() || kind.moves_elements();
            let is_operand = |value: &ValueId| matched.iter().any(|id| graph.node(*id).inputs.contains(value));
            let is_new = |id: &NodeId| !matched.contains(id) && !graph.node(*id).constant && is_light(graph.node(*id).op.kind());
            let light: BTreeSet<NodeId> = patch.reads().filter(is_operand).map(|value| value.node).filter(is_new).collect();
            matched.extend(light);
        }
        matched
    }
}

/// A value in the place of those of others that are still there.
fn replacements(engine: &Engine<'_>, olds: &[ValueId], new: PatchValue) -> SmallVec<[(ValueId, PatchValue); 2]> {
    let is_other = |old: &&ValueId| engine.graph().get(old.node).is_some() && PatchValue::Old(**old) != new;
    olds.iter().filter(is_other).map(|old| (*old, new)).collect()
}

/// A result of a node, by another one.
fn at_port(value: PatchValue, port: u32) -> PatchValue {
    match value {
        PatchValue::Old(value) => PatchValue::Old(value.node.port(port)),
        PatchValue::New { index, .. } => PatchValue::New { index, port },
    }
}

/// What an edit puts in the place of what, whatever the order in which it makes nodes.
fn meaning(patch: &Patch) -> Vec<(ValueId, u64)> {
    let made = made(patch);
    let mut meaning: Vec<(ValueId, u64)> = patch.replace.iter().map(|(old, new)| (*old, hash_of(&made, new))).collect();
    meaning.sort_unstable();
    meaning
}

/// A hash of what each new node computes.
fn made(patch: &Patch) -> Vec<u64> {
    let mut made: Vec<u64> = Vec::with_capacity(patch.create.len());
    for new in &patch.create {
        let mut hasher = FxHasher::default();
        op_key(&new.op).hash(&mut hasher);
        new.inputs.iter().for_each(|input| hash_of(&made, input).hash(&mut hasher));
        made.push(hasher.finish());
    }
    made
}

/// A hash of a value, by those of the new nodes.
fn hash_of(made: &[u64], value: &PatchValue) -> u64 {
    let mut hasher = FxHasher::default();
    match value {
        PatchValue::Old(value) => (0, value.node.0, value.port).hash(&mut hasher),
        PatchValue::New { index, port } => (1, made[*index as usize], *port).hash(&mut hasher),
    }
    hasher.finish()
}

/// Operands of congruent nodes, in pairs of equal ones.
fn operands(space: &Space, x: NodeId, y: NodeId) -> impl Iterator<Item = (u32, u32)> + '_ {
    let (x, y) = (&space.graph().node(x).inputs, &space.graph().node(y).inputs);
    let is_swapped = x.len() == 2 && space.class(x[0]) != space.class(y[0]);
    let other = move |at: usize| if is_swapped { y[1 - at] } else { y[at] };
    x.iter().enumerate().map(move |(at, value)| (space.number(*value), space.number(other(at))))
}

/// The nodes between the values that an edit reads and those in whose place it puts others.
fn between(engine: &Engine<'_>, patch: &Patch) -> Vec<NodeId> {
    let graph = engine.graph();
    let read: FxHashSet<ValueId> = patch.reads().collect();
    let mut all: Vec<NodeId> = Vec::new();
    for (old, _) in &patch.replace {
        // Layer by layer upwards, and from what is read down again.
        let mut layers = vec![vec![old.node]];
        let mut count = 1;
        let mut seen: FxHashSet<NodeId> = FxHashSet::from_iter([old.node]);
        while layers.len() < DEEP && count < WIDE {
            let last = layers.last().into_iter().flatten();
            let above =
                last.flat_map(|id| graph.node(*id).inputs.iter()).filter(|value| !read.contains(value) && !graph.is_constant(**value));
            let next: Vec<NodeId> = above.map(|value| value.node).filter(|id| seen.insert(*id)).collect();
            if next.is_empty() {
                break;
            }
            count += next.len();
            layers.push(next);
        }
        let mut inside: FxHashSet<NodeId> = FxHashSet::default();
        for layer in layers.iter().rev() {
            let reads = |id: &&NodeId| graph.node(**id).inputs.iter().any(|value| read.contains(value) || inside.contains(&value.node));
            let found: Vec<NodeId> = layer.iter().filter(reads).copied().collect();
            inside.extend(found);
        }
        inside.insert(old.node);
        let mut inside: Vec<NodeId> = inside.into_iter().collect();
        // The replaced node comes first.
        inside.sort_unstable_by_key(|id| (*id != old.node, *id));
        inside.retain(|id| !all.contains(id));
        all.extend(inside);
    }
    all
}
