//! Laws of the engine: undo, cost, key, and the soundness of every step.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use common::{Walk, fixtures, network, normalized, open_sizes, outputs, roofline, shipped};
use regraft_cost::CostModel;
use regraft_ir::text::inventory;
use regraft_ir::{Graph, OpKind, canonical_key, text};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{Engine, Matcher, Move, all_moves, next_moves};

/// How far both sides of a step may differ in double precision: attributes are single-precision
/// numbers.
const ROUNDOFF: f64 = f32::EPSILON as f64;

const NETWORKS: [&str; 4] = ["paper-resnet-n2", "paper-inception-e-n1", "mobilenet-v3-large", "nasrnn"];

/// Fixtures, networks, and an instance of every rule of the library: `(name, graph, seeds, steps)`.
fn everything(library: &Library) -> Vec<(String, Graph, u64, usize)> {
    let small = fixtures().into_iter().map(|(name, graph)| (name.to_string(), graph, 8, 20));
    let networks = NETWORKS.iter().map(|name| (name.to_string(), network(name), 2, 20));
    let instances = library.rules().iter().filter_map(|rule| {
        let (graph, _) = (0..40).find_map(|seed| regraft_rules::sample::graph(rule, seed).ok())?;
        Some((rule.name.to_string(), normalized(graph), 1, 6))
    });
    small.chain(networks).chain(instances).collect()
}

#[test]
fn undo_restores_graph_key_and_cost() {
    let (library, model) = (shipped(), roofline());
    for (name, graph, seeds, steps) in everything(&library) {
        for seed in 0..seeds {
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            let mut trail = Vec::new();
            for _ in 0..steps {
                let Some(step) = walk.pick() else { break };
                trail.push((
                    inventory(walk.engine.graph()),
                    canonical_key(walk.engine.graph()),
                    walk.engine.key(),
                    walk.engine.cost(),
                    walk.title(&step),
                ));
                walk.step(&step);
            }
            let depth = walk.engine.depth();
            assert_eq!(depth, trail.len());
            for (text, canonical, key, cost, title) in trail.into_iter().rev() {
                assert!(walk.engine.undo());
                assert_eq!(inventory(walk.engine.graph()), text, "{name}: {title}");
                assert_eq!(
                    (canonical_key(walk.engine.graph()), walk.engine.key(), walk.engine.cost()),
                    (canonical, key, cost),
                    "{name}: {title}"
                );
            }
            assert!(!walk.engine.undo(), "nothing is left to undo");
            assert_eq!((walk.engine.counters().applied, walk.engine.counters().undone), (depth as u64, depth as u64));
        }
    }
}

#[test]
fn the_cost_is_that_of_the_graph_after_every_step() {
    let (library, model) = (shipped(), roofline());
    let mut wrong = BTreeMap::new();
    for (name, graph, seeds, steps) in everything(&library) {
        for seed in 0..seeds {
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            assert_eq!(walk.engine.cost(), model.total(walk.engine.graph()), "{name}: start");
            for _ in 0..steps {
                let Some(step) = walk.pick() else { break };
                let title = walk.title(&step);
                walk.step(&step);
                let (cost, total) = (walk.engine.cost(), model.total(walk.engine.graph()));
                if cost != total {
                    wrong.entry(title).or_insert(format!("{name}, seed {seed}: {cost} instead of {total}"));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_price_of_a_reader_follows_the_other_readers() {
    // The relu fuses into the convolution once nothing else reads the convolution.
    let graph = text::parse(
        "graph (x: f32[1,4,8,8], y: f32[1,4,8,8]) { const w: f32[4,4,3,3] c = Conv(x, w, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
           r = Relu(c) d = Concat(y, c, axis=1) s = Slice(d, axes=[1], starts=[0], ends=[4], steps=[1]) output r, s }",
    );
    let (library, model) = (shipped(), roofline());
    let mut walk = Walk::new(normalized(graph.unwrap()), &library, &model, 1);
    let step = walk
        .moves
        .iter()
        .find(|m| walk.matcher.library().rules()[m.rule].name.as_ref() == "slice-of-concat")
        .expect("the rule applies")
        .clone();
    walk.engine.apply(&step);
    assert_eq!(walk.engine.graph().len(), 5, "{}", text::print(walk.engine.graph()));
    assert_eq!(walk.engine.cost(), model.total(walk.engine.graph()));
    walk.engine.undo();
    assert_eq!(walk.engine.cost(), model.total(walk.engine.graph()));
}

#[test]
fn places_stay_where_other_rules_are_left_out() {
    let (library, model) = (shipped(), roofline());
    let places = |library: &Library, graph: &Graph| -> BTreeMap<u64, String> {
        let mut engine = Engine::new(graph.clone(), &model);
        let moves = all_moves(&mut engine, &mut Matcher::new(library, &Anything));
        moves.iter().map(|m| (m.match_id(), library.rules()[m.rule].name.to_string())).collect()
    };
    let mut compared = 0;
    for (name, graph) in fixtures() {
        let all = places(&library, &graph);
        let Some(left_out) = all.values().next() else { continue };
        let fewer = places(&library.clone().filter(|rule| *rule.name != **left_out), &graph);
        let expected: BTreeMap<u64, String> =
            all.iter().filter(|(_, rule)| *rule != left_out).map(|(at, rule)| (*at, rule.clone())).collect();
        assert_eq!(fewer, expected, "{name} without {left_out}");
        compared += fewer.len();
    }
    assert!(compared > 0);
}

#[test]
fn every_state_is_acyclic_well_typed_and_computes_the_same() {
    let (library, model) = (shipped(), roofline());
    let mut wrong = BTreeMap::new();
    for (name, graph, seeds, steps) in everything(&library) {
        let small = !NETWORKS.contains(&name.as_str());
        for seed in 0..seeds {
            let before = small.then(|| outputs(&graph, seed));
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            for at in 0..steps {
                let Some(step) = walk.pick() else { break };
                let title = walk.title(&step);
                walk.step(&step);
                let now = walk.engine.graph();
                assert_eq!(now.topological().len(), now.len(), "{name}, seed {seed}, step {at}: {title} closes a cycle");
                for id in now.ids() {
                    let node = now.node(id);
                    if node.inputs.is_empty() {
                        continue;
                    }
                    let types: Vec<_> = now
                        .infer(&node.op, &node.inputs)
                        .unwrap_or_else(|e| panic!("{name}: {title}: {e}"))
                        .into_iter()
                        .map(Some)
                        .collect();
                    assert_eq!(types.as_slice(), node.types.as_slice(), "{name}: {title}: {:?}", node.op);
                }
                for (a, b) in now.outputs().iter().zip(graph.outputs()) {
                    assert_eq!((&a.name, now.ty(a.value)), (&b.name, graph.ty(b.value)), "{name}: {title}");
                }
                let Some(before) = &before else { continue };
                let worst = outputs(now, seed).iter().zip(before).map(|(a, b)| a.difference(b)).fold(0.0, f64::max);
                if worst > ROUNDOFF {
                    wrong.entry(title).or_insert(format!("{name}, seed {seed}, step {at}: differs by {worst}"));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn independent_moves_commute() {
    let (library, model) = (shipped(), roofline());
    let mut pairs = 0;
    for (name, graph) in fixtures().into_iter().map(|(n, g)| (n.to_string(), g)).chain(NETWORKS.iter().map(|n| (n.to_string(), network(n))))
    {
        let mut walk = Walk::new(graph, &library, &model, 1);
        let all = walk.moves.clone();
        let moves: Vec<_> = all.iter().take(40).cloned().collect();
        for (at, first) in moves.iter().enumerate() {
            walk.engine.apply(first);
            let after = next_moves(&mut walk.engine, &mut walk.matcher, &all);
            walk.engine.undo();
            for second in &moves[at + 1..] {
                // If each of two moves survives the other, they are independent.
                if !after.contains(second) {
                    continue;
                }
                walk.engine.apply(second);
                let stands = next_moves(&mut walk.engine, &mut walk.matcher, &all).contains(first);
                let state = |walk: &mut Walk<'_>, step| {
                    walk.engine.apply(step);
                    let state = (walk.engine.key(), walk.engine.cost(), canonical_key(walk.engine.graph()));
                    walk.engine.undo();
                    state
                };
                if !stands {
                    walk.engine.undo();
                    continue;
                }
                let one = state(&mut walk, first);
                walk.engine.undo();
                walk.engine.apply(first);
                let other = state(&mut walk, second);
                walk.engine.undo();
                assert_eq!(one, other, "{name}: {} and {}", walk.title(first), walk.title(second));
                pairs += 1;
            }
        }
    }
    assert!(pairs > 1000, "{pairs} pairs are too few");
}

#[test]
fn equal_keys_mean_equal_graphs() {
    let (library, model) = (shipped(), roofline());
    for (name, graph) in fixtures() {
        let mut known: HashMap<u128, (u128, u64)> = HashMap::new();
        for seed in 0..40 {
            let mut walk = Walk::new(graph.clone(), &library, &model, seed);
            for _ in 0..20 {
                let state = (canonical_key(walk.engine.graph()), walk.engine.cost());
                let before = *known.entry(walk.engine.key()).or_insert(state);
                assert_eq!(before, state, "{name}, seed {seed}: a key of two graphs");
                let Some(step) = walk.pick() else { break };
                walk.step(&step);
            }
        }
        assert!(known.len() > 20, "{name}: {} states", known.len());
    }
}

#[test]
fn an_inverse_move_returns_to_the_key() {
    let rules = "(rule below (relu (concat :axis ?a ?xs...)) => (concat :axis ?a (each ?xs (relu ?xs))) (numeric exact))
                 (rule above (concat :axis ?a (each (relu ?x))) => (relu (concat :axis ?a ?x...)) (numeric exact))";
    let library = Library::new(parse("t", rules).unwrap()).unwrap();
    let model = roofline();
    let graph = text::parse("graph (x: f32[2,3], y: f32[2,3]) { c = Concat(x, y, axis=1) r = Relu(c) n = Neg(r) output n }").unwrap();
    let mut walk = Walk::new(graph, &library, &model, 1);
    let (key, canonical) = (walk.engine.key(), canonical_key(walk.engine.graph()));
    let mut keys = vec![key];
    for _ in 0..6 {
        assert_eq!(walk.moves.len(), 1);
        let step = walk.moves.iter().next().expect("there is one").clone();
        walk.step(&step);
        keys.push(walk.engine.key());
    }
    assert_eq!(canonical_key(walk.engine.graph()), canonical);
    assert!(keys.chunks(2).all(|k| k[0] == key), "{keys:x?}");
    assert!(keys[1..].chunks(2).all(|k| k[0] == keys[1]), "{keys:x?}");
}

#[test]
fn declared_outputs_stay() {
    let rules = "(rule fuse (relu (sub ?x ?y)) => (mul ?x ?y) (numeric exact))";
    let library = Library::new(parse("t", rules).unwrap()).unwrap();
    let model = roofline();
    for (declared, expected) in [("r", 1), ("a, r", 0), ("r, a", 0)] {
        let graph = text::parse(&format!("graph (x: f32[4], y: f32[4]) {{ a = Sub(x, y) r = Relu(a) output {declared} }}")).unwrap();
        let mut engine = Engine::new(graph, &model);
        let moves = all_moves(&mut engine, &mut Matcher::new(&library, &Anything));
        assert_eq!(moves.len(), expected, "outputs {declared}");
    }
    // With a library of sharing rules, the operator stays beside the new one.
    let shared = Library::new(parse("t", &rules.replace("(numeric", "(shared) (numeric")).unwrap()).unwrap();
    let graph = text::parse("graph (x: f32[4], y: f32[4]) { a = Sub(x, y) r = Relu(a) output a, r }").unwrap();
    let kept = graph.outputs()[0].clone();
    let mut engine = Engine::new(graph, &model);
    let moves = all_moves(&mut engine, &mut Matcher::new(&shared, &Anything));
    engine.apply(moves.iter().next().expect("there is one"));
    assert_eq!(engine.graph().outputs()[0], kept);
    assert!(engine.graph().get(kept.value.node).is_some_and(|n| n.op.kind().name() == "Sub"));
}

#[test]
fn what_was_learned_of_surroundings_is_not_learned_again() {
    let (library, model) = (shipped(), roofline());
    for (name, graph) in fixtures().into_iter().chain([("open sizes", open_sizes())]) {
        let mut engine = Engine::new(graph.clone(), &model);
        let mut matcher = Matcher::new(&library, &Anything);
        let expand = |engine: &mut Engine<'_>, matcher: &mut Matcher<'_>| {
            let moves = all_moves(engine, matcher);
            for step in &moves {
                engine.apply(step);
                next_moves(engine, matcher, &moves);
                engine.undo();
            }
            engine.counters().learned
        };
        let learned = expand(&mut engine, &mut matcher);
        assert!(learned > 0, "{name}");
        let reads_sizes = |step: &Arc<Move>| step.patch().create.iter().any(|new| new.op.kind() == OpKind::Shape);
        assert_eq!(all_moves(&mut engine, &mut matcher).iter().any(reads_sizes), name == "open sizes", "{name}");
        assert_eq!(expand(&mut engine, &mut matcher), learned, "{name}: by the same matcher");
        let mut knowing = Matcher::knowing(matcher.into_cache(), &library, &Anything);
        assert_eq!(expand(&mut Engine::new(graph.clone(), &model), &mut knowing), 0, "{name}: by one that knows");
        let fewer = shipped().filter(|rule| !rule.explore);
        let mut other = Matcher::knowing(knowing.into_cache(), &fewer, &Anything);
        assert!(expand(&mut Engine::new(graph, &model), &mut other) > 0, "{name}: with other rules");
    }
}
