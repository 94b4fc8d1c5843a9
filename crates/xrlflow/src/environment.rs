//! `Environment`: rewriting as a Markov decision process (X-RLflow, section 3.2).

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::Bindings;
use regraft_search::{Engine, Matcher, Move, Moves, Script, all_moves, next_moves};
use rustc_hash::FxHashSet;

use crate::encoded::{Encoded, Sizes};
use crate::rows::{Pool, Rows};
use crate::settings::{Settings, Shaping};
use crate::view::View;

/// What times a state, in ns.
pub type Timer<'t> = dyn FnMut(&Engine<'_>) -> f64 + 't;

/// A graph under rewriting. A state is the current graph with the graphs that one rewrite leads to;
/// an action takes one of these, or stops.
pub struct Environment<'s, 'e, 'm> {
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    timer: Box<Timer<'s>>,
    settings: Settings,
    /// Where episodes begin.
    start: usize,
    /// Moves of the states of the episode, its current one last.
    moves: Vec<Moves>,
    taken: Vec<Arc<Move>>,
    candidates: Vec<Candidate>,
    rows: Rows,
    left_out: usize,
    /// What the first state costs.
    first: Ns,
    /// The time of the first state, once it is timed, and that of the state that was timed last.
    time: f64,
    timed: f64,
    /// What that one costs.
    cost_when_timed: Ns,
    potential: f64,
    /// Actions of the episode.
    actions: Vec<usize>,
    best: Best,
    states: u64,
}

/// The cheapest state of some episodes.
#[derive(Clone, Debug)]
pub struct Best {
    /// How to get there, and what it costs.
    pub script: Script,
    /// The same as actions of an episode.
    pub actions: Vec<usize>,
}

/// A graph that one rewrite leads to.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The rewrite.
    pub step: Arc<Move>,
    /// What it costs then, by the price list.
    pub cost: Ns,
}

/// What followed from an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// The reward: hundredths of the first state's time.
    pub reward: f32,
    /// Whether the agent stopped.
    pub terminated: bool,
    /// Whether the horizon was reached.
    pub truncated: bool,
}

impl<'s, 'e, 'm> Environment<'s, 'e, 'm> {
    /// Whose episodes begin in the engine's state. Rewards come from the price list.
    pub fn new(engine: &'s mut Engine<'e>, matcher: &'s mut Matcher<'m>, settings: Settings) -> Environment<'s, 'e, 'm> {
        let best = Best { script: Script::here(engine), actions: Vec::new() };
        let start = engine.depth();
        let mut environment = Environment {
            engine,
            matcher,
            timer: Box::new(|engine| engine.cost() as f64),
            settings,
            start,
            moves: Vec::new(),
            taken: Vec::new(),
            actions: Vec::new(),
            candidates: Vec::new(),
            rows: Rows::default(),
            left_out: 0,
            first: best.script.cost,
            time: 0.0,
            timed: 0.0,
            cost_when_timed: best.script.cost,
            potential: 0.0,
            best,
            states: 1,
        };
        environment.reset();
        environment
    }

    /// The same, where rewards come from a timer: from runs on the target, say.
    #[must_use]
    pub fn timed_by(mut self, timer: Box<Timer<'s>>) -> Environment<'s, 'e, 'm> {
        self.timer = timer;
        self.time = 0.0;
        self.reset();
        self
    }

    /// Begins an episode.
    pub fn reset(&mut self) {
        self.engine.rewind(self.start);
        self.taken.clear();
        self.actions.clear();
        self.moves.truncate(1);
        if self.moves.is_empty() {
            self.moves.push(all_moves(self.engine, self.matcher));
        }
        // Timed once, as published.
        if self.time == 0.0 {
            self.time = (self.timer)(self.engine).max(1.0);
        }
        (self.timed, self.cost_when_timed, self.potential) = (self.time, self.first, 0.0);
        self.find_candidates();
    }

    /// The graphs that one rewrite leads to, in the order of rules and places. What comes after the
    /// last of these is to stop.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// How many more there would be if there were more slots.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The candidates and the current graph, which stands for stopping, as rows.
    pub fn pools(&mut self) -> Vec<Pool> {
        let view = View::of(self.engine.graph(), self.bindings(), self.sizes(), &mut self.rows);
        let current = view.pool();
        let mut pools = Vec::with_capacity(self.candidates.len() + 1);
        for candidate in &self.candidates {
            self.engine.apply(&candidate.step);
            pools.push(view.after(self.engine, &mut self.rows));
            self.engine.undo();
        }
        pools.push(current);
        pools
    }

    /// The rows of all states that were asked for so far.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Begins an episode, and all rows anew: sums over rows are in the order in which these came.
    pub fn forget(&mut self) {
        self.rows = Rows::default();
        self.reset();
    }

    /// All candidates and, last, the current graph, whole.
    pub fn graphs(&mut self) -> Vec<Encoded> {
        let (bindings, sizes) = (self.bindings(), self.sizes());
        let mut graphs = Vec::with_capacity(self.candidates.len() + 1);
        for candidate in &self.candidates {
            self.engine.apply(&candidate.step);
            graphs.push(Encoded::of(self.engine.graph(), bindings, sizes));
            self.engine.undo();
        }
        graphs.push(Encoded::of(self.engine.graph(), bindings, sizes));
        graphs
    }

    /// The sizes that the price list prices at.
    fn bindings(&self) -> Option<&'e Bindings> {
        self.engine.prices().bindings()
    }

    fn sizes(&self) -> Sizes {
        if self.settings.defects.linear_sizes { Sizes::Linear } else { Sizes::Logarithmic }
    }

    /// What the first graph costs, and the current one, by the price list.
    pub fn costs(&self) -> [Ns; 2] {
        [self.first, self.engine.cost()]
    }

    /// What led to the current graph.
    pub fn script(&self) -> Script {
        Script { moves: self.taken.clone(), cost: self.engine.cost(), key: self.engine.key() }
    }

    /// The cheapest state of all episodes by the price list, candidates that were not taken
    /// included.
    pub fn best(&self) -> &Best {
        &self.best
    }

    /// Takes these actions in an episode of their own: what was found by another environment of the
    /// same graph counts as found here.
    pub fn replay(&mut self, actions: &[usize]) {
        self.reset();
        for action in actions {
            if self.step(*action).terminated {
                break;
            }
        }
        self.reset();
    }

    /// States seen.
    pub fn states(&self) -> u64 {
        self.states
    }

    /// Takes the candidate of this number; stops, where there is none.
    pub fn step(&mut self, action: usize) -> Transition {
        let taken = self.candidates.get(action).map(|candidate| candidate.step.clone());
        let terminated = taken.is_none();
        if let Some(step) = taken {
            self.engine.apply(&step);
            self.taken.push(step);
            self.actions.push(action);
            let moves = next_moves(self.engine, self.matcher, &self.moves[self.moves.len() - 1]);
            self.moves.push(moves);
        }
        let truncated = !terminated && self.taken.len() >= self.settings.horizon;
        // What an episode gains after it was timed last is lost where it is cut off, as published.
        let is_end = terminated || truncated && !self.settings.defects.crossing_advantages;
        let mut reward = 0.0;
        if is_end || self.taken.len().is_multiple_of(self.settings.feedback.max(1)) {
            let now = (self.timer)(self.engine);
            reward = 100.0 * (self.timed - now) / self.time;
            self.timed = now;
            self.cost_when_timed = self.engine.cost();
        } else if self.settings.shaping == Shaping::Bonus {
            reward = 0.1;
        }
        if self.settings.shaping == Shaping::Potential {
            // The potential of a state is what it has gained since it was timed, by the price list.
            let gained = self.cost_when_timed as f64 - self.engine.cost() as f64;
            let potential = if is_end { 0.0 } else { 100.0 * gained / self.first.max(1) as f64 };
            reward += f64::from(self.settings.discount) * potential - self.potential;
            self.potential = potential;
        }
        if !terminated {
            self.find_candidates();
        }
        Transition { reward: reward as f32, terminated, truncated }
    }

    /// The distinct graphs that the current one leads to, as many as there are slots for.
    fn find_candidates(&mut self) {
        let moves = self.moves[self.moves.len() - 1].clone();
        let operators = self.engine.graph().len() as f64;
        let mut seen = FxHashSet::from_iter([self.engine.key()]);
        let mut order: Vec<&Arc<Move>> = moves.iter().collect();
        order.sort_by_key(|step| step.rule);
        self.candidates.clear();
        self.left_out = 0;
        for step in order {
            self.engine.apply(step);
            let grows = self.engine.graph().len() as f64 >= self.settings.growth * operators;
            if !grows && seen.insert(self.engine.key()) {
                self.states += 1;
                if self.candidates.len() + 1 < self.settings.slots {
                    let cost = self.engine.cost();
                    if cost < self.best.script.cost {
                        let moves = self.taken.iter().chain([step]).cloned().collect();
                        self.best.script = Script { moves, cost, key: self.engine.key() };
                        self.best.actions = self.actions.iter().copied().chain([self.candidates.len()]).collect();
                    }
                    self.candidates.push(Candidate { step: step.clone(), cost });
                } else {
                    self.left_out += 1;
                }
            }
            self.engine.undo();
        }
    }
}

impl Drop for Environment<'_, '_, '_> {
    /// Leaves the engine where it was.
    fn drop(&mut self) {
        self.engine.rewind(self.start);
    }
}
