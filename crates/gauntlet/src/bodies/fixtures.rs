//! Models with bodies, one difficulty each.

use regraft_onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};

use crate::bodies::build::{body, graph, int, ints, model, node, nodes, positive, value, weight, yes};

/// A name and a model.
pub type Fixture = (&'static str, ModelProto);

/// A graph without inputs.
fn branch(initializers: Vec<TensorProto>, texts: &[&str], output: &str) -> GraphProto {
    graph(&[], initializers, nodes(texts), &[output])
}

fn choose(text: &str, then: GraphProto, otherwise: GraphProto) -> NodeProto {
    body(body(node(text), "then_branch", then), "else_branch", otherwise)
}

/// All fixtures. Every graph input named `flag` decides which branch runs.
pub fn all() -> Vec<Fixture> {
    vec![
        ("if-captures", captures()),
        ("if-shared-capture", shared_capture()),
        ("if-nested", nested()),
        ("if-only-reader", only_reader()),
        ("if-captured-constants", captured_constants()),
        ("if-names-to-avoid", names_to_avoid()),
        ("if-shadowed-names", shadowed()),
        ("if-local-function", local_function()),
        ("if-captured-output", captured_output()),
        ("if-dynamic", dynamic()),
        ("loop-carried", carried()),
        ("loop-growing", growing()),
        ("loop-alternating", alternating()),
        ("loop-around-if", loop_around_if()),
        ("scan", scan()),
    ]
}

/// Both branches offer many rewrites, and their initializers share names.
fn captures() -> ModelProto {
    let then = branch(
        vec![positive("s", &[4]), weight("t", &[4])],
        &["a = Mul(h, s)", "b = Add(a, t)", "r = Relu(b)", "q = Relu(r)"],
        "f32 q [2,4]",
    );
    let otherwise = branch(
        vec![weight("s", &[4, 4]), weight("t", &[4, 4])],
        &["u = MatMul(h, s)", "v = MatMul(h, t)", "w2 = Add(u, v)", "e = Add(w2, c)"],
        "f32 e [2,4]",
    );
    let list = vec![node("h = MatMul(x, w)"), choose("y = If(flag)", then, otherwise)];
    model(graph(&["f32 x [2,4]", "bool flag []"], vec![weight("w", &[4, 4]), weight("c", &[4])], list, &["f32 y [2,4]"]))
}

/// One outer value is read by both branches and by a later node, and rewritten outside.
fn shared_capture() -> ModelProto {
    let then = branch(vec![], &["a = Relu(m)", "b = Relu(a)"], "f32 b [2,4]");
    let otherwise = branch(vec![], &["a2 = Sigmoid(m)", "b2 = Mul(m, a2)"], "f32 b2 [2,4]");
    let mut list = nodes(&["h = MatMul(x, w)", "m = Add(h, c)"]);
    list.push(choose("k = If(flag)", then, otherwise));
    list.extend(nodes(&["z0 = Relu(m)", "z = Relu(z0)", "y = Add(k, z)"]));
    model(graph(&["f32 x [2,4]", "bool flag []"], vec![weight("w", &[4, 4]), weight("c", &[4])], list, &["f32 y [2,4]", "f32 m [2,4]"]))
}

/// The inner body reads values of both surrounding graphs.
fn nested() -> ModelProto {
    let inner_then =
        branch(vec![weight("p", &[4, 4])], &["i = MatMul(a, p)", "j = Add(i, h)", "k = Relu(j)", "l = Relu(k)"], "f32 l [2,4]");
    let inner_else = branch(vec![positive("p2", &[4])], &["i2 = Mul(a, p2)", "j2 = Mul(i2, p2)", "k2 = Add(j2, h)"], "f32 k2 [2,4]");
    let mut list = nodes(&["a = Relu(h)"]);
    list.push(choose("o = If(other)", inner_then, inner_else));
    list.extend(nodes(&["o2 = Relu(o)", "o3 = Relu(o2)"]));
    let then = graph(&[], vec![], list, &["f32 o3 [2,4]"]);
    let otherwise = branch(vec![], &["n = Neg(h)", "n2 = Neg(n)"], "f32 n2 [2,4]");
    let list = vec![node("h = MatMul(x, w)"), choose("y = If(flag)", then, otherwise)];
    model(graph(&["f32 x [2,4]", "bool flag []", "bool other []"], vec![weight("w", &[4, 4])], list, &["f32 y [2,4]"]))
}

/// The body is the only reader of a chain of outer values.
fn only_reader() -> ModelProto {
    let then = branch(vec![], &["a = Relu(g)"], "f32 a [2,4]");
    let otherwise = branch(vec![], &["b = Relu(x)", "b2 = Relu(b)"], "f32 b2 [2,4]");
    let mut list = nodes(&["h = MatMul(x, w)", "g0 = Mul(h, s)", "g = Add(g0, c)"]);
    list.push(choose("y = If(flag)", then, otherwise));
    let weights = vec![weight("w", &[4, 4]), positive("s", &[4]), weight("c", &[4])];
    model(graph(&["f32 x [2,4]", "bool flag []"], weights, list, &["f32 y [2,4]"]))
}

/// Weights are outside; batch normalization inside folds into them. One branch reads a constant
/// produced by a node.
fn captured_constants() -> ModelProto {
    let norm = |suffix: &str| {
        vec![
            node(&format!("k{suffix} = Conv(x, w, b)")),
            node(&format!("l{suffix} = BatchNormalization(k{suffix}, scale, shift, mean, var)")),
            node(&format!("m{suffix} = Relu(l{suffix})")),
        ]
    };
    let then = graph(&[], vec![], norm("1"), &["f32 m1 [1,4,4,4]"]);
    let mut list = norm("2");
    list.push(node("o = Mul(m2, half)"));
    let otherwise = graph(&[], vec![], list, &["f32 o [1,4,4,4]"]);
    let weights = vec![
        weight("w", &[4, 3, 3, 3]),
        weight("b", &[4]),
        weight("scale", &[4]),
        weight("shift", &[4]),
        weight("mean", &[4]),
        positive("var", &[4]),
        weight("h0", &[1]),
    ];
    let list = vec![node("half = Relu(h0)"), choose("y = If(flag)", then, otherwise)];
    model(graph(&["f32 x [1,3,6,6]", "bool flag []"], weights, list, &["f32 y [1,4,4,4]"]))
}

/// Names that new values would get are taken, outside and in the other branch.
fn names_to_avoid() -> ModelProto {
    let then = branch(
        vec![positive("regraft_const_2", &[4])],
        &["a = MatMul(x, w)", "b = Mul(a, regraft_const_2)", "d = Add(b, regraft_const_1)"],
        "f32 d [2,4]",
    );
    let otherwise =
        branch(vec![], &["regraft_b1_0_const_1 = MatMul(x, w)", "e = Mul(regraft_b1_0_const_1, regraft_const_1)"], "f32 e [2,4]");
    let list = vec![node("regraft_matmul_1 = MatMul(x, w)"), choose("k = If(flag)", then, otherwise), node("y = Mul(k, regraft_matmul_1)")];
    let weights = vec![weight("w", &[4, 4]), positive("regraft_const_1", &[4])];
    model(graph(&["f32 x [2,4]", "bool flag []"], weights, list, &["f32 y [2,4]"]))
}

/// Old files define a name inside that also exists outside; inside, the inner one applies. ONNX
/// Runtime does not accept that.
fn shadowed() -> ModelProto {
    let then = branch(vec![positive("h", &[4])], &["a = Mul(x, h)", "b = Mul(a, h)"], "f32 b [2,4]");
    let otherwise = branch(vec![], &["a = Add(x, h)", "b = Relu(a)", "e = Relu(b)"], "f32 e [2,4]");
    let mut list = nodes(&["h = MatMul(x, w)"]);
    list.push(choose("k = If(flag)", then, otherwise));
    list.push(node("y = Add(k, h)"));
    model(graph(&["f32 x [2,4]", "bool flag []"], vec![weight("w", &[4, 4])], list, &["f32 y [2,4]"]))
}

/// A call inside a body, and the called function, stay as they are.
fn local_function() -> ModelProto {
    let then = branch(vec![], &["z = Relu(x)", "a = Relu(z)", "b = local:Twice(a)", "d = Relu(b)", "e = Relu(d)"], "f32 e [2,4]");
    let otherwise = branch(vec![], &["f = local:Twice(x)"], "f32 f [2,4]");
    model(graph(&["f32 x [2,4]", "bool flag []"], vec![], vec![choose("y = If(flag)", then, otherwise)], &["f32 y [2,4]"]))
}

/// One branch returns an outer value unchanged. ONNX Runtime does not accept that; it must survive
/// nonetheless.
fn captured_output() -> ModelProto {
    let then = branch(vec![], &[], "f32 h [2,4]");
    let otherwise = branch(vec![], &["a = Relu(h)", "b = Relu(a)"], "f32 b [2,4]");
    let list = vec![node("h = MatMul(x, w)"), choose("y = If(flag)", then, otherwise)];
    model(graph(&["f32 x [2,4]", "bool flag []"], vec![weight("w", &[4, 4])], list, &["f32 y [2,4]"]))
}

/// Sizes of captured values are symbols, or computed from symbols.
fn dynamic() -> ModelProto {
    let join = |text: &str| int(node(text), "axis", 0);
    let mut list = nodes(&["a = MatMul(d, p)", "b = MatMul(d, q)"]);
    list.extend([int(node("e = Concat(a, b)"), "axis", 1), node("e2 = Relu(e)"), node("e3 = Relu(e2)")]);
    let then = graph(&[], vec![weight("p", &[4, 2]), weight("q", &[4, 2])], list, &["f32 e3 [_,4]"]);
    let otherwise = branch(vec![], &["s = Add(d, d)", "s2 = Add(d, s)"], "f32 s2 [_,4]");
    let list = vec![join("d = Concat(x, x)"), choose("y = If(flag)", then, otherwise)];
    model(graph(&["f32 x [N,4]", "bool flag []"], vec![], list, &["f32 y [_,4]"]))
}

fn repeat(text: &str, inner: GraphProto) -> NodeProto {
    body(node(text), "body", inner)
}

/// Two carried values and a scan output.
fn carried() -> ModelProto {
    let list = nodes(&[
        "go = Identity(c)",
        "a = MatMul(s, w)",
        "b = Mul(a, scale)",
        "d = Add(b, bias)",
        "s2 = Tanh(d)",
        "e = MatMul(s, v)",
        "t2 = Add(t, e)",
        "out = Sigmoid(t2)",
    ]);
    let inner = graph(
        &["i64 i []", "bool c []", "f32 s [2,4]", "f32 t [2,4]"],
        vec![positive("scale", &[4])],
        list,
        &["bool go []", "f32 s2 [2,4]", "f32 t2 [2,4]", "f32 out [2,4]"],
    );
    let weights = vec![ints("n", &[], &[3]), yes("more"), weight("w", &[4, 4]), weight("v", &[4, 4]), weight("bias", &[4])];
    let list = vec![repeat("ys, yt, yo = Loop(n, more, x, x)", inner)];
    model(graph(&["f32 x [2,4]"], weights, list, &["f32 ys [2,4]", "f32 yt [2,4]", "f32 yo [3,2,4]"]))
}

/// The carried value grows, whatever its declaration says.
fn growing() -> ModelProto {
    let mut list = nodes(&["go = Identity(c)", "a = Relu(s)", "b = Relu(a)"]);
    list.push(int(node("s2 = Concat(b, x)"), "axis", 0));
    let inner = graph(&["i64 i []", "bool c []", "f32 s [_,4]"], vec![], list, &["bool go []", "f32 s2 [_,4]"]);
    let weights = vec![ints("n", &[], &[3]), yes("more")];
    model(graph(&["f32 x [N,4]"], weights, vec![repeat("y = Loop(n, more, x)", inner)], &["f32 y [_,4]"]))
}

/// A square and a non-square matrix swap places: only what every iteration preserves may be
/// assumed.
fn alternating() -> ModelProto {
    let list = nodes(&["go = Identity(c)", "a2 = Relu(b)", "b1 = Relu(a)", "b2 = Relu(b1)"]);
    let formals = ["i64 i []", "bool c []", "f32 a [_,_]", "f32 b [_,_]"];
    let inner = graph(&formals, vec![], list, &["bool go []", "f32 a2 [_,_]", "f32 b2 [_,_]"]);
    let weights = vec![ints("n", &[], &[3]), yes("more")];
    let list = vec![node("t = Transpose(x)"), repeat("p, q = Loop(n, more, x, t)", inner)];
    model(graph(&["f32 x [2,4]"], weights, list, &["f32 p [_,_]", "f32 q [_,_]"]))
}

/// A branch inside a loop reads the carried value, a weight outside the loop, and its own.
fn loop_around_if() -> ModelProto {
    let then = branch(vec![positive("k", &[4])], &["a = MatMul(s, w)", "b = Mul(a, k)", "d = Relu(b)"], "f32 d [2,4]");
    let otherwise = branch(vec![], &["e = Relu(s)", "f = Relu(e)"], "f32 f [2,4]");
    let mut list = nodes(&["go = Identity(c)"]);
    list.push(choose("s2 = If(flag)", then, otherwise));
    list.extend(nodes(&["o = Neg(s2)", "o2 = Neg(o)"]));
    let inner = graph(&["i64 i []", "bool c []", "f32 s [2,4]"], vec![], list, &["bool go []", "f32 s2 [2,4]", "f32 o2 [2,4]"]);
    let weights = vec![ints("n", &[], &[2]), yes("more"), weight("w", &[4, 4])];
    let list = vec![repeat("y, z = Loop(n, more, x)", inner)];
    model(graph(&["f32 x [2,4]", "bool flag []"], weights, list, &["f32 y [2,4]", "f32 z [2,2,4]"]))
}

/// A recurrence over slices along an axis other than the first.
fn scan() -> ModelProto {
    let list = nodes(&["a = MatMul(s, w)", "b = MatMul(slice, v)", "d = Add(a, b)", "s2 = Tanh(d)", "o = Relu(s2)", "o2 = Relu(o)"]);
    let inner = graph(&["f32 s [2,4]", "f32 slice [2,3]"], vec![weight("w", &[4, 4])], list, &["f32 s2 [2,4]", "f32 o2 [2,4]"]);
    let mut scan = int(body(node("last, all = Scan(start, x)"), "body", inner), "num_scan_inputs", 1);
    scan.attribute.push(axes("scan_input_axes", 1));
    let mut g =
        graph(&["f32 x [2,5,3]", "f32 start [2,4]"], vec![weight("v", &[3, 4])], vec![scan], &["f32 last [2,4]", "f32 all [5,2,4]"]);
    g.value_info.push(value("f32 nowhere [7]"));
    model(g)
}

fn axes(name: &str, axis: i64) -> regraft_onnx::proto::AttributeProto {
    use regraft_onnx::proto::attribute_proto::AttributeType;
    let kind = AttributeType::Ints as i32;
    regraft_onnx::proto::AttributeProto { name: Some(name.into()), r#type: Some(kind), ints: vec![axis], ..Default::default() }
}
