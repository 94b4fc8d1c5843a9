//! What a prover says of two graphs.

use std::fmt;

/// Whether two graphs compute the same over the reals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They do, for all values of the inputs and of the symbols in their shapes (each at least 1).
    Proved,
    /// Nothing was shown, and why. This refutes nothing.
    Unproved(String),
}

impl Verdict {
    /// Whether equality was shown.
    pub fn is_proved(&self) -> bool {
        matches!(self, Verdict::Proved)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Proved => f.write_str("proved"),
            Verdict::Unproved(why) => write!(f, "unproved: {why}"),
        }
    }
}
