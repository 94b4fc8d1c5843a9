//! Which fingerprints occur more than once, with two bits per slot.

use std::sync::atomic::{AtomicU64, Ordering};

/// Slots per expected fingerprint: about one in sixteen unique fingerprints shares its slot with
/// another.
const SLOTS_PER_GRAPH: u64 = 16;
const SLOTS_PER_WORD: u64 = 32;

/// A table of what was seen once and what more often. It may confuse different fingerprints, but
/// never misses a repetition.
pub struct CountingFilter {
    words: Vec<AtomicU64>,
}

impl CountingFilter {
    /// For about `graphs` fingerprints, in at most `budget` bytes.
    pub fn new(graphs: u64, budget: u64) -> CountingFilter {
        let words = (graphs.saturating_mul(SLOTS_PER_GRAPH) / SLOTS_PER_WORD).min(budget / 8).max(1);
        CountingFilter { words: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    fn place(&self, print: u64) -> (&AtomicU64, u32) {
        // The first bits of fingerprints select the shard, so they do not select the slot.
        let slots = self.words.len() as u128 * u128::from(SLOTS_PER_WORD);
        let slot = ((u128::from(print.rotate_left(32)) * slots) >> 64) as u64;
        (&self.words[(slot / SLOTS_PER_WORD) as usize], (slot % SLOTS_PER_WORD * 2) as u32)
    }

    /// Records a graph with this fingerprint.
    pub fn mark(&self, print: u64) {
        let (word, bit) = self.place(print);
        if word.fetch_or(1 << bit, Ordering::Relaxed) >> bit & 1 == 1 {
            word.fetch_or(2 << bit, Ordering::Relaxed);
        }
    }

    /// Whether two graphs with this fingerprint may have been recorded.
    pub fn is_repeated(&self, print: u64) -> bool {
        let (word, bit) = self.place(print);
        word.load(Ordering::Relaxed) >> bit & 2 == 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::mix;

    #[test]
    fn what_repeats_is_never_missed() {
        let filter = CountingFilter::new(4000, 1 << 20);
        (0..4000).for_each(|n| filter.mark(mix(n)));
        (0..400).for_each(|n| filter.mark(mix(n)));
        assert!((0..400).all(|n| filter.is_repeated(mix(n))));
        let wrong = (400..4000).filter(|n| filter.is_repeated(mix(*n))).count();
        assert!(wrong < 600, "{wrong} of 3600");
    }
}
