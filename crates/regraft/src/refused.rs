//! Models that the runtime loads only if its own optimizer does less.

use std::fmt;

use regraft_runtime::{OptLevel, Refusal};
use serde::{Deserialize, Serialize};

/// A valid model that the runtime refuses with its optimizer fully on, and how it is run instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The highest level of the optimizer at which the runtime loads it: `disabled`, `basic` or
    /// `extended`.
    pub level: String,
    /// What the runtime says at the level above.
    pub cause: String,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Refused {
        Refused { level: refusal.level.to_string(), cause: refusal.cause.clone() }
    }
}

impl Refused {
    /// What such a model lacks when it is run: `with it off`.
    pub fn without(&self) -> String {
        if self.level == OptLevel::Disabled.to_string() { "with it off".into() } else { format!("with it at `{}`", self.level) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the runtime refuses it with its own optimizer fully on, and it is run {}: {}", self.without(), self.cause)
    }
}
