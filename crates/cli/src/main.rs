//! The `regraft` command.

use std::process::ExitCode;

use regraft_cli::{Call, START_UP};
use regraft_runtime::{NO_TELEMETRY, Starter};

/// Searches make many small objects, and the reference executor large ones in turn: it takes a
/// fifth less time than the system's. The runtime keeps its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if std::env::var_os(NO_TELEMETRY).is_none() {
        // SAFETY: this process has one thread so far.
        unsafe { std::env::set_var(NO_TELEMETRY, "1") };
    }
    let starter = std::env::current_exe().ok().map(|program| Starter { program, arguments: vec![START_UP.into()] });
    regraft_cli::run(Call { arguments: std::env::args_os().collect(), starter }).into()
}
