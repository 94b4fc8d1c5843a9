//! Observers of an enumeration.

/// Receives progress reports, and may stop the enumeration.
pub trait Observer {
    /// A step begins, or has got this far.
    fn step(&mut self, phase: &str, detail: &str);

    /// Whether to stop as soon as possible.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Ignores everything.
pub struct Unobserved;

impl Observer for Unobserved {
    fn step(&mut self, _: &str, _: &str) {}
}
