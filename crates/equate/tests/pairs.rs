//! Pairs of small graphs: what is proved, what is bounded, and what never may be.

use regraft_equate::{Effort, Equivalence, NoOpaques, Word, equate};
use regraft_ir::text::parse;
use regraft_rules::Library;

fn compare(a: &str, b: &str) -> Equivalence {
    let rules = Library::shipped().expect("the shipped rules");
    let [a, b] = [a, b].map(|text| parse(text).unwrap_or_else(|e| panic!("{e}\n{text}")));
    equate(&a, &b, &mut NoOpaques, &rules, &Effort::default())
}

/// Checks pairs of graph bodies over the same inputs.
fn check(word: Word, inputs: &str, pairs: &[(&str, &str)]) {
    for (a, b) in pairs {
        let graph = |body: &str| format!("graph ({inputs}) {{ {body} }}");
        let found = compare(&graph(a), &graph(b));
        assert_eq!(found.word(), word, "{a}\n  against\n{b}\n{found:?}");
        assert_eq!(found.gaps.is_empty(), word != Word::Unproved, "{found:?}");
    }
}

#[test]
fn the_same_in_other_words_is_proved() {
    check(
        Word::Proved,
        "x: f32[N,4,6], c: f32[4,1]",
        &[
            // Identities, commuted operands, and what cancels.
            ("y = Add(Mul(x, c), x) output y", "i = Identity(x) y = Add(i, Mul(c, i)) output y"),
            ("y = Relu(Transpose(Transpose(x, perm=[2, 0, 1]), perm=[1, 2, 0])) output y", "y = Relu(x) output y"),
            ("y = Transpose(Transpose(x, perm=[0, 2, 1]), perm=[2, 1, 0]) output y", "y = Transpose(x, perm=[1, 2, 0]) output y"),
            ("y = Relu(Relu(x)) output y", "y = Relu(x) output y"),
            ("const s: f32[] = 1 y = Exp(Mul(x, s)) output y", "y = Exp(x) output y"),
            // Two ways to compute one value, of which the other model has either.
            ("t = Relu(x) u = Relu(Relu(x)) y = Add(t, u) output y", "t = Relu(x) y = Add(t, t) output y"),
            // Constants that no step rounds.
            ("const s: f32[] = 3 const t: f32[] = 0.5 y = Mul(x, Mul(s, t)) output y", "const s: f32[] = 1.5 y = Mul(x, s) output y"),
            ("const s: f32[4,1] = [1, 2, 3, 4] y = Mul(x, Transpose(s, perm=[1, 0])) output y", ""),
        ]
        .into_iter()
        .filter(|(_, b)| !b.is_empty())
        .collect::<Vec<_>>(),
    );
}

#[test]
fn layers_are_proved_for_all_batches() {
    check(
        Word::Proved,
        "x: f32[N,64]",
        &[(
            "const w: f32[64,32] const b: f32[32] y = Relu(Add(MatMul(x, w), b)) output y",
            "const w: f32[64,32] const b: f32[32] y = Relu(Gemm(x, w, b, alpha=1.0, beta=1.0, trans_a=false, trans_b=false)) output y",
        )],
    );
}

#[test]
fn other_functions_are_never_proved() {
    check(
        Word::Unproved,
        "x: f32[N,4,4], c: f32[4,1]",
        &[
            ("y = Relu(x) output y", "y = Tanh(x) output y"),
            ("y = Sub(x, c) output y", "y = Sub(c, x) output y"),
            ("y = Transpose(x, perm=[0, 2, 1]) output y", "y = Identity(x) output y"),
            ("y = Softmax(x, axis=1) output y", "y = Softmax(x, axis=2) output y"),
            ("const s: f32[] = 1 y = Mul(x, s) output y", "const s: f32[] = 1.0000002 y = Mul(x, s) output y"),
            ("const w: f32[4,4] y = MatMul(x, w) output y", "const v: f32[4,4] y = MatMul(x, v) output y"),
            // The same random function twice is not the same numbers.
            ("y = opaque:RandomNormalLike(x) -> f32[N,4,4] output y", "y = opaque:RandomNormalLike(x) -> f32[N,4,4] output y"),
        ],
    );
}

#[test]
fn folded_constants_are_bounded_and_wrong_ones_are_not() {
    let a = "const s: f32[4,1] = [0.1, 0.3, 0.7, 1.1] const t: f32[] = 0.3 y = Mul(x, Div(s, t)) output y";
    let inputs = "x: f32[N,4,6]";
    check(
        Word::Bounded,
        inputs,
        &[(a, "const s: f32[4,1] = [0.33333334, 1.0, 2.3333333, 3.6666667] y = Mul(x, s) output y")],
    );
    check(
        Word::Unproved,
        inputs,
        &[(a, "const s: f32[4,1] = [0.33333334, 1.0001, 2.3333333, 3.6666667] y = Mul(x, s) output y")],
    );
}
