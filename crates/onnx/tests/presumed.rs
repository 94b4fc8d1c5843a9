//! Nodes without a definition here: they stay as they are, and what is certain about their results
//! is known.

mod common;

use common::*;
use regraft_ir::Op;
use regraft_onnx::Model;
use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::{AttributeProto, NodeProto, ValueInfoProto};

fn word(name: &str, v: &str) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::String as i32), s: Some(v.into()), ..AttributeProto::default() }
}

fn ints_attr(name: &str, v: &[i64]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(AttributeType::Ints as i32), ints: v.to_vec(), ..AttributeProto::default() }
}

/// A model with one node at opset 23, whose results are the outputs, declared without sizes.
fn one(node: NodeProto, inputs: Vec<ValueInfoProto>) -> Model {
    let outputs = node.output.iter().map(|name| ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() }).collect();
    read(&versions(graph(inputs, outputs, vec![node], vec![]), 10, 23))
}

/// The results' types; sizes known only at run time are fresh symbols, named after the result.
fn check(node: NodeProto, inputs: Vec<ValueInfoProto>, want: &[&str]) {
    let op_type = node.op_type().to_string();
    let model = one(node, inputs);
    assert_eq!(model.opaque_nodes().len(), 1, "{op_type}");
    let have: Vec<String> = model.outputs().iter().map(|o| o.ty.as_ref().map_or("?".into(), ToString::to_string)).collect();
    assert_eq!(have, want, "{op_type}");
}

#[test]
fn results_of_undefined_operators_have_types() {
    let i = |name: &str, dims: &str| typed(name, 7, dims);
    check(node("NonMaxSuppression", "b,s", "y"), vec![value("b", "1,N,4"), value("s", "1,2,N")], &["i64[y_d0,3]"]);
    check(node("TopK", "x,k", "v,i"), vec![value("x", "N,9"), i("k", "1")], &["f32[N,v_d1]", "i64[N,i_d1]"]);
    // How many elements `k` has need not be known: it has one.
    check(node("TopK", "x,k", "v,i"), vec![value("x", "N,9"), i("k", "K")], &["f32[N,v_d1]", "i64[N,i_d1]"]);
    check(node("GridSample", "x,g", "y"), vec![value("x", "N,3,H,W"), value("g", "N,5,6,2")], &["f32[N,3,5,6]"]);
    check(
        with(with(node("LSTM", "x,w,r", "y,h,c"), int("hidden_size", 7)), int("layout", 1)),
        vec![value("x", "B,S,4"), value("w", "1,28,4"), value("r", "1,28,7")],
        &["f32[B,S,1,7]", "f32[B,1,7]", "f32[B,1,7]"],
    );
    let attention = vec![value("q", "B,3,S,8"), value("k", "B,3,T,8"), value("v", "B,3,T,10")];
    check(node("Attention", "q,k,v", "y"), attention, &["f32[B,3,S,10]"]);
    check(with(node("LpPool", "x", "y"), ints_attr("kernel_shape", &[2, 2])), vec![value("x", "N,3,32,W")], &["f32[N,3,31,W - 1]"]);
    check(node("Expand", "x,s", "y"), vec![value("x", "3,1"), i("s", "3")], &["f32[y_d0,3,y_d2]"]);
    let einsum = |inputs: &str, equation: &str| with(node("Einsum", inputs, "y"), word("equation", equation));
    check(einsum("x", "...ii->...i"), vec![value("x", "N,M,K")], &["f32[N,M]"]);
    check(einsum("a,b", "bij, bjk -> bik"), vec![value("a", "N,2,J"), value("b", "N,K,3")], &["f32[N,2,3]"]);
    check(einsum("x", "jii"), vec![value("x", "N,M,K")], &["f32[N]"]);
    check(einsum("a,b", "i,i"), vec![value("a", "N"), value("b", "M")], &["f32[]"]);
    check(node("Unique", "x", "y,i"), vec![value("x", "N")], &["f32[y_d0]", "i64[i_d0]"]);
}

/// Defined operators with something their definitions cannot handle: an input's value, another
/// element type, further results, sizes that may not fit.
#[test]
fn results_of_defined_operators_that_stay_have_types() {
    let i = |name: &str, dims: &str| typed(name, 7, dims);
    let x = |dims: &str| value("x", dims);
    check(node("MatMul", "x,w", "y"), vec![x("N,2,3"), value("w", "3")], &["f32[N,2]"]);
    check(node("MatMulInteger", "x,w", "y"), vec![typed("x", 2, "N,2,K"), typed("w", 3, "M,3")], &["i32[N,2,3]"]);
    check(node("Gemm", "x,w", "y"), vec![typed("x", 6, "N,4"), typed("w", 6, "4,3")], &["i32[N,3]"]);
    check(node("Reshape", "x,s", "y"), vec![x("N,6"), i("s", "3")], &["f32[y_d0,y_d1,y_d2]"]);
    check(node("ReduceSum", "x,a", "y"), vec![x("N,6"), i("a", "1")], &["f32[y_d0,y_d1]"]);
    check(with(node("ReduceSum", "x,a", "y"), int("keepdims", 0)), vec![x("N,6"), i("a", "1")], &["f32[y_d0]"]);
    check(node("ReduceL2", "x", "y"), vec![typed("x", 6, "N,6")], &["i32[1,1]"]);
    check(node("Slice", "x,b,e", "y"), vec![x("N,6,3"), i("b", "2"), i("e", "2")], &["f32[y_d0,y_d1,3]"]);
    check(node("Split", "x", "y,z"), vec![x("N,6")], &["f32[floor(N + 1, 2),6]", "f32[-floor(N + 1, 2) + N,6]"]);
    check(with(node("MaxPool", "x", "y,i"), ints_attr("kernel_shape", &[3])), vec![x("N,2,W")], &["f32[N,2,W - 2]", "i64[N,2,W - 2]"]);
    let same = with(with(node("AveragePool", "x", "y"), ints_attr("kernel_shape", &[3])), word("auto_pad", "SAME_UPPER"));
    check(with(same, ints_attr("strides", &[2])), vec![x("N,2,W")], &["f32[N,2,floor(W + 1, 2)]"]);
    let wide = with(node("ConvInteger", "x,w", "y"), ints_attr("strides", &[2]));
    check(wide, vec![typed("x", 2, "N,3,9"), typed("w", 3, "5,3,2")], &["i32[N,5,4]"]);
    let unpool = with(with(node("MaxUnpool", "x,i", "y"), ints_attr("kernel_shape", &[2])), ints_attr("strides", &[2]));
    check(unpool, vec![x("N,C,W"), i("i", "N,C,W")], &["f32[N,C,2*W]"]);
    check(node("LayerNormalization", "x,w,,,", "y,m,d"), vec![x("N,5"), value("w", "5")], &["f32[N,5]", "f32[N,1]", "f32[N,1]"]);
    check(node("OneHot", "x,d,v", "y"), vec![i("x", "N,5"), i("d", "1"), value("v", "2")], &["f32[N,5,y_d2]"]);
    check(node("Max", "x,z", "y"), vec![typed("x", 9, "N,1"), typed("z", 9, "5")], &["bool[N,5]"]);
}

#[test]
fn an_absurd_number_of_axes_is_no_type() {
    for op_type in ["Reshape", "Expand", "Unsqueeze", "ConstantOfShape"] {
        let inputs = if op_type == "ConstantOfShape" { "s" } else { "x,s" };
        check(node(op_type, inputs, "y"), vec![value("x", "N"), typed("s", 7, "9223372036854775807")], &["?"]);
    }
}

/// `SpaceToDepth` got the attribute `mode` with opset 28; a definition that ignores it would
/// compute the other mode.
#[test]
fn an_attribute_that_the_definition_does_not_know_keeps_the_node() {
    let blocks =
        |mode: &str| one(with(with(node("SpaceToDepth", "x", "y"), int("blocksize", 2)), word("mode", mode)), vec![value("x", "1,2,4,6")]);
    assert!(blocks("DCR").opaque_nodes().is_empty());
    assert_eq!(blocks("CRD").opaque_nodes()[0].why, "SpaceToDepth with mode CRD");
    let odd = one(with(node("Relu", "x", "y"), int("leak", 1)), vec![value("x", "4")]);
    assert_eq!(odd.opaque_nodes()[0].why, "the attribute `leak` of Relu has no meaning here");
}

/// `torch.arange` as older exporters write it: where a constant is not 0 is a constant. Where a
/// rounded number decides it, it is not known.
#[test]
fn places_of_a_constant_are_a_constant() {
    let counted = |steps: Vec<NodeProto>| {
        let nodes = [steps, vec![node("NonZero", "k", "at"), node("Cast", "at", "i"), node("Gather", "x,at", "y")]].concat();
        let nodes = nodes.into_iter().map(|n| if n.op_type() == "Cast" { with(n, int("to", 6)) } else { n }).collect();
        read(&model(graph(vec![value("x", "9")], vec![value("y", "1,3")], nodes, vec![ints("n", &[3]), floats("c", &[1], &[0.5])])))
    };
    let ones = with(node("ConstantOfShape", "n", "k"), tensor("value", ints("", &[1])));
    let known = counted(vec![ones]);
    assert!(known.opaque_nodes().is_empty(), "{:?}", known.opaque_nodes());
    assert_eq!(known.outputs()[0].ty.as_ref().map(ToString::to_string), Some("f32[1,3]".to_string()));
    let rounded = counted(vec![node("Sqrt", "c", "r"), node("Greater", "r,c", "k")]);
    assert_eq!(rounded.opaque_nodes().len(), 1);
}

/// Whatever is below a node with run-time sizes is defined, and its types follow.
#[test]
fn the_graph_below_is_defined() {
    let nodes = vec![node("NonZero", "x", "at"), with(node("Transpose", "at", "t"), ints_attr("perm", &[1, 0])), node("Neg", "t", "y")];
    let model = read(&model(graph(vec![value("x", "N,4")], vec![typed("y", 7, "_,2")], nodes, vec![])));
    let ops = model.graph().ids().filter(|id| matches!(model.graph().node(*id).op, Op::Opaque(_))).count();
    assert_eq!((ops, model.outputs()[0].ty.as_ref().map(ToString::to_string)), (1, Some("i64[at_d1,2]".to_string())));
}
