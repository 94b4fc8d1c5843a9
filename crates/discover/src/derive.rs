//! Pairs that follow from others by rewriting.
//!
//! Pairs are equations between values. They are used as rewrite rules in whichever direction leads to a value that comes earlier in the table of terms, anywhere in an
//! expression, for any values in the places of variables and at any sizes. As every step goes down in one order of all values, rewriting ends; as
//! every step is an instance of a pair, two values that are rewritten to the same one are equal by these pairs (ordered rewriting, as in
//! Bachmair, Dershowitz and Plaisted, Completion without failure, 1989).
//!
//! That misses what must first become larger. Where it does, the values that pairs reach from both sides, in whichever direction, are searched for a common
//! one: breadth first, within the table of terms, a bounded number of them.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::general::General;
use crate::instance::{Instances, Match};
use crate::judge::Pair;
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::values::Values;

/// Values that are reached from each side, at most.
const REACHED: usize = 96;

/// Rewrites by the pairs that it has learned.
pub struct Derivation<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    instances: Instances<'a>,
    general: General<'a>,
    /// Equations by the operator and the result number of their left side.
    rules: FxHashMap<(usize, u32), Vec<(ValueId, ValueId)>>,
    /// What values are rewritten to, by the rules so far.
    normal: FxHashMap<ValueId, ValueId>,
    /// What values reach by way of values of so many operators, by the rules so far.
    near: FxHashMap<(ValueId, usize), Rc<[ValueId]>>,
}

impl<'a> Derivation<'a> {
    /// Knows nothing yet.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> Derivation<'a> {
        Derivation {
            spec,
            terms,
            instances: Instances::new(spec, terms, values),
            general: General::new(spec, terms, values),
            rules: FxHashMap::default(),
            normal: FxHashMap::default(),
            near: FxHashMap::default(),
        }
    }

    /// Whether all outputs of both sides are rewritten to the same values, or reach the same ones.
    pub fn joins(&mut self, pair: &Pair) -> bool {
        self.instances.equations(pair).iter().all(|(l, r)| self.normalize(*l) == self.normalize(*r) || self.meet(*l, *r))
    }

    fn meet(&mut self, l: ValueId, r: ValueId) -> bool {
        let largest = self.terms.size();
        let left = self.reach(l, largest);
        left.contains(&r) || self.reach(r, largest).iter().any(|value| left.contains(value))
    }

    /// What a value of up to `largest` operators is rewritten to by one pair at the root, in either direction, or by any number of them inside of one operand.
    fn neighbours(&mut self, v: ValueId, largest: usize) -> Vec<ValueId> {
        let mut found = self.steps(v);
        let (terms, owner) = (self.terms, self.terms.owner(v));
        let term = terms.get(owner);
        let Some(instance) = term.instance else { return found };
        let commutative = self.spec.operators[terms.types.instance(instance).operator].commutative;
        for (at, operand) in term.operands.iter().enumerate() {
            for other in self.reach(*operand, largest - 1).iter() {
                // An operand that stands twice may have to change in both places at once: one of each would be too large a graph.
                let twice = term.operands.iter().map(|o| if o == operand { *other } else { *o }).collect::<Operands>();
                let mut once = term.operands.clone();
                once[at] = *other;
                for mut operands in [once, twice] {
                    if commutative {
                        operands.sort_unstable();
                    }
                    found.extend(terms.find(instance, &operands).map(|id| terms.get(id).first + (v - term.first)));
                }
            }
        }
        found.retain(|value| self.terms.get(self.terms.owner(*value)).closure.len() <= largest);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Values of up to `largest` operators, each of which a value is rewritten to in any number of steps by way of such values; itself first.
    fn reach(&mut self, v: ValueId, largest: usize) -> Rc<[ValueId]> {
        if let Some(known) = self.near.get(&(v, largest)) {
            return known.clone();
        }
        let mut found = vec![v];
        let mut next = 0;
        while next < found.len() && found.len() < REACHED {
            for value in self.neighbours(found[next], largest) {
                if !found.contains(&value) {
                    found.push(value);
                }
            }
            next += 1;
        }
        let found: Rc<[ValueId]> = found.into();
        self.near.insert((v, largest), found.clone());
        found
    }

    /// Rewrites by this pair too.
    pub fn learn(&mut self, pair: &Pair) {
        for (l, r) in self.instances.equations(pair) {
            for (from, to) in [(l, r), (r, l)] {
                if let Some(root) = self.root(from) {
                    self.rules.entry(root).or_default().push((from, to));
                }
            }
        }
        self.normal.clear();
        self.near.clear();
    }

    /// Rewrites by this pair no longer.
    pub fn forget(&mut self, pair: &Pair) {
        for (l, r) in self.instances.equations(pair) {
            for equation in [(l, r), (r, l)] {
                if let Some(rules) = self.root(equation.0).and_then(|root| self.rules.get_mut(&root))
                    && let Some(at) = rules.iter().position(|have| *have == equation)
                {
                    rules.remove(at);
                }
            }
        }
        self.normal.clear();
        self.near.clear();
    }

    fn root(&self, v: ValueId) -> Option<(usize, u32)> {
        let term = self.terms.get(self.terms.owner(v));
        Some((self.terms.types.instance(term.instance?).operator, v - term.first))
    }

    fn normalize(&mut self, v: ValueId) -> ValueId {
        if let Some(known) = self.normal.get(&v) {
            return *known;
        }
        let inner = self.with_normal_operands(v);
        let normal = match self.step(inner) {
            Some(earlier) => self.normalize(earlier),
            None => inner,
        };
        self.normal.insert(v, normal);
        normal
    }

    /// The value with its operands rewritten, if that comes earlier.
    fn with_normal_operands(&mut self, v: ValueId) -> ValueId {
        let (terms, owner) = (self.terms, self.terms.owner(v));
        let term = terms.get(owner);
        let Some(instance) = term.instance else { return v };
        let mut operands: Operands = term.operands.iter().map(|o| self.normalize(*o)).collect();
        if self.spec.operators[terms.types.instance(instance).operator].commutative {
            operands.sort_unstable();
        }
        let rewritten = terms.find(instance, &operands).map(|id| terms.get(id).first + (v - term.first));
        rewritten.filter(|new| *new < v).unwrap_or(v)
    }

    /// One rewriting at the root to a value that comes earlier.
    fn step(&self, v: ValueId) -> Option<ValueId> {
        self.steps(v).into_iter().filter(|new| *new < v).min()
    }

    /// All rewritings at the root.
    fn steps(&self, v: ValueId) -> Vec<ValueId> {
        let rules = self.root(v).and_then(|root| self.rules.get(&root)).map_or(&[][..], Vec::as_slice);
        let of = |(from, to): &(ValueId, ValueId)| {
            let matches = self.instances.unified(*from, v, &Match::default()).into_iter();
            let to = *to;
            matches.filter_map(move |found| self.general.rebuild(to, &found.sizes, &mut found.names.to_vec())).collect::<Vec<_>>()
        };
        rules.iter().flat_map(of).collect()
    }
}
