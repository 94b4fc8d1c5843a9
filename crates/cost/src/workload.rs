//! The work of a node under concrete sizes: arithmetic and traffic.

use regraft_ir::{Bindings, DType, Graph, Kernel, NodeId, OpKind, ValueId, Work};

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
        let work = match is_widened_half(graph, id) {
            true => Work { kernel: Kernel::Free, ..Work::default() },
            false => node.op.work(&inputs, &outputs),
        };
        Some(Workload { work, bytes: bytes + work.extra_bytes })
    }
}

/// Whether a node casts halves to single precision, or the other way round. Runtimes that have no
/// kernels for halves keep them in single precision, and then it does nothing.
fn is_widened_half(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let dtype = |value: ValueId| graph.ty(value).map(|ty| ty.dtype);
    node.op.kind() == OpKind::Cast
        && matches!((dtype(node.inputs[0]), dtype(id.out())), (Some(DType::F16), Some(DType::F32)) | (Some(DType::F32), Some(DType::F16)))
}

/// Whether operators of this kind are products.
pub(crate) fn is_product(kind: OpKind) -> bool {
    use OpKind::{Conv, ConvTranspose, Einsum, GRU, Gemm, LSTM, MatMul, RNN};
    matches!(kind, Conv | ConvTranspose | MatMul | Gemm | Einsum | RNN | GRU | LSTM)
}
