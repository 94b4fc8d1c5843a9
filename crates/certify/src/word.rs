//! The words for trust.

use std::fmt;

/// How well an equality is known, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// Nothing was shown.
    Unproved,
    /// Both sides are the same elements of a prime field on random inputs of some sizes.
    Tested,
    /// They are equal over the reals, for all inputs and all sizes.
    Proved,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Word::Unproved => "unproved",
            Word::Tested => "tested",
            Word::Proved => "proved",
        })
    }
}
