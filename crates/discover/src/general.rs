//! Pairs whose sides share a part that could be anything.
//!
//! If both sides contain the same term and remain equal with a fresh variable in its place, the
//! pair is an instance of a smaller one. The fresh variable has the term's type, say `[2m, k]`,
//! which need not be the type of any variable of the specification. But pairs hold for all sizes,
//! so it suffices that the specification's variables, at other sizes, have the types of all
//! variables of the smaller pair.

use std::collections::HashMap;

use regraft_ir::{Dim, TensorType};
use smallvec::SmallVec;

use crate::expr::substitute;
use crate::set::{TermId, TermSet};
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::values::Values;

/// Looks for smaller pairs with a variable in place of a part.
pub struct General<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    values: &'a Values,
}

/// Sizes of the specification's size parameters in terms of those of an instance.
pub type Sizes = HashMap<String, Dim>;

impl<'a> General<'a> {
    /// Works over these terms.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> General<'a> {
        General { spec, terms, values }
    }

    /// Whether a pair follows from a smaller enumerated one.
    pub fn covers(&self, left: &TermSet, right: &TermSet) -> bool {
        let common = left.as_slice().iter().filter(|id| right.contains(**id) && self.terms.get(**id).instance.is_some());
        common.into_iter().any(|id| self.is_instance(left, right, *id))
    }

    fn is_instance(&self, left: &TermSet, right: &TermSet, part: TermId) -> bool {
        let mut unknown: SmallVec<[ValueId; 8]> = SmallVec::new();
        for graph in [left, right] {
            self.leaves(graph, part, &mut unknown);
        }
        self.assign(left, right, &unknown, &mut Vec::new(), &Sizes::new())
    }

    /// Variables of the graph without `part`: the graph's own and the part's results.
    fn leaves(&self, graph: &TermSet, part: TermId, found: &mut SmallVec<[ValueId; 8]>) {
        let mut todo: SmallVec<[ValueId; 8]> = self.terms.outputs(graph);
        while let Some(v) = todo.pop() {
            if self.terms.is_variable(v) || self.terms.owner(v) == part {
                if !found.contains(&v) {
                    found.push(v);
                }
                continue;
            }
            todo.extend(self.terms.get(self.terms.owner(v)).operands.iter().copied());
        }
    }

    /// Tries variables of the specification for `unknown`, one by one; of interchangeable ones only
    /// the first free one.
    fn assign(&self, left: &TermSet, right: &TermSet, unknown: &[ValueId], given: &mut Vec<(ValueId, ValueId)>, sizes: &Sizes) -> bool {
        let Some(v) = unknown.get(given.len()) else { return self.holds(left, right, given, sizes) };
        let mut tried: SmallVec<[ValueId; 8]> = SmallVec::new();
        for variable in 0..self.terms.variables() as ValueId {
            let declared = &self.spec.variables[variable as usize];
            let alike = |other: &ValueId| {
                let other = &self.spec.variables[*other as usize];
                other.ty == declared.ty && other.weight == declared.weight
            };
            if given.iter().any(|(_, taken)| *taken == variable) || tried.iter().any(alike) {
                continue;
            }
            tried.push(variable);
            let Some(wider) = fitted(&declared.ty, self.terms.ty(*v), sizes) else { continue };
            given.push((*v, variable));
            if self.assign(left, right, unknown, given, &wider) {
                return true;
            }
            given.pop();
        }
        false
    }

    fn holds(&self, left: &TermSet, right: &TermSet, given: &[(ValueId, ValueId)], sizes: &Sizes) -> bool {
        let rebuilt = |graph: &TermSet| {
            let mut known: Vec<(ValueId, ValueId)> = given.to_vec();
            let roots: Option<Vec<ValueId>> = self.terms.outputs(graph).iter().map(|v| self.rebuild(*v, sizes, &mut known)).collect();
            self.returning(&roots?)
        };
        let (Some(l), Some(r)) = (rebuilt(left), rebuilt(right)) else { return false };
        self.values.graph_all(self.terms, &l) == self.values.graph_all(self.terms, &r)
    }

    /// The graph that returns exactly these values.
    fn returning(&self, roots: &[ValueId]) -> Option<TermSet> {
        let owners: Vec<TermId> = roots.iter().map(|v| self.terms.owner(*v)).collect();
        let graph = self.terms.closed(&owners)?;
        let mut outputs = self.terms.outputs(&graph);
        let mut roots = roots.to_vec();
        outputs.sort_unstable();
        roots.sort_unstable();
        // A variable passed through only forms a graph by itself.
        let passes = roots.iter().any(|v| self.terms.is_variable(*v));
        let only_passes = roots.iter().all(|v| self.terms.is_variable(*v));
        (outputs.as_slice() == roots && (!passes || only_passes)).then_some(graph)
    }

    /// The value rebuilt from replacements of the given values, at other sizes; `None` if the table
    /// lacks it, or a variable has no replacement.
    pub fn rebuild(&self, v: ValueId, sizes: &Sizes, known: &mut Vec<(ValueId, ValueId)>) -> Option<ValueId> {
        if let Some((_, to)) = known.iter().find(|(from, _)| *from == v) {
            return Some(*to);
        }
        let owner = self.terms.owner(v);
        let term = self.terms.get(owner);
        let instance = self.terms.types.instance(term.instance?);
        let mut operands = Operands::new();
        for operand in &term.operands {
            operands.push(self.rebuild(*operand, sizes, known)?);
        }
        if self.spec.operators[instance.operator].commutative {
            operands.sort_unstable();
        }
        let types: SmallVec<[u32; 3]> = operands.iter().map(|o| self.terms.type_id(*o)).collect();
        let cut_fits = |cut: &Option<Dim>| match (cut, &instance.cut) {
            (Some(general), Some(special)) => substitute(general, sizes).as_ref() == Some(special),
            (None, None) => true,
            _ => false,
        };
        let candidates = self.terms.types.known(instance.operator, &types).iter();
        let found = candidates.filter(|i| cut_fits(&self.terms.types.instance(**i).cut)).find_map(|i| self.terms.find(*i, &operands))?;
        let result = self.terms.get(found).first + (v - term.first);
        known.push((v, result));
        Some(result)
    }
}

/// Sizes for which a type of the specification is `wanted`, given those already fixed.
pub fn fitted(general: &TensorType, wanted: &TensorType, sizes: &Sizes) -> Option<Sizes> {
    if general.rank() != wanted.rank() || general.dtype != wanted.dtype {
        return None;
    }
    let mut sizes = sizes.clone();
    for (general, wanted) in general.shape.iter().zip(&wanted.shape) {
        if let Some(symbol) = general.as_symbol() {
            if *sizes.entry(symbol.to_string()).or_insert_with(|| wanted.clone()) != *wanted {
                return None;
            }
        } else if substitute(general, &sizes).as_ref() != Some(wanted) {
            return None;
        }
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::DType;

    fn ty(shape: &[Dim]) -> TensorType {
        TensorType::new(DType::F32, shape.to_vec())
    }

    #[test]
    fn types_fit_at_other_sizes() {
        let (m, k, c) = (Dim::symbol("m"), Dim::symbol("k"), Dim::symbol("c"));
        let general = ty(&[m.clone(), k.clone()]);
        let sizes = fitted(&general, &ty(&[k.clone(), m.clone() + m.clone()]), &Sizes::new()).unwrap();
        assert_eq!((&sizes["m"], &sizes["k"]), (&k, &(m.clone() + m.clone())));
        assert_eq!(fitted(&general, &ty(&[m.clone(), k.clone()]), &sizes), None);
        let square = ty(&[c.clone(), c.clone(), Dim::from(3)]);
        assert_eq!(fitted(&square, &ty(&[m.clone(), k, Dim::from(3)]), &Sizes::new()), None);
        assert_eq!(fitted(&square, &ty(&[m.clone(), m, Dim::from(1)]), &Sizes::new()), None);
        assert_eq!(fitted(&square, &general, &Sizes::new()), None);
    }
}
