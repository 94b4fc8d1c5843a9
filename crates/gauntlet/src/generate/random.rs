//! Seeded choices, the same on every machine.

use regraft_ir::SplitMix64;

/// A stream of choices.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream for item `number` of a campaign with `seed`.
    pub fn new(seed: u64, number: u64) -> Random {
        let mut random = Random(SplitMix64(seed ^ number.wrapping_mul(0xd129_0d3f_9a35_b1c5)));
        random.next();
        random
    }

    /// Sixty-four random bits.
    pub fn next(&mut self) -> u64 {
        self.0.word()
    }

    /// Uniform in `0..n`; 0 for `n = 0`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// Uniform in `low..=high`.
    pub fn int(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// True once in `n` times on average.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `items`, which must not be empty.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Uniform in `low..high`.
    pub fn real(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// `0..n` in random order.
    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for at in (1..n).rev() {
            let other = self.below(at + 1);
            order.swap(at, other);
        }
        order
    }
}
