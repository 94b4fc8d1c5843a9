//! Sizes of dimensions under all bindings at once.

/// The number of bindings a model with open sizes is run at.
pub const BINDINGS: usize = 3;

/// The size of a dimension at each binding; open if they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size(pub [i64; BINDINGS]);

impl Size {
    /// A size that is the same at every binding.
    pub fn fixed(size: i64) -> Size {
        Size([size; BINDINGS])
    }

    /// The size, if it is the same at every binding.
    pub fn known(self) -> Option<i64> {
        self.0.iter().all(|s| *s == self.0[0]).then_some(self.0[0])
    }

    /// The smallest size of all bindings.
    pub fn least(self) -> i64 {
        self.0.into_iter().min().unwrap_or(0)
    }

    /// `f` of the size at each binding.
    pub fn map(self, f: impl Fn(i64) -> i64) -> Size {
        Size(self.0.map(f))
    }

    /// `f` of both sizes at each binding.
    pub fn with(self, other: Size, f: impl Fn(i64, i64) -> i64) -> Size {
        Size(std::array::from_fn(|at| f(self.0[at], other.0[at])))
    }

    /// True if the size is 1 at every binding.
    pub fn is_one(self) -> bool {
        self.known() == Some(1)
    }
}

/// Product of sizes.
pub fn product(sizes: &[Size]) -> Size {
    sizes.iter().fold(Size::fixed(1), |all, size| all.with(*size, |a, b| a * b))
}

/// Sizes that do not depend on the binding.
pub fn fixed(sizes: &[i64]) -> Vec<Size> {
    sizes.iter().copied().map(Size::fixed).collect()
}

/// The sizes as numbers, if none is open.
pub fn known(sizes: &[Size]) -> Option<Vec<i64>> {
    sizes.iter().map(|s| s.known()).collect()
}

/// The broadcast of two shapes, if they broadcast at every binding.
pub fn broadcast(a: &[Size], b: &[Size]) -> Option<Vec<Size>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[Size], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(Size::fixed(1), |i| shape[i]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y || y.is_one() => Some(x),
            (x, y) if x.is_one() => Some(y),
            _ => None,
        })
        .collect()
}
