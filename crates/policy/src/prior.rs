//! `Prior`: best-first search in which a learned policy says what to try next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use regraft_cost::Ns;
use regraft_ir::Budget;
use regraft_search::{Engine, Matcher, Outcome, Strategy};
use rustc_hash::FxHashSet;

use crate::explored::Explored;
use crate::features::Known;
use crate::guide::Guide;

/// Takes the most likely way first (levin tree search: Orseau et al., NeurIPS 2018), where
/// likelihood counts from the cheapest state so far: whenever a cheaper state is found, the search
/// goes on from there, and what was left is kept.
///
/// A move that leads to something cheaper than all so far is taken at once. Otherwise, the policy
/// chooses one of four, and the others are those that lead to the cheapest states by what is known,
/// whatever it says. These take less time, for the policy is shown only what its own moves lead to,
/// and each state that is the cheapest when it comes to choose: so that either has about half of
/// the time.
///
/// With [`Guide::Delta`], the state that is cheapest is expanded first, as in TASO: what a policy
/// is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Prior<'w> {
    /// What guides it.
    pub guide: Guide<'w>,
    /// States expanded at most.
    pub expansions: usize,
    /// Moves of a state that may be tried.
    pub width: usize,
    /// Longest sequence; any, if `None`.
    pub steps: Option<usize>,
    /// States that cost this many times the cheapest one are left.
    pub rise: f64,
    /// Scripts that are returned.
    pub keep: usize,
}

impl<'w> Prior<'w> {
    /// With this guide.
    pub fn new(guide: Guide<'w>) -> Prior<'w> {
        Prior { guide, expansions: 2000, width: 48, steps: None, rise: 1.6, keep: 4 }
    }

    /// Searches, and tells the cost of the cheapest state after each expansion.
    pub fn observed(
        &self,
        engine: &mut Engine<'_>,
        matcher: &mut Matcher<'_>,
        budget: &mut dyn Budget,
        observe: &mut dyn FnMut(usize, Ns),
    ) -> Outcome {
        let explored = Explored::new(self.guide, engine, matcher);
        let seen = FxHashSet::from_iter([explored.states[0].key]);
        let mut search = Searching {
            prior: self,
            explored,
            likely: vec![Likely::default()],
            queue: BinaryHeap::new(),
            cheap: BinaryHeap::new(),
            seen,
            cheapest: 0,
            unseen: None,
        };
        let complete = search.run(budget, observe);
        search.explored.outcome(self.keep, complete)
    }
}

impl Strategy for Prior<'_> {
    fn name(&self) -> &'static str {
        match self.guide {
            Guide::Policy(_) => "prior",
            Guide::Delta => "delta",
        }
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        self.observed(engine, matcher, budget, &mut |_, _| {})
    }
}

/// Every so manieth move is chosen by the policy, if none saves at once.
const CHOSEN: usize = 4;

/// How likely a state and its moves are.
#[derive(Default)]
struct Likely {
    /// How unlikely the way here is, from the state on it that was the cheapest then: a logarithm.
    penalty: f64,
    /// How unlikely each of its moves is, once the policy was shown them.
    unlikely: Vec<f64>,
}

/// A move to take from a state, the most promising first. Numbers are ordered as their bits are:
/// none of them is negative.
type Offer = (Reverse<u64>, Reverse<u64>, u32, usize);

struct Searching<'s, 'w, 'e, 'm> {
    prior: &'s Prior<'w>,
    explored: Explored<'s, 'w, 'e, 'm>,
    /// By state.
    likely: Vec<Likely>,
    /// By the policy.
    queue: BinaryHeap<Offer>,
    /// By price.
    cheap: BinaryHeap<Offer>,
    seen: FxHashSet<u128>,
    cheapest: u32,
    /// What is known of the moves of the cheapest state, if the policy did not see it.
    unseen: Option<Vec<Known>>,
}

impl Searching<'_, '_, '_, '_> {
    /// Whether nothing was left when it ended.
    fn run(&mut self, budget: &mut dyn Budget, observe: &mut dyn FnMut(usize, Ns)) -> bool {
        let mut expanded = 0;
        let mut made = 0;
        self.unseen = Some(self.expand(0, &mut made));
        observe(1, self.cost(0));
        while let Some((is_likely, (.., from, place))) = self.next(expanded, &mut made) {
            if budget.exhausted() || expanded >= self.prior.expansions {
                return false;
            }
            let Likely { penalty, unlikely } = &self.likely[from as usize];
            let penalty = penalty + unlikely.get(place).copied().unwrap_or_default();
            let Some(step) = self.explored.states[from as usize].step(place) else { continue };
            let (key, cost) = self.explored.take(from, &step);
            let least = self.cost(self.cheapest);
            if cost as f64 > least as f64 * self.prior.rise || !self.seen.insert(key) {
                self.explored.leave();
                continue;
            }
            let at = self.explored.keep(from, step);
            let penalty = if cost < least { 0.0 } else { penalty };
            self.likely.push(Likely { penalty, unlikely: Vec::new() });
            if cost < least {
                (self.cheapest, self.unseen) = (at, None);
            }
            expanded += 1;
            if self.prior.steps.is_none_or(|most| self.explored.states[at as usize].depth < most) {
                let known = self.expand(at, &mut made);
                if is_likely {
                    self.show(at, &known, &mut made);
                } else if cost < least {
                    self.unseen = Some(known);
                }
            }
            observe(expanded + 1, self.cost(self.cheapest));
        }
        true
    }

    fn cost(&self, at: u32) -> Ns {
        self.explored.states[at as usize].cost
    }

    /// The next move to take, from either queue, and whether the policy chose it.
    fn next(&mut self, turn: usize, made: &mut u64) -> Option<(bool, Offer)> {
        let priced = |cheap: &mut BinaryHeap<Offer>| cheap.pop().map(|offer| (false, offer));
        let least = (self.cost(self.cheapest) as f64).to_bits();
        let saves = self.cheap.peek().is_some_and(|(Reverse(cost), ..)| *cost < least);
        if (saves || !turn.is_multiple_of(CHOSEN))
            && let Some(offer) = priced(&mut self.cheap)
        {
            return Some(offer);
        }
        if let Some(known) = self.unseen.take() {
            self.show(self.cheapest, &known, made);
        }
        self.queue.pop().map(|offer| (true, offer)).or_else(|| priced(&mut self.cheap))
    }

    /// Finds the moves of the engine's state, and offers them by price; what is known of them.
    fn expand(&mut self, at: u32, made: &mut u64) -> Vec<Known> {
        let known = self.explored.expand(at);
        let cost = self.cost(at);
        for (place, known) in known.iter().enumerate() {
            *made += 1;
            let cost = cost.saturating_add_signed(known.delta) as f64;
            self.cheap.push((Reverse(cost.to_bits()), Reverse(*made), at, place));
        }
        known
    }

    /// Offers the moves of a state by the policy.
    fn show(&mut self, at: u32, known: &[Known], made: &mut u64) {
        let unlikely = unlikely(&self.explored.scores(at, known));
        let penalty = self.likely[at as usize].penalty;
        let mut likely: Vec<(f64, usize)> = unlikely.iter().map(|one| penalty + one).zip(0..).collect();
        likely.sort_by(|a, b| a.0.total_cmp(&b.0));
        likely.truncate(self.prior.width);
        self.likely[at as usize].unlikely = unlikely;
        for (penalty, place) in likely {
            *made += 1;
            self.queue.push((Reverse(penalty.to_bits()), Reverse(*made), at, place));
        }
    }
}

/// How unlikely moves with these scores are: what the logarithms of their probabilities lack to 0.
fn unlikely(scores: &[f32]) -> Vec<f64> {
    let most = scores.iter().fold(f32::NEG_INFINITY, |most, score| most.max(*score));
    let sum: f64 = scores.iter().map(|score| f64::from(score - most).exp()).sum();
    scores.iter().map(|score| sum.ln() - f64::from(score - most)).collect()
}
