//! `Sample`: a state and its moves as numbers, with what a teacher says of them.

use half::f16;
use regraft_ir::NodeId;
use regraft_search::{Engine, Move};
use rustc_hash::FxHashMap;
use std::sync::Arc;

use crate::features::{self, Known, MOVE, NODE, STATE};

/// A state, its moves, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nodes.
    pub nodes: Vec<SampleNode>,
    /// Moves.
    pub moves: Vec<SampleMove>,
    /// Numbers of the state.
    pub state: [f32; STATE],
    /// What the logarithm of the cost falls by, at best.
    pub value: f32,
}

/// A node of a [`Sample`].
#[derive(Clone, Debug, PartialEq)]
pub struct SampleNode {
    /// Its kind.
    pub kind: u8,
    /// Whether it depends on constants alone.
    pub constant: bool,
    /// Its numbers.
    pub numbers: [f32; NODE],
    /// What it reads, as places among the nodes.
    pub operands: Vec<u16>,
}

/// A move of a [`Sample`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleMove {
    /// Its rule, by its index in the library.
    pub rule: u16,
    /// Its numbers.
    pub numbers: [f32; MOVE],
    /// Nodes that it replaces, as places.
    pub nodes: Vec<u16>,
    /// Nodes that it reads, as places.
    pub reads: Vec<u16>,
    /// By how much worse what follows from it is than what follows from the best move; as a
    /// difference of logarithms of costs.
    pub regret: f32,
}

impl Sample {
    /// The engine's current state; each move with what is known of it and with its regret.
    pub fn of(engine: &Engine<'_>, moves: &[(Arc<Move>, Known, f32)], value: f32) -> Sample {
        let graph = engine.graph();
        let ids: Vec<NodeId> = graph.ids().collect();
        let places: FxHashMap<NodeId, u16> = ids.iter().zip(0..).map(|(id, at)| (*id, at)).collect();
        let node = |id: &NodeId| {
            let node = graph.node(*id);
            SampleNode {
                kind: features::kind(node.op.kind()) as u8,
                constant: node.constant,
                numbers: features::node(engine, *id),
                operands: node.inputs.iter().map(|value| places[&value.node]).collect(),
            }
        };
        let step = |(step, known, regret): &(Arc<Move>, Known, f32)| SampleMove {
            rule: step.rule as u16,
            numbers: features::step(engine, step, *known),
            nodes: step.nodes.iter().map(|id| places[id]).collect(),
            reads: step.reads().map(|id| places[&id]).collect(),
            regret: *regret,
        };
        let known: Vec<Known> = moves.iter().map(|(_, known, _)| *known).collect();
        let state = features::state(engine, &known);
        Sample { nodes: ids.iter().map(node).collect(), moves: moves.iter().map(step).collect(), state, value }
    }

    /// In a compact form, numbers in half precision.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer(Vec::new());
        bytes.count(self.nodes.len());
        for node in &self.nodes {
            bytes.count(usize::from(node.kind));
            bytes.count(usize::from(node.constant));
            bytes.numbers(&node.numbers);
            bytes.places(&node.operands);
        }
        bytes.count(self.moves.len());
        for step in &self.moves {
            bytes.count(usize::from(step.rule));
            bytes.numbers(&step.numbers);
            bytes.places(&step.nodes);
            bytes.places(&step.reads);
            bytes.numbers(&[step.regret]);
        }
        bytes.numbers(&self.state);
        bytes.numbers(&[self.value]);
        bytes.0
    }

    /// From [`Sample::to_bytes`]; `None` if it is cut off.
    pub fn from_bytes(bytes: &[u8]) -> Option<Sample> {
        let mut bytes = Reader(bytes);
        let mut sample = Sample::default();
        for _ in 0..bytes.count()? {
            let (kind, constant) = (bytes.count()? as u8, bytes.count()? != 0);
            sample.nodes.push(SampleNode { kind, constant, numbers: bytes.numbers()?, operands: bytes.places()? });
        }
        for _ in 0..bytes.count()? {
            let rule = bytes.count()? as u16;
            let (numbers, nodes, reads) = (bytes.numbers()?, bytes.places()?, bytes.places()?);
            let [regret] = bytes.numbers()?;
            sample.moves.push(SampleMove { rule, numbers, nodes, reads, regret });
        }
        sample.state = bytes.numbers()?;
        [sample.value] = bytes.numbers()?;
        Some(sample)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn count(&mut self, count: usize) {
        self.0.extend((count as u16).to_le_bytes());
    }

    fn numbers(&mut self, numbers: &[f32]) {
        self.0.extend(numbers.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()));
    }

    fn places(&mut self, places: &[u16]) {
        self.count(places.len());
        self.0.extend(places.iter().flat_map(|place| place.to_le_bytes()));
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn count(&mut self) -> Option<usize> {
        let (two, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(usize::from(u16::from_le_bytes(*two)))
    }

    fn numbers<const N: usize>(&mut self) -> Option<[f32; N]> {
        let (own, rest) = self.0.split_at_checked(2 * N)?;
        self.0 = rest;
        Some(std::array::from_fn(|at| f16::from_le_bytes([own[2 * at], own[2 * at + 1]]).to_f32()))
    }

    fn places(&mut self) -> Option<Vec<u16>> {
        (0..self.count()?).map(|_| self.count().map(|place| place as u16)).collect()
    }
}
