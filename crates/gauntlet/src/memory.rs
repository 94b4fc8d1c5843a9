//! `memory`: a model much larger than the memory a run may use.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use regraft::agreement::compare;
use regraft::units::{parse_bytes, show_bytes};
use regraft_onnx::proto::TensorProto;
use regraft_onnx::{Model, release_weights};
use regraft_runtime::{DType, Fill, FillOptions, HostTensor, InputSpec, ModelSource, OptLevel, SessionOptions, fill_inputs};

use crate::decoder;
use crate::summary::Summary;

/// Optimize a decoder with less memory than its weights take
#[derive(clap::Args)]
pub struct Args {
    /// Bytes of weights, in units of 10^9, about
    #[arg(long, default_value_t = 5.0)]
    gigabytes: f64,
    /// Width of the decoder
    #[arg(long, default_value_t = 2048)]
    width: i64,
    /// Most memory that the run may have had, as the operating system counts it
    #[arg(long, default_value = "1500M", value_parser = parse_bytes)]
    bound: u64,
    /// Memory that the run is told to stay within
    #[arg(long, default_value = "1400M", value_parser = parse_bytes)]
    memory: u64,
    /// Seed of the weights
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Also run both models whole, afterwards, and compare what they compute
    #[arg(long)]
    whole: bool,
    /// Folder to work in; it needs room for the model twice [default: a temporary one]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The command to run [default: `regraft` beside this one]
    #[arg(long)]
    regraft: Option<PathBuf>,
}

/// Tokens to run the models at.
const TOKENS: usize = 16;
/// Relative difference allowed between the whole models, if they are run.
const TOLERANCE: f64 = 1e-3;
/// Bytes to compare at a time.
const BLOCK: usize = 8 << 20;

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let regraft = crate::faults::command(args.regraft.as_deref())?;
    let folder = match &args.folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let (input, output) = (folder.path().join("decoder.onnx"), folder.path().join("out.onnx"));
    let (layers, bytes) = decoder::write(folder.path(), args.gigabytes, args.width, args.seed)?;
    let start = Instant::now();
    let mut command = Command::new(regraft);
    command.arg("optimize").arg(&input).arg("-o").arg(&output).args(["--json", "--budget", "120s", "--shape"]);
    command.arg(format!("ids:1,{TOKENS}")).args(["--memory", &args.memory.to_string()]);
    command.arg("--cost-store").arg(folder.path().join("costs.sqlite")).stdin(Stdio::null()).stdout(Stdio::piped());
    let (status, peak, report) = measured(command)?;
    ensure!(status.code() == Some(0), "exit code {:?}, signal {:?}", status.code(), status.signal());
    let report: serde_json::Value = serde_json::from_str(&report).context("the report")?;
    let rewrites = report["applied"].as_array().map_or(0, Vec::len);
    println!("{layers} layers, {} of weights, {rewrites} rewrites, {:.0} s", show_bytes(bytes), start.elapsed().as_secs_f64());
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in report["applied"].as_array().into_iter().flatten().filter_map(|a| a["rule"].as_str()) {
        *rules.entry(rule).or_default() += 1;
    }
    rules.iter().for_each(|(rule, times)| println!("{times:5} {rule}"));
    report["check"]["notes"].as_array().into_iter().flatten().filter_map(|n| n.as_str()).for_each(|note| println!("check: {note}"));
    println!("peak memory {}, bound {}", show_bytes(peak), show_bytes(args.bound));
    let mut summary = Summary::default();
    let mut hold = |what: Result<String>| match what {
        Ok(what) => {
            println!("{what}");
            summary.held += 1;
        }
        Err(why) => summary.broken.push(format!("{why:#}")),
    };
    hold(if peak <= args.bound { Ok("memory: within the bound".into()) } else { Err(anyhow::anyhow!("the bound was exceeded")) });
    hold(same_weights(&input, &output));
    if args.whole {
        hold(same_results(&input, &output, args.seed));
    }
    Ok(summary.conclude("memory", args.seed))
}

/// Runs a command to its end: returns its status, its peak memory, and its output.
fn measured(mut command: Command) -> Result<(ExitStatus, u64, String)> {
    let mut child = command.spawn()?;
    let mut out = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().context("standard output is piped")?, &mut out)?;
    let process = libc::pid_t::try_from(child.id())?;
    // SAFETY: a zeroed `rusage` is one; the call writes to both places, and the child was not
    // waited for.
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    if unsafe { libc::wait4(process, &mut status, 0, &mut usage) } != process {
        bail!("cannot wait for the command: {}", std::io::Error::last_os_error());
    }
    // Linux counts in units of 1024 bytes, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ok((ExitStatus::from_raw(status), usage.ru_maxrss.unsigned_abs() * unit, out))
}

/// Checks that every tensor of the output named like one of the input holds the same bytes.
fn same_weights(input: &Path, output: &Path) -> Result<String> {
    let (before, after) = (Model::read(input)?, Model::read(output)?);
    ensure!(after.has_external_data(), "the weights of the output are inside of the model file");
    let tensors = |model: &Model| -> HashMap<String, TensorProto> {
        let graph = model.proto().graph.iter();
        graph.flat_map(|g| &g.initializer).map(|tensor| (tensor.name().to_string(), tensor.clone())).collect()
    };
    let (old, new) = (tensors(&before), tensors(&after));
    let mut same = 0u64;
    for (name, tensor) in &new {
        let Some(known) = old.get(name) else { continue };
        let (a, b) = (known.raw_data.as_deref().unwrap_or_default(), tensor.raw_data.as_deref().unwrap_or_default());
        ensure!(known.dims == tensor.dims && a.len() == b.len(), "tensor `{name}` has another shape");
        for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            ensure!(a == b, "tensor `{name}` has other bytes");
        }
        same += a.len() as u64;
        release_weights();
    }
    ensure!(same > 0, "no tensor stayed");
    let fresh = new.keys().filter(|name| !old.contains_key(*name)).count();
    Ok(format!("weights: {} in {} tensors are the same byte for byte, {fresh} tensors are new", show_bytes(same), new.len() - fresh))
}

/// Checks that both whole models compute the same.
fn same_results(input: &Path, output: &Path, seed: u64) -> Result<String> {
    let runtime = regraft::runtime::RuntimeChoice::default().load()?;
    let ids = InputSpec { name: "ids".into(), dtype: DType::I64, shape: vec![1, TOKENS] };
    let options = FillOptions { seed, int_max: 100, ..FillOptions::default() };
    let feeds = fill_inputs(Fill::Normal, &[ids], &options)?;
    let outputs = |path: &Path, level| -> Result<Vec<HostTensor>> {
        let options = SessionOptions { level, ..SessionOptions::default() };
        Ok(runtime.open(ModelSource::path(path), &options)?.run(&feeds)?)
    };
    let agreement = compare(&["logits".into()], &outputs(input, OptLevel::Disabled)?, &outputs(output, OptLevel::All)?);
    ensure!(agreement.within(TOLERANCE), "the models differ: {agreement:?}");
    Ok(format!("results: the whole models differ by {:.1e}", agreement.relative))
}
