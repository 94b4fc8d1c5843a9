//! Work on every axiom, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use regraft_rules::Rule;

use crate::cli::console::Console;
use crate::cli::interrupt;
use crate::cli::progress::Progress;

/// What `work` makes of every axiom, in their order: of as many as are reached before Ctrl-C. `verb` names the work in the progress line.
pub fn each<R: Send>(axioms: &[&Rule], threads: usize, console: &Console, verb: &str, work: impl Fn(&Rule) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let progress = Mutex::new(Progress::new(console));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(axioms.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(axiom) = axioms.get(at).filter(|_| !interrupt::requested()) else { break };
                    if let Ok(mut progress) = progress.lock() {
                        progress.step(verb, &format!("{} of {}: {}", at + 1, axioms.len(), axiom.name));
                    }
                    let made = work(axiom);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, made));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}
