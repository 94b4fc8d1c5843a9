//! Which rules can be read from right to left, and what they propose.

use regraft_derive::{Laws, Limits, derive, reverse};
use regraft_ir::{Graph, text};
use regraft_rules::{Library, parse};

/// The name of the rule that leads from `before` to `after`, if one step does.
fn step(rule: &str, inputs: &str, before: &str, after: &str) -> Option<String> {
    let rules = parse("t", rule).unwrap_or_else(|e| panic!("{e}: {rule}"));
    let laws = Laws::new(rules).unwrap();
    let graph = |body: &str| -> Graph { text::parse(&format!("graph ({inputs}) {{ {body} }}")).unwrap_or_else(|e| panic!("{e}: {body}")) };
    let (before, after) = (graph(before), graph(after));
    let derivation = derive(&before, &after, &laws, &Limits { graphs: 4, growth: 8 }).ok()?;
    derivation.replay(&before, &after, &laws).unwrap_or_else(|e| panic!("{e}\n{derivation}"));
    Some(derivation.names().join(" "))
}

#[test]
fn rules_are_read_from_right_to_left() {
    let vectors = "a: f64[N], b: f64[N], c: f64[N]";
    let like = "strides=[2, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1";
    let conv = |x: &str| format!("Conv({x}, w, {like})");
    let cases: [(&str, &str, String, String); 6] = [
        (
            "(rule r (mul (add ?a ?b) ?c) => (add (mul ?a ?c) (mul ?b ?c)) (numeric exact))",
            vectors,
            "output Add(Mul(a, b), Mul(a, c)) as y".into(),
            "output Mul(a, Add(b, c)) as y".into(),
        ),
        // A named part of the target that is used twice.
        (
            "(rule r (mul ?a 4.0) => (add ?d ?d) (let (?d (add ?a ?a))) (numeric exact))",
            vectors,
            "output Add(Add(a, a), Add(a, a)) as y".into(),
            "const k: f64[] = 4 output Mul(a, k) as y".into(),
        ),
        // Attributes are copied from the operator that the new one is like.
        (
            "(rule r (add (as ?y (conv ?x ?w)) (as ?z (conv ?v ?w))) => (conv (add ?x ?v) ?w :like ?y) (when (same-shape ?x ?v) (same-op ?y ?z)) (numeric exact))",
            "a: f64[N,C,H,W], b: f64[N,C,H,W], w: f64[K,C,3,3]",
            format!("output {} as y", conv("Add(a, b)")),
            format!("output Add({}, {}) as y", conv("a"), conv("b")),
        ),
        // Lists, in both directions.
        (
            "(rule r (concat :axis ?a (each (relu ?x))) => (relu (concat :axis ?a ?x...)) (numeric exact))",
            vectors,
            "output Relu(Concat(a, b, c, axis=0)) as y".into(),
            "output Concat(Relu(a), Relu(b), Relu(c), axis=0) as y".into(),
        ),
        (
            "(rule r (relu (concat :axis ?a ?xs...)) => (concat :axis ?a (each ?xs (relu ?xs))) (numeric exact))",
            vectors,
            "output Concat(Relu(a), Relu(b), Relu(c), axis=0) as y".into(),
            "output Relu(Concat(a, b, c, axis=0)) as y".into(),
        ),
        (
            "(rule r (concat :axis ?a (add ?x ?c) (each (add ?y ?c))) => (add (concat :axis ?a ?x ?y...) ?c) (when (scalar ?c)) (numeric exact))",
            "a: f64[N], b: f64[N], c: f64[]",
            "output Add(Concat(a, b, axis=0), c) as y".into(),
            "output Concat(Add(a, c), Add(b, c), axis=0) as y".into(),
        ),
    ];
    for (rule, inputs, before, after) in cases {
        assert_eq!(step(rule, inputs, &before, &after).as_deref(), Some("r'"), "{rule}");
    }
}

#[test]
fn what_the_rule_does_not_lead_back_from_is_not_proposed() {
    // The guard refuses a broadcast operand, whatever the direction.
    let rule = "(rule r (concat :axis ?a (add ?x ?c) (each (add ?y ?c))) => (add (concat :axis ?a ?x ?y...) ?c) (when (scalar ?c)) (numeric exact))";
    let inputs = "a: f64[N,M], b: f64[N,M], c: f64[M]";
    assert_eq!(step(rule, inputs, "output Add(Concat(a, b, axis=0), c) as y", "output Concat(Add(a, c), Add(b, c), axis=0) as y"), None);
}

#[test]
fn rules_that_cannot_be_read_backwards_are_left_out() {
    for rule in [
        // The target is not an operator, or does not determine what the source needs.
        "(rule r (relu (relu ?x)) => ?x (numeric exact))",
        "(rule r (mul ?x (sub ?y ?y)) => (sub ?x ?x) (numeric exact))",
    ] {
        let rules = parse("t", rule).unwrap();
        assert!(reverse(&rules[0]).is_none(), "{rule}");
    }
    // Most laws are reversible.
    let axioms = Library::axioms().unwrap();
    let laws = Laws::new(axioms.rules().iter().cloned()).unwrap();
    assert!(laws.reversed().len() * 3 > laws.rules().len() * 2, "{} of {}", laws.reversed().len(), laws.rules().len());
}
