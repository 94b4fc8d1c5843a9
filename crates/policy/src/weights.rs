//! The weights of the network: one list of matrices, in files as half precision with what they were
//! trained for.

use half::f16;
use regraft_ir::SplitMix64;
use thiserror::Error;

use crate::descriptor::DESCRIPTOR;
use crate::digest::Digest;
use crate::features::{KINDS, MOVE, NODE, STATE};

/// Numbers of a node's embedding.
pub const WIDTH: usize = 32;
/// Rounds in which nodes learn of their neighbours.
pub const ROUNDS: usize = 2;
/// Numbers between the features of a move, and of a state, and their scores.
pub const HIDDEN: usize = 64;

/// A matrix of the network, stored by inputs: row `i` is what input `i` adds to each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// A node's kind, to its embedding.
    Kind,
    /// A node's numbers.
    Node,
    /// Added to every embedding.
    NodeBias,
    /// A round: what a node keeps of itself, and what it takes from its first operand, from the
    /// other operands, and from its readers.
    Round(usize, Side),
    /// A round's bias.
    RoundBias(usize),
    /// A move: the first of its nodes, all of them, and those that it reads.
    MoveNodes(Among),
    /// A move's numbers.
    MoveNumbers,
    /// Its rule's numbers.
    Rule,
    /// Added to all moves.
    MoveBias,
    /// A second layer for moves.
    MoveHidden,
    /// Its bias.
    MoveHiddenBias,
    /// A move's score.
    Score,
    /// The mean of a state's nodes.
    StateNodes,
    /// A state's numbers.
    StateNumbers,
    /// Added to all states.
    StateBias,
    /// A state's value.
    Value,
    /// Added to it.
    ValueBias,
}

/// Who tells a node something in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Side {
    Itself,
    First,
    Others,
    Readers,
}

/// Nodes of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Among {
    First,
    All,
    Read,
}

impl Among {
    /// All of them, in the order of their numbers.
    pub const ALL: [Among; 3] = [Among::First, Among::All, Among::Read];
}

impl Part {
    /// All parts, in the order in which they are stored.
    pub fn all() -> Vec<Part> {
        let mut parts = vec![Part::Kind, Part::Node, Part::NodeBias];
        for round in 0..ROUNDS {
            parts.extend([Side::Itself, Side::First, Side::Others, Side::Readers].map(|side| Part::Round(round, side)));
            parts.push(Part::RoundBias(round));
        }
        parts.extend(Among::ALL.map(Part::MoveNodes));
        parts.extend([Part::MoveNumbers, Part::Rule, Part::MoveBias, Part::MoveHidden, Part::MoveHiddenBias, Part::Score]);
        parts.extend([Part::StateNodes, Part::StateNumbers, Part::StateBias, Part::Value, Part::ValueBias]);
        parts
    }

    /// Inputs and outputs.
    pub fn shape(self) -> [usize; 2] {
        match self {
            Part::Kind => [KINDS, WIDTH],
            Part::Node => [NODE, WIDTH],
            Part::NodeBias | Part::RoundBias(_) => [1, WIDTH],
            Part::Round(..) => [WIDTH, WIDTH],
            Part::MoveNodes(_) | Part::StateNodes => [WIDTH, HIDDEN],
            Part::MoveNumbers => [MOVE, HIDDEN],
            Part::Rule => [DESCRIPTOR, HIDDEN],
            Part::MoveBias | Part::MoveHiddenBias | Part::StateBias => [1, HIDDEN],
            Part::MoveHidden => [HIDDEN, HIDDEN],
            Part::Score | Part::Value => [HIDDEN, 1],
            Part::StateNumbers => [STATE, HIDDEN],
            Part::ValueBias => [1, 1],
        }
    }

    fn is_bias(self) -> bool {
        matches!(self, Part::NodeBias | Part::RoundBias(_) | Part::MoveBias | Part::MoveHiddenBias | Part::StateBias | Part::ValueBias)
    }
}

/// The weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What they were trained for.
    pub digest: Digest,
    parts: Vec<(Part, Vec<f32>)>,
}

/// Why a file of weights cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WeightsError {
    /// It has another size.
    #[error("the weights have {0} bytes, and not {1}: they are of another network")]
    Size(usize, usize),
    /// They begin otherwise.
    #[error("these are no weights of a policy")]
    Foreign,
}

/// How a file begins.
const MAGIC: &[u8; 8] = b"rgpolicy";

impl Weights {
    /// Random ones, as training begins.
    pub fn random(digest: Digest, seed: u64) -> Weights {
        let mut random = SplitMix64(seed);
        let mut start = |part: Part| {
            let [inputs, outputs] = part.shape();
            let scale = match part {
                part if part.is_bias() => 0.0,
                Part::Kind => 0.2,
                Part::Score | Part::Value => 0.1 / (inputs as f64).sqrt(),
                Part::Round(..) => 0.5 / (inputs as f64).sqrt(),
                _ => 1.0 / (inputs as f64).sqrt(),
            };
            (part, (0..inputs * outputs).map(|_| (scale * random.normal()) as f32).collect())
        };
        Weights { digest, parts: Part::all().into_iter().map(&mut start).collect() }
    }

    /// These, in the order of [`Part::all`].
    ///
    /// # Panics
    ///
    /// If one has another size.
    pub fn of(digest: Digest, values: Vec<Vec<f32>>) -> Weights {
        let parts: Vec<(Part, Vec<f32>)> = Part::all().into_iter().zip(values).collect();
        assert!(parts.iter().all(|(part, values)| values.len() == part.shape().iter().product::<usize>()));
        Weights { digest, parts }
    }

    /// A matrix.
    ///
    /// # Panics
    ///
    /// Never: all parts are there.
    pub fn part(&self, wanted: Part) -> &[f32] {
        let found = self.parts.iter().find(|(part, _)| *part == wanted);
        found.map(|(_, values)| values.as_slice()).unwrap_or_else(|| unreachable!("{wanted:?}"))
    }

    /// All matrices, in the order of [`Part::all`].
    pub fn parts(&self) -> impl Iterator<Item = (Part, &[f32])> {
        self.parts.iter().map(|(part, values)| (*part, values.as_slice()))
    }

    /// As a file: a word, the digest, and all numbers in half precision.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.digest.to_bytes());
        let numbers = self.parts.iter().flat_map(|(_, values)| values);
        bytes.extend(numbers.flat_map(|value| f16::from_f32(*value).to_le_bytes()));
        bytes
    }

    /// From a file.
    ///
    /// # Errors
    ///
    /// If it is none, or of a network of another size.
    pub fn from_bytes(bytes: &[u8]) -> Result<Weights, WeightsError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(WeightsError::Foreign)?;
        let (digest, mut rest) = rest.split_first_chunk().ok_or(WeightsError::Foreign)?;
        let sizes: Vec<usize> = Part::all().into_iter().map(|part| part.shape().iter().product()).collect();
        let wanted = 2 * sizes.iter().sum::<usize>();
        if rest.len() != wanted {
            return Err(WeightsError::Size(rest.len(), wanted));
        }
        let mut values = Vec::new();
        for size in sizes {
            let (own, others) = rest.split_at(2 * size);
            values.push(own.chunks_exact(2).map(|two| f16::from_le_bytes([two[0], two[1]]).to_f32()).collect());
            rest = others;
        }
        Ok(Weights::of(Digest::from_bytes(*digest), values))
    }
}
