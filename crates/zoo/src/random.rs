//! Random numbers addressed by position, so that a part of a tensor can be generated without the
//! rest.

use regraft_ir::{fnv1a, scramble};

/// Step between the states of consecutive positions (the odd integer nearest to 2^64 divided by the
/// golden ratio).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// An endless sequence of uniform numbers, fixed by a seed and a name. SplitMix64, read at any
/// position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The sequence for `name` under `seed`.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(scramble(seed.wrapping_add(STEP)) ^ scramble(fnv1a(name.bytes())))
    }

    /// The number at `position`, uniform in `[0, 1)` with 24 bits.
    pub(crate) fn unit(self, position: u64) -> f32 {
        let state = self.0.wrapping_add((position + 1).wrapping_mul(STEP));
        (scramble(state) >> 40) as f32 / (1_u32 << 24) as f32
    }

    /// Little-endian bytes of `count` numbers from `position`, uniform in `[low, high)`.
    pub(crate) fn bytes(self, position: u64, count: usize, low: f32, high: f32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count * size_of::<f32>());
        for index in 0..count as u64 {
            let value = low + (high - low) * self.unit(position + index);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Like [`Self::bytes`], `count / length` rows in `[-bound, bound)`, each with its mean
    /// subtracted.
    pub(crate) fn centered_rows(self, position: u64, count: usize, length: usize, bound: f32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count * size_of::<f32>());
        let mut row = vec![0.0; length];
        for start in (0..count).step_by(length) {
            for (index, value) in row.iter_mut().enumerate() {
                *value = bound * (2.0 * self.unit(position + (start + index) as u64) - 1.0);
            }
            let sum: f64 = row.iter().map(|value| f64::from(*value)).sum();
            let mean = (sum / length as f64) as f32;
            bytes.extend(row.iter().flat_map(|value| (value - mean).to_le_bytes()));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_equals_the_whole_there() {
        let stream = Stream::new(3, "layer.weight");
        let whole = stream.bytes(0, 10, -1.0, 1.0);
        assert_eq!(whole[16..32], stream.bytes(4, 4, -1.0, 1.0));
    }

    #[test]
    fn numbers_are_spread_over_the_range() {
        let stream = Stream::new(0, "x");
        let mean = (0..10_000).map(|i| stream.unit(i)).sum::<f32>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(Stream::new(1, "x").unit(0), stream.unit(0));
        assert_ne!(Stream::new(0, "y").unit(0), stream.unit(0));
    }
}
