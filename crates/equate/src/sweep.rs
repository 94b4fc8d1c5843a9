//! From inputs to outputs: every value is either shown to equal a known one, or new.

use regraft_ir::{Graph, NodeId, Op, TensorType, ValueId};
use regraft_rules::{Library, Numeric};
use rustc_hash::FxHashMap;

use crate::equivalence::{Equivalence, Gap};
use crate::joint::{Joint, Placed};
use crate::opaque::{Opaques, Side};
use crate::question::{Answer, Asker, Roundings};
use crate::rewrite::Rewriter;
use crate::sample::{self, Sample};
use crate::symbols::Symbols;

/// Maximum number of known values to compare one value with.
const GUESSES: usize = 3;
/// Maximum number of gaps to report.
const GAPS: usize = 20;

/// Work limits. Work is counted, not timed: an answer is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Questions the prover may fail to answer.
    pub failures: usize,
    /// Operations on random inputs, per graph.
    pub work: f64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { failures: 60, work: 2e10 }
    }
}

/// Whether `a` and `b` give equal outputs, by position, for equal inputs, by name.
///
/// `rules` suggest how constants might have been combined; no conclusion rests on them. Both graphs
/// are read over the real numbers, and sizes are at least 1. Constants with equal 128-bit digests
/// count as equal.
pub fn equate(a: &Graph, b: &Graph, opaques: &mut dyn Opaques, rules: &Library, effort: &Effort) -> Equivalence {
    equate_over(a, b, &namesakes(a, b), opaques, rules, effort)
}

/// Like [`equate`], for given pairs of corresponding inputs. Every input of `b` must be in a pair.
pub fn equate_over(
    a: &Graph,
    b: &Graph,
    inputs: &[(NodeId, NodeId)],
    opaques: &mut dyn Opaques,
    rules: &Library,
    effort: &Effort,
) -> Equivalence {
    let rules = rules.clone().filter(|rule| rule.numeric == Numeric::RoundsConstants && rule.runtime.is_none());
    let mut sweep = Sweep {
        joint: Joint::default(),
        symbols: Symbols::new(a),
        asker: Asker::new(effort.failures, Rewriter::new(&rules)),
        opaques,
        sides: Default::default(),
        samples: FxHashMap::default(),
        by_type: FxHashMap::default(),
        by_name: FxHashMap::default(),
        names: FxHashMap::default(),
        roundings: Roundings::default(),
        first: 0,
        found: Equivalence::default(),
    };
    sweep.look(a, b, inputs, effort);
    match sweep.inputs(a, b, inputs) {
        Ok(()) => {
            sweep.walk(Side::A, a);
            sweep.first = sweep.joint.graph.capacity() as u32;
            sweep.walk(Side::B, b);
            sweep.outputs(a, b)
        }
        Err(why) => sweep.refuse(b, why),
    }
}

struct Sweep<'r> {
    joint: Joint,
    symbols: Symbols,
    asker: Asker<'r>,
    opaques: &'r mut dyn Opaques,
    /// Values of both graphs in the joint one.
    sides: [FxHashMap<ValueId, ValueId>; 2],
    /// Samples of the values of both graphs.
    samples: FxHashMap<(Side, ValueId), Sample>,
    /// Values with samples, by type.
    by_type: FxHashMap<TensorType, Vec<(ValueId, Sample)>>,
    /// Values of the first graph, by name.
    by_name: FxHashMap<String, ValueId>,
    /// Names of values of the joint graph.
    names: FxHashMap<ValueId, String>,
    roundings: Roundings,
    /// Nodes below this id belong to the first graph.
    first: u32,
    found: Equivalence,
}

impl Sweep<'_> {
    /// Evaluates both graphs on random inputs.
    fn look(&mut self, a: &Graph, b: &Graph, inputs: &[(NodeId, NodeId)], effort: &Effort) {
        let bindings = sample::sizes(a);
        let mut ours = sample::sizes(b);
        ours.iter_mut().for_each(|(symbol, size)| *size = bindings.get(symbol).copied().unwrap_or(*size));
        for (id, other) in inputs {
            let (Some(x), Some(y)) = (a.ty(id.out()), b.ty(other.out())) else { continue };
            for (size, named) in x.shape.iter().zip(&y.shape) {
                if let Some((symbol, size)) = size.eval(&bindings).and_then(|size| named.solve_number(size)) {
                    ours.insert(symbol.into(), size);
                }
            }
        }
        for (side, graph, bindings) in [(Side::A, a, bindings), (Side::B, b, ours)] {
            let called = |value: ValueId| match &graph.node(value.node).op {
                Op::Input(_) => {
                    let pair = |(x, y): &(NodeId, NodeId)| (if side == Side::A { *x } else { *y }) == value.node;
                    format!("input {:?}", inputs.iter().position(pair))
                }
                op => name(graph, value).unwrap_or_else(|| format!("{op:?}.{}", value.port)),
            };
            let samples = sample::samples(graph, &bindings, effort.work, &called);
            self.samples.extend(samples.into_iter().map(|(value, sample)| ((side, value), sample)));
        }
    }

    /// Unifies inputs of the same name.
    fn inputs(&mut self, a: &Graph, b: &Graph, inputs: &[(NodeId, NodeId)]) -> Result<(), String> {
        if a.outputs().len() != b.outputs().len() {
            return Err(format!("{} outputs instead of {}", b.outputs().len(), a.outputs().len()));
        }
        for id in a.inputs() {
            let Op::Input(input) = &a.node(*id).op else { continue };
            let value = self.joint.graph.add_input(&input.name, input.ty.clone());
            self.sides[0].insert(id.out(), value);
            self.names.insert(value, input.name.to_string());
        }
        let paired: FxHashMap<NodeId, NodeId> = inputs.iter().map(|(x, y)| (*y, *x)).collect();
        for id in b.inputs() {
            let Op::Input(input) = &b.node(*id).op else { continue };
            let Some(other) = paired.get(id) else { return Err(format!("the first model has no input `{}`", input.name)) };
            let (Some(x), Some(y)) = (a.ty(other.out()), b.ty(id.out())) else { return Err("an input of no type".into()) };
            if !self.symbols.declare(x, y) {
                return Err(format!("the input `{}` is {y} instead of {x}", input.name));
            }
            let Some(value) = self.sides[0].get(&other.out()).copied() else { return Err("an input of no value".into()) };
            self.sides[1].insert(id.out(), value);
        }
        Ok(())
    }

    fn refuse(mut self, b: &Graph, why: String) -> Equivalence {
        self.found.open = b.outputs().iter().map(|o| o.name.to_string()).collect();
        self.found.gaps = vec![Gap { value: "the inputs and outputs".into(), beside: None, why }];
        self.found
    }

    fn walk(&mut self, side: Side, graph: &Graph) {
        for id in graph.topological() {
            if !matches!(graph.node(id).op, Op::Input(_)) {
                self.node(side, graph, id);
            }
        }
    }

    /// Adds one operator of a graph to the joint one.
    fn node(&mut self, side: Side, graph: &Graph, id: NodeId) {
        let node = graph.node(id);
        let operands: Option<Vec<ValueId>> = node.inputs.iter().map(|v| self.sides[side as usize].get(v).copied()).collect();
        let Some(operands) = operands else { return };
        let placed = match &node.op {
            Op::Opaque(_) => {
                let types = self.types(side, graph, id, None, &operands);
                let function = self.opaques.function(side, id, &operands);
                let order: Option<Vec<ValueId>> = match &function {
                    Some(function) => function.operands.iter().map(|at| operands.get(*at).copied()).collect(),
                    None => Some(operands),
                };
                let Some(order) = order else { return };
                // Operators have an identity in one graph only.
                let op = if side == Side::A { node.op.clone() } else { apart(&node.op) };
                self.joint.place_opaque(op, function.map(|f| f.name), &order, &types)
            }
            op => {
                let op = if side == Side::A { Some(op.clone()) } else { self.symbols.op(op) };
                let Some(op) = op else { return };
                let types = self.types(side, graph, id, Some(&op), &operands);
                self.joint.place(op, operands, &types)
            }
        };
        self.settle(side, graph, id, &placed);
    }

    /// Types of an operator's results in terms of the first graph.
    fn types(&self, side: Side, graph: &Graph, id: NodeId, op: Option<&Op>, operands: &[ValueId]) -> Vec<Option<TensorType>> {
        let types = &graph.node(id).types;
        if side == Side::A {
            return types.to_vec();
        }
        let open = types.iter().flatten().flat_map(|ty| &ty.shape).any(|size| !self.symbols.knows(size));
        let inferred = op.filter(|_| open).and_then(|op| self.joint.graph.infer(op, operands).ok());
        match inferred {
            Some(inferred) => inferred.into_iter().map(Some).collect(),
            None => types.iter().map(|ty| ty.as_ref().map(|ty| self.symbols.ty(ty))).collect(),
        }
    }

    /// Determines what the results of an operator are.
    fn settle(&mut self, side: Side, graph: &Graph, id: NodeId, placed: &Placed) {
        for (port, value) in (0..).zip(&placed.values) {
            let own = id.port(port);
            let value = *value;
            let known = if placed.new { self.known(side, graph, own, value) } else { Some(value) };
            if side == Side::B {
                self.found.same += usize::from(!placed.new);
                self.found.shown += usize::from(placed.new && known.is_some());
            }
            match known {
                Some(known) => self.learn(side, graph, own, known),
                None => self.enter(side, own, value),
            }
            if placed.new
                && let Some(known) = known
            {
                self.joint.merge(value, known);
            }
            self.note(side, graph, own, known.unwrap_or(value));
        }
    }

    /// Records the joint value for a value of a graph.
    fn note(&mut self, side: Side, graph: &Graph, own: ValueId, value: ValueId) {
        self.sides[side as usize].insert(own, value);
        if let Some(name) = name(graph, own) {
            self.names.entry(value).or_insert_with(|| name.clone());
            if side == Side::A {
                self.by_name.insert(name, value);
            }
        }
    }

    /// Equal values have equal sizes.
    fn learn(&mut self, side: Side, graph: &Graph, own: ValueId, known: ValueId) {
        if side == Side::B
            && let (Some(a), Some(b)) = (self.joint.graph.ty(known), graph.ty(own))
        {
            self.symbols.learn(a, b);
        }
    }

    /// A value that later ones may turn out to equal.
    fn enter(&mut self, side: Side, own: ValueId, value: ValueId) {
        let (Some(sample), Some(ty)) = (self.samples.get(&(side, own)), self.joint.graph.ty(value)) else { return };
        self.by_type.entry(ty.clone()).or_default().push((value, sample.clone()));
    }

    /// The known value that a new one equals, if that is shown.
    fn known(&mut self, side: Side, graph: &Graph, own: ValueId, value: ValueId) -> Option<ValueId> {
        if matches!(self.joint.graph.node(value.node).op, Op::Opaque(_)) || self.joint.graph.is_constant(value) {
            return None;
        }
        let allowance = self.asker.allowance;
        for guess in self.guesses(side, graph, own, value) {
            if side == Side::A {
                if self.asker.proved(&self.joint, guess, value, true).is_ok() {
                    return Some(guess);
                }
            } else if let Answer::Equal(roundings) = self.asker.equal(&mut self.joint, guess, value) {
                self.roundings.extend(roundings);
                // Wrong guesses before the right one are refunded: activations often change nothing
                // on the sample.
                self.asker.allowance = allowance;
                return Some(guess);
            }
        }
        None
    }

    /// Known values that a new one may equal, the likeliest first.
    fn guesses(&self, side: Side, graph: &Graph, own: ValueId, value: ValueId) -> Vec<ValueId> {
        let Some(ty) = self.joint.graph.ty(value) else { return Vec::new() };
        let sample = self.samples.get(&(side, own));
        let namesake = name(graph, own).and_then(|name| self.by_name.get(&name).copied()).filter(|_| side == Side::B);
        let typed = self.by_type.get(ty).map_or(&[][..], Vec::as_slice);
        let Some(sample) = sample else { return self.neighbours(namesake, ty) };
        let near = typed.iter().rev().filter(|(known, other)| *known != value && sample.is_near(other));
        let mut guesses: Vec<ValueId> = near.map(|(known, _)| *known).collect();
        // Values that are constant across all elements say too little about their origin.
        let most = if sample.flat { 1 } else { GUESSES };
        // Prefers the latest guesses, but tries them in topological order.
        guesses.sort_by_key(|known| Some(*known) != namesake);
        guesses.truncate(most);
        guesses.sort_by_key(|known| (Some(*known) != namesake, *known));
        guesses
    }

    /// Where nothing could be computed: the value of the same name, and its direct users.
    fn neighbours(&self, namesake: Option<ValueId>, ty: &TensorType) -> Vec<ValueId> {
        let Some(namesake) = namesake else { return Vec::new() };
        let graph = &self.joint.graph;
        let readers = graph.users(namesake).map(|(user, _)| user.out());
        let fits = |value: &ValueId| graph.ty(*value) == Some(ty) && value.node.0 < self.first;
        std::iter::once(namesake).chain(readers).filter(fits).take(GUESSES).collect()
    }

    fn outputs(mut self, a: &Graph, b: &Graph) -> Equivalence {
        for (x, y) in a.outputs().iter().zip(b.outputs()) {
            let (p, q) = (self.sides[0].get(&x.value).copied(), self.sides[1].get(&y.value).copied());
            let (Some(p), Some(q)) = (p, q) else {
                self.found.open.push(y.name.to_string());
                continue;
            };
            if p == q {
                continue;
            }
            let differ = match (self.samples.get(&(Side::A, x.value)), self.samples.get(&(Side::B, y.value))) {
                (Some(x), Some(y)) => !x.is_near(y),
                _ => false,
            };
            if !differ && self.outputs_are_equal(p, q) {
                continue;
            }
            self.found.open.push(y.name.to_string());
            self.gaps(b, p, q, differ);
        }
        self.found.rounded = self.roundings.len();
        self.found.bound = self.roundings.values().copied().fold(0.0, f64::max);
        self.found.asked = self.asker.asked;
        self.found.premises = self.asker.premises;
        self.found
    }

    fn outputs_are_equal(&mut self, p: ValueId, q: ValueId) -> bool {
        match self.asker.equal(&mut self.joint, p, q) {
            Answer::Equal(roundings) => {
                self.roundings.extend(roundings);
                true
            }
            Answer::Open(_) => false,
        }
    }

    /// The values below an output at which the proof stops: unmatched in the first graph, on
    /// matched operands.
    fn gaps(&mut self, b: &Graph, p: ValueId, q: ValueId, differ: bool) {
        let first: rustc_hash::FxHashSet<ValueId> = self.sides[0].values().copied().collect();
        let place = |sweep: &Self, value: ValueId| {
            let kind = sweep.joint.graph.node(value.node).op.kind().name();
            sweep.names.get(&value).map_or_else(|| format!("a result of {kind}"), |name| format!("`{name}` ({kind})"))
        };
        let own: FxHashMap<ValueId, ValueId> = self.sides[1].iter().map(|(own, value)| (*value, *own)).collect();
        let (mut stack, mut seen) = (vec![q], rustc_hash::FxHashSet::default());
        let mut gaps = Vec::new();
        while let Some(value) = stack.pop() {
            if first.contains(&value) || !seen.insert(value) {
                continue;
            }
            let operands = self.joint.graph.node(value.node).inputs.to_vec();
            let open: Vec<ValueId> = operands.into_iter().filter(|v| !first.contains(v) && !self.joint.graph.is_constant(*v)).collect();
            if open.is_empty() {
                gaps.push(value);
            }
            stack.extend(open);
        }
        gaps.sort_unstable();
        if gaps.is_empty() {
            gaps.push(q);
        }
        for value in gaps {
            let guess = match own.get(&value) {
                Some(own) => self.guesses(Side::B, b, *own, value).into_iter().next(),
                None => None,
            };
            let output = value == q && guess.is_none();
            let guess = guess.or_else(|| output.then_some(p));
            let why = match guess {
                Some(_) if output && differ => "they differ on a random input".into(),
                None => "no value of the first model looks like it".into(),
                Some(guess) => match self.asker.equal(&mut self.joint, guess, value) {
                    Answer::Equal(_) => "it was shown too late".into(),
                    Answer::Open(why) => why,
                },
            };
            let gap = Gap { value: place(self, value), beside: guess.map(|v| place(self, v)), why };
            if self.found.gaps.len() < GAPS && !self.found.gaps.contains(&gap) {
                self.found.gaps.push(gap);
            }
        }
    }
}

/// Inputs of the same name.
fn namesakes(a: &Graph, b: &Graph) -> Vec<(NodeId, NodeId)> {
    let named = |graph: &Graph, id: NodeId| match &graph.node(id).op {
        Op::Input(input) => Some(input.name.clone()),
        _ => None,
    };
    let ours: FxHashMap<_, NodeId> = a.inputs().iter().filter_map(|id| Some((named(a, *id)?, *id))).collect();
    b.inputs().iter().filter_map(|id| Some((*ours.get(&named(b, *id)?)?, *id))).collect()
}

/// An opaque operator of the second graph, made distinct from all operators of the first.
fn apart(op: &Op) -> Op {
    match op {
        Op::Opaque(opaque) => Op::Opaque(regraft_ir::ops::OpaqueOp { id: opaque.id | 1 << 31, ..opaque.clone() }),
        op => op.clone(),
    }
}

fn name(graph: &Graph, value: ValueId) -> Option<String> {
    graph.node(value.node).names.get(value.port as usize).and_then(Option::as_ref).map(ToString::to_string)
}
