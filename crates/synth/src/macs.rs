//! How many multiplications an operator needs at least, while it is still partial (Syno, section
//! 6.3).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::coordinate::{Coordinate, Coordinates};
use crate::size::Size;
use crate::spec::Spec;
use crate::state::State;

/// What a tensor goes through on its way from the input to the output: it grows by windows,
/// repetitions and axes of weights, and shrinks by sums, of which each may have to wait for some of
/// the former.
#[derive(Clone, Debug, Default)]
pub struct Game {
    /// Elements at the beginning.
    pub start: Size,
    /// What it grows by.
    pub increases: Vec<Size>,
    /// What it shrinks by, and the increases that come before, one bit each.
    pub decreases: Vec<(Size, u32)>,
}

impl Game {
    /// The game of a partial operator. Whatever is still to come only adds to its cost.
    pub fn of(state: &State, coordinates: &Coordinates<'_>) -> Game {
        let spec = coordinates.spec;
        let start = spec.input_volume() * spec.batch.iter().copied().collect::<Size>();
        let mut game = Game { start, ..Game::default() };
        let mut opened: Vec<(crate::coordinate::Coord, u32)> = Vec::new();
        for coord in coordinates.with_parts(state.coordinates()) {
            if let Coordinate::Unfold(_, window) = coordinates.get(coord) {
                opened.push((coord, 1 << game.increases.len()));
                game.increases.push(coordinates.size(window));
            }
        }
        let mut added: SmallVec<[u32; 4]> = SmallVec::new();
        for weight in &state.weights {
            let mut bits = 0;
            for coord in weight {
                let is_read = state.data.iter().any(|data| coordinates.contains(*data, *coord));
                if matches!(coordinates.get(*coord), Coordinate::Output(_)) && !is_read {
                    // The tensor grows by it once, whichever weight comes first.
                    let known = opened.iter().find(|(other, _)| other == coord).map(|(_, bit)| *bit);
                    let bit = known.unwrap_or(1 << game.increases.len());
                    if known.is_none() {
                        opened.push((*coord, bit));
                        game.increases.push(coordinates.size(*coord));
                    }
                    bits |= bit;
                }
            }
            added.push(bits);
        }
        for &sum in &state.sums {
            let windows = |of| {
                let above = opened.iter().filter(move |(window, _)| *window != of && coordinates.contains(*window, of));
                above.fold(0, |bits, (_, bit)| bits | bit)
            };
            let mut before = windows(sum);
            for (weight, bits) in state.weights.iter().zip(&added) {
                if weight.iter().any(|coord| coordinates.contains(*coord, sum)) {
                    before |= bits;
                    before = weight.iter().fold(before, |before, coord| before | windows(*coord));
                }
            }
            game.decreases.push((coordinates.size(sum), before));
        }
        game
    }

    /// The fewest multiplications, in all layers together.
    pub fn least(&self, volumes: &mut Volumes<'_>) -> f64 {
        let product = |sizes: &mut dyn Iterator<Item = Size>| sizes.fold(Size::ONE, |product, size| product * size);
        let sets = 1usize << self.decreases.len();
        let chosen = |set: usize| (0..self.decreases.len()).filter(move |d| set >> d & 1 == 1);
        let before: Vec<u32> = (0..sets).map(|set| chosen(set).fold(0, |bits, d| bits | self.decreases[d].1)).collect();
        let shrunk: Vec<Size> = (0..sets).map(|set| product(&mut chosen(set).map(|d| self.decreases[d].0))).collect();
        let mut grown: Vec<(u32, Size)> = Vec::new();
        let mut least = vec![f64::INFINITY; sets];
        least[0] = 0.0;
        for done in 0..sets {
            if least[done] == f64::INFINITY {
                continue;
            }
            let rest = !done & (sets - 1);
            let mut more = rest;
            while more > 0 {
                let bits = before[done | more];
                let grown = match grown.iter().find(|(known, _)| *known == bits) {
                    Some((_, size)) => *size,
                    None => {
                        let size = product(&mut (0..self.increases.len()).filter(|i| bits >> i & 1 == 1).map(|i| self.increases[i]));
                        grown.push((bits, size));
                        size
                    }
                };
                let cost = least[done] + volumes.of(self.start * grown / shrunk[done]);
                least[done | more] = least[done | more].min(cost);
                more = (more - 1) & rest;
            }
        }
        least[sets - 1]
    }
}

/// Elements of tensors of some sizes, in all layers together, remembered.
pub struct Volumes<'s> {
    spec: &'s Spec,
    known: FxHashMap<Size, f64>,
}

impl<'s> Volumes<'s> {
    /// None known yet.
    pub fn new(spec: &'s Spec) -> Volumes<'s> {
        Volumes { spec, known: FxHashMap::default() }
    }

    /// Elements, each layer as often as it stands in the network.
    pub fn of(&mut self, size: Size) -> f64 {
        let spec = self.spec;
        *self.known.entry(size).or_insert_with(|| spec.layers.iter().map(|layer| spec.real(size, layer) * layer.count as f64).sum())
    }
}
