//! Any text as a rule file: parsed or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use regraft_rules::{Library, parse};

fuzz_target!(|text: &str| {
    if let Ok(rules) = parse("fuzz.rules", text) {
        let _ = Library::new(rules);
    }
});
