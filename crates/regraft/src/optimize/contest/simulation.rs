//! Decisions on a runtime whose clock is simulated: a true gain is found, and none is found where
//! there is none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use regraft_ir::SplitMix64;
use regraft_runtime::{Clock, Feeds, HostTensor, ModelSource, RawProfile, Runtime, RuntimeError, Session, SessionOptions, ValueInfo};

use super::*;
use crate::optimize::Contender;

/// Decisions per question.
const RUNS: usize = 100;
/// What a run of one minute has for comparing at least: tuning ends at half of it, and an eighth is
/// kept for what follows.
const TIME: Duration = Duration::from_secs(22);
/// Standard deviations: of sessions of one model, on a quiet machine and on a busy one, and of the
/// runs of one session.
const SESSIONS: f64 = 0.012;
const BUSY: f64 = 0.05;
const RUNS_OF_ONE: f64 = 0.05;
/// The same of what a trial shows: the medians of eight runs of both models in one pair of
/// sessions.
const TRIALS: f64 = 0.028;
/// One run in so many takes up to three times as long.
const SPIKES: usize = 40;

/// Models are named by the nanoseconds of one of their runs: with the threads of the comparison
/// and, after a colon, at one.
struct Noisy {
    clock: Arc<AtomicU64>,
    random: Arc<Mutex<SplitMix64>>,
    opening: Duration,
    /// Standard deviation of sessions.
    sessions: f64,
}

struct NoisySession {
    ns: f64,
    clock: Arc<AtomicU64>,
    random: Arc<Mutex<SplitMix64>>,
}

fn normal(random: &Mutex<SplitMix64>) -> f64 {
    let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
    // Of twelve uniform numbers: close enough, up to six deviations.
    (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
}

impl Noisy {
    fn new(seed: u64, opening: Duration, sessions: f64) -> Noisy {
        Noisy { clock: Arc::default(), random: Arc::new(Mutex::new(SplitMix64(seed))), opening, sessions }
    }

    /// One decision on models that take so many nanoseconds, and so many at one thread if that is
    /// another setting, after trials that showed these gains: what was measured of each, and the
    /// simulated time that it took.
    fn decide(&self, (times, alone): (&[f64], &[f64]), tried: Vec<Option<f64>>, time: Duration) -> (Vec<Timings>, Duration) {
        let named = |(at, ns): (usize, &f64)| format!("{ns}:{}", alone.get(at).unwrap_or(ns)).into_bytes();
        let names: Vec<Vec<u8>> = times.iter().enumerate().map(named).collect();
        let origin = Instant::now();
        let now = || origin + Duration::from_nanos(self.clock.load(Ordering::Relaxed));
        let feeds = Feeds::default();
        let arena = |threads| Arena {
            models: Contender::all(self, names.iter().map(|name| ModelSource::bytes(name))),
            feeds: &feeds,
            threads,
            seed: 0,
        };
        let (deciding, single) = if alone.is_empty() { (arena(1), Vec::new()) } else { (arena(2), vec![arena(1)]) };
        let pace = Pace { now: &now, stop: &|| false };
        let wanted = vec![Wanted::Faster; times.len() - 1];
        // Who tried them out knows how long a model takes to open.
        let known = tried.iter().any(Option::is_some);
        let each = if known { self.opening + Duration::from_nanos(times[0] as u64) * 6 } else { Duration::ZERO };
        let contest = Contest { deciding: vec![deciding], single, wanted, tried, beside_input: true, each, until: origin + time, pace };
        let (_, outcomes) = contest.decide().expect("models that run");
        (outcomes.into_iter().map(|outcome| outcome.timings).collect(), now() - origin)
    }
}

impl Runtime for Noisy {
    fn name(&self) -> &str {
        "noisy"
    }

    fn version(&self) -> &str {
        "1.0"
    }

    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let ModelSource::Bytes { bytes, .. } = model else { unreachable!("models are bytes here") };
        let name = String::from_utf8_lossy(bytes);
        let (several, one) = name.split_once(':').expect("two numbers");
        let ns: f64 = if options.threads > 1 { several } else { one }.parse().expect("a number");
        self.clock.fetch_add(self.opening.as_nanos() as u64, Ordering::Relaxed);
        let ns = ns * (self.sessions * normal(&self.random)).exp();
        Ok(Box::new(NoisySession { ns, clock: self.clock.clone(), random: self.random.clone() }))
    }
}

impl Session for NoisySession {
    fn inputs(&self) -> &[ValueInfo] {
        &[]
    }

    fn outputs(&self) -> &[ValueInfo] {
        &[]
    }

    fn threads(&self) -> usize {
        1
    }

    fn run(&mut self, _: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
        Ok(Vec::new())
    }

    fn bind(&mut self, _: &Feeds) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn run_bound(&mut self) -> Result<(), RuntimeError> {
        self.time_bound(Clock::Wall).map(drop)
    }

    fn time_bound(&mut self, _: Clock) -> Result<u64, RuntimeError> {
        let spike = {
            let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
            if random.below(SPIKES) == 0 { 1.0 + random.below(1000) as f64 / 500.0 } else { 1.0 }
        };
        let ns = (self.ns * (RUNS_OF_ONE * normal(&self.random)).exp() * spike) as u64;
        self.clock.fetch_add(ns, Ordering::Relaxed);
        Ok(ns)
    }

    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
        Err(RuntimeError::NotProfiling { model: String::new() })
    }
}

/// What many decisions on the same models came to.
#[derive(Debug, Default)]
struct Tally {
    /// How often each model was taken.
    taken: Vec<usize>,
    /// How often the whole interval of any claim missed the truth.
    missed: usize,
    /// The longest that one took.
    longest: Duration,
}

/// Models to decide on.
#[derive(Clone, Copy)]
struct Question<'a> {
    /// What a run of the input takes, in milliseconds; it opens in ten times that.
    ms: f64,
    /// True gains over the input.
    gains: &'a [f64],
    /// The same at one thread, if that is another setting.
    alone: &'a [f64],
    /// Whether they were tried out before.
    tried: bool,
    /// Standard deviation of sessions.
    sessions: f64,
}

/// Decides on models with these true gains over the input, which takes `ms` and opens in ten times
/// that.
fn tally(ms: f64, gains: &[f64]) -> Tally {
    tally_of(Question { ms, gains, alone: &[], tried: false, sessions: SESSIONS })
}

/// The same after trials.
fn tally_after_trials(ms: f64, gains: &[f64]) -> Tally {
    tally_of(Question { ms, gains, alone: &[], tried: true, sessions: SESSIONS })
}

/// The same on a busy machine.
fn tally_while_busy(ms: f64, gains: &[f64]) -> Tally {
    tally_of(Question { ms, gains, alone: &[], tried: true, sessions: BUSY })
}

/// The same with several threads, at which these are the true gains, where `alone` are those at
/// one.
fn tally_at(ms: f64, gains: &[f64], alone: &[f64]) -> Tally {
    tally_of(Question { ms, gains, alone, tried: false, sessions: SESSIONS })
}

fn tally_of(Question { ms, gains, alone, tried, sessions }: Question<'_>) -> Tally {
    let mut tally = Tally { taken: vec![0; gains.len()], ..Tally::default() };
    for seed in 0..RUNS as u64 {
        let noisy = Noisy::new(seed, Duration::from_secs_f64(ms / 100.0), sessions);
        let times = |ms: f64, gains: &[f64]| std::iter::once(1.0).chain(gains.iter().copied()).map(|gain| ms * 1e6 / gain).collect();
        let several: Vec<f64> = times(ms, gains);
        let alone: Vec<f64> = if alone.is_empty() { Vec::new() } else { times(2.0 * ms, alone) };
        let trial = |gain: &f64| tried.then(|| gain * (TRIALS * normal(&noisy.random)).exp());
        let (timings, took) = noisy.decide((&several, &alone), gains.iter().map(trial).collect(), TIME);
        let speedups: Vec<Speedup> = timings.iter().map(|timings| timings.deciding[0].speedup).collect();
        let won = (0..gains.len()).filter(|at| timings[*at].standing(Wanted::Faster) == Standing::Taken);
        let won = won.max_by(|a, b| speedups[*a].low.total_cmp(&speedups[*b].low));
        won.into_iter().for_each(|at| tally.taken[at] += 1);
        let claimed = won.unwrap_or(0);
        let Speedup { low, high, pairs, .. } = speedups[claimed];
        tally.missed += usize::from(pairs > 0 && !(low..=high).contains(&gains[claimed]));
        tally.longest = tally.longest.max(took);
    }
    tally
}

#[test]
fn a_true_gain_of_three_percent_is_taken() {
    let found = tally(10.0, &[1.03]);
    assert!(found.taken[0] >= 95 && found.missed <= 10, "{found:?}");
}

#[test]
fn no_gain_is_not_taken_for_one() {
    let found = tally(10.0, &[1.0]);
    assert!(found.taken[0] <= 2 && found.missed <= 10, "{found:?}");
    // On a slow model, with three that are no faster, and time for a few sittings only.
    let found = tally(300.0, &[1.0, 1.0, 1.0]);
    assert!(found.taken.iter().sum::<usize>() <= 2, "{found:?}");
}

#[test]
fn no_gain_is_seldom_taken_for_one_while_the_machine_is_busy() {
    // With three that are no faster, each of which has its turn. If a spread of 1 % were presumed
    // whatever is seen, it would be 13 and more.
    for ms in [100.0, 300.0] {
        let found = tally_while_busy(ms, &[1.0, 1.0, 1.0]);
        assert!(found.taken.iter().sum::<usize>() <= 10, "{ms}: {found:?}");
    }
    let found = tally_while_busy(100.0, &[1.3]);
    assert!(found.taken[0] >= 95, "{found:?}");
}

#[test]
fn the_best_of_several_is_taken_and_known_well() {
    let found = tally(10.0, &[1.0, 1.02, 1.06]);
    assert!(found.taken[2] >= 95 && found.missed <= 10, "{found:?}");
}

#[test]
fn what_trials_showed_counts_where_there_is_time_for_few_sittings() {
    let gains = [1.0, 1.05, 1.15];
    let (without, with) = (tally(300.0, &gains), tally_after_trials(300.0, &gains));
    assert!(with.taken[2] >= without.taken[2] + 20 && with.missed <= 10, "{without:?}, {with:?}");
    for ms in [100.0, 300.0] {
        let found = tally_after_trials(ms, &[1.0, 1.0, 1.0]);
        assert!(found.taken.iter().sum::<usize>() <= 2 && found.longest < TIME + TIME / 20, "{found:?}");
    }
}

#[test]
fn what_is_clear_is_decided_early_and_nothing_takes_longer_than_it_may() {
    let clear = tally(10.0, &[0.9]);
    assert!(clear.taken[0] == 0 && clear.longest < TIME / 4, "{clear:?}");
    let large = tally(10.0, &[1.5]);
    assert!(large.taken[0] == RUNS && large.longest < TIME * 2 / 3, "{large:?}");
    for gains in [&[1.01][..], &[1.0, 1.01, 1.0]] {
        assert!(tally(300.0, gains).longest < TIME + TIME / 20, "{gains:?}");
    }
}

#[test]
fn what_is_slower_at_one_thread_is_refused_and_what_is_not_is_taken() {
    // With so much noise, one of four that are just as fast seems slower by half a percent.
    for (alone, taken) in [(1.05, 95..=RUNS), (1.02, 95..=RUNS), (1.0, 70..=RUNS), (0.97, 0..=2)] {
        let found = tally_at(10.0, &[1.1], &[alone]);
        assert!(taken.contains(&found.taken[0]) && found.longest < TIME + TIME / 20, "{alone}: {found:?}");
    }
    // The next has its turn.
    let found = tally_at(10.0, &[1.1, 1.05], &[0.95, 1.02]);
    assert!(found.taken[0] <= 2 && found.taken[1] >= 75, "{found:?}");
}
