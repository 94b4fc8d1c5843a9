//! How a run divides its time.

use std::time::{Duration, Instant};

use crate::optimize::compare::FINALISTS;

/// Share of the budget that tuning may take; the rest is for comparing and checking.
const TUNING: f64 = 0.5;
/// Share of the budget after which no new comparison starts.
const COMPARING: f64 = 0.72;
/// Share of the budget that one search may take.
const SLICE: f64 = 0.08;
/// Trials in a row without progress before tuning ends.
const PATIENCE: usize = 6;
/// What counts as progress: the whole model's time falls by this fraction.
const PROGRESS: f64 = 0.003;
/// How long the first trial, the first comparison and the check take, in units of the time that
/// profiling the input took. Each opens about as many sessions as profiling does.
const TRIAL: f64 = 1.8;
const COMPARISON: f64 = 0.8;
const CHECK: f64 = 1.6;
/// Share of a trial spent opening a model, and the runs that a comparison needs to tell candidates
/// apart.
const LOADING: f64 = 0.4;
const TELLING: u32 = 16;

/// The clock of a run: its budget, how long its steps take, and what they bring.
#[derive(Debug)]
pub struct TimeBudget {
    start: Instant,
    budget: Duration,
    /// How long profiling the input took.
    profiling: Duration,
    /// How long one run of the input takes.
    run: Duration,
    /// The longest time that trying one proposal took.
    trial: Duration,
    best: f64,
    barren: usize,
}

impl TimeBudget {
    /// A run that began at `start`.
    pub fn new(start: Instant, budget: Duration) -> TimeBudget {
        TimeBudget { start, budget, profiling: Duration::ZERO, run: Duration::ZERO, trial: Duration::ZERO, best: 1.0, barren: 0 }
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// When everything must be done.
    pub fn deadline(&self) -> Instant {
        self.start + self.budget
    }

    fn at(&self, part: f64) -> Instant {
        self.start + self.budget.mul_f64(part)
    }

    /// When tuning ends.
    pub fn tuning_ends(&self) -> Instant {
        self.at(TUNING)
    }

    /// When comparing ends.
    pub fn comparing_ends(&self) -> Instant {
        self.at(COMPARING)
    }

    /// When a search that begins now must end.
    pub fn search_ends(&self) -> Instant {
        self.tuning_ends().min(Instant::now() + self.budget.mul_f64(SLICE))
    }

    /// Records that the input was profiled; one run of it takes `run`.
    pub fn profiled(&mut self, took: Duration, run: Duration) {
        (self.profiling, self.run) = (took, run);
    }

    /// Records that a proposal was tried; `ratio` is its time relative to the input's, if measured.
    pub fn tried(&mut self, took: Duration, ratio: Option<f64>) {
        self.trial = self.trial.max(took);
        let Some(ratio) = ratio else { return };
        if ratio < self.best * (1.0 - PROGRESS) {
            self.best = ratio;
            self.barren = 0;
        } else {
            self.barren += 1;
        }
    }

    /// Whether the last trials brought no progress.
    pub fn is_stale(&self) -> bool {
        self.barren >= PATIENCE
    }

    /// Restarts the wait for progress.
    pub fn renew_patience(&mut self) {
        self.barren = 0;
    }

    /// The smallest budget that would have left time for a trial, if this one does not.
    pub fn too_short(&self) -> Option<Duration> {
        let least = self.start.elapsed() + self.profiling.mul_f64(TRIAL + COMPARISON + CHECK);
        (self.trial.is_zero() && !self.profiling.is_zero() && least > self.budget).then_some(least)
    }

    /// True if one more trial would end in time. The first may take longer than its share of the
    /// budget, if what must follow still fits.
    pub fn affords_trial(&self) -> bool {
        if self.trial.is_zero() {
            return Instant::now() + self.profiling.mul_f64(TRIAL + COMPARISON + CHECK) <= self.at(1.0);
        }
        Instant::now() + self.trial <= self.tuning_ends()
    }

    /// True if a first comparison and its check would end in time.
    pub fn affords_comparison(&self) -> bool {
        Instant::now() + self.profiling.mul_f64(COMPARISON + CHECK) <= self.at(1.0)
    }

    /// How many candidates can be compared with the input in the remaining time, with enough rounds
    /// to tell them apart.
    pub fn finalists(&self) -> usize {
        let left = self.comparing_ends().saturating_duration_since(Instant::now()).as_secs_f64();
        let each = (self.trial.mul_f64(LOADING) + self.run * TELLING).as_secs_f64().max(1e-3);
        ((left / each).round() as usize).saturating_sub(1).clamp(1, FINALISTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_and_progress_renews_it() {
        let mut budget = TimeBudget::new(Instant::now(), Duration::from_secs(1000));
        for _ in 0..PATIENCE - 1 {
            budget.tried(Duration::from_millis(1), Some(1.01));
        }
        assert!(!budget.is_stale());
        budget.tried(Duration::from_millis(1), Some(0.9));
        // Too small a step, and a trial without a measurement.
        budget.tried(Duration::from_millis(1), Some(0.9 - 1e-4));
        budget.tried(Duration::from_millis(1), None);
        assert!(!budget.is_stale());
        (1..PATIENCE).for_each(|_| budget.tried(Duration::from_millis(1), Some(0.95)));
        assert!(budget.is_stale());
        budget.renew_patience();
        assert!(!budget.is_stale());
    }

    #[test]
    fn a_trial_that_leaves_no_time_for_the_rest_is_not_begun() {
        let mut budget = TimeBudget::new(Instant::now(), Duration::from_secs(10));
        budget.profiled(Duration::from_secs(2), Duration::ZERO);
        assert!(budget.affords_trial());
        budget.profiled(Duration::from_secs(3), Duration::from_millis(200));
        assert!(!budget.affords_trial());
        budget.tried(Duration::from_secs(6), None);
        assert!(!budget.affords_trial());
        assert_eq!(budget.finalists(), 1);
        assert!(budget.affords_comparison());
        budget.profiled(Duration::from_secs(5), Duration::ZERO);
        assert!(!budget.affords_comparison());
    }
}
