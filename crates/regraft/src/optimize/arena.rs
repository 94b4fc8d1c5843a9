//! Models that take turns, in sittings of fresh sessions.

use std::time::{Duration, Instant};

use regraft_ir::SplitMix64;
use regraft_runtime::{
    Confidence, Feeds, ModelSource, Ratio, Runtime, Session, SessionOptions, Sittings, Spread, TimingOptions, median, time_interleaved,
};

use crate::error::Failure;

/// Runs of each model in a sitting before those that count; slow models have the first only.
const WARM_UP: usize = 2;
/// Runs shorter than this are timed on caches that the same model left.
const WARM_BELOW: Duration = Duration::from_millis(20);
/// A sitting's sessions are moved apart in memory by blocks of up to so many bytes, so that each
/// sitting finds other addresses.
const APART: usize = 1 << 20;
/// What such blocks are multiples of.
const LINE: usize = 64;

/// The clock that a comparison goes by, and whether the user wants it to stop.
#[derive(Clone, Copy)]
pub struct Pace<'a> {
    /// The time.
    pub now: &'a dyn Fn() -> Instant,
    /// Whether to stop at once.
    pub stop: &'a dyn Fn() -> bool,
}

/// A model, and what runs it.
#[derive(Clone, Copy)]
pub struct Contender<'a> {
    /// The runtime.
    pub runtime: &'a dyn Runtime,
    /// The model.
    pub model: ModelSource<'a>,
}

impl<'a> Contender<'a> {
    /// Models on one runtime.
    pub fn all(runtime: &'a dyn Runtime, models: impl IntoIterator<Item = ModelSource<'a>>) -> Vec<Contender<'a>> {
        models.into_iter().map(|model| Contender { runtime, model }).collect()
    }
}

/// Models on the same inputs. Others are compared with the first.
pub struct Arena<'a> {
    /// The models.
    pub models: Vec<Contender<'a>>,
    /// Values to run on.
    pub feeds: &'a Feeds,
    /// Threads per operator.
    pub threads: usize,
    /// Seed of orders and addresses.
    pub seed: u64,
}

/// How long one sitting lasts.
pub struct Length<'a> {
    /// Minimum and maximum rounds.
    pub rounds: (usize, usize),
    /// Time for the rounds, given the time that opening took.
    pub lasts: &'a dyn Fn(Duration) -> Duration,
}

impl Arena<'_> {
    /// Runs some of the models in turns in new sessions, opened in an order and at addresses that
    /// depend on `number`; adds what it took to the evidence.
    pub fn sit(
        &self,
        number: usize,
        present: &[usize],
        length: &Length<'_>,
        pace: Pace<'_>,
        evidence: &mut Evidence,
    ) -> Result<(), Failure> {
        let start = (pace.now)();
        let mut random = SplitMix64(self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut order = present.to_vec();
        order.rotate_left(number % present.len().max(1));
        if random.below(2) == 1 {
            order.reverse();
        }
        let options = SessionOptions { threads: self.threads, ..SessionOptions::default() };
        let (mut sessions, mut apart): (Vec<Box<dyn Session>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for at in &order {
            apart.push(Vec::with_capacity(LINE * (1 + random.below(APART / LINE))));
            let Contender { runtime, model } = self.models[*at];
            let mut session = runtime.open(model, &options)?;
            session.bind(self.feeds)?;
            sessions.push(session);
        }
        let opened = (pace.now)();
        let end = opened + (length.lasts)(opened.saturating_duration_since(start));
        let mut borrowed: Vec<&mut dyn Session> = sessions.iter_mut().map(|s| &mut **s as &mut dyn Session).collect();
        let (min_rounds, max_rounds) = length.rounds;
        let timing = TimingOptions { warmup: WARM_UP, min_rounds, max_rounds, warm_below: WARM_BELOW, clock: None };
        let samples = time_interleaved(&mut borrowed, &timing, &mut || (pace.now)() < end && !(pace.stop)())?;
        let mut times = vec![Vec::new(); self.models.len()];
        for (at, taken) in order.iter().zip(samples.sessions) {
            times[*at] = taken;
        }
        evidence.add(times);
        Ok(())
    }
}

/// Times in ns: of each sitting, of each model (none if it took no part), round by round.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    sittings: Vec<Vec<Vec<u64>>>,
    /// Every model against the first.
    against_first: Vec<Sittings>,
    /// How much sittings differ, by other evidence.
    spread: Spread,
}

impl Evidence {
    /// None yet, where other evidence shows how much sittings differ.
    pub fn given(spread: Spread) -> Evidence {
        Evidence { spread, ..Evidence::default() }
    }

    /// How much sittings differ, by this evidence as well.
    pub fn widened(&self, spread: Spread) -> Spread {
        self.against_first.iter().skip(1).fold(spread, Spread::with)
    }

    /// This, where a model was so many times faster than the first in one more sitting, which tells
    /// how much they differ and nothing else.
    pub fn beside(mut self, model: usize, speedup: f64) -> Evidence {
        if let Some(sittings) = self.against_first.get(model)
            && let Some(ratio) = sittings.ratio(Confidence::Usual)
        {
            let (apart, count) = ((ratio.median / speedup).ln(), sittings.len() as f64);
            self.spread = self.spread.and(apart.powi(2) * count / (count + 1.0));
        }
        self
    }

    /// Adds a sitting.
    fn add(&mut self, times: Vec<Vec<u64>>) {
        self.against_first.resize_with(times.len(), Sittings::default);
        self.against_first.iter_mut().zip(&times).for_each(|(sittings, model)| sittings.add(&times[0], model));
        self.sittings.push(times);
    }

    /// Sittings.
    pub fn len(&self) -> usize {
        self.sittings.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sittings.is_empty()
    }

    /// This and what other sittings of the same models showed.
    pub fn with(&self, others: &Evidence) -> Evidence {
        let mut all = self.clone();
        all.against_first.resize_with(others.against_first.len().max(self.against_first.len()), Sittings::default);
        all.against_first.iter_mut().zip(&others.against_first).for_each(|(all, others)| all.extend(others));
        all.sittings.extend_from_slice(&others.sittings);
        all
    }

    /// Median time of a model, ns; 0 if it was not run.
    pub fn median(&self, model: usize) -> f64 {
        let all: Vec<u64> = self.sittings.iter().flat_map(|sitting| sitting[model].iter().copied()).collect();
        median(&all).unwrap_or(0.0)
    }

    /// How many times faster a model is than the first; `None` if they never met.
    pub fn speedup(&self, model: usize, confidence: Confidence) -> Option<Ratio> {
        let ratio = self.against_first.get(model)?.ratio_given(self.spread, confidence)?;
        Some(if model == 0 { Ratio { median: 1.0, low: 1.0, high: 1.0, ..ratio } } else { ratio })
    }

    /// How many times faster a model is than another; `None` if they never met.
    pub fn ratio(&self, baseline: usize, model: usize) -> Option<Ratio> {
        let mut sittings = Sittings::default();
        self.sittings.iter().for_each(|sitting| sittings.add(&sitting[baseline], &sitting[model]));
        sittings.ratio(Confidence::Usual)
    }
}
