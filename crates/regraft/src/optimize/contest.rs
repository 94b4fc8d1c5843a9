//! Which of several models is faster than the input: evidence is added until it is enough, or time
//! is up.
//!
//! Several models race first, until one leads. The leader then meets the input alone, in new
//! sittings. What is claimed of it rests on these: who leads has been lucky as well, and models
//! that run in turns with many others find colder caches than they will. If it turns out not to be
//! faster, the next one has its turn.

use std::time::{Duration, Instant};

use regraft_runtime::Confidence;

use crate::error::Failure;
use crate::optimize::arena::{Arena, Evidence, Length, Pace};
use crate::optimize::binding::geometric_mean;
use crate::optimize::candidate::Timed;
use crate::optimize::standing::{Standing, Wanted};
use crate::report::Speedup;

#[cfg(test)]
mod simulation;

/// Minimum and maximum rounds of a sitting.
const ROUNDS: (usize, usize) = (4, 40);
/// The rounds of a sitting take this multiple of the time to open its models: about where, with a
/// given time, the interval is narrowest.
const OPENING: f64 = 2.5;
/// Share of the time left that the rounds of one sitting may take.
const SHARE: f64 = 0.25;
/// The least time that the rounds of a sitting take, unless there are as many as there may be.
const LEAST: Duration = Duration::from_millis(20);
/// Share of the time that the race may take, and most sittings of it.
const RACE: f64 = 0.3;
const LAPS: usize = 8;
/// With fewer sittings than this against the input alone, those of the race count as well.
const FEW: usize = 3;
/// Whether there is enough is asked whenever there are this many times as many sittings as before:
/// who asks all the time is misled sooner or later.
const LOOKS: f64 = 1.25;
/// A decided interval narrower than this on either side is not narrowed any further.
const PRECISE: f64 = 0.006;
/// Share of the time after which evidence is added only for what is undecided.
const REFINING: f64 = 0.5;

/// Models against the input at several bindings.
pub struct Contest<'a> {
    /// The models at each binding: the input first, then the others in the same order.
    pub arenas: Vec<Arena<'a>>,
    /// What is wanted of each model after the input.
    pub wanted: Vec<Wanted>,
    /// When it must be over.
    pub until: Instant,
    /// The clock.
    pub pace: Pace<'a>,
}

/// What was measured of one model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its times at each binding.
    pub timings: Vec<Timed>,
    /// How long it was compared with the input alone.
    pub took: Duration,
}

/// The input's times, and what was measured of each model after it.
pub type Outcomes = (Vec<Timed>, Vec<Outcome>);

impl Contest<'_> {
    /// Compares until it is known which model to take, or time is up. Every model is in one sitting
    /// at least.
    pub fn decide(&self) -> Result<Outcomes, Failure> {
        let start = (self.pace.now)();
        let mut course = Course { contest: self, start, number: 0, each: Duration::ZERO };
        let race = course.race()?;
        let mut outcomes: Vec<Outcome> =
            (1..=self.wanted.len()).map(|model| Outcome { timings: raced(&race, model), took: Duration::ZERO }).collect();
        let mut input = raced(&race, 0);
        for model in ranked(&race, self.wanted.len()) {
            if !race[0].is_empty()
                && (self.standing(&race, model, Confidence::Repeated) == Standing::Refused || !course.fits(2, self.until))
            {
                continue;
            }
            let began = (self.pace.now)();
            let (evidence, standing) = course.duel(model, &race)?;
            let took = (self.pace.now)().saturating_duration_since(began);
            outcomes[model - 1] = Outcome { timings: met(&evidence, model), took };
            input = met(&evidence, 0);
            if standing == Standing::Taken {
                break;
            }
        }
        input.iter_mut().for_each(|timed| timed.speedup = Speedup { pairs: timed.speedup.pairs, ..Speedup::NONE });
        Ok((input, outcomes))
    }

    fn standing(&self, evidence: &[Evidence], model: usize, confidence: Confidence) -> Standing {
        Standing::of(self.wanted[model - 1], &speedups(evidence, model, confidence))
    }
}

/// A contest under way.
struct Course<'a> {
    contest: &'a Contest<'a>,
    start: Instant,
    /// Sittings so far.
    number: usize,
    /// The longest that a sitting took, per model.
    each: Duration,
}

impl Course<'_> {
    fn now(&self) -> Instant {
        (self.contest.pace.now)()
    }

    /// When a share of the time is over.
    fn after(&self, share: f64) -> Instant {
        self.start + self.contest.until.saturating_duration_since(self.start).mul_f64(share)
    }

    /// Whether a sitting of so many models would be over by then.
    fn fits(&self, models: usize, until: Instant) -> bool {
        !(self.contest.pace.stop)() && self.now() + self.each * models as u32 <= until
    }

    /// One sitting at every binding, with a share of the time that is left.
    fn sit(&mut self, present: &[usize], evidence: &mut [Evidence], until: Instant) -> Result<(), Failure> {
        let (start, pace) = (self.now(), self.contest.pace);
        let left = || until.saturating_duration_since((pace.now)()).mul_f64(SHARE / self.contest.arenas.len() as f64);
        let lasts = |opening: Duration| opening.mul_f64(OPENING).max(LEAST).min(left());
        for (arena, evidence) in self.contest.arenas.iter().zip(evidence) {
            arena.sit(self.number, present, &Length { rounds: ROUNDS, lasts: &lasts }, pace, evidence)?;
        }
        self.number += 1;
        self.each = self.each.max(self.now().saturating_duration_since(start) / present.len() as u32);
        Ok(())
    }

    fn nothing(&self) -> Vec<Evidence> {
        vec![Evidence::default(); self.contest.arenas.len()]
    }

    /// All models in turns, until one leads; those that are behind it beyond noise drop out. No
    /// sitting if there is only one.
    fn race(&mut self) -> Result<Vec<Evidence>, Failure> {
        let (models, mut evidence) = (self.contest.wanted.len(), self.nothing());
        if models < 2 {
            return Ok(evidence);
        }
        let (end, mut present): (Instant, Vec<usize>) = (self.after(RACE), (0..=models).collect());
        for _ in 0..LAPS {
            self.sit(&present, &mut evidence, end)?;
            let leader = ranked(&evidence, models)[0];
            present.retain(|model| [0, leader].contains(model) || !is_behind(&evidence, *model, leader));
            if present.len() <= 2 || !self.fits(present.len(), end) {
                break;
            }
        }
        Ok(evidence)
    }

    /// One model against the input alone, until it is decided and known well enough, or time is up.
    fn duel(&mut self, model: usize, race: &[Evidence]) -> Result<(Vec<Evidence>, Standing), Failure> {
        let (mut evidence, refined, mut look) = (self.nothing(), self.after(REFINING), 1);
        loop {
            self.sit(&[0, model], &mut evidence, self.contest.until)?;
            let (sittings, over) = (evidence[0].len(), !self.fits(2, self.contest.until));
            if sittings < look && !over {
                continue;
            }
            look = (sittings as f64 * LOOKS).ceil() as usize;
            let joined = || evidence.iter().zip(race).map(|(new, old)| new.with(old)).collect();
            let all: Vec<Evidence> = if sittings < FEW { joined() } else { evidence.clone() };
            if over {
                let standing = self.contest.standing(&all, model, Confidence::Usual);
                return Ok((all, standing));
            }
            let standing = self.contest.standing(&all, model, Confidence::Repeated);
            let mean = geometric_mean(&speedups(&all, model, Confidence::Usual));
            let coarse = mean.high / mean.low > (1.0 + PRECISE).powi(2) && self.now() < refined;
            // How much slower it is makes no difference.
            let enough = standing != Standing::Open && (!coarse || mean.high < 1.0);
            if enough {
                return Ok((all, standing));
            }
        }
    }
}

fn speedups(evidence: &[Evidence], model: usize, confidence: Confidence) -> Vec<Speedup> {
    evidence.iter().map(|evidence| evidence.speedup(model, confidence).map_or(Speedup::NONE, Speedup::from)).collect()
}

/// Times of a model in the race. One of several may have been lucky: its interval is wider.
fn raced(evidence: &[Evidence], model: usize) -> Vec<Timed> {
    timed(evidence, model, Confidence::Repeated)
}

/// Times of a model that met the input alone.
fn met(evidence: &[Evidence], model: usize) -> Vec<Timed> {
    timed(evidence, model, Confidence::Usual)
}

fn timed(evidence: &[Evidence], model: usize, confidence: Confidence) -> Vec<Timed> {
    let speedups = speedups(evidence, model, confidence);
    evidence.iter().zip(speedups).map(|(evidence, speedup)| Timed { median_ns: evidence.median(model), speedup }).collect()
}

/// The models after the input, the fastest first.
fn ranked(evidence: &[Evidence], models: usize) -> Vec<usize> {
    let median = |model: usize| geometric_mean(&speedups(evidence, model, Confidence::Usual)).median;
    let mut order: Vec<(usize, f64)> = (1..=models).map(|model| (model, median(model))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    order.into_iter().map(|(model, _)| model).collect()
}

/// Whether a model is slower than the leader beyond noise, over all bindings.
fn is_behind(evidence: &[Evidence], model: usize, leader: usize) -> bool {
    let lead = evidence.iter().map(|evidence| evidence.ratio(model, leader).map_or(Speedup::NONE, Speedup::from));
    geometric_mean(&lead.collect::<Vec<_>>()).low > 1.0
}
