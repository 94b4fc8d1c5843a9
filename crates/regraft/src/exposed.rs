//! A model with inner values as further outputs, to compare what the declared outputs hide.

use std::collections::HashMap;

use regraft_ir::{Graph, ValueId};
use regraft_onnx::proto::{TypeProto, ValueInfoProto, type_proto};
use regraft_onnx::{WriteError, Written};

/// A written `graph` as a model file whose outputs are the declared ones and then `values`, in
/// order; `None` if a value has no name in the file (it was folded away) or already is an output.
pub fn exposed(written: &Written, graph: &Graph, values: &[ValueId]) -> Result<Option<Vec<u8>>, WriteError> {
    let mut outputs = Vec::new();
    for value in values {
        let name = written.values.iter().filter(|(_, v)| *v == value).map(|(name, _)| name).min();
        let (Some(name), Some(ty)) = (name, graph.ty(*value)) else { return Ok(None) };
        let tensor = type_proto::Tensor { elem_type: Some(ty.dtype.to_onnx()), shape: None };
        outputs.push(ValueInfoProto {
            name: Some(name.clone()),
            r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() }),
            ..ValueInfoProto::default()
        });
    }
    let mut written = Written { proto: written.proto.clone(), values: HashMap::new(), ..*written };
    let Some(proto) = written.proto.graph.as_mut() else { return Ok(None) };
    if outputs.iter().any(|o| proto.output.iter().any(|known| known.name == o.name)) {
        return Ok(None);
    }
    proto.output.extend(outputs);
    written.to_bytes().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_onnx::{Model, WriteOptions};
    use regraft_zoo::Options;

    #[test]
    fn values_become_outputs_of_the_file() {
        let proto = regraft_zoo::build("paper-resnet-n2", &Options::default()).expect("it is in the zoo");
        let model = Model::from_proto(proto).expect("a sound model");
        let graph = model.graph();
        let written = model.write(graph, &WriteOptions::default()).expect("it can be written");
        let last = graph.outputs()[0].value;
        let inner = graph.node(last.node).inputs[0];
        let bytes = exposed(&written, graph, &[inner]).expect("it can be written").expect("the value is there");
        let again = Model::from_bytes(bytes.into(), None).expect("a sound model");
        assert_eq!(again.graph().outputs().len(), 2);
        assert_eq!(again.graph().ty(again.graph().outputs()[1].value), graph.ty(inner));
        assert_eq!(exposed(&written, graph, &[last]).expect("it can be written"), None);
    }
}
