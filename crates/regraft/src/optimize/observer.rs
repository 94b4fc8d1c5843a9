//! What a run reports to its caller while it runs, and how the caller stops it.

/// The stages of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the model and loading the runtime.
    Load,
    /// Searching under the price list.
    Search,
    /// Measuring prices.
    Measure,
    /// Comparing whole models.
    Choose,
    /// Checking numerically.
    Check,
    /// Writing.
    Write,
}

impl Phase {
    /// Word for progress lines.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Search => "search",
            Phase::Measure => "measure",
            Phase::Choose => "choose",
            Phase::Check => "check",
            Phase::Write => "write",
        }
    }
}

/// Receives progress and answers whether to stop.
pub trait Observer {
    /// A stage begins, or moves on to something new.
    fn phase(&mut self, phase: Phase, detail: &str);
    /// True when the user asked to stop: the best valid model so far is written.
    fn interrupted(&self) -> bool;
}

/// Reports nothing, never stops.
pub struct Silent;

impl Observer for Silent {
    fn phase(&mut self, _: Phase, _: &str) {}
    fn interrupted(&self) -> bool {
        false
    }
}
