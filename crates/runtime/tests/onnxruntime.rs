//! ONNX Runtime in this process. Every test is skipped, with a message, if the library is not
//! installed; with `REGRAFT_REQUIRE_ONNXRUNTIME` in the environment it fails instead.

mod models;

use std::path::{Path, PathBuf};

use prost::Message;
use regraft_onnx::proto::{AttributeProto, StringStringEntryProto, ValueInfoProto, attribute_proto::AttributeType};
use regraft_runtime::{
    DType, Feeds, Fill, FillOptions, HostTensor, InputSpec, ModelSource, OnnxRuntime, OptLevel, OptimizedGraph, ProfileOptions,
    ProfileSubject, Provider, Runtime, RuntimeError, SessionOptions, TimingOptions, fill_inputs, paired_ratio, profile_interleaved,
    time_interleaved,
};

use models::{feeds_for, model, node, products, value, weights};

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
    assert_eq!(runtime.name(), "onnxruntime");
    assert!(runtime.version().starts_with("1."), "{}", runtime.version());
    let bytes = products(4, 1).encode_to_vec();
    for level in [OptLevel::Disabled, OptLevel::Basic, OptLevel::Extended, OptLevel::All] {
        let options = SessionOptions { level, threads: 2, ..SessionOptions::default() };
        let mut session = runtime.open(ModelSource::bytes(&bytes), &options).unwrap();
        let x = &session.inputs()[0];
        assert_eq!((x.name.as_str(), x.dtype, &x.dims[..]), ("x", Some(DType::F32), &[None, Some(4)][..]));
        assert_eq!((x.symbols[0].as_str(), session.outputs()[0].name.as_str(), session.threads()), ("N", "y", 2));
        let input = HostTensor::from_values(vec![1, 4], &[1.0f32, -2.0, 3.0, -4.0]).unwrap();
        let outputs = session.run(&[("x", input)].into_iter().collect()).unwrap();
        assert_eq!(outputs[0].values::<f32>().unwrap(), [1.0, 0.0, 3.0, 0.0]);
        assert_eq!(outputs[0].shape(), [1, 4]);
    }
}

#[test]
fn every_carried_type_passes_unchanged() {
    let runtime = runtime_or_skip!();
    for number in [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16] {
        let dtype = DType::from_onnx(number);
        let shape = [value("x", number, &["2", "3"])];
        let proto = model(vec![node("Identity", "i", &["x"], &["y"])], vec![], shape.to_vec(), vec![value("y", number, &["2", "3"])]);
        let bytes = proto.encode_to_vec();
        let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
        let specs = InputSpec::from_values(session.inputs(), |_, _| None).unwrap();
        let feeds = fill_inputs(Fill::Large, &specs, &FillOptions { int_max: 100, ..FillOptions::default() }).unwrap();
        let outputs = session.run(&feeds).unwrap();
        assert_eq!((outputs[0].dtype(), Some(&outputs[0])), (dtype, feeds.get("x")));
    }
    // Scalars and empty tensors.
    for dims in [vec![], vec!["0", "3"]] {
        let proto = model(vec![node("Identity", "i", &["x"], &["y"])], vec![], vec![value("x", 1, &dims)], vec![value("y", 1, &dims)]);
        let bytes = proto.encode_to_vec();
        let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
        let feeds = feeds_for(&*session, 1);
        assert_eq!(Some(&session.run(&feeds).unwrap()[0]), feeds.get("x"));
    }
}

#[test]
fn mistakes_are_clean_errors() {
    let runtime = runtime_or_skip!();
    let open = |bytes: &[u8]| runtime.open(ModelSource::bytes(bytes), &SessionOptions::default());
    for bytes in [&b""[..], b"not a model", &products(4, 1).encode_to_vec()[..40]] {
        let error = open(bytes).err().unwrap().to_string();
        assert!(error.contains("cannot load") && !error.contains('\n'), "{error}");
    }
    let missing = runtime.open(ModelSource::path("/nonexistent/model.onnx"), &SessionOptions::default()).err().unwrap();
    assert!(missing.to_string().contains("/nonexistent/model.onnx"), "{missing}");
    let unknown =
        model(vec![node("NoSuchOperator", "n", &["x"], &["y"])], vec![], vec![value("x", 1, &["1"])], vec![value("y", 1, &["1"])]);
    assert!(matches!(open(&unknown.encode_to_vec()), Err(RuntimeError::Load { .. })));

    let bytes = products(4, 1).encode_to_vec();
    let mut session = open(&bytes).unwrap();
    assert!(matches!(session.run_bound(), Err(RuntimeError::NotBound { .. })));
    assert!(matches!(session.end_profile(), Err(RuntimeError::NotProfiling { .. })));
    assert!(matches!(session.run(&Feeds::new()), Err(RuntimeError::MissingInput { .. })));
    let good = HostTensor::from_values(vec![1, 4], &[0.0f32; 4]).unwrap();
    let extra: Feeds = [("x", good.clone()), ("z", good)].into_iter().collect();
    assert!(matches!(session.run(&extra), Err(RuntimeError::UnknownInput { .. })));
    for wrong in [
        HostTensor::from_values(vec![1, 5], &[0.0f32; 5]).unwrap(),
        HostTensor::from_values(vec![4], &[0.0f32; 4]).unwrap(),
        HostTensor::from_values(vec![1, 4], &[0i64; 4]).unwrap(),
    ] {
        let error = session.run(&[("x", wrong)].into_iter().collect()).unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("f32[?,4]"), "{error}");
    }
}

#[test]
fn text_outputs_are_refused_but_can_be_timed() {
    let runtime = runtime_or_skip!();
    let mut cast = node("Cast", "c", &["x"], &["y"]);
    cast.attribute.push(AttributeProto {
        name: Some("to".to_owned()),
        r#type: Some(AttributeType::Int as i32),
        i: Some(8),
        ..AttributeProto::default()
    });
    let proto = model(vec![cast], vec![], vec![value("x", 1, &["2"])], vec![value("y", 8, &["2"])]);
    let bytes = proto.encode_to_vec();
    let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    let feeds = feeds_for(&*session, 1);
    let error = session.run(&feeds).unwrap_err();
    assert!(matches!(&error, RuntimeError::UnsupportedValue { name, .. } if name == "y"), "{error}");
    session.bind(&feeds).unwrap();
    session.run_bound().unwrap();
}

#[test]
fn optional_outputs_are_refused() {
    use regraft_onnx::proto::{TypeProto, type_proto};
    let runtime = runtime_or_skip!();
    let tensor = value("x", 1, &["2"]).r#type.expect("a type");
    let mut absent = node("Optional", "o", &[], &["y"]);
    absent.attribute.push(AttributeProto {
        name: Some("type".to_owned()),
        r#type: Some(AttributeType::TypeProto as i32),
        tp: Some(tensor.clone()),
        ..AttributeProto::default()
    });
    let optional = type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: Some(Box::new(tensor)) }));
    let output = ValueInfoProto {
        name: Some("y".to_owned()),
        r#type: Some(TypeProto { value: Some(optional), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    };
    let mut proto = model(vec![absent], vec![], vec![value("x", 1, &["2"])], vec![output]);
    proto.opset_import[0].version = Some(15);
    let bytes = proto.encode_to_vec();
    let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    let feeds = feeds_for(&*session, 1);
    for error in [session.run(&feeds).unwrap_err(), session.bind(&feeds).unwrap_err()] {
        assert!(matches!(&error, RuntimeError::UnsupportedValue { name, kind, .. } if name == "y" && kind == "optional"), "{error}");
    }
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
    let file: PathBuf = dir.path().join("model.onnx");
    std::fs::write(&file, &bytes).unwrap();
    let x = HostTensor::from_values(vec![1, 2], &[1.0f32, 10.0]).unwrap();
    for source in [ModelSource::path(&file), ModelSource::bytes_in(&bytes, dir.path())] {
        let mut session = runtime.open(source, &SessionOptions::default()).unwrap();
        let outputs = session.run(&[("x", x.clone())].into_iter().collect()).unwrap();
        assert_eq!(outputs[0].values::<f32>().unwrap(), [31.0, 42.0]);
    }
    std::fs::remove_file(dir.path().join("weights.bin")).unwrap();
    let error = runtime.open(ModelSource::path(&file), &SessionOptions::default()).err().unwrap().to_string();
    assert!(error.contains("weights.bin"), "{error}");
}

#[test]
fn optimized_graph_shows_what_runs() {
    let runtime = runtime_or_skip!();
    // x + 0 * w has a foldable part; Relu after MatMul stays.
    let proto = products(8, 2);
    let bytes = proto.encode_to_vec();
    let graph = OptimizedGraph::read(&runtime, ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    assert_eq!(
        (graph.count("MatMul"), graph.inputs.as_slice(), graph.outputs.as_slice()),
        (3, &["x".to_owned()][..], &["y".to_owned()][..])
    );
    assert!(graph.nodes.iter().any(|n| n.name == "again1" && n.inputs[1] == "w"));
    assert_eq!(graph.initializers, ["w"]);
}

#[test]
fn profiles_of_two_models_interleaved() {
    let runtime = runtime_or_skip!();
    let (one, two) = (products(64, 1).encode_to_vec(), products(64, 3).encode_to_vec());
    let session = runtime.open(ModelSource::bytes(&one), &SessionOptions::default()).unwrap();
    let feeds = feeds_for(&*session, 32);
    let subjects = [&one, &two].map(|bytes| ProfileSubject { model: ModelSource::bytes(bytes), feeds: &feeds });
    let options = ProfileOptions { runs: 9, warmup: 2, with_graph: true, ..ProfileOptions::default() };
    let profiles = profile_interleaved(&runtime, &subjects, &options).unwrap();
    for (profile, products) in profiles.iter().zip([2, 4]) {
        assert_eq!(profile.runs.len(), 9);
        assert_eq!(profile.nodes.iter().filter(|n| n.op_type == "MatMul").count(), products);
        assert!(profile.nodes.iter().all(|n| n.samples.len() == 9 && n.provider == "CPUExecutionProvider"));
        let first = profile.nodes.iter().find(|n| n.name == "first").unwrap();
        assert!(first.median_ns > 0.0 && first.q25_ns <= first.median_ns);
        assert_eq!(first.outputs, [("float".to_owned(), vec![32, 64])]);
        let graph = profile.graph.as_ref().unwrap();
        let places = profile.places_of(graph);
        assert!(places.iter().all(Option::is_some), "{places:?} of {graph:?}");
        for (node, place) in graph.nodes.iter().zip(places) {
            assert_eq!(node.op_type, profile.nodes[place.unwrap()].op_type);
        }
    }
}

#[test]
fn interleaved_timing_tells_a_larger_model_from_a_smaller() {
    let runtime = runtime_or_skip!();
    let open = |copies| {
        let bytes = products(128, copies).encode_to_vec();
        let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
        let feeds = feeds_for(&*session, 128);
        session.bind(&feeds).unwrap();
        session
    };
    let (mut large, mut small) = (open(20), open(1));
    let options = TimingOptions { max_rounds: 20, ..TimingOptions::default() };
    let samples = time_interleaved(&mut [&mut *large, &mut *small], &options, &mut || true).unwrap();
    assert_eq!(samples.rounds(), 20);
    let ratio = paired_ratio(&samples.sessions[0], &samples.sessions[1], 0).unwrap();
    // Ten times the work: the margin is wide enough for any machine.
    assert!(ratio.is_faster(), "{ratio:?}");
}

#[test]
fn second_load_shares_the_library() {
    let runtime = runtime_or_skip!();
    let again = OnnxRuntime::load(Some(runtime.library())).unwrap();
    assert_eq!(again.library(), runtime.library());
    let other = OnnxRuntime::load(Some(Path::new("/nonexistent/libonnxruntime.so"))).unwrap_err().to_string();
    assert!(other.contains("already loaded"), "{other}");
}

#[test]
fn other_providers_run_models_or_say_that_there_are_none() {
    let runtime = runtime_or_skip!();
    let has = runtime.providers();
    assert!(has.contains(&Provider::Cpu));
    let bytes = products(64, 2).encode_to_vec();
    let mut plain = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
    let feeds = feeds_for(&*plain, 32);
    let want = plain.run(&feeds).unwrap();
    for provider in Provider::ALL.into_iter().filter(|provider| *provider != Provider::Cpu) {
        match runtime.clone().on(provider) {
            Err(error) => {
                let error = error.to_string();
                assert!(!has.contains(&provider) && error.contains(provider.name()) && error.contains("it has cpu"), "{error}");
                println!("skipped: {error}");
            }
            Ok(runtime) => {
                assert_eq!(runtime.name(), format!("onnxruntime:{}", provider.name()));
                let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default()).unwrap();
                let got = session.run(&feeds).unwrap();
                for (got, want) in got[0].values::<f32>().unwrap().iter().zip(want[0].values::<f32>().unwrap()) {
                    assert!((got - want).abs() <= 1e-3 * want.abs().max(1.0), "{got} {want}");
                }
                session.bind(&feeds).unwrap();
                let clock = session.clock();
                assert!(session.time_bound(clock).unwrap() > 0);
            }
        }
    }
}
