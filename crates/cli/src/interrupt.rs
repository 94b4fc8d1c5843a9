//! Ctrl-C and the termination signals (SIGTERM, SIGHUP): the first asks the command to finish with
//! what it has, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::console;
use crate::exit::Exit;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Turns such signals into requests from now on. `promise` tells the user what happens next.
pub fn catch(promise: &'static str) {
    let handler = move || {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(Exit::Interrupted as i32);
        }
        console::line(&format!("regraft: interrupted: {promise} (Ctrl-C again ends at once)"));
    };
    // Where signals cannot be caught, they end the process: even then nothing is half-written.
    let _ = ctrlc::set_handler(handler);
}

/// True once a request arrived.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
