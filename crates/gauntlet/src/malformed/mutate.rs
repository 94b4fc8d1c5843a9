//! Damage to files: what disks, networks and attackers do to bytes, and corrupted lengths, sizes
//! and repetitions.

use crate::generate::random::Random;

/// Numbers that break arithmetic on sizes.
const HUGE: &[u64] =
    &[0, 1, 0x7f, 0x80, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0000, u64::MAX];

/// Words that may occur anywhere in a rule file.
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

/// `data` damaged in one to four ways; parts may come from `other`.
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
            // A part of another file, or a repeated part of this one.
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
            // A huge length or size where a number may be.
            let number = varint(random.pick(HUGE));
            let end = data.len().min(at + 1 + random.below(2));
            data.splice(at..end, number);
        }
        7 => {
            // A numeric or byte field with a false length.
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

/// `text` damaged in one to four ways; parts may come from `other`.
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

/// A field of a protobuf message: its tag and its payload, without the length.
type Field<'a> = (u64, &'a [u8]);

/// The fields of a message, if the bytes are one.
fn fields(mut data: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut all = Vec::new();
    while !data.is_empty() {
        let tag = take_varint(&mut data)?;
        let length = match tag & 7 {
            0 => data.iter().position(|b| b & 0x80 == 0)? + 1,
            1 => 8,
            2 => usize::try_from(take_varint(&mut data)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (payload, rest) = data.split_at_checked(length)?;
        if tag >> 3 == 0 || tag >> 3 > 40 {
            return None;
        }
        all.push((tag, payload));
        data = rest;
    }
    Some(all)
}

fn take_varint(data: &mut &[u8]) -> Option<u64> {
    let end = data.iter().take(10).position(|b| b & 0x80 == 0)? + 1;
    let (number, rest) = data.split_at(end);
    *data = rest;
    Some(number.iter().rev().fold(0, |value, b| value << 7 | u64::from(b & 0x7f)))
}

fn put(out: &mut Vec<u8>, tag: u64, payload: &[u8]) {
    out.extend(varint(tag));
    if tag & 7 == 2 {
        out.extend(varint(payload.len() as u64));
    }
    out.extend(payload);
}

/// A message with one field changed, dropped, doubled, moved or replaced at some depth; all
/// enclosing lengths stay right.
pub fn message(random: &mut Random, data: &[u8], other: &[u8]) -> Vec<u8> {
    let Some(mut all) = fields(data).filter(|all| !all.is_empty()) else {
        let mut data = data.to_vec();
        damage(random, &mut data, other);
        return data;
    };
    let at = random.below(all.len());
    let (tag, payload) = all[at];
    // Descend most of the time: the outermost level only has a few fields.
    if tag & 7 == 2 && !random.once_in(4) {
        let inner = message(random, payload, other);
        all[at].1 = &inner;
        return all.iter().fold(Vec::new(), |mut out, (tag, payload)| {
            put(&mut out, *tag, payload);
            out
        });
    }
    let number = varint(random.pick(HUGE));
    match random.below(5) {
        0 => drop(all.remove(at)),
        1 => all.insert(random.below(all.len() + 1), (tag, payload)),
        2 => {
            let with = random.below(all.len());
            all.swap(at, with);
        }
        3 => {
            let with = random.below(all.len());
            all[at].1 = if all[with].0 & 7 == tag & 7 { all[with].1 } else { &[] };
            if tag & 7 != 2 {
                all[at] = (tag & !7, &number);
            }
        }
        _ => all[at] = (tag & !7 | if tag & 7 == 2 { 2 } else { 0 }, &number),
    }
    all.iter().fold(Vec::new(), |mut out, (tag, payload)| {
        put(&mut out, *tag, payload);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_apart_and_together() {
        let data = [8, 150, 1, 18, 3, b'a', b'b', b'c', 29, 1, 2, 3, 4];
        let all = fields(&data).unwrap();
        assert_eq!(all, [(8, &[150, 1][..]), (18, &b"abc"[..]), (29, &[1, 2, 3, 4][..])]);
        let mut out = Vec::new();
        all.iter().for_each(|(tag, payload)| put(&mut out, *tag, payload));
        assert_eq!(out, data);
        assert!(fields(&[18, 200, 1, 0]).is_none());
    }

    #[test]
    fn damage_is_repeatable() {
        let damaged = |seed| message(&mut Random::new(seed, 0), &[8, 150, 1, 18, 3, 97, 98, 99], b"other");
        assert_eq!(damaged(3), damaged(3));
    }
}
