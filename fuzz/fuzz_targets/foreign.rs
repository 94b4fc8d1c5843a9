//! Any bytes as rules of another optimizer: read and judged, or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use regraft_foreign::{Format, judge};

fuzz_target!(|bytes: &[u8]| {
    for (_, format) in Format::NAMES {
        if let Ok(rules) = format.read(bytes) {
            // One is enough: each is judged for itself.
            let _ = rules.first().map(|rule| judge(rule, 0));
        }
    }
});
