//! `faults`: runs of the real command that are killed, interrupted, or unable to write.

mod run;
mod scene;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use regraft_ir::SplitMix64;

use crate::summary::Summary;
use run::{Disturbance, Runner};
use scene::{Models, Setting};

/// Kill runs, fill disks, break files: nothing may be half-written or lost
#[derive(clap::Args)]
pub struct Args {
    /// Runs to kill at random moments
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// Runs that cannot write, or cannot read
    #[arg(long, default_value_t = 50)]
    write_errors: usize,
    /// Runs to interrupt at random moments, as with Ctrl-C
    #[arg(long, default_value_t = 30)]
    interrupts: usize,
    /// Times that two runs share one store
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Seed of the moments
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A few runs of each kind
    #[arg(long)]
    short: bool,
    /// The command to run [default: `regraft` beside this one]
    #[arg(long)]
    regraft: Option<PathBuf>,
}

/// Maximum number of runs of each kind in a short campaign.
const SHORT: usize = 6;
/// The same for runs that cannot write: each kind of error once.
const SHORT_ERRORS: usize = run::ERRORS.len();

/// The command to run: the given one, or `regraft` next to this program.
pub fn command(named: Option<&Path>) -> Result<PathBuf> {
    let path = match named {
        Some(path) => std::path::absolute(path)?,
        None => std::env::current_exe()?.with_file_name(format!("regraft{}", std::env::consts::EXE_SUFFIX)),
    };
    ensure!(path.is_file(), "there is no {}: build it with `cargo build -p regraft-cli`, or name it with --regraft", path.display());
    Ok(path)
}

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let regraft = command(args.regraft.as_deref())?;
    let most = |wanted: usize, short: usize| if args.short { wanted.min(short) } else { wanted };
    let models = Models::new(args.seed).context("the models cannot be made")?;
    let stores = tempfile::tempdir()?;
    let mut runner = Runner::new(regraft, stores.path().join("costs.sqlite"))?;
    let (mut summary, mut random) = (Summary::default(), SplitMix64(args.seed));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut trial = |disturbance: Disturbance, setting: Setting, runner: &mut Runner| {
        let ended = models.scene(setting).and_then(|scene| runner.disturb(&scene, disturbance));
        match ended {
            Ok(what) => {
                *seen.entry(format!("{}: {what}", disturbance.kind())).or_default() += 1;
                summary.held += 1;
            }
            Err(why) => summary.broken.push(format!("{disturbance:?} {setting:?}: {why:#}")),
        }
    };
    let settings = |at: usize| Setting { external: at % 2 == 1, old: at % 4 >= 2 };
    // Measures an undisturbed run, so that disturbances are spread over all of it.
    for at in 0..4 {
        trial(Disturbance::None, settings(at), &mut runner);
    }
    for at in 0..most(args.kills, SHORT) {
        trial(Disturbance::kill(&mut random), settings(at), &mut runner);
    }
    for at in 0..most(args.interrupts, SHORT) {
        trial(Disturbance::Interrupt(random.unit()), settings(at), &mut runner);
    }
    for at in 0..most(args.write_errors, SHORT_ERRORS) {
        trial(Disturbance::error(at, &mut random), settings(at / run::ERRORS.len() + at % run::ERRORS.len()), &mut runner);
    }
    for at in 0..most(args.pairs, 1) {
        trial(Disturbance::Pair, settings(at), &mut runner);
    }
    for (what, times) in seen {
        println!("{times:5} {what}");
    }
    Ok(summary.conclude("faults", args.seed))
}
