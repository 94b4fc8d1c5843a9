//! Every method on many small e-graphs.

use regraft_egraph::{EGraph, Exact, ExtractError, Extractor, GreedyDag, Shared, Steps, Tree};
use regraft_ir::SplitMix64;

use crate::brute_force::least;
use crate::random;

const METHODS: [&dyn Extractor; 5] = [&Tree, &Shared, &GreedyDag { local_search: false }, &GreedyDag { local_search: true }, &Exact];

/// Holds all methods against brute force on one e-graph; false if there is nothing to extract.
fn check(egraph: &EGraph, seed: u64) -> bool {
    let Some(least) = least(egraph) else {
        for method in METHODS {
            let error = egraph.extract(method, None, &mut Steps(u64::MAX)).expect_err("there is no extraction");
            assert!(matches!(error, ExtractError::EGraph(_)), "seed {seed}, {}: {error}", method.name());
        }
        return false;
    };
    for method in METHODS {
        let found = egraph.extract(method, None, &mut Steps(u64::MAX)).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", method.name()));
        assert!(found.cost >= least, "seed {seed}, {}: {} is below {least}", method.name(), found.cost);
        assert_eq!(egraph.check(&found.nodes).as_ref(), Ok(&found.nodes), "seed {seed}, {}", method.name());
        if method.name() == "ilp" {
            assert_eq!((found.cost, found.bound, found.gap()), (least, Some(least), Some(0.0)), "seed {seed}");
        }
        // Stopped at once, the answer is no better, still checked, and the bound still holds.
        let hasty = egraph.extract(method, None, &mut Steps(1)).unwrap_or_else(|e| panic!("seed {seed}, {}: {e}", method.name()));
        assert!(hasty.cost >= least && hasty.bound.is_none_or(|bound| bound <= least), "seed {seed}, {}", method.name());
        // An optimal input stays optimal.
        let again = egraph.extract(method, Some(&found.nodes), &mut Steps(u64::MAX)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(again.cost, found.cost, "seed {seed}, {}", method.name());
    }
    true
}

/// E-graphs of the seeds that have an extraction.
fn campaign(seeds: std::ops::Range<u64>) -> usize {
    let one = |seed| {
        let mut random = SplitMix64(seed);
        let shape = random::small(&mut random);
        check(&random::egraph(shape, &mut random), seed)
    };
    seeds.filter(|&seed| one(seed)).count()
}

#[test]
fn nothing_beats_brute_force_and_the_exact_method_meets_it() {
    let extracted = campaign(0..1_500);
    assert!(extracted > 700, "only {extracted} have an extraction");
}

#[test]
#[ignore = "a campaign: minutes"]
fn nothing_beats_brute_force_in_a_campaign() {
    let extracted = campaign(1_000_000..1_050_000);
    assert!(extracted > 25_000, "only {extracted} have an extraction");
}
