//! The weights of an agent: one list of matrices, in files with the settings that they were trained
//! by.

use regraft_ir::SplitMix64;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::encoded::{EDGE, TYPES};
use crate::rows::ROUNDS;
use crate::settings::Settings;

/// Numbers of a node between rounds.
pub const WIDTH: usize = 64;
/// Numbers of a graph.
pub const POOLED: usize = 32;
/// Numbers between a head's input and output.
pub const HEAD: [usize; 2] = [256, 64];
/// Numbers of a node before the first round: its type, shapes of the edges that leave and enter,
/// and the graph's own number, which is 0.
pub const NODE: usize = TYPES + 2 * EDGE + 1;

/// A matrix of the network, stored by inputs: row `i` is what input `i` adds to each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Before the first round.
    Node,
    /// Its bias.
    NodeBias,
    /// A round.
    Round(usize),
    /// Its bias.
    RoundBias(usize),
    /// What a sender adds to a logit of attention.
    Sender(usize),
    /// What a receiver adds.
    Receiver(usize),
    /// What is added to all.
    LogitBias(usize),
    /// A graph's sum, and its own number, which is 0.
    Pooled,
    /// Its bias.
    PooledBias,
    /// The head for actions (0) or values (1), from all slots.
    Head(usize),
    /// Its bias.
    HeadBias(usize),
    /// Its second layer.
    Hidden(usize),
    /// Its bias.
    HiddenBias(usize),
    /// A logit for each slot, or a value.
    Output(usize),
    /// Its bias.
    OutputBias(usize),
}

impl Part {
    /// All parts, in the order in which they are stored.
    pub fn all() -> Vec<Part> {
        let mut parts = vec![Part::Node, Part::NodeBias];
        for round in 0..ROUNDS {
            parts.extend([Part::Round(round), Part::RoundBias(round), Part::Sender(round), Part::Receiver(round), Part::LogitBias(round)]);
        }
        parts.extend([Part::Pooled, Part::PooledBias]);
        for head in 0..2 {
            parts.extend([Part::Head(head), Part::HeadBias(head), Part::Hidden(head), Part::HiddenBias(head)]);
            parts.extend([Part::Output(head), Part::OutputBias(head)]);
        }
        parts
    }

    /// Inputs and outputs, with so many slots.
    pub fn shape(self, slots: usize) -> [usize; 2] {
        let outputs = |head: usize| if head == 0 { slots } else { 1 };
        match self {
            Part::Node => [NODE, WIDTH],
            Part::NodeBias | Part::RoundBias(_) => [1, WIDTH],
            Part::Round(_) => [WIDTH, WIDTH],
            Part::Sender(_) | Part::Receiver(_) => [WIDTH, 1],
            Part::LogitBias(_) => [1, 1],
            Part::Pooled => [WIDTH + 1, POOLED],
            Part::PooledBias => [1, POOLED],
            Part::Head(_) => [slots * POOLED, HEAD[0]],
            Part::HeadBias(_) => [1, HEAD[0]],
            Part::Hidden(_) => [HEAD[0], HEAD[1]],
            Part::HiddenBias(_) => [1, HEAD[1]],
            Part::Output(head) => [HEAD[1], outputs(head)],
            Part::OutputBias(head) => [1, outputs(head)],
        }
    }

    fn begins(self) -> Beginning {
        match self {
            Part::Node | Part::Round(_) | Part::Sender(_) | Part::Receiver(_) | Part::Pooled => Beginning::Normal,
            Part::Head(_) | Part::Hidden(_) | Part::Output(_) => Beginning::Orthogonal,
            _ => Beginning::Zero,
        }
    }
}

/// How a matrix begins.
enum Beginning {
    Zero,
    /// With a variance of one over its inputs.
    Normal,
    /// With orthogonal columns (or rows, if there are fewer) of length 0.01.
    Orthogonal,
}

/// The weights of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What it was trained by, and for.
    pub about: About,
    parts: Vec<Vec<f32>>,
}

/// What an agent was trained by, and for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The model.
    pub model: String,
    /// Episodes.
    pub episodes: usize,
    /// Settings.
    pub settings: Settings,
}

/// Why a file of weights cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WeightsError {
    /// It begins otherwise.
    #[error("this is no agent of X-RLflow")]
    Foreign,
    /// It ends elsewhere.
    #[error("an agent with {0} slots has {1} bytes of weights; this file has {2}")]
    Size(usize, usize, usize),
    /// Its description cannot be read.
    #[error("what the agent was trained by cannot be read: {0}")]
    About(String),
}

/// How a file begins.
const MAGIC: &[u8; 8] = b"rgxrlflo";

impl Weights {
    /// Random ones, as training begins.
    pub fn random(about: About, seed: u64) -> Weights {
        let mut random = SplitMix64(seed);
        let slots = about.settings.slots;
        let mut start = |part: Part| {
            let [inputs, outputs] = part.shape(slots);
            match part.begins() {
                Beginning::Zero => vec![0.0; inputs * outputs],
                Beginning::Normal => {
                    let scale = 1.0 / (inputs as f64).sqrt();
                    (0..inputs * outputs).map(|_| (scale * random.normal()) as f32).collect()
                }
                Beginning::Orthogonal => orthogonal([inputs, outputs], 0.01, &mut random),
            }
        };
        let parts = Part::all().into_iter().map(&mut start).collect();
        Weights { about, parts }
    }

    /// A matrix.
    pub fn part(&self, wanted: Part) -> &[f32] {
        let at = Part::all().iter().position(|part| *part == wanted);
        &self.parts[at.unwrap_or_else(|| unreachable!("{wanted:?}"))]
    }

    /// All matrices, in the order of [`Part::all`].
    pub fn parts(&self) -> &[Vec<f32>] {
        &self.parts
    }

    /// The same, to be trained.
    pub fn parts_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.parts
    }

    /// As a file: a word, the length of the description, that as JSON, and all numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let about = serde_json::to_vec(&self.about).unwrap_or_else(|e| unreachable!("{e}"));
        let mut bytes = MAGIC.to_vec();
        bytes.extend((about.len() as u32).to_le_bytes());
        bytes.extend(about);
        bytes.extend(self.parts.iter().flatten().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    /// From a file.
    ///
    /// # Errors
    ///
    /// If it is none, or cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Weights, WeightsError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(WeightsError::Foreign)?;
        let (length, rest) = rest.split_first_chunk().ok_or(WeightsError::Foreign)?;
        let (about, mut rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(WeightsError::Foreign)?;
        let about: About = serde_json::from_slice(about).map_err(|e| WeightsError::About(e.to_string()))?;
        let slots = about.settings.slots;
        let sizes: Vec<usize> = Part::all().into_iter().map(|part| part.shape(slots).iter().product()).collect();
        let wanted = 4 * sizes.iter().sum::<usize>();
        if rest.len() != wanted {
            return Err(WeightsError::Size(slots, wanted, rest.len()));
        }
        let mut parts = Vec::with_capacity(sizes.len());
        for size in sizes {
            let (own, others) = rest.split_at(4 * size);
            parts.push(own.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect());
            rest = others;
        }
        Ok(Weights { about, parts })
    }
}

/// A matrix whose columns are orthogonal, or whose rows are if these are fewer, each of this
/// length, by the method of Gram and Schmidt.
fn orthogonal([inputs, outputs]: [usize; 2], length: f64, random: &mut SplitMix64) -> Vec<f32> {
    let (count, size) = (inputs.min(outputs), inputs.max(outputs));
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut vector: Vec<f32> = (0..size).map(|_| random.normal() as f32).collect();
        for other in &vectors {
            let share: f32 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
            vector.iter_mut().zip(other).for_each(|(a, b)| *a -= share * b);
        }
        let norm = vector.iter().map(|a| a * a).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.iter_mut().for_each(|a| *a /= norm);
        vectors.push(vector);
    }
    let mut matrix = vec![0.0; inputs * outputs];
    for (at, vector) in vectors.iter().enumerate() {
        for (place, value) in vector.iter().enumerate() {
            let [input, output] = if outputs <= inputs { [place, at] } else { [at, place] };
            matrix[input * outputs + output] = length as f32 * value;
        }
    }
    matrix
}
