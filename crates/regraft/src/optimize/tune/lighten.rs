//! A proposal that exceeds the limits on what a process takes that loads it: which searches find
//! lighter ones.

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::starting::{is_within, of_input};
use crate::optimize::surcharge::weights;
use crate::optimize::tune::record::retrace;
use crate::optimize::tune::{Tuner, found_from};
use crate::report::Aim;

/// Searches for how much weights must cost to be within the limits, and the factor between the
/// first tries.
const SEARCHES: usize = 5;
const STEP: f64 = 4.0;
/// Part of what the limits seem to allow that is aimed at.
const CAUTION: f64 = 0.9;

impl Tuner<'_, '_> {
    /// After a proposal that exceeds the limits: later searches find lighter ones. Where its
    /// weights have grown, searches pay for them from now on; otherwise the rule after which it
    /// exceeds the limits is left out.
    pub(super) fn lighten(&mut self) -> Result<(), Failure> {
        let Some(heavy) = self.heavy.take() else { return Ok(()) };
        let bindings = self.run.job.sizes().symbols.clone();
        let (least, most) = (weights(&self.start.graph, &bindings), weights(&heavy.graph, &bindings));
        if most <= least {
            return self.leave_out_heavy(&heavy).map(drop);
        }
        let share = self.run.job.request.limits.allowed_share(of_input(self.run).as_ref(), heavy.startup.as_ref());
        let goal = least + (most - least) * share * CAUTION;
        // What a byte of the heavy one gains on average.
        let prices = self.run.evaluator.prices();
        let gain = prices.total(&self.start.graph).saturating_sub(prices.total(&heavy.graph)).max(1) as f64;
        let (mut low, mut high) = (self.run.surcharge, f64::INFINITY);
        let mut rate = (gain / (most - least)).max(low * STEP);
        for _ in 0..SEARCHES {
            self.run.surcharge = rate;
            if self.is_out_of_time(None) {
                break;
            }
            let found = found_from(self.run, &self.turns, &self.start, &self.library, Aim::Exploit);
            let is_light = found.best.first().is_none_or(|proposal| weights(&proposal.graph, &bindings) <= goal);
            *(if is_light { &mut high } else { &mut low }) = rate;
            rate = match (low > 0.0, high.is_finite()) {
                (true, true) => (low * high).sqrt(),
                (_, false) => low * STEP,
                (false, true) => high / STEP,
            };
        }
        self.run.surcharge = if high.is_finite() { high } else { rate };
        Ok(())
    }

    /// Leaves out the rule of the first rewrite after which a proposal exceeds the limits, found by
    /// bisection; false if there is none, or no time.
    pub(super) fn leave_out_heavy(&mut self, heavy: &Candidate) -> Result<bool, Failure> {
        let places = heavy.script.places();
        let (mut light, mut wrong) = (self.start.rewrites.len(), places.len());
        if light >= wrong || !heavy.script.bodies.is_empty() {
            return Ok(false);
        }
        while wrong - light > 1 {
            if self.is_out_of_time(None) {
                return Ok(false);
            }
            let middle = (light + wrong) / 2;
            let (job, prices) = (self.run.job, self.run.evaluator.prices().model());
            let Some(shorter) = retrace(&places[..middle], &job.input.graph, prices, &self.library, &job.writable()) else {
                return Ok(false);
            };
            let name = self.run.next_name();
            let Some(mut shorter) = self.run.realize(name, shorter)? else { return Ok(false) };
            *(if is_within(self.run, &mut shorter) { &mut light } else { &mut wrong }) = middle;
        }
        let Some(applied) = heavy.script.applied().nth(wrong - 1) else { return Ok(false) };
        let (what, at) = (applied.rule.clone(), applied.at.clone());
        self.leave_out(what, at, "the model exceeds the limits after it, and it was left out".into());
        Ok(true)
    }
}
