//! Weights whose contents do not matter.

use bytes::Bytes;

/// Numbers at the start of a piece.
const NUMBERS: usize = 1024;
/// Bytes of a number.
const WIDE: usize = size_of::<f32>();

/// Contents of weights, cut from one piece of memory: some numbers, all different, and zeros, which
/// take none until they are written to.
#[derive(Default)]
pub(crate) struct Blank {
    piece: Bytes,
    /// How many numbers have been used, in all pieces.
    used: usize,
}

impl Blank {
    /// So many zeros.
    pub(crate) fn zeros(&mut self, count: usize) -> Bytes {
        self.cut(NUMBERS, count)
    }

    /// So many numbers that begin as no others do, most of them zeros where there are many.
    pub(crate) fn outline(&mut self, count: usize) -> Bytes {
        if self.used.is_multiple_of(NUMBERS) {
            self.piece = Bytes::new();
        }
        let outline = self.cut(self.used % NUMBERS, count);
        self.used += 1;
        outline
    }

    fn cut(&mut self, from: usize, count: usize) -> Bytes {
        let (start, end) = (from * WIDE, (from + count) * WIDE);
        if self.piece.len() < end {
            let mut piece = vec![0; end.next_power_of_two().max(2 * NUMBERS * WIDE)];
            let first = self.used / NUMBERS * NUMBERS;
            for (at, number) in piece.chunks_exact_mut(WIDE).take(NUMBERS).enumerate() {
                // The floating-point numbers from 1.
                number.copy_from_slice(&(1f32.to_bits() + (first + at) as u32).to_le_bytes());
            }
            self.piece = piece.into();
        }
        self.piece.slice(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_outlines_begin_alike() {
        let mut blank = Blank::default();
        let mut seen = std::collections::HashSet::new();
        for at in 0..3 * NUMBERS {
            let bytes = blank.outline(1 + at % 5);
            assert_eq!(bytes.len(), (1 + at % 5) * WIDE);
            assert!(seen.insert(bytes[..WIDE].to_vec()), "{at}");
            assert!(blank.zeros(3000).iter().all(|byte| *byte == 0));
        }
    }
}
