//! Bidirectional search for a derivation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use regraft_ir::{Graph, Op};
use rustc_hash::FxHashMap;

use crate::derivation::{Derivation, Link};
use crate::laws::Laws;
use crate::moves::{Move, moves, normalize};

/// Limits of a search. Work is counted, so that a search ends the same way everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of graphs to rewrite, from both ends together, in each of three searches.
    pub graphs: usize,
    /// Nodes that a graph on the way may have beyond those of the larger end.
    pub growth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { graphs: 600, growth: 8 }
    }
}

/// Why there is no derivation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Open {
    /// The graphs do not have the same inputs and numbers of outputs.
    #[error("the two sides have different inputs or outputs")]
    Interface,
    /// No chain of steps exists within the size limits.
    #[error("all {0} graphs that the laws lead to were seen")]
    Exhausted(usize),
    /// The work budget is spent.
    #[error("no chain of steps was found among {0} graphs")]
    Spent(usize),
}

/// A graph that was reached, and its predecessor.
struct State {
    graph: Graph,
    key: u128,
    /// Steps from the end of the search it was reached from.
    depth: usize,
    parent: Option<(usize, Arc<str>, bool)>,
}

/// One end of the search.
#[derive(Default)]
struct End {
    states: Vec<State>,
    places: FxHashMap<u128, usize>,
    open: BinaryHeap<Reverse<(usize, usize)>>,
}

impl End {
    fn new(graph: &Graph) -> End {
        let mut end = End::default();
        let mut graph = graph.clone();
        let key = normalize(&mut graph);
        end.admit(State { graph, key, depth: 0, parent: None });
        end
    }

    fn admit(&mut self, state: State) {
        let at = self.states.len();
        self.places.insert(state.key, at);
        // Short paths over small graphs first.
        self.open.push(Reverse((state.graph.len() + state.depth, at)));
        self.states.push(state);
    }

    /// The path from the end to a state: the states on it, and the links between them.
    fn way(&self, to: usize) -> (Vec<usize>, Vec<(Arc<str>, bool)>) {
        let (mut states, mut links) = (vec![to], Vec::new());
        let mut at = to;
        while let Some((parent, law, reversed)) = &self.states[at].parent {
            links.push((law.clone(), *reversed));
            states.push(*parent);
            at = *parent;
        }
        states.reverse();
        links.reverse();
        (states, links)
    }
}

/// A chain of steps from `before` to `after`, each applying one of the laws in one of its
/// directions.
///
/// Both must have the same inputs, by position, name and type. Values of a graph that are computed
/// alike are identified. Laws about operators not in the graphs are left out at first.
/// Deterministic. The steps are not proved here: see [`Derivation::replay`].
///
/// # Errors
/// No such chain was found.
pub fn derive(before: &Graph, after: &Graph, laws: &Laws, limits: &Limits) -> Result<Derivation, Open> {
    if interface(before) != interface(after) {
        return Err(Open::Interface);
    }
    // Rewriting a shared value for one reader only is seldom needed, and there are many ways to do
    // it; the same goes for other operators.
    let near = laws.about(&[before, after], false);
    meet(before, after, &near, false, limits)
        .or_else(|_| meet(before, after, &near, true, limits))
        .or_else(|_| meet(before, after, &laws.about(&[before, after], true), true, limits))
}

/// Like [`derive`], with all laws at every step: there are more paths, so one search explores less
/// of each.
///
/// # Errors
/// No chain was found.
pub fn derive_by_all(before: &Graph, after: &Graph, laws: &Laws, limits: &Limits) -> Result<Derivation, Open> {
    if interface(before) != interface(after) {
        return Err(Open::Interface);
    }
    meet(before, after, laws, true, limits)
}

fn meet(before: &Graph, after: &Graph, laws: &Laws, copies: bool, limits: &Limits) -> Result<Derivation, Open> {
    let mut ends = [End::new(before), End::new(after)];
    let most = ends.iter().map(|end| end.states[0].graph.len()).max().unwrap_or(0) + limits.growth;
    if ends[0].states[0].key == ends[1].states[0].key {
        return Ok(chain(&ends, [0, 0]));
    }
    for work in 0..limits.graphs {
        let sizes = ends.each_ref().map(|end| if end.open.is_empty() { usize::MAX } else { end.places.len() });
        let side = usize::from(sizes[1] < sizes[0]);
        let Some(Reverse((_, at))) = ends[side].open.pop() else { return Err(Open::Exhausted(work)) };
        let (here, other) = if side == 0 {
            let [a, b] = &mut ends;
            (a, b)
        } else {
            let [a, b] = &mut ends;
            (b, a)
        };
        let State { graph, key, depth, .. } = &here.states[at];
        let (depth, places) = (*depth, &here.places);
        let found = moves(graph, *key, laws, copies, most, &mut |key| !places.contains_key(&key));
        for Move { graph, key, law, reversed } in found {
            if here.places.contains_key(&key) {
                continue;
            }
            let new = here.states.len();
            here.admit(State { graph, key, depth: depth + 1, parent: Some((at, law, reversed)) });
            if let Some(met) = other.places.get(&key).copied() {
                return Ok(chain(&ends, if side == 0 { [new, met] } else { [met, new] }));
            }
        }
    }
    Err(Open::Spent(limits.graphs))
}

/// The inputs, and the number of outputs.
fn interface(graph: &Graph) -> (Vec<&Op>, usize) {
    (graph.inputs().iter().map(|id| &graph.node(*id).op).collect(), graph.outputs().len())
}

/// The derivation through two states with the same key.
fn chain(ends: &[End; 2], meeting: [usize; 2]) -> Derivation {
    let [(first, down), (second, up)] = [0, 1].map(|side| ends[side].way(meeting[side]));
    let graph = |side: usize, at: usize| ends[side].states[at].graph.clone();
    let graphs = first.iter().map(|at| graph(0, *at)).chain(second.iter().rev().skip(1).map(|at| graph(1, *at))).collect();
    let links = down.into_iter().map(|(law, reversed)| Link { law, reversed });
    let back = up.into_iter().rev().map(|(law, reversed)| Link { law, reversed: !reversed });
    Derivation { graphs, links: links.chain(back).collect() }
}
