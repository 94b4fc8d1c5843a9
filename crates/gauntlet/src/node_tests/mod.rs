//! ONNX's own node tests: every case in four variants, against the reference executor, and against
//! the package's shape inference.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::summary::Summary;
use crate::trial::Bench;

mod case;
mod inferred;
mod journey;
mod reference;
mod shapes;
mod variant;

use case::Case;

/// The script that exports the cases and infers shapes with the `onnx` package.
const SCRIPT: &str = "scripts/node_tests.py";
/// In the short mode, one in this many cases.
const STRIDE: usize = 16;

/// ONNX's own node tests in four variants: read, rewritten, written, run.
#[derive(clap::Args)]
pub struct Args {
    /// A deterministic sample of the cases, and of the zoo.
    #[arg(long)]
    short: bool,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Random walks per case and variant.
    #[arg(long, default_value_t = 3)]
    walks: u64,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Parts of the campaign; all of them by default.
    #[arg(long, value_enum)]
    part: Vec<Part>,
    /// Folder of the exported cases, filled when it has none.
    #[arg(long, default_value = "target/node-tests")]
    folder: PathBuf,
    /// A Python interpreter with the `onnx` package.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Print every case that is not compared, with the reason.
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Four variants of every case, rewritten and run.
    Variants,
    /// The reference executor against the expected outputs.
    Reference,
    /// Inferred types against those of the `onnx` package and against the expected outputs.
    Shapes,
}

/// Runs the campaign.
pub fn run(args: &Args) -> ExitCode {
    match campaign(args) {
        Ok(summary) => summary.conclude("node-tests", args.seed),
        Err(why) => {
            eprintln!("node-tests: {why:#}");
            ExitCode::from(2)
        }
    }
}

fn campaign(args: &Args) -> Result<Summary> {
    let python = args.python.clone().map_or_else(crate::python::interpreter, Ok)?;
    let cases = args.folder.join("cases");
    if !cases.join("cases.txt").is_file() {
        script(&python, "export", &cases)?;
    }
    let names = std::fs::read_to_string(cases.join("cases.txt")).with_context(|| cases.display().to_string())?;
    let names = names.lines().enumerate().filter(|(at, name)| name.contains(&args.only) && (!args.short || at % STRIDE == 0));
    let cases: Vec<Case> = names.map(|(_, name)| Case::read(&cases, name)).collect::<Result<_>>()?;
    if cases.is_empty() {
        bail!("no case has `{}` in its name", args.only);
    }
    println!("node-tests: {} cases, {} walks each, seed {}", cases.len(), args.walks, args.seed);
    let wanted = |part: Part| args.part.is_empty() || args.part.contains(&part);
    let mut summary = Summary::default();
    let mut part = |part: Part, f: &mut dyn FnMut() -> Result<Summary>| -> Result<()> {
        if !wanted(part) {
            return Ok(());
        }
        let start = Instant::now();
        summary.join(f()?);
        println!("  in {:.0} s", start.elapsed().as_secs_f64());
        Ok(())
    };
    part(Part::Variants, &mut || Ok(journey::run(&Bench::open()?, &cases, args)))?;
    part(Part::Reference, &mut || Ok(reference::run(&cases, args.verbose)))?;
    part(Part::Shapes, &mut || shapes::run(&cases, &python, &args.folder, args))?;
    Ok(summary)
}

fn script(python: &Path, command: &str, folder: &Path) -> Result<()> {
    let status = Command::new(python).arg(SCRIPT).arg(command).arg(folder).stdout(std::process::Stdio::null()).status();
    let status = status.with_context(|| python.display().to_string())?;
    if !status.success() {
        bail!("{SCRIPT} {command} {}: {status}", folder.display());
    }
    Ok(())
}
