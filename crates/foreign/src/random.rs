//! Seeded pseudo-random numbers.

use regraft_ir::SplitMix64;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.word()
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
