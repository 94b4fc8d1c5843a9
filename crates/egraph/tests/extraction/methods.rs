//! What holds for e-graphs that are too large for brute force.

use regraft_egraph::{EGraph, Exact, Extractor, GreedyDag, Shared, Steps, Tree};
use regraft_ir::SplitMix64;

use crate::random::{self, Shape};

fn medium(seed: u64) -> Shape {
    let mut random = SplitMix64(seed);
    Shape {
        classes: 20 + random.below(30),
        members: 2 + random.below(3),
        children: 2 + random.below(2),
        costs: [2, 10, 1000][random.below(3)],
        cycles: [0.0, 0.1, 0.3][random.below(3)],
    }
}

/// The cost of an extraction.
fn cost(egraph: &EGraph, method: &dyn Extractor) -> Option<f64> {
    egraph.extract(method, None, &mut Steps(u64::MAX)).ok().map(|found| found.cost)
}

fn campaign(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut random = SplitMix64(seed);
        let (nodes, roots) = random::nodes(medium(seed), &mut random);
        let egraph = EGraph::new(nodes.clone(), &roots).expect("well-formed");
        let exact = cost(&egraph, &Exact);
        for method in [&Tree as &dyn Extractor, &Shared, &GreedyDag { local_search: true }] {
            let other = cost(&egraph, method);
            assert!(other.is_some() == exact.is_some() && other >= exact, "seed {seed}, {}: {other:?}, {exact:?}", method.name());
        }
        for _ in 0..3 {
            let other = EGraph::new(random::shuffled(nodes.clone(), &mut random), &roots).expect("well-formed");
            assert_eq!(cost(&other, &Exact), exact, "seed {seed}: the order of the nodes matters");
        }
    }
}

#[test]
fn the_exact_method_finds_the_same_cost_in_any_order() {
    campaign(0..40);
}

#[test]
#[ignore = "a campaign: minutes"]
fn the_exact_method_finds_the_same_cost_in_any_order_in_a_campaign() {
    campaign(1_000_000..1_002_000);
}

#[test]
fn results_repeat() {
    for seed in 0..20 {
        let egraph = |seed| random::egraph(medium(seed), &mut SplitMix64(seed));
        for method in [&Tree as &dyn Extractor, &Shared, &GreedyDag { local_search: true }, &Exact] {
            let run = || egraph(seed).extract(method, None, &mut Steps(u64::MAX)).ok();
            assert_eq!(run(), run(), "seed {seed}, {}", method.name());
        }
    }
}

#[test]
fn a_known_extraction_is_never_worsened() {
    // The input chooses the shared class, which tree costs count twice.
    let text = br#"{"nodes": {
        "r": {"op": "f", "eclass": "r", "children": ["a.s", "b.s"], "cost": 1},
        "a.s": {"op": "g", "eclass": "a", "children": ["s"], "cost": 0}, "a.t": {"op": "x", "eclass": "a", "children": [], "cost": 3},
        "b.s": {"op": "h", "eclass": "b", "children": ["s"], "cost": 0}, "b.t": {"op": "y", "eclass": "b", "children": [], "cost": 3},
        "s": {"op": "s", "eclass": "s", "children": [], "cost": 4}}, "root_eclasses": ["r"]}"#;
    let egraph = EGraph::read(text).expect("well-formed");
    assert_eq!(
        (cost(&egraph, &Tree), cost(&egraph, &GreedyDag { local_search: true }), cost(&egraph, &Exact)),
        (Some(7.0), Some(5.0), Some(5.0))
    );
    let found = egraph.extract(&Tree, Some(&[0, 1, 3, 5]), &mut Steps(9)).expect("an extraction");
    assert_eq!((found.cost, found.nodes), (5.0, vec![5, 1, 3, 0]));
}

#[test]
fn histories_see_what_two_children_share() {
    // The first node of `r` costs 5 as a graph and 9 as a tree; the second one costs 6.
    let text = br#"{"nodes": {
        "r.1": {"op": "f", "eclass": "r", "children": ["a", "b"], "cost": 1}, "r.2": {"op": "x", "eclass": "r", "cost": 6},
        "a": {"op": "g", "eclass": "a", "children": ["s"], "cost": 0}, "b": {"op": "h", "eclass": "b", "children": ["s"], "cost": 0},
        "s": {"op": "s", "eclass": "s", "cost": 4}}, "root_eclasses": ["r"]}"#;
    let egraph = EGraph::read(text).expect("well-formed");
    assert_eq!((cost(&egraph, &Tree), cost(&egraph, &Shared)), (Some(6.0), Some(5.0)));
}

#[test]
fn a_node_that_costs_more_than_anything_else_hides_nothing() {
    let text = br#"{"nodes": {
        "r.1": {"op": "f", "eclass": "r", "children": ["a", "b"], "cost": 1e-3}, "r.2": {"op": "x", "eclass": "r", "cost": 1e300},
        "a": {"op": "g", "eclass": "a", "cost": 1e-9}, "b": {"op": "h", "eclass": "b", "cost": 2e-9},
        "b.2": {"op": "h", "eclass": "b", "cost": 1.5e-9}}, "root_eclasses": ["r"]}"#;
    let egraph = EGraph::read(text).expect("well-formed");
    let found = egraph.extract(&Exact, None, &mut Steps(u64::MAX)).expect("an extraction");
    assert_eq!((found.gap(), found.nodes), (Some(0.0), vec![2, 4, 0]));
}
