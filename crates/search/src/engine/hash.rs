//! Hashes used for identities and keys: the same in every run.

use std::hash::{Hash, Hasher};

use regraft_ir::{Op, TensorType, scramble};

/// Hash of an operator, its attributes and its operand types.
pub(super) fn core<'t>(op: &Op, types: impl Iterator<Item = Option<&'t TensorType>>) -> u64 {
    let mut hasher = Stable(xxhash_rust::xxh3::Xxh3::new());
    op.hash(&mut hasher);
    for ty in types {
        ty.hash(&mut hasher);
    }
    hasher.finish()
}

/// Hash of the types of a node's results.
pub(super) fn hash_of_types(types: &[Option<TensorType>]) -> u64 {
    let mut hasher = Stable(xxhash_rust::xxh3::Xxh3::new());
    types.hash(&mut hasher);
    hasher.finish()
}

/// A hasher whose result depends only on its input.
struct Stable(xxhash_rust::xxh3::Xxh3);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// The hasher of words that [`mix`] has scrambled: there is nothing left to do.
#[derive(Default)]
pub(super) struct Scrambled(u64);

impl Hasher for Scrambled {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, word: u128) {
        self.0 = word as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Scrambles 128 bits (two rounds of a 64-bit finalizer, crossed).
pub(super) fn mix(x: u128) -> u128 {
    let (low, high) = (x as u64, (x >> 64) as u64);
    let a = scramble(low.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ high.rotate_left(29));
    let b = scramble(high.wrapping_add(0xd1b5_4a32_d192_ed03).wrapping_add(a));
    (u128::from(b) << 64) | u128::from(a ^ b.rotate_left(17))
}
