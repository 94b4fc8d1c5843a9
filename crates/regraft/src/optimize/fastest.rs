//! A model optimized for every runtime of this machine, and the one that is fastest of all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use regraft_onnx::{Model, data_files, folder_of, is_stream};
use regraft_runtime::{Backend, Fallback, ModelSource, Runtime};

use crate::certificate::{beside, discard};
use crate::error::Failure;
use crate::file::copy_atomic;
use crate::optimize::binding::Binding;
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::request::{DEFAULT_BUDGET, Request};
use crate::optimize::{Contender, Effort, optimize, time_end_to_end};
use crate::report::{Fastest, OnRuntime, Report, Speedup};
use crate::runtime::RuntimeChoice;

/// Share of the budget that comparing the runtimes takes, unless a sitting takes longer.
const COMPARING: f64 = 0.1;
/// Rounds of a sitting.
const ROUNDS: (usize, usize) = (5, 200);
/// Sittings of the comparison.
const SITTINGS: usize = 5;

/// What one runtime made of the model.
struct Made {
    runtime: Arc<dyn Runtime>,
    report: Report,
    /// The result, in a folder of its own, under the name that it will have.
    file: PathBuf,
    _folder: tempfile::TempDir,
}

/// Optimizes a model file for each runtime that this machine has, times all results and the input
/// on all of them, and writes what is fastest. The report is that of the runtime that was chosen.
///
/// # Errors
///
/// As for [`optimize`](optimize()); also if there is no runtime at all, or none that runs the
/// model.
pub fn fastest(request: &Request, observer: &mut dyn Observer) -> Result<Report, Failure> {
    let start = Instant::now();
    if request.runtime.library.is_some() {
        return Err(Failure::new("one library is named for several runtimes").hint("name the runtime, too, with --target"));
    }
    let tenth = request.budget.mul_f64(COMPARING);
    let (mut there, mut failures) = (Vec::new(), Vec::new());
    for (backend, loaded) in runtimes() {
        match loaded {
            Ok(runtime) => there.push((backend, runtime)),
            Err(failure) => failures.push((backend, failure)),
        }
    }
    let mut made: Vec<Made> = Vec::new();
    let count = there.len();
    for (at, (backend, runtime)) in there.into_iter().enumerate() {
        let comparing = one_sitting(&made, count).map_or(tenth, |sitting| tenth.max(sitting));
        let left = request.budget.saturating_sub(comparing + start.elapsed());
        let share = left / (count - at) as u32;
        match on_one(request, backend, runtime, share, observer) {
            Ok(one) => made.push(one),
            // What one runtime cannot run, another one may.
            Err(failure) => failures.push((backend, failure)),
        }
        if observer.interrupted() {
            break;
        }
    }
    if made.is_empty() {
        let first = failures.into_iter().next();
        return Err(first.map_or_else(|| Failure::new("there is no runtime"), |(_, failure)| failure));
    }
    let (chosen, runtimes) = compare(request, &made, start + request.budget, observer)?;
    let one = made.swap_remove(chosen);
    observer.phase(Phase::Write, &request.output.display().to_string());
    deliver(&one, request)?;
    let mut report = one.report;
    report.output = Some(request.output.display().to_string());
    report.certificate = report.certificate.and(request.certificate.as_ref()).map(|path| path.display().to_string());
    report.reproduce.clone_from(&request.reproduce);
    report.seconds.total = start.elapsed().as_secs_f64();
    report.warnings.extend(failures.iter().map(|(backend, why)| format!("{} was left out: {why}", backend.name())));
    report.fastest = Some(Fastest { chosen: report.runtime.clone(), runtimes });
    Ok(report)
}

/// Time that [`fastest`] may take unless more or less is asked for: as much for each runtime of
/// this machine as an optimization for it alone gets.
pub fn default_budget() -> Duration {
    DEFAULT_BUDGET * runtimes().filter(|(_, loaded)| loaded.is_ok()).count().max(1) as u32
}

/// The runtimes that this machine has, and why it has no more.
fn runtimes() -> impl Iterator<Item = (Backend, Result<Arc<dyn Runtime>, Failure>)> {
    Backend::candidates().into_iter().map(|backend| (backend, RuntimeChoice { backend, library: None }.load()))
}

/// What one sitting of the comparison of `count` runtimes takes at least, by what was made for some
/// of them; models of hundreds of megabytes take seconds to open.
fn one_sitting(made: &[Made], count: usize) -> Option<Duration> {
    let sitting = |report: &Report| {
        let opening = report.startup.map_or(0.0, |startup| (startup.input.load_ns + startup.output.load_ns) as f64);
        let run = report.timings.first().map_or(0.0, |timing| timing.median_ns);
        Duration::from_nanos((opening + 2.0 * (1 + ROUNDS.0) as f64 * run) as u64)
    };
    let known: Duration = made.iter().map(|one| sitting(&one.report)).sum();
    (!made.is_empty()).then(|| known * count as u32 / made.len() as u32)
}

/// Optimizes for one runtime, into a folder of its own beside the output.
fn on_one(
    request: &Request,
    backend: Backend,
    runtime: Arc<dyn Runtime>,
    budget: Duration,
    observer: &mut dyn Observer,
) -> Result<Made, Failure> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".regraft-");
    let is_stream = is_stream(&request.output).unwrap_or(false);
    let folder = if is_stream { builder.tempdir() } else { builder.tempdir_in(folder_of(&request.output)) };
    let folder = folder.map_err(|e| Failure::new(format!("{}: {e}", request.output.display())).hint("check the output path with -o"))?;
    let name = request.output.file_name().unwrap_or(request.input.as_os_str());
    let file = folder.path().join(name);
    let own = Request {
        output: file.clone(),
        certificate: request.certificate.as_ref().map(|_| beside(&file)),
        budget,
        runtime: RuntimeChoice { backend, library: None },
        ..request.clone()
    };
    let report = optimize(&own, observer)?;
    Ok(Made { runtime, report, file, _folder: folder })
}

/// Times the input and every result, each on its runtime: which one is fastest, and a row for each.
fn compare(request: &Request, made: &[Made], until: Instant, observer: &mut dyn Observer) -> Result<(usize, Vec<OnRuntime>), Failure> {
    let input = ModelSource::path(&request.input);
    let model = Model::read(&request.input)?;
    let runtimes: Vec<Fallback> = made.iter().map(|one| Fallback::new(one.runtime.clone(), vec![request.input.clone()])).collect();
    let bindings = Binding::all(request, &model, Some((input, &runtimes[0])))?;
    drop(model);
    let mut contenders = Vec::new();
    // For each runtime, the places of the input and of its result among the contenders.
    let mut places = Vec::new();
    for (one, runtime) in made.iter().zip(&runtimes) {
        let runtime: &dyn Runtime = runtime;
        let own = contenders.len();
        contenders.push(Contender { runtime, model: input });
        let is_changed = !one.report.applied.is_empty();
        if is_changed {
            contenders.push(Contender { runtime, model: ModelSource::path(&one.file) });
        }
        places.push((own, own + usize::from(is_changed)));
    }
    observer.phase(Phase::Choose, &format!("{} models on {} runtimes, interleaved", contenders.len(), made.len()));
    let threads = made[0].report.threads;
    let observed: &dyn Observer = observer;
    let mut means = vec![Speedup::NONE; contenders.len()];
    let mut nanoseconds = vec![0.0; contenders.len()];
    let share = 1.0 / bindings.len().max(1) as f64;
    for (at, binding) in bindings.iter().enumerate() {
        let now = Instant::now();
        // At least some rounds, also where optimizing has taken all of the time.
        let left = until.saturating_duration_since(now).max(Duration::from_secs(2)) / (bindings.len() - at) as u32;
        let effort = Effort { sittings: SITTINGS, rounds: ROUNDS, until: now + left };
        let timed = time_end_to_end(&contenders, &binding.feeds, threads, effort, request.seed, &|| observed.interrupted())?;
        for (place, (ratio, median)) in timed.ratios.into_iter().zip(timed.medians).enumerate() {
            let here = ratio.map_or(Speedup::NONE, Speedup::from);
            let mean = &mut means[place];
            mean.median *= here.median.powf(share);
            mean.low *= here.low.powf(share);
            mean.high *= here.high.powf(share);
            mean.pairs += here.pairs;
            nanoseconds[place] += median * share;
        }
    }
    let row = |(one, (input, output)): (&Made, &(usize, usize))| OnRuntime {
        runtime: one.report.runtime.clone(),
        input_ns: nanoseconds[*input],
        input: means[*input],
        output_ns: nanoseconds[*output],
        output: means[*output],
        gained: if input == output { Speedup::NONE } else { one.report.speedup },
    };
    let rows: Vec<OnRuntime> = made.iter().zip(&places).map(row).collect();
    let fastest = (0..made.len()).max_by(|a, b| rows[*a].output.median.total_cmp(&rows[*b].output.median)).unwrap_or(0);
    Ok((fastest, rows))
}

/// Moves a result to where it was asked for: weights before the model, and the certificate last.
fn deliver(made: &Made, request: &Request) -> Result<(), Failure> {
    let output = &request.output;
    for old in [Some(beside(output)), request.certificate.clone()].iter().flatten().filter(|path| *path != output) {
        discard(old)?;
    }
    for name in data_files(&made.file) {
        let (from, to) = (folder_of(&made.file).join(&name), folder_of(output).join(&name));
        std::fs::rename(&from, &to).map_err(|e| Failure::new(format!("{}: {e}", to.display())).hint("check the output path with -o"))?;
    }
    copy_atomic(&made.file, output)?;
    match (&request.certificate, &made.report.certificate) {
        (Some(path), Some(own)) => copy_atomic(Path::new(own), path),
        _ => Ok(()),
    }
}
