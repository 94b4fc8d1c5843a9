//! One step: a law applied at one place, in either direction.

use regraft_ir::{Graph, NodeId, Op, ValueId, canonical_key, normal};
use regraft_rules::rule::Rule;
use regraft_rules::{Anything, Found, Library, instantiate, matches_at};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::laws::{Laws, anchors};

/// A graph that a law leads to.
pub(crate) struct Move {
    /// The graph, in normal form.
    pub graph: Graph,
    /// Its key.
    pub key: u128,
    /// The law's name.
    pub law: std::sync::Arc<str>,
    /// Whether the law was read from right to left.
    pub reversed: bool,
}

/// Normalizes `graph` in place, and returns the key of its normal form.
pub(crate) fn normalize(graph: &mut Graph) -> u128 {
    normal::dce(graph);
    normal::cse(graph);
    canonical_key(graph)
}

/// The result of one application of a rule, if it fits there.
fn apply(graph: &Graph, rule: &Rule, found: &Found, most: usize) -> Option<(Graph, u128)> {
    let patch = instantiate(graph, rule, found, &Anything).ok()?;
    if patch.create.len() > most {
        return None;
    }
    let mut next = graph.clone();
    next.apply(&patch);
    let key = normalize(&mut next);
    (next.len() <= most).then_some((next, key))
}

/// All applications of the rules of a library, as written.
///
/// A pattern of several operators does not fit where two of them are one in the graph, and a value
/// with several readers is rewritten for all of them. With `copies`, single readers of a shared
/// operator get their own copy, one reader at a time, which lifts both limits.
fn applications(graph: &Graph, library: &Library, copies: bool, most: usize, into: &mut dyn FnMut(&Rule, Graph, u128)) {
    let mut on = |graph: &Graph| {
        for (id, rule, root) in anchors(library, graph) {
            for found in matches_at(graph, rule, root, id) {
                if let Some((next, key)) = apply(graph, rule, &found, most) {
                    into(rule, next, key);
                }
            }
        }
    };
    on(graph);
    if !copies {
        return;
    }
    for id in graph.ids() {
        let node = graph.node(id);
        let shared = node.users.len() + usize::from(graph.feeds_output(id)) > 1;
        if shared && !node.inputs.is_empty() {
            node.users.iter().for_each(|(reader, slot)| on(&with_copy(graph, id, *reader, *slot)));
        }
    }
}

/// The graph in which one operand of `reader` is computed by a copy of its node.
fn with_copy(graph: &Graph, id: NodeId, reader: NodeId, slot: u32) -> Graph {
    let mut copied = Graph::new(&graph.name);
    let mut values: FxHashMap<ValueId, ValueId> = FxHashMap::default();
    for at in graph.topological() {
        let node = graph.node(at);
        let mut inputs: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|v| values[v]).collect();
        if at == reader {
            let own = graph.node(id);
            let operands: SmallVec<[ValueId; 3]> = own.inputs.iter().map(|v| values[v]).collect();
            inputs[slot as usize] = copied.add_typed(own.op.clone(), &operands, own.types.to_vec()).port(node.inputs[slot as usize].port);
        }
        let made = match &node.op {
            Op::Input(input) if node.constant => copied.add_parameter(&input.name, input.ty.clone()).node,
            Op::Input(input) => copied.add_input(&input.name, input.ty.clone()).node,
            op => copied.add_typed(op.clone(), &inputs, node.types.to_vec()),
        };
        values.extend((0..node.types.len() as u32).map(|port| (at.port(port), made.port(port))));
    }
    for output in graph.outputs() {
        copied.add_output(&output.name, values[&output.value]);
    }
    copied
}

/// Whether `rule`, applied once to `graph` from left to right, leads to the graph with this key.
pub(crate) fn leads_to(graph: &Graph, rule: &Rule, key: u128) -> bool {
    let Ok(library) = Library::new(vec![rule.clone()]) else { return false };
    let mut led = false;
    applications(graph, &library, true, usize::MAX, &mut |_, _, reached| led |= reached == key);
    led
}

/// The graphs of at most `most` nodes that one step leads to and that `fresh` accepts by key.
///
/// A proposal of a reversed law counts only if the law leads back from it.
pub(crate) fn moves(graph: &Graph, key: u128, laws: &Laws, copies: bool, most: usize, fresh: &mut dyn FnMut(u128) -> bool) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    applications(graph, laws.forward(), copies, most, &mut |rule, graph, key| {
        if fresh(key) {
            moves.push(Move { graph, key, law: rule.name.clone(), reversed: false });
        }
    });
    applications(graph, laws.backward(), copies, most, &mut |rule, next, reached| {
        if moves.iter().any(|known| known.key == reached) {
            return;
        }
        let undone = || laws.get(&rule.name).is_some_and(|law| leads_to(&next, law, key));
        if fresh(reached) && undone() {
            moves.push(Move { graph: next, key: reached, law: rule.name.clone(), reversed: true });
        }
    });
    moves
}
