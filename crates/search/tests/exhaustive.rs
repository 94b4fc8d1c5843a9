//! The exhaustive searches reach the same graphs, for rules of every kind.

mod common;

use std::collections::BTreeSet;

use regraft_cost::{CostModel, Ns, Roofline};
use regraft_ir::{Bindings, Graph, SplitMix64, canonical_key, text};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{Dpp, Engine, Enumerate, Exact, Exhaustive, Matcher, Order, Outcome, Prune, SleepSets, Steps, Strategy, Table};

/// Random graphs for each family of rules; `REGRAFT_EXHAUSTIVE` names another number.
const GRAPHS: u64 = 300;
/// Operators of a random graph, and moves in a sequence.
const OPERATORS: u64 = 7;
const STEPS: usize = 3;

/// Rules that neither drop an operand or a path, nor put an old value in the place of another, nor
/// ask about what is around their source.
const MONOTONE: &str = "
    (rule fuse (relu (neg ?x)) => (abs ?x) (numeric exact))
    (rule turn (abs ?x) => (relu ?x) (numeric exact))
    (rule pull (neg (add ?x ?y)) => (add (neg ?x) (neg ?y)) (numeric exact))
    (rule swap (mul (relu ?x) ?y) => (relu (mul ?x ?y)) (numeric exact))";
const FAMILIES: [(&str, &str); 5] = [
    ("monotone", ""),
    ("pass-through", "(rule drop (neg ?x) => ?x (numeric exact)) (rule undo (abs (relu ?x)) => ?x (numeric exact))"),
    ("dropped operands", "(rule forget (mul ?x ?y) => (neg ?x) (numeric exact))"),
    (
        "merges",
        "(rule share (all (as ?a (neg ?x)) (as ?b (abs ?x))) => (all ?m (relu ?m)) (let (?m (sigmoid ?x))) (numeric exact))
         (rule join (all (as ?a (add ?x ?y)) (as ?b (mul ?x ?z))) => (all (sub ?m ?z) (sub ?m ?y)) (let (?m (mul (mul ?x ?y) ?z)))
           (when (before ?a ?b)) (numeric exact))",
    ),
    (
        "readers",
        "(rule alone (neg ?x) => (sigmoid ?x) (when (= (users ?x) 1)) (numeric exact)) (rule split (abs ?x) => (mul ?x ?x) (numeric exact))",
    ),
];

fn library(rules: &str) -> Library {
    Library::new(parse("t", rules).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
}

/// A graph of operators drawn at random, which may share operands, with one or two outputs.
fn drawn(seed: u64) -> Graph {
    let mut random = SplitMix64(seed);
    let mut below = |n: u64| random.below(n as usize) as u64;
    let operators = 2 + below(OPERATORS - 1);
    let mut body = String::new();
    for at in 0..operators {
        let mut operand = || match below(at + 2) {
            0 => "x".to_string(),
            1 => "y".to_string(),
            earlier => format!("v{}", earlier - 2),
        };
        let (a, b) = (operand(), operand());
        body += &match below(6) {
            0 => format!("v{at} = Add({a}, {b}) "),
            1 => format!("v{at} = Mul({a}, {b}) "),
            2 => format!("v{at} = Relu({a}) "),
            3 => format!("v{at} = Abs({a}) "),
            _ => format!("v{at} = Neg({a}) "),
        };
    }
    let (last, other) = (operators - 1, below(operators));
    let second = if other == last { String::new() } else { format!(", v{other}") };
    let graph = text::parse(&format!("graph (x: f32[4], y: f32[4]) {{ {body} output v{last}{second} }}")).expect("a graph");
    common::normalized(graph)
}

/// The graphs that a search visits, by their keys, and how many states it visits. That a graph
/// computes something twice does not count: whether a target finds a twin to reuse depends on the
/// order.
type Reached = (BTreeSet<u128>, u64);

fn reached(graph: &Graph, library: &Library, search: &str) -> Reached {
    reached_within(graph, library, search, STEPS)
}

fn reached_within(graph: &Graph, library: &Library, search: &str, steps: usize) -> Reached {
    let prices = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph.clone(), &prices);
    let (start, mut keys) = (engine.key(), BTreeSet::new());
    let mut matcher = Matcher::new(library, &Anything);
    let mut visit = |engine: &Engine<'_>| {
        keys.insert(canonical_key(&common::normalized(engine.graph().clone())));
    };
    let (e, m, budget) = (&mut engine, &mut matcher, &mut || false);
    let (sound, published) = (Order::Monotone, Order::Published);
    let outcome: Outcome = match search {
        "enumerate" => Enumerate { steps }.visiting(e, m, budget, &mut visit),
        "table" => Table { steps }.visiting(e, m, budget, &mut visit),
        "sleep sets" => SleepSets { steps }.visiting(e, m, budget, &mut visit),
        "prune" => Prune { steps, order: sound }.visiting(e, m, budget, &mut visit),
        "dpp" => Dpp { steps, order: sound }.visiting(e, m, budget, &mut visit),
        "prune as published" => Prune { steps, order: published }.visiting(e, m, budget, &mut visit),
        "dpp as published" => Dpp { steps, order: published }.visiting(e, m, budget, &mut visit),
        other => panic!("{other}"),
    };
    assert!(outcome.complete && engine.key() == start && engine.depth() == 0, "{search}");
    for script in &outcome.scripts {
        assert!(script.moves.len() <= steps, "{search}");
    }
    (keys, outcome.visited)
}

/// The searches that leave something out, those that reach all whatever the rules first.
const SEARCHES: [&str; 4] = ["sleep sets", "table", "prune", "dpp"];
const SOUND: usize = 2;

#[test]
fn all_reach_what_enumeration_reaches() {
    let graphs = std::env::var("REGRAFT_EXHAUSTIVE").ok().and_then(|n| n.parse().ok()).unwrap_or(GRAPHS);
    for (family, rules) in FAMILIES {
        let library = library(&format!("{MONOTONE} {rules}"));
        let (mut visited, mut reachable, mut missed, mut lost) = ([0; 5], 0, 0, 0);
        for seed in 0..graphs {
            let graph = drawn(seed);
            let (all, n) = reached(&graph, &library, "enumerate");
            visited[4] += n;
            reachable += all.len();
            for (at, search) in SEARCHES.iter().enumerate() {
                let (found, n) = reached(&graph, &library, search);
                if at < SOUND || family == "monotone" {
                    assert_eq!(found, all, "{search}, {family}, seed {seed}: {}", text::print(&graph));
                }
                assert!(found.is_subset(&all), "{search}, {family}, seed {seed}: {}", text::print(&graph));
                missed = missed.max(all.len() - found.len());
                visited[at] += n;
            }
            for search in ["prune as published", "dpp as published"] {
                let (found, _) = reached(&graph, &library, search);
                assert!(found.is_subset(&all), "{search}, {family}, seed {seed}: {}", text::print(&graph));
                lost += all.len() - found.len();
            }
        }
        assert!(visited[..4].iter().all(|sum| *sum < visited[4]), "{family}: {visited:?}");
        // Where a target finds a twin to reuse in one order only, two orders are not alike.
        assert!(missed * 1000 <= reachable, "{family}: {missed} of {reachable} graphs are lost");
        // Even monotone rules reach beyond their source where a target reuses what is there.
        assert!(lost > 0, "{family}: the published order loses nothing");
    }
}

#[test]
fn a_key_tells_apart_nodes_that_were_made_alike() {
    // After two rewrites of its other outputs, the first difference leads to a node made as `b`
    // was, whose operand is another by then: which of the two an output is has to show in the key.
    let library = library("(rule turn (sub ?x ?y) => (neg (sub ?y ?x)) (numeric exact))");
    let graph = text::parse("graph (x: f32[2,2], y: f32[2,2]) { s = Sub(y, x) a = Sub(x, y) b = Neg(s) output a, b }").expect("a graph");
    let all = reached_within(&graph, &library, "enumerate", 4).0;
    for search in ["sleep sets", "table"] {
        assert_eq!(reached_within(&graph, &library, search, 4).0, all, "{search}");
    }
}

#[test]
fn a_place_where_a_twin_may_be_reused_is_not_ordered() {
    // Of the two ways to turn the second product around, one reuses `a`, as long as that is there.
    let library = library("(rule associate (mul (mul ?x ?y) ?z) => (mul ?x (mul ?y ?z)) (numeric reassociates))");
    let graph = "graph (x: f32[2,2], y: f32[2,2]) { n = Neg(x) a = Mul(y, n) b = Mul(y, x) c = Mul(b, n) d = Mul(a, n) output c, d }";
    let graph = text::parse(graph).expect("a graph");
    let all = reached_within(&graph, &library, "enumerate", 2).0;
    for search in ["prune", "dpp"] {
        assert_eq!(reached_within(&graph, &library, search, 2).0, all, "{search}");
    }
}

/// The cost of the cheapest state that a search finds, the states that it visits, and whether these
/// are all.
fn cheapest(graph: &Graph, library: &Library, strategy: &dyn Strategy) -> (Ns, u64, bool) {
    let prices = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph.clone(), &prices);
    let (key, cost) = (engine.key(), engine.cost());
    let outcome = strategy.search(&mut engine, &mut Matcher::new(library, &Anything), &mut || false);
    assert_eq!((engine.key(), engine.cost(), engine.depth()), (key, cost, 0));
    let best = &outcome.scripts[0];
    best.moves.iter().for_each(|step| engine.apply(step));
    assert_eq!((engine.key(), engine.cost()), (best.key, best.cost), "what was promised is what it costs");
    (best.cost, outcome.visited, outcome.complete)
}

#[test]
fn in_one_region_exact_finds_the_cheapest_state() {
    for (family, rules) in FAMILIES {
        let library = library(&format!("{MONOTONE} {rules}"));
        for seed in 0..GRAPHS {
            let graph = drawn(seed);
            let (all, ..) = cheapest(&graph, &library, &Enumerate { steps: STEPS });
            let (limited, _, complete) = cheapest(&graph, &library, &Exact { steps: Some(STEPS), ..Exact::default() });
            assert!(complete && limited == all, "{family}, seed {seed}: {limited} and {all}: {}", text::print(&graph));
            let (unlimited, ..) = cheapest(&graph, &library, &Exact::default());
            assert!(unlimited <= all, "{family}, seed {seed}: {unlimited} and {all}: {}", text::print(&graph));
        }
    }
}

#[test]
fn regions_that_look_alike_are_searched_once_and_their_savings_add_up() {
    // In each block, a saving comes after a step that saves nothing.
    let library = library(
        "(rule drop (identity ?x) => ?x (numeric exact)) (rule turn (abs ?x) => (relu ?x) (numeric exact))
         (rule fuse (relu (relu ?x)) => (relu ?x) (numeric exact))",
    );
    let block = |at: usize| {
        let x = if at == 0 { "x".to_string() } else { format!("z{}", at - 1) };
        let chain = (1..9).map(|i| format!("v{at}_{i} = Neg(v{at}_{}) ", i - 1)).collect::<String>();
        format!("v{at}_0 = Abs({x}) {chain} w{at} = Abs(v{at}_8) y{at} = Relu(w{at}) z{at} = Add({x}, y{at}) ")
    };
    let network = |blocks: usize| {
        let text = (0..blocks).map(block).collect::<String>();
        text::parse(&format!("graph (x: f32[4096]) {{ {text} output z{} }}", blocks - 1)).expect("a graph")
    };
    let found = |blocks: usize| {
        let (graph, steps, prices) = (network(blocks), Some(2 * blocks), Roofline::new(Bindings::new()));
        let mut engine = Engine::new(graph, &prices);
        let exact = Exact { steps, ..Exact::default() };
        let (outcome, regions) = exact.search_regions(&mut engine, &mut Matcher::new(&library, &Anything), &mut || false);
        // What was searched, and not found again.
        let visited: u64 = regions.iter().filter(|region| region.alike.is_none()).map(|region| region.states).sum();
        (engine.cost() - outcome.scripts[0].cost, visited)
    };
    let ((few, visited), (many, visited_of_many)) = (found(12), found(48));
    assert!(few > 0 && visited_of_many < 2 * visited, "{visited} and {visited_of_many} states");
    // Cuts leave some blocks in two parts.
    assert!(many >= 3 * few, "{few} and {many}");
    let (unlimited, ..) = cheapest(&network(12), &library, &Exact::default());
    let (greedy, ..) = cheapest(&network(12), &library, &regraft_search::Greedy::default());
    assert!(unlimited <= greedy);
}

#[test]
fn a_rewrite_that_another_enables_is_found() {
    // From the facts about OCGGS: what is around a source changes without any of its nodes being
    // made anew.
    let cases = [
        (
            "a node between goes",
            "(rule drop (identity ?x) => ?x (numeric exact)) (rule fuse (relu (neg ?x)) => (abs ?x) (numeric exact))",
            "graph (x: f32[4]) { a = Neg(x) b = Identity(a) c = Relu(b) output c }",
            "graph (x: f32[4]) { c = Abs(x) output c }",
            [false, true],
        ),
        (
            "a pair becomes a node between, which goes",
            "(rule pair (transpose :perm ?p (transpose :perm ?p ?x)) => (identity ?x) (when (= ?p (list 1 0))) (numeric exact))
             (rule drop (identity ?x) => ?x (numeric exact)) (rule fuse (relu (neg ?x)) => (abs ?x) (numeric exact))",
            "graph (x: f32[4,4]) { a = Neg(x) b = Transpose(a, perm=[1,0]) c = Transpose(b, perm=[1,0]) d = Relu(c) output d }",
            "graph (x: f32[4,4]) { d = Abs(x) output d }",
            [true, true],
        ),
        (
            "another reader goes",
            "(rule forget (mul ?d ?a) => (sigmoid ?d) (numeric exact)) (rule fuse (relu (neg ?x)) => (abs ?x) (numeric exact))",
            "graph (x: f32[4], z: f32[4]) { a = Neg(x) b = Relu(a) d = Tanh(z) c = Mul(d, a) output b, c }",
            "graph (x: f32[4], z: f32[4]) { b = Abs(x) d = Tanh(z) c = Sigmoid(d) output b, c }",
            [true, true],
        ),
        (
            "a path between the two goes",
            "(rule part (add (sub ?x ?y) ?y) => (relu ?x) (numeric exact))
             (rule merge (all (as ?a (mul ?x ?w)) (as ?b (mul ?z ?w))) => (all (add ?m ?z) (add ?m ?x)) (let (?m (max ?x ?z ?w))) (numeric exact))",
            "graph (x: f32[4], z: f32[4], w: f32[4]) { a = Mul(x, w) s = Sub(z, a) t = Add(s, a) b = Mul(t, w) output a, b }",
            "graph (x: f32[4], z: f32[4], w: f32[4]) { t = Relu(z) m = Max(x, t, w) a = Add(m, t) b = Add(m, x) output a, b }",
            [false, true],
        ),
        (
            "two operands become one",
            "(rule twins (all (as ?a (neg ?x)) (as ?b (neg ?x))) => (all ?m ?m) (let (?m (abs ?x))) (numeric exact))
             (rule square (mul ?x ?x) => (relu ?x) (numeric exact))",
            "graph (x: f32[4]) { a = Neg(x) b = Neg(x) c = Mul(a, b) output c }",
            "graph (x: f32[4]) { m = Abs(x) c = Relu(m) output c }",
            [false, true],
        ),
    ];
    let key = |graph: &str| canonical_key(&text::parse(graph).unwrap_or_else(|e| panic!("{e}")));
    for (name, rules, before, after, loses) in cases {
        let (library, graph) = (library(rules), text::parse(before).expect("a graph"));
        for search in ["enumerate", "sleep sets", "table", "prune", "dpp"] {
            assert!(reached(&graph, &library, search).0.contains(&key(after)), "{name}, {search}");
        }
        let (cost, ..) = cheapest(&graph, &library, &Exact { steps: Some(STEPS), ..Exact::default() });
        assert!(cost <= Roofline::new(Bindings::new()).total(&text::parse(after).expect("a graph")), "{name}, exact");
        let lost = ["prune as published", "dpp as published"].map(|search| !reached(&graph, &library, search).0.contains(&key(after)));
        assert_eq!(lost, loses, "{name}");
    }
}

#[test]
fn a_budget_ends_them() {
    let library = library(MONOTONE);
    let graph = text::parse("graph (x: f32[4]) { a = Abs(x) b = Abs(a) c = Abs(b) d = Abs(c) output d }").expect("a graph");
    let prices = Roofline::new(Bindings::new());
    let mut engine = Engine::new(graph, &prices);
    let mut matcher = Matcher::new(&library, &Anything);
    let order = Order::Monotone;
    let steps = 9;
    let strategies: [&dyn Strategy; 5] =
        [&Enumerate { steps }, &SleepSets { steps }, &Table { steps }, &Prune { steps, order }, &Dpp { steps, order }];
    for strategy in strategies {
        let outcome = strategy.search(&mut engine, &mut matcher, &mut Steps(5));
        assert!(!outcome.complete && engine.depth() == 0 && outcome.visited <= 5, "{}: {}", strategy.name(), outcome.visited);
        let outcome = strategy.search(&mut engine, &mut matcher, &mut || false);
        assert!(outcome.complete && outcome.visited >= 16, "{}: {}", strategy.name(), outcome.visited);
    }
}
