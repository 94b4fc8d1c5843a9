//! Sets of small numbers.

/// A square of bits: for each number below `count`, a set of such numbers.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    words: usize,
    rows: Vec<u64>,
}

impl Bits {
    /// `count` empty sets.
    pub fn new(count: usize) -> Bits {
        let words = count.div_ceil(64);
        Bits { words, rows: vec![0; words * count] }
    }

    /// An empty set of numbers below the same limit.
    pub fn empty(&self) -> Vec<u64> {
        vec![0; self.words]
    }

    /// One set.
    pub fn row(&self, index: u32) -> &[u64] {
        &self.rows[index as usize * self.words..][..self.words]
    }

    /// Replaces a set; true if it was another.
    pub fn replace(&mut self, index: u32, row: &[u64]) -> bool {
        let old = &mut self.rows[index as usize * self.words..][..self.words];
        let changed = old != row;
        old.copy_from_slice(row);
        changed
    }

    /// Whether a set contains a number.
    pub fn has(&self, index: u32, number: u32) -> bool {
        contains(self.row(index), number)
    }
}

/// Whether a set contains a number.
pub(crate) fn contains(row: &[u64], number: u32) -> bool {
    row[number as usize / 64] >> (number % 64) & 1 == 1
}

/// Adds a number to a set.
pub(crate) fn insert(row: &mut [u64], number: u32) {
    row[number as usize / 64] |= 1 << (number % 64);
}

/// Adds all numbers of another set.
pub(crate) fn unite(row: &mut [u64], other: &[u64]) {
    row.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

/// Removes all numbers that are not in another set.
pub(crate) fn intersect(row: &mut [u64], other: &[u64]) {
    row.iter_mut().zip(other).for_each(|(a, b)| *a &= b);
}
