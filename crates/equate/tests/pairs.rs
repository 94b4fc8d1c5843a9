//! Pairs of small graphs: what is proved, what is bounded, and what must never be.

use regraft_equate::{Effort, Equivalence, Function, NoOpaques, Side, equate};
use regraft_ir::text::parse;
use regraft_ir::{NodeId, Trust, ValueId};
use regraft_rules::Library;

fn compare(a: &str, b: &str) -> Equivalence {
    let rules = Library::shipped().expect("the shipped rules");
    let [a, b] = [a, b].map(|text| parse(text).unwrap_or_else(|e| panic!("{e}\n{text}")));
    equate(&a, &b, &mut NoOpaques, &rules, &Effort::default())
}

/// Checks pairs of graph bodies over the same inputs.
fn check(word: Trust, inputs: &str, pairs: &[(&str, &str)]) {
    for (a, b) in pairs {
        let graph = |body: &str| format!("graph ({inputs}) {{ {body} }}");
        let found = compare(&graph(a), &graph(b));
        assert_eq!(found.trust(), word, "{a}\n  against\n{b}\n{found:?}");
        assert_eq!(found.gaps.is_empty(), word != Trust::Unproved, "{found:?}");
    }
}

#[test]
fn the_same_in_other_words_is_proved() {
    check(
        Trust::Proved,
        "x: f32[N,4,6], c: f32[4,1]",
        &[
            // Identities, commuted operands, and cancelling operators.
            ("y = Add(Mul(x, c), x) output y", "i = Identity(x) y = Add(i, Mul(c, i)) output y"),
            ("y = Relu(Transpose(Transpose(x, perm=[2, 0, 1]), perm=[1, 2, 0])) output y", "y = Relu(x) output y"),
            ("y = Transpose(Transpose(x, perm=[0, 2, 1]), perm=[2, 1, 0]) output y", "y = Transpose(x, perm=[1, 2, 0]) output y"),
            ("y = Relu(Relu(x)) output y", "y = Relu(x) output y"),
            ("const s: f32[] = 1 y = Exp(Mul(x, s)) output y", "y = Exp(x) output y"),
            // Two ways to compute one value; the other model has one of them.
            ("t = Relu(x) u = Relu(Relu(x)) y = Add(t, u) output y", "t = Relu(x) y = Add(t, t) output y"),
            // Constants that no step rounds.
            ("const s: f32[] = 3 const t: f32[] = 0.5 y = Mul(x, Mul(s, t)) output y", "const s: f32[] = 1.5 y = Mul(x, s) output y"),
            (
                "const w: f32[6,2] y = MatMul(x, w) output y",
                "const w: f32[6,2] y = MatMul(x, Transpose(Transpose(w, perm=[1, 0]), perm=[1, 0])) output y",
            ),
        ],
    );
}

#[test]
fn layers_are_proved_for_all_batches() {
    check(
        Trust::Proved,
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
        Trust::Unproved,
        "x: f32[N,4,4], c: f32[4,1]",
        &[
            ("y = Relu(x) output y", "y = Tanh(x) output y"),
            ("y = Sub(x, c) output y", "y = Sub(c, x) output y"),
            ("y = Transpose(x, perm=[0, 2, 1]) output y", "y = Identity(x) output y"),
            ("y = Softmax(x, axis=1) output y", "y = Softmax(x, axis=2) output y"),
            ("const s: f32[] = 1 y = Mul(x, s) output y", "const s: f32[] = 1.0000002 y = Mul(x, s) output y"),
            ("const w: f32[4,4] y = MatMul(x, w) output y", "const v: f32[4,4] y = MatMul(x, v) output y"),
            // Two runs of the same random function give different numbers.
            ("y = opaque:RandomNormalLike(x) -> f32[N,4,4] output y", "y = opaque:RandomNormalLike(x) -> f32[N,4,4] output y"),
        ],
    );
}

#[test]
fn folded_constants_are_bounded_and_wrong_ones_are_not() {
    let a = "const s: f32[4,1] = [0.1, 0.3, 0.7, 1.1] const t: f32[] = 0.3 y = Mul(x, Div(s, t)) output y";
    let inputs = "x: f32[N,4,6]";
    check(Trust::Bounded, inputs, &[(a, "const s: f32[4,1] = [0.33333334, 1.0, 2.3333333, 3.6666667] y = Mul(x, s) output y")]);
    check(Trust::Unproved, inputs, &[(a, "const s: f32[4,1] = [0.33333334, 1.0001, 2.3333333, 3.6666667] y = Mul(x, s) output y")]);
}

#[test]
fn what_no_step_rounds_or_rounding_does_not_reach_is_proved() {
    let inputs = "x: f32[N,4]";
    let pairs = [
        // The sum is rounded, and its neighbour is not.
        (
            "const s: f32[4] = [0, 1, 2, 3] const t: f32[] = 0.7 const u: f32[] = 0.13 y = Mul(x, Round(Add(Mul(s, t), u))) output y",
            "const s: f32[4] = [0, 1, 2, 2] y = Mul(x, s) output y",
        ),
        (
            "const s: f32[4] = [1, 2, 3, 4] const p: f32[] = 3 y = Mul(x, Pow(s, p)) output y",
            "const s: f32[4] = [1, 8, 27, 64] y = Mul(x, s) output y",
        ),
    ];
    check(Trust::Proved, inputs, &pairs);
    let near = "const s: f32[4] = [0, 1, 2, 2.0000002] y = Mul(x, s) output y";
    check(Trust::Unproved, inputs, &[(pairs[0].0, near)]);
    // So close to a step, the result is unknown.
    let close = "const s: f32[4] = [0.1, 1, 2, 3] const t: f32[] = 5 y = Mul(x, Round(Mul(s, t))) output y";
    check(Trust::Unproved, inputs, &[(close, "const s: f32[4] = [1, 5, 10, 15] y = Mul(x, s) output y")]);
}

#[test]
fn constants_in_another_shape_or_order_are_known() {
    check(
        Trust::Proved,
        "x: f32[N,3,8,8]",
        &[(
            "const w: f32[2,3,1,1] const b: f32[2,1,1] = [0.25, 0.75]
             y = Add(Conv(x, w, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1), b) output y",
            "const w: f32[2,3,1,1] const b: f32[2] = [0.25, 0.75]
             y = Conv(x, w, b, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1) output y",
        )],
    );
    check(
        Trust::Proved,
        "x: f32[N,3]",
        &[(
            "const w: f32[3,2] = [1, 2, 3, 4, 5, 6] const b: f32[2] y = Gemm(x, w, b, alpha=1.0, beta=1.0, trans_a=false, trans_b=false) output y",
            "const w: f32[2,3] = [1, 3, 5, 2, 4, 6] const b: f32[2] y = Gemm(x, w, b, alpha=1.0, beta=1.0, trans_a=false, trans_b=true) output y",
        )],
    );
}

#[test]
fn a_normalization_folded_into_weights_is_bounded() {
    let conv = "strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1";
    let a = format!(
        "graph (x: f32[N,1,5,5]) {{
           const w: f32[2,1,1,1] = [0.7, -0.3] const b: f32[2] = [0.1, 0.2]
           const s: f32[2] = [1.1, 0.9] const d: f32[2] = [0.3, -0.4] const m: f32[2] = [0.05, -0.15] const v: f32[2] = [0.6, 1.3]
           y = Relu(BatchNormalization(Conv(x, w, b, {conv}), s, d, m, v, epsilon=0.001))
           output y
         }}"
    );
    let folded = |scale: f64| {
        let factor = |s: f64, v: f64| s / (v + 0.001f64).sqrt();
        let (f, g) = (factor(f64::from(1.1f32), f64::from(0.6f32)), factor(f64::from(0.9f32), f64::from(1.3f32)));
        let (w, b) = ([0.7 * f * scale, -0.3 * g], [(0.1 - 0.05) * f + 0.3, (0.2 + 0.15) * g - 0.4]);
        format!(
            "graph (x: f32[N,1,5,5]) {{ const w: f32[2,1,1,1] = [{}, {}] const b: f32[2] = [{}, {}] y = Relu(Conv(x, w, b, {conv})) output y }}",
            w[0] as f32, w[1] as f32, b[0] as f32, b[1] as f32
        )
    };
    let found = compare(&a, &folded(1.0));
    assert_eq!((found.trust(), found.rounded), (Trust::Bounded, 2), "{found:?}");
    assert!(found.bound < 1e-6, "{found:?}");
    assert_eq!(compare(&a, &folded(1.0002)).trust(), Trust::Unproved);
}

#[test]
fn half_precision_has_bounds_of_its_own() {
    let a = "graph (x: f16[2,1,5,5]) {
       const w: f16[2,1,1,1] = [0.498, 0.1692] const b: f16[2] = [0.4827, -0.1129]
       const s: f16[2] = [0.605, 1.151] const d: f16[2] = [0.0818, -0.3567] const m: f16[2] = 0.365 const v: f16[2] = [0.586, 0.633]
       y = BatchNormalization(Conv(x, w, b, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1), s, d, m, v, epsilon=0.125)
       output y
     }";
    let folded = |bias: &str| {
        format!(
            "graph (x: f16[2,1,5,5]) {{ const w: f16[2,1,1,1] = [0.3573, 0.2237] const b: f16[2] = {bias}
               y = Conv(x, w, b, strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], group=1) output y }}"
        )
    };
    let found = compare(a, &folded("[0.1662, -0.9885]"));
    assert_eq!(found.trust(), Trust::Bounded, "{found:?}");
    assert_eq!(compare(a, &folded("[0.1862, -0.9885]")).trust(), Trust::Unproved);
}

#[test]
fn unknown_operators_are_functions_of_their_operands_if_someone_knows_them() {
    struct Named;
    impl regraft_equate::Opaques for Named {
        fn function(&mut self, _: Side, _: NodeId, operands: &[ValueId]) -> Option<Function> {
            Some(Function { name: b"f".to_vec(), operands: (0..operands.len()).collect() })
        }
    }
    let graphs = ["y = opaque:F(Relu(Relu(x))) -> f32[N]", "y = opaque:F(Relu(x)) -> f32[N]", "y = opaque:F(x) -> f32[N]"];
    let [a, b, c] = graphs.map(|body| parse(&format!("graph (x: f32[N]) {{ {body} output y }}")).unwrap_or_else(|e| panic!("{e}")));
    let word = |x, y| equate(x, y, &mut Named, &Library::default(), &Effort::default()).trust();
    assert_eq!((word(&a, &b), word(&a, &c)), (Trust::Proved, Trust::Unproved));
}

#[test]
fn constants_are_what_their_types_hold() {
    check(
        Trust::Unproved,
        "x: i64[1]",
        &[
            (
                "const a: i64[1] = 16777217 b = Cast(a, to=f32) r = Cast(b, to=i64) y = Add(x, r) output y",
                "const r: i64[1] = 16777217 y = Add(x, r) output y",
            ),
            (
                "const a: f32[1] = 2049 b = Cast(a, to=f16) c = Cast(b, to=f32) r = Cast(c, to=i64) y = Add(x, r) output y",
                "const r: i64[1] = 2049 y = Add(x, r) output y",
            ),
            (
                "const a: f32[1] = -1 u = Cast(a, to=u8) r = Cast(u, to=i64) y = Add(x, r) output y",
                "const r: i64[1] = 0 y = Add(x, r) output y",
            ),
            (
                "const a: i64[1] = 3 const b: i64[1] = 39 r = Pow(a, b) y = Add(x, r) output y",
                "const r: i64[1] = 4052555153018976267 y = Add(x, r) output y",
            ),
            (
                "const a: f32[1] = 1e-30 const z: f32[1] = 0 e = Equal(Mul(a, a), z) r = Cast(e, to=i64) y = Add(x, r) output y",
                "const r: i64[1] = 1 y = Add(x, r) output y",
            ),
        ],
    );
    check(
        Trust::Proved,
        "x: i64[1]",
        &[(
            "const a: i64[1] = 16777217 b = Cast(a, to=f32) r = Cast(b, to=i64) y = Add(x, r) output y",
            "const r: i64[1] = 16777216 y = Add(x, r) output y",
        )],
    );
}

#[test]
fn a_negative_zero_is_a_zero_over_the_reals_only() {
    let graph = |zero: &str| format!("graph (x: f32[2], k: bool[2]) {{ const z: f32[] = {zero} y = Where(k, x, z) output y }}");
    let found = compare(&graph("0.0"), &graph("-0.0"));
    assert!(found.trust() < Trust::Proved || found.premises.reals && found.asked > 0, "{found:?}");
}
