//! Interleaved timing of several sessions.

use std::time::Duration;

use crate::{Clock, RuntimeError, Session};

/// How long to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimingOptions {
    /// Rounds that are run and not recorded.
    pub warmup: usize,
    /// Rounds recorded even when the budget is spent.
    pub min_rounds: usize,
    /// Most rounds recorded.
    pub max_rounds: usize,
    /// If a run of every session takes less than this, each runs once more before every recorded
    /// run. Otherwise that depends on which session ran before and what it left in the caches; a
    /// deployed model runs after itself. Longer runs turn the caches over by themselves.
    pub warm_below: Duration,
    /// Clock; by default that of the sessions, and elapsed time where theirs differ.
    pub clock: Option<Clock>,
}

impl Default for TimingOptions {
    fn default() -> Self {
        Self { warmup: 3, min_rounds: 6, max_rounds: 50, warm_below: Duration::ZERO, clock: None }
    }
}

/// Times of several sessions, round by round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// The clock that was read.
    pub clock: Clock,
    /// Nanoseconds of each round, for each session in the order given; all of the same length.
    pub sessions: Vec<Vec<u64>>,
}

impl Samples {
    /// Recorded rounds.
    pub fn rounds(&self) -> usize {
        self.sessions.first().map_or(0, Vec::len)
    }

    /// Adds the rounds of another sitting with the same models, in the same order and by the same
    /// clock. Sittings with newly opened sessions average out a session's placement in memory.
    pub fn append(&mut self, other: Self) {
        debug_assert_eq!((self.clock, self.sessions.len()), (other.clock, other.sessions.len()));
        for (all, more) in self.sessions.iter_mut().zip(other.sessions) {
            all.extend(more);
        }
    }
}

/// Times sessions against each other. Each round runs every session once on its bound values; the
/// order is reversed every round and its start moves on, so that no session always follows the same
/// other. Slow drift of the machine then affects all alike.
///
/// Stops after `max_rounds`, or, once `min_rounds` are done, when `go_on` returns false. Warm-up
/// ends early likewise, but for its first round.
pub fn time_interleaved(
    sessions: &mut [&mut dyn Session],
    options: &TimingOptions,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Samples, RuntimeError> {
    let clocks = sessions.iter().map(|s| s.clock());
    let clock = options.clock.or_else(|| clocks.reduce(|a, b| if a == b { a } else { Clock::Wall })).unwrap_or(Clock::Wall);
    let count = sessions.len();
    let mut samples = Samples { clock, sessions: vec![Vec::with_capacity(options.max_rounds); count] };

    let mut longest = u64::MAX;
    for round in 0..options.warmup {
        // The first warm-up round always runs: the first run of a session allocates its memory.
        if round > 0 && !go_on() {
            break;
        }
        longest = 0;
        for session in sessions.iter_mut() {
            longest = longest.max(session.time_bound(clock)?);
        }
    }
    let warm = Duration::from_nanos(longest) < options.warm_below;
    for round in 0..options.max_rounds {
        if round >= options.min_rounds && !go_on() {
            break;
        }
        for step in 0..count {
            let which = order(round, step, count);
            if warm {
                sessions[which].run_bound()?;
            }
            samples.sessions[which].push(sessions[which].time_bound(clock)?);
        }
    }
    Ok(samples)
}

/// The session that runs at `step` of `round`.
fn order(round: usize, step: usize, count: usize) -> usize {
    let place = if round.is_multiple_of(2) { step } else { count - 1 - step };
    (place + round / 2) % count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Feeds, HostTensor, RawProfile, ValueInfo};

    struct Counter(usize);

    impl Session for Counter {
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
            self.0 += 1;
            Ok(())
        }
        fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
            Err(RuntimeError::NotProfiling { model: String::new() })
        }
    }

    #[test]
    fn every_round_runs_every_session_once_in_changing_order() {
        for count in 1..5 {
            for round in 0..8 {
                let mut seen: Vec<usize> = (0..count).map(|step| order(round, step, count)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
        }
        let first: Vec<usize> = (0..4).map(|round| order(round, 0, 2)).collect();
        assert_eq!(first, [0, 1, 1, 0]);
    }

    #[test]
    fn budget_and_limits_stop_the_rounds() {
        let (mut a, mut b) = (Counter(0), Counter(0));
        let options = TimingOptions { warmup: 2, min_rounds: 4, max_rounds: 9, ..TimingOptions::default() };
        let samples = time_interleaved(&mut [&mut a, &mut b], &options, &mut || false).unwrap();
        assert_eq!((samples.rounds(), a.0, b.0), (4, 5, 5));
        let samples = time_interleaved(&mut [&mut a], &options, &mut || true).unwrap();
        assert_eq!((samples.rounds(), a.0), (9, 5 + 11));
        let warm = TimingOptions { warm_below: Duration::from_secs(3600), ..options };
        time_interleaved(&mut [&mut b], &warm, &mut || false).unwrap();
        assert_eq!(b.0, 5 + 1 + 2 * 4);
    }
}
