//! Groups of graphs with equal outputs become pairs; pairs that follow from smaller ones are
//! counted and dropped.
//!
//! A group is spanned by a star: its first graph paired with each other one, so all its equations
//! follow from those pairs. A pair is dropped only if it follows from pairs with fewer operators,
//! from earlier graphs of the same group, or from another group by renaming; so the remaining pairs
//! span everything.

use std::ops::AddAssign;

use rustc_hash::FxHashMap;

use crate::general::General;
use crate::rename::{Rank, Renaming};
use crate::set::{TermId, TermSet};
use crate::spec::Spec;
use crate::terms::{Operands, Terms, ValueId};
use crate::values::Values;

/// Number of pairs remaining after each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pairs with equal outputs under the first assignment.
    pub pairs: u64,
    /// Of these: under all assignments.
    pub generic: u64,
    /// Of these: not a union of pairs of smaller graphs.
    pub single: u64,
    /// Of these: not ending in the same operator on operands that are equal by smaller pairs.
    pub unlike_ends: u64,
    /// Of these: without a part that an equal, earlier one can replace.
    pub irreducible: u64,
    /// Of these: from one group among all renamings of it.
    pub first_names: u64,
    /// Of these: without a common part of both sides that can be a variable.
    pub unlike_starts: u64,
}

impl Tally {
    /// The steps in order, with display names.
    pub fn steps(&self) -> [(&'static str, u64); 7] {
        [
            ("equal under the first assignment", self.pairs),
            ("equal under all assignments", self.generic),
            ("no union of smaller pairs", self.single),
            ("no common last operator", self.unlike_ends),
            ("no part with an earlier equal", self.irreducible),
            ("groups up to renaming", self.first_names),
            ("no common part that may be a variable", self.unlike_starts),
        ]
    }

    /// The tally with these numbers, in the order of [`steps`](Tally::steps).
    pub fn of(numbers: &[u64]) -> Option<Tally> {
        let [pairs, generic, single, unlike_ends, irreducible, first_names, unlike_starts] = *numbers else { return None };
        Some(Tally { pairs, generic, single, unlike_ends, irreducible, first_names, unlike_starts })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.pairs += other.pairs;
        self.generic += other.generic;
        self.single += other.single;
        self.unlike_ends += other.unlike_ends;
        self.irreducible += other.irreducible;
        self.first_names += other.first_names;
        self.unlike_starts += other.unlike_starts;
    }
}

/// Two graphs with equal outputs; the left one comes first.
pub type Pair = [TermSet; 2];

/// Judges groups.
pub struct Pairing<'a> {
    terms: &'a Terms,
    spec: &'a Spec,
    values: &'a Values,
    renaming: Renaming<'a>,
    general: General<'a>,
    /// For each value the first equal one.
    first_equal: Vec<ValueId>,
}

impl<'a> Pairing<'a> {
    /// A judge over these terms.
    pub fn new(spec: &'a Spec, terms: &'a Terms, values: &'a Values) -> Pairing<'a> {
        let mut seen: FxHashMap<u64, ValueId> = FxHashMap::default();
        let first_equal = (0..terms.values() as ValueId).map(|v| *seen.entry(values.all(v)).or_insert(v)).collect();
        let renaming = Renaming::new(spec, terms);
        Pairing { terms, spec, values, renaming, general: General::new(spec, terms, values), first_equal }
    }

    /// Adds the remaining pairs of a group of graphs with equal fingerprints (first assignment) to
    /// `pairs`.
    pub fn group(&self, graphs: &[TermSet], tally: &mut Tally, pairs: &mut Vec<Pair>) {
        tally.pairs += graphs.len().saturating_sub(1) as u64;
        let mut generic: Vec<(u64, TermSet)> = graphs.iter().map(|g| (self.values.graph_all(self.terms, g), *g)).collect();
        generic.sort_unstable();
        for equal in generic.chunk_by(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
            let mut ranks: Vec<Rank> = equal.iter().map(|(_, graph)| Rank::of(self.terms, graph)).collect();
            ranks.sort_unstable();
            self.equal(&ranks, tally, pairs);
        }
    }

    fn equal(&self, ranks: &[Rank], tally: &mut Tally, pairs: &mut Vec<Pair>) {
        let [first, others @ ..] = ranks else { return };
        tally.generic += others.len() as u64;
        let mut left: Vec<&Rank> = others.iter().filter(|r| !self.is_union(first.graph(), r.graph())).collect();
        tally.single += left.len() as u64;
        left.retain(|r| !self.ends_alike(first.graph(), r.graph()));
        tally.unlike_ends += left.len() as u64;
        left.retain(|r| !self.reduces(r));
        tally.irreducible += left.len() as u64;
        if left.is_empty() || !self.renaming.is_first(ranks) {
            return;
        }
        tally.first_names += left.len() as u64;
        left.retain(|r| !self.general.covers(first.graph(), r.graph()));
        tally.unlike_starts += left.len() as u64;
        pairs.extend(left.iter().map(|r| [*first.graph(), *r.graph()]));
    }

    /// Whether the outputs split into two parts that are each equal on their own: then both parts
    /// are pairs of smaller graphs.
    fn is_union(&self, left: &TermSet, right: &TermSet) -> bool {
        let (ls, rs) = (self.terms.sinks(left), self.terms.sinks(right));
        if ls.len() < 2 || rs.len() < 2 {
            return false;
        }
        let sums = |sinks: &[TermId]| -> Vec<[u64; 2]> {
            let sum = |mask: usize| {
                let chosen: Vec<TermId> = sinks.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, id)| *id).collect();
                self.terms.closed(&chosen).map(|part| self.values.graph_all(self.terms, &part))
            };
            let all = (1 << sinks.len()) - 1;
            (1..all).filter_map(|mask| Some([sum(mask)?, sum(all ^ mask)?])).collect()
        };
        let right = sums(&rs);
        sums(&ls).iter().any(|parts| right.contains(parts))
    }

    /// Whether both sides end in the same operator on equal operands, and are equal without it.
    fn ends_alike(&self, left: &TermSet, right: &TermSet) -> bool {
        let (ls, rs) = (self.terms.sinks(left), self.terms.sinks(right));
        ls.iter().any(|l| {
            rs.iter().any(|r| {
                if !self.same_end(*l, *r) {
                    return false;
                }
                let alone = ls.len() == 1 && rs.len() == 1 && [*l, *r].iter().all(|id| self.operands_stand_alone(*id));
                let (l, r) = (left.without(*l), right.without(*r));
                alone || self.values.graph_all(self.terms, &l) == self.values.graph_all(self.terms, &r)
            })
        })
    }

    fn same_end(&self, l: TermId, r: TermId) -> bool {
        let (a, b) = (self.terms.get(l), self.terms.get(r));
        let Some(instance) = a.instance.filter(|i| b.instance == Some(*i)) else { return false };
        let operator = &self.spec.operators[self.terms.types.instance(instance).operator];
        let equal = |x: &ValueId, y: &ValueId| self.values.all(*x) == self.values.all(*y);
        let (x, y) = (&a.operands, &b.operands);
        let straight = x.iter().zip(y).all(|(x, y)| equal(x, y));
        straight || (operator.commutative && equal(&x[0], &y[1]) && equal(&x[1], &y[0]))
    }

    /// Whether each operand is the only output of the graph that computes it, so that its equality
    /// is a pair of its own.
    fn operands_stand_alone(&self, id: TermId) -> bool {
        self.terms.get(id).operands.iter().all(|v| self.stands_alone(*v))
    }

    /// A result of a split does not: the graph that computes it returns the other result too.
    fn stands_alone(&self, v: ValueId) -> bool {
        self.terms.is_variable(v) || self.terms.outputs(&self.terms.get(self.terms.owner(v)).closure).as_slice() == [v]
    }

    /// Whether a proper part is equal to an earlier value, and the graph with that in its place
    /// comes earlier too.
    fn reduces(&self, rank: &Rank) -> bool {
        let graph = rank.graph();
        let sinks = self.terms.sinks(graph);
        graph.as_slice().iter().any(|id| {
            let term = self.terms.get(*id);
            let by = self.first_equal[term.first as usize];
            if term.instance.is_none() || by == term.first || sinks.contains(id) || !self.stands_alone(term.first) || !self.stands_alone(by)
            {
                return false;
            }
            self.replaced(graph, term.first, by).is_some_and(|earlier| Rank::of(self.terms, &earlier) < *rank)
        })
    }

    /// The graph with a value that it does not return replaced by another.
    fn replaced(&self, graph: &TermSet, value: ValueId, by: ValueId) -> Option<TermSet> {
        let mut mapped: Vec<(TermId, TermId)> = Vec::new();
        let mut new_sinks: Vec<TermId> = Vec::new();
        let sinks = self.terms.sinks(graph);
        for id in graph.as_slice() {
            let term = self.terms.get(*id);
            let instance = term.instance?;
            let mut operands = Operands::new();
            for v in &term.operands {
                let owner = self.terms.owner(*v);
                operands.push(match mapped.iter().find(|(from, _)| *from == owner) {
                    _ if *v == value => by,
                    Some((_, to)) => self.terms.get(*to).first + (v - self.terms.get(owner).first),
                    None => *v,
                });
            }
            if self.terms.operator(self.spec, *id).is_some_and(|o| o.commutative) {
                operands.sort_unstable();
            }
            let new = self.terms.find(instance, &operands)?;
            mapped.push((*id, new));
            if sinks.contains(id) {
                new_sinks.push(new);
            }
        }
        self.terms.closed(&new_sinks).filter(|new| new.len() <= self.terms.size())
    }
}
