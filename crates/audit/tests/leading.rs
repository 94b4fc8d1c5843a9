//! Leading axes that stand for several: computing with several gives the same elements.

use std::collections::HashMap;

use regraft_ir::{Bindings, Class, Dim, Graph, Op, SplitMix64, Tensor, Value, eval, text};
use regraft_prove::{Field, leading_axes, with_leading_axes};
use regraft_rules::sample::Sizes;
use regraft_rules::{Library, Proofs};

/// What replaces the axis: several axes, one, and none where operators accept that.
const AXES: [&[i64]; 4] = [&[2, 3], &[4], &[1, 2, 2], &[]];
/// All other sizes.
const SIZE: i64 = 3;

/// Inputs of the graph, and the same elements as inputs of `lifted`.
fn feeds(graph: &Graph, lifted: &Graph, bindings: &Bindings) -> Option<[HashMap<String, Value<Field>>; 2]> {
    let mut random = SplitMix64(7);
    let mut next = || random.word();
    let (mut ours, mut theirs) = (HashMap::new(), HashMap::new());
    for (id, other) in graph.inputs().iter().zip(lifted.inputs()) {
        let (Op::Input(input), Op::Input(view)) = (&graph.node(*id).op, &lifted.node(*other).op) else { return None };
        assert_eq!(input.name, view.name);
        let (shape, view) = (input.ty.bind(bindings)?, view.ty.bind(bindings)?);
        let count: usize = shape.iter().product();
        let both = match input.ty.dtype.class() {
            Class::Real => {
                let data: Vec<Field> = (0..count).map(|_| Field::new(next() >> 3)).collect();
                [shape, view].map(|shape| Value::real(Tensor::new(shape, data.clone())))
            }
            Class::Int => {
                let data: Vec<i64> = (0..count).map(|_| (next() >> 40) as i64 % 2).collect();
                [shape, view].map(|shape| Value::int(Tensor::new(shape, data.clone())))
            }
            Class::Bool => {
                let data: Vec<bool> = (0..count).map(|_| next() >> 63 == 1).collect();
                [shape, view].map(|shape| Value::bool(Tensor::new(shape, data.clone())))
            }
            Class::Other => return None,
        };
        let [value, view] = both;
        ours.insert(input.name.to_string(), value);
        theirs.insert(input.name.to_string(), view);
    }
    Some([ours, theirs])
}

/// The elements without their shape.
fn elements(value: &Value<Field>) -> String {
    match value {
        Value::Real(t) => format!("{:?}", t.data),
        Value::Int(t) => format!("{:?}", t.data),
        Value::Bool(t) => format!("{:?}", t.data),
    }
}

/// Compares a graph with its version at other leading axes; false if that cannot be computed.
fn is_the_same(name: &str, graph: &Graph, symbol: &str, axes: &[i64]) -> bool {
    let sizes: Vec<Dim> = axes.iter().map(|size| Dim::from(*size)).collect();
    let Some(lifted) = with_leading_axes(graph, symbol, &sizes) else {
        // A matrix without its rows is not an operand of a product.
        assert!(axes.is_empty(), "{name}: {symbol} stands for two axes but not for {axes:?}");
        return false;
    };
    let mut names = Vec::new();
    graph.ids().flat_map(|id| graph.node(id).types.iter().flatten()).for_each(|ty| ty.shape.iter().for_each(|d| d.symbols(&mut names)));
    let size = |name: &String| if name == symbol { axes.iter().product() } else { SIZE };
    let bindings: Bindings = names.iter().map(|name| (name.clone(), size(name))).collect();
    let Some([ours, theirs]) = feeds(graph, &lifted, &bindings) else { return false };
    let run = |graph: &Graph, feeds| eval::run::<Field>(graph, feeds, &mut eval::NoOpaque);
    let Ok(expected) = run(graph, &ours) else { return false };
    let found = run(&lifted, &theirs).unwrap_or_else(|e| panic!("{name}: {axes:?} for {symbol}: {e}\n{}", text::print(&lifted)));
    for (x, y) in expected.iter().zip(&found) {
        assert_eq!(elements(x), elements(y), "{name}: {axes:?} for {symbol}\n{}{}", text::print(graph), text::print(&lifted));
    }
    true
}

#[test]
fn rules_are_the_same_at_any_number_of_leading_axes() {
    let (library, proofs) = (Library::shipped().unwrap(), Proofs::shipped());
    let (mut rules, mut compared) = (0, 0);
    for rule in library.rules() {
        let Some(proof) = proofs.of(rule) else { continue };
        let before = compared;
        for draw in proof.instances.iter().filter(|draw| draw.sizes != Sizes::Known) {
            let instance = draw.instance(rule).unwrap();
            for symbol in leading_axes(&instance.before, &instance.after) {
                for (graph, axes) in [&instance.before, &instance.after].into_iter().flat_map(|g| AXES.map(|axes| (g, axes))) {
                    compared += usize::from(is_the_same(&rule.name, graph, &symbol, axes));
                }
            }
        }
        rules += usize::from(compared > before);
    }
    println!("{rules} rules, {compared} comparisons");
    assert!(rules > 200 && compared > 2000, "{rules} rules, {compared} comparisons");
}

#[test]
fn only_axes_that_are_passed_over_stand_for_others() {
    for (graph, expected) in [
        ("(x: f32[B,K], w: f32[K,N]) { y = MatMul(x, w) output y }", "B"),
        ("(x: f32[B,M,K], z: f32[B,K,N]) { y = MatMul(x, z) output y }", "B"),
        ("(x: f32[M,K], z: f32[B,K,N]) { y = MatMul(x, z) output y }", "B"),
        ("(x: f32[M,K], z: f32[K,B]) { y = MatMul(x, z) output y }", "M"),
        ("(x: f32[B,K], z: f32[M,K,N]) { y = MatMul(x, z) output y }", "M"),
        ("(x: f32[B,N], z: f32[N]) { y = Softmax(Add(x, z), axis=1) output y }", "B"),
        ("(x: f32[B,N]) { y = Softmax(x, axis=0) output y }", ""),
        ("(x: f32[B,N]) { y = ReduceSum(x, axes=[1], keepdims=false) output y }", "B"),
        ("(x: f32[B,N]) { y = ReduceSum(x, axes=[0], keepdims=true) output y }", ""),
        ("(x: f32[B,M,N]) { y = Transpose(x, perm=[0, 2, 1]) output y }", "B"),
        ("(x: f32[B,M,N]) { y = Transpose(x, perm=[1, 0, 2]) output y }", ""),
        ("(x: f32[B,4]) { y = Reshape(x, shape=[B, 2, 2]) output y }", "B"),
        ("(x: f32[B,4]) { y = Reshape(x, shape=[4, B]) output y }", ""),
        ("(x: f32[B,4]) { y = Reshape(x, shape=[4*B]) output y }", ""),
        ("(x: f32[B,N], z: f32[B]) { y = Concat(x, x, axis=1) output y, z }", "B"),
        ("(x: f32[B,N]) { y = Concat(x, x, axis=0) output y }", ""),
        ("(x: f32[B,N], z: f32[N,B]) { y = Relu(x) v = Relu(z) output y, v }", ""),
        ("(x: f32[B,N], z: f32[1,N]) { y = Add(x, z) output y }", ""),
        ("(t: f32[V,N], i: i64[B,M]) { y = Gather(t, i, axis=0) output y }", "B"),
        ("(t: f32[B,V,N], i: i64[M]) { y = Gather(t, i, axis=1) output y }", "B"),
        ("(x: f32[B,N]) { y = Pad(x, pads=[0, 1, 0, 2], mode=\"constant\", value=0.0) output y }", "B"),
        ("(x: f32[B,N]) { y = Pad(x, pads=[1, 0, 0, 0], mode=\"constant\", value=0.0) output y }", ""),
        (
            "(x: f32[B,3,8,8], w: f32[4,3,3,3]) { y = Conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1) output y }",
            "",
        ),
        ("(x: f32[B,N]) { y = Flatten(x, axis=1) output y }", ""),
    ] {
        let graph = text::parse(&format!("graph {graph}")).unwrap_or_else(|e| panic!("{e}\n{graph}"));
        assert_eq!(leading_axes(&graph, &graph).join(" "), expected, "{}", text::print(&graph));
        for symbol in leading_axes(&graph, &graph) {
            AXES.iter().for_each(|axes| assert!(is_the_same("a graph", &graph, &symbol, axes) || axes.is_empty()));
        }
    }
}
