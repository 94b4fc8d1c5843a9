//! Small models.

use prost::Message;
use regraft_onnx::proto::tensor_proto::{DataLocation, DataType};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto::AttributeType, type_proto,
};

/// A model under construction, at opset 17.
#[derive(Clone)]
pub struct Builder(pub ModelProto);

pub fn value(name: &str, dims: &[&str]) -> ValueInfoProto {
    let dim = |d: &&str| Dimension {
        value: Some(d.parse().map_or_else(|_| dimension::Value::DimParam((*d).into()), dimension::Value::DimValue)),
        ..Dimension::default()
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(DataType::Float as i32), shape: Some(shape) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}

pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    NodeProto {
        op_type: Some(op.into()),
        name: Some(format!("{op}_{}", outputs[0])),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

impl Builder {
    pub fn new() -> Builder {
        Builder(ModelProto {
            ir_version: Some(8),
            opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
            graph: Some(GraphProto { name: Some("main".into()), ..GraphProto::default() }),
            ..ModelProto::default()
        })
    }

    pub fn graph(&mut self) -> &mut GraphProto {
        self.0.graph.as_mut().expect("it was made with one")
    }

    pub fn input(mut self, name: &str, dims: &[&str]) -> Builder {
        self.graph().input.push(value(name, dims));
        self
    }

    pub fn output(mut self, name: &str, dims: &[&str]) -> Builder {
        self.graph().output.push(value(name, dims));
        self
    }

    /// Weights between -0.5 and 0.5 that depend on the name.
    pub fn weight(mut self, name: &str, dims: &[i64]) -> Builder {
        let mut state = name.bytes().fold(1u32, |s, b| s.wrapping_mul(31).wrapping_add(u32::from(b)));
        let count: i64 = dims.iter().product();
        let bytes = (0..count).flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (f64::from(state >> 8) as f32 / (1 << 24) as f32 - 0.5).to_le_bytes()
        });
        let raw = bytes.collect::<Vec<u8>>().into();
        self.graph().initializer.push(TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(DataType::Float as i32),
            raw_data: Some(raw),
            ..TensorProto::default()
        });
        self
    }

    /// A list of indices or sizes.
    pub fn indices(mut self, name: &str, values: &[i64]) -> Builder {
        self.graph().initializer.push(TensorProto {
            name: Some(name.into()),
            dims: vec![values.len() as i64],
            data_type: Some(DataType::Int64 as i32),
            int64_data: values.to_vec(),
            ..TensorProto::default()
        });
        self
    }

    pub fn node(mut self, op: &str, inputs: &[&str], outputs: &[&str]) -> Builder {
        self.graph().node.push(node(op, inputs, outputs));
        self
    }

    /// A node in a domain of its own, which the model then imports.
    pub fn foreign(mut self, domain: &str, op: &str, inputs: &[&str], outputs: &[&str]) -> Builder {
        let node = NodeProto { domain: Some(domain.into()), ..node(op, inputs, outputs) };
        self.graph().node.push(node);
        self.0.opset_import.push(OperatorSetIdProto { domain: Some(domain.into()), version: Some(1) });
        self
    }

    /// Defines `domain.Twice(a) = a + a`.
    pub fn function(mut self, domain: &str) -> Builder {
        self.0.functions.push(FunctionProto {
            name: Some("Twice".into()),
            domain: Some(domain.into()),
            input: vec!["a".into()],
            output: vec!["b".into()],
            node: vec![node("Add", &["a", "a"], &["b"])],
            opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
            ..FunctionProto::default()
        });
        self
    }

    /// Gives the last node an integer attribute.
    pub fn int(mut self, name: &str, value: i64) -> Builder {
        let attribute = AttributeProto {
            name: Some(name.into()),
            i: Some(value),
            r#type: Some(AttributeType::Int as i32),
            ..AttributeProto::default()
        };
        self.graph().node.last_mut().expect("a node").attribute.push(attribute);
        self
    }

    /// Gives the last node an attribute that is a list of integers.
    pub fn ints(mut self, name: &str, values: &[i64]) -> Builder {
        let attribute = AttributeProto {
            name: Some(name.into()),
            ints: values.to_vec(),
            r#type: Some(AttributeType::Ints as i32),
            ..AttributeProto::default()
        };
        self.graph().node.last_mut().expect("a node").attribute.push(attribute);
        self
    }

    /// Moves the first initializer's data out of the model; returns the bytes for the data file.
    pub fn external(mut self, file: &str) -> (Builder, Vec<u8>) {
        let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
        let tensor = &mut self.graph().initializer[0];
        let bytes = tensor.raw_data.take().expect("it has data").to_vec();
        tensor.data_location = Some(DataLocation::External as i32);
        tensor.external_data = vec![entry("location", file), entry("offset", "0"), entry("length", &bytes.len().to_string())];
        (self, bytes)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }
}

/// Two linear layers and a softmax; `rows` is a number or a symbol.
pub fn mlp(rows: &str) -> Builder {
    Builder::new()
        .input("x", &[rows, "16"])
        .weight("w", &[16, 32])
        .weight("b", &[32])
        .weight("v", &[32, 8])
        .node("MatMul", &["x", "w"], &["h"])
        .node("Add", &["h", "b"], &["g"])
        .node("Relu", &["g"], &["r"])
        .node("MatMul", &["r", "v"], &["s"])
        .node("Softmax", &["s"], &["y"])
        .int("axis", -1)
        .output("y", &[rows, "8"])
}

/// The same, written in other words: the layers' order of definition, a duplicate, a dead node,
/// other names inside.
pub fn mlp_respelled() -> Builder {
    Builder::new()
        .input("x", &["4", "16"])
        .weight("v", &[32, 8])
        .weight("b", &[32])
        .weight("w", &[16, 32])
        .node("MatMul", &["x", "w"], &["h1"])
        .node("MatMul", &["x", "w"], &["h2"])
        .node("Add", &["b", "h1"], &["g"])
        .node("Add", &["b", "h2"], &["unread"])
        .node("Relu", &["g"], &["r"])
        .node("MatMul", &["r", "v"], &["s"])
        .node("Softmax", &["s"], &["y"])
        .int("axis", 1)
        .output("y", &["4", "8"])
}

/// Three convolutions with batch normalization spelled as scale and shift, and a chain of
/// activations: much to rewrite.
pub fn convolutional() -> Builder {
    let mut model = Builder::new().input("x", &["1", "8", "24", "24"]);
    let mut at = "x".to_string();
    for (layer, channels) in [(1, 8), (2, 16), (3, 16)] {
        let name = |what: &str| format!("{what}{layer}");
        model = model
            .weight(&name("w"), &[16, channels, 3, 3])
            .weight(&name("scale"), &[16, 1, 1])
            .weight(&name("shift"), &[16, 1, 1])
            .node("Conv", &[&at, &name("w")], &[&name("c")])
            .node("Mul", &[&name("c"), &name("scale")], &[&name("m")])
            .node("Add", &[&name("m"), &name("shift")], &[&name("a")])
            .node("Relu", &[&name("a")], &[&name("r")])
            .node("Relu", &[&name("r")], &[&name("q")]);
        at = name("q");
    }
    model.node("Identity", &[&at], &["y"]).output("y", &["1", "16", "18", "18"])
}

/// Two products of one operand, which are one product.
pub fn twin_products(model: Builder, x: &str, result: &str) -> Builder {
    let (p, q) = (format!("{result}_p"), format!("{result}_q"));
    model.node("MatMul", &[x, "w"], &[&p]).node("MatMul", &[x, "v"], &[&q]).node("Add", &[&p, &q], &[result])
}

/// The weights of [`twin_products`].
pub fn weights(model: Builder) -> Builder {
    model.weight("w", &[384, 384]).weight("v", &[384, 384])
}
