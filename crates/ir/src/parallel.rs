//! Work on several threads, with results in the order of the items.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// Calls `work` with every item, on up to `threads` threads; the results are in the order of the
/// items.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_while(items, threads, |_, item| Some(work(item))).into_iter().flatten().collect()
}

/// Calls `work` with every item and its index, on up to `threads` threads. A thread that gets
/// `None` starts no further item. Results are at the indices of their items; `None` stands for
/// items that were not finished.
pub fn map_while<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(usize, &T) -> Option<R> + Sync) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = items.get(at).and_then(|item| work(at, item)) else { return done };
            done.push((at, result));
        }
    };
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let done = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for helper in helpers {
            done.extend(joined(helper));
        }
        done
    });
    for (at, result) in done {
        results[at] = Some(result);
    }
    results
}

/// What a thread gives; if it panicked, so does this one.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// How many threads the machine can run at once.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..1000).collect();
        let squares: Vec<u64> = items.iter().map(|n| n * n).collect();
        for threads in [0, 1, 2, 5] {
            assert_eq!(map(&items, threads, |n| n * n), squares, "{threads} threads");
        }
        assert!(map(&[0u8; 0], 4, |n| *n).is_empty());
    }

    #[test]
    fn nothing_is_begun_after_the_end() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [1, 3] {
            let results = map_while(&items, threads, |at, item| (at < 40).then_some(*item));
            let done: Vec<usize> = results.into_iter().flatten().collect();
            assert_eq!(done, items[..40], "{threads} threads");
        }
    }
}
