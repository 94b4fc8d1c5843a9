//! Failures as people see them: cause, place, hint.

use std::fmt;

/// Why a command could not do its work: the user's input, the file system, or a defect of Regraft. Exit code 2.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong, and where, in one line.
    pub cause: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with no hint.
    pub fn new(cause: impl fmt::Display) -> Failure {
        Failure { cause: one_line(&cause.to_string()), hint: None }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }
}

/// Libraries put line breaks into their messages; a user reads one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<regraft_onnx::LoadError> for Failure {
    fn from(error: regraft_onnx::LoadError) -> Failure {
        let failure = Failure::new(&error);
        // The error prints its own hint where it has one.
        failure
    }
}

impl From<regraft_runtime::RuntimeError> for Failure {
    fn from(error: regraft_runtime::RuntimeError) -> Failure {
        Failure::new(error)
    }
}

impl From<regraft_runtime::StoreError> for Failure {
    fn from(error: regraft_runtime::StoreError) -> Failure {
        Failure::new(error).hint("name another store with --cost-store or REGRAFT_COST_STORE")
    }
}

impl From<regraft_rules::RuleError> for Failure {
    fn from(error: regraft_rules::RuleError) -> Failure {
        Failure::new(error)
    }
}

impl From<regraft_zoo::ZooError> for Failure {
    fn from(error: regraft_zoo::ZooError) -> Failure {
        Failure::new(error).hint("`regraft zoo list` names all models")
    }
}
