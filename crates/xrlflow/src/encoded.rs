//! `Encoded`: a graph as an agent sees it.

use regraft_ir::{Bindings, Graph, NodeId, OpKind, ValueId};
use rustc_hash::FxHashMap;

/// Types of operators that are told apart, and one for all others.
pub const TYPES: usize = 48;
/// Numbers of an edge: the last sizes of the tensor.
pub const EDGE: usize = 4;

/// What is told apart: the operators of the published table as far as graphs have them here, and
/// what stands for its fused ones. Attributes are invisible, as published: a kernel's size shows in
/// its weight's shape alone.
const TOLD_APART: [OpKind; TYPES - 1] = [
    OpKind::Input,
    OpKind::Constant,
    OpKind::Add,
    OpKind::AveragePool,
    OpKind::BatchNormalization,
    OpKind::Cast,
    OpKind::Ceil,
    OpKind::Concat,
    OpKind::Conv,
    OpKind::ConvTranspose,
    OpKind::Clip,
    OpKind::Div,
    OpKind::Einsum,
    OpKind::Elu,
    OpKind::Equal,
    OpKind::Erf,
    OpKind::Exp,
    OpKind::Expand,
    OpKind::Flatten,
    OpKind::Gather,
    OpKind::Gelu,
    OpKind::Gemm,
    OpKind::GlobalAveragePool,
    OpKind::HardSigmoid,
    OpKind::HardSwish,
    OpKind::LayerNormalization,
    OpKind::LeakyRelu,
    OpKind::Log,
    OpKind::MatMul,
    OpKind::Max,
    OpKind::MaxPool,
    OpKind::Mul,
    OpKind::Neg,
    OpKind::Pad,
    OpKind::Pow,
    OpKind::ReduceMean,
    OpKind::ReduceSum,
    OpKind::Relu,
    OpKind::Reshape,
    OpKind::Sigmoid,
    OpKind::Slice,
    OpKind::Softmax,
    OpKind::Split,
    OpKind::Sqrt,
    OpKind::Sub,
    OpKind::Tanh,
    OpKind::Transpose,
];

/// How sizes become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Divided by 4096, as published.
    Linear,
    /// The logarithm to base 2 of one more, divided by 16.
    Logarithmic,
}

/// A graph: nodes with their types, and edges with the shapes of tensors (X-RLflow, section 3.3).
/// Inputs and weights are nodes, too. Every node has an edge to itself, of zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded {
    /// The type of each node.
    pub types: Vec<u8>,
    /// From which node to which, in the order of the readers and their operands.
    pub edges: Vec<(u32, u32)>,
    /// The last axes of each edge's tensor, the last one last; zeros before them.
    pub shapes: Vec<[f32; EDGE]>,
}

impl Encoded {
    /// Of a graph at these values of symbols.
    pub fn of(graph: &Graph, bindings: Option<&Bindings>, sizes: Sizes) -> Encoded {
        let mut encoded = Encoded::default();
        let mut places: FxHashMap<NodeId, u32> = FxHashMap::default();
        for id in graph.ids() {
            places.insert(id, encoded.types.len() as u32);
            encoded.types.push(type_of(graph.node(id).op.kind()));
        }
        for id in graph.ids() {
            for value in &graph.node(id).inputs {
                encoded.edges.push((places[&value.node], places[&id]));
                encoded.shapes.push(shape(graph, *value, bindings, sizes));
            }
        }
        encoded
    }
}

pub(crate) fn type_of(kind: OpKind) -> u8 {
    TOLD_APART.iter().position(|known| *known == kind).unwrap_or(TYPES - 1) as u8
}

pub(crate) fn shape(graph: &Graph, value: ValueId, bindings: Option<&Bindings>, sizes: Sizes) -> [f32; EDGE] {
    let mut numbers = [0.0; EDGE];
    let Some(ty) = graph.ty(value) else { return numbers };
    let none = Bindings::default();
    let bindings = bindings.unwrap_or(&none);
    for (number, size) in numbers.iter_mut().rev().zip(ty.shape.iter().rev()) {
        let size = size.eval(bindings).map_or(0.0, |size| size as f32);
        *number = match sizes {
            Sizes::Linear => size / 4096.0,
            Sizes::Logarithmic => (1.0 + size).log2() / 16.0,
        };
    }
    numbers
}
