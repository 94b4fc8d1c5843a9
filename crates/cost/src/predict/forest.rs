//! `Forest`: regression trees on samples drawn with repetition (Breiman, "Random forests", 2001).

use regraft_ir::SplitMix64;

use crate::predict::features::FEATURES;

/// Trees.
const TREES: usize = 16;
/// Samples of a leaf, at least.
const LEAF: usize = 8;
/// Of the features, one in so many is looked at where a node is split.
const LOOKED_AT: usize = 3;
/// Splits from the root to a leaf, at most.
const DEPTH: usize = 24;

/// What is known of a sample.
pub type Features = [f32; FEATURES];

/// Regression trees, each on its own draw of the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    pub(super) trees: Vec<Vec<Node>>,
}

/// A node of a tree, which lies in a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    /// On to the next node if the feature is at most this, else to another one.
    Split { feature: u8, at: f32, above: u32 },
    /// Mean of the values, and mean of their squares.
    Leaf { mean: f32, square: f32 },
}

/// A value and how far off it may be: its mean and standard deviation over trees and leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// A tree in the making.
struct Growing<'a> {
    rows: &'a [Features],
    values: &'a [f64],
    random: SplitMix64,
    nodes: Vec<Node>,
}

impl Forest {
    /// Fitted to the values of rows of features; the same for the same seed.
    pub fn fit(rows: &[Features], values: &[f64], seed: u64) -> Forest {
        let mut trees = Vec::with_capacity(TREES);
        for tree in 0..TREES as u64 {
            let mut random = SplitMix64(seed ^ (tree + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut drawn: Vec<u32> = rows.iter().map(|_| random.below(rows.len()) as u32).collect();
            let mut growing = Growing { rows, values, random, nodes: Vec::new() };
            growing.grow(&mut drawn, 0);
            trees.push(growing.nodes);
        }
        Forest { trees }
    }

    /// The value of a row.
    pub fn predict(&self, row: &Features) -> Estimate {
        let (mut sum, mut squares) = (0.0, 0.0);
        for tree in &self.trees {
            let (mean, square) = leaf(tree, row);
            sum += mean;
            squares += square;
        }
        let trees = self.trees.len().max(1) as f64;
        let mean = sum / trees;
        Estimate { mean, deviation: (squares / trees - mean * mean).max(0.0).sqrt() }
    }
}

fn leaf(tree: &[Node], row: &Features) -> (f64, f64) {
    let mut at = 0;
    loop {
        match tree.get(at) {
            Some(Node::Split { feature, at: bound, above }) => {
                at = if row[usize::from(*feature)] <= *bound { at + 1 } else { *above as usize };
            }
            Some(Node::Leaf { mean, square }) => return (f64::from(*mean), f64::from(*square)),
            None => return (0.0, 0.0),
        }
    }
}

impl Growing<'_> {
    fn grow(&mut self, drawn: &mut [u32], depth: usize) {
        let split = if depth < DEPTH { self.split(drawn) } else { None };
        let Some((feature, at)) = split else {
            let count = drawn.len().max(1) as f64;
            let values = || drawn.iter().map(|row| self.values[*row as usize]);
            let (mean, square) = (values().sum::<f64>() / count, values().map(|value| value * value).sum::<f64>() / count);
            self.nodes.push(Node::Leaf { mean: mean as f32, square: square as f32 });
            return;
        };
        drawn.sort_by_key(|row| self.rows[*row as usize][feature] > at);
        let border = drawn.partition_point(|row| self.rows[*row as usize][feature] <= at);
        let (below, above) = drawn.split_at_mut(border);
        let own = self.nodes.len();
        self.nodes.push(Node::Split { feature: feature as u8, at, above: 0 });
        self.grow(below, depth + 1);
        let next = self.nodes.len() as u32;
        if let Node::Split { above, .. } = &mut self.nodes[own] {
            *above = next;
        }
        self.grow(above, depth + 1);
    }

    /// The feature and bound that leave the least variance, of some features; `None` if none leaves
    /// less.
    fn split(&mut self, drawn: &[u32]) -> Option<(usize, f32)> {
        if drawn.len() < 2 * LEAF {
            return None;
        }
        let mut best: Option<(f64, usize, f32)> = None;
        let total: f64 = drawn.iter().map(|row| self.values[*row as usize]).sum();
        let mut column: Vec<(f32, f64)> = Vec::with_capacity(drawn.len());
        for _ in 0..FEATURES.div_ceil(LOOKED_AT) {
            let feature = self.random.below(FEATURES);
            column.clear();
            column.extend(drawn.iter().map(|row| (self.rows[*row as usize][feature], self.values[*row as usize])));
            column.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut sum = 0.0;
            for at in 1..column.len() {
                sum += column[at - 1].1;
                let (low, high) = (column[at - 1].0, column[at].0);
                if low == high || at < LEAF || column.len() - at < LEAF {
                    continue;
                }
                // Least squares: what is left is the sum of squares less this.
                let (below, above) = (at as f64, (column.len() - at) as f64);
                let gain = sum * sum / below + (total - sum) * (total - sum) / above;
                if best.is_none_or(|(most, ..)| gain > most) {
                    let middle = 0.5 * (low + high);
                    best = Some((gain, feature, if middle < high { middle } else { low }));
                }
            }
        }
        let whole = total * total / drawn.len() as f64;
        best.filter(|(gain, ..)| *gain > whole + 1e-12).map(|(_, feature, at)| (feature, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forest_learns_a_function_and_knows_where_it_is_noisy() {
        let mut random = SplitMix64(1);
        let row = |x: f32, y: f32, z: f32| -> Features { std::array::from_fn(|at| [x, y, z][at % 3]) };
        let mut draw = |count: usize| -> (Vec<Features>, Vec<f64>) {
            let rows: Vec<Features> = (0..count).map(|_| row(random.unit() as f32, random.unit() as f32, random.unit() as f32)).collect();
            let value = |row: &Features, noise: f64| {
                let step = if row[0] > 0.5 { 3.0 } else { 0.0 };
                step + f64::from(row[1]) + if row[2] > 0.5 { noise } else { 0.0 }
            };
            let values = rows.iter().map(|row| value(row, random.normal())).collect();
            (rows, values)
        };
        let (rows, values) = draw(3000);
        let forest = Forest::fit(&rows, &values, 7);
        let mut deviations = (0.0, 0.0);
        for x in [0.1f32, 0.4, 0.6, 0.9] {
            let sure = forest.predict(&row(x, 0.5, 0.25));
            let expected = if x > 0.5 { 3.5 } else { 0.5 };
            assert!((sure.mean - expected).abs() < 0.35, "{x}: {sure:?}");
            deviations.0 += sure.deviation;
            deviations.1 += forest.predict(&row(x, 0.5, 0.75)).deviation;
        }
        assert!(deviations.0 < deviations.1, "{deviations:?}");
        assert_eq!(forest, Forest::fit(&rows, &values, 7));
        assert_ne!(forest, Forest::fit(&rows, &values, 8));
        assert_eq!(Forest::fit(&[], &[], 0).predict(&rows[0]), Estimate { mean: 0.0, deviation: 0.0 });
        let flat = Forest::fit(&[row(1.0, 0.0, 0.0); 2], &[2.0, 4.0], 0).predict(&row(5.0, 0.0, 0.0));
        assert!((2.0..=4.0).contains(&flat.mean), "{flat:?}");
    }
}
