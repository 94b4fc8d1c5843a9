//! The laws of measured prices, guesses, drift, and the store.

use regraft_cost::{
    Calibration, CostModel, Gain, Measured, NameTable, Observation, Roofline, Signature, Source, Target, Total, describe, fingerprint,
};
use regraft_ir::{Bindings, Graph, NodeId, text};
use regraft_runtime::{NodeProfile, OptimizedGraph, OptimizedNode, Profile, Store};

fn graph(text: &str) -> Graph {
    text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn node(graph: &Graph, name: &str) -> NodeId {
    NameTable::of(graph).value(name).unwrap_or_else(|| panic!("no `{name}`")).node
}

/// A profile in which each named node is one kernel: `name=ns`.
fn profile(graph: &Graph, times: &str) -> Profile {
    let (mut nodes, mut timed) = (Vec::new(), Vec::new());
    for (at, word) in times.split_whitespace().enumerate() {
        let (name, ns) = word.split_once('=').unwrap();
        let op_type = graph.node(node(graph, name)).op.kind().name().to_owned();
        let ns: u64 = ns.parse().unwrap();
        nodes.push(OptimizedNode {
            name: format!("n_{name}"),
            op_type: op_type.clone(),
            domain: String::new(),
            inputs: Vec::new(),
            outputs: vec![name.to_owned()],
            captures: Vec::new(),
            origins: Vec::new(),
        });
        timed.push(NodeProfile {
            name: format!("n_{name}"),
            index: at as u64,
            op_type,
            provider: String::new(),
            samples: vec![ns; 5],
            median_ns: ns as f64,
            q25_ns: ns as f64,
            inputs: Vec::new(),
            outputs: Vec::new(),
        });
    }
    Profile {
        nodes: timed,
        runs: Vec::new(),
        run_median_ns: 0.0,
        run_q25_ns: 0.0,
        resolution_ns: 0,
        graph: Some(OptimizedGraph { nodes, ..OptimizedGraph::default() }),
        inputs: Vec::new(),
    }
}

/// Learns one model alone.
fn learn(measured: &mut Measured, graph: &Graph, times: &str, run_ns: Option<f64>) {
    let names = NameTable::of(graph);
    let profile = profile(graph, times);
    let learned = measured.observe(&[Observation { graph, names: &names, profile: &profile, run_ns }]);
    assert!(learned[0].is_some());
}

const CHAIN: &str = "graph (x: f32[N,64]) {
    const w: f32[64,64]  const c: f32[64]
    cc = Exp(c)
    a = MatMul(x, w)
    b = Add(a, cc)
    d = Relu(b)
    e = MatMul(d, w)
    f = Add(e, cc)
    output f
}";

fn at(n: i64) -> Bindings {
    [("N".to_owned(), n)].into()
}

#[test]
fn prices_are_what_was_measured() {
    let g = graph(CHAIN);
    let mut measured = Measured::new(at(8));
    assert_eq!(measured.known(&g).known, 0);
    learn(&mut measured, &g, "a=4000 b=100 d=50 e=4200 f=120", None);
    assert_eq!((measured.known(&g).known, measured.known(&g).unknown.len()), (5, 0));
    let price = |name| measured.price(&g, node(&g, name));
    assert_eq!([price("a"), price("b"), price("d"), price("e"), price("f")], [4000, 100, 50, 4200, 120]);
    // Inputs, constants and cones of constants.
    assert_eq!([price("x"), price("w"), price("cc")], [0, 0, 0]);
    assert_eq!(measured.quote(&g, node(&g, "cc")).1, Source::Free);
    assert_eq!((measured.total(&g), measured.run_of(&g)), (8470, Some(8470)));
    // Nodes with other sizes are different nodes.
    let mut other = measured.clone();
    other.bindings = at(16);
    assert_eq!(other.known(&g).known, 0);
    assert_eq!(other.run_of(&g), None);
}

#[test]
fn a_price_depends_on_one_hop_only() {
    let g = graph(CHAIN);
    let far = graph(&CHAIN.replace("d = Relu(b)", "d = Tanh(b)"));
    let near = graph(&CHAIN.replace("b = Add(a, cc)", "b = Mul(a, cc)"));
    let signature = |g: &Graph, name: &str| Signature::of(g, &at(8), node(g, name)).to_string();
    assert_eq!(signature(&g, "a"), "MatMul(f32[8,64],c f32[64,64]) | Input.1,c > Add.0");
    assert_eq!(signature(&g, "f"), "Add(f32[8,64],c f32[64]) | MatMul.1,c > out");
    assert_eq!(signature(&far, "a"), signature(&g, "a"));
    assert_ne!(signature(&near, "a"), signature(&g, "a"));
    assert_eq!(Signature::parse(&signature(&g, "f")), Some(Signature::of(&g, &at(8), node(&g, "f"))));
    // The same node again, elsewhere and with other ids.
    let again = graph(&CHAIN.replace("cc = Exp(c)", "cc = Exp(c)\n const unused: f32[3]"));
    let ids = |g: &Graph| g.ids().filter(|id| !g.node(*id).constant).map(|id| Signature::of(g, &at(8), id)).collect::<Vec<_>>();
    assert_eq!(ids(&g), ids(&again));
}

#[test]
fn signatures_print_what_decides_the_speed_only() {
    let text = "graph (x: f32[1,4,8,8]) {
        const w: f32[4,1,3,3]  const two: f32[] = 2  const half: f32[] = 0.5  const s: f32[4,1,1]
        a = Conv(x, w, strides=[2,2], pads=[1,1,1,1], dilations=[1,1], group=4)
        p = Pow(a, two)
        q = Pow(p, half)
        m = Mul(q, half)
        h = HardSigmoid(m, alpha=0.2, beta=0.5)
        r = Reshape(h, shape=[1,4,16])
        y, z = Split(r, axis=1, sizes=[1,3])
        o = opaque:com.example::Thing(y, _, z) -> f32[1,3]
        u = Add(o, o)
        v = opaque:Unknown(u) -> ?
        output v
    }";
    let g = graph(text);
    let core = |name: &str| Signature::of(&g, &Bindings::new(), node(&g, name)).core;
    let conv = "Conv{strides=2,2;pads=1,1,1,1;dilations=1,1;group=4}(f32[1,4,8,8],c f32[4,1,3,3])";
    assert_eq!(core("a"), conv);
    assert_eq!((core("p"), core("q")), ("Pow(f32[1,4,4,4],c f32[]=2.0)".to_owned(), "Pow(f32[1,4,4,4],c f32[]=0.5)".to_owned()));
    assert_eq!(core("m"), "Mul(f32[1,4,4,4],c f32[])");
    assert_eq!(core("h"), "HardSigmoid{alpha=~;beta=~}(f32[1,4,4,4])");
    assert_eq!(core("r"), "Reshape{shape=1,4,16}(f32[1,4,4,4])");
    assert_eq!(core("o"), "com.example.Thing<101>(f32[1,1,16],f32[1,3,16])");
    let split = Signature::of(&g, &Bindings::new(), node(&g, "z"));
    assert_eq!((split.producers.as_str(), split.readers.as_str()), ("Reshape.1", "Opaque.0,Opaque.1"));
    let twice = Signature::of(&g, &Bindings::new(), node(&g, "u"));
    assert_eq!(twice.producers, "Opaque.n,Opaque.n");
    assert!(twice.is_complete());
    // A size without a number: the price holds for this model only.
    let symbolic = graph(CHAIN);
    assert!(!Signature::of(&symbolic, &Bindings::new(), node(&symbolic, "a")).is_complete());
}

#[test]
fn equal_nodes_share_a_price_that_keeps_the_sum() {
    let g = graph("graph (x: f32[64,64]) { a = Neg(x) b = Neg(a) c = Neg(b) d = Neg(c) output d }");
    let mut measured = Measured::default();
    learn(&mut measured, &g, "a=100 b=210 c=290 d=100", None);
    let price = |name| measured.price(&g, node(&g, name));
    assert_eq!((price("b"), price("c"), measured.total(&g)), (250, 250, 700));
    let entry = measured.table().get(&Signature::of(&g, &Bindings::new(), node(&g, "b"))).unwrap();
    assert_eq!((entry.count, entry.spread), (1, 80.0));
}

#[test]
fn the_median_of_sittings_counts() {
    let g = graph("graph (x: f32[64,64]) { a = Neg(x) b = Exp(a) output b }");
    let mut measured = Measured::default();
    // The sum is unchanged, so nothing counts as drift.
    for times in ["a=100 b=900", "a=300 b=700", "a=110 b=890"] {
        learn(&mut measured, &g, times, None);
    }
    assert_eq!(measured.price(&g, node(&g, "a")), 110);
    assert_eq!(measured.table().get(&Signature::of(&g, &Bindings::new(), node(&g, "a"))).unwrap().count, 3);
}

#[test]
fn unknown_contexts_get_the_nearest_known_price() {
    let relu = |producer: &str, reader: &str| {
        graph(&format!("graph (x: f32[64,64]) {{ a = {producer}(x) b = Relu(a) c = {reader}(b) output c }}"))
    };
    let mut measured = Measured::default();
    learn(&mut measured, &relu("Neg", "Exp"), "a=10 b=70 c=10", None);
    learn(&mut measured, &relu("Neg", "Sqrt"), "a=10 b=60 c=10", None);
    learn(&mut measured, &relu("Exp", "Tanh"), "a=10 b=5 c=10", None);
    let quote = |producer, reader| {
        let g = relu(producer, reader);
        measured.quote(&g, node(&g, "b"))
    };
    assert_eq!(quote("Neg", "Exp"), (70, Source::Measured));
    // The same producers; else the same readers; else any.
    assert_eq!(quote("Neg", "Abs"), (60, Source::OtherContext));
    assert_eq!(quote("Sin", "Exp"), (70, Source::OtherContext));
    assert_eq!(quote("Sin", "Abs"), (5, Source::OtherContext));
    let g = relu("Neg", "Abs");
    let known = measured.known(&g);
    assert_eq!((known.known, known.unknown.len()), (1, 2));
}

#[test]
fn guesses_are_below_the_roofline_and_follow_what_was_seen() {
    let small = graph("graph (x: f32[256,256]) { const w: f32[256,256] y = MatMul(x, w) output y }");
    let large = graph("graph (x: f32[512,512]) { const w: f32[512,512] y = MatMul(x, w) output y }");
    let mut measured = Measured::default();
    let (guess, source) = measured.quote(&large, node(&large, "y"));
    let roofline = Roofline::new(Bindings::new()).price(&large, node(&large, "y"));
    assert!(source == Source::Guess && guess < roofline && guess > roofline / 2, "{guess} of {roofline}");
    // At half the default speed, eight times the work.
    let flops = 2.0 * 256f64.powi(3);
    let ns = (flops / 50.0) as u64;
    learn(&mut measured, &small, &format!("y={ns}"), None);
    let (slower, source) = measured.quote(&large, node(&large, "y"));
    assert_eq!(source, Source::Guess);
    assert!(slower > ns * 8 / 2 && slower < ns * 8, "{slower} after {ns}");
    // A second product that is charged next to nothing, as if it were a part of the first, is no
    // measure.
    let two = graph("graph (x: f32[256,256]) { const w: f32[256,256] y = MatMul(x, w) z = MatMul(y, w) output z }");
    learn(&mut measured, &two, &format!("y={ns} z=10"), None);
    assert_eq!(measured.quote(&large, node(&large, "y")).0, slower);
    // Activations after a convolution are part of it.
    let conv = graph(
        "graph (x: f32[1,8,8,8]) { const w: f32[8,8,1,1] c = Conv(x, w, strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1) y = Relu(c) output y }",
    );
    assert_eq!(measured.quote(&conv, node(&conv, "y")), (0, Source::Guess));
}

#[test]
fn drift_of_the_machine_is_taken_out() {
    let g = graph(CHAIN);
    let changed = graph(&CHAIN.replace("d = Relu(b)", "d = Tanh(b)"));
    let mut measured = Measured::new(at(8));
    learn(&mut measured, &g, "a=4000 b=100 d=50 e=4200 f=120", None);
    // The machine runs at half the speed now.
    let names = [NameTable::of(&g), NameTable::of(&changed)];
    let profiles = [profile(&g, "a=8000 b=200 d=100 e=8400 f=240"), profile(&changed, "a=8000 b=200 d=700 e=8400 f=240")];
    let learned = measured.observe(&[
        Observation { graph: &g, names: &names[0], profile: &profiles[0], run_ns: None },
        Observation { graph: &changed, names: &names[1], profile: &profiles[1], run_ns: None },
    ]);
    assert_eq!(learned[1].as_ref().unwrap().drift, 0.5);
    assert_eq!((measured.total(&g), measured.price(&changed, node(&changed, "d"))), (8470, 350));
    assert_eq!(measured.run_of(&changed), Some(8770));
}

#[test]
fn profiles_are_fitted_to_runs_without_profiling() {
    let g = graph("graph (x: f32[64,64]) { a = Neg(x) b = Exp(a) c = Abs(b) d = Sqrt(c) output d }");
    let fit = |times: &str, run: f64| {
        let mut measured = Measured::default();
        learn(&mut measured, &g, times, Some(run));
        assert!((measured.total(&g) as f64 - run).abs() <= 4.0, "{} of {run}", measured.total(&g));
        ["a", "b", "c", "d"].map(|name| measured.price(&g, node(&g, name)))
    };
    // Slightly too little: dispatch of each kernel.
    assert_eq!(fit("a=1000 b=2000 c=3000 d=4000", 14_000.0), [2000, 3000, 4000, 5000]);
    // More than dispatch and a run's overhead explain: in proportion.
    assert_eq!(fit("a=10000 b=20000 c=30000 d=40000", 238_000.0), [22000, 42000, 62000, 82000]);
    // Slightly too much: recording.
    assert_eq!(fit("a=10000 b=20000 c=30000 d=40000", 96_000.0), [9000, 19000, 29000, 39000]);
    // Far too much, and one kernel is long enough to be interrupted.
    assert_eq!(fit("a=100000 b=200000 c=300000 d=10000000", 5_600_000.0), [100_000, 200_000, 300_000, 5_000_000]);
}

#[test]
fn a_model_without_a_run_of_its_own_takes_the_first_fit() {
    let g = graph("graph (x: f32[64,64]) { a = Neg(x) b = Exp(a) output b }");
    let h = graph("graph (x: f32[64,64]) { a = Neg(x) b = Abs(a) output b }");
    let mut measured = Measured::default();
    let names = [NameTable::of(&g), NameTable::of(&h)];
    let profiles = [profile(&g, "a=1000 b=2000"), profile(&h, "a=1000 b=500")];
    measured.observe(&[
        Observation { graph: &g, names: &names[0], profile: &profiles[0], run_ns: Some(4000.0) },
        Observation { graph: &h, names: &names[1], profile: &profiles[1], run_ns: None },
    ]);
    assert_eq!((measured.price(&g, node(&g, "b")), measured.price(&h, node(&h, "b"))), (2500, 1000));
}

fn target() -> Target {
    Target { machine: "m".to_owned(), runtime: "r 1".to_owned(), threads: 1 }
}

#[test]
fn the_store_gives_back_what_was_learned() {
    let g = graph(CHAIN);
    let mut store = Store::in_memory().unwrap();
    let mut measured = Measured::new(at(8));
    learn(&mut measured, &g, "a=4000 b=100 d=50 e=4200 f=120", Some(40_000.0));
    assert_eq!(measured.save(&mut store, &target()).unwrap(), 5);
    assert_eq!(measured.save(&mut store, &target()).unwrap(), 0);
    let mut loaded = Measured::load(at(8), &store, &target()).unwrap();
    loaded.expect_model(&g);
    assert_eq!((loaded.total(&g), loaded.run_of(&g)), (measured.total(&g), measured.run_of(&g)));
    assert_eq!((loaded.known(&g), loaded.overhead()), (measured.known(&g), measured.overhead()));
    assert!(loaded.overhead() > 0);
    let (new, old) = (loaded.machine(), measured.machine());
    assert!((new.dense / old.dense - 1.0).abs() < 1e-3, "{new:?} {old:?}");
    // Another target knows nothing.
    let elsewhere = Measured::load(at(8), &store, &Target { threads: 2, ..target() }).unwrap();
    assert_eq!((elsewhere.known(&g).known, elsewhere.run_of(&g)), (0, None));
    // Loaded prices weigh as much as observed ones.
    learn(&mut loaded, &g, "a=4000 b=100 d=50 e=4200 f=120", Some(40_000.0));
    assert_eq!(loaded.total(&g), measured.total(&g));
    assert_eq!(loaded.save(&mut store, &target()).unwrap(), 5);
    assert_eq!(store.get(&target().key(Signature::of(&g, &at(8), node(&g, "d")).to_string())).unwrap().unwrap().samples, 2);
}

#[test]
fn frozen_stores_are_only_read_and_local_prices_never_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("costs.sqlite");
    let g = graph(CHAIN);
    // Sizes are unbound: the prices are valid within this model, and are not stored.
    let mut local = Measured::new(Bindings::new());
    learn(&mut local, &g, "a=4000 b=100 d=50 e=4200 f=120", None);
    assert_eq!((local.total(&g), local.save(&mut Store::open(&path).unwrap(), &target()).unwrap()), (8470, 0));
    let mut frozen = Store::open_frozen(&path).unwrap();
    let mut measured = Measured::load(at(8), &frozen, &target()).unwrap();
    learn(&mut measured, &g, "a=4000 b=100 d=50 e=4200 f=120", None);
    assert_eq!(measured.save(&mut frozen, &target()).unwrap(), 0);
    assert_eq!(Measured::load(at(8), &frozen, &target()).unwrap().known(&g).known, 0);
}

#[test]
fn fingerprints_know_structure_and_sizes_but_no_weights() {
    let g = graph(CHAIN);
    let print = |text: &str, n| fingerprint(&graph(text), &at(n));
    assert_eq!(fingerprint(&g, &at(8)), print(&CHAIN.replace("const c: f32[64]", "const c: f32[64] = 3"), 8));
    assert_ne!(fingerprint(&g, &at(8)), fingerprint(&g, &at(9)));
    assert_ne!(fingerprint(&g, &at(8)), print(&CHAIN.replace("f = Add(e, cc)", "f = Add(e, d)"), 8));
    assert_ne!(fingerprint(&g, &at(8)), print(&CHAIN.replace("output f", "output f, d"), 8));
}

#[test]
fn reports() {
    let g = graph(CHAIN);
    let mut measured = Measured::new(at(8));
    learn(&mut measured, &g, "a=4000 b=100 d=50 e=4200 f=120", None);
    let rows = describe(&measured, &g, 2);
    assert_eq!(
        rows.iter().map(|r| (r.name.as_str(), r.ns, r.per_mille, r.count)).collect::<Vec<_>>(),
        [("e", 4200, 495, 1), ("a", 4000, 472, 1)]
    );
    assert_eq!(rows[0].signature, Signature::of(&g, &at(8), node(&g, "e")).to_string());
    let total = |predicted, measured| Total { model: String::new(), predicted, measured };
    let gain = |after, measured| Gain { model: String::new(), predicted_before: 100.0, predicted_after: after, measured };
    let calibration = Calibration {
        totals: vec![total(90.0, 100.0), total(104.0, 100.0), total(130.0, 100.0)],
        gains: vec![gain(80.0, 1.22), gain(50.0, 1.8)],
    };
    assert!((calibration.median_error().unwrap() - 0.1).abs() < 1e-9);
    assert_eq!((calibration.totals_within(0.05), calibration.gains_within(5.0), Calibration::default().median_error()), (1, 1, None));
}
