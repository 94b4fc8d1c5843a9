//! The light models of the Python package `onnx`: real networks with constant-filled weights, at a
//! batch of one.
//!
//! With such weights, the input of the last softmax has ten digits, and rounding decides the
//! outputs. So they get random weights, and their batch is opened: where inputs and outputs declare
//! it, and in the target shapes of `Reshape`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto};
use regraft_runtime::{DType, Fill, FillOptions, HostTensor, InputSpec, fill_inputs};

use crate::zoo::Slot;

/// Name of the open size.
const SYMBOL: &str = "N";

/// Model files in a folder, or those of the Python package in the virtual environment.
pub fn find(folder: Option<&Path>) -> Result<Vec<PathBuf>> {
    let Some(folder) = folder.map(Path::to_path_buf).or_else(crate::python::light_models) else {
        println!("no light models: the Python package onnx is not installed (name a folder with --lights)");
        return Ok(Vec::new());
    };
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "onnx")).collect();
    paths.sort();
    Ok(paths)
}

/// Opens the batch and draws the weights; returns the inputs to feed.
pub fn open(proto: &mut ModelProto, seed: u64) -> Vec<Slot> {
    // Before IR version 4, weights are listed among the inputs.
    let listed = proto.ir_version() < 4;
    let Some(graph) = &mut proto.graph else { return Vec::new() };
    let known = graph.initializer.len();
    draw_weights(graph, seed);
    if listed {
        let weights: Vec<ValueInfoProto> = graph.initializer[known..].iter().map(declaration).collect();
        graph.input.extend(weights);
    }
    open_reshapes(graph);
    graph.value_info.clear();
    let parameters: Vec<String> = graph.initializer.iter().map(|t| t.name().to_string()).collect();
    let mut slots = Vec::new();
    for input in graph.input.iter_mut().filter(|i| !parameters.iter().any(|p| p == i.name())) {
        let rest = open_first(input);
        slots.push(Slot { name: input.name().to_string(), dtype: DType::F32, rest, below: None });
    }
    for output in &mut graph.output {
        open_first(output);
    }
    slots
}

/// Replaces every constant-filled weight by random values: with the usual spread for a filter or a
/// matrix, and positive for a vector, which may be a variance.
fn draw_weights(graph: &mut GraphProto, seed: u64) {
    let shapes: HashMap<String, Vec<i64>> = graph.initializer.iter().map(|t| (t.name().to_string(), integers(t))).collect();
    let mut weights = Vec::new();
    graph.node.retain(|node| {
        let shape = node.input.first().and_then(|name| shapes.get(name));
        let (Some(shape), Some(name), "ConstantOfShape") = (shape, node.output.first(), node.op_type()) else { return true };
        match weight(name, shape, seed) {
            Some(weight) => weights.push(weight),
            None => return true,
        }
        false
    });
    graph.initializer.extend(weights);
}

fn weight(name: &str, shape: &[i64], seed: u64) -> Option<TensorProto> {
    let sizes: Vec<usize> = shape.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
    let spec = InputSpec { name: name.to_string(), dtype: DType::F32, shape: sizes };
    let drawn = fill_inputs(Fill::Normal, &[spec], &FillOptions { seed, ..FillOptions::default() }).ok()?;
    let fan_in = shape.iter().skip(1).product::<i64>().max(1) as f32;
    let scale = (2.0 / fan_in).sqrt();
    let value = |v: f64| if shape.len() < 2 { (v as f32).abs() * 0.2 + 0.5 } else { v as f32 * scale };
    let raw: Vec<u8> = drawn.get(name).map(HostTensor::to_f64)?.into_iter().flat_map(|v| value(v).to_le_bytes()).collect();
    Some(TensorProto {
        name: Some(name.to_string()),
        dims: shape.to_vec(),
        data_type: Some(1),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    })
}

fn declaration(tensor: &TensorProto) -> ValueInfoProto {
    let dim = |size: &i64| Dimension { value: Some(dimension::Value::DimValue(*size)), denotation: None };
    let shape = TensorShapeProto { dim: tensor.dims.iter().map(dim).collect() };
    let value = type_proto::Value::TensorType(type_proto::Tensor { elem_type: tensor.data_type, shape: Some(shape) });
    let ty = TypeProto { value: Some(value), denotation: None };
    ValueInfoProto { name: tensor.name.clone(), r#type: Some(ty), ..ValueInfoProto::default() }
}

/// Integers of a tensor, whichever field stores them.
fn integers(tensor: &TensorProto) -> Vec<i64> {
    if tensor.data_type() != 7 {
        return Vec::new();
    }
    let word = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap_or_default());
    tensor.raw_data.as_ref().map_or_else(|| tensor.int64_data.clone(), |raw| raw.chunks_exact(8).map(word).collect())
}

/// Makes target shapes that begin with a batch of one accept any batch.
fn open_reshapes(graph: &mut GraphProto) {
    let targets: Vec<String> = graph.node.iter().filter(|n| n.op_type() == "Reshape").filter_map(|n| n.input.get(1).cloned()).collect();
    for tensor in graph.initializer.iter_mut().filter(|t| targets.iter().any(|name| name == t.name())) {
        let mut sizes = integers(tensor);
        if sizes.first() == Some(&1) && sizes.iter().all(|d| *d > 0) {
            sizes[0] = -1;
            tensor.int64_data.clear();
            tensor.raw_data = Some(sizes.iter().flat_map(|d| d.to_le_bytes()).collect());
        }
    }
}

/// The sizes after the first, which becomes a symbol.
fn open_first(info: &mut ValueInfoProto) -> Vec<usize> {
    let Some(type_proto::Value::TensorType(tensor)) = info.r#type.as_mut().and_then(|t| t.value.as_mut()) else { return Vec::new() };
    let Some(shape) = &mut tensor.shape else { return Vec::new() };
    let size = |value: &Option<dimension::Value>| match value {
        Some(dimension::Value::DimValue(n)) => *n as usize,
        _ => 1,
    };
    let rest = shape.dim.iter().skip(1).map(|d| size(&d.value)).collect();
    if let Some(first) = shape.dim.first_mut() {
        first.value = Some(dimension::Value::DimParam(SYMBOL.into()));
    }
    rest
}

#[cfg(test)]
mod tests {
    use regraft_onnx::Signature;
    use regraft_zoo::{Options, Weights};

    use super::*;

    #[test]
    fn batches_are_opened() {
        let options = Options { weights: Weights::Zeros, ..Options::default() };
        let Ok(mut proto) = regraft_zoo::build("squeezenet-1.1", &options) else { panic!("the zoo has it") };
        let slots = open(&mut proto, 0);
        assert_eq!(slots.iter().map(|s| s.rest.clone()).collect::<Vec<_>>(), [[3, 224, 224]]);
        let signature = Signature::of(&proto);
        assert!(signature.inputs.iter().chain(&signature.outputs).all(|s| s.sizes.as_ref().is_some_and(|d| d[0] == SYMBOL)));
    }

    #[test]
    fn weights_are_drawn_once_and_reshapes_follow_the_batch() {
        let ints = |name: &str, values: &[i64]| TensorProto {
            name: Some(name.into()),
            data_type: Some(7),
            dims: vec![values.len() as i64],
            int64_data: values.to_vec(),
            ..TensorProto::default()
        };
        let node = |op: &str, inputs: &[&str], output: &str| regraft_onnx::proto::NodeProto {
            op_type: Some(op.into()),
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.into()],
            ..Default::default()
        };
        let mut graph = GraphProto {
            node: vec![node("ConstantOfShape", &["s"], "w"), node("Reshape", &["x", "t"], "y"), node("Reshape", &["x", "u"], "z")],
            initializer: vec![ints("s", &[2, 3]), ints("t", &[1, 6]), ints("u", &[1, -1])],
            ..GraphProto::default()
        };
        draw_weights(&mut graph, 7);
        open_reshapes(&mut graph);
        assert_eq!(graph.node.len(), 2);
        let find = |name: &str| graph.initializer.iter().find(|t| t.name() == name).map(integers);
        assert_eq!((find("t"), find("u")), (Some(vec![-1, 6]), Some(vec![1, -1])));
        let drawn = graph.initializer.iter().find(|t| t.name() == "w").and_then(|t| t.raw_data.clone());
        assert_eq!(drawn.as_ref().map(|raw| raw.len()), Some(24));
        assert!(drawn.is_some_and(|raw| raw[..4] != raw[4..8]));
    }
}
