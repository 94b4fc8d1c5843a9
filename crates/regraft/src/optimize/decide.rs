//! Deciding between candidates: by runs end to end, or, in frozen runs, by what the store remembers of them.

use std::collections::HashSet;

use regraft_ir::Graph;
use regraft_runtime::ModelSource;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::choose::{Effort, MARGIN, compare};
use crate::optimize::hunt::Hunt;
use crate::optimize::observer::Observer;
use crate::report::{NotDone, Speedup, Timing};

/// In a frozen run: share of a candidate's price that may rest on guesses, and the gain that the price list must promise.
const GUESSED: f64 = 0.05;
const LISTED_MARGIN: f64 = 0.02;
/// Sittings, and rounds of each at least and at most.
const SITTINGS: usize = 3;
const ROUNDS: (usize, usize) = (4, 24);

impl Hunt<'_> {
    /// Times the input and the candidates end to end. Returns all timings (input first) and the candidates that beat the input, best first.
    pub fn decide(
        &mut self,
        start: &Graph,
        original: ModelSource<'_>,
        candidates: &[Candidate],
        observer: &dyn Observer,
    ) -> Result<(Vec<Timing>, Vec<usize>), Failure> {
        let named = |name: &str, median_ns: f64, speedup: Speedup| Timing { model: name.into(), median_ns, speedup };
        if candidates.is_empty() {
            return Ok((vec![named("input", 0.0, Speedup::NONE)], Vec::new()));
        }
        if self.room.is_tight() {
            return Ok(self.choose_from_list(start, candidates));
        }
        if self.request.frozen {
            return Ok(self.choose_from_store(start, candidates));
        }
        let mut models = vec![original];
        models.extend(candidates.iter().filter_map(|c| Some(c.artifact.as_ref()?.source())));
        let effort = Effort { sittings: SITTINGS, rounds: ROUNDS, until: self.pace.choosing_ends() };
        let result =
            compare(self.runtime, &models, self.feeds, self.request.threads, effort, self.request.seed, &|| observer.interrupted())?;
        let speedup = |at: usize| result.ratios[at].map_or(Speedup::NONE, Speedup::from);
        let mut timings = vec![named("input", result.medians[0], Speedup { pairs: speedup(0).pairs, ..Speedup::NONE })];
        timings.extend(candidates.iter().enumerate().map(|(at, c)| named(&c.name, result.medians[at + 1], speedup(at + 1))));
        let mut order: Vec<usize> = (0..candidates.len()).filter(|at| accepted(&candidates[*at], &timings[at + 1].speedup)).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        for (candidate, timing) in candidates.iter().zip(&timings[1..]) {
            self.prices.remember_ratio(&self.prices_key(candidate), timing.speedup)?;
        }
        Ok((timings, order))
    }

    /// Decides by what the store remembers: for frozen runs, which measure nothing. An earlier comparison counts first; else the price list
    /// does, where it knows the whole candidate.
    fn choose_from_store(&self, start: &Graph, candidates: &[Candidate]) -> (Vec<Timing>, Vec<usize>) {
        let mut timings = vec![Timing { model: "input".into(), median_ns: 0.0, speedup: Speedup::NONE }];
        let input = self.prices.total(start) as f64;
        for candidate in candidates {
            let predicted = input / candidate.predicted.max(1) as f64;
            let listed = || {
                (self.prices.guessed(&candidate.graph) < GUESSED).then_some(Speedup {
                    median: predicted,
                    low: predicted,
                    high: predicted,
                    pairs: 0,
                })
            };
            let speedup = self.prices.recall_ratio(&self.prices_key(candidate)).or_else(listed).unwrap_or(Speedup::NONE);
            timings.push(Timing { model: candidate.name.clone(), median_ns: candidate.predicted as f64, speedup });
        }
        let faster =
            |at: &usize| timings[at + 1].speedup.low > 1.0 + if timings[at + 1].speedup.pairs > 0 { MARGIN } else { LISTED_MARGIN };
        let mut order: Vec<usize> = (0..candidates.len()).filter(faster).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        (timings, order)
    }

    /// Decides by the price list alone, where nothing can be run: each single rewrite, and the whole, must gain.
    fn choose_from_list(&self, start: &Graph, candidates: &[Candidate]) -> (Vec<Timing>, Vec<usize>) {
        let input = self.prices.total(start);
        let timing = |model: &str| Timing { model: model.into(), median_ns: 0.0, speedup: Speedup::NONE };
        let timings = std::iter::once(timing("input")).chain(candidates.iter().map(|c| timing(&c.name))).collect();
        let gains = |c: &Candidate| {
            let cheaper = if c.applied.is_empty() { c.predicted <= input } else { c.predicted < input };
            cheaper && c.applied.iter().all(|step| step.gain_ns > 0)
        };
        let mut order: Vec<usize> = (0..candidates.len()).filter(|at| gains(&candidates[*at])).collect();
        order.sort_by_key(|at| candidates[*at].predicted);
        (timings, order)
    }

    /// Identity of a pair of models in the store.
    fn prices_key(&self, candidate: &Candidate) -> String {
        format!(
            "ratio:{:032x}:{:032x}",
            regraft_ir::key::canonical_key(self.model.graph()),
            regraft_ir::key::canonical_key(&candidate.graph)
        )
    }

    /// Adds what was measured and lost to the "not done, because" list.
    pub fn explain_losers(&mut self, winner: Option<&Candidate>, candidates: &[Candidate], timings: &[Timing]) {
        let won: HashSet<&str> = winner.into_iter().flat_map(|c| c.applied.iter().map(|a| a.rule.as_str())).collect();
        let mut told: HashSet<String> = HashSet::new();
        for (candidate, timing) in candidates.iter().zip(timings.iter().skip(1)) {
            for applied in &candidate.applied {
                if !won.contains(applied.rule.as_str()) && told.insert(applied.rule.clone()) {
                    self.not_done.push(NotDone {
                        what: applied.rule.clone(),
                        at: applied.at.clone(),
                        because: format!(
                            "part of {}, which runs {:.3} times as fast as the input [{:.3}, {:.3}]",
                            candidate.name, timing.speedup.median, timing.speedup.low, timing.speedup.high
                        ),
                    });
                }
            }
        }
    }
}

/// A rewritten model must be faster beyond noise; the cleaned input must only not be slower.
fn accepted(candidate: &Candidate, speedup: &Speedup) -> bool {
    if candidate.applied.is_empty() {
        return speedup.pairs > 0 && speedup.median >= 1.0 && speedup.high >= 1.0;
    }
    speedup.pairs > 0 && speedup.low > 1.0 + MARGIN
}
