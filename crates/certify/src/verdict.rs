//! What a replay found.

use std::fmt;

use regraft_prove::Premises;

use crate::congruence::Rounding;
use crate::replay::Judged;

/// How well an equality is known, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// Nothing was shown.
    Unproved,
    /// Both sides are the same elements of a prime field on random inputs of some sizes.
    Tested,
    /// They are equal for all inputs and all sizes, if constants are the simple numbers that they were rounded from.
    Bounded,
    /// They are equal for all inputs and all sizes, as far as the premises hold.
    Proved,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Word::Unproved => "unproved",
            Word::Tested => "tested",
            Word::Bounded => "bounded",
            Word::Proved => "proved",
        })
    }
}

/// What a certificate says of two models.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The result is not the one that was certified, or the certificate contradicts itself.
    Tampered(String),
    /// The certificate belongs to this result, but to another input.
    OtherInput(String),
    /// It could be replayed.
    Replayed(Replay),
}

/// How far a replay came.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Steps of the certificate, in all graphs.
    pub steps: usize,
    /// What is known of each that was replayed, in order.
    pub judged: Vec<Judged>,
    /// What was rounded in the model that was written.
    pub rounding: Rounding,
    /// Whether the steps lead to the model that was written; else where they end elsewhere, or why that cannot be told.
    pub arrival: Result<(), String>,
}

impl Replay {
    /// What is known of the whole: no more than of its weakest part.
    pub fn word(&self) -> Word {
        if self.arrival.is_err() || self.judged.len() < self.steps {
            return Word::Unproved;
        }
        self.judged.iter().map(|j| j.word).min().unwrap_or(Word::Proved)
    }

    /// What the proofs of steps take for granted.
    pub fn premises(&self) -> Premises {
        self.judged.iter().fold(Premises::default(), |all, judged| all.and(judged.premises))
    }

    /// Number of steps that are known this well, or better.
    pub fn count(&self, word: Word) -> usize {
        self.judged.iter().filter(|j| j.word >= word).count()
    }

    /// The steps that are not known by a proof.
    pub fn open(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|j| j.word < Word::Bounded)
    }
}
