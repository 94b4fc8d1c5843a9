//! Exit codes.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, and every requested promise was met.
    Done = 0,
    /// Finished, but a promise was not met: `--min-speedup`, `--max-load`, `--max-memory` or
    /// `--require`, a result that the runtime refuses as it refuses the input, a difference found
    /// by `check`, a rule that is refuted, unproved, or not true as it stands.
    Unmet = 1,
    /// The user's mistake, an I/O error, or an internal error. Nothing was written.
    Failed = 2,
    /// Ctrl-C. `optimize` has written the best valid model found so far.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
