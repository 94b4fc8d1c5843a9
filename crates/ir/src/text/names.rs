//! Names in the text format.

use crate::dtype::DType;

/// Words that cannot be names unless quoted.
const RESERVED: [&str; 13] = ["graph", "const", "output", "as", "opaque", "true", "false", "none", "floor", "broadcast", "inf", "NaN", "_"];

/// True for characters that a plain word may start with.
pub(super) fn starts_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// True for characters that may continue a plain word.
pub(super) fn continues_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// The name as the text format writes it: as is if it is a plain word, otherwise in backquotes.
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

/// `did you mean ..?` for the closest of some names, if one is close.
pub(super) fn nearest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<String> {
    let distance = |other: &str| {
        let other: Vec<char> = other.to_lowercase().chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, c) in name.to_lowercase().chars().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, d) in other.iter().enumerate() {
                let best = (diagonal + usize::from(c != *d)).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        row[other.len()]
    };
    let (far, best) = among.map(|other| (distance(other), other)).min()?;
    (far <= 1 + name.chars().count() / 4).then(|| format!("did you mean `{best}`?"))
}
