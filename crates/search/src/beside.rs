//! `Beside`: a search in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::budget::Budget;
use crate::engine::{Engine, Matcher, Refusals};
use crate::strategy::{Outcome, Strategy};

/// How often a search is asked whether it has ended, and the budget whether it must.
const PERIOD: Duration = Duration::from_millis(1);

/// A search that another thread runs, from the same state and with the same rules and prices.
pub(crate) struct Beside<'scope> {
    thread: ScopedJoinHandle<'scope, (Outcome, Refusals)>,
    stop: Arc<AtomicBool>,
}

impl<'scope> Beside<'scope> {
    /// Starts a search from the current state.
    pub(crate) fn start<'env, 'a: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        strategy: &'scope (dyn Strategy + Sync),
        engine: &Engine<'a>,
        matcher: &Matcher<'a>,
    ) -> Beside<'scope> {
        let stop = Arc::new(AtomicBool::new(false));
        let (graph, prices) = (engine.graph().clone(), engine.prices());
        let (library, writable, asked) = (matcher.library(), matcher.writable(), stop.clone());
        let thread = scope.spawn(move || {
            let (mut engine, mut matcher) = (Engine::new(graph, prices), Matcher::new(library, writable));
            let found = strategy.search(&mut engine, &mut matcher, &mut || asked.load(Ordering::Relaxed));
            (found, matcher.refusals)
        });
        Beside { thread, stop }
    }

    /// What it found, at the latest soon after the budget is exhausted; keys are those of an engine
    /// that started there. What it could not rewrite is added to what `matcher` could not.
    pub(crate) fn wait(self, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        while !self.thread.is_finished() {
            if budget.exhausted() {
                self.stop.store(true, Ordering::Relaxed);
                break;
            }
            std::thread::sleep(PERIOD);
        }
        let (found, refusals) = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for (why, places) in refusals {
            matcher.refusals.entry(why).or_default().extend(places);
        }
        found
    }
}
