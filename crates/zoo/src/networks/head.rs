//! Heads shared by image classifiers.

use super::{Outputs, single};
use crate::builder::{Builder, Value};

/// Number of classes of ImageNet.
pub(crate) const CLASSES: i64 = 1000;

/// Mean of each channel, a dense layer with weights of this gain, and probabilities.
pub(crate) fn pooled_classifier(b: &mut Builder, name: &str, x: &Value, gain: f32) -> Outputs {
    let pooled = b.global_average_pool(x);
    let flat = b.flatten(&pooled);
    dense_classifier(b, name, &flat, gain)
}

/// A dense layer with weights of this gain, and probabilities.
pub(crate) fn dense_classifier(b: &mut Builder, name: &str, x: &Value, gain: f32) -> Outputs {
    let logits = b.dense(name, x, CLASSES, gain);
    probabilities(b, &logits)
}

/// Probabilities of logits.
pub(crate) fn probabilities(b: &mut Builder, logits: &Value) -> Outputs {
    let result = b.softmax(logits);
    single("probabilities", result)
}
