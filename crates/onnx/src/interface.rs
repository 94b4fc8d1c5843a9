//! What a serialized model declares, without decoding what it holds.

use std::path::Path;

use prost::Message;

use crate::mapped;
use crate::proto::ValueInfoProto;

/// Declared inputs and outputs of a serialized model. Its nodes and weights are skipped, not
/// decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// Inputs that callers feed, in order; parameters of old models are not among them.
    pub inputs: Vec<ValueInfoProto>,
    /// Outputs, in order.
    pub outputs: Vec<ValueInfoProto>,
}

// The fields of `ModelProto`, `GraphProto` and `TensorProto` that matter here, under their numbers.
#[derive(Clone, PartialEq, Message)]
struct ModelHead {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphHead>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphHead {
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorHead>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorHead {
    #[prost(string, optional, tag = "8")]
    name: Option<String>,
}

impl Interface {
    /// Of a model in memory.
    ///
    /// # Errors
    ///
    /// It is not a serialized model.
    pub fn of(bytes: &[u8]) -> Result<Interface, prost::DecodeError> {
        let graph = ModelHead::decode(bytes)?.graph.unwrap_or_default();
        let presets: std::collections::HashSet<&str> = graph.initializer.iter().map(TensorHead::name).collect();
        let inputs = graph.input.iter().filter(|input| !presets.contains(input.name())).cloned().collect();
        Ok(Interface { inputs, outputs: graph.output })
    }

    /// Of a model file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a serialized model.
    pub fn read(path: &Path) -> std::io::Result<Interface> {
        let bytes = mapped::map(path)?;
        let interface = Interface::of(&bytes).map_err(std::io::Error::other);
        mapped::release(&bytes);
        interface
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{GraphProto, ModelProto, TensorProto};

    #[test]
    fn names_are_found_and_parameters_left_out() {
        let value = |name: &str| ValueInfoProto { name: Some(name.into()), ..Default::default() };
        let graph = GraphProto {
            initializer: vec![TensorProto { name: Some("w".into()), ..Default::default() }],
            input: vec![value("x"), value("w")],
            output: vec![value("y")],
            ..Default::default()
        };
        let bytes = ModelProto { graph: Some(graph), ..Default::default() }.encode_to_vec();
        let interface = Interface::of(&bytes).unwrap();
        assert_eq!(interface.inputs, [value("x")]);
        assert_eq!(interface.outputs, [value("y")]);
        assert!(Interface::of(&bytes[..bytes.len() - 1]).is_err());
    }
}
