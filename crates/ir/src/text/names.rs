//! Names in the text format.

use crate::dtype::DType;

/// Words that are no names unless quoted.
const RESERVED: [&str; 13] = ["graph", "const", "output", "as", "opaque", "true", "false", "none", "floor", "broadcast", "inf", "NaN", "_"];

/// True for characters that a plain word may start with.
pub(super) fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// True for characters that a plain word may go on with.
pub(super) fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// The name as the text format writes it: as it is where it is a plain word, else in backquotes.
pub fn quoted(name: &str) -> String {
    let reserved = RESERVED.contains(&name) || DType::from_name(name).is_some() || name.starts_with("dtype");
    let plain = name.starts_with(starts_word) && name.chars().all(continues_word) && !reserved;
    if plain {
        return name.to_string();
    }
    let mut text = String::with_capacity(name.len() + 2);
    text.push('`');
    for c in name.chars() {
        match c {
            '`' => text.push_str("\\`"),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.extend(c.escape_default()),
            c => text.push(c),
        }
    }
    text.push('`');
    text
}
