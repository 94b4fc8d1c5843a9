//! Pairs that compute the same from their inputs, but declare different interfaces.

use bytes::Bytes;
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto, TensorShapeProto, ValueInfoProto, type_proto};

use crate::generate::random::Random;

/// What is declared differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An input has another name.
    InputName,
    /// An output has another name.
    OutputName,
    /// Two inputs are swapped.
    InputOrder,
    /// Two outputs are swapped.
    OutputOrder,
    /// An input has another fixed size, or a fixed one instead of an open one.
    InputSize,
    /// An output declares a wrong size.
    OutputSize,
    /// An output declares another number of axes.
    OutputRank,
    /// An output declares another element type.
    OutputType,
    /// An input is missing.
    FewerInputs,
    /// There is one more input.
    MoreInputs,
    /// There is one more output.
    MoreOutputs,
    /// An input has a default value.
    Default,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 12] = [
        Kind::InputName,
        Kind::OutputName,
        Kind::InputOrder,
        Kind::OutputOrder,
        Kind::InputSize,
        Kind::OutputSize,
        Kind::OutputRank,
        Kind::OutputType,
        Kind::FewerInputs,
        Kind::MoreInputs,
        Kind::MoreOutputs,
        Kind::Default,
    ];
}

/// The model with another signature; `None` if it has nothing of that kind to change.
pub fn changed(model: &ModelProto, kind: Kind, random: &mut Random) -> Option<ModelProto> {
    let mut model = model.clone();
    let graph = model.graph.as_mut()?;
    match kind {
        Kind::InputName => {
            let at = random.below(graph.input.len());
            let old = graph.input.get(at)?.name().to_string();
            rename(graph, &old, "other");
            graph.input[at].name = Some("other".into());
        }
        Kind::OutputName => {
            let at = random.below(graph.output.len());
            let old = graph.output.get(at)?.name().to_string();
            rename(graph, &old, "other");
            graph.output[at].name = Some("other".into());
        }
        Kind::InputOrder if graph.input.len() > 1 => graph.input.rotate_left(1),
        Kind::OutputOrder if graph.output.len() > 1 => graph.output.rotate_left(1),
        Kind::InputOrder | Kind::OutputOrder => return None,
        Kind::InputSize => {
            let at = random.below(graph.input.len());
            let dim = shape(graph.input.get_mut(at)?)?.dim.last_mut()?;
            dim.value = match dim.value {
                Some(dimension::Value::DimValue(_)) => Some(dimension::Value::DimParam("Any".into())),
                _ => Some(dimension::Value::DimValue(random.int(2, 6))),
            };
        }
        Kind::OutputSize => *shape(graph.output.first_mut()?)? = sizes(&[random.int(2, 9)]),
        Kind::OutputRank => *shape(graph.output.first_mut()?)? = sizes(&[1, 1, 1, random.int(1, 4), 1, 1, 1]),
        Kind::OutputType => {
            let Some(type_proto::Value::TensorType(tensor)) = graph.output.first_mut()?.r#type.as_mut()?.value.as_mut() else {
                return None;
            };
            tensor.elem_type = Some(if tensor.elem_type() == 1 { 11 } else { 1 });
        }
        Kind::FewerInputs => {
            let read = |name: &str| graph.node.iter().any(|n| n.input.iter().any(|i| i == name));
            let at = graph.input.iter().position(|i| !read(i.name()))?;
            graph.input.remove(at);
        }
        Kind::MoreInputs => {
            let more = ValueInfoProto { name: Some("more".into()), ..graph.input.first()?.clone() };
            graph.input.push(more);
        }
        Kind::MoreOutputs => {
            let mut more = graph.output.first()?.clone();
            let mut node = graph.node.iter().find(|n| n.output.first().map(String::as_str) == more.name.as_deref())?.clone();
            node.output = vec!["more".into()];
            graph.node.push(node);
            more.name = Some("more".into());
            graph.output.push(more);
        }
        Kind::Default => {
            let at = random.below(graph.input.len());
            let input = graph.input.get_mut(at)?;
            let name = input.name.clone();
            let dims: Option<Vec<i64>> =
                shape(input)?.dim.iter().map(|d| if let Some(dimension::Value::DimValue(n)) = d.value { Some(n) } else { None }).collect();
            let dims = dims?;
            let Some(type_proto::Value::TensorType(tensor)) = &input.r#type.as_ref()?.value else { return None };
            let data_type = tensor.elem_type();
            let bytes = dims.iter().product::<i64>() as usize * regraft_ir::DType::from_onnx(data_type).size();
            let raw_data = Some(Bytes::from(vec![1; bytes]));
            graph.initializer.push(TensorProto { name, dims, data_type: Some(data_type), raw_data, ..TensorProto::default() });
        }
    }
    Some(model)
}

/// The declared shape of a value, created if missing.
fn shape(info: &mut ValueInfoProto) -> Option<&mut TensorShapeProto> {
    let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_mut()?.value.as_mut() else { return None };
    Some(tensor.shape.get_or_insert_default())
}

fn sizes(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|n| Dimension { value: Some(dimension::Value::DimValue(*n)), denotation: None }).collect();
    TensorShapeProto { dim }
}

/// Renames a value wherever it is read or defined, including bodies.
fn rename(graph: &mut GraphProto, old: &str, new: &str) {
    for node in &mut graph.node {
        for name in node.input.iter_mut().chain(&mut node.output).filter(|n| *n == old) {
            *name = new.into();
        }
        for body in node.attribute.iter_mut().filter_map(|a| a.g.as_mut()) {
            rename(body, old, new);
        }
    }
}
