//! The space of partial operators, as far as a search has looked into it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::canonical::Form;
use crate::coordinate::Coordinates;
use crate::distance::Distances;
use crate::key::{Bindings, Key};
use crate::macs::{Game, Volumes};
use crate::operator::Operator;
use crate::plan::Plan;
use crate::spec::Spec;
use crate::state::{State, Step};
use crate::steps::{Filter, Sizes, openings, steps};

/// A child of a partial operator.
#[derive(Clone, Debug)]
pub struct Child {
    /// The step that leads there.
    pub step: Step,
    /// What it leads to.
    pub state: State,
    /// How many steps at least lead from there to the input; 0 if distances are not asked.
    pub distance: u8,
}

/// An operator that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The operator.
    pub operator: Operator,
    /// What it can learn.
    pub key: Key,
    /// How it is best computed.
    pub plan: Plan,
    /// Weights, in all layers together.
    pub parameters: f64,
}

/// The space, with all that is remembered of it.
pub struct Explorer<'s> {
    /// Coordinates.
    pub coordinates: Coordinates<'s>,
    /// Which steps are considered.
    pub filter: Filter,
    sizes: Sizes,
    distances: Distances,
    bindings: Bindings,
    children: FxHashMap<State, Rc<[Child]>>,
    finals: FxHashMap<State, Rc<[Found]>>,
    /// How many of both are remembered.
    remembered: [usize; 2],
    volumes: Volumes<'s>,
    most_macs: f64,
}

/// Shares are compared with this much to spare, as sums of floating-point numbers.
const ROUNDING: f64 = 1.0 + 1e-9;
/// Children that are remembered, and operators; beyond, all are forgotten.
const REMEMBERED: [usize; 2] = [2_000_000, 200_000];

impl<'s> Explorer<'s> {
    /// Nothing seen yet.
    pub fn new(spec: &'s Spec, filter: Filter) -> Explorer<'s> {
        let mut coordinates = Coordinates::new(spec);
        let sizes = Sizes::new(&mut coordinates);
        Explorer {
            coordinates,
            filter,
            sizes,
            distances: Distances::default(),
            bindings: Bindings::new(spec),
            children: FxHashMap::default(),
            finals: FxHashMap::default(),
            remembered: [0; 2],
            volumes: Volumes::new(spec),
            most_macs: spec.dense_macs() * spec.limits.most_macs * ROUNDING,
        }
    }

    /// The specification.
    pub fn spec(&self) -> &'s Spec {
        self.coordinates.spec
    }

    /// The small bindings of its keys.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Where every search begins.
    pub fn start(&self) -> State {
        State::start(&self.coordinates)
    }

    /// How many steps at least lead from a state to the input.
    pub fn distance(&mut self, state: &State) -> Option<u8> {
        self.distances.of(state, &mut self.coordinates)
    }

    /// All that one step leads to, in a fixed order, whatever depth is left.
    pub fn children(&mut self, state: &State) -> Rc<[Child]> {
        if let Some(known) = self.children.get(state) {
            return known.clone();
        }
        let mut children = Vec::new();
        for step in steps(state, &mut self.sizes, &mut self.coordinates) {
            if self.filter.breaks(state, &step, &mut self.coordinates).is_some() {
                continue;
            }
            let next = state.after(&step, &mut self.coordinates);
            // After a sum others may follow, which bring what is missing.
            let asked = self.filter.distance && !matches!(step, Step::Reduce(_));
            let distance = if asked { self.distance(&next) } else { Some(0) };
            let Some(distance) = distance else { continue };
            if Game::of(&next, &self.coordinates).least(&mut self.volumes) > self.most_macs {
                continue;
            }
            children.push(Child { step, state: next, distance });
        }
        let children: Rc<[Child]> = children.into();
        self.remembered[0] += children.len();
        if self.remembered[0] > REMEMBERED[0] {
            self.children.clear();
            self.remembered[0] = children.len();
        }
        self.children.insert(state.clone(), children.clone());
        children
    }

    /// All sets of sums with which a search can begin, by their number; each may lead to the input.
    pub fn openings(&mut self) -> Vec<Vec<State>> {
        let (most, depth) = (self.spec().limits.reductions, self.spec().limits.depth);
        let mut levels = vec![vec![self.start()]];
        for sums in 0..most {
            let mut level = Vec::new();
            for state in &levels[sums] {
                for step in openings(state, &mut self.sizes, &mut self.coordinates) {
                    level.push(state.after(&step, &mut self.coordinates));
                }
            }
            level.sort_unstable();
            level.dedup();
            levels.push(level);
        }
        if self.filter.distance {
            for (sums, level) in levels.iter_mut().enumerate() {
                level.retain(|state| self.distance(state).is_some_and(|d| sums + usize::from(d) < depth));
            }
        }
        levels
    }

    /// The steps that forms leave out, with what they would lead to.
    pub fn rejected(&mut self, state: &State) -> Vec<(Form, Step, State)> {
        let all = steps(state, &mut self.sizes, &mut self.coordinates);
        let broken = |step: Step, explorer: &mut Self| {
            let form = crate::canonical::broken(state, &step, &mut explorer.coordinates)?;
            let next = state.after(&step, &mut explorer.coordinates);
            Some((form, step, next))
        };
        all.into_iter().filter_map(|step| broken(step, self)).collect()
    }

    /// The operators that a state is, within the limits, one for each key.
    pub fn finals(&mut self, state: &State) -> Rc<[Found]> {
        if let Some(known) = self.finals.get(state) {
            return known.clone();
        }
        let mut found: Vec<Found> = Vec::new();
        for operator in Operator::of(state, &self.coordinates) {
            let Some(one) = self.judged(operator) else { continue };
            if found.iter().all(|other| other.key != one.key) {
                found.push(one);
            }
        }
        let found: Rc<[Found]> = found.into();
        self.remembered[1] += found.len();
        if self.remembered[1] > REMEMBERED[1] {
            self.finals.clear();
            self.remembered[1] = found.len();
        }
        self.finals.insert(state.clone(), found.clone());
        found
    }

    /// An operator with its key and plan, if it is within the limits.
    pub fn judged(&mut self, operator: Operator) -> Option<Found> {
        let spec = self.spec();
        if self.parameters(&operator) > spec.dense_parameters() * spec.limits.most_parameters {
            return None;
        }
        let plan = Plan::of(&operator, &mut self.coordinates)?;
        let share = plan.macs / spec.dense_macs();
        let most = spec.limits.most_macs * ROUNDING;
        let fits = (spec.limits.least_macs..=most).contains(&share) && plan.largest * 4.0 <= spec.limits.memory as f64;
        if !fits {
            return None;
        }
        self.described(operator)
    }

    /// An operator with its key and plan, whatever the limits say; `None` if it has none.
    pub fn described(&mut self, operator: Operator) -> Option<Found> {
        let parameters = self.parameters(&operator);
        let plan = Plan::of(&operator, &mut self.coordinates)?;
        let key = self.key(&operator)?;
        Some(Found { operator, key, plan, parameters })
    }

    fn parameters(&self, operator: &Operator) -> f64 {
        operator.parameters(&self.coordinates).iter().zip(&self.spec().layers).map(|(p, layer)| p * layer.count as f64).sum()
    }

    /// The key of an operator, whatever the limits say.
    pub fn key(&self, operator: &Operator) -> Option<Key> {
        Key::of(operator, &self.bindings, &self.coordinates)
    }

    /// Steps from the beginning to an operator, each allowed by limits, forms and distances; `None`
    /// if no sequence of them leads there.
    pub fn path(&mut self, operator: &Operator) -> Option<Vec<Step>> {
        let goal = operator.state(&mut self.coordinates);
        let closure: Vec<_> = {
            let mut all = operator.closure(&self.coordinates);
            all.extend(goal.dropped.iter().copied());
            all
        };
        let mut dead = rustc_hash::FxHashSet::default();
        let mut path = Vec::new();
        let start = self.start();
        self.walk(&start, &goal, &closure, &mut dead, &mut path).then_some(path)
    }

    fn walk(
        &mut self,
        state: &State,
        goal: &State,
        closure: &[crate::coordinate::Coord],
        dead: &mut rustc_hash::FxHashSet<State>,
        path: &mut Vec<Step>,
    ) -> bool {
        let sorted = |state: &State| {
            let mut state = state.clone();
            state.weights.sort();
            state
        };
        if sorted(state) == sorted(goal) {
            return true;
        }
        let depth = self.spec().limits.depth;
        if path.len() + 1 >= depth || !dead.insert(state.clone()) {
            return false;
        }
        for child in self.children(state).iter() {
            let within = child.state.coordinates().all(|coord| closure.contains(&coord))
                && child.state.sums.iter().all(|sum| goal.sums.contains(sum))
                && child.state.weights.iter().all(|weight| goal.weights.contains(weight));
            if within && path.len() + 1 + usize::from(child.distance) < depth {
                path.push(child.step.clone());
                if self.walk(&child.state, goal, closure, dead, path) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }
}
