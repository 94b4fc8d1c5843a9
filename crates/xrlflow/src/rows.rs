//! `Rows`: nodes of many graphs, each distinct one once.
//!
//! The candidates of a state differ from it in a few nodes, and networks repeat blocks. What the
//! network computes for a node in a round follows from what it computed for the node itself and for
//! those that it reads in the round before. So nodes for which all that is equal are one row, in
//! whatever graph, and are computed once: the same numbers as of the disjoint union of all graphs
//! (X-RLflow's "meta-graph", section 3.3), for a small part of the work.

use std::sync::Arc;

use regraft_ir::{Graph, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::encoded::EDGE;

/// Rounds of attention.
pub const ROUNDS: usize = 5;

/// What is known of a node before the first round: its type, and the sums of the shapes on the
/// edges that leave and enter it, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct First {
    pub(crate) kind: u8,
    pub(crate) out: [u32; EDGE],
    pub(crate) into: [u32; EDGE],
}

/// A row of a round: rows of the round before, the node itself first, then those that it reads,
/// sorted; the node reads itself, too.
pub(crate) type Senders = Arc<[u32]>;

/// Distinct nodes, by round.
#[derive(Debug, Default)]
pub struct Rows {
    pub(crate) first: Vec<First>,
    first_of: FxHashMap<First, u32>,
    pub(crate) rounds: [Vec<Senders>; ROUNDS],
    round_of: [FxHashMap<Senders, u32>; ROUNDS],
}

/// A graph as rows of the last round, and how many of its nodes each is; or what it has more than
/// another.
pub type Pool = Arc<[(u32, i32)]>;

/// What a node hears from in a round: rows of the round before.
pub(crate) fn senders(graph: &Graph, id: NodeId, row: impl Fn(NodeId) -> u32) -> SmallVec<[u32; 8]> {
    let itself = row(id);
    let mut senders = SmallVec::from_slice(&[itself, itself]);
    senders.extend(graph.node(id).inputs.iter().map(|value| row(value.node)));
    senders[1..].sort_unstable();
    senders
}

impl Rows {
    /// The row of a node before the first round.
    pub(crate) fn first(&mut self, first: First) -> u32 {
        *self.first_of.entry(first).or_insert_with(|| {
            self.first.push(first);
            self.first.len() as u32 - 1
        })
    }

    /// The row of a node after a round.
    pub(crate) fn next(&mut self, round: usize, senders: SmallVec<[u32; 8]>) -> u32 {
        if let Some(row) = self.round_of[round].get(senders.as_slice()) {
            return *row;
        }
        let (rows, senders) = (&mut self.rounds[round], Senders::from(senders.as_slice()));
        rows.push(senders.clone());
        let row = rows.len() as u32 - 1;
        self.round_of[round].insert(senders, row);
        row
    }

    /// What has to be computed for some graphs, and nothing else.
    pub fn union<'p>(&self, graphs: impl IntoIterator<Item = &'p [(u32, i32)]>) -> Union {
        let mut wanted = Wanted::default();
        let graphs: Vec<Vec<(u32, i32)>> =
            graphs.into_iter().map(|graph| graph.iter().map(|(row, count)| (wanted.place(*row), *count)).collect()).collect();
        let mut rounds = Vec::with_capacity(ROUNDS);
        for rows in self.rounds.iter().rev() {
            let mut before = Wanted::default();
            let mut round = Round::default();
            for row in &wanted.rows {
                let senders = &rows[*row as usize];
                round.itself.push(before.place(senders[0]));
                for sender in &senders[1..] {
                    round.senders.push(before.place(*sender));
                    round.receivers.push(round.itself.len() as u32 - 1);
                }
            }
            rounds.push(round);
            wanted = before;
        }
        rounds.reverse();
        let numbers = |bits: [u32; EDGE]| bits.map(f32::from_bits);
        let first = wanted.rows.iter().map(|row| self.first[*row as usize]);
        let first = first.map(|First { kind, out, into }| (kind, numbers(out), numbers(into))).collect();
        Union { first, rounds, graphs }
    }
}

/// Rows in the order in which they were asked for.
#[derive(Default)]
struct Wanted {
    rows: Vec<u32>,
    places: FxHashMap<u32, u32>,
}

impl Wanted {
    fn place(&mut self, row: u32) -> u32 {
        let next = self.rows.len() as u32;
        let place = *self.places.entry(row).or_insert(next);
        if place == next {
            self.rows.push(row);
        }
        place
    }
}

/// Some graphs as rows that refer to each other by their places.
#[derive(Debug, Default)]
pub struct Union {
    /// Type, and sums of the shapes on edges that leave and enter.
    pub first: Vec<(u8, [f32; EDGE], [f32; EDGE])>,
    /// Each round's rows.
    pub rounds: Vec<Round>,
    /// Each graph's rows of the last round, and how many nodes each is.
    pub graphs: Vec<Vec<(u32, i32)>>,
}

/// A round of attention.
#[derive(Debug, Default)]
pub struct Round {
    /// The place of each node itself, among the rows before.
    pub itself: Vec<u32>,
    /// The place of each sender, among the rows before...
    pub senders: Vec<u32>,
    /// ...and that of its receiver, among these rows; in order.
    pub receivers: Vec<u32>,
}
