//! Decisions, one after the other, and the simulations before each.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::{Budget, SplitMix64};
use regraft_search::{Engine, Matcher};
use rustc_hash::FxHashSet;

use super::table::{Table, Way};
use super::{Course, Gumbel};
use crate::explored::Explored;
use crate::features::Known;

/// Without a policy: of two moves whose costs differ by so much, as logarithms, the cheaper one is
/// some e times as likely.
const TEMPERATURE: f64 = 0.02;

/// Where a move was found to lead.
#[derive(Clone, Copy)]
struct Step {
    child: u32,
    is_new: bool,
}

pub(super) struct Searching<'s, 'w, 'e, 'm> {
    gumbel: &'s Gumbel<'w>,
    explored: Explored<'s, 'w, 'e, 'm>,
    budget: &'s mut dyn Budget,
    observe: &'s mut dyn FnMut(usize, Ns),
    table: Table,
    random: SplitMix64,
    cheapest: u32,
    /// The states on the way to the current one, and of the simulation under way.
    way: FxHashSet<u32>,
    /// States at which decisions began.
    begun: FxHashSet<u32>,
    /// States with which they ended.
    ended: Vec<u32>,
    is_over: bool,
}

impl<'s, 'w, 'e, 'm> Searching<'s, 'w, 'e, 'm> {
    /// From the engine's current state.
    pub(super) fn new(
        gumbel: &'s Gumbel<'w>,
        engine: &'s mut Engine<'e>,
        matcher: &'s mut Matcher<'m>,
        budget: &'s mut dyn Budget,
        observe: &'s mut dyn FnMut(usize, Ns),
    ) -> Searching<'s, 'w, 'e, 'm> {
        let mut search = Searching {
            gumbel,
            explored: Explored::new(gumbel.guide, engine, matcher),
            budget,
            observe,
            table: Table::new(gumbel.scale),
            random: SplitMix64(gumbel.seed),
            cheapest: 0,
            way: FxHashSet::default(),
            begun: FxHashSet::default(),
            ended: Vec::new(),
            is_over: false,
        };
        search.enter(0);
        search
    }

    /// Series of decisions, until the budget is spent or nothing is left.
    pub(super) fn run(mut self) -> Course {
        let mut next = Some(0);
        while let Some(from) = next.filter(|_| !self.is_over && !self.table.is_exhausted()) {
            self.decide_from(from);
            next = self.most_promising(|search, at| !search.begun.contains(&at)).or_else(|| self.rest());
        }
        let ways = self.ended.iter().map(|at| self.explored.way(*at)).collect();
        let (visits, complete) = (self.table.all_visits(), self.table.is_exhausted());
        Course { outcome: self.explored.outcome(self.gumbel.keep, complete), ways, visits }
    }

    /// The most promising of some states; of equal ones, the first.
    fn most_promising(&self, is_one: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let better = |a: u32, b: u32| if self.table.promise(b) > self.table.promise(a) { b } else { a };
        (0..self.explored.states.len() as u32).filter(|at| is_one(self, *at)).reduce(better)
    }

    /// Where decisions have begun everywhere: tries what was never drawn at the most promising
    /// state that has such moves; that state.
    fn rest(&mut self) -> Option<u32> {
        let at = self.most_promising(|search, at| !search.table.untried(at).is_empty())?;
        self.way = self.on_the_way(at);
        for edge in self.table.untried(at) {
            self.simulate(at, edge);
        }
        Some(at)
    }

    /// Decides on move after move, until nothing cheaper is found for some time.
    fn decide_from(&mut self, from: u32) {
        self.begun.insert(from);
        let (mut current, mut idle) = (from, 0);
        self.way = self.on_the_way(current);
        while idle < self.gumbel.patience && !self.is_over {
            let cheapest = self.cheapest;
            let decided = self.decide(current);
            if self.cheapest != cheapest {
                // What was found is taken, with all moves that lead there.
                (current, idle) = (self.cheapest, 0);
                self.way = self.on_the_way(current);
                continue;
            }
            let Some(Way::To(child)) = decided.map(|edge| self.table.way(current, edge)) else { break };
            (current, idle) = (child, idle + 1);
            self.way.insert(current);
        }
        self.ended.push(current);
    }

    fn on_the_way(&self, to: u32) -> FxHashSet<u32> {
        let before = |at: &u32| self.explored.states[*at as usize].parent.as_ref().map(|(parent, _)| *parent);
        std::iter::successors(Some(to), before).collect()
    }

    /// Which move to take from a state, if there is one: sequential halving among those drawn. It
    /// ends early where something cheaper is found.
    fn decide(&mut self, at: u32) -> Option<usize> {
        let cheapest = self.cheapest;
        let mut drawn = self.drawn(at, cheapest);
        let phases = drawn.len().next_power_of_two().trailing_zeros().max(1) as usize;
        // Each was simulated once.
        let mut had = 1;
        while drawn.len() > 1 {
            let each = (self.gumbel.simulations / (phases * drawn.len())).max(1);
            for simulation in had * drawn.len()..each * drawn.len() {
                if self.is_over || self.cheapest != cheapest {
                    return None;
                }
                self.simulate(at, drawn[simulation % drawn.len()].0);
            }
            had = 0;
            drawn = self.better_half(at, drawn);
        }
        drawn.first().map(|(edge, _)| *edge)
    }

    /// The moves of a state that a decision is between, each with its draw and simulated once:
    /// those whose sums of draw and logit are largest, which is as good as drawing without
    /// replacement (Kool, van Hoof and Welling, ICML 2019).
    fn drawn(&mut self, at: u32, cheapest: u32) -> Vec<(usize, f64)> {
        let edges = self.table.open(at, &self.way);
        let mut order: Vec<(usize, f64)> = edges.into_iter().map(|edge| (edge, self.draw())).collect();
        let sum = |(edge, draw): &(usize, f64)| draw + self.table.logit(at, *edge);
        order.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
        let mut drawn = Vec::with_capacity(self.gumbel.drawn);
        for one in order {
            if drawn.len() >= self.gumbel.drawn.max(1) || self.is_over || self.cheapest != cheapest {
                break;
            }
            if self.simulate(at, one.0) {
                drawn.push(one);
            }
        }
        drawn
    }

    /// The half of some moves that simulations and draws speak for.
    fn better_half(&self, at: u32, drawn: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
        let edges: Vec<usize> = drawn.iter().map(|(edge, _)| *edge).collect();
        let bonuses = self.table.bonuses(at, &edges);
        let rank = |(edge, draw): (usize, f64), bonus: f64| (draw + self.table.logit(at, edge) + bonus, (edge, draw));
        let mut ranked: Vec<(f64, (usize, f64))> = drawn.into_iter().zip(bonuses).map(|(one, bonus)| rank(one, bonus)).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        ranked.truncate(ranked.len().div_ceil(2));
        ranked.into_iter().map(|(_, one)| one).collect()
    }

    /// A number of the standard Gumbel distribution.
    fn draw(&mut self) -> f64 {
        // Never 0 and never 1.
        let unit = self.random.unit() * (1.0 - 2.0 * f64::EPSILON) + f64::EPSILON;
        -(-unit.ln()).ln()
    }

    /// One simulation from a state, by a move; false if that leads nowhere.
    fn simulate(&mut self, root: u32, first: usize) -> bool {
        let Some(mut step) = self.follow(root, first) else { return false };
        let (mut at, mut edge) = (root, first);
        let mut taken = Vec::new();
        loop {
            taken.push((at, step.child));
            self.way.insert(step.child);
            let before = self.table.visit(at, edge);
            // Where others have come by another way, what they found is taken over.
            if step.is_new || before < self.table.visits(step.child) {
                break;
            }
            at = step.child;
            let Some(next) = self.choose(at) else { break };
            (edge, step) = next;
        }
        for (at, child) in taken.into_iter().rev() {
            self.way.remove(&child);
            self.table.refresh(at);
        }
        true
    }

    /// The next move of a simulation, and where it leads.
    fn choose(&mut self, at: u32) -> Option<(usize, Step)> {
        while !self.is_over {
            let edge = self.table.select(at, &self.way)?;
            if let Some(step) = self.follow(at, edge) {
                return Some((edge, step));
            }
        }
        None
    }

    /// Where a move leads that may not have been taken before; `None` if nowhere, or to where the
    /// simulation came from.
    fn follow(&mut self, at: u32, edge: usize) -> Option<Step> {
        let child = match self.table.way(at, edge) {
            Way::Closed => return None,
            Way::To(child) => child,
            Way::Untried => return self.try_out(at, edge),
        };
        (!self.way.contains(&child)).then_some(Step { child, is_new: false })
    }

    fn try_out(&mut self, at: u32, edge: usize) -> Option<Step> {
        self.is_over |= self.explored.states.len() > self.gumbel.expansions || self.budget.exhausted();
        if self.is_over {
            return None;
        }
        let step = self.explored.states[at as usize].step(edge)?;
        let (key, cost) = self.explored.take(at, &step);
        if let Some(child) = self.table.find(key) {
            self.explored.leave();
            let is_other = self.table.link(at, edge, child);
            return (is_other && !self.way.contains(&child)).then_some(Step { child, is_new: false });
        }
        if cost as f64 > self.cost(self.cheapest) as f64 * self.gumbel.rise {
            self.explored.leave();
            self.table.close(at, edge);
            return None;
        }
        let child = self.explored.keep(at, Arc::clone(&step));
        self.enter(child);
        self.table.link(at, edge, child);
        Some(Step { child, is_new: true })
    }

    /// Expands the engine's state, and enters it into the table.
    fn enter(&mut self, at: u32) {
        let is_last = self.gumbel.steps.is_some_and(|most| self.explored.states[at as usize].depth >= most);
        let cost = self.cost(at);
        let (logits, value) = if is_last { (Vec::new(), 0.0) } else { self.promises(at, cost) };
        let saved = (self.cost(0).max(1) as f64 / cost.max(1) as f64).ln();
        self.table.add(self.explored.states[at as usize].key, (saved, value), logits);
        if cost < self.cost(self.cheapest) {
            self.cheapest = at;
        }
        let least = self.cost(self.cheapest);
        (self.observe)(self.explored.states.len(), least);
    }

    /// How promising each move of the engine's state is, and what may still be saved there.
    fn promises(&mut self, at: u32, cost: Ns) -> (Vec<f64>, f64) {
        let known = self.explored.expand(at);
        let scores = self.explored.scores(at, &known);
        let share = |known: &Known| (known.delta as f64 / cost.max(1) as f64).max(-1.0);
        match self.explored.value(&known) {
            Some(value) => (scores.into_iter().map(f64::from).collect(), f64::from(value).max(0.0)),
            None => {
                let most = known.iter().map(|known| -share(known)).fold(0.0, f64::max);
                (known.iter().map(|known| -share(known) / TEMPERATURE).collect(), -(1.0 - most).max(f64::MIN_POSITIVE).ln())
            }
        }
    }

    fn cost(&self, at: u32) -> Ns {
        self.explored.states[at as usize].cost
    }
}
