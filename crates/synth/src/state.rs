//! Partial operators, and the steps that make them.

use smallvec::SmallVec;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::size::Size;

/// A list of coordinates.
pub type Coords = SmallVec<[Coord; 8]>;

/// A partial operator: what is still to be read, and from where.
///
/// `output = sum over sums of data[coordinates] * product of weights[coordinates]`, where a term is
/// nothing if a window in it leaves its axis. A search goes from the output to the input; it ends
/// when `data` has the input's sizes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct State {
    /// Coordinates of the data, ascending.
    pub data: Coords,
    /// Coordinates of each weight, ascending; weights in the order in which they were made.
    pub weights: SmallVec<[Coords; 2]>,
    /// Coordinates on which nothing depends: the data are repeated along them. Ascending.
    pub dropped: Coords,
    /// What is summed over, ascending.
    pub sums: Coords,
}

/// One step of a search, from the output to the input.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Step {
    /// Sums over a new variable of this size.
    Reduce(Size),
    /// Repeats the data along an axis.
    Expand(Coord),
    /// Rotates an axis by one.
    Shift(Coord),
    /// Takes every so manieth position.
    Stride(Coord, Size),
    /// Two axes are one of the input.
    Split(Coord, Coord),
    /// Windows, the second, slide over an axis, the first.
    Unfold(Coord, Coord),
    /// One axis is two of the input, of which the second has this size.
    Merge(Coord, Size),
    /// Multiplies by a new weight.
    Contract {
        /// Its axes that the data have, too.
        shared: Coords,
        /// Its axes that the data do not have.
        added: Coords,
    },
}

/// `coords` with some taken out and others put in, ascending.
fn replaced(coords: &Coords, out: &[Coord], new: &[Coord]) -> Coords {
    let mut coords: Coords = coords.iter().copied().filter(|coord| !out.contains(coord)).collect();
    coords.extend(new.iter().copied());
    coords.sort_unstable();
    coords
}

impl State {
    /// Nothing done yet: the data have the output's coordinates.
    pub fn start(coordinates: &Coordinates<'_>) -> State {
        State { data: coordinates.outputs().collect(), ..State::default() }
    }

    /// Whether only sums were made.
    pub fn is_opening(&self, coordinates: &Coordinates<'_>) -> bool {
        self.weights.is_empty() && self.dropped.is_empty() && self.data.iter().all(|coord| coordinates.is_leaf(*coord))
    }

    /// After a step.
    pub fn after(&self, step: &Step, coordinates: &mut Coordinates<'_>) -> State {
        let mut next = self.clone();
        match step {
            Step::Reduce(size) => {
                let copies = self.sums.iter().filter(|sum| coordinates.size(**sum) == *size).count();
                let sum = coordinates.make(Coordinate::Reduce(*size, copies as u8));
                next.data = replaced(&self.data, &[], &[sum]);
                next.sums = replaced(&self.sums, &[], &[sum]);
            }
            Step::Expand(a) => {
                next.data = replaced(&self.data, &[*a], &[]);
                next.dropped = replaced(&self.dropped, &[], &[*a]);
            }
            Step::Shift(a) => next.data = replaced(&self.data, &[*a], &[coordinates.make(Coordinate::Shift(*a))]),
            Step::Stride(a, by) => next.data = replaced(&self.data, &[*a], &[coordinates.make(Coordinate::Stride(*a, *by))]),
            Step::Split(a, b) => next.data = replaced(&self.data, &[*a, *b], &[coordinates.make(Coordinate::Split(*a, *b))]),
            Step::Unfold(a, b) => next.data = replaced(&self.data, &[*a, *b], &[coordinates.make(Coordinate::Unfold(*a, *b))]),
            Step::Merge(a, block) => {
                let parts = [Coordinate::Quotient(*a, *block), Coordinate::Remainder(*a, *block)].map(|part| coordinates.make(part));
                next.data = replaced(&self.data, &[*a], &parts);
            }
            Step::Contract { shared, added } => {
                next.data = replaced(&self.data, added, &[]);
                next.weights.push(replaced(shared, &[], added));
            }
        }
        next
    }

    /// All coordinates that are read or dropped.
    pub fn coordinates(&self) -> impl Iterator<Item = Coord> + '_ {
        self.data.iter().chain(self.weights.iter().flatten()).chain(&self.dropped).copied()
    }

    /// Whether a weight has this axis.
    pub fn is_weighted(&self, coord: Coord) -> bool {
        self.weights.iter().any(|weight| weight.contains(&coord))
    }

    /// How many of each kind of step made this.
    pub fn counts(&self, coordinates: &Coordinates<'_>) -> Counts {
        let mut counts = Counts { expands: self.dropped.len(), ..Counts::default() };
        let mut merges: SmallVec<[(Coord, Size); 4]> = SmallVec::new();
        for coord in coordinates.with_parts(self.coordinates()) {
            match coordinates.get(coord) {
                Coordinate::Output(_) | Coordinate::Reduce(..) => {}
                Coordinate::Split(..) => counts.splits += 1,
                Coordinate::Shift(_) => counts.shifts += 1,
                Coordinate::Stride(..) => counts.strides += 1,
                Coordinate::Unfold(..) => counts.unfolds += 1,
                Coordinate::Quotient(a, block) | Coordinate::Remainder(a, block) => {
                    if !merges.contains(&(a, block)) {
                        merges.push((a, block));
                    }
                }
            }
        }
        Counts { merges: merges.len(), ..counts }
    }
}

impl State {
    /// How many steps made this, of which these are the views.
    pub fn steps(&self, counts: &Counts) -> usize {
        let Counts { merges, splits, shifts, strides, unfolds, expands } = counts;
        self.sums.len() + self.weights.len() + merges + splits + shifts + strides + unfolds + expands
    }
}

/// How often each kind of view stands in an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Counts {
    pub merges: usize,
    pub splits: usize,
    pub shifts: usize,
    pub strides: usize,
    pub unfolds: usize,
    pub expands: usize,
}
