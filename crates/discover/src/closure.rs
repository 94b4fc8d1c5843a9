//! Which values of the table are equal by some equations: congruence closure (Downey, Sethi and
//! Tarjan, Variations on the common subexpression problem, 1980).

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use crate::readers::Readers;
use crate::set::TermId;
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::types::InstanceId;

/// Classes of equal values. Two terms that apply the same operator to equal values are equal.
pub struct Closure<'a> {
    terms: &'a Terms,
    /// By operator of the specification.
    commutative: Vec<bool>,
    /// The representative of each value's class.
    class: Vec<ValueId>,
    /// The next value of the same class, in a cycle.
    next: Vec<ValueId>,
    /// Number of values of a class and of terms that read them, by representative.
    weight: Vec<u32>,
    readers: Rc<Readers>,
    /// A term for each instance and operand classes, where the term itself is written differently.
    applied: FxHashMap<u64, TermId>,
    open: Vec<(ValueId, ValueId)>,
}

impl<'a> Closure<'a> {
    /// A closure in which no two values are equal.
    pub fn new(spec: &Spec, terms: &'a Terms, readers: Rc<Readers>) -> Closure<'a> {
        let mut closure = Closure {
            terms,
            commutative: spec.operators.iter().map(|o| o.commutative).collect(),
            class: Vec::new(),
            next: Vec::new(),
            weight: Vec::new(),
            readers,
            applied: FxHashMap::default(),
            open: Vec::new(),
        };
        closure.clear();
        closure
    }

    /// Forgets all equations.
    pub fn clear(&mut self) {
        let values = self.terms.values();
        self.class = (0..values as ValueId).collect();
        self.next = (0..values as ValueId).collect();
        self.weight = (0..values as ValueId).map(|v| 1 + self.readers.of(v).len() as u32).collect();
        self.applied.clear();
    }

    /// Whether two values are equal by the equations so far.
    pub fn equal(&self, l: ValueId, r: ValueId) -> bool {
        self.class[l as usize] == self.class[r as usize]
    }

    /// Adds an equation and its consequences.
    pub fn merge(&mut self, l: ValueId, r: ValueId) {
        self.open.push((l, r));
        while let Some((l, r)) = self.open.pop() {
            let (l, r) = (self.class[l as usize], self.class[r as usize]);
            if l != r {
                let weight = |v: ValueId| self.weight[v as usize];
                let (keep, lose) = if (weight(l), r) >= (weight(r), l) { (l, r) } else { (r, l) };
                self.join(keep, lose);
            }
        }
    }

    fn join(&mut self, keep: ValueId, lose: ValueId) {
        self.weight[keep as usize] = self.weight[keep as usize].saturating_add(self.weight[lose as usize]);
        let mut at = lose;
        loop {
            self.class[at as usize] = keep;
            at = self.next[at as usize];
            if at == lose {
                break;
            }
        }
        loop {
            for reader in self.readers.clone().of(at) {
                self.written_anew(*reader);
            }
            at = self.next[at as usize];
            if at == lose {
                break;
            }
        }
        self.next.swap(keep as usize, lose as usize);
    }

    /// Looks for a term with the same instance on the same classes.
    fn written_anew(&mut self, id: TermId) {
        let Some((instance, operands)) = self.written(id) else { return };
        let other = match self.terms.find(instance, &operands) {
            Some(other) => Some(other),
            None => self.met(id, instance, &operands),
        };
        let Some(other) = other.filter(|other| *other != id) else { return };
        let (a, b) = (self.terms.get(id), self.terms.get(other));
        self.open.extend(a.values().zip(b.values()));
    }

    /// A term's instance, and its operand classes.
    fn written(&self, id: TermId) -> Option<(InstanceId, Operands)> {
        let term = self.terms.get(id);
        let instance = term.instance?;
        let mut operands: Operands = term.operands.iter().map(|v| self.class[*v as usize]).collect();
        if self.commutative[self.terms.types.instance(instance).operator] {
            operands.sort_unstable();
        }
        Some((instance, operands))
    }

    /// The known term for this application; if there is none, `id` becomes it.
    fn met(&mut self, id: TermId, instance: InstanceId, operands: &Operands) -> Option<TermId> {
        let mut at = key(instance, operands);
        loop {
            let Some(have) = self.applied.get(&at).copied() else {
                self.applied.insert(at, id);
                return None;
            };
            if let Some((i, o)) = self.written(have)
                && (i, &o) == (instance, operands)
            {
                return Some(have);
            }
            at = at.wrapping_add(1);
        }
    }
}

fn key(instance: InstanceId, operands: &Operands) -> u64 {
    let mut hasher = FxHasher::default();
    (instance, operands.as_slice()).hash(&mut hasher);
    hasher.finish()
}
