//! Moves found around a change are the moves found from scratch: none lost, none invented, none stale.

mod common;

use std::collections::BTreeMap;

use common::{Walk, fixtures, network, roofline, shipped};
use regraft_ir::{Graph, canonical_key};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Move, all_moves, next_moves};

/// What moves do in the present state: by rule and operators, the graphs that they lead to.
///
/// `trusted` moves are told by their place alone: what they lead to is not computed.
fn effects(engine: &mut Engine<'_>, moves: &[std::sync::Arc<Move>], library: &Library, deep: bool) -> BTreeMap<String, Vec<u128>> {
    let mut effects: BTreeMap<String, Vec<u128>> = BTreeMap::new();
    for step in moves {
        let mut nodes: Vec<u32> = step.nodes.iter().map(|n| n.0).collect();
        nodes.sort_unstable();
        let after = if deep {
            engine.apply(step);
            let after = canonical_key(engine.graph());
            engine.undo();
            after
        } else {
            0
        };
        effects.entry(format!("{} {nodes:?}", library.rules()[step.rule].name)).or_default().push(after);
    }
    effects.values_mut().for_each(|v| v.sort_unstable());
    effects
}

/// Walks at random, and compares in every state; complaints, one for each kind of difference and rule.
fn compare(name: &str, graph: &Graph, library: &Library, seed: u64, steps: usize, deep: bool) -> Vec<String> {
    let model = roofline();
    let mut walk = Walk::new(graph.clone(), library, &model, seed);
    let mut complaints = Vec::new();
    for at in 0..steps {
        let Some(step) = walk.pick() else { break };
        let title = walk.title(&step);
        walk.engine.apply(&step);
        let next = next_moves(&mut walk.engine, &mut walk.matcher, &walk.moves);
        let scratch = all_moves(&mut walk.engine, &mut Matcher::new(library, &Anything));
        let (found, wanted) = (effects(&mut walk.engine, &next, library, deep), effects(&mut walk.engine, &scratch, library, deep));
        for place in found.keys().chain(wanted.keys()).collect::<std::collections::BTreeSet<_>>() {
            let what = match (found.get(place), wanted.get(place)) {
                (Some(a), Some(b)) if a == b => continue,
                (Some(a), Some(b)) => format!("is another ({} and {} of them)", a.len(), b.len()),
                (Some(_), None) => "is stale".to_string(),
                (None, _) => "is lost".to_string(),
            };
            complaints.push(format!("{name}, seed {seed}, step {at} ({title}): {place} {what}"));
        }
        walk.moves = next;
        if !complaints.is_empty() {
            break;
        }
    }
    complaints
}

#[test]
fn on_small_graphs() {
    let library = shipped();
    let mut complaints = Vec::new();
    for (name, graph) in fixtures() {
        for seed in 0..30 {
            complaints.extend(compare(name, &graph, &library, seed, 20, true));
        }
    }
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn on_networks() {
    let library = shipped();
    let mut complaints = Vec::new();
    for name in ["paper-resnet-n2", "paper-inception-e-n1", "mobilenet-v3-large", "nasrnn"] {
        let graph = network(name);
        for seed in 0..4 {
            complaints.extend(compare(name, &graph, &library, seed, 20, false));
        }
    }
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn on_an_instance_of_every_rule() {
    let library = shipped();
    let mut complaints = Vec::new();
    for rule in library.rules() {
        let Some((graph, _)) = (0..40).find_map(|seed| regraft_rules::sample::graph(rule, seed).ok()) else { continue };
        complaints.extend(compare(&rule.name, &common::normalized(graph), &library, 1, 6, true));
    }
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}
