//! The analytic roofline: deterministic, without dependencies, for tests and for ranking before
//! anything is measured.

use regraft_ir::{Bindings, Graph, Kernel, NodeId, Op, OpKind};

use crate::model::{CostModel, Ns};
use crate::workload::Workload;

/// Speeds of one core of a machine, or of a device.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// A current x86 server core with 512-bit vectors (this project's own measurements, rounded).
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
fn fuses_into_producer(kind: OpKind) -> bool {
    matches!(kind, OpKind::Relu | OpKind::Clip | OpKind::LeakyRelu | OpKind::Sigmoid | OpKind::Tanh | OpKind::HardSigmoid)
}

/// Whether a node is an activation that a runtime computes within the dense operator before it,
/// which has no other reader.
pub(crate) fn is_fused(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.inputs.first().is_some_and(|value| {
        let producer = graph.node(value.node);
        fuses(node.op.kind(), producer.op.kind()) && producer.users.len() == 1
    })
}

/// Whether runtimes compute an operator of this kind within one of that kind, whose only reader it
/// is.
pub(crate) fn fuses(kind: OpKind, producer: OpKind) -> bool {
    fuses_into_producer(kind) && matches!(producer, OpKind::Conv | OpKind::Gemm | OpKind::BatchNormalization)
}

impl Machine {
    /// The time of a workload, ns.
    pub fn time(&self, load: &Workload) -> f64 {
        let traffic = load.bytes / self.bandwidth;
        let speed = match load.work.kernel {
            Kernel::Free => return 0.0,
            Kernel::Copy => return traffic + self.launch,
            Kernel::Dense => self.dense,
            Kernel::Thin => self.thin,
            Kernel::Elementwise => self.elementwise,
            Kernel::Transcendental => self.transcendental,
            Kernel::Window => self.window,
        };
        (load.work.flops / speed).max(traffic) + self.launch
    }
}

impl CostModel for Roofline {
    fn price(&self, graph: &Graph, id: NodeId) -> Ns {
        let node = graph.node(id);
        if node.constant || matches!(node.op, Op::Input(_)) || is_fused(graph, id) {
            return 0;
        }
        let load = Workload::of(graph, &self.bindings, id);
        load.map_or(self.machine.launch, |load| self.machine.time(&load)) as Ns
    }

    fn bindings(&self) -> Option<&Bindings> {
        Some(&self.bindings)
    }
}
