//! Expressions over named entries, and their normal form: sums of monomials with exact
//! coefficients.
//!
//! Sums and products are kept as built; the normal form is computed on demand, once per expression.
//! Anything that is not a polynomial (a quotient by a sum, a function, a maximum) is an atom,
//! identified by the normal form of its arguments.

use rustc_hash::FxHashMap;

use regraft_ir::scalar::Function;

use super::monomial::{MOST_ATOMS, Monomial, Monomials};
use crate::rational::Rational;

/// An expression: its index in the arena.
pub(super) type Id = u32;
/// A normal form that is an argument of an atom: its index in a table.
pub(super) type Key = u32;

/// A monomial and its nonzero coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) monomial: Monomial,
    pub(super) coefficient: Rational,
}

/// What a polynomial treats as a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// A named entry.
    Entry(u32),
    /// The exponential of a monomial; its powers are exponentials of multiples.
    Exponential(Monomial),
    /// A sum used as a divisor, without a common factor and with leading coefficient 1. Its
    /// exponents are always negative.
    Divisor(Key),
    /// An uninterpreted function.
    Function(Function, Key),
    /// A power whose exponent is not a small integer.
    Power(Key, Key),
    /// The largest (or smallest) of several, ascending.
    Extreme { largest: bool, of: Vec<Key> },
    /// A positive number that is not a short ratio, or NaN: its bits.
    Strange(u64),
}

#[derive(Clone, Copy, Debug)]
enum Node {
    /// A normal form: a range of `terms`.
    Terms(u32, u32),
    Sum(Id, Id),
    Difference(Id, Id),
    Product(Id, Id),
    /// An expression and the products of a range of `pairs`.
    Dot(Id, u32, u32),
}

/// Why an expression has no normal form here.
pub(super) type Broken = &'static str;

const OVERFLOW: Broken = "a coefficient or exponent needs more than 64 bits";
const TOO_LARGE: Broken = "an expression has too many terms";
/// Maximum number of terms in a normal form.
const MOST_TERMS: usize = 1 << 20;
/// Largest integer exponent that is multiplied out.
const MOST_FACTORS: i64 = 16;

/// All expressions of one comparison.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    /// The normal form of each node, as a range of `terms`, once computed.
    normal: Vec<Option<(u32, u32)>>,
    terms: Vec<Term>,
    pairs: Vec<(Id, Id)>,
    pub(super) monomials: Monomials,
    atoms: Vec<Atom>,
    atom_places: FxHashMap<Atom, u32>,
    keys: Vec<Vec<Term>>,
    key_places: FxHashMap<Vec<Term>, Key>,
    constants: FxHashMap<u64, Id>,
    /// The first reason why something has no normal form.
    pub(super) broken: Option<Broken>,
}

/// The expression 0.
pub(super) const ZERO: Id = 0;
/// The expression 1.
pub(super) const ONE: Id = 1;

impl Arena {
    /// Forgets everything, but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.normal.clear();
        self.terms.clear();
        self.pairs.clear();
        self.monomials.clear();
        self.atoms.clear();
        self.atom_places.clear();
        self.keys.clear();
        self.key_places.clear();
        self.constants.clear();
        self.broken = None;
        self.push_terms(&[]);
        self.number(Rational::ONE);
    }

    fn push(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.normal.push(if let Node::Terms(from, to) = node { Some((from, to)) } else { None });
        (self.nodes.len() - 1) as Id
    }

    fn push_terms(&mut self, terms: &[Term]) -> Id {
        let from = self.terms.len() as u32;
        self.terms.extend_from_slice(terms);
        self.push(Node::Terms(from, self.terms.len() as u32))
    }

    /// Marks the comparison as undecidable.
    pub(super) fn give_up(&mut self, why: Broken) -> Id {
        self.broken.get_or_insert(why);
        ZERO
    }

    pub(super) fn number(&mut self, value: Rational) -> Id {
        if value.is_zero() {
            return ZERO;
        }
        self.push_terms(&[Term { monomial: Monomial::ONE, coefficient: value }])
    }

    /// The number that a double stands for, if that is a short ratio; otherwise an atom of which
    /// only the sign is known.
    pub(super) fn constant(&mut self, value: f64) -> Id {
        if value == 0.0 {
            return ZERO;
        }
        if value == 1.0 {
            return ONE;
        }
        if let Some(known) = self.constants.get(&value.to_bits()) {
            return *known;
        }
        let id = match Rational::of(value) {
            Some(number) if number.is_short() => self.number(number),
            _ => {
                let coefficient = if value < 0.0 { Rational::MINUS_ONE } else { Rational::ONE };
                let monomial = Monomial::atom(self.atom_number(Atom::Strange(value.abs().to_bits())));
                self.push_terms(&[Term { monomial, coefficient }])
            }
        };
        self.constants.insert(value.to_bits(), id);
        id
    }

    /// A new named entry.
    pub(super) fn entry(&mut self) -> Id {
        let name = self.atoms.len() as u32;
        self.atom(Atom::Entry(name))
    }

    fn atom_number(&mut self, atom: Atom) -> u32 {
        if let Some(known) = self.atom_places.get(&atom) {
            return *known;
        }
        if self.atoms.len() as u32 >= MOST_ATOMS {
            self.give_up(TOO_LARGE);
            return 0;
        }
        let number = self.atoms.len() as u32;
        self.atoms.push(atom.clone());
        self.atom_places.insert(atom, number);
        number
    }

    pub(super) fn atom(&mut self, atom: Atom) -> Id {
        let monomial = Monomial::atom(self.atom_number(atom));
        self.push_terms(&[Term { monomial, coefficient: Rational::ONE }])
    }

    pub(super) fn atom_of(&self, number: u32) -> &Atom {
        &self.atoms[number as usize]
    }

    /// True if all atoms are entries, so that normal forms are polynomials.
    pub(super) fn only_entries(&self) -> bool {
        self.atoms.iter().all(|a| matches!(a, Atom::Entry(_)))
    }

    /// True if all atoms are entries or divisors, so that expressions are quotients of polynomials.
    pub(super) fn is_rational(&self) -> bool {
        self.atoms.iter().all(|a| matches!(a, Atom::Entry(_) | Atom::Divisor(_)))
    }

    pub(super) fn sum(&mut self, a: Id, b: Id) -> Id {
        match (a, b) {
            (ZERO, x) | (x, ZERO) => x,
            _ => self.push(Node::Sum(a, b)),
        }
    }

    pub(super) fn difference(&mut self, a: Id, b: Id) -> Id {
        match (a, b) {
            (x, ZERO) => x,
            (x, y) if x == y => ZERO,
            _ => self.push(Node::Difference(a, b)),
        }
    }

    pub(super) fn product(&mut self, a: Id, b: Id) -> Id {
        match (a, b) {
            (ZERO, _) | (_, ZERO) => ZERO,
            (ONE, x) | (x, ONE) => x,
            _ => self.push(Node::Product(a, b)),
        }
    }

    /// `start + sum of products`.
    pub(super) fn dot(&mut self, start: Id, factors: impl Iterator<Item = (Id, Id)>) -> Id {
        let from = self.pairs.len() as u32;
        self.pairs.extend(factors.filter(|(a, b)| *a != ZERO && *b != ZERO));
        let to = self.pairs.len() as u32;
        if from == to { start } else { self.push(Node::Dot(start, from, to)) }
    }

    /// The terms of an expression, unordered and not yet joined, each times `scale`.
    fn collect(&mut self, mut id: Id, scale: Rational, into: &mut Vec<Term>) -> Result<(), Broken> {
        let scaled = |c: Rational| if scale == Rational::ONE { Some(c) } else { c.times(scale) };
        loop {
            if into.len() > MOST_TERMS {
                return Err(TOO_LARGE);
            }
            if let Some((from, to)) = self.normal[id as usize] {
                for term in &self.terms[from as usize..to as usize] {
                    into.push(Term { monomial: term.monomial, coefficient: scaled(term.coefficient).ok_or(OVERFLOW)? });
                }
                return Ok(());
            }
            match self.nodes[id as usize] {
                Node::Terms(..) => return Ok(()),
                Node::Sum(a, b) => {
                    self.collect(b, scale, into)?;
                    id = a;
                }
                Node::Difference(a, b) => {
                    self.collect(b, scale.negative().ok_or(OVERFLOW)?, into)?;
                    id = a;
                }
                Node::Product(a, b) => return self.multiply(a, b, scale, into),
                Node::Dot(start, from, to) => {
                    for at in from..to {
                        let (a, b) = self.pairs[at as usize];
                        self.multiply(a, b, scale, into)?;
                    }
                    id = start;
                }
            }
        }
    }

    fn multiply(&mut self, a: Id, b: Id, scale: Rational, into: &mut Vec<Term>) -> Result<(), Broken> {
        let (a, b) = (self.normal(a)?, self.normal(b)?);
        let count = ((a.1 - a.0) as usize).saturating_mul((b.1 - b.0) as usize);
        if into.len() + count > MOST_TERMS {
            return Err(TOO_LARGE);
        }
        for i in a.0..a.1 {
            let x = self.terms[i as usize];
            let factor = x.coefficient.times(scale).ok_or(OVERFLOW)?;
            for j in b.0..b.1 {
                let y = self.terms[j as usize];
                let monomial = self.monomials.product(x.monomial, y.monomial).ok_or(OVERFLOW)?;
                into.push(Term { monomial, coefficient: factor.times(y.coefficient).ok_or(OVERFLOW)? });
            }
        }
        Ok(())
    }

    /// The normal form, as a range of the terms.
    fn normal(&mut self, id: Id) -> Result<(u32, u32), Broken> {
        if let Some(known) = self.normal[id as usize] {
            return Ok(known);
        }
        let mut terms = Vec::new();
        self.collect(id, Rational::ONE, &mut terms)?;
        join(&mut terms)?;
        let from = self.terms.len() as u32;
        self.terms.extend_from_slice(&terms);
        let range = (from, self.terms.len() as u32);
        self.normal[id as usize] = Some(range);
        Ok(range)
    }

    /// The terms of the normal form, in ascending order of monomials.
    pub(super) fn terms(&mut self, id: Id) -> Result<&[Term], Broken> {
        let (from, to) = self.normal(id)?;
        Ok(&self.terms[from as usize..to as usize])
    }

    /// The expression with this normal form.
    pub(super) fn of_terms(&mut self, mut terms: Vec<Term>) -> Result<Id, Broken> {
        join(&mut terms)?;
        Ok(self.push_terms(&terms))
    }

    /// The number an expression equals, if it is constant.
    pub(super) fn as_number(&mut self, id: Id) -> Result<Option<Rational>, Broken> {
        Ok(match self.terms(id)? {
            [] => Some(Rational::ZERO),
            [Term { monomial: Monomial::ONE, coefficient }] => Some(*coefficient),
            _ => None,
        })
    }

    /// Equal normal forms. Expressions that were built alike are recognized without normalizing
    /// them.
    pub(super) fn same(&mut self, a: Id, b: Id, buffers: &mut [Vec<Term>; 2]) -> Result<bool, Broken> {
        if a == b {
            return Ok(true);
        }
        for (id, buffer) in [a, b].into_iter().zip(buffers.iter_mut()) {
            buffer.clear();
            self.collect(id, Rational::ONE, buffer)?;
        }
        if buffers[0] == buffers[1] {
            return Ok(true);
        }
        for buffer in buffers.iter_mut() {
            join(buffer)?;
        }
        Ok(buffers[0] == buffers[1])
    }

    pub(super) fn key(&mut self, id: Id) -> Result<Key, Broken> {
        let terms = self.terms(id)?.to_vec();
        if let Some(known) = self.key_places.get(&terms) {
            return Ok(*known);
        }
        let key = self.keys.len() as Key;
        self.keys.push(terms.clone());
        self.key_places.insert(terms, key);
        Ok(key)
    }

    pub(super) fn expression_of_key(&mut self, key: Key) -> Id {
        let terms = self.keys[key as usize].clone();
        self.push_terms(&terms)
    }

    /// `1 / id`; `Ok(None)` for zero. The common factor of a sum is taken out, so that multiples of
    /// one sum share a divisor.
    pub(super) fn inverse(&mut self, id: Id) -> Result<Option<Id>, Broken> {
        let terms = self.terms(id)?.to_vec();
        let Some(first) = terms.first() else { return Ok(None) };
        let common = if terms.len() == 1 { first.monomial } else { self.common(&terms).ok_or(OVERFLOW)? };
        let outside = self.monomials.power(common, Rational::MINUS_ONE).ok_or(OVERFLOW)?;
        let mut reduced = Vec::with_capacity(terms.len());
        for term in &terms {
            reduced.push(Term { monomial: self.monomials.product(term.monomial, outside).ok_or(OVERFLOW)?, ..*term });
        }
        join(&mut reduced)?;
        let scale = reduced[0].coefficient.inverse().ok_or(OVERFLOW)?;
        let mut monomial = outside;
        if reduced.len() > 1 {
            for term in &mut reduced {
                term.coefficient = term.coefficient.times(scale).ok_or(OVERFLOW)?;
            }
            let sum = self.push_terms(&reduced);
            let key = self.key(sum)?;
            let divisor = Monomial::atom(self.atom_number(Atom::Divisor(key)));
            let under = self.monomials.power(divisor, Rational::MINUS_ONE).ok_or(OVERFLOW)?;
            monomial = self.monomials.product(monomial, under).ok_or(OVERFLOW)?;
        }
        Ok(Some(self.push_terms(&[Term { monomial, coefficient: scale }])))
    }

    /// The smallest power of every atom over all terms, an absent atom counting as power 0.
    fn common(&mut self, terms: &[Term]) -> Option<Monomial> {
        let lists: Vec<_> = terms.iter().map(|t| self.monomials.factors(t.monomial)).collect();
        let mut atoms: Vec<u32> = lists.iter().flatten().map(|f| f.0).collect();
        atoms.sort_unstable();
        atoms.dedup();
        let mut factors = Vec::new();
        for atom in atoms {
            let exponent = |list: &Vec<(u32, Rational)>| list.iter().find(|f| f.0 == atom).map_or(Rational::ZERO, |f| f.1);
            let least = lists.iter().map(exponent).min_by(|a, b| a.order(*b))?;
            if !least.is_zero() {
                factors.push((atom, least));
            }
        }
        Some(self.monomials.of(factors))
    }

    /// The exponential: a product of powers of the exponentials of the monomials.
    pub(super) fn exponential(&mut self, id: Id) -> Result<Id, Broken> {
        let terms = self.terms(id)?.to_vec();
        let mut product = Monomial::ONE;
        for term in terms {
            let atom = Monomial::atom(self.atom_number(Atom::Exponential(term.monomial)));
            let power = self.monomials.power(atom, term.coefficient).ok_or(OVERFLOW)?;
            product = self.monomials.product(product, power).ok_or(OVERFLOW)?;
        }
        Ok(self.push_terms(&[Term { monomial: product, coefficient: Rational::ONE }]))
    }

    /// Small integer powers are products; square roots are functions; all other powers are atoms.
    pub(super) fn power(&mut self, base: Id, exponent: Id) -> Result<Option<Id>, Broken> {
        let whole = self.as_number(exponent)?.and_then(Rational::integer).filter(|e| e.abs() <= MOST_FACTORS);
        if let Some(times) = whole {
            let mut product = ONE;
            for _ in 0..times.abs() {
                product = self.product(product, base);
            }
            return if times < 0 { self.inverse(product) } else { Ok(Some(product)) };
        }
        if self.as_number(exponent)?.and_then(|e| e.plus(e)) == Some(Rational::ONE) {
            return self.function(Function::Sqrt, base).map(Some);
        }
        if self.as_number(exponent)?.is_some_and(Rational::is_negative) {
            let positive = self.difference(ZERO, exponent);
            let (base, positive) = (self.key(base)?, self.key(positive)?);
            let power = self.atom(Atom::Power(base, positive));
            return self.inverse(power);
        }
        let (base, exponent) = (self.key(base)?, self.key(exponent)?);
        Ok(Some(self.atom(Atom::Power(base, exponent))))
    }

    pub(super) fn function(&mut self, function: Function, id: Id) -> Result<Id, Broken> {
        if function == Function::Exp {
            return self.exponential(id);
        }
        match (self.as_number(id)?, function) {
            (Some(Rational::ZERO), Function::Cos | Function::Cosh) | (Some(Rational::ONE), Function::Sqrt) => return Ok(ONE),
            (Some(Rational::ZERO), Function::Log | Function::Acos | Function::Acosh) => {}
            (Some(Rational::ZERO), _) | (Some(Rational::ONE), Function::Log | Function::Acosh) => return Ok(ZERO),
            _ => {}
        }
        match function {
            Function::Log => return self.logarithm(id),
            Function::Tanh => return self.hyperbolic_tangent(id),
            Function::Abs => {
                let negative = self.difference(ZERO, id);
                return self.extreme(true, id, negative);
            }
            _ => {}
        }
        let key = self.key(id)?;
        Ok(self.atom(Atom::Function(function, key)))
    }

    /// `1 - 2 / (exp(2 x) + 1)`.
    fn hyperbolic_tangent(&mut self, id: Id) -> Result<Id, Broken> {
        let doubled = self.sum(id, id);
        let exponential = self.exponential(doubled)?;
        let divisor = self.sum(exponential, ONE);
        let Some(inverse) = self.inverse(divisor)? else { return Err("a hyperbolic tangent without a value") };
        let twice = self.sum(inverse, inverse);
        Ok(self.difference(ONE, twice))
    }

    /// The logarithm: exponentials that all terms share, which are positive, move outside as their
    /// exponents.
    fn logarithm(&mut self, id: Id) -> Result<Id, Broken> {
        let terms = self.terms(id)?.to_vec();
        let shared = self.common(&terms).ok_or(OVERFLOW)?;
        let mut outside = Vec::new();
        let mut factors = Vec::new();
        for (atom, exponent) in self.monomials.factors(shared) {
            if let Atom::Exponential(of) = self.atoms[atom as usize] {
                outside.push(Term { monomial: of, coefficient: exponent });
                factors.push((atom, exponent.negative().ok_or(OVERFLOW)?));
            }
        }
        let without = self.monomials.of(factors);
        let mut rest = Vec::with_capacity(terms.len());
        for term in terms {
            rest.push(Term { monomial: self.monomials.product(term.monomial, without).ok_or(OVERFLOW)?, ..term });
        }
        let rest = self.of_terms(rest)?;
        let outside = self.of_terms(outside)?;
        if self.as_number(rest)? == Some(Rational::ONE) {
            return Ok(outside);
        }
        let key = self.key(rest)?;
        let logarithm = self.atom(Atom::Function(Function::Log, key));
        Ok(self.sum(outside, logarithm))
    }

    /// The larger or smaller of two: associative, commutative and idempotent, with terms that all
    /// alternatives share moved outside.
    pub(super) fn extreme(&mut self, largest: bool, a: Id, b: Id) -> Result<Id, Broken> {
        let mut choices: Vec<Vec<Term>> = Vec::new();
        for id in [a, b] {
            self.alternatives(largest, id, &mut choices)?;
        }
        let mut shared: Vec<Term> = choices[0].clone();
        shared.retain(|term| choices.iter().all(|c| c.binary_search(term).is_ok()));
        let mut keys = Vec::new();
        let mut number: Option<Rational> = None;
        for mut terms in choices {
            terms.retain(|term| shared.binary_search(term).is_err());
            let id = self.push_terms(&terms);
            match (self.as_number(id)?, number) {
                (None, _) => keys.push(self.key(id)?),
                (Some(n), Some(m)) if n.order(m).is_gt() != largest => number = Some(m),
                (Some(n), _) => number = Some(n),
            }
        }
        if let Some(number) = number {
            let id = self.number(number);
            keys.push(self.key(id)?);
        }
        keys.sort_unstable();
        keys.dedup();
        let inner = match keys.as_slice() {
            [only] => self.expression_of_key(*only),
            _ => self.atom(Atom::Extreme { largest, of: keys }),
        };
        let outside = self.push_terms(&shared);
        Ok(self.sum(inner, outside))
    }

    /// The operands of an extreme, sorted and in normal form; otherwise the expression itself.
    fn alternatives(&mut self, largest: bool, id: Id, into: &mut Vec<Vec<Term>>) -> Result<(), Broken> {
        let terms = self.terms(id)?.to_vec();
        for (at, term) in terms.iter().enumerate() {
            let [(atom, Rational::ONE)] = self.monomials.factors(term.monomial)[..] else { continue };
            let Atom::Extreme { largest: same, of } = &self.atoms[atom as usize] else { continue };
            if *same != largest || term.coefficient != Rational::ONE {
                continue;
            }
            for key in of.clone() {
                let mut inner: Vec<Term> = self.keys[key as usize].clone();
                inner.extend(terms.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, t)| *t));
                join(&mut inner)?;
                into.push(inner);
            }
            return Ok(());
        }
        into.push(terms);
        Ok(())
    }
}

/// Sorts terms by monomial and adds up those with the same monomial.
fn join(terms: &mut Vec<Term>) -> Result<(), Broken> {
    terms.sort_unstable_by_key(|t| t.monomial);
    let mut kept = 0;
    let mut at = 0;
    while at < terms.len() {
        let mut term = terms[at];
        at += 1;
        while let Some(next) = terms.get(at).filter(|n| n.monomial == term.monomial) {
            term.coefficient = term.coefficient.plus(next.coefficient).ok_or(OVERFLOW)?;
            at += 1;
        }
        if !term.coefficient.is_zero() {
            terms[kept] = term;
            kept += 1;
        }
    }
    terms.truncate(kept);
    Ok(())
}
