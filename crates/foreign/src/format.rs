//! The formats of rule files, and their detection.

use crate::error::{ImportError, Location};
use crate::rule::Rule;
use crate::{equations, taso, tensat};

/// Larger files are refused: a two-byte message takes a hundred bytes in memory.
pub const MOST_BYTES: usize = 4 << 20;

/// A format of rule files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TASO's protobuf collections.
    Taso,
    /// TENSAT's rules, one per line.
    Rules,
    /// TENSAT's rules with two results, two lines each.
    Pairs,
    /// The equations of TENSAT's verification mode.
    Equations,
}

impl Format {
    /// All formats with their command-line names.
    pub const NAMES: [(&'static str, Format); 4] =
        [("taso", Format::Taso), ("rules", Format::Rules), ("pairs", Format::Pairs), ("equations", Format::Equations)];

    /// The format that the content appears to have: text with `=>` or `==`, otherwise protobuf.
    ///
    /// Lines are pairs if their number is even and some line's target has a variable that its
    /// source does not.
    pub fn of(bytes: &[u8]) -> Format {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let is_text = !text.contains(|c: char| c.is_control() && !c.is_whitespace());
        let arrow = text.find("=>").unwrap_or(usize::MAX);
        let equal = text.find("==").unwrap_or(usize::MAX);
        match is_text {
            true if equal < arrow => Format::Equations,
            true if arrow < usize::MAX && tensat::are_pairs(text) => Format::Pairs,
            true if arrow < usize::MAX => Format::Rules,
            _ => Format::Taso,
        }
    }

    /// The rules of a file.
    ///
    /// # Errors
    /// The file is too large, holds no rules, or is not of this format.
    pub fn read(self, bytes: &[u8]) -> Result<Vec<Rule>, ImportError> {
        let whole = |message: String, hint: &str| ImportError { rule: None, location: Location::Byte(0), message, hint: hint.into() };
        if bytes.len() > MOST_BYTES {
            return Err(whole(format!("the file has {} bytes", bytes.len()), "rule files have at most 4 MiB"));
        }
        let text = || {
            std::str::from_utf8(bytes).map_err(|e| ImportError {
                location: Location::Byte(e.valid_up_to()),
                ..whole("this is no UTF-8 text".into(), "is it a protobuf file?")
            })
        };
        let rules = match self {
            Format::Taso => taso::read(bytes)?,
            Format::Rules => tensat::read_rules(text()?)?,
            Format::Pairs => tensat::read_pairs(text()?)?,
            Format::Equations => equations::read(text()?)?,
        };
        if rules.is_empty() {
            return Err(whole("there are no rules in it".into(), "TASO's protobuf files, and TENSAT's rules and equations are understood"));
        }
        Ok(rules)
    }
}
