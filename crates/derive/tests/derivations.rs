//! What follows from a few laws, what does not, and that only true derivations are accepted.

use regraft_derive::{Derivation, Flaw, Laws, Limits, Open, derive};
use regraft_ir::{Graph, text};
use regraft_rules::{Library, parse};

fn graph(inputs: &str, body: &str) -> Graph {
    let text = format!("graph ({inputs}) {{ {body} }}");
    text::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The shipped rules and the axioms.
fn everything() -> Laws {
    let (shipped, axioms) = (Library::shipped().unwrap(), Library::axioms().unwrap());
    Laws::new(shipped.rules().iter().chain(axioms.rules()).cloned()).unwrap()
}

/// The axioms alone.
fn axioms() -> Laws {
    Laws::new(Library::axioms().unwrap().rules().iter().cloned()).unwrap()
}

/// Derives `after` from `before`, replays the derivation, and replays it again from its text;
/// returns the names of the laws.
fn derived(laws: &Laws, inputs: &str, before: &str, after: &str) -> String {
    let (before, after) = (graph(inputs, before), graph(inputs, after));
    let derivation = derive(&before, &after, laws, &Limits::default()).unwrap_or_else(|e| panic!("{e}: {}", text::print(&before)));
    derivation.replay(&before, &after, laws).unwrap_or_else(|e| panic!("{e}\n{derivation}"));
    let read: Derivation = derivation.to_string().parse().unwrap();
    read.replay(&before, &after, laws).unwrap_or_else(|e| panic!("{e}\n{derivation}"));
    assert_eq!(read.names(), derivation.names());
    // What holds in one direction holds in the other.
    assert!(derive(&after, &before, laws, &Limits::default()).is_ok());
    derivation.names().join(" ")
}

#[test]
fn equations_follow_from_the_axioms() {
    let laws = axioms();
    let matrices = "a: f64[M,K], b: f64[K,L], c: f64[L,N]";
    let images = "a: f64[N,C,H,W], b: f64[K,C,3,3], c: f64[N,C,H,W], d: f64[K,C,3,3]";
    let like = "strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1";
    let conv = |x: &str, w: &str| format!("Conv({x}, {w}, {like})");
    let cases: [(&str, String, String, &str); 7] = [
        (matrices, "output MatMul(MatMul(a, b), c) as y".into(), "output MatMul(a, MatMul(b, c)) as y".into(), "matmul-associates"),
        // Operands of sums have no order, so there is nothing to show.
        ("a: f64[N], b: f64[N]", "output Add(a, b) as y".into(), "output Add(b, a) as y".into(), ""),
        (
            "a: f64[N], b: f64[N], c: f64[N]",
            "output Add(a, Add(b, c)) as y".into(),
            "output Add(c, Add(b, a)) as y".into(),
            "add-associates",
        ),
        (
            "a: f64[N], b: f64[N]",
            "output Relu(a) as y, Relu(b) as z".into(),
            "r = Relu(Concat(a, b, axis=0)) output Slice(r, axes=[0], starts=[0], ends=[N], steps=[1]) as y, \
             Slice(r, axes=[0], starts=[N], ends=[2*N], steps=[1]) as z"
                .into(),
            "slice-of-concat-rest' slice-of-concat-first' relu-of-concat'",
        ),
        // One kernel over two batches.
        (
            images,
            format!("output Concat({}, {}, axis=0) as y", conv("a", "b"), conv("c", "b")),
            format!("output {} as y", conv("Concat(a, c, axis=0)", "b")),
            "conv-of-batches'",
        ),
        // Both operands of the convolution are one tensor, which must be treated as two.
        (
            "a: f64[C,D,1,1], b: f64[C,E,1,1]",
            "x = Concat(a, b, axis=1) output Conv(x, x, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1) as y".into(),
            "x = Concat(b, a, axis=1) output Conv(x, x, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1) as y".into(),
            "conv-of-channel-blocks conv-of-channel-blocks'",
        ),
        // Groups of different numbers.
        (
            "a: f64[N,2*C,H,W], b: f64[2*K,C,3,3], c: f64[N,C,H,W], d: f64[K,C,3,3]",
            format!("output Concat({}, {}, axis=1) as y", conv("a", "b").replace("group=1", "group=2"), conv("c", "d")),
            format!(
                "output {} as y",
                conv("Concat(a, c, axis=1), Concat(b, d, axis=0)", "").replace(", , ", ", ").replace("group=1", "group=3")
            ),
            "groups-of-conv",
        ),
    ];
    for (inputs, before, after, expected) in cases {
        let steps = derived(&laws, inputs, &before, &after);
        assert!(steps == expected, "{before}: by {steps}, not by {expected}");
    }
}

#[test]
fn equations_follow_from_the_shipped_rules_as_well() {
    let laws = everything();
    let steps = derived(
        &laws,
        "a: f64[N], b: f64[N], c: f64[N]",
        "output Mul(Mul(a, b), Add(b, c)) as y",
        "output Mul(a, Add(Mul(b, b), Mul(b, c))) as y",
    );
    assert!(steps.split(' ').count() == 2, "{steps}");
}

#[test]
fn what_is_wrong_is_not_derived() {
    let laws = everything();
    let matrices = "a: f64[M,M], b: f64[M,M], c: f64[M,M]";
    let vectors = "a: f64[N], b: f64[N], c: f64[N]";
    let images = "a: f64[N,4,H,W], b: f64[K,4,3,3], c: f64[L,4,3,3], d: f64[2*K,2,3,3], e: f64[2*L,2,3,3]";
    let like = "strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1]";
    let wrong: [(&str, String, String); 6] = [
        (matrices, "output MatMul(a, b) as y".into(), "output MatMul(b, a) as y".into()),
        (matrices, "output MatMul(MatMul(a, b), c) as y".into(), "output MatMul(b, MatMul(a, c)) as y".into()),
        (vectors, "output Relu(Add(a, b)) as y".into(), "output Add(Relu(a), Relu(b)) as y".into()),
        (vectors, "output Add(Mul(a, b), c) as y".into(), "output Mul(a, Add(b, c)) as y".into()),
        (vectors, "output Concat(a, b, axis=0) as y".into(), "output Concat(b, a, axis=0) as y".into()),
        // Merged filters of several groups are in another order.
        (
            images,
            format!("output Concat(Conv(a, d, {like}, group=2), Conv(a, e, {like}, group=2), axis=1) as y"),
            format!("output Conv(a, Concat(d, e, axis=0), {like}, group=2) as y"),
        ),
    ];
    let limits = Limits { graphs: 60, ..Limits::default() };
    for (inputs, before, after) in wrong {
        let result = derive(&graph(inputs, &before), &graph(inputs, &after), &laws, &limits);
        assert!(matches!(result, Err(Open::Exhausted(_) | Open::Spent(_))), "{before}: {:?}", result.map(|d| d.names()));
    }
    let (one, other) = (graph("a: f64[N]", "output Relu(a) as y"), graph("b: f64[N]", "output Relu(b) as y"));
    assert_eq!(derive(&one, &other, &laws, &limits).unwrap_err(), Open::Interface);
}

#[test]
fn flaws_of_derivations_are_told() {
    let laws = axioms();
    let inputs = "a: f64[N], b: f64[N], c: f64[N], d: f64[N]";
    let (before, after) = (graph(inputs, "output Add(a, Add(b, Add(c, d))) as y"), graph(inputs, "output Add(Add(a, b), Add(c, d)) as y"));
    let derivation = derive(&before, &after, &laws, &Limits::default()).unwrap();
    assert_eq!(derivation.replay(&before, &after, &laws), Ok(()));

    let other = graph(inputs, "output Mul(a, Add(b, Add(c, d))) as y");
    assert!(matches!(derivation.replay(&other, &after, &laws), Err(Flaw::Ends(_))));
    assert!(matches!(derivation.replay(&before, &other, &laws), Err(Flaw::Ends(_))));
    let gap = Derivation { links: Vec::new(), ..derivation.clone() };
    assert!(matches!(gap.replay(&before, &after, &laws), Err(Flaw::Ends(_))));
    // Another law, no law, and an unknown law.
    let mut renamed = derivation.clone();
    renamed.links[0].law = "mul-associates".into();
    assert!(matches!(renamed.replay(&before, &after, &laws), Err(Flaw::Astray { step: 1, .. })));
    renamed.links[0].law = "no-such-law".into();
    assert!(matches!(renamed.replay(&before, &after, &laws), Err(Flaw::Unknown { step: 1, .. })));
    let wrong = parse("t", "(rule wrong (add ?x ?y) => (mul ?x ?y) (numeric exact))").unwrap();
    let laws = Laws::new(wrong).unwrap();
    let sum = graph(inputs, "output Add(a, b) as y");
    let product = graph(inputs, "output Mul(a, b) as y");
    let derivation = derive(&sum, &product, &laws, &Limits::default()).unwrap();
    assert!(matches!(derivation.replay(&sum, &product, &laws), Err(Flaw::Unproved { step: 1, .. })));
}

#[test]
fn texts_that_are_no_derivations_are_told() {
    let text = "graph (a: f64[N]) {\n  output a as y\n}\nby some-law'\ngraph (a: f64[N]) {\n  output Rleu(a) as y\n}\n";
    let error = text.parse::<Derivation>().unwrap_err();
    assert!(error.line == 5 && error.to_string().starts_with("the graph that begins on line 5: "), "{error}");
    assert!("".parse::<Derivation>().is_err());
}
