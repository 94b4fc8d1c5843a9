//! Changes: rewrites that build on each other, with what they replaced and what they put there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use regraft_certify::{Certificate, GraphPath};
use regraft_ir::{Graph, NodeId, Op, ValueId};
use serde::Serialize;

use crate::optimize::place_of;
use crate::report::Report;

/// Nodes of a drawing; larger ones are listed by operator.
const DRAWN: usize = 150;
/// Places of alike changes that are named.
const PLACES: usize = 8;

/// A certificate, and the changes that it tells of.
pub struct Changed {
    /// The changes, those that gain most first.
    pub changes: Vec<Change>,
    /// Where the certificate is.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The certificate.
    pub certificate: Certificate,
}

/// A change, and others that look alike.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Where: names of values.
    pub places: Vec<String>,
    /// How many changes look like this.
    pub count: usize,
    /// Rules, with how often each was applied in one of them.
    pub rules: Vec<(String, usize)>,
    /// What all of them gain by the price list, ns.
    pub gain_ns: i64,
    /// What was there.
    pub before: Drawing,
    /// What is there now.
    pub after: Drawing,
}

/// Nodes and what they read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Drawing {
    /// The nodes, unless they are too many.
    pub nodes: Vec<Drawn>,
    /// Operators, and how many of each there are, without those around.
    pub operators: Vec<(String, usize)>,
}

/// A node of a drawing.
#[derive(Clone, Debug, Serialize)]
pub struct Drawn {
    /// Its number.
    pub id: u32,
    /// Its operator.
    pub operator: String,
    /// The type of its first result.
    pub shape: String,
    /// Its first result's name.
    pub name: String,
    /// Numbers of the nodes that it reads, as far as they are drawn.
    pub reads: Vec<u32>,
    /// Whether it is around the change: it stays.
    pub around: bool,
}

/// Rewrites that build on each other, while they are followed.
#[derive(Default)]
struct Group {
    steps: Vec<usize>,
}

/// The changes that a certificate tells of in the main graph of a model, those that gain most
/// first.
///
/// # Errors
///
/// Why the certificate does not fit.
pub fn of(before: &Graph, certificate: &Certificate, report: &Report) -> Result<Vec<Change>, String> {
    let Some(trail) = certificate.trail(&GraphPath::default()) else { return Ok(Vec::new()) };
    let mut after = before.clone();
    // The step that made each node, and the nodes that steps replaced.
    let mut maker: HashMap<NodeId, usize> = HashMap::new();
    let mut removed: Vec<Vec<NodeId>> = Vec::new();
    let mut joined: Vec<usize> = Vec::new();
    for (number, step) in trail.steps.iter().enumerate() {
        let patch = step.patch(&after).map_err(|why| format!("step {} ({}) fits nowhere: {why}", number + 1, step.rule))?;
        joined.push(number);
        for id in &step.replaces {
            if let Some(earlier) = maker.get(id) {
                join(&mut joined, *earlier, number);
            }
        }
        let applied = after.apply(&patch);
        for (id, _) in &applied.removed {
            if let Some(earlier) = maker.get(id) {
                join(&mut joined, *earlier, number);
            }
        }
        maker.extend(applied.created.iter().map(|id| (*id, number)));
        removed.push(applied.removed.into_iter().map(|(id, _)| id).collect());
    }
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for number in 0..trail.steps.len() {
        groups.entry(root(&joined, number)).or_default().steps.push(number);
    }
    let credited = credited(&trail.steps.iter().map(|step| step.rule.as_str()).collect::<Vec<_>>(), report);
    let mut changes: Vec<Change> = Vec::new();
    for group in groups.into_values() {
        let old: BTreeSet<NodeId> =
            group.steps.iter().flat_map(|step| &removed[*step]).filter(|id| !maker.contains_key(id)).copied().collect();
        let own: HashSet<usize> = group.steps.iter().copied().collect();
        let new = after.ids().filter(|id| maker.get(id).is_some_and(|step| own.contains(step))).collect();
        let (drawn_before, drawn_after) = (draw(before, &old), draw(&after, &new));
        if drawn_before.operators.is_empty() && drawn_after.operators.is_empty() {
            continue;
        }
        let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
        group.steps.iter().for_each(|step| *rules.entry(credited[*step].0).or_default() += 1);
        let rules: Vec<(String, usize)> = rules.into_iter().map(|(rule, count)| (rule.to_string(), count)).collect();
        let gain_ns = group.steps.iter().map(|step| credited[*step].1).sum();
        let place = old.iter().next_back().map_or_else(String::new, |id| place_of(before, id.out()));
        let alike = |change: &&mut Change| {
            change.rules == rules && change.before.operators == drawn_before.operators && change.after.operators == drawn_after.operators
        };
        if let Some(known) = changes.iter_mut().find(alike) {
            known.count += 1;
            known.gain_ns += gain_ns;
            if known.places.len() < PLACES {
                known.places.push(place);
            }
            continue;
        }
        changes.push(Change { places: vec![place], count: 1, rules, gain_ns, before: drawn_before, after: drawn_after });
    }
    changes.sort_by_key(|change| std::cmp::Reverse(change.gain_ns));
    Ok(changes)
}

/// The first step that one builds on.
fn root(joined: &[usize], mut number: usize) -> usize {
    while joined[number] != number {
        number = joined[number];
    }
    number
}

fn join(joined: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(joined, a), root(joined, b));
    joined[a.max(b)] = a.min(b);
}

/// The rule and the gain of each step: the report lists rewrites in the same order, without
/// clean-ups, and names one of the rules behind an edit that equality saturation found.
fn credited<'a>(steps: &[&'a str], report: &'a Report) -> Vec<(&'a str, i64)> {
    let mut applied = report.applied.iter().peekable();
    let credit = |step: &&'a str| {
        let one = applied.next_if(|one| one.rule == *step || *step == "saturate");
        one.map_or((*step, 0), |one| (one.rule.as_str(), one.gain_ns))
    };
    steps.iter().map(credit).collect()
}

/// Nodes that are computed in a run, and those around them.
fn draw(graph: &Graph, own: &BTreeSet<NodeId>) -> Drawing {
    let computed = |id: &NodeId| graph.get(*id).is_some_and(|node| !node.constant);
    let own: BTreeSet<NodeId> = own.iter().copied().filter(computed).collect();
    let mut operators: BTreeMap<String, usize> = BTreeMap::new();
    own.iter().for_each(|id| *operators.entry(graph.node(*id).op.kind().name().to_string()).or_default() += 1);
    let operators = operators.into_iter().collect();
    if own.len() > DRAWN {
        return Drawing { nodes: Vec::new(), operators };
    }
    let read = own.iter().flat_map(|id| graph.node(*id).inputs.iter().map(|value| value.node));
    let readers = own.iter().flat_map(|id| graph.node(*id).users.iter().map(|(user, _)| *user));
    let around: BTreeSet<NodeId> = read.chain(readers).filter(|id| computed(id) && !own.contains(id)).collect();
    let all: BTreeSet<NodeId> = own.union(&around).copied().collect();
    let drawn = |id: &NodeId| {
        let node = graph.node(*id);
        let is_around = around.contains(id);
        // Between nodes around, only what passes the change is of interest.
        let shown = |value: &&ValueId| all.contains(&value.node) && !(is_around && around.contains(&value.node));
        Drawn {
            id: id.0,
            operator: if let Op::Input(input) = &node.op { format!("input {}", input.name) } else { node.op.kind().name().to_string() },
            shape: graph.ty(id.out()).map_or_else(String::new, ToString::to_string),
            name: place_of(graph, id.out()),
            reads: node.inputs.iter().filter(shown).map(|value| value.node.0).collect(),
            around: is_around,
        }
    };
    Drawing { nodes: all.iter().map(drawn).collect(), operators }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_build_on_each_other_are_one_change() {
        let mut joined = vec![0, 1, 2, 3];
        join(&mut joined, 0, 2);
        join(&mut joined, 2, 3);
        assert_eq!([0, 1, 2, 3].map(|number| root(&joined, number)), [0, 1, 0, 0]);
    }

    #[test]
    fn what_stays_is_drawn_around() {
        let graph = regraft_ir::text::parse("graph (x: f32[4]) { a = Relu(x) b = Neg(a) c = Exp(b) output c }").expect("a graph");
        let neg = graph.ids().find(|id| graph.node(*id).op.kind().name() == "Neg").expect("a Neg");
        let Drawing { nodes, operators } = draw(&graph, &BTreeSet::from([neg]));
        assert_eq!(operators, [("Neg".to_string(), 1)]);
        assert_eq!(
            nodes.iter().map(|node| (node.operator.as_str(), node.around)).collect::<Vec<_>>(),
            [("Relu", true), ("Neg", false), ("Exp", true)]
        );
        assert_eq!(nodes[2].reads, [neg.0]);
    }
}
