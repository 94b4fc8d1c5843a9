//! Small graphs that a rule rewrites.

use std::collections::{BTreeMap, BTreeSet};

use regraft_ir::{Attr, Const, Graph, Op, OpKind};

use super::outcome::{Outcome, outcome};
use super::tidy::tidied;
use crate::rule::Rule;
use crate::sample::{Instance, draw};

/// Maximum number of draws.
const DRAWS: u64 = 3000;
/// Maximum number of draws on which the rule fires.
const FIRING: usize = 40;

/// Number of nodes on both sides of an example large enough to stand alone.
const LARGE: usize = 25;

/// The rule as examples can show it: without its `profitable` clauses if it pays on none of its
/// instances, which are small.
pub fn shown(rule: &Rule) -> Rule {
    if rule.profitable.is_empty() || firing(rule).next().is_some() { rule.clone() } else { rule.anywhere() }
}

/// Drawn instances of a rule on which it fires, its `profitable` clauses included.
fn firing(rule: &Rule) -> impl Iterator<Item = Instance> {
    let drawn = (0..DRAWS).filter_map(|seed| draw(rule, seed).ok());
    drawn.filter(|instance| matches!(outcome(&instance.before, rule), Outcome::Fires(..)))
}

/// At most `most` small graphs on which `rule` fires: the smallest first, then the smallest of
/// those with other operators. Deterministic.
pub fn examples(rule: &Rule, most: usize) -> Vec<Graph> {
    let mut smallest: BTreeMap<Operators, (Size, Graph)> = BTreeMap::new();
    for instance in firing(rule).take(FIRING) {
        let (size, graph) = (size(&instance.before, instance.after.len()), instance.before);
        let key = operators([&graph, &instance.after]);
        if smallest.get(&key).is_none_or(|(least, _)| size < *least) {
            smallest.insert(key, (size, graph));
        }
    }
    let mut all: Vec<(Size, Graph)> = smallest.into_values().collect();
    all.sort_by_key(|(size, _)| *size);
    if all.first().is_some_and(|((_, nodes, ..), _)| *nodes > LARGE) {
        all.truncate(1);
    }
    all.into_iter().take(most).filter_map(|(_, graph)| readable(rule, &graph)).collect()
}

/// The graph made readable, such that the rule produces the same operators from it.
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

/// Number of operators on a list of one; of nodes; of sizes, windows and constants of 1 and
/// constants of 0; the sum of all sizes.
type Size = (usize, usize, usize, i64);

fn size(before: &Graph, after: usize) -> Size {
    let nodes = || before.ids().map(|id| (id, before.node(id)));
    let lonely = nodes().filter(|(_, node)| node.op.kind() == OpKind::Concat && node.inputs.len() == 1).count();
    let leaves = nodes().filter(|(_, node)| matches!(node.op, Op::Input(_) | Op::Constant(_)));
    let sizes: Vec<i64> = leaves.filter_map(|(id, _)| before.ty(id.out())?.known_shape()).flatten().collect();
    let neutral = nodes().filter(|(id, _)| before.constant(id.out()).and_then(Const::splat).is_some_and(|v| v == 0.0 || v == 1.0));
    let windows = nodes().filter_map(|(_, node)| node.op.attr("kernel"));
    let ones = windows.filter(|kernel| matches!(kernel, Attr::Ints(ints) if ints.iter().all(|n| *n == 1))).count();
    (lonely, before.len() + after, sizes.iter().filter(|size| **size == 1).count() + neutral.count() + ones, sizes.iter().sum())
}

/// Kinds of operators on both sides, with their operand counts.
type Operators = [BTreeSet<(OpKind, usize)>; 2];

fn operators(sides: [&Graph; 2]) -> Operators {
    sides.map(|graph| graph.ids().map(|id| (graph.node(id).op.kind(), graph.node(id).inputs.len().min(3))).collect())
}
