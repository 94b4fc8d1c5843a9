//! `regraft cost predict`: how well prices of some models predict those of others.

use std::path::{Path, PathBuf};

use regraft::error::Failure;
use regraft::file::{check_writable, write_atomic};
use regraft::render::{count, lines, plain_table};
use regraft_cost::predict::{Errors, Judged, judge};
use regraft_cost::{Measured, Predictor, Target};
use regraft_ir::Bindings;
use regraft_runtime::Store;

use crate::console::{Console, to_json};
use crate::exit::Exit;
use crate::target::RuntimeArgs;

/// Arguments of `cost predict`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  for m in resnet-18 bert-base ..; do regraft cost calibrate $m --report --cost-store $m.sqlite; done\n  regraft cost predict *.sqlite"
)]
pub struct Args {
    /// Stores of one model each, at least two
    #[arg(required = true, num_args = 2.., value_name = "STORE")]
    stores: Vec<PathBuf>,
    /// Predict what rewrites made; the operators of the model itself are known
    #[arg(long)]
    rewritten: bool,
    /// Threads per operator [default: what the runtime itself uses, one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of what is learned
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    runtime: RuntimeArgs,
    /// Learn from all stores together, and write the predictor here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    for (path, option) in [(&args.output, "--output"), (&args.json, "--json")] {
        path.iter().try_for_each(|path| check_writable(path, option))?;
    }
    let runtime = args.runtime.choice().load()?;
    let threads = args.threads.map_or_else(|| runtime.default_threads() as u32, u32::from);
    let target = Target::here(&*runtime, threads);
    let lists = args.stores.iter().map(|path| list(path, &target)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.output {
        let tables = lists.iter().flat_map(|(_, list)| list.table().entries());
        let prices: Vec<_> = tables.map(|(signature, entry)| (signature, entry.price() as f64)).collect();
        let learned = Predictor::fit(prices.iter().map(|(signature, ns)| (signature, *ns)), args.seed);
        let learned = learned.ok_or_else(|| Failure::new("the stores have too few prices to learn from"))?;
        write_atomic(path, &learned.to_bytes())?;
    }
    let judged = judge(&lists, args.rewritten, args.seed);
    if let Some(path) = &args.json {
        write_atomic(path, to_json(&judged)?.as_bytes())?;
    }
    console.print(&shown(&judged))?;
    Ok(Exit::Done)
}

/// The prices of a store, under its name.
fn list(path: &Path, target: &Target) -> Result<(String, Measured), Failure> {
    let store = Store::open_frozen(path)?;
    let measured = Measured::load(Bindings::new(), &store, target)?;
    if measured.table().is_empty() {
        let failure = Failure::new(format!("{} has no prices for this machine, runtime and number of threads", path.display()));
        return Err(failure.hint("regraft cost calibrate MODEL --report --cost-store FILE measures some"));
    }
    Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), measured))
}

fn shown(judged: &[Judged]) -> String {
    let columns = ["guess", "scaled", "learned", "corrected"];
    let mut header = vec!["model".to_owned(), "operators".into(), "new".into()];
    header.extend(columns.map(|name| format!("{name}: rank")));
    header.extend(columns.map(|name| format!("{name}: error")));
    header.push("within".into());
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = plain_table(&header, &(1..header.len()).collect::<Vec<_>>());
    for one in judged {
        let each = [one.guess, one.scaled, one.learned, one.corrected];
        let mut row = vec![one.name.clone(), one.nodes.to_string(), one.new.to_string()];
        let cell = |of: fn(Errors) -> f64| each.map(|errors| errors.map_or(String::new(), |errors| format!("{:.3}", of(errors))));
        row.extend(cell(|errors| errors.rank));
        row.extend(cell(|errors| errors.median));
        row.push(format!("{:.0} %", 100.0 * one.within));
        table.add_row(row);
    }
    let median = |of: fn(&Judged) -> Option<Errors>| {
        let mut all: Vec<f64> = judged.iter().filter_map(of).map(|errors| errors.median).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).map_or("none".into(), |error| format!("{error:.3}"))
    };
    let (guess, scaled, learned, corrected) =
        (median(|one| one.guess), median(|one| one.scaled), median(|one| one.learned), median(|one| one.corrected));
    format!(
        "{}\nverdict: {} · median error: guess {guess}, scaled {scaled}, learned {learned}, corrected {corrected}",
        lines(&table),
        count(judged.len(), "model")
    )
}
