//! The moves found around a change equal those found from scratch: none missing, none spurious,
//! none stale.

mod common;

use std::collections::BTreeMap;

use common::{Walk, fixtures, network, open_sizes, roofline, shipped};
use regraft_ir::{Graph, canonical_key};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Moves, all_moves, next_moves};

/// What moves do in the current state: by rule and operators, the graphs that they lead to.
///
/// Unless `deep`, by their place alone.
fn effects(engine: &mut Engine<'_>, moves: &Moves, library: &Library, deep: bool) -> BTreeMap<String, Vec<u128>> {
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

/// Walks at random and compares in every state; returns complaints, one per kind of difference and
/// rule.
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
    for (name, graph) in fixtures().into_iter().chain([("open sizes", open_sizes())]) {
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

#[test]
fn a_merge_becomes_possible_when_a_path_far_above_goes() {
    // Both products could be merged if the second operand were not computed from the first product;
    // that dependence is only apparent.
    let rules = "(rule merge (all (matmul ?a (const ?w)) (matmul ?b (const ?w)))
                   => (all (slice ?m :axes (list 0) :starts (list 0) :ends (list 2) :steps (list 1))
                           (slice ?m :axes (list 0) :starts (list 2) :ends (list 4) :steps (list 1)))
                   (let (?m (matmul (concat ?a ?b :axis 0) ?w))) (when (not (const ?a)) (not (const ?b))) (numeric exact))
                 (rule part (slice (concat ?a ?b :axis 0) :starts ?s) => ?b (when (= ?s (list 2))) (shared) (numeric exact))";
    let library = Library::new(regraft_rules::parse("t", rules).unwrap()).unwrap();
    let graph = regraft_ir::text::parse(
        "graph (x: f32[2,4], y: f32[2,4]) { const w: f32[4,4] a = MatMul(x, w) r = Relu(a) c = Concat(r, y, axis=0)
           d = Slice(c, axes=[0], starts=[2], ends=[4], steps=[1]) e = Relu(d) f = Neg(e) g = Abs(f) h = Exp(g) i = MatMul(h, w) output a, c, i }",
    );
    let complaints = compare("path", &graph.unwrap(), &library, 1, 1, true);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn guards_that_ask_for_readers_see_them_come_and_go() {
    let rules = "(rule alone (relu ?x) => (abs ?x) (when (= (users ?x) 1)) (numeric exact))
                 (rule no-output (exp ?x) => (tanh ?x) (when (not (output ?x))) (numeric exact))
                 (rule among-logs (neg ?x) => (sqrt ?x) (when (read-only-by ?x neg)) (numeric exact))
                 (rule part (slice (concat ?a ?b :axis 0) :starts ?s) => ?b (when (= ?s (list 2))) (shared) (numeric exact))
                 (rule other (sigmoid ?x) => (log ?x) (numeric exact))";
    let library = Library::new(regraft_rules::parse("t", rules).unwrap()).unwrap();
    let graph = regraft_ir::text::parse(
        "graph (x: f32[2,4], y: f32[2,4]) { a = Cos(x) b = Sin(y) c = Concat(a, b, axis=0) d = Slice(c, axes=[0], starts=[2], ends=[4], steps=[1])
           e = Relu(a) f = Relu(b) g = Neg(a) h = Exp(b) i = Neg(b) j = Sigmoid(a) output d, e, f, g, h, i, j }",
    );
    let graph = graph.unwrap();
    let complaints: Vec<String> = (0..20).flat_map(|seed| compare("readers", &graph, &library, seed, 8, true)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_merge_waits_for_a_reader_to_go_although_its_other_root_came_later() {
    // When the product comes, only its side is looked at, and a second reader of `a` is in the way.
    // When that goes, only the side of the difference is downstream.
    let rules =
        "(rule meet (all (sub ?a ?s) (mul ?b (neg ?s))) => (all (neg (sub ?s ?a)) (neg (mul ?b ?s))) (when (= (users ?a) 1)) (numeric exact))
                 (rule come (div ?b ?s) => (mul ?b ?s) (numeric exact))
                 (rule go (tanh (exp ?v)) => (tanh ?v) (shared) (numeric exact))";
    let library = Library::new(regraft_rules::parse("t", rules).unwrap()).unwrap();
    let graph = regraft_ir::text::parse(
        "graph (x: f32[4], y: f32[4], s: f32[4]) { a = Exp(x) p = Sub(a, s) n = Neg(s) q = Div(y, n) t = Tanh(a) u = Neg(t) output p, q, u }",
    );
    let graph = graph.unwrap();
    let complaints: Vec<String> = (0..12).flat_map(|seed| compare("waiting", &graph, &library, seed, 3, true)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
