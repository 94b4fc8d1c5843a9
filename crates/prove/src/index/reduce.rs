//! Simplification of floor divisions and broadcast indices by what is known about their operands.

use num_traits::ToPrimitive;

use crate::index::{Atom, Facts, Poly, Var};

impl Facts {
    /// The polynomial with divisions carried out as far as the facts tell.
    pub fn reduce(&self, poly: &Poly) -> Poly {
        let compound = |a: &Atom| matches!(a, Atom::Floor(..) | Atom::Stretch(..) | Atom::Element(..));
        if !poly.any(&mut |a| compound(a)) {
            return poly.clone();
        }
        poly.terms().iter().fold(Poly::default(), |sum, (atoms, c)| {
            sum.add(&atoms.iter().fold(Poly::number(*c), |product, atom| product.mul(&self.reduce_atom(atom))))
        })
    }

    fn reduce_atom(&self, atom: &Atom) -> Poly {
        match atom {
            Atom::Size(_) | Atom::Var(_) | Atom::Broadcast(..) => Poly::atom(atom.clone()),
            Atom::Floor(a, b) => self.floor(&self.reduce(a), &self.reduce(b)),
            Atom::Stretch(a, n) => self.stretch(&self.reduce(a), n),
            Atom::Element(source, index) => {
                let index: Vec<Poly> = index.iter().map(|p| self.reduce(p)).collect();
                match self.element(source, &index).filter(|value| value.is_integer()).and_then(|value| value.to_integer().to_i64()) {
                    Some(value) => Poly::number(value),
                    None => Poly::atom(Atom::Element(source.clone(), index)),
                }
            }
        }
    }

    fn floor(&self, a: &Poly, b: &Poly) -> Poly {
        let (whole, rest) = a.divide(b);
        let within = |p: &Poly, b: &Poly| self.nonnegative(p) && self.at_least(&b.plus(-1), p);
        if within(&rest, b) {
            return whole;
        }
        if within(&rest.add(b), b) {
            return whole.plus(-1);
        }
        // Where variables do not start at 0, neither does the quotient.
        if let Some(first) = self.lowest(&rest).zip(b.known().filter(|b| *b > 0)).map(|(low, b)| low.div_euclid(b)).filter(|q| *q != 0)
            && within(&rest.sub(&b.scale(first)), b)
        {
            return whole.plus(first);
        }
        // Between `q b` and `q b + b - 1`, by assumption.
        for bound in self.lower_bounds(&rest) {
            let (quotient, _) = bound.divide(b);
            if !quotient.is_zero() && within(&rest.sub(&quotient.mul(b)), b) {
                return whole.add(&quotient);
            }
        }
        // floor((c d + r) / (c m)) = floor(d / m) where 0 ≤ r < c
        for (atoms, c) in rest.terms() {
            let Some((var, digit)) = digit(atoms, *c) else { continue };
            let Some(count) = b.exact(&digit) else { continue };
            let Some((factor, low)) = rest.linear(var) else { continue };
            if factor == digit && count.known() != Some(1) && !low.is_zero() && within(&low, &digit) {
                return whole.add(&Poly::var(var).floor(&count));
            }
        }
        whole.add(&rest.floor(b))
    }

    /// The value of a linear expression with each variable at the end of its range that makes it
    /// smallest.
    pub(super) fn lowest(&self, poly: &Poly) -> Option<i64> {
        poly.terms().iter().try_fold(0i64, |sum, (atoms, c)| {
            let value = match &atoms[..] {
                [] => 1,
                [Atom::Var(var)] if *c > 0 => self.first(*var),
                [Atom::Var(var)] => self.extent(*var)?.known()? - 1,
                _ => return None,
            };
            sum.checked_add(value.checked_mul(*c)?)
        })
    }

    /// The index into an axis of size `n` at index `a` of the broadcast axis.
    pub fn stretch(&self, a: &Poly, n: &Poly) -> Poly {
        if n.known() == Some(1) || a.is_zero() {
            return Poly::default();
        }
        if self.at_least(n, &Poly::number(2)) {
            return a.clone();
        }
        if let [(atoms, 1)] = a.terms()
            && let [Atom::Stretch(inner, middle)] = &atoms[..]
            && broadcasts(middle, n)
        {
            return self.stretch(inner, n);
        }
        Poly::atom(Atom::Stretch(a.clone(), n.clone()))
    }
}

/// The variable of a product `c s.. v`, and `c s..`.
fn digit(atoms: &[Atom], c: i64) -> Option<(Var, Poly)> {
    let mut vars = atoms.iter().filter_map(|a| if let Atom::Var(v) = a { Some(*v) } else { None });
    let var = vars.next()?;
    if vars.next().is_some() || c <= 0 {
        return None;
    }
    let rest = atoms.iter().filter(|a| **a != Atom::Var(var));
    Some((var, rest.fold(Poly::number(c), |product, atom| product.mul(&Poly::atom(atom.clone())))))
}

/// Whether `whole` is the result of broadcasting `part` and others.
fn broadcasts(whole: &Poly, part: &Poly) -> bool {
    whole == part
        || match whole.terms() {
            [(atoms, 1)] => match &atoms[..] {
                [Atom::Broadcast(a, b)] => broadcasts(a, part) || broadcasts(b, part),
                _ => false,
            },
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fresh;
    use regraft_ir::Dim;

    #[test]
    fn digits_of_flat_indices_come_apart() {
        crate::index::Fuel::fill(1 << 20);
        let (n, m) = (Poly::size(&Dim::symbol("N")), Poly::size(&Dim::symbol("M")));
        let (a, b) = (fresh(), fresh());
        let mut facts = Facts::default();
        facts.range(a, n.clone());
        facts.range(b, m.clone());
        let flat = Poly::var(a).mul(&m).add(&Poly::var(b));
        assert_eq!(facts.reduce(&Poly::atom(Atom::Floor(flat.clone(), m.clone()))), Poly::var(a));
        assert_eq!(facts.reduce(&Poly::atom(Atom::Floor(Poly::var(b), m.scale(2)))), Poly::default());
        // (2 a M + b) / 4 M = a / 2
        let coarse = Poly::var(a).mul(&m).scale(2).add(&Poly::var(b));
        assert_eq!(facts.reduce(&Poly::atom(Atom::Floor(coarse, m.scale(4)))), Poly::var(a).floor(&Poly::number(2)));
    }

    #[test]
    fn broadcast_indices_follow_the_size() {
        let (n, m) = (Poly::size(&Dim::symbol("N")), Poly::size(&Dim::symbol("M")));
        let i = Poly::var(fresh());
        let facts = Facts::default();
        assert_eq!(facts.stretch(&i, &Poly::number(1)), Poly::default());
        assert_eq!(facts.stretch(&i, &Poly::number(5)), i);
        let both = Poly::atom(Atom::Broadcast(m.clone(), n.clone()));
        assert_eq!(facts.stretch(&facts.stretch(&i, &both), &n), facts.stretch(&i, &n));
        assert_ne!(facts.stretch(&i, &n), facts.stretch(&i, &m));
    }
}
