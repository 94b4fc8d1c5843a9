//! Integer polynomials over sizes, index variables and floor divisions.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use regraft_ir::Dim;
use regraft_ir::dim::Factor;
use smallvec::{SmallVec, smallvec};

/// An index variable. Variables from [`fresh`] are distinct from all others in the thread.
pub(crate) type Var = u32;

thread_local! {
    static NEXT: Cell<Var> = const { Cell::new(0) };
}

/// A variable that occurs nowhere else.
pub(crate) fn fresh() -> Var {
    NEXT.with(|next| {
        let var = next.get();
        next.set(var + 1);
        var
    })
}

/// A tensor whose elements are opaque.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A graph input, by name.
    Input(Arc<str>),
    /// A constant, by the fingerprint of its contents.
    Constant(u128),
    /// An opaque operator's result: its attributes and operands as text, and the result's index.
    Opaque(Arc<str>, u32),
}

/// An indivisible integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Atom {
    /// A symbolic size, at least 1.
    Size(Arc<str>),
    /// An index variable.
    Var(Var),
    /// `floor(a / b)`.
    Floor(Poly, Poly),
    /// The size that broadcasting two sizes gives.
    Broadcast(Poly, Poly),
    /// The index into an axis of size `b` at index `a` of the broadcast axis: 0 if `b` is 1, else
    /// `a`.
    Stretch(Poly, Poly),
    /// An element of an integer tensor.
    Element(Source, Vec<Poly>),
}

/// A sum of `coefficient * product of atoms`: products ascending, atoms of a product ascending, no
/// zero coefficient.
///
/// A sum with a coefficient that overflows 64 bits becomes a variable that stands for it, and about
/// which nothing is known.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Poly(Terms);

/// Products and their coefficients; most sums have few.
type Terms = SmallVec<[(Product, i64); 2]>;

/// Atoms of a product, ascending. Sums share them: most sums are made from others.
pub(crate) type Product = Rc<[Atom]>;

impl Poly {
    pub fn number(value: i64) -> Poly {
        thread_local! {
            static ONE: Product = Rc::from([]);
        }
        if value == 0 { Poly::default() } else { Poly(smallvec![(ONE.with(Rc::clone), value)]) }
    }

    pub fn atom(atom: Atom) -> Poly {
        Poly(smallvec![(Rc::from([atom]), 1)])
    }

    pub fn var(var: Var) -> Poly {
        Poly::atom(Atom::Var(var))
    }

    /// One product.
    pub fn term(atoms: Product, coefficient: i64) -> Poly {
        if coefficient == 0 { Poly::default() } else { Poly(smallvec![(atoms, coefficient)]) }
    }

    /// A size of the graph.
    pub fn size(dim: &Dim) -> Poly {
        let factor = |f: &Factor<'_>| match f {
            Factor::Symbol(name) => Poly::atom(Atom::Size(Arc::from(*name))),
            Factor::FloorDiv(a, b) => Poly::size(a).floor(&Poly::size(b)),
            Factor::Broadcast(a, b) => {
                let (a, b) = (Poly::size(a), Poly::size(b));
                Poly::atom(if a < b { Atom::Broadcast(a, b) } else { Atom::Broadcast(b, a) })
            }
        };
        dim.products().iter().fold(Poly::default(), |sum, (coefficient, factors)| {
            sum.add(&factors.iter().fold(Poly::number(*coefficient), |product, f| product.mul(&factor(f))))
        })
    }

    /// The terms, ascending.
    pub fn terms(&self) -> &[(Product, i64)] {
        &self.0
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number, if no atom is involved.
    pub fn known(&self) -> Option<i64> {
        match self.0.as_slice() {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// The constant term.
    pub fn constant(&self) -> i64 {
        self.0.first().filter(|(atoms, _)| atoms.is_empty()).map_or(0, |(_, value)| *value)
    }

    /// `self - other`, if that is a number.
    pub fn over(&self, other: &Poly) -> Option<i64> {
        let products = |poly: &Poly| usize::from(poly.0.first().is_some_and(|(atoms, _)| atoms.is_empty()));
        let same = self.0[products(self)..] == other.0[products(other)..];
        self.constant().checked_sub(other.constant()).filter(|_| same)
    }

    /// The variable, if the polynomial is a single variable.
    pub fn as_var(&self) -> Option<Var> {
        match self.0.as_slice() {
            [(atoms, 1)] => match &atoms[..] {
                [Atom::Var(var)] => Some(*var),
                _ => None,
            },
            _ => None,
        }
    }

    fn collect(terms: impl IntoIterator<Item = (Product, Option<i64>)>) -> Poly {
        let mut list = Terms::new();
        let mut all: SmallVec<[(Product, Option<i64>); 4]> = terms.into_iter().collect();
        all.sort();
        for (atoms, coefficient) in all {
            let Some(coefficient) = coefficient else { return Poly::var(fresh()) };
            match list.last_mut() {
                Some(last) if last.0 == atoms => match last.1.checked_add(coefficient) {
                    Some(sum) => last.1 = sum,
                    None => return Poly::var(fresh()),
                },
                _ => list.push((atoms, coefficient)),
            }
        }
        list.retain(|term| term.1 != 0);
        Poly(list)
    }

    pub fn add(&self, other: &Poly) -> Poly {
        let mut terms = Terms::with_capacity(self.0.len() + other.0.len());
        let (mut left, mut right) = (self.0.as_slice(), other.0.as_slice());
        while let ([a, rest_a @ ..], [b, rest_b @ ..]) = (left, right) {
            match a.0.cmp(&b.0) {
                Ordering::Less => {
                    terms.push(a.clone());
                    left = rest_a;
                }
                Ordering::Greater => {
                    terms.push(b.clone());
                    right = rest_b;
                }
                Ordering::Equal => {
                    let Some(sum) = a.1.checked_add(b.1) else { return Poly::var(fresh()) };
                    if sum != 0 {
                        terms.push((a.0.clone(), sum));
                    }
                    (left, right) = (rest_a, rest_b);
                }
            }
        }
        terms.extend(left.iter().cloned());
        terms.extend(right.iter().cloned());
        Poly(terms)
    }

    pub fn sub(&self, other: &Poly) -> Poly {
        self.add(&other.scale(-1))
    }

    pub fn plus(&self, number: i64) -> Poly {
        self.add(&Poly::number(number))
    }

    pub fn scale(&self, by: i64) -> Poly {
        match by {
            0 => Poly::default(),
            1 => self.clone(),
            _ => {
                let scaled: Option<Terms> = self.0.iter().map(|(atoms, c)| Some((atoms.clone(), c.checked_mul(by)?))).collect();
                scaled.map_or_else(|| Poly::var(fresh()), Poly)
            }
        }
    }

    pub fn mul(&self, other: &Poly) -> Poly {
        if let Some(by) = other.known() {
            return self.scale(by);
        }
        if let Some(by) = self.known() {
            return other.scale(by);
        }
        let mut products = Vec::with_capacity(self.0.len() * other.0.len());
        for (a, ca) in &self.0 {
            for (b, cb) in &other.0 {
                let mut atoms: Vec<Atom> = a.iter().chain(&b[..]).cloned().collect();
                atoms.sort();
                products.push((atoms.into(), ca.checked_mul(*cb)));
            }
        }
        Poly::collect(products)
    }

    /// `self / divisor`, if `divisor` is seen to divide it.
    pub fn exact(&self, divisor: &Poly) -> Option<Poly> {
        let [(by, number)] = divisor.0.as_slice() else {
            let (whole, rest) = self.divide(divisor);
            return (rest.is_zero() && !divisor.is_zero()).then_some(whole);
        };
        let quotient = self.0.iter().map(|(atoms, c)| Some((without(atoms, by)?, Some((c % number == 0).then(|| c / number)?))));
        Some(Poly::collect(quotient.collect::<Option<Vec<_>>>()?))
    }

    /// `floor(self / divisor)`, with the divisible part taken out. The divisor is at least 1.
    pub fn floor(&self, divisor: &Poly) -> Poly {
        let (whole, rest) = self.divide(divisor);
        if rest.is_zero() {
            return whole;
        }
        match (rest.known(), divisor.known()) {
            (Some(a), Some(b)) if b > 0 => return whole.plus(a.div_euclid(b)),
            _ => {}
        }
        // floor(floor(a / b) / c) = floor(a / (b c))
        if let [(atoms, 1)] = rest.0.as_slice()
            && let [Atom::Floor(a, b)] = &atoms[..]
        {
            return whole.add(&a.floor(&b.mul(divisor)));
        }
        whole.add(&Poly::atom(Atom::Floor(rest, divisor.clone())))
    }

    /// `whole` and `rest` with `self = whole * divisor + rest`, where `rest` keeps the terms that
    /// `divisor` does not divide.
    pub fn divide(&self, divisor: &Poly) -> (Poly, Poly) {
        let [(by, number)] = divisor.0.as_slice() else { return self.divide_by_sum(divisor) };
        let (mut whole, mut rest) = (Vec::new(), Vec::new());
        for (atoms, c) in &self.0 {
            match without(atoms, by) {
                Some(left) if *number > 0 => {
                    whole.push((left, Some(c.div_euclid(*number))));
                    rest.push((atoms.clone(), Some(c.rem_euclid(*number))));
                }
                _ => rest.push((atoms.clone(), Some(*c))),
            }
        }
        (Poly::collect(whole), Poly::collect(rest))
    }

    /// The same for a divisor of several terms: the multiples of it that leave fewer terms are
    /// taken out.
    fn divide_by_sum(&self, divisor: &Poly) -> (Poly, Poly) {
        let (mut whole, mut rest) = (Poly::default(), self.clone());
        let Some((lead, number)) = divisor.0.last() else { return (whole, rest) };
        let smaller = |rest: &Poly| {
            rest.0.iter().find_map(|(atoms, c)| {
                let times = c.checked_div(*number).filter(|_| c.checked_rem(*number) == Some(0))?;
                let quotient = Poly::term(without(atoms, lead)?, times);
                let left = rest.sub(&quotient.mul(divisor));
                (left.0.len() < rest.0.len()).then_some((quotient, left))
            })
        };
        while let Some((quotient, left)) = smaller(&rest) {
            whole = whole.add(&quotient);
            rest = left;
        }
        (whole, rest)
    }

    /// `c` and `r` with `self = c * var + r` and no `var` in either; `None` if the variable occurs
    /// in another way.
    pub fn linear(&self, var: Var) -> Option<(Poly, Poly)> {
        self.linear_in(&Atom::Var(var))
    }

    /// Like [`Poly::linear`], for any atom.
    pub fn linear_in(&self, atom: &Atom) -> Option<(Poly, Poly)> {
        let (mut with, mut rest) = (Vec::new(), Terms::new());
        for (atoms, c) in &self.0 {
            match atoms.iter().position(|a| a == atom) {
                Some(at) => with.push(([&atoms[..at], &atoms[at + 1..]].concat().into(), Some(*c))),
                None => rest.push((atoms.clone(), *c)),
            }
        }
        let (with, rest) = (Poly::collect(with), Poly(rest));
        let hidden = |p: &Poly| p.any(&mut |a| a == atom);
        (!hidden(&with) && !hidden(&rest)).then_some((with, rest))
    }

    /// Whether `test` holds for some atom, nested ones included.
    pub fn any(&self, test: &mut dyn FnMut(&Atom) -> bool) -> bool {
        self.0.iter().flat_map(|(atoms, _)| atoms.iter()).any(|atom| {
            test(atom)
                || match atom {
                    Atom::Size(_) | Atom::Var(_) => false,
                    Atom::Floor(a, b) | Atom::Broadcast(a, b) | Atom::Stretch(a, b) => a.any(test) || b.any(test),
                    Atom::Element(_, index) => index.iter().any(|p| p.any(test)),
                }
        })
    }

    /// A sum that is at least 0 exactly where this one is: the common divisor of all coefficients
    /// but the constant's is divided out, and the constant rounded down.
    pub fn tightened(&self) -> Poly {
        let common = self.0.iter().filter(|(atoms, _)| !atoms.is_empty()).fold(0, |g, (_, c)| gcd(g, c.unsigned_abs()));
        let Some(common) = i64::try_from(common).ok().filter(|g| *g > 1) else { return self.clone() };
        Poly::collect(self.0.iter().map(|(atoms, c)| (atoms.clone(), Some(c.div_euclid(common)))))
    }

    /// Whether the variable occurs.
    pub fn has(&self, var: Var) -> bool {
        self.any(&mut |a| *a == Atom::Var(var))
    }

    /// The polynomial with every variable replaced for which `with` returns something, and
    /// normalized again.
    pub fn replace(&self, with: &dyn Fn(Var) -> Option<Poly>) -> Poly {
        if !self.any(&mut |a| matches!(a, Atom::Var(v) if with(*v).is_some())) {
            return self.clone();
        }
        self.0.iter().fold(Poly::default(), |sum, (atoms, c)| {
            sum.add(&atoms.iter().fold(Poly::number(*c), |product, atom| product.mul(&atom.replace(with))))
        })
    }

    /// One variable replaced.
    pub fn with(&self, var: Var, value: &Poly) -> Poly {
        self.replace(&|v| (v == var).then(|| value.clone()))
    }

    /// The variables that occur, with repeats.
    pub fn vars(&self, into: &mut Vec<Var>) {
        self.any(&mut |a| {
            if let Atom::Var(v) = a {
                into.push(*v);
            }
            false
        });
    }
}

impl Atom {
    fn replace(&self, with: &dyn Fn(Var) -> Option<Poly>) -> Poly {
        match self {
            Atom::Size(_) => Poly::atom(self.clone()),
            Atom::Var(v) => with(*v).unwrap_or_else(|| Poly::var(*v)),
            Atom::Floor(a, b) => a.replace(with).floor(&b.replace(with)),
            Atom::Broadcast(a, b) => Poly::atom(Atom::Broadcast(a.replace(with), b.replace(with))),
            Atom::Stretch(a, b) => {
                let a = a.replace(with);
                if a.is_zero() { a } else { Poly::atom(Atom::Stretch(a, b.replace(with))) }
            }
            Atom::Element(source, index) => Poly::atom(Atom::Element(source.clone(), index.iter().map(|p| p.replace(with)).collect())),
        }
    }
}

/// The product `atoms` without the factors `by`, if it has them all.
pub(crate) fn without(atoms: &[Atom], by: &[Atom]) -> Option<Product> {
    if by.len() > atoms.len() || !by.iter().all(|atom| atoms.contains(atom)) {
        return None;
    }
    let mut left = atoms.to_vec();
    for atom in by {
        let at = left.iter().position(|a| a == atom)?;
        left.remove(at);
    }
    Some(left.into())
}

impl fmt::Display for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        for (at, (atoms, c)) in self.0.iter().rev().enumerate() {
            f.write_str(match (at, *c < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            })?;
            if c.unsigned_abs() != 1 || atoms.is_empty() {
                write!(f, "{}{}", c.unsigned_abs(), if atoms.is_empty() { "" } else { " " })?;
            }
            for (i, atom) in atoms.iter().enumerate() {
                write!(f, "{}{atom}", if i == 0 { "" } else { " " })?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Poly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Size(name) => f.write_str(name),
            Atom::Var(v) => write!(f, "i{v}"),
            Atom::Floor(a, b) => write!(f, "floor(({a}) / ({b}))"),
            Atom::Broadcast(a, b) => write!(f, "broadcast({a}, {b})"),
            Atom::Stretch(a, b) => write!(f, "stretch({a}, {b})"),
            Atom::Element(source, index) => write!(f, "{source}{index:?}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Input(name) => f.write_str(name),
            Source::Constant(print) => write!(f, "#{:08x}", print & 0xffff_ffff),
            Source::Opaque(name, port) => write!(f, "<{}>.{port}", name.chars().take(24).collect::<String>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Poly {
        Poly::size(&Dim::symbol("N"))
    }

    #[test]
    fn sums_and_products_have_one_form() {
        let i = Poly::var(fresh());
        assert_eq!(n().add(&i).mul(&n().sub(&i)), n().mul(&n()).sub(&i.mul(&i)));
        assert_eq!(n().mul(&i).exact(&n()), Some(i.clone()));
        assert_eq!(n().plus(1).exact(&n()), None);
        assert_eq!(i.scale(3).plus(2).linear(i.as_var().unwrap()), Some((Poly::number(3), Poly::number(2))));
        assert_eq!(i.mul(&i).linear(i.as_var().unwrap()), None);
        assert_eq!((i.plus(3).over(&i), i.over(&i.plus(3)), i.over(&n()), i.over(&i.scale(2))), (Some(3), Some(-3), None, None));
    }

    #[test]
    fn what_is_at_least_zero_is_rounded_to_whole_multiples() {
        let i = Poly::var(fresh());
        assert_eq!(i.scale(2).plus(-7).tightened(), i.plus(-4));
        assert_eq!(i.scale(-4).add(&n().scale(6)).plus(5).tightened(), i.scale(-2).add(&n().scale(3)).plus(2));
        assert_eq!(i.scale(2).add(&n()).plus(1).tightened(), i.scale(2).add(&n()).plus(1));
        assert_eq!(Poly::number(-4).tightened(), Poly::number(-4));
    }

    #[test]
    fn divisions_take_out_what_divides() {
        let i = Poly::var(fresh());
        assert_eq!(n().mul(&i).add(&n().scale(2)).floor(&n()), i.plus(2));
        assert_eq!(i.scale(6).plus(5).floor(&Poly::number(3)), i.scale(2).plus(1));
        let nested = i.floor(&Poly::number(2)).floor(&Poly::number(3));
        assert_eq!(nested, i.floor(&Poly::number(6)));
        assert_eq!(i.floor(&Poly::number(2)).with(i.as_var().unwrap(), &Poly::number(7)), Poly::number(3));
    }

    #[test]
    fn too_large_numbers_become_unknown() {
        let large = Poly::number(i64::MAX);
        assert_eq!(large.scale(2).known(), None);
        assert_ne!(large.scale(2), large.scale(2));
    }
}
