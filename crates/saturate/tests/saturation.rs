//! Saturation finds what enumeration finds, says what is true, and keeps its limits.

use std::collections::HashMap;

use regraft_certify::{GraphPath, Prover, Replayer, Step, Trail};
use regraft_cost::{CostModel, Roofline};
use regraft_ir::eval::{NoOpaque, run};
use regraft_ir::{Bindings, Graph, Op, SplitMix64, Tensor, Trust, Value, canonical_key, normal, text};
use regraft_rules::{Anything, Library, parse};
use regraft_saturate::{Cycles, Growth, Limits, Mcts, Rules, Saturate, Schedule, Stop};
use regraft_search::{Engine, Enumerate, Exhaustive, Matcher, Strategy};

/// Random graphs; `REGRAFT_SATURATE` names another number.
const GRAPHS: u64 = 60;

/// Rules that are true and make graphs larger and smaller.
const TRUE: &str = "
    (rule turn (add (add ?x ?y) ?z) => (add ?x (add ?y ?z)) (when (same-shape ?x ?y) (same-shape ?y ?z)) (numeric reassociates))
    (rule factor (add (mul ?x ?y) (mul ?x ?z)) => (mul ?x (add ?y ?z)) (when (same-shape ?x ?y) (same-shape ?y ?z)) (numeric reassociates))
    (rule spread (mul ?x (add ?y ?z)) => (add (mul ?x ?y) (mul ?x ?z)) (when (same-shape ?x ?y) (same-shape ?y ?z)) (numeric reassociates))
    (rule pull (neg (add ?x ?y)) => (add (neg ?x) (neg ?y)) (when (same-shape ?x ?y)) (numeric exact))
    (rule push (add (neg ?x) (neg ?y)) => (neg (add ?x ?y)) (when (same-shape ?x ?y)) (numeric exact))
    (rule out (mul (neg ?x) ?y) => (neg (mul ?x ?y)) (when (same-shape ?x ?y)) (numeric exact))
    (rule twice (neg (neg ?x)) => ?x (numeric exact))
    (rule pos (relu (relu ?x)) => (relu ?x) (numeric exact))
    (rule size (abs (neg ?x)) => (abs ?x) (numeric exact))
    (rule bare (relu (abs ?x)) => (abs ?x) (numeric exact))";

fn library(rules: &str) -> Library {
    Library::new(parse("t", rules).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
}

fn graphs() -> u64 {
    std::env::var("REGRAFT_SATURATE").ok().and_then(|n| n.parse().ok()).unwrap_or(GRAPHS)
}

fn normalized(mut graph: Graph) -> Graph {
    normal::cse_steps(&mut graph);
    normal::dce(&mut graph);
    graph
}

/// A graph of operators drawn at random, which may share operands, with one or two outputs.
fn drawn(seed: u64, operators: u64) -> Graph {
    let mut random = SplitMix64(seed);
    let mut below = |n: u64| random.below(n as usize) as u64;
    let mut body = String::new();
    for at in 0..operators {
        let mut operand = |inputs: u64| match below(at + inputs) {
            earlier if earlier < at => format!("v{earlier}"),
            input => ["w", "x", "y", "z"][(input - at) as usize].to_string(),
        };
        // Mostly chains: little of what is drawn stays without a reader.
        let (first, b) = (operand(4), operand(4));
        let a = if at > 0 && below(4) > 0 { format!("v{}", at - 1) } else { first };
        body += &match below(6) {
            0 | 1 => format!("v{at} = Add({a}, {b}) "),
            2 => format!("v{at} = Mul({a}, {b}) "),
            3 => format!("v{at} = Relu({a}) "),
            4 => format!("v{at} = Abs({a}) "),
            _ => format!("v{at} = Neg({a}) "),
        };
    }
    let (last, other) = (operators - 1, below(operators));
    let second = if other == last { String::new() } else { format!(", v{other}") };
    normalized(
        text::parse(&format!("graph (w: f32[4], x: f32[4], y: f32[4], z: f32[4]) {{ {body} output v{last}{second} }}")).expect("a graph"),
    )
}

/// Values of the outputs for inputs drawn at random.
fn outputs(graph: &Graph) -> Vec<Value<f64>> {
    let mut random = SplitMix64(7);
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape: Vec<usize> = input.ty.known_shape().expect("known sizes").into_iter().map(|size| size as usize).collect();
        let data = (0..shape.iter().product()).map(|_| random.normal()).collect();
        feeds.insert(input.name.to_string(), Value::real(Tensor::new(shape, data)));
    }
    run::<f64>(graph, &feeds, &mut NoOpaque).expect("it runs")
}

fn close(a: &[Value<f64>], b: &[Value<f64>]) -> bool {
    a.iter().zip(b).all(|(a, b)| {
        let (Value::Real(a), Value::Real(b)) = (a, b) else { return a == b };
        a.shape == b.shape && a.data.iter().zip(&b.data).all(|(a, b)| (a - b).abs() <= 1e-6 * (1.0 + a.abs()))
    })
}

/// What a search makes of a graph: the result, its cost, and the trust in each of its steps.
fn searched(graph: &Graph, library: &Library, strategy: &dyn Strategy) -> (Graph, u64, Vec<(Trust, String)>) {
    let prices = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph.clone(), &prices);
    let mut matcher = Matcher::new(library, &Anything);
    let (key, before) = (engine.key(), engine.cost());
    let outcome = strategy.search(&mut engine, &mut matcher, &mut || false);
    assert!(engine.key() == key && engine.depth() == 0, "the engine is left as it was");
    let best = &outcome.scripts[0];
    assert!(best.cost <= before);
    let mut steps = Vec::new();
    for step in &best.moves {
        steps.push(Step::of(engine.graph(), &step.nodes, step.patch()).expect("data"));
        engine.apply(step);
        assert_eq!(engine.graph().topological().len(), engine.graph().len(), "no cycle after {}", step.patch().cause);
    }
    assert_eq!((engine.cost(), engine.key()), (best.cost, best.key), "the script leads where it says");
    assert_eq!(prices.total(engine.graph()), best.cost);
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(graph), steps };
    let mut replayer = Replayer::asking(Prover);
    let mut replayed = graph.clone();
    replayer.follow(&mut replayed, &trail).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(canonical_key(&replayed), canonical_key(engine.graph()));
    let trust = replayer.judged.iter().map(|judged| (judged.trust, format!("{}: {}", judged.rule, judged.why))).collect();
    (engine.into_graph(), best.cost, trust)
}

fn plain() -> Saturate {
    Saturate { polish: false, ..Saturate::default() }
}

#[test]
fn extractions_are_true_and_as_cheap_as_what_enumeration_finds() {
    let library = library(TRUE);
    let (mut gained, mut proved, mut open) = (0, 0, Vec::new());
    for seed in 0..graphs() {
        let graph = drawn(seed, 4 + seed % 5);
        let (found, cost, steps) = searched(&graph, &library, &plain());
        assert!(close(&outputs(&graph), &outputs(&found)), "seed {seed}: {}", text::print(&graph));
        let (_, least, _) = searched(&graph, &library, &Enumerate { steps: 3 });
        assert!(cost <= least, "seed {seed}: {cost} instead of {least}: {}", text::print(&graph));
        gained += usize::from(cost < least);
        for (trust, why) in steps {
            if trust == Trust::Proved {
                proved += 1;
            } else {
                open.push(format!("seed {seed}: {why}"));
            }
        }
    }
    // A step that cannot be proved rules a result out: there must be few.
    assert!(gained > 0 && proved > 0 && open.len() * 200 <= proved, "{gained} are cheaper, {proved} steps are proved, not: {open:#?}");
}

#[test]
fn a_saturated_e_graph_contains_what_rules_reach() {
    let library = library(TRUE);
    let rules = Rules::of(&library).expect("unique names");
    let (mut reached, mut saturated) = (0, 0);
    for seed in 0..graphs() {
        let graph = drawn(seed, 3 + seed % 4);
        let mut growth = Growth::new(graph.clone(), &rules, &Anything, Limits { nodes: 3000, iterations: 30, ..Limits::default() });
        let stop = growth.saturate(&mut || false).expect("no clash");
        if stop != Stop::Saturated {
            continue;
        }
        saturated += 1;
        assert!(!growth.is_partial());
        let prices = Roofline::new(Bindings::new());
        let (mut engine, mut matcher) = (Engine::new(graph, &prices), Matcher::new(&library, &Anything));
        let mut visit = |engine: &Engine<'_>| {
            reached += 1;
            assert!(growth.space().contains(engine.graph()), "seed {seed}: {}", text::print(engine.graph()));
        };
        Enumerate { steps: 3 }.visiting(&mut engine, &mut matcher, &mut || false, &mut visit);
    }
    assert!(saturated > 10 && reached > 500, "{reached} graphs in {saturated} e-graphs");
}

#[test]
fn limits_are_kept_and_results_repeat() {
    let library = library(TRUE);
    let rules = Rules::of(&library).expect("unique names");
    for nodes in [40, 200, 1000] {
        for schedule in [Schedule::Simple, Schedule::Backoff { matches: 20, pause: 2 }] {
            let grow = || {
                let limits = Limits { nodes, iterations: 200, ..Limits::default() };
                let sum = "graph (x: f32[4]) { a = Abs(x) b = Neg(x) c = Mul(x, x) d = Relu(x) e = Mul(a, x) f = Mul(b, c) g = Mul(c, d)
                    p = Add(a, b) q = Add(p, c) r = Add(q, d) s = Add(r, e) t = Add(s, f) u = Add(t, g) output u }";
                let sum = text::parse(sum).expect("a graph");
                let mut growth = Growth::new(sum, &rules, &Anything, limits).scheduled(schedule);
                (growth.saturate(&mut || false).expect("no clash"), growth.space().len(), growth.space().digest())
            };
            let (stop, len, digest) = grow();
            assert_eq!(stop, Stop::Nodes);
            assert!(len * 20 <= nodes * 21 && len * 20 >= nodes * 19, "{len} e-nodes instead of {nodes}");
            assert_eq!((stop, len, digest), grow());
        }
    }
}

#[test]
fn a_rewrite_that_does_not_fit_is_not_applied() {
    // It makes 24 operators at once, of which none is there already.
    let target = (0..24).fold("?x".to_string(), |inner, at| format!("({} {inner})", if at % 2 == 0 { "neg" } else { "sigmoid" }));
    let library = library(&format!("(rule grow (abs ?x) => {target} (numeric exact))"));
    let rules = Rules::of(&library).expect("unique names");
    for (nodes, len) in [(60, 52), (49, 28), (29, 28), (5, 4)] {
        let graph = "graph (x: f32[4]) { a = Abs(x) b = Relu(a) c = Abs(b) output c }";
        let limits = Limits { nodes, iterations: 1, ..Limits::default() };
        let mut growth = Growth::new(text::parse(graph).expect("a graph"), &rules, &Anything, limits);
        growth.saturate(&mut || false).expect("no clash");
        assert_eq!(growth.space().len(), len, "at most {nodes}");
    }
}

#[test]
fn published_filters_leave_no_cycle_behind() {
    let library = library(TRUE);
    let rules = Rules::of(&library).expect("unique names");
    let mut cyclic = HashMap::new();
    for seed in 0..20 {
        for cycles in [Cycles::Kept, Cycles::Vanilla, Cycles::Efficient] {
            let limits = Limits { nodes: 400, ..Limits::default() };
            let mut growth = Growth::new(drawn(seed, 8), &rules, &Anything, limits).with_cycles(cycles);
            growth.saturate(&mut || false).expect("no clash");
            *cyclic.entry(format!("{cycles:?}")).or_insert(0) += usize::from(growth.is_cyclic());
            let (found, ..) = searched(&drawn(seed, 8), &library, &Saturate { cycles, limits, ..plain() });
            assert!(close(&outputs(&drawn(seed, 8)), &outputs(&found)), "seed {seed}, {cycles:?}");
        }
    }
    // The check before an application does not see what is set equal to its own operand.
    assert!(cyclic["Efficient"] == 0 && cyclic["Vanilla"] <= cyclic["Kept"] && cyclic["Kept"] > 0, "{cyclic:?}");
}

#[test]
fn tree_search_is_true_repeats_and_goes_where_one_step_at_a_time_leads() {
    let library = library(TRUE);
    let mut gained = 0;
    for seed in 0..graphs() / 4 {
        let graph = drawn(seed, 8);
        let mcts = Mcts { limits: Limits { nodes: 120, ..Limits::default() }, simulations: 8, polish: false, seed, ..Mcts::default() };
        let (found, cost, steps) = searched(&graph, &library, &mcts);
        assert!(close(&outputs(&graph), &outputs(&found)), "seed {seed}: {}", text::print(&graph));
        assert!(steps.iter().all(|(trust, _)| *trust == Trust::Proved), "seed {seed}: {steps:?}");
        // Whatever the number of threads, and whatever the seeds of hash maps, of which each has
        // its own.
        for threads in [1, 3] {
            let (again, same, _) = searched(&graph, &library, &Mcts { threads, ..mcts });
            assert_eq!((canonical_key(&found), cost), (canonical_key(&again), same), "seed {seed}, {threads} threads");
        }
        gained += usize::from(cost < Roofline::new(Bindings::new()).total(&graph));
    }
    assert!(gained > 0);
}

/// Layers that compute transposes of what goes past them. It is cheapest to transpose the input and
/// nothing else: then each layer's operand is what goes past it, and only all layers before it tell
/// that it is the same, unless the step before has said so.
#[test]
fn values_that_are_others_transposed_are_proved_one_by_one() {
    let library = library(
        "(rule pull (transpose (add ?x ?y) :perm ?p) => (add (transpose ?x :perm ?p) (transpose ?y :perm ?p)) (when (same-shape ?x ?y)) (numeric exact))
         (rule cancel (transpose (transpose ?x :perm ?p) :perm ?p) => ?x (when (= ?p (list 1 0))) (numeric exact))",
    );
    let layer = |at: usize| {
        let product = format!("t{at} = Transpose(x{at}, perm=[1,0]) m{at} = MatMul(w{at}, t{at}) r{at} = Relu(m{at})");
        format!("{product} b{at} = Transpose(r{at}, perm=[1,0]) x{} = Add(b{at}, x{at}) ", at + 1)
    };
    let layers: String = (0..30).map(layer).collect();
    let weights: String = (0..30).map(|at| format!("const w{at}: f32[32,32] ")).collect();
    let graph = text::parse(&format!("graph (x0: f32[16,32]) {{ {weights} {layers} y = Transpose(x30, perm=[1,0]) output y }}"));
    let graph = normalized(graph.unwrap_or_else(|e| panic!("{e}")));
    let (found, _, steps) = searched(&graph, &library, &plain());
    let transposes = found.ids().filter(|id| matches!(found.node(*id).op, Op::Transpose(_))).count();
    assert_eq!(transposes, 1, "{}", text::print(&found));
    let open: Vec<_> = steps.iter().filter(|(trust, _)| *trust != Trust::Proved).collect();
    assert!(open.is_empty(), "{} of {} steps: {open:?}", open.len(), steps.len());
}

#[test]
fn networks_get_cheaper_and_every_step_is_proved() {
    let library = Library::shipped().expect("the shipped rules");
    let limits = Limits { nodes: 1200, ..Limits::default() };
    for name in ["paper-sru", "paper-squeezenet", "paper-bert"] {
        let model = regraft_zoo::build(name, &regraft_zoo::Options::default()).expect("a network");
        let model = regraft_onnx::Model::from_proto(model).expect("a model");
        let graph = normalized(model.graph().clone());
        let before = Roofline::new(Bindings::new()).total(&graph);
        let (_, cost, steps) = searched(&graph, &library, &Saturate { limits, ..plain() });
        assert!(cost < before, "{name}: {before} -> {cost}");
        // What is too large for a proof where it is must be one rewrite, by a rule that is proved.
        let is_covered =
            |why: &str| why.split(": ").next().and_then(|name| library.get(name)).is_some_and(|rule| rule.trust == Trust::Proved);
        let open: Vec<_> = steps.iter().filter(|(trust, why)| *trust < Trust::Bounded && !is_covered(why)).collect();
        assert!(open.is_empty(), "{name}: {} of {} steps: {open:?}", open.len(), steps.len());
    }
}
