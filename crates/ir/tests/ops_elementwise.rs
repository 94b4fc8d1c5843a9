//! Element-wise operators, activations, softmax, reductions and casts: meaning, types, and ONNX round trips.

mod common;

use common::{f32s, op, round_trip};

#[test]
fn every_operator_survives_writing_and_reading() {
    assert_eq!(round_trip(&op("Add", &[]), &[f32s(&[2, 3]), f32s(&[3])]), (7..=21).collect::<Vec<_>>());
}
