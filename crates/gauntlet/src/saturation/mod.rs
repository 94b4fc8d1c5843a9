//! `saturation`: e-graphs of random models and of small networks, grown in many ways. Whatever is
//! extracted has no cycle, is a graph that the e-graph stands for, costs what it says, replays its
//! certificate, and computes what the model does; and no search of an e-graph ends above its input.

mod large;
mod settings;
mod subject;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Args as ClapArgs;
use regraft::optimize::clean;
use regraft::sizes::Sizes;
use regraft_ir::Trust;
use regraft_onnx::Model;
use regraft_rules::Library;
use regraft_runtime::{Feeds, Fill};
use regraft_saturate::Rules;
use regraft_zoo::Options;

use self::settings::Settings;
use self::subject::{Subject, Tried};
use crate::caught::caught;
use crate::generate;
use crate::summary::Summary;

/// Models of the short mode.
const SHORT: u64 = 40;
/// Networks that the reference executor runs in a second or so, and those of the short mode.
const NETWORKS: [&str; 6] = ["paper-sru", "paper-nasrnn", "paper-bert", "paper-t-t", "paper-squeezenet", "paper-mobilenet-v2"];
const SHORT_NETWORKS: [&str; 1] = ["paper-sru"];

/// Random models and small networks: extractions of their e-graphs, replayed and compared
#[derive(ClapArgs)]
pub struct Args {
    /// Random models
    #[arg(long, default_value_t = 2000)]
    models: u64,
    /// Seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first model
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Without the networks
    #[arg(long)]
    random_only: bool,
    /// A few models and one network
    #[arg(long)]
    short: bool,
    /// Nothing but one e-graph of so many e-nodes, in at most 4 KiB each
    #[arg(long, value_name = "NODES")]
    large: Option<usize>,
}

/// What a campaign has gone through.
#[derive(Default)]
struct Tally {
    summary: Summary,
    tried: Tried,
    /// Steps that nothing proves, by what made them: how many, and the first.
    open: BTreeMap<String, (usize, String)>,
}

impl Tally {
    /// Enters the outcome of one model.
    fn enter(&mut self, title: &str, outcome: Result<Tried>) {
        match outcome {
            Ok(tried) => {
                self.summary.held += 1;
                for judged in tried.judged.iter().filter(|judged| judged.trust < Trust::Bounded) {
                    let first = || (0, format!("{title}: {}", judged.why));
                    self.open.entry(judged.rule.clone()).or_insert_with(first).0 += 1;
                }
                self.tried.join(tried);
            }
            Err(why) => {
                let line = format!("{title}: {why:#}");
                eprintln!("found: {line}");
                self.summary.broken.push(line);
            }
        }
    }
}

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    if let Some(nodes) = args.large {
        let (found, peak) = large::grown(nodes)?;
        println!("{found} e-nodes in {:.1} s and {:.0} MB", start.elapsed().as_secs_f64(), peak as f64 / 1e6);
        return Ok(Summary { held: 1, ..Summary::default() }.conclude("saturation", args.seed));
    }
    let tally = campaign(args)?;
    for (rule, (count, first)) in &tally.open {
        println!("not proved, {count} times: {rule}: {first}");
    }
    let Tried { grown, cyclic, extracted, graphs, gained, compared, above, .. } = &tally.tried;
    let steps = |trust: Trust| tally.tried.judged.iter().filter(|judged| judged.trust == trust).count();
    println!("{grown} e-graphs, {cyclic} of them cyclic; {extracted} extractions, {above} above the input when priced alone");
    println!("{graphs} graphs replayed, {compared} compared by value, {gained} searches cheaper than their input");
    println!(
        "steps: {} proved, {} proved within bounds, {} tested, {} unproved",
        steps(Trust::Proved),
        steps(Trust::Bounded),
        steps(Trust::Tested),
        steps(Trust::Unproved)
    );
    println!("{:.0} s", start.elapsed().as_secs_f64());
    Ok(tally.summary.conclude("saturation", args.seed))
}

fn campaign(args: &Args) -> Result<Tally> {
    let library = Library::shipped()?;
    let rules = Rules::of(&library)?;
    let mut tally = Tally::default();
    let models = if args.short { SHORT.min(args.models) } else { args.models };
    for number in args.from..args.from + models {
        let case = generate::case(args.seed, number);
        let settings = Settings::drawn(args.seed, number);
        let title = format!("model {number}, {settings:?}");
        tally.enter(&title, caught(|| held(&Model::from_proto(case.model)?, &case.feeds, (&library, &rules), settings)));
    }
    let networks: &[&str] = if args.short { &SHORT_NETWORKS } else { &NETWORKS };
    for (name, number) in networks.iter().zip(0..).filter(|_| !args.random_only) {
        let model = Model::from_proto(regraft_zoo::build(name, &Options::default())?)?;
        let feeds = [Sizes::declared(&model, &[], &[])?.feeds(Fill::Normal, args.seed)?];
        let settings = Settings::of_network(args.seed, number);
        tally.enter(&format!("{name}, {settings:?}"), caught(|| held(&model, &feeds, (&library, &rules), settings)));
        println!("{name}: done");
    }
    Ok(tally)
}

/// Tries out a model.
fn held(model: &Model, feeds: &[Feeds], rules: (&Library, &Rules), settings: Settings) -> Result<Tried> {
    Subject::new(clean(model.graph()).0, feeds, rules).held(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_extracted_holds() {
        let tally = campaign(&Args { models: SHORT, seed: 1, from: 0, random_only: true, short: true, large: None }).expect("it runs");
        assert!(tally.summary.broken.is_empty(), "{}", tally.summary.broken.join("\n"));
        let Tried { cyclic, graphs, gained, compared, .. } = tally.tried;
        assert!(cyclic > 0 && gained > 0 && graphs as u64 > SHORT && compared * 2 > graphs, "{cyclic} {graphs} {gained} {compared}");
    }
}
