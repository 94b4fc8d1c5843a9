//! Exact search, region by region.
//!
//! A graph is cut where few values cross. Within a region, every state that moves inside of it lead
//! to is visited, cheapest first, until there are no more or a limit is reached. A move that would
//! change the price of a node outside is left to the next pass, whose cuts are elsewhere: so what
//! regions save adds up exactly. Regions that look alike are searched once. What other searches
//! found is taken apart by regions, and taken where it saves more.
//!
//! With a limited number of steps, they are shared out among the regions such that the sum of what
//! is saved is largest: a convolution of the regions' savings in (max, +).

use std::rc::Rc;
use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::{Budget, NodeId};

use crate::advice::Advisor;
use crate::engine::{Engine, Matcher, Move};
use crate::greedy::Greedy;
use crate::offers::Offers;
use crate::region_search::{Curve, Effort, Lore, RegionSearch};
use crate::regions::{Looks, Regions};
use crate::strategy::{Outcome, Region, Script, Strategy};
use crate::transfer::{Current, Names};

/// Passes over the graph, each with other cuts than the one before, while anything is saved.
const PASSES: usize = 8;

/// Regions of at most so many nodes may have few states: all of them are looked for.
const SMALL: usize = 16;
/// States of such a region that are expanded at most.
const ALL: usize = 1000;
/// Moves that the beam through the whole graph looks at, where the number of steps is not limited:
/// its levels are as many as its steps, and each looks at all moves.
const CANDIDATES: usize = 300_000;
/// States that its longer sequences visit.
const DEEP: u64 = 10_000;
/// Results of other searches that are taken apart by regions, the cheapest first.
const OFFERS: usize = 4;

/// Searches each region exactly, as far as `states` and `expansions` allow, and adds up what they
/// save; before that, the whole graph by descents and by a beam, which cross the borders of
/// regions.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States visited in a region at most.
    pub states: u64,
    /// States of a level of the beam through a region.
    pub beam: usize,
    /// States of a level of the beam through the whole graph.
    pub wide: usize,
    /// Longest sequence in that one which raises the cost before it pays.
    pub ahead: usize,
    /// States expanded after the beams of regions, cheapest first, in all regions together: with a
    /// limited number of steps, and with any.
    pub expansions: (usize, usize),
}

impl Default for Exact {
    fn default() -> Exact {
        Exact { steps: None, states: 5000, beam: 8, wide: 20, ahead: 3, expansions: (200, 1200) }
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

    fn search_after(&self, known: &Outcome, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.run((Some(known), None), engine, matcher, budget).0
    }

    fn search_regions(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> (Outcome, Vec<Region>) {
        self.run((None, None), engine, matcher, budget)
    }
}

impl Exact {
    /// Searches; without descents if others have searched before, and with advice if somebody gives
    /// any.
    pub(crate) fn run(
        &self,
        (known, advisor): (Option<&Outcome>, Option<&dyn Advisor>),
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
    ) -> (Outcome, Vec<Region>) {
        let start = engine.depth();
        let mut found = Outcome::of(Script::here(engine));
        let offers = known.map_or(&[][..], |known| &known.scripts[..known.scripts.len().min(OFFERS)]);
        if let Some(known) = known {
            found.add(Outcome { visited: 0, complete: true, ..known.clone() });
        }
        let mut passes = Passes {
            exact: self,
            engine,
            matcher,
            budget,
            moves: Vec::new(),
            offers,
            solved: Vec::new(),
            lore: Lore::default(),
            advisor,
            found,
            complete: true,
            regions: Vec::new(),
        };
        if known.is_none() {
            passes.descend();
        }
        passes.beam();
        let best = passes.found.scripts[0].moves.clone();
        let complete = passes.run();
        // With a limit, its steps are used up.
        if !complete && self.steps.is_none() && !best.is_empty() {
            passes.from(best);
        }
        let (found, regions) = (passes.found, passes.regions);
        engine.rewind(start);
        (Outcome { complete, ..found }, regions)
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
    /// What other searches found, the cheapest first.
    offers: &'s [Script],
    /// Regions that were searched.
    solved: Vec<Solved>,
    /// What is known of moves.
    lore: Lore,
    /// Who gives advice to beams.
    advisor: Option<&'s dyn Advisor>,
    /// What was found so far, and the states visited.
    found: Outcome,
    /// Whether, in this pass, no region was given up, and no move left out that crosses a border.
    complete: bool,
    /// The regions of the first pass.
    regions: Vec<Region>,
}

/// A region that was searched.
struct Solved {
    looks: Looks,
    /// Its nodes and those around it.
    frame: Vec<NodeId>,
    curve: Rc<Curve>,
    /// How many steps were allowed.
    steps: Option<usize>,
    /// Its number in the first pass.
    first: usize,
}

impl Passes<'_, '_, '_> {
    /// Searches the whole graph by descents.
    fn descend(&mut self) {
        let greedy = Greedy { steps: self.exact.steps, ..Greedy::default() };
        let pieces_last = self.exact.steps.is_none().then_some(Greedy { pieces_last: true, ..greedy });
        for descent in std::iter::once(greedy).chain(pieces_last) {
            let outcome = descent.search(self.engine, self.matcher, self.budget);
            self.found.add(outcome);
        }
    }

    /// Searches the whole graph by a beam.
    fn beam(&mut self) {
        let regions = Regions::whole(self.engine.graph());
        let current = Current::of(self.engine, self.matcher);
        let Exact { steps, wide: beam, ahead, .. } = *self.exact;
        let effort = Effort { steps, states: u64::MAX, beam, ahead, deep: DEEP, candidates: CANDIDATES, expansions: 0 };
        let with = (effort, &mut self.lore, self.advisor);
        let (curve, visited) = RegionSearch::new((self.engine, self.matcher, self.budget), (&regions, 0), current.moves(), with).run();
        let moves = curve.by_steps.last().into_iter().flat_map(|(_, recorded)| recorded.iter().map(|one| one.step.clone()));
        let mut script = Script { moves: moves.collect(), ..Script::here(self.engine) };
        script.retrace(self.engine);
        self.found.add(Outcome { visited, ..Outcome::of(script) });
    }

    /// Passes from where these moves lead.
    fn from(&mut self, moves: Vec<Arc<Move>>) {
        let start = self.engine.depth();
        moves.iter().for_each(|step| self.engine.apply(step));
        self.moves = moves;
        self.run();
        self.engine.rewind(start);
        self.moves.clear();
    }

    /// Passes until nothing more is saved. Whether the first pass visited, in effect, all that
    /// moves lead to: what follows saves nothing then.
    fn run(&mut self) -> bool {
        let (start, moves) = (self.engine.depth(), self.moves.len());
        // Steps are shared out among the regions of one cut at a time.
        let orders: &[usize] = if self.exact.steps.is_some() { &[0, 1] } else { &[0] };
        for order in orders {
            let mut barren = 0;
            for pass in 0..PASSES {
                let before = self.engine.cost();
                self.complete = true;
                self.pass(pass + order, self.regions.is_empty());
                if pass + order == 0 && self.complete && moves == 0 {
                    self.keep();
                    return true;
                }
                if self.budget.exhausted() || self.left() == Some(0) {
                    break;
                }
                barren = if self.engine.cost() < before { 0 } else { barren + 1 };
                if barren == 2 {
                    break;
                }
            }
            self.keep();
            self.engine.rewind(start);
            self.moves.truncate(moves);
        }
        false
    }

    /// Keeps what was found, and a descent from there.
    fn keep(&mut self) {
        let left = self.left();
        if left != Some(0) && !self.budget.exhausted() {
            let descent = Greedy { steps: left, depth: 1, ..Greedy::default() }.search(self.engine, self.matcher, self.budget);
            self.found.visited += descent.visited;
            for step in descent.scripts.into_iter().take(1).flat_map(|script| script.moves) {
                self.engine.apply(&step);
                self.moves.push(step);
            }
        }
        let script = Script { moves: self.moves.clone(), ..Script::here(self.engine) };
        self.found.add(Outcome { visited: 0, ..Outcome::of(script) });
    }

    /// How many more moves may follow.
    fn left(&self) -> Option<usize> {
        self.exact.steps.map(|most| most.saturating_sub(self.moves.len()))
    }

    /// Searches every region, and takes what saves most.
    fn pass(&mut self, number: usize, is_first: bool) {
        let regions = Regions::of(self.engine.graph(), number % 2 == 1);
        let mut current = Current::of(self.engine, self.matcher);
        let (mut names, mut curves): (Vec<Names>, Vec<Rc<Curve>>) = (Vec::new(), Vec::new());
        let left = self.left();
        // They start where the first pass does.
        let offers = if number == 0 && self.moves.is_empty() && left.is_none() { self.offers } else { &[] };
        let offers = Offers::of(self.engine, &regions, offers);
        for part in 0..regions.parts.len() {
            let (looks, frame) = (regions.looks(self.engine.graph(), part), regions.frame(self.engine.graph(), part));
            let known = self.solved.iter().position(|one| one.looks == looks && one.steps == left);
            let before = self.found.visited;
            let at = known.unwrap_or_else(|| {
                let curve = Rc::new(self.solve(&regions, part, &current));
                self.solved.push(Solved { looks, frame: frame.clone(), curve, steps: left, first: part });
                self.solved.len() - 1
            });
            let Solved { curve, first, frame: there, .. } = &self.solved[at];
            let (mut curve, mut stand_for): (_, Names) = (curve.clone(), there.iter().copied().zip(frame).collect());
            let (first, saved) = (*first, curve.by_steps.last().map_or(0, |best| best.0));
            let offered = offers.best((self.engine, self.matcher), (&regions, part), &current);
            if let Some(more) = offered.filter(|(more, _)| *more > saved) {
                curve = Rc::new(Curve { by_steps: vec![(0, Vec::new()), more], ..*curve });
                stand_for.clear();
            }
            names.push(stand_for);
            self.complete &= curve.exhausted && !curve.crossed;
            if is_first {
                let (nodes, graph, prices) = (&regions.parts[part], self.engine.graph(), self.engine.prices());
                let cost = nodes.iter().map(|id| prices.price(graph, *id)).sum();
                let saved = curve.by_steps.last().map_or(0, |best| best.0);
                let states = if known.is_none() { self.found.visited - before } else { self.regions[first].states };
                let complete = curve.exhausted && !curve.crossed;
                self.regions.push(Region { nodes: nodes.len(), cost, saved, states, alike: known.map(|_| first), complete });
            }
            curves.push(curve);
        }
        for (part, (steps, names)) in share_out(&curves, left).into_iter().zip(names).enumerate() {
            self.take((&regions, part), names, (&curves[part], steps), &mut current);
        }
    }

    /// Applies in a part what was found in one that looks alike, whose nodes these stand for, or
    /// else what is found there.
    fn take(&mut self, (regions, part): (&Regions, usize), names: Names, (curve, steps): (&Curve, usize), current: &mut Current) {
        let (saved, recorded) = &curve.by_steps[steps];
        if recorded.is_empty() {
            return;
        }
        let moves = current.transfer((self.engine, self.matcher), recorded, names, *saved).or_else(|| {
            // Constants may hold what a guard asks for in one of them only.
            let own = self.solve(regions, part, current);
            let most = recorded.len().min(own.by_steps.len() - 1);
            let (saved, recorded) = if self.exact.steps.is_some() { own.by_steps.get(most) } else { own.by_steps.last() }?;
            current.transfer((self.engine, self.matcher), recorded, Names::default(), *saved)
        });
        self.complete &= moves.is_some();
        self.moves.extend(moves.into_iter().flatten());
    }

    /// Visits the states that moves inside of a part lead to.
    fn solve(&mut self, regions: &Regions, part: usize, current: &Current) -> Curve {
        let (steps, Exact { states, beam, ahead, expansions, .. }) = (self.left(), *self.exact);
        let expansions = match steps {
            _ if regions.parts[part].len() <= SMALL => ALL,
            Some(_) => expansions.0 / regions.parts.len(),
            None => expansions.1 / regions.parts.len(),
        };
        // Long sequences were looked for in the whole graph.
        let effort = Effort { steps, states, beam, ahead, deep: 0, candidates: usize::MAX, expansions };
        let with = (effort, &mut self.lore, self.advisor);
        let search = RegionSearch::new((self.engine, self.matcher, self.budget), (regions, part), current.moves(), with);
        let (curve, visited) = search.run();
        self.found.visited += visited;
        curve
    }
}

/// How many steps each region gets, `limit` in all, so that most is saved.
fn share_out(savings: &[Rc<Curve>], limit: Option<usize>) -> Vec<usize> {
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
        let region = |saved: &[Ns]| {
            let by_steps = saved.iter().map(|saved| (*saved, Vec::new())).collect();
            Rc::new(Curve { by_steps, exhausted: true, crossed: false })
        };
        // The second region saves nothing before its third step.
        let savings = [region(&[0, 4, 5]), region(&[0, 0, 0, 20]), region(&[0, 3])];
        assert_eq!(share_out(&savings, Some(1)), [1, 0, 0]);
        assert_eq!(share_out(&savings, Some(2)), [1, 0, 1]);
        assert_eq!(share_out(&savings, Some(3)), [0, 3, 0]);
        assert_eq!(share_out(&savings, Some(4)), [1, 3, 0]);
        assert_eq!(share_out(&savings, None), [2, 3, 1]);
    }
}
