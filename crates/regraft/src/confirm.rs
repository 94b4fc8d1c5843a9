//! `bench --here`: whether what was predicted for this machine on another one holds.

use std::path::{Path, PathBuf};

use regraft_runtime::{Backend, MachineKey};
use serde::Serialize;

use crate::bench::{BenchReport, BenchRequest, bench};
use crate::error::Failure;
use crate::optimize::Observer;
use crate::recording::digest;
use crate::report::{Predicted, Report, Speedup};
use crate::units::{ShapeArg, Size};

/// Whether a prediction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The input was kept: there is nothing to confirm, and nothing was timed.
    Kept,
    /// It is faster, by as much as was predicted.
    Held,
    /// It is faster, by more than was predicted.
    Better,
    /// It is not shown to be faster, nor that the prediction is wrong: more runs would tell.
    Open,
    /// It gains less than was predicted, or nothing.
    Missed,
}

impl Outcome {
    /// By intervals of 95 %.
    pub fn of(predicted: &Speedup, measured: &Speedup) -> Outcome {
        if measured.high < predicted.low {
            Outcome::Missed
        } else if measured.low > predicted.high {
            Outcome::Better
        } else if measured.low > 1.0 {
            Outcome::Held
        } else {
            Outcome::Open
        }
    }

    /// Whether the promise was met.
    pub fn is_met(self) -> bool {
        matches!(self, Outcome::Kept | Outcome::Held | Outcome::Better)
    }
}

/// What was predicted, and what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Confirmation {
    /// Whether it holds.
    pub outcome: Outcome,
    /// The report that holds the prediction.
    pub report: String,
    /// The prediction.
    pub prediction: Predicted,
    /// The predicted speed-up at the sizes that were timed: the first that the run was for.
    pub predicted: Speedup,
    /// Whether this is the machine that the prices were recorded on, as far as that can be told.
    pub same_machine: bool,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// What was measured; `None` if the input was kept.
    #[serde(flatten)]
    pub bench: Option<BenchReport>,
}

/// Times an input and what was made of it as a prediction says, and compares. The request's models
/// are these two; its sizes, threads and runtime are those of the prediction. The report is the one
/// named, or the one beside the result.
///
/// # Errors
///
/// There is no report, or it predicts nothing, or is about other models; and what [`bench`] fails
/// with.
pub fn confirm(request: &BenchRequest, report: Option<&Path>, observer: &mut dyn Observer) -> Result<Confirmation, Failure> {
    let [input, output] = request.models.as_slice() else {
        return Err(Failure::new("a prediction is about two models").hint("name the input and what was made of it: --here IN OUT"));
    };
    let file = Report::of(output, report)?;
    let report = Report::read(&file)?;
    let Some(prediction) = report.prediction.clone() else {
        let failure = Failure::new(format!("{} predicts nothing: what it reports was measured", file.display()));
        return Err(failure.hint("`regraft optimize --cost profile:FILE --report FILE` predicts"));
    };
    for (path, known) in [(input, &prediction.models.0), (output, &prediction.models.1)] {
        if digest(path)? != *known {
            let failure = Failure::new(format!("{} is not the model that {} is about", path.display(), file.display()));
            return Err(failure.hint("name the two models of that run, the input first, or its report with --predicted"));
        }
    }
    let backend: Backend = prediction
        .runtime
        .split(' ')
        .next()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| Failure::new(format!("{} is about the runtime {}, which is not known", file.display(), prediction.runtime)))?;
    let machine = MachineKey::detect();
    let same_machine = machine.to_string() == prediction.machine;
    let (speedup, shapes) = match report.bindings.first() {
        Some(first) => (first.speedup, &first.shapes),
        None => (prediction.speedup, &report.shapes),
    };
    let mut done = Confirmation {
        outcome: Outcome::Kept,
        report: file.display().to_string(),
        predicted: speedup,
        same_machine,
        warnings: Vec::new(),
        bench: None,
        prediction,
    };
    if !same_machine {
        let there = &done.prediction.machine;
        done.warnings.push(format!("this is {machine}, and the prediction is for {there}: what is measured here does not tell of it"));
    }
    if done.prediction.is_kept {
        return Ok(done);
    }
    let mut request = BenchRequest { threads: Some(done.prediction.threads as usize), ..request.clone() };
    request.runtime.backend = backend;
    request.shapes = shapes.iter().map(|(input, sizes)| known(input, sizes)).collect();
    let measured = bench(&request, observer)?;
    if measured.runtime != done.prediction.runtime {
        done.warnings.push(format!("this is {}, and the prediction is for {}", measured.runtime, done.prediction.runtime));
    }
    done.outcome = measured.models.last().map_or(Outcome::Open, |model| Outcome::of(&speedup, &model.speedup));
    Ok(Confirmation { bench: Some(measured), ..done })
}

fn known(input: &str, sizes: &[usize]) -> ShapeArg {
    ShapeArg { input: input.to_owned(), sizes: sizes.iter().map(|size| Size::Known(*size)).collect() }
}

/// The report that a prediction goes to by default: beside the result, where [`Report::of`] looks
/// for it.
pub fn beside(output: &Path) -> PathBuf {
    output.with_extension("report.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_holds_if_the_intervals_meet_and_there_is_a_gain() {
        let speedup = |low: f64, high: f64| Speedup { median: (low * high).sqrt(), low, high, pairs: 9 };
        let predicted = speedup(1.05, 1.15);
        for (low, high, outcome) in [
            (1.04, 1.06, Outcome::Held),
            (1.08, 1.10, Outcome::Held),
            (1.001, 1.30, Outcome::Held),
            (1.16, 1.20, Outcome::Better),
            (1.01, 1.04, Outcome::Missed),
            (0.90, 0.95, Outcome::Missed),
            (0.99, 1.06, Outcome::Open),
        ] {
            assert_eq!(Outcome::of(&predicted, &speedup(low, high)), outcome, "[{low}, {high}]");
        }
        assert!([Outcome::Kept, Outcome::Held, Outcome::Better].iter().all(|outcome| outcome.is_met()));
        assert!(!Outcome::Open.is_met() && !Outcome::Missed.is_met());
    }
}
