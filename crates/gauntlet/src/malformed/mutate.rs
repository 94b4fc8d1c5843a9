//! Damage to files: what disks, networks and attackers do to bytes, and what breaks lengths, sizes and repetitions.

use crate::generate::random::Random;

/// Numbers that break arithmetic on sizes.
const HUGE: &[u64] =
    &[0, 1, 0x7f, 0x80, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, u64::MAX];

/// Words that a rule file may hold anywhere.
const WORDS: &[&str] = &[
    "(",
    ")",
    "?x",
    "?xs...",
    "?b?",
    "=>",
    "(when",
    "(rule",
    "each",
    "(as ?y",
    "99999999999999999999",
    "-9223372036854775808",
    "1/0",
    "(list",
    "(range 0 999999999)",
    "(repeat 1 999999999)",
    "\"",
    ";",
    "$op",
    "(family $op (add mul)",
    "(matrix",
    "(pad",
    "none",
    "0.1e400",
    "\u{1f980}",
];

/// `data` damaged in one to four ways; `other` lends parts.
pub fn bytes(random: &mut Random, data: &[u8], other: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..1 + random.below(4) {
        damage(random, &mut data, other);
    }
    data
}

fn damage(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(data.len().max(1)).min(data.len());
    if data.is_empty() {
        data.push(random.next() as u8);
        return;
    }
    match random.below(9) {
        0 => data[at] ^= 1 << random.below(8),
        1 => data[at] = random.next() as u8,
        2 => data.truncate(at),
        3 => {
            // A part of another file, or of this one once more.
            let from = random.below(other.len().max(1)).min(other.len());
            let part = other[from..other.len().min(from + 1 + random.below(64))].to_vec();
            data.splice(at..at, part);
        }
        4 => {
            let part = data[at..data.len().min(at + 1 + random.below(48))].to_vec();
            data.splice(at..at, part);
        }
        5 => {
            let end = data.len().min(at + 1 + random.below(32));
            data.drain(at..end);
        }
        6 => {
            // A huge length or size where a number may stand.
            let number = varint(random.pick(HUGE));
            let end = data.len().min(at + 1 + random.below(2));
            data.splice(at..end, number);
        }
        7 => {
            // A field of a number or of bytes, of a length that lies.
            let tag = varint(((1 + random.below(31) as u64) << 3) | random.pick(&[0, 2, 2, 5, 1, 3]));
            let value = varint(random.pick(HUGE));
            data.splice(at..at, tag.into_iter().chain(value));
        }
        _ => {
            let end = data.len().min(at + 8);
            let number = random.pick(HUGE).to_le_bytes();
            data.splice(at..end, number);
        }
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// `text` damaged in one to four ways; `other` lends parts.
pub fn text(random: &mut Random, text: &str, other: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let lent: Vec<char> = other.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(chars.len() + 1);
        let end = chars.len().min(at + 1 + random.below(12));
        match random.below(6) {
            0 => {
                let word = random.pick(WORDS);
                chars.splice(at..at, word.chars());
            }
            1 => drop(chars.drain(at..end)),
            2 => chars.truncate(at.max(1)),
            3 => {
                let from = random.below(lent.len() + 1);
                let part = lent[from..lent.len().min(from + 1 + random.below(60))].to_vec();
                chars.splice(at..at, part);
            }
            4 => {
                let part = chars[at..end].to_vec();
                chars.splice(at..at, part);
            }
            _ => {
                let word = random.pick(WORDS);
                chars.splice(at..end, word.chars());
            }
        }
    }
    chars.into_iter().collect()
}
