//! `regraft egraph bench`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::{Measured, Method, read, show_cost, show_time, timed};
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use regraft::error::Failure;
use regraft::render::{count, lines, plain_table};
use regraft::units::parse_duration;

/// Hold the methods of extraction against each other
///
/// Extracts from every e-graph below a folder by every method.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft egraph bench extraction-gym/data --time 10s")]
pub struct Args {
    /// Folder with e-graphs in JSON, searched with its folders
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Methods, separated by commas
    #[arg(long, value_name = "METHOD", value_enum, value_delimiter = ',', default_values_t = Method::ALL)]
    method: Vec<Method>,
    /// Time that each method may take for each e-graph
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    time: Duration,
    /// Print the table of families for documents
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// An e-graph and what the methods made of it.
#[derive(Debug, Serialize)]
struct Row {
    /// Path below the folder.
    file: String,
    nodes: usize,
    classes: usize,
    methods: Vec<Measured>,
}

impl Row {
    /// The folder of the file: what it belongs to.
    fn family(&self) -> &str {
        self.file.rsplit_once('/').map_or(".", |(folder, _)| folder)
    }

    /// The least cost found.
    fn best(&self) -> f64 {
        self.methods.iter().map(|m| m.cost).fold(f64::INFINITY, f64::min)
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let mut files = Vec::new();
    collect(&args.folder, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(Failure::new(format!("{}: there are no .json files", args.folder.display())).hint("name a folder of e-graphs"));
    }
    interrupt::catch("telling what was extracted so far");
    let mut rows = Vec::new();
    {
        let mut progress = Progress::new(console);
        for path in &files {
            if interrupt::requested() {
                break;
            }
            let file = path.strip_prefix(&args.folder).unwrap_or(path).to_string_lossy().replace('\\', "/");
            progress.step("extract", &file);
            let egraph = read(path)?;
            let methods = args.method.iter().map(|&method| Ok(timed(&egraph, path, method, args.time)?.1));
            let methods = methods.collect::<Result<Vec<_>, Failure>>()?;
            rows.push(Row { file, nodes: egraph.nodes().len(), classes: egraph.classes().len(), methods });
        }
    }
    if args.json {
        console.json(&rows)?;
    } else if args.markdown {
        console.print(&markdown(args, &rows))?;
    } else {
        console.print(&shown(args, &rows, console))?;
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

/// All `.json` files below a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read the folder {}: {e}", folder.display())).hint("check the path");
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        // Links are not followed: they may lead in circles.
        if entry.file_type().map_err(cannot)?.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(path);
        }
    }
    Ok(())
}

/// What one method made of the e-graphs of one folder.
struct Family {
    /// How far costs are above the least found: their mean and their largest, in percent.
    mean: f64,
    worst: f64,
    /// E-graphs for which it shows that nothing is cheaper.
    optimal: usize,
    /// Time of all e-graphs, and longest of one.
    seconds: f64,
    longest: f64,
}

impl Family {
    fn new(rows: &[&Row], method: usize) -> Family {
        let mut family = Family { mean: 0.0, worst: 0.0, optimal: 0, seconds: 0.0, longest: 0.0 };
        for row in rows {
            let measured = &row.methods[method];
            let above = if measured.cost > row.best() { 100.0 * (measured.cost / row.best() - 1.0) } else { 0.0 };
            family.mean += above / rows.len() as f64;
            family.worst = family.worst.max(above);
            family.optimal += usize::from(measured.optimal);
            family.seconds += measured.seconds;
            family.longest = family.longest.max(measured.seconds);
        }
        family
    }
}

/// The rows by family, with all of them at the end.
fn families(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match families.iter_mut().find(|(family, _)| *family == row.family()) {
            Some((_, members)) => members.push(row),
            None => families.push((row.family(), vec![row])),
        }
    }
    if families.len() > 1 {
        families.push(("all", rows.iter().collect()));
    }
    families
}

fn shown(args: &Args, rows: &[Row], console: &Console) -> String {
    let mut text = String::new();
    if !console.quiet {
        let mut header = vec!["e-graph", "nodes"];
        for method in &args.method {
            header.extend([method.name(), "time"]);
        }
        header.push("bound");
        let right: Vec<usize> = (1..header.len()).collect();
        let mut table = plain_table(&header, &right);
        for row in rows {
            let mut cells = vec![row.file.clone(), row.nodes.to_string()];
            cells.extend(row.methods.iter().flat_map(|m| [show_cost(m.cost), show_time(m.seconds)]));
            let bound = row.methods.iter().filter_map(|m| m.bound).fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))));
            cells.push(bound.map_or_else(String::new, show_cost));
            table.add_row(cells);
        }
        let _ = writeln!(text, "{}", lines(&table));
        let mut table =
            plain_table(&["family", "e-graphs", "method", "above the best", "at worst", "optimal", "time", "longest"], &[1, 3, 4, 5, 6, 7]);
        for (name, members) in families(rows) {
            for (at, method) in args.method.iter().enumerate() {
                let Family { mean, worst, optimal, seconds, longest } = Family::new(&members, at);
                table.add_row([
                    name.to_string(),
                    members.len().to_string(),
                    method.name().to_string(),
                    format!("{mean:.2} %"),
                    format!("{worst:.2} %"),
                    optimal.to_string(),
                    show_time(seconds),
                    show_time(longest),
                ]);
            }
        }
        let _ = writeln!(text, "{}", lines(&table));
    }
    let all: Vec<&Row> = rows.iter().collect();
    let each: Vec<String> = args
        .method
        .iter()
        .enumerate()
        .map(|(at, method)| {
            let Family { mean, optimal, seconds, .. } = Family::new(&all, at);
            let shown = if optimal > 0 { format!(", {optimal} shown optimal") } else { String::new() };
            format!("{} {mean:.2} % above the best{shown}, {}", method.name(), show_time(seconds))
        })
        .collect();
    let _ = write!(text, "verdict: {} · {}", count(rows.len(), "e-graph"), each.join(" · "));
    text
}

/// The table of families; of each method, how far it is above the best, on average and at worst,
/// and the longest time of an e-graph.
fn markdown(args: &Args, rows: &[Row]) -> String {
    let names: Vec<&str> = args.method.iter().map(|method| method.name()).collect();
    let mut text = format!("| family | e-graphs | {} |\n|---|---:|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for (name, members) in families(rows) {
        let _ = write!(text, "| {name} | {} |", members.len());
        for at in 0..names.len() {
            let Family { mean, worst, optimal, longest, .. } = Family::new(&members, at);
            let shown = if optimal > 0 { format!(", {optimal} shown optimal") } else { String::new() };
            let _ = write!(text, " {mean:.2} % ({worst:.2} %), {}{shown} |", show_time(longest));
        }
        text.push('\n');
    }
    text
}
