//! Who watches an enumeration.

/// Is told how it goes, and may stop it.
pub trait Observer {
    /// A step begins, or has come this far.
    fn step(&mut self, phase: &str, detail: &str);

    /// Whether to stop as soon as possible.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Watches nothing.
pub struct Unobserved;

impl Observer for Unobserved {
    fn step(&mut self, _: &str, _: &str) {}
}
