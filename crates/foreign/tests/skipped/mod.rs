//! Tests that lack a prerequisite report so: in the output of `cargo test -- --nocapture`, and in
//! the file named by `REGRAFT_SKIPPED`, whose lines `scripts/test.sh` counts.

use std::io::Write;

/// Reports that the test of this thread is skipped, and why.
pub fn skipped(needs: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {} (needs {needs})", thread.name().unwrap_or(env!("CARGO_CRATE_NAME")));
    println!("{line}");
    let Some(path) = std::env::var_os("REGRAFT_SKIPPED") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    // In one piece: others write at the same time.
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
