//! `regraft compare`.

use std::path::PathBuf;
use std::time::Duration;

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::priced::Priced;
use crate::progress::Progress;
use crate::search::Search;
use regraft::compare::{CompareRequest, Comparison, Searched};
use regraft::error::Failure;
use regraft::layouts::LayoutMode;
use regraft::render::{count, lines, plain_table, seconds};
use regraft::units::{parse_duration, show_bytes, show_ns};

/// Compare searches: what each makes of one model under one price list
///
/// Nothing is measured and nothing is written. Each search starts from the model, on one core.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Searches, separated by commas
    #[arg(long, value_name = "SEARCH", value_enum, value_delimiter = ',', default_value = "greedy,backtrack,sample,exact,auto")]
    search: Vec<Search>,
    /// Longest sequence of rewrites [default: any, or 10 for searches that try all sequences]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..))]
    steps: Option<u16>,
    /// Agent for xrlflow, as `regraft policy xrlflow` writes it
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    #[command(flatten)]
    priced: Priced,
    /// Choose among the layouts of this target: onnxruntime-cpu, gpu-model, or a file that
    /// describes one
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// When layouts are chosen, separated by commas
    #[arg(long, value_name = "WHEN", value_enum, value_delimiter = ',', default_value = "none,only,last,first,joint", requires = "target")]
    layout: Vec<Layout>,
    /// Time that each search may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    budget: Duration,
    /// Ask no clock: every search runs to its own end, and the result repeats byte for byte
    #[arg(long, conflicts_with = "budget")]
    frozen: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Values of `--layout`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Layout {
    /// Never.
    None,
    /// For the model as it is, which is not rewritten.
    Only,
    /// After the rewrites.
    Last,
    /// Before the rewrites.
    First,
    /// With the rewrites: every state costs what it costs in its best layouts.
    Joint,
}

impl Layout {
    fn mode(self) -> LayoutMode {
        match self {
            Layout::None => LayoutMode::None,
            Layout::Only => LayoutMode::Only,
            Layout::Last => LayoutMode::Last,
            Layout::First => LayoutMode::First,
            Layout::Joint => LayoutMode::Joint,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  regraft compare resnet-50
  regraft compare model.onnx --search greedy,exact,sample --steps 10
  regraft compare resnet-50 --search auto --target gpu-model
  regraft compare paper-sru --search table,exact --steps 3 --frozen --json";

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    Search::expect_agent(&args.search, args.agent.as_deref())?;
    interrupt::catch("telling what was searched so far");
    let request = CompareRequest {
        prices: args.priced.prices.clone(),
        target: args.target.clone(),
        layouts: args.layout.iter().map(|layout| layout.mode()).collect(),
        shapes: args.priced.shape.clone(),
        binds: args.priced.bind.clone(),
        rules: args.priced.rules.clone(),
        budget: args.budget,
        frozen: args.frozen,
        ..CompareRequest::new(
            &args.priced.model,
            args.search.iter().map(|search| search.limited(args.steps, args.agent.as_deref())).collect::<Result<_, _>>()?,
        )
    };
    request.searches.iter().filter_map(|search| search.warning(&request.model)).for_each(|warning| console.warn(&warning));
    let comparison = {
        let mut progress = Progress::new(console);
        regraft::compare(&request, &interrupt::requested, &mut |search| progress.step("search", search))?
    };
    if args.json {
        console.json(&comparison)?;
    } else {
        console.print(&shown(&comparison, console))?;
    }
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

/// Whether nothing is cheaper, or in how many regions that is shown.
fn optimal(row: &Searched) -> String {
    let proved = row.regions.iter().filter(|region| region.proved).count();
    match row.regions.len() {
        _ if row.optimal => "yes".into(),
        0 => "not shown".into(),
        all => format!("in {proved} of {}", count(all, "region")),
    }
}

fn shown(comparison: &Comparison, console: &Console) -> String {
    let least = comparison.searches.iter().map(|row| row.cost).min().unwrap_or(comparison.cost);
    let name = |row: &Searched| row.layouts.as_ref().map_or(row.search.clone(), |layouts| format!("{} ({})", row.search, layouts.mode));
    let best: Vec<String> = comparison.searches.iter().filter(|row| row.cost == least).map(name).collect();
    let verdict = format!(
        "verdict: {} -> {} by {} · {} of {}, priced by {}",
        show_ns(comparison.cost as f64),
        show_ns(least as f64),
        best.join(", "),
        count(comparison.rules, "rule"),
        count(comparison.nodes, "node"),
        comparison.prices
    );
    if console.quiet {
        return verdict;
    }
    let mut table = match comparison.target {
        None => plain_table(&["search", "cost", "speed-up", "rewrites", "states", "time", "memory", "optimal"], &[1, 2, 3, 4, 5, 6]),
        Some(_) => plain_table(
            &["search", "layouts", "cost", "speed-up", "rewrites", "laid out", "changes", "states", "time"],
            &[2, 3, 4, 5, 6, 7, 8],
        ),
    };
    for row in &comparison.searches {
        if let Some(layouts) = &row.layouts {
            table.add_row([
                row.search.clone(),
                layouts.mode.to_string(),
                show_ns(row.cost as f64),
                format!("{:.4}x", row.speedup),
                row.rewrites.to_string(),
                layouts.laid_out.to_string(),
                format!("{} ({})", layouts.changes, show_ns(layouts.changes_cost as f64)),
                row.states.to_string(),
                row.seconds.map_or_else(String::new, seconds),
            ]);
            continue;
        }
        table.add_row([
            row.search.clone(),
            show_ns(row.cost as f64),
            format!("{:.4}x", row.speedup),
            row.rewrites.to_string(),
            row.states.to_string(),
            row.seconds.map_or_else(String::new, seconds),
            row.peak_bytes.map_or_else(String::new, show_bytes),
            optimal(row),
        ]);
    }
    format!("{}\n{verdict}", lines(&table))
}
