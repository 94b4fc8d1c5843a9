//! Why a file of foreign rules cannot be read. Always the file's fault.

use std::fmt;

use regraft_ir::text::Position;

/// A location in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Offset in bytes, from 0.
    Byte(usize),
    /// Position in a text.
    Text(Position),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Byte(offset) => write!(f, "byte {offset}"),
            Location::Text(position) => position.fmt(f),
        }
    }
}

/// A mistake in a file of foreign rules, with its location and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {}{message}", rule.map(|n| format!("rule {n}: ")).unwrap_or_default())]
pub struct ImportError {
    /// Number of the rule in the file, from 0; `None` if the file as a whole is wrong.
    pub rule: Option<usize>,
    /// Where.
    pub location: Location,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}
