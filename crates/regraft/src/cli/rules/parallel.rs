//! Work on every rule, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use regraft_rules::Rule;

use crate::cli::console::Console;
use crate::cli::interrupt;
use crate::cli::progress::Progress;

/// What `work` makes of every rule: in their order, whatever the threads, and of as many as are reached before Ctrl-C. `verb` names the work in the
/// progress line.
pub fn each<R: Send>(rules: &[&Rule], threads: usize, console: &Console, verb: &str, work: impl Fn(&Rule) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = Mutex::new(Progress::new(console));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(rules.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(rule) = rules.get(at).filter(|_| !interrupt::requested()) else { break };
                    if let Ok(mut progress) = progress.lock() {
                        progress.step(verb, &format!("{} of {}: {}", at + 1, rules.len(), rule.name));
                    }
                    let made = work(rule);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, made));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}
