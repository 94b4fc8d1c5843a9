//! What a prover says of two graphs.

use std::fmt;

use crate::premises::Premises;

/// Whether two graphs compute the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They do, for all values of the inputs and of the symbols in their shapes, as far as the
    /// premises hold.
    Proved(Premises),
    /// They do if constants are the simple numbers that they were rounded from.
    Bounded(Premises, Rounding),
    /// Nothing was shown, and why. This refutes nothing.
    Unproved(String),
}

/// Constants that were read as other numbers than the stored ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rounding {
    /// The largest difference from the stored number, relative to it.
    pub relative: f64,
}

impl Verdict {
    /// Whether equality was shown with constants as they are stored.
    pub fn is_proved(&self) -> bool {
        matches!(self, Verdict::Proved(_))
    }

    /// What the proof takes for granted, if there is one.
    pub fn premises(&self) -> Premises {
        match self {
            Verdict::Proved(premises) | Verdict::Bounded(premises, _) => *premises,
            Verdict::Unproved(_) => Premises::default(),
        }
    }

    /// Whether equality was shown, of the stored constants or of what they were rounded from.
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
