//! What a prover says about two graphs.

use std::fmt;

use crate::premises::Premises;

/// Whether two graphs compute the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They do, for all values of the inputs and of the symbols in their shapes, under the
    /// premises.
    Proved(Premises),
    /// They do if constants are the simple numbers they were rounded from.
    Bounded(Premises, Rounding),
    /// Nothing was shown, and why. This refutes nothing.
    Unproved(String),
}

/// How far constants are from the numbers they were read as.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounding {
    /// The largest difference, relative to the stored number.
    pub relative: f64,
}

impl Verdict {
    /// Whether equality was shown with the constants as stored.
    pub fn is_proved(&self) -> bool {
        matches!(self, Verdict::Proved(_))
    }

    /// What the proof assumes, if there is one.
    pub fn premises(&self) -> Premises {
        match self {
            Verdict::Proved(premises) | Verdict::Bounded(premises, _) => *premises,
            Verdict::Unproved(_) => Premises::default(),
        }
    }

    /// Whether equality was shown, for the stored constants or those they were rounded from.
    pub fn is_shown(&self) -> bool {
        !matches!(self, Verdict::Unproved(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Proved(premises) if premises.is_empty() => f.write_str("proved"),
            Verdict::Proved(premises) => write!(f, "proved {premises}"),
            Verdict::Bounded(_, rounding) => {
                write!(f, "bounded: proved, if constants are what they stand for, to {:.0e}", rounding.relative)
            }
            Verdict::Unproved(why) => write!(f, "unproved: {why}"),
        }
    }
}
