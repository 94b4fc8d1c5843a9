//! Syno's canonical forms (section 5 of the paper, and its code): steps that lead to an operator
//! which another sequence of steps makes as well, or nearly so.
//!
//! They are a cheap filter before the exact [`crate::Key`], which decides. What the filter wrongly
//! rejects or lets pass is measured by [`crate::audit()`].

use smallvec::{SmallVec, smallvec};

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::size::Size;
use crate::state::{Coords, State, Step};

/// Why a step is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Splits nest on the right.
    SplitsNestRight,
    /// A view that does not touch what the last weight shares stands below that weight.
    ViewsFirst,
    /// Splitting what was merged, or two sums into one.
    SplitUndoes,
    /// Splitting two axes of one weight: the weight can hold them as one.
    SplitOfWeight,
    /// Splitting two parts of one channel axis: a permutation of channels.
    SplitOfChannels,
    /// Merging what was split, or a sum.
    MergeUndoes,
    /// Merges nest on the right.
    MergesNestRight,
    /// Merging above a rotation by less than the block, which is nearly the rotation of the block.
    MergeOfShift,
    /// Merging above a stride that divides the block.
    MergeOfStride,
    /// Merging above a window narrower than the block, which is nearly a window in the block.
    MergeOfUnfold,
    /// Of two merges of channels, one order only.
    MergeOrder,
    /// Rotating a sum, or what was rotated, or what a weight shares.
    ShiftUndoes,
    /// Rotating channels: a permutation.
    ShiftOfChannels,
    /// Rotating what was split into blocks longer than the rotation, nearly a rotation of blocks.
    ShiftOfSplit,
    /// A stride over what already slides or skips.
    StrideUndoes,
    /// A window over what was split or rotated, rather than before.
    UnfoldOfView,
    /// A window that is summed, with nothing that weighs it.
    UnfoldOfSums,
    /// Of two windows on one axis, the narrower first.
    UnfoldOrder,
    /// Repeating along two parts of one axis.
    ExpandOfNeighbours,
    /// A weight with neighbouring parts of one axis: it can hold the axis.
    WeightOfNeighbours,
    /// Of two weights that commute, one order only.
    WeightOrder,
}

impl Form {
    /// Whether the operator that is left out only resembles the one that stays.
    pub fn is_approximate(self) -> bool {
        matches!(self, Form::MergeOfShift | Form::MergeOfUnfold | Form::ShiftOfSplit)
    }

    /// All of them.
    pub const ALL: [Form; 21] = [
        Form::SplitsNestRight,
        Form::ViewsFirst,
        Form::SplitUndoes,
        Form::SplitOfWeight,
        Form::SplitOfChannels,
        Form::MergeUndoes,
        Form::MergesNestRight,
        Form::MergeOfShift,
        Form::MergeOfStride,
        Form::MergeOfUnfold,
        Form::MergeOrder,
        Form::ShiftUndoes,
        Form::ShiftOfChannels,
        Form::ShiftOfSplit,
        Form::StrideUndoes,
        Form::UnfoldOfView,
        Form::UnfoldOfSums,
        Form::UnfoldOrder,
        Form::ExpandOfNeighbours,
        Form::WeightOfNeighbours,
        Form::WeightOrder,
    ];
}

/// What a rotation, window or stride may be, in blocks, to count as small: the published limit.
const PATTERN: u64 = 2;

/// The form that a step breaks, if any.
pub fn broken(state: &State, step: &Step, coordinates: &mut Coordinates<'_>) -> Option<Form> {
    let is_split_part = |coord: Coord, coordinates: &Coordinates<'_>| matches!(coordinates.get(coord), Coordinate::Split(..));
    match step {
        Step::Reduce(_) => None,
        Step::Split(a, b) => {
            // A Split of a Split on the left: (a, b), c is a, (b, c).
            if is_split_part(*a, coordinates) {
                return Some(Form::SplitsNestRight);
            }
            if !touches_latest(state, *a, coordinates) && !touches_latest(state, *b, coordinates) {
                return Some(Form::ViewsFirst);
            }
            if neighbours(state, *a, *b, coordinates) {
                return Some(Form::SplitUndoes);
            }
            let weights = |coord| first_weights(state, coord, coordinates);
            if weights(*a).iter().any(|weight| weights(*b).contains(weight)) {
                return Some(Form::SplitOfWeight);
            }
            let scopes = [a, b].map(|coord| channels(*coord, coordinates));
            (scopes[0].is_some() && scopes[0] == scopes[1]).then_some(Form::SplitOfChannels)
        }
        Step::Merge(a, block) => {
            let least = |coordinates: &mut Coordinates<'_>, size: Size| coordinates.values(size).and_then(|v| v.iter().copied().min());
            let most = |coordinates: &mut Coordinates<'_>, size: Size| coordinates.values(size).and_then(|v| v.iter().copied().max());
            match coordinates.get(*a) {
                Coordinate::Split(..) | Coordinate::Reduce(..) => return Some(Form::MergeUndoes),
                Coordinate::Quotient(..) => return Some(Form::MergesNestRight),
                Coordinate::Shift(_) if most(coordinates, *block).is_some_and(|b| b > PATTERN) => return Some(Form::MergeOfShift),
                Coordinate::Stride(_, by) if least(coordinates, *block / by).is_some() => return Some(Form::MergeOfStride),
                Coordinate::Unfold(_, window) => {
                    let window = coordinates.size(window);
                    if ratio_at_least(coordinates, *block, window) {
                        return Some(Form::MergeOfUnfold);
                    }
                }
                _ => {}
            }
            if !touches_latest(state, *a, coordinates) {
                return Some(Form::ViewsFirst);
            }
            let group = coordinates.size(*a) / *block;
            let inner = matches!(coordinates.get(*a), Coordinate::Remainder(..));
            let unordered = channels(*a, coordinates).is_some();
            (unordered && !inner && group > *block).then_some(Form::MergeOrder)
        }
        Step::Shift(a) => match coordinates.get(*a) {
            Coordinate::Reduce(..) | Coordinate::Shift(_) => Some(Form::ShiftUndoes),
            _ if state.is_weighted(*a) => Some(Form::ShiftUndoes),
            _ if channels(*a, coordinates).is_some() => Some(Form::ShiftOfChannels),
            _ if !touches_latest(state, *a, coordinates) => Some(Form::ViewsFirst),
            Coordinate::Split(_, b) => {
                let block = coordinates.size(b);
                let longest = coordinates.values(block).and_then(|v| v.iter().copied().max());
                longest.is_some_and(|block| block > PATTERN).then_some(Form::ShiftOfSplit)
            }
            _ => None,
        },
        Step::Stride(a, _) => match coordinates.get(*a) {
            Coordinate::Unfold(..) | Coordinate::Stride(..) | Coordinate::Split(..) => Some(Form::StrideUndoes),
            _ if !touches_latest(state, *a, coordinates) => Some(Form::ViewsFirst),
            _ => None,
        },
        Step::Unfold(a, b) => {
            if matches!(coordinates.get(*a), Coordinate::Split(..) | Coordinate::Shift(_)) {
                return Some(Form::UnfoldOfView);
            }
            if coordinates.is_reduce(*b) && !state.is_weighted(*b) || coordinates.facts(*a).summed && coordinates.facts(*b).summed {
                return Some(Form::UnfoldOfSums);
            }
            if let Coordinate::Unfold(_, before) = coordinates.get(*a) {
                let (window, before) = (coordinates.size(*b), coordinates.size(before));
                if !ratio_at_least(coordinates, window, before) {
                    return Some(Form::UnfoldOrder);
                }
            }
            None
        }
        Step::Expand(a) => {
            if !touches_latest(state, *a, coordinates) {
                return Some(Form::ViewsFirst);
            }
            let dropped =
                state.dropped.iter().any(|other| neighbours(state, *a, *other, coordinates) || neighbours(state, *other, *a, coordinates));
            dropped.then_some(Form::ExpandOfNeighbours)
        }
        Step::Contract { shared, added } => {
            for (i, a) in added.iter().enumerate() {
                for b in &added[i + 1..] {
                    if neighbours(state, *a, *b, coordinates) || neighbours(state, *b, *a, coordinates) {
                        return Some(Form::WeightOfNeighbours);
                    }
                }
            }
            let last = state.weights.last()?;
            let new: Coords = shared.iter().chain(added).copied().collect();
            let depends = new.iter().any(|coord| last.iter().any(|before| coordinates.contains(*coord, *before)));
            (!depends && new.iter().min() < last.iter().min()).then_some(Form::WeightOrder)
        }
    }
}

/// Whether a coordinate is, or is made of, one that the latest weight shares; so is any if there is
/// no weight.
pub(crate) fn touches_latest(state: &State, coord: Coord, coordinates: &Coordinates<'_>) -> bool {
    state.weights.last().is_none_or(|weight| weight.iter().any(|shared| coordinates.contains(coord, *shared)))
}

/// Whether one size is at least another, in every layer.
fn ratio_at_least(coordinates: &mut Coordinates<'_>, size: Size, other: Size) -> bool {
    let (Some(size), Some(other)) = (coordinates.values(size), coordinates.values(other)) else { return false };
    size.iter().zip(other.iter()).all(|(a, b)| a >= b)
}

/// The channel axis that a coordinate is a part of.
fn channels(coord: Coord, coordinates: &Coordinates<'_>) -> Option<Coord> {
    match coordinates.get(coord) {
        Coordinate::Output(axis) => coordinates.spec.output[axis as usize].unordered.then_some(coord),
        Coordinate::Reduce(..) => None,
        Coordinate::Split(a, b) | Coordinate::Unfold(a, b) => {
            channels(a, coordinates).filter(|scope| channels(b, coordinates) == Some(*scope))
        }
        Coordinate::Quotient(a, _) | Coordinate::Remainder(a, _) | Coordinate::Shift(a) | Coordinate::Stride(a, _) => {
            channels(a, coordinates)
        }
    }
}

/// Weights that hold a coordinate, or else those that hold what it was split from.
fn first_weights(state: &State, coord: Coord, coordinates: &Coordinates<'_>) -> SmallVec<[usize; 4]> {
    let here: SmallVec<[usize; 4]> = (0..state.weights.len()).filter(|w| state.weights[*w].contains(&coord)).collect();
    match coordinates.get(coord) {
        Coordinate::Split(a, b) if here.is_empty() => {
            let mut below = first_weights(state, a, coordinates);
            below.extend(first_weights(state, b, coordinates));
            below
        }
        _ => here,
    }
}

/// What stands at one end of a block of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Open,
    /// A merge: the other half lies beyond.
    Merge(Coord, Size),
    /// A sum, beside which any other sum may lie.
    Sum,
}

/// For the data (0) and each weight (from 1), both ends of a coordinate's block there.
type Blocks = SmallVec<[(usize, End, End); 4]>;

fn blocks(state: &State, coord: Coord, coordinates: &Coordinates<'_>) -> Blocks {
    let mut blocks: Blocks = match coordinates.get(coord) {
        Coordinate::Output(_) | Coordinate::Shift(_) | Coordinate::Stride(..) | Coordinate::Unfold(..) => {
            smallvec![(0, End::Open, End::Open)]
        }
        Coordinate::Reduce(..) => smallvec![(0, End::Sum, End::Sum)],
        Coordinate::Quotient(a, block) => {
            blocks(state, a, coordinates).into_iter().map(|(key, left, _)| (key, left, End::Merge(a, block))).collect()
        }
        Coordinate::Remainder(a, block) => {
            blocks(state, a, coordinates).into_iter().map(|(key, _, right)| (key, End::Merge(a, block), right)).collect()
        }
        Coordinate::Split(a, b) => {
            let (left, right) = (blocks(state, a, coordinates), blocks(state, b, coordinates));
            let at = |blocks: &Blocks, key| blocks.iter().find(|(k, ..)| *k == key).copied();
            let mut keys: SmallVec<[usize; 4]> = left.iter().chain(&right).map(|(key, ..)| *key).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.into_iter()
                .map(|key| (key, at(&left, key).map_or(End::Open, |b| b.1), at(&right, key).map_or(End::Open, |b| b.2)))
                .collect()
        }
    };
    for (w, weight) in state.weights.iter().enumerate() {
        if weight.contains(&coord) {
            for block in &mut blocks {
                if block.0 == 0 {
                    block.0 = w + 1;
                }
            }
            blocks.push((0, End::Open, End::Open));
        }
    }
    blocks
}

/// Whether one coordinate's block lies directly before the other's, in the data or in a weight.
pub(crate) fn neighbours(state: &State, a: Coord, b: Coord, coordinates: &Coordinates<'_>) -> bool {
    let (a, b) = (blocks(state, a, coordinates), blocks(state, b, coordinates));
    a.iter().any(|(key, _, right)| b.iter().any(|(other, left, _)| key == other && right == left && *right != End::Open))
}
