//! `regraft rules import`.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use regraft_foreign::{Format, ImportError, Judgement, MOST_BYTES, MOST_PROOFS, Soundness, judge_all};
use regraft_ir::Trust;
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::Progress;
use crate::rules::derive::{self, Derived, chains, derive_all, laws};
use regraft::error::Failure;
use regraft::render::{count, lines, plain_table, seconds};

/// Judge the rules of another optimizer: are they true, and for which shapes?
///
/// Reads rule files of TASO (protobuf) and TENSAT (rules, pairs of rules, equations). Every rule
/// gets a verdict: true for all shapes, true under the guards that are printed, or false, with a
/// counterexample. A rule counts as true only if both sides are equal for all sizes with which both
/// are well-typed: with several groups, with broadcasting, with windows of every kind.
///
/// Ends with exit code 1 if a rule is not true as it stands: it is false, needs guards, or could
/// not be judged.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  regraft rules import graph_subst.pb\n  regraft rules import rules.txt --format pairs --markdown > rules.md"
)]
pub struct Args {
    /// File with rules
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the file [default: what it looks like]
    #[arg(long, value_name = "FORMAT", value_parser = Format::NAMES.map(|(name, _)| name))]
    format: Option<String>,
    /// Threads that judge [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Families of sizes to prove of each rule at most; with 0, rules are tested only
    #[arg(long, value_name = "N", default_value_t = MOST_PROOFS)]
    proofs: usize,
    /// Also derive the true rules from the shipped rules and the axioms: chains of steps, each of
    /// them proved
    #[arg(long)]
    derive: bool,
    /// Write the derivations to this file
    #[arg(long, value_name = "FILE", requires = "derive")]
    derivations: Option<PathBuf>,
    /// Print as a table for documents
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Characters of a prover's reason to show.
const WHY: usize = 200;

/// A judgement in machine-readable form.
#[derive(Debug, Serialize)]
struct Row<'a> {
    number: usize,
    rule: &'a str,
    /// `true`, `true-if`, `false`, or `unjudged`.
    verdict: &'static str,
    guards: Vec<String>,
    trust: &'static str,
    /// Why there is no proof, or no verdict.
    why: Option<&'a str>,
    counterexample: Option<Counterexample<'a>>,
    instances: usize,
    families: usize,
    proofs: usize,
    typings: &'a [String],
    same_as: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    derivation: Option<&'a Derived>,
}

#[derive(Debug, Serialize)]
struct Counterexample<'a> {
    shapes: Vec<(&'a str, &'a [i64])>,
    groups: &'a [i64],
    difference: String,
}

impl<'a> Row<'a> {
    fn new(j: &'a Judgement, derivation: Option<&'a Derived>) -> Row<'a> {
        let (verdict, guards) = match &j.soundness {
            Soundness::True => ("true", Vec::new()),
            Soundness::TrueIf(guards) => ("true-if", guards.iter().map(|g| g.to_string()).collect()),
            Soundness::False => ("false", Vec::new()),
            Soundness::Unjudged(_) => ("unjudged", Vec::new()),
        };
        let why = match &j.soundness {
            Soundness::Unjudged(why) => Some(why.as_str()),
            _ => j.unproved.as_deref(),
        };
        let counterexample = j.counterexample.as_ref().map(|c| Counterexample {
            shapes: c.shapes.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())).collect(),
            groups: &c.groups,
            difference: c.difference.to_string(),
        });
        let (trust, instances, families, proofs) = (j.trust.word(), j.instances, j.families, j.proofs);
        let typings = j.typings.as_slice();
        Row {
            number: j.number,
            rule: &j.algebra,
            verdict,
            guards,
            trust,
            why,
            counterexample,
            instances,
            families,
            proofs,
            typings,
            same_as: j.same_as,
            derivation,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    if let Some(path) = &args.derivations {
        regraft::file::check_writable(path, "--derivations")?;
    }
    let bytes = read(args)?;
    let named = args.format.as_ref().and_then(|name| Format::NAMES.iter().find(|(n, _)| n == name));
    let format = named.map_or_else(|| Format::of(&bytes), |(_, format)| *format);
    let rules = format.read(&bytes).map_err(|e| failure(args, e))?;
    interrupt::catch("telling what was judged so far");
    let threads = args.threads.map_or_else(regraft_ir::parallel::cores, usize::from);
    let progress = Mutex::new(Progress::new(console));
    let before = |begun: usize| {
        if let Ok(mut progress) = progress.lock() {
            progress.step("import", &format!("{begun} of {} rules", rules.len()));
        }
        !interrupt::requested()
    };
    let mut judgements = judge_all(&rules, threads, args.proofs, &before);
    let derived = match args.derive {
        true => {
            let step = |begun: usize| {
                if let Ok(mut progress) = progress.lock() {
                    progress.step("derive", &format!("{begun} rules"));
                }
                !interrupt::requested()
            };
            derive_all(&judgements, &laws()?, threads, &step)
        }
        false => vec![None; judgements.len()],
    };
    drop(progress);
    for (judgement, _) in judgements.iter_mut().zip(&derived).filter(|(_, d)| d.as_ref().is_some_and(Derived::is_whole)) {
        judgement.take_derivations();
    }
    if let Some(path) = &args.derivations {
        regraft::file::write_atomic(path, chains(&judgements, &derived).as_bytes())?;
    }
    let time = seconds(start.elapsed().as_secs_f64());
    if args.json {
        console.json(&judgements.iter().zip(&derived).map(|(j, d)| Row::new(j, d.as_ref())).collect::<Vec<_>>())?;
    } else if args.markdown {
        console.print(&markdown(args, &judgements, &derived)?)?;
    } else {
        let mut table = if console.quiet { String::new() } else { table(args, &judgements, &derived) };
        if console.verbose {
            table.push_str(&unproved(&judgements));
        }
        console.print(&format!("{table}verdict: {} · {time}", summary(args, &judgements, &derived)))?;
    }
    Ok(match judgements.iter().all(|j| j.soundness == Soundness::True) {
        _ if interrupt::requested() => Exit::Interrupted,
        true => Exit::Done,
        false => Exit::Unmet,
    })
}

fn read(args: &Args) -> Result<Vec<u8>, Failure> {
    let shown = args.file.display();
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read the rule file {shown}: {e}")).hint("check the path");
    let size = std::fs::metadata(&args.file).map_err(cannot)?.len();
    if size > MOST_BYTES as u64 {
        return Err(Failure::new(format!("{shown} has {size} bytes")).hint("rule files have at most 4 MiB"));
    }
    std::fs::read(&args.file).map_err(cannot)
}

fn failure(args: &Args, error: ImportError) -> Failure {
    let failure = Failure::new(format!("{}: {error}", args.file.display()));
    if error.hint.is_empty() { failure } else { failure.hint(error.hint) }
}

/// Counts of verdicts.
fn summary(args: &Args, judgements: &[Judgement], derived: &[Option<Derived>]) -> String {
    let with = |holds: fn(&Judgement) -> bool| judgements.iter().filter(|j| holds(j)).count();
    let all = with(|j| j.soundness == Soundness::True);
    let guarded = with(|j| matches!(j.soundness, Soundness::TrueIf(_)));
    let wrong = with(|j| j.soundness == Soundness::False);
    let unjudged = with(|j| matches!(j.soundness, Soundness::Unjudged(_)));
    let proved = with(|j| j.trust == Trust::Proved);
    let ranged = with(|j| j.trust == Trust::ProvedInRange);
    let tested = with(|j| j.trust == Trust::Tested);
    let same = with(|j| j.same_as.is_some());
    let mut text = format!("{}: {all} true for all shapes, {guarded} under guards, {wrong} false", count(judgements.len(), "rule"));
    if unjudged > 0 {
        let _ = write!(text, ", {unjudged} not judged");
    }
    let _ = write!(text, " · {proved} proved, {ranged} proved-in-range, {tested} tested · {} distinct", judgements.len() - same);
    if args.derive {
        let _ = write!(text, " · {}", derive::summary(derived));
    }
    text
}

/// The basis of a verdict, in a few words.
fn ground(j: &Judgement) -> String {
    match j.trust {
        Trust::Tested => format!("tested on {}", j.instances),
        Trust::Unproved => "-".into(),
        Trust::ProvedInRange => format!("proved-in-range ({} of {})", j.proofs, j.families),
        trust => trust.word().into(),
    }
}

/// The counterexample, or the rule it duplicates.
fn remark(j: &Judgement) -> String {
    let same = j.same_as.map(|n| format!("same as {n}"));
    let wrong = j.counterexample.as_ref().map(ToString::to_string);
    same.into_iter().chain(wrong).collect::<Vec<_>>().join("; ")
}

fn table(args: &Args, judgements: &[Judgement], derived: &[Option<Derived>]) -> String {
    let columns = ["rule", "verdict", "trust", "algebra", "counterexample", "derivation"];
    let mut table = plain_table(&columns[..if args.derive { 6 } else { 5 }], &[0]);
    for (j, derived) in judgements.iter().zip(derived) {
        let mut row = vec![j.number.to_string(), j.soundness.to_string(), ground(j), j.algebra.clone(), remark(j)];
        if args.derive {
            row.push(derived.as_ref().map(Derived::shown).unwrap_or_default());
        }
        table.add_row(row);
    }
    format!("{}\n", lines(&table))
}

/// Why there are no proofs, one line per rule.
fn unproved(judgements: &[Judgement]) -> String {
    let mut text = String::new();
    for j in judgements {
        let Some(why) = &j.unproved else { continue };
        let short: String = why.chars().take(WHY).collect();
        let _ = writeln!(text, "rule {}: no proof: {short}{}", j.number, if short.len() < why.len() { "…" } else { "" });
    }
    text
}

/// Legend above a table for documents.
const LEGEND: &str = "\
A rule is *true for all shapes* if both sides are equal for all sizes with which both are well-typed; *true if ..* if that holds under the guards that are named, the
weakest that were found; *false* if no guards are known. Tensors of up to four axes are tried in all combinations that fit. The last column holds the smallest sizes that were met with which the sides differ: why a rule is false, or
needs its guards.

Trust: *proved*, for all sizes; *proved-in-range*, for all sizes in so many of the families that were met, in each of which kernels (up to 3x3) and numbers of groups are
fixed; *tested*, equal on so many instances in a prime field, and no proof was found; *refuted*, by the counterexample.

Notation: variables are named in the order of their first use. `@` is the matrix product; `+` and `*` work element by element and broadcast. `conv(x, w)` has stride 1 and
`SAME` padding unless it says otherwise, and as many groups as the shapes imply; `conv.relu` ends with an activation. `cat1/4(a, b)` joins tensors of four
axes along axis 1. `split1(x).0` is the first part of `x`, which is cut where it was joined last along axis 1. `scale(x, s)` multiplies by a scalar, `t` transposes,
`enlarge3x3` puts weights into the middle of larger ones, `Kavg3x3`, `Kid3x3`, `I` and `One` are constants. Results are separated by `;`.
";

/// Legend above the laws that were used.
const DERIVATIONS: &str = "\
Derivations: a true rule follows from the shipped rules (`rules/*.rules`) and the axioms (`rules/axioms/*.rules`), each of which may be read in both directions, by the
steps that are named; a `'` marks one from right to left. They lead from the left side to the right one in the simplest family of sizes; the other families that were
chosen to be proved were derived as well. Every step was checked twice: the law, applied once, leads from one graph to the next; and the prover shows for all
sizes that what differs between them is equal. *One graph* means that both sides are the same once activations and cuts are written out and operands of `+` and `*` are
sorted. `--derivations FILE` writes all graphs on the way.
";

fn markdown(args: &Args, judgements: &[Judgement], derived: &[Option<Derived>]) -> Result<String, Failure> {
    let file = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut flags = if args.derive { " --derive" } else { "" }.to_owned();
    if args.proofs != MOST_PROOFS {
        let _ = write!(flags, " --proofs {}", args.proofs);
    }
    let mut text = format!(
        "<!-- Made by `regraft rules import {file}{flags} --markdown`. Do not edit. -->\n\n# The rules of {file}, judged\n\n{}.\n\n{LEGEND}\n",
        summary(args, judgements, derived)
    );
    if args.derive {
        let _ = write!(text, "{DERIVATIONS}\n{}", derive::used(judgements, derived)?);
    }
    let (heading, rule) = if args.derive { (" derivation |", "---|") } else { ("", "") };
    let _ = writeln!(text, "| rule | algebra | verdict | trust |{heading} counterexample |\n|---:|---|---|---|{rule}---|");
    for (j, derived) in judgements.iter().zip(derived) {
        let derivation =
            if args.derive { format!(" {} |", derived.as_ref().map(Derived::shown).unwrap_or_default()) } else { String::new() };
        let _ = writeln!(text, "| {} | `{}` | {} | {} |{derivation} {} |", j.number, j.algebra, j.soundness, ground(j), remark(j));
    }
    Ok(text)
}
