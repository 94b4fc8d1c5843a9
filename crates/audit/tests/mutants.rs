//! Rules made false on purpose are not proved.

mod common;

use std::collections::{BTreeSet, HashMap};

use common::{differ, mutant};
use regraft_ir::dim::Bindings;
use regraft_ir::text::print;
use regraft_ir::{Class, Const, Graph, Op, SplitMix64, parallel};
use regraft_prove::{Allowance, Assumptions, equal, equal_within};
use regraft_rules::sample::{Instance, Sizes, draw, draw_sized};
use regraft_rules::{Library, Rule};

/// Minimum number of false mutants to check.
const WANTED: usize = 400;
/// Minimum number of false mutants with symbolic sizes to check.
const WANTED_OPEN: usize = 300;
/// Minimum number of false rules with one guard removed to check.
const WANTED_LOOSE: usize = 15;
/// Instances of each rule.
const SEEDS: u64 = 2;
/// Instances of each rule for whose domain the prover has special laws.
const MORE_SEEDS: u64 = 6;
/// Instances of each rule with one guard removed: most of them satisfy the guard anyway.
const LOOSE_SEEDS: u64 = 32;
/// Mutants of one instance to try until one is false.
const ATTEMPTS: usize = 20;
/// Choices of sizes and numbers to evaluate an instance with symbolic sizes on.
const FEEDS: u64 = 6;

/// The same for fast convolution rules, whose proofs are long: mutants of each instance, and the
/// budget of a proof.
const FAST: &str = "winograd";
const FAST_MUTANTS: u64 = 2;
const FAST_ALLOWANCE: Allowance = Allowance { closed: 20_000, by_cases: 50_000, by_tables: 1_000_000 };
/// Minimum numbers of true instances of these to prove within the budget, and of false mutants to
/// check. The long ones need up to ten times as much.
const WANTED_FAST: (usize, usize) = (6, 10);

/// Parts of the names of rules about windows, groups, powers and indices: what the prover knows
/// about them goes beyond sums of products.
const KEEN: [&str; 7] = ["one-hot", "branches-as-groups", "merge-concat", "of-pointwise-conv", "max-pool-of", "lrn-", "conv-of-batch-norm"];

fn seeds(rule: &Rule) -> u64 {
    if KEEN.iter().any(|part| rule.name.contains(part)) { MORE_SEEDS } else { SEEDS }
}

/// The number of false claims checked, and those that were proved.
type Count = (usize, Vec<String>);

/// Numbers for inputs with symbolic sizes; `None` if some size would be below 1.
fn feeds(graph: &Graph, rng: &mut SplitMix64) -> Option<HashMap<String, Const>> {
    let types: Vec<_> = graph.ids().flat_map(|id| graph.node(id).types.iter().flatten().cloned()).collect();
    let mut symbols = Vec::new();
    types.iter().flat_map(|ty| ty.shape.iter()).for_each(|dim| dim.symbols(&mut symbols));
    let symbols: BTreeSet<String> = symbols.into_iter().collect();
    // Sizes written as numbers are those of images.
    let bindings: Bindings = symbols
        .into_iter()
        .map(|name| (name.clone(), if name.starts_with('S') { 3 + rng.below(6) } else { 1 + rng.below(3) } as i64))
        .collect();
    if !types.iter().all(|ty| ty.shape.iter().all(|dim| dim.eval(&bindings).is_some_and(|size| size >= 1))) {
        return None;
    }
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape: Vec<i64> = input.ty.bind(&bindings)?.iter().map(|size| *size as i64).collect();
        let count: i64 = shape.iter().product();
        let mut number = || match (input.ty.dtype.class(), input.name.split('_').nth(1)) {
            (Class::Real, Some("positive")) => 0.5 + rng.below(1000) as f64 / 800.0,
            (Class::Real, _) => rng.below(1000) as f64 / 250.0 - 2.0,
            (Class::Bool, _) => rng.below(2) as f64,
            (_, Some("index")) => rng.below(7) as f64 - 3.0,
            _ => rng.below(3) as f64,
        };
        let elements: Vec<f64> = (0..count).map(|_| number()).collect();
        feeds.insert(input.name.to_string(), Const::from_f64(input.ty.dtype, &shape, &elements)?);
    }
    Some(feeds)
}

/// An instance of the rule with numeric sizes.
fn known(rule: &Rule, seed: u64) -> Option<Instance> {
    (0..40).find_map(|t| draw(rule, (seed * 64 + t).wrapping_mul(0x9e37_79b9_7f4a_7c15)).ok())
}

/// False mutants of instances with numeric sizes, and those that were proved.
fn of_numbers(rules: &[(usize, &Rule)]) -> Count {
    let (mut met, mut proved) = (0, Vec::new());
    for (at, rule) in rules {
        for seed in 1..=seeds(rule) {
            let Some(instance) = known(rule, seed) else { continue };
            let mut rng = SplitMix64(*at as u64 * 1_000 + seed);
            let is_false = |m: &Graph| differ(&instance.before, m, &instance.feeds);
            let Some(mutant) = (0..ATTEMPTS).find_map(|_| mutant(&instance.after, &mut rng).filter(is_false)) else { continue };
            met += 1;
            if equal(&instance.before, &mutant).is_proved() {
                proved.push(format!("{}:\n{}against\n{}", rule.name, print(&instance.before), print(&mutant)));
            }
        }
    }
    (met, proved)
}

/// False mutants of instances with symbolic sizes, shown to be false at some sizes, and those that
/// were proved.
fn of_symbols(rules: &[(usize, &Rule)]) -> Count {
    let (mut met, mut proved) = (0, Vec::new());
    for (at, rule) in rules {
        for seed in 1..=seeds(rule) {
            let sizes = if seed % 2 == 0 { Sizes::Some } else { Sizes::Open };
            let drawn = (0..40).find_map(|t| draw_sized(rule, (seed * 64 + t).wrapping_mul(0x9e37_79b9_7f4a_7c15), sizes).ok());
            let Some(instance) = drawn else { continue };
            let mut rng = SplitMix64(*at as u64 * 1_000 + seed);
            let inputs: Vec<_> = (0..FEEDS).filter_map(|_| feeds(&instance.before, &mut rng)).collect();
            let is_false = |m: &Graph| inputs.iter().any(|feeds| differ(&instance.before, m, feeds));
            let Some(mutant) = (0..ATTEMPTS).find_map(|_| mutant(&instance.after, &mut rng).filter(is_false)) else { continue };
            met += 1;
            if equal(&instance.before, &mutant).is_proved() {
                proved.push(format!("{}:\n{}against\n{}", rule.name, print(&instance.before), print(&mutant)));
            }
        }
    }
    (met, proved)
}

/// Rules with one guard removed that are false on some instance, and those for which that instance
/// was proved.
fn of_guards(rules: &[(usize, &Rule)]) -> Count {
    let (mut met, mut proved) = (0, Vec::new());
    for (_, rule) in rules {
        for guard in 0..rule.guards.len() {
            let mut loose = (*rule).clone();
            loose.guards.remove(guard);
            let drawn = (1..=LOOSE_SEEDS).filter_map(|seed| known(&loose, seed));
            let Some(instance) = drawn.into_iter().find(|i| differ(&i.before, &i.after, &i.feeds)) else { continue };
            met += 1;
            if equal(&instance.before, &instance.after).is_proved() {
                proved.push(format!("{}, guard {guard}:\n{}against\n{}", rule.name, print(&instance.before), print(&instance.after)));
            }
        }
    }
    (met, proved)
}

/// Which rules a test covers: every second one with numbers, the others with symbols.
/// `REGRAFT_THOROUGH` in the environment selects all of them for both.
fn takes(remainder: usize) -> impl Fn(usize) -> bool {
    let is_thorough = std::env::var_os("REGRAFT_THOROUGH").is_some();
    move |at| is_thorough || at % 2 == remainder
}

fn check(wanted: usize, takes: impl Fn(usize) -> bool, survivors: fn(&[(usize, &Rule)]) -> Count) {
    let library = Library::shipped().unwrap();
    // The others have a test of their own: the prover takes seconds on them whether it succeeds or
    // not.
    let rules: Vec<(usize, &Rule)> = library.rules().iter().enumerate().filter(|(at, r)| takes(*at) && !r.name.starts_with(FAST)).collect();
    let counts = parallel::map(&rules.chunks(8).collect::<Vec<_>>(), 2, |some| survivors(some));
    let met: usize = counts.iter().map(|count| count.0).sum();
    let proved: Vec<String> = counts.into_iter().flat_map(|count| count.1).collect();
    assert!(met >= wanted, "only {met} false mutants");
    assert!(proved.is_empty(), "{} of {met} false mutants were proved:\n{}", proved.len(), proved.join("\n\n"));
}

#[test]
fn false_rules_are_not_proved() {
    check(WANTED, takes(0), of_numbers);
}

#[test]
fn false_rules_of_symbolic_sizes_are_not_proved() {
    check(WANTED_OPEN, takes(1), of_symbols);
}

#[test]
fn rules_without_a_guard_that_they_need_are_not_proved() {
    check(WANTED_LOOSE, |_| true, of_guards);
}

/// Failing to prove false ones only counts within a work bound that suffices for true ones.
#[test]
fn false_fast_convolutions_are_not_proved() {
    let library = Library::shipped().unwrap();
    let rules: Vec<(usize, &Rule)> = library.rules().iter().enumerate().filter(|(_, r)| r.name.starts_with(FAST)).collect();
    let proved = |a: &Graph, b: &Graph| equal_within(a, b, &Assumptions::default(), FAST_ALLOWANCE).is_proved();
    let judge = |(at, rule): &(usize, &Rule)| {
        let Some(instance) = known(rule, 1).filter(|i| proved(&i.before, &i.after)) else { return (0, 0, Vec::new()) };
        let is_false = |m: &Graph| differ(&instance.before, m, &instance.feeds);
        let mutants = (0..FAST_MUTANTS).filter_map(|number| {
            let mut rng = SplitMix64(*at as u64 * 1_000 + number);
            (0..ATTEMPTS).find_map(|_| mutant(&instance.after, &mut rng).filter(is_false))
        });
        let mutants: Vec<Graph> = mutants.collect();
        let wrong = mutants.iter().filter(|m| proved(&instance.before, m));
        let wrong = wrong.map(|m| format!("{}:\n{}against\n{}", rule.name, print(&instance.before), print(m))).collect::<Vec<_>>();
        (1, mutants.len(), wrong)
    };
    let judged = parallel::map(&rules, 2, judge);
    let (able, met) = judged.iter().fold((0, 0), |(able, met), j| (able + j.0, met + j.1));
    assert!(able >= WANTED_FAST.0 && met >= WANTED_FAST.1, "{able} of {} true instances are proved, {met} false mutants", rules.len());
    let wrong: Vec<&String> = judged.iter().flat_map(|j| &j.2).collect();
    assert!(
        wrong.is_empty(),
        "{} of {met} false mutants were proved:\n{}",
        wrong.len(),
        wrong.iter().map(|w| w.as_str()).collect::<Vec<_>>().join("\n\n")
    );
}
