//! `regraft report`.

use std::path::{Path, PathBuf};

use regraft::error::Failure;
use regraft::file::{check_apart, check_writable, write_atomic};
use regraft::page::{self, PageRequest};
use regraft::report::Report;
use regraft::units::show_bytes;

use crate::console::Console;
use crate::exit::Exit;
use crate::progress::Progress;
use crate::target::LibraryArgs;

/// Show what was done to a model, as one HTML file
///
/// Given a report (`regraft optimize --report FILE`), or a model with its report beside it: the
/// verdict, where the time goes before and after by the runtime's own profile, every change drawn
/// before and after, the rules by what they gain, how the search spent its time, the check, and
/// what was not done. The file needs no other and no network; without JavaScript, its tables still
/// read.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A report, or a model that has one
    #[arg(value_name = "MODEL|REPORT")]
    subject: PathBuf,
    /// Where to write it [default: the report with the ending .html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The model's report, if it has another name than the model
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The model that was optimized, if it is no longer where the report says
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Print it as text instead
    #[arg(long, conflicts_with = "output")]
    terminal: bool,
    /// Write what each node of the result takes instead, as node data for model-explorer
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "terminal", "no_profile"])]
    node_data: Option<PathBuf>,
    /// Do not run the models: the page does not say where the time goes
    #[arg(long)]
    no_profile: bool,
    #[command(flatten)]
    library: LibraryArgs,
}

const EXAMPLES: &str = "\
Examples:
  regraft optimize model.onnx -o fast.onnx --report fast.report.json
  regraft report fast.onnx -o report.html
  regraft report fast.onnx --terminal
  regraft report fast.onnx --node-data times.json       then: model-explorer fast.onnx --node_data_paths times.json";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let report = Report::of(&args.subject, args.report.as_deref())?;
    let output = args.node_data.clone().or_else(|| args.output.clone()).unwrap_or_else(|| report.with_extension("html"));
    let option = if args.node_data.is_some() { "--node-data" } else { "-o" };
    if !args.terminal {
        check_writable(&output, option)?;
        let mut others = vec![("the report", report.clone()), ("the model", args.subject.clone())];
        // What a report names lies where it says, or beside it; one that is none is told of later.
        for named in
            Report::read(&report).iter().flat_map(|report| [Some(&report.input), report.output.as_ref(), report.certificate.as_ref()])
        {
            let Some(named) = named else { continue };
            others.push(("a file of the report", named.into()));
            others.extend(Path::new(named).file_name().map(|name| ("a file of the report", report.with_file_name(name))));
        }
        let others: Vec<(&str, &Path)> = others.iter().map(|(what, path)| (*what, path.as_path())).collect();
        check_apart(("what is written", &output, option), &others)?;
    }
    let model = args.subject.extension().is_some_and(|e| e == "onnx").then(|| args.subject.clone());
    let request = PageRequest { report, input: args.input.clone(), output: model, profile: !args.no_profile, library: args.library.file() };
    let mut progress = Progress::new(console);
    let made = match (args.terminal, &args.node_data) {
        (true, _) => page::text(&request, &mut progress),
        (false, None) => page::page(&request, &mut progress),
        (false, Some(_)) => page::node_data(&request, &mut progress),
    };
    drop(progress);
    let made = made?;
    made.missing.iter().filter(|_| !args.no_profile).for_each(|what| console.warn(what));
    if args.terminal {
        console.print(&made.text)?;
    } else {
        write_atomic(&output, made.text.as_bytes())?;
        console.print(&format!("{}: {}", output.display(), show_bytes(made.text.len() as u64)))?;
    }
    Ok(Exit::Done)
}
