//! Coordinates: where an operator reads, as expressions of where it writes and what it sums over.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::size::Size;
use crate::spec::Spec;

/// A coordinate of one [`Coordinates`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Coord(pub(crate) u32);

/// What a coordinate is (Syno, table 1, read from the output to the input).
///
/// Those that are neither outputs nor sums are the views. Equal expressions are one [`Coord`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Coordinate {
    /// `i`, the position on an axis of the output.
    Output(u8),
    /// `r`, a variable that is summed over. Sums of one size are told apart by a number.
    Reduce(Size, u8),
    /// `size(b) * a + b`: an axis that was split into two (*Split*).
    Split(Coord, Coord),
    /// `a / block` of two axes that were merged (*Merge*, left).
    Quotient(Coord, Size),
    /// `a % block` of two axes that were merged (*Merge*, right).
    Remainder(Coord, Size),
    /// `(a + 1) mod size(a)` (*Shift*).
    Shift(Coord),
    /// `stride * a` (*Stride*).
    Stride(Coord, Size),
    /// `a + b - size(b) / 2`, and no value outside of the axis (*Unfold*).
    Unfold(Coord, Coord),
}

/// What is known of a coordinate.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// How many positions it has.
    pub size: Size,
    /// The longest chain of steps that made it.
    pub height: u8,
    /// The outputs and sums in it, one bit each.
    pub leaves: u32,
    /// Whether it skips positions, which a window has to make good.
    pub skips: bool,
    /// Whether it holds sums only.
    pub summed: bool,
}

/// What a size is in each layer.
pub type Values = Rc<[u64]>;

/// All coordinates of a search, each once, and the sizes of a specification in numbers.
pub struct Coordinates<'s> {
    /// The specification.
    pub spec: &'s Spec,
    made: Vec<(Coordinate, Facts)>,
    index: FxHashMap<Coordinate, Coord>,
    sums: Vec<Coord>,
    values: FxHashMap<Size, Option<Values>>,
}

/// Bits of [`Facts::leaves`] for outputs.
const OUTPUTS: usize = 8;

impl<'s> Coordinates<'s> {
    /// Those of the outputs.
    ///
    /// # Panics
    ///
    /// If the output has more than eight axes.
    pub fn new(spec: &'s Spec) -> Coordinates<'s> {
        assert!(spec.output.len() <= OUTPUTS, "an output of {} axes", spec.output.len());
        let mut coordinates = Coordinates { spec, made: vec![], index: FxHashMap::default(), sums: vec![], values: FxHashMap::default() };
        for axis in 0..spec.output.len() {
            coordinates.make(Coordinate::Output(axis as u8));
        }
        coordinates
    }

    /// The coordinate of an output's axis.
    pub fn output(&self, axis: usize) -> Coord {
        Coord(axis as u32)
    }

    /// All outputs.
    pub fn outputs(&self) -> impl Iterator<Item = Coord> + use<> {
        (0..self.spec.output.len() as u32).map(Coord)
    }

    /// The coordinate that is this.
    pub fn make(&mut self, coordinate: Coordinate) -> Coord {
        if let Some(&coord) = self.index.get(&coordinate) {
            return coord;
        }
        let coord = Coord(self.made.len() as u32);
        let above = |a: Facts| a.height + 1;
        let facts = match coordinate {
            Coordinate::Output(axis) => {
                Facts { size: self.spec.output[axis as usize].size, height: 0, leaves: 1 << axis, skips: false, summed: false }
            }
            Coordinate::Reduce(size, _) => {
                let bit = OUTPUTS + self.sums.len();
                self.sums.push(coord);
                // Searches of one specification meet few sums; those beyond share a bit, which only
                // makes what is asked of bits more cautious.
                Facts { size, height: 1, leaves: 1 << bit.min(31), skips: false, summed: true }
            }
            Coordinate::Split(a, b) => {
                let (a, b) = (self.facts(a), self.facts(b));
                Facts {
                    size: a.size * b.size,
                    height: above(a).max(above(b)),
                    leaves: a.leaves | b.leaves,
                    skips: a.skips || b.skips,
                    summed: a.summed && b.summed,
                }
            }
            Coordinate::Quotient(a, block) => {
                let a = self.facts(a);
                Facts { size: a.size / block, height: above(a), ..a }
            }
            Coordinate::Remainder(a, block) => {
                let a = self.facts(a);
                Facts { size: block, height: above(a), ..a }
            }
            Coordinate::Shift(a) => Facts { height: above(self.facts(a)), ..self.facts(a) },
            Coordinate::Stride(a, stride) => {
                let a = self.facts(a);
                Facts { size: a.size * stride, height: above(a), skips: true, ..a }
            }
            Coordinate::Unfold(a, b) => {
                let (a, b) = (self.facts(a), self.facts(b));
                Facts {
                    size: a.size,
                    height: above(a).max(above(b)),
                    leaves: a.leaves | b.leaves,
                    skips: a.skips,
                    summed: a.summed && b.summed,
                }
            }
        };
        self.made.push((coordinate, facts));
        self.index.insert(coordinate, coord);
        coord
    }

    /// What a coordinate is.
    pub fn get(&self, coord: Coord) -> Coordinate {
        self.made[coord.0 as usize].0
    }

    /// What is known of it.
    pub fn facts(&self, coord: Coord) -> Facts {
        self.made[coord.0 as usize].1
    }

    /// How many positions it has.
    pub fn size(&self, coord: Coord) -> Size {
        self.facts(coord).size
    }

    /// The coordinates that it is made of.
    pub fn parts(&self, coord: Coord) -> impl Iterator<Item = Coord> + use<> {
        let (a, b) = match self.get(coord) {
            Coordinate::Output(_) | Coordinate::Reduce(..) => (None, None),
            Coordinate::Split(a, b) | Coordinate::Unfold(a, b) => (Some(a), Some(b)),
            Coordinate::Quotient(a, _) | Coordinate::Remainder(a, _) | Coordinate::Shift(a) | Coordinate::Stride(a, _) => (Some(a), None),
        };
        a.into_iter().chain(b)
    }

    /// These and all that they are made of, ascending: parts come before what they are part of.
    pub fn with_parts(&self, coords: impl IntoIterator<Item = Coord>) -> Vec<Coord> {
        let mut all: Vec<Coord> = coords.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut at = 0;
        while at < all.len() {
            for part in self.parts(all[at]) {
                if !all.contains(&part) {
                    all.push(part);
                }
            }
            at += 1;
        }
        all.sort_unstable();
        all
    }

    /// Whether one coordinate is the other, or part of it.
    pub fn contains(&self, whole: Coord, part: Coord) -> bool {
        whole == part || part < whole && self.parts(whole).any(|inner| self.contains(inner, part))
    }

    /// Whether it is an output or a sum.
    pub fn is_leaf(&self, coord: Coord) -> bool {
        matches!(self.get(coord), Coordinate::Output(_) | Coordinate::Reduce(..))
    }

    /// Whether it is a sum, by itself.
    pub fn is_reduce(&self, coord: Coord) -> bool {
        matches!(self.get(coord), Coordinate::Reduce(..))
    }

    /// What a size is in each layer; `None` if it is no whole number in one of them.
    pub fn values(&mut self, size: Size) -> Option<Values> {
        let spec = self.spec;
        self.values.entry(size).or_insert_with(|| spec.layers.iter().map(|layer| spec.value(size, layer)).collect()).clone()
    }

    /// Whether a size may stand in an operator: a whole number in every layer, at least 2 in one,
    /// of few variables, and no fraction of coefficients alone.
    pub fn is_size(&mut self, size: Size) -> bool {
        let spec = self.spec;
        let (mut variables, mut primary, mut below) = (0, false, false);
        for (variable, exponent) in size.exponents() {
            variables += 1;
            match spec.is_coefficient(variable) {
                true => below |= exponent < 0,
                false if exponent < 0 => return false,
                false => primary = true,
            }
        }
        variables > 0
            && variables <= spec.limits.variables_in_size
            && (primary || !below)
            && self.values(size).is_some_and(|values| values.iter().any(|value| *value > 1))
    }

    /// A coordinate as an expression, with outputs `i0, i1, ..` and sums `r0, r1, ..` numbered as
    /// in `sums`.
    pub fn show(&self, coord: Coord, sums: &[Coord]) -> String {
        let size = |size| self.spec.show(size);
        let factor = |size: Size| if size.exponents().count() > 1 { format!("({})", self.spec.show(size)) } else { self.spec.show(size) };
        match self.get(coord) {
            Coordinate::Output(axis) => format!("i{axis}"),
            Coordinate::Reduce(..) => sums.iter().position(|sum| *sum == coord).map_or("r?".into(), |k| format!("r{k}")),
            Coordinate::Split(a, b) => format!("({} * {} + {})", self.show(a, sums), factor(self.size(b)), self.show(b, sums)),
            Coordinate::Quotient(a, block) => format!("{} / {}", self.show(a, sums), factor(block)),
            Coordinate::Remainder(a, block) => format!("{} % {}", self.show(a, sums), factor(block)),
            Coordinate::Shift(a) => format!("({} + 1) % {}", self.show(a, sums), factor(self.size(a))),
            Coordinate::Stride(a, stride) => format!("{} * {}", size(stride), self.show(a, sums)),
            Coordinate::Unfold(a, b) => format!("[{} + {} - {}/2]", self.show(a, sums), self.show(b, sums), size(self.size(b))),
        }
    }
}
