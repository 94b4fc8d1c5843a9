//! Writing rewritten graphs: names, signatures, constants, growth, external data.

mod common;

use std::sync::Arc;

use common::*;
use regraft_ir::ops::{arithmetic::Add, arithmetic::Mul, matmul::MatMul};
use regraft_ir::{Const, DType, Graph, NewNode, Op, OpKind, Patch, PatchValue, ValueId};
use regraft_onnx::proto::tensor_proto::DataLocation;
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto};
use regraft_onnx::{LoadFault, Model, WriteOptions};
use smallvec::smallvec;

fn find(graph: &Graph, name: &str) -> ValueId {
    let named = |id: &regraft_ir::NodeId| graph.node(*id).names.iter().position(|n| n.as_deref() == Some(name));
    graph.ids().find_map(|id| named(&id).map(|port| id.port(port as u32))).unwrap_or_else(|| panic!("no value {name}"))
}

fn replace(graph: &mut Graph, old: &str, op: Op, inputs: &[&str]) {
    let inputs: Vec<ValueId> = inputs.iter().map(|n| find(graph, n)).collect();
    let types = graph.infer(&op, &inputs).unwrap().into_iter().map(Some).collect();
    let create = vec![NewNode::new(op, inputs.into_iter().map(PatchValue::Old).collect(), types)];
    let replace = smallvec![(find(graph, old), PatchValue::New { index: 0, port: 0 })];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace });
}

fn redirect(graph: &mut Graph, old: &str, new: &str) {
    let patch =
        Patch { cause: Arc::from("test"), create: vec![], replace: smallvec![(find(graph, old), PatchValue::Old(find(graph, new)))] };
    graph.apply(&patch);
}

fn write(model: &Model, graph: &Graph) -> ModelProto {
    let written = model.write(graph, &WriteOptions::default()).unwrap();
    Model::from_proto(written.proto.clone()).unwrap();
    written.proto
}

fn two_outputs() -> Model {
    read(&model(graph(
        vec![value("x", "N,4")],
        vec![value("y", "N,4"), value("z", "N,4")],
        vec![node("Add", "x,w", "h"), node("Relu", "h", "y"), node("Neg", "h", "z")],
        vec![floats("w", &[4], &[1.0; 4]), floats("v", &[4], &[2.0; 4])],
    )))
}

#[test]
fn a_new_node_takes_the_output_name() {
    let model = two_outputs();
    let mut graph = model.graph().clone();
    replace(&mut graph, "y", Op::Mul(Mul {}), &["h", "x"]);
    let proto = write(&model, &graph);
    assert_eq!(listing(&proto), ["h = Add(x,w)", "z = Neg(h)", "y = Mul(h,x)"]);
    let g = proto.graph.as_ref().unwrap();
    assert_eq!((&g.input, &g.output), (&model.proto().graph.as_ref().unwrap().input, &model.proto().graph.as_ref().unwrap().output));
    // `v` was unused in the input too.
    assert_eq!(initializers(&proto), ["w", "v"]);
}

#[test]
fn outputs_that_share_a_value_or_return_an_input_get_an_identity() {
    let model = two_outputs();
    let mut graph = model.graph().clone();
    redirect(&mut graph, "z", "y");
    assert_eq!(listing(&write(&model, &graph)), ["h = Add(x,w)", "y = Relu(h)", "z = Identity(y)"]);
    redirect(&mut graph, "y", "x");
    assert_eq!(listing(&write(&model, &graph)), ["y = Identity(x)", "z = Identity(x)"]);
}

#[test]
fn new_names_are_readable_and_avoid_old_ones() {
    let mut g = graph(
        vec![value("x", "4")],
        vec![value("y", "4")],
        vec![node("Relu", "x", "regraft_add_1"), node("Neg", "regraft_add_1", "y")],
        vec![],
    );
    g.node[1].name = Some("regraft_add_2".into());
    let model = read(&model(g));
    let mut graph = model.graph().clone();
    let (x, old) = (find(&graph, "x"), find(&graph, "regraft_add_1"));
    let types: smallvec::SmallVec<_> = smallvec![graph.ty(old).cloned()];
    let first = PatchValue::New { index: 0, port: 0 };
    let new = |op: Op, inputs: &[PatchValue]| NewNode::new(op, inputs.iter().copied().collect(), types.clone());
    let create = vec![new(Op::Add(Add {}), &[PatchValue::Old(x), PatchValue::Old(x)]), new(Op::Mul(Mul {}), &[first, first])];
    let replace = smallvec![(old, PatchValue::New { index: 1, port: 0 })];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace });
    let expected = ["regraft_add_3 = Add(x,x)", "regraft_add_1 = Mul(regraft_add_3,regraft_add_3)", "y = Neg(regraft_add_1)"];
    assert_eq!(listing(&write(&model, &graph)), expected);
}

#[test]
fn a_value_that_replaces_another_inherits_its_name() {
    let model = two_outputs();
    let mut graph = model.graph().clone();
    replace(&mut graph, "h", Op::Mul(Mul {}), &["x", "w"]);
    assert_eq!(listing(&write(&model, &graph)), ["h = Mul(x,w)", "y = Relu(h)", "z = Neg(h)"]);
    // A value that is still read keeps its name.
    let mut graph = model.graph().clone();
    replace(&mut graph, "h", Op::Mul(Mul {}), &["h", "x"]);
    let expected = ["h = Add(x,w)", "regraft_mul_1 = Mul(h,x)", "y = Relu(regraft_mul_1)", "z = Neg(regraft_mul_1)"];
    assert_eq!(listing(&write(&model, &graph)), expected);
}

#[test]
fn captured_names_survive() {
    let branch = || graph(vec![], vec![value("i", "N,4")], vec![node("Neg", "h", "i")], vec![]);
    let condition = with(with(node("If", "flag", "y"), subgraph("then_branch", branch())), subgraph("else_branch", branch()));
    let model = read(&model(graph(
        vec![value("x", "N,4"), typed("flag", 9, "1")],
        vec![value("y", "N,4"), value("z", "N,4")],
        vec![node("Relu", "x", "h"), condition, node("Sigmoid", "h", "z")],
        vec![],
    )));
    let mut graph = model.graph().clone();
    replace(&mut graph, "h", Op::Add(Add {}), &["x", "x"]);
    assert_eq!(listing(&write(&model, &graph)), ["h = Add(x,x)", "y = If(flag)", "z = Sigmoid(h)"]);
    let mut graph = model.graph().clone();
    redirect(&mut graph, "h", "x");
    assert_eq!(listing(&write(&model, &graph)), ["h = Identity(x)", "y = If(flag)", "z = Sigmoid(x)"]);
}

/// `y = Relu(x * a + b)` with weights of `n` elements.
fn weights(n: i64, ir: i64) -> Model {
    let listed = if ir < 4 { vec![value("a", &n.to_string()), value("b", &n.to_string())] } else { vec![] };
    let mut inputs = vec![value("x", &n.to_string())];
    inputs.extend(listed);
    read(&versions(
        graph(
            inputs,
            vec![value("y", &n.to_string())],
            vec![node("Mul", "x,a", "p"), node("Add", "p,b", "y")],
            vec![floats("a", &[n], &vec![2.0; n as usize]), floats("b", &[n], &vec![3.0; n as usize])],
        ),
        ir,
        if ir < 4 { 9 } else { 17 },
    ))
}

/// Replaces `b` by the cone `a + b`.
fn grow_cone(model: &Model) -> Graph {
    let mut graph = model.graph().clone();
    let (a, b) = (find(&graph, "a"), find(&graph, "b"));
    let create = vec![NewNode::new(Op::Add(Add {}), smallvec![PatchValue::Old(a), PatchValue::Old(b)], smallvec![graph.ty(a).cloned()])];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace: smallvec![(b, PatchValue::New { index: 0, port: 0 })] });
    graph
}

#[test]
fn cones_are_folded_while_they_fit() {
    let small = weights(4, 8);
    let written = small.write(&grow_cone(&small), &WriteOptions::default()).unwrap();
    assert_eq!((written.folded, written.kept_expressions), (1, 0));
    assert_eq!(listing(&written.proto), ["p = Mul(x,a)", "y = Add(p,regraft_const_1)"]);
    // `b` is gone: only the cone read it.
    assert_eq!(initializers(&written.proto), ["a", "regraft_const_1"]);
    let folded = Model::from_proto(written.proto).unwrap();
    assert_eq!(folded.graph().constant(find(folded.graph(), "regraft_const_1")).and_then(Const::splat), Some(5.0));

    // Swapping a weight for one of the same size is free; a product of two that stay is not.
    let large = weights(3 << 20, 8);
    assert_eq!(large.write(&grow_cone(&large), &WriteOptions::default()).unwrap().folded, 1);
    let mut grown = large.graph().clone();
    let p = find(&grown, "p");
    let (a, b) = (find(&grown, "a"), find(&grown, "b"));
    let create = vec![
        NewNode::new(Op::Mul(Mul {}), smallvec![PatchValue::Old(a), PatchValue::Old(b)], smallvec![grown.ty(a).cloned()]),
        NewNode::new(
            Op::Add(Add {}),
            smallvec![PatchValue::Old(p), PatchValue::New { index: 0, port: 0 }],
            smallvec![grown.ty(p).cloned()],
        ),
        NewNode::new(
            Op::Add(Add {}),
            smallvec![PatchValue::New { index: 1, port: 0 }, PatchValue::Old(b)],
            smallvec![grown.ty(p).cloned()],
        ),
    ];
    let y = find(&grown, "y");
    grown.apply(&Patch { cause: Arc::from("test"), create, replace: smallvec![(y, PatchValue::New { index: 2, port: 0 })] });
    let kept = large.write(&grown, &WriteOptions::default()).unwrap();
    assert_eq!((kept.folded, kept.kept_expressions), (0, 1));
    assert!(kept.size() < large.size() + 1000);
    let allowed = large.write(&grown, &WriteOptions { allow_growth: Some(13 << 20), ..WriteOptions::default() }).unwrap();
    assert_eq!((allowed.folded, allowed.kept_expressions), (1, 0));
}

#[test]
fn quantized_weights_stay_as_they_are_stored() {
    let stored = TensorProto { data_type: Some(3), raw_data: Some(vec![1, 2, 3, 250, 5, 6].into()), ..floats("w", &[2, 3], &[]) };
    let model = read(&model(graph(
        vec![value("x", "N,2")],
        vec![value("y", "N,3")],
        vec![node("DequantizeLinear", "w,s", "d"), node("MatMul", "x,d", "p"), node("Mul", "p,f", "y")],
        vec![stored, floats("s", &[], &[0.5]), floats("f", &[3], &[2.0, 3.0, 4.0])],
    )));
    assert_eq!(model.graph().constant(find(model.graph(), "d")), None);
    // A factor moves into the weights, but not into what is stored.
    let mut graph = model.graph().clone();
    let [x, d, f, y] = ["x", "d", "f", "y"].map(|name| find(&graph, name));
    let (scaled, product) = (graph.ty(d).cloned(), graph.ty(y).cloned());
    let create = vec![
        NewNode::new(Op::Mul(Mul {}), smallvec![PatchValue::Old(d), PatchValue::Old(f)], smallvec![scaled]),
        NewNode::new(Op::MatMul(MatMul {}), smallvec![PatchValue::Old(x), PatchValue::New { index: 0, port: 0 }], smallvec![product]),
    ];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace: smallvec![(y, PatchValue::New { index: 1, port: 0 })] });
    let written = model.write(&graph, &WriteOptions::default()).unwrap();
    assert_eq!((written.folded, written.kept_expressions), (0, 0));
    let lines = listing(&written.proto);
    assert!(lines.len() == 3 && lines[0] == "d = DequantizeLinear(w,s)" && lines[1].ends_with("Mul(d,f)"), "{lines:?}");
    assert_eq!(initializers(&written.proto), ["w", "s", "f"]);
}

#[test]
fn old_models_keep_their_parameters_listed() {
    let model = weights(4, 3);
    let graph = grow_cone(&model);
    let kept = write(&model, &graph);
    // New constants are nodes: an initializer would have to be listed as an input.
    assert_eq!(listing(&kept), ["regraft_const_1 = Constant()", "p = Mul(x,a)", "y = Add(p,regraft_const_1)"]);
    assert_eq!(initializers(&kept), ["a", "b"]);
    assert_eq!(kept.graph.as_ref().unwrap().input, model.proto().graph.as_ref().unwrap().input);
    let dropped = model.write(&graph, &WriteOptions { drop_parameters: true, ..WriteOptions::default() }).unwrap().proto;
    assert_eq!(initializers(&dropped), ["a"]);
    assert_eq!(dropped.graph.as_ref().unwrap().input.iter().map(|i| i.name()).collect::<Vec<_>>(), ["x", "a"]);
}

#[test]
fn original_expressions_stay_expressions() {
    let model = read(&versions(
        graph(
            vec![value("x", "1000,1000")],
            vec![value("y", "1000,1000")],
            vec![
                with(node("ConstantOfShape", "shape", "w"), tensor("value", floats("", &[1], &[0.5]))),
                node("Mul", "x,w", "h"),
                node("Relu", "h", "y"),
            ],
            vec![ints("shape", &[1000, 1000])],
        ),
        8,
        9,
    ));
    let mut graph = model.graph().clone();
    replace(&mut graph, "y", Op::Add(Add {}), &["h", "w"]);
    let written = model.write(&graph, &WriteOptions::default()).unwrap();
    assert_eq!(listing(&written.proto), ["w = ConstantOfShape(shape)", "h = Mul(x,w)", "y = Add(h,w)"]);
    assert!(written.size() < 1000);
}

#[test]
fn rewrites_that_the_opset_cannot_say_are_found_beforehand() {
    let old = versions(graph(vec![value("x", "4")], vec![value("y", "4")], vec![node("Relu", "x", "y")], vec![]), 3, 6);
    let model = read(&old);
    let ty = model.inputs()[0].ty.clone().unwrap();
    let add = Op::Add(Add {});
    let refusal = model.speller().can_spell(&add, &[ty.clone(), ty.clone()], std::slice::from_ref(&ty)).unwrap_err();
    assert!(refusal.why.contains("opset"), "{refusal}");
    let mut graph = model.graph().clone();
    replace(&mut graph, "y", add, &["x", "x"]);
    assert!(model.write(&graph, &WriteOptions::default()).unwrap_err().to_string().contains("cannot be written"));
    let relu = OpKind::Relu.with_attrs(&[]).unwrap();
    assert!(model.speller().can_spell(&relu, std::slice::from_ref(&ty), std::slice::from_ref(&ty)).is_ok());
}

fn external_model(folder: &std::path::Path) -> (std::path::PathBuf, GraphProto) {
    let g = graph(
        vec![value("x", "2048")],
        vec![value("y", "2048")],
        vec![node("Mul", "x,a", "p"), node("Add", "p,b", "y")],
        vec![floats("a", &[2048], &[2.0; 2048]), floats("b", &[2048], &[3.0; 2048])],
    );
    let model = read(&model(g.clone()));
    let path = folder.join("in.onnx");
    model.write(model.graph(), &WriteOptions::default()).unwrap().save(&path, true).unwrap();
    (path, g)
}

#[test]
fn external_data_is_mapped_and_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, g) = external_model(folder.path());
    let data = std::fs::metadata(folder.path().join("in.onnx.data")).unwrap().len();
    assert_eq!(data, 2 * 8192);
    assert!(std::fs::metadata(&path).unwrap().len() < 1000);

    let model = Model::read(&path).unwrap();
    assert!(model.has_external_data());
    assert_eq!(model.proto().graph.as_ref().unwrap(), &g);
    // In memory, the tensors are inside; on disk they are in a separate file, even when the model
    // replaces itself.
    let target = folder.path().join("out.onnx");
    let written = model.save(model.graph(), &target, &WriteOptions::default()).unwrap();
    assert!(written.proto.graph.as_ref().unwrap().initializer.iter().all(|t| t.data_location() == DataLocation::Default));
    model.save(model.graph(), &path, &WriteOptions::default()).unwrap();
    // The weights of a replaced model stay until the new model has its name, so the new ones have a
    // different name.
    let data = folder.path().join("in.onnx.data2");
    assert!(!folder.path().join("in.onnx.data").exists());
    std::fs::rename(&data, folder.path().join("gone")).unwrap();
    assert_eq!(Model::read(&target).unwrap().proto().graph.as_ref().unwrap(), &g);
    let error = Model::read(&path).unwrap_err();
    assert!(matches!(*error.fault, LoadFault::ExternalData { have: 0, need: 8192, .. }), "{error}");
    // A truncated data file.
    std::fs::write(&data, vec![0; 10_000]).unwrap();
    let error = Model::read(&path).unwrap_err();
    assert!(matches!(*error.fault, LoadFault::ExternalData { have: 10_000, need: 16_384, .. }), "{error}");
    assert!(!folder.path().read_dir().unwrap().any(|f| f.unwrap().file_name().to_string_lossy().starts_with(".regraft")));
}

#[test]
fn external_data_outside_of_the_folder_is_refused() {
    for location in ["../w.bin", "/etc/passwd", "a/../../b", "..\\w.bin", ""] {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = external_model(folder.path());
        let mut proto = <ModelProto as prost::Message>::decode(std::fs::read(&path).unwrap().as_slice()).unwrap();
        for entry in &mut proto.graph.as_mut().unwrap().initializer[0].external_data {
            if entry.key() == "location" {
                entry.value = Some(location.into());
            }
        }
        std::fs::write(&path, prost::Message::encode_to_vec(&proto)).unwrap();
        let error = Model::read(&path).unwrap_err();
        assert!(matches!(*error.fault, LoadFault::ExternalPlace { .. }), "{location}: {error}");
    }
}

#[test]
fn writing_is_deterministic() {
    let model = two_outputs();
    let mut graph = model.graph().clone();
    replace(&mut graph, "h", Op::Mul(Mul {}), &["x", "v"]);
    let once = model.write(&graph, &WriteOptions::default()).unwrap().to_bytes().unwrap();
    for _ in 0..5 {
        assert_eq!(model.write(&graph, &WriteOptions::default()).unwrap().to_bytes().unwrap(), once);
    }
    assert_eq!(DType::F32, model.outputs()[0].ty.as_ref().unwrap().dtype);
}

#[test]
fn symbolic_sizes_are_computed_from_inputs() {
    // Two sizes unknown before run time, neither in its place: 0 and -1 cannot express that.
    let nodes = vec![
        node("Shape", "x", "s"),
        with(node("Gather", "s,one", "n"), int("axis", 0)),
        with(node("Gather", "s,zero", "m"), int("axis", 0)),
        with(node("Concat", "n,m", "target"), int("axis", 0)),
        node("Expand", "c,target", "wide"),
        node("Add", "wide,two", "y"),
    ];
    let model = read(&model(graph(
        vec![value("x", "N,M"), value("c", "1,1")],
        vec![value("y", "M,N")],
        nodes,
        vec![ints("zero", &[0]), ints("one", &[1]), floats("two", &[], &[2.0])],
    )));
    assert!(model.opaque_nodes().is_empty(), "{:?}", model.opaque_nodes());
    let written = model.write(model.graph(), &WriteOptions { respell: true, ..WriteOptions::default() }).unwrap();
    assert_eq!(
        listing(&written.proto),
        [
            "regraft_shape_1 = Shape(x)",
            "regraft_gather_1 = Gather(regraft_shape_1,regraft_const_1)",
            "regraft_gather_2 = Gather(regraft_shape_1,regraft_const_2)",
            "regraft_concat_1 = Concat(regraft_gather_1,regraft_gather_2)",
            "wide = Expand(c,regraft_concat_1)",
            "y = Add(wide,two)",
        ]
    );
    let again = Model::from_proto(written.proto).unwrap();
    assert_eq!(again.outputs()[0].ty.as_ref().unwrap().to_string(), "f32[M,N]");
}

/// The shape of a constant is known however large it is, and so is what it says about others.
#[test]
fn sizes_of_large_constants_are_known() {
    let nodes = vec![node("Transpose", "w", "t"), node("Shape", "t", "s"), node("Reshape", "x,s", "y")];
    let weights = floats("w", &[300, 250], &vec![0.0; 300 * 250]);
    let model = read(&model(graph(vec![value("x", "N")], vec![value("y", "250,300")], nodes, vec![weights])));
    assert!(model.opaque_nodes().is_empty(), "{:?}", model.opaque_nodes());
}

#[test]
fn parameters_of_unchanged_nodes_come_back_from_the_original() {
    // The graph drops `shape` with its last reader; the Reshape, which has its sizes as an
    // attribute, is still written verbatim.
    for as_node in [false, true] {
        let custom = regraft_onnx::proto::NodeProto { domain: Some("my.domain".into()), ..node("Strange", "x,shape", "o") };
        let mut nodes = vec![custom, node("Reshape", "x,shape", "r"), node("Relu", "r", "y"), node("Neg", "o", "z")];
        let mut constants = vec![];
        if as_node {
            nodes.insert(0, with(node("Constant", "", "shape"), tensor("value", ints("", &[2, 2]))));
        } else {
            constants.push(ints("shape", &[2, 2]));
        }
        let mut g = graph(vec![value("x", "4")], vec![value("y", "2,2"), value("z", "2,2")], nodes, constants);
        g.value_info = vec![value("o", "2,2")];
        let model = read(&model(g));
        let mut graph = model.graph().clone();
        redirect(&mut graph, "o", "r");
        assert!(graph.ids().all(|id| graph.node(id).names[0].as_deref() != Some("shape")));
        let proto = write(&model, &graph);
        let rest = ["r = Reshape(x,shape)", "y = Relu(r)", "z = Neg(r)"];
        let want: Vec<&str> = as_node.then_some("shape = Constant()").into_iter().chain(rest).collect();
        assert_eq!(listing(&proto), want);
        assert_eq!(initializers(&proto), if as_node { vec![] } else { vec!["shape"] });
    }
}

#[test]
fn one_result_can_be_folded_without_the_other() {
    let n = 3 << 20;
    let model = read(&model(graph(
        vec![value("x", &n.to_string()), value("s", "4"), value("u", &(n - 4).to_string())],
        vec![value("y", &n.to_string()), value("z", "4"), value("t", &(n - 4).to_string())],
        vec![node("Mul", "x,a", "y"), node("Neg", "s", "z"), node("Neg", "u", "t")],
        vec![floats("a", &[n], &vec![2.0; n as usize])],
    )));
    let mut graph = model.graph().clone();
    let split = Op::Split(regraft_ir::ops::split::Split { axis: 0, sizes: vec![4, n - 4] });
    let old = |name: &str| PatchValue::Old(find(model.graph(), name));
    let ty = |name: &str| graph.ty(find(&graph, name)).cloned();
    let new = |index, port| PatchValue::New { index, port };
    let create = vec![
        NewNode::new(split, smallvec![old("a")], smallvec![ty("s"), ty("u")]),
        NewNode::new(Op::Add(Add {}), smallvec![old("s"), new(0, 0)], smallvec![ty("s")]),
        NewNode::new(Op::Add(Add {}), smallvec![old("u"), new(0, 1)], smallvec![ty("u")]),
    ];
    let replace = smallvec![(find(&graph, "z"), new(1, 0)), (find(&graph, "t"), new(2, 0))];
    graph.apply(&Patch { cause: Arc::from("test"), create, replace });
    let written = model.write(&graph, &WriteOptions::default()).unwrap();
    assert_eq!((written.folded, written.kept_expressions), (1, 1));
    let lines = listing(&written.proto);
    assert_eq!(
        lines[1..],
        ["regraft_unused_1,regraft_split_1 = Split(a,regraft_const_2)", "z = Add(s,regraft_const_1)", "t = Add(u,regraft_split_1)"]
    );
    Model::from_proto(written.proto).unwrap();
}

#[test]
fn weights_are_written_without_subnormal_numbers_on_request() {
    let (dusty, clean) = ([0.5, 1e-40, -1e-39, 2.0], [0.5, 0.0, -0.0, 2.0]);
    let weights = |ir: i64| {
        // Before version 4, weights are among the inputs, where a caller may see them.
        let listed = (ir < 4).then(|| value("v", "4"));
        let nodes = vec![node("Mul", "x,w", "h"), node("Add", "h,v", "y"), node("Div", "x,d", "z")];
        let tensors = ["w", "v", "d"].map(|name| floats(name, &[4], &dusty)).to_vec();
        let inputs = [value("x", "N,4")].into_iter().chain(listed).collect();
        let model = read(&versions(graph(inputs, vec![value("y", "N,4"), value("z", "N,4")], nodes, tensors), ir, 17));
        let written = model.write(model.graph(), &WriteOptions { flush: true, ..WriteOptions::default() }).unwrap().proto;
        let count = model.flushable(model.graph());
        (["w", "v", "d"].map(|name| written.graph.as_ref().unwrap().initializer.iter().find(|t| t.name() == name).cloned()), count)
    };
    let bytes = |values: &[f32]| floats("", &[4], values).raw_data;
    let contents = |tensors: [Option<TensorProto>; 3]| tensors.map(|tensor| tensor.expect("it is written").raw_data);
    // What divides is another matter.
    let (recent, count) = weights(8);
    assert_eq!((contents(recent), count), ([bytes(&clean), bytes(&clean), bytes(&dusty)], 2));
    let (old, count) = weights(3);
    assert_eq!((&contents(old)[1], count), (&bytes(&dusty), 1));
    let model = two_outputs();
    assert_eq!(
        write(&model, model.graph()),
        model.write(model.graph(), &WriteOptions { flush: true, ..WriteOptions::default() }).unwrap().proto
    );
}
