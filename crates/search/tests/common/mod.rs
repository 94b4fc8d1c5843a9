//! Graphs to walk on, and random walks over the moves of the shipped library.

#![allow(dead_code, reason = "every test binary uses a part of this")]

use std::collections::HashMap;
use std::sync::Arc;

use regraft_cost::{CostModel, Roofline};
use regraft_ir::eval::{NoOpaque, run};
use regraft_ir::{Bindings, Class, Graph, Op, SplitMix64, Tensor, Value, normal, text};
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, Move, Moves, all_moves, next_moves};

const CONV: &str = "strides=[1,1], pads=[1,1,1,1], dilations=[1,1], group=1";
const POINT: &str = "strides=[1,1], pads=[0,0,0,0], dilations=[1,1], group=1";

/// Convolutions of images of any size: fast forms of them read the sizes from the input.
pub fn open_sizes() -> Graph {
    let graph = format!(
        "graph (x: f32[n,32,h,w]) {{
           const w: f32[32,32,3,3] const v: f32[32,32,3,3] const s: f32[32,1,1]
           a = Conv(x, w, {CONV}) m = Mul(a, s) r = Relu(m) c = Conv(r, v, {CONV}) p = Mul(c, s) d = Add(p, r) o = Mul(d, s)
           output o, p }}"
    );
    text::parse(&graph).expect("a graph")
}

/// Small graphs with inner outputs, shared operands, several readers, and operators of all families
/// in the library.
pub fn fixtures() -> Vec<(&'static str, Graph)> {
    let texts = [
        (
            "branches",
            format!(
                "graph (x: f32[1,4,5,5]) {{
                   const w: f32[4,4,3,3] const v: f32[6,4,3,3] const u: f32[4,4,1,1] const b: f32[4]
                   a = Conv(x, w, b, {CONV}) c = Conv(x, v, {CONV}) d = Conv(x, u, {POINT})
                   ra = Relu(a) rc = Relu(c) n = Neg(a)
                   k = Concat(ra, rc, d, axis=1) s = Add(ra, d) t = Relu(s)
                   output k, t, n }}"
            ),
        ),
        (
            "products",
            "graph (x: f32[2,3,4], y: f32[2,3,4]) {
               const w: f32[4,4] const v: f32[4,4] const b: f32[4] const half: f32[] = 0.5
               p = MatMul(x, w) q = MatMul(y, w) r = MatMul(x, v) s = Add(p, q) t = Add(s, b) u = Mul(r, half)
               g = Sigmoid(t) h = Mul(g, t) k = Tanh(u) l = Add(h, k) m = MatMul(l, v)
               output m, r, g }"
                .to_string(),
        ),
        (
            "elementwise",
            "graph (x: f32[3,4], y: f32[3,4], z: f32[3,4]) {
               const two: f32[] = 2.0 const c: f32[4] const d: f32[4]
               a = Add(x, y) b = Add(a, z) e = Mul(b, c) f = Mul(e, two) g = Add(x, y) h = Sub(f, g) i = Relu(h) j = Relu(i)
               k = Mul(x, z) l = Mul(y, z) m = Add(k, l) n = Add(m, d) o = Neg(n) p = Neg(o) q = Add(p, j)
               output q, g, j }"
                .to_string(),
        ),
        (
            "layout",
            "graph (x: f32[2,6,4]) {
               t = Transpose(x, perm=[0,2,1]) u = Transpose(t, perm=[0,2,1]) a, b = Split(u, axis=1, sizes=[2,4])
               c = Relu(a) d = Relu(b) e = Concat(c, d, axis=1) f = Reshape(e, shape=[2,24]) g = Reshape(f, shape=[12,4])
               h = Transpose(g, perm=[1,0]) i = Relu(h) p, q = Split(x, axis=1, sizes=[3,3]) r = Add(p, q) s = Concat(p, q, axis=1)
               k = Slice(s, axes=[1], starts=[0], ends=[3], steps=[1]) l = Add(k, r)
               output i, c, l, r }"
                .to_string(),
        ),
        (
            "attention",
            "graph (x: f32[5,8]) {
               const q: f32[8,8] const k: f32[8,8] const v: f32[8,8] const s: f32[] = 0.25 const o: f32[8,8]
               a = MatMul(x, q) b = MatMul(x, k) c = MatMul(x, v) d = Transpose(b, perm=[1,0]) e = MatMul(a, d) f = Mul(e, s)
               g = Softmax(f, axis=1) h = MatMul(g, c) i = MatMul(h, o) j = Add(i, x)
               output j, h }"
                .to_string(),
        ),
        (
            "pools",
            format!(
                "graph (x: f32[1,4,6,6]) {{
                   const w: f32[4,4,1,1] const s: f32[4,1,1] const b: f32[4,1,1]
                   a = Conv(x, w, {POINT}) m = Mul(a, s) n = Add(m, b) r = Relu(n)
                   p = MaxPool(r, kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], ceil_mode=false)
                   q = MaxPool(n, kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1], ceil_mode=false)
                   c = Concat(p, q, axis=1) d = Relu(c) e = ReduceMean(d, axes=[2,3], keepdims=true)
                   output e, q }}"
            ),
        ),
    ];
    texts.into_iter().map(|(name, text)| (name, normalized(text::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"))))).collect()
}

/// A graph as searches receive it.
pub fn normalized(mut graph: Graph) -> Graph {
    normal::dce(&mut graph);
    normal::cse(&mut graph);
    graph
}

/// A network of the zoo with zero weights.
pub fn network(name: &str) -> Graph {
    let options = regraft_zoo::Options { weights: regraft_zoo::Weights::Zeros, ..Default::default() };
    let proto = regraft_zoo::build(name, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
    normalized(regraft_onnx::Model::from_proto(proto).unwrap_or_else(|e| panic!("{name}: {e}")).graph().clone())
}

pub fn shipped() -> Library {
    Library::shipped().unwrap_or_else(|e| panic!("{e}"))
}

pub fn roofline() -> Roofline {
    Roofline::new(Bindings::new())
}

/// The current position of a walk.
pub struct Walk<'a> {
    pub engine: Engine<'a>,
    pub matcher: Matcher<'a>,
    pub moves: Moves,
    rng: SplitMix64,
}

impl<'a> Walk<'a> {
    pub fn new(graph: Graph, library: &'a Library, model: &'a dyn CostModel, seed: u64) -> Walk<'a> {
        let mut engine = Engine::new(graph, model);
        let mut matcher = Matcher::new(library, &Anything);
        let moves = all_moves(&mut engine, &mut matcher);
        Walk { engine, matcher, moves, rng: SplitMix64(seed) }
    }

    /// One of the moves of the current state: a rule is drawn first, so that rules with many
    /// matches do not drown out the others.
    pub fn pick(&mut self) -> Option<Arc<Move>> {
        let mut rules: Vec<usize> = self.moves.iter().map(|m| m.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        if rules.is_empty() {
            return None;
        }
        let rule = rules[self.rng.below(rules.len())];
        let places: Vec<&Arc<Move>> = self.moves.iter().filter(|m| m.rule == rule).collect();
        Some(places[self.rng.below(places.len())].clone())
    }

    /// Applies a move of the current state.
    pub fn step(&mut self, step: &Move) {
        self.engine.apply(step);
        self.moves = next_moves(&mut self.engine, &mut self.matcher, &self.moves);
    }

    /// How messages refer to a move.
    pub fn title(&self, step: &Move) -> String {
        let nodes: Vec<String> = step.nodes.iter().map(|n| format!("{}#{}", self.engine.graph().node(*n).op.kind().name(), n.0)).collect();
        format!("{} at {}", self.matcher.library().rules()[step.rule].name, nodes.join(" "))
    }
}

/// Outputs of the graph on the reference executor in double precision, for inputs that depend only
/// on the seed.
///
/// Inputs are positive, as rules with square roots and quotients require; constants are as in the
/// graph.
pub fn outputs(graph: &Graph, seed: u64) -> Vec<Value<f64>> {
    let mut rng = SplitMix64(seed);
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { panic!("an input is an input") };
        let shape: Vec<usize> = input.ty.shape.iter().map(|d| d.known().expect("fixtures have known sizes") as usize).collect();
        let value = match input.ty.dtype.class() {
            Class::Real => Value::real(Tensor::from_fn(shape, |_| 0.25 + rng.below(2000) as f64 / 1000.0)),
            Class::Bool => Value::bool(Tensor::from_fn(shape, |_| rng.below(2) == 1)),
            _ => Value::int(Tensor::from_fn(shape, |_| rng.below(2) as i64)),
        };
        feeds.insert(input.name.to_string(), value);
    }
    run::<f64>(graph, &feeds, &mut NoOpaque).unwrap_or_else(|e| panic!("{e}"))
}
