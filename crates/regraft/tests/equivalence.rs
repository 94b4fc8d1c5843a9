//! Operators that are kept verbatim, and bodies, in two models compared without a certificate.

use regraft::equivalence::compare;
use regraft_equate::Effort;
use regraft_onnx::Model;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::type_proto::{Tensor, Value};
use regraft_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};

/// A value of type `f32[N,4]`, or a boolean scalar.
fn declared(name: &str) -> ValueInfoProto {
    let symbol = |name: &str| Dimension { value: Some(dimension::Value::DimParam(name.into())), denotation: None };
    let size = |size| Dimension { value: Some(dimension::Value::DimValue(size)), denotation: None };
    let (elem_type, dim) = if name == "c" { (9, Vec::new()) } else { (1, vec![symbol("N"), size(4)]) };
    let tensor = Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim }) };
    let ty = TypeProto { value: Some(Value::TensorType(tensor)), denotation: None };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// `out = Kind(in, ..)`, or `out = domain.Kind(in, ..)`; words without meaning between them.
fn node(text: &str) -> NodeProto {
    let (out, call) = text.split_once(" = ").expect("a result");
    let (kind, inputs) = call.trim_end_matches(')').split_once('(').expect("operands");
    let (domain, kind) = kind.rsplit_once('.').unwrap_or(("", kind));
    NodeProto {
        output: vec![out.into()],
        input: inputs.split(", ").filter(|n| !n.is_empty()).map(Into::into).collect(),
        op_type: Some(kind.into()),
        domain: Some(domain.into()),
        ..NodeProto::default()
    }
}

fn nodes(text: &str) -> Vec<NodeProto> {
    text.split("; ").filter(|line| !line.is_empty()).map(node).collect()
}

/// `r = If(c)` with a body of these nodes, which returns `out`.
fn branch(body: &str, out: &str) -> NodeProto {
    branches("r = If(c)", [(body, out), (body, out)])
}

/// An If with these two bodies, and their results.
fn branches(call: &str, bodies: [(&str, &str); 2]) -> NodeProto {
    let graph = |(body, out): (&str, &str)| GraphProto {
        name: Some("body".into()),
        node: nodes(body),
        output: vec![declared(out)],
        ..GraphProto::default()
    };
    let attribute =
        |name: &str, body| AttributeProto { name: Some(name.into()), r#type: Some(5), g: Some(graph(body)), ..AttributeProto::default() };
    NodeProto { attribute: vec![attribute("then_branch", bodies[0]), attribute("else_branch", bodies[1])], ..node(call) }
}

/// `name = Constant()` of integers, or of booleans.
fn constant(name: &str, code: i32, shape: &[i64], values: &[i64]) -> NodeProto {
    let mut tensor = TensorProto { data_type: Some(code), dims: shape.to_vec(), ..TensorProto::default() };
    match code {
        7 => tensor.int64_data = values.to_vec(),
        _ => tensor.int32_data = values.iter().map(|v| *v as i32).collect(),
    }
    let value = AttributeProto { name: Some("value".into()), r#type: Some(4), t: Some(tensor), ..AttributeProto::default() };
    NodeProto { attribute: vec![value], ..node(&format!("{name} = Constant()")) }
}

fn model(nodes: Vec<NodeProto>, output: &str) -> Model {
    model_of(17, nodes, output)
}

fn model_of(version: i64, nodes: Vec<NodeProto>, output: &str) -> Model {
    let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let graph = GraphProto {
        name: Some("g".into()),
        input: vec![declared("x"), declared("z"), declared("c")],
        output: vec![declared(output)],
        node: nodes,
        ..GraphProto::default()
    };
    let proto = ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset("", version), opset("com.example", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    };
    Model::from_proto(proto).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn check(word: &str, a: &Model, b: &Model) {
    let found = compare(a, b, &Effort::default()).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(found.trust.word(), word, "{found:?}");
    assert_eq!(found.gaps.is_empty(), word == "proved", "{found:?}");
}

#[test]
fn unknown_operators_are_the_same_function_on_the_same_operands() {
    let a = model(nodes("t = Relu(x); u = Relu(t); f = com.example.F(u, z); y = Relu(f)"), "y");
    check("proved", &a, &model(nodes("v = Relu(x); f = com.example.F(v, z); y = Relu(f)"), "y"));
    check("unproved", &a, &model(nodes("v = Relu(x); f = com.example.F(z, v); y = Relu(f)"), "y"));
    check("unproved", &a, &model(nodes("v = Relu(x); f = com.example.G(v, z); y = Relu(f)"), "y"));
    let mut other = nodes("v = Relu(x); f = com.example.F(v, z); y = Relu(f)");
    other[1].attribute.push(AttributeProto { name: Some("axis".into()), r#type: Some(2), i: Some(1), ..AttributeProto::default() });
    check("unproved", &a, &model(other, "y"));
}

#[test]
fn random_operators_are_equal_to_nothing() {
    let random = || model(nodes("r = RandomNormalLike(x); y = Add(r, z)"), "y");
    check("unproved", &random(), &random());
}

/// A call of a function whose body draws, or calls one that does, is as random as what it calls,
/// outside bodies and inside.
#[test]
fn functions_that_draw_are_equal_to_nothing() {
    let function = |name: &str, inner: &str| FunctionProto {
        domain: Some("com.example".into()),
        name: Some(name.into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: nodes(inner),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        ..FunctionProto::default()
    };
    let with_functions = |nodes: Vec<NodeProto>| {
        let mut proto = model(nodes, "y").proto().clone();
        proto.functions = vec![
            function("Noise", "b = RandomNormalLike(a)"),
            function("Deep", "t = Relu(a); b = com.example.Noise(t)"),
            function("Pure", "b = Tanh(a)"),
        ];
        Model::from_proto(proto).unwrap_or_else(|e| panic!("{e}"))
    };
    let called = |name: &str| with_functions(nodes(&format!("r = com.example.{name}(x); y = Add(r, z)")));
    let inside = |name: &str| {
        let body = format!("o = com.example.{name}(x)");
        with_functions([vec![branch(&body, "o")], nodes("y = Relu(r)")].concat())
    };
    for (name, word) in [("Noise", "unproved"), ("Deep", "unproved"), ("Pure", "proved")] {
        check(word, &called(name), &called(name));
        check(word, &inside(name), &inside(name));
    }
}

#[test]
fn bodies_are_compared_under_equal_captured_values() {
    let a = |body: &str| model([nodes("t = Relu(x); i = Identity(t)"), vec![branch(body, "o")], nodes("y = Relu(r)")].concat(), "y");
    let plain = a("p = Mul(i, z); o = Tanh(p)");
    // Different names inside, the same value under a different name outside.
    check("proved", &plain, &a("q = Mul(t, z); o = Tanh(q)"));
    check("proved", &plain, &a("q = Mul(z, t); w = Identity(q); o = Tanh(w)"));
    check("unproved", &plain, &a("p = Mul(x, z); o = Tanh(p)"));
    check("unproved", &plain, &a("p = Mul(i, z); o = Sigmoid(p)"));
    let mut deaf = nodes("t = Relu(x); i = Identity(t)");
    deaf.push(branch("p = RandomNormalLike(i); o = Mul(p, z)", "o"));
    deaf.extend(nodes("y = Relu(r)"));
    check("unproved", &model(deaf.clone(), "y"), &model(deaf, "y"));
}

#[test]
fn a_body_has_its_constants_outside_or_inside() {
    let half = |name: &str, value: f32| {
        let tensor = TensorProto { name: Some(name.into()), data_type: Some(1), float_data: vec![value], ..TensorProto::default() };
        let value = AttributeProto { name: Some("value".into()), r#type: Some(4), t: Some(tensor), ..AttributeProto::default() };
        NodeProto { attribute: vec![value], ..node(&format!("{name} = Constant()")) }
    };
    let outside =
        |value: f32| model([vec![half("h", value), branch("p = Mul(x, h); o = Tanh(p)", "o")], nodes("y = Relu(r)")].concat(), "y");
    let inside = |value: f32| {
        let mut own = branch("p = Mul(x, k); o = Tanh(p)", "o");
        for body in own.attribute.iter_mut().filter_map(|a| a.g.as_mut()) {
            body.initializer = half("k", value).attribute[0].t.clone().into_iter().collect();
        }
        model([vec![own], nodes("y = Relu(r)")].concat(), "y")
    };
    check("proved", &outside(0.5), &inside(0.5));
    check("proved", &inside(0.5), &outside(0.5));
    check("unproved", &outside(0.5), &inside(0.25));
    check("unproved", &outside(0.5), &outside(0.25));
}

#[test]
fn a_branch_that_is_always_taken_stands_for_its_if() {
    // The condition is computed from integers; names inside hide nothing outside.
    let a = |then: bool| {
        let condition = [constant("n", 7, &[], &[i64::from(then)]), constant("one", 7, &[], &[1]), node("k = Equal(n, one)")];
        let taken = branches("r = If(k)", [("t = Mul(i, z); o = Tanh(t)", "o"), ("t = Add(i, z); o = Tanh(t)", "o")]);
        model([condition.to_vec(), nodes("t = Relu(x); i = Identity(t)"), vec![taken], nodes("u = Add(t, r); y = Relu(u)")].concat(), "y")
    };
    let b = |kind: &str| model(nodes(&format!("t = Relu(x); m = {kind}(t, z); r = Tanh(m); u = Add(t, r); y = Relu(u)")), "y");
    check("proved", &a(true), &b("Mul"));
    check("proved", &a(false), &b("Add"));
    check("unproved", &a(true), &b("Add"));
    // One branch inside another, which returns an outer value unchanged.
    let inner = branches("o = If(k)", [("v = Identity(i)", "v"), ("v = Tanh(i)", "v")]);
    let mut outer = branches("r = If(k)", [("", "o"), ("o = Sigmoid(i)", "o")]);
    outer.attribute[0].g.as_mut().expect("a branch").node = vec![inner];
    let nested = model([vec![constant("k", 9, &[], &[1])], nodes("i = Relu(x)"), vec![outer], nodes("y = Neg(r)")].concat(), "y");
    check("proved", &nested, &model(nodes("i = Relu(x); y = Neg(i)"), "y"));
    check("unproved", &nested, &model(nodes("i = Tanh(x); y = Neg(i)"), "y"));
    // A condition decided by rounding counts as unknown.
    let close = [node("h = Cast(n)"), node("k = Greater(h, h)")].map(|mut n| {
        if n.op_type() == "Cast" {
            n.attribute.push(AttributeProto { name: Some("to".into()), r#type: Some(2), i: Some(1), ..AttributeProto::default() });
        }
        n
    });
    let taken = branches("r = If(k)", [("o = Tanh(x)", "o"), ("o = Relu(x)", "o")]);
    let open = model([vec![constant("n", 7, &[], &[1])], close.to_vec(), vec![taken], nodes("y = Neg(r)")].concat(), "y");
    check("unproved", &open, &model(nodes("r = Relu(x); y = Neg(r)"), "y"));
}

#[test]
fn places_of_a_constant_are_a_constant() {
    let a = model(vec![constant("k", 7, &[2, 3], &[0, 5, 0, -1, 0, 2]), node("y = NonZero(k)")], "y");
    let b = |places: &[i64]| model(vec![constant("y", 7, &[2, 3], places)], "y");
    check("proved", &a, &b(&[0, 1, 1, 1, 0, 2]));
    check("unproved", &a, &b(&[0, 1, 1, 1, 2, 0]));
    // The rank of a value with one open size.
    let sizes = nodes("s = Shape(x); t = Shape(s); k = Range(zero, n, one); y = NonZero(k)");
    let counted = || {
        let constants = [constant("zero", 7, &[], &[0]), constant("one", 7, &[], &[1]), constant("f", 7, &[], &[0])];
        let mut steps = sizes.clone();
        steps.insert(2, node("n = Gather(t, f)"));
        model([constants.to_vec(), steps].concat(), "y")
    };
    check("proved", &counted(), &model(vec![constant("y", 7, &[1, 1], &[1])], "y"));
    let none = model(vec![constant("k", 7, &[3], &[0, 0, 0]), node("y = NonZero(k)")], "y");
    check("proved", &none, &model(vec![constant("y", 7, &[1, 0], &[])], "y"));
}

#[test]
fn a_normalization_by_the_mean_square_is_what_it_is_defined_as() {
    let a = |epsilon: f32| {
        let mut constants = vec![constant("axes", 7, &[1], &[-1])];
        let tensor = TensorProto { data_type: Some(1), float_data: vec![epsilon], ..TensorProto::default() };
        let value = AttributeProto { name: Some("value".into()), r#type: Some(4), t: Some(tensor), ..AttributeProto::default() };
        constants.push(NodeProto { attribute: vec![value], ..node("e = Constant()") });
        let steps = "s = Mul(x, x); m = ReduceMean(s, axes); p = Add(m, e); q = Sqrt(p); n = Div(x, q); y = Mul(n, z)";
        model_of(23, [constants, nodes(steps)].concat(), "y")
    };
    let mut whole = node("y = RMSNormalization(x, z)");
    whole.attribute = vec![
        AttributeProto { name: Some("axis".into()), r#type: Some(2), i: Some(-1), ..AttributeProto::default() },
        AttributeProto { name: Some("epsilon".into()), r#type: Some(1), f: Some(0.01), ..AttributeProto::default() },
    ];
    check("proved", &a(0.01), &model_of(23, vec![whole.clone()], "y"));
    check("unproved", &a(0.02), &model_of(23, vec![whole.clone()], "y"));
    whole.attribute[0].i = Some(0);
    check("unproved", &a(0.01), &model_of(23, vec![whole], "y"));
}

/// The second model need not run where the first one does not; where the first one runs, it has to.
#[test]
fn models_are_the_same_where_the_first_one_runs() {
    let one_row = || constant("s", 7, &[2], &[1, 4]);
    let narrow = model([vec![one_row()], nodes("v = Reshape(x, s); r = Relu(v); y = Relu(r)")].concat(), "y");
    let wide = model(nodes("r = Relu(x); y = Relu(r)"), "y");
    assert_eq!((narrow.facts().len(), wide.facts().len()), (1, 0));
    check("proved", &narrow, &wide);
    check("unproved", &wide, &narrow);
    // The same inside a branch that is always taken.
    let body = ("v = Reshape(x, s); o = Relu(v)", "o");
    let taken = || vec![one_row(), constant("k", 9, &[], &[1]), branches("r = If(k)", [body, body]), node("y = Relu(r)")];
    check("unproved", &wide, &model(taken(), "y"));
    check("proved", &narrow, &model(taken(), "y"));
}
