//! `regraft policy`: passed on to the program that trains.

use std::ffi::OsString;
use std::process::Command;

use regraft::error::Failure;

use crate::exit::Exit;
use crate::trainer;

/// Learn which rewrite to try next, from searches on blocks of networks
///
/// `regraft policy data` makes samples, `train` trains a policy on them, and `eval` compares searches
/// that it guides with those by price alone; each explains itself with --help. The work is done by
/// regraft-train, a program of its own, which is looked for beside this one.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// data, train or eval, with their options
    #[arg(value_name = "ARGUMENT", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  regraft policy train -o prior.bin            samples and weights from nothing
  regraft policy train -o half.bin --without attention
  regraft policy train -o on.bin --rounds 1    goes on with the states that the policy comes to
  regraft policy eval prior.bin                what they are worth on blocks that they never saw";

/// Runs the command.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    let missing = || {
        Failure::new("regraft-train is not there").hint("build it: cargo build --release -p regraft-train; or name it in REGRAFT_TRAINER")
    };
    let program = trainer::find().ok_or_else(missing)?;
    let ended = Command::new(&program).arg("policy").args(&args.arguments).status();
    let ended = ended.map_err(|e| Failure::new(format!("{}: {e}", program.display())))?;
    Ok(if ended.success() { Exit::Done } else { Exit::Failed })
}
