//! Attribution on artificial optimized graphs, one per way in which a runtime fuses, renames or
//! reorders.

use regraft_cost::{Attribution, NameTable};
use regraft_ir::{Bindings, Graph, text};
use regraft_onnx::proto::{GraphProto, ModelProto, NodeProto};
use regraft_runtime::{NodeProfile, OptimizedGraph, OptimizedNode, Profile};

/// A graph where every named value `y` is produced by the node `n_y`.
fn graph(text: &str) -> (Graph, NameTable) {
    let graph = text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let named = |id| graph.node(id).names.iter().flatten().map(ToString::to_string).collect::<Vec<_>>();
    let nodes = graph.ids().filter(|id| !graph.node(*id).inputs.is_empty()).map(|id| {
        let output = named(id);
        NodeProto { name: output.first().map(|n| format!("n_{n}")), output, ..NodeProto::default() }
    });
    let proto = ModelProto { graph: Some(GraphProto { node: nodes.collect(), ..GraphProto::default() }), ..ModelProto::default() };
    let names = NameTable::of(&graph).with_nodes_of(&proto);
    (graph, names)
}

/// An optimized graph and its times: lines `operator name: inputs -> outputs @ ns` (`@ -` if it did
/// not run), and what it was made from after `<`.
fn profile(text: &str) -> Profile {
    let (mut nodes, mut times) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().map(str::trim).filter(|l| !l.is_empty()).enumerate() {
        let (head, rest) = line.split_once(": ").expect(line);
        let (edges, ns) = rest.split_once(" @ ").expect(line);
        let (ns, origins) = ns.split_once(" < ").unwrap_or((ns, ""));
        let (inputs, outputs) = edges.split_once("->").expect(line);
        let (op_type, name) = head.split_once(' ').unwrap_or((head, ""));
        let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if let Ok(ns) = ns.parse::<u64>() {
            times.push(node_profile(name, at, op_type, ns));
        }
        let (inputs, outputs) = (words(inputs), words(outputs));
        nodes.push(OptimizedNode {
            name: name.to_owned(),
            op_type: op_type.to_owned(),
            domain: String::new(),
            inputs,
            outputs,
            captures: Vec::new(),
            origins: words(origins),
        });
    }
    let graph = OptimizedGraph { nodes, ..OptimizedGraph::default() };
    Profile {
        nodes: times,
        runs: Vec::new(),
        run_median_ns: 0.0,
        run_q25_ns: 0.0,
        resolution_ns: 0,
        graph: Some(graph),
        inputs: Vec::new(),
    }
}

fn node_profile(name: &str, index: usize, op_type: &str, ns: u64) -> NodeProfile {
    NodeProfile {
        name: name.to_owned(),
        index: index as u64,
        op_type: op_type.to_owned(),
        provider: String::new(),
        samples: vec![ns; 4],
        median_ns: ns as f64,
        q25_ns: ns as f64,
        inputs: Vec::new(),
        outputs: Vec::new(),
    }
}

/// Checks who is charged: `value=ns` for every charged node, and what is left over.
fn check(graph_text: &str, optimized: &str, expected: &str, unattributed: f64) {
    let (graph, names) = graph(graph_text);
    let profile = profile(optimized);
    let found = Attribution::of(&graph, &Bindings::new(), &names, &profile).expect("there is a graph");
    let charged: Vec<String> = graph
        .ids()
        .filter(|id| found.nodes[id.0 as usize] != 0.0)
        .map(|id| format!("{}={}", graph.node(id).names[0].as_deref().unwrap_or("?"), found.nodes[id.0 as usize]))
        .collect();
    assert_eq!(charged.join(" "), expected, "{optimized}");
    assert_eq!(found.unattributed, unattributed, "{optimized}");
    let all: f64 = profile.nodes.iter().map(|n| n.q25_ns).sum();
    assert!((found.total() - all).abs() < 1e-6, "{} of {all}", found.total());
}

const RESIDUAL: &str = "graph (x: f32[1,16,8,8]) {
    const w: f32[16,16,3,3]  const s: f32[16]  const b: f32[16]  const m: f32[16]  const v: f32[16]
    a = Conv(x, w, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
    r = Relu(a)
    c = Conv(r, w, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
    n = BatchNormalization(c, s, b, m, v, epsilon=0.001)
    t = Add(n, x)
    y = Relu(t)
    z = Conv(y, w, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
    output z
}";

#[test]
fn activations_norms_and_residuals_in_blocked_layout() {
    // The first names the value after the activation; the second the norm, though it also adds and
    // activates.
    let optimized = "Conv r_nchwc: x reorder -> token_0 @ 5000
        ReorderInput ReorderInput: x -> token_1 @ 300
        Conv n_nchwc: token_0 reorder_2 fused_bias token_1 -> token_2 @ 6000
        Conv z_nchwc: token_2 reorder_3 -> token_3 @ 5500
        ReorderOutput ReorderOutput_token_9: token_3 -> z @ 200";
    check(RESIDUAL, optimized, "a=5000 c=6300 z=5700", 0.0);
}

#[test]
fn what_a_node_was_made_from() {
    // As OpenVINO tells it: names of its own, and what is behind them. The sum was fused into the
    // second convolution, and the first one reads the image in another layout.
    let optimized = "Reorder x_abcd_acdb_k1: x -> x_abcd_acdb_k1 @ 300
        Conv k1: x_abcd_acdb_k1 w -> r @ 5000 < a r
        Conv k2: r w x -> y @ 6000 < c n t y
        Conv k3: y w -> z @ 5500 < z";
    check(RESIDUAL, optimized, "a=5300 c=6000 z=5500", 0.0);
}

#[test]
fn recurrent_layers_whose_names_went_to_what_follows() {
    // As OpenVINO tells it: what removes the axis of directions bears the names.
    let text = "graph (x: f32[2,9,5]) {
        const w: f32[1,6,5]  const r: f32[1,6,2]  const v: f32[1,6,2]
        t = Transpose(x, perm=[1,0,2])
        a, b = GRU(t, w, r, direction=\"forward\", activations=[\"Sigmoid\", \"Tanh\"], alphas=[], betas=[], optional=[], linear_before_reset=false)
        q = Squeeze(a, axes=[1])
        u = Transpose(q, perm=[1,0,2])
        o = Transpose(u, perm=[1,0,2])
        c, d = GRU(o, v, r, direction=\"forward\", activations=[\"Sigmoid\", \"Tanh\"], alphas=[], betas=[], optional=[], linear_before_reset=false)
        output c
    }";
    let optimized = "GRUSequence GRUSequence_3: x w r -> GRUSequence_3 @ 700
        Reshape Transpose_5: GRUSequence_3 -> Transpose_5 @ - < q a
        GRUSequence GRUSequence_8: Transpose_5 v r -> GRUSequence_8 @ 600
        Reshape GRUSequence_8_abc: GRUSequence_8 -> c @ -";
    check(text, optimized, "a=700 c=600", 0.0);
}

#[test]
fn nothing_fused() {
    let optimized = "Conv n_a: x w -> a @ 5000
        Relu n_r: a -> r @ 100
        Conv n_c: r w -> c @ 6000
        BatchNormalization n_n: c s b m v -> n @ 200
        Add n_t: n x -> t @ 300
        Relu n_y: t -> y @ 100
        Conv n_z: y w -> z @ 7000";
    check(RESIDUAL, optimized, "a=5000 r=100 c=6000 n=200 t=300 y=100 z=7000", 0.0);
}

#[test]
fn unnamed_nodes_are_found_by_what_they_read() {
    let optimized = "Conv: x w -> t0 @ 5000
        Conv: t0 w -> t1 @ 6000
        FusedAdd: t1 x -> t2 @ 50
        Conv: t2 w -> z @ 7000";
    check(RESIDUAL, optimized, "a=5000 c=6000 t=50 z=7000", 0.0);
}

#[test]
fn norms_and_scales_as_depthwise_convolutions() {
    let text = "graph (x: f32[1,16,8,8]) {
        const s: f32[16]  const b: f32[16]  const m: f32[16]  const v: f32[16]  const k: f32[16,1,1]
        n = BatchNormalization(x, s, b, m, v, epsilon=0.001)
        f = Mul(n, k)
        g = Add(f, k)
        output g
    }";
    let optimized = "ReorderInput ReorderInput: x -> t9 @ 20
        Conv n_bn_nchwc: t9 bn_scale bn_B -> t0 @ 400
        Conv f_mul_nchwc_token_17: t0 mul_scale -> t1 @ 300
        ReorderOutput ReorderOutput: t1 -> f @ 30
        Add n_g: f k -> g @ 100";
    check(text, optimized, "n=420 f=330 g=100", 0.0);
}

#[test]
fn a_reorder_is_shared_by_its_readers() {
    let text = "graph (x: f32[1,16,8,8]) {
        const w: f32[16,16,1,1]  const u: f32[16,16,3,3]
        h = Sigmoid(x)
        a = Conv(h, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        c = Conv(h, u, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
        y = Concat(a, c, axis=1)
        output y
    }";
    let optimized = "Sigmoid n_h: x -> h @ 700
        ReorderInput ReorderInput: h -> t0 @ 100
        Conv a_nchwc: t0 w -> t1 @ 1000
        Conv c_nchwc: t0 u -> t2 @ 9000
        Concat n_y: t1 t2 -> t3 @ 80
        ReorderOutput ReorderOutput: t3 -> y @ 60";
    check(text, optimized, "h=700 a=1050 c=9050 y=140", 0.0);
}

#[test]
fn blocked_concat_keeps_only_its_node_name() {
    let text = "graph (x: f32[1,16,8,8]) {
        const w: f32[16,16,1,1]
        a = Conv(x, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        c = Conv(x, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        y = Concat(a, c, axis=1)
        z = MaxPool(y, kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], ceil_mode=false)
        output z
    }";
    // The two convolutions are one: the other's weight must not draw the time of the concatenation.
    let optimized = "Conv a_nchwc: x w -> t1 @ 1000
        Concat n_y: t1 t1 -> t3 @ 80
        MaxPool z_nchwc: t3 -> t4 @ 90
        ReorderOutput ReorderOutput: t4 -> z @ 10";
    check(text, optimized, "a=1000 y=80 z=100", 0.0);
}

#[test]
fn fused_convolution_outside_blocked_layout() {
    let text = "graph (x: f32[1,6,1,1]) {
        const w: f32[5,6,1,1]
        a = Conv(x, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        h = HardSigmoid(a, alpha=0.2, beta=0.5)
        output h
    }";
    check(text, "FusedConv n_a: x w -> h @ 40", "a=40", 0.0);
}

const NORM: &str = "graph (x: f32[1,8,32], u: f32[1,8,32]) {
    const two: f32[] = 2  const e: f32[] = 0.00001  const g: f32[32]  const b: f32[32]  const w: f32[32,32]
    r = Add(x, u)
    mean = ReduceMean(r, axes=[2], keepdims=true)
    d = Sub(r, mean)
    sq = Pow(d, two)
    var = ReduceMean(sq, axes=[2], keepdims=true)
    ve = Add(var, e)
    sd = Sqrt(ve)
    q = Div(d, sd)
    k = Mul(q, g)
    y = Add(k, b)
    p = MatMul(y, w)
    s = Add(p, r)
    output s
}";

#[test]
fn layer_norm_from_nine_nodes() {
    let optimized = "Add n_r: x u -> r @ 50
        LayerNormalization n_k/LayerNormFusion/: r g b -> y @ 500
        MatMul n_p: y w -> p @ 900
        Add n_s: p r -> s @ 60";
    let (graph, names) = graph(NORM);
    let found = Attribution::of(&graph, &Bindings::new(), &names, &profile(optimized)).unwrap();
    // Which of the nine is charged depends on their work; it must be a single one.
    let of = |name: &str| found.nodes[names.value(name).unwrap().node.0 as usize];
    let parts = ["mean", "d", "sq", "var", "ve", "sd", "q", "k", "y"].map(of);
    assert_eq!(parts.iter().sum::<f64>(), 500.0);
    assert_eq!(parts.iter().filter(|ns| **ns > 0.0).count(), 1);
    assert_eq!((of("r"), of("p"), of("s")), (50.0, 900.0, 60.0));
}

#[test]
fn skip_layer_norm_takes_the_sum_too() {
    let optimized = "SkipLayerNormalization SkipLayerNormalization_token_4: x u g b -> y   r @ 600
        Reshape gemm_input_reshape: y shape -> t0 @ 5
        Gemm n_p/MatMulAddFusion: t0 w -> t1 @ 900
        Reshape gemm_output_reshape: t1 shape -> p @ 6
        Add n_s: p r -> s @ 60";
    let (graph, names) = graph(NORM);
    let found = Attribution::of(&graph, &Bindings::new(), &names, &profile(optimized)).unwrap();
    let of = |name: &str| found.nodes[names.value(name).unwrap().node.0 as usize];
    let norm: f64 = ["r", "mean", "d", "sq", "var", "ve", "sd", "q", "k", "y"].map(of).iter().sum();
    // The reshape before the product belongs to the node before it.
    assert_eq!((norm, of("p"), of("s")), (605.0, 906.0, 60.0));
    assert_eq!(found.unattributed, 0.0);
}

#[test]
fn activations_that_keep_only_a_fused_name() {
    let text = "graph (x: f32[1,16,8,8]) {
        const w: f32[16,16,1,1]  const k: f32[] = 1.5
        a = Conv(x, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        m = Mul(a, k)
        g = Sigmoid(m)
        y = Mul(a, g)
        z = Conv(y, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1)
        output z
    }";
    let optimized = "Conv a_nchwc: x w -> t0 @ 1000
        QuickGelu n_y/QuickGeluFusion/: t0 -> t1 @ 70
        Conv z_nchwc: t1 w -> t2 @ 1100
        ReorderOutput ReorderOutput: t2 -> z @ 10";
    check(text, optimized, "a=1000 g=70 z=1110", 0.0);
    // The same without names: the first node that nothing stands for.
    let nameless = optimized.replace("n_y/QuickGeluFusion/", "fused");
    check(text, &nameless, "a=1000 m=70 z=1110", 0.0);
}

#[test]
fn products_with_a_folded_transposition() {
    let text = "graph (q: f32[4,8,16], k: f32[4,8,16]) {
        const c: f32[] = 0.25
        t = Transpose(k, perm=[0,2,1])
        p = MatMul(q, t)
        s = Mul(p, c)
        y = Softmax(s, axis=2)
        output y
    }";
    let optimized = "FusedMatMul n_p/MatmulTransposeFusion/: q k -> s @ 800
        Softmax n_y: s -> y @ 200";
    check(text, optimized, "p=800 y=200", 0.0);
}

#[test]
fn inserted_moves_follow_their_neighbours() {
    let text = "graph (x: f32[1,4,6]) {
        a = Exp(x)
        t = Transpose(a, perm=[0,2,1])
        y = Neg(t)
        output y
    }";
    // The optimizer moved the transposition below the negation.
    let optimized = "Exp n_a: x -> a @ 30
        Neg n_y: a -> moved @ 20
        Transpose Transpose_token_3: moved -> y @ 10";
    check(text, optimized, "a=30 y=30", 0.0);
}

#[test]
fn halves_in_single_precision_and_functions_written_out() {
    let text = "graph (x: f16[1,16,8,8]) {
        const w: f16[16,16,3,3]
        c = Conv(x, w, strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1)
        l = LeakyRelu(c, alpha=0.1)
        y = Add(l, l)
        output y
    }";
    // No kernel takes halves, so all is kept in single precision; the activation is written out
    // first.
    let optimized = "Cast InsertedPrecisionFreeCast_x: x -> InsertedPrecisionFreeCast_x @ 50
        Conv InsertedPrecisionFreeCast_c_nchwc: InsertedPrecisionFreeCast_x reorder -> token_1 @ 5000
        ReorderOutput ReorderOutput: token_1 -> InsertedPrecisionFreeCast_c @ 200
        Mul: _inlfunc_LeakyRelu_Alpha InsertedPrecisionFreeCast_c -> InsertedPrecisionFreeCast__inlfunc_LeakyRelu_AlphaMulX @ 100
        Less: InsertedPrecisionFreeCast_c _inlfunc_LeakyRelu_Zero -> _inlfunc_LeakyRelu_XLessThanZero @ 110
        Where: _inlfunc_LeakyRelu_XLessThanZero InsertedPrecisionFreeCast__inlfunc_LeakyRelu_AlphaMulX InsertedPrecisionFreeCast_c -> InsertedPrecisionFreeCast_l @ 900
        Add: InsertedPrecisionFreeCast_l InsertedPrecisionFreeCast_l -> InsertedPrecisionFreeCast_y @ 70
        Cast InsertedPrecisionFreeCast_y: InsertedPrecisionFreeCast_y -> y @ 40";
    check(text, optimized, "c=5250 l=1110 y=110", 0.0);
}

#[test]
fn constant_cones_and_nodes_that_did_not_run_cost_nothing() {
    let text = "graph (x: f32[4]) { const c: f32[4] d = Exp(c) y = Add(x, d) z = Identity(y) output z }";
    check(text, "Add n_y: x d -> z @ 25", "y=25", 0.0);
    check(text, "Add n_y: x d -> y @ 25\nIdentity n_z: y -> z @ -", "y=25", 0.0);
}

#[test]
fn what_cannot_be_located_is_reported() {
    let text = "graph (x: f32[4]) { y = Neg(x) output y }";
    check(text, "Neg n_y: x -> y @ 25\nNoOp stray: -> nowhere @ 75", "y=25", 75.0);
}

#[test]
fn bodies_of_loops_are_within_their_loop() {
    let text = "graph (x: f32[4]) { y = opaque:Loop(x) -> f32[4] output y }";
    let (graph, names) = graph(text);
    let mut profile = profile("Loop n_y: x -> y @ 1000");
    profile.nodes.push(node_profile("inner", 7, "Mul", 900));
    let found = Attribution::of(&graph, &Bindings::new(), &names, &profile).unwrap();
    assert_eq!((found.attributed(), found.unattributed), (1000.0, 0.0));
}

#[test]
fn profile_without_a_graph_is_no_attribution() {
    let (graph, names) = graph("graph (x: f32[4]) { y = Neg(x) output y }");
    let profile = Profile { graph: None, ..profile("Neg n_y: x -> y @ 25") };
    assert_eq!(Attribution::of(&graph, &Bindings::new(), &names, &profile), None);
}
