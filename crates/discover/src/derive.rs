//! Pairs that follow from others by rewriting.
//!
//! Pairs are equations between values. They are used as rewrite rules in whichever direction leads to a value that comes earlier in the table of terms, anywhere in an
//! expression, for any values in the places of variables and at any sizes. As every step goes down in one order of all values, rewriting ends; as
//! every step is an instance of a pair, two values that are rewritten to the same one are equal by these pairs (ordered rewriting, as in
//! Bachmair, Dershowitz and Plaisted, Completion without failure, 1989).

use rustc_hash::FxHashMap;

use crate::general::General;
use crate::instance::{Instances, Match};
use crate::judge::Pair;
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::values::Values;

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
        }
    }

    /// Whether all outputs of both sides are rewritten to the same values.
    pub fn joins(&mut self, pair: &Pair) -> bool {
        self.instances.equations(pair).iter().all(|(l, r)| self.normalize(*l) == self.normalize(*r))
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

    /// One rewriting at the root.
    fn step(&self, v: ValueId) -> Option<ValueId> {
        self.rules.get(&self.root(v)?)?.iter().find_map(|(from, to)| {
            self.instances.unified(*from, v, &Match::default()).into_iter().find_map(|found| {
                let mut names = found.names.to_vec();
                self.general.rebuild(*to, &found.sizes, &mut names).filter(|new| *new < v)
            })
        })
    }
}
