//! Numbers too small for all of their digits.
//!
//! Below 2^-126, numbers in single precision are subnormal: they have fewer and fewer digits.
//! Processors of some makers take more than a hundred cycles for each product that reads or gives
//! one, and networks that were trained with weight decay have weights of that kind by the thousand.

use crate::constant::Const;
use crate::dtype::DType;

/// Elements below 2^-100 count as tiny: products of others are subnormal only with numbers that are
/// below 2^-26 themselves.
const TINY: u32 = (127 - 100) << 23;
/// Where the largest element is less than 2^-64, tiny ones are no dust beside it.
const LARGEST: f32 = f32::from_bits((127 - 64) << 23);
/// Bits of a number without its sign.
const MAGNITUDE: u32 = 0x7fff_ffff;

impl Const {
    /// The constant with zeros instead of its elements in single precision that are subnormal, or
    /// so tiny that products with them often are, and how far these are from zero, relative to its
    /// largest magnitude: less than 2^-36, a four-thousandth of what single precision rounds a
    /// number to. `None` if there are none, or nothing large beside them.
    pub fn flushed(&self) -> Option<(Const, f64)> {
        // Counting is fast, and most weights have none.
        if self.words().filter(|word| is_tiny(*word)).count() == 0 {
            return None;
        }
        let magnitude = |word: u32| f32::from_bits(word & MAGNITUDE);
        let lost = self.words().filter(|word| is_tiny(*word)).map(magnitude).fold(0.0, f32::max);
        let largest = self.words().map(magnitude).fold(0.0, f32::max);
        if largest < LARGEST {
            return None;
        }
        let zeroed = |word: u32| if is_tiny(word) { word & !MAGNITUDE } else { word };
        let bytes: Vec<u8> = self.words().flat_map(|word| zeroed(word).to_le_bytes()).collect();
        Some((Const::new(self.dtype(), self.shape(), bytes.into())?, f64::from(lost) / f64::from(largest)))
    }

    /// The bits of each element in single precision; nothing for other types.
    fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes: &[u8] = if self.dtype() == DType::F32 { self.bytes() } else { &[] };
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
    }
}

/// Not zero, and less than others are in any case.
fn is_tiny(word: u32) -> bool {
    (word & MAGNITUDE).wrapping_sub(1) < TINY - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Const {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Const::new(DType::F32, &[values.len() as i64], bytes.into()).expect("it fits")
    }

    #[test]
    fn dust_becomes_zero_and_keeps_its_sign() {
        let least = f32::from_bits(TINY);
        let constant = f32s(&[0.5, 1e-40, -3e-45, least, f32::MIN_POSITIVE, 0.0, -0.0]);
        let (flushed, off) = constant.flushed().expect("three are tiny");
        assert_eq!(flushed, f32s(&[0.5, 0.0, -0.0, least, 0.0, 0.0, -0.0]));
        assert_eq!(off, f64::from(f32::MIN_POSITIVE) / 0.5);
        assert!(flushed.flushed().is_none());
    }

    #[test]
    fn what_is_all_there_is_stays() {
        assert!(f32s(&[1e-40, 1e-39]).flushed().is_none());
        assert!(f32s(&[1e-40, 1e-20]).flushed().is_none());
        assert!(f32s(&[1e-40, f32::INFINITY]).flushed().is_some());
        let double = Const::from_f64(DType::F64, &[2], &[1e-40, 1.0]).expect("it fits");
        assert!(double.flushed().is_none());
    }
}
