//! OpenVINO in this process. Every test is skipped, with a message, if the library is not
//! installed; with `REGRAFT_REQUIRE_OPENVINO` in the environment it fails instead.

#[allow(dead_code)]
mod models;

use std::path::Path;

use prost::Message;
use regraft_onnx::proto::StringStringEntryProto;
use regraft_runtime::{
    Backend, Feeds, HostTensor, ModelSource, OpenVino, OptLevel, OptimizedGraph, ProfileOptions, ProfileSubject, Runtime, RuntimeError,
    SessionOptions, profile_interleaved,
};

use models::{feeds_for, model, node, products, value, weights};

/// The runtime, or `None` if it is not installed. The checkout's own virtual environment is found
/// wherever the tests run.
fn runtime() -> Option<OpenVino> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let packages = std::fs::read_dir(checkout).into_iter().flatten().flatten();
    let own = packages.map(|e| e.path().join("site-packages/openvino/libs")).find(|p| p.is_dir());
    let named = std::env::var_os("REGRAFT_OPENVINO").is_some();
    match OpenVino::load(own.as_deref().filter(|_| !named)) {
        Ok(runtime) => Some(runtime),
        Err(error) => {
            assert!(std::env::var_os("REGRAFT_REQUIRE_OPENVINO").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

macro_rules! runtime_or_skip {
    () => {
        match runtime() {
            Some(runtime) => runtime,
            None => return,
        }
    };
}

#[test]
fn runs_and_keeps_the_signature() {
    let runtime = runtime_or_skip!();
    assert_eq!((runtime.name(), Backend::OpenVino.name()), ("openvino", "openvino"));
    assert!(runtime.version().starts_with("20"), "{}", runtime.version());
    let bytes = products(3, 1).encode_to_vec();
    for level in [OptLevel::Disabled, OptLevel::All] {
        let options = SessionOptions { level, threads: 2, ..SessionOptions::default() };
        let mut session = runtime.open(ModelSource::bytes(&bytes), &options).unwrap();
        assert_eq!(session.threads(), 2);
        let [x] = session.inputs() else { panic!("{:?}", session.inputs()) };
        assert_eq!((x.name.as_str(), x.dims.as_slice(), x.symbols[0].as_str()), ("x", &[None, Some(3)][..], "N"));
        assert_eq!(session.outputs()[0].name, "y");
        for rows in [2, 5] {
            let values: Vec<f32> = (0..rows * 3).map(|i| i as f32 - 4.0).collect();
            let feeds = [("x", HostTensor::from_values(vec![rows, 3], &values).unwrap())].into_iter().collect();
            let outputs = session.run(&feeds).unwrap();
            let want: Vec<f32> = values.iter().map(|v| v.max(0.0)).collect();
            assert_eq!((outputs[0].shape(), outputs[0].values::<f32>().unwrap()), (&[rows, 3][..], want.as_slice()));
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let runtime = runtime_or_skip!();
    let open = |bytes: &[u8]| runtime.open(ModelSource::bytes(bytes), &SessionOptions::default());
    assert!(matches!(open(b"nonsense").err(), Some(RuntimeError::Load { .. })));
    let unknown =
        model(vec![node("NoSuchOperator", "n", &["x"], &["y"])], Vec::new(), vec![value("x", 1, &["2"])], vec![value("y", 1, &["2"])]);
    let error = open(&unknown.encode_to_vec()).err().unwrap().to_string();
    assert!(error.contains("NoSuchOperator") && error.starts_with("openvino 20"), "{error}");
    let mut session = open(&products(3, 1).encode_to_vec()).unwrap();
    assert!(matches!(session.run_bound(), Err(RuntimeError::NotBound { .. })));
    assert!(matches!(session.end_profile(), Err(RuntimeError::NotProfiling { .. })));
    let two = [("x", HostTensor::from_values(vec![1, 2], &[1.0f32, 2.0]).unwrap())].into_iter().collect();
    assert!(matches!(session.run(&two), Err(RuntimeError::InputMismatch { .. })));
    assert!(matches!(session.run(&Feeds::new()), Err(RuntimeError::MissingInput { .. })));
}

#[test]
fn external_data_from_files_and_from_memory() {
    let runtime = runtime_or_skip!();
    let dir = tempfile::tempdir().unwrap();
    let raw: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(dir.path().join("weights.bin"), raw).unwrap();
    let mut w = weights("w", &[2, 2], &[]);
    w.raw_data = None;
    w.data_location = Some(1);
    let entry = |k: &str, v: &str| StringStringEntryProto { key: Some(k.to_owned()), value: Some(v.to_owned()) };
    w.external_data = vec![entry("location", "weights.bin"), entry("offset", "0"), entry("length", "16")];
    let proto =
        model(vec![node("MatMul", "m", &["x", "w"], &["y"])], vec![w], vec![value("x", 1, &["1", "2"])], vec![value("y", 1, &["1", "2"])]);
    let bytes = proto.encode_to_vec();
    let file = dir.path().join("model.onnx");
    std::fs::write(&file, &bytes).unwrap();
    let x = HostTensor::from_values(vec![1, 2], &[1.0f32, 10.0]).unwrap();
    for source in [ModelSource::path(&file), ModelSource::bytes_in(&bytes, dir.path())] {
        let mut session = runtime.open(source, &SessionOptions::default()).unwrap();
        let outputs = session.run(&[("x", x.clone())].into_iter().collect()).unwrap();
        assert_eq!(outputs[0].values::<f32>().unwrap(), [31.0, 42.0]);
    }
}

#[test]
fn the_graph_says_what_its_nodes_were_made_from() {
    let runtime = runtime_or_skip!();
    // A convolution with a bias of its own and an activation: one kernel.
    let nodes = vec![
        node("Conv", "conv", &["x", "w"], &["c"]),
        node("Add", "bias", &["c", "b"], &["s"]),
        node("Relu", "act", &["s"], &["r"]),
        node("Softmax", "last", &["r"], &["y"]),
    ];
    let w: Vec<f32> = (0..16 * 8 * 9).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let constants = vec![weights("w", &[16, 8, 3, 3], &w), weights("b", &[1, 16, 1, 1], &b)];
    let proto = model(nodes, constants, vec![value("x", 1, &["1", "8", "12", "12"])], vec![value("y", 1, &["1", "16", "10", "10"])]);
    let bytes = proto.encode_to_vec();
    let graph = OptimizedGraph::read(&runtime, ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    let conv = graph.nodes.iter().find(|n| n.op_type == "Conv").unwrap();
    for origin in ["conv", "act"] {
        assert!(conv.origins.iter().any(|name| name == origin), "{graph:?}");
    }
    let softmax = graph.nodes.iter().find(|n| n.op_type == "Softmax").unwrap();
    assert!(softmax.outputs.contains(&"y".to_owned()), "{graph:?}");
}

#[test]
fn profiles_of_two_models_interleaved() {
    let runtime = runtime_or_skip!();
    let (one, two) = (products(64, 1).encode_to_vec(), products(64, 3).encode_to_vec());
    let session = runtime.open(ModelSource::bytes(&one), &SessionOptions::default()).unwrap();
    let feeds = feeds_for(&*session, 256);
    let subjects = [&one, &two].map(|bytes| ProfileSubject { model: ModelSource::bytes(bytes), feeds: &feeds });
    let options = ProfileOptions { runs: 9, warmup: 2, with_graph: true, ..ProfileOptions::default() };
    let profiles = profile_interleaved(&runtime, &subjects, &options).unwrap();
    for (profile, products) in profiles.iter().zip([2, 4]) {
        assert_eq!(profile.runs.len(), 9);
        assert_eq!(profile.nodes.iter().filter(|n| n.op_type == "MatMul").count(), products, "{profile:?}");
        let graph = profile.graph.as_ref().unwrap();
        let places = profile.places_of(graph);
        assert!(places.iter().all(Option::is_some), "{places:?} of {graph:?}");
    }
}

#[test]
fn a_model_that_is_opened_again_is_the_same() {
    let runtime = runtime_or_skip!();
    let model = products(64, 3).encode_to_vec();
    let open = |options: &SessionOptions| {
        let mut session = runtime.open(ModelSource::bytes(&model), options).unwrap();
        // Constants are numbered anew each time.
        let about =
            |graph: OptimizedGraph| -> Vec<_> { graph.nodes.into_iter().map(|n| (n.name, n.op_type, n.outputs, n.origins)).collect() };
        let graph = session.take_graph().map(about);
        let feeds = feeds_for(&*session, 8);
        (graph, session.run(&feeds).unwrap())
    };
    let [plain, graph] = [false, true].map(|graph| SessionOptions { graph, ..SessionOptions::default() });
    let fresh = open(&SessionOptions { fresh: true, ..graph.clone() });
    assert_eq!(fresh.0.as_ref().unwrap().iter().filter(|(_, op_type, ..)| op_type == "MatMul").count(), 4);
    // Stored without its graph, taken with and without it.
    for options in [&plain, &graph, &plain, &graph] {
        let again = open(options);
        assert_eq!(again.0, fresh.0.clone().filter(|_| options.graph));
        assert_eq!(again.1, fresh.1);
    }
}
