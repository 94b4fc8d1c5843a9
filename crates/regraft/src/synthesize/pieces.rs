//! Searches cut into pieces, for many machines: operators are drawn, judged in parts, and reports
//! of parts joined.

use std::collections::HashMap;
use std::path::Path;

use regraft_synth::{Explorer, Filter, Operator, Sampler, Spec, Tree, presets};

use crate::error::Failure;
use crate::optimize::{Observer, Phase};
use crate::synthesize::candidates::parsed;
use crate::synthesize::judging::{SearchReport, front};

/// Formulas of so many operators that none of the reports has: of known families, and what a tree
/// search proposes that knows what the reports found. The same for the same seed and reports.
///
/// # Errors
///
/// If a formula of a report is no operator of the specification.
pub fn draw(spec: &Spec, count: usize, seed: u64, reports: &[SearchReport], observer: &mut dyn Observer) -> Result<Vec<String>, Failure> {
    let mut explorer = Explorer::new(spec, Filter::default());
    let timed: Vec<_> = reports.iter().flat_map(|report| &report.timed).cloned().collect();
    let found = front(&timed);
    let mut rewards = HashMap::new();
    for operated in &timed {
        let formula = &operated.formula;
        let operator = parsed(formula, &mut explorer)?;
        let rank = if operated.is_faster() { found.rank(&operated.point()) } else { 0.0 };
        rewards.extend(explorer.key(&operator).map(|key| (key, rank)));
    }
    if let Ok(dense) = Operator::parse(&spec.dense, &mut explorer.coordinates) {
        rewards.extend(explorer.key(&dense).map(|key| (key, 0.0)));
    }
    let mut drawn = Vec::new();
    let mut families = presets::families(spec).into_iter();
    let mut tree = Tree::new(seed);
    let mut sampler = Sampler::new(&mut explorer, seed, false);
    let mut searching = true;
    // Known families and the search take turns.
    while drawn.len() < count && !observer.interrupted() {
        observer.phase(Phase::Search, &format!("{} of {count}", drawn.len()));
        let family = families.next();
        if family.is_none() && !searching {
            break;
        }
        let operator = family.and_then(|formula| Operator::parse(&formula, &mut explorer.coordinates).ok());
        if let Some(found) = operator.and_then(|operator| explorer.judged(operator))
            && !rewards.contains_key(&found.key)
        {
            rewards.insert(found.key, 0.0);
            drawn.push(found.operator.show(&explorer.coordinates));
        }
        if !searching || drawn.len() == count {
            continue;
        }
        let Some(proposal) = tree.propose(&mut explorer, &mut sampler) else {
            searching = false;
            continue;
        };
        // What waits for its judgement counts as bad meanwhile, so that the search looks elsewhere.
        let reward = rewards.get(&proposal.found.key).copied();
        tree.reward(&proposal, reward.unwrap_or(0.0));
        if reward.is_none() {
            rewards.insert(proposal.found.key, 0.0);
            drawn.push(proposal.found.operator.show(&explorer.coordinates));
        }
    }
    Ok(drawn)
}

/// What several reports found, as one; the front is written to `emit`, if that is given.
///
/// # Errors
///
/// If there is none, or they are not of the same layers and runtime; or a file cannot be written.
pub fn join(spec: &Spec, reports: Vec<SearchReport>, emit: Option<&Path>) -> Result<SearchReport, Failure> {
    let mut reports = reports.into_iter();
    let mut all = reports.next().ok_or_else(|| Failure::new("there is no report to join"))?;
    for report in reports {
        let alike = |a: &SearchReport| (a.spec.clone(), a.runtime.clone(), a.threads);
        if alike(&report) != alike(&all) {
            let of = |a: &SearchReport| format!("{} with {}, {} threads", a.spec, a.runtime, a.threads);
            let failure = Failure::new(format!("reports differ: {}, and {}", of(&all), of(&report)));
            return Err(failure.hint("times of one search come from one runtime"));
        }
        let is_new = |formula: &String| all.timed.iter().all(|operated| operated.formula != *formula);
        let more: Vec<_> = report.timed.into_iter().filter(|operated| is_new(&operated.formula)).collect();
        all.timed.extend(more);
        all.seconds += report.seconds;
    }
    if all.spec != spec.name {
        return Err(Failure::new(format!("the reports are of {}, not of {}", all.spec, spec.name)));
    }
    let all = all.sorted();
    if let Some(folder) = emit {
        crate::synthesize::emit::make_folder(folder)?;
        crate::synthesize::emit::emit(folder, &all.front, &mut Explorer::new(spec, Filter::default()))?;
    }
    Ok(all)
}
