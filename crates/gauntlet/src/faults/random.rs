//! Random moments, the same for the same seed.

/// A small generator of random numbers.
pub struct Random(u64);

impl Random {
    /// A generator.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below 2^64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
