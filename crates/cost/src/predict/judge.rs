//! How well prices are predicted on models that nothing was learned from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::measured::Measured;
use crate::predict::{Guesses, NOTHING, Predictor, Subject};
use crate::signature::Signature;
use crate::table::{Speeds, Table};

/// How far predictions are from what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Spearman's rank correlation of predicted and measured times.
    pub rank: f64,
    /// Median of the absolute differences of their logarithms: 0.1 is a tenth of the time, or so.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
}

/// How well the prices of one list are predicted from those of others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The list.
    pub name: String,
    /// Nodes that had to be predicted: not measured in any other list.
    pub nodes: usize,
    /// Those of them that no other list has in another context.
    pub new: usize,
    /// The roofline at the best speeds seen in other lists, as searches guess after runs on other
    /// models, or the least price in another context.
    pub guess: Option<Errors>,
    /// The same, in the middle of what is known: as much slower as others are at the median.
    pub scaled: Option<Errors>,
    /// What was learned from other lists.
    pub learned: Option<Errors>,
    /// The same, corrected by the list's own operators that are not to be predicted, as searches
    /// guess.
    pub corrected: Option<Errors>,
    /// Share of measured times within the predicted bounds.
    pub within: f64,
}

/// Prices of operators in a list, and whether they are known from the start.
struct Split {
    known: Vec<(Signature, f64)>,
    asked: Vec<(Signature, f64)>,
}

/// Predicts what is in each list by the others; nothing where they have too few prices to learn
/// from.
///
/// Of a list, what was seen most often, the operators of the model as it came, is known where
/// `inputs_known`; what rewrites made is to be predicted.
pub fn judge(lists: &[(String, Measured)], inputs_known: bool, seed: u64) -> Vec<Judged> {
    let splits: Vec<Split> = lists.iter().map(|(_, list)| split(list.table(), inputs_known)).collect();
    (0..lists.len()).filter_map(|at| judge_one(lists, &splits, at, seed)).collect()
}

fn split(table: &Table, inputs_known: bool) -> Split {
    let most = table.entries().iter().map(|(_, entry)| entry.count).max().unwrap_or(0);
    let of = |known: bool| {
        let entries = table.entries().into_iter().filter(|(_, entry)| (inputs_known && entry.count == most) == known);
        entries.map(|(signature, entry)| (signature, entry.price() as f64)).collect()
    };
    Split { known: of(true), asked: of(false) }
}

fn judge_one(lists: &[(String, Measured)], splits: &[Split], at: usize, seed: u64) -> Option<Judged> {
    let others: Vec<(&Signature, f64)> = splits
        .iter()
        .enumerate()
        .filter(|(list, _)| *list != at)
        .flat_map(|(_, split)| split.known.iter().chain(&split.asked))
        .map(|(signature, ns)| (signature, *ns))
        .collect();
    let mut whole = others.clone();
    whole.extend(splits[at].known.iter().map(|(signature, ns)| (signature, *ns)));
    let mut speeds = Speeds::default();
    for (_, (_, list)) in lists.iter().enumerate().filter(|(list, _)| *list != at) {
        speeds.raise_all(&list.table().speeds);
    }
    let machine = speeds.machine();
    let mut cores: BTreeMap<&str, f64> = BTreeMap::new();
    let mut ratios = Vec::new();
    let guess_of =
        |signature: &Signature| Subject::of(signature).map(|subject| if subject.is_fused() { 0.0 } else { machine.time(&subject.load) });
    for (signature, ns) in &whole {
        let least = cores.entry(&signature.core).or_insert(*ns);
        *least = least.min(*ns);
        ratios.extend(guess_of(signature).filter(|guess| *guess > 0.0).map(|guess| ns.max(NOTHING) / guess));
    }
    ratios.sort_by(f64::total_cmp);
    let usual = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    let known: BTreeSet<&Signature> = whole.iter().map(|(signature, _)| *signature).collect();
    let learned = Guesses::new(Arc::new(Predictor::fit(others, seed)?));
    let mut corrected = learned.clone();
    corrected.learn(splits[at].known.iter().cloned());
    let (mut new, mut inside) = (0, 0);
    let mut columns: [Vec<(f64, f64)>; 4] = Default::default();
    for (signature, ns) in splits[at].asked.iter().filter(|(signature, _)| !known.contains(signature)) {
        let (Some(guess), Some(first), Some(second)) =
            (guess_of(signature), learned.predict(signature, &machine), corrected.predict(signature, &machine))
        else {
            continue;
        };
        let other = cores.get(signature.core.as_str()).copied();
        new += usize::from(other.is_none());
        inside += usize::from((second.low..=second.high).contains(&ns.max(NOTHING)));
        let predicted = [other.unwrap_or(guess), other.unwrap_or(usual * guess), first.middle, second.middle];
        columns.iter_mut().zip(predicted).for_each(|(column, predicted)| column.push((predicted, *ns)));
    }
    let nodes = columns[0].len();
    let [guess, scaled, learned, corrected] = columns.map(|column| errors(&column));
    let within = inside as f64 / nodes.max(1) as f64;
    Some(Judged { name: lists[at].0.clone(), nodes, new, guess, scaled, learned, corrected, within })
}

/// Of pairs of predicted and measured times; `None` if there are too few to tell.
fn errors(pairs: &[(f64, f64)]) -> Option<Errors> {
    if pairs.len() < 3 {
        return None;
    }
    let mut off: Vec<f64> = pairs.iter().map(|(a, b)| (a.max(NOTHING) / b.max(NOTHING)).ln().abs()).collect();
    off.sort_by(f64::total_cmp);
    let [first, second] =
        [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1].map(|of| ranks(&pairs.iter().map(of).collect::<Vec<_>>()));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    let rank = product(&first, &second) / (product(&first, &first) * product(&second, &second)).sqrt().max(f64::MIN_POSITIVE);
    Some(Errors { rank, median: off[off.len() / 2], mean: off.iter().sum::<f64>() / off.len() as f64 })
}

/// The rank of each value, from 0 on; those that are equal share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for alike in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = from as f64 + (alike.len() as f64 - 1.0) / 2.0;
        alike.iter().for_each(|at| ranks[*at] = rank);
        from += alike.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_books() {
        let pairs = [(100.0, 200.0), (200.0, 400.0), (400.0, 300.0), (800.0, 1600.0)];
        let errors = errors(&pairs).expect("enough");
        // Ranks 0 1 2 3 against 0 2 1 3: 1 - 6 (1 + 1) / (4 * 15).
        assert!((errors.rank - 0.8).abs() < 1e-12, "{errors:?}");
        assert!((errors.median - 2f64.ln()).abs() < 1e-12, "{errors:?}");
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [1.5, 0.0, 1.5]);
        assert_eq!(super::errors(&pairs[..2]), None);
    }
}
