//! `Beside`: a search in a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use crate::engine::{Engine, MatchCache, Matcher, Refusals};
use crate::strategy::{Outcome, Strategy};
use regraft_ir::Budget;
use regraft_ir::parallel::joined;

/// A search that another thread runs, from the same state and with the same rules and prices.
pub(crate) struct Beside<'scope> {
    thread: ScopedJoinHandle<'scope, (Outcome, (MatchCache, Refusals))>,
    stop: Arc<AtomicBool>,
    /// A message whenever it asks whether its budget is exhausted, while somebody waits for it.
    asks: Receiver<()>,
}

impl<'scope> Beside<'scope> {
    /// Starts a search from the current state.
    pub(crate) fn start<'env, 'e: 'scope, 'm: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        strategy: &'scope (dyn Strategy + Sync),
        engine: &Engine<'e>,
        matcher: &mut Matcher<'m>,
    ) -> Beside<'scope> {
        let stop = Arc::new(AtomicBool::new(false));
        let (graph, prices) = (engine.graph().clone(), engine.prices());
        let (mut matcher, asked) = (matcher.beside(), stop.clone());
        // Nothing is kept: a message arrives only where the other end waits for one.
        let (ask, asks) = sync_channel(0);
        let thread = scope.spawn(move || {
            let mut engine = Engine::new(graph, prices);
            let mut budget = || {
                let _ = ask.try_send(());
                asked.load(Ordering::Relaxed)
            };
            let found = strategy.search(&mut engine, &mut matcher, &mut budget);
            let refusals = std::mem::take(&mut matcher.refusals);
            (found, (matcher.into_cache(), refusals))
        });
        Beside { thread, stop, asks }
    }

    /// What it found, at the latest soon after the budget is exhausted; keys are those of an engine
    /// that started there. What it could not rewrite is added to what `matcher` could not.
    pub(crate) fn wait(self, matcher: &mut Matcher<'_>, budget: &mut dyn Budget) -> Outcome {
        let mut over = budget.exhausted();
        while !over && self.asks.recv().is_ok() {
            over = budget.exhausted();
        }
        self.stop.store(over, Ordering::Relaxed);
        let (found, learned) = joined(self.thread);
        matcher.join(learned);
        found
    }
}
