//! Monte Carlo tree search over partial operators (Syno, section 7.2).
//!
//! As published: UCB1-tuned, and children that become visible one after another as a node is
//! visited (progressive widening). Mended: rewards lie between 0 and 1, as UCB1-tuned supposes;
//! what is known of a step from elsewhere in the tree counts in the score of visible children, too
//! (GRAVE, Cazenave 2015), not only in the choice of the next hidden one; and operators with one
//! key are one operator, which is never asked about twice.

use regraft_ir::{SplitMix64, fnv1a};
use rustc_hash::FxHashMap;

use crate::coordinate::Coordinates;
use crate::explorer::{Explorer, Found};
use crate::key::Key;
use crate::sample::Sampler;
use crate::state::{State, Step};

/// What the tree remembers of a partial operator.
#[derive(Clone, Debug, Default)]
struct Node {
    visits: f64,
    /// For each child in the explorer's order.
    edges: Vec<Edge>,
    /// Children that are visible, by place.
    visible: Vec<usize>,
    /// Of steps below here, by what they are: visits and rewards.
    below: FxHashMap<u64, (f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    visits: f64,
    sum: f64,
    squares: f64,
    /// Nothing new lies behind it.
    exhausted: bool,
}

/// A search tree.
pub struct Tree {
    nodes: FxHashMap<State, Node>,
    rewards: FxHashMap<Key, f64>,
    random: SplitMix64,
}

/// An operator that is to be judged, and how the tree came to it.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The operator.
    pub found: Found,
    path: Vec<(State, usize)>,
    steps: Vec<u64>,
}

/// How much is explored.
const EXPLORATION: f64 = 1.4;
/// Visible children of a node: its visits to this power.
const WIDENING: f64 = 0.8;
/// Visits after which a node's own knowledge of steps is used, rather than that of a node above it.
const REFERENCE: f64 = 8.0;
/// How fast what is known from elsewhere gives way to a child's own record.
const BIAS: f64 = 0.02;
/// Walks from a leaf before it counts as exhausted.
const ROLLOUTS: usize = 8;
/// Descents that may fail before the search ends.
const FAILURES: usize = 200;

impl Tree {
    /// A tree that was never searched. The same seed and rewards give the same proposals.
    pub fn new(seed: u64) -> Tree {
        Tree { nodes: FxHashMap::default(), rewards: FxHashMap::default(), random: SplitMix64(seed) }
    }

    /// An operator to judge next; `None` if no new one is found. What is known already is rewarded
    /// on the way.
    pub fn propose(&mut self, explorer: &mut Explorer<'_>, sampler: &mut Sampler) -> Option<Proposal> {
        for _ in 0..FAILURES {
            let mut state = explorer.start();
            let (mut path, mut steps): (Vec<(State, usize)>, Vec<u64>) = (vec![], vec![]);
            let depth = explorer.spec().limits.depth;
            let last = loop {
                if path.len() + 1 >= depth {
                    break state;
                }
                let children = explorer.children(&state);
                let fresh = !self.nodes.contains_key(&state);
                let node = self.nodes.entry(state.clone()).or_default();
                node.edges.resize(children.len(), Edge::default());
                let left = depth - 2 - path.len();
                for (edge, child) in node.edges.iter_mut().zip(children.iter()) {
                    edge.exhausted |= usize::from(child.distance) > left;
                }
                let complete = !crate::Operator::of(&state, &explorer.coordinates).is_empty();
                if fresh || complete && self.random.below(2) == 0 {
                    break state;
                }
                let Some(chosen) =
                    self.choose(&state, &path, &children.iter().map(|child| kind(&child.step, &explorer.coordinates)).collect::<Vec<_>>())
                else {
                    break state;
                };
                steps.push(kind(&children[chosen].step, &explorer.coordinates));
                path.push((state, chosen));
                state = children[chosen].state.clone();
            };
            let made = path.len();
            let mut found = None;
            for _ in 0..ROLLOUTS {
                let Some(end) = sampler.rollout(explorer, last.clone(), made) else { continue };
                let Some(one) = explorer.finals(&end).first().cloned() else { continue };
                match self.rewards.get(&one.key).copied() {
                    Some(reward) => self.learn(&path, &steps, reward),
                    None => {
                        found = Some(one);
                        break;
                    }
                }
            }
            match found {
                Some(found) => return Some(Proposal { found, path, steps }),
                // Above, nothing is known to be exhausted yet.
                None => {
                    if let Some((state, chosen)) = path.last()
                        && let Some(node) = self.nodes.get_mut(state)
                    {
                        node.edges[*chosen].exhausted = true;
                    }
                }
            }
        }
        None
    }

    /// Says how good a proposal is, from 0 to 1.
    pub fn reward(&mut self, proposal: &Proposal, reward: f64) {
        let reward = reward.clamp(0.0, 1.0);
        self.rewards.insert(proposal.found.key, reward);
        self.learn(&proposal.path, &proposal.steps, reward);
    }

    fn learn(&mut self, path: &[(State, usize)], steps: &[u64], reward: f64) {
        for (at, (state, chosen)) in path.iter().enumerate() {
            let Some(node) = self.nodes.get_mut(state) else { continue };
            node.visits += 1.0;
            let edge = &mut node.edges[*chosen];
            edge.visits += 1.0;
            edge.sum += reward;
            edge.squares += reward * reward;
            for step in &steps[at..] {
                let (visits, sum) = node.below.entry(*step).or_default();
                *visits += 1.0;
                *sum += reward;
            }
        }
    }

    /// The child to descend to; `None` if all are exhausted.
    fn choose(&mut self, state: &State, path: &[(State, usize)], kinds: &[u64]) -> Option<usize> {
        // Knowledge of steps comes from the nearest node that was visited often enough.
        let known = std::iter::once(state).chain(path.iter().rev().map(|(state, _)| state));
        let reference =
            known.filter_map(|state| self.nodes.get(state)).find(|node| node.visits >= REFERENCE).map(|node| node.below.clone());
        let elsewhere =
            |place: usize| reference.as_ref().and_then(|below| below.get(&kinds[place])).map(|(visits, sum)| (*visits, sum / visits));
        let node = self.nodes.get_mut(state)?;
        let open: Vec<usize> = (0..node.edges.len()).filter(|place| !node.edges[*place].exhausted).collect();
        let hidden: Vec<usize> = open.iter().copied().filter(|place| !node.visible.contains(place)).collect();
        node.visible.retain(|place| open.contains(place));
        let allowed = (node.visits + 1.0).powf(WIDENING).ceil() as usize;
        if node.visible.len() < allowed && !hidden.is_empty() {
            let noise: Vec<f64> = hidden.iter().map(|_| self.random.unit()).collect();
            let score = |k: usize| 0.7 * elsewhere(hidden[k]).map_or(0.5, |(_, mean)| mean) + 0.3 * noise[k];
            let next = (0..hidden.len()).max_by(|a, b| score(*a).total_cmp(&score(*b)))?;
            node.visible.push(hidden[next]);
            return Some(hidden[next]);
        }
        let score = |place: usize| {
            let edge = &node.edges[place];
            if edge.visits == 0.0 {
                return f64::INFINITY;
            }
            let mean = edge.sum / edge.visits;
            let blended = elsewhere(place).map_or(mean, |(visits, other)| {
                let weight = visits / (visits + edge.visits + BIAS * visits * edge.visits);
                (1.0 - weight) * mean + weight * other
            });
            let ratio = node.visits.max(1.0).ln() / edge.visits;
            let spread = edge.squares / edge.visits - mean * mean + (2.0 * ratio).sqrt();
            blended + EXPLORATION * (ratio * spread.clamp(0.0, 0.25)).sqrt()
        };
        node.visible.iter().copied().max_by(|a, b| score(*a).total_cmp(&score(*b)))
    }
}

/// What a step is, wherever it is made: its kind, and the sizes that it works on.
fn kind(step: &Step, coordinates: &Coordinates<'_>) -> u64 {
    let size = |coord: &crate::coordinate::Coord| format!("{:?}", coordinates.size(*coord));
    let text = match step {
        Step::Reduce(size) => format!("reduce {size:?}"),
        Step::Expand(a) => format!("expand {}", size(a)),
        Step::Shift(a) => format!("shift {}", size(a)),
        Step::Stride(a, by) => format!("stride {} {by:?}", size(a)),
        Step::Split(a, b) => format!("split {} {}", size(a), size(b)),
        Step::Unfold(a, b) => format!("unfold {} {}", size(a), size(b)),
        Step::Merge(a, block) => format!("merge {} {block:?}", size(a)),
        Step::Contract { shared, added } => {
            let list = |coords: &crate::state::Coords| coords.iter().map(size).collect::<Vec<_>>().join(" ");
            format!("contract {} + {}", list(shared), list(added))
        }
    };
    fnv1a(text.bytes())
}
