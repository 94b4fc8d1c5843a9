//! `Mcts`: Monte Carlo tree search over e-graphs (Arora et al., PACT 2024, Algorithm 1).

use std::rc::Rc;

use regraft_ir::{Budget, SplitMix64};
use regraft_search::{Engine, Matcher, Outcome, Strategy};
use rustc_hash::FxHashMap;

use crate::extract::{Alone, Method, Priced};
use crate::grow::{Growth, Limits, Rules};
use crate::matches::Application;
use crate::strategy::{Found, extracted, nothing, repeated};

/// Grows an e-graph by one rule after the other, and finds out which one by looking ahead: of all
/// rules at all places there is no room for, some lead to something cheap.
///
/// As published, but for this: rewards are shares of the input's cost, divided by the largest one
/// seen; a state has a list of what its rules offer, so that a rule which offers nothing is never
/// tried; and the cheapest state of all that were looked at is extracted, not only the last one.
#[derive(Clone, Copy, Debug)]
pub struct Mcts {
    /// How far e-graphs grow.
    pub limits: Limits,
    /// Simulations before each step.
    pub simulations: usize,
    /// Longest simulation, in steps.
    pub depth: usize,
    /// Steps at most.
    pub steps: usize,
    /// Weight of what was tried seldom against what was good.
    pub exploration: f64,
    /// How much a state counts one step later.
    pub discount: f64,
    /// Whether a descent improves what was extracted.
    pub polish: bool,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Mcts {
    fn default() -> Mcts {
        let limits = Limits { nodes: 2000, ..Limits::default() };
        Mcts { limits, simulations: 24, depth: 6, steps: 40, exploration: 0.7, discount: 0.99, polish: true, seed: 0 }
    }
}

/// Steps without a reward before it is given up.
const BARREN: usize = 3;

/// An e-graph and what it offers.
#[derive(Clone)]
struct State<'r> {
    growth: Growth<'r>,
    /// Matches that were not applied yet, by rule.
    offers: Vec<Vec<Rc<Application>>>,
}

impl<'r> State<'r> {
    fn new(growth: Growth<'r>, budget: &mut dyn Budget) -> State<'r> {
        let offers = vec![Vec::new(); growth.rules().rules().len()];
        let mut state = State { growth, offers };
        state.look(budget);
        state
    }

    /// Finds what has become possible.
    fn look(&mut self, budget: &mut dyn Budget) {
        for application in self.growth.matches(budget).0 {
            self.offers[application.rule].push(Rc::new(application));
        }
    }

    /// Rules that offer something.
    fn actions(&self) -> Vec<usize> {
        if self.growth.is_full() {
            return Vec::new();
        }
        (0..self.offers.len()).filter(|rule| !self.offers[*rule].is_empty()).collect()
    }

    /// Applies a rule everywhere; false if nothing is new.
    fn act(&mut self, rule: usize, budget: &mut dyn Budget) -> bool {
        let offers = std::mem::take(&mut self.offers[rule]);
        let is_new = self.growth.apply(offers, budget).is_ok_and(|applied| applied.unwrap_or(true));
        if is_new {
            self.look(budget);
        }
        is_new
    }
}

/// A node of the search tree.
struct Branch<'r> {
    state: Rc<State<'r>>,
    /// Rules not tried yet.
    untried: Vec<usize>,
    children: Vec<usize>,
    visits: f64,
    value: f64,
}

struct Tree<'t, 'r, 'm> {
    mcts: &'t Mcts,
    branches: Vec<Branch<'r>>,
    random: SplitMix64,
    alone: &'t mut Alone<'m>,
    /// What extraction finds, by e-graph.
    costs: FxHashMap<u128, f64>,
    /// The largest reward so far.
    largest: f64,
    /// The cheapest e-graph so far.
    best: (f64, Rc<State<'r>>),
    /// E-graphs looked at.
    visited: u64,
}

impl<'t, 'r, 'm> Tree<'t, 'r, 'm> {
    /// A tree of one state.
    fn new(mcts: &'t Mcts, state: State<'r>, alone: &'t mut Alone<'m>) -> Tree<'t, 'r, 'm> {
        let best = (f64::INFINITY, Rc::new(state.clone()));
        let (branches, costs, random) = (Vec::new(), FxHashMap::default(), SplitMix64(mcts.seed));
        let mut tree = Tree { mcts, branches, random, alone, costs, largest: 0.0, best, visited: 0 };
        tree.branch(state);
        tree
    }

    /// Takes step after step, each after simulations of what it leads to: the last state, and whether
    /// the budget was enough.
    fn grow(&mut self, budget: &mut dyn Budget) -> (Rc<State<'r>>, bool) {
        let mut barren = 0;
        for _ in 0..self.mcts.steps {
            let least = self.best.0;
            for _ in 0..self.mcts.simulations {
                if budget.exhausted() {
                    return (self.branches[0].state.clone(), false);
                }
                if self.branches[0].untried.is_empty() && self.branches[0].children.is_empty() {
                    break;
                }
                self.simulate(0, budget);
            }
            let mean = |at: &usize| self.branches[*at].value / self.branches[*at].visits.max(1.0);
            let next = self.branches[0].children.iter().copied().max_by(|a, b| mean(a).total_cmp(&mean(b)).then(b.cmp(a)));
            barren = if self.best.0 < least { 0 } else { barren + 1 };
            let Some(next) = next.filter(|_| barren < BARREN) else { break };
            self.descend(next);
        }
        (self.branches[0].state.clone(), true)
    }

    /// Makes a branch the root, and forgets all that is not below it.
    fn descend(&mut self, root: usize) {
        let mut old: Vec<Option<Branch<'r>>> = std::mem::take(&mut self.branches).into_iter().map(Some).collect();
        let mut open = vec![(root, None)];
        while let Some((at, parent)) = open.pop() {
            let Some(mut branch) = old[at].take() else { continue };
            let here = self.branches.len();
            open.extend(std::mem::take(&mut branch.children).into_iter().rev().map(|child| (child, Some(here))));
            self.branches.push(branch);
            if let Some(parent) = parent {
                let parent: &mut Branch<'r> = &mut self.branches[parent];
                parent.children.push(here);
            }
        }
    }

    fn branch(&mut self, state: State<'r>) -> usize {
        let untried = state.actions();
        self.branches.push(Branch { state: Rc::new(state), untried, children: Vec::new(), visits: 0.0, value: 0.0 });
        self.branches.len() - 1
    }

    /// What extraction finds in a state.
    fn cost(&mut self, state: &State<'r>) -> f64 {
        let key = state.growth.space().digest();
        if let Some(known) = self.costs.get(&key) {
            return *known;
        }
        self.visited += 1;
        let alone = &mut *self.alone;
        let priced = Priced::of(&state.growth, &mut |space, id| alone.price(space, id) as f64);
        let found = priced.ok().and_then(|priced| priced.cheapest(Method::Quick, &mut || false).ok());
        let cost = found.map_or(f64::INFINITY, |(_, extraction)| extraction.cost);
        self.costs.insert(key, cost);
        if cost < self.best.0 {
            self.best = (cost, Rc::new(state.clone()));
        }
        cost
    }

    /// Selects a branch, expands it, and simulates from there.
    fn simulate(&mut self, root: usize, budget: &mut dyn Budget) {
        let (mut path, mut at) = (vec![root], root);
        loop {
            let branch = &self.branches[at];
            let expands = !branch.untried.is_empty() && (branch.children.is_empty() || at == root || self.random.below(2) == 0);
            if expands {
                let pick = self.random.below(self.branches[at].untried.len());
                let rule = self.branches[at].untried.swap_remove(pick);
                let mut state = (*self.branches[at].state).clone();
                if !state.act(rule, budget) {
                    // It is saturated here, and never chosen again.
                    continue;
                }
                let child = self.branch(state);
                self.branches[at].children.push(child);
                path.push(child);
                break;
            }
            let Some(next) = self.select(at) else { break };
            path.push(next);
            at = next;
        }
        let last = *path.last().unwrap_or(&root);
        let reward = self.roll_out(&self.branches[root].state.clone(), &self.branches[last].state.clone(), budget);
        self.largest = self.largest.max(reward);
        for at in path {
            self.branches[at].visits += 1.0;
            self.branches[at].value += reward;
        }
    }

    /// The child of the largest upper confidence bound.
    fn select(&self, at: usize) -> Option<usize> {
        let all = self.branches[at].visits.max(1.0).ln();
        let scale = if self.largest > 0.0 { self.largest } else { 1.0 };
        let bound = |child: &usize| {
            let Branch { visits, value, .. } = &self.branches[*child];
            value / visits.max(1.0) / scale + self.mcts.exploration * (2.0 * all / visits.max(1.0)).sqrt()
        };
        self.branches[at].children.iter().copied().max_by(|a, b| bound(a).total_cmp(&bound(b)).then(b.cmp(a)))
    }

    /// Applies rules at random; what that saves compared with the root, as a share of its cost, what is
    /// saved later counting less.
    fn roll_out(&mut self, root: &State<'r>, from: &State<'r>, budget: &mut dyn Budget) -> f64 {
        let begin = self.cost(root);
        let mut last = self.cost(from);
        let mut reward = (begin - last).max(0.0);
        let mut state = from.clone();
        let mut weight = 1.0;
        let mut steps = 0;
        while steps < self.mcts.depth && !budget.exhausted() {
            let actions = state.actions();
            if actions.is_empty() {
                break;
            }
            let rule = actions[self.random.below(actions.len())];
            steps += 1;
            weight *= self.mcts.discount;
            if !state.act(rule, budget) {
                continue;
            }
            // The e-graph only grows: what it saves in the end is what its steps save.
            if steps == self.mcts.depth || state.actions().is_empty() {
                let cost = self.cost(&state);
                reward += weight * (last - cost).max(0.0);
                last = cost;
            }
        }
        if steps > 0 && steps < self.mcts.depth {
            let cost = self.cost(&state);
            reward += weight * (last - cost).max(0.0);
        }
        if begin > 0.0 { reward / begin } else { 0.0 }
    }
}

impl Strategy for Mcts {
    fn name(&self) -> &'static str {
        "mcts"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let Ok(rules) = Rules::of(matcher.library()) else { return nothing(engine) };
        let mut alone = Alone::new(engine.prices());
        repeated(self.polish, engine, matcher, budget, &mut |engine, matcher, budget| {
            let growth = Growth::new(engine.graph().clone(), &rules, matcher.writable(), self.limits);
            let mut tree = Tree::new(self, State::new(growth, budget), &mut alone);
            let (last, complete) = tree.grow(budget);
            let (best, visited) = (tree.best.1.clone(), tree.visited);
            let found = [last, best].map(|state| extracted(&state.growth, &mut alone, Method::Exact, engine, budget).script);
            let [last, best] = found;
            Found { script: if best.cost < last.cost { best } else { last }, visited, complete }
        })
    }
}
