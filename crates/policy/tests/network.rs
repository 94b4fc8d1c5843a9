//! The network: the same numbers whatever the order of nodes and moves, and whether it was computed
//! anew or followed an engine there and back.

mod networks;

use std::sync::Arc;

use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph, NodeId, Op, SplitMix64, Steps, ValueId};
use regraft_policy::{Digest, Embedding, Guide, Policy, Prior, Weights, WeightsError, block, features::Known};
use regraft_rules::Anything;
use regraft_search::{Engine, Greedy, Matcher, Move, Moves, Strategy, all_moves, next_moves};

use networks::{network, shipped};

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

/// Even weights that mean nothing find what prices alone find, with half as many states more.
#[test]
fn a_policy_is_never_much_worse_than_prices_alone() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let mut found = 0;
    for name in ["squeezenet-1.1", "gpt2-block", "sru"] {
        let graph = network(name);
        for seed in 0..4 {
            let Some(block) = block(&graph, &mut SplitMix64(seed)) else { continue };
            let search = |guide: Guide<'_>, expansions: usize| {
                let mut engine = Engine::new(block.clone(), &prices);
                let mut matcher = Matcher::new(&library, &Anything);
                let found = Prior { expansions, ..Prior::new(guide) }.search(&mut engine, &mut matcher, &mut Steps(u64::MAX));
                assert_eq!(engine.depth(), 0);
                let best = &found.scripts[0];
                best.moves.iter().for_each(|step| engine.apply(step));
                assert_eq!((engine.cost(), engine.key()), (best.cost, best.key));
                best.cost
            };
            let price = search(Guide::Delta, 30);
            for weights in [1, 2].map(|seed| Weights::random(Digest::of(&library), seed)) {
                let policy = search(Guide::Policy(&weights), 45);
                // What it finds first changes which of equally cheap states are looked at.
                assert!(policy as f64 <= price as f64 * 1.001, "{name}, block {seed}: {policy} and {price}");
            }
            found += usize::from(price < Engine::new(block.clone(), &prices).cost());
        }
    }
    assert!(found > 3, "{found}");
}

/// Two products of a value with weights are one product with a product of weights, which is
/// computed once and for all: prices alone find that (X-RLflow, MLSys 2023, whose gain on its
/// vision transformer it is).
#[test]
fn folded_weights_are_found_without_learning() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let text = "graph (x: f32[64,768]) { const v: f32[768,3072] const w: f32[3072,768] a = MatMul(x, v) y = MatMul(a, w) output y }";
    let graph = regraft_ir::text::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let mut engine = Engine::new(graph, &prices);
    let found = Greedy::default().search(&mut engine, &mut Matcher::new(&library, &Anything), &mut Steps(1000));
    assert!(found.scripts[0].cost * 3 < engine.cost(), "{} of {}", found.scripts[0].cost, engine.cost());
}

#[test]
fn the_policy_that_is_shipped_can_be_used_or_says_why_not() {
    match regraft_policy::shipped() {
        Ok(weights) => assert_eq!(weights.digest.differs(Digest::of(&shipped())), None),
        Err(why) => assert!(why.contains("it was trained with other"), "{why}"),
    }
}
