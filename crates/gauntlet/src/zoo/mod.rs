//! `zoo`: every network with an open batch, rewritten once, run at three other sizes.

mod lights;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use regraft::agreement::compare;
use regraft::optimize::{InModel, Proposal, clean, propose, scramble};
use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph};
use regraft_onnx::{Model, Signature, WriteOptions};
use regraft_runtime::{
    DType, Feeds, Fill, FillOptions, HostTensor, InputSpec, IntRange, ModelSource, OptLevel, SessionOptions, fill_inputs,
};
use regraft_search::{Greedy, Matcher, RandomWalk};
use regraft_zoo::{Element, Entry, Options, Weights};
use tempfile::TempDir;

use crate::summary::Summary;
use crate::trial::{Bench, TOLERANCE};

/// The batch that networks are rewritten for, and the batches they are run at.
const REWRITTEN_FOR: i64 = 4;
const BATCHES: [usize; 3] = [1, 2, 3];
/// Bytes that any file may grow by; a large one may grow by 5 %.
const GROWTH: u64 = 4 << 20;
/// Steps of the walk after the search.
const STEPS: usize = 24;
/// Bytes of weights of the largest networks that are run.
const LARGEST: usize = 1 << 30;
/// Networks of the short mode.
const SHORT: [&str; 3] = ["squeezenet-1.1", "nasrnn", "paper-sru"];

/// Networks with an open batch.
#[derive(ClapArgs)]
pub struct Args {
    /// Seed of weights, walks and inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Three small networks only
    #[arg(long)]
    short: bool,
    /// Networks whose name contains this
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Folder with model files whose batch is to be opened (light_*.onnx) [default: that of the
    /// Python package onnx]
    #[arg(long, value_name = "DIR")]
    lights: Option<PathBuf>,
}

/// Runs the campaign.
pub fn run(args: &Args) -> ExitCode {
    match campaign(args) {
        Ok(summary) => summary.conclude("zoo", args.seed),
        Err(why) => {
            eprintln!("gauntlet: {why:#}");
            ExitCode::from(2)
        }
    }
}

fn campaign(args: &Args) -> Result<Summary> {
    let bench = Bench::open()?;
    let wanted = |name: &str| args.only.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let mut summary = Summary::default();
    for entry in regraft_zoo::list().iter().filter(|e| e.dynamic && wanted(e.name)) {
        if args.short && !SHORT.contains(&entry.name) || weights(entry)? > LARGEST {
            continue;
        }
        let folder = TempDir::new()?;
        let path = folder.path().join("model.onnx");
        let options = Options { seed: args.seed, dynamic_batch: true, ..Options::default() };
        let model = Model::from_proto(regraft_zoo::build(entry.name, &options)?)?;
        model.save(model.graph(), &path, &WriteOptions::default())?;
        drop(model);
        summary.join(told(entry.name, put_through(&bench, &path, &inputs(entry), args.seed)));
    }
    let files = if args.short { Vec::new() } else { lights::find(args.lights.as_deref())? };
    for path in files {
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        if wanted(&name) {
            summary.join(told(&name, light(&bench, &path, args.seed)));
        }
    }
    Ok(summary)
}

/// Bytes of a network's weights.
fn weights(entry: &Entry) -> Result<usize> {
    let outline = regraft_zoo::build(entry.name, &Options { weights: Weights::Outlines, ..Options::default() })?;
    Ok(outline.graph.iter().flat_map(|graph| &graph.initializer).map(|tensor| tensor.raw_data().len()).sum())
}

/// One network's rewrites and largest difference, or why the baseline cannot run it.
enum Ended {
    Held { rewrites: usize, worst: f64 },
    Skipped(String),
}

/// One network's part of the summary, printed as it arrives.
fn told(name: &str, ended: Result<Ended>) -> Summary {
    match ended {
        Ok(Ended::Held { rewrites, worst }) => {
            println!("{name}: {rewrites} rewrites, right at batches {BATCHES:?}, differs by {worst:.1e} at most");
            Summary { held: 1, ..Summary::default() }
        }
        Ok(Ended::Skipped(why)) => {
            println!("{name}: not comparable: {why}");
            Summary { skipped: 1, ..Summary::default() }
        }
        Err(why) => {
            println!("{name}: BROKEN");
            Summary { broken: vec![format!("{name}: {why:#}")], ..Summary::default() }
        }
    }
}

/// An input: its name, element type, sizes after the batch, and one more than its largest integer.
struct Slot {
    name: String,
    dtype: DType,
    rest: Vec<usize>,
    below: Option<i64>,
}

fn inputs(entry: &Entry) -> Vec<Slot> {
    let slot = |input: &regraft_zoo::Input| Slot {
        name: input.name.to_string(),
        dtype: match input.element {
            Element::I64 => DType::I64,
            Element::Bool => DType::Bool,
            _ => DType::F32,
        },
        rest: input.dims.iter().skip(1).map(|d| *d as usize).collect(),
        below: input.below,
    };
    entry.inputs.iter().map(slot).collect()
}

/// Values at a given batch.
fn feeds(slots: &[Slot], batch: usize, seed: u64) -> Result<Feeds> {
    let spec = |slot: &Slot| InputSpec {
        name: slot.name.clone(),
        dtype: slot.dtype,
        shape: std::iter::once(batch).chain(slot.rest.iter().copied()).collect(),
    };
    let specs: Vec<InputSpec> = slots.iter().map(spec).collect();
    let below = |s: &Slot| Some((s.name.clone(), IntRange { low: 0, high: i128::from(s.below?.max(1)) - 1, index: true }));
    let ranges = slots.iter().filter_map(below).collect();
    Ok(fill_inputs(Fill::Normal, &specs, &FillOptions { seed, ranges, ..FillOptions::default() })?)
}

/// Rewrites a model file, writes it, and runs both. Only one session is open at a time: networks
/// are large.
fn put_through(bench: &Bench, path: &Path, slots: &[Slot], seed: u64) -> Result<Ended> {
    let rewritten = path.with_file_name("rewritten.onnx");
    let (rewrites, names) = rewrite(bench, path, &rewritten, seed)?;
    let cases: Vec<Feeds> = BATCHES.iter().map(|batch| feeds(slots, *batch, seed)).collect::<Result<_>>()?;
    let want = match outputs(bench, path, OptLevel::Disabled, &cases) {
        Ok(want) => want,
        Err(why) => return Ok(Ended::Skipped(format!("{why:#}"))),
    };
    let mut worst: f64 = 0.0;
    for level in [OptLevel::Disabled, OptLevel::All] {
        let have = outputs(bench, &rewritten, level, &cases).context("the rewritten model does not run")?;
        for ((batch, want), have) in BATCHES.iter().zip(&want).zip(&have) {
            let agreement = compare(&names, want, have);
            if let Some(broken) = agreement.broken.iter().chain(&agreement.lost).next() {
                bail!("at batch {batch}: {broken}");
            }
            if agreement.relative > TOLERANCE {
                bail!("at batch {batch}: `{}` differs by {:.1e} after {rewrites} rewrites", agreement.output, agreement.relative);
            }
            worst = worst.max(agreement.relative);
        }
    }
    Ok(Ended::Held { rewrites, worst })
}

/// The deterministic search under the roofline, then a walk from its result. Returns the number of
/// rewrites and the outputs' names.
fn rewrite(bench: &Bench, from: &Path, to: &Path, seed: u64) -> Result<(usize, Vec<String>)> {
    let model = Model::read(from)?;
    let (start, _) = clean(model.graph());
    let prices = Roofline::new(bindings(&start));
    let writable = InModel::new(&model, &*bench.runtime);
    let found =
        propose(&start, &prices, &mut Matcher::new(&bench.library, &writable), &Greedy::default(), &mut || false).best.into_iter().next();
    let count = |p: &Option<Proposal>| p.as_ref().map_or(0, |p| p.rewrites.len());
    let middle = found.as_ref().map_or(&start, |p| &p.graph);
    let walked = scramble(middle, &prices, &bench.library, &writable, RandomWalk { steps: STEPS, seed });
    let rewrites = count(&found) + count(&walked);
    let graph = walked.as_ref().map_or(middle, |p| &p.graph);
    let written = model.write(graph, &WriteOptions::default()).context("writing")?;
    let (before, after) = (Signature::of(model.proto()), Signature::of(&written.proto));
    if before != after {
        bail!("the signature changed");
    }
    written.save(to, false)?;
    let (before_size, after_size) = (size(from)?, size(to)?);
    if after_size > before_size + (before_size / 20).max(GROWTH) {
        bail!("{before_size} bytes grew to {after_size}");
    }
    Ok((rewrites, before.outputs.into_iter().map(|o| o.name).collect()))
}

/// Bytes of a model file and its data file.
fn size(path: &Path) -> Result<u64> {
    let own = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let data = [".data", ".data2"].map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |data| data.len())
    });
    Ok(own + data.iter().sum::<u64>())
}

/// Every open size as the batch.
fn bindings(graph: &Graph) -> Bindings {
    let mut symbols = Vec::new();
    for ty in graph.inputs().iter().filter_map(|id| graph.ty(id.out())) {
        ty.shape.iter().for_each(|d| d.symbols(&mut symbols));
    }
    symbols.into_iter().map(|s| (s, REWRITTEN_FOR)).collect()
}

fn outputs(bench: &Bench, path: &Path, level: OptLevel, cases: &[Feeds]) -> Result<Vec<Vec<HostTensor>>> {
    let options = SessionOptions { level, threads: 1, ..SessionOptions::default() };
    let mut session = bench.runtime.open(ModelSource::path(path), &options)?;
    cases.iter().map(|feeds| Ok(session.run(feeds)?)).collect()
}

/// Opens the batch of a light model and takes it through all stages.
fn light(bench: &Bench, path: &Path, seed: u64) -> Result<Ended> {
    let mut proto = Model::read(path)?.proto().clone();
    let slots = lights::open(&mut proto, seed);
    let folder = TempDir::new()?;
    let opened = folder.path().join("model.onnx");
    let model = Model::from_proto(proto)?;
    model.save(model.graph(), &opened, &WriteOptions::default())?;
    drop(model);
    put_through(bench, &opened, &slots, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::parallel;

    #[test]
    fn small_networks_are_right_at_other_batches() {
        if Bench::open().is_err() {
            assert!(std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_none(), "the baseline cannot be loaded");
            return;
        }
        let summary = campaign(&Args { seed: 0, short: true, only: None, lights: None }).unwrap();
        assert_eq!((summary.held, summary.skipped, summary.broken), (SHORT.len(), 0, Vec::new()));
    }
    /// Their weights are expressions of a few bytes: a rewrite that evaluates them turns 4 kB into
    /// 244 MB.
    #[test]
    fn light_models_stay_small() {
        let required = std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_some();
        let Ok(bench) = Bench::open() else {
            assert!(!required, "the baseline cannot be loaded");
            return;
        };
        let paths = lights::find(None).unwrap();
        assert!(paths.len() == 9 || !required, "{paths:?}");
        let folder = TempDir::new().unwrap();
        // The others take longer to search, and have no larger weights.
        let is_short = |path: &PathBuf| {
            ["alexnet", "shufflenet", "squeezenet", "vgg19", "zfnet"].iter().any(|name| path.to_string_lossy().contains(name))
        };
        let paths: Vec<PathBuf> = paths.into_iter().filter(is_short).collect();
        parallel::map(&paths, parallel::cores(), |path| {
            let written = folder.path().join(path.file_name().unwrap());
            let (rewrites, _) = rewrite(&bench, path, &written, 0).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
            assert!(rewrites > STEPS / 2, "{}: {rewrites} rewrites", path.display());
        });
    }
}
