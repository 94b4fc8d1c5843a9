//! Which terms read a value.

use crate::set::TermId;
use crate::terms::{Term, Terms, ValueId};

/// For each value the terms that have it as an operand, without repeats, by operator.
pub struct Readers {
    /// Readers of `v` are `list[starts[v]..starts[v + 1]]`.
    starts: Vec<u32>,
    list: Vec<TermId>,
}

impl Readers {
    /// The readers of all values.
    pub fn new(terms: &Terms) -> Readers {
        let mut starts = vec![0u32; terms.values() + 1];
        let applied = || (0..).zip(terms.list()).filter(|(_, term)| term.instance.is_some());
        for v in applied().flat_map(|(_, term)| operands(term)) {
            starts[v as usize + 1] += 1;
        }
        for at in 0..terms.values() {
            starts[at + 1] += starts[at];
        }
        let mut free = starts.clone();
        let mut list: Vec<TermId> = vec![0; starts.last().map_or(0, |end| *end as usize)];
        for (id, term) in applied() {
            for v in operands(term) {
                list[free[v as usize] as usize] = id;
                free[v as usize] += 1;
            }
        }
        for range in starts.windows(2) {
            list[range[0] as usize..range[1] as usize].sort_by_key(|id| operator(terms, *id));
        }
        Readers { starts, list }
    }

    /// All readers of a value.
    pub fn of(&self, value: ValueId) -> &[TermId] {
        &self.list[self.starts[value as usize] as usize..self.starts[value as usize + 1] as usize]
    }

    /// Readers of a value that apply an operator.
    pub fn applying(&self, terms: &Terms, value: ValueId, wanted: usize) -> &[TermId] {
        let all = self.of(value);
        let start = all.partition_point(|id| operator(terms, *id) < Some(wanted));
        let count = all[start..].partition_point(|id| operator(terms, *id) == Some(wanted));
        &all[start..start + count]
    }
}

/// The operator that a term applies.
fn operator(terms: &Terms, id: TermId) -> Option<usize> {
    terms.get(id).instance.map(|i| terms.types.instance(i).operator)
}

/// Distinct operands.
fn operands(term: &Term) -> impl Iterator<Item = ValueId> {
    let all = term.operands.as_slice();
    all.iter().enumerate().filter(|(at, v)| !all[..*at].contains(v)).map(|(_, v)| *v)
}
