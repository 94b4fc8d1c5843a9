//! The grammar of the command line, and the dispatch of commands.

use std::ffi::OsString;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use regraft::Failure;

use crate::console::{self, Console};
use crate::exit::Exit;
use crate::host::{Call, Caller, Host};
use crate::{
    again, bench, check, compare, cost, egraph, explain, farm, optimize, policy, report, rules, shell, synthesize, task, usage, zoo,
};

/// Makes ONNX models faster without changing what they compute.
///
/// Regraft searches equal models by rewrite rules, prices them by what the target runtime really
/// runs, and writes the one that is fastest end to end on this machine, with the runtime's own
/// optimizer fully on. Every result is checked against its input; if nothing is faster beyond
/// noise, the input is written unchanged.
#[derive(Debug, Parser)]
#[command(name = "regraft", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    console: Console,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  regraft optimize model.onnx -o fast.onnx     write a faster model with the same outputs
  regraft model.onnx fast.onnx                 the same, for short
  regraft check model.onnx fast.onnx           are these two models the same?
  regraft bench model.onnx fast.onnx           time them against each other
  regraft zoo emit resnet-18 -o r18.onnx       a network to try things on

Exit codes:
  0    done, and every promise asked for was met
  1    finished, but a promise was not met (--min-speedup, --max-load, --max-memory, --require),
       the runtime refuses the result as it refuses the input (optimize), a difference was found
       (check), or a rule is refuted (rules exercise, rules axioms), unproved (rules verify), or
       not true as it stands (rules import)
  2    mistake in the arguments or the input, I/O error, or internal error
  130  interrupted with Ctrl-C; optimize still writes the best valid model found so far";

#[derive(Debug, Subcommand)]
enum Command {
    Optimize(Box<optimize::Args>),
    Check(Box<check::Args>),
    Bench(Box<bench::Args>),
    Compare(Box<compare::Args>),
    Synthesize(Box<synthesize::Args>),
    Policy(policy::Args),
    Explain(explain::Args),
    Report(report::Args),
    Farm(farm::Args),
    Task(task::Args),
    #[command(subcommand)]
    Rules(rules::Command),
    #[command(subcommand)]
    Egraph(egraph::Command),
    #[command(subcommand)]
    Zoo(zoo::Command),
    #[command(subcommand)]
    Cost(cost::Command),
    Completions(shell::Completions),
    Manual(shell::Manual),
    /// Load a model in a process of its own, and tell what that takes; read from standard input
    #[command(name = START_UP, hide = true)]
    StartUp,
}

/// The command that `optimize` gives to processes of their own, which load a model and tell what
/// that takes.
pub const START_UP: &str = "start-up";

/// Runs a command in a terminal.
pub fn run(call: Call) -> Exit {
    let call = Call { arguments: shorthand(call.arguments), ..call };
    let cli = match Cli::try_parse_from(&call.arguments) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error, &Cli::command(), &call.arguments),
    };
    // What is to be measured runs as it would elsewhere.
    if !matches!(cli.command, Command::StartUp) {
        regraft_runtime::keep_freed_memory();
    }
    let folder = again::folder();
    let console = Console { caller: Caller::of(call.clone(), None), ..cli.console };
    match guarded(|| dispatch(cli.command, &console)) {
        Ok(exit) => exit,
        Err(failure) => {
            if let Some(folder) = folder.filter(|_| failure.passes) {
                again::run(&call, folder);
            }
            console::error(&failure);
            Exit::Failed
        }
    }
}

/// Runs a command for a program. Signals are left to it; freed memory is kept while the command
/// runs.
///
/// # Errors
///
/// What [`run`] reports with exit code 2.
pub fn call(call: Call, host: Arc<dyn Host>) -> Result<Exit, Failure> {
    let cli = match Cli::try_parse_from(&call.arguments) {
        Ok(cli) => cli,
        Err(error) => return Err(usage::mistake(&error, &Cli::command(), &call.arguments)),
    };
    let console = Console { caller: Caller::of(call, Some(host)), ..cli.console };
    regraft_runtime::keep_freed_memory();
    let done = guarded(|| dispatch(cli.command, &console));
    regraft_runtime::return_freed_memory();
    done
}

/// Whether this is a call of a command, the program's name first, or the beginning of one:
/// arguments may be missing. Nothing runs.
///
/// # Errors
///
/// What is wrong with it.
pub fn understand(arguments: &[String]) -> Result<(), Failure> {
    let arguments = shorthand(arguments.iter().map(OsString::from).collect());
    match Cli::try_parse_from(&arguments) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Ok(()),
        Err(error) if error.use_stderr() => Err(usage::mistake(&error, &Cli::command(), &arguments)),
        _ => Ok(()),
    }
}

fn dispatch(command: Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Optimize(args) => optimize::run(&args, console),
        Command::Check(args) => check::run(&args, console),
        Command::Bench(args) => bench::run(&args, console),
        Command::Compare(args) => compare::run(&args, console),
        Command::Synthesize(args) => synthesize::run(&args, console),
        Command::Policy(args) => policy::run(&args, console),
        Command::Explain(args) => explain::run(&args, console),
        Command::Report(args) => report::run(&args, console),
        Command::Farm(args) => farm::run(&args, console),
        Command::Task(args) => task::run(&args, console),
        Command::Rules(command) => rules::run(&command, console),
        Command::Egraph(command) => egraph::run(&command, console),
        Command::Zoo(command) => zoo::run(&command, console),
        Command::Cost(command) => cost::run(&command, console),
        Command::Completions(args) => shell::completions(&args, Cli::command(), console),
        Command::Manual(args) => shell::manual(&args, Cli::command(), console),
        Command::StartUp => {
            regraft_runtime::answer(&mut std::io::stdin().lock(), &mut std::io::stdout().lock()).map_err(Failure::new)?;
            Ok(Exit::Done)
        }
    }
}

/// `regraft in.onnx out.onnx` means `regraft optimize in.onnx out.onnx`.
fn shorthand(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_model = |arg: &OsString| std::path::Path::new(arg).extension().is_some_and(|e| e == "onnx");
    if args.get(1).is_some_and(is_model) {
        args.insert(1, "optimize".into());
    }
    args
}

/// Turns a panic of this program into an ordinary error. `RUST_BACKTRACE` shows its location as
/// usual.
fn guarded(work: impl FnOnce() -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    use std::sync::Mutex;
    let seen: Arc<Mutex<Option<String>>> = Arc::default();
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|v| v == "0") {
        let seen = seen.clone();
        std::panic::set_hook(Box::new(move |info| {
            if let Ok(mut seen) = seen.lock() {
                seen.get_or_insert_with(|| info.to_string());
            }
        }));
    }
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let what = seen.lock().ok().and_then(|mut seen| seen.take()).unwrap_or_else(|| "see above".into());
        let failure = Failure::new(format!("internal error: {what}"));
        Err(failure.hint("this is a defect of regraft, please report it with the command and the model; RUST_BACKTRACE=1 shows more"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_argument_has_a_help_text() {
        fn walk(command: &clap::Command, missing: &mut Vec<String>) {
            if command.get_about().is_none() {
                missing.push(command.get_name().to_string());
            }
            for arg in command.get_arguments().filter(|a| a.get_help().is_none()) {
                missing.push(format!("{} {}", command.get_name(), arg.get_id()));
            }
            command.get_subcommands().filter(|c| c.get_name() != "help").for_each(|c| walk(c, missing));
        }
        let mut missing = Vec::new();
        walk(&Cli::command(), &mut missing);
        assert!(missing.is_empty(), "without help: {missing:?}");
    }

    #[test]
    fn a_panic_becomes_a_failure() {
        let failure = guarded(|| panic!("boom")).expect_err("it panics");
        let _ = std::panic::take_hook();
        assert!(failure.cause.starts_with("internal error"), "{failure}");
    }

    #[test]
    fn two_models_are_optimized() {
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(shorthand(words(&["regraft", "a.onnx", "b.onnx"])), words(&["regraft", "optimize", "a.onnx", "b.onnx"]));
        assert_eq!(shorthand(words(&["regraft", "check", "a.onnx"])), words(&["regraft", "check", "a.onnx"]));
        assert_eq!(shorthand(words(&["regraft"])), words(&["regraft"]));
    }
}
