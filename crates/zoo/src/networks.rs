//! The real architectures, one family per file.

pub(crate) mod alexnet;
pub(crate) mod bert;
pub(crate) mod char_cnn;
pub(crate) mod crnn;
pub(crate) mod diffusion;
pub(crate) mod gpt2;
pub(crate) mod head;
pub(crate) mod inception;
pub(crate) mod m18;
pub(crate) mod mobilenet_v2;
pub(crate) mod mobilenet_v3;
pub(crate) mod nasnet;
pub(crate) mod nasrnn;
pub(crate) mod nsnet2;
pub(crate) mod resnet;
pub(crate) mod resnext;
pub(crate) mod sample_cnn;
pub(crate) mod squeezenet;
pub(crate) mod sru;
pub(crate) mod vdcnn;
pub(crate) mod vgg;
pub(crate) mod vit;

use crate::builder::Value;

/// Names and values of the results of a network.
pub(crate) type Outputs = Vec<(String, Value)>;

/// A single result.
pub(crate) fn single(name: &str, value: Value) -> Outputs {
    vec![(name.to_owned(), value)]
}
