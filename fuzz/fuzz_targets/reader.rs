//! Any bytes as a model: read or refused, and what is read is written or refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use regraft_onnx::{Model, WriteOptions};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = Model::from_bytes(bytes.to_vec().into(), None) {
        let _ = model.write(model.graph(), &WriteOptions::default()).map(|written| written.to_bytes());
    }
});
