//! An index of terms by operator and operand heads: finds all terms that a pattern may match
//! without scanning the others.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::readers::Readers;
use crate::set::TermId;
use crate::spec::Spec;
use crate::terms::{Terms, ValueId};

/// Maximum number of operands to distinguish.
const OPERANDS: usize = 3;
/// Bits per operand head.
const BITS: u32 = 16;

/// The head of a value: 0 for a variable, otherwise the operator and the result number.
type Head = u16;

/// The heads of a term's operands, the first of them lowest.
type Key = u64;

/// Terms by operator and heads of operands.
pub struct Heads {
    /// For each operator, the operand keys and the ranges of their terms.
    keys: Vec<Vec<(Key, std::ops::Range<usize>)>>,
    list: Vec<TermId>,
    commutative: Vec<bool>,
    readers: Rc<Readers>,
}

impl Heads {
    /// All terms.
    pub fn new(spec: &Spec, terms: &Terms, readers: Rc<Readers>) -> Heads {
        let mut counts: FxHashMap<(usize, Key), usize> = FxHashMap::default();
        let applied = |id: TermId| Some((terms.types.instance(terms.get(id).instance?).operator, key(terms, id)));
        let ids = || (0..terms.list().len() as TermId).filter_map(|id| Some((id, applied(id)?)));
        for (_, at) in ids() {
            *counts.entry(at).or_default() += 1;
        }
        let mut sorted: Vec<_> = counts.into_iter().collect();
        sorted.sort_unstable();
        let mut keys = vec![Vec::new(); spec.operators.len()];
        let mut next: FxHashMap<(usize, Key), usize> = FxHashMap::default();
        let mut total = 0;
        for ((operator, key), count) in sorted {
            keys[operator].push((key, total..total + count));
            next.insert((operator, key), total);
            total += count;
        }
        let mut list = vec![0; total];
        for (id, at) in ids() {
            if let Some(place) = next.get_mut(&at) {
                list[*place] = id;
                *place += 1;
            }
        }
        Heads { keys, list, commutative: spec.operators.iter().map(|o| o.commutative).collect(), readers }
    }

    /// Terms of the pattern's operator whose operands may match the pattern's, judging by the heads
    /// of the pattern and of one of its operands.
    pub fn like(&self, terms: &Terms, pattern: ValueId) -> Vec<TermId> {
        let all = || self.ranges(terms, pattern).flat_map(|range| self.list[range].iter().copied());
        let term = terms.get(terms.owner(pattern));
        let is_deep = |v: &&ValueId| terms.get(terms.owner(**v)).operands.iter().any(|o| !terms.is_variable(*o));
        let deep = term.operands.iter().filter(|v| !terms.is_variable(**v)).filter(is_deep).min_by_key(|v| self.count(terms, **v));
        let (Some(deep), Some(instance)) = (deep, term.instance) else { return all().collect() };
        let operator = terms.types.instance(instance).operator;
        let port = deep - terms.get(terms.owner(*deep)).first;
        let inner = self.ranges(terms, *deep).flat_map(|range| self.list[range].iter());
        let mut found: Vec<TermId> =
            inner.flat_map(|id| self.readers.applying(terms, terms.get(*id).first + port, operator)).copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Number of terms with the pattern's operator and operand heads.
    pub fn count(&self, terms: &Terms, pattern: ValueId) -> usize {
        self.ranges(terms, pattern).map(|range| range.len()).sum()
    }

    fn ranges(&self, terms: &Terms, pattern: ValueId) -> impl Iterator<Item = std::ops::Range<usize>> {
        let owner = terms.owner(pattern);
        let operator = terms.get(owner).instance.map(|i| terms.types.instance(i).operator);
        let keys = operator.map_or(&[][..], |at| self.keys[at].as_slice());
        let (wanted, turns) = (key(terms, owner), operator.is_some_and(|at| self.commutative[at]));
        let fitting = move |have: Key| fits(wanted, have) || (turns && fits(wanted, (have >> BITS) | ((have & 0xffff) << BITS)));
        keys.iter().filter(move |(have, _)| fitting(*have)).map(|(_, range)| range.clone())
    }
}

/// Whether all operands that are not variables in a pattern have the pattern's heads.
fn fits(pattern: Key, have: Key) -> bool {
    (0..OPERANDS as u32).map(|at| at * BITS).all(|shift| {
        let wanted = (pattern >> shift) as Head;
        wanted == 0 || wanted == (have >> shift) as Head
    })
}

fn key(terms: &Terms, id: TermId) -> Key {
    terms.get(id).operands.iter().take(OPERANDS).enumerate().fold(0, |key, (at, v)| key | Key::from(head(terms, *v)) << (at as u32 * BITS))
}

fn head(terms: &Terms, value: ValueId) -> Head {
    let term = terms.get(terms.owner(value));
    term.instance.map_or(0, |i| ((terms.types.instance(i).operator as Head) << 3) | (((value - term.first) as Head).min(6) + 1))
}
