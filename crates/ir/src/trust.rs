//! How well the equality of two things is known.

use std::fmt;
use std::str::FromStr;

/// How well two things are known to be equal: the sides of a rule, two graphs, two models. More
/// trust is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// They differ: there is a counterexample.
    Refuted,
    /// Nothing was shown.
    #[default]
    Unproved,
    /// They were equal on random instances or inputs.
    Tested,
    /// They are equal for sizes up to a bound, or for some families of sizes but not all.
    ProvedInRange,
    /// They are equal for all inputs and sizes, if constants are the simple numbers they were
    /// rounded from, or the expressions they were folded from.
    Bounded,
    /// They are equal for all inputs and sizes, under the proof's assumptions.
    Proved,
}

impl Trust {
    /// All levels, the least first.
    pub const ALL: [Trust; 6] = [Trust::Refuted, Trust::Unproved, Trust::Tested, Trust::ProvedInRange, Trust::Bounded, Trust::Proved];

    /// Its keyword.
    pub fn word(self) -> &'static str {
        match self {
            Trust::Refuted => "refuted",
            Trust::Unproved => "unproved",
            Trust::Tested => "tested",
            Trust::ProvedInRange => "proved-in-range",
            Trust::Bounded => "bounded",
            Trust::Proved => "proved",
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Trust {
    type Err = String;

    fn from_str(word: &str) -> Result<Trust, String> {
        Trust::ALL.into_iter().find(|trust| trust.word() == word).ok_or_else(|| format!("`{word}` is no word of trust"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_in_order() {
        for pair in Trust::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
        }
        for trust in Trust::ALL {
            assert_eq!(trust.to_string().parse(), Ok(trust));
        }
        assert!("sure".parse::<Trust>().is_err());
    }
}
