//! Small sorted sets of terms: the generator's graphs.

/// Maximum number of operators of a graph.
pub const MOST_OPERATORS: usize = 6;

/// A term's index in the table of terms.
pub type TermId = u32;

/// Marks an unused slot; larger than every id, so that sets compare like lists.
const NONE: TermId = TermId::MAX;

/// Up to [`MOST_OPERATORS`] terms, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermSet {
    ids: [TermId; MOST_OPERATORS],
    len: u8,
}

impl TermSet {
    /// No terms.
    pub const EMPTY: TermSet = TermSet { ids: [NONE; MOST_OPERATORS], len: 0 };

    /// The set of these terms; `None` if there are too many.
    pub fn of(ids: &[TermId]) -> Option<TermSet> {
        ids.iter().try_fold(TermSet::EMPTY, |set, id| set.with(*id))
    }

    /// The terms, ascending.
    pub fn as_slice(&self) -> &[TermId] {
        &self.ids[..usize::from(self.len)]
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The largest term.
    pub fn last(&self) -> Option<TermId> {
        self.as_slice().last().copied()
    }

    /// Whether it contains the term.
    pub fn contains(&self, id: TermId) -> bool {
        self.as_slice().contains(&id)
    }

    /// Whether the other set contains all of these.
    pub fn is_subset(&self, of: &TermSet) -> bool {
        self.as_slice().iter().all(|id| of.contains(*id))
    }

    /// The set with one more term; unchanged if it contains it; `None` if it is full.
    pub fn with(mut self, id: TermId) -> Option<TermSet> {
        let n = self.len();
        let at = self.as_slice().partition_point(|have| *have < id);
        if self.ids[..n].get(at) == Some(&id) {
            return Some(self);
        }
        if n == MOST_OPERATORS {
            return None;
        }
        self.ids.copy_within(at..n, at + 1);
        self.ids[at] = id;
        self.len += 1;
        Some(self)
    }

    /// The set without a term.
    pub fn without(&self, id: TermId) -> TermSet {
        let mut rest = TermSet::EMPTY;
        for have in self.as_slice().iter().filter(|have| **have != id) {
            rest.ids[rest.len()] = *have;
            rest.len += 1;
        }
        rest
    }

    /// The terms of both; `None` if there are too many.
    pub fn union(self, other: &TermSet) -> Option<TermSet> {
        other.as_slice().iter().try_fold(self, |set, id| set.with(*id))
    }

    /// The terms whose bits are set in `mask`, bit 0 being the smallest term.
    pub fn masked(&self, mask: usize) -> TermSet {
        let mut part = TermSet::EMPTY;
        for (at, id) in self.as_slice().iter().enumerate() {
            if mask >> at & 1 == 1 {
                part.ids[part.len()] = *id;
                part.len += 1;
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_bounded() {
        let set = TermSet::of(&[5, 2, 9, 2]).unwrap();
        assert_eq!(set.as_slice(), [2, 5, 9]);
        assert_eq!((set.last(), set.contains(5), set.contains(4)), (Some(9), true, false));
        assert_eq!(set.without(5).as_slice(), [2, 9]);
        assert_eq!(set.masked(0b101).as_slice(), [2, 9]);
        assert_eq!(set.union(&TermSet::of(&[1, 9]).unwrap()).unwrap().as_slice(), [1, 2, 5, 9]);
        assert!(set.masked(0b11).is_subset(&set) && !set.is_subset(&set.masked(0b11)));
        assert_eq!(TermSet::of(&[1, 2, 3, 4, 5, 6, 7]), None);
        assert!(TermSet::of(&[1, 2]) < TermSet::of(&[1, 3]));
    }
}
