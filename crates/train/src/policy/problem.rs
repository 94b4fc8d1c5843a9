//! What is learned on, and what searches are compared on: blocks of networks, made worse at random,
//! at the prices of a machine that is drawn, too.

use anyhow::Result;
use regraft_cost::{Machine, Roofline};
use regraft_ir::{Bindings, Graph, OpKind, SplitMix64, Steps, fnv1a, normal};
use regraft_policy::block;
use regraft_rules::{Anything, Library};
use regraft_search::{Engine, Matcher, RandomWalk, Strategy};

/// Networks that blocks are cut from unless others are named: real ones of all families.
pub const NETWORKS: [&str; 15] = [
    "squeezenet-1.1",
    "resnet-50",
    "resnext-50-branches",
    "inception-v3",
    "mobilenet-v2",
    "mobilenet-v3-large",
    "nasnet-a",
    "vdcnn-29",
    "sample-cnn",
    "nasrnn",
    "sru",
    "bert-base",
    "vit-base",
    "gpt2-block",
    "bert-large-layers",
];

/// What a network mostly consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Products of two values that a run computes.
    Attention,
    /// Convolutions.
    Convolutional,
    /// Neither.
    Recurrent,
}

impl Family {
    /// Of a graph.
    pub fn of(graph: &Graph) -> Family {
        let varies = |id: &regraft_ir::ValueId| !graph.node(id.node).constant;
        let nodes = || graph.ids().map(|id| graph.node(id));
        if nodes().any(|node| node.op.kind() == OpKind::MatMul && node.inputs.iter().all(varies)) {
            Family::Attention
        } else if nodes().any(|node| node.op.kind() == OpKind::Conv) {
            Family::Convolutional
        } else {
            Family::Recurrent
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Family::Attention => "attention",
            Family::Convolutional => "convolutional",
            Family::Recurrent => "recurrent",
        }
    }
}

/// A network of the zoo, in normal form and without weights.
///
/// # Errors
///
/// If there is none of this name.
pub fn network(name: &str) -> Result<Graph> {
    let options = regraft_zoo::Options { weights: regraft_zoo::Weights::Zeros, ..Default::default() };
    let model = regraft_onnx::Model::from_proto(regraft_zoo::build(name, &options)?)?;
    Ok(normalized(model.graph().clone()))
}

fn normalized(mut graph: Graph) -> Graph {
    normal::dce(&mut graph);
    normal::cse(&mut graph);
    graph
}

/// A machine whose speeds are up to twice or half the usual ones: what is learned on many of them
/// holds on one that was not there.
fn machine(random: &mut SplitMix64) -> Machine {
    let mut vary = |speed: f64| speed * 2f64.powf(2.0 * random.unit() - 1.0);
    let usual = Machine::default();
    Machine {
        dense: vary(usual.dense),
        thin: vary(usual.thin),
        elementwise: vary(usual.elementwise),
        transcendental: vary(usual.transcendental),
        window: vary(usual.window),
        bandwidth: vary(usual.bandwidth),
        launch: vary(usual.launch),
    }
}

/// A block of a network, up to so many random moves away from what was cut, and its prices; `None`
/// where none was found. The same for the same seed.
pub fn problem(graph: &Graph, library: &Library, detours: usize, random: &mut SplitMix64) -> Option<(Graph, Roofline)> {
    let block = block(graph, random)?;
    let prices = Roofline { bindings: Bindings::new(), machine: machine(random) };
    let steps = random.below(detours + 1);
    let mut engine = Engine::new(block, &prices);
    let mut matcher = Matcher::new(library, &Anything);
    let walk = RandomWalk { steps, seed: random.word() }.search(&mut engine, &mut matcher, &mut Steps(1000));
    walk.scripts[0].moves.iter().for_each(|step| engine.apply(step));
    Some((normalized(engine.into_graph()), prices))
}

/// Random numbers for a block of a network.
pub fn seeded(seed: u64, model: &str, number: usize) -> SplitMix64 {
    SplitMix64(seed ^ fnv1a(model.bytes()) ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
