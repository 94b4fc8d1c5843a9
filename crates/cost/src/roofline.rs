//! The analytic roofline: deterministic, without dependencies, for tests and for ranking before anything is measured.

use regraft_ir::{Bindings, Graph, Kernel, NodeId, Op, OpKind};

use crate::model::{CostModel, Ns};

/// Speeds of one core of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Dense products and convolutions, in flop per ns.
    pub dense: f64,
    /// Grouped and depthwise convolutions and thin products, in flop per ns.
    pub thin: f64,
    /// Element-wise arithmetic, in operations per ns.
    pub elementwise: f64,
    /// Transcendental functions, in operations per ns.
    pub transcendental: f64,
    /// Windows and reductions, in operations per ns.
    pub window: f64,
    /// Memory traffic, in bytes per ns.
    pub bandwidth: f64,
    /// Launching one kernel, in ns.
    pub launch: f64,
}

impl Default for Machine {
    /// A current x86 server core with 512-bit vectors (figures of this project's own measurements, rounded).
    fn default() -> Machine {
        Machine { dense: 100.0, thin: 30.0, elementwise: 8.0, transcendental: 1.0, window: 4.0, bandwidth: 20.0, launch: 1500.0 }
    }
}

/// Prices a node by the slower of its arithmetic and its traffic, plus a launch.
#[derive(Clone, Debug)]
pub struct Roofline {
    /// Values of the symbols.
    pub bindings: Bindings,
    /// Speeds.
    pub machine: Machine,
}

impl Roofline {
    /// The default machine under these sizes.
    pub fn new(bindings: Bindings) -> Roofline {
        Roofline { bindings, machine: Machine::default() }
    }
}

/// Activations that runtimes fuse into the dense operator before them.
pub(crate) fn fuses_into_producer(kind: OpKind) -> bool {
    matches!(kind, OpKind::Relu | OpKind::Clip | OpKind::LeakyRelu | OpKind::Sigmoid | OpKind::Tanh | OpKind::HardSigmoid)
}

impl CostModel for Roofline {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        if node.constant || matches!(node.op, Op::Input(_)) {
            return 0;
        }
        let bound = |v: &regraft_ir::ValueId| graph.ty(*v).and_then(|t| Some((t.bind(&self.bindings)?, t.dtype.size())));
        let inputs: Vec<(Vec<usize>, usize)> = node.inputs.iter().filter_map(bound).collect();
        let outputs: Vec<(Vec<usize>, usize)> = node.types.iter().flatten().filter_map(|t| Some((t.bind(&self.bindings)?, t.dtype.size()))).collect();
        if inputs.len() != node.inputs.len() || outputs.len() != node.types.len() {
            return self.machine.launch as Ns;
        }
        let fused = fuses_into_producer(node.op.kind())
            && node.inputs.first().is_some_and(|v| {
                let producer = graph.node(v.node);
                matches!(producer.op.kind(), OpKind::Conv | OpKind::Gemm | OpKind::BatchNormalization) && producer.users.len() == 1 && !graph.is_output(*v)
            });
        if fused {
            return 0;
        }
        let bytes = |tensors: &[(Vec<usize>, usize)]| tensors.iter().map(|(shape, size)| (shape.iter().product::<usize>() * size) as f64).sum::<f64>();
        let shapes = |tensors: Vec<(Vec<usize>, usize)>| tensors.into_iter().map(|(shape, _)| shape).collect::<Vec<_>>();
        let traffic = bytes(&inputs) + bytes(&outputs);
        let work = node.op.work(&shapes(inputs), &shapes(outputs));
        let m = &self.machine;
        let speed = match work.kernel {
            Kernel::Free => return 0,
            Kernel::Dense => m.dense,
            Kernel::Thin => m.thin,
            Kernel::Elementwise | Kernel::Copy => m.elementwise,
            Kernel::Transcendental => m.transcendental,
            Kernel::Window => m.window,
        };
        let arithmetic = if work.kernel == Kernel::Copy { 0.0 } else { work.flops / speed };
        (arithmetic.max((traffic + work.extra_bytes) / m.bandwidth) + m.launch) as Ns
    }
}
