//! Why a file of foreign rules cannot be read. Always the file's fault.

use std::fmt;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Offset in bytes, from 0.
    Byte(usize),
    /// Line and column, each from 1; columns count characters.
    Text {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
}

impl Place {
    /// The place of a byte offset in a text.
    pub(crate) fn of(text: &str, offset: usize) -> Place {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        Place::Text { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Byte(offset) => write!(f, "byte {offset}"),
            Place::Text { line, column } => write!(f, "{line}:{column}"),
        }
    }
}

/// A mistake in a file of foreign rules, with its place and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{message}", rule.map(|n| format!("rule {n}: ")).unwrap_or_default())]
pub struct ImportError {
    /// Number of the rule in the file, from 0; none where the file as a whole is wrong.
    pub rule: Option<usize>,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "ab\nçd\n";
        assert_eq!(Place::of(text, 0).to_string(), "1:1");
        assert_eq!(Place::of(text, 3).to_string(), "2:1");
        assert_eq!(Place::of(text, 5).to_string(), "2:2");
        assert_eq!(Place::of(text, text.len()).to_string(), "3:1");
    }
}
