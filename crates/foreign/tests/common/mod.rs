//! Handmade rule files.
#![allow(dead_code, reason = "every test file uses a part")]

use regraft_foreign::{Format, Judgement, Rule, judge};

/// The protobuf encoding of a number.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field that holds a number.
pub fn number(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

/// A field that holds bytes.
pub fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// An operator: its type, operands `(operator or negative variable, result)`, and parameters `(key,
/// value)`.
pub fn operator(kind: i64, operands: &[(i64, i64)], parameters: &[(i64, i64)]) -> Vec<u8> {
    let mut message = number(1, kind);
    for (operator, result) in operands {
        message.extend(bytes(2, &[number(1, *operator), number(2, *result)].concat()));
    }
    for (key, value) in parameters {
        message.extend(bytes(3, &[number(1, *key), number(2, *value)].concat()));
    }
    message
}

/// A rule, whose outputs are `(operator, result)` of the source and of the target.
pub fn rule(source: &[Vec<u8>], target: &[Vec<u8>], outputs: &[[i64; 4]]) -> Vec<u8> {
    let mut message = Vec::new();
    source.iter().for_each(|o| message.extend(bytes(1, o)));
    target.iter().for_each(|o| message.extend(bytes(2, o)));
    for [source, source_result, target, target_result] in outputs {
        let output = [number(1, *source), number(2, *target), number(3, *source_result), number(4, *target_result)].concat();
        message.extend(bytes(3, &output));
    }
    bytes(1, &message)
}

pub const STRIDE_1: [(i64, i64); 4] = [(6, 1), (7, 1), (8, 0), (9, 0)];

/// `conv(a, b)` with stride 1 and `SAME` padding.
pub fn conv(x: (i64, i64), w: (i64, i64)) -> Vec<u8> {
    operator(3, &[x, w], &STRIDE_1)
}

/// The only rule of a file.
pub fn only(bytes: &[u8]) -> Rule {
    let mut rules = read(bytes);
    assert_eq!(rules.len(), 1);
    rules.remove(0)
}

/// The rules of a file of any format.
pub fn read(bytes: &[u8]) -> Vec<Rule> {
    Format::of(bytes).read(bytes).unwrap_or_else(|e| panic!("{e}"))
}

/// The judgement of the only rule of a text, without proofs.
pub fn judged(text: &str) -> Judgement {
    judge(&only(text.as_bytes()), 0)
}
