//! The graphs on which papers about graph substitution reported results, one family per file.
//!
//! They are simplified networks, some with mistakes; none is a fair stand-in for the architecture
//! it is named after. Convolutions have no bias, and there is no batch normalization except in
//! MobileNet-v2. A ReLU that those systems fuse into a convolution is a separate node here.

pub(crate) mod attention;
pub(crate) mod inception;
pub(crate) mod mobilenet;
pub(crate) mod nasnet;
pub(crate) mod nasrnn;
pub(crate) mod resnet;
pub(crate) mod squeezenet;
pub(crate) mod sru;
pub(crate) mod vgg;

use crate::builder::{Builder, Conv, Value};

/// Convolution and ReLU.
fn conv_relu(b: &mut Builder, name: &str, x: &Value, conv: Conv) -> Value {
    let y = b.conv(name, x, conv);
    b.relu(&y)
}
