//! `Portfolio`: several searches, one after the other.

use crate::engine::{Engine, Matcher};
use crate::strategy::{Outcome, Script, Strategy};
use regraft_ir::Budget;

/// What any of several searches finds, each from the same state, in the time that those before have
/// left and knowing what they found.
pub struct Portfolio {
    name: &'static str,
    members: Vec<Box<dyn Strategy>>,
}

impl Portfolio {
    /// These searches, under a name of their own.
    pub fn new(name: &'static str, members: Vec<Box<dyn Strategy>>) -> Portfolio {
        Portfolio { name, members }
    }
}

impl Strategy for Portfolio {
    fn name(&self) -> &'static str {
        self.name
    }

    fn search(&self, engine: &mut Engine<'_>, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let mut all = Outcome::of(Script::here(engine));
        for member in &self.members {
            all.add(member.search_after(&all, engine, matcher, budget));
            if budget.exhausted() {
                all.complete = false;
                break;
            }
        }
        all
    }
}
