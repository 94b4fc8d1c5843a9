//! Operators that draw or train are equal only to themselves, however deeply they are hidden.

use crate::models::{attribute, body, declared, empty, model, node, replayed, step};
use regraft_certify::{Finding, GraphPath, Replayer, Trail};
use regraft_ir::{Trust, canonical_key, text};
use regraft_onnx::Model;
use regraft_onnx::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto};

fn opset(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

/// `f.name(a) -> b` with these nodes.
fn function(name: &str, nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        domain: Some("f".into()),
        name: Some(name.into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: nodes,
        opset_import: vec![opset("", 17), opset("f", 1)],
        ..FunctionProto::default()
    }
}

fn call(name: &str, input: &str, output: &str) -> NodeProto {
    NodeProto { domain: Some("f".into()), ..node(name, &[input], &[output]) }
}

/// An If whose branches are one node each and read `x`.
fn choice(of: &dyn Fn(&str) -> NodeProto, output: &str) -> NodeProto {
    let branch = |name: &str, result: &str| {
        body(name, GraphProto { output: vec![declared(result, &["3"])], node: vec![of(result)], ..GraphProto::default() })
    };
    NodeProto { attribute: vec![branch("then_branch", "t"), branch("else_branch", "e")], ..node("If", &["c"], &[output]) }
}

/// `y = u - v`, where `u` and `v` come from these nodes.
fn difference(nodes: Vec<NodeProto>, operands: [&str; 2]) -> Model {
    let mut condition = declared("c", &[]);
    condition.r#type = crate::models::boolean();
    let inner = |name: &str, of: NodeProto| function(name, vec![of]);
    let functions = vec![
        inner("Noise", node("RandomNormalLike", &["a"], &["b"])),
        inner("Deep", call("Noise", "a", "b")),
        inner("Hidden", NodeProto { input: vec!["a".into()], ..choice(&|r| node("RandomUniformLike", &["a"], &[r]), "b") }),
        inner("Pure", node("Tanh", &["a"], &["b"])),
    ];
    let graph = GraphProto {
        name: Some("difference".into()),
        input: vec![condition, declared("x", &["3"])],
        output: vec![declared("y", &["3"])],
        node: [nodes, vec![node("Sub", &operands, &["y"])]].concat(),
        value_info: ["r", "s"].map(|name| declared(name, &["3"])).to_vec(),
        ..GraphProto::default()
    };
    let opset_import = vec![opset("", 17), opset("f", 1), opset("com.example", 1)];
    Model::from_proto(ModelProto { opset_import, functions, ..model(graph) }).expect("a model")
}

/// What a certificate without steps says about two nodes where the other model has one, in both
/// directions, and about two next to the same two.
fn judged(make: &dyn Fn(&str) -> NodeProto) -> [Trust; 3] {
    let two = difference(vec![make("r"), make("s")], ["r", "s"]);
    let one = difference(vec![make("r")], ["r", "r"]);
    [(&two, &one), (&one, &two), (&two, &two)].map(|(a, b)| match empty().replay(a, b).expect("comparable") {
        Finding::Replayed(replay) => {
            assert!(replay.arrival.as_ref().err().is_none_or(|why| why.contains("effects")), "{replay:?}");
            replay.trust()
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn two_that_draw_are_not_one() {
    let own = |kind: &'static str| move |out: &str| node(kind, &["x"], &[out]);
    let normalized = |out: &str| NodeProto {
        attribute: vec![attribute("training_mode", 1)],
        ..node("BatchNormalization", &["x", "x", "x", "x", "x"], &[out, "", ""])
    };
    let dropped = |out: &str| node("Dropout", &["x", "", "c"], &[out]);
    let drawing: [&dyn Fn(&str) -> NodeProto; 11] = [
        &own("RandomNormalLike"),
        &own("RandomUniformLike"),
        &own("Bernoulli"),
        &normalized,
        &dropped,
        &|out| call("Noise", "x", out),
        &|out| call("Deep", "x", out),
        &|out| call("Hidden", "x", out),
        &|out| choice(&|r| node("RandomNormalLike", &["x"], &[r]), out),
        &|out| choice(&|r| call("Deep", "x", r), out),
        &|out| choice(&|r| choice(&|q| call("Hidden", "x", q), r), out),
    ];
    for (at, make) in drawing.iter().enumerate() {
        assert_eq!(judged(make), [Trust::Unproved, Trust::Unproved, Trust::Proved], "case {at}: {:?}", make("r"));
    }
}

#[test]
fn two_that_are_functions_may_be_one() {
    let functions: [&dyn Fn(&str) -> NodeProto; 4] = [
        &|out| call("Pure", "x", out),
        &|out| NodeProto { domain: Some("com.example".into()), ..node("RandomNormal", &["x"], &[out]) },
        &|out| node("Dropout", &["x"], &[out]),
        &|out| choice(&|r| call("Pure", "x", r), out),
    ];
    for (at, make) in functions.iter().enumerate() {
        assert_eq!(judged(make), [Trust::Proved; 3], "case {at}");
    }
}

/// The same inside a body: two nodes that draw are not one.
#[test]
fn bodies_are_compared_one_for_one() {
    let noisy = |operands: [&str; 2]| {
        let nodes =
            vec![node("RandomNormalLike", &["x"], &["p"]), node("RandomNormalLike", &["x"], &["q"]), node("Sub", &operands, &["t"])];
        let graph = || GraphProto {
            output: vec![declared("t", &["3"])],
            node: nodes.clone(),
            value_info: ["p", "q"].map(|name| declared(name, &["3"])).to_vec(),
            ..GraphProto::default()
        };
        let attribute = vec![body("then_branch", graph()), body("else_branch", graph())];
        difference(vec![NodeProto { attribute, ..node("If", &["c"], &["r"]) }], ["r", "x"])
    };
    let [two, one, swapped] = [["p", "q"], ["p", "p"], ["q", "p"]].map(noisy);
    for (a, b, want) in
        [(&two, &two, Trust::Proved), (&two, &swapped, Trust::Proved), (&two, &one, Trust::Unproved), (&one, &two, Trust::Unproved)]
    {
        assert_eq!(replayed(empty().replay(a, b).expect("comparable")).trust(), want);
    }
}

#[test]
fn a_step_that_merges_two_that_draw_is_not_believed() {
    let text = "graph (x: f32[3]) { r = opaque:RandomNormalLike(x, effects=true) -> f32[3]
        s = opaque:RandomNormalLike(x, effects=true) -> f32[3] y = Sub(r, s) output y }";
    let mut graph = text::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let merge = step(&graph, "cse", &["s"], &[("s", "r")], "");
    let trail = Trail { place: GraphPath::default(), label: String::new(), start: canonical_key(&graph), steps: vec![merge] };
    let mut replayer = Replayer::default();
    replayer.follow(&mut graph, &trail).expect("it fits");
    assert_eq!(replayer.judged[0].trust, Trust::Unproved);
}
