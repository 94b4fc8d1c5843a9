//! Which of several models is faster than the input: evidence is added until it is enough, or time
//! is up.
//!
//! Several models race first, if there is time, until one leads. The leader then meets the input
//! alone, in new sittings. What is claimed of it rests on these: who leads has been lucky as well,
//! and models that run in turns with many others find colder caches than they will. If it turns out
//! not to be faster, the next one has its turn.
//!
//! In a run with several threads, the leader meets the input at one thread as well. There it need
//! not gain, but must not be slower. It is timed there until its whole interval lies above 0.99,
//! and if only that is open, for a bounded share of the time if others wait for their turn: then it
//! is taken unless it seems to be slower.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use regraft_runtime::{Confidence, Spread};

use crate::error::Failure;
use crate::optimize::arena::{Arena, Evidence, Length, Pace};
use crate::optimize::binding::geometric_mean;
use crate::optimize::candidate::{Timed, Timings};
use crate::optimize::standing::{Standing, Wanted, holds, loses};
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
/// With fewer sittings than this against the input alone, those of the race count as well, and what
/// the trial showed tells how much sittings differ.
const FEW: usize = 3;
/// Whether there is enough is asked whenever there are this many times as many sittings as before:
/// who asks all the time is misled sooner or later.
const LOOKS: f64 = 1.25;
/// A decided interval narrower than this on either side is not narrowed any further.
const PRECISE: f64 = 0.006;
/// Share of the time after which evidence is added only for what is undecided.
const REFINING: f64 = 0.5;
/// Share of the time for what is open at one thread only, while others wait.
const HOLDING: f64 = 0.2;

/// Models against the input at several bindings.
pub struct Contest<'a> {
    /// The models at each binding, with the threads of the run: the input first, then the others in
    /// the same order. Here a model must gain.
    pub deciding: Vec<Arena<'a>>,
    /// The same at one thread, if the run has more. Here a model must not be slower.
    pub single: Vec<Arena<'a>>,
    /// What is wanted of each model after the input.
    pub wanted: Vec<Wanted>,
    /// How many times faster each of them was than the input when it was tried out, if it was: it
    /// counts as one sitting of the race.
    pub tried: Vec<Option<f64>>,
    /// Whether the input was the one of this contest then.
    pub beside_input: bool,
    /// About how long a sitting takes per model, at the least.
    pub each: Duration,
    /// When it must be over.
    pub until: Instant,
    /// The clock.
    pub pace: Pace<'a>,
}

/// What was measured of one model.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its times at each setting.
    pub timings: Timings,
    /// How long it was compared with the input alone.
    pub took: Duration,
}

/// The input's times, and what was measured of each model after it.
pub type Outcomes = (Timings, Vec<Outcome>);

impl Contest<'_> {
    /// Compares until it is known which model to take, or time is up. Models whose turn did not
    /// come are not timed.
    pub fn decide(&self) -> Result<Outcomes, Failure> {
        let start = (self.pace.now)();
        let mut course = Course { contest: self, start, number: 0, each: self.each, spread: Spread::default() };
        let race = course.race()?;
        let raced = |model| race.timings(model, Confidence::Repeated);
        let mut outcomes: Vec<Outcome> =
            (1..=self.wanted.len()).map(|model| Outcome { timings: raced(model), took: Duration::ZERO }).collect();
        let mut input = raced(0);
        let refused = |model: usize| !race.deciding[0].is_empty() && self.standing(&race, model, Confidence::Repeated) == Standing::Refused;
        let mut waiting: VecDeque<usize> = race.ranked(&self.tried).into_iter().filter(|model| !refused(*model)).collect();
        while let Some(model) = waiting.pop_front() {
            if course.number > 0 && !course.fits(2, self.until) {
                break;
            }
            let began = (self.pace.now)();
            let (seen, standing) = course.duel(model, &race, waiting.is_empty())?;
            let took = (self.pace.now)().saturating_duration_since(began);
            outcomes[model - 1] = Outcome { timings: seen.timings(model, Confidence::Usual), took };
            input = seen.timings(0, Confidence::Usual);
            if standing == Standing::Taken {
                break;
            }
        }
        let all = input.deciding.iter_mut().chain(&mut input.single);
        all.for_each(|timed| timed.speedup = Speedup { pairs: timed.speedup.pairs, ..Speedup::NONE });
        Ok((input, outcomes))
    }

    fn standing(&self, seen: &Seen, model: usize, confidence: Confidence) -> Standing {
        seen.timings(model, confidence).standing(self.wanted[model - 1])
    }
}

/// What sittings showed.
#[derive(Clone)]
struct Seen {
    /// At each binding, with the threads of the run.
    deciding: Vec<Evidence>,
    /// At each binding at one thread.
    single: Vec<Evidence>,
}

impl Seen {
    /// This and what a race showed.
    fn with(&self, race: &Seen) -> Seen {
        let joined = |new: &[Evidence], old: &[Evidence]| new.iter().zip(old).map(|(new, old)| new.with(old)).collect();
        Seen { deciding: joined(&self.deciding, &race.deciding), single: joined(&self.single, &race.single) }
    }

    /// This, where a trial showed this speed-up of a model: a mean over all bindings.
    fn beside(self, model: usize, tried: f64) -> Seen {
        let mean = geometric_mean(&speedups(&self.deciding, model, Confidence::Usual)).median;
        let beside = |evidence: Evidence| {
            let own = evidence.speedup(model, Confidence::Usual).map_or(mean, |ratio| ratio.median);
            evidence.beside(model, tried * own / mean)
        };
        Seen { deciding: self.deciding.into_iter().map(beside).collect(), ..self }
    }

    /// Times of a model. One of several in a race may have been lucky: its interval is wider.
    fn timings(&self, model: usize, confidence: Confidence) -> Timings {
        let timed = |all: &[Evidence]| {
            let speedups = speedups(all, model, confidence);
            all.iter().zip(speedups).map(|(evidence, speedup)| Timed { median_ns: evidence.median(model), speedup }).collect()
        };
        Timings { deciding: timed(&self.deciding), single: timed(&self.single) }
    }

    /// The models after the input, the fastest first, by these sittings and by what they were when
    /// they were tried out.
    fn ranked(&self, tried: &[Option<f64>]) -> Vec<usize> {
        let speedup = |model: usize, tried: Option<f64>| {
            let seen = geometric_mean(&speedups(&self.deciding, model, Confidence::Usual));
            let sittings = if seen.pairs > 0 { self.deciding[0].len() as f64 } else { 0.0 };
            (sittings * seen.median.ln() + tried.map_or(0.0, f64::ln)) / (sittings + tried.map_or(0.0, |_| 1.0)).max(1.0)
        };
        let mut order: Vec<(usize, f64)> = tried.iter().enumerate().map(|(at, tried)| (at + 1, speedup(at + 1, *tried))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(model, _)| model).collect()
    }

    /// Whether a model is slower than the leader beyond noise, over all bindings.
    fn is_behind(&self, model: usize, leader: usize) -> bool {
        let lead = self.deciding.iter().map(|evidence| evidence.ratio(model, leader).map_or(Speedup::NONE, Speedup::from));
        geometric_mean(&lead.collect::<Vec<_>>()).low > 1.0
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
    /// How much sittings differ on this machine, by all that is over.
    spread: Spread,
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

    /// One sitting in each of some arenas, with a share of the time that is left.
    fn sit(&mut self, arenas: Vec<(&Arena<'_>, &mut Evidence)>, present: &[usize], until: Instant) -> Result<(), Failure> {
        let (start, pace, number) = (self.now(), self.contest.pace, arenas.len());
        let left = || until.saturating_duration_since((pace.now)()).mul_f64(SHARE / number as f64);
        let lasts = |opening: Duration| opening.mul_f64(OPENING).max(LEAST).min(left());
        for (arena, evidence) in arenas {
            arena.sit(self.number, present, &Length { rounds: ROUNDS, lasts: &lasts }, pace, evidence)?;
        }
        self.number += 1;
        self.each = self.each.max(self.now().saturating_duration_since(start) / present.len() as u32);
        Ok(())
    }

    fn nothing(&self) -> Seen {
        let none = |arenas: &[Arena<'_>]| vec![Evidence::given(self.spread); arenas.len()];
        Seen { deciding: none(&self.contest.deciding), single: none(&self.contest.single) }
    }

    /// Remembers how much the sittings of a race or a duel differed.
    fn widen(&mut self, seen: &Seen) {
        let all = seen.deciding.iter().chain(&seen.single);
        self.spread = all.fold(self.spread, |spread, evidence| evidence.widened(spread));
    }

    /// The rewritten models in turns, until one leads; those that are behind it beyond noise drop
    /// out. If there is no time for all, the best ones by what trials showed take part; no sitting
    /// if these are fewer than two.
    fn race(&mut self) -> Result<Seen, Failure> {
        let (contest, mut seen, end) = (self.contest, self.nothing(), self.after(RACE));
        let mut present = vec![0];
        present.extend(seen.ranked(&contest.tried).into_iter().filter(|model| contest.wanted[model - 1] == Wanted::Faster));
        while present.len() > 1 && !self.fits(present.len(), end) {
            present.pop();
        }
        for _ in 0..LAPS {
            if present.len() <= 2 || !self.fits(present.len(), end) {
                break;
            }
            self.sit(contest.deciding.iter().zip(&mut seen.deciding).collect(), &present, end)?;
            let leader = seen.ranked(&contest.tried).into_iter().find(|model| present.contains(model)).unwrap_or(0);
            present.retain(|model| [0, leader].contains(model) || !seen.is_behind(*model, leader));
        }
        self.widen(&seen);
        Ok(seen)
    }

    /// One model against the input alone, until it is decided and known well enough, or time is up.
    /// `last`: no other model waits for its turn.
    fn duel(&mut self, model: usize, race: &Seen, last: bool) -> Result<(Seen, Standing), Failure> {
        let (contest, mut seen) = (self.contest, self.nothing());
        let (refined, mut turns, mut look) = (self.after(REFINING), 0usize, 1);
        // What is still to be learned, and until when if it is only about one thread.
        let (mut gain_is_open, mut unsure, mut holding) = (true, vec![false; contest.single.len()], None);
        loop {
            let deciding = contest.deciding.iter().zip(&mut seen.deciding).filter(|_| gain_is_open);
            let single = contest.single.iter().zip(&mut seen.single).zip(&unsure).filter(|(_, unsure)| **unsure);
            self.sit(deciding.chain(single.map(|(one, _)| one)).collect(), &[0, model], contest.until)?;
            turns += 1;
            let over = !self.fits(2, contest.until) || holding.is_some_and(|end| self.now() >= end);
            if turns < look && !over {
                continue;
            }
            look = (turns as f64 * LOOKS).ceil() as usize;
            let all = match contest.tried[model - 1] {
                _ if seen.deciding[0].len() >= FEW => seen.clone(),
                Some(tried) if contest.beside_input => seen.with(race).beside(model, tried),
                _ => seen.with(race),
            };
            if over {
                self.widen(&seen);
                let standing = contest.standing(&all, model, Confidence::Usual);
                return Ok((all, standing));
            }
            let standing = contest.standing(&all, model, Confidence::Repeated);
            let [deciding, single] = [&all.deciding, &all.single].map(|seen| speedups(seen, model, Confidence::Repeated));
            let mean = geometric_mean(&speedups(&all.deciding, model, Confidence::Usual));
            let coarse = mean.high / mean.low > (1.0 + PRECISE).powi(2) && self.now() < refined;
            // How much slower it is makes no difference.
            let lost = mean.high < 1.0 || standing == Standing::Refused && loses(&deciding, &single);
            gain_is_open = coarse || Standing::of(contest.wanted[model - 1], &deciding, &[]) == Standing::Open;
            unsure = single.iter().map(|speedup| standing != Standing::Refused && !holds(speedup)).collect();
            let enough = lost || !gain_is_open && !unsure.contains(&true);
            if enough && standing != Standing::Open {
                self.widen(&seen);
                return Ok((all, standing));
            }
            holding = if gain_is_open || last { None } else { holding.or_else(|| Some(self.now() + self.span(HOLDING))) };
        }
    }

    /// A share of the time.
    fn span(&self, share: f64) -> Duration {
        self.after(share).saturating_duration_since(self.start)
    }
}

fn speedups(evidence: &[Evidence], model: usize, confidence: Confidence) -> Vec<Speedup> {
    evidence.iter().map(|evidence| evidence.speedup(model, confidence).map_or(Speedup::NONE, Speedup::from)).collect()
}
