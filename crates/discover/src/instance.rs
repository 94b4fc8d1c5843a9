//! Pairs that are instances of others, with variables identified or of other types.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::expr::substitute;
use crate::general::{Sizes, fitted};
use crate::pairing::Pair;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};
use crate::values::Values;

/// Drops instances of other pairs.
pub struct Instances<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    values: &'a Values,
}

/// Equal outputs of both sides, one after another.
pub type Equations = SmallVec<[(ValueId, ValueId); 4]>;

/// What the variables of the general pair stand for, and at which sizes.
#[derive(Clone, Default)]
pub struct Match {
    /// Variables and values.
    pub names: SmallVec<[(ValueId, ValueId); 8]>,
    /// Size parameters and sizes.
    pub sizes: Sizes,
}

impl<'a> Instances<'a> {
    /// Works over these terms.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> Instances<'a> {
        Instances { spec, terms, values }
    }

    /// The pairs that are not instances of others, in order. Of pairs that are instances of each
    /// other the first is kept.
    pub fn most_general(&self, pairs: &[Pair]) -> Vec<Pair> {
        let mut shapes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, pair) in pairs.iter().enumerate() {
            shapes.entry(self.shape(pair)).or_default().push(at);
        }
        let mut dropped = vec![false; pairs.len()];
        for alike in shapes.values() {
            for special in alike {
                let covers = |general: &usize| {
                    general != special
                        && !dropped[*general]
                        && self.is_instance(&pairs[*general], &pairs[*special])
                        && (general < special || !self.is_instance(&pairs[*special], &pairs[*general]))
                };
                dropped[*special] = alike.iter().any(covers);
            }
        }
        pairs.iter().zip(dropped).filter(|(_, dropped)| !dropped).map(|(pair, _)| *pair).collect()
    }

    /// The pair without names: its instances have the same shape.
    fn shape(&self, pair: &Pair) -> String {
        let mut sides: Vec<String> = pair
            .iter()
            .map(|graph| {
                let mut outputs: Vec<String> = self.terms.outputs(graph).iter().map(|v| self.nameless(*v)).collect();
                outputs.sort();
                outputs.join(";")
            })
            .collect();
        sides.sort();
        sides.join("=")
    }

    fn nameless(&self, v: ValueId) -> String {
        let owner = self.terms.owner(v);
        let term = self.terms.get(owner);
        let Some(operator) = self.terms.operator(self.spec, owner) else { return "_".into() };
        let mut operands: Vec<String> = term.operands.iter().map(|o| self.nameless(*o)).collect();
        if operator.commutative {
            operands.sort();
        }
        format!("({}.{} {})", operator.name, v - term.first, operands.join(" "))
    }

    /// The pair as equations between outputs, matched by fingerprint.
    pub fn equations(&self, pair: &Pair) -> Equations {
        let sorted = |at: usize| {
            let mut outputs = self.terms.outputs(&pair[at]);
            outputs.sort_unstable_by_key(|v| (self.values.all(*v), *v));
            outputs
        };
        sorted(0).into_iter().zip(sorted(1)).collect()
    }

    fn is_instance(&self, general: &Pair, special: &Pair) -> bool {
        let (general, special) = (self.equations(general), self.equations(special));
        let turned: Equations = special.iter().map(|(l, r)| (*r, *l)).collect();
        general.len() == special.len()
            && [special, turned].iter().any(|special| self.matched(&general, special, &Match::default()).is_some())
    }

    /// Matches every equation of the general pair with a different one of the special pair.
    fn matched(&self, general: &[(ValueId, ValueId)], special: &[(ValueId, ValueId)], so_far: &Match) -> Option<Match> {
        let Some(((l, r), general)) = general.split_first() else { return Some(so_far.clone()) };
        special.iter().enumerate().find_map(|(at, (sl, sr))| {
            let rest: Equations = special.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, e)| *e).collect();
            let left = self.unified(*l, *sl, so_far);
            left.iter().flat_map(|m| self.unified(*r, *sr, m)).find_map(|m| self.matched(general, &rest, &m))
        })
    }

    /// All ways in which `special` is `general` with its variables replaced.
    pub fn unified(&self, general: ValueId, special: ValueId, so_far: &Match) -> Vec<Match> {
        if self.terms.is_variable(general) {
            return self.named(general, special, so_far).into_iter().collect();
        }
        let (g, s) = (self.terms.owner(general), self.terms.owner(special));
        let (gt, st) = (self.terms.get(g), self.terms.get(s));
        let (Some(gi), Some(si)) = (gt.instance, st.instance) else { return Vec::new() };
        let (gi, si) = (self.terms.types.instance(gi), self.terms.types.instance(si));
        if gi.operator != si.operator || general - gt.first != special - st.first {
            return Vec::new();
        }
        let mut found = self.all(&gt.operands, &st.operands, so_far);
        if self.spec.operators[gi.operator].commutative {
            let turned: SmallVec<[ValueId; 2]> = st.operands.iter().rev().copied().collect();
            found.extend(self.all(&gt.operands, &turned, so_far));
        }
        if let (Some(general), Some(special)) = (&gi.cut, &si.cut) {
            found.retain(|m| substitute(general, &m.sizes).as_ref() == Some(special));
        }
        found
    }

    fn all(&self, general: &[ValueId], special: &[ValueId], so_far: &Match) -> Vec<Match> {
        general
            .iter()
            .zip(special)
            .fold(vec![so_far.clone()], |matches, (g, s)| matches.iter().flat_map(|m| self.unified(*g, *s, m)).collect())
    }

    fn named(&self, variable: ValueId, value: ValueId, so_far: &Match) -> Option<Match> {
        if let Some((_, given)) = so_far.names.iter().find(|(name, _)| *name == variable) {
            return (*given == value).then(|| so_far.clone());
        }
        let sizes = fitted(&self.spec.variables[variable as usize].ty, self.terms.ty(value), &so_far.sizes)?;
        let mut wider = Match { names: so_far.names.clone(), sizes };
        wider.names.push((variable, value));
        Some(wider)
    }
}
