//! Operators that may replace a layer: known families first, then what a search draws.

use std::time::{Duration, Instant};

use regraft_synth::{Explorer, Filter, Found, Key, Operator, Sampler, presets};

use crate::error::Failure;
use crate::synthesize::kernel::{Bench, Target, Timed, check};
use crate::synthesize::layers::Kind;

/// An operator that is faster than the layer.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The operator.
    pub found: Found,
    /// Its time beside the layer's.
    pub timed: Timed,
}

/// What was tried for one kind of layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    /// Operators with a known name or family.
    pub known: usize,
    /// Operators that the search drew.
    pub drawn: usize,
    /// Operators that were compared with their definition and timed.
    pub timed: usize,
}

/// An operator is looked at further if it takes at most this share of the layer's time.
const FASTER: f64 = 0.9;
/// Known operators that are tried, however little time there is.
const FEWEST: usize = 2;
/// Operators that are kept for one kind of layer.
const KEPT: usize = 24;
/// How many times slower another operator with as many weights has to be to be given up: which of
/// two can be fitted better is not known yet.
const CLEARLY: f64 = 1.1;

/// How long operators are timed beside their layer, for each of them.
const LASTS: Duration = Duration::from_millis(250);

/// What candidates are looked for with.
pub struct Hunt<'r> {
    /// What they are timed with.
    pub target: Target<'r>,
    /// Seed of the search.
    pub seed: u64,
}

impl Hunt<'_> {
    /// Operators for one kind of layer that are faster, the fastest first; known ones, and what a
    /// search draws until `until`.
    pub fn candidates(
        &self,
        kind: &Kind,
        explorer: &mut Explorer<'_>,
        until: Instant,
        stop: &dyn Fn() -> bool,
    ) -> Result<(Vec<Candidate>, Tried), Failure> {
        let dense = dense(explorer)?;
        let sizes = explorer.spec().layers[0].clone();
        let bench = Bench::new(self.target, &dense, &sizes, LASTS, &explorer.coordinates)?;
        let (mut kept, mut tried): (Vec<Candidate>, Tried) = (Vec::new(), Tried::default());
        let mut seen: Vec<Key> = Vec::new();
        for formula in presets::families(explorer.spec()) {
            if stop() || Instant::now() >= until && tried.known >= FEWEST {
                break;
            }
            let Ok(operator) = Operator::parse(&formula, &mut explorer.coordinates) else { continue };
            let Some(found) = explorer.judged(operator) else { continue };
            if seen.contains(&found.key) {
                continue;
            }
            seen.push(found.key);
            tried.known += 1;
            self.try_one(found, kind, &bench, explorer, &mut kept, &mut tried)?;
        }
        // Preparing to draw takes a while: not where there is no time.
        let mut sampler = (Instant::now() < until && !stop()).then(|| Sampler::new(explorer, self.seed, false));
        let mut idle = 0;
        while let Some(sampler) = sampler.as_mut().filter(|_| Instant::now() < until && !stop() && idle < IDLE) {
            idle += 1;
            for found in sampler.draw(explorer).unwrap_or_default() {
                if seen.contains(&found.key) {
                    continue;
                }
                idle = 0;
                seen.push(found.key);
                tried.drawn += 1;
                self.try_one(found, kind, &bench, explorer, &mut kept, &mut tried)?;
            }
        }
        kept.sort_by(|a, b| a.share().total_cmp(&b.share()));
        Ok((kept, tried))
    }

    fn try_one(
        &self,
        found: Found,
        kind: &Kind,
        bench: &Bench<'_>,
        explorer: &Explorer<'_>,
        kept: &mut Vec<Candidate>,
        tried: &mut Tried,
    ) -> Result<(), Failure> {
        // What has fewer weights and is no faster than another can only be worse: fits are not
        // free.
        let Some(timed) = bench.time(&found, &explorer.coordinates)? else { return Ok(()) };
        tried.timed += 1;
        let candidate = Candidate { found, timed };
        let worse = |a: &Candidate, b: &Candidate| a.share() >= b.share() * CLEARLY && a.found.parameters <= b.found.parameters;
        if candidate.share() > FASTER || kept.iter().any(|other| worse(&candidate, other)) {
            return Ok(());
        }
        check(&candidate.found, &kind.small(explorer.spec()), &explorer.coordinates, self.target.runtime)?;
        kept.retain(|other| !worse(other, &candidate));
        kept.push(candidate);
        if kept.len() > KEPT {
            // The pair of neighbours that differ least gives one up.
            kept.sort_by(|a, b| a.share().total_cmp(&b.share()));
            let closest = (1..kept.len() - 1).min_by(|a, b| gap(kept, *a).total_cmp(&gap(kept, *b))).unwrap_or(1);
            kept.remove(closest);
        }
        Ok(())
    }
}

/// The layer itself, as an operator.
pub fn dense(explorer: &mut Explorer<'_>) -> Result<Found, Failure> {
    let (name, formula) = (explorer.spec().name.clone(), explorer.spec().dense.clone());
    let hint = "what operators replace is linear, the input times one weight: dense = \"sum r0: C; x[r0] * w[i0, r0]\"";
    if formula.trim().is_empty() {
        return Err(Failure::new(format!("{name}: there is no dense layer")).hint(hint));
    }
    let operator = Operator::parse(&formula, &mut explorer.coordinates)
        .map_err(|e| Failure::new(format!("{name}: the dense layer `{formula}`: {e}")).hint(hint))?;
    explorer.described(operator).ok_or_else(|| Failure::new(format!("{name}: the dense layer `{formula}` cannot be computed")))
}

/// The operator with this formula.
///
/// # Errors
///
/// If it is no operator of the specification.
pub fn parsed(formula: &str, explorer: &mut Explorer<'_>) -> Result<Operator, Failure> {
    Operator::parse(formula, &mut explorer.coordinates).map_err(|e| Failure::new(format!("{formula}: {e}")))
}

/// Draws without anything new after which a search ends.
const IDLE: usize = 400;

fn gap(kept: &[Candidate], at: usize) -> f64 {
    kept[at + 1].share() - kept[at - 1].share()
}

impl Candidate {
    /// Its share of the layer's time.
    pub fn share(&self) -> f64 {
        self.timed.ns / self.timed.layer_ns
    }
}

/// An explorer for one kind of layer.
pub fn explorer(spec: &regraft_synth::Spec) -> Explorer<'_> {
    Explorer::new(spec, Filter::default())
}

/// The share of a time budget that a part with this weight gets.
pub fn share(budget: Duration, weight: f64, total: f64) -> Duration {
    budget.mul_f64((weight / total.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0))
}
