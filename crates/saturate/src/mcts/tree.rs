//! `Tree`: the states that were tried, and how good they were.

use std::sync::Arc;

use regraft_cost::CostModel;
use regraft_ir::{Budget, SplitMix64};
use rustc_hash::FxHashMap;

use super::rollout::{Done, Job, Simulator};
use super::state::{Action, State};
use super::{BATCH, Mcts};
use crate::extract::Alone;
use crate::grow::Growth;

/// Steps without a cheaper state before it is given up.
const BARREN: usize = 3;

/// Where an action leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Untried,
    /// A simulation is under way.
    Begun,
    To(usize),
    /// Below that branch, all was tried.
    Spent(usize),
    /// Nothing is new.
    Closed,
}

impl Way {
    /// The branch that it leads to.
    fn child(self) -> Option<usize> {
        match self {
            Way::To(child) | Way::Spent(child) => Some(child),
            _ => None,
        }
    }
}

/// A state that was tried.
struct Branch<'r> {
    state: Arc<State<'r>>,
    actions: Vec<(Action, Way)>,
    /// Simulations that went through it, those under way included, and the sum of their rewards.
    visits: f64,
    value: f64,
}

impl<'r> Branch<'r> {
    fn new(state: Arc<State<'r>>) -> Branch<'r> {
        let actions = state.actions().into_iter().map(|action| (action, Way::Untried)).collect();
        Branch { state, actions, visits: 0.0, value: 0.0 }
    }

    fn mean(&self) -> f64 {
        self.value / self.visits.max(1.0)
    }

    fn children(&self) -> impl Iterator<Item = usize> + '_ {
        self.actions.iter().filter_map(|(_, way)| way.child())
    }

    fn is_spent(&self) -> bool {
        self.actions.iter().all(|(_, way)| matches!(way, Way::Spent(_) | Way::Closed))
    }
}

/// A simulation under way: the branches that it went through, and the number of the action that it
/// tries in the last of them.
struct Begun {
    path: Vec<usize>,
    action: usize,
}

/// The tree below the current state.
pub(crate) struct Tree<'t, 'r, 'm> {
    mcts: &'t Mcts,
    branches: Vec<Branch<'r>>,
    /// Price caches, one for each thread.
    alone: Vec<Alone<'m>>,
    /// What extraction finds, by e-graph.
    costs: FxHashMap<u128, f64>,
    /// What the input costs.
    first: f64,
    /// The least and the largest reward so far.
    seen: (f64, f64),
    /// The cheapest e-graph so far.
    best: (f64, Arc<State<'r>>),
    /// Simulations so far.
    simulations: u64,
}

impl<'t, 'r, 'm> Tree<'t, 'r, 'm> {
    /// A tree of one state.
    pub(crate) fn new(mcts: &'t Mcts, mut state: State<'r>, model: &'m dyn CostModel) -> Tree<'t, 'r, 'm> {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(BATCH);
        let threads = if mcts.threads == 0 { processors() } else { mcts.threads };
        let mut alone: Vec<Alone<'m>> = (0..threads).map(|_| Alone::new(model)).collect();
        let found = state.extraction(mcts.main, &mut alone[0]);
        let first = found.map_or(f64::INFINITY, |extraction| extraction.cost);
        let state = Arc::new(state);
        let (branches, costs) = (vec![Branch::new(state.clone())], FxHashMap::default());
        Tree { mcts, branches, alone, costs, first, seen: (f64::INFINITY, f64::NEG_INFINITY), best: (first, state), simulations: 0 }
    }

    /// The cheapest state so far.
    pub(crate) fn best(&self) -> Arc<State<'r>> {
        self.best.1.clone()
    }

    /// E-graphs that were extracted from.
    pub(crate) fn visited(&self) -> u64 {
        self.costs.len() as u64
    }

    /// Takes step after step, each after simulations of what it leads to: the last state, and
    /// whether the budget was enough.
    pub(crate) fn grow(&mut self, budget: &mut dyn Budget, observe: &mut dyn FnMut(&Growth<'_>)) -> (Arc<State<'r>>, bool) {
        let mut barren = 0;
        observe(&self.branches[0].state.growth);
        for _ in 0..self.mcts.steps {
            let least = self.best.0;
            let mut left = self.mcts.simulations;
            while left > 0 && !self.branches[0].is_spent() {
                if budget.exhausted() {
                    return (self.branches[0].state.clone(), false);
                }
                left -= self.batch(left.min(BATCH), budget);
            }
            let better = |a: &usize, b: &usize| self.branches[*a].mean().total_cmp(&self.branches[*b].mean()).then(b.cmp(a));
            let next = self.branches[0].children().max_by(better);
            barren = if self.best.0 < least { 0 } else { barren + 1 };
            let Some(next) = next.filter(|_| barren < BARREN) else { break };
            self.descend(next);
            observe(&self.branches[0].state.growth);
        }
        (self.branches[0].state.clone(), true)
    }

    /// Runs up to so many simulations; how many were begun, at least 1.
    fn batch(&mut self, most: usize, budget: &mut dyn Budget) -> usize {
        let (mut begun, mut jobs) = (Vec::new(), Vec::new());
        while begun.len() < most {
            let Some(one) = self.begin() else { break };
            let branch = &self.branches[one.path[one.path.len() - 1]];
            self.simulations += 1;
            let seed = SplitMix64(self.mcts.seed ^ self.simulations.wrapping_mul(0x9e37_79b9_7f4a_7c15)).word();
            jobs.push(Job { from: branch.state.clone(), action: branch.actions[one.action].0, seed });
            begun.push(one);
        }
        let simulator = Simulator { depth: self.mcts.depth, method: self.mcts.main, known: &self.costs };
        let done = simulator.all(&jobs, &mut self.alone, budget);
        let count = begun.len();
        for (one, done) in begun.into_iter().zip(done) {
            self.end(one, done);
        }
        count.max(1)
    }

    /// Selects an action that was not tried, by upper confidence bounds from the root on.
    fn begin(&mut self) -> Option<Begun> {
        let mut path = vec![0];
        let begun = loop {
            let at = path[path.len() - 1];
            let Some(action) = self.select(at) else {
                // Others are under way there, or nothing is left.
                let [.., above, _] = path[..] else { return None };
                if !self.branches[at].is_spent() {
                    return None;
                }
                self.spend(above, at);
                path.pop();
                continue;
            };
            match self.branches[at].actions[action].1 {
                Way::To(child) => path.push(child),
                _ => break Begun { path, action },
            }
        };
        let at = begun.path[begun.path.len() - 1];
        self.branches[at].actions[begun.action].1 = Way::Begun;
        // Whoever is under way counts as a visit without a reward, so that the next one goes
        // elsewhere.
        begun.path.iter().for_each(|at| self.branches[*at].visits += 1.0);
        Some(begun)
    }

    /// Below a branch, all was tried.
    fn spend(&mut self, above: usize, child: usize) {
        if let Some((_, way)) = self.branches[above].actions.iter_mut().find(|(_, way)| *way == Way::To(child)) {
            *way = Way::Spent(child);
        }
    }

    /// The action with the largest upper confidence bound of those that lead somewhere.
    fn select(&self, at: usize) -> Option<usize> {
        let branch = &self.branches[at];
        let (low, high) = self.seen;
        let scaled = |value: f64| if high > low { (value - low) / (high - low) } else { 0.0 };
        let root = branch.visits.max(1.0).sqrt();
        let bound = |(action, way): &(Action, Way)| match way {
            Way::Untried => Some(scaled(branch.mean()) + self.mcts.exploration * action.prior * root),
            Way::To(child) => {
                let child = &self.branches[*child];
                Some(scaled(child.mean()) + self.mcts.exploration * action.prior * root / (1.0 + child.visits))
            }
            Way::Begun | Way::Spent(_) | Way::Closed => None,
        };
        let bounds = branch.actions.iter().enumerate().filter_map(|(at, action)| Some((at, bound(action)?)));
        bounds.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(at, _)| at)
    }

    /// Enters what a simulation has found.
    fn end(&mut self, Begun { path, action }: Begun, done: Option<Done<'r>>) {
        let last = path[path.len() - 1];
        let Some(Done { state, cost, end, steps, last: cheaper, costs }) = done else {
            self.branches[last].actions[action].1 = Way::Closed;
            path.iter().for_each(|at| self.branches[*at].visits -= 1.0);
            return;
        };
        self.costs.extend(costs);
        if cost < self.best.0 {
            self.best = (cost, state.clone());
        }
        if let Some(cheaper) = cheaper.filter(|_| end < self.best.0) {
            self.best = (end, cheaper);
        }
        // E-graphs only grow: what is saved in the end is what all steps save.
        let later = self.mcts.discount.powi(steps as i32) * (cost - end).max(0.0);
        let reward = ((self.first - cost) + later) / self.first.max(f64::MIN_POSITIVE);
        self.seen = (self.seen.0.min(reward), self.seen.1.max(reward));
        let child = self.branches.len();
        self.branches.push(Branch::new(state));
        self.branches[last].actions[action].1 = Way::To(child);
        self.branches[child].visits = 1.0;
        self.branches[child].value = reward;
        path.iter().for_each(|at| self.branches[*at].value += reward);
    }

    /// Makes a branch the root, and forgets all that is not below it.
    fn descend(&mut self, root: usize) {
        let mut old: Vec<Option<Branch<'r>>> = std::mem::take(&mut self.branches).into_iter().map(Some).collect();
        let mut open = vec![(root, None)];
        while let Some((at, above)) = open.pop() {
            let Some(branch) = old[at].take() else { continue };
            let here = self.branches.len();
            let ways = branch.actions.iter().enumerate();
            open.extend(ways.filter_map(|(number, (_, way))| Some((way.child()?, Some((here, number))))));
            self.branches.push(branch);
            if let Some((above, number)) = above {
                let above: &mut Branch<'r> = &mut self.branches[above];
                let way = &mut above.actions[number].1;
                *way = if matches!(way, Way::Spent(_)) { Way::Spent(here) } else { Way::To(here) };
            }
        }
    }
}
