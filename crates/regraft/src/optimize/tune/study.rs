//! What pays is found out on an excerpt of the model first, where a trial takes a fraction of the
//! time.

use std::time::Instant;

use regraft_cost::Pricing;

use crate::error::Failure;
use crate::limits::Limits;
use crate::optimize::evaluate::learning;
use crate::optimize::excerpt::Excerpt;
use crate::optimize::load::{Input, Job, clean};
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::request::Request;
use crate::optimize::run::{Journal, Run};
use crate::optimize::time_budget::TimeBudget;
use crate::optimize::tune::Tuner;
use crate::report::Trial;

/// Progress of the study of an excerpt.
struct Studying<'o>(&'o mut dyn Observer);

impl Observer for Studying<'_> {
    fn phase(&mut self, phase: Phase, detail: &str) {
        self.0.phase(phase, &format!("excerpt: {detail}"));
    }

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}

impl Tuner<'_, '_> {
    /// Proposes and measures on an excerpt of the input in turn: prices belong to nodes and what is
    /// around them, so they hold for the whole. Whether there was one.
    pub(super) fn study(&mut self) -> Result<bool, Failure> {
        let run = &mut *self.run;
        let time = run.clock.studying();
        if time.is_zero() || !run.evaluator.learns() || run.job.refusal.is_some() || !self.candidates.is_empty() {
            return Ok(false);
        }
        let prices = run.evaluator.prices_mut();
        prices.set_pricing(Pricing::Pessimistic);
        let graph = &run.job.input.graph;
        let Some(excerpt) = Excerpt::of(run.job, &|id| prices.model().price(graph, id)) else { return Ok(false) };
        let lent = prices.lend(excerpt.bindings.iter().map(|binding| &binding.sizes.symbols));
        let share = 100.0 * excerpt.share;
        let job = part(run.job, excerpt);
        let mut studying = Studying(&mut *run.observer);
        studying.0.phase(Phase::Search, &format!("what pays in an excerpt that takes {share:.0} % of the time"));
        let journal = Journal { complete: true, named: run.journal.named, ..Journal::default() };
        let begun = Instant::now();
        let clock = TimeBudget::for_tuning(begun, time);
        let mut inner = Run::of(&job, learning(&job, lent), clock, journal, &mut studying);
        let mut tuner = Tuner::new(&mut inner);
        (tuner.library, tuner.explored) = (std::mem::take(&mut self.library), std::mem::take(&mut self.explored));
        let done = tuner.profile_input().and_then(|()| tuner.rounds(0, None));
        (self.library, self.explored) = (std::mem::take(&mut tuner.library), std::mem::take(&mut tuner.explored));
        let (learned, Journal { seconds, visited, measured, named, trials, .. }) = inner.into_learned();
        let run = &mut *self.run;
        run.evaluator.prices_mut().take_back(learned);
        run.journal.seconds.search += seconds.search;
        run.journal.seconds.measure += seconds.measure;
        run.journal.visited += visited;
        run.journal.named = named;
        let begun = begun.duration_since(run.clock.start()).as_secs_f64();
        let of_excerpt = |trial: Trial| Trial { model: format!("excerpt: {}", trial.model), begun: begun + trial.begun, ..trial };
        run.journal.trials.extend(trials.into_iter().map(of_excerpt));
        run.journal.excerpts += measured;
        // An excerpt that does not run tells nothing, and is no reason to give up.
        Ok(done.is_ok() && measured > 0)
    }
}

/// An excerpt as a task of its own. What it takes to start with it does not matter.
fn part(whole: &Job, excerpt: Excerpt) -> Job {
    let (graph, cleaned) = clean(excerpt.model.graph());
    let input =
        Input { model: excerpt.model, fixed: Default::default(), opset: None, digest: None, graph, cleaned, flushes: whole.input.flushes };
    Job {
        request: Request { limits: Limits::default(), certificate: None, ..whole.request.clone() },
        input,
        rules: whole.rules.clone(),
        runtime: whole.runtime.clone(),
        threads: whole.threads,
        refusal: None,
        bindings: excerpt.bindings,
        memory: whole.memory,
    }
}
