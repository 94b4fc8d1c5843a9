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

/// Show what was done to a model, as one HTML file
///
/// Given a report (`regraft optimize --report FILE`), or a model with its report beside it: the verdict,
/// where the time goes before and after by the runtime's own profile, every change drawn before and
/// after, the rules by what they gain, how the search spent its time, the check, and what was not done.
/// The file needs no other and no network; without JavaScript, its tables still read.
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
    /// The runtime's library file [default: that of the Python package onnxruntime;
    /// REGRAFT_ONNXRUNTIME names another]
    #[arg(long, value_name = "FILE")]
    runtime_library: Option<PathBuf>,
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
        let others: [(&str, &Path); 2] = [("the report", &report), ("the model", &args.subject)];
        check_apart(("what is written", &output, option), &others)?;
    }
    let model = args.subject.extension().is_some_and(|e| e == "onnx").then(|| args.subject.clone());
    let request = PageRequest {
        report,
        input: args.input.clone(),
        output: model,
        profile: !args.no_profile,
        runtime_library: args.runtime_library.clone(),
    };
    let mut progress = Progress::new(console);
    if args.terminal {
        let text = page::text(&request, &mut progress)?;
        drop(progress);
        console.print(&text)?;
    } else {
        let made = if args.node_data.is_some() { page::node_data } else { page::page };
        let text = made(&request, &mut progress)?;
        drop(progress);
        write_atomic(&output, text.as_bytes())?;
        console.print(&format!("{}: {}", output.display(), show_bytes(text.len() as u64)))?;
    }
    Ok(Exit::Done)
}
