//! Attribution and prices of what ONNX Runtime actually runs. Skipped, with a message, if the
//! library is not installed; with `REGRAFT_REQUIRE_ONNXRUNTIME` in the environment it fails
//! instead.

use std::path::Path;

use prost::Message;
use regraft_cost::{CostModel, Measured, NameTable, Observation, Source, Target};
use regraft_ir::{Bindings, OpKind};
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType, tensor_shape_proto, type_proto,
};
use regraft_onnx::{Model, WriteOptions};
use regraft_runtime::{
    Fill, FillOptions, InputSpec, ModelSource, OnnxRuntime, ProfileOptions, ProfileSubject, Runtime, SessionOptions, Store, fill_inputs,
    profile_interleaved,
};

/// The runtime, or `None` if it is not installed. The checkout's own virtual environment is found
/// wherever the tests run.
fn runtime() -> Option<OnnxRuntime> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let packages = std::fs::read_dir(checkout).into_iter().flatten().flatten();
    let own = packages.map(|e| e.path().join("site-packages/onnxruntime/capi")).find(|p| p.is_dir());
    let named = ["REGRAFT_ONNXRUNTIME", "ORT_DYLIB_PATH"].iter().any(|v| std::env::var_os(v).is_some());
    match OnnxRuntime::load(own.as_deref().filter(|_| !named)) {
        Ok(runtime) => Some(runtime),
        Err(error) => {
            assert!(std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_owned()),
        name: Some(format!("n_{output}")),
        input: inputs.iter().map(|s| (*s).to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

fn with_ints(mut node: NodeProto, name: &str, ints: &[i64]) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(AttributeType::Ints as i32),
        ints: ints.to_vec(),
        ..AttributeProto::default()
    });
    node
}

fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    use tensor_shape_proto::{Dimension, dimension::Value};
    let dim = dims.iter().map(|d| Dimension { value: Some(Value::DimValue(*d)), ..Dimension::default() }).collect();
    let tensor = type_proto::Tensor { elem_type: Some(1), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Weights that are all different, so that nothing is merged.
fn weights(name: &str, dims: &[i64], seed: u32) -> TensorProto {
    let count = dims.iter().product::<i64>() as u32;
    let raw =
        (0..count).flat_map(|i| (0.01 + ((i.wrapping_mul(2_654_435_761) ^ seed) % 97) as f32 / 970.0).to_le_bytes()).collect::<Vec<u8>>();
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(1),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    }
}

/// A convolution, a residual block with a norm, a scale in a spelling that is not fused, and a
/// classifier.
fn network() -> ModelProto {
    const C: i64 = 32;
    let conv = |x: &str, w: &str, output: &str| with_ints(node("Conv", &[x, w], output), "pads", &[1, 1, 1, 1]);
    let nodes = vec![
        conv("x", "w1", "a"),
        node("Relu", &["a"], "r"),
        conv("r", "w2", "c"),
        node("BatchNormalization", &["c", "s", "b", "m", "v"], "n"),
        node("Add", &["n", "r"], "t"),
        node("Relu", &["t"], "y"),
        node("Exp", &["y"], "e"),
        node("Mul", &["e", "y"], "p"),
        conv("p", "w3", "z"),
        node("GlobalAveragePool", &["z"], "g"),
        node("Flatten", &["g"], "f"),
        node("MatMul", &["f", "w4"], "q"),
        node("Add", &["q", "bias"], "o"),
    ];
    let per_channel = |name, seed| weights(name, &[C], seed);
    let initializer = vec![
        weights("w1", &[C, 3, 3, 3], 1),
        weights("w2", &[C, C, 3, 3], 2),
        weights("w3", &[C, C, 3, 3], 3),
        weights("w4", &[C, 10], 4),
        weights("bias", &[10], 5),
        per_channel("s", 6),
        per_channel("b", 7),
        per_channel("m", 8),
        per_channel("v", 9),
    ];
    let graph = GraphProto {
        name: Some("net".to_owned()),
        node: nodes,
        initializer,
        input: vec![value("x", &[1, 3, 56, 56])],
        output: vec![value("o", &[1, 10])],
        ..GraphProto::default()
    };
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

#[test]
fn a_real_profile_is_attributed_and_priced() {
    let Some(runtime) = runtime() else { return };
    let model = Model::from_proto(network()).unwrap();
    let graph = model.graph();
    let written = model.write(graph, &WriteOptions::default()).unwrap();
    let names = NameTable::new(written.values.clone()).with_nodes_of(&written.proto);
    assert_eq!(names.value("e"), NameTable::of(graph).value("e"));
    let bytes = written.proto.encode_to_vec();
    let session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    let specs = InputSpec::from_values(session.inputs(), |_, _| None).unwrap();
    let feeds = fill_inputs(Fill::Normal, &specs, &FillOptions::default()).unwrap();
    let subject = ProfileSubject { model: ModelSource::bytes(&bytes), feeds: &feeds };
    let options = ProfileOptions { runs: 15, with_graph: true, ..ProfileOptions::default() };
    let profile = profile_interleaved(&runtime, &[subject], &options).unwrap().remove(0);

    let mut measured = Measured::new(Bindings::new());
    let run_ns = profile.nodes.iter().map(|n| n.q25_ns).sum::<f64>() * 1.02;
    let learned = measured.observe(&[Observation { graph, names: &names, profile: &profile, run_ns: Some(run_ns) }]).remove(0).unwrap();
    let optimized = profile.graph.as_ref().unwrap();
    assert_eq!(learned.unattributed, 0.0, "{:?}\n{optimized:?}", learned.attribution);
    assert_eq!(learned.attribution.charges.len(), optimized.nodes.len());
    assert!(learned.attribution.charges.iter().all(|c| c.owners.len() == 1));

    let price = |name: &str| measured.price(graph, names.value(name).unwrap().node);
    // The products take the time; whatever the runtime fuses into them is free, on every machine
    // and version known.
    for product in ["a", "c", "z", "q", "e"] {
        assert!(price(product) > 0, "{product} of {optimized:?}");
    }
    assert_eq!((price("r"), price("n")), (0, 0), "{optimized:?}");
    let known = measured.known(graph);
    assert!(known.unknown.is_empty() && known.known == 13);
    let (total, error) = (measured.total(graph), measured.total(graph) as f64 / run_ns - 1.0);
    assert!(error.abs() < 0.01, "{total} of {run_ns}");

    // A warm store knows the model.
    let mut store = Store::in_memory().unwrap();
    let target = Target::here(&runtime, 1);
    assert!(measured.save(&mut store, &target).unwrap() > 0);
    let mut warm = Measured::load(Bindings::new(), &store, &target).unwrap();
    warm.expect_model(graph);
    assert!(warm.total(graph).abs_diff(total) <= 1 && warm.run_of(graph).is_some());
    let conv = graph.ids().find(|id| graph.node(*id).op.kind() == OpKind::Conv).unwrap();
    assert_eq!(warm.quote(graph, conv).1, Source::Measured);
}
