//! Sizes as monomials of variables.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Div, Mul};

/// Variables that one specification may have.
pub const VARIABLES: usize = 16;

/// `product of variable^exponent`: one signed byte for each of [`VARIABLES`] variables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Size(u128);

/// The sign bit of each byte.
const SIGNS: u128 = 0x8080_8080_8080_8080_8080_8080_8080_8080;

impl Size {
    /// The size 1.
    pub const ONE: Size = Size(0);

    /// `variable^exponent`.
    pub fn power(variable: usize, exponent: i8) -> Size {
        assert!(variable < VARIABLES, "variable {variable} of {VARIABLES}");
        Size(u128::from(exponent as u8) << (8 * variable))
    }

    /// The exponent of a variable.
    pub fn exponent(self, variable: usize) -> i8 {
        (self.0 >> (8 * variable)) as u8 as i8
    }

    /// Exponents that are not zero, with their variables, ascending.
    pub fn exponents(self) -> impl Iterator<Item = (usize, i8)> {
        (0..VARIABLES).map(move |v| (v, self.exponent(v))).filter(|(_, e)| *e != 0)
    }

    /// `1 / self`.
    pub fn inverse(self) -> Size {
        Size::ONE / self
    }
}

impl Mul for Size {
    type Output = Size;

    fn mul(self, other: Size) -> Size {
        // Bytewise addition: no carry leaves a byte.
        Size(((self.0 & !SIGNS) + (other.0 & !SIGNS)) ^ ((self.0 ^ other.0) & SIGNS))
    }
}

impl Div for Size {
    type Output = Size;

    fn div(self, other: Size) -> Size {
        // Bytewise subtraction: no borrow leaves a byte.
        Size(((self.0 | SIGNS) - (other.0 & !SIGNS)) ^ ((self.0 ^ !other.0) & SIGNS))
    }
}

impl FromIterator<Size> for Size {
    /// The product.
    fn from_iter<I: IntoIterator<Item = Size>>(sizes: I) -> Size {
        sizes.into_iter().fold(Size::ONE, |product, size| product * size)
    }
}

impl Ord for Size {
    /// By the exponents, the first variable first.
    fn cmp(&self, other: &Size) -> Ordering {
        // With signs flipped, bytes compare as numbers, and the first variable is the first byte.
        (self.0 ^ SIGNS).to_le_bytes().cmp(&(other.0 ^ SIGNS).to_le_bytes())
    }
}

impl PartialOrd for Size {
    fn partial_cmp(&self, other: &Size) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.exponents()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_an_order() {
        let (c, s) = (Size::power(0, 1), Size::power(5, 1));
        assert!(s < c && c < c * c && c / s < c && Size::ONE / s < Size::ONE && s < c / s);
    }

    #[test]
    fn bytes_do_not_leak_into_their_neighbours() {
        for a in -20..20 {
            for b in -20..20 {
                let [x, y] = [a, b].map(|e| Size::power(0, e) * Size::power(3, -e) * Size::power(15, e));
                let (product, quotient) = (x * y, x / y);
                for (variable, sign) in [(0, 1), (3, -1), (15, 1)] {
                    assert_eq!(product.exponent(variable), sign * (a + b));
                    assert_eq!(quotient.exponent(variable), sign * (a - b));
                }
                assert_eq!(product.exponent(1), 0);
                assert_eq!((x * x.inverse()), Size::ONE);
            }
        }
    }
}
