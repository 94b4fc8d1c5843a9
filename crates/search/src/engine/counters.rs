//! The amount of work the engine did.

/// Counters of the engine's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Patches applied.
    pub applied: u64,
    /// Patches undone.
    pub undone: u64,
    /// Anchors at which rules were matched.
    pub anchors: u64,
    /// Those of them whose surroundings were new, so that rules had to be matched one by one.
    pub learned: u64,
    /// Matches found.
    pub matches: u64,
}
