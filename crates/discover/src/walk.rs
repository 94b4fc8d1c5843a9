//! All graphs, each once.
//!
//! A graph is a closed set of terms. It is built by adding terms in ascending order, so it occurs
//! once, whatever orders its operators could have; the terms that may extend a set are those whose
//! other parts are all in it, looked up by these parts.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::set::{MOST_OPERATORS, TermId, TermSet};
use crate::terms::{Terms, ValueId};
use crate::values::Values;

/// Maximum number of variables returned by a graph without operators.
const MOST_PASSED: usize = 2;

/// The number of graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Graphs.
    pub graphs: u64,
    /// Orders in which their operators can be written, summed over all graphs: what an enumeration
    /// without a canonical order would visit.
    pub orders: u64,
}

/// The graphs over a table of terms.
pub struct Walk<'a> {
    terms: &'a Terms,
    /// Terms by their other parts, ascending.
    followers: FxHashMap<TermSet, Vec<TermId>>,
    size: usize,
    orders: Orders,
}

/// A graph under construction.
#[derive(Clone)]
struct Partial {
    graph: TermSet,
    /// Results that no term reads yet.
    open: SmallVec<[ValueId; 8]>,
    sum: u64,
}

impl<'a> Walk<'a> {
    /// Graphs of up to `size` operators.
    pub fn new(terms: &'a Terms, size: usize) -> Walk<'a> {
        let size = size.min(terms.size());
        let mut followers: FxHashMap<TermSet, Vec<TermId>> = FxHashMap::default();
        for made_of in 1..=size {
            for id in terms.of_size(made_of) {
                followers.entry(terms.get(id).closure.without(id)).or_default().push(id);
            }
        }
        Walk { terms, followers, size, orders: Orders::new(size) }
    }

    fn following(&self, parts: &TermSet) -> &[TermId] {
        self.followers.get(parts).map_or(&[], Vec::as_slice)
    }

    /// Work is divided into this many items.
    pub fn items(&self) -> usize {
        1 + self.following(&TermSet::EMPTY).len()
    }

    /// How many graphs with operators an item has.
    pub fn count(&self, item: usize) -> Size {
        let mut size = Size::default();
        let Some(first) = item.checked_sub(1).and_then(|at| self.following(&TermSet::EMPTY).get(at)) else { return size };
        let Some(graph) = TermSet::EMPTY.with(*first) else { return size };
        size.graphs += 1;
        size.orders += 1;
        self.count_from(&graph, 0, &mut size);
        size
    }

    /// `below`: for each term of the graph, which earlier ones it is built from, packed as
    /// [`Orders`] expects.
    fn count_from(&self, graph: &TermSet, below: usize, size: &mut Size) {
        let n = graph.len();
        if n == self.size {
            return;
        }
        for mask in 0..1usize << n {
            let list = self.following(&graph.masked(mask));
            let list = &list[list.partition_point(|id| Some(*id) <= graph.last())..];
            let below = below | mask << Orders::offset(n);
            size.graphs += list.len() as u64;
            size.orders += list.len() as u64 * self.orders.of(n + 1, below);
            if n + 1 < self.size {
                for wider in list.iter().filter_map(|id| graph.with(*id)) {
                    self.count_from(&wider, below, size);
                }
            }
        }
    }

    /// Calls `sink` with the fingerprint (first assignment) and the terms of every graph of an
    /// item. Item 0 holds the graphs that only return variables.
    pub fn visit(&self, values: &Values, item: usize, sink: &mut impl FnMut(u64, &TermSet)) {
        let Some(at) = item.checked_sub(1) else { return self.passed(values, sink) };
        let Some(first) = self.following(&TermSet::EMPTY).get(at) else { return };
        let start = Partial { graph: TermSet::EMPTY, open: SmallVec::new(), sum: 0 };
        if let Some(partial) = self.with(values, &start, *first) {
            sink(partial.sum, &partial.graph);
            self.visit_from(values, &partial, sink);
        }
    }

    fn passed(&self, values: &Values, sink: &mut impl FnMut(u64, &TermSet)) {
        let mut graphs = vec![TermSet::EMPTY];
        for _ in 0..MOST_PASSED {
            let longer = graphs.iter().flat_map(|graph| {
                let after = graph.last().map_or(0, |last| last + 1);
                (after..self.terms.variables() as TermId).filter_map(|id| graph.with(id))
            });
            graphs = longer.collect();
            for graph in &graphs {
                sink(values.graph_first(self.terms, graph), graph);
            }
        }
    }

    fn visit_from(&self, values: &Values, partial: &Partial, sink: &mut impl FnMut(u64, &TermSet)) {
        let n = partial.graph.len();
        if n == self.size {
            return;
        }
        for mask in 0..1usize << n {
            let list = self.following(&partial.graph.masked(mask));
            for id in &list[list.partition_point(|id| Some(*id) <= partial.graph.last())..] {
                if n + 1 == self.size {
                    let Some(graph) = partial.graph.with(*id) else { continue };
                    sink(self.sum(values, partial, *id), &graph);
                } else if let Some(wider) = self.with(values, partial, *id) {
                    sink(wider.sum, &wider.graph);
                    self.visit_from(values, &wider, sink);
                }
            }
        }
    }

    /// The fingerprint with one more term.
    fn sum(&self, values: &Values, partial: &Partial, id: TermId) -> u64 {
        let term = self.terms.get(id);
        let mut sum = term.values().fold(partial.sum, |sum, v| sum.wrapping_add(values.first(v)));
        for (at, v) in term.operands.iter().enumerate() {
            if !self.terms.is_variable(*v) && !term.operands[..at].contains(v) && partial.open.contains(v) {
                sum = sum.wrapping_sub(values.first(*v));
            }
        }
        sum
    }

    fn with(&self, values: &Values, partial: &Partial, id: TermId) -> Option<Partial> {
        let term = self.terms.get(id);
        let mut wider = Partial { graph: partial.graph.with(id)?, open: partial.open.clone(), sum: self.sum(values, partial, id) };
        wider.open.retain(|v| !term.operands.contains(v));
        wider.open.extend(term.values());
        Some(wider)
    }
}

/// Numbers of linear extensions of partial orders of a few elements.
struct Orders {
    tables: Vec<Vec<u64>>,
}

impl Orders {
    fn new(size: usize) -> Orders {
        let size = size.min(MOST_OPERATORS);
        let table = |n: usize| (0..1usize << Orders::offset(n)).map(|below| extensions(n, below)).collect();
        Orders { tables: (0..=size).map(table).collect() }
    }

    /// Where the bits of element `n` start: it has one for each earlier element.
    fn offset(n: usize) -> usize {
        n * n.saturating_sub(1) / 2
    }

    /// The number of orders of `n` elements in which each comes after those set in its bits.
    fn of(&self, n: usize, below: usize) -> u64 {
        self.tables[n][below]
    }
}

fn extensions(n: usize, below: usize) -> u64 {
    let mut ways = vec![0u64; 1 << n];
    ways[0] = 1;
    for done in 0..1usize << n {
        for next in (0..n).filter(|next| done >> next & 1 == 0) {
            let before = below >> Orders::offset(next) & ((1 << next) - 1);
            if before & done == before {
                ways[done | 1 << next] += ways[done];
            }
        }
    }
    ways[(1 << n) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_counted() {
        // Three incomparable ones; a chain; one below two others.
        assert_eq!(extensions(3, 0), 6);
        assert_eq!(extensions(3, 0b111), 1);
        assert_eq!(extensions(3, 0b011), 2);
        assert_eq!(Orders::new(4).of(4, 0), 24);
    }
}
