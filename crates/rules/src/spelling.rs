//! Symbols for sizes that a rule's instance gives as numbers.

use regraft_ir::Dim;

use crate::sample::Sizes;

/// What stands for sizes that a rule's instance gives as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelling {
    /// The numbers.
    Numbers,
    /// A symbol for each number; for some numbers only, if there is a mask.
    Symbols(Option<u64>),
    /// A symbol for each prime, so that what is merged or split by a reshape stays a product.
    Products,
}

impl Spelling {
    /// One for this kind of sizes.
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

    /// What stands for a number.
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
