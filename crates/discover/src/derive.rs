//! Pairs that follow from others.
//!
//! Pairs are equations between values. A pair that is learned makes equal, in the whole table of terms, what its instances say: any values in the places of its
//! variables, at any sizes, as long as both sides are in the table; and with them all that is made of equal values in the same way. A pair
//! whose sides are equal by then follows from those that were learned: the closure under congruence is what replacing equals by equals gives
//! (Birkhoff, On the structure of abstract algebras, 1935). Only proofs that need a value which the table lacks, because it is larger, are missed.

use smallvec::SmallVec;

use crate::closure::Closure;
use crate::heads::Heads;
use crate::instance::Instances;
use crate::judge::Pair;
use crate::pattern::Patterns;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};
use crate::values::Values;

/// Values that are equal by the pairs that it has learned.
pub struct Derivation<'a> {
    terms: &'a Terms,
    values: &'a Values,
    instances: Instances<'a>,
    heads: Heads,
    patterns: Patterns<'a>,
    closure: Closure<'a>,
}

impl<'a> Derivation<'a> {
    /// Knows nothing yet.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> Derivation<'a> {
        Derivation {
            terms,
            values,
            instances: Instances::new(spec, terms, values),
            heads: Heads::new(spec, terms),
            patterns: Patterns::new(spec, terms),
            closure: Closure::new(spec, terms),
        }
    }

    /// Whether all outputs of both sides are equal.
    pub fn joins(&self, pair: &Pair) -> bool {
        self.instances.equations(pair).iter().all(|(l, r)| self.closure.equal(*l, *r))
    }

    /// Makes equal what this pair says.
    pub fn learn(&mut self, pair: &Pair) {
        for (l, r) in self.instances.equations(pair) {
            self.closure.merge(l, r);
            let Some((from, to)) = self.directed(l, r) else { continue };
            for (value, other) in self.instances_of(from, to) {
                // Fingerprints only warn: what holds at the sizes of the specification need not hold at others.
                if !self.values.differ(value, other) {
                    self.closure.merge(value, other);
                }
            }
        }
    }

    /// All instances of an equation whose sides are both in the table.
    fn instances_of(&mut self, from: ValueId, to: ValueId) -> Vec<(ValueId, ValueId)> {
        let port = from - self.terms.get(self.terms.owner(from)).first;
        let (mut found, mut matches) = (Vec::new(), Vec::new());
        for id in self.heads.like(self.terms, from) {
            let value = self.terms.get(id).first + port;
            self.patterns.matches(from, value, &mut matches);
            for one in matches.drain(..) {
                found.extend(self.patterns.rebuilt(to, &one).map(|other| (value, other)));
            }
        }
        found
    }

    /// Knows nothing again.
    pub fn clear(&mut self) {
        self.closure.clear();
    }

    /// The equation from the side that has all variables of the other; from the one that fewer terms may match, if both do.
    fn directed(&self, l: ValueId, r: ValueId) -> Option<(ValueId, ValueId)> {
        let (left, right) = (self.variables(l), self.variables(r));
        let within = |a: &[ValueId], b: &[ValueId]| a.iter().all(|v| b.contains(v));
        let count = |v: ValueId| self.heads.count(self.terms, v);
        let from = |side: ValueId, other: ValueId| (!self.terms.is_variable(side)).then_some((side, other));
        match (within(&right, &left), within(&left, &right)) {
            (true, true) if !self.terms.is_variable(r) && count(r) < count(l) => from(r, l),
            (true, _) => from(l, r).or_else(|| from(r, l)),
            (false, true) => from(r, l),
            (false, false) => None,
        }
    }

    fn variables(&self, v: ValueId) -> SmallVec<[ValueId; 8]> {
        let mut found = SmallVec::new();
        let mut todo: SmallVec<[ValueId; 8]> = SmallVec::from_slice(&[v]);
        while let Some(v) = todo.pop() {
            if self.terms.is_variable(v) {
                if !found.contains(&v) {
                    found.push(v);
                }
            } else {
                todo.extend(self.terms.get(self.terms.owner(v)).operands.iter().copied());
            }
        }
        found
    }
}
