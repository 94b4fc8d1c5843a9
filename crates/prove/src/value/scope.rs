//! Variables and their binders: capture-avoiding substitution, renaming, and visiting all index
//! expressions.

use crate::index::{Fuel, Poly, Var, fresh};
use crate::value::sum::{Factor, Function, Sum, Term};

/// A substitution of variables.
pub(crate) struct Replacement {
    pairs: Vec<(Var, Poly)>,
    /// Names that binders must not use: the variables replaced, and those in the replacements.
    taken: Vec<Var>,
}

impl Replacement {
    pub fn new(pairs: Vec<(Var, Poly)>) -> Replacement {
        let mut taken = Vec::new();
        for (var, value) in &pairs {
            taken.push(*var);
            value.vars(&mut taken);
        }
        Replacement { pairs, taken }
    }

    fn poly(&self, poly: &Poly) -> Poly {
        poly.replace(&|v| self.pairs.iter().find(|(var, _)| *var == v).map(|(_, value)| value.clone()))
    }

    /// The same inside a binder, with fresh names for its variables on clashes.
    fn inside(&self, binders: &[(Var, Poly)]) -> (Vec<(Var, Poly)>, Option<Replacement>) {
        let mut renamed = Vec::new();
        let list = binders.iter().map(|(var, extent)| {
            let var = if self.taken.contains(var) {
                let new = fresh();
                renamed.push((*var, Poly::var(new)));
                new
            } else {
                *var
            };
            (var, self.poly(extent))
        });
        let list = list.collect();
        if renamed.is_empty() {
            return (list, None);
        }
        let kept = self.pairs.iter().filter(|(var, _)| !renamed.iter().any(|(r, _)| r == var)).cloned();
        (list, Some(Replacement::new(renamed.iter().cloned().chain(kept).collect())))
    }
}

impl Sum {
    /// The sum with free variables replaced.
    pub fn replace(&self, with: &Replacement) -> Sum {
        Sum::new(self.terms().iter().map(|(term, c)| (term.replace(with), c.clone())))
    }

    /// One free variable replaced.
    pub fn with(&self, var: Var, value: &Poly) -> Sum {
        self.replace(&Replacement::new(vec![(var, value.clone())]))
    }

    /// Calls `f` with every index expression, those under binders included.
    pub fn polys(&self, f: &mut dyn FnMut(&Poly)) {
        self.terms().iter().for_each(|(term, _)| term.polys(f));
    }

    /// Whether the variable occurs.
    pub fn has(&self, var: Var) -> bool {
        let mut found = false;
        self.polys(&mut |p| found |= p.has(var));
        found
    }
}

impl Term {
    /// Number of factors, nested ones included: the cost of a copy.
    pub fn weight(&self) -> usize {
        1 + self.factors.iter().map(|(factor, _)| factor.weight()).sum::<usize>()
    }

    /// The term with free variables replaced.
    pub fn replace(&self, with: &Replacement) -> Term {
        // Not a question of its own, so the answer is given even if no fuel is left; the next
        // question fails.
        Fuel::spend(self.factors.len() as u64);
        let (binders, inside) = with.inside(&self.binders);
        let with = inside.as_ref().unwrap_or(with);
        let mut conds: Vec<Poly> = self.conds.iter().map(|p| with.poly(p)).collect();
        conds.sort();
        conds.dedup();
        let mut factors: Vec<(Factor, i32)> = self.factors.iter().map(|(factor, power)| (factor.replace(with), *power)).collect();
        merge_powers(&mut factors);
        Term { binders, conds, factors }
    }

    /// The term with bound variables replaced, under new binders.
    pub fn rebind(&self, binders: Vec<(Var, Poly)>, pairs: Vec<(Var, Poly)>) -> Term {
        let inside = Term { binders: Vec::new(), conds: self.conds.clone(), factors: self.factors.clone() };
        Term { binders, ..inside.replace(&Replacement::new(pairs)) }
    }

    /// The term with fresh names for its binders.
    pub fn refreshed(&self) -> Term {
        if self.binders.is_empty() {
            return self.clone();
        }
        let names: Vec<(Var, Poly)> = self.binders.iter().map(|(var, _)| (*var, Poly::var(fresh()))).collect();
        let binders = self.binders.iter().zip(&names).filter_map(|((_, extent), (_, name))| Some((name.as_var()?, extent.clone())));
        let binders = binders.collect();
        self.rebind(binders, names)
    }

    /// Calls `f` with every index expression, extents included.
    pub fn polys(&self, f: &mut dyn FnMut(&Poly)) {
        self.binders.iter().for_each(|(_, extent)| f(extent));
        self.inner_polys(f);
    }

    /// Calls `f` with every index expression except the extents of the term's own binders.
    pub fn inner_polys(&self, f: &mut dyn FnMut(&Poly)) {
        self.conds.iter().for_each(&mut *f);
        self.factors.iter().for_each(|(factor, _)| factor.polys(f));
    }
}

impl Factor {
    fn replace(&self, with: &Replacement) -> Factor {
        match self {
            Factor::Read(source, index) => Factor::Read(source.clone(), index.iter().map(|p| with.poly(p)).collect()),
            // A variable may be replaced by a sum: `Simplifier` then restores the factor.
            Factor::Whole(atom) => match with.poly(&Poly::atom(atom.clone())) {
                replaced if replaced == Poly::atom(atom.clone()) => self.clone(),
                replaced => match replaced.terms() {
                    [(atoms, 1)] if atoms.len() == 1 => Factor::Whole(atoms[0].clone()),
                    _ => Factor::Of(Sum::whole(&replaced)),
                },
            },
            Factor::Apply(function, arguments) => {
                let mut arguments: Vec<Sum> = arguments.iter().map(|a| a.replace(with)).collect();
                if *function == Function::Max {
                    arguments.sort();
                    arguments.dedup();
                }
                Factor::Apply(function.clone(), arguments)
            }
            Factor::Over(fold, binders, conds, body) => {
                let (binders, inside) = with.inside(binders);
                let with = inside.as_ref().unwrap_or(with);
                let mut conds: Vec<Poly> = conds.iter().map(|p| with.poly(p)).collect();
                conds.sort();
                conds.dedup();
                Factor::Over(*fold, binders, conds, body.replace(with))
            }
            Factor::Of(sum) => Factor::Of(sum.replace(with)),
        }
    }

    fn weight(&self) -> usize {
        let inside = |sum: &Sum| sum.terms().iter().map(|(term, _)| term.weight()).sum::<usize>();
        1 + match self {
            Factor::Read(..) | Factor::Whole(_) => 0,
            Factor::Apply(_, arguments) => arguments.iter().map(inside).sum(),
            Factor::Over(_, _, _, body) => inside(body),
            Factor::Of(sum) => inside(sum),
        }
    }

    /// Calls `f` with every index expression.
    pub fn polys(&self, f: &mut dyn FnMut(&Poly)) {
        match self {
            Factor::Read(_, index) => index.iter().for_each(f),
            Factor::Whole(atom) => f(&Poly::atom(atom.clone())),
            Factor::Apply(_, arguments) => arguments.iter().for_each(|a| a.polys(f)),
            Factor::Over(_, binders, conds, body) => {
                binders.iter().for_each(|(_, extent)| f(extent));
                conds.iter().for_each(&mut *f);
                body.polys(f);
            }
            Factor::Of(sum) => sum.polys(f),
        }
    }

    /// Whether the variable occurs.
    pub fn has(&self, var: Var) -> bool {
        let mut found = false;
        self.polys(&mut |p| found |= p.has(var));
        found
    }
}

/// A sum of what stands inside a term's domain: over the domain, in place of the term's factors.
pub(crate) fn under(term: &Term, inside: Sum) -> Sum {
    Sum::new(inside.into_terms().into_iter().map(|(inside, c)| {
        let inside = if term.binders.is_empty() { inside } else { inside.refreshed() };
        let mut conds: Vec<Poly> = term.conds.iter().chain(&inside.conds).cloned().collect();
        conds.sort();
        conds.dedup();
        (Term { binders: term.binders.iter().chain(&inside.binders).cloned().collect(), conds, factors: inside.factors }, c)
    }))
}

/// Sorts factors and adds up the powers of equal ones.
pub(crate) fn merge_powers(factors: &mut Vec<(Factor, i32)>) {
    factors.sort();
    let mut merged: Vec<(Factor, i32)> = Vec::with_capacity(factors.len());
    for (factor, power) in factors.drain(..) {
        match merged.last_mut() {
            Some(last) if last.0 == factor => last.1 = last.1.saturating_add(power),
            _ => merged.push((factor, power)),
        }
    }
    merged.retain(|(_, power)| *power != 0);
    *factors = merged;
}
