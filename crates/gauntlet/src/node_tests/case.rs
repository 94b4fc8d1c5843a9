//! A case as exported: a model, with inputs and expected outputs.

use std::path::Path;

use anyhow::{Context, Result};
use prost::Message;
use regraft_onnx::proto::{GraphProto, ModelProto, TensorProto, ValueInfoProto, type_proto};
use regraft_runtime::{HostTensor, read_tensor_proto};

/// A node test.
pub struct Case {
    /// Its name.
    pub name: String,
    /// The model.
    pub model: ModelProto,
    /// Inputs and expected outputs.
    pub sets: Vec<DataSet>,
}

/// Values of one run.
pub struct DataSet {
    /// One for each input of the graph, in order.
    pub inputs: Vec<Datum>,
    /// One for each output of the graph, in order.
    pub outputs: Vec<Datum>,
}

/// A value.
#[derive(Clone)]
pub struct Datum {
    /// The tensor in ONNX's form; `None` for a sequence, an optional or a map.
    pub proto: Option<TensorProto>,
    /// The tensor in the form to feed; `None` also for unsupported element types.
    pub host: Option<HostTensor>,
}

impl Case {
    /// Reads `folder/name`.
    pub fn read(folder: &Path, name: &str) -> Result<Case> {
        let here = folder.join(name);
        let bytes = std::fs::read(here.join("model.onnx")).with_context(|| here.display().to_string())?;
        let model = ModelProto::decode(bytes.as_slice()).with_context(|| here.display().to_string())?;
        let mut sets = Vec::new();
        let empty = GraphProto::default();
        let graph = model.graph.as_ref().unwrap_or(&empty);
        for number in 0.. {
            let data = here.join(format!("test_data_set_{number}"));
            if !data.is_dir() {
                break;
            }
            let values = |kind: &str, infos: &[ValueInfoProto]| -> Result<Vec<Datum>> {
                infos.iter().enumerate().map(|(at, info)| Datum::read(&data.join(format!("{kind}_{at}.pb")), info)).collect()
            };
            sets.push(DataSet { inputs: values("input", &graph.input)?, outputs: values("output", &graph.output)? });
        }
        Ok(Case { name: name.to_string(), model, sets })
    }
}

impl Datum {
    fn read(path: &Path, info: &ValueInfoProto) -> Result<Datum> {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        if !matches!(info.r#type.as_ref().and_then(|t| t.value.as_ref()), Some(type_proto::Value::TensorType(_))) {
            return Ok(Datum { proto: None, host: None });
        }
        let proto = TensorProto::decode(bytes.as_slice()).with_context(|| path.display().to_string())?;
        let host = read_tensor_proto(&bytes).ok().map(|named| named.tensor);
        Ok(Datum { proto: Some(proto), host })
    }
}
