//! One step: a law applied at one place, in either direction.

use regraft_ir::{Graph, canonical_key, normal};
use regraft_rules::rule::Rule;
use regraft_rules::{Anything, Found, Library, instantiate, matches_at};

use crate::laws::{Laws, anchors};

/// A graph that a law leads to.
pub(crate) struct Move {
    /// The graph, in normal form.
    pub graph: Graph,
    /// Its key.
    pub key: u128,
    /// The law's name.
    pub law: std::sync::Arc<str>,
    /// The law was read from right to left.
    pub reversed: bool,
}

/// The key of the normal form of `graph`, which becomes that.
pub(crate) fn normalize(graph: &mut Graph) -> u128 {
    normal::dce(graph);
    normal::cse(graph);
    canonical_key(graph)
}

/// What one application of a rule leads to, if it fits there.
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

/// All applications of the rules of a library, as they are written.
fn applications(graph: &Graph, library: &Library, most: usize, into: &mut dyn FnMut(&Rule, Graph, u128)) {
    for (id, rule, root) in anchors(library, graph) {
        for found in matches_at(graph, rule, root, id) {
            if let Some((next, key)) = apply(graph, rule, &found, most) {
                into(rule, next, key);
            }
        }
    }
}

/// Whether `rule`, applied once to `graph` from left to right, leads to the graph of this key.
pub(crate) fn leads_to(graph: &Graph, rule: &Rule, key: u128) -> bool {
    let Ok(library) = Library::new(vec![rule.clone()]) else { return false };
    let mut led = false;
    applications(graph, &library, usize::MAX, &mut |_, _, reached| led |= reached == key);
    led
}

/// The graphs of at most `most` nodes that one step leads to and that `fresh` wants, by their keys.
///
/// What a reversed law proposes counts only if the law leads back from there.
pub(crate) fn moves(graph: &Graph, key: u128, laws: &Laws, most: usize, fresh: &mut dyn FnMut(u128) -> bool) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    applications(graph, laws.forward(), most, &mut |rule, graph, key| {
        if fresh(key) {
            moves.push(Move { graph, key, law: rule.name.clone(), reversed: false });
        }
    });
    applications(graph, laws.backward(), most, &mut |rule, next, reached| {
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
