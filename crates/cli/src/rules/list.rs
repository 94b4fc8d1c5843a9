//! `regraft rules list`.

use regraft_rules::{Numeric, Rule};

use crate::console::Console;
use crate::exit::Exit;
use crate::rules::{Files, library, place};
use regraft::error::Failure;
use regraft::render::{lines, plain_table};

/// List the rules
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft rules list --numeric fast-bilinear")]
pub struct Args {
    /// Only rules whose name contains this
    #[arg(value_name = "PART")]
    part: Option<String>,
    /// Only rules of files whose name contains this
    #[arg(long, value_name = "PART")]
    file: Option<String>,
    /// Only rules of this numeric class
    #[arg(long, value_name = "CLASS", value_parser = classes())]
    numeric: Option<String>,
    #[command(flatten)]
    files: Files,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

fn classes() -> Vec<&'static str> {
    Numeric::NAMES.iter().map(|(name, _)| *name).collect()
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let library = library(&args.files)?;
    let holds = |part: &Option<String>, text: &str| part.as_ref().is_none_or(|p| text.contains(p.as_str()));
    let wanted = |r: &&Rule| {
        holds(&args.part, &r.name) && holds(&args.file, &r.file) && args.numeric.as_ref().is_none_or(|n| *n == r.numeric.to_string())
    };
    let rules: Vec<&Rule> = library.rules().iter().filter(wanted).collect();
    if args.json {
        console.json(&rules.iter().map(|r| json(r)).collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    if !console.quiet && !rules.is_empty() {
        let mut table = plain_table(&["rule", "numeric", "trust", "defined in", "what it does"], &[]);
        for rule in &rules {
            table.add_row([rule.name.to_string(), rule.numeric.to_string(), rule.trust.to_string(), place(rule), rule.doc.clone()]);
        }
        text = format!("{}\n", lines(&table));
    }
    console.print(&format!(
        "{text}{} of {} rules (`regraft rules explain NAME` tells all about one)",
        rules.len(),
        library.rules().len()
    ))?;
    Ok(Exit::Done)
}

/// A rule in machine-readable form.
pub fn json(rule: &Rule) -> serde_json::Value {
    serde_json::json!({
        "name": rule.name.as_ref(), "file": rule.file.as_ref(), "line": rule.line, "numeric": rule.numeric.to_string(),
        "trust": rule.trust.to_string(), "runtime": rule.runtime, "explore": rule.explore, "shared": rule.shared, "doc": rule.doc,
        "algebra": rule.algebra, "text": rule.text,
    })
}
