//! `regraft rules explain`.

use std::fmt::Write;

use regraft_audit::{any_rank, coverage};
use regraft_ir::Trust;
use regraft_rules::sample::Sizes;
use regraft_rules::{Numeric, Proofs, Rule, reaches};

use crate::console::Console;
use crate::corpus::Corpus;
use crate::exit::Exit;
use crate::rules::example::Example;
use crate::rules::{Files, find, library, list, place};
use regraft::error::Failure;

/// Tell all about one rule: its algebra, its conditions, how it rounds, its proof, where it pays,
/// and an example
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft rules explain relu-clip")]
pub struct Args {
    /// Name of the rule
    name: String,
    #[command(flatten)]
    files: Files,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let library = library(&args.files)?;
    let rule = find(&library, &args.name)?;
    let example = Example::smallest(rule);
    if args.json {
        let mut value = list::json(rule);
        value["pays"] = serde_json::json!(corpus()?.uses(&rule.name));
        value["example"] = serde_json::json!(example);
        console.json(&value)?;
    } else {
        console.print(&explanation(rule, &corpus()?, example))?;
    }
    Ok(Exit::Done)
}

fn corpus() -> Result<Corpus, Failure> {
    Corpus::shipped().map_err(|e| Failure::new(format!("the benchmark's results that came with this program cannot be read: {e}")))
}

fn explanation(rule: &Rule, corpus: &Corpus, example: Option<Example>) -> String {
    let mut out = format!("{}  ({})\n\n  {}\n", rule.name, place(rule), rule.doc);
    let mut section = |title: &str, body: &str| {
        let _ = write!(out, "\n{title}\n");
        for line in body.lines() {
            let _ = writeln!(out, "{}", format!("  {line}").trim_end());
        }
    };
    section("Algebra", &rule.algebra.join("\n"));
    section("Rule", &rule.text);
    section("Applies", &conditions(rule));
    section("Order of rewrites", &order(rule));
    section("Numeric class", &format!("{}: {}", rule.numeric, meaning(rule.numeric)));
    section("Trust", &format!("{}: {}", rule.trust, reason(rule)));
    section("Where it pays", &uses(rule, corpus));
    match example {
        Some(Example { before, after }) => {
            section("Example, before", &before);
            section("Example, after", &after);
        }
        None => section("Example", "no random instance of it was found"),
    }
    out
}

/// Whether searches may try it in one order with others.
fn order(rule: &Rule) -> String {
    let reaches: Vec<String> = reaches(rule).iter().map(ToString::to_string).collect();
    match reaches.is_empty() {
        true => "monotone: in any order with rewrites of other operators, to the same effect".into(),
        false => format!("not monotone: it {}; it may enable rewrites that share no operator with it", reaches.join(", ")),
    }
}

fn conditions(rule: &Rule) -> String {
    let mut conditions = vec![match rule.guards.len() {
        0 => "wherever its source matches".to_string(),
        1 => "where its source matches and its `when` clause holds".to_string(),
        n => format!("where its source matches and all {n} conditions of its `when` clause hold"),
    }];
    if let Some(runtime) = &rule.runtime {
        conditions.push(format!("only for the target {runtime}"));
    }
    conditions.push(match rule.shared {
        true => "matched values may have other readers; what they need stays".into(),
        false => "values inside the matched part must have no other readers".into(),
    });
    if rule.explore {
        conditions.push("a respelling: only a measurement can tell whether it pays".into());
    }
    conditions.join("\n")
}

fn meaning(numeric: Numeric) -> &'static str {
    match numeric {
        Numeric::Exact => "both sides give the same bits, up to the sign of zero",
        Numeric::Reassociates => "sums or products are taken in another order, so last bits may differ",
        Numeric::RoundsConstants => "constants are combined ahead of time and rounded once, so last bits may differ",
        Numeric::FastBilinear => {
            "a fast bilinear algorithm: about 1e-5 relative, growing with the tile; --deny fast-bilinear refuses all such rules"
        }
    }
}

fn reason(rule: &Rule) -> String {
    let proof = Proofs::shipped().of(rule).cloned();
    let instances = proof.map_or_else(String::new, |proof| {
        let count = |wanted: &[Sizes]| proof.instances.iter().filter(|draw| wanted.contains(&draw.sizes)).count();
        let (symbols, numbers) = (count(&[Sizes::Open, Sizes::Some]), count(&[Sizes::Known]));
        let ranks = match any_rank(rule, &proof) {
            0 => String::new(),
            any => format!("\n{any} of them hold for any number of leading axes"),
        };
        let (digest, name, covers) = (proof.digest, &rule.name, coverage(rule, &proof));
        format!(
            "\nproof {digest:032x}: both sides have one normal form on {symbols} instances with symbols for sizes and {numbers} with numbers{ranks}\n\
             proved for {covers}\n\
             `regraft rules verify {name}` proves it again"
        )
    });
    let what = match rule.trust {
        Trust::Proved => "for all sizes that satisfy its conditions, over the real numbers",
        Trust::Bounded => {
            "for all sizes that satisfy its conditions, over the real numbers, if constants are the simple numbers that they were rounded from"
        }
        Trust::ProvedInRange => "over the real numbers, for the sizes of its instances",
        Trust::Refuted | Trust::Unproved | Trust::Tested => {
            "the prover does not show it; `regraft rules exercise` computes both sides on random instances, and it is applied with --allow tested only"
        }
    };
    format!("{what}{instances}")
}

/// The models of the corpus whose fastest form uses the rule.
fn uses(rule: &Rule, corpus: &Corpus) -> String {
    let uses = corpus.uses(&rule.name);
    let mut lines: Vec<String> = uses
        .iter()
        .map(|u| {
            let places = if u.places == 1 { "once".to_string() } else { format!("{} times", u.places) };
            format!("{}: applied {places}; all its rewrites together made it {:.3} times as fast", u.model, u.speedup)
        })
        .collect();
    if lines.is_empty() {
        let nowhere = "nowhere yet in the benchmark's corpus; the report of `regraft optimize` tells whether it does in a model of yours";
        lines.push(nowhere.into());
    }
    lines.push(format!("({corpus}; `make bench` measures it again)"));
    lines.join("\n")
}
