//! All ranks: a leading axis that all operators pass over stands for any number of axes.
//!
//! Each position along such an axis is computed independently and in the same way. So a tensor of
//! shape `[m, n, ..]` may be viewed as one of shape `[m n, ..]`, computed there, and viewed back:
//! what is equal for all sizes of one leading axis is equal for any number of them.

use regraft_ir::{Attr, Dim, Graph, Node, Op, OpKind, TensorType, ValueId};

use crate::meaning::is_pointwise;
use crate::rebuild::rebuilt;

/// Symbols of leading axes of inputs that stand for any number of axes in both graphs.
pub fn leading_axes(before: &Graph, after: &Graph) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for id in before.inputs() {
        let ty = before.node(*id).types.first().and_then(Option::as_ref);
        let Some(symbol) = ty.and_then(|ty| ty.shape.first()).and_then(Dim::as_symbol) else { continue };
        // Two axes stand for any number: nothing below depends on how many there are.
        let axes = ["first", "second"].map(|place| Dim::symbol(&format!("{place} of {symbol}")));
        if !found.iter().any(|known| known == symbol) && [before, after].iter().all(|g| with_leading_axes(g, symbol, &axes).is_some()) {
            found.push(symbol.to_string());
        }
    }
    found
}

/// The graph with every axis of size `symbol` replaced by `axes`; `None` if it is not always a
/// leading axis, or if some operator may do more than pass over it.
pub fn with_leading_axes(graph: &Graph, symbol: &str, axes: &[Dim]) -> Option<Graph> {
    let leading = Leading { symbol, axes };
    let lifted = rebuilt(graph, |ty| leading.ty(ty), |node| leading.operator(graph, node))?;
    let results = |graph: &Graph| graph.outputs().iter().map(|o| graph.ty(o.value).cloned()).collect::<Option<Vec<_>>>();
    let expected = results(graph)?.iter().map(|ty| leading.ty(ty)).collect::<Option<Vec<_>>>();
    (results(&lifted) == expected).then_some(lifted)
}

/// A leading axis, and what replaces it.
struct Leading<'a> {
    symbol: &'a str,
    axes: &'a [Dim],
}

impl Leading<'_> {
    fn is_met(&self, dims: &[Dim]) -> bool {
        dims.iter().any(|dim| dim.has_symbol(|name| name == self.symbol))
    }

    /// Whether a shape begins with the axis and has it nowhere else; `None` if it occurs elsewhere.
    fn begins(&self, shape: &[Dim]) -> Option<bool> {
        match shape {
            [first, rest @ ..] if first.as_symbol() == Some(self.symbol) => (!self.is_met(rest)).then_some(true),
            shape => (!self.is_met(shape)).then_some(false),
        }
    }

    fn shape(&self, shape: &[Dim]) -> Option<Vec<Dim>> {
        Some(if self.begins(shape)? { [self.axes, &shape[1..]].concat() } else { shape.to_vec() })
    }

    fn ty(&self, ty: &TensorType) -> Option<TensorType> {
        Some(TensorType { shape: self.shape(&ty.shape)?.into(), ..ty.clone() })
    }

    /// The operator with its axes adjusted to the lifted graph.
    fn operator(&self, graph: &Graph, node: &Node) -> Option<Op> {
        let along = |value: &ValueId| self.begins(&graph.ty(*value)?.shape);
        let operands: Vec<bool> = node.inputs.iter().map(along).collect::<Option<_>>()?;
        let results: Vec<bool> = node.types.iter().map(|ty| self.begins(&ty.as_ref()?.shape)).collect::<Option<_>>()?;
        if !operands.contains(&true) && !results.contains(&true) {
            return Some(node.op.clone());
        }
        let rank = |value: &ValueId| graph.ty(*value).map_or(0, TensorType::rank);
        let ranks: Vec<usize> = node.inputs.iter().map(rank).collect();
        let passes = results.iter().all(|along| *along) && self.passes(&node.op, &operands, &ranks, node.types[0].as_ref()?.rank());
        passes.then(|| self.moved(&node.op, operands.first() == Some(&true)))?
    }

    /// Whether the operator treats each position along the axis independently. `along` says which
    /// operands have the axis.
    fn passes(&self, op: &Op, along: &[bool], ranks: &[usize], rank: usize) -> bool {
        use OpKind::*;
        let below =
            |operands: &[bool], ranks: &[usize]| operands.iter().zip(ranks).all(|(along, r)| if *along { *r == rank } else { *r < rank });
        match (op.kind(), along) {
            // Operands of lower rank are the same everywhere along it.
            (kind, _) if is_pointwise(kind) => below(along, ranks),
            (LayerNormalization | RMSNormalization, [true, others @ ..]) => !others.contains(&true) && below(along, ranks),
            (MatMul, [true, false]) => ranks[0] >= 2 && (ranks[1] <= 2 || ranks[1] < ranks[0]),
            (MatMul, [false, true]) => ranks[1] >= 3 && ranks[0] < ranks[1],
            (MatMul, [true, true]) => ranks[0] >= 3 && ranks[0] == ranks[1],
            (MatMulInteger, [true, false, zeros @ ..]) => !zeros.contains(&true) && (ranks[1] <= 2 || ranks[1] < ranks[0]),
            // Scales of blocks have the axes of what they scale.
            (QuantizeLinear | DequantizeLinear, [true, parameters @ ..]) => {
                let blocks = op.attr("block_size").is_some_and(|size| size != Attr::Absent);
                parameters.iter().all(|along| *along == blocks)
            }
            (Concat, operands) => operands.iter().all(|along| *along),
            (Gather, [true, false] | [false, true]) => true,
            (OneHot, [true, false]) => true,
            (GatherElements, [true, true]) => true,
            // The last two axes are those of the matrices.
            (Trilu, [true]) => rank >= 3,
            // Along its own axes only.
            (Resize, [true]) => true,
            (
                Softmax | LogSoftmax | ReduceSum | ReduceMean | ReduceMax | ReduceMin | ReduceProd | ReduceL1 | ReduceL2 | ReduceLogSum
                | ReduceLogSumExp | ReduceSumSquare | CumSum | TopK | ArgMax | ArgMin | Identity | Dropout | Split | Slice | Transpose
                | Reshape | Squeeze | Unsqueeze | Tile | Pad,
                [true],
            ) => true,
            (Expand, [along]) => *along || ranks[0] < rank,
            (ConstantOfShape, []) => true,
            _ => false,
        }
    }

    /// The operator with its axes shifted; `None` if it works on the leading one. `first` says
    /// whether its first operand has it.
    fn moved(&self, op: &Op, first: bool) -> Option<Op> {
        let rank = op.attrs().iter().find_map(|(name, attr)| match attr {
            Attr::Ints(pads) if *name == "pads" => Some(pads.len() / 2),
            _ => None,
        });
        let moved = |axis: i64| (axis >= 1).then(|| axis - 1 + self.axes.len() as i64);
        let all = |axes: &[i64]| axes.iter().map(|axis| moved(*axis)).collect::<Option<Vec<i64>>>();
        // One number per axis; the leading axis gets `neutral`.
        let each = |numbers: &[i64], neutral: i64| {
            let (leading, rest) = numbers.split_first()?;
            (*leading == neutral).then(|| [vec![neutral; self.axes.len()], rest.to_vec()].concat())
        };
        let mut attrs = Vec::new();
        for (name, attr) in op.attrs() {
            let attr = match (name, attr) {
                // A row index is not an axis of the table.
                ("axis", Attr::Int(axis)) if op.kind() == OpKind::Gather && !first => (axis == 0).then_some(Attr::Int(axis))?,
                ("axis", Attr::Int(axis)) => Attr::Int(moved(axis)?),
                ("axes", Attr::Ints(axes)) => Attr::Ints(all(&axes)?),
                ("perm", Attr::Ints(perm)) => {
                    let (leading, rest) = perm.split_first()?;
                    let before = (*leading == 0).then_some(0..self.axes.len() as i64)?;
                    Attr::Ints(before.chain(all(rest)?).collect())
                }
                ("repeats", Attr::Ints(repeats)) => Attr::Ints(each(&repeats, 1)?),
                ("pads", Attr::Ints(pads)) => {
                    let (low, high) = pads.split_at(rank?);
                    Attr::Ints([each(low, 0)?, each(high, 0)?].concat())
                }
                ("shape", Attr::Dims(shape)) => Attr::Dims(self.shape(&shape)?),
                (_, Attr::Dims(dims)) if self.is_met(&dims) => return None,
                (_, attr) => attr,
            };
            attrs.push((name.to_string(), attr));
        }
        op.kind().with_attrs(&attrs).ok()
    }
}
