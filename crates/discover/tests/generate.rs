//! Small specifications, from text to candidates.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use regraft_discover::{
    Candidate, DiscoverError, Enumerated, Observer, Options, Part, Settings, Shard, Spec, Tables, Unobserved, enumerate, finish,
};
use regraft_ir::eval::{NoOpaque, run};
use regraft_ir::{Bindings, Graph, Op, Tensor, Value};

/// Dense layers: sums, products, splits, concatenations.
const DENSE: &str = "
    (sizes m k)
    (assignment (m 4) (k 5))
    (assignment (m 6) (k 3))
    (variable (x1 x2) m k)
    (weight (w1 w2) k k)
    (variable s0)
    (operator relu (?a) (when (tensor ?a)) (is (relu ?a)))
    (operator add (?a ?b) commutative (when (same-shape ?a ?b) (distinct ?a ?b)) (is (add ?a ?b)))
    (operator smul (?a ?s) (when (tensor ?a) (variable ?s) (sizes ?s)) (is (mul ?a ?s)))
    (operator matmul (?a ?b) (when (rank ?a 2) (rank ?b 2) (distinct ?a ?b)) (is (matmul ?a ?b)))
    (operator transpose (?a) (when (rank ?a 2)) (is (transpose ?a :perm (1 0))))
    (operator concat1 (?a ?b) (when (rank ?a 2) (rank ?b 2) (distinct ?a ?b)) (is (concat ?a ?b :axis 1)))
    (operator split1 (?a) (when (rank ?a 2)) (cut ?p ?a 1)
      (is (slice ?a :axes (1) :starts (0) :ends (?p) :steps (1))
          (slice ?a :axes (1) :starts (?p) :ends ((dim ?a 1)) :steps (1))))";

fn spec(text: &str) -> Spec {
    Spec::parse("test.spec", text).unwrap_or_else(|e| panic!("{e}"))
}

fn settings(work: &Path, size: usize) -> Settings<'_> {
    Settings { size, threads: 2, memory: 256 << 20, seed: 0, shard: Shard::WHOLE, work, checkpoint: false }
}

fn enumerated(spec: &Spec, settings: &Settings<'_>) -> (Tables, Enumerated) {
    let tables = Tables::new(spec, settings, &mut Unobserved).unwrap_or_else(|e| panic!("{e}"));
    let found = enumerate(spec, &tables, settings, &mut Unobserved).unwrap_or_else(|e| panic!("{e}"));
    (tables, found)
}

fn candidates(spec: &Spec, tables: &Tables, found: &Enumerated) -> Vec<Candidate> {
    let options = Options { seed: 0, threads: 2, derive: true };
    finish(spec, tables, &found.pairs, options, &mut Unobserved).unwrap_or_else(|e| panic!("{e}")).candidates
}

fn found(spec: &Spec, size: usize) -> Vec<Candidate> {
    let folder = tempfile::tempdir().unwrap();
    let (tables, found) = enumerated(spec, &settings(folder.path(), size));
    candidates(spec, &tables, &found)
}

/// Sides as text, each pair in one order.
fn sides(spec: &Spec, candidate: &Candidate) -> [String; 2] {
    let text = candidate.text(spec, 0);
    let side = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("({name} "))).unwrap_or_default();
        line.strip_suffix(if name == "right" { "))" } else { ")" }).unwrap_or_default().to_string()
    };
    let mut sides = [side("left"), side("right")];
    sides.sort();
    sides
}

#[test]
fn graphs_are_met_once_each() {
    // Over two functions of one variable, a graph of n operators is a binary tree of n + 1 nodes:
    // Catalan numbers. Counting all orders: increasing binary trees, factorials.
    let spec = spec("(sizes m) (assignment (m 30)) (variable x m) (operator f (?a) (is (exp ?a))) (operator g (?a) (is (tanh ?a)))");
    let folder = tempfile::tempdir().unwrap();
    for (size, graphs, orders) in [(1, 2, 2), (2, 2 + 5, 2 + 6), (3, 2 + 5 + 14, 2 + 6 + 24), (4, 2 + 5 + 14 + 42, 2 + 6 + 24 + 120)] {
        let (_, found) = enumerated(&spec, &settings(folder.path(), size));
        assert_eq!((found.size.graphs, found.size.orders, found.tally.pairs), (graphs, orders, 0), "{size} operators");
    }
}

#[test]
fn known_laws_are_found() {
    let spec = spec(DENSE);
    let found: BTreeSet<[String; 2]> = found(&spec, 3).iter().map(|c| sides(&spec, c)).collect();
    for law in [
        ["(relu (relu x1))", "(relu x1)"],
        ["(transpose (transpose x1))", "x1"],
        ["(matmul (matmul x1 w1) w2)", "(matmul x1 (matmul w1 w2))"],
        ["(add (matmul x1 w1) (matmul x2 w1))", "(matmul (add x1 x2) w1)"],
        ["(add (matmul x1 w1) (matmul x1 w2))", "(matmul x1 (add w1 w2))"],
        ["(matmul (transpose w1) (transpose x1))", "(transpose (matmul x1 w1))"],
        ["(out 0 (split1 :at k (concat1 x1 x2))) (out 1 (split1 :at k (concat1 x1 x2)))", "x1 x2"],
        ["(concat1 (matmul x1 w1) (matmul x1 w2))", "(matmul x1 (concat1 w1 w2))"],
        [
            "(matmul x1 w1) (matmul x1 w2)",
            "(out 0 (split1 :at k (matmul x1 (concat1 w1 w2)))) (out 1 (split1 :at k (matmul x1 (concat1 w1 w2))))",
        ],
    ] {
        let mut law = law.map(str::to_string);
        law.sort();
        assert!(found.contains(&law), "{law:?} is not among\n{found:#?}");
    }
}

#[test]
fn what_holds_at_one_size_only_is_dropped() {
    let pool = |first: &str| {
        let text = format!(
            "(sizes c h w) (assignment {first}) (assignment (c 3) (h 4) (w 5)) (variable i 2 c h w)
             (operator pool (?a) (is (max-pool ?a :kernel (3 3) :strides (1 1) :pads (1 1 1 1) :dilations (1 1) :ceil_mode false)))"
        );
        let spec = spec(&text);
        let folder = tempfile::tempdir().unwrap();
        let (tables, found) = enumerated(&spec, &settings(folder.path(), 2));
        (found.tally.pairs, found.tally.generic, candidates(&spec, &tables, &found).len())
    };
    // The maximum of a plane of one element is the element. In a small one, twice is as often as
    // three times, but not as once.
    assert_eq!(pool("(c 20) (h 1) (w 1)"), (2, 0, 0));
    assert_eq!(pool("(c 5) (h 3) (w 5)"), (0, 0, 0));
}

#[test]
fn candidates_hold_for_real_numbers_and_are_read_back() {
    let spec = spec(DENSE);
    let found = found(&spec, 3);
    assert!(found.len() > 30, "{} candidates", found.len());
    let text: String = found.iter().enumerate().map(|(at, c)| c.text(&spec, at)).collect();
    assert_eq!(Candidate::parse(&spec, "t.pairs", &text).unwrap_or_else(|e| panic!("{e}")), found);
    let sizes = Bindings::from([("m".to_string(), 2), ("k".to_string(), 3)]);
    found.iter().for_each(|candidate| assert_holds(&spec, candidate, &sizes));
}

/// Asserts that both sides give the same doubles, up to rounding.
fn assert_holds(spec: &Spec, candidate: &Candidate, sizes: &Bindings) {
    let text = || candidate.text(spec, 0);
    let graphs = candidate.graphs(spec).unwrap_or_else(|e| panic!("{e}: {}", text()));
    let [left, right] = graphs.each_ref().map(|graph| results(graph, sizes));
    assert_eq!(left.len(), right.len());
    for (l, r) in left.iter().zip(&right) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        assert!(l.shape == r.shape && l.data.iter().zip(&r.data).all(close), "{}\n{l:?}\n{r:?}", text());
    }
}

/// Outputs for made-up inputs, in double precision.
fn results(graph: &Graph, sizes: &Bindings) -> Vec<Tensor<f64>> {
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape = input.ty.bind(sizes).unwrap();
        let start = input.name.bytes().fold(7u64, |n, b| n * 31 + u64::from(b));
        let number = |at: usize| ((start + at as u64 * 7919) % 1013) as f64 / 500.0 - 1.0;
        let data = (0..shape.iter().product()).map(number).collect();
        feeds.insert(input.name.to_string(), Value::real(Tensor::new(shape, data)));
    }
    let values = run::<f64>(graph, &feeds, &mut NoOpaque).unwrap_or_else(|e| panic!("{e}"));
    values.into_iter().map(|v| if let Value::Real(t) = v { t.as_ref().clone() } else { panic!("not real") }).collect()
}

#[test]
fn disk_shards_and_threads_make_no_difference() {
    let spec = spec(DENSE);
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path();
    let (tables, whole) = enumerated(&spec, &settings(work, 3));
    assert_eq!(whole.spilled, 0);
    let expected = candidates(&spec, &tables, &whole);

    let small = Settings { memory: 24 << 20, threads: 1, ..settings(work, 3) };
    let room = whole.records * 40;
    let tiny = Settings { memory: room.max(16 << 20), ..small };
    let (_, spilled) = enumerated(&spec, &Settings { checkpoint: true, ..tiny });
    assert!(spilled.spilled > 0);
    assert_eq!((spilled.tally, candidates(&spec, &tables, &spilled)), (whole.tally, expected.clone()));

    let parts: Vec<Part> = [2, 0, 1]
        .map(|index| {
            let settings = Settings { shard: Shard { index, count: 3 }, ..settings(work, 3) };
            let (_, found) = enumerated(&spec, &settings);
            Part::parse(&Part { identity: settings.identity(&spec), found }.text()).unwrap()
        })
        .into();
    let merged = Part::merge(parts).unwrap().found;
    assert_eq!((merged.tally, candidates(&spec, &tables, &merged)), (whole.tally, expected));
}

/// Stops after some steps.
struct Impatient(usize);

impl Observer for Impatient {
    fn step(&mut self, phase: &str, _: &str) {
        self.0 = self.0.saturating_sub(usize::from(phase == "keep" || phase == "judge"));
    }

    fn interrupted(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn an_interrupted_enumeration_goes_on() {
    let weights: String = (0..48).map(|n| format!(" (operator f{n} (?a) (is (mul ?a (scalar {}))))", n + 2)).collect();
    let spec = spec(&format!("(sizes m) (assignment (m 9)) (variable x m){weights}"));
    let (plain, interrupted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tables, whole) = enumerated(&spec, &settings(plain.path(), 2));
    assert!(whole.tally.pairs > 500, "{:?}", whole.tally);
    let settings = Settings { checkpoint: true, ..settings(interrupted.path(), 2) };
    for patience in [2, 1] {
        let stopped = enumerate(&spec, &tables, &settings, &mut Impatient(patience));
        assert!(matches!(stopped, Err(DiscoverError::Interrupted)), "{stopped:?}");
    }
    std::fs::write(interrupted.path().join("run-00099"), b"left behind by a process that was killed").unwrap();
    let resumed = enumerate(&spec, &tables, &settings, &mut Unobserved).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((resumed.tally, &resumed.pairs), (whole.tally, &whole.pairs));
    let other = Settings { seed: 1, ..settings };
    assert!(matches!(enumerate(&spec, &tables, &other, &mut Unobserved), Err(DiscoverError::State { .. })));
}

#[test]
fn mistakes_in_specifications_have_their_place() {
    for (text, place, message) in [
        ("(sizes m)\n(variable x n)", "2:13", "`n` is no size"),
        ("(sizes m)\n(assignment (n 3))", "2:13", "`(n 3)` is no value of a size"),
        ("(sizes m k)\n(assignment (m 3))", "2:1", "size `k` has no value"),
        ("(sizes m) (assignment (m 3)) (variable x m)", "1:1", "needs an `(operator ..)`"),
        ("(operator f (?a) (is (rleu ?a)))", "1:22", "no operator `rleu`"),
        ("(operator f (?a) (is (relu ?b)))", "1:28", "`?b` is no operand"),
        ("(operator f (?a) (is (transpose ?a :prem (1 0))))", "1:36", "no attribute `prem`"),
        ("(operator f (?a) (when (square ?a)) (is ?a))", "1:24", "no condition"),
        ("(operator f (?a))", "1:1", "computes nothing"),
        ("(define (twice a) (add a a))\n(operator f (?a) (is (twice ?a ?a)))", "2:22", "a use with 2 arguments"),
        ("(oprator f)", "1:1", "an unknown form"),
        ("(sizes m", "1:1", "never closed"),
    ] {
        let Err(error) = Spec::parse("bad.spec", text) else { panic!("{text}") };
        let error = error.to_string();
        assert!(error.starts_with(&format!("bad.spec:{place}: ")) && error.contains(message), "{text}: {error}");
    }
}

#[test]
fn an_operator_without_a_value_is_named() {
    let spec = spec("(sizes m) (assignment (m 2)) (variable x m) (operator bad (?a) (is (div ?a (sub ?a ?a))))");
    let folder = tempfile::tempdir().unwrap();
    let Err(error) = Tables::new(&spec, &settings(folder.path(), 1), &mut Unobserved) else { panic!("0 has no inverse") };
    assert!(error.to_string().starts_with("operator `bad` cannot be evaluated under assignment 1"), "{error}");
}

#[test]
fn the_shipped_specification_finds_what_it_found() {
    let (name, text) = regraft_discover::SHIPPED[0];
    let spec = Spec::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().unwrap();
    let (tables, found) = enumerated(&spec, &settings(folder.path(), 2));
    assert_eq!((found.terms.clone(), found.size.graphs, found.size.orders), (vec![20, 269, 8228], 44_543, 80_589));
    let candidates = candidates(&spec, &tables, &found);
    let candidates: BTreeSet<[String; 2]> = candidates.iter().map(|c| sides(&spec, c)).collect();
    for law in [
        ["(avgpool3x3 i1)", "(depthwise3x3 i1 (const-pool))"],
        ["(conv1x3 i1 w7)", "(conv3x3 i1 (enlarge-1x3 w7))"],
        ["(conv3x3 i1 (const-conv-identity))", "i1"],
        ["(conv3x3-relu i1 w4)", "(relu (conv3x3 i1 w4))"],
    ] {
        assert!(candidates.contains(&law.map(str::to_string)), "{law:?} is not among\n{candidates:#?}");
    }
    // False because the pool excludes padding, because the constant is dense, because the identity
    // is depthwise.
    for lie in [["(avgpool3x3 i1)", "(conv3x3 i1 (const-pool))"], ["(depthwise3x3 i1 (const-conv-identity))", "i1"]] {
        assert!(!candidates.contains(&lie.map(str::to_string)), "{lie:?}");
    }
}

#[test]
fn shipped_specifications_find_what_holds_for_doubles() {
    for (name, text) in regraft_discover::SHIPPED {
        let spec = Spec::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
        let found = found(&spec, 2);
        assert!(found.len() > 50, "{name}: {} candidates", found.len());
        let sizes: Bindings = spec.sizes.iter().cloned().zip([2, 3, 2, 4, 5, 3]).collect();
        assert_eq!(sizes.len(), spec.sizes.len());
        found.iter().for_each(|candidate| assert_holds(&spec, candidate, &sizes));
    }
}
