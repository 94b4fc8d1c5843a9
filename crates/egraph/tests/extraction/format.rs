//! What is written can be read.

use regraft_egraph::{EGraph, Exact, Steps};
use regraft_ir::SplitMix64;

use crate::random;

#[test]
fn what_is_written_is_read_as_it_was() {
    for seed in 0..50 {
        let mut random = SplitMix64(seed);
        let shape = random::small(&mut random);
        let egraph = random::egraph(shape, &mut random);
        let again = EGraph::read(egraph.to_json().as_bytes()).expect("what was written");
        assert_eq!(again.nodes(), egraph.nodes());
        assert_eq!(again.to_json(), egraph.to_json());
        assert!(again.roots().eq(egraph.roots()));
    }
}

#[test]
fn an_extraction_is_an_egraph_of_the_same_cost() {
    for seed in 0..200 {
        let mut random = SplitMix64(seed);
        let shape = random::small(&mut random);
        let egraph = random::egraph(shape, &mut random);
        let Ok(found) = egraph.extract(&Exact, None, &mut Steps(u64::MAX)) else { continue };
        let alone = EGraph::read(egraph.to_json_of(&found.nodes).as_bytes()).expect("what was written");
        assert_eq!(alone.nodes().len(), alone.classes().len());
        let again = alone.extract(&Exact, None, &mut Steps(u64::MAX)).expect("the same extraction");
        assert_eq!((again.cost, again.nodes.len()), (found.cost, found.nodes.len()), "seed {seed}");
    }
}

#[test]
fn costs_are_one_and_children_none_where_they_are_not_given() {
    let egraph =
        EGraph::read(br#"{"nodes": {"n": {"op": "x", "eclass": "c"}}, "root_eclasses": ["c"], "class_data": {}}"#).expect("an e-graph");
    assert_eq!((egraph.nodes()[0].cost, egraph.nodes()[0].children.len()), (1.0, 0));
}
