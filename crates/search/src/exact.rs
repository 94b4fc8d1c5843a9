//! Exact search, region by region.
//!
//! A graph is cut where few values cross. Within a region, every state that moves inside of it lead to
//! is visited, cheapest first, until there are no more or a limit is reached. A move that would
//! change the price of a node outside is left to the next pass, whose cuts are elsewhere: so what
//! regions save adds up exactly. Regions that look alike are searched once.
//!
//! With a limited number of steps, they are shared out among the regions such that the sum of what is
//! saved is largest: a convolution of the regions' savings in (max, +).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::NodeId;
use rustc_hash::FxHashMap;

use crate::descents::Descents;
use crate::engine::{Engine, Matcher, Move, Moves, next_moves};
use crate::regions::{Looks, Regions};
use crate::strategy::{Outcome, Region, Script, Strategy};
use crate::transfer::{Current, Names, Recorded};
use regraft_ir::Budget;

/// Passes over the graph, each with other cuts than the one before, while anything is saved.
const PASSES: usize = 6;

/// Searches each region exactly, as far as `states` allows, and adds up what they save.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States visited in a region at most.
    pub states: u64,
}

impl Default for Exact {
    fn default() -> Exact {
        Exact { steps: None, states: 3000 }
    }
}

impl Strategy for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn is_exhaustive(&self) -> bool {
        true
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.search_regions(engine, matcher, budget).0
    }

    fn search_regions(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> (Outcome, Vec<Region>) {
        let mut regions = Vec::new();
        let start = engine.depth();
        let nothing = Script::here(engine);
        let mut found = vec![nothing];
        let (mut visited, mut complete) = (1, false);
        let mut from: Vec<Vec<Arc<Move>>> = vec![Vec::new()];
        // Descents cross the borders of regions, and may end elsewhere.
        let descents = Descents { steps: self.steps, threaded: false }.search(engine, matcher, budget);
        visited += descents.visited;
        let best = descents.scripts.into_iter().next().filter(|script| !script.moves.is_empty());
        match best {
            Some(best) if self.steps.is_none() => from.push(best.moves),
            // Its steps are used up.
            best => found.extend(best),
        }
        for moves in from {
            let is_input = moves.is_empty();
            moves.iter().for_each(|step| engine.apply(step));
            let mut passes = Passes { exact: self, engine, matcher, budget, moves, visited: 0, complete: true, regions: Vec::new() };
            let exact = passes.run();
            visited += passes.visited;
            complete |= exact && is_input;
            if is_input {
                regions = std::mem::take(&mut passes.regions);
            }
            let script = Script { moves: passes.moves, cost: engine.cost(), key: engine.key() };
            if found.iter().all(|known| known.key != script.key) {
                found.push(script);
            }
            engine.rewind(start);
            if complete {
                break;
            }
        }
        found.sort_by_key(|script| script.cost);
        (Outcome { scripts: found, visited, complete }, regions)
    }
}

/// Passes over a graph.
struct Passes<'s, 'e, 'm> {
    exact: &'s Exact,
    engine: &'s mut Engine<'e>,
    matcher: &'s mut Matcher<'m>,
    budget: &'s mut dyn Budget,
    /// Moves taken so far.
    moves: Vec<Arc<Move>>,
    visited: u64,
    /// Whether, in this pass, no region was given up, and no move left out that crosses a border.
    complete: bool,
    /// The regions of the first pass.
    regions: Vec<Region>,
}

/// What can be saved in a region by so many moves: the most for each number, the last one for more.
#[derive(Clone)]
struct Savings {
    /// What is saved, and how; savings grow.
    by_steps: Vec<(Ns, Vec<Recorded>)>,
    complete: bool,
}

impl Passes<'_, '_, '_> {
    /// Passes until nothing more is saved. Whether the first pass visited, in effect, all that moves
    /// lead to: what follows saves nothing then.
    fn run(&mut self) -> bool {
        let mut barren = 0;
        for pass in 0..PASSES {
            let before = self.engine.cost();
            self.complete = true;
            let taken = self.pass(pass);
            if pass == 0 && self.complete {
                return true;
            }
            // A limited number of steps is shared out once, among all regions.
            if self.exact.steps.is_some() || self.budget.exhausted() {
                break;
            }
            barren = if taken && self.engine.cost() < before { 0 } else { barren + 1 };
            if barren == 2 {
                break;
            }
        }
        false
    }

    /// Searches every region, and takes what saves most; whether anything does.
    fn pass(&mut self, number: usize) -> bool {
        let regions = Regions::of(self.engine.graph(), number % 2 == 1);
        let mut current = Current::of(self.engine, self.matcher);
        let mut known: Vec<(Looks, usize)> = Vec::new();
        let (mut names, mut savings): (Vec<Names>, Vec<Savings>) = (Vec::new(), Vec::new());
        for part in 0..regions.parts.len() {
            let looks = regions.looks(self.engine.graph(), part);
            let like = known.iter().find(|(one, _)| *one == looks).map_or(part, |(_, like)| *like);
            if like == part {
                known.push((looks, part));
            }
            names.push(regions.correspondence(self.engine.graph(), like, part));
            let before = self.visited;
            let found = if like == part { self.solve(&regions, part, &current) } else { savings[like].clone() };
            self.complete &= found.complete;
            if number == 0 {
                let (nodes, graph, prices) = (&regions.parts[part], self.engine.graph(), self.engine.prices());
                let cost = nodes.iter().map(|id| prices.price(graph, *id)).sum();
                let (saved, states) = (found.by_steps.last().map_or(0, |best| best.0), self.visited - before);
                self.regions.push(Region {
                    nodes: nodes.len(),
                    cost,
                    saved,
                    states: if like == part { states } else { self.regions[like].states },
                    alike: (like != part).then_some(like),
                    complete: found.complete,
                });
            }
            savings.push(found);
        }
        let shares = share_out(&savings, self.exact.steps);
        let mut taken = false;
        for (part, (steps, names)) in shares.into_iter().zip(names).enumerate() {
            taken |= self.take((&regions, part), names, &savings[part].by_steps[steps], &mut current);
        }
        taken
    }

    /// Applies in a part what was found in one that looks alike, whose nodes these stand for, or else
    /// what is found there.
    fn take(
        &mut self,
        (regions, part): (&Regions, usize),
        names: Names,
        (saved, recorded): &(Ns, Vec<Recorded>),
        current: &mut Current,
    ) -> bool {
        if recorded.is_empty() {
            return false;
        }
        let moves = current.transfer((self.engine, self.matcher), recorded, names, *saved).or_else(|| {
            // Constants may hold what a guard asks for in one of them only.
            let own = self.solve(regions, part, current);
            let most = recorded.len().min(own.by_steps.len() - 1);
            let (saved, recorded) = if self.exact.steps.is_some() { own.by_steps.get(most) } else { own.by_steps.last() }?;
            current.transfer((self.engine, self.matcher), recorded, Names::default(), *saved)
        });
        self.complete &= moves.is_some();
        let Some(moves) = moves.filter(|moves| !moves.is_empty()) else { return false };
        self.moves.extend(moves);
        true
    }

    /// Visits the states that moves inside of a part lead to, cheapest first.
    fn solve(&mut self, regions: &Regions, part: usize, current: &Current) -> Savings {
        let mut complete = true;
        let mut inside = |engine: &Engine<'_>, step: &Arc<Move>| {
            let is_constant = |id: &NodeId| engine.graph().get(*id).is_some_and(|node| node.constant);
            let mut nodes = step.nodes.iter().filter(|id| !is_constant(id));
            let is_inside = nodes.clone().all(|id| regions.owns(part, *id));
            // A move of which some nodes are inside crosses the border.
            complete &= is_inside || !nodes.any(|id| regions.owns(part, *id));
            is_inside
        };
        let (depth, cost) = (self.engine.depth(), self.engine.cost());
        let mut moves = current.moves().clone();
        moves.retain(|step| inside(self.engine, step));
        let root = Rc::new(Visited { parent: None, cost, steps: 0, moves });
        let mut cheapest = vec![root.clone()];
        let mut seen = FxHashMap::from_iter([(self.engine.key(), 0)]);
        let mut queue = BinaryHeap::from([(Reverse(cost), Reverse(0usize))]);
        let (mut states, mut visited, mut given_up) = (vec![root], 0, false);
        'all: while let Some((_, Reverse(at))) = queue.pop() {
            let state = states[at].clone();
            if self.exact.steps.is_some_and(|most| state.steps >= most) {
                continue;
            }
            state.enter(self.engine);
            for step in state.moves.iter() {
                if visited >= self.exact.states || self.budget.exhausted() {
                    given_up = true;
                    break 'all;
                }
                self.engine.apply(step);
                visited += 1;
                let (cost, key, steps) = (self.engine.cost(), self.engine.key(), state.steps + 1);
                if self.engine.repriced().any(|id| !regions.owns(part, id)) {
                    // What lies across the border is for a pass whose cuts are elsewhere.
                    given_up = true;
                } else if seen.get(&key).is_none_or(|before| self.exact.steps.is_some() && *before > steps) {
                    seen.insert(key, steps);
                    let mut moves = next_moves(self.engine, self.matcher, &state.moves);
                    moves.retain(|step| inside(self.engine, step));
                    let parent = Some((state.clone(), Recorded::latest(self.engine, step), step.clone()));
                    let child = Rc::new(Visited { parent, cost, steps, moves });
                    offer(&mut cheapest, &child);
                    queue.push((Reverse(cost), Reverse(states.len())));
                    states.push(child);
                }
                self.engine.undo();
            }
            self.engine.rewind(depth);
        }
        self.engine.rewind(depth);
        self.visited += visited;
        let by_steps = cheapest.iter().map(|state| (cost - state.cost, state.path())).collect();
        Savings { by_steps, complete: complete && !given_up }
    }
}

/// A state, as the path to it.
struct Visited {
    parent: Option<(Rc<Visited>, Recorded, Arc<Move>)>,
    cost: Ns,
    steps: usize,
    moves: Moves,
}

impl Visited {
    fn path(&self) -> Vec<Recorded> {
        let mut path = Vec::with_capacity(self.steps);
        let mut at = &self.parent;
        while let Some((parent, recorded, _)) = at {
            path.push(recorded.clone());
            at = &parent.parent;
        }
        path.reverse();
        path
    }

    /// Takes the engine from the start to this state.
    fn enter(&self, engine: &mut Engine<'_>) {
        if let Some((parent, _, step)) = &self.parent {
            parent.enter(engine);
            engine.apply(step);
        }
    }
}

/// Keeps, for each number of steps, the cheapest state that at most so many lead to.
fn offer(cheapest: &mut Vec<Rc<Visited>>, state: &Rc<Visited>) {
    while cheapest.len() <= state.steps {
        cheapest.extend(cheapest.last().cloned());
    }
    for known in &mut cheapest[state.steps..] {
        if state.cost < known.cost {
            *known = state.clone();
        }
    }
}

/// How many steps each region gets, `limit` in all, so that most is saved.
fn share_out(savings: &[Savings], limit: Option<usize>) -> Vec<usize> {
    let Some(limit) = limit else { return savings.iter().map(|one| one.by_steps.len() - 1).collect() };
    // What the regions so far save by at most so many steps, and how many the last of them takes.
    let mut best: Vec<Ns> = vec![0; limit + 1];
    let mut choices: Vec<Vec<usize>> = Vec::with_capacity(savings.len());
    for one in savings {
        let most = one.by_steps.len() - 1;
        let mut choice = vec![0; limit + 1];
        let mut next = best.clone();
        for steps in 0..=limit {
            for own in 1..=most.min(steps) {
                let saved = best[steps - own] + one.by_steps[own].0;
                if saved > next[steps] {
                    (next[steps], choice[steps]) = (saved, own);
                }
            }
        }
        choices.push(choice);
        best = next;
    }
    let (mut left, mut shares) = (limit, vec![0; savings.len()]);
    for (share, choice) in shares.iter_mut().zip(&choices).rev() {
        *share = choice[left];
        left -= *share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_where_they_save_most() {
        let region = |saved: &[Ns]| Savings { by_steps: saved.iter().map(|saved| (*saved, Vec::new())).collect(), complete: true };
        // The second region saves nothing before its third step.
        let savings = [region(&[0, 4, 5]), region(&[0, 0, 0, 20]), region(&[0, 3])];
        assert_eq!(share_out(&savings, Some(1)), [1, 0, 0]);
        assert_eq!(share_out(&savings, Some(2)), [1, 0, 1]);
        assert_eq!(share_out(&savings, Some(3)), [0, 3, 0]);
        assert_eq!(share_out(&savings, Some(4)), [1, 3, 0]);
        assert_eq!(share_out(&savings, None), [2, 3, 1]);
    }
}
