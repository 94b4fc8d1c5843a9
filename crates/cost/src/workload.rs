//! The work of a node under concrete sizes: arithmetic and traffic.

use regraft_ir::{Bindings, Graph, NodeId, OpKind, ValueId, Work};

/// Arithmetic and traffic of one execution of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Arithmetic, extra bytes and the class of kernel.
    pub work: Work,
    /// Bytes of all operands and results, extra bytes included.
    pub bytes: f64,
}

impl Workload {
    /// The workload of a node; `None` if a type is unknown or a size is not bound.
    pub fn of(graph: &Graph, bindings: &Bindings, id: NodeId) -> Option<Workload> {
        let node = graph.node(id);
        let mut bytes = 0.0;
        let mut shape = |value: ValueId| {
            let ty = graph.ty(value)?;
            let shape = ty.bind(bindings)?;
            bytes += ty.dtype.bytes(&shape);
            Some(shape)
        };
        let inputs = node.inputs.iter().map(|v| shape(*v)).collect::<Option<Vec<_>>>()?;
        let outputs = (0..node.types.len()).map(|port| shape(id.port(port as u32))).collect::<Option<Vec<_>>>()?;
        let work = node.op.work(&inputs, &outputs);
        Some(Workload { work, bytes: bytes + work.extra_bytes })
    }
}

/// Whether operators of this kind are products.
pub(crate) fn is_product(kind: OpKind) -> bool {
    use OpKind::{Conv, ConvTranspose, Einsum, GRU, Gemm, LSTM, MatMul, RNN};
    matches!(kind, Conv | ConvTranspose | MatMul | Gemm | Einsum | RNN | GRU | LSTM)
}
