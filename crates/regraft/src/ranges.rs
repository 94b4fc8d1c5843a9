//! Which integers the inputs of a model may hold: all of their type, or those that stay valid
//! wherever they become an index, a divisor or a shift.

use std::collections::{BTreeMap, HashMap, HashSet};

use regraft_ir::{Bindings, Class, DType, Graph, Node, NodeId, Op, OpKind, ValueId};
use regraft_onnx::proto::NodeProto;
use regraft_onnx::{Model, Verbatim};
use regraft_runtime::IntRange;

/// Constants with more elements are not examined.
const LARGEST: usize = 1 << 16;
/// Indices are below this; anything that may take more values is data.
const INDICES: i128 = 1 << 24;
/// Numbers that become floats are drawn as large as large floats are.
const FLOATS: i128 = 1 << 10;
/// Used if nothing is known about what becomes of a value.
const NARROW: Span = Span { low: 0, high: 1 };

/// The integers that each integer input of `model` may hold, by name: the widest range for which
/// interval arithmetic shows that every index lies within its axis, no divisor is 0, and other
/// requirements of operators hold. Values that reach operators unknown here may be 0 or 1.
pub fn integer_ranges(model: &Model, bindings: &Bindings) -> BTreeMap<String, IntRange> {
    let graph = model.graph();
    let node = |id: NodeId| match &graph.node(id).op {
        Op::Opaque(op) => match model.verbatim(op)? {
            Verbatim::Node { proto, .. } => Some(proto),
            _ => None,
        },
        _ => None,
    };
    ranges(graph, bindings, &node)
}

fn ranges<'m>(
    graph: &'m Graph,
    bindings: &'m Bindings,
    verbatim: &'m dyn Fn(NodeId) -> Option<&'m NodeProto>,
) -> BTreeMap<String, IntRange> {
    let integer = |id: &NodeId| match &graph.node(*id).op {
        Op::Input(input) if input.ty.dtype.class() == Class::Int => Some((id.out(), input.name.to_string(), width(input.ty.dtype))),
        _ => None,
    };
    let inputs: Vec<(ValueId, String, Span)> = graph.inputs().iter().filter_map(integer).collect();
    if inputs.is_empty() {
        return BTreeMap::new();
    }
    let mut analysis = Analysis { graph, bindings, verbatim, order: graph.topological(), spans: HashMap::new() };
    analysis.spans.extend(inputs.iter().map(|(value, ..)| (*value, NARROW)));
    let mut found = BTreeMap::new();
    for (value, name, all) in inputs {
        analysis.spread();
        let range = analysis.widest(value, all);
        analysis.spans.insert(value, Span { low: range.low, high: range.high });
        found.insert(name, range);
    }
    found
}

/// All numbers between two, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    low: i128,
    high: i128,
}

impl Span {
    fn of(values: impl IntoIterator<Item = i128>) -> Option<Span> {
        values.into_iter().fold(None, |span: Option<Span>, v| {
            Some(span.map_or(Span { low: v, high: v }, |s| Span { low: s.low.min(v), high: s.high.max(v) }))
        })
    }

    fn within(self, other: Span) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    fn has(self, value: i128) -> bool {
        self.low <= value && value <= self.high
    }

    fn join(self, other: Span) -> Span {
        Span { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The image of two spans under a function that is monotone in each operand.
    fn corners(self, other: Span, f: impl Fn(i128, i128) -> i128) -> Option<Span> {
        Span::of([(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)].map(|(x, y)| f(x, y)))
    }
}

/// All numbers of a type.
fn width(dtype: DType) -> Span {
    let (bits, signed) = match dtype {
        DType::I8 => (8, true),
        DType::I16 => (16, true),
        DType::I32 => (32, true),
        DType::I64 => (64, true),
        DType::U8 => (8, false),
        DType::U16 => (16, false),
        DType::U32 => (32, false),
        DType::U64 => (64, false),
        _ => (1, false),
    };
    if signed { Span { low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 } } else { Span { low: 0, high: (1 << bits) - 1 } }
}

/// What an operator requires of an integer operand.
enum Asked {
    Anything,
    Within(Span),
    /// Not 0, and not -1 where the dividend may be its type's minimum.
    Divisor,
    /// Not its type's minimum where the divisor may be -1.
    Dividend,
}

struct Analysis<'m> {
    graph: &'m Graph,
    bindings: &'m Bindings,
    verbatim: &'m dyn Fn(NodeId) -> Option<&'m NodeProto>,
    order: Vec<NodeId>,
    /// Possible integer values, for the ranges of inputs chosen so far.
    spans: HashMap<ValueId, Span>,
}

impl Analysis<'_> {
    /// Computes the spans of all values from those of the inputs.
    fn spread(&mut self) {
        for id in self.order.clone() {
            let node = self.graph.node(id);
            if matches!(node.op, Op::Input(_)) {
                continue;
            }
            for port in 0..node.types.len() as u32 {
                if let Some(span) = self.result(id.port(port), &|v| self.span(v)) {
                    self.spans.insert(id.port(port), span);
                }
            }
        }
    }

    fn span(&self, value: ValueId) -> Option<Span> {
        self.spans.get(&value).copied()
    }

    fn dtype(&self, value: ValueId) -> Option<DType> {
        self.graph.ty(value).map(|ty| ty.dtype)
    }

    fn size(&self, value: ValueId, axis: i64) -> Option<i128> {
        let ty = self.graph.ty(value)?;
        let axis = if axis < 0 { axis + ty.rank() as i64 } else { axis };
        ty.shape.get(usize::try_from(axis).ok()?)?.eval(self.bindings).map(i128::from)
    }

    /// The widest range of an input for which all requirements hold; 0 and 1 if there is none.
    fn widest(&self, input: ValueId, all: Span) -> IntRange {
        let (readers, real) = self.readers(input);
        let holds = |low, high| self.holds(input, Span { low, high }, &readers);
        if holds(all.low, all.high) {
            // A number that becomes a float is no larger than floats are.
            let bound = if real { Span { low: -FLOATS, high: FLOATS } } else { all };
            return IntRange { low: all.low.max(bound.low), high: all.high.min(bound.high), index: false };
        }
        let bases = [(0, 1), (0, 0), (1, 1)];
        let Some((low, high)) = bases.into_iter().find(|(low, high)| holds(*low, *high)) else {
            return IntRange { low: NARROW.low, high: NARROW.high, index: true };
        };
        let high = farthest(high, all.high, &|high| holds(low, high));
        let low = farthest(low, all.low, &|low| holds(low, high));
        IntRange { low, high, index: high - low < INDICES }
    }

    /// Nodes that read values derived from an input, in order, and whether it becomes a float.
    /// Sizes, truth values, positions of extremes and gathered elements do not depend on how wide
    /// its range is.
    fn readers(&self, input: ValueId) -> (Vec<NodeId>, bool) {
        let (mut moved, mut readers, mut real) = (HashSet::from([input]), Vec::new(), false);
        for id in &self.order {
            let node = self.graph.node(*id);
            let at: Vec<usize> = (0..node.inputs.len()).filter(|at| moved.contains(&node.inputs[*at])).collect();
            if at.is_empty() {
                continue;
            }
            readers.push(*id);
            let passes = match node.op.kind() {
                OpKind::Shape | OpKind::Size | OpKind::ArgMax | OpKind::ArgMin => false,
                OpKind::Gather | OpKind::GatherElements | OpKind::GatherND => at.contains(&0),
                OpKind::ScatterND => at.contains(&0) || at.contains(&2),
                OpKind::OneHot => at.contains(&1),
                _ => true,
            };
            for value in (0..node.types.len() as u32).map(|port| id.port(port)).filter(|_| passes) {
                let class = self.dtype(value).map(DType::class);
                real |= class == Some(Class::Real);
                if class != Some(Class::Bool) {
                    moved.insert(value);
                }
            }
        }
        (readers, real)
    }

    /// Whether all requirements hold if an input is in `range`.
    fn holds(&self, input: ValueId, range: Span, readers: &[NodeId]) -> bool {
        let mut moved: HashMap<ValueId, Option<Span>> = HashMap::from([(input, Some(range))]);
        for id in readers {
            let node = self.graph.node(*id);
            let span = |value: ValueId| moved.get(&value).copied().unwrap_or_else(|| self.span(value));
            for (at, value) in node.inputs.iter().enumerate().filter(|(_, v)| moved.contains_key(v)) {
                if self.dtype(*value).is_none_or(|dtype| dtype.class() == Class::Int) && !self.is_met(*id, at, *value, &span) {
                    return false;
                }
            }
            let results: Vec<(ValueId, Option<Span>)> =
                (0..node.types.len() as u32).map(|port| (id.port(port), self.result(id.port(port), &span))).collect();
            moved.extend(results);
        }
        true
    }

    fn is_met(&self, id: NodeId, at: usize, value: ValueId, span: &dyn Fn(ValueId) -> Option<Span>) -> bool {
        let all = |value: ValueId| self.dtype(value).map_or(width(DType::I64), width);
        let of = |value: ValueId| span(value).unwrap_or_else(|| all(value));
        let other = |at: usize| self.graph.node(id).inputs.get(at).map_or(NARROW, |value| of(*value));
        match self.asked(id, at) {
            Asked::Anything => true,
            Asked::Within(span) => of(value).within(span),
            Asked::Divisor => {
                let overflows = of(value).has(-1) && other(0).has(all(value).low);
                !of(value).has(0) && !overflows
            }
            Asked::Dividend => !(of(value).has(all(value).low) && other(1).has(-1)),
        }
    }

    /// The smallest of the axes that the tuples of a node choose along, after `first` common ones.
    fn chosen(&self, node: &Node, first: usize) -> Option<i128> {
        let [data, indices, ..] = node.inputs.as_slice() else { return None };
        let width = usize::try_from(self.size(*indices, -1)?).ok()?;
        (first..first + width).map(|axis| self.size(*data, axis as i64)).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// What a node requires of its operand number `at`, an integer.
    fn asked(&self, id: NodeId, at: usize) -> Asked {
        use OpKind::*;
        let node = self.graph.node(id);
        let axis = |size: Option<i128>| Asked::Within(size.map_or(NARROW, |n| Span { low: -n, high: n - 1 }));
        // The only integers of recurrent operators.
        let lengths = |size: Option<i128>| Asked::Within(Span { low: 1, high: size.map_or(1, |n| n.max(1)) });
        match (&node.op, at) {
            (Op::Opaque(_), _) => return (self.verbatim)(id).map_or(Asked::Within(NARROW), |proto| self.asked_verbatim(id, at, proto)),
            (Op::Gather(gather), 1) => {
                let size = self.size(node.inputs[0], gather.axis);
                // Positions of angles, which the runtime does not count from the end.
                let rotates = |(user, _): (NodeId, u32)| matches!(self.graph.node(user).op, Op::RotaryEmbedding(_));
                let positions = self.graph.users(ValueId { node: id, port: 0 }).any(rotates);
                return if positions { Asked::Within(size.map_or(NARROW, |n| Span { low: 0, high: n - 1 })) } else { axis(size) };
            }
            (Op::GatherElements(gather), 1) => return axis(self.size(node.inputs[0], gather.axis)),
            (Op::GatherND(gather), 1) => {
                let first = usize::try_from(gather.batch_dims).unwrap_or(0);
                return axis(self.chosen(node, first));
            }
            (Op::ScatterND(_), 1) => return axis(self.chosen(node, 0)),
            (Op::OneHot(one_hot), 0) => return axis(Some(one_hot.depth.into())),
            (Op::RNN(_) | Op::GRU(_) | Op::LSTM(_), _) => return lengths(self.size(node.inputs[0], 0)),
            _ => {}
        }
        match (node.op.kind(), at) {
            (Div | Mod, 0) => Asked::Dividend,
            (Div | Mod, 1) => Asked::Divisor,
            (Pow, 1) => Asked::Within(Span { low: 0, high: 3 }),
            (BitShift, 1) => Asked::Within(Span { low: 0, high: self.dtype(node.inputs[0]).map_or(0, |t| t.size() as i128 * 8 - 1) }),
            (Pow | BitShift | Gather | GatherElements | GatherND, 0)
            | (OneHot, 1)
            | (ScatterND, 0 | 2)
            | (Trilu | CumSum | TopK, _)
            | (DequantizeLinear | QuantizeLinear | MatMulInteger | ConvInteger | QLinearMatMul | QLinearConv, _) => Asked::Anything,
            (Add | Sub | Mul | Sum | Max | Min | Mean | Equal | Greater | GreaterOrEqual | Less | LessOrEqual | Where, _) => {
                Asked::Anything
            }
            (Neg | Abs | Sign | Relu | Clip | Cast | Identity | Dropout | Concat | Split | Slice | Transpose | Reshape | Flatten, _) => {
                Asked::Anything
            }
            (Squeeze | Unsqueeze | Expand | Tile | Pad | Shape | Size | MatMul | Gemm | Einsum | MaxPool | ArgMax | ArgMin, _) => {
                Asked::Anything
            }
            (ReduceSum | ReduceMean | ReduceMax | ReduceMin | ReduceProd | ReduceL1 | ReduceL2 | ReduceSumSquare, _) => Asked::Anything,
            _ => Asked::Within(NARROW),
        }
    }

    /// The same for a node that is kept verbatim.
    fn asked_verbatim(&self, id: NodeId, at: usize, proto: &NodeProto) -> Asked {
        let narrow = Asked::Within(NARROW);
        // The position among the declared inputs, some of which may be omitted.
        let given = (0..proto.input.len()).filter(|slot| !proto.input[*slot].is_empty()).nth(at);
        let (Some(slot), "" | "ai.onnx") = (given, proto.domain()) else { return narrow };
        let operand = |slot: usize| {
            let before = proto.input.iter().take(slot).filter(|name| !name.is_empty()).count();
            proto.input.get(slot).filter(|name| !name.is_empty()).and_then(|_| self.graph.node(id).inputs.get(before).copied())
        };
        let number = |name: &str| proto.attribute.iter().find(|a| a.name() == name).map_or(0, |a| a.i());
        let Some(data) = operand(0) else { return narrow };
        // The smallest of several axes.
        let smallest =
            |axes: &mut dyn Iterator<Item = i64>| axes.map(|axis| self.size(data, axis)).collect::<Option<Vec<_>>>()?.into_iter().min();
        let last = |slot: usize| operand(slot).and_then(|v| self.size(v, -1)).and_then(|n| i64::try_from(n).ok());
        let index = |size: Option<i128>| Asked::Within(size.map_or(NARROW, |n| Span { low: -n, high: n - 1 }));
        match (proto.op_type(), slot) {
            ("GatherElements" | "ScatterElements" | "Scatter", 1) => index(self.size(data, number("axis"))),
            ("GatherND", 1) => {
                let first = number("batch_dims");
                index(last(1).and_then(|n| smallest(&mut (first..first + n))))
            }
            ("ScatterND", 1) => index(last(1).and_then(|n| smallest(&mut (0..n)))),
            ("Slice", 1 | 2) => {
                let axes = match operand(3) {
                    Some(axes) => self.graph.constant(axes).and_then(|axes| axes.to_i64()),
                    None => last(slot).map(|n| (0..n).collect()),
                };
                let size = axes.and_then(|axes| smallest(&mut axes.into_iter()));
                Asked::Within(size.map_or(NARROW, |n| Span { low: -n, high: n }))
            }
            ("RNN" | "GRU" | "LSTM", 4) => {
                let longest = self.size(data, i64::from(number("layout") == 1));
                Asked::Within(Span { low: 1, high: longest.map_or(1, |n| n.max(1)) })
            }
            ("Slice", 4) => Asked::Within(Span { low: 1, high: 2 }),
            ("GatherElements" | "ScatterElements" | "Scatter" | "GatherND" | "ScatterND" | "Slice" | "CumSum" | "TopK" | "Unique", 0)
            | ("NonZero" | "Trilu" | "Reshape" | "Expand" | "Tile", 0)
            | ("ScatterElements" | "Scatter" | "ScatterND", 2)
            | ("BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "BitwiseNot", _) => Asked::Anything,
            _ => narrow,
        }
    }

    /// Possible values of an integer; `None` if only its type is known. Narrower operands never
    /// widen the result.
    fn result(&self, value: ValueId, span: &dyn Fn(ValueId) -> Option<Span>) -> Option<Span> {
        use OpKind::*;
        let dtype = self.dtype(value)?;
        if dtype.class() == Class::Bool {
            return Some(NARROW);
        }
        if dtype.class() != Class::Int {
            return None;
        }
        let node = self.graph.node(value.node);
        let at = |at: usize| node.inputs.get(at).and_then(|v| span(*v));
        let all = || node.inputs.iter().map(|v| span(*v)).collect::<Option<Vec<Span>>>();
        let fold = |f: fn(Span, Span) -> Span| all()?.into_iter().reduce(f);
        let found = match &node.op {
            Op::Constant(constant) if constant.value.elements() <= LARGEST && dtype != DType::U64 => {
                Span::of(constant.value.to_i64()?.into_iter().map(i128::from))
            }
            Op::Shape(_) => {
                let ty = self.graph.ty(*node.inputs.first()?)?;
                Span::of(ty.shape.iter().map(|d| d.eval(self.bindings).map(i128::from)).collect::<Option<Vec<_>>>()?)
            }
            Op::Clip(clip) => {
                let bound = |b: &Option<regraft_ir::Float>, open: i128| b.map_or(open, |b| b.0 as i128);
                let (all, x) = (width(dtype), at(0).unwrap_or_else(|| width(dtype)));
                let (low, high) = (bound(&clip.min, all.low), bound(&clip.max, all.high));
                Some(Span { low: x.low.max(low).min(high), high: x.high.max(low).min(high) })
            }
            Op::ArgMax(_) | Op::ArgMin(_) => {
                let ty = self.graph.ty(*node.inputs.first()?)?;
                let sizes = ty.shape.iter().map(|d| d.eval(self.bindings)).collect::<Option<Vec<_>>>()?;
                Some(Span { low: 0, high: sizes.into_iter().max().map_or(0, |n| i128::from(n) - 1).max(0) })
            }
            Op::TopK(top) if value.port == 1 => {
                let ty = self.graph.ty(*node.inputs.first()?)?;
                let size = ty.shape.get(usize::try_from(top.axis).ok()?)?.eval(self.bindings)?;
                Some(Span { low: 0, high: (i128::from(size) - 1).max(0) })
            }
            op => match op.kind() {
                Add => at(0)?.corners(at(1)?, |x, y| x + y),
                Sub => at(0)?.corners(at(1)?, |x, y| x - y),
                Mul => at(0)?.corners(at(1)?, |x, y| x.saturating_mul(y)),
                Sum => fold(|x, y| Span { low: x.low + y.low, high: x.high + y.high }),
                Max => fold(|x, y| Span { low: x.low.max(y.low), high: x.high.max(y.high) }),
                Min => fold(|x, y| Span { low: x.low.min(y.low), high: x.high.min(y.high) }),
                Div => at(1).filter(|y| !y.has(0)).and_then(|y| at(0)?.corners(y, |x, y| x / y)),
                Mod => at(1)
                    .filter(|y| y.low > 0)
                    .map(|y| Span { low: if at(0).is_some_and(|x| x.low >= 0) { 0 } else { 1 - y.high }, high: y.high - 1 }),
                Neg => at(0).map(|x| Span { low: -x.high, high: -x.low }),
                Abs => at(0)
                    .map(|x| Span { low: if x.has(0) { 0 } else { x.low.abs().min(x.high.abs()) }, high: x.low.abs().max(x.high.abs()) }),
                Relu => at(0).map(|x| Span { low: x.low.max(0), high: x.high.max(0) }),
                Sign => at(0).map(|x| Span { low: x.low.signum(), high: x.high.signum() }),
                Concat => fold(Span::join),
                Where => at(1).zip(at(2)).map(|(x, y)| x.join(y)),
                Cast | Identity | Dropout | Split | Slice | Transpose | Reshape | Flatten | Squeeze | Unsqueeze | Expand | Tile
                | Gather | ReduceMax | ReduceMin | MaxPool | TopK => at(0),
                _ => None,
            },
        };
        // A value that does not fit may be any number after wrapping around.
        found.filter(|span| span.within(width(dtype)))
    }
}

/// The number farthest from `from` (where it holds), towards `to`, up to which it holds.
fn farthest(from: i128, to: i128, holds: &dyn Fn(i128) -> bool) -> i128 {
    if holds(to) {
        return to;
    }
    let (mut inside, mut outside) = (from, to);
    while (outside - inside).abs() > 1 {
        let middle = inside + (outside - inside) / 2;
        if holds(middle) { inside = middle } else { outside = middle }
    }
    inside
}

#[cfg(test)]
mod tests {
    use regraft_ir::text;

    use super::*;

    /// `name low..high`, and `data` if the range is not one of indices.
    fn found(graph: &str) -> Vec<String> {
        let graph = text::parse(graph).unwrap_or_else(|e| panic!("{e}"));
        let bindings: Bindings = [("N".to_string(), 8)].into();
        let shown = |(name, r): (String, IntRange)| format!("{name} {}..{}{}", r.low, r.high, if r.index { "" } else { " data" });
        ranges(&graph, &bindings, &|_| None).into_iter().map(shown).collect()
    }

    #[test]
    fn data_has_the_width_of_its_type() {
        let text = "graph (i: i8[2], j: u16[2], k: i64[2], b: i32[2]) { const c: i64[2] = [3, -1] const z: i32[] = 0
            output Add(i, i) as p, Mul(j, j) as q, ReduceMean(Sub(k, c), axes=[0], keepdims=false) as r, Less(b, z) as s }";
        assert_eq!(
            found(text),
            ["b -2147483648..2147483647 data", "i -128..127 data", "j 0..65535 data", "k -9223372036854775808..9223372036854775807 data"]
        );
        assert_eq!(found("graph (m: i64[2]) { output Sqrt(Cast(m, to=f32)) as y }"), ["m -1024..1024 data"]);
        assert_eq!(found("graph (m: i8[2]) { output Sqrt(Cast(m, to=f32)) as y }"), ["m -128..127 data"]);
    }

    #[test]
    fn indices_have_the_width_of_their_axis() {
        let table = "graph (t: f32[30522,4], i: i64[1,N], j: i32[N]) {";
        assert_eq!(found(&format!("{table} output Gather(t, i, axis=0) as y }}"))[0], "i -30522..30521");
        // Through movement, casts and shifts.
        let chain = "k = Unsqueeze(Cast(j, to=i64), axes=[0]) const two: i64[] = 2 const c: i64[1] = [5]";
        assert_eq!(found(&format!("{table} {chain} output Gather(t, Add(k, two), axis=0) as y }}"))[1], "j -30524..30519");
        assert_eq!(found(&format!("{table} {chain} output Gather(t, Mul(k, two), axis=1) as y }}"))[1], "j -2..1");
        assert_eq!(
            found(&format!("{table} {chain} output Gather(t, Concat(k, Unsqueeze(c, axes=[0]), axis=1), axis=0) as y }}"))[1],
            "j -30522..30521"
        );
        // By the tightest of several.
        assert_eq!(found(&format!("{table} output Gather(t, j, axis=0) as y, Gather(t, j, axis=1) as z }}"))[1], "j -4..3");
        assert_eq!(found(&format!("{table} output Gather(i, j, axis=1) as y }}"))[1], "j -8..7");
        // Elements of an index table are as good as the table; the position in it is what matters.
        assert_eq!(
            found(&format!("{table} const p: i64[3] = [7, 8, 9] output Gather(t, Gather(p, j, axis=0), axis=0) as y }}"))[1],
            "j -3..2"
        );
        assert_eq!(found("graph (i: i64[3]) { const v: f32[2] = [0, 1] output OneHot(i, v, axis=1, depth=10) as y }"), ["i -10..9"]);
        // After clipping, any number will do.
        assert_eq!(found(&format!("{table} output Gather(t, Clip(j, min=0, max=3), axis=1) as y }}"))[1], "j -2147483648..2147483647 data");
    }

    #[test]
    fn sums_of_two_inputs_stay_within_the_axis() {
        let text = "graph (t: f32[100,4], i: i64[3], j: i64[3]) { output Gather(t, Add(i, j), axis=0) as y }";
        let found = ranges(&text::parse(text).expect("a graph"), &Bindings::new(), &|_| None);
        let (i, j) = (&found["i"], &found["j"]);
        assert!(i.low + j.low >= -100 && i.high + j.high <= 99, "{found:?}");
        assert_eq!((i.low, i.high), (-100, 98));
    }

    #[test]
    fn divisors_are_not_zero() {
        let text = "graph (i: i32[3], d: i32[3], m: i32[3]) { const minus: i32[] = -1 output Div(i, d) as y, Div(m, minus) as z }";
        assert_eq!(found(text), ["d 1..2147483647 data", "i -2147483648..2147483647 data", "m -2147483647..2147483647 data"]);
        assert_eq!(found("graph (i: u8[3], s: u8[3]) { output BitShift(i, s, direction=\"LEFT\") as y }"), ["i 0..255 data", "s 0..7"]);
    }

    #[test]
    fn operators_that_are_kept_verbatim_ask_by_their_attributes() {
        use regraft_onnx::proto::AttributeProto;
        let graph = "graph (x: f32[5,7,9], i: i64[5,2,9], j: i64[4,2], k: i64[3,2], s: i64[2], e: i64[2], p: i64[2]) {
            a = opaque:GatherElements(x, i) -> f32[5,2,9]
            b = opaque:GatherND(x, j) -> f32[4,9]
            u = opaque:Zero(k) -> f32[3,9]
            c = opaque:ScatterND(x, k, u) -> f32[5,7,9]
            d = opaque:Slice(x, s, e, _, p) -> f32[A,B,9]
            output a, b, c, d }";
        let graph = text::parse(graph).unwrap_or_else(|e| panic!("{e}"));
        let axis = AttributeProto { name: Some("axis".into()), r#type: Some(2), i: Some(1), ..AttributeProto::default() };
        let proto = |kind: &str, inputs: &[&str]| NodeProto {
            op_type: Some(kind.into()),
            input: inputs.iter().map(ToString::to_string).collect(),
            attribute: vec![axis.clone()],
            ..NodeProto::default()
        };
        let nodes = [
            proto("GatherElements", &["x", "i"]),
            proto("GatherND", &["x", "j"]),
            proto("Abs", &["k"]),
            proto("ScatterND", &["x", "k", "u"]),
            proto("Slice", &["x", "s", "e", "", "p"]),
        ];
        let opaque: Vec<NodeId> = graph.ids().filter(|id| graph.node(*id).op.kind() == OpKind::Opaque).collect();
        let verbatim = |id: NodeId| nodes.get(opaque.iter().position(|other| *other == id)?);
        let bindings = Bindings::new();
        let found = ranges(&graph, &bindings, &verbatim);
        let shown: Vec<String> = found.iter().map(|(name, r)| format!("{name} {}..{}", r.low, r.high)).collect();
        // `k` also goes to an operator that is unknown here.
        assert_eq!(shown, ["e -5..5", "i -7..6", "j -5..4", "k 0..1", "p 1..2", "s -5..5"]);
    }

    #[test]
    fn sequences_have_elements_and_no_more_than_the_tensor() {
        let layer = |length: &str| {
            format!(
                "graph (x: f32[{length},3,2], n: i32[3]) {{ const w: f32[1,4,2] = 1 const r: f32[1,4,1] = 1
                y, h, c = LSTM(x, w, r, n, direction=\"forward\", activations=[\"Sigmoid\", \"Tanh\", \"Tanh\"], alphas=[], betas=[],
                    optional=[\"sequence_lens\"], input_forget=false) output y }}"
            )
        };
        assert_eq!(found(&layer("7")), ["n 1..7"]);
        assert_eq!(found(&layer("N")), ["n 1..8"]);
        assert_eq!(found(&layer("M")), ["n 1..1"]);
        let opaque = "graph (x: f32[7,3,2], n: i32[3]) { const w: f32[1,4,2] = 1 output opaque:LSTM(x, w, w, _, n) -> f32[7,1,3,1] as y }";
        let opaque = text::parse(opaque).unwrap_or_else(|e| panic!("{e}"));
        let inputs = ["x", "w", "r", "", "n"].map(String::from).to_vec();
        let proto = NodeProto { op_type: Some("LSTM".into()), input: inputs, ..NodeProto::default() };
        assert_eq!(ranges(&opaque, &Bindings::new(), &|_| Some(&proto))["n"], IntRange { low: 1, high: 7, index: true });
        let ranked = "graph (t: f32[9,4], i: i64[3,5]) { p, q = TopK(i, axis=1, k=2, largest=true) output Gather(t, q, axis=0) as y, p }";
        assert_eq!(found(ranked), ["i -9223372036854775808..9223372036854775807 data"]);
    }

    #[test]
    fn what_is_not_known_is_narrow() {
        let unknown = "graph (x: f32[4,3], i: i32[2], j: i64[2], s: i64[2]) {
            c = Cast(Sqrt(Cast(i, to=f32)), to=i64)
            k = opaque:Mystery(j) -> i64[2]
            output Gather(x, c, axis=0) as y, k as z, Shape(s, start=0, end=1) as n, opaque:Resize(x, s) -> f32[?] as r }";
        let unknown = unknown.replace("opaque:Resize(x, s) -> f32[?] as r", "opaque:Expand(x, s) -> f32[4,3] as r");
        assert_eq!(found(&unknown), ["i 0..1", "j 0..1", "s 0..1"]);
        // Positions of angles count from the front.
        let rotated = "graph (x: f32[1,2,8], c: f32[9,2], i: i64[1,2]) {
            a = Gather(c, i, axis=0)
            output RotaryEmbedding(x, a, a, interleaved=false, rotary_embedding_dim=4, num_heads=2) as y }";
        assert_eq!(found(rotated), ["i 0..8"]);
        // Past a comparison, no range matters.
        let masked = "graph (t: f32[9,4], i: i64[3]) { const z: i64[] = 0
            output Gather(t, Where(Equal(i, z), i, z), axis=0) as y, opaque:CumSum(Cast(Equal(i, z), to=i64)) -> i64[3] as s }";
        assert_eq!(found(masked), ["i -9..8"]);
    }
}
