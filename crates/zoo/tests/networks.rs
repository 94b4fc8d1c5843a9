//! Every network of the zoo is a well-formed graph, has the size of the architecture it names, and
//! is reproducible.

use std::collections::HashSet;

use prost::Message;
use regraft_onnx::proto::{GraphProto, TensorProto, tensor_shape_proto::dimension, type_proto};
use regraft_zoo::{Entry, ModelProto, Options, Weights, build, list};

/// Builds without random values, which cost time.
fn outline(entry: &Entry, dynamic_batch: bool) -> ModelProto {
    build(entry.name, &Options { dynamic_batch, weights: Weights::Zeros, ..Options::default() }).unwrap()
}

/// Every entry with a fixed and, where possible, a symbolic batch.
fn every_graph(mut check: impl FnMut(&Entry, &GraphProto, bool)) {
    for entry in list() {
        for dynamic in [false, true] {
            if entry.dynamic || !dynamic {
                check(entry, outline(entry, dynamic).graph.as_ref().unwrap(), dynamic);
            }
        }
    }
}

/// How many operands an operator may have.
fn arity(op: &str) -> std::ops::RangeInclusive<usize> {
    match op {
        "AveragePool" | "Cast" | "Dropout" | "Erf" | "Flatten" | "GlobalAveragePool" | "LRN" | "MaxPool" | "ReduceMean" | "Relu"
        | "Shape" | "Sigmoid" | "Softmax" | "Sqrt" | "Tanh" | "Transpose" => 1..=1,
        "Add" | "Div" | "Expand" | "Gather" | "MatMul" | "Mul" | "Pow" | "Reshape" | "Split" | "Squeeze" | "Sub" | "TopK" | "Unsqueeze" => {
            2..=2
        }
        "Conv" => 2..=3,
        "GRU" | "LSTM" => 4..=4,
        "Clip" | "Gemm" | "Pad" | "Where" => 3..=3,
        "BatchNormalization" | "Slice" => 5..=5,
        "Concat" => 2..=64,
        other => panic!("the zoo should not use {other}"),
    }
}

/// Number of elements of a tensor that training would change.
fn trainable(tensor: &TensorProto) -> i64 {
    let name = tensor.name();
    let counted = !name.starts_with("constant_") && !name.ends_with(".running_mean") && !name.ends_with(".running_var");
    if counted { tensor.dims.iter().product() } else { 0 }
}

#[test]
fn values_are_defined_once_and_before_use() {
    every_graph(|entry, graph, _| {
        let mut defined = HashSet::new();
        let mut names = HashSet::new();
        let given = graph.input.iter().map(|input| input.name());
        for name in given.chain(graph.initializer.iter().map(|tensor| tensor.name())) {
            assert!(defined.insert(name), "{}: `{name}` is defined twice", entry.name);
        }
        for node in &graph.node {
            assert!(names.insert(node.name()), "{}: two nodes are named `{}`", entry.name, node.name());
            assert!(arity(node.op_type()).contains(&node.input.len()), "{}: arity of `{}`", entry.name, node.name());
            for input in &node.input {
                assert!(defined.contains(input.as_str()), "{}: `{}` reads `{input}`", entry.name, node.name());
            }
            for output in &node.output {
                assert!(defined.insert(output), "{}: `{output}` is defined twice", entry.name);
            }
        }
        for output in &graph.output {
            assert!(defined.contains(output.name()), "{}: output `{}`", entry.name, output.name());
        }
    });
}

#[test]
fn every_value_has_a_shape_and_every_weight_its_bytes() {
    every_graph(|entry, graph, _| {
        let shaped: HashSet<_> = graph.value_info.iter().chain(&graph.output).map(|value| value.name()).collect();
        for output in graph.node.iter().flat_map(|node| &node.output) {
            assert!(shaped.contains(output.as_str()), "{}: `{output}` has no shape", entry.name);
        }
        for tensor in &graph.initializer {
            let size = match tensor.data_type() {
                7 => 8,
                9 => 1,
                _ => 4,
            };
            let expected = tensor.dims.iter().product::<i64>() * size;
            assert_eq!(tensor.raw_data().len() as i64, expected, "{}: `{}`", entry.name, tensor.name());
        }
    });
}

#[test]
fn a_dynamic_batch_is_symbolic_everywhere_at_the_border() {
    every_graph(|entry, graph, dynamic| {
        for value in graph.input.iter().chain(&graph.output) {
            let Some(type_proto::Value::TensorType(tensor)) = value.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
                panic!("{}: `{}` is no tensor", entry.name, value.name());
            };
            let first = tensor.shape.as_ref().unwrap().dim[0].value.as_ref().unwrap();
            let symbolic = *first == dimension::Value::DimParam("N".to_owned());
            assert_eq!(symbolic, dynamic, "{}: `{}`", entry.name, value.name());
        }
    });
}

#[test]
fn a_dynamic_field_is_symbolic_and_changes_nothing_else() {
    for entry in list() {
        let options = Options { dynamic_batch: true, dynamic_field: true, weights: Weights::Zeros, ..Options::default() };
        let Ok(open) = build(entry.name, &options) else {
            assert!(!(entry.convolutional && entry.dynamic), "{}", entry.name);
            continue;
        };
        let (open, closed) = (open.graph.unwrap(), outline(entry, true).graph.unwrap());
        assert_eq!((&open.node, &open.initializer), (&closed.node, &closed.initializer), "{}", entry.name);
        let Some(type_proto::Value::TensorType(tensor)) = open.input[0].r#type.clone().and_then(|ty| ty.value) else { panic!() };
        let sizes: Vec<_> = tensor.shape.unwrap().dim.into_iter().map(|dim| dim.value.unwrap()).collect();
        let symbolic = |size: &dimension::Value| matches!(size, dimension::Value::DimParam(_));
        assert_eq!(sizes.iter().map(symbolic).collect::<Vec<_>>(), (0..sizes.len()).map(|axis| axis != 1).collect::<Vec<_>>());
    }
}

/// Numbers of trained parameters as counted by the reference implementations.
#[test]
fn real_architectures_have_the_known_number_of_parameters() {
    let known = [
        ("squeezenet-1.1", 1_235_496),
        ("resnet-18", 11_689_512),
        ("resnet-50", 25_557_032),
        ("resnext-50", 25_028_904),
        ("resnext-50-branches", 25_028_904),
        ("inception-v3", 23_834_568),
        ("mobilenet-v2", 3_504_872),
        ("mobilenet-v3-large", 5_483_032),
        ("nasnet-a", 5_289_978),
        ("vgg-19", 143_667_240),
        ("alexnet", 60_965_224),
        ("nasrnn", 2 * 512 * 4096 + 4096),
        ("sru", 3 * 1024 * 1024 + 4 * 1024),
        ("bert-base", 109_482_240),
        ("vit-base", 86_567_656),
        ("vit-large", 304_326_632),
        ("vit-huge", 632_045_800),
        ("gpt2-block", 7_087_872),
        ("m18", 3_683_786),
        ("bert-large-layers", 2 * 12_596_224),
        ("vdcnn-29", 16_657_178),
        ("sample-cnn", 1_869_874),
        ("char-cnn", 11_339_780),
        ("nsnet2", 2_687_561),
        ("crnn", 8_331_301),
        ("diffusion-block", 2_340_160),
    ];
    let real: Vec<_> = list().iter().filter(|entry| !entry.is_paper_variant()).map(|entry| entry.name).collect();
    assert_eq!(real, known.map(|(name, _)| name));
    for (entry, (name, count)) in list().iter().zip(known) {
        let graph = outline(entry, false).graph.unwrap();
        assert_eq!(graph.initializer.iter().map(trainable).sum::<i64>(), count, "{name}");
    }
}

/// Numbers of operators in the papers' own graphs, with a fused ReLU counted as a node.
#[test]
fn published_variants_have_the_known_operators() {
    let known: &[(&str, &[(&str, usize)])] = &[
        ("paper-bert", &[("MatMul", 48), ("Reshape", 32), ("Transpose", 32), ("Relu", 1)]),
        ("paper-nasrnn", &[("MatMul", 80), ("Add", 55), ("Mul", 20), ("Relu", 10), ("Sigmoid", 25), ("Tanh", 40)]),
        ("paper-nasnet-a", &[("Conv", 217), ("Add", 90), ("AveragePool", 51), ("MaxPool", 7), ("Concat", 18)]),
        ("paper-resnet-50", &[("Conv", 52), ("Add", 16)]),
        ("paper-resnext-50", &[("Conv", 53), ("MaxPool", 1), ("Add", 16)]),
        ("paper-inception-v3", &[("Conv", 94), ("Relu", 94), ("MaxPool", 5), ("AveragePool", 9), ("Concat", 30)]),
        ("paper-mobilenet-v2", &[("Conv", 54), ("BatchNormalization", 53), ("Relu", 36), ("Add", 10)]),
        ("paper-squeezenet", &[("Conv", 26), ("Relu", 26), ("Concat", 8), ("Dropout", 1)]),
        ("paper-vgg-19", &[("Conv", 16), ("Relu", 18), ("MaxPool", 5), ("MatMul", 3), ("Transpose", 3), ("Reshape", 3)]),
        ("paper-vit-base", &[("MatMul", 96), ("Add", 24), ("Relu", 1)]),
        ("paper-vit-large", &[("MatMul", 192), ("Add", 48), ("Relu", 1)]),
        ("paper-vit-huge", &[("MatMul", 256), ("Add", 64), ("Relu", 1)]),
        ("paper-dall-e", &[("MatMul", 72), ("Add", 16), ("Mul", 8), ("Relu", 9)]),
        ("paper-t-t", &[("MatMul", 116), ("Concat", 1), ("Relu", 15)]),
        ("paper-resnet-n8", &[("Conv", 24), ("Add", 8), ("Relu", 24)]),
        ("paper-inception-e-n4", &[("Conv", 36), ("MaxPool", 4), ("Concat", 12)]),
        ("paper-sru", &[("MatMul", 3), ("Sigmoid", 2), ("Mul", 4), ("Add", 2)]),
        ("paper-sru-20", &[("MatMul", 60), ("Sigmoid", 40), ("Mul", 80), ("Add", 40)]),
    ];
    for (name, operators) in known {
        let entry = list().iter().find(|entry| entry.name == *name).unwrap();
        let graph = outline(entry, false).graph.unwrap();
        for (op, count) in *operators {
            let found = graph.node.iter().filter(|node| node.op_type() == *op).count();
            assert_eq!(found, *count, "{op} in {name}");
        }
    }
}

#[test]
fn a_seed_fixes_every_byte() {
    for name in ["squeezenet-1.1", "mobilenet-v3-large", "gpt2-block", "paper-inception-e-n1"] {
        let bytes = |seed| build(name, &Options { seed, ..Options::default() }).unwrap().encode_to_vec();
        let first = bytes(1);
        assert!(first == bytes(1), "{name}: two builds differ");
        assert!(first != bytes(2), "{name}: two seeds agree");
    }
}

#[test]
fn outlines_tell_all_weights_apart() {
    for entry in list() {
        let graph = build(entry.name, &Options { weights: Weights::Outlines, ..Options::default() }).unwrap().graph.unwrap();
        let trained = graph.initializer.iter().filter(|tensor| !tensor.name().starts_with("constant_"));
        let mut seen = HashSet::new();
        for tensor in trained {
            assert!(seen.insert((&tensor.dims, tensor.raw_data()[..4].to_vec())), "{}: `{}`", entry.name, tensor.name());
        }
        let bytes: usize = graph.initializer.iter().map(|tensor| tensor.raw_data().len()).sum();
        assert_eq!(entry.outlined, bytes >= 1 << 31, "{}: {bytes}", entry.name);
        assert!(!entry.outlined || build(entry.name, &Options::default()).is_err(), "{}", entry.name);
    }
}

#[test]
fn branches_hold_slices_of_the_grouped_weights() {
    let weights = |name: &str, tensor: &str| {
        let graph = build(name, &Options::default()).unwrap().graph.unwrap();
        let found = graph.initializer.into_iter().find(|candidate| candidate.name() == tensor);
        found.unwrap_or_else(|| panic!("{name} has no `{tensor}`")).raw_data().to_vec()
    };
    let whole = weights("resnext-50", "layer1.0.conv2.weight");
    let part = weights("resnext-50-branches", "layer1.0.branch5.conv2.weight");
    assert!(whole[5 * part.len()..6 * part.len()] == part);
}
