//! Which axioms are proved for all sizes, and that all of them hold on random instances.

use std::collections::BTreeSet;

use regraft_audit::{Tally, judge, validate};
use regraft_ir::{Trust, parallel};
use regraft_rules::{Library, Rule, parse, sample};

/// Axioms about numbers, each with the reason.
const NUMERIC: &str = include_str!("numeric-axioms.txt");
/// Axioms whose constants are rounded: those of GELU, and one that divides by a number of taps.
const ROUNDED: [&str; 3] = ["gelu-is", "fast-gelu-is", "conv-by-average"];

#[test]
fn axioms_are_proved() {
    let library = Library::axioms().unwrap();
    let numeric: BTreeSet<&str> = NUMERIC.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().next()).collect();
    let judged = |rule: &Rule| {
        let judgement = judge(rule, 2, 0);
        (rule.name.to_string(), judgement.trust(), judgement.first)
    };
    let all: Vec<(String, Trust, Option<String>)> = parallel::map(library.rules(), 2, judged);
    let wrong: Vec<String> = all
        .iter()
        .filter(|(name, word, _)| {
            let expected = match name.as_str() {
                name if numeric.contains(name) => Trust::ProvedInRange,
                name if ROUNDED.contains(&name) => Trust::Bounded,
                _ => Trust::Proved,
            };
            *word != expected
        })
        .map(|(name, word, first)| format!("{name}: {word} {}", first.as_deref().unwrap_or_default()))
        .collect();
    assert!(wrong.is_empty(), "{} axioms are not as listed:\n{}", wrong.len(), wrong.join("\n"));
    let gone: Vec<_> = numeric.iter().filter(|n| library.get(n).is_none()).collect();
    assert!(gone.is_empty(), "listed, but no axioms: {gone:?}");
}

#[test]
fn axioms_hold_on_random_instances() {
    const INSTANCES: usize = 60;
    let library = Library::axioms().unwrap();
    let mut failures = Vec::new();
    for rule in library.rules() {
        let result = sample::exercise(rule, INSTANCES, INSTANCES * 100, 11);
        match result.counterexample {
            Some(wrong) => failures.push(format!("{}: {wrong}", rule.name)),
            None if result.instances < INSTANCES => {
                failures.push(format!("{}: {} instances; last miss: {}", rule.name, result.instances, result.last_miss));
            }
            None => {}
        }
    }
    assert!(failures.is_empty(), "{} axioms fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn axioms_are_documented_and_have_names_of_their_own() {
    let (axioms, shipped) = (Library::axioms().unwrap(), Library::shipped().unwrap());
    for rule in axioms.rules() {
        assert!(!rule.doc.is_empty(), "{} has no (doc ..)", rule.name);
        assert!(shipped.get(&rule.name).is_none(), "{} is a shipped rule too", rule.name);
    }
}

fn tally(rule: &Rule, bound: i64) -> Tally {
    validate(rule, bound, &[], &|| false).unwrap()
}

/// The long campaign, with sizes up to 4 for all axioms, is `regraft rules axioms`.
#[test]
fn axioms_hold_on_every_small_instance() {
    let library = Library::axioms().unwrap();
    let windows = |rule: &Rule| ["axioms/conv.rules", "axioms/pool.rules"].contains(&rule.file.as_ref());
    let mut failures = Vec::new();
    for rule in library.rules() {
        // Windows have many attributes: thousands of combinations even for sizes of one.
        let found = tally(rule, if windows(rule) { 1 } else { 2 });
        if found.refuted + found.undecided > 0 {
            failures.push(format!(
                "{}: {} refuted, {} open: {}",
                rule.name,
                found.refuted,
                found.undecided,
                found.first.unwrap_or_default()
            ));
        }
        if found.equal == 0 {
            // Two groups need two channels.
            assert!(rule.name.contains("groups"), "{} has no instance", rule.name);
            assert!(tally(rule, 2).equal > 0, "{} has no instance", rule.name);
        }
    }
    assert!(failures.is_empty(), "{} axioms do not hold:\n{}", failures.len(), failures.join("\n"));
}

/// What TASO leaves implicit, and what is false without it.
#[test]
fn axioms_without_their_guards_are_refuted() {
    let conv = "(size h n) (fixed s 1) (?s choice (list s s)) (?p choice (list 0 0 0 0)) (?d choice (list s s))";
    let attributes = ":strides ?s :pads ?p :dilations ?d";
    let false_rules = [
        // TASO 17 with an operand that broadcasts.
        format!("(conv (add ?x ?y) ?w :strides ?s :pads ?p :dilations ?d :group 1) => (add (conv ?x ?w :strides ?s :pads ?p :dilations ?d :group 1) (conv ?y ?w :strides ?s :pads ?p :dilations ?d :group 1))
            (when (= (rank ?y) 4)) (numeric exact) (instance {conv} (fixed c 2) (?x n c h h) (?y 1 c 1 1) (?w 1 c 3 3) (?p choice (list 1 1 1 1)))"),
        // TASO 16 with weights that broadcast.
        format!("(conv ?x (add ?v ?w) {attributes} :group 1) => (add (conv ?x ?v {attributes} :group 1) (conv ?x ?w {attributes} :group 1))
            (numeric exact) (instance {conv} (?x n 1 h h) (?v 1 1 2 2) (?w 1 1 1 1))"),
        // TASO 18 in two groups.
        format!("(add (conv ?x ?v {attributes} :group 2) (conv ?y ?w {attributes} :group 2)) => (conv (concat ?x ?y :axis 1) (concat ?v ?w :axis 1) {attributes} :group 2)
            (numeric exact) (instance {conv} (fixed c 2) (?x n c h h) (?y n c h h) (?v c s 1 1) (?w c s 1 1))"),
        // TASO 23 in two groups.
        format!("(concat (conv ?x ?v {attributes} :group 2) (conv ?x ?w {attributes} :group 2) :axis 1) => (conv ?x (concat ?v ?w :axis 0) {attributes} :group 2)
            (numeric exact) (instance {conv} (fixed c 2) (?x n c h h) (?v c s 1 1) (?w c s 1 1))"),
        // TASO 38 where the average excludes pads.
        "(average-pool ?x :kernel ?k :strides ?s :pads ?p :dilations ?d :ceil_mode false :count_include_pad false)
            => (conv ?x (fill (list 1 1 3 3) (/ 1.0 9) ?x) :strides ?s :pads ?p :dilations ?d :group 1)
            (numeric exact) (instance (size h n) (fixed i 1 3) (?k choice (list 3 3)) (?s choice (list 1 1)) (?p choice (list 1 1 1 1)) (?d choice (list 1 1)) (?x n 1 h h))".to_string(),
        // TASO 20 where an operand broadcasts along the axis.
        "(concat (add ?x ?z) (add ?y ?w) :axis 0) => (add (concat ?x ?y :axis 0) (concat ?z ?w :axis 0))
            (numeric exact) (instance (size a) (?x a a) (?y a a) (?z 1 a) (?w 1 a))".to_string(),
        // A part other than the first.
        "(slice (concat ?x ?y :axis 0) :axes (list 0) :starts (list 1) :steps (list 1)) => ?y (numeric exact)
            (instance (size l m) (:ends (list (+ l m))) (?x l) (?y m))".to_string(),
        // ReLU is not odd.
        "(relu (neg ?x)) => (neg (relu ?x)) (numeric exact) (instance (size a) (?x a))".to_string(),
        // A mean over unequal parts is not a mean of means.
        "(reduce-mean (concat ?x ?y :axis 0) :axes (list 0) :keepdims true) => (mul (add (reduce-mean ?x :axes (list 0) :keepdims true) (reduce-mean ?y :axes (list 0) :keepdims true)) (scalar 0.5 ?x))
            (numeric exact) (instance (size l m) (?x l) (?y m))".to_string(),
        // A softmax along another axis.
        "(softmax ?x :axis 0) => (div (exp ?x) (reduce-sum (exp ?x) :axes (list 1) :keepdims true)) (numeric exact) (instance (size a b) (?x a b))".to_string(),
        // The wrong transform.
        "(conv ?d ?g :strides ?s :pads ?p :dilations ?e :group 1)
            => (reshape (matmul (tensor (list 2 4) (cook-toom at 2 3) ?d) (mul (matmul (tensor (list 4 3) (cook-toom g 2 3) ?d) (reshape ?g :shape (list 3 1)))
                (matmul (tensor (list 4 4) (transpose-matrix 4 (cook-toom bt 2 3)) ?d) (reshape ?d :shape (list 4 1))))) :shape (list 1 1 2))
            (numeric exact) (instance (?s choice (list 1)) (?p choice (list 0 0)) (?e choice (list 1)) (fixed o 1) (fixed f 4) (fixed t 3) (?d o o f) (?g o o t))".to_string(),
    ];
    for (at, text) in false_rules.iter().enumerate() {
        let rules = parse("false", &format!("(rule false-{at} {text})")).unwrap_or_else(|e| panic!("{e}"));
        let found = tally(&rules[0], 3);
        assert!(found.refuted > 0, "rule {at} is not refuted: {found:?}\n{text}");
    }
}
