//! Failures as users see them: cause, place, hint.
//!
//! Errors of lower crates become [`Failure`]s at the boundary of this one; any remedy they know
//! becomes the hint.

use std::fmt;

/// Why a command failed: the user's input, the file system, or a bug in Regraft. Exit code 2.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong, and where, in one line.
    pub cause: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// Whether the same command may well succeed in another process.
    pub passes: bool,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(cause: impl fmt::Display) -> Failure {
        Failure { cause: one_line(&cause.to_string()), hint: None, passes: false }
    }

    /// Adds how to fix it.
    pub fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(one_line(&hint.to_string()));
        self
    }
}

/// Library messages contain line breaks; a user gets one line.
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
        let text = error.to_string();
        let Some(hint) = error.hint() else { return Failure::new(text) };
        Failure::new(text.strip_suffix(&format!("; hint: {hint}")).unwrap_or(&text)).hint(hint)
    }
}

impl From<regraft_certify::CertifyError> for Failure {
    fn from(error: regraft_certify::CertifyError) -> Failure {
        use regraft_certify::CertifyError as E;
        match error {
            E::Load(error) => error.into(),
            E::Read { .. } => Failure::new(error).hint("check the path"),
            E::Version { .. } => {
                Failure::new(error).hint("use the version of regraft that wrote it, or check without it: --no-certificate")
            }
            _ => Failure::new(error),
        }
    }
}

impl From<regraft_onnx::WriteError> for Failure {
    fn from(error: regraft_onnx::WriteError) -> Failure {
        let failure = Failure::new(&error);
        match error {
            regraft_onnx::WriteError::Io { .. } => failure.hint("check the path, and whether the disk is full"),
            _ => failure,
        }
    }
}

impl From<regraft_runtime::RuntimeError> for Failure {
    fn from(error: regraft_runtime::RuntimeError) -> Failure {
        use regraft_runtime::RuntimeError as E;
        let failure = Failure::new(&error);
        match error {
            E::Library(error) => error.into(),
            E::Profile { .. } | E::OptimizedGraph { .. } | E::Io { .. } => {
                failure.hint("is the disk full? the runtime writes to the temporary folder, which TMPDIR names")
            }
            _ => failure,
        }
    }
}

impl From<regraft_runtime::LibraryError> for Failure {
    fn from(error: regraft_runtime::LibraryError) -> Failure {
        let text = error.to_string();
        // The remedy is the last part of each message.
        let failure = match text.rsplit_once("; ") {
            Some((cause, remedy)) => Failure::new(cause).hint(remedy),
            None => Failure::new(text),
        };
        Failure { passes: error.passes(), ..failure }
    }
}

impl From<regraft_runtime::StoreError> for Failure {
    fn from(error: regraft_runtime::StoreError) -> Failure {
        Failure::new(error).hint("name another store with --cost-store or REGRAFT_COST_STORE")
    }
}

impl From<regraft_cost::layout::TargetError> for Failure {
    fn from(error: regraft_cost::layout::TargetError) -> Failure {
        Failure::new(error).hint("docs/guide/layouts.md says how a target is described")
    }
}

impl From<regraft_rules::RuleError> for Failure {
    fn from(error: regraft_rules::RuleError) -> Failure {
        let failure = Failure::new(format!("{}:{}:{}: {}", error.file, error.line, error.column, error.message));
        if error.hint.is_empty() { failure } else { failure.hint(error.hint) }
    }
}

impl From<regraft_zoo::ZooError> for Failure {
    fn from(error: regraft_zoo::ZooError) -> Failure {
        Failure::new(error).hint("`regraft zoo list` names all models")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_with_its_hint_at_the_end() {
        let failure = Failure::new("cannot\n  read  it").hint("try\nagain");
        assert_eq!(failure.to_string(), "cannot read it (hint: try again)");
    }

    #[test]
    fn hints_of_errors_below_are_not_said_twice() {
        let Err(error) = regraft_onnx::Model::read("/no/such/model.onnx") else { panic!("there is no such file") };
        let failure = Failure::from(error);
        assert_eq!(failure.to_string().matches("hint").count(), 1, "{failure}");
        assert!(!failure.cause.contains("hint") && failure.cause.contains("/no/such/model.onnx"), "{failure}");
    }

    #[test]
    fn rule_errors_keep_their_place() {
        let Err(error) = regraft_rules::parse("my.rules", "(rule a (relu ?x))") else { panic!("the rule has no target") };
        let failure = Failure::from(error);
        assert!(failure.cause.starts_with("my.rules:1:1: "), "{failure}");
        assert!(failure.hint.is_some());
    }
}
