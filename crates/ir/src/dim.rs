//! Symbolic dimensions: integer polynomials over named symbols and floor divisions.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Answers about ends of quotients that each thread keeps.
const MOST_KNOWN: usize = 1 << 14;

/// Values of symbols, for evaluating a [`Dim`].
pub type Bindings = BTreeMap<String, i64>;

/// One dimension of a shape, in a normal form: two equal `Dim`s denote the same number for every
/// value of the symbols.
///
/// The converse does not hold: unequal `Dim`s may still agree, so a failed test means "cannot be
/// shown".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Const(i64),
    Poly(Arc<Terms>),
}

impl Ord for Repr {
    fn cmp(&self, other: &Repr) -> Ordering {
        match (self, other) {
            (Repr::Const(a), Repr::Const(b)) => a.cmp(b),
            (Repr::Const(_), Repr::Poly(_)) => Ordering::Less,
            (Repr::Poly(_), Repr::Const(_)) => Ordering::Greater,
            // Most sizes that are equal are the same.
            (Repr::Poly(a), Repr::Poly(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (Repr::Poly(a), Repr::Poly(b)) => a.cmp(b),
        }
    }
}

impl PartialOrd for Repr {
    fn partial_cmp(&self, other: &Repr) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Sum of `coefficient * product of atoms`, sorted by the product; no zero coefficients; never a
/// bare constant.
type Terms = Vec<(Vec<Atom>, i64)>;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    Symbol(Arc<str>),
    FloorDiv(Dim, Dim),
    /// The size that broadcasting two sizes gives: they are equal, or one of them is 1.
    Broadcast(Dim, Dim),
}

/// A factor of a product in a [`Dim`]'s normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor<'a> {
    /// A symbol.
    Symbol(&'a str),
    /// `floor(a / b)`.
    FloorDiv(&'a Dim, &'a Dim),
    /// The size that broadcasting two sizes gives: they are equal, or one of them is 1.
    Broadcast(&'a Dim, &'a Dim),
}

impl Dim {
    /// The same expression with other sizes for its symbols; `None` if one is missing, or if two
    /// sizes can no longer be broadcast.
    pub fn substitute(&self, size: &dyn Fn(&str) -> Option<Dim>) -> Option<Dim> {
        let mut sum = Dim::from(0);
        for (coefficient, factors) in self.products() {
            let mut product = Dim::from(coefficient);
            for factor in factors {
                product = product
                    * match factor {
                        Factor::Symbol(name) => size(name)?,
                        Factor::FloorDiv(a, b) => a.substitute(size)?.floor_div(&b.substitute(size)?),
                        Factor::Broadcast(a, b) => a.substitute(size)?.broadcast(&b.substitute(size)?)?,
                    };
            }
            sum = sum + product;
        }
        Some(sum)
    }

    /// The normal form: a sum of `coefficient * factors`.
    pub fn products(&self) -> Vec<(i64, Vec<Factor<'_>>)> {
        match &self.0 {
            Repr::Const(value) => vec![(*value, Vec::new())],
            Repr::Poly(terms) => {
                terms.iter().map(|(atoms, coefficient)| (*coefficient, atoms.iter().map(Atom::factor).collect())).collect()
            }
        }
    }

    /// The size as sums and products of factors, by somebody else's arithmetic.
    ///
    /// # Errors
    ///
    /// The first one of the arithmetic.
    pub fn compute<C: Arithmetic>(&self, by: &mut C) -> Result<C::Value, C::Error> {
        let mut sum: Option<C::Value> = None;
        for (coefficient, factors) in self.products() {
            let mut product = (coefficient != 1 || factors.is_empty()).then(|| by.number(coefficient)).transpose()?;
            for factor in &factors {
                let next = by.factor(factor)?;
                product = Some(match product {
                    Some(product) => by.product(product, next)?,
                    None => next,
                });
            }
            sum = match (sum, product) {
                (Some(a), Some(b)) => Some(by.sum(a, b)?),
                (a, b) => a.or(b),
            };
        }
        sum.map_or_else(|| by.number(0), Ok)
    }

    /// A named symbol, such as a declared `dim_param`.
    pub fn symbol(name: &str) -> Dim {
        Dim::from_terms(vec![(vec![Atom::Symbol(Arc::from(name))], 1)])
    }

    /// The number, if no symbol is involved.
    pub fn known(&self) -> Option<i64> {
        match &self.0 {
            Repr::Const(value) => Some(*value),
            Repr::Poly(_) => None,
        }
    }

    /// True if this dimension is the number `value`.
    pub fn is(&self, value: i64) -> bool {
        self.known() == Some(value)
    }

    /// The symbol's name, if this is exactly one symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        let Repr::Poly(terms) = &self.0 else { return None };
        match terms.as_slice() {
            [(atoms, 1)] => match atoms.as_slice() {
                [Atom::Symbol(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The size as `a * symbol + b` with `a` of at least 1, if it has this form.
    pub fn linear(&self) -> Option<(i64, &str, i64)> {
        let Repr::Poly(terms) = &self.0 else { return None };
        let (b, (atoms, a)) = match terms.as_slice() {
            [term] => (0, term),
            [(none, b), term] if none.is_empty() => (*b, term),
            _ => return None,
        };
        match atoms.as_slice() {
            [Atom::Symbol(name)] if *a > 0 => Some((*a, name, b)),
            _ => None,
        }
    }

    /// What the symbol of `a * symbol + b` is where this size is `size`, if that is an exact
    /// division.
    pub fn solve(&self, size: &Dim) -> Option<(&str, Dim)> {
        let (a, symbol, b) = self.linear()?;
        Some((symbol, (size.clone() - Dim::from(b)).exact_div(&Dim::from(a))?))
    }

    /// The same for a number, from 0 on.
    pub fn solve_number(&self, size: i64) -> Option<(&str, i64)> {
        let (symbol, number) = self.solve(&Dim::from(size))?;
        Some((symbol, number.known().filter(|number| *number >= 0)?))
    }

    fn terms(&self) -> Terms {
        match &self.0 {
            Repr::Const(0) => Vec::new(),
            Repr::Const(value) => vec![(Vec::new(), *value)],
            Repr::Poly(terms) => terms.as_ref().clone(),
        }
    }

    fn from_terms(mut terms: Terms) -> Dim {
        terms.sort();
        let mut merged: Terms = Vec::with_capacity(terms.len());
        for (atoms, coefficient) in terms {
            match merged.last_mut() {
                Some(last) if last.0 == atoms => last.1 = last.1.saturating_add(coefficient),
                _ => merged.push((atoms, coefficient)),
            }
        }
        merged.retain(|term| term.1 != 0);
        match merged.as_slice() {
            [] => Dim(Repr::Const(0)),
            [(atoms, value)] if atoms.is_empty() => Dim(Repr::Const(*value)),
            _ => Dim(Repr::Poly(Arc::new(merged))),
        }
    }

    /// The size times a number other than 0.
    fn times(self, times: i64) -> Dim {
        match self.0 {
            Repr::Const(value) => Dim::from(value.saturating_mul(times)),
            Repr::Poly(_) if times == 1 => self,
            Repr::Poly(terms) => {
                let product = terms.iter().map(|(atoms, coefficient)| (atoms.clone(), coefficient.saturating_mul(times)));
                Dim(Repr::Poly(Arc::new(product.collect())))
            }
        }
    }

    fn atom(atom: Atom) -> Dim {
        Dim::from_terms(vec![(vec![atom], 1)])
    }

    /// `floor(self / divisor)`; exact if the division leaves no remainder for all symbol values.
    ///
    /// A division by zero yields 0, which no shape rule accepts as a real size.
    pub fn floor_div(&self, divisor: &Dim) -> Dim {
        if divisor.is(1) {
            return self.clone();
        }
        if let (Some(a), Some(b)) = (self.known(), divisor.known()) {
            return Dim::from(if b == 0 { 0 } else { a.div_euclid(b) });
        }
        if let Some(exact) = self.exact_div(divisor) {
            return exact;
        }
        // floor((d*q + r) / d) = q + floor(r / d) for a constant d > 0: keeps one normal form of
        // strided sizes.
        if let Some(d) = divisor.known().filter(|d| *d > 0) {
            let (mut whole, mut rest) = (Vec::new(), Vec::new());
            for (atoms, coefficient) in self.terms() {
                let (q, r) = (coefficient.div_euclid(d), coefficient.rem_euclid(d));
                whole.push((atoms.clone(), q));
                rest.push((atoms, r));
            }
            let (whole, rest) = (Dim::from_terms(whole), Dim::from_terms(rest));
            if rest.known().is_some_and(|r| r >= 0 && r < d) {
                return whole;
            }
            return whole + Dim::atom(Atom::FloorDiv(rest, divisor.clone()));
        }
        Dim::atom(Atom::FloorDiv(self.clone(), divisor.clone()))
    }

    /// `ceil(self / divisor)`.
    pub fn ceil_div(&self, divisor: &Dim) -> Dim {
        (self.clone() + divisor.clone() - Dim::from(1)).floor_div(divisor)
    }

    /// `self / divisor` if every term is divisible by the single term of `divisor`.
    pub fn exact_div(&self, divisor: &Dim) -> Option<Dim> {
        if self == divisor {
            return Some(Dim::from(1));
        }
        let by = divisor.terms();
        let [(by_atoms, by_coefficient)] = by.as_slice() else { return None };
        let mut quotient = Vec::new();
        for (atoms, coefficient) in self.terms() {
            if *by_coefficient == 0 || coefficient % by_coefficient != 0 {
                return None;
            }
            let mut left = atoms;
            for atom in by_atoms {
                let at = left.iter().position(|a| a == atom)?;
                left.remove(at);
            }
            quotient.push((left, coefficient / by_coefficient));
        }
        Some(Dim::from_terms(quotient))
    }

    /// The size that broadcasting `self` with `other` gives; `None` if the two can never broadcast.
    pub fn broadcast(&self, other: &Dim) -> Option<Dim> {
        if self == other || other.is(1) {
            return Some(self.clone());
        }
        if self.is(1) {
            return Some(other.clone());
        }
        match (self.known(), other.known()) {
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(self.clone()),
            (None, Some(_)) => Some(other.clone()),
            (None, None) => {
                let (low, high) = if self < other { (self, other) } else { (other, self) };
                Some(Dim::atom(Atom::Broadcast(low.clone(), high.clone())))
            }
        }
    }

    /// The number under these symbol values; `None` if a symbol is unbound or a divisor is zero.
    pub fn eval(&self, bindings: &Bindings) -> Option<i64> {
        match &self.0 {
            Repr::Const(value) => Some(*value),
            Repr::Poly(terms) => {
                let mut sum = 0i64;
                for (atoms, coefficient) in terms.iter() {
                    let mut product = *coefficient;
                    for atom in atoms {
                        product = product.checked_mul(atom.eval(bindings)?)?;
                    }
                    sum = sum.checked_add(product)?;
                }
                Some(sum)
            }
        }
    }

    /// Names of all symbols in order of appearance, repeats included.
    pub fn symbols(&self, into: &mut Vec<String>) {
        let Repr::Poly(terms) = &self.0 else { return };
        for atom in terms.iter().flat_map(|term| &term.0) {
            match atom {
                Atom::Symbol(name) => into.push(name.to_string()),
                Atom::FloorDiv(a, b) | Atom::Broadcast(a, b) => {
                    a.symbols(into);
                    b.symbols(into);
                }
            }
        }
    }

    /// Whether `is` holds for the name of some symbol.
    pub fn has_symbol(&self, is: impl Fn(&str) -> bool) -> bool {
        let mut names = Vec::new();
        self.symbols(&mut names);
        names.iter().any(|name| is(name))
    }

    /// True if the size is at least `bound` for all symbol values ≥ 1, as far as signs and the ends
    /// of quotients can show.
    pub fn at_least(&self, bound: i64) -> bool {
        self.signs_show(bound) || self.has_quotients() && self.ends_show(bound)
    }

    /// Whether some end of a quotient shows that the size is at least `bound`. Quotients of
    /// quotients have very many ends, and the same questions come again and again: answers are
    /// kept.
    fn ends_show(&self, bound: i64) -> bool {
        thread_local!(static KNOWN: RefCell<FxHashMap<(Dim, i64), bool>> = RefCell::default());
        let question = (self.clone(), bound);
        if let Some(known) = KNOWN.with_borrow(|known| known.get(&question).copied()) {
            return known;
        }
        let shown = self.ends().any(|(least, times)| least.at_least(times.saturating_mul(bound.saturating_sub(1)) + 1));
        KNOWN.with_borrow_mut(|known| {
            if known.len() == MOST_KNOWN {
                known.clear();
            }
            known.insert(question, shown);
        });
        shown
    }

    /// Whether a term is a quotient.
    fn has_quotients(&self) -> bool {
        let Repr::Poly(terms) = &self.0 else { return false };
        terms.iter().any(|(atoms, _)| matches!(atoms.as_slice(), [Atom::FloorDiv(..)]))
    }

    /// For each quotient by a number `b` that is a term of its own: a size without it, and `b`; `b`
    /// times this size is not below that. `b floor(a / b)` lies between `a - b + 1` and `a`.
    fn ends(&self) -> impl Iterator<Item = (Dim, i64)> {
        let terms = if let Repr::Poly(terms) = &self.0 { terms.as_slice() } else { &[] };
        terms.iter().enumerate().filter_map(|(at, (atoms, coefficient))| {
            let [Atom::FloorDiv(a, b)] = atoms.as_slice() else { return None };
            let b = b.known().filter(|b| *b > 0)?;
            let end = if *coefficient > 0 { a.clone() - Dim::from(b - 1) } else { a.clone() };
            let others = Dim::from_terms([&terms[..at], &terms[at + 1..]].concat());
            Some((Dim::from(b) * others + Dim::from(*coefficient) * end, b))
        })
    }

    fn signs_show(&self, bound: i64) -> bool {
        match &self.0 {
            Repr::Const(value) => *value >= bound,
            Repr::Poly(terms) => {
                let mut least = 0i64;
                for (atoms, coefficient) in terms.iter() {
                    if *coefficient < 0 && !atoms.is_empty() {
                        return false;
                    }
                    let mut divided = false;
                    for atom in atoms {
                        let Atom::FloorDiv(a, b) = atom else { continue };
                        if !a.at_least(0) || !b.at_least(1) {
                            return false;
                        }
                        divided = true;
                    }
                    least = least.saturating_add(if divided { 0 } else { *coefficient });
                }
                least >= bound
            }
        }
    }
}

/// What computes sizes; see [`Dim::compute`].
pub trait Arithmetic {
    /// A computed integer.
    type Value;
    /// Why there is none.
    type Error;
    /// A number.
    fn number(&mut self, number: i64) -> Result<Self::Value, Self::Error>;
    /// A symbol, a quotient, or a size that results from broadcasting.
    fn factor(&mut self, factor: &Factor<'_>) -> Result<Self::Value, Self::Error>;
    /// `a * b`.
    fn product(&mut self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a + b`.
    fn sum(&mut self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
}

impl Atom {
    fn factor(&self) -> Factor<'_> {
        match self {
            Atom::Symbol(name) => Factor::Symbol(name),
            Atom::FloorDiv(a, b) => Factor::FloorDiv(a, b),
            Atom::Broadcast(a, b) => Factor::Broadcast(a, b),
        }
    }

    fn eval(&self, bindings: &Bindings) -> Option<i64> {
        match self {
            Atom::Symbol(name) => bindings.get(name.as_ref()).copied(),
            Atom::FloorDiv(a, b) => {
                let divisor = b.eval(bindings)?;
                if divisor == 0 { None } else { Some(a.eval(bindings)?.div_euclid(divisor)) }
            }
            Atom::Broadcast(a, b) => {
                let (a, b) = (a.eval(bindings)?, b.eval(bindings)?);
                Some(if a == 1 { b } else { a })
            }
        }
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim(Repr::Const(value))
    }
}

impl Add for Dim {
    type Output = Dim;
    fn add(self, other: Dim) -> Dim {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Dim::from(a.saturating_add(b)),
            (Some(0), _) => other,
            (_, Some(0)) => self,
            _ => {
                let mut terms = self.terms();
                terms.extend(other.terms());
                Dim::from_terms(terms)
            }
        }
    }
}

impl Sub for Dim {
    type Output = Dim;
    fn sub(self, other: Dim) -> Dim {
        self + other * Dim::from(-1)
    }
}

impl Mul for Dim {
    type Output = Dim;
    fn mul(self, other: Dim) -> Dim {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => return Dim::from(a.saturating_mul(b)),
            (Some(0), _) | (_, Some(0)) => return Dim::from(0),
            (Some(times), None) => return other.times(times),
            (None, Some(times)) => return self.times(times),
            (None, None) => {}
        }
        let (left, right) = (self.terms(), other.terms());
        let mut terms = Vec::with_capacity(left.len() * right.len());
        for (a, ca) in &left {
            for (b, cb) in &right {
                let mut atoms: Vec<Atom> = a.iter().chain(b).cloned().collect();
                atoms.sort();
                terms.push((atoms, ca.saturating_mul(*cb)));
            }
        }
        Dim::from_terms(terms)
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(name) if f.alternate() => f.write_str(&crate::text::quoted(name)),
            Atom::Symbol(name) => f.write_str(name),
            Atom::FloorDiv(a, b) if f.alternate() => write!(f, "floor({a:#}, {b:#})"),
            Atom::FloorDiv(a, b) => write!(f, "floor({a}, {b})"),
            Atom::Broadcast(a, b) if f.alternate() => write!(f, "broadcast({a:#}, {b:#})"),
            Atom::Broadcast(a, b) => write!(f, "broadcast({a}, {b})"),
        }
    }
}

/// The alternate form (`{:#}`) quotes symbols as required by the text format.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repr::Poly(terms) = &self.0 else { return write!(f, "{}", self.known().unwrap_or(0)) };
        // Highest products first, the constant last: `2*N + 1`.
        for (at, (atoms, coefficient)) in terms.iter().rev().enumerate() {
            let sign = match (at, coefficient.cmp(&0)) {
                (0, Ordering::Less) => "-",
                (0, _) => "",
                (_, Ordering::Less) => " - ",
                (_, _) => " + ",
            };
            f.write_str(sign)?;
            let magnitude = coefficient.unsigned_abs();
            if magnitude != 1 || atoms.is_empty() {
                write!(f, "{magnitude}")?;
                if !atoms.is_empty() {
                    f.write_str("*")?;
                }
            }
            for (i, atom) in atoms.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { "*" })?;
                fmt::Display::fmt(atom, f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
    }

    #[test]
    fn normal_form_makes_equal_sizes_equal() {
        assert_eq!((n() + Dim::from(2)) * Dim::from(3), n() * Dim::from(3) + Dim::from(6));
        assert_eq!((n() * Dim::from(4)).floor_div(&Dim::from(2)), n() * Dim::from(2));
        let strided = |d: Dim| (d - Dim::from(1)).floor_div(&Dim::from(2)) + Dim::from(1);
        assert_eq!(strided(n()), (n() + Dim::from(1)).floor_div(&Dim::from(2)));
        assert_eq!((n() * Dim::symbol("C") * Dim::from(6)).floor_div(&(n() * Dim::from(2))), Dim::symbol("C") * Dim::from(3));
    }

    #[test]
    fn sizes_tell_their_symbol_where_the_division_is_exact() {
        let odd = n() * Dim::from(2) - Dim::from(1);
        assert_eq!((n().linear(), odd.linear()), (Some((1, "N", 0)), Some((2, "N", -1))));
        for other in [Dim::from(3), n() * n(), n() + Dim::symbol("M"), Dim::from(3) - n(), n().floor_div(&Dim::from(2))] {
            assert_eq!(other.linear(), None, "{other}");
        }
        assert_eq!((odd.solve_number(7), odd.solve_number(8)), (Some(("N", 4)), None));
        assert_eq!(
            odd.solve(&(Dim::symbol("M") * Dim::from(4) + Dim::from(1))),
            Some(("N", Dim::symbol("M") * Dim::from(2) + Dim::from(1)))
        );
    }

    #[test]
    fn evaluation_agrees_with_arithmetic() {
        for value in 1..20 {
            let bindings = Bindings::from([("N".to_string(), value)]);
            let d = (n() + Dim::from(3)).floor_div(&Dim::from(4));
            assert_eq!(d.eval(&bindings), Some((value + 3).div_euclid(4)));
        }
        assert_eq!(n().eval(&Bindings::new()), None);
    }

    #[test]
    fn lower_bounds_are_shown_for_sizes_of_at_least_one() {
        let (one, two) = (Dim::from(1), Dim::from(2));
        assert!((n() - one.clone()).at_least(0) && !(n() - one.clone()).at_least(1));
        assert!((n() * two.clone() - one.clone()).at_least(1));
        assert!(!(two.clone() - n()).at_least(-100), "it falls without bound");
        assert!(n().floor_div(&two).at_least(0) && !n().floor_div(&two).at_least(1));
        let four = Dim::from(4);
        let rounded_up = (n() + Dim::from(3)).floor_div(&four) * four.clone();
        assert!((rounded_up.clone() - n()).at_least(0) && !(rounded_up.clone() - n()).at_least(1));
        assert!((n() + Dim::from(3) - rounded_up.clone()).at_least(0) && !(n() + two.clone() - rounded_up).at_least(0));
        assert!(!(n() - Dim::from(6)).floor_div(&Dim::symbol("M")).at_least(0), "it is negative for N = 1");
    }

    #[test]
    fn broadcasting_is_shown_or_kept_open() {
        assert_eq!(n().broadcast(&Dim::from(1)), Some(n()));
        assert_eq!(Dim::from(2).broadcast(&Dim::from(3)), None);
        let open = n().broadcast(&Dim::symbol("M")).unwrap();
        assert_eq!(open, Dim::symbol("M").broadcast(&n()).unwrap());
        assert_eq!(open.to_string(), "broadcast(M, N)");
    }
}
