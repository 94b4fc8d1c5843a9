//! Inputs that run at some sizes only: a certificate is about those.

use regraft_certify::{Certificate, Finding, GraphPath, Step, Trail};
use regraft_ir::{Graph, Trust, canonical_key};
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto};
use regraft_onnx::{Model, WriteOptions};

use crate::models::{declared, empty, model, node, replayed, step};

fn integers(name: &str, values: &[i64]) -> TensorProto {
    let shape = vec![values.len() as i64];
    TensorProto { name: Some(name.into()), dims: shape, data_type: Some(7), int64_data: values.to_vec(), ..TensorProto::default() }
}

/// `y = relu(r)`, where `r` is `x` in eight parts, under the shape `to`.
fn parted(to: &[i64]) -> ModelProto {
    model(GraphProto {
        name: Some("parted".into()),
        input: vec![declared("x", &["N", "L"])],
        output: vec![declared("y", &["a", "b"])],
        initializer: vec![integers("eight", &[0, 8, -1]), integers("to", to)],
        node: vec![node("Reshape", &["x", "eight"], &["h"]), node("Reshape", &["h", "to"], &["r"]), node("Relu", &["r"], &["y"])],
        ..GraphProto::default()
    })
}

/// The certificate of one step, which is applied, and the result.
fn rewritten(input: &Model, make: impl Fn(&Graph) -> Step) -> (Certificate, ModelProto) {
    let (start, mut graph) = (canonical_key(input.graph()), input.graph().clone());
    let step = make(&graph);
    graph.apply(&step.patch(&graph).expect("a patch"));
    let trail = Trail { place: GraphPath::default(), label: "the model".into(), start, steps: vec![step] };
    let certificate = Certificate { trails: vec![trail], ..empty() };
    let text = certificate.to_text();
    assert_eq!(Certificate::parse(text.as_bytes()).expect("a version").expect("a certificate"), certificate);
    (certificate, input.write(&graph, &WriteOptions::default()).expect("a model").proto)
}

#[test]
fn a_result_without_the_node_that_tells_is_read_under_what_it_told() {
    for (to, make) in [
        (&[0, -1][..], (&|graph: &Graph| step(graph, "back", &["h", "r"], &[("r", "x")], "")) as &dyn Fn(&Graph) -> Step),
        (&[0, -1, 8], &|graph| {
            let fragment = "graph (<x>: f32[N,8*`L/8`]) { q = Reshape(<x>, shape=[N, `L/8`, 8]) output q as <r> }\n";
            step(graph, "at-once", &["h", "r"], &[], fragment)
        }),
    ] {
        let input = Model::from_proto(parted(to)).expect("a model");
        assert_eq!(input.facts().len(), 1);
        let (certificate, output) = rewritten(&input, make);
        let output = Model::from_proto(output).expect("a model");
        let replay = replayed(certificate.replay(&input, &output).expect("readable"));
        assert_eq!((replay.trust(), &replay.arrival), (Trust::Proved, &Ok(())), "{:?}", replay.judged);
    }
}

#[test]
fn a_result_brings_no_facts_of_its_own() {
    let (input, output) = (parted(&[0, -1]), {
        let mut proto = parted(&[0, -1]);
        let graph = proto.graph.get_or_insert_default();
        graph.node = vec![node("Relu", &["x"], &["y"])];
        proto
    });
    let read = |proto: &ModelProto| Model::from_proto(proto.clone()).expect("a model");
    // The wider model is not the narrower one, from which a step leads to it.
    let (certificate, _) = rewritten(&read(&input), |graph| step(graph, "back", &["h", "r"], &[("r", "x")], ""));
    assert!(matches!(replayed(certificate.replay(&read(&input), &read(&output)).expect("readable")).arrival, Ok(())));
    let forged = Certificate { trails: Vec::new(), ..certificate };
    let finding = forged.replay(&read(&output), &read(&input)).expect("readable");
    assert!(matches!(finding, Finding::Replayed(replay) if replay.arrival.is_err()));
}
