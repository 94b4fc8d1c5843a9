//! Random chains of laws.

use regraft_derive::{Consistency, Laws, Walk, consistency, walk};
use regraft_ir::text;
use regraft_rules::{Library, parse};

/// True laws, and a false one: `false-difference`.
const LAWS: &str = "
(rule distributes (mul (add ?x ?y) ?z) => (add (mul ?x ?z) (mul ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule associates (add (add ?x ?y) ?z) => (add ?x (add ?y ?z))
  (numeric reassociates) (instance (n 1 2 3) (?x n) (?y n) (?z n)))
(rule difference (sub ?x ?y) => (add ?x (neg ?y))
  (numeric exact) (instance (n 1 2 3) (?x n) (?y n)))
(rule false-difference (sub ?x ?y) => (sub ?y ?x)
  (numeric exact) (instance (n 1 2 3) (?x n) (?y n)))";

fn laws(keep: impl Fn(&str) -> bool) -> Laws {
    Laws::new(parse("t", LAWS).unwrap().into_iter().filter(|rule| keep(&rule.name))).unwrap()
}

fn found(laws: &Laws, chains: usize) -> Consistency {
    let mut all = Consistency::default();
    for rule in laws.rules() {
        all += consistency(rule, laws, chains, &Walk { around: 0, ..Walk::default() }, 3);
    }
    all
}

#[test]
fn chains_are_steps_that_replay_and_meet_no_graph_twice() {
    let laws = laws(|name| name != "false-difference");
    let start = text::parse("graph (a: f64[2], b: f64[2], c: f64[2]) { output Mul(Sub(Add(a, b), c), c) as y }").unwrap();
    let how = Walk { steps: 5, growth: 4, around: 0 };
    let mut lengths = 0;
    for seed in 0..6 {
        let chain = walk(&start, &laws, &how, seed);
        let last = chain.graphs.last().unwrap();
        assert_eq!(chain.replay(&start, last, &laws), Ok(()), "seed {seed}\n{chain}");
        assert!(chain.links.len() <= how.steps);
        let mut texts: Vec<String> = chain.graphs.iter().map(text::print).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), chain.graphs.len(), "seed {seed}\n{chain}");
        assert_eq!(walk(&start, &laws, &how, seed).to_string(), chain.to_string(), "seed {seed} gives another chain");
        lengths += chain.links.len();
    }
    assert!(lengths > 20, "{lengths} steps");
}

#[test]
fn a_false_law_is_seen_by_where_chains_end() {
    let sound = found(&laws(|name| name != "false-difference"), 10);
    assert_eq!((sound.chains, sound.equal, sound.open, sound.broken.len()), (30, 30, 0, 0));
    assert_eq!(sound.used.len(), 3);
    let unsound = found(&laws(|_| true), 10);
    assert!(!unsound.broken.is_empty(), "{unsound:?}");
    for chain in &unsound.broken {
        let turns = chain.links.iter().filter(|link| link.law.as_ref() == "false-difference").count();
        assert!(turns % 2 == 1, "{chain}");
    }
}

/// The long campaign is `regraft rules axioms --consistency`.
#[test]
fn chains_of_axioms_end_where_they_began() {
    let library = Library::axioms().unwrap();
    let laws = Laws::new(library.rules().iter().cloned()).unwrap();
    let how = Walk { steps: 3, growth: 2, around: 2 };
    let mut all = Consistency::default();
    for rule in library.rules().iter().step_by(4) {
        all += consistency(rule, &laws, 1, &how, 7);
    }
    let broken: Vec<String> = all.broken.iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{} chains end elsewhere:\n{}", broken.len(), broken.join("\n"));
    assert!(all.chains > library.rules().len() / 5 && all.equal * 10 >= all.chains * 9, "{all:?}");
}
