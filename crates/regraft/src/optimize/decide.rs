//! Deciding between candidates: by runs end to end, or, in frozen runs, by what the store remembers of them.

use std::collections::HashSet;
use std::time::Instant;

use regraft_ir::Graph;
use regraft_runtime::ModelSource;

use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::choose::{Effort, MARGIN, compare};
use crate::optimize::hunt::Hunt;
use crate::optimize::observer::Observer;
use crate::optimize::points::{Point, geometric_mean};
use crate::report::{NotDone, Speedup, Timing};

/// In a frozen run: share of a candidate's price that may rest on guesses, and the gain that the price list must promise.
const GUESSED: f64 = 0.05;
const LISTED_MARGIN: f64 = 0.02;
/// Sittings, and rounds of each at least and at most.
const SITTINGS: usize = 3;
const ROUNDS: (usize, usize) = (4, 24);

/// Timings over all bindings, timings at each, and the candidates that beat the input.
type Decision = (Vec<Timing>, Vec<Vec<Timing>>, Vec<usize>);

impl Hunt<'_> {
    /// Times the input and the candidates end to end, at every binding. Returns all timings (input first; geometric means over the
    /// bindings), the same for each binding, and the candidates that beat the input, best first.
    pub fn decide(
        &mut self,
        start: &Graph,
        original: ModelSource<'_>,
        candidates: &[Candidate],
        observer: &dyn Observer,
    ) -> Result<Decision, Failure> {
        if candidates.is_empty() {
            let input = timing("input", 0.0, Speedup::NONE);
            return Ok((vec![input.clone()], self.points.iter().map(|_| vec![input.clone()]).collect(), Vec::new()));
        }
        if self.room.is_tight() {
            return Ok(self.choose_from_list(start, candidates));
        }
        if self.request.frozen {
            return Ok(self.choose_from_store(start, candidates));
        }
        let mut models = vec![original];
        models.extend(candidates.iter().filter_map(|c| Some(c.artifact.as_ref()?.source())));
        let mut by_point: Vec<Vec<Timing>> = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            // Each binding gets an equal part of the time that is left.
            let now = Instant::now();
            let until = now + self.pace.choosing_ends().saturating_duration_since(now) / (self.points.len() - at) as u32;
            let effort = Effort { sittings: SITTINGS, rounds: ROUNDS, until };
            let (threads, seed) = (self.request.threads, self.request.seed);
            let result = compare(self.runtime, &models, &point.feeds, threads, effort, seed, &|| observer.interrupted())?;
            let speedup = |at: usize| result.ratios[at].map_or(Speedup::NONE, Speedup::from);
            let mut timings = vec![timing("input", result.medians[0], Speedup { pairs: speedup(0).pairs, ..Speedup::NONE })];
            timings.extend(candidates.iter().enumerate().map(|(at, c)| timing(&c.name, result.medians[at + 1], speedup(at + 1))));
            for (candidate, timing) in candidates.iter().zip(&timings[1..]) {
                self.prices.remember_ratio(&self.prices_key(candidate, point), timing.speedup)?;
            }
            by_point.push(timings);
        }
        let timings = together(&by_point);
        let wins = |at: &usize| accepted(&candidates[*at], &timings[at + 1].speedup) && self.holds_everywhere(&by_point, at + 1);
        let mut order: Vec<usize> = (0..candidates.len()).filter(wins).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        self.explain_slower(candidates, &timings, &by_point);
        Ok((timings, by_point, order))
    }

    /// True if a model is slower than the input at no binding, beyond noise.
    fn holds_everywhere(&self, by_point: &[Vec<Timing>], model: usize) -> bool {
        by_point.len() < 2 || by_point.iter().all(|timings| !is_slower(&timings[model].speedup))
    }

    /// Candidates that are faster on the whole, and slower somewhere.
    fn explain_slower(&mut self, candidates: &[Candidate], timings: &[Timing], by_point: &[Vec<Timing>]) {
        if by_point.len() < 2 {
            return;
        }
        for (at, candidate) in candidates.iter().enumerate().filter(|(at, c)| accepted(c, &timings[at + 1].speedup)) {
            let slower = self.points.iter().zip(by_point).find(|(_, t)| is_slower(&t[at + 1].speedup));
            let Some((point, there)) = slower else { continue };
            let Speedup { median, low, high, .. } = there[at + 1].speedup;
            let because = format!("it runs {median:.3} times as fast as the input there [{low:.3}, {high:.3}]");
            self.not_done.push(NotDone { what: candidate.name.clone(), at: point.label.clone(), because });
        }
    }

    /// Decides by what the store remembers: for frozen runs, which measure nothing. An earlier comparison counts first; else the price list
    /// does, where it knows the whole candidate.
    fn choose_from_store(&self, start: &Graph, candidates: &[Candidate]) -> Decision {
        let input = self.prices.total(start) as f64;
        let mut by_point: Vec<Vec<Timing>> = self.points.iter().map(|_| vec![timing("input", 0.0, Speedup::NONE)]).collect();
        for candidate in candidates {
            let predicted = input / candidate.predicted.max(1) as f64;
            let known = self.prices.guessed(&candidate.graph) < GUESSED && candidate.bodies.is_empty();
            let listed = known.then_some(Speedup { median: predicted, low: predicted, high: predicted, pairs: 0 });
            for (point, timings) in self.points.iter().zip(&mut by_point) {
                let speedup = self.prices.recall_ratio(&self.prices_key(candidate, point)).or(listed).unwrap_or(Speedup::NONE);
                timings.push(timing(&candidate.name, candidate.predicted as f64, speedup));
            }
        }
        let timings = together(&by_point);
        let faster = |at: &usize| {
            let speedup = &timings[at + 1].speedup;
            let margin = if speedup.pairs > 0 { MARGIN } else { LISTED_MARGIN };
            speedup.low > 1.0 + margin && self.holds_everywhere(&by_point, at + 1)
        };
        let mut order: Vec<usize> = (0..candidates.len()).filter(faster).collect();
        order.sort_by(|a, b| timings[b + 1].speedup.median.total_cmp(&timings[a + 1].speedup.median));
        (timings, by_point, order)
    }

    /// Decides by the price list alone, where nothing can be run: each single rewrite, and the whole, must gain.
    fn choose_from_list(&self, start: &Graph, candidates: &[Candidate]) -> Decision {
        let input = self.prices.total(start);
        let timings: Vec<Timing> = std::iter::once("input")
            .chain(candidates.iter().map(|c| c.name.as_str()))
            .map(|name| timing(name, 0.0, Speedup::NONE))
            .collect();
        let gains = |c: &Candidate| {
            let cheaper = if c.applied.is_empty() { c.predicted <= input } else { c.predicted < input };
            cheaper && c.applied.iter().all(|step| step.gain_ns > 0)
        };
        let mut order: Vec<usize> = (0..candidates.len()).filter(|at| gains(&candidates[*at])).collect();
        order.sort_by_key(|at| candidates[*at].predicted);
        (timings.clone(), self.points.iter().map(|_| timings.clone()).collect(), order)
    }

    /// Identity of a pair of models at a binding in the store.
    fn prices_key(&self, candidate: &Candidate, point: &Point) -> String {
        let graphs = [self.model.graph(), &candidate.graph].map(regraft_ir::key::canonical_key);
        let bodies = candidate.bodies.iter().map(|place| format!(":{place:x}")).collect::<String>();
        let binding = if point.label.is_empty() { String::new() } else { format!("@{}", point.label) };
        format!("ratio:{:032x}:{:032x}{bodies}{binding}", graphs[0], graphs[1])
    }

    /// Adds what lost to the "not done, because" list. `dropped` tells what became of candidates, by place, that were faster.
    pub fn explain_losers(&mut self, winner: Option<&Candidate>, candidates: &[Candidate], timings: &[Timing], dropped: &[(usize, &str)]) {
        let won: HashSet<&str> = winner.into_iter().flat_map(|c| c.applied.iter().map(|a| a.rule.as_str())).collect();
        let mut told: HashSet<String> = HashSet::new();
        for (at, (candidate, timing)) in candidates.iter().zip(timings.iter().skip(1)).enumerate() {
            let Speedup { median, low, high, pairs } = timing.speedup;
            let fate = match dropped.iter().find(|(place, _)| *place == at) {
                Some((_, fate)) => fate.to_string(),
                None if pairs == 0 => format!("was not timed and runs {median:.3} times as fast as the input by what is known"),
                None => format!("runs {median:.3} times as fast as the input [{low:.3}, {high:.3}]"),
            };
            for applied in &candidate.applied {
                if !won.contains(applied.rule.as_str()) && told.insert(applied.rule.clone()) {
                    let because = format!("part of {}, which {fate}", candidate.name);
                    self.not_done.push(NotDone { what: applied.rule.clone(), at: applied.at.clone(), because });
                }
            }
        }
    }
}

fn timing(model: &str, median_ns: f64, speedup: Speedup) -> Timing {
    Timing { model: model.into(), median_ns, speedup }
}

/// Every model's geometric mean over the bindings.
fn together(by_point: &[Vec<Timing>]) -> Vec<Timing> {
    if let [one] = by_point {
        return one.clone();
    }
    let mean = |at: usize| {
        let times: Vec<&Timing> = by_point.iter().map(|timings| &timings[at]).collect();
        let median_ns = (times.iter().map(|t| t.median_ns.max(f64::MIN_POSITIVE).ln()).sum::<f64>() / times.len() as f64).exp();
        timing(&times[0].model, median_ns, geometric_mean(&times.iter().map(|t| t.speedup).collect::<Vec<_>>()))
    };
    (0..by_point.first().map_or(0, Vec::len)).map(mean).collect()
}

/// Slower than the input beyond noise: by its whole interval, or by more than two sessions of one model differ.
fn is_slower(speedup: &Speedup) -> bool {
    speedup.high < 1.0 || speedup.median < 1.0 - MARGIN
}

/// A rewritten model must be faster beyond noise; the cleaned input must only not be slower.
fn accepted(candidate: &Candidate, speedup: &Speedup) -> bool {
    if candidate.applied.is_empty() {
        return speedup.pairs > 0 && speedup.median >= 1.0 && speedup.high >= 1.0;
    }
    speedup.pairs > 0 && speedup.low > 1.0 + MARGIN
}
