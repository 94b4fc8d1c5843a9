//! Limits imposed from outside: the core reads no clock.

/// Tells a search when to stop.
pub trait Budget {
    /// True when time is up or the user asked to stop.
    fn exhausted(&mut self) -> bool;
}

/// A number of checks: deterministic, for tests and for results that must repeat.
#[derive(Clone, Copy, Debug)]
pub struct Steps(pub u64);

impl Budget for Steps {
    fn exhausted(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

impl<F: FnMut() -> bool> Budget for F {
    fn exhausted(&mut self) -> bool {
        self()
    }
}
