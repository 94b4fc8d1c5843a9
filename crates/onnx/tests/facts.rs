//! What the nodes of a model say about the sizes that it is fed.

mod common;

use common::*;
use regraft_ir::ops::reshape::Reshape;
use regraft_ir::{DType, Dim, NewNode, Op, Patch, PatchValue, Tensor, TensorType, Value, eval};
use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::{AttributeProto, ModelProto, NodeProto, ValueInfoProto};
use regraft_onnx::{FixedError, FixedInput, FixedSizes, Model, WriteOptions};
use smallvec::smallvec;

fn ints_attr(name: &str, v: &[i64]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Ints as i32), ints: v.to_vec(), ..AttributeProto::default() }
}

fn concat(inputs: &str, output: &str, axis: i64) -> NodeProto {
    with(node("Concat", inputs, output), int("axis", axis))
}

/// A network that halves its maps `levels` times and joins each with what it makes of the next.
fn unet(levels: usize) -> ModelProto {
    let mut nodes = Vec::new();
    let conv = |x: &str, w: &str, y: &str| with(node("Conv", &format!("{x},{w}"), y), ints_attr("pads", &[1; 4]));
    let halves = |n: NodeProto| with(with(n, ints_attr("kernel_shape", &[2, 2])), ints_attr("strides", &[2, 2]));
    let mut x = "x".to_string();
    for level in 0..levels {
        nodes.push(conv(&x, "w", &format!("skip{level}")));
        x = format!("pooled{level}");
        nodes.push(halves(node("MaxPool", &format!("skip{level}"), &x)));
    }
    for level in (0..levels).rev() {
        nodes.push(with(node("ConvTranspose", &format!("{x},t"), &format!("up{level}")), ints_attr("strides", &[2, 2])));
        nodes.push(concat(&format!("up{level},skip{level}"), &format!("joined{level}"), 1));
        x = format!("out{level}");
        nodes.push(conv(&format!("joined{level}"), "v", &x));
    }
    let weights =
        vec![floats("w", &[2, 2, 3, 3], &[0.1; 36]), floats("v", &[2, 4, 3, 3], &[0.1; 72]), floats("t", &[2, 2, 2, 2], &[0.1; 16])];
    model(graph(vec![value("x", "N,2,H,W")], vec![value("out0", "N,2,H,W")], nodes, weights))
}

/// The model's facts in words, after a check that it keeps this many nodes as they are.
fn facts(model: &Model, opaque: usize) -> Vec<String> {
    assert_eq!(model.opaque_nodes().len(), opaque, "{:?}", model.opaque_nodes());
    model.facts().iter().map(|fact| fact.claim.clone()).collect()
}

fn shown(model: &Model) -> Vec<String> {
    let inputs = model.inputs().into_iter().chain(model.outputs());
    inputs.map(|slot| slot.ty.map_or("?".into(), |ty| ty.to_string())).collect()
}

#[test]
fn maps_that_are_joined_with_their_halves_have_even_sizes() {
    for (levels, factor) in [(1, 2), (2, 4), (4, 16)] {
        let model = read(&unet(levels));
        let claims = ["H", "W"].map(|size| format!("{size} is a multiple of {factor}"));
        assert_eq!(facts(&model, 0), claims);
        let ty = format!("f32[N,2,{factor}*H/{factor},{factor}*W/{factor}]");
        assert_eq!(shown(&model), [ty.clone(), ty]);
    }
    let notes = read(&unet(1)).notes().to_vec();
    assert_eq!(notes[0], "sizes: H is a multiple of 2, since n_joined0 (Concat) needs it");
}

/// The facts of a model with these inputs and nodes, whose last result is the output.
fn check(inputs: &[(&str, &str)], nodes: Vec<NodeProto>, opaque: usize, want: &[&str]) -> Model {
    let inputs: Vec<ValueInfoProto> = inputs.iter().map(|(name, dims)| value(name, dims)).collect();
    let outputs =
        nodes.last().into_iter().flat_map(|n| &n.output).map(|name| ValueInfoProto { name: Some(name.clone()), ..Default::default() });
    let shapes =
        vec![ints("heads", &[0, 8, -1]), ints("flat", &[1, 12]), ints("threes", &[-1, 3]), ints("pairs", &[2, -1]), ints("second", &[1])];
    let model = read(&model(graph(inputs, outputs.collect(), nodes, shapes)));
    assert_eq!(facts(&model, opaque), want);
    model
}

#[test]
fn operators_say_which_sizes_are_equal() {
    let x = |dims: &'static str| ("x", dims);
    let reshape = |to: &str, y: &str| node("Reshape", &format!("x,{to}"), y);
    check(&[x("N,L")], vec![reshape("heads", "y")], 0, &["L is a multiple of 8"]);
    check(&[x("N,_")], vec![reshape("heads", "y")], 0, &["x_d1 is a multiple of 8"]);
    check(&[x("N,3,4")], vec![reshape("flat", "y")], 0, &["N is 1"]);
    check(&[x("N,K"), ("w", "M,3")], vec![node("MatMul", "x,w", "y")], 0, &["M is K"]);
    check(&[x("N,H"), ("z", "N,W")], vec![concat("x,z", "y", 0)], 0, &["W is H"]);
    check(&[x("N,H"), ("z", "M,8")], vec![concat("x,z", "y", 0)], 0, &["H is 8"]);
    check(&[x("N,M")], vec![node("Squeeze", "x,second", "y")], 0, &["M is 1"]);
    let both = vec![reshape("threes", "a"), reshape("pairs", "b"), node("Shape", "a", "p"), node("Shape", "b", "q"), concat("p,q", "y", 0)];
    let model = check(&[x("H")], both, 0, &["H is a multiple of 6"]);
    assert_eq!(model.facts()[0].to_string(), "H is a multiple of 6, since n_a (Reshape) and 1 more need it");
    let blocks = with(node("SpaceToDepth", "x", "y"), int("blocksize", 2));
    check(&[x("N,3,H,W")], vec![blocks], 0, &["H is a multiple of 2", "W is a multiple of 2"]);
    // They broadcast.
    check(&[x("N,H"), ("z", "N,W")], vec![node("Add", "x,z", "y")], 0, &[]);
    // Both lengths may have a common factor.
    check(&[x("N,L")], vec![reshape("pairs", "y")], 1, &[]);
}

#[test]
fn what_need_not_run_says_nothing() {
    let idle = vec![node("Reshape", "x,heads", "unread"), node("Relu", "x", "y")];
    check(&[("x", "N,L")], idle, 1, &[]);
    let reshape = with(node("Reshape", "x,s", "b"), int("allowzero", 0));
    let body =
        graph(vec![], vec![ValueInfoProto { name: Some("b".into()), ..Default::default() }], vec![reshape], vec![ints("s", &[0, 8, -1])]);
    let branches = with(with(node("If", "c", "y"), subgraph("then_branch", body.clone())), subgraph("else_branch", body));
    let inputs = vec![value("x", "N,L"), typed("c", 9, "")];
    let outputs = vec![ValueInfoProto { name: Some("y".into()), ..Default::default() }];
    let model = read(&model(graph(inputs, outputs, vec![branches], vec![])));
    assert_eq!(facts(&model, 1), [""; 0]);
    assert_eq!(model.bodies().len(), 2);
}

/// Bodies see the sizes that the model around them knows.
#[test]
fn bodies_of_a_model_with_facts_are_read() {
    let body = |output: &str| {
        let sum = node("Add", "joined0,joined0", output);
        graph(vec![], vec![ValueInfoProto { name: Some(output.into()), ..Default::default() }], vec![sum], vec![])
    };
    let mut proto = unet(1);
    let main = proto.graph.as_mut().expect("a graph");
    main.node.push(with(with(node("If", "c", "y"), subgraph("then_branch", body("a"))), subgraph("else_branch", body("b"))));
    main.input.push(typed("c", 9, ""));
    main.output.push(ValueInfoProto { name: Some("y".into()), ..Default::default() });
    let model = read(&proto);
    assert_eq!(facts(&model, 1).len(), 2);
    let bodies = model.bodies();
    assert_eq!(shown(bodies[0].model()), ["f32[N,4,H,W]", "f32[N,4,H,W]"]);
    let outer = [("N", 1), ("H/2", 4), ("W/2", 5)].map(|(symbol, n)| (symbol.to_string(), n)).into();
    assert_eq!(bodies[0].bindings(&outer), [("N", 1), ("H", 8), ("W", 10)].map(|(symbol, n)| (symbol.to_string(), n)).into());
}

/// A body knows an outer constant by any of its names.
#[test]
fn a_second_name_of_a_constant_is_a_constant_in_a_body() {
    let body = |output: &str| graph(vec![], vec![value(output, "2")], vec![node("Add", "d,d", output)], vec![]);
    let choice = with(with(node("If", "c", "y"), subgraph("then_branch", body("a"))), subgraph("else_branch", body("b")));
    let nodes = vec![node("Identity", "w", "d"), choice];
    let model = read(&model(graph(vec![typed("c", 9, "")], vec![value("y", "2")], nodes, vec![floats("w", &[2], &[1.0, 2.0])])));
    assert!(model.bodies().iter().all(|body| body.model().graph().inputs().is_empty()));
}

#[test]
fn declared_sizes_of_inner_values_are_no_facts() {
    let kept = NodeProto { domain: Some("custom".into()), ..node("Kept", "x", "k") };
    let nodes = vec![kept, concat("x,k", "y", 1)];
    let mut proto = model(graph(vec![value("x", "N,2")], vec![value("y", "N,4")], nodes, vec![]));
    proto.graph.as_mut().expect("a graph").value_info.push(value("k", "8,2"));
    assert_eq!(facts(&read(&proto), 2), [""; 0]);
}

#[test]
fn another_model_is_read_under_the_facts_of_the_first() {
    let a = read(&unet(2));
    // The same without the node that says so, and with other names.
    let mut proto = unet(0);
    let plain = proto.graph.as_mut().expect("a graph");
    plain.input = vec![value("x", "batch,2,N,W")];
    plain.node = vec![node("Relu", "x", "out0")];
    let b = read(&proto);
    assert_eq!(shown(&b)[0], "f32[batch,2,N,W]");
    let under = b.under(&a).expect("a model");
    assert_eq!(shown(&under), ["f32[N,2,4*H/4,4*W/4]", "f32[N,2,4*H/4,4*W/4]"]);
    assert_eq!(under.proto(), b.proto());
    // A model does not bring facts of its own to where it must run as well.
    let there = a.under(&b).expect("a model");
    assert_eq!((shown(&there)[0].as_str(), there.facts().len()), ("f32[batch,2,N,W]", 0));
    assert!(!there.opaque_nodes().is_empty());
    // Neither has any.
    assert!(matches!(b.under(&b), Ok(std::borrow::Cow::Borrowed(_))));
}

/// New nodes compute sizes from those of the inputs, and are read back as what they are.
#[test]
fn sizes_of_new_nodes_are_computed_from_the_inputs() {
    let n = |name: &str| Dim::symbol(name);
    let odd = vec![node("Relu", "x", "h"), node("Reshape", "h,heads", "y")];
    let model = check(&[("x", "N,L")], odd, 0, &["L is a multiple of 8"]);
    let mut graph = model.graph().clone();
    let old = graph.outputs()[0].value;
    let flat = vec![n("N") * n("L/8") * 8.into()];
    let steps = [(flat, PatchValue::Old(old)), (vec![8.into(), n("L/8"), n("N")], PatchValue::New { index: 0, port: 0 })];
    let create = steps.map(|(shape, from)| {
        NewNode::new(Op::Reshape(Reshape { shape: shape.clone() }), smallvec![from], smallvec![Some(TensorType::new(DType::F32, shape))])
    });
    let replace = smallvec![(old, PatchValue::New { index: 1, port: 0 })];
    graph.apply(&Patch { cause: "test".into(), create: create.to_vec(), replace });
    let text = regraft_ir::text::print(&graph);
    assert_eq!(regraft_ir::text::print(&regraft_ir::text::parse(&text).expect("a graph")), text);

    let written = model.write(&graph, &WriteOptions::default()).expect("a model").proto;
    let back = Model::from_proto(written).expect("a model");
    let back = back.under(&model).expect("a model");
    assert_eq!((back.opaque_nodes(), shown(&back)[1].as_str()), (&[][..], "f32[8,L/8,N]"));
    let feeds = |width: usize| [("x".to_string(), Value::<f64>::real(Tensor::new(vec![3, width], vec![1.0; 3 * width])))].into();
    let results = eval::run::<f64>(back.graph(), &feeds(16), &mut eval::NoOpaque).expect("results");
    assert_eq!(results[0].shape(), [8, 2, 3]);
    assert!(eval::run::<f64>(back.graph(), &feeds(12), &mut eval::NoOpaque).is_err());
}

#[test]
fn what_is_written_declares_what_the_file_did() {
    for levels in [1, 3] {
        let proto = unet(levels);
        let model = read(&proto);
        let written = model.write(model.graph(), &WriteOptions::default()).expect("a model").proto;
        assert_eq!(written, proto, "unchanged");
        let newer = model.clone().at_opset(20).expect("a model");
        assert_eq!(newer.facts(), model.facts());
        let (before, after) = (proto.graph.expect("a graph"), newer.proto().graph.clone().expect("a graph"));
        assert_eq!((after.input, after.output), (before.input, before.output));
    }
}

#[test]
fn sizes_that_contradict_a_fact_are_refused() {
    let model = read(&unet(2));
    let at = |height: i64| FixedSizes(vec![FixedInput { name: "x".into(), sizes: vec![None, None, Some(height), None] }]);
    assert_eq!(shown(&model.clone().at_sizes(&at(8)).expect("a model"))[0], "f32[N,2,8,4*W/4]");
    let Err(error) = model.at_sizes(&at(6)) else { panic!("it does not run there") };
    assert!(matches!(error, FixedError::Excluded(_)));
    let want = "input `x` cannot have size 6 at axis 2: H is a multiple of 4, since n_joined0 (Concat) needs it";
    assert_eq!(error.to_string(), want);
}
