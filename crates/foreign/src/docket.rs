//! Judges many rules in parallel, each class of rules that are equal up to names once.

use std::collections::HashMap;

use regraft_ir::parallel;

use crate::algebra::algebra;
use crate::judge::judge;
use crate::judgement::Judgement;
use crate::rule::Rule;

/// Judges all rules with this many threads, in file order, like [`judge`]. The result does not
/// depend on the number of threads.
///
/// Before each rule, `before` receives the number of rules begun so far; if it returns false, the
/// rest is left out.
pub fn judge_all(rules: &[Rule], threads: usize, proofs: usize, before: &(dyn Fn(usize) -> bool + Sync)) -> Vec<Judgement> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let originals: Vec<usize> = rules.iter().enumerate().map(|(at, rule)| *first.entry(algebra(rule)).or_insert(at)).collect();
    let mut distinct = originals.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let judged = parallel::map_while(&distinct, threads, |begun, at| before(begun).then(|| judge(&rules[*at], proofs)));
    let done: HashMap<usize, Judgement> = distinct.into_iter().zip(judged).filter_map(|(at, judged)| Some((at, judged?))).collect();
    let copies = rules.iter().zip(&originals).enumerate().filter_map(|(at, (rule, original))| {
        let judgement = done.get(original)?.clone();
        Some(Judgement { number: rule.number, same_as: (*original != at).then_some(rules[*original].number), ..judgement })
    });
    copies.collect()
}
