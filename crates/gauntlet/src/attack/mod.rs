//! `attack`: pairs of models that look alike but differ, forged certificates, false rules. None of
//! them may be proved.

mod ask;
mod build;
mod catalogue;
mod claim;
mod falsehood;
mod feeds;
mod forge;
mod label;
mod mutate;
mod number;
mod pair;
mod signature;
mod tally;
mod term;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use prost::Message;
use regraft_certify::Certificate;
use regraft_ir::parallel;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::Runtime;

use self::ask::Desk;
use self::catalogue::{Family, families};
use self::label::{Difference, difference, outputs};
use self::pair::Pair;
use self::tally::{Outcome, Tally};
use crate::generate;
use crate::generate::random::Random;
use crate::trial::Bench;

/// Number of threads.
const THREADS: u64 = 2;
/// Attempts per wanted pair.
const ATTEMPTS: u64 = 4;
/// Rules generated per wanted rule: not all apply where they are false.
const CANDIDATES: u64 = 3;
/// One attempt in this many changes a random model, and one in this many a signature.
const COMPOSED: u64 = 8;

/// Pairs that look alike and differ, forged certificates, false rules: nothing of it may be proved.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Pairs that differ
    #[arg(long, default_value_t = 300)]
    pairs: u64,
    /// Forged certificates
    #[arg(long, default_value_t = 60)]
    certificates: u64,
    /// False rules
    #[arg(long, default_value_t = 30)]
    rules: u64,
    /// Seed of the campaign
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only families with this in their name
    #[arg(long)]
    only: Option<String>,
    /// Keep what is proved and must not be in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Also write the result as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Print why pairs could not be made
    #[arg(long)]
    verbose: bool,
}

/// Runs the campaign.
pub fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let bench = Bench::open()?;
    let runtime = &*bench.runtime;
    let mut families = families()?;
    if let Some(part) = &args.only {
        families.retain(|f| f.name.contains(part.as_str()));
        ensure!(!families.is_empty(), "no family has `{part}` in its name");
    }
    let pairs = in_threads(|thread| pairs(args, &families, runtime, thread))?;
    let certificates = in_threads(|thread| certificates(args, &families, &bench, thread))?;
    let rules = in_threads(|thread| rules(args, &families, &bench.runtime, thread))?;
    let outcome = Outcome { seed: args.seed, pairs, certificates, rules, seconds: start.elapsed().as_secs_f64() };
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_vec_pretty(&outcome)?).with_context(|| path.display().to_string())?;
    }
    Ok(outcome.conclude())
}

/// The counts of all threads, in order.
fn in_threads(work: impl Fn(u64) -> Result<Tally> + Sync) -> Result<Tally> {
    let threads: Vec<u64> = (0..THREADS).collect();
    let mut tally = Tally::default();
    for share in parallel::map(&threads, threads.len(), |thread| work(*thread)) {
        tally.join(share?);
    }
    Ok(tally)
}

/// One thread's share of the pairs.
fn pairs(args: &Args, families: &[Family], runtime: &dyn Runtime, thread: u64) -> Result<Tally> {
    let desk = Desk::new()?;
    let mut tally = Tally::default();
    let wanted = args.pairs / THREADS + u64::from(thread < args.pairs % THREADS);
    let mut number = thread;
    for _ in 0..ATTEMPTS * wanted {
        if tally.total().different as u64 >= wanted {
            break;
        }
        let mut random = Random::new(args.seed, number);
        let made = made(args, families, runtime, number, &mut random);
        number += THREADS;
        let pair = match made {
            Ok(Some(pair)) => pair,
            Ok(None) => continue,
            Err(why) => {
                if args.verbose {
                    eprintln!("not made: {why:#}");
                }
                continue;
            }
        };
        tally.family(&pair.family).made += 1;
        if pair.difference == Difference::None {
            if args.verbose {
                eprintln!("no difference: {}: {}", pair.family, pair.text);
            }
            continue;
        }
        let pair = if random.once_in(2) { pair.swapped() } else { pair };
        let claim = desk.ask(&pair.a, &pair.b)?;
        let wrong = tally.claimed(&pair.family, &pair.text, &claim, pair.clause);
        if wrong && let Some(keep) = &args.keep {
            keep_pair(keep, &format!("{}-{}", pair.family, number - THREADS), &pair)?;
        }
    }
    Ok(tally)
}

/// One thread's share of the certificates.
fn certificates(args: &Args, families: &[Family], bench: &Bench, thread: u64) -> Result<Tally> {
    let desk = Desk::new()?;
    let mut tally = Tally::default();
    let wanted = args.certificates / THREADS + u64::from(thread < args.certificates % THREADS);
    let mut number = thread;
    for _ in 0..20 * ATTEMPTS * wanted {
        if tally.total().different as u64 >= wanted {
            break;
        }
        let mut random = Random::new(args.seed ^ 0xce47, number);
        let forgery = forgery(args, families, bench, number, &mut random);
        number += THREADS;
        let Ok(Some((kind, pair, certificate))) = forgery else { continue };
        tally.family(&kind).made += 1;
        if pair.difference == Difference::None {
            continue;
        }
        let text = certificate.to_text();
        let claim = forge::ask(&desk, &pair.a, &pair.b, certificate)?;
        let wrong = tally.claimed(&kind, &pair.text, &claim, pair.clause);
        if wrong && let Some(keep) = &args.keep {
            let name = format!("certificate-{}", number - THREADS);
            keep_pair(keep, &name, &pair)?;
            std::fs::write(keep.join(format!("{name}.certificate")), text)?;
        }
    }
    Ok(tally)
}

/// Forged certificate `number` of the campaign, and its models; `None` if there was nothing to
/// forge.
fn forgery(
    args: &Args,
    families: &[Family],
    bench: &Bench,
    number: u64,
    random: &mut Random,
) -> Result<Option<(String, Pair, Certificate)>> {
    if random.once_in(3) {
        let edit = random.pick(&forge::Edit::ALL);
        let case = generate::case(args.seed, random.next() >> 32);
        let Some((b, certificate)) = forge::edited(bench, &case.model, edit, random)? else { return Ok(None) };
        let difference = if case.tolerance > crate::trial::TOLERANCE || is_random(&case.model) {
            Difference::None
        } else {
            difference(&outputs(&*bench.runtime, &case.model, &case.feeds)?, &outputs(&*bench.runtime, &b, &case.feeds)?, false)
        };
        let clause = difference.clause();
        let text = format!("{edit:?} in a trail of {number}");
        let pair = Pair { family: String::new(), text, a: case.model, b, feeds: case.feeds, clause, difference };
        return Ok(Some((format!("an honest trail, {edit:?}").to_lowercase(), pair, certificate)));
    }
    let kind = random.pick(&forge::Kind::ALL);
    let stepless = matches!(kind, forge::Kind::Bare | forge::Kind::Empty);
    let pair = if stepless && random.once_in(2) {
        resigned(families, &*bench.runtime, random)?
    } else {
        let fits = |family: &&Family| match kind {
            forge::Kind::Merged => family.constructed,
            forge::Kind::Bare | forge::Kind::Empty => family.constructed || family.narrow,
            forge::Kind::Opset => family.name.contains("before"),
            forge::Kind::Whole | forge::Kind::Foreign => true,
        };
        let families: Vec<Family> = families.iter().filter(fits).cloned().collect();
        if families.is_empty() {
            return Ok(None);
        }
        Some(drawn(&families, &*bench.runtime, random)?)
    };
    let Some(pair) = pair else { return Ok(None) };
    let Some(certificate) = forge::forged(kind, bench, &pair.a, &pair.b, random)? else { return Ok(None) };
    let effects = families.iter().any(|f| f.constructed && f.name == pair.family);
    let family = format!(
        "{kind:?}{}",
        if effects {
            ", random"
        } else if pair.family.starts_with("signature") {
            ", signature"
        } else {
            ""
        }
    );
    let text = format!("{}: {}", pair.family, pair.text);
    Ok(Some((family.to_lowercase(), Pair { text, ..pair }, certificate)))
}

/// One thread's share of the false rules.
fn rules(args: &Args, families: &[Family], shared: &Arc<dyn Runtime>, thread: u64) -> Result<Tally> {
    let runtime = &**shared;
    let desk = Desk::new()?;
    let mut tally = Tally::default();
    let wanted = args.rules / THREADS + u64::from(thread < args.rules % THREADS);
    let mut candidates = Vec::new();
    let mut number = thread;
    while (candidates.len() as u64) < CANDIDATES * wanted && number < 100 * THREADS * CANDIDATES * wanted {
        let mut random = Random::new(args.seed ^ 0x4013, number);
        number += THREADS;
        candidates.extend(false_rule(families, runtime, number, &mut random));
    }
    let all: String = candidates.iter().map(|rule| format!("{}\n", rule.text)).collect();
    let believed = falsehood::believed(desk.folder(), &all)?;
    // Rules refused on reading are the weaker attack.
    candidates.sort_by_key(|rule| believed.get(&rule.name).is_none());
    for FalseRule { name, text, pair } in candidates {
        if tally.total().different as u64 >= wanted {
            break;
        }
        tally.family(&pair.family).made += 1;
        let mut claim = claim::Claim::Refused;
        if believed.get(&name).is_some() {
            let bench = Bench { runtime: shared.clone(), library: believed.clone().filter(|rule| *rule.name == *name) };
            let Some((bytes, found)) = falsehood::applied(&bench, &pair.a.encode_to_vec(), args.seed)? else { continue };
            let after = ModelProto::decode(bytes.as_slice())?;
            if difference(&outputs(runtime, &pair.a, &pair.feeds)?, &outputs(runtime, &after, &pair.feeds)?, true) <= Difference::Sign {
                continue;
            }
            claim = found;
        } else if args.verbose {
            eprintln!("not proved when it is read: {}: {}", pair.family, pair.text);
        }
        let wrong = tally.claimed(&pair.family, &pair.text, &claim, pair.clause);
        if wrong && let Some(keep) = &args.keep {
            keep_pair(keep, &name, &pair)?;
            std::fs::write(keep.join(format!("{name}.rules")), text)?;
        }
    }
    Ok(tally)
}

/// A rule that is false of the first model of a pair.
struct FalseRule {
    name: String,
    text: String,
    pair: Pair,
}

/// A rule that claims that a model equals another one; `None` if the draw cannot be stated.
fn false_rule(families: &[Family], runtime: &dyn Runtime, number: u64, random: &mut Random) -> Option<FalseRule> {
    let family = &families[random.below(families.len())];
    // A rule that is false everywhere is no attack: take one in eight of those.
    if !family.narrow && !random.once_in(8) {
        return None;
    }
    let (law, ty) = (random.below(family.laws.len()), random.pick(&family.types));
    let drawn = family.draw(law, ty, &mut random.clone()).ok()?;
    let name = format!("false-{number}");
    let text = match family.rules.iter().find(|(of, _)| *of == law) {
        Some((_, rule)) => format!(";; false\n{}\n", rule.replace("$name", &name)),
        None => falsehood::rule(&name, &drawn.a, &drawn.b)?,
    };
    let pair = pair::pair(family, law, ty, true, runtime, random).ok()?;
    let fits = falsehood::is_rule(&text) && pair.difference != Difference::None;
    fits.then_some(FalseRule { name, text, pair })
}

/// Pair `number` of the campaign; `None` if there was nothing to change.
fn made(args: &Args, families: &[Family], runtime: &dyn Runtime, number: u64, random: &mut Random) -> Result<Option<Pair>> {
    match number % COMPOSED {
        0 if args.only.is_none() => composed(args.seed, number, runtime, random),
        1 if args.only.is_none() => resigned(families, runtime, random),
        _ => drawn(families, runtime, random).map(Some),
    }
}

/// A pair of the catalogue.
fn drawn(families: &[Family], runtime: &dyn Runtime, random: &mut Random) -> Result<Pair> {
    let family = &families[random.below(families.len())];
    let (law, ty) = (random.below(family.laws.len()), random.pick(&family.types));
    let plain = random.once_in(3);
    let made = pair::pair(family, law, ty, plain, runtime, random);
    made.with_context(|| format!("{}: {:?} at {ty}", family.name, family.laws[law]))
}

/// A random model and a changed copy.
fn composed(seed: u64, number: u64, runtime: &dyn Runtime, random: &mut Random) -> Result<Option<Pair>> {
    let case = generate::case(seed, number);
    let change = random.pick(&mutate::Change::ALL);
    let Some((b, what)) = mutate::mutated(&case.model, change, random) else { return Ok(None) };
    let (ours, theirs) = (outputs(runtime, &case.model, &case.feeds)?, outputs(runtime, &b, &case.feeds)?);
    let difference = difference(&ours, &theirs, false);
    // Half precision, and sums of many terms, are noisier than expressions of the catalogue.
    let loud = case.tolerance > crate::trial::TOLERANCE && difference == Difference::Clear;
    let family = match change {
        mutate::Change::Integer => "random model, an integer by one".to_string(),
        mutate::Change::Tampered(kind) => format!("random model, {kind:?}").to_lowercase(),
    };
    let difference = if loud || is_random(&case.model) { Difference::None } else { difference };
    let clause = difference.clause();
    Ok(Some(Pair { family, text: format!("model {number}, {what}"), a: case.model, b, feeds: case.feeds, clause, difference }))
}

/// True if a model's outputs depend on chance.
fn is_random(model: &ModelProto) -> bool {
    model.graph.iter().flat_map(|g| &g.node).any(|n| n.op_type().contains("Random") || n.op_type() == "Bernoulli")
}

/// A model of the catalogue, and the same with another signature.
fn resigned(families: &[Family], runtime: &dyn Runtime, random: &mut Random) -> Result<Option<Pair>> {
    let family = &families[random.below(families.len())];
    let (law, ty) = (random.below(family.laws.len()), random.pick(&family.types));
    let base = pair::pair(family, law, ty, true, runtime, random)?;
    let kind = random.pick(&signature::Kind::ALL);
    let Some(b) = signature::changed(&base.a, kind, random) else { return Ok(None) };
    let text = format!("{kind:?} of {}", base.text);
    Ok(Some(Pair { family: format!("signature, {kind:?}"), text, b, clause: None, difference: Difference::Clear, ..base }))
}

/// Writes both models and their inputs.
fn keep_pair(folder: &Path, name: &str, pair: &Pair) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (model, side) in [(&pair.a, "a"), (&pair.b, "b")] {
        std::fs::write(folder.join(format!("{name}-{side}.onnx")), model.encode_to_vec())?;
    }
    let mut text = format!("{}\n", pair.text);
    for (run, feeds) in pair.feeds.iter().enumerate() {
        for (input, tensor) in feeds.iter() {
            text.push_str(&format!("run {run}, {input}: {}{:?} {:02x?}\n", tensor.dtype(), tensor.shape(), tensor.bytes()));
        }
    }
    std::fs::write(folder.join(format!("{name}.txt")), text)?;
    Ok(())
}
