//! A command that failed by what passes is run once more, in a process that knows nothing of it.

use std::path::PathBuf;

use crate::host::Call;

/// Set for a command that runs a second time.
const AGAIN: &str = "REGRAFT_AGAIN";

/// The folder that a command was called in; `None` if it runs a second time.
pub(crate) fn folder() -> Option<PathBuf> {
    if std::env::var_os(AGAIN).is_some() { None } else { std::env::current_dir().ok() }
}

/// Puts a new process in the place of this one, with the same call in that folder. Returns where
/// that is not possible.
#[cfg(unix)]
pub(crate) fn run(call: &Call, folder: PathBuf) {
    use std::os::unix::process::CommandExt;
    if let Some((program, first)) = Call::program(call.starter.as_ref()) {
        let mut command = std::process::Command::new(program);
        let _ = command.args(first).args(call.arguments.iter().skip(1)).current_dir(folder).env(AGAIN, "1").exec();
    }
}

#[cfg(not(unix))]
pub(crate) fn run(_: &Call, _: PathBuf) {}
