//! Verdicts on right and wrong rewrites, wherever they are.

use crate::models::{Case, branching, bytes, declared, empty, follow, model, node, replayed, scaled, step, weight};
use regraft_certify::{Certificate, CertifyError, Finding, GraphPath, ModelDigest, Replayer, Step, Stop, Trail};
use regraft_ir::{Graph, NodeId, Trust, canonical_key, text};
use regraft_onnx::proto::{GraphProto, TensorProto};
use regraft_onnx::{FixedInput, FixedSizes, Model, WriteOptions};

#[test]
fn the_certificate_of_a_rewritten_model_replays() {
    for external in [false, true] {
        let case = Case::scaled(external);
        let replay = replayed(case.verify());
        assert_eq!(replay.arrival, Ok(()), "{replay:?}");
        assert_eq!(replay.judged.len(), case.certificate.steps());
        assert_eq!(replay.trust(), Trust::Proved, "{:?}", replay.judged);
        if !external {
            assert_eq!(replay.judged[0].trust, Trust::Proved, "{:?}", replay.judged[0]);
            // The folded weight was rounded once.
            assert_eq!(replay.rounding.constants, 1);
            assert!(replay.rounding.bound > 0.0 && replay.rounding.bound < 1e-7, "{:?}", replay.rounding);
        }
    }
}

#[test]
fn renamed_files_are_the_same_models() {
    let case = Case::scaled(false);
    for name in ["a", "b"] {
        std::fs::rename(case.path(&format!("{name}.onnx")), case.path(&format!("{name}2.onnx"))).expect("renamed");
    }
    assert!(matches!(case.certificate.verify(&case.path("a2.onnx"), &case.path("b2.onnx")), Ok(Finding::Replayed(_))));
    assert!(case.certificate.verify(&case.path("a.onnx"), &case.path("b2.onnx")).is_err());
}

/// The verdict on one step in a graph.
fn judge(graph: &str, replaces: &[&str], redirects: &[(&str, &str)], fragment: &str) -> Result<Trust, Stop> {
    let mut graph = text::parse(graph).unwrap_or_else(|e| panic!("{e}"));
    let step = step(&graph, "rule", replaces, redirects, fragment);
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&graph), steps: vec![step] };
    let mut replayer = Replayer::default();
    replayer.follow(&mut graph, &trail)?;
    Ok(replayer.judged[0].trust)
}

/// A graph, the replaced nodes, redirects, a fragment, and whether the step is right.
type Claim<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str, bool);

#[test]
fn wrong_steps_are_never_believed_and_right_ones_are() {
    let square =
        "graph (x: f32[N,4], y: f32[N,4]) { const c: f32[4] = 2 a = Add(x, y) b = Mul(a, c) d = Sub(x, y) e = Add(y, x) output b, d, e }";
    let product =
        "graph (x: f32[3,4], y: f32[4,4]) { t = Transpose(y, perm=[1, 0]) a = MatMul(x, t) b = MatMul(x, t) c = Add(a, b) output c }";
    let chain = "graph (x: f32[N,4]) { t = Transpose(x, perm=[1, 0]) n = Neg(t) a = Neg(n) u = Transpose(a, perm=[1, 0]) b = Exp(x) output b, u, t }";
    let rows =
        "graph (x: f32[N,2,4], w: f32[4,3]) { r = Relu(x) b = MatMul(r, w) f = Reshape(x, shape=[2*N, 4]) g = Relu(f) m = MatMul(g, w)
        h = Neg(f) k = MatMul(h, w) output b, m, k }";
    let cases: &[Claim] = &[
        // (x + y) 2 = 2x + 2y, and not 2x + y
        (
            square,
            &["a", "b"],
            &[],
            "graph (<x>: f32[N,4], <y>: f32[N,4], <c>: f32[4]) { p = Mul(<x>, <c>) q = Mul(<y>, <c>) r = Add(p, q) output r as <b> }\n",
            true,
        ),
        (
            square,
            &["a", "b"],
            &[],
            "graph (<x>: f32[N,4], <y>: f32[N,4], <c>: f32[4]) { p = Mul(<x>, <c>) r = Add(p, <y>) output r as <b> }\n",
            false,
        ),
        // Constants count by content: x 2 = x + x, and not x + x + x.
        (square, &["b"], &[], "graph (<a>: f32[N,4]) { r = Add(<a>, <a>) output r as <b> }\n", true),
        (square, &["b"], &[], "graph (<a>: f32[N,4]) { q = Add(<a>, <a>) r = Add(q, <a>) output r as <b> }\n", false),
        // So do new constants.
        (square, &["b"], &[], "graph (<a>: f32[N,4]) { const k: f32[] = 2.0 r = Mul(<a>, k) output r as <b> }\n", true),
        (square, &["b"], &[], "graph (<a>: f32[N,4]) { const k: f32[] = 2.5 r = Mul(<a>, k) output r as <b> }\n", false),
        // Operands may be swapped only where the operator is commutative.
        (square, &["e"], &[("e", "a")], "", true),
        (square, &["d"], &[], "graph (<x>: f32[N,4], <y>: f32[N,4]) { r = Sub(<y>, <x>) output r as <d> }\n", false),
        (square, &["d"], &[("d", "a")], "", false),
        (square, &["d"], &[("d", "x")], "", false),
        // What the certificate claims to replace proves nothing: here it claims too little and too
        // much.
        (square, &[], &[("e", "a")], "", true),
        (square, &["a", "b", "e"], &[("d", "x")], "", false),
        (square, &["d"], &[], "graph (<x>: f32[N,4], <y>: f32[N,4]) { n = Neg(<y>) r = Add(<x>, n) output r as <d> }\n", true),
        // Existing nodes are reused: what computes them is included.
        (
            product,
            &["b"],
            &[],
            "graph (<x>: f32[3,4], <y>: f32[4,4]) { u = Transpose(<y>, perm=[1, 0]) r = MatMul(<x>, u) output r as <b> }\n",
            true,
        ),
        (product, &["b"], &[], "graph (<x>: f32[3,4], <y>: f32[4,4]) { r = MatMul(<x>, <y>) output r as <b> }\n", false),
        // So is everything between them and the operands of the replaced ones.
        (chain, &["b"], &[], "graph (<u>: f32[N,4]) { r = Exp(<u>) output r as <b> }\n", true),
        (chain, &["b"], &[], "graph (<n>: f32[4,N]) { u = Transpose(<n>, perm=[1, 0]) r = Exp(u) output r as <b> }\n", false),
        // And what leads to both from values that both depend on.
        (rows, &["b"], &[], "graph (<m>: f32[2*N,3]) { r = Reshape(<m>, shape=[N, 2, 3]) output r as <b> }\n", true),
        (rows, &["b"], &[], "graph (<k>: f32[2*N,3]) { r = Reshape(<k>, shape=[N, 2, 3]) output r as <b> }\n", false),
        (product, &["a", "b", "c"], &[], "graph (<a>: f32[3,4]) { r = Add(<a>, <a>) output r as <c> }\n", true),
    ];
    for (graph, replaces, redirects, fragment, right) in cases {
        let word = judge(graph, replaces, redirects, fragment).unwrap_or_else(|lost| panic!("{redirects:?} {fragment}: {lost:?}"));
        assert_eq!(word, if *right { Trust::Proved } else { Trust::Unproved }, "{redirects:?} {fragment}");
    }
}

/// Redirects, a fragment, and the message.
type Refused<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn steps_that_make_no_graph_are_refused() {
    let graph = "graph (x: f32[4]) { a = Relu(x) b = Neg(a) c = Abs(b) output c }";
    let cases: &[Refused] = &[
        // a would be computed from c, which is computed from a.
        (&[("a", "c")], "", "depend on itself"),
        (&[], "graph (<b>: f32[4]) { r = Neg(<b>) output r as <a> }\n", "depend on itself"),
        // Another type, another value, an unknown value.
        (&[], "graph (<a>: f32[5]) { r = Neg(<a>) output r as <b> }\n", "is not f32[5]"),
        (&[], "graph (<a>: f32[4]) { r = Reshape(<a>, shape=[2, 2]) output r as <b> }\n", "has another type"),
        (&[], "graph (n9.0: f32[4]) { r = Neg(n9.0) output r as <b> }\n", "there is no value n9.0"),
        (&[], "graph (n1.1: f32[4]) { r = Neg(n1.1) output r as <b> }\n", "there is no value n1.1"),
        (&[], "graph (x: f32[4]) { r = Neg(x) output r as <b> }\n", "`x` is no value"),
        (&[], "graph (<a>: f32[4]) { r = opaque:Mystery(<a>) -> f32[4] output r as <b> }\n", "has no meaning"),
        (&[], "graph (<a>: f32[4]) { r = Neg(<a>, <a>) output r as <b> }\n", "the new nodes"),
        (&[], "graph (<a>: f32[4]", "the new nodes"),
    ];
    for (redirects, fragment, want) in cases {
        match judge(graph, &["a"], redirects, fragment) {
            Err(Stop::Broken(why)) => {
                assert!(
                    why.starts_with("step 1 (rule) of graph main fits nowhere") && why.contains(want),
                    "{redirects:?} {fragment}: {why}"
                )
            }
            other => panic!("{redirects:?} {fragment}: {other:?}"),
        }
    }
}

#[test]
fn a_trail_starts_at_its_own_graph_only() {
    let mut graph = text::parse("graph (x: f32[4]) { a = Relu(x) output a }").expect("a graph");
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&graph) ^ 1, steps: Vec::new() };
    assert!(matches!(Replayer::default().follow(&mut graph, &trail), Err(Stop::Differs(_))));
}

#[test]
fn patches_become_the_steps_that_they_come_from() {
    let model = Model::from_bytes(bytes(&scaled()).into(), None).expect("a model");
    let mut graph = model.graph().clone();
    for want in crate::models::rewrites(&mut graph.clone()) {
        let patch = want.patch(&graph).expect("it fits");
        let made = Step::of(&graph, &want.replaces, &patch).expect("types are known");
        assert_eq!(made.patch(&graph).as_ref(), Ok(&patch));
        assert_eq!(made.redirects, want.redirects);
        graph.apply(&patch);
    }
}

/// Rewrites a branch of the If, and returns how.
fn rewritten(wrong: bool) -> (Model, Model, Certificate) {
    let model = Model::from_bytes(bytes(&branching()).into(), None).expect("a model");
    let body = model.bodies().into_iter().find(|b| b.label().contains("then")).expect("a branch");
    let mut graph = body.model().graph().clone();
    let outer = |g: &Graph| step(g, "neg-neg", &["b", "d"], &[("d", "a")], "");
    let bad = |g: &Graph| step(g, "neg-neg", &["b", "d"], &[("d", "b")], "");
    let steps = follow(&mut graph, &[if wrong { &bad } else { &outer }]);
    let written = body.write(body.model(), &graph, &WriteOptions::default()).expect("written");
    let mut output = model.clone();
    output.put_body(written);
    let output = Model::from_proto(output.proto().clone()).expect("a model");
    let place = GraphPath::default().inside(body.place());
    let trail = Trail { place, label: body.label().into(), start: canonical_key(body.model().graph()), steps };
    let digest = ModelDigest(Vec::new());
    let certificate = Certificate {
        tool: "test".into(),
        input: digest.clone(),
        output: digest,
        fixed: FixedSizes::default(),
        opset: None,
        trails: vec![trail],
    };
    (model, output, certificate)
}

#[test]
fn bodies_are_replayed_in_their_place() {
    let (input, output, certificate) = rewritten(false);
    let parsed = Certificate::parse(certificate.to_text().as_bytes()).expect("of this layout").expect("as it was written");
    assert_eq!(parsed, certificate);
    let replay = replayed(parsed.replay(&input, &output).expect("comparable"));
    assert_eq!(replay.arrival, Ok(()));
    assert_eq!(replay.trust(), Trust::Proved, "{replay:?}");
    // Once, although both results of the If are compared.
    assert_eq!((replay.judged.len(), replay.steps), (1, 1), "{replay:?}");
    assert!(replay.judged[0].graph.contains("then-branch"), "{replay:?}");

    // The same rewrite at another place, or none, leads elsewhere.
    for place in [GraphPath::default(), GraphPath(vec![(0, 1)]), GraphPath(vec![(5, 0)])] {
        let mut moved = certificate.clone();
        moved.trails[0].place = place.clone();
        let replay = replayed(moved.replay(&input, &output).expect("comparable"));
        assert_eq!(replay.trust(), Trust::Unproved, "{place}: {replay:?}");
    }
    assert!(replayed(certificate.replay(&input, &input).expect("comparable")).trust() == Trust::Unproved);
}

#[test]
fn a_wrong_rewrite_of_a_body_is_not_believed() {
    let (input, output, certificate) = rewritten(true);
    let replay = replayed(certificate.replay(&input, &output).expect("comparable"));
    assert_eq!((replay.arrival.clone(), replay.trust()), (Ok(()), Trust::Unproved), "{replay:?}");
    let open: Vec<_> = replay.open().collect();
    assert_eq!((open.len(), open[0].number, open[0].rule.as_str(), open[0].at.as_str()), (1, 1, "neg-neg", "`d`"));
    assert!(open[0].graph.contains("then-branch"), "{open:?}");
}

#[test]
fn another_opset_is_no_step_but_is_checked() {
    let input = Model::from_bytes(bytes(&scaled()).into(), None).expect("a model");
    let converted = input.clone().at_opset(13).expect("it can be said at 13");
    let digest = ModelDigest(Vec::new());
    let certificate = Certificate {
        tool: "test".into(),
        input: digest.clone(),
        output: digest,
        fixed: FixedSizes::default(),
        opset: Some(13),
        trails: Vec::new(),
    };
    let replay = replayed(certificate.replay(&input, &converted).expect("comparable"));
    assert_eq!((replay.arrival.clone(), replay.trust()), (Ok(()), Trust::Proved), "{replay:?}");
    let other = Certificate { opset: None, ..certificate };
    assert_eq!(replayed(other.replay(&input, &converted).expect("comparable")).trust(), Trust::Unproved);
}

#[test]
fn fixed_sizes_are_said_and_checked() {
    let input = Model::from_bytes(bytes(&scaled()).into(), None).expect("a model");
    let at = |size: i64| FixedSizes(vec![FixedInput { name: "x".into(), sizes: vec![Some(size), None] }]);
    let fixed = input.clone().at_sizes(&at(3)).expect("it accepts this size");
    let certificate = |sizes: FixedSizes| {
        let sealed = Certificate { fixed: sizes, ..empty() }.to_text();
        Certificate::parse(sealed.as_bytes()).expect("a known layout").expect("intact")
    };
    let replay = replayed(certificate(at(3)).replay(&input, &fixed).expect("comparable"));
    assert_eq!((replay.fixed.to_string(), replay.arrival.clone(), replay.trust()), ("x:3,?".into(), Ok(()), Trust::Proved));
    // Claimed for all sizes, or for others, it is not what the output says.
    for sizes in [FixedSizes::default(), at(4)] {
        let finding = certificate(sizes.clone()).replay(&input, &fixed).expect("comparable");
        assert!(matches!(&finding, Finding::Tampered(why) if why.contains("does not declare")), "{sizes}: {finding:?}");
    }
    // A size that the input does not have.
    let other = FixedSizes(vec![FixedInput { name: "x".into(), sizes: vec![Some(3), Some(7)] }]);
    assert!(matches!(certificate(other).replay(&input, &fixed), Err(CertifyError::Sizes(_))));
}

#[test]
fn replaced_nodes_must_exist() {
    let graph = text::parse("graph (x: f32[4]) { a = Relu(x) output a }").expect("a graph");
    let step = Step { replaces: vec![NodeId(7)], ..Step::default() };
    assert_eq!(step.patch(&graph), Err("there is no node n7".into()));
}

/// Weights are left out of what is proved, but not a number that fills a tensor.
#[test]
fn a_number_that_fills_a_large_tensor_is_one() {
    let trust = |zero: &str| {
        let text = format!("graph (x: f32[40,40,40]) {{ const zero: f32[40,40,40]{zero} y = Add(x, zero) z = Relu(y) output z }}");
        let mut graph = text::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let steps = vec![step(&graph, "neutral-add", &["y"], &[("y", "x")], "")];
        let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&graph), steps };
        let mut replayer = Replayer::default();
        replayer.follow(&mut graph, &trail).unwrap_or_else(|stop| panic!("{stop:?}"));
        replayer.judged[0].trust
    };
    assert_eq!((trust(" = 0"), trust(" = 1"), trust("")), (Trust::Proved, Trust::Unproved, Trust::Unproved));
}

/// Verdicts on doublings by one rule, right and wrong ones, each at another size.
fn doublings(right: &[bool]) -> Vec<Trust> {
    let places = || 1..=right.len();
    let inputs: Vec<String> = places().map(|at| format!("x{at}: f32[N,{at}]")).collect();
    let nodes: String = places().map(|at| format!("const c{at}: f32[{at}] = 2 b{at} = Mul(x{at}, c{at}) ")).collect();
    let outputs: Vec<String> = places().map(|at| format!("b{at}")).collect();
    let graph = format!("graph ({}) {{ {nodes} output {} }}", inputs.join(", "), outputs.join(", "));
    let mut graph = text::parse(&graph).unwrap_or_else(|e| panic!("{e}"));
    let made = |(at, right): (usize, &bool)| {
        let sum = if *right { "r = Add(<x>, <x>)" } else { "q = Add(<x>, <x>) r = Add(q, <x>)" };
        let fragment = format!("graph (<x>: f32[N,{at}]) {{ {sum} output r as <b{at}> }}\n").replace("<x>", &format!("<x{at}>"));
        step(&graph, "doubling", &[&format!("b{at}")], &[], &fragment)
    };
    let steps = places().zip(right).map(made).collect();
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&graph), steps };
    let mut replayer = Replayer::default();
    replayer.follow(&mut graph, &trail).unwrap_or_else(|stop| panic!("{stop:?}"));
    replayer.judged.iter().map(|step| step.trust).collect()
}

/// Each rewrite is tried with more and more of its surroundings; only those not shown in any way
/// count against their rule.
#[test]
fn a_rule_is_given_up_after_three_rewrites_in_a_row() {
    use Trust::{Proved, Tested, Unproved};
    assert_eq!(doublings(&[false, false, true, false, false, true]), [Unproved, Unproved, Proved, Unproved, Unproved, Proved]);
    assert_eq!(doublings(&[false, false, false, true]), [Unproved, Unproved, Unproved, Tested]);
}

#[test]
fn a_weight_may_lose_its_subnormal_elements_and_no_others() {
    let product = |values: [f32; 4]| {
        let raw = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let tensor = TensorProto { raw_data: Some(raw.into()), ..weight("w", &[4, 1]) };
        let graph = GraphProto {
            input: vec![declared("x", &["N", "4"])],
            output: vec![declared("y", &["N", "1"])],
            initializer: vec![tensor],
            node: vec![node("MatMul", &["x", "w"], &["y"])],
            ..GraphProto::default()
        };
        Model::from_proto(model(graph)).expect("a model")
    };
    let input = product([0.5, 1e-40, -1e-39, 2.0]);
    let replay = replayed(empty().replay(&input, &product([0.5, 0.0, -0.0, 2.0])).expect("readable"));
    assert_eq!((replay.arrival.as_ref(), replay.rounding.constants), (Ok(&()), 1));
    assert!(replay.rounding.bound > 0.0 && replay.rounding.bound < 1e-38, "{:?}", replay.rounding);
    for other in [[0.5, 0.0, -1e-39, 2.0], [0.0, 0.0, -0.0, 2.0], [0.5, 0.0, -0.0, 2.000_000_2]] {
        let replay = replayed(empty().replay(&input, &product(other)).expect("readable"));
        assert!(replay.arrival.is_err(), "{other:?}");
    }
}
