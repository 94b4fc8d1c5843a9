//! Models timed end to end, interleaved, as deployed.

use std::time::{Duration, Instant};

use regraft_runtime::{Confidence, Feeds, Ratio};

use crate::error::Failure;
use crate::optimize::arena::{Arena, Contender, Evidence, Length, Pace};

/// A sitting lasts at least this multiple of the time to open its models.
const OPENING: f64 = 3.0;

/// End-to-end times of several models against the first.
#[derive(Debug)]
pub struct EndToEnd {
    /// Median time of one run in ns, per model.
    pub medians: Vec<f64>,
    /// Ratio of the first model's time to each model's.
    pub ratios: Vec<Option<Ratio>>,
}

/// How long models are timed, whatever comes out.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Sessions are reopened this many times, so that their placement in memory averages out.
    pub sittings: usize,
    /// Minimum and maximum rounds per sitting.
    pub rounds: (usize, usize),
    /// When to stop adding rounds.
    pub until: Instant,
}

/// Times models against the first of them.
pub fn time_end_to_end(
    models: &[Contender<'_>],
    feeds: &Feeds,
    threads: usize,
    effort: Effort,
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<EndToEnd, Failure> {
    let arena = Arena { models: models.to_vec(), feeds, threads, seed };
    let (everyone, mut evidence): (Vec<usize>, _) = ((0..models.len()).collect(), Evidence::default());
    let mut longest = Duration::ZERO;
    for sitting in 0..effort.sittings.max(1) {
        let start = Instant::now();
        // A sitting that would end too late is not started.
        if sitting > 0 && (start + longest > effort.until || stop()) {
            break;
        }
        // Each sitting gets an equal share of the remaining time, if opening the models takes
        // little of it.
        let left = effort.until.saturating_duration_since(start);
        let lasts = |opening: Duration| {
            let affordable = (left.as_secs_f64() / (OPENING * opening.as_secs_f64()).max(1e-9)) as usize;
            (left / (effort.sittings - sitting).min(affordable).max(1) as u32).saturating_sub(opening)
        };
        let length = Length { rounds: effort.rounds, lasts: &lasts };
        arena.sit(sitting, &everyone, &length, Pace { now: &Instant::now, stop }, &mut evidence)?;
        longest = longest.max(start.elapsed());
    }
    let medians = everyone.iter().map(|at| evidence.median(*at)).collect();
    let ratios = everyone.iter().map(|at| evidence.speedup(*at, Confidence::Usual)).collect();
    Ok(EndToEnd { medians, ratios })
}
