//! How a run divides its time.

use std::time::{Duration, Instant};

use crate::optimize::compare::FINALISTS;

/// Share of the budget that tuning may take in any case; the rest is for comparing and checking.
const TUNING: f64 = 0.5;
/// Share that is enough for comparing: tuning may go on until then. If the gain is clear, less is.
const COMPARING: f64 = 0.25;
const COMPARING_CLEAR: f64 = 0.15;
/// Share of the budget after which a result of an earlier run that is not confirmed is doubted.
const CONFIRMING: f64 = 0.35;
/// Least share of the budget that is kept for checking and writing.
const RESERVE: f64 = 0.1;
/// Share of the budget that one search may take.
const SLICE: f64 = 0.08;
/// If fewer trials than this take the whole budget, one tells more than an exact search under
/// prices that are guesses: in 20 s (13 trials), ResNet-50 gains 1.03 to 1.06 without one (four
/// runs) and nothing with it (three); in 45 s (26 trials), Inception-v3 gains 1.03 to 1.07 without
/// (five) and 1.04 to 1.09 with (five).
const MANY_TRIALS: u32 = 24;
/// Share of the time for tuning, less that of a search and a trial, that goes to a part of the
/// model.
const STUDYING: f64 = 2.0 / 3.0;
/// Models of more nodes may take long to open, and how long a trial of one of so many takes if
/// nothing is known about it.
const MANY: usize = 6_000;
const OPENING_MANY: Duration = Duration::from_secs(4);
/// Share of the budget beyond which a trial is costly.
const COSTLY: f64 = 0.12;
/// Trials in a row without progress before tuning ends.
const PATIENCE: usize = 6;
/// What counts as progress: the whole model's time falls by this fraction.
const PROGRESS: f64 = 0.003;
/// How long the first trial, the first comparison and the check take, in units of the time that
/// profiling the input took. Each opens about as many sessions as profiling does.
const TRIAL: f64 = 1.6;
const COMPARISON: f64 = 0.8;
const CHECK: f64 = 1.5;
/// The least that the check takes besides its runs, and what it takes to start processes with the
/// input and with the result, in units of what of profiling the input is not repeated runs.
const CHECK_ONCE: f64 = 2.0;
const STARTING: f64 = 8.0;
/// How long writing takes, in units of the time that loading took, and of the part of it that
/// reading the model took: the less of both, for what a runtime does to load a model may take long
/// or not.
const WRITING: f64 = 1.3;
const WRITING_READ: f64 = 4.0;
/// Share of a trial spent opening a model, and the runs that a comparison needs to tell candidates
/// apart.
const LOADING: f64 = 0.4;
const TELLING: u32 = 16;
/// The sittings among which these are divided.
const SITTINGS: u32 = 2;
/// A model that takes less than this share of the input's time in a trial is faster without a
/// doubt.
const CLEAR: f64 = 0.9;

/// How much longer than its budget a run may take without a word.
const OVERRUN: Duration = Duration::from_secs(1);
/// Share of the budget that the runs of one sitting may take, profiled or not, and the most.
const SITTING: f64 = 0.03;
const LONGEST: Duration = Duration::from_millis(1200);
/// Rounds of a computation whose result is part of its input.
const ROUNDS: usize = 16;

/// Runs of a model for the first comparison and for the check, at the least.
const COMPARED: u32 = 8;
const CHECKED: u32 = 10;
/// A model whose runs take longer than this is run less often, and than the second even less: a
/// disturbance that is over within one of many short runs is a small part of a long one.
const LONG_RUNS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];

/// Whether a run takes so long that it leaves caches as it would find them after any other.
pub fn is_long(run: Duration) -> bool {
    run > LONG_RUNS[0]
}

/// Fewest runs in a sitting, profiled and not, of a model of which one takes so long, if time is
/// not up.
pub fn fewest(run: Duration) -> u32 {
    if run > LONG_RUNS[1] {
        2
    } else if is_long(run) {
        3
    } else {
        5
    }
}

/// How long the runs of one model in a sitting may take, profiled, alone and beside the input.
pub fn sitting(budget: Duration) -> Duration {
    budget.mul_f64(SITTING).min(LONGEST)
}

/// Runs of the input for its profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// How long one takes.
    pub one: Duration,
    /// How long all took that were repeated, profiled or not.
    pub all: Duration,
}

/// The clock of a run: its budget, how long its steps take, and what they bring.
#[derive(Debug)]
pub struct TimeBudget {
    start: Instant,
    budget: Duration,
    /// How long reading the model took, and loading, of which that is a part.
    reading: Duration,
    loading: Duration,
    /// How long the first comparison takes, in units of the time that profiling the input took.
    comparison: f64,
    /// How long everything before profiling took, and how long profiling took.
    before: Duration,
    profiling: Duration,
    /// The part of it that was repeated runs: there are more of them within a larger budget.
    repeated: Duration,
    /// How long one run of the input takes.
    run: Duration,
    /// The longest time that trying one proposal took.
    trial: Duration,
    best: f64,
    barren: usize,
    /// The largest model that was tried out: its nodes, and how long it took.
    largest: (usize, Duration),
    /// When tuning ends that goes on after a comparison.
    lap: Option<Instant>,
}

impl TimeBudget {
    /// A run that began at `start`.
    pub fn new(start: Instant, budget: Duration) -> TimeBudget {
        let (reading, loading, before, profiling, repeated, run, trial, largest) = Default::default();
        TimeBudget {
            start,
            budget,
            reading,
            loading,
            comparison: COMPARISON,
            before,
            profiling,
            repeated,
            run,
            trial,
            best: 1.0,
            barren: 0,
            largest,
            lap: None,
        }
    }

    /// A run that only tunes, for so long at least.
    pub fn for_tuning(start: Instant, time: Duration) -> TimeBudget {
        TimeBudget::new(start, time.div_f64(1.0 - RESERVE - COMPARING))
    }

    /// When the run began.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// When everything must be done.
    pub fn deadline(&self) -> Instant {
        self.start + self.budget
    }

    /// Whether there is time for few trials.
    pub fn is_short(&self) -> bool {
        self.budget < self.trial() * MANY_TRIALS
    }

    fn at(&self, part: f64) -> Instant {
        self.start + self.budget.mul_f64(part)
    }

    /// Begins to tune anew after a comparison: until the middle of what is left, or earlier if the
    /// next comparison needs more than half. False if there is no time even for that.
    pub fn begin_lap(&mut self) -> bool {
        let now = Instant::now();
        let left = self.comparing_ends().saturating_duration_since(now);
        let comparing = self.comparing(self.profiling);
        self.lap = Some(now + left.saturating_sub(comparing.max(left / 2)));
        left >= comparing
    }

    /// When tuning ends.
    pub fn tuning_ends(&self) -> Instant {
        if let Some(lap) = self.lap {
            return lap;
        }
        let spared = self.comparing_ends().checked_sub(self.telling());
        self.at(TUNING).max(spared.unwrap_or(self.start))
    }

    /// How long it takes to tell whether there is a gain. For a slow model, one that is small takes
    /// most of what remains; one that is clear by what was tried takes less.
    fn telling(&self) -> Duration {
        if self.best < CLEAR {
            return self.budget.mul_f64(COMPARING_CLEAR).max(2 * self.comparing(self.profiling)).min(self.budget.mul_f64(COMPARING));
        }
        let small = (self.run * TELLING + self.once() * SITTINGS).mul_f64(2.0 * self.comparison / COMPARISON);
        self.budget.mul_f64(COMPARING).max(small)
    }

    /// When comparing ends: what must follow has to fit. What it takes to start a process need not:
    /// a decision is worth more.
    pub fn comparing_ends(&self) -> Instant {
        let rest = self.checking(self.profiling) + self.writing();
        self.start + self.budget.saturating_sub(self.budget.mul_f64(RESERVE).max(rest))
    }

    /// How long the first comparison takes if profiling the input takes so long.
    fn comparing(&self, profiling: Duration) -> Duration {
        profiling.max(self.once() + self.run * COMPARED).mul_f64(self.comparison)
    }

    /// How long the check takes if profiling the input takes so long.
    fn checking(&self, profiling: Duration) -> Duration {
        profiling.mul_f64(CHECK).max(self.once().mul_f64(CHECK_ONCE) + self.run * CHECKED)
    }

    /// What of profiling the input is not repeated runs.
    fn once(&self) -> Duration {
        self.profiling.saturating_sub(self.repeated)
    }

    /// How long it takes to start processes with the input and with the result.
    fn starting(&self) -> Duration {
        self.once().mul_f64(STARTING)
    }

    /// Whether there is time for that, and for what must follow.
    pub fn affords_starting(&self) -> bool {
        self.affords(self.starting())
    }

    /// Whether there is time for that, for the check, and for what must follow.
    pub fn affords_starting_and_checking(&self) -> bool {
        self.affords(self.starting() + self.checking(self.profiling))
    }

    /// Whether there is time for something that takes so long, and for writing.
    pub fn affords(&self, more: Duration) -> bool {
        Instant::now() + more + self.writing() < self.deadline()
    }

    /// When what an earlier run found must be confirmed.
    pub fn confirming_ends(&self) -> Instant {
        self.at(CONFIRMING)
    }

    /// By how much the run took longer than it may, if a reader would notice.
    pub fn overrun(&self) -> Option<Duration> {
        let most = self.budget + OVERRUN.max(self.budget / 50);
        Some(self.elapsed()).filter(|taken| *taken > most).map(|taken| taken - self.budget)
    }

    /// When a search that begins now must end.
    pub fn search_ends(&self) -> Instant {
        self.tuning_ends().min(Instant::now() + self.slice())
    }

    /// How long one search may take.
    pub fn slice(&self) -> Duration {
        self.budget.mul_f64(SLICE)
    }

    /// How long writing takes.
    fn writing(&self) -> Duration {
        self.loading.mul_f64(WRITING).min(self.reading.mul_f64(WRITING_READ))
    }

    /// Records that the model is read.
    pub fn read(&mut self) {
        self.reading = self.elapsed();
    }

    /// Records that everything is loaded. With several threads, models are compared at one as well.
    pub fn loaded(&mut self, threads: usize) {
        self.loading = self.elapsed();
        self.comparison = if threads > 1 { 2.0 * COMPARISON } else { COMPARISON };
    }

    /// Records that the input was profiled, in so much time.
    pub fn profiled(&mut self, took: Duration, runs: Runs) {
        self.before = self.elapsed().saturating_sub(took);
        (self.profiling, self.run, self.repeated) = (took, runs.one, runs.all);
    }

    /// Records that a proposal was tried; `ratio` is its time relative to the input's, if measured.
    /// Whether it is faster than all before.
    pub fn tried(&mut self, took: Duration, ratio: Option<f64>) -> bool {
        self.trial = self.trial.max(took);
        let Some(ratio) = ratio else { return false };
        let is_progress = ratio < self.best * (1.0 - PROGRESS);
        if is_progress {
            self.best = ratio;
            self.barren = 0;
        } else {
            self.barren += 1;
        }
        is_progress
    }

    /// Records that a model of so many nodes was tried out in so much time.
    pub fn opened(&mut self, nodes: usize, took: Duration) {
        if nodes >= self.largest.0 {
            self.largest = (nodes, took);
        }
    }

    /// Whether a model of so many nodes can be opened and profiled in the time for tuning: how long
    /// that takes grows with their third power where there are thousands.
    pub fn affords_opening(&self, nodes: usize) -> bool {
        let (most, took) = if self.largest.0 >= MANY { self.largest } else { (MANY, OPENING_MANY) };
        let expected = took.mul_f64((nodes as f64 / most as f64).powi(3).max(1.0));
        nodes <= MANY || Instant::now() + expected <= self.tuning_ends()
    }

    /// Whether a trial that took so long leaves time for few others.
    pub fn is_costly(&self, trial: Duration) -> bool {
        trial > self.budget.mul_f64(COSTLY)
    }

    /// Whether the last trials brought no progress.
    pub fn is_stale(&self) -> bool {
        self.barren >= PATIENCE
    }

    /// Restarts the wait for progress.
    pub fn renew_patience(&mut self) {
        self.barren = 0;
    }

    /// The smallest budget that would have left time for a trial, if this one does not. It does not
    /// depend on this one, although more is profiled within a larger budget.
    pub fn too_short(&self) -> Option<Duration> {
        let repeated = |budget: Duration| 2 * (sitting(budget) / 3).max(self.run * fewest(self.run));
        let mut least = Duration::ZERO;
        for _ in 0..ROUNDS {
            let profiling = self.once() + repeated(least);
            let trial = profiling + profiling.mul_f64(TRIAL) + self.comparing(profiling) + self.checking(profiling);
            least = self.before + trial + self.writing();
        }
        (self.trial.is_zero() && !self.profiling.is_zero() && least > self.budget).then_some(least)
    }

    /// How long a trial takes.
    pub fn trial(&self) -> Duration {
        if self.trial.is_zero() { self.profiling.mul_f64(TRIAL) } else { self.trial }
    }

    /// True if two more trials would end in time.
    pub fn affords_two_trials(&self) -> bool {
        Instant::now() + 2 * self.trial() <= self.tuning_ends()
    }

    /// True if one more trial would end in time.
    pub fn affords_trial(&self) -> bool {
        Instant::now() <= self.trials_end()
    }

    /// The last moment for a trial to begin. The first may take longer than its share of the
    /// budget, if what must follow still fits.
    pub fn trials_end(&self) -> Instant {
        if self.trial.is_zero() {
            let rest = self.trial() + self.comparing(self.profiling) + self.checking(self.profiling);
            return self.deadline().checked_sub(rest + self.writing()).unwrap_or(self.start);
        }
        self.tuning_ends().checked_sub(self.trial).unwrap_or(self.start)
    }

    /// How long what pays may be found out on a part of the model: so that it can be searched for
    /// and tried in the whole.
    pub fn studying(&self) -> Duration {
        let left = self.tuning_ends().saturating_duration_since(Instant::now());
        left.saturating_sub(self.trial() + self.slice()).mul_f64(STUDYING)
    }

    /// The middle of the time that is left for tuning.
    pub fn half_tuned(&self) -> Instant {
        let now = Instant::now();
        now + self.tuning_ends().saturating_duration_since(now) / 2
    }

    /// True if a first comparison and its check would end in time.
    pub fn affords_comparison(&self) -> bool {
        Instant::now() + self.comparing(self.profiling) + self.checking(self.profiling) <= self.at(1.0)
    }

    /// About how long a model takes in a sitting of few runs.
    pub fn shortest_sitting(&self) -> Duration {
        self.once() + self.run * COMPARED
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
        assert!((1..PATIENCE).all(|_| !budget.tried(Duration::from_millis(1), Some(0.95))));
        assert!(budget.is_stale());
        budget.renew_patience();
        assert!(!budget.is_stale());
    }

    #[test]
    fn a_trial_that_leaves_no_time_for_the_rest_is_not_begun() {
        let mut budget = TimeBudget::new(Instant::now(), Duration::from_secs(10));
        budget.profiled(Duration::from_millis(1800), Runs { one: Duration::from_millis(90), all: Duration::from_millis(900) });
        assert!(budget.affords_trial());
        budget.profiled(Duration::from_secs(3), Runs { one: Duration::from_millis(200), all: Duration::from_secs(2) });
        assert!(!budget.affords_trial());
        budget.tried(Duration::from_secs(6), None);
        assert!(!budget.affords_trial());
        assert_eq!(budget.finalists(), 1);
        assert!(budget.affords_comparison());
        budget.profiled(Duration::from_secs(5), Runs::default());
        assert!(!budget.affords_comparison());
    }

    #[test]
    fn what_a_comparison_leaves_is_divided_again() {
        let mut clock = TimeBudget::new(Instant::now(), Duration::from_secs(40));
        clock.profiled(Duration::from_secs(1), Runs { one: Duration::from_millis(50), all: Duration::from_millis(500) });
        let all = clock.comparing_ends();
        assert!(clock.tuning_ends() + clock.budget.mul_f64(COMPARING) <= all);
        assert!(clock.begin_lap());
        let lap = clock.tuning_ends();
        assert!(lap > Instant::now() && all - lap > Duration::from_secs(10) && lap - clock.start > Duration::from_secs(10));
        assert_eq!(clock.comparing_ends(), all);
        // Half a second is left: less than a comparison takes.
        clock.start -= Duration::from_millis(36_500);
        assert!(!clock.begin_lap() && !clock.affords_trial());
    }

    #[test]
    fn models_of_very_many_nodes_are_not_tried_out() {
        let mut budget = TimeBudget::new(Instant::now(), Duration::from_secs(60));
        assert!(budget.affords_opening(MANY) && budget.affords_opening(MANY * 3 / 2) && !budget.affords_opening(4 * MANY));
        budget.opened(2 * MANY, Duration::from_secs(1));
        assert!(budget.affords_opening(4 * MANY));
        budget.opened(5 * MANY / 2, Duration::from_secs(25));
        assert!(budget.affords_opening(MANY) && !budget.affords_opening(3 * MANY));
    }

    #[test]
    fn what_follows_is_not_short_because_few_runs_were_profiled() {
        let mut budget = TimeBudget::new(Instant::now(), Duration::from_secs(60));
        let one = Duration::from_secs(2);
        assert!(fewest(one) < fewest(Duration::from_millis(500)) && fewest(Duration::from_millis(500)) < fewest(Duration::from_millis(5)));
        budget.profiled(Duration::from_secs(8), Runs { one, all: 4 * one });
        // Eight runs and ten, whatever was profiled.
        assert!(
            budget.comparing(Duration::from_secs(8)) >= one.mul_f64(COMPARISON * 8.0)
                && budget.checking(Duration::from_secs(8)) >= 10 * one
        );
    }

    #[test]
    fn the_hint_for_a_short_budget_does_not_grow_with_it() {
        let hints = [1, 4, 8].map(|given| {
            let given = Duration::from_secs(given);
            let mut budget = TimeBudget::new(Instant::now(), given);
            // With little time, runs are cut short.
            let (one, all) = (Duration::from_millis(300), Duration::from_millis(if given < Duration::from_secs(4) { 1800 } else { 3000 }));
            budget.profiled(Duration::from_secs(4) + all, Runs { one, all });
            budget.before = Duration::from_secs(1);
            budget.too_short().expect("too short")
        });
        assert!(hints[0] == hints[1] && hints[1] == hints[2], "{hints:?}");
        let mut enough = TimeBudget::new(Instant::now(), hints[0]);
        let (one, all) = (Duration::from_millis(300), Duration::from_secs(3));
        enough.profiled(Duration::from_secs(4) + all, Runs { one, all });
        enough.before = Duration::from_secs(1);
        assert_eq!(enough.too_short(), None);
    }

    #[test]
    fn what_follows_a_comparison_fits_into_the_budget() {
        let (start, budget) = (Instant::now(), Duration::from_secs(40));
        let mut clock = TimeBudget::new(start, budget);
        assert!(start + budget - clock.comparing_ends() >= budget.mul_f64(RESERVE));
        clock.profiled(Duration::from_secs(6), Runs::default());
        (clock.reading, clock.loading) = (Duration::from_secs(1), Duration::from_secs(2));
        assert!(start + budget - clock.comparing_ends() >= Duration::from_secs(11));
        // What a runtime takes to load a model is no part of writing it.
        let checked = clock.comparing_ends() + clock.writing();
        clock.loading = Duration::from_secs(8);
        assert_eq!((clock.comparing_ends() + clock.writing(), clock.writing()), (checked, Duration::from_secs(4)));
        clock.loading = Duration::from_secs(2);
        // What is not needed for checking is left for tuning, but half of the budget in any case.
        assert_eq!(clock.tuning_ends(), start + budget.mul_f64(0.5));
        clock.profiled(Duration::from_secs(1), Runs::default());
        assert!(clock.tuning_ends() > start + budget.mul_f64(0.6) && clock.comparing_ends() - clock.tuning_ends() >= budget.mul_f64(0.25));
        // A small gain of a slow model takes longer to tell.
        clock.profiled(Duration::from_secs(2), Runs { one: Duration::from_millis(400), all: Duration::from_secs(1) });
        assert!(clock.comparing_ends() - clock.tuning_ends() >= Duration::from_secs(8));
        clock.tried(Duration::from_secs(3), Some(0.7));
        assert!(clock.comparing_ends() - clock.tuning_ends() < Duration::from_secs(7));
        assert_eq!(clock.overrun(), None);
        assert!(TimeBudget::new(start - Duration::from_secs(44), budget).overrun() > Some(Duration::from_secs(3)));
    }
}
