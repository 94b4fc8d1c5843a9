//! Pseudo-random numbers, the same on every machine: for samples and tests, not for secrets.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
/// Every state starts a different stream.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Sixty-four bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`, 0 for `n = 0`: the high bits of a product, so the bias is below n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    /// Mean 0, variance 1, within ±6: the sum of twelve uniforms, which needs no library function
    /// and is thus the same on every machine.
    pub fn normal(&mut self) -> f64 {
        let mut sum: u64 = 0;
        for _ in 0..3 {
            let bits = self.word();
            sum += (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
        }
        // Twelve lattice values with mean 32767.5 each.
        (sum as f64 - 12.0 * 32767.5) / 65536.0
    }
}

/// A permutation of 64-bit words without structure: SplitMix64's output function.
pub fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A digest of bytes that is the same in every build (FNV-1a: Fowler, Noll and Vo, 64 bits): for
/// seeds and versions, not where somebody might look for two alike.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mixed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_published_ones() {
        assert_eq!(fnv1a(*b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.word()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn normal_numbers_have_unit_variance() {
        let mut random = SplitMix64(7);
        let values: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn numbers_are_in_their_range() {
        let mut random = SplitMix64(0);
        assert!((0..1000).all(|n| random.below(n) < n.max(1) && (0.0..1.0).contains(&random.unit())));
    }
}
