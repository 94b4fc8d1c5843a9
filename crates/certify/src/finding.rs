//! What a replay found.

use regraft_ir::Trust;
use regraft_onnx::FixedSizes;
use regraft_prove::Premises;

use crate::congruence::Rounding;
use crate::replay::Judged;

/// What a certificate says about two models.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The result is not the one that was certified, or the certificate contradicts itself.
    Tampered(String),
    /// The certificate belongs to this result, but to another input.
    OtherInput(String),
    /// It was replayed.
    Replayed(Replay),
}

/// How far a replay got.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The sizes that the comparison is limited to; if empty, it is about all that the input
    /// accepts.
    pub fixed: FixedSizes,
    /// Steps of the certificate, in all graphs.
    pub steps: usize,
    /// What is known about each replayed step, in order.
    pub judged: Vec<Judged>,
    /// What was rounded in the output model.
    pub rounding: Rounding,
    /// Whether the steps lead to the output model; otherwise where they diverge, or why that could
    /// not be decided.
    pub arrival: Result<(), String>,
}

impl Replay {
    /// What is known of the whole: as much as of its weakest part.
    pub fn trust(&self) -> Trust {
        if self.arrival.is_err() || self.judged.len() < self.steps {
            return Trust::Unproved;
        }
        self.judged.iter().map(|j| j.trust).min().unwrap_or(Trust::Proved)
    }

    /// What the proofs of steps take for granted.
    pub fn premises(&self) -> Premises {
        self.judged.iter().fold(Premises::default(), |all, judged| all.and(judged.premises))
    }

    /// Number of steps with at least this much trust.
    pub fn count(&self, trust: Trust) -> usize {
        self.judged.iter().filter(|j| j.trust >= trust).count()
    }

    /// The steps without a proof.
    pub fn open(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|j| j.trust < Trust::Bounded)
    }
}
