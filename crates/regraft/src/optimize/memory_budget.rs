//! The memory that a run may take, and what fits into it.

use regraft_onnx::Model;

use crate::units::show_bytes;

/// Model sizes that a full run holds at its peak: four sessions in the final comparison, each with
/// its weights twice (as read, and packed for the kernels), plus the serialized candidates.
const SIZES: u64 = 10;
/// The same for the check of one region: its serialized form, and one session at a time.
const SIZES_OF_REGION: u64 = 6;
/// The same if the reference executor runs the original and the rewritten region in double
/// precision.
const SIZES_OF_REFERENCE: u64 = 16;
/// Bytes that do not grow with the weights: libraries, graph, rules, store.
const BASE: u64 = 256 << 20;
/// Share of the machine's available memory that a run takes by default.
const SHARE: f64 = 0.8;

/// What a run may take, and what the model at hand would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes that the run may take.
    pub limit: u64,
    /// Approximate bytes that a full run takes.
    pub need: u64,
}

impl MemoryBudget {
    /// The budget for a model, within `asked` bytes or the default share of the available memory.
    pub fn new(model: &Model, asked: Option<u64>) -> MemoryBudget {
        let limit = asked.or_else(|| available().map(|bytes| (bytes as f64 * SHARE) as u64)).unwrap_or(u64::MAX);
        MemoryBudget { limit, need: model.size().saturating_mul(SIZES).saturating_add(BASE) }
    }

    /// True if whole models cannot be run: nothing is measured then, and changed regions are
    /// checked one by one.
    pub fn is_tight(&self) -> bool {
        self.need > self.limit
    }

    /// What is skipped for lack of memory, for the user.
    pub fn explain(&self) -> String {
        let (need, limit) = (show_bytes(self.need), show_bytes(self.limit));
        format!(
            "a full run of this model takes about {need} of memory, {limit} are allowed (--memory allows more): nothing is measured, only \
             rewrites that gain under the price list are used, and each changed region is checked alone"
        )
    }

    /// True if a region with so many bytes of weights and values can be run.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes.saturating_mul(SIZES_OF_REGION).saturating_add(BASE) <= self.limit
    }

    /// True if the reference executor can run it too.
    pub fn fits_reference(&self, bytes: u64) -> bool {
        bytes.saturating_mul(SIZES_OF_REFERENCE).saturating_add(BASE) <= self.limit
    }
}

/// Bytes of memory still available without swapping, if the system reports them.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_decided_by_the_limit() {
        let budget = MemoryBudget { limit: 1 << 30, need: (1 << 30) + 1 };
        assert!(budget.is_tight());
        assert!(!MemoryBudget { need: 1 << 30, ..budget }.is_tight());
        let left = (budget.limit - BASE) / SIZES_OF_REGION;
        assert!(budget.fits(left) && !budget.fits(left + 1));
        assert!(!budget.fits_reference(left) && budget.fits_reference(left / 4));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_what_is_available() {
        assert!(available() > Some(1 << 20));
    }
}
