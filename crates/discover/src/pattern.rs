//! Patterns matched against values of the table, and values built from patterns.

use smallvec::SmallVec;

use crate::sizes::{OPEN, SizeTable, SizesId};
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::types::InstanceId;

/// Matches and rebuilds: any value is a pattern, whose variables stand for values of any size.
pub struct Patterns<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    sizes: SizeTable<'a>,
}

/// What the variables of a pattern stand for, and at which sizes.
#[derive(Clone)]
pub struct Match {
    names: SmallVec<[(ValueId, ValueId); 8]>,
    sizes: SizesId,
    /// Cut instances in the pattern, and their counterparts.
    cuts: SmallVec<[(InstanceId, InstanceId); 2]>,
}

/// Parts of a pattern and the values they must match.
type Todo = SmallVec<[(ValueId, ValueId); 12]>;

impl<'a> Patterns<'a> {
    /// Works over these terms.
    pub fn new(spec: &'a Spec, terms: &'a Terms) -> Patterns<'a> {
        Patterns { spec, terms, sizes: SizeTable::new(terms) }
    }

    /// Adds to `found` all ways in which a value is a pattern with its variables replaced.
    pub fn matches(&mut self, pattern: ValueId, value: ValueId, found: &mut Vec<Match>) {
        let none = Match { names: SmallVec::new(), sizes: OPEN, cuts: SmallVec::new() };
        self.all(Todo::from_slice(&[(pattern, value)]), none, found);
    }

    fn all(&mut self, mut todo: Todo, mut so_far: Match, found: &mut Vec<Match>) {
        while let Some((pattern, value)) = todo.pop() {
            if self.terms.is_variable(pattern) {
                if let Some((_, given)) = so_far.names.iter().find(|(name, _)| *name == pattern) {
                    if *given != value {
                        return;
                    }
                    continue;
                }
                let Some(wider) = self.sizes.fitted(pattern, value, so_far.sizes) else { return };
                so_far.sizes = wider;
                so_far.names.push((pattern, value));
                continue;
            }
            let (p, v) = (self.terms.get(self.terms.owner(pattern)), self.terms.get(self.terms.owner(value)));
            let (Some(pi), Some(vi)) = (p.instance, v.instance) else { return };
            let operator = self.terms.types.instance(pi).operator;
            if operator != self.terms.types.instance(vi).operator || pattern - p.first != value - v.first {
                return;
            }
            if p.operands.is_empty() {
                let Some(wider) = self.sizes.fitted(pattern, value, so_far.sizes) else { return };
                so_far.sizes = wider;
            }
            if self.spec.operators[operator].cut.is_some() {
                so_far.cuts.push((pi, vi));
            }
            if let ([a, b], [c, d]) = (p.operands.as_slice(), v.operands.as_slice())
                && self.spec.operators[operator].commutative
                && a != b
                && c != d
            {
                let mut turned = todo.clone();
                turned.extend([(*b, *c), (*a, *d)]);
                self.all(turned, so_far.clone(), found);
            }
            todo.extend(p.operands.iter().copied().zip(v.operands.iter().copied()).rev());
        }
        let sizes = so_far.sizes;
        if so_far.cuts.iter().all(|(p, v)| self.sizes.cuts_alike(*p, *v, sizes)) {
            found.push(so_far);
        }
    }

    /// The value built by a pattern from a match; `None` if the table lacks it.
    pub fn rebuilt(&mut self, pattern: ValueId, of: &Match) -> Option<ValueId> {
        if self.terms.is_variable(pattern) {
            return of.names.iter().find(|(name, _)| *name == pattern).map(|(_, value)| *value);
        }
        let term = self.terms.get(self.terms.owner(pattern));
        let instance = term.instance?;
        let mut operands = Operands::new();
        for operand in &term.operands {
            operands.push(self.rebuilt(*operand, of)?);
        }
        if self.spec.operators[self.terms.types.instance(instance).operator].commutative {
            operands.sort_unstable();
        }
        let special = self.sizes.instance(instance, &operands, of.sizes)?;
        let value = self.terms.get(self.terms.find(special, &operands)?).first + (pattern - term.first);
        // Without operands, types do not determine the sizes.
        (!operands.is_empty() || self.sizes.fitted(pattern, value, of.sizes) == Some(of.sizes)).then_some(value)
    }
}
