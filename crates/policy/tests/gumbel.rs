//! Decisions by simulations: they repeat, are never worse than nothing, find what pays only after a
//! rise, and keep their books.

mod networks;

use regraft_cost::{CostModel, Ns, Roofline};
use regraft_ir::{Bindings, Graph, NodeId, OpKind, SplitMix64, Steps, text};
use regraft_policy::gumbel::Course;
use regraft_policy::{Digest, Guide, Gumbel, Learned, Method, Weights, block};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{Engine, Exact, Guided, Matcher, Outcome, Strategy, Table};

use networks::{network, shipped};

/// A price for each kind of operator, 10 unless listed.
struct Prices(&'static [(OpKind, Ns)]);

impl CostModel for Prices {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        if node.constant || node.op.kind() == OpKind::Input {
            return 0;
        }
        self.0.iter().find(|(kind, _)| *kind == node.op.kind()).map_or(10, |(_, price)| *price)
    }
}

fn library(rules: &str) -> Library {
    Library::new(parse("t", rules).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
}

/// Searches, and checks what must hold of every course.
fn search(gumbel: &Gumbel<'_>, graph: &Graph, library: &Library, prices: &dyn CostModel, budget: u64) -> Course {
    let mut engine = Engine::new(graph.clone(), prices);
    let (cost, key) = (engine.cost(), engine.key());
    let course = gumbel.observed(&mut engine, &mut Matcher::new(library, &Anything), &mut Steps(budget), &mut |_, _| {});
    assert_eq!((engine.depth(), engine.cost(), engine.key()), (0, cost, key));
    assert!(course.outcome.scripts[0].cost <= cost);
    for script in &course.outcome.scripts {
        script.moves.iter().for_each(|step| engine.apply(step));
        assert_eq!((engine.cost(), engine.key()), (script.cost, script.key));
        assert!(gumbel.steps.is_none_or(|most| script.moves.len() <= most));
        engine.rewind(0);
    }
    assert_eq!(course.visits.len() as u64, course.outcome.visited);
    for (at, (visits, of_moves)) in course.visits.iter().enumerate() {
        assert_eq!(*visits, 1 + of_moves, "state {at}");
    }
    course
}

fn costs(outcome: &Outcome) -> Vec<(Ns, u128, usize)> {
    outcome.scripts.iter().map(|script| (script.cost, script.key, script.moves.len())).collect()
}

/// Three steps up, of which none saves, and one down; beside it a way that saves little at once.
const CLIMB: &str = "(rule one (neg ?x) => (abs ?x) (numeric exact)) (rule two (abs ?x) => (exp ?x) (numeric exact))
    (rule three (exp ?x) => (tanh ?x) (numeric exact)) (rule four (tanh ?x) => (relu ?x) (numeric exact))
    (rule back (abs ?x) => (neg ?x) (numeric exact)) (rule little (neg ?x) => (sqrt ?x) (numeric exact))";
const CLIMB_PRICES: Prices = Prices(&[
    (OpKind::Neg, 100),
    (OpKind::Abs, 104),
    (OpKind::Exp, 108),
    (OpKind::Tanh, 112),
    (OpKind::Relu, 40),
    (OpKind::Sqrt, 95),
    (OpKind::Sigmoid, 30),
]);

#[test]
fn what_pays_only_after_a_rise_is_found() {
    let library = library(CLIMB);
    let weights = Weights::random(Digest::of(&library), 5);
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) b = Sigmoid(a) c = Neg(b) output c }").expect("a graph");
    let mut engine = Engine::new(graph.clone(), &CLIMB_PRICES);
    let all = Table { steps: 20 }.search(&mut engine, &mut Matcher::new(&library, &Anything), &mut Steps(u64::MAX));
    assert!(all.complete && all.scripts[0].cost == 110, "{}", all.scripts[0].cost);
    for guide in [Guide::Delta, Guide::Policy(&weights)] {
        let course = search(&Gumbel { rise: 10.0, ..Gumbel::new(guide) }, &graph, &library, &CLIMB_PRICES, u64::MAX);
        assert_eq!(course.outcome.scripts[0].cost, 110, "{guide:?}");
        // Six operators at each of two places: each state is one state, whatever leads to it.
        assert_eq!((course.outcome.complete, course.outcome.visited), (true, 36), "{guide:?}");
        // With a limit, the shorter ways are left.
        let limited = search(&Gumbel { steps: Some(2), ..Gumbel::new(guide) }, &graph, &library, &CLIMB_PRICES, u64::MAX);
        assert_eq!(limited.outcome.scripts[0].cost, 220, "{guide:?}");
    }
}

#[test]
fn searches_repeat_and_seeds_differ() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let weights = Weights::random(Digest::of(&library), 5);
    let mut differs = false;
    for name in ["squeezenet-1.1", "gpt2-block", "sru"] {
        let graph = block(&network(name), &mut SplitMix64(1)).expect("a block");
        for guide in [Guide::Delta, Guide::Policy(&weights)] {
            let run = |seed: u64| search(&Gumbel { expansions: 120, seed, ..Gumbel::new(guide) }, &graph, &library, &prices, u64::MAX);
            let (first, again, other) = (run(1), run(1), run(2));
            assert_eq!((costs(&first.outcome), &first.visits), (costs(&again.outcome), &again.visits), "{name}");
            assert_eq!(first.ways.len(), again.ways.len());
            assert!(!first.ways.is_empty());
            differs |= first.visits != other.visits;
        }
    }
    assert!(differs);
}

#[test]
fn a_budget_ends_it_and_what_was_found_is_kept() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let graph = network("squeezenet-1.1");
    let mut last = Ns::MAX;
    for budget in [1, 2, 20, 200] {
        let course = search(&Gumbel::new(Guide::Delta), &graph, &library, &prices, budget);
        assert!(!course.outcome.complete && course.outcome.visited <= budget + 1);
        // The same draws: more of them find no less.
        assert!(course.outcome.scripts[0].cost <= last);
        last = course.outcome.scripts[0].cost;
    }
    assert!(last < Engine::new(graph, &prices).cost());
}

#[test]
fn advice_changes_the_order_and_not_what_a_small_graph_ends_with() {
    let library = library(CLIMB);
    let weights = Weights::random(Digest::of(&library), 5);
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) b = Sigmoid(a) c = Neg(b) output c }").expect("a graph");
    let run = |strategy: &dyn Strategy| {
        let mut engine = Engine::new(graph.clone(), &CLIMB_PRICES);
        let found = strategy.search(&mut engine, &mut Matcher::new(&library, &Anything), &mut Steps(u64::MAX));
        assert_eq!(engine.depth(), 0);
        found.scripts[0].moves.iter().for_each(|step| engine.apply(step));
        assert_eq!(engine.cost(), found.scripts[0].cost);
        found.scripts[0].cost
    };
    let exact = Exact::default();
    assert_eq!((run(&exact), run(&Guided { exact, advisor: &weights })), (110, 110));
}

#[test]
fn every_search_that_the_shipped_policy_guides_runs_without_it_too() {
    let (library, prices) = (shipped(), Roofline::new(Bindings::new()));
    let graph = block(&network("gpt2-block"), &mut SplitMix64(3)).expect("a block");
    for method in [Method::Prior, Method::Gumbel, Method::GuidedExact] {
        let learned = Learned { method, steps: Some(3) };
        let mut engine = Engine::new(graph.clone(), &prices);
        let found = learned.search(&mut engine, &mut Matcher::new(&library, &Anything), &mut Steps(300));
        assert!(found.scripts[0].cost <= engine.cost() && found.scripts[0].moves.len() <= 3, "{method:?}");
    }
}
