//! What every strategy guarantees, and what each of them finds.

mod common;

use std::sync::Arc;

use common::{fixtures, network, roofline, shipped};
use regraft_cost::{CostModel, Ns};
use regraft_ir::text::inventory;
use regraft_ir::{Dim, Graph, NodeId, OpKind, text};
use regraft_rules::{Anything, Library, parse};
use regraft_search::{
    Backtrack, Budget, Descents, Engine, Exact, Greedy, Matcher, MetaFlow, Move, Outcome, Script, Spread, Steps, Strategy, all_moves,
};

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

/// Neg becomes Abs becomes Relu; only the second step pays off.
const DETOUR: &str = "(rule up (neg ?x) => (abs ?x) (numeric exact)) (rule down (abs ?x) => (relu ?x) (numeric exact))";
const DETOUR_PRICES: Prices = Prices(&[(OpKind::Neg, 100), (OpKind::Abs, 104), (OpKind::Relu, 50)]);

fn library(rules: &str) -> Library {
    Library::new(parse("t", rules).unwrap_or_else(|e| panic!("{e}"))).unwrap_or_else(|e| panic!("{e}"))
}

fn strategies() -> Vec<Box<dyn Strategy>> {
    vec![
        Box::new(Greedy::default()),
        Box::new(Greedy { depth: 1, slack: 0.0, width: 1, deep: 0, ..Greedy::default() }),
        Box::new(Backtrack { expansions: 20, ..Backtrack::default() }),
        Box::new(Backtrack { expansions: 20, descend_first: false, ..Backtrack::default() }),
        Box::new(Spread::default()),
        Box::new(Descents::default()),
        Box::new(MetaFlow { part: 6, expansions: 20, ..MetaFlow::default() }),
    ]
}

/// Searches, and checks what must hold for every search: the start state is restored, and every
/// script leads where it says.
fn search(strategy: &dyn Strategy, graph: &Graph, library: &Library, model: &dyn CostModel, budget: &mut dyn Budget) -> Outcome {
    let mut engine = Engine::new(graph.clone(), model);
    let start = (engine.key(), engine.cost(), inventory(engine.graph()));
    let outcome = strategy.search(&mut engine, &mut Matcher::new(library, &Anything), budget);
    assert_eq!(engine.depth(), 0, "{}", strategy.name());
    assert_eq!((engine.key(), engine.cost(), inventory(engine.graph())), start, "{}", strategy.name());
    assert!(!outcome.scripts.is_empty(), "{}", strategy.name());
    assert!(outcome.scripts.windows(2).all(|w| w[0].cost <= w[1].cost), "{}", strategy.name());
    assert!(outcome.scripts[0].cost <= engine.cost(), "{} is worse than the start", strategy.name());
    for script in &outcome.scripts {
        script.moves.iter().for_each(|step| engine.apply(step));
        assert_eq!((engine.key(), engine.cost()), (script.key, script.cost), "{}", strategy.name());
        assert_eq!(engine.cost(), model.total(engine.graph()), "{}", strategy.name());
        while engine.undo() {}
    }
    outcome
}

/// A script as text, to compare two runs.
fn scripts(outcome: &Outcome) -> Vec<String> {
    let text =
        |s: &regraft_search::Script| format!("{} {:x} {:?}", s.cost, s.key, s.moves.iter().map(|m| (m.rule, &m.nodes)).collect::<Vec<_>>());
    outcome.scripts.iter().map(text).collect()
}

#[test]
fn searches_are_sound_and_repeatable() {
    let (library, model) = (shipped(), roofline());
    let networks = ["paper-resnet-n2", "paper-inception-e-n1"].map(|name| (name, network(name)));
    for (name, graph) in fixtures().into_iter().chain(networks) {
        let start = model.total(&graph);
        let costs: Vec<Ns> = strategies()
            .iter()
            .map(|strategy| {
                let run = || search(strategy.as_ref(), &graph, &library, &model, &mut Steps(2000));
                let (first, second) = (run(), run());
                assert_eq!(scripts(&first), scripts(&second), "{name}: {}", strategy.name());
                assert_eq!((first.visited, first.complete), (second.visited, second.complete), "{name}: {}", strategy.name());
                first.scripts[0].cost
            })
            .collect();
        assert!(
            costs[0] <= start && costs[2] <= costs[0],
            "{name}: {costs:?} from {start}: starting from the descent cannot be worse than it"
        );
    }
}

#[test]
fn a_budget_ends_the_search() {
    let (library, model) = (shipped(), roofline());
    let graph = network("paper-inception-e-n1");
    for strategy in strategies() {
        let mut last = 0;
        for steps in [1, 2, 3, 5, 8] {
            let mut checks = 0u64;
            let mut budget = || {
                checks += 1;
                checks >= steps
            };
            let outcome = search(strategy.as_ref(), &graph, &library, &model, &mut budget);
            assert!(!outcome.complete || checks < steps, "{}: {steps}", strategy.name());
            assert!(checks <= steps + 2, "{}: {checks} checks though {steps} were all", strategy.name());
            let same = search(strategy.as_ref(), &graph, &library, &model, &mut Steps(steps));
            assert_eq!(scripts(&outcome), scripts(&same), "{}: {steps}", strategy.name());
            assert!(outcome.visited >= last, "{}: a larger budget visits no less", strategy.name());
            last = outcome.visited;
            if steps == 1 {
                assert_eq!((outcome.scripts[0].moves.len(), outcome.complete), (0, false), "{}", strategy.name());
            }
        }
    }
}

#[test]
fn a_search_in_two_threads_finds_what_it_finds_in_one() {
    let (library, model) = (shipped(), roofline());
    for name in ["paper-inception-e-n1", "squeezenet-1.1"] {
        let graph = network(name);
        let [one, two] = [false, true].map(|threaded| {
            let descents = Descents { threaded, ..Descents::default() };
            search(&descents, &graph, &library, &model, &mut || false)
        });
        assert_eq!((scripts(&one), one.visited, one.complete), (scripts(&two), two.visited, two.complete), "{name}");
    }
    let graph = network("squeezenet-1.1");
    let ended = search(&Descents { threaded: true, ..Descents::default() }, &graph, &library, &model, &mut || true);
    assert!(!ended.complete);
}

#[test]
fn a_detour_that_pays_as_a_whole_is_found() {
    let library = library(DETOUR);
    let graph = text::parse("graph (x: f32[4]) { y = Neg(x) z = Exp(y) output z }").unwrap();
    let run = |strategy: &dyn Strategy| search(strategy, &graph, &library, &DETOUR_PRICES, &mut Steps(1000)).scripts[0].clone();
    let backtrack = |alpha| Backtrack { alpha, expansions: 50, keep: 2, descend_first: false, ..Backtrack::default() };
    for (strategy, cost, steps) in [
        (Box::new(backtrack(1.05)) as Box<dyn Strategy>, 60, 2),
        (Box::new(backtrack(1.0)), 110, 0),
        (Box::new(Greedy { depth: 2, slack: 0.05, width: 8, deep: 0, ..Greedy::default() }), 60, 2),
        (Box::new(Greedy { depth: 2, slack: 0.01, width: 8, deep: 0, ..Greedy::default() }), 110, 0),
        (Box::new(Greedy { depth: 1, slack: 0.05, width: 8, deep: 0, ..Greedy::default() }), 110, 0),
    ] {
        let script = run(strategy.as_ref());
        assert_eq!((script.cost, script.moves.len()), (cost, steps), "{}", strategy.name());
    }
}

#[test]
fn of_two_detours_that_want_the_same_node_the_better_one_is_taken() {
    let rival = "(rule both (exp (neg ?x)) => (sigmoid ?x) (numeric exact)) (rule end (sigmoid ?x) => (tanh ?x) (numeric exact))";
    let library = library(&format!("{DETOUR} {rival}"));
    let prices = Prices(&[(OpKind::Neg, 100), (OpKind::Abs, 104), (OpKind::Relu, 50), (OpKind::Sigmoid, 115), (OpKind::Tanh, 20)]);
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) y = Exp(a) output y }").expect("a graph");
    let found = search(&Greedy { depth: 2, ..Greedy::default() }, &graph, &library, &prices, &mut Steps(1000));
    assert_eq!(found.scripts[0].cost, 20, "not 60, by the detour that is found first");
}

/// A product of one column costs 10, and one of `n` 60 + `n`; everything else is free.
struct Columns;

impl CostModel for Columns {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        match (node.op.kind(), graph.ty(id.out()).and_then(|ty| ty.shape.last()).and_then(Dim::known)) {
            (OpKind::MatMul, Some(1)) => 10,
            (OpKind::MatMul, Some(columns)) => 60 + columns as Ns,
            _ => 0,
        }
    }
}

#[test]
fn what_pays_only_once_many_are_merged_is_merged() {
    let rules = "(rule merge (all (as ?y (matmul ?x (const ?a))) (as ?z (matmul ?x (const ?b))))
        => (all (out 0 (split ?m :axis 1 :sizes (list (dim ?a 1) (dim ?b 1)))) (out 1 (split ?m :axis 1 :sizes (list (dim ?a 1) (dim ?b 1)))))
        (let (?m (matmul ?x (concat ?a ?b :axis 1)))) (numeric exact))";
    let products: String = ('a'..='l').map(|name| format!("const w{name}: f32[3,1] {name} = MatMul(x, w{name}) output {name} ")).collect();
    let graph = text::parse(&format!("graph (x: f32[2,3]) {{ {products} }}")).expect("a graph");
    let cost = |greedy: Greedy| search(&greedy, &graph, &library(rules), &Columns, &mut || false).scripts[0].cost;
    assert_eq!(cost(Greedy::default()), 72);
    assert_eq!(cost(Greedy { deep: 0, ..Greedy::default() }), 120, "not by looking a few moves ahead");
}

#[test]
fn the_best_of_exclusive_moves_wins() {
    // The largest saving first (a: 40) blocks two that save more together (b and c: 30 each).
    let rules = "(rule a (neg (abs (relu ?x))) => (sqrt ?x) (numeric exact)) (rule b (neg ?x) => (exp ?x) (numeric exact))
                 (rule c (relu ?x) => (tanh ?x) (numeric exact))";
    let library = library(rules);
    let model =
        Prices(&[(OpKind::Neg, 50), (OpKind::Abs, 50), (OpKind::Relu, 50), (OpKind::Sqrt, 110), (OpKind::Exp, 20), (OpKind::Tanh, 20)]);
    let graph = text::parse("graph (x: f32[4]) { a = Relu(x) b = Abs(a) c = Neg(b) output c }").unwrap();
    let greedy =
        search(&Greedy { depth: 1, slack: 0.0, width: 1, deep: 0, ..Greedy::default() }, &graph, &library, &model, &mut Steps(100));
    assert_eq!((greedy.scripts[0].cost, greedy.complete), (110, true));
    let backtrack = Backtrack { alpha: 1.2, expansions: 50, keep: 3, descend_first: false, ..Backtrack::default() };
    let best = search(&backtrack, &graph, &library, &model, &mut Steps(100));
    assert_eq!((best.scripts.iter().map(|s| s.cost).collect::<Vec<_>>(), best.complete), (vec![90, 110, 120], true));
}

#[test]
fn an_endless_rule_ends() {
    let library = library("(rule grow (neg ?x) => (neg (neg (neg ?x))) (numeric exact))");
    let graph = text::parse("graph (x: f32[4]) { y = Neg(x) output y }").unwrap();
    for strategy in strategies() {
        let outcome = search(strategy.as_ref(), &graph, &library, &Prices(&[(OpKind::Neg, 0)]), &mut Steps(50));
        assert_eq!(outcome.scripts[0].moves.len(), 0, "{}", strategy.name());
    }
}

/// Four blocks alike, each of which Neg, Abs or nothing may begin; the only way to tell what pays
/// is to try.
#[test]
fn blocks_that_are_alike_are_rewritten_in_different_ways() {
    let rules = "(rule by-abs (neg ?x) => (abs ?x) (numeric exact)) (rule by-relu (neg ?x) => (relu ?x) (numeric exact))";
    let prices = Prices(&[(OpKind::Neg, 100), (OpKind::Abs, 50), (OpKind::Relu, 51)]);
    let blocks = |names: &[&str]| {
        let text: String = names.iter().map(|n| format!("{n} = Neg(x{n}) s{n} = Softmax({n}, axis=0) ")).collect();
        let outputs: String = names.iter().map(|n| format!("output s{n} ")).collect();
        let inputs: String = names.iter().map(|n| format!("x{n}: f32[8]")).collect::<Vec<_>>().join(", ");
        text::parse(&format!("graph ({inputs}) {{ {text}{outputs}}}")).unwrap_or_else(|e| panic!("{e}"))
    };
    let kinds = |graph: &Graph, library: &Library| {
        let outcome = search(&Spread::default(), graph, library, &prices, &mut Steps(100));
        let mut engine = Engine::new(graph.clone(), &prices);
        outcome.scripts[0].moves.iter().for_each(|step| engine.apply(step));
        let of = |kind| engine.graph().ids().filter(|id| engine.graph().node(*id).op.kind() == kind).count();
        [OpKind::Neg, OpKind::Abs, OpKind::Relu].map(of)
    };
    assert_eq!(kinds(&blocks(&["a", "b", "c", "d"]), &library(rules)), [0, 2, 2]);
    assert_eq!(kinds(&blocks(&["a"]), &library(rules)), [1, 0, 0], "nothing is repeated");
    let explored = "(rule by-abs (neg ?x) => (abs ?x) (numeric exact) (explore))";
    let dear = Prices(&[(OpKind::Neg, 100), (OpKind::Abs, 500)]);
    let outcome = Spread::default().search(
        &mut Engine::new(blocks(&["a", "b", "c", "d"]), &dear),
        &mut Matcher::new(&library(explored), &Anything),
        &mut Steps(100),
    );
    assert_eq!(outcome.scripts[0].moves.len(), 2, "every other place, at any price");
}

#[test]
fn pieces_are_left_as_they_were_made() {
    let chain = (0..12).fold("?x".to_string(), |inner, _| format!("(relu {inner})"));
    let rules = format!(
        "(rule piece (neg ?x) => {chain} (numeric exact)) (rule inside (relu (relu ?x)) => (tanh ?x) (numeric exact))
         (rule outside (exp (exp ?x)) => (sqrt ?x) (numeric exact))"
    );
    let (library, prices) = (library(&rules), Prices(&[(OpKind::Neg, 500)]));
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) b = Exp(a) c = Exp(b) output c }").expect("a graph");
    let cost = |keeps_pieces| {
        let greedy = Greedy { keeps_pieces, ..Greedy::default() };
        search(&greedy, &graph, &library, &prices, &mut || false).scripts[0].cost
    };
    assert_eq!(cost(true), 130, "the twelve of the piece, and one outside");
    assert!(cost(false) < 130);
}

#[test]
fn what_others_found_is_not_searched_for_again() {
    let (library, model) = (shipped(), roofline());
    let graph = network("paper-inception-e-n1");
    let known = search(&Descents::default(), &graph, &library, &model, &mut || false);
    let alone = search(&Exact::default(), &graph, &library, &model, &mut || false);
    let mut engine = Engine::new(graph, &model);
    let after = Exact::default().search_after(&known, &mut engine, &mut Matcher::new(&library, &Anything), &mut || false);
    assert!(after.visited < alone.visited, "{} of {}", after.visited, alone.visited);
    assert!(after.scripts[0].cost <= alone.scripts[0].cost.min(known.scripts[0].cost));
}

#[test]
fn of_what_others_found_each_region_takes_what_pays_there() {
    let library = library(
        "(rule a (neg ?x) => (abs ?x) (numeric exact)) (rule b (abs ?x) => (relu ?x) (numeric exact))
         (rule c (relu ?x) => (tanh ?x) (numeric exact)) (rule d (neg ?x) => (exp ?x) (numeric exact))",
    );
    let prices = Prices(&[(OpKind::Neg, 100), (OpKind::Abs, 120), (OpKind::Relu, 130), (OpKind::Exp, 150)]);
    let chain = |from: &str, to: &str| {
        (0..30).fold(String::new(), |text, at| {
            let before = if at == 0 { from.to_string() } else { format!("{to}{}", at - 1) };
            text + &format!("{to}{at} = Sqrt({before}) ")
        })
    };
    let graph = format!("graph (x: f32[4]) {{ {} p = Neg(a29) {} q = Neg(b29) output q }}", chain("x", "a"), chain("p", "b"));
    let graph = text::parse(&graph).expect("a graph");
    let mut engine = Engine::new(graph, &prices);
    let mut matcher = Matcher::new(&library, &Anything);
    // One negation becomes a Tanh, the other an Exp: as a whole, that pays.
    let mut moves = Vec::new();
    for rule in ["a", "b", "c", "d"] {
        let of_rule = |step: &&Arc<Move>| *library.rules()[step.rule].name == *rule;
        let step = all_moves(&mut engine, &mut matcher).iter().find(of_rule).cloned().expect("a move");
        engine.apply(&step);
        moves.push(step);
    }
    let known = Outcome::of(Script { moves, cost: engine.cost(), key: engine.key() });
    while engine.undo() {}
    assert!(known.scripts[0].cost < engine.cost());
    let idle = Exact { states: 1, beam: 0, wide: 0, ahead: 0, expansions: (0, 0), ..Exact::default() };
    let nothing = Outcome::of(Script::here(&engine));
    let alone = idle.search_after(&nothing, &mut engine, &mut matcher, &mut || false);
    assert_eq!(alone.scripts[0].cost, engine.cost(), "by itself, it finds nothing");
    let found = idle.search_after(&known, &mut engine, &mut matcher, &mut || false);
    assert_eq!(found.scripts[0].cost, engine.cost() - 90, "the Tanh, and the other negation as it was");
}

#[test]
fn limited_sequences_are_no_longer_than_that() {
    let (library, model) = (shipped(), roofline());
    let graph = network("paper-inception-e-n1");
    for steps in [0, 1, 2, 5] {
        let limited: [Box<dyn Strategy>; 4] = [
            Box::new(Greedy { steps: Some(steps), ..Greedy::default() }),
            Box::new(Backtrack { steps: Some(steps), ..Backtrack::default() }),
            Box::new(Backtrack { steps: Some(steps), descend_first: false, expansions: 20, ..Backtrack::default() }),
            Box::new(MetaFlow { steps: Some(steps), expansions: 20, ..MetaFlow::default() }),
        ];
        for strategy in limited {
            let found = search(strategy.as_ref(), &graph, &library, &model, &mut || false);
            assert!(found.scripts.iter().all(|script| script.moves.len() <= steps), "{}: {steps}", strategy.name());
            assert!(steps == 0 || found.scripts[0].cost < model.total(&graph), "{}: {steps}", strategy.name());
        }
    }
}

#[test]
fn what_crosses_the_cuts_between_parts_is_found() {
    // Parts of one node: nothing can be rewritten but across their borders.
    let library = library("(rule join (neg (abs ?x)) => (relu ?x) (numeric exact))");
    let graph = text::parse("graph (x: f32[4]) { a = Abs(x) b = Neg(a) c = Abs(b) d = Neg(c) output d }").unwrap();
    let prices = Prices(&[]);
    for part in [1, 2, 30] {
        let found = search(&MetaFlow { part, ..MetaFlow::default() }, &graph, &library, &prices, &mut Steps(1000));
        assert_eq!((found.scripts[0].cost, found.complete), (20, true), "parts of {part}");
    }
}

#[test]
fn what_becomes_a_piece_is_merged_before() {
    // A piece saves most at once, and keeps what it is made of from being merged: that takes
    // another step first, on the other branch, which saves nothing.
    let chain = (0..12).fold("?x".to_string(), |inner, _| format!("(relu {inner})"));
    let rules = format!(
        "(rule piece (neg ?x) => {chain} (numeric exact)) (rule prepare (exp ?x) => (abs ?x) (numeric exact))
         (rule merge (add (neg ?x) (abs ?x)) => (sqrt ?x) (numeric exact))"
    );
    let library = library(&rules);
    let prices = Prices(&[(OpKind::Neg, 100), (OpKind::Exp, 50), (OpKind::Abs, 50), (OpKind::Relu, 1)]);
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) b = Exp(x) c = Add(a, b) output c }").unwrap();
    let cost = |strategy: &dyn Strategy| search(strategy, &graph, &library, &prices, &mut || false).scripts[0].cost;
    assert_eq!(cost(&Greedy::default()), 72);
    assert_eq!(cost(&Greedy { pieces_last: true, ..Greedy::default() }), 10);
    assert_eq!(cost(&Descents::default()), 10);
}

#[test]
fn two_branches_are_prepared_for_a_merge() {
    let rules = "(rule left (neg ?x) => (relu ?x) (numeric exact)) (rule right (exp ?x) => (abs ?x) (numeric exact))
                 (rule merge (add (relu ?x) (abs ?x)) => (sqrt ?x) (numeric exact))";
    let graph = text::parse("graph (x: f32[4]) { a = Neg(x) b = Exp(x) c = Add(a, b) output c }").unwrap();
    // Neither preparation pays, and neither enables the other.
    let prices = Prices(&[(OpKind::Neg, 50), (OpKind::Relu, 51), (OpKind::Exp, 50), (OpKind::Abs, 51)]);
    let found = search(&Greedy::default(), &graph, &library(rules), &prices, &mut || false);
    assert_eq!((found.scripts[0].cost, found.scripts[0].moves.len()), (10, 3));
}
