//! Pairs that follow from others.
//!
//! Pairs are equations between values. A learned pair equates, in the whole table of terms, both
//! sides of each of its instances: any values for its variables, at any sizes, as long as both
//! sides are in the table. Everything built in the same way from equal values becomes equal too. A
//! pair whose sides are then equal follows from the learned ones: congruence closure yields what
//! replacing equals by equals does (Birkhoff, On the structure of abstract algebras, 1935). The
//! only proofs it misses are those that need larger values than the table contains.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::closure::Closure;
use crate::heads::Heads;
use crate::instance::Instances;
use crate::pairing::Pair;
use crate::pattern::Patterns;
use crate::readers::Readers;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};
use crate::values::Values;

/// Values that are equal by the pairs learned so far.
pub struct Derivation<'a> {
    terms: &'a Terms,
    values: &'a Values,
    instances: Instances<'a>,
    heads: Heads,
    patterns: Patterns<'a>,
    closure: Closure<'a>,
    /// The instances of each learned pair, as a range of `equations`.
    said: FxHashMap<Pair, Range<usize>>,
    equations: Vec<(ValueId, ValueId)>,
}

impl<'a> Derivation<'a> {
    /// A derivation that has learned nothing yet.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> Derivation<'a> {
        let readers = Rc::new(Readers::new(terms));
        Derivation {
            terms,
            values,
            instances: Instances::new(spec, terms, values),
            heads: Heads::new(spec, terms, readers.clone()),
            patterns: Patterns::new(spec, terms),
            closure: Closure::new(spec, terms, readers),
            said: FxHashMap::default(),
            equations: Vec::new(),
        }
    }

    /// Whether all outputs of both sides are equal.
    pub fn joins(&self, pair: &Pair) -> bool {
        self.instances.equations(pair).iter().all(|(l, r)| self.closure.equal(*l, *r))
    }

    /// Equates what this pair states.
    pub fn learn(&mut self, pair: &Pair) {
        let said = match self.said.get(pair) {
            Some(said) => said.clone(),
            None => {
                let start = self.equations.len();
                for (l, r) in self.instances.equations(pair) {
                    self.equations.push((l, r));
                    if let Some((from, to)) = self.directed(l, r) {
                        self.add_instances(from, to);
                    }
                }
                self.said.insert(*pair, start..self.equations.len());
                start..self.equations.len()
            }
        };
        for (l, r) in &self.equations[said] {
            self.closure.merge(*l, *r);
        }
    }

    /// Adds all instances of an equation with both sides in the table.
    fn add_instances(&mut self, from: ValueId, to: ValueId) {
        let port = from - self.terms.get(self.terms.owner(from)).first;
        let mut matches = Vec::new();
        for id in self.heads.like(self.terms, from) {
            let value = self.terms.get(id).first + port;
            self.patterns.matches(from, value, &mut matches);
            for one in matches.drain(..) {
                let Some(other) = self.patterns.rebuilt(to, &one) else { continue };
                // Fingerprints only warn: what holds at the specification's sizes may fail at
                // others.
                if other != value && !self.values.differ(value, other) {
                    self.equations.push((value, other));
                }
            }
        }
    }

    /// Forgets all equations; pairs learned before are learned faster again.
    pub fn clear(&mut self) {
        self.closure.clear();
    }

    /// The equation, directed from the side that has all variables of the other; if both do, from
    /// the one that fewer terms may match.
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
