//! Fingerprints of the values of terms.
//!
//! Elements are of the field of 2^61 - 1, where sums and products are exact; variables are random
//! elements. Two values that are equal as polynomials have equal fingerprints; others of degree d
//! collide with probability d / 2^61 for each element that differs, and 2^-64 for the digest.
//! Comparisons (`relu`, maxima) are by an order that knows nothing of sums and products: which
//! elements a `relu` keeps is a coin per element, so values of few elements may agree by chance.
//! Values that agree with others are therefore drawn again, several times, with orders under which
//! more or fewer elements are negative. Nothing is known of the signs of constants: `relu(1) = 1`
//! is not found.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use regraft_ir::{Scalar, Tensor, Value};
use regraft_prove::Field;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::DiscoverError;
use crate::set::{TermId, TermSet};
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};

/// Terms per unit of work of a thread.
const SHARE: usize = 64;
/// Units whose results are collected at a time.
const BLOCK: usize = 512;

/// How many of [`SAMPLES`] elements are negative under the orders that are drawn, in turn: at least
/// and at most. Windows of many elements are all negative only where nearly all elements are.
const NEGATIVE: [(usize, usize); 4] = [(112, 144), (236, 246), (180, 200), (250, 254)];
/// Elements whose sign is sampled.
const SAMPLES: u64 = 256;
/// Fresh drawings for values that agree with others.
const REDRAWN: usize = 12;

/// The fingerprint of values that were not evaluated.
const UNKNOWN: u64 = 0;

/// Fingerprints of values.
#[derive(Debug)]
pub struct Values {
    /// Under the first assignment, by value.
    pub(crate) first: Vec<u64>,
    /// Under all assignments, by value.
    pub(crate) all: Vec<u64>,
}

/// Hashes elements into a word.
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ word);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A permutation of 64-bit words without structure (the finalizer of MurmurHash3).
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ (word >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

impl Values {
    /// Fingerprints of all values, on `threads` threads. Deterministic in `seed`.
    pub fn of(spec: &Spec, terms: &Terms, seed: u64, threads: usize) -> Result<Values, DiscoverError> {
        Values::drawn(spec, terms, seed, threads, None)
    }

    /// Fingerprints of the values in these graphs only, which are equal exactly when those of
    /// [`of`](Values::of) are.
    pub fn of_graphs<'g>(
        spec: &Spec,
        terms: &Terms,
        graphs: impl Iterator<Item = &'g TermSet>,
        seed: u64,
        threads: usize,
    ) -> Result<Values, DiscoverError> {
        let mut wanted = vec![false; terms.list().len()];
        graphs.flat_map(TermSet::as_slice).for_each(|id| wanted[*id as usize] = true);
        Values::drawn(spec, terms, seed, threads, Some(&wanted))
    }

    /// `wanted` contains, with each term, everything it is built from.
    fn drawn(spec: &Spec, terms: &Terms, seed: u64, threads: usize, wanted: Option<&[bool]>) -> Result<Values, DiscoverError> {
        let types: Vec<u64> =
            (0..terms.types.len()).map(|id| xxhash_rust::xxh3::xxh3_64(terms.types.get(id as u32).to_string().as_bytes())).collect();
        let mut values = Values { first: Vec::new(), all: vec![0; terms.values()] };
        for assignment in 0..spec.assignments.len() {
            let found = Draw::new(spec, terms, assignment, mix(seed), NEGATIVE[0], &types).fingerprints(threads, wanted)?;
            for (all, found) in values.all.iter_mut().zip(&found).filter(|(_, found)| **found != UNKNOWN) {
                *all = mix(all.wrapping_add(*found));
            }
            if assignment == 0 {
                values.first = found;
            }
        }
        let mut met: FxHashMap<u64, u32> = FxHashMap::default();
        values.all.iter().filter(|print| **print != UNKNOWN).for_each(|print| *met.entry(*print).or_default() += 1);
        let alike: Vec<bool> = values.all.iter().map(|print| met.get(print).is_some_and(|n| *n > 1)).collect();
        drop(met);
        let mut needed = vec![false; terms.list().len()];
        for (value, _) in alike.iter().enumerate().filter(|(_, alike)| **alike) {
            let owner = terms.owner(value as ValueId);
            needed[owner as usize] = true;
            terms.get(owner).closure.as_slice().iter().for_each(|id| needed[*id as usize] = true);
        }
        for at in 0..REDRAWN {
            let (assignment, seed) = (at % spec.assignments.len(), mix(seed ^ mix(at as u64 + 1)));
            let found =
                Draw::new(spec, terms, assignment, seed, NEGATIVE[at % NEGATIVE.len()], &types).fingerprints(threads, Some(&needed))?;
            for ((all, found), _) in values.all.iter_mut().zip(&found).zip(&alike).filter(|(_, alike)| **alike) {
                *all = mix(all.wrapping_add(*found));
            }
        }
        Ok(values)
    }

    /// The fingerprint under the first assignment. Layout does not matter, type and elements do.
    pub fn first(&self, value: ValueId) -> u64 {
        self.first[value as usize]
    }

    /// Whether two values are known to differ under some assignment.
    pub fn differ(&self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (self.all(a), self.all(b));
        a != b && a != UNKNOWN && b != UNKNOWN
    }

    /// The fingerprint under all assignments.
    pub fn all(&self, value: ValueId) -> u64 {
        self.all[value as usize]
    }

    /// The fingerprint of the multiset of a graph's outputs under the first assignment: a sum, so
    /// it does not depend on their order.
    pub fn graph_first(&self, terms: &Terms, graph: &TermSet) -> u64 {
        terms.outputs(graph).iter().fold(0, |sum, v| sum.wrapping_add(self.first(*v)))
    }

    /// The fingerprint of the multiset of a graph's outputs under all assignments.
    pub fn graph_all(&self, terms: &Terms, graph: &TermSet) -> u64 {
        terms.outputs(graph).iter().fold(0, |sum, v| sum.wrapping_add(self.all(*v)))
    }
}

/// Fresh drawings to test graphs with.
pub struct Draws<'a>(Vec<Draw<'a>>);

impl<'a> Draws<'a> {
    /// `count` drawings under each assignment. Deterministic in `seed`.
    pub fn new(spec: &'a Spec, terms: &'a Terms, seed: u64, count: usize) -> Draws<'a> {
        let assignments = 0..spec.assignments.len();
        let draw = |at: usize| {
            let seed = mix(seed ^ mix(at as u64 + 1));
            assignments.clone().map(move |assignment| Draw::new(spec, terms, assignment, seed, NEGATIVE[at % NEGATIVE.len()], &[]))
        };
        Draws((0..count).flat_map(draw).collect())
    }

    /// Whether two graphs have equal outputs in all drawings.
    pub fn agree(&self, left: &TermSet, right: &TermSet) -> Result<bool, DiscoverError> {
        for draw in &self.0 {
            if draw.graph(left)? != draw.graph(right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// One drawing of the variables' elements under one assignment.
struct Draw<'a> {
    spec: &'a Spec,
    terms: &'a Terms,
    assignment: usize,
    key: u64,
    /// Words that stand for types, by number; if missing, types make no difference.
    types: &'a [u64],
}

/// Fingerprints of a term's results, and the results themselves if they serve as operands.
type Evaluated = SmallVec<[(u64, Option<Value<Field>>); 2]>;

impl<'a> Draw<'a> {
    /// Uses the first key after `seed` whose order has this many negative elements.
    fn new(spec: &'a Spec, terms: &'a Terms, assignment: usize, seed: u64, negative: (usize, usize), types: &'a [u64]) -> Draw<'a> {
        let start = mix(seed ^ mix(assignment as u64 + 1));
        let is_negative = |at: &u64| Field::new(mix(*at)).compare(&Field::zero()) == Ok(Some(Ordering::Less));
        let fits = |key: &u64| {
            let count = Field::with_key(*key, || (0..SAMPLES).filter(is_negative).count());
            (negative.0..=negative.1).contains(&count)
        };
        let key = (0..=u64::MAX).map(|at| start.wrapping_add(at)).find(fits).unwrap_or(start);
        Draw { spec, terms, assignment, key, types }
    }

    /// Fingerprints of all values, or of the results of `wanted` terms and [`UNKNOWN`] for the
    /// others.
    fn fingerprints(&self, threads: usize, wanted: Option<&[bool]>) -> Result<Vec<u64>, DiscoverError> {
        let mut prints = vec![UNKNOWN; self.terms.values()];
        let operands =
            self.terms.list()[..self.terms.of_size(self.terms.size()).start as usize].last().map_or(0, |t| t.values().end as usize);
        let mut arena: Vec<Option<Value<Field>>> = vec![None; operands];
        for size in 0..=self.terms.size() {
            let range = self.terms.of_size(size);
            let keep = size < self.terms.size();
            let is_wanted = |id: &TermId| size == 0 || wanted.is_none_or(|wanted| wanted[*id as usize]);
            let ids: Vec<TermId> = range.filter(is_wanted).collect();
            let shares: Vec<&[TermId]> = ids.chunks(SHARE).collect();
            for block in shares.chunks(BLOCK) {
                let results = regraft_ir::parallel::map(block, threads, |share| {
                    Field::with_key(self.key, || share.iter().map(|id| self.term(*id, &arena, keep)).collect::<Result<Vec<Evaluated>, _>>())
                });
                let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;
                for (id, evaluated) in block.iter().flat_map(|share| share.iter()).zip(results.into_iter().flatten()) {
                    for (v, (print, value)) in self.terms.get(*id).values().zip(evaluated) {
                        prints[v as usize] = print;
                        if keep {
                            arena[v as usize] = value;
                        }
                    }
                }
            }
        }
        Ok(prints)
    }

    /// The multiset of a graph's outputs, sorted.
    fn graph(&self, graph: &TermSet) -> Result<Vec<u64>, DiscoverError> {
        let mut known: Vec<(ValueId, u64, Value<Field>)> = Vec::new();
        Field::with_key(self.key, || {
            for id in graph.as_slice() {
                let term = self.terms.get(*id);
                let mut operands = Vec::with_capacity(term.operands.len());
                for v in &term.operands {
                    operands.push(match known.iter().find(|(have, ..)| have == v) {
                        Some((.., value)) => value.clone(),
                        None => self.variable(*v)?,
                    });
                }
                for (v, value) in term.values().zip(self.apply(*id, &operands)?) {
                    known.push((v, self.print(v, &value), value));
                }
            }
            let outputs = self.terms.outputs(graph);
            let mut prints: Vec<u64> = known.iter().filter(|(v, ..)| outputs.contains(v)).map(|(_, print, _)| *print).collect();
            prints.sort_unstable();
            Ok(prints)
        })
    }

    fn term(&self, id: TermId, arena: &[Option<Value<Field>>], keep: bool) -> Result<Evaluated, DiscoverError> {
        let term = self.terms.get(id);
        let operands: Vec<Value<Field>> = match term.instance {
            None => vec![self.variable(term.first)?],
            Some(_) => term.operands.iter().filter_map(|v| arena.get(*v as usize).cloned().flatten()).collect(),
        };
        let results = self.apply(id, &operands)?;
        Ok(term.values().zip(results).map(|(v, value)| (self.print(v, &value), keep.then_some(value))).collect())
    }

    fn apply(&self, id: TermId, operands: &[Value<Field>]) -> Result<Vec<Value<Field>>, DiscoverError> {
        let Some(instance) = self.terms.get(id).instance else { return Ok(operands.to_vec()) };
        let instance = self.terms.types.instance(instance);
        let refs: Vec<&Value<Field>> = operands.iter().collect();
        instance.program.run(&refs, &self.spec.assignments[self.assignment]).map_err(|e| self.no_value(instance.operator, e.to_string()))
    }

    fn no_value(&self, operator: usize, why: String) -> DiscoverError {
        let operator = self.spec.operators.get(operator).map_or_else(|| "a variable".into(), |o| o.name.clone());
        DiscoverError::NoValue { operator, assignment: self.assignment + 1, why }
    }

    /// Random elements, by the variable's number.
    fn variable(&self, value: ValueId) -> Result<Value<Field>, DiscoverError> {
        let shape = self.terms.ty(value).bind(&self.spec.assignments[self.assignment]);
        let shape = shape.ok_or_else(|| self.no_value(usize::MAX, "a size is negative".into()))?;
        let start = mix(self.key ^ mix(u64::from(value) + 0x51));
        let elements = (0..shape.iter().product::<usize>() as u64).map(|at| Field::new(mix(start.wrapping_add(at)))).collect();
        Ok(Value::real(Tensor::new(shape, elements)))
    }

    fn print(&self, v: ValueId, value: &Value<Field>) -> u64 {
        let mut digest = Digest(mix(self.types.get(self.terms.type_id(v) as usize).copied().unwrap_or_default()));
        match value {
            Value::Real(t) => t.data.iter().for_each(|element| element.hash(&mut digest)),
            Value::Int(t) => t.data.iter().for_each(|element| element.hash(&mut digest)),
            Value::Bool(t) => t.data.iter().for_each(|element| element.hash(&mut digest)),
        }
        mix(digest.finish())
    }
}
