//! Graphs with additional operators, so that more laws apply.

use regraft_ir::{Attr, Class, Dim, Graph, Op, OpKind, SplitMix64, TensorType, ValueId};

/// Operators to add around a graph. Binary ones read one value twice, or two values of the same
/// type.
const AROUND: [OpKind; 12] = [
    OpKind::Add,
    OpKind::Mul,
    OpKind::Sub,
    OpKind::Max,
    OpKind::Concat,
    OpKind::MatMul,
    OpKind::Relu,
    OpKind::Neg,
    OpKind::Transpose,
    OpKind::ReduceSum,
    OpKind::Reshape,
    OpKind::Slice,
];

/// The graph with up to `count` more operators, each of which reads existing values and is an
/// output of its own.
pub(crate) fn surrounded(graph: &Graph, count: usize, random: &mut SplitMix64) -> Graph {
    let mut graph = graph.clone();
    for at in 0..count {
        let values: Vec<(ValueId, TensorType)> = graph
            .ids()
            .flat_map(|id| graph.node(id).types.iter().enumerate().map(move |(port, ty)| (id.port(port as u32), ty)))
            .filter_map(|(value, ty)| Some((value, ty.clone()?)))
            .filter(|(_, ty)| ty.dtype.class() == Class::Real && ty.rank() > 0)
            .collect();
        let Some((value, ty)) = values.get(random.below(values.len())) else { continue };
        let alike: Vec<ValueId> = values.iter().filter(|(_, other)| other == ty).map(|(value, _)| *value).collect();
        let kind = AROUND[random.below(AROUND.len())];
        let Some(op) = operator(kind, ty, random) else { continue };
        let operands = match kind {
            OpKind::Add | OpKind::Mul | OpKind::Sub | OpKind::Max | OpKind::Concat | OpKind::MatMul => {
                vec![*value, alike[random.below(alike.len())]]
            }
            _ => vec![*value],
        };
        // Not every type has a product with itself.
        if let Ok(id) = graph.add(op, &operands) {
            graph.add_output(&format!("z{at}"), id.port(0));
        }
    }
    graph
}

/// An operator of this kind that accepts operands of this type in most cases.
fn operator(kind: OpKind, ty: &TensorType, random: &mut SplitMix64) -> Option<Op> {
    let axis = random.below(ty.rank()) as i64;
    let named = |name: &str, attr: Attr| (name.to_string(), attr);
    let attrs = match kind {
        OpKind::Concat => vec![named("axis", Attr::Int(axis))],
        OpKind::Transpose => vec![named("perm", Attr::Ints((0..ty.rank() as i64).rev().collect()))],
        OpKind::ReduceSum => vec![named("axes", Attr::Ints(vec![axis])), named("keepdims", Attr::Bool(true))],
        OpKind::Reshape => vec![named("shape", Attr::Dims(vec![ty.elements(), Dim::from(1)]))],
        OpKind::Slice => {
            let size = ty.shape.get(axis as usize)?.known()?;
            let start = random.below(usize::try_from(size).ok()?) as i64;
            vec![
                named("axes", Attr::Ints(vec![axis])),
                named("starts", Attr::Dims(vec![Dim::from(start)])),
                named("ends", Attr::Dims(vec![Dim::from(size)])),
                named("steps", Attr::Ints(vec![1])),
            ]
        }
        _ => Vec::new(),
    };
    kind.with_attrs(&attrs).ok()
}
