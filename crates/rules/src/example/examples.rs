//! Small graphs that a rule rewrites.

use std::collections::{BTreeMap, BTreeSet};

use regraft_ir::{Graph, Op, OpKind};

use super::outcome::{Outcome, outcome};
use super::tidy::tidied;
use crate::rule::Rule;
use crate::sample::draw;

/// Draws at most.
const DRAWS: u64 = 3000;
/// Draws on which the rule fires, at most.
const FIRING: usize = 40;

/// Nodes on both sides of an example that is enough by itself.
const LARGE: usize = 25;

/// Small graphs on which `rule` fires, at most `most`: the smallest first, then the smallest of those
/// with other operators. Deterministic.
pub fn examples(rule: &Rule, most: usize) -> Vec<Graph> {
    let mut smallest: BTreeMap<Operators, (Size, Graph)> = BTreeMap::new();
    for instance in (0..DRAWS).filter_map(|seed| draw(rule, seed).ok()).take(FIRING) {
        let (size, graph) = (size(&instance.before, instance.after.len()), instance.before);
        let key = operators([&graph, &instance.after]);
        if smallest.get(&key).is_none_or(|(least, _)| size < *least) {
            smallest.insert(key, (size, graph));
        }
    }
    let mut all: Vec<(Size, Graph)> = smallest.into_values().collect();
    all.sort_by_key(|(size, _)| *size);
    if all.first().is_some_and(|((nodes, ..), _)| *nodes > LARGE) {
        all.truncate(1);
    }
    all.into_iter().take(most).filter_map(|(_, graph)| readable(rule, &graph)).collect()
}

/// The graph made readable, such that the rule makes the same operators of it.
fn readable(rule: &Rule, graph: &Graph) -> Option<Graph> {
    let fired = |graph: &Graph| match outcome(graph, rule) {
        Outcome::Fires(found, patch) => {
            let mut after = graph.clone();
            after.apply(&patch);
            Some((operators([graph, &after]), after.len(), *found))
        }
        _ => None,
    };
    let (kinds, nodes, _) = fired(graph)?;
    tidied(rule, graph, &|other| fired(other).filter(|(k, n, _)| (k, n) == (&kinds, &nodes)).map(|(.., found)| found))
}

/// Nodes, sizes of 1, and the sum of all sizes.
type Size = (usize, usize, i64);

fn size(before: &Graph, after: usize) -> Size {
    let leaves = before.ids().filter(|id| matches!(before.node(*id).op, Op::Input(_) | Op::Constant(_)));
    let sizes: Vec<i64> = leaves.filter_map(|id| before.ty(id.out())?.known_shape()).flatten().collect();
    (before.len() + after, sizes.iter().filter(|size| **size == 1).count(), sizes.iter().sum())
}

/// Kinds of operators on both sides, with their numbers of operands.
type Operators = [BTreeSet<(OpKind, usize)>; 2];

fn operators(sides: [&Graph; 2]) -> Operators {
    sides.map(|graph| graph.ids().map(|id| (graph.node(id).op.kind(), graph.node(id).inputs.len().min(3))).collect())
}
