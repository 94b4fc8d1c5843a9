//! Which axioms follow from the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use regraft_derive::{Laws, Limits, redundant};
use regraft_rules::{Library, Rule};
use serde::Serialize;

use crate::console::Console;
use crate::exit::Exit;
use crate::rules::ended;
use crate::rules::parallel::each;
use regraft::error::Failure;
use regraft::render::{lines, plain_table, seconds};

/// Number of instances to derive with all sizes symbolic, and with some.
const INSTANCES: usize = 2;

/// Whether an axiom follows from the others.
#[derive(Debug, Serialize)]
struct Row {
    axiom: String,
    file: String,
    /// Whether it was derived on every instance.
    follows: bool,
    /// The axioms used to derive it; none if both sides are one graph.
    from: BTreeSet<String>,
    /// Steps of the longest derivation.
    steps: usize,
    /// Whether it follows even after removing the axioms above it that follow.
    spare: bool,
}

impl Row {
    fn of(axiom: &Rule, laws: &Laws, seed: u64) -> Row {
        let derivations = redundant(axiom, laws, INSTANCES, seed, &Limits::default());
        let follows = derivations.is_some();
        let derivations = derivations.unwrap_or_default();
        Row {
            follows,
            axiom: axiom.name.to_string(),
            file: axiom.file.to_string(),
            from: derivations.iter().flat_map(|d| &d.links).map(|link| link.law.to_string()).collect(),
            steps: derivations.iter().map(|d| d.links.len()).max().unwrap_or(0),
            spare: false,
        }
    }
}

/// Derives each of `axioms` from the others of `library`, then removes those that follow one by
/// one, as long as the remaining ones still lead to them.
pub fn run(library: &Library, axioms: &[&Rule], threads: usize, seed: u64, json: bool, console: &Console) -> Result<Exit, Failure> {
    let start = Instant::now();
    let laws = Laws::new(library.rules().iter().cloned())?;
    let mut rows = each(axioms, threads, console, "derive", |axiom| Row::of(axiom, &laws, seed));
    let mut out: BTreeSet<&str> = BTreeSet::new();
    for (row, axiom) in rows.iter_mut().zip(axioms).filter(|(row, _)| row.follows) {
        let needed = row.from.iter().any(|law| out.contains(law.as_str()));
        let left = laws.filter(|law| !out.contains(law.name.as_ref()));
        row.spare = !needed || Row::of(axiom, &left, seed).follows;
        if row.spare {
            out.insert(axiom.name.as_ref());
        }
    }
    if json {
        console.json(&rows)?;
    } else {
        console.print(&shown(&rows, start, seed, console))?;
    }
    Ok(ended(false))
}

fn shown(rows: &[Row], start: Instant, seed: u64, console: &Console) -> String {
    let mut text = String::new();
    let follow = || rows.iter().filter(|row| row.follows);
    if !console.quiet && follow().next().is_some() {
        let mut table = plain_table(&["axiom", "steps", "spare", "follows from"], &[1]);
        for row in follow() {
            let from: Vec<&str> = row.from.iter().map(String::as_str).collect();
            let spare = if row.spare { "yes" } else { "no" };
            table.add_row([row.axiom.as_str(), &row.steps.to_string(), spare, &from.join(", ")]);
        }
        text = format!("{}\n", lines(&table));
    }
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    follow().for_each(|row| *files.entry(&row.file).or_default() += 1);
    let files: Vec<String> = files.iter().map(|(file, count)| format!("{count} of {file}")).collect();
    if !files.is_empty() {
        text += &format!("by file: {}\n", files.join(", "));
    }
    text + &format!(
        "verdict: {} of {} axioms follow from the others · {} of them may be left out together · {} · seed {seed}",
        follow().count(),
        rows.len(),
        rows.iter().filter(|row| row.spare).count(),
        seconds(start.elapsed().as_secs_f64()),
    )
}
