//! Models timed end to end, interleaved, as deployed.

use std::time::Instant;

use regraft_runtime::{
    ModelSource, Ratio, Runtime, Samples, Session, SessionOptions, TimingOptions, median, paired_ratio, time_interleaved,
};

use crate::error::Failure;
use regraft_runtime::Feeds;

/// A candidate must be faster by this margin beyond its interval: two sessions of one model differ
/// consistently by up to half a percent.
pub const MARGIN: f64 = 0.005;

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

/// How long a comparison may take.
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
    runtime: &dyn Runtime,
    models: &[ModelSource<'_>],
    feeds: &Feeds,
    threads: usize,
    effort: Effort,
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<EndToEnd, Failure> {
    let mut all: Option<Samples> = None;
    let mut longest = std::time::Duration::ZERO;
    for sitting in 0..effort.sittings.max(1) {
        let now = Instant::now();
        // A sitting that would end too late is not started.
        if sitting > 0 && (now + longest > effort.until || stop()) {
            break;
        }
        let options = SessionOptions { threads, ..SessionOptions::default() };
        let mut sessions: Vec<Box<dyn Session>> = Vec::new();
        for model in models {
            let mut session = runtime.open(*model, &options)?;
            session.bind(feeds)?;
            sessions.push(session);
        }
        // Each sitting gets an equal share of the remaining time, if opening the models takes
        // little of it.
        let left = effort.until.saturating_duration_since(now);
        let affordable = (left.as_secs_f64() / (OPENING * now.elapsed().as_secs_f64()).max(1e-9)) as usize;
        let end = now + left / (effort.sittings - sitting).min(affordable).max(1) as u32;
        let mut borrowed: Vec<&mut dyn Session> = sessions.iter_mut().map(|s| &mut **s as &mut dyn Session).collect();
        let timing = TimingOptions { warmup: 1, min_rounds: effort.rounds.0, max_rounds: effort.rounds.1, clock: None };
        let samples = time_interleaved(&mut borrowed, &timing, &mut || Instant::now() < end && !stop())?;
        match &mut all {
            Some(all) => all.append(samples),
            None => all = Some(samples),
        }
        longest = longest.max(now.elapsed());
    }
    let samples = all.map(|s| s.sessions).unwrap_or_default();
    let medians = samples.iter().map(|s| median(s).unwrap_or(0.0)).collect();
    let ratios = samples.iter().map(|s| paired_ratio(&samples[0], s, seed)).collect();
    Ok(EndToEnd { medians, ratios })
}
