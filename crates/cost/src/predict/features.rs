//! What a price is predicted from: a node as a row of numbers.

use std::collections::BTreeMap;

use regraft_ir::{Attr, Kernel};

use crate::predict::subject::Subject;

/// Numbers of a row.
pub const FEATURES: usize = 35;
/// Sizes of an operand that are looked at, from the last one on.
const SIZES: usize = 4;
/// A word that was seen so often counts half by itself, and half as the class that it belongs to.
const SHRINKAGE: f64 = 2.0;

/// What the words around a node are worth: the mean value of the samples that have them.
///
/// Ordered so, a tree finds the best division of the words into two parts as if they were numbers
/// (Breiman, Friedman, Olshen and Stone, "Classification and regression trees", 1984, section
/// 4.2.2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vocabulary {
    /// By the keys of words.
    pub(super) words: BTreeMap<u32, f32>,
    pub(super) mean: f32,
}

/// What a word is found by: words are many, long, and never read.
fn key(word: &str) -> u32 {
    let [a, b, c, d, ..] = *blake3::hash(word.as_bytes()).as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The words of a node, each with the one that it falls back to.
fn words(subject: &Subject) -> [(String, Option<usize>); 5] {
    let kind = subject.op.kind().name();
    let (producer, alone) = subject.producers.iter().find(|(kind, _)| kind != "c").cloned().unwrap_or_default();
    let reader = match subject.readers.as_slice() {
        [one] => one.clone(),
        [] => String::new(),
        _ => "several".into(),
    };
    [
        (kind.to_owned(), None),
        (format!("{kind} of {producer} {alone}"), Some(0)),
        (format!("{kind} for {reader}"), Some(0)),
        (format!("{kind} between {producer} {alone} and {reader}"), Some(1)),
        (format!("{kind} with {}", attributes(subject)), Some(0)),
    ]
}

/// The attributes that say how a kernel goes about it, as a word.
fn attributes(subject: &Subject) -> String {
    let mut text = String::new();
    for (name, value) in subject.op.attrs() {
        if matches!(name, "perm" | "axis" | "axes" | "transA" | "transB" | "mode" | "approximate") {
            text.push_str(&format!("{value} "));
        }
    }
    let rank = subject.inputs.first().map_or(0, Vec::len);
    format!("{text}of {rank}")
}

impl Vocabulary {
    /// Of samples and their values.
    pub fn learn(samples: &[(Subject, f64)]) -> Vocabulary {
        let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        let mean = samples.iter().map(|(_, value)| value).sum::<f64>() / samples.len().max(1) as f64;
        let mut parents: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (subject, value) in samples {
            let own = words(subject);
            for (word, parent) in &own {
                let (sum, count) = sums.entry(word.clone()).or_default();
                *sum += value;
                *count += 1.0;
                parents.entry(word.clone()).or_insert_with(|| parent.map(|at| own[at].0.clone()));
            }
        }
        let mut known: BTreeMap<&str, f64> = BTreeMap::new();
        // Words fall back to others at most twice.
        for _ in 0..3 {
            let before = known.clone();
            for (word, (sum, count)) in &sums {
                let parent =
                    parents.get(word).and_then(Option::as_ref).and_then(|parent| before.get(parent.as_str())).copied().unwrap_or(mean);
                known.insert(word, (sum + SHRINKAGE * parent) / (count + SHRINKAGE));
            }
        }
        Vocabulary { words: known.into_iter().map(|(word, value)| (key(word), value as f32)).collect(), mean: mean as f32 }
    }

    /// The features of a node.
    pub fn row(&self, subject: &Subject) -> [f32; FEATURES] {
        let mut row = Vec::with_capacity(FEATURES);
        let mut known = [self.mean; 5];
        for (at, (word, parent)) in words(subject).iter().enumerate() {
            known[at] = self.words.get(&key(word)).copied().unwrap_or_else(|| parent.map_or(self.mean, |parent| known[parent]));
        }
        row.extend(known);
        let log = |value: f64| (1.0 + value).ln() as f32;
        let load = &subject.load;
        row.extend([log(load.work.flops), log(load.bytes), log(load.work.flops / load.bytes.max(1.0))]);
        row.push(match load.work.kernel {
            Kernel::Free => 0.0,
            Kernel::Copy => 1.0,
            Kernel::Elementwise => 2.0,
            Kernel::Transcendental => 3.0,
            Kernel::Window => 4.0,
            Kernel::Thin => 5.0,
            Kernel::Dense => 6.0,
        });
        let elements = |shape: Option<&Vec<usize>>| log(shape.map_or(0.0, |shape| shape.iter().product::<usize>() as f64));
        row.extend([elements(subject.inputs.first()), elements(subject.inputs.get(1)), elements(subject.outputs.first())]);
        for shape in [subject.inputs.first(), subject.inputs.get(1), subject.outputs.first()] {
            let sizes = shape.into_iter().flat_map(|shape| shape.iter().rev());
            let mut sizes: Vec<f32> = sizes.take(SIZES).map(|size| log(*size as f64)).collect();
            sizes.resize(SIZES, -1.0);
            row.extend(sizes);
        }
        let constants = subject.constants.iter().filter(|constant| **constant).count();
        row.extend([subject.inputs.len(), constants, subject.outputs.len(), subject.readers.len()].map(|count| count as f32));
        row.push(f32::from(subject.readers.iter().any(|reader| reader == "out")));
        row.push(f32::from(subject.producers.iter().any(|(_, alone)| *alone)));
        row.extend(["strides", "dilations", "group", "kernel"].map(|name| product(subject.op.attr(name).as_ref())));
        row.push(stays(subject));
        std::array::from_fn(|at| row[at])
    }
}

/// The product of an attribute's numbers, as a logarithm.
fn product(attr: Option<&Attr>) -> f32 {
    let number = match attr {
        Some(Attr::Int(number)) => *number as f64,
        Some(Attr::Ints(numbers)) => numbers.iter().product::<i64>() as f64,
        _ => return -1.0,
    };
    number.abs().max(1.0).ln() as f32
}

/// Elements in a row that a node which moves data leaves beside each other, as a logarithm.
fn stays(subject: &Subject) -> f32 {
    let Some(shape) = subject.inputs.first() else { return -1.0 };
    let from = match (subject.op.attr("perm"), subject.op.attr("axis")) {
        (Some(Attr::Ints(perm)), _) => perm.iter().enumerate().rposition(|(at, axis)| *axis != at as i64).map_or(0, |at| at + 1),
        (_, Some(Attr::Int(axis))) => axis.max(0) as usize,
        _ => return -1.0,
    };
    let inner: usize = shape.iter().skip(from).product();
    (inner as f32).max(1.0).ln()
}
