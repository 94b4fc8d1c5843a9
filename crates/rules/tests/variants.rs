//! False rules whose instance clauses are too narrow to show it.

use regraft_rules::parse;
use regraft_rules::variants::{Effort, variants};

/// Each is true of everything its clause draws, but false of something its source matches.
const FALSE: &str = "
(rule twice-transposed (transpose (transpose ?x :perm ?p) :perm ?p) => ?x (numeric exact) (instance (:perm (list 1 0)) (?p choice (list 1 0)) (?x 2 3)))
(rule sums-of-sums (reduce-sum (reduce-sum ?x :axes ?a :keepdims ?k) :axes ?b :keepdims ?k) => (reduce-sum ?x :axes (append ?a ?b) :keepdims ?k)
  (numeric exact) (instance (?a choice (list 0)) (?b choice (list 1)) (?k choice true) (?x 2 3 4)))
(rule factor-dropped (mul ?x (const ?c)) => ?x (numeric exact) (instance (?x 2 3) (?c const (splat 1))))
(rule pads-not-counted (relu (average-pool (abs ?x) :count_include_pad ?i)) => (average-pool (abs ?x) :kernel (list 2 2) :strides (list 1 1) :pads (list 0 0 0 0)
    :dilations (list 1 1) :ceil_mode false :count_include_pad false)
  (numeric exact) (instance (:kernel (list 2 2)) (:strides (list 1 1)) (:pads (list 0 0 0 0)) (:dilations (list 1 1)) (:ceil_mode false) (?i choice true) (?x 1 2 3 3)))
(rule softmax-of-rows (relu (softmax ?x :axis ?a)) => (softmax ?x :axis 1) (numeric exact) (instance (?a choice 1) (?x 2 3)))
(rule bias-forgotten (relu (gemm ?x ?w ?b?)) => (relu (gemm ?x ?w :alpha 1.0 :beta 1.0 :trans_a false :trans_b false))
  (numeric exact) (instance (:alpha 1.0) (:beta 1.0) (:trans_a false) (:trans_b false) (?x 2 3) (?w 3 4) (?b optional const (splat 0) 4)))
(rule same-operand (sub (add ?x ?y) ?y) => (add ?x (sub ?y (abs ?y))) (numeric exact) (instance (?x 2 3) (?y const (splat 2) 3)))
";

/// Just as narrow, but true of everything they match.
const TRUE: &str = "
(rule relu-of-transpose (relu (transpose ?x :perm ?p)) => (transpose (relu ?x) :perm ?p) (numeric exact) (instance (?p choice (list 1 0)) (?x 2 3)))
(rule relu-twice (relu (relu ?x)) => (relu ?x) (numeric exact) (instance (?x 1 1)))
(rule neutral-factor (mul ?x (const ?c)) => ?x (when (splat ?c) (= (value ?c) 1)) (numeric exact) (instance (?x 2 3) (?c const (splat 1))))
";

#[test]
fn false_rules_with_narrow_instances_are_refuted_by_variants() {
    let missed: Vec<String> = parse("false", FALSE)
        .unwrap_or_else(|e| panic!("{e}"))
        .iter()
        .filter(|rule| variants(rule, Effort::default()).wrong.is_empty())
        .map(|rule| rule.name.to_string())
        .collect();
    assert!(missed.is_empty(), "no variant refutes {missed:?}");
    for rule in parse("true", TRUE).unwrap() {
        let found = variants(&rule, Effort::default());
        assert!(found.wrong.is_empty(), "{}: {:?}", rule.name, found.wrong);
        assert!(found.kept.len() >= 3, "{}: only {} variants of {} sources", rule.name, found.kept.len(), found.tried);
    }
}

#[test]
fn variants_are_made_again_from_their_draws() {
    for rule in parse("true", TRUE).unwrap() {
        for (draw, instance) in variants(&rule, Effort::default()).kept {
            let again = draw.instance(&rule).unwrap();
            let text = |graph| regraft_ir::text::print(graph);
            assert_eq!((text(&again.before), text(&again.after)), (text(&instance.before), text(&instance.after)), "{draw}");
        }
    }
}
