//! Work on every rule, on several threads.

use std::sync::{Mutex, PoisonError};

use regraft_ir::parallel::map_while;
use regraft_rules::Rule;

use crate::console::Console;
use crate::interrupt;
use crate::progress::Progress;

/// The results of `work` for every rule: in order, whatever the number of threads, for as many as
/// are reached before Ctrl-C. `verb` names the work in the progress line.
pub fn each<R: Send>(rules: &[&Rule], threads: usize, console: &Console, verb: &str, work: impl Fn(&Rule) -> R + Sync) -> Vec<R> {
    let progress = Mutex::new(Progress::new(console));
    let made = map_while(rules, threads, |at, rule| {
        if interrupt::requested() {
            return None;
        }
        let text = format!("{} of {}: {}", at + 1, rules.len(), rule.name);
        progress.lock().unwrap_or_else(PoisonError::into_inner).step(verb, &text);
        Some(work(rule))
    });
    made.into_iter().flatten().collect()
}
