//! Limits the work spent on one question.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Work between two checks of the stop flag, as a power of 2.
const PATIENCE: u32 = 8;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The work left to this thread. A count and not a time, so that answers are reproducible.
pub(crate) struct Fuel;

impl Fuel {
    /// Sets the budget.
    pub fn fill(amount: u64) {
        LEFT.set(if is_stopped() { 0 } else { amount });
    }

    /// Spends some of it; false if nothing is left.
    pub fn spend(amount: u64) -> bool {
        let left = LEFT.get();
        let rest = left.saturating_sub(amount);
        let stopped = rest >> PATIENCE != left >> PATIENCE && is_stopped();
        LEFT.set(if stopped { 0 } else { rest });
        left > amount && !stopped
    }
}

fn is_stopped() -> bool {
    STOP.with_borrow(|stop| stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)))
}

/// Runs `prove`, whose questions to the prover run out of work as soon as `stop` is set: whatever
/// is proved is valid, and whatever is not may have failed for that reason alone.
pub fn interruptible<T>(stop: &Arc<AtomicBool>, prove: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<AtomicBool>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            STOP.set(self.0.take());
        }
    }
    let _restore = Restore(STOP.replace(Some(stop.clone())));
    prove()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_it_is_stopped() {
        let stop = Arc::new(AtomicBool::new(false));
        interruptible(&stop, || {
            Fuel::fill(1 << 20);
            assert!(Fuel::spend(1 << 10));
            stop.store(true, Ordering::Relaxed);
            let steps = (0..1 << 20).take_while(|_| Fuel::spend(1)).count();
            assert!(steps < 1 << PATIENCE, "{steps} more steps");
            Fuel::fill(1 << 20);
            assert!(!Fuel::spend(1));
        });
        Fuel::fill(1 << 20);
        assert!(Fuel::spend(1 << 10));
    }
}
