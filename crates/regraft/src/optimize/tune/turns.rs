//! `Turns`: a portfolio whose slower members are asked as long as they win.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use regraft_ir::Budget;
use regraft_search::{Engine, Matcher, Outcome, Script, Strategy};

use crate::optimize::request::Search;
use crate::optimize::time_budget::TimeBudget;
use crate::optimize::tune::WORTHWHILE;
use crate::optimize::tune::backoff::Backoff;

/// When to ask the slower members of a portfolio: less and less, unless what they find is faster in
/// a trial than all before.
#[derive(Default)]
pub struct Turns {
    /// By name, to learn from what they find or not.
    backoffs: RefCell<BTreeMap<Member, Backoff>>,
    /// Those that found the proposal that is tried next.
    waiting: RefCell<Vec<Member>>,
}

/// The name of a member, and whether what it finds is only to be learned from.
type Member = (&'static str, bool);

impl Turns {
    /// The members of this search as one, the fastest first, which is always asked; the others when
    /// it is their turn and the clock allows it.
    pub fn of<'t>(&'t self, search: Search, learns: bool, clock: Option<&TimeBudget>) -> impl Strategy + use<'t> {
        // Nobody tried what was found before.
        self.judge(false);
        let times = clock.map(|clock| Times { first: clock.slice(), other: clock.slice().min(clock.trial()), until: clock.trials_end() });
        Asked { members: search.members(learns, clock.is_some_and(TimeBudget::is_short)), learns, times, turns: self }
    }

    /// Records whether the proposal that was tried is faster than all before.
    pub fn judge(&self, won: bool) {
        self.waiting.take().into_iter().for_each(|member| self.record(member, won));
    }

    fn is_due(&self, member: Member) -> bool {
        self.backoffs.borrow_mut().entry(member).or_default().is_due()
    }

    fn record(&self, member: Member, won: bool) {
        self.backoffs.borrow_mut().entry(member).or_default().record(won);
    }
}

struct Asked<'t> {
    members: Vec<Box<dyn Strategy>>,
    learns: bool,
    times: Option<Times>,
    turns: &'t Turns,
}

/// How much time there is.
#[derive(Clone, Copy)]
struct Times {
    /// How long the first member may take.
    first: Duration,
    /// How long each of the others may take: they may tell less than a trial.
    other: Duration,
    /// When these must have ended: what was found is to be tried.
    until: Instant,
}

impl Times {
    /// When a member that begins now must end.
    fn ends(self, at: usize) -> Instant {
        let now = Instant::now();
        if at == 0 { now + self.first } else { self.until.min(now + self.other) }
    }
}

impl Strategy for Asked<'_> {
    fn name(&self) -> &'static str {
        "turns"
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let mut all = Outcome::of(Script::here(engine));
        for (at, strategy) in self.members.iter().enumerate() {
            let (member, is_late) = ((strategy.name(), self.learns), self.times.is_some_and(|times| Instant::now() >= times.until));
            if at > 0 && (is_late || !self.turns.is_due(member)) {
                continue;
            }
            let before = all.scripts[0].cost;
            let ends = self.times.map(|times| times.ends(at));
            let mut in_slice = || ends.is_some_and(|ends| Instant::now() >= ends) || budget.exhausted();
            all.add(strategy.search_after(&all, engine, matcher, &mut in_slice));
            if at > 0 && (all.scripts[0].cost as f64) < before as f64 * (1.0 - WORTHWHILE) {
                self.turns.waiting.borrow_mut().push(member);
            } else if at > 0 {
                self.turns.record(member, false);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_what_is_slower_when_it_is_tried_is_asked_less() {
        let (turns, member) = (Turns::default(), ("exact", false));
        let asked = |won| {
            let is_due = turns.is_due(member);
            if is_due {
                turns.waiting.borrow_mut().push(member);
                turns.judge(won);
            }
            is_due
        };
        assert_eq!([true, false, true, true].map(asked), [true, true, false, true]);
        assert!(turns.waiting.borrow().is_empty());
    }
}
