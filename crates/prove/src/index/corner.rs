//! The smallest value of linear sums, at a corner of the ranges of their variables.

use crate::index::{Atom, Facts, Poly, Var};

/// What the smallest corner says about a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Corner {
    /// It is at least 0 there, and so everywhere.
    Above,
    /// It is below 0 there, where all facts hold.
    Below,
    /// The corner does not decide.
    Open,
}

impl Facts {
    /// Examines the smallest corner of a sum that is linear in variables with numeric ranges.
    pub fn smallest_corner(&self, sum: &Poly) -> Corner {
        let Some(corner) = self.corner(sum) else { return Corner::Open };
        let value = |var: Var| corner.iter().find(|(v, _)| *v == var).map_or(0, |(_, value)| *value);
        let at = |poly: &Poly| {
            poly.terms().iter().try_fold(0i64, |total, (atoms, c)| {
                let product = atoms.iter().try_fold(*c, |product, atom| match atom {
                    Atom::Var(var) => product.checked_mul(value(*var)),
                    _ => None,
                });
                total.checked_add(product?)
            })
        };
        match at(sum) {
            Some(0..) => Corner::Above,
            Some(_) if self.known().iter().all(|fact| at(fact).is_some_and(|v| v >= 0)) => Corner::Below,
            _ => Corner::Open,
        }
    }

    /// The values of the variables at the corner.
    fn corner(&self, sum: &Poly) -> Option<Vec<(Var, i64)>> {
        let mut corner = Vec::new();
        for (atoms, c) in sum.terms() {
            match &atoms[..] {
                [] => {}
                [Atom::Var(var)] => {
                    let last = self.extent(*var)?.known()? - 1;
                    corner.push((*var, if *c > 0 { 0 } else { last }));
                }
                _ => return None,
            }
        }
        Some(corner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fresh;

    #[test]
    fn corners_decide_where_facts_allow_them() {
        let (a, b) = (fresh(), fresh());
        let mut facts = Facts::default();
        facts.range(a, Poly::number(4));
        facts.range(b, Poly::number(3));
        let flat = Poly::var(a).scale(3).add(&Poly::var(b));
        assert_eq!(facts.smallest_corner(&Poly::number(11).sub(&flat)), Corner::Above);
        assert_eq!(facts.smallest_corner(&Poly::number(10).sub(&flat)), Corner::Below);
        facts.assume(Poly::number(2).sub(&Poly::var(a)));
        assert_eq!(facts.smallest_corner(&Poly::number(10).sub(&flat)), Corner::Open);
        assert_eq!(facts.smallest_corner(&Poly::var(a).mul(&Poly::var(b))), Corner::Open);
    }
}
