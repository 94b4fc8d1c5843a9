//! How a verdict about two models was reached, and what may be required of one.

use std::fmt;
use std::str::FromStr;

use regraft_ir::Trust;
use serde::{Serialize, Serializer};

/// How a verdict was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The graphs are identical.
    Identical,
    /// This much is known: from the certificate, from the graphs, or, if it is [`Trust::Tested`],
    /// from outputs.
    Known(Trust),
    /// Outputs were compared, but the result is inconclusive.
    Undecided,
    /// The models declare different inputs or outputs.
    Signature,
    /// The model or its certificate was tampered with.
    Tampered,
}

impl Ground {
    /// How far it shows the models to be the same.
    pub fn trust(self) -> Trust {
        match self {
            Ground::Identical => Trust::Proved,
            Ground::Known(trust) => trust,
            Ground::Undecided | Ground::Signature | Ground::Tampered => Trust::Unproved,
        }
    }
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ground::Identical => f.write_str("identical graph"),
            Ground::Known(trust) => trust.fmt(f),
            Ground::Undecided => f.write_str("undecided"),
            Ground::Signature => f.write_str("signature"),
            Ground::Tampered => f.write_str("tampered"),
        }
    }
}

impl Serialize for Ground {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is required of a verdict: `tested`, `bounded`, `proved`, or `proved:exact`, a proof without
/// assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The least trust that is accepted.
    pub trust: Trust,
    /// Whether assumptions are ruled out.
    pub exact: bool,
}

impl Requirement {
    /// All of them.
    pub const ALL: [Requirement; 4] = [
        Requirement { trust: Trust::Proved, exact: true },
        Requirement { trust: Trust::Proved, exact: false },
        Requirement { trust: Trust::Bounded, exact: false },
        Requirement { trust: Trust::Tested, exact: false },
    ];

    /// Its keyword.
    pub fn word(self) -> &'static str {
        match (self.trust, self.exact) {
            (Trust::Proved, true) => "proved:exact",
            (trust, _) => trust.word(),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(word: &str) -> Result<Requirement, String> {
        Requirement::ALL.into_iter().find(|known| known.word() == word).ok_or_else(|| format!("`{word}` cannot be asked for"))
    }
}

impl Serialize for Requirement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_back() {
        for requirement in Requirement::ALL {
            assert_eq!(requirement.to_string().parse(), Ok(requirement));
        }
        assert!("surely:exact".parse::<Requirement>().is_err());
    }
}
