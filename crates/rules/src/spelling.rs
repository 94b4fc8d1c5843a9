//! Symbols for sizes given as numbers by a rule's instance.

use regraft_ir::Dim;

use crate::sample::Sizes;

/// How sizes given as numbers by a rule's instance are written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelling {
    /// The numbers.
    Numbers,
    /// A symbol for each number; with a mask, for some numbers only.
    Symbols(Option<u64>),
    /// A symbol for each prime, so that what is merged or split by a reshape stays a product.
    Products,
}

impl Spelling {
    /// Draws a spelling for this kind of sizes.
    pub fn draw(sizes: Sizes, below: &mut dyn FnMut(u64) -> u64) -> Spelling {
        if sizes == Sizes::Known {
            return Spelling::Numbers;
        }
        match (sizes, below(2)) {
            (Sizes::Known, _) | (Sizes::Some, 0) => Spelling::Numbers,
            (Sizes::Some, _) => Spelling::Symbols(Some(below(1 << 16))),
            (Sizes::Open, 0) => Spelling::Products,
            (Sizes::Open, _) => Spelling::Symbols(None),
        }
    }

    /// The size written for a number.
    pub fn size(self, number: i64) -> Dim {
        match self {
            Spelling::Symbols(mask) if number > 1 && mask.is_none_or(|mask| mask >> (number % 16) & 1 == 1) => {
                Dim::symbol(&format!("S{number}"))
            }
            Spelling::Products if number > 1 => {
                let (mut product, mut rest, mut prime) = (Dim::from(1), number, 2);
                while rest > 1 {
                    if rest % prime == 0 {
                        product = product * Dim::symbol(&format!("P{prime}"));
                        rest /= prime;
                    } else {
                        prime += 1;
                    }
                }
                product
            }
            _ => Dim::from(number),
        }
    }
}
