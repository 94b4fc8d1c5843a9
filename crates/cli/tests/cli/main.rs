//! The built command on small models: what it prints, what it writes, and how it ends.
//!
//! Tests that need ONNX Runtime are skipped, with a message, where it is not installed; with
//! `REGRAFT_REQUIRE_ONNXRUNTIME` in the environment they fail instead.

#[cfg(target_os = "linux")]
mod again;
mod arrivals;
mod bad_input;
mod bench;
mod certificate;
mod check;
mod cost;
mod egraph;
mod explain;
mod facts;
mod farm;
mod freeze;
#[cfg(unix)]
mod messages;
mod models;
mod optimize;
mod policy;
mod recorded;
mod report;
mod rules;
mod run;
#[path = "../../../foreign/tests/skipped/mod.rs"]
mod skipped;
mod spellings;
mod synthesize;
mod usage;
mod zoo;
