//! The network: the same numbers whatever the order of nodes and moves, and whether it was computed anew
//! or followed an engine there and back.

use std::sync::Arc;

use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, NodeId, Op, SplitMix64, ValueId, normal};
use regraft_policy::{Digest, Embedding, Policy, Weights, WeightsError, features::Known};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Move, Moves, all_moves, next_moves};

fn network(name: &str) -> Graph {
    let options = regraft_zoo::Options { weights: regraft_zoo::Weights::Zeros, ..Default::default() };
    let proto = regraft_zoo::build(name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut graph = regraft_onnx::Model::from_proto(proto).unwrap_or_else(|e| panic!("{name}: {e}")).graph().clone();
    normal::dce(&mut graph);
    normal::cse(&mut graph);
    graph
}

fn shipped() -> Library {
    Library::shipped().unwrap_or_else(|e| panic!("{e}"))
}

/// As a move is scored: by its place, so that other graphs can be asked for the same.
fn scores(policy: &Policy<'_>, engine: &Engine<'_>, nodes: &Embedding<'_>, moves: &Moves) -> Vec<f32> {
    let score = |step: &Arc<Move>| policy.score(engine, nodes, step, Known::default());
    moves.iter().map(score).collect()
}

fn far(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The same graph, with its nodes at other places.
fn shuffled(graph: &Graph, seed: u64) -> Graph {
    let mut random = SplitMix64(seed);
    let mut other = Graph::new(graph.name.clone());
    let mut places: Vec<Option<NodeId>> = vec![None; graph.capacity()];
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { panic!("an input") };
        places[id.0 as usize] = Some(other.add_input(&input.name, input.ty.clone()).node);
    }
    let mut left: Vec<NodeId> = graph.ids().filter(|id| places[id.0 as usize].is_none()).collect();
    while !left.is_empty() {
        let ready = |id: &NodeId| graph.node(*id).inputs.iter().all(|value| places[value.node.0 as usize].is_some());
        let ready: Vec<usize> = (0..left.len()).filter(|at| ready(&left[*at])).collect();
        let id = left.swap_remove(ready[random.below(ready.len())]);
        let node = graph.node(id);
        let inputs: Vec<ValueId> =
            node.inputs.iter().map(|v| places[v.node.0 as usize].map(|node| ValueId { node, port: v.port }).expect("there")).collect();
        places[id.0 as usize] = Some(other.add_typed(node.op.clone(), &inputs, node.types.to_vec()));
    }
    for output in graph.outputs() {
        let node = places[output.value.node.0 as usize].expect("there");
        other.add_output(&output.name, ValueId { node, port: output.value.port });
    }
    other
}

#[test]
fn the_order_of_nodes_and_moves_does_not_matter() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let weights = Weights::random(Digest::of(&library), 7);
    let policy = Policy::new(&weights, &library);
    for name in ["squeezenet-1.1", "gpt2-block", "sru"] {
        let graph = network(name);
        let of = |graph: &Graph| {
            let mut engine = Engine::new(graph.clone(), &prices);
            let moves = all_moves(&mut engine, &mut Matcher::new(&library, &Anything));
            let nodes = Embedding::new(&weights, &engine);
            let mut scores = scores(&policy, &engine, &nodes, &moves);
            scores.sort_by(f32::total_cmp);
            (scores, policy.value(&engine, &nodes, &[]))
        };
        let (expected, value) = of(&graph);
        assert!(expected.len() > 10 && expected.first() != expected.last(), "{name}: {expected:?}");
        for seed in 0..3 {
            let (found, other) = of(&shuffled(&graph, seed));
            assert!(far(&found, &expected) < 1e-4 && (value - other).abs() < 1e-4, "{name}: {:?}", far(&found, &expected));
        }
    }
}

#[test]
fn embeddings_that_follow_an_engine_are_those_computed_anew() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let weights = Weights::random(Digest::of(&library), 7);
    for (name, steps) in [("squeezenet-1.1", 3000), ("gpt2-block", 3000), ("sru", 4000)] {
        let mut engine = Engine::new(network(name), &prices);
        let mut matcher = Matcher::new(&library, &Anything);
        let mut random = SplitMix64(3);
        let mut path = vec![all_moves(&mut engine, &mut matcher)];
        let mut nodes = Embedding::new(&weights, &engine);
        let check = |engine: &Engine<'_>, nodes: &Embedding<'_>, step: usize| {
            let fresh = Embedding::new(&weights, engine);
            for id in engine.graph().ids() {
                assert!(far(nodes.row(id), fresh.row(id)) < 1e-4, "{name}, step {step}: {:?}", engine.graph().node(id).op.kind());
            }
        };
        for step in 0..steps {
            let moves = path.last().expect("at least the first");
            // More often on than back, until far from where it began.
            let on = random.below(20) >= path.len();
            let places: Vec<&Arc<Move>> = moves.iter().filter(|_| on).collect();
            match places.len() {
                0 if path.len() > 1 => {
                    path.pop();
                    engine.undo();
                    nodes.back();
                }
                0 => {}
                count => {
                    let one = places[random.below(count)].clone();
                    engine.apply(&one);
                    nodes.follow(&engine);
                    let next = next_moves(&mut engine, &mut matcher, moves);
                    path.push(next);
                }
            }
            if step % 50 == 0 {
                check(&engine, &nodes, step);
            }
        }
        check(&engine, &nodes, steps);
        engine.rewind(0);
        (1..path.len()).for_each(|_| nodes.back());
        check(&engine, &nodes, steps);
    }
}

#[test]
fn weights_are_written_and_read_and_tell_what_they_are_for() {
    let library = shipped();
    let weights = Weights::random(Digest::of(&library), 1);
    let bytes = weights.to_bytes();
    assert!(bytes.len() < 1_000_000, "{} bytes", bytes.len());
    let read = Weights::from_bytes(&bytes).expect("weights");
    assert_eq!((read.to_bytes(), read.digest), (bytes.clone(), weights.digest));
    assert!(matches!(Weights::from_bytes(&bytes[..bytes.len() - 2]), Err(WeightsError::Size(..))));
    assert_eq!(Weights::from_bytes(b"something else").err(), Some(WeightsError::Foreign));
    assert_eq!(weights.digest.differs(Digest::of(&library)), None);
    let fewer = Digest::of(&shipped().filter(|rule| &*rule.name != "neg-neg"));
    assert_eq!(weights.digest.differs(fewer), Some("it was trained with other rules"));
}
