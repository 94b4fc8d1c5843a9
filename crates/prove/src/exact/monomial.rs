//! Products of powers of atoms, as words that are equal if the products are.

use rustc_hash::FxHashMap;

use crate::rational::Rational;

/// A product of powers of atoms. Up to three factors are packed into the word; longer products are
/// an index into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Monomial(u64);

/// Bits of one factor in a word.
const BITS: u32 = 21;
const MASK: u64 = (1 << BITS) - 1;
/// Marks an index into the table.
const LISTED: u64 = 1 << 63;
/// Factors that fit in a word.
const FACTORS: usize = 3;
/// Atoms above this number are never packed into words.
pub(super) const MOST_ATOMS: u32 = MASK as u32 - 1;

/// An atom and its nonzero exponent.
pub(super) type Factor = (u32, Rational);

/// All monomials that do not fit in a word.
#[derive(Debug, Default)]
pub(super) struct Monomials {
    list: Vec<Vec<Factor>>,
    places: FxHashMap<Vec<Factor>, u32>,
    products: FxHashMap<(Monomial, Monomial), Monomial>,
}

impl Monomial {
    /// The empty product.
    pub(super) const ONE: Monomial = Monomial(0);

    /// One atom.
    pub(super) fn atom(atom: u32) -> Monomial {
        Monomial(u64::from(atom + 1) << (2 * BITS))
    }

    fn slots(self) -> [u64; FACTORS] {
        [self.0 >> (2 * BITS), self.0 >> BITS & MASK, self.0 & MASK]
    }

    fn is_listed(self) -> bool {
        self.0 & LISTED != 0
    }
}

impl Monomials {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.places.clear();
        self.products.clear();
    }

    /// The factors, in ascending order of atoms.
    pub(super) fn factors(&self, monomial: Monomial) -> Vec<Factor> {
        if monomial.is_listed() {
            return self.list[(monomial.0 & !LISTED) as usize].clone();
        }
        let mut factors: Vec<Factor> = Vec::new();
        for slot in monomial.slots().into_iter().rev().filter(|s| *s > 0) {
            let atom = slot as u32 - 1;
            match factors.last_mut().filter(|last| last.0 == atom) {
                Some(last) => last.1 = last.1.plus(Rational::ONE).unwrap_or(last.1),
                None => factors.push((atom, Rational::ONE)),
            }
        }
        factors
    }

    /// The monomial of these factors, given in ascending order of atoms and with nonzero exponents.
    pub(super) fn of(&mut self, factors: Vec<Factor>) -> Monomial {
        let mut slots = [0u64; FACTORS];
        let mut used = 0;
        let fits = factors.iter().rev().all(|(atom, exponent)| {
            let Some(times) = exponent.integer().filter(|e| (1..=FACTORS as i64).contains(e)) else { return false };
            let end = used + times as usize;
            if end > FACTORS {
                return false;
            }
            slots[used..end].fill(u64::from(*atom) + 1);
            used = end;
            true
        });
        if fits {
            return Monomial(slots[0] << (2 * BITS) | slots[1] << BITS | slots[2]);
        }
        if let Some(place) = self.places.get(&factors) {
            return Monomial(LISTED | u64::from(*place));
        }
        let place = self.list.len() as u32;
        self.list.push(factors.clone());
        self.places.insert(factors, place);
        Monomial(LISTED | u64::from(place))
    }

    /// The product; `None` where an exponent does not fit.
    pub(super) fn product(&mut self, a: Monomial, b: Monomial) -> Option<Monomial> {
        if a == Monomial::ONE {
            return Some(b);
        }
        if b == Monomial::ONE {
            return Some(a);
        }
        if !a.is_listed() && !b.is_listed() {
            let ([a0, a1, a2], [b0, b1, b2]) = (a.slots(), b.slots());
            if a1 == 0 && b1 == 0 {
                let (high, low) = if a0 >= b0 { (a0, b0) } else { (b0, a0) };
                return Some(Monomial(high << (2 * BITS) | low << BITS));
            }
            // Two factors and one.
            if a2 == 0 && b1 == 0 || b2 == 0 && a1 == 0 {
                let (x, y, z) = if b1 == 0 { (a0, a1, b0) } else { (b0, b1, a0) };
                let (p, q, r) = if z >= x {
                    (z, x, y)
                } else if z >= y {
                    (x, z, y)
                } else {
                    (x, y, z)
                };
                return Some(Monomial(p << (2 * BITS) | q << BITS | r));
            }
        }
        let key = if a <= b { (a, b) } else { (b, a) };
        if let Some(known) = self.products.get(&key) {
            return Some(*known);
        }
        let (x, y) = (self.factors(a), self.factors(b));
        let mut factors = Vec::with_capacity(x.len() + y.len());
        let (mut i, mut j) = (0, 0);
        while i < x.len() || j < y.len() {
            match (x.get(i), y.get(j)) {
                (Some(p), Some(q)) if p.0 == q.0 => {
                    let exponent = p.1.plus(q.1)?;
                    if !exponent.is_zero() {
                        factors.push((p.0, exponent));
                    }
                    (i, j) = (i + 1, j + 1);
                }
                (Some(p), q) if q.is_none_or(|q| p.0 < q.0) => {
                    factors.push(*p);
                    i += 1;
                }
                (_, Some(q)) => {
                    factors.push(*q);
                    j += 1;
                }
                (_, None) => break,
            }
        }
        let product = self.of(factors);
        self.products.insert(key, product);
        Some(product)
    }

    /// The monomial with every exponent multiplied; `None` where one does not fit.
    pub(super) fn power(&mut self, monomial: Monomial, exponent: Rational) -> Option<Monomial> {
        if exponent.is_zero() {
            return Some(Monomial::ONE);
        }
        let factors = self.factors(monomial).into_iter().map(|(a, e)| Some((a, e.times(exponent)?))).collect::<Option<_>>()?;
        Some(self.of(factors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_do_not_depend_on_the_order_of_their_factors() {
        let mut table = Monomials::default();
        let [x, y, z, w] = [3, 0, 7, 7].map(Monomial::atom);
        let mut product = |list: &[Monomial]| list.iter().try_fold(Monomial::ONE, |a, b| table.product(a, *b)).unwrap();
        for list in [[x, y, z, w], [w, z, y, x], [z, x, w, y], [y, w, x, z]] {
            assert_eq!(product(&list), product(&[x, y, z, w]));
            let (rest, front, back) = (product(&list[1..]), product(&list[..2]), product(&list[2..]));
            assert_eq!(product(&[list[0], rest]), product(&[front, back]));
        }
        assert_eq!(product(&[x, y, z]), product(&[z, y, x]));
        assert_ne!(product(&[x, y, z]), product(&[x, x, z]));
        let square = product(&[x, x]);
        assert_ne!(square, x);
        let inverse = table.power(square, Rational::of(-0.5).unwrap()).unwrap();
        assert_eq!(table.product(inverse, x), Some(Monomial::ONE));
        assert_eq!(table.factors(square), [(3, Rational::of(2.0).unwrap())]);
    }
}
