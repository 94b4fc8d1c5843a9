//! Whether the ends of random chains of axioms agree.

use std::collections::BTreeMap;
use std::time::Instant;

use regraft_derive::{Consistency, Laws, Walk, consistency};
use regraft_rules::{Library, Rule};
use serde_json::json;

use crate::console::Console;
use crate::exit::Exit;
use crate::rules::ended;
use crate::rules::parallel::each;
use regraft::error::Failure;
use regraft::render::seconds;

/// Chains shown if laws contradict each other.
const SHOWN: usize = 3;

/// Walks `chains` random chains from instances of each of `axioms`, by the laws of `library` in
/// both directions, and compares their ends.
pub fn run(
    library: &Library,
    axioms: &[&Rule],
    (chains, threads, seed): (usize, usize, u64),
    json: bool,
    console: &Console,
) -> Result<Exit, Failure> {
    let start = Instant::now();
    let laws = Laws::new(library.rules().iter().cloned())?;
    let how = Walk::default();
    let found = each(axioms, threads, console, "walk", |axiom| consistency(axiom, &laws, chains, &how, seed));
    let begun = found.iter().filter(|one| one.chains > 0).count();
    let mut all = Consistency::default();
    found.into_iter().for_each(|one| all += one);
    let broken: Vec<String> = all.broken.iter().map(ToString::to_string).collect();
    let time = start.elapsed().as_secs_f64();
    let used: BTreeMap<&str, usize> = all.used.iter().map(|(law, count)| (law.as_ref(), *count)).collect();
    if json {
        console.json(&json!({
            "axioms": axioms.len(), "begun": begun, "chains": all.chains, "steps": all.steps, "used": used,
            "equal": all.equal, "open": all.open, "broken": broken, "seconds": time,
        }))?;
        return Ok(ended(!broken.is_empty()));
    }
    let mut text = String::new();
    for chain in broken.iter().take(SHOWN) {
        text += &format!("the ends differ:\n{chain}\n");
    }
    text += &format!(
        "verdict: {} chains of {} steps from instances of {begun} axioms, by {} laws · {} end in the same expressions · {} agree in numbers · {} contradict · {} · seed {seed}",
        all.chains,
        all.steps,
        used.len(),
        all.equal,
        all.open,
        all.broken.len(),
        seconds(time),
    );
    console.print(&text)?;
    Ok(ended(!all.broken.is_empty()))
}
