//! A walk over the raw protobuf fields: finds truncated messages and fields that the schema does
//! not know, without copying anything.

use crate::error::LoadFault;

/// What a field number holds: another message of the schema, or bytes and numbers.
type Fields = &'static [(u32, &'static str, Option<Kind>)];

/// The messages of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Segment,
    SparseTensor,
    ValueInfo,
    Type,
    TypeTensor,
    TypeSequence,
    TypeMap,
    TypeOptional,
    TypeSparse,
    TypeOpaque,
    Shape,
    Dimension,
    Entry,
    Annotation,
    Training,
    Function,
    Opset,
    DeviceConfiguration,
    NodeDevice,
    Sharding,
    ShardedDim,
    SimpleShardedDim,
    IntIntList,
}

impl Kind {
    /// All messages with their names in the schema.
    #[cfg(test)]
    pub(crate) const ALL: &'static [(Kind, &'static str)] = &[
        (Kind::Model, "onnx.ModelProto"),
        (Kind::Graph, "onnx.GraphProto"),
        (Kind::Node, "onnx.NodeProto"),
        (Kind::Attribute, "onnx.AttributeProto"),
        (Kind::Tensor, "onnx.TensorProto"),
        (Kind::Segment, "onnx.TensorProto.Segment"),
        (Kind::SparseTensor, "onnx.SparseTensorProto"),
        (Kind::ValueInfo, "onnx.ValueInfoProto"),
        (Kind::Type, "onnx.TypeProto"),
        (Kind::TypeTensor, "onnx.TypeProto.Tensor"),
        (Kind::TypeSequence, "onnx.TypeProto.Sequence"),
        (Kind::TypeMap, "onnx.TypeProto.Map"),
        (Kind::TypeOptional, "onnx.TypeProto.Optional"),
        (Kind::TypeSparse, "onnx.TypeProto.SparseTensor"),
        (Kind::TypeOpaque, "onnx.TypeProto.Opaque"),
        (Kind::Shape, "onnx.TensorShapeProto"),
        (Kind::Dimension, "onnx.TensorShapeProto.Dimension"),
        (Kind::Entry, "onnx.StringStringEntryProto"),
        (Kind::Annotation, "onnx.TensorAnnotation"),
        (Kind::Training, "onnx.TrainingInfoProto"),
        (Kind::Function, "onnx.FunctionProto"),
        (Kind::Opset, "onnx.OperatorSetIdProto"),
        (Kind::DeviceConfiguration, "onnx.DeviceConfigurationProto"),
        (Kind::NodeDevice, "onnx.NodeDeviceConfigurationProto"),
        (Kind::Sharding, "onnx.ShardingSpecProto"),
        (Kind::ShardedDim, "onnx.ShardedDimProto"),
        (Kind::SimpleShardedDim, "onnx.SimpleShardedDimProto"),
        (Kind::IntIntList, "onnx.IntIntListEntryProto"),
    ];

    pub(crate) fn fields(self) -> Fields {
        match self {
            Kind::Model => &[
                (1, "ir_version", None),
                (2, "producer_name", None),
                (3, "producer_version", None),
                (4, "domain", None),
                (5, "model_version", None),
                (6, "doc_string", None),
                (7, "graph", Some(Kind::Graph)),
                (8, "opset_import", Some(Kind::Opset)),
                (14, "metadata_props", Some(Kind::Entry)),
                (20, "training_info", Some(Kind::Training)),
                (25, "functions", Some(Kind::Function)),
                (26, "configuration", Some(Kind::DeviceConfiguration)),
            ],
            Kind::Graph => &[
                (1, "node", Some(Kind::Node)),
                (2, "name", None),
                (5, "initializer", Some(Kind::Tensor)),
                (10, "doc_string", None),
                (11, "input", Some(Kind::ValueInfo)),
                (12, "output", Some(Kind::ValueInfo)),
                (13, "value_info", Some(Kind::ValueInfo)),
                (14, "quantization_annotation", Some(Kind::Annotation)),
                (15, "sparse_initializer", Some(Kind::SparseTensor)),
                (16, "metadata_props", Some(Kind::Entry)),
            ],
            Kind::Node => &[
                (1, "input", None),
                (2, "output", None),
                (3, "name", None),
                (4, "op_type", None),
                (5, "attribute", Some(Kind::Attribute)),
                (6, "doc_string", None),
                (7, "domain", None),
                (8, "overload", None),
                (9, "metadata_props", Some(Kind::Entry)),
                (10, "device_configurations", Some(Kind::NodeDevice)),
            ],
            Kind::Attribute => &[
                (1, "name", None),
                (2, "f", None),
                (3, "i", None),
                (4, "s", None),
                (5, "t", Some(Kind::Tensor)),
                (6, "g", Some(Kind::Graph)),
                (7, "floats", None),
                (8, "ints", None),
                (9, "strings", None),
                (10, "tensors", Some(Kind::Tensor)),
                (11, "graphs", Some(Kind::Graph)),
                (13, "doc_string", None),
                (14, "tp", Some(Kind::Type)),
                (15, "type_protos", Some(Kind::Type)),
                (20, "type", None),
                (21, "ref_attr_name", None),
                (22, "sparse_tensor", Some(Kind::SparseTensor)),
                (23, "sparse_tensors", Some(Kind::SparseTensor)),
            ],
            Kind::Tensor => &[
                (1, "dims", None),
                (2, "data_type", None),
                (3, "segment", Some(Kind::Segment)),
                (4, "float_data", None),
                (5, "int32_data", None),
                (6, "string_data", None),
                (7, "int64_data", None),
                (8, "name", None),
                (9, "raw_data", None),
                (10, "double_data", None),
                (11, "uint64_data", None),
                (12, "doc_string", None),
                (13, "external_data", Some(Kind::Entry)),
                (14, "data_location", None),
                (16, "metadata_props", Some(Kind::Entry)),
            ],
            Kind::Segment => &[(1, "begin", None), (2, "end", None)],
            Kind::SparseTensor => &[(1, "values", Some(Kind::Tensor)), (2, "indices", Some(Kind::Tensor)), (3, "dims", None)],
            Kind::ValueInfo => {
                &[(1, "name", None), (2, "type", Some(Kind::Type)), (3, "doc_string", None), (4, "metadata_props", Some(Kind::Entry))]
            }
            Kind::Type => &[
                (1, "tensor_type", Some(Kind::TypeTensor)),
                (4, "sequence_type", Some(Kind::TypeSequence)),
                (5, "map_type", Some(Kind::TypeMap)),
                (6, "denotation", None),
                (7, "opaque_type", Some(Kind::TypeOpaque)),
                (8, "sparse_tensor_type", Some(Kind::TypeSparse)),
                (9, "optional_type", Some(Kind::TypeOptional)),
            ],
            Kind::TypeTensor | Kind::TypeSparse => &[(1, "elem_type", None), (2, "shape", Some(Kind::Shape))],
            Kind::TypeSequence | Kind::TypeOptional => &[(1, "elem_type", Some(Kind::Type))],
            Kind::TypeMap => &[(1, "key_type", None), (2, "value_type", Some(Kind::Type))],
            Kind::TypeOpaque => &[(1, "domain", None), (2, "name", None)],
            Kind::Shape => &[(1, "dim", Some(Kind::Dimension))],
            Kind::Dimension => &[(1, "dim_value", None), (2, "dim_param", None), (3, "denotation", None)],
            Kind::Entry => &[(1, "key", None), (2, "value", None)],
            Kind::Annotation => &[(1, "tensor_name", None), (2, "quant_parameter_tensor_names", Some(Kind::Entry))],
            Kind::Training => &[
                (1, "initialization", Some(Kind::Graph)),
                (2, "algorithm", Some(Kind::Graph)),
                (3, "initialization_binding", Some(Kind::Entry)),
                (4, "update_binding", Some(Kind::Entry)),
            ],
            Kind::Function => &[
                (1, "name", None),
                (4, "input", None),
                (5, "output", None),
                (6, "attribute", None),
                (7, "node", Some(Kind::Node)),
                (8, "doc_string", None),
                (9, "opset_import", Some(Kind::Opset)),
                (10, "domain", None),
                (11, "attribute_proto", Some(Kind::Attribute)),
                (12, "value_info", Some(Kind::ValueInfo)),
                (13, "overload", None),
                (14, "metadata_props", Some(Kind::Entry)),
            ],
            Kind::Opset => &[(1, "domain", None), (2, "version", None)],
            Kind::DeviceConfiguration => &[(1, "name", None), (2, "num_devices", None), (3, "device", None)],
            Kind::NodeDevice => &[(1, "configuration_id", None), (2, "sharding_spec", Some(Kind::Sharding)), (3, "pipeline_stage", None)],
            Kind::Sharding => &[
                (1, "tensor_name", None),
                (2, "device", None),
                (3, "index_to_device_group_map", Some(Kind::IntIntList)),
                (4, "sharded_dim", Some(Kind::ShardedDim)),
            ],
            Kind::ShardedDim => &[(1, "axis", None), (2, "simple_sharding", Some(Kind::SimpleShardedDim))],
            Kind::SimpleShardedDim => &[(1, "dim_value", None), (2, "dim_param", None), (3, "num_shards", None)],
            Kind::IntIntList => &[(1, "key", None), (2, "value", None)],
        }
    }
}

/// Deepest nesting that is followed; protobuf readers stop at 100.
const MAX_DEPTH: u32 = 100;

/// What a walk over a whole model found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The first field that the schema does not know: `message.number`.
    pub unknown: Option<String>,
    /// A graph was seen.
    pub graph: bool,
}

/// Walks a serialized `ModelProto`.
pub(crate) fn walk(bytes: &[u8]) -> Result<Walk, LoadFault> {
    let mut walker = Walker { bytes, found: Walk::default() };
    walker.message(Kind::Model, 0, bytes.len(), 0)?;
    Ok(walker.found)
}

struct Walker<'a> {
    bytes: &'a [u8],
    found: Walk,
}

impl Walker<'_> {
    fn message(&mut self, kind: Kind, mut at: usize, end: usize, depth: u32) -> Result<(), LoadFault> {
        if depth > MAX_DEPTH {
            return Err(LoadFault::NotOnnx(format!("messages are nested more than {MAX_DEPTH} deep at byte {at}")));
        }
        while at < end {
            let start = at;
            let key = self.varint(&mut at, end, start, "field number")?;
            let (number, wire) = (u32::try_from(key >> 3).unwrap_or(0), key & 7);
            if number == 0 {
                return Err(LoadFault::NotOnnx(format!("byte {start} is not a protobuf field")));
            }
            let field = kind.fields().iter().find(|f| f.0 == number);
            let name = field.map_or("unknown field", |f| f.1);
            if field.is_none() && self.found.unknown.is_none() {
                self.found.unknown = Some(format!("{kind:?}.{number}"));
            }
            let length = match wire {
                0 => {
                    self.varint(&mut at, end, start, name)?;
                    0
                }
                1 => 8,
                5 => 4,
                2 => self.varint(&mut at, end, start, name)?,
                _ => return Err(LoadFault::NotOnnx(format!("byte {start} has the wire type {wire}, which ONNX never uses"))),
            };
            let have = (end - at) as u64;
            if length > have {
                return Err(LoadFault::Truncated { field: name.to_string(), at: start as u64, need: length, have });
            }
            let next = at + length as usize;
            if let Some((_, _, Some(inner))) = field
                && wire == 2
            {
                self.found.graph |= kind == Kind::Model && *inner == Kind::Graph;
                self.message(*inner, at, next, depth + 1)?;
            }
            at = next;
        }
        Ok(())
    }

    fn varint(&self, at: &mut usize, end: usize, start: usize, field: &str) -> Result<u64, LoadFault> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(byte) = self.bytes.get(*at).filter(|_| *at < end) else {
                return Err(LoadFault::Truncated { field: field.to_string(), at: start as u64, need: 1, have: 0 });
            };
            *at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(LoadFault::NotOnnx(format!("byte {start} does not start a number")))
    }
}

/// What bytes that are not an ONNX model look like: a human-readable name.
pub(crate) fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(512)];
    let text = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    let starts: [(&[u8], &'static str); 7] = [
        (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint, perhaps)"),
        (b"GGUF", "a GGUF file"),
        (b"\x89HDF", "an HDF5 file (Keras, perhaps)"),
        (b"\x80\x02", "a Python pickle (a PyTorch checkpoint, perhaps)"),
        (b"\x1f\x8b", "a gzip file; unpack it first"),
        (b"\x7fELF", "a program"),
        (b"\x89PNG", "a picture"),
    ];
    if let Some((_, what)) = starts.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(what);
    }
    if head.get(4..8) == Some(b"ORTM") {
        return Some("a model in ONNX Runtime's own format; use the .onnx file it was made from");
    }
    if head.get(4..8) == Some(b"TFL3") {
        return Some("a TensorFlow Lite model");
    }
    if text.starts_with("version https://git-lfs") {
        return Some("a Git LFS pointer; fetch the real file with `git lfs pull`");
    }
    if text.starts_with("<!doctype") || text.starts_with("<html") {
        return Some("a web page; the download link led to a page and not to the file");
    }
    if text.starts_with("<?xml") {
        return Some("an XML file (OpenVINO, perhaps)");
    }
    if head.get(8) == Some(&b'{') && head.get(4..8) == Some(&[0, 0, 0, 0]) {
        return Some("a safetensors file: weights without a graph");
    }
    if text.starts_with('{') || text.starts_with('[') {
        return Some("a JSON file");
    }
    if !head.is_empty() && head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        return Some("a text file");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All fields of the vendored schema, as `proto/generate` lists them: message, number, name,
    /// and the message that the field holds or `-`.
    const SCHEMA: &str = include_str!("../proto/fields.txt");

    /// The table above matches the vendored schema exactly.
    #[test]
    fn the_table_is_the_schema() {
        // Messages that look the same inside share a row: whether a field holds one is compared.
        let mut want: Vec<(&str, u32, &str, bool)> = Vec::new();
        for line in SCHEMA.lines() {
            let [message, number, name, inner] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            want.push((message, number.parse().unwrap(), name, inner != "-"));
        }
        let fields = |(kind, message): &(Kind, &'static str)| {
            let message = *message;
            kind.fields().iter().map(move |(number, name, inner)| (message, *number, *name, inner.is_some()))
        };
        let mut have: Vec<_> = Kind::ALL.iter().flat_map(fields).collect();
        want.sort_unstable();
        have.sort_unstable();
        assert_eq!(have, want);
    }

    #[test]
    fn unknown_and_cut_off_fields_are_found() {
        // ir_version = 8, then field 999 of the model.
        let known = [0x08, 0x08];
        assert_eq!(walk(&known).unwrap(), Walk::default());
        let unknown = [0x08, 0x08, 0xb8, 0x3e, 0x01];
        assert_eq!(walk(&unknown).unwrap().unknown.as_deref(), Some("Model.999"));
        let cut = [0x3a, 0x7f, 0x00];
        assert!(matches!(walk(&cut), Err(LoadFault::Truncated { need: 127, have: 1, .. })), "{:?}", walk(&cut));
        assert!(matches!(walk(&[0xff; 12]), Err(LoadFault::NotOnnx(_))));
        assert!(matches!(walk(&[0x0b]), Err(LoadFault::NotOnnx(_))));
    }

    #[test]
    fn common_mistakes_are_named() {
        for (bytes, want) in [
            (&b"version https://git-lfs.github.com/spec/v1\noid sha256:1"[..], "Git LFS"),
            (b"<!DOCTYPE html><html>", "web page"),
            (b"PK\x03\x04rest", "zip"),
            (b"{\"a\": 1}", "JSON"),
            (b"hello world\n", "text"),
        ] {
            assert!(looks_like(bytes).is_some_and(|w| w.contains(want)), "{want}");
        }
        assert_eq!(looks_like(&[8, 7, 18, 3]), None);
    }
}
