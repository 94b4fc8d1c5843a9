//! Why rules could not be generated.

use std::path::{Path, PathBuf};

use regraft_rules::RuleError;

/// Why a generation failed. Each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// The specification file is wrong: its author's to fix.
    #[error(transparent)]
    Spec(#[from] RuleError),
    /// An operator of the specification has no value for operands that its type rule accepts: its
    /// author's to fix.
    #[error("operator `{operator}` cannot be evaluated under assignment {assignment}: {why}")]
    NoValue {
        /// Name of the operator.
        operator: String,
        /// Number of the assignment, from 1.
        assignment: usize,
        /// What the evaluator says.
        why: String,
    },
    /// More operators were requested than a graph may have.
    #[error("graphs have 1 to {most} operators, not {asked}")]
    Size {
        /// The requested number.
        asked: usize,
        /// The maximum.
        most: usize,
    },
    /// The table of terms, which stays in memory, is larger than the budget.
    #[error(
        "the terms of up to {size} operators need more than the {budget} bytes allowed; give more memory, or fewer operators or variables"
    )]
    Memory {
        /// Operators.
        size: usize,
        /// Bytes allowed.
        budget: u64,
    },
    /// A file of the work folder cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file of the work folder is damaged, or comes from another specification, size, seed or
    /// shard.
    #[error("{path}: {why}")]
    State {
        /// The file.
        path: PathBuf,
        /// What does not match.
        why: String,
    },
    /// The user asked to stop; the work so far is in the work folder.
    #[error("interrupted")]
    Interrupted,
}

impl DiscoverError {
    /// An error of the file system at `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DiscoverError + '_ {
        |source| DiscoverError::Io { path: path.to_path_buf(), source }
    }

    /// A file that does not match.
    pub(crate) fn state(path: &Path, why: impl Into<String>) -> DiscoverError {
        DiscoverError::State { path: path.to_path_buf(), why: why.into() }
    }
}
