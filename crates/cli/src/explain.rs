//! `regraft explain`.

use std::path::PathBuf;

use crate::console::Console;
use crate::exit::Exit;
use regraft::diff::Diff;
use regraft::error::Failure;
use regraft::render::{self, lines, plain_table};
use regraft::report::Report;
use regraft::units::show_bytes;

/// Names listed per kind of change without -v.
const NAMES_SHOWN: usize = 10;

/// Tell what was done to a model
///
/// Given a report (`regraft optimize --report FILE`), or a model with its report beside it
/// (fast.onnx, fast.report.json): the rewrites that were applied and where, what was not done and
/// why, which operators are furthest from what the machine can do, how it was checked. Given two
/// models: what differs between their graphs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A report, or a model that has one
    #[arg(value_name = "MODEL|REPORT")]
    subject: PathBuf,
    /// A second model: print what differs from the first
    #[arg(value_name = "OTHER", conflicts_with = "report")]
    other: Option<PathBuf>,
    /// The model's report, if it has another name than the model
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  regraft optimize model.onnx -o fast.onnx --report fast.report.json
  regraft explain fast.onnx
  regraft explain model.onnx fast.onnx";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    if let Some(other) = &args.other {
        let diff = regraft::diff::diff(&args.subject, other)?;
        if args.json {
            console.json(&diff)?;
        } else {
            console.print(&differences(&diff, console.verbose))?;
        }
        return Ok(Exit::Done);
    }
    let report = Report::read(&Report::of(&args.subject, args.report.as_deref())?)?;
    if args.json {
        console.json(&report)?;
    } else if console.quiet {
        console.print(&render::verdict(&report, &[]))?;
    } else {
        console.print(&format!("{}\n{}\n{}", render::table(&report), render::details(&report), render::verdict(&report, &[])))?;
    }
    Ok(Exit::Done)
}

fn differences(diff: &Diff, all: bool) -> String {
    let mut sizes = plain_table(&["", "before", "after"], &[1, 2]);
    let rows: [(&str, String, String); 3] = [
        ("nodes", diff.nodes.0.to_string(), diff.nodes.1.to_string()),
        ("initializers", diff.initializers.0.to_string(), diff.initializers.1.to_string()),
        ("size", show_bytes(diff.bytes.0), show_bytes(diff.bytes.1)),
    ];
    for (name, a, b) in &rows {
        sizes.add_row([name, a.as_str(), b]);
    }
    for (name, (a, b)) in diff.operators.iter().filter(|(_, (a, b))| all || a != b) {
        sizes.add_row([name, &a.to_string(), &b.to_string()]);
    }
    let mut text = lines(&sizes);
    for (word, names) in [("removed", &diff.removed), ("added", &diff.added), ("changed", &diff.changed), ("signature", &diff.signature)] {
        if names.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{word} ({})\n", names.len()));
        let shown = if all { names.len() } else { NAMES_SHOWN.min(names.len()) };
        names[..shown].iter().for_each(|n| text.push_str(&format!("  {n}\n")));
        if shown < names.len() {
            text.push_str(&format!("  and {} more (-v lists all)\n", names.len() - shown));
        }
    }
    if diff.removed.is_empty() && diff.added.is_empty() && diff.changed.is_empty() && diff.signature.is_empty() {
        text.push_str("\nthe graphs have the same nodes\n");
    }
    text
}
