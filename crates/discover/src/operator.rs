//! Operators of a specification: their operands, conditions and definitions.

use regraft_ir::dim::Factor;
use regraft_ir::{Dim, TensorType};

use crate::expr::{Expr, Size};

/// A condition on the types of operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Guard {
    /// An operand has this many axes.
    Rank(usize, usize),
    /// Two operands have the same shape.
    SameShape(usize, usize),
    /// An operand is not a scalar.
    Tensor(usize),
    /// An operand has these sizes; `None` where any will do.
    Sizes(usize, Vec<Option<Size>>),
}

/// A condition on an operand itself, besides its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandGuard {
    /// A variable.
    Variable(usize),
    /// Anything but a variable declared as a weight.
    Data(usize),
    /// Two operands are not the same value.
    Distinct(usize, usize),
}

/// An operator of the generator: counts as one, however many operators define it.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Unique name.
    pub name: String,
    /// Names of the operands.
    pub operands: Vec<String>,
    /// Whether swapping the two operands changes nothing.
    pub commutative: bool,
    /// Conditions on types.
    pub guards: Vec<Guard>,
    /// Conditions on the operands themselves.
    pub operand_guards: Vec<OperandGuard>,
    /// The operand and axis whose size is cut in two, in all ways to write it as a sum.
    pub cut: Option<(usize, usize)>,
    /// One expression per result.
    pub results: Vec<Expr>,
}

impl Operator {
    /// Whether an operand may have this type, as far as it alone determines.
    pub fn admits(&self, operand: usize, ty: &TensorType) -> bool {
        self.guards.iter().all(|guard| match guard {
            Guard::Rank(at, rank) => *at != operand || ty.rank() == *rank,
            Guard::Sizes(at, sizes) => *at != operand || fits(ty, sizes, &[]),
            Guard::Tensor(at) => *at != operand || ty.rank() > 0,
            Guard::SameShape(..) => true,
        })
    }

    /// Whether operands may have these types.
    pub fn accepts(&self, types: &[TensorType]) -> bool {
        types.len() == self.operands.len()
            && self.guards.iter().all(|guard| match guard {
                Guard::Rank(at, rank) => types[*at].rank() == *rank,
                Guard::Tensor(at) => types[*at].rank() > 0,
                Guard::SameShape(a, b) => types[*a].shape == types[*b].shape,
                Guard::Sizes(at, sizes) => fits(&types[*at], sizes, types),
            })
    }

    /// The cut points for operands of these types; `None` alone if the operator has no cut.
    pub fn cuts(&self, types: &[TensorType]) -> Vec<Option<Dim>> {
        let Some((operand, axis)) = self.cut else { return vec![None] };
        let Some(size) = types.get(operand).and_then(|ty| ty.shape.get(axis)) else { return Vec::new() };
        parts(size).into_iter().map(Some).collect()
    }
}

/// Whether a type has these sizes, as far as `operands` determine them: sizes of missing operands
/// fit anything.
fn fits(ty: &TensorType, sizes: &[Option<Size>], operands: &[TensorType]) -> bool {
    ty.rank() == sizes.len()
        && sizes.iter().zip(&ty.shape).all(|(want, have)| match want {
            None => true,
            Some(want) => want.resolve(operands, None).is_none_or(|want| want == *have),
        })
}

/// All ways to cut a size that is a sum of products of size parameters with positive coefficients:
/// the first parts, neither empty nor the whole.
fn parts(size: &Dim) -> Vec<Dim> {
    let mut sums = vec![Dim::from(0)];
    for (coefficient, factors) in size.products() {
        let mut one = Dim::from(1);
        for factor in factors {
            let Factor::Symbol(name) = factor else { return Vec::new() };
            one = one * Dim::symbol(name);
        }
        if coefficient < 0 {
            return Vec::new();
        }
        let multiples = (0..=coefficient).map(|times| one.clone() * Dim::from(times));
        sums = multiples.flat_map(|part| sums.iter().map(move |sum| sum.clone() + part.clone()).collect::<Vec<_>>()).collect();
    }
    sums.retain(|sum| !sum.is(0) && sum != size);
    sums.sort();
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_cut_between_their_terms() {
        let (m, k) = (Dim::symbol("m"), Dim::symbol("k"));
        let shown = |size: Dim| parts(&size).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parts(&m), []);
        assert_eq!(parts(&(m.clone() + m.clone())), std::slice::from_ref(&m));
        assert_eq!(shown(m.clone() + m.clone() + k.clone()).len(), 4);
        assert_eq!(parts(&Dim::from(3)), [Dim::from(1), Dim::from(2)]);
        assert_eq!(parts(&(m - k)), []);
    }
}
