//! How many ways lead from the sizes of some axes to those of the input.
//!
//! What a step does to sizes depends on sizes alone, nearly. So the ways to complete a partial
//! operator are counted on multisets of sizes, each once, and a sampler that follows the counts
//! hardly ever ends where nothing leads on.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::distance::Distances;
use crate::size::Size;
use crate::state::State;
use crate::steps::{Sizes, can_link, is_window};

/// What an axis is, as far as it decides what can be done with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Kind {
    /// An output, or part of a merge: a weight can take it away.
    Output,
    /// A sum that no weight has.
    Fresh,
    /// A sum of a weight: another weight can take it away.
    Weighted,
    /// Anything else.
    View,
}

/// An axis: its size and its kind.
type Axis = (Size, Kind);

/// What the count depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Question {
    /// Ascending.
    axes: SmallVec<[Axis; 8]>,
    /// Weights, splits, merges, shifts and windows that are left.
    left: [u8; 5],
    /// Whether there is a weight.
    weighted: bool,
    /// Whether a window is still wanted.
    window: bool,
    steps: u8,
}

/// Counts, remembered.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    memo: FxHashMap<Question, f64>,
    distances: Distances,
}

impl Completions {
    /// The ways from a state to the input with at most so many steps, the last one, which says
    /// which axis is which, not counted; of those with a window only, if one is `wanted`.
    pub fn of(&mut self, state: &State, steps: usize, wanted: bool, sizes: &mut Sizes, coordinates: &mut Coordinates<'_>) -> f64 {
        let limits = &coordinates.spec.limits;
        let counts = state.counts(coordinates);
        let rest = |most: usize, used: usize| most.saturating_sub(used).min(9) as u8;
        let left = [
            rest(limits.weights, state.weights.len()),
            rest(limits.splits, counts.splits),
            rest(limits.merges, counts.merges),
            rest(limits.shifts, counts.shifts),
            rest(limits.unfolds, counts.unfolds),
        ];
        let kind = |coord: Coord| match coordinates.get(coord) {
            Coordinate::Output(_) | Coordinate::Quotient(..) | Coordinate::Remainder(..) => Kind::Output,
            Coordinate::Reduce(..) if state.is_weighted(coord) => Kind::Weighted,
            Coordinate::Reduce(..) => Kind::Fresh,
            _ => Kind::View,
        };
        let mut axes: SmallVec<[Axis; 8]> = state.data.iter().map(|coord| (coordinates.size(*coord), kind(*coord))).collect();
        axes.sort_unstable();
        let window = wanted && counts.unfolds == 0;
        let question = Question { axes, left, weighted: !state.weights.is_empty(), window, steps: steps.min(20) as u8 };
        self.count(question, sizes, coordinates)
    }

    fn count(&mut self, question: Question, sizes: &mut Sizes, coordinates: &mut Coordinates<'_>) -> f64 {
        if let Some(&known) = self.memo.get(&question) {
            return known;
        }
        let axes: SmallVec<[(Size, u8); 8]> = question.axes.iter().map(|(size, _)| (*size, 1)).collect();
        let [weights, splits, merges, _, windows] = question.left;
        // What is out of reach is not counted on: most multisets are.
        if self.distances.between(axes, [weights, splits, merges, windows], question.steps, coordinates).is_none() {
            return 0.0;
        }
        let mut wanted: SmallVec<[Size; 8]> = coordinates.spec.input.iter().map(|axis| axis.size).collect();
        wanted.sort_unstable();
        let there = question.axes.iter().map(|(size, _)| size).eq(&wanted);
        let mut count = f64::from(u8::from(there && question.weighted && !question.window));
        if question.steps > 0 {
            for next in next(&question, sizes, coordinates) {
                count += self.count(next, sizes, coordinates);
            }
        }
        self.memo.insert(question, count);
        count
    }

    /// How many questions were answered.
    pub fn answered(&self) -> usize {
        self.memo.len()
    }
}

fn next(question: &Question, sizes: &mut Sizes, coordinates: &mut Coordinates<'_>) -> Vec<Question> {
    let mut found = Vec::new();
    let limits = coordinates.spec.limits.clone();
    let step = |axes: SmallVec<[Axis; 8]>, kind: usize| {
        let mut next = Question { axes, steps: question.steps - 1, ..question.clone() };
        next.axes.sort_unstable();
        next.left[kind] -= 1;
        next
    };
    let distinct = |from: &[Axis]| {
        let mut distinct: SmallVec<[Axis; 8]> = from.iter().copied().collect();
        distinct.dedup();
        distinct
    };
    let without = |axes: &[Axis], out: Axis| -> SmallVec<[Axis; 8]> {
        let mut axes: SmallVec<[Axis; 8]> = axes.iter().copied().collect();
        if let Some(at) = axes.iter().position(|axis| *axis == out) {
            axes.remove(at);
        }
        axes
    };
    for a in distinct(&question.axes) {
        let rest = without(&question.axes, a);
        for b in distinct(&rest) {
            let rest = without(&rest, b);
            if question.left[1] > 0 && coordinates.is_size(a.0 * b.0) {
                let axes = rest.iter().copied().chain([(a.0 * b.0, Kind::View)]).collect();
                found.push(step(axes, 1));
            }
            if question.left[4] > 0 && b.1 != Kind::Fresh && is_window(a.0, b.0, &limits, coordinates) {
                let axes = rest.iter().copied().chain([(a.0, Kind::View)]).collect();
                found.push(Question { window: false, ..step(axes, 4) });
            }
        }
        if question.left[2] > 0 && matches!(a.1, Kind::Output | Kind::View) {
            for block in sizes.divisors(a.0, coordinates).to_vec() {
                let axes = rest.iter().copied().chain([a.0 / block, block].map(|size| (size, Kind::Output))).collect();
                found.push(step(axes, 2));
            }
        }
        if question.left[3] > 0 && matches!(a.1, Kind::Output | Kind::View) {
            let axes = rest.iter().copied().chain([(a.0, Kind::View)]).collect();
            found.push(step(axes, 3));
        }
    }
    if question.left[0] > 0 {
        // A weight takes away none, one or two axes; what it shares hardly shows in what can
        // follow.
        let shared = |axes: SmallVec<[Axis; 8]>| -> SmallVec<[Axis; 8]> {
            axes.into_iter().map(|(size, kind)| (size, if kind == Kind::Fresh { Kind::Weighted } else { kind })).collect()
        };
        let mut weighted = |axes| found.push(Question { weighted: true, ..step(shared(axes), 0) });
        weighted(question.axes.clone());
        let spec = coordinates.spec;
        let can_hold = |size: Size| size.exponents().all(|(v, e)| spec.is_coefficient(v) || spec.variables[v].uses >= i32::from(e));
        let mut can_add = distinct(&question.axes);
        can_add
            .retain(|(size, kind)| can_hold(*size) && (*kind == Kind::Output || *kind == Kind::Weighted && can_link(*size, coordinates)));
        for (i, &a) in can_add.iter().enumerate() {
            let rest = without(&question.axes, a);
            weighted(rest.clone());
            for &b in &can_add[i + 1..] {
                weighted(without(&rest, b));
            }
        }
    }
    found
}
