//! Bounds, and reductions, against brute force.

use regraft_ir::SplitMix64;

use super::ascent::Ascent;
use crate::lists::Lists;
use crate::problem::{NONE, Problem};
use crate::reduce::reduce;
use regraft_ir::Steps;

/// A problem with few classes, of which each has few nodes.
fn problem(seed: u64) -> Problem {
    let mut random = SplitMix64(seed);
    let classes = 2 + random.below(6);
    let (mut cost, mut class, mut children) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..classes as u32 {
        for _ in 0..1 + random.below(3) {
            let mut drawn: Vec<u32> = (0..random.below(3)).map(|_| random.below(classes) as u32).collect();
            drawn.sort_unstable();
            drawn.dedup();
            cost.push(random.below(8) as u64);
            class.push(number);
            children.push(drawn);
        }
    }
    Problem::new(classes, cost, class, Lists::new(children), vec![0])
}

/// All solutions.
fn solutions(problem: &Problem) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    let mut by = vec![NONE; problem.classes()];
    fn choose(problem: &Problem, class: u32, by: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
        if class as usize == problem.classes() {
            let allowed: Vec<bool> = (0..problem.nodes() as u32).map(|node| by[problem.class_of(node) as usize] == node).collect();
            found.extend(problem.trimmed(&problem.derive(&allowed).by));
            return;
        }
        for &node in problem.members.get(class) {
            by[class as usize] = node;
            choose(problem, class + 1, by, found);
        }
    }
    choose(problem, 0, &mut by, &mut found);
    found
}

#[test]
fn bounds_hold_for_every_solution_and_for_each_node_of_it() {
    let mut tried = 0;
    for seed in 0..400 {
        let problem = problem(seed);
        let solutions = solutions(&problem);
        if solutions.is_empty() {
            continue;
        }
        tried += 1;
        let mut bounds = Vec::new();
        let best = Ascent::all(&problem, &mut Steps(u64::MAX), |ascent| bounds.push(ascent.clone()));
        assert!(bounds.iter().all(|bound| bound.bound <= best.bound), "seed {seed}");
        for bound in bounds {
            let with_each = bound.with_each(&problem);
            for nodes in &solutions {
                let cost = problem.total(nodes);
                let paid: u64 = nodes.iter().map(|&node| bound.reduced[node as usize]).sum();
                assert!(bound.bound + paid <= cost, "seed {seed}: {} + {paid} > {cost} of {nodes:?}", bound.bound);
                assert!(nodes.iter().all(|&node| with_each[node as usize] <= cost), "seed {seed}: {with_each:?}, {cost} of {nodes:?}");
            }
        }
    }
    assert!(tried > 100, "only {tried} have a solution");
}

#[test]
fn a_reduced_problem_has_the_same_least_cost() {
    for seed in 0..2_000 {
        let problem = problem(seed);
        let least = solutions(&problem).iter().map(|nodes| problem.total(nodes)).min();
        let Some(reduced) = reduce(&problem, |_| true, &mut Steps(u64::MAX)) else {
            assert_eq!(least, None, "seed {seed}");
            continue;
        };
        let (mut chosen, mut cost) = (reduced.forced.clone(), reduced.base);
        for part in &reduced.parts {
            let solutions = solutions(&part.problem);
            let best = solutions.iter().min_by_key(|nodes| part.problem.total(nodes)).unwrap_or_else(|| panic!("seed {seed}: {part:?}"));
            chosen.extend(part.meaning(best));
            cost += part.problem.total(best);
        }
        let found = problem.within(&chosen).unwrap_or_else(|| panic!("seed {seed}: {reduced:?}"));
        assert_eq!((Some(cost), Some(problem.total(&found))), (least, least), "seed {seed}: {reduced:?}");
    }
}
