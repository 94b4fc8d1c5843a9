//! Every broken model gives one line with cause, place and hint; none panics.

mod common;

use bytes::Bytes;
use common::*;
use prost::Message;
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto};
use regraft_onnx::{LoadError, LoadFault, Model, WriteOptions};

fn fail(proto: &ModelProto) -> LoadError {
    Model::from_bytes(proto.encode_to_vec().into(), None).expect_err("the model is broken")
}

fn simple() -> GraphProto {
    graph(
        vec![value("x", "N,2")],
        vec![value("y", "N,3")],
        vec![node("MatMul", "x,w", "h"), node("Relu", "h", "y")],
        vec![floats("w", &[2, 3], &[1.0; 6])],
    )
}

#[test]
fn errors_name_cause_place_and_hint() {
    let broken = |edit: fn(&mut GraphProto)| {
        let mut g = simple();
        edit(&mut g);
        fail(&model(g)).to_string()
    };
    let cases: [(&str, String); 8] = [
        (
            "input 1 reads `v`, which nothing defines (graph `g`, node `n_h (MatMul)`, 1 of 2); hint: the exporter may have dropped an initializer; check the model with `onnx.checker`",
            broken(|g| g.node[0].input[1] = "v".into()),
        ),
        (
            "a graph output reads `q`, which nothing defines (graph `g`); hint: the exporter may have dropped an initializer; check the model with `onnx.checker`",
            broken(|g| g.output[0].name = Some("q".into())),
        ),
        (
            "`h` is defined twice: by node 1 `n_h (MatMul)` and by node 2 (graph `g`, node `n_y (Relu)`, 2 of 2); hint: every value needs one definition; check the model with `onnx.checker`",
            broken(|g| g.node[1].output[0] = "h".into()),
        ),
        (
            "the graph has a cycle through `n_h (MatMul)` (graph `g`, node `n_h (MatMul)`, 1 of 2); hint: a node reads, perhaps through others, what it computes itself; export it again",
            broken(|g| {
                g.node[0].input[0] = "y".into();
            }),
        ),
        (
            "tensor `w` has the unknown element type 99 (graph `g`); hint: the file is damaged, or written for a newer ONNX than this program knows",
            broken(|g| g.initializer[0].data_type = Some(99)),
        ),
        (
            "tensor `w` of f32[2,4] needs 32 bytes, 24 are stored (graph `g`); hint: the weights are damaged; export the model again",
            broken(|g| g.initializer[0].dims = vec![2, 4]),
        ),
        (
            "tensor `w` has the impossible shape [-2, -3] (graph `g`); hint: the weights are damaged; export the model again",
            broken(|g| g.initializer[0].dims = vec![-2, -3]),
        ),
        (
            "tensor `w` has external data at `../w.bin`, and the model is no file, so there is no folder to look in; hint: give the model by its path, not as bytes",
            broken(|g| {
                g.initializer[0].data_location = Some(1);
                g.initializer[0].external_data =
                    vec![regraft_onnx::proto::StringStringEntryProto { key: Some("location".into()), value: Some("../w.bin".into()) }];
            }),
        ),
    ];
    for (want, have) in cases {
        assert_eq!(have, want);
    }
}

#[test]
fn unread_exotic_tensors_are_carried() {
    let mut g = simple();
    g.initializer.push(TensorProto { data_type: Some(99), name: Some("odd".into()), ..TensorProto::default() });
    let proto = model(g);
    let model = read(&proto);
    assert_eq!(model.write(model.graph(), &Default::default()).unwrap().proto, proto);
}

#[test]
fn what_is_no_model_is_named() {
    let read = |bytes: &[u8]| Model::from_bytes(Bytes::copy_from_slice(bytes), None).expect_err("no model").to_string();
    assert_eq!(read(b""), "the file is empty; hint: the export or the download did not finish; fetch the file again");
    assert!(read(b"version https://git-lfs.github.com/spec/v1\n").contains("Git LFS pointer"));
    assert!(read(b"<!DOCTYPE html><html></html>").contains("web page"));
    assert!(read(&[0xff; 40]).contains("not an ONNX model"));
    assert!(read(&ModelProto { ir_version: Some(8), ..ModelProto::default() }.encode_to_vec()).contains("no graph"));
    let whole = model(simple()).encode_to_vec();
    let cut = read(&whole[..whole.len() - 30]);
    assert!(cut.contains("cut off"), "{cut}");
}

#[test]
fn files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.onnx");
    let error = Model::read(&missing).unwrap_err();
    assert!(matches!(*error.fault, LoadFault::Io(_)));
    assert!(error.to_string().contains("none.onnx") && error.to_string().contains("check the path"), "{error}");
    assert!(matches!(*Model::read(folder.path()).unwrap_err().fault, LoadFault::Io(_)));
}

/// A small random number generator, the same on every machine.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// A model with sizes to compute, a subgraph, and parameters given as tensors.
fn busy() -> ModelProto {
    let branch = graph(vec![], vec![value("i", "1")], vec![node("Neg", "h", "i")], vec![]);
    let nodes = vec![
        node("MatMul", "x,w", "h"),
        node("Shape", "h", "s"),
        node("Reshape", "h,s", "h2"),
        with(node("Concat", "h2,h2", "c"), int("axis", 0)),
        node("ConstantOfShape", "dims", "zeros"),
        with(node("If", "flag", "o"), subgraph("then_branch", branch)),
        with(node("Softmax", "c", "m"), int("axis", -1)),
        with(with(node("Gather", "zeros,dims", "k"), int("axis", 0)), int("keepdims", 1)),
        node("Slice", "m,dims,dims", "l"),
        node("Relu", "l", "y"),
    ];
    let inputs = vec![value("x", "N,2"), typed("flag", 9, "")];
    model(graph(inputs, vec![value("y", "N,3")], nodes, vec![floats("w", &[2, 3], &[1.0; 6]), ints("dims", &[0, 1])]))
}

/// Reads a model, and writes it if readable; true if it was.
fn attempt(bytes: Vec<u8>) -> bool {
    match Model::from_bytes(bytes.into(), None) {
        Ok(model) => {
            for respell in [false, true] {
                if let Ok(written) = model.write(model.graph(), &WriteOptions { respell, ..WriteOptions::default() }) {
                    let lines = listing(&written.proto);
                    Model::from_proto(written.proto).unwrap_or_else(|e| {
                        panic!(
                            "what was written must be readable: {e}
{lines:#?}"
                        )
                    });
                }
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    let whole = busy().encode_to_vec();
    assert!(attempt(whole.clone()));
    for end in 0..whole.len() {
        attempt(whole[..end].to_vec());
    }
    let mut state = 7;
    let mut read = 0;
    for round in 0..800 {
        let mut bytes = whole.clone();
        for _ in 0..1 + round % 3 {
            let at = random(&mut state) % bytes.len();
            match random(&mut state) % 3 {
                0 => bytes[at] ^= 1 << (random(&mut state) % 8),
                1 => bytes[at] = random(&mut state) as u8,
                _ => drop(bytes.remove(at)),
            }
        }
        read += usize::from(attempt(bytes));
    }
    assert!((20..780).contains(&read), "{read} read");
}

#[test]
fn damaged_fields_never_panic() {
    let mut types: Vec<&str> = regraft_ir::OpKind::ALL.iter().flat_map(|k| k.onnx_types()).copied().collect();
    types.extend(["Loop", "Scan", "Constant", "NonZero", ""]);
    const NUMBERS: [i64; 14] = [0, 1, -1, 2, -2, 3, 7, 64, -64, i64::MAX, i64::MIN, i64::MAX / 2, 1 << 31, 1 << 40];
    let mut state = 11;
    let mut read = 0;
    for round in 0..2500 {
        let mut proto = busy();
        for _ in 0..1 + round % 3 {
            let graph = proto.graph.as_mut().expect("a graph");
            let number = NUMBERS[random(&mut state) % NUMBERS.len()];
            let at = random(&mut state) % graph.node.len();
            match random(&mut state) % 8 {
                0..=2 => graph.node[at].op_type = Some(types[random(&mut state) % types.len()].to_string()),
                3 => graph.node[at].attribute.iter_mut().for_each(|a| a.i = Some(number)),
                4 => graph.initializer[1] = ints("dims", &[number, NUMBERS[random(&mut state) % NUMBERS.len()]]),
                5 => {
                    graph.input[0] = typed(
                        "x",
                        [1, 7, 9, 10, 11, 6, 8, 20][random(&mut state) % 8],
                        ["N,2", "", "2,2", "0,2", "1,2,3,4", "-1,-1"][random(&mut state) % 6],
                    )
                }
                6 => {
                    let name = ["x", "h", "dims", "w", "", "c"][random(&mut state) % 6].to_string();
                    match graph.node[at].input.get_mut(random(&mut state) % 3) {
                        Some(input) => *input = name,
                        None => graph.node[at].input.push(name),
                    }
                }
                _ => proto.opset_import[0].version = Some([1, 6, 9, 11, 13, 18, 21, number][random(&mut state) % 8]),
            }
        }
        read += usize::from(attempt(proto.encode_to_vec()));
    }
    assert!(read > 1000, "{read} read");
}
