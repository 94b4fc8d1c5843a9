//! Sizes that pair a number with the expression it stands for.

use regraft_ir::Dim;
use smallvec::SmallVec;

/// A size: a number, which decides what is well-typed, and an expression of which it is one value.
///
/// For a concrete instance the expression is the number. For a family it is a polynomial over
/// symbols, and every comparison of numbers leaves an [`Obligation`] on the expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number.
    pub n: i64,
    /// The expression.
    pub s: Dim,
}

impl Size {
    /// A number without symbols.
    pub fn known(n: i64) -> Size {
        Size { n, s: Dim::from(n) }
    }

    pub(crate) fn plus(&self, other: &Size) -> Size {
        Size { n: self.n.saturating_add(other.n), s: self.s.clone() + other.s.clone() }
    }

    pub(crate) fn minus(&self, other: &Size) -> Size {
        Size { n: self.n - other.n, s: self.s.clone() - other.s.clone() }
    }

    pub(crate) fn times(&self, factor: i64) -> Size {
        Size { n: self.n.saturating_mul(factor), s: self.s.clone() * Dim::from(factor) }
    }

    /// `ceil(self / divisor)`.
    pub(crate) fn ceil_div(&self, divisor: i64) -> Size {
        Size { n: (self.n + divisor - 1).div_euclid(divisor), s: self.s.ceil_div(&Dim::from(divisor)) }
    }
}

/// A constraint on expressions under which a family behaves like its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obligation {
    /// Two sizes are equal.
    Equal(Dim, Dim),
    /// A size leaves the given remainder.
    Remainder {
        /// The size.
        size: Dim,
        /// The divisor.
        divisor: i64,
        /// The remainder.
        remainder: i64,
    },
    /// A size is at least this.
    AtLeast(Dim, i64),
    /// A size is a number.
    Known(Dim),
}

/// Sizes of a tensor, outermost first.
pub type Sizes = SmallVec<[Size; 4]>;
