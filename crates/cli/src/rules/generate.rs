//! `regraft rules generate`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use regraft_discover::{
    Candidate, DiscoverError, Enumerated, Finished, Observer, Options, Part, SHIPPED, Settings, Shard, Spec, Tables, Terms, count,
    enumerate, finish,
};
use regraft_prove::equal;
use serde_json::json;

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use crate::rules::failure;
use crate::rules::read;
use regraft::error::Failure;
use regraft::file;
use regraft::render::{lines, plain_table, seconds};
use regraft::units::{parse_bytes, show_bytes};

/// Find rules: enumerate all small graphs over a specification, and pair those that compute the
/// same
///
/// Writes candidate pairs that hold for random elements of a prime field under several sizes,
/// without those that follow from others. Pairs that the prover proves for all sizes are marked;
/// the others are candidates and nothing more.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  regraft rules generate taso -o taso.pairs
  regraft rules generate my.spec --size 4 --memory 6G --work w -o my.pairs     large: checkpointed in the folder w
  regraft rules generate my.spec --size 4 --memory 6G --work w --resume -o my.pairs
  regraft rules generate my.spec --size 4 --values my.values                    for shards to share
  regraft rules generate my.spec --size 4 --values my.values --shard 1/2 -o 1.part    and 2/2 on another machine, then:
  regraft rules generate my.spec --size 4 --merge 1.part 2.part -o my.pairs")]
pub struct Args {
    /// The specification: a file, or the name of a shipped one, `taso` or `dense`
    #[arg(value_name = "SPEC")]
    spec: String,
    /// Where to write the pairs, or the part with --shard
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["count", "values"])]
    output: Option<PathBuf>,
    /// Only count terms and graphs, which tells how long and how large an enumeration will be;
    /// writes nothing
    #[arg(long, conflicts_with_all = ["output", "merge", "shard", "work"])]
    count: bool,
    /// Operators of the largest graphs [default: what the specification says]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Memory to use, about
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    memory: u64,
    /// Threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed of all random elements
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// A folder for what does not fit into memory and for checkpoints [default: a temporary one,
    /// without checkpoints]
    #[arg(long, value_name = "FOLDER", conflicts_with = "merge")]
    work: Option<PathBuf>,
    /// Go on with the enumeration in the work folder
    #[arg(long, requires = "work")]
    resume: bool,
    /// File of the fingerprints of all values: read if it is there, made if it is not
    ///
    /// They are most of what a shard takes, so shards should share them. Without -o, only the file
    /// is made.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "merge"])]
    values: Option<PathBuf>,
    /// Only the K-th of N ranges of fingerprints
    ///
    /// With --values, it needs about an N-th of the disk, and of the time beyond making the terms.
    #[arg(long, value_name = "K/N", value_parser = parse_shard, conflicts_with = "merge")]
    shard: Option<Shard>,
    /// Merge the parts of all shards instead of enumerating
    #[arg(long, value_name = "PART", num_args = 1..)]
    merge: Vec<PathBuf>,
    /// Keep pairs that rewriting by others derives
    #[arg(long)]
    keep_derived: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Parses a `--shard`: `2/8`, from 1.
fn parse_shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse::<u32>().ok()?, n.parse::<u32>().ok()?)));
    match numbers {
        Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index: index - 1, count }),
        _ => Err(format!("`{text}` is no shard; write 1/8 to 8/8 for eight of them")),
    }
}

/// Reads a specification from a file, or a shipped one by name.
pub fn specification(name: &str) -> Result<Spec, Failure> {
    Ok(match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        Some((name, text)) => Spec::parse(name, text)?,
        None => Spec::parse(name, &read(Path::new(name))?)?,
    })
}

/// Shows the passes as progress.
pub struct Watched(pub Progress);

impl Observer for Watched {
    fn step(&mut self, phase: &str, detail: &str) {
        self.0.step(phase, detail);
    }

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let spec = specification(&args.spec)?;
    if let Some(output) = &args.output {
        file::check_writable(output, "-o")?;
        file::check_apart(("the pairs", output, "-o"), &[("the specification", Path::new(&args.spec))])?;
    }
    interrupt::catch(match args.work {
        Some(_) => "saving how far it came",
        None => "nothing is written; --work makes an enumeration that can be resumed",
    });
    let folder = Folder::of(args)?;
    let threads = args.threads.map_or_else(regraft_ir::parallel::cores, usize::from);
    let settings = Settings {
        size: args.size.unwrap_or(spec.limit_operators),
        threads,
        memory: args.memory,
        seed: args.seed,
        shard: args.shard.unwrap_or(Shard::WHOLE),
        work: folder.path(),
        checkpoint: args.work.is_some(),
    };
    if let Some(values) = args.values.as_deref().filter(|values| !values.exists()) {
        file::check_writable(values, "--values")?;
    }
    let ended = match (&args.output, &args.values) {
        (Some(output), _) => found(args, output, &spec, &settings, console, start),
        (None, Some(values)) => valued(values, &spec, &settings, console, start),
        (None, None) => counted(&spec, &settings, args.json, console, start),
    };
    match ended {
        Err(Stop::Interrupted) => {
            if args.work.is_some() {
                console.warn("interrupted; the same command with --resume goes on");
            }
            Ok(Exit::Interrupted)
        }
        Err(Stop::Failed(failure)) => Err(failure),
        Ok(exit) => Ok(exit),
    }
}

/// Why there is no result.
enum Stop {
    Interrupted,
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<DiscoverError> for Stop {
    fn from(error: DiscoverError) -> Stop {
        match error {
            DiscoverError::Interrupted => Stop::Interrupted,
            other => Stop::Failed(failure(other)),
        }
    }
}

fn found(args: &Args, output: &Path, spec: &Spec, settings: &Settings<'_>, console: &Console, start: Instant) -> Result<Exit, Stop> {
    let mut watched = Watched(Progress::new(console));
    let known = match args.merge.as_slice() {
        [] => saved(args, spec, settings)?,
        _ => Some(merge(args, spec, settings)?),
    };
    let (tables, enumerated) = match known {
        Some(enumerated) => (Tables::of_pairs(spec, settings, &enumerated.pairs, &mut watched)?, enumerated),
        None => {
            let tables = match &args.values {
                Some(values) => tables(values, spec, settings, &mut watched)?,
                None => Tables::new(spec, settings, &mut watched)?,
            };
            let enumerated = enumerate(spec, &tables, settings, &mut watched)?;
            save(args, spec, settings, &enumerated)?;
            (tables, enumerated)
        }
    };
    if args.shard.is_some() {
        drop(watched);
        let part = Part { identity: settings.identity(spec), found: enumerated };
        file::write_atomic(output, part.text().as_bytes())?;
        let time = seconds(start.elapsed().as_secs_f64());
        let shown = format!(
            "verdict: part {} of {} with {} pairs · {time}",
            settings.shard.index + 1,
            settings.shard.count,
            part.found.pairs.len()
        );
        console.print(&shown)?;
        return Ok(Exit::Done);
    }
    let options = Options { seed: args.seed, threads: settings.threads, derive: !args.keep_derived };
    let finished = finish(spec, &tables, &enumerated.pairs, options, &mut watched)?;
    drop(tables);
    let (text, proved) = judged(spec, &finished.candidates, &mut watched);
    drop(watched);
    file::write_atomic(output, text.as_bytes())?;
    let time = start.elapsed().as_secs_f64();
    if args.json {
        console.json(&report(&enumerated, &finished, proved, time, settings))?;
    } else {
        console.print(&shown(&enumerated, &finished, proved, time, settings, console))?;
    }
    Ok(Exit::Done)
}

/// The tables, with values from a file, which is made if it is not there.
fn tables(values: &Path, spec: &Spec, settings: &Settings<'_>, watched: &mut Watched) -> Result<Tables, Stop> {
    if values.exists() {
        return Ok(Tables::with_values(spec, settings, values, watched)?);
    }
    let tables = Tables::new(spec, settings, watched)?;
    file::write_atomic_with(values, |out| tables.values.write(&settings.identity(spec), out))?;
    Ok(tables)
}

/// Makes the file of values, and nothing else.
fn valued(values: &Path, spec: &Spec, settings: &Settings<'_>, console: &Console, start: Instant) -> Result<Exit, Stop> {
    let mut watched = Watched(Progress::new(console));
    let tables = tables(values, spec, settings, &mut watched)?;
    drop(watched);
    let time = seconds(start.elapsed().as_secs_f64());
    console.print(&format!("verdict: the values of {} terms are in {} · {time}", tables.terms.list().len(), values.display()))?;
    Ok(Exit::Done)
}

/// The file in a work folder with the findings of all passes.
fn all_found(work: &Path) -> PathBuf {
    work.join("found")
}

/// The findings of all passes, if they finished in an earlier run.
fn saved(args: &Args, spec: &Spec, settings: &Settings<'_>) -> Result<Option<Enumerated>, Failure> {
    let Some(path) = args.work.as_deref().map(all_found).filter(|path| path.exists()) else { return Ok(None) };
    let wrong = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display())).hint("name another work folder");
    let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
    let part = Part::parse(&text).map_err(|e| wrong(&e))?;
    if part.identity != settings.identity(spec) {
        return Err(wrong(&"it belongs to another specification, size, seed or shard"));
    }
    Ok(Some(part.found))
}

/// Saves the findings of all passes in the work folder.
fn save(args: &Args, spec: &Spec, settings: &Settings<'_>, enumerated: &Enumerated) -> Result<(), Failure> {
    let Some(work) = &args.work else { return Ok(()) };
    let part = Part { identity: settings.identity(spec), found: enumerated.clone() };
    file::write_atomic(&all_found(work), part.text().as_bytes())
}

fn counted(spec: &Spec, settings: &Settings<'_>, as_json: bool, console: &Console, start: Instant) -> Result<Exit, Stop> {
    let mut watched = Watched(Progress::new(console));
    let terms = Terms::generate(spec, settings.size, settings.memory / 2)?;
    let size = count(&terms, settings, &mut watched)?;
    drop(watched);
    let terms: Vec<String> = (0..=settings.size).map(|n| terms.of_size(n).len().to_string()).collect();
    if as_json {
        console.json(&json!({ "size": settings.size, "terms": terms, "graphs": size.graphs, "orders": size.orders }))?;
        return Ok(Exit::Done);
    }
    let time = seconds(start.elapsed().as_secs_f64());
    let (terms, graphs, orders) = (terms.join(" + "), size.graphs, size.orders);
    console.print(&format!("verdict: {terms} terms, {graphs} graphs, {orders} with all orders of their operators · {time}"))?;
    Ok(Exit::Done)
}

fn merge(args: &Args, spec: &Spec, settings: &Settings<'_>) -> Result<Enumerated, Failure> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", path.display()));
    let mut parts = Vec::new();
    for path in &args.merge {
        let text = std::fs::read_to_string(path).map_err(|e| wrong(path, &e).hint("check the path"))?;
        parts.push(Part::parse(&text).map_err(|e| wrong(path, &e).hint("parts are written by --shard"))?);
    }
    let whole = Part::merge(parts).map_err(|e| Failure::new(e).hint("name each part of one enumeration once"))?;
    if whole.identity != settings.identity(spec) {
        return Err(Failure::new("the parts belong to another specification, size or seed").hint("use the same for --merge as for --shard"));
    }
    Ok(whole.found)
}

/// All candidates as text, each with the prover's verdict, and the number proved.
fn judged(spec: &Spec, candidates: &[Candidate], watched: &mut Watched) -> (String, usize) {
    let (mut text, mut proved) = (String::new(), 0);
    for (at, candidate) in candidates.iter().enumerate() {
        if at.is_multiple_of(64) {
            watched.step("prove", &format!("{at} of {} pairs, {proved} proved", candidates.len()));
        }
        let verdict = match candidate.graphs(spec) {
            Ok([left, right]) => equal(&left, &right),
            Err(why) => regraft_prove::Verdict::Unproved(why.to_string()),
        };
        proved += usize::from(verdict.is_proved());
        text.push_str(&format!(";; {verdict}\n{}\n", candidate.text(spec, at + 1)));
    }
    (text, proved)
}

/// The steps from all pairs to the candidates.
fn steps(enumerated: &Enumerated, finished: &Finished) -> Vec<(&'static str, u64)> {
    let mut steps = enumerated.tally.steps().to_vec();
    steps.extend([
        ("pairs up to renaming", finished.named_once),
        ("no instance of another", finished.most_general),
        ("equal in fresh drawings", finished.confirmed),
        ("not derived by others", finished.candidates.len() as u64),
    ]);
    steps
}

fn report(enumerated: &Enumerated, finished: &Finished, proved: usize, time: f64, settings: &Settings<'_>) -> serde_json::Value {
    let steps: Vec<_> = steps(enumerated, finished).into_iter().map(|(step, pairs)| json!({ "step": step, "pairs": pairs })).collect();
    json!({
        "size": settings.size, "seed": settings.seed, "threads": settings.threads, "terms": enumerated.terms,
        "graphs": enumerated.size.graphs, "orders": enumerated.size.orders, "records": enumerated.records, "spilled": enumerated.spilled,
        "steps": steps, "candidates": finished.candidates.len(), "proved": proved, "seconds": time,
    })
}

fn shown(enumerated: &Enumerated, finished: &Finished, proved: usize, time: f64, settings: &Settings<'_>, console: &Console) -> String {
    let mut text = String::new();
    let graphs = enumerated.size.graphs;
    if !console.quiet {
        let terms: Vec<String> = enumerated.terms.iter().map(ToString::to_string).collect();
        let mut table = plain_table(&["", ""], &[1]);
        table.add_row(["terms by number of operators".to_string(), terms.join(" + ")]);
        table.add_row(["graphs".to_string(), graphs.to_string()]);
        table.add_row(["graphs, each in all orders of its operators".to_string(), enumerated.size.orders.to_string()]);
        table.add_row(["graphs whose fingerprint repeats, about".to_string(), enumerated.records.to_string()]);
        if enumerated.spilled > 0 {
            table.add_row(["written to the work folder".to_string(), show_bytes(enumerated.spilled)]);
        }
        for (step, pairs) in steps(enumerated, finished) {
            table.add_row([format!("pairs: {step}"), pairs.to_string()]);
        }
        text = format!("{}\n", lines(&table));
    }
    text + &format!(
        "verdict: {} candidates from {graphs} graphs of up to {} operators · {proved} proved · {} · seed {}",
        finished.candidates.len(),
        settings.size,
        seconds(time),
        settings.seed
    )
}

/// The folder of runs and states.
enum Folder {
    Named(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn of(args: &Args) -> Result<Folder, Failure> {
        let Some(path) = &args.work else {
            let folder = tempfile::tempdir().map_err(|e| Failure::new(format!("no temporary folder: {e}")).hint("name one with --work"))?;
            return Ok(Folder::Temporary(folder));
        };
        let wrong = |e: std::io::Error| Failure::new(format!("{}: {e}", path.display())).hint("name a folder that can be written");
        std::fs::create_dir_all(path).map_err(wrong)?;
        if !args.resume && std::fs::read_dir(path).map_err(wrong)?.next().is_some() {
            return Err(Failure::new(format!("{} is not empty", path.display()))
                .hint("--resume goes on with what is there; or name another folder"));
        }
        Ok(Folder::Named(path.clone()))
    }

    fn path(&self) -> &Path {
        match self {
            Folder::Named(path) => path,
            Folder::Temporary(folder) => folder.path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(parse_shard("1/1"), Ok(Shard::WHOLE));
        assert_eq!(parse_shard("2/8"), Ok(Shard { index: 1, count: 8 }));
        for bad in ["0/2", "3/2", "1", "a/b", "1/0"] {
            assert!(parse_shard(bad).is_err(), "{bad}");
        }
    }
}
