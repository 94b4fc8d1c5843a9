//! The engine that all strategies share: apply and undo, match index, state key, cost by deltas.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use regraft_cost::{CostModel, Ns};
use regraft_ir::{Applied, Graph, NodeId, Op, OpKind, Patch, PatchValue, TensorType, scramble};
use regraft_rules::{Found, Library, Rule};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

/// A rewrite that can be applied in the state in which it was found: one rule at one place.
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
    /// Readers of the result may depend on more than before: several roots became one, or an existing node is used again.
    adds_paths: bool,
    /// Readers of a result may depend on less than before: a root no longer depends on an operand of its source.
    drops_paths: bool,
    /// Identity of the place: rule, operators, reading of the operands.
    place: u64,
}

impl Move {
    /// Identity of the place: rule, operators, reading of the operands. The same in every run from the same graph, with whatever other rules.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// True if this move rewrites by `rule` what was found there, read like this.
    pub fn is_at(&self, rule: &Rule, found: &Found) -> bool {
        self.place == place(rule, found)
    }
}

/// Identity of a place: of a rule, by its name, and what it found. Libraries from which rules were left out have other indices.
fn place(rule: &Rule, found: &Found) -> u64 {
    let mut hasher = FxHasher::default();
    (&*rule.name, found.identity()).hash(&mut hasher);
    hasher.finish()
}

/// Counters of what the engine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Patches applied.
    pub applied: u64,
    /// Patches undone.
    pub undone: u64,
    /// Anchors at which rules were matched.
    pub anchors: u64,
    /// Matches found.
    pub matches: u64,
}

#[derive(Clone, Copy, Default)]
struct Facts {
    /// Hash of operator, attributes and operand types.
    core: u64,
    /// Structural identity: the core and the identities of the operands at creation.
    identity: u128,
    /// What this node adds to the state key under its present wiring.
    share: u128,
    price: Ns,
}

struct Step {
    applied: Applied,
    adds_paths: bool,
    drops_paths: bool,
    /// Facts of nodes that this step changed, before it: `(index, facts)`.
    before: SmallVec<[(u32, Facts); 16]>,
    key: u128,
    cost: Ns,
    outputs_share: u128,
}

/// A graph under rewriting.
pub struct Engine<'a> {
    graph: Graph,
    model: &'a dyn CostModel,
    facts: Vec<Facts>,
    prices: FxHashMap<u64, Ns>,
    key: u128,
    outputs_share: u128,
    cost: Ns,
    steps: Vec<Step>,
    counters: Counters,
}

impl<'a> Engine<'a> {
    /// Starts from a graph in normal form.
    pub fn new(graph: Graph, model: &'a dyn CostModel) -> Engine<'a> {
        let mut engine = Engine {
            facts: vec![Facts::default(); graph.capacity()],
            graph,
            model,
            prices: FxHashMap::default(),
            key: 0,
            outputs_share: 0,
            cost: model.overhead(),
            steps: Vec::new(),
            counters: Counters::default(),
        };
        for id in engine.graph.topological() {
            let node = engine.graph.node(id);
            let core = core(&node.op, node.inputs.iter().map(|v| engine.graph.ty(*v)));
            engine.admit(id, core);
            let price = engine.price(id);
            engine.facts[id.0 as usize].price = price;
            engine.cost = engine.cost.saturating_add(price);
        }
        for id in engine.graph.ids().collect::<Vec<_>>() {
            let share = engine.share(id);
            engine.facts[id.0 as usize].share = share;
            engine.key = engine.key.wrapping_add(share);
        }
        engine.outputs_share = engine.share_of_outputs();
        engine
    }

    /// The present graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its cost under the model.
    pub fn cost(&self) -> Ns {
        self.cost
    }

    /// The commutative 128-bit key of the present state: the same for every order of independent moves, and restored by inverse moves.
    pub fn key(&self) -> u128 {
        self.key.wrapping_add(self.outputs_share)
    }

    /// Number of moves applied and not undone.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Gives the graph back.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    pub(crate) fn count_matching(&mut self, anchors: u64, matches: u64) {
        self.counters.anchors += anchors;
        self.counters.matches += matches;
    }

    /// Applies a move found in this very state.
    pub fn apply(&mut self, step: &Move) {
        let (key, cost, outputs_share) = (self.key, self.cost, self.outputs_share);
        // Prices depend on producers and readers one hop away, so both sides of every changed edge are touched.
        let mut touched: SmallVec<[NodeId; 24]> = SmallVec::new();
        let applied = self.graph.apply(&step.patch);
        self.facts.resize(self.graph.capacity(), Facts::default());
        let mut before: SmallVec<[(u32, Facts); 16]> = SmallVec::new();
        for (id, node) in &applied.removed {
            let facts = std::mem::take(&mut self.facts[id.0 as usize]);
            self.key = self.key.wrapping_sub(facts.share);
            self.cost -= facts.price;
            before.push((id.0, facts));
            touched.extend(node.inputs.iter().map(|v| v.node));
        }
        for (created, core) in applied.created.iter().zip(&step.cores) {
            self.admit(*created, *core);
        }
        for created in &applied.created {
            touched.push(*created);
            touched.extend(self.graph.node(*created).inputs.iter().map(|v| v.node));
            touched.extend(self.graph.node(*created).users.iter().map(|(user, _)| *user));
        }
        for (reader, _, old) in &applied.rewired {
            touched.push(*reader);
            touched.push(old.node);
            // A value that was there before takes the place: its producer has more readers now.
            touched.extend(self.graph.get(*reader).into_iter().flat_map(|n| n.inputs.iter().map(|v| v.node)));
        }
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|id| self.graph.get(*id).is_some());
        // An operator that lost or gained a reader may have its only one now, or no longer: that changes what the others cost.
        for at in 0..touched.len() {
            let node = self.graph.node(touched[at]);
            if !node.constant {
                touched.extend(node.users.iter().map(|(user, _)| *user));
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for id in &touched {
            let now = self.facts[id.0 as usize];
            let (share, price) = (self.share(*id), self.price(*id));
            if !applied.created.contains(id) {
                before.push((id.0, now));
            }
            self.key = self.key.wrapping_add(share).wrapping_sub(now.share);
            self.cost = self.cost - now.price + price;
            let facts = &mut self.facts[id.0 as usize];
            facts.share = share;
            facts.price = price;
        }
        if !applied.outputs.is_empty() {
            self.outputs_share = self.share_of_outputs();
        }
        self.counters.applied += 1;
        let (adds_paths, drops_paths) = (step.adds_paths, step.drops_paths);
        self.steps.push(Step { applied, adds_paths, drops_paths, before, key, cost, outputs_share });
    }

    /// What a move looks like: equal for moves of one rule at places whose operators, operand types and near surroundings are alike.
    pub fn kind_of(&self, step: &Move) -> u64 {
        let mut hasher = FxHasher::default();
        step.rule.hash(&mut hasher);
        step.cores.as_slice().hash(&mut hasher);
        for id in &step.nodes {
            self.facts[id.0 as usize].core.hash(&mut hasher);
            let node = self.graph.node(*id);
            for value in &node.inputs {
                self.facts[value.node.0 as usize].core.hash(&mut hasher);
            }
            let readers = node
                .users
                .iter()
                .fold(0u64, |sum, (user, slot)| sum.wrapping_add(self.facts[user.0 as usize].core.wrapping_mul(2 * u64::from(*slot) + 1)));
            readers.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Undoes the latest move; false at the start state.
    pub fn undo(&mut self) -> bool {
        let Some(step) = self.steps.pop() else { return false };
        self.graph.undo(step.applied);
        self.facts.truncate(self.graph.capacity());
        for (at, facts) in step.before {
            self.facts[at as usize] = facts;
        }
        (self.key, self.cost, self.outputs_share) = (step.key, step.cost, step.outputs_share);
        self.counters.undone += 1;
        true
    }

    /// Nodes that the latest move created, rewired, or whose readers it changed.
    pub fn dirty(&self) -> SmallVec<[NodeId; 24]> {
        let mut dirty: SmallVec<[NodeId; 24]> = SmallVec::new();
        let Some(step) = self.steps.last() else { return dirty };
        dirty.extend(step.applied.created.iter().copied());
        for created in &step.applied.created {
            dirty.extend(self.graph.get(*created).into_iter().flat_map(|n| n.inputs.iter().map(|v| v.node)));
        }
        for (reader, _, old) in &step.applied.rewired {
            dirty.push(*reader);
            dirty.push(old.node);
            dirty.extend(self.graph.get(*reader).into_iter().flat_map(|n| n.inputs.iter().map(|v| v.node)));
        }
        for (id, node) in &step.applied.removed {
            dirty.push(*id);
            dirty.extend(node.inputs.iter().map(|v| v.node));
        }
        for (index, old) in &step.applied.outputs {
            dirty.push(old.node);
            dirty.push(self.graph.outputs()[*index].value.node);
        }
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    /// Records a node's core and identity.
    fn admit(&mut self, id: NodeId, core: u64) {
        let node = self.graph.node(id);
        let mut identity = mix(u128::from(core) | (u128::from(!core) << 64));
        if matches!(node.op, Op::Constant(_)) {
            identity = mix(identity);
        }
        for value in &node.inputs {
            identity = mix(identity.rotate_left(7) ^ self.facts[value.node.0 as usize].identity.wrapping_add(u128::from(value.port)));
        }
        self.facts[id.0 as usize].core = core;
        self.facts[id.0 as usize].identity = identity;
    }

    /// Identity and present wiring of a node.
    fn share(&self, id: NodeId) -> u128 {
        let mut share = self.facts[id.0 as usize].identity;
        for value in &self.graph.node(id).inputs {
            share = mix(share.rotate_left(11) ^ self.facts[value.node.0 as usize].identity.wrapping_add(u128::from(value.port) << 3));
        }
        mix(share)
    }

    fn share_of_outputs(&self) -> u128 {
        self.graph.outputs().iter().enumerate().fold(0u128, |sum, (at, output)| {
            let identity = self.facts[output.value.node.0 as usize].identity;
            sum.wrapping_add(mix(identity.wrapping_mul(2 * at as u128 + 3).wrapping_add(u128::from(output.value.port))))
        })
    }

    /// The price of a node, remembered by its core and the kinds around it.
    fn price(&mut self, id: NodeId) -> Ns {
        let node = self.graph.node(id);
        if node.constant || matches!(node.op.kind(), OpKind::Input) {
            return 0;
        }
        let mut hasher = FxHasher::default();
        self.facts[id.0 as usize].core.hash(&mut hasher);
        for value in &node.inputs {
            let producer = self.graph.node(value.node);
            (producer.op.kind() as u8, producer.constant, producer.users.len() == 1).hash(&mut hasher);
        }
        let readers = node.users.iter().fold(0u64, |sum, (user, slot)| {
            let mut one = FxHasher::default();
            (self.graph.node(*user).op.kind() as u8, *slot).hash(&mut one);
            sum.wrapping_add(one.finish())
        });
        (readers, self.graph.feeds_output(id)).hash(&mut hasher);
        let seen = hasher.finish();
        if let Some(price) = self.prices.get(&seen) {
            return *price;
        }
        let price = self.model.price(&self.graph, id);
        self.prices.insert(seen, price);
        price
    }
}

/// All moves of the present state, found from scratch.
pub fn all_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>) -> Vec<Arc<Move>> {
    let anchors: Vec<(NodeId, usize)> = engine.graph.ids().map(|id| (id, 0)).collect();
    let mut seen = rustc_hash::FxHashSet::default();
    let moves = matcher.at(&engine.graph, &anchors, Which::All, &mut seen);
    engine.count_matching(anchors.len() as u64, moves.len() as u64);
    moves
}

/// The moves of the present state, from those of the state before the latest move: those that it touched are dropped, and rules are
/// matched again only around the change.
pub fn next_moves(engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, before: &[Arc<Move>]) -> Vec<Arc<Move>> {
    let dirty = engine.dirty();
    // Only a move with several roots can close a cycle, and only through a path that a later move added.
    let merged = engine.steps.last().is_some_and(|s| s.adds_paths);
    let graph = &engine.graph;
    let ranks = if merged { graph.ranks() } else { Vec::new() };
    let touched = |id: &NodeId| dirty.binary_search(id).is_ok();
    // Targets use nodes again that exist: one that came or went changes the edit at places that the change does not touch.
    let outdated = |m: &Move| {
        m.patch.reads().any(|v| graph.get(v.node).is_none())
            || m.patch.create.iter().any(|new| {
                matches!(new.inputs.first(), Some(PatchValue::Old(v)) if touched(&v.node))
                    && regraft_rules::twin(graph, &new.op, &new.inputs).is_some()
            })
    };
    let mut moves: Vec<Arc<Move>> = Vec::with_capacity(before.len());
    let mut again: Vec<NodeId> = Vec::new();
    for m in before {
        let operand_touched = || m.nodes.iter().any(|id| graph.node(*id).inputs.iter().any(|v| touched(&v.node)));
        if m.nodes.iter().any(touched) || (operand_touched() && matcher.library.rules()[m.rule].asks_for_readers()) {
            continue;
        }
        if outdated(m) {
            again.extend(m.patch.replace.iter().map(|(old, _)| old.node));
        } else if !(merged && m.patch.replace.len() > 1 && regraft_rules::makes_cycle(graph, &m.patch, Some(&ranks))) {
            moves.push(m.clone());
        }
    }
    // A match is anchored at its root; a change further above the root than the pattern is deep does not touch it.
    let mut distance: FxHashMap<NodeId, usize> = dirty.iter().filter(|id| engine.graph.get(**id).is_some()).map(|id| (*id, 0)).collect();
    let mut frontier: Vec<NodeId> = distance.keys().copied().collect();
    for far in 1..matcher.radius {
        let mut next = Vec::new();
        for id in frontier {
            for (user, _) in &engine.graph.node(id).users {
                if let std::collections::hash_map::Entry::Vacant(entry) = distance.entry(*user) {
                    entry.insert(far);
                    next.push(*user);
                }
            }
        }
        frontier = next;
    }
    distance.extend(again.into_iter().map(|id| (id, 0)));
    let mut anchors: Vec<(NodeId, usize)> = distance.into_iter().collect();
    anchors.sort_unstable();
    let mut known: rustc_hash::FxHashSet<u64> = moves.iter().map(|m| m.place).collect();
    let mut found = matcher.at(&engine.graph, &anchors, Which::All, &mut known);
    let mut looked = anchors.len();
    if let Some(step) = engine.steps.last().filter(|s| s.drops_paths) {
        // A merge that would have closed a cycle through the dropped path may be possible now, however far below.
        let below = descendants(&engine.graph, step.applied.rewired.iter().map(|(reader, ..)| *reader));
        found.extend(matcher.at(&engine.graph, &below, Which::Merges, &mut known));
        looked += below.len();
    }
    engine.count_matching(looked as u64, found.len() as u64);
    moves.extend(found);
    moves
}

/// These nodes and all that depend on them, as anchors.
fn descendants(graph: &Graph, from: impl Iterator<Item = NodeId>) -> Vec<(NodeId, usize)> {
    let mut stack: Vec<NodeId> = from.filter(|id| graph.get(*id).is_some()).collect();
    let mut reached = rustc_hash::FxHashSet::default();
    while let Some(id) = stack.pop() {
        if reached.insert(id) {
            stack.extend(graph.node(id).users.iter().map(|(user, _)| *user));
        }
    }
    let mut anchors: Vec<(NodeId, usize)> = reached.into_iter().map(|id| (id, 0)).collect();
    anchors.sort_unstable();
    anchors
}

/// Which rules to match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those with several roots.
    Merges,
}

/// Matches the rules of a library, and remembers why sources were not rewritten.
pub struct Matcher<'a> {
    library: &'a Library,
    writable: &'a dyn regraft_rules::Writable,
    radius: usize,
    /// Sources that were found but not rewritten: `(rule, why)`, and at which places.
    pub refusals: std::collections::BTreeMap<(String, String), std::collections::BTreeSet<String>>,
}

impl<'a> Matcher<'a> {
    /// A matcher for these rules, writing only what `writable` accepts.
    pub fn new(library: &'a Library, writable: &'a dyn regraft_rules::Writable) -> Matcher<'a> {
        Matcher { library, writable, radius: library.radius(), refusals: Default::default() }
    }

    /// The rules.
    pub fn library(&self) -> &'a Library {
        self.library
    }

    /// Moves whose root is one of `anchors`, each place once; an anchor's distance says how deep a pattern must be to be of interest.
    fn at(&mut self, graph: &Graph, anchors: &[(NodeId, usize)], which: Which, seen: &mut rustc_hash::FxHashSet<u64>) -> Vec<Arc<Move>> {
        let mut moves = Vec::new();
        for (anchor, distance) in anchors {
            let node = graph.node(*anchor);
            if node.constant {
                continue;
            }
            for roots in self.library.rooted_at(node.op.kind()).chunk_by(|a, b| a.rule == b.rule) {
                let (at, rule) = (roots[0].rule, &self.library.rules()[roots[0].rule]);
                if roots.iter().all(|r| r.depth <= *distance) || (which == Which::Merges && rule.source.len() == 1) {
                    continue;
                }
                let mut sources: Vec<_> =
                    roots.iter().flat_map(|rooted| regraft_rules::sources_at(graph, rule, rooted.root, *anchor)).collect();
                // Of the ways to read a symmetric merge one counts: the same one, whichever of its roots is the anchor.
                if roots.len() > 1 {
                    sources.sort_by(|a, b| a.roots.cmp(&b.roots));
                }
                for mut found in sources {
                    let place = place(rule, &found);
                    if seen.contains(&place) || !regraft_rules::accept(graph, rule, &mut found) {
                        continue;
                    }
                    match regraft_rules::instantiate(graph, rule, &found, self.writable) {
                        Ok(patch) => {
                            seen.insert(place);
                            let operands = || found.nodes.iter().flat_map(|n| graph.node(*n).inputs.iter());
                            let adds_paths = patch.replace.len() > 1 || patch.reads().any(|v| !operands().any(|o| *o == v));
                            let drops_paths = drops_paths(graph, &found.nodes, &patch);
                            let cores = cores(graph, &patch);
                            moves.push(Arc::new(Move { rule: at, nodes: found.nodes, patch, cores, adds_paths, drops_paths, place }));
                        }
                        Err(regraft_rules::Refusal::Guard | regraft_rules::Refusal::Nothing) => {}
                        Err(why) => self.refuse(graph, *anchor, &rule.name, why.to_string()),
                    }
                }
            }
        }
        moves
    }

    /// Remembers why a source was not rewritten, once for each place.
    fn refuse(&mut self, graph: &Graph, anchor: NodeId, rule: &str, why: String) {
        let node = graph.node(anchor);
        let name = node.names.iter().flatten().next();
        let place = name.map_or_else(|| format!("{}#{}", node.op.kind().name(), anchor.0), |n| n.to_string());
        self.refusals.entry((rule.to_string(), why)).or_default().insert(place);
    }
}

/// True if a replaced value depended, through the operators of the source, on an operand that what takes its place does not read.
fn drops_paths(graph: &Graph, source: &[NodeId], patch: &Patch) -> bool {
    patch.replace.iter().any(|(old, new)| {
        let (before, after) = (operands(graph, source, patch, PatchValue::Old(*old)), operands(graph, source, patch, *new));
        before.iter().any(|id| !after.contains(id))
    })
}

/// The nodes outside of the source and the new ones that a value is computed from; constants do not count.
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

/// Hash of an operator, its attributes and its operand types; stable within a process and between runs.
fn core<'t>(op: &Op, types: impl Iterator<Item = Option<&'t TensorType>>) -> u64 {
    let mut hasher = Stable(xxhash_rust::xxh3::Xxh3::new());
    op.hash(&mut hasher);
    for ty in types {
        ty.hash(&mut hasher);
    }
    hasher.finish()
}

struct Stable(xxhash_rust::xxh3::Xxh3);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// Scrambles 128 bits (two rounds of a 64-bit finalizer, crossed).
fn mix(x: u128) -> u128 {
    let (low, high) = (x as u64, (x >> 64) as u64);
    let a = scramble(low.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ high.rotate_left(29));
    let b = scramble(high.wrapping_add(0xd1b5_4a32_d192_ed03).wrapping_add(a));
    (u128::from(b) << 64) | u128::from(a ^ b.rotate_left(17))
}
