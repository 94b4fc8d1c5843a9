//! `regraft policy`: passed on to the program that trains.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use regraft::error::Failure;

use crate::console::Console;
use crate::exit::Exit;
use crate::host::Host;
use crate::trainer;

/// Learn which rewrite to try next, from searches on blocks of networks or by trial on one model
///
/// `regraft policy data` makes samples, `train` trains a policy on them, and `eval` compares
/// searches that it guides with those by price alone; `xrlflow` trains an agent of X-RLflow on one
/// model. Each explains itself with --help. The work is done by regraft-train, a program of its
/// own, which is looked for beside this one.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// data, train, eval or xrlflow, with their options
    #[arg(value_name = "ARGUMENT", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  regraft policy train -o prior.bin            samples and weights from nothing
  regraft policy train -o half.bin --without attention
  regraft policy train -o on.bin --rounds 1    goes on with the states that the policy comes to
  regraft policy eval prior.bin                what they are worth on blocks that they never saw
  regraft policy xrlflow model.onnx -o agent.bin --budget 10m
  regraft policy data -o 1.sqlite --shard 1/2  and 2/2 on another machine, then:
  regraft policy data -o all.sqlite --merge 1.sqlite 2.sqlite";

/// How often the program is looked at, while it works.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let missing = || {
        Failure::new("regraft-train is not there").hint("build it: cargo build --release -p regraft-train; or name it in REGRAFT_TRAINER")
    };
    let program = trainer::find().ok_or_else(missing)?;
    let failed = |e: std::io::Error| Failure::new(format!("{}: {e}", program.display()));
    let mut command = Command::new(&program);
    command.arg("policy");
    match console.caller.host() {
        Some(host) => attended(command.arg("--attached").args(&args.arguments), host, failed),
        None => {
            let ended = command.args(&args.arguments).status().map_err(failed)?;
            Ok(if ended.success() { Exit::Done } else { Exit::Failed })
        }
    }
}

/// Runs the program for a host, which hears what it says, and why it failed. It ends with this
/// process, and when the host wants it to.
fn attended(command: &mut Command, host: &dyn Host, failed: impl Fn(std::io::Error) -> Failure) -> Result<Exit, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(&failed)?;
    let (mut stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let printed = scope.spawn(|| {
            let mut text = String::new();
            // What is no text is lost.
            let _ = stdout.map(|mut out| out.read_to_string(&mut text));
            text
        });
        let said = scope.spawn(|| {
            let mut last = None;
            for line in stderr.into_iter().flat_map(|err| BufReader::new(err).lines()).map_while(Result::ok) {
                host.step("policy", &line);
                last = Some(line);
            }
            last
        });
        let ended = loop {
            match child.try_wait().map_err(&failed)? {
                Some(status) => break status,
                None if host.interrupted() => stdin = None,
                None => {}
            }
            thread::sleep(LOOK);
        };
        drop(stdin);
        let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
        if ended.success() {
            host.print(&printed);
            return Ok(Exit::Done);
        }
        if host.interrupted() {
            return Ok(Exit::Interrupted);
        }
        let said = said.unwrap_or_else(|| ended.to_string());
        Err(Failure::new(said.strip_prefix("regraft-train: error: ").unwrap_or(&said)))
    })
}
