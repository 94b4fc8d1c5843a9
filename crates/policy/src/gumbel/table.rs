//! `Table`: what simulations have found out about states.
//!
//! Many ways lead to one state, so states form a graph, not a tree: statistics belong to a state,
//! and visits to a move from it (Monte Carlo graph search: Czech, Korus and Kersting, ICAPS 2021;
//! that a state's mean is computed anew from the states after it is KataGo's way, which needs no
//! correction where ways meet).

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scale;
use crate::teacher::STEP;

/// Where a move leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It was never taken.
    Untried,
    To(u32),
    /// Where another move leads, or where no search goes.
    Closed,
}

/// A move from a state.
struct Edge {
    logit: f64,
    way: Way,
    visits: u32,
}

/// What is known of a state. Worth is what the logarithm of the first state's cost falls by; each
/// step takes [`STEP`] from it.
struct Node {
    edges: Vec<Edge>,
    /// 1, and those of its moves.
    visits: u32,
    /// What it saves itself.
    saved: f64,
    /// The same, with what its value says.
    own: f64,
    /// The mean over its visits.
    mean: f64,
    /// The most that it and what was found below it save.
    best: f64,
}

/// The states that were visited, by the numbers that the search gives them.
pub(crate) struct Table {
    scale: Scale,
    nodes: Vec<Node>,
    by_key: FxHashMap<u128, u32>,
    /// The least and the most worth so far.
    seen: (f64, f64),
    /// Moves that were never taken.
    untried: usize,
}

impl Table {
    pub(crate) fn new(scale: Scale) -> Table {
        Table { scale, nodes: Vec::new(), by_key: FxHashMap::default(), seen: (f64::INFINITY, f64::NEG_INFINITY), untried: 0 }
    }

    /// Enters the next state: what it saves, what may still be saved, and how promising its moves
    /// are.
    pub(crate) fn add(&mut self, key: u128, (saved, value): (f64, f64), logits: Vec<f64>) {
        self.by_key.insert(key, self.nodes.len() as u32);
        self.untried += logits.len();
        let edges = logits.into_iter().map(|logit| Edge { logit, way: Way::Untried, visits: 0 }).collect();
        let own = saved + value;
        self.nodes.push(Node { edges, visits: 1, saved, own, mean: own, best: saved });
        self.note(self.nodes.len() as u32 - 1);
    }

    /// The state with a key.
    pub(crate) fn find(&self, key: u128) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Whether no move is left that was never taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.untried == 0
    }

    /// The number of a state's visits.
    pub(crate) fn visits(&self, at: u32) -> u32 {
        self.nodes[at as usize].visits
    }

    /// Each state's visits, and those of all its moves.
    pub(crate) fn all_visits(&self) -> Vec<(u32, u32)> {
        self.nodes.iter().map(|node| (node.visits, node.edges.iter().map(|edge| edge.visits).sum())).collect()
    }

    /// What a state saves, and what may still be saved there.
    pub(crate) fn promise(&self, at: u32) -> f64 {
        self.nodes[at as usize].own
    }

    /// Where a move leads.
    pub(crate) fn way(&self, at: u32, edge: usize) -> Way {
        self.nodes[at as usize].edges[edge].way
    }

    /// How promising a move is.
    pub(crate) fn logit(&self, at: u32, edge: usize) -> f64 {
        self.nodes[at as usize].edges[edge].logit
    }

    /// A move that was never taken leads to this state. If another one does as well, the two count
    /// as one; whether they do not.
    pub(crate) fn link(&mut self, at: u32, edge: usize, child: u32) -> bool {
        let edges = &mut self.nodes[at as usize].edges;
        let twin = edges.iter().position(|other| other.way == Way::To(child));
        self.untried -= 1;
        let Some(twin) = twin.filter(|_| child != at) else {
            edges[edge].way = if child == at { Way::Closed } else { Way::To(child) };
            return child != at;
        };
        let (a, b) = (edges[twin].logit, edges[edge].logit);
        edges[twin].logit = a.max(b) + (-(a - b).abs()).exp().ln_1p();
        edges[edge].way = Way::Closed;
        false
    }

    /// A move that was never taken leads nowhere.
    pub(crate) fn close(&mut self, at: u32, edge: usize) {
        self.untried -= 1;
        self.nodes[at as usize].edges[edge].way = Way::Closed;
    }

    /// Counts a visit of a move; those that it had before.
    pub(crate) fn visit(&mut self, at: u32, edge: usize) -> u32 {
        let node = &mut self.nodes[at as usize];
        node.visits += 1;
        let visits = &mut node.edges[edge].visits;
        *visits += 1;
        *visits - 1
    }

    /// Takes over what was found out about the states after one.
    pub(crate) fn refresh(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let (mut sum, mut best) = (node.own, node.saved);
        for edge in &node.edges {
            let Way::To(child) = edge.way else { continue };
            let child = &self.nodes[child as usize];
            sum += f64::from(edge.visits) * (child.mean - f64::from(STEP));
            best = best.max(child.best - f64::from(STEP));
        }
        let node = &mut self.nodes[at as usize];
        node.mean = sum / f64::from(node.visits);
        node.best = best;
        self.note(at);
    }

    fn note(&mut self, at: u32) {
        let worth = self.worth(at);
        self.seen = (self.seen.0.min(worth), self.seen.1.max(worth));
    }

    /// Nobody answers a search, so the best way counts, and not only the mean of all.
    fn worth(&self, at: u32) -> f64 {
        let node = &self.nodes[at as usize];
        self.scale.best * node.best + (1.0 - self.scale.best) * node.mean
    }

    /// The moves of a state that lead somewhere, and not to one of these states.
    pub(crate) fn open(&self, at: u32, closed: &FxHashSet<u32>) -> Vec<usize> {
        let is_open = |way: Way| match way {
            Way::Untried => true,
            Way::To(child) => !closed.contains(&child),
            Way::Closed => false,
        };
        let edges = self.nodes[at as usize].edges.iter().enumerate();
        edges.filter(|(_, edge)| is_open(edge.way)).map(|(place, _)| place).collect()
    }

    /// The moves of a state that were never taken.
    pub(crate) fn untried(&self, at: u32) -> Vec<usize> {
        let edges = self.nodes[at as usize].edges.iter().enumerate();
        edges.filter(|(_, edge)| edge.way == Way::Untried).map(|(place, _)| place).collect()
    }

    /// What each of these moves is worth, as an addition to its logit: `sigma` of the completed
    /// values (Danihelka et al., ICLR 2022, equations 8, 10 and 33). A move that was never taken is
    /// worth what the state is worth by its own value and by the moves that were.
    pub(crate) fn bonuses(&self, at: u32, edges: &[usize]) -> Vec<f64> {
        let node = &self.nodes[at as usize];
        let of = |place: &usize| &node.edges[*place];
        let value = |edge: &Edge| match edge.way {
            Way::To(child) if edge.visits > 0 => Some(self.worth(child) - f64::from(STEP)),
            _ => None,
        };
        let highest = edges.iter().map(|place| of(place).logit).fold(f64::NEG_INFINITY, f64::max);
        let (mut visits, mut most, mut likely, mut sum) = (0, 0, 0.0, 0.0);
        for edge in edges.iter().map(of) {
            let Some(value) = value(edge) else { continue };
            // However unlikely, it counts: a sum of zeros has no mean.
            let share = (edge.logit - highest).exp().max(f64::MIN_POSITIVE);
            visits += edge.visits;
            most = most.max(edge.visits);
            likely += share;
            sum += share * value;
        }
        let mixed = if visits == 0 { node.own } else { (node.own + f64::from(visits) * sum / likely) / f64::from(1 + visits) };
        let (low, high) = self.seen;
        let scaled = |value: f64| if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        let scale = (self.scale.visits + f64::from(most)) * self.scale.values;
        edges.iter().map(|place| scale * scaled(value(of(place)).unwrap_or(mixed))).collect()
    }

    /// The move that makes visits most like the improved policy, of those that do not lead to one
    /// of these states (equation 14).
    pub(crate) fn select(&self, at: u32, closed: &FxHashSet<u32>) -> Option<usize> {
        let edges = self.open(at, closed);
        let node = &self.nodes[at as usize];
        let improved: Vec<f64> =
            edges.iter().zip(self.bonuses(at, &edges)).map(|(place, bonus)| node.edges[*place].logit + bonus).collect();
        let highest = improved.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = improved.iter().map(|one| (one - highest).exp()).sum();
        let lacks =
            |(place, one): (usize, &f64)| (one - highest).exp() / sum - f64::from(node.edges[place].visits) / f64::from(node.visits);
        let lacking = edges.into_iter().zip(&improved).map(|one| (one.0, lacks(one)));
        // Of equal ones, the first.
        lacking.reduce(|best, one| if one.1 > best.1 { one } else { best }).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state with two moves, of which the second leads to a cheaper state.
    fn table() -> Table {
        let mut table = Table::new(Scale::default());
        table.add(0, (0.0, 0.0), vec![0.0, 0.0]);
        table.add(1, (-0.1, 0.0), Vec::new());
        table.add(2, (0.5, 0.0), Vec::new());
        for (edge, child) in [(0, 1), (1, 2)] {
            assert!(table.link(0, edge, child));
            assert_eq!(table.visit(0, edge), 0);
        }
        table.refresh(0);
        table
    }

    #[test]
    fn the_better_move_is_selected_and_visits_follow_the_policy() {
        let mut table = table();
        let closed = FxHashSet::default();
        for _ in 0..10 {
            let edge = table.select(0, &closed).expect("two moves");
            table.visit(0, edge);
            table.refresh(0);
        }
        assert_eq!(table.all_visits()[0], (13, 12));
        assert_eq!(table.nodes[0].edges.iter().map(|edge| edge.visits).collect::<Vec<_>>(), [1, 11]);
        assert_eq!(table.select(0, &FxHashSet::from_iter([2])), Some(0));
        assert_eq!(table.select(0, &FxHashSet::from_iter([1, 2])), None);
    }

    #[test]
    fn the_best_way_counts_beside_the_mean() {
        let table = table();
        let step = f64::from(STEP);
        assert!((table.nodes[0].best - (0.5 - step)).abs() < 1e-9);
        assert!((table.nodes[0].mean - (0.4 - 2.0 * step) / 3.0).abs() < 1e-9);
        let bonuses = table.bonuses(0, &[0, 1]);
        assert!(bonuses[1] > bonuses[0] + 40.0, "{bonuses:?}");
    }

    #[test]
    fn two_moves_to_one_state_count_as_one() {
        let mut table = table();
        table.add(3, (0.0, 0.0), vec![1.0, 1.0]);
        assert!(table.link(3, 0, 2) && !table.link(3, 1, 2));
        assert!((table.logit(3, 0) - (1.0 + 2f64.ln())).abs() < 1e-9);
        assert_eq!(table.open(3, &FxHashSet::default()), [0]);
        assert!(table.is_exhausted());
    }
}
