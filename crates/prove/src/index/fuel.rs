//! How much work one question may cost.

use std::cell::Cell;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Work that may still be done in this thread. A count and not a time, so that answers repeat.
pub(crate) struct Fuel;

impl Fuel {
    /// Sets what may be spent from now on.
    pub fn fill(amount: u64) {
        LEFT.set(amount);
    }

    /// Spends some; false if nothing is left.
    pub fn spend(amount: u64) -> bool {
        let left = LEFT.get();
        LEFT.set(left.saturating_sub(amount));
        left > amount
    }
}
