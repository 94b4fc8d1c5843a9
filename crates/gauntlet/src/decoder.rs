//! `decoder`: a large language model with random weights, written block by block, to try out models
//! that do not fit into memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use prost::Message;
use regraft_onnx::proto::attribute_proto::AttributeType;
use regraft_onnx::proto::tensor_proto::{DataLocation, DataType};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto, type_proto,
};

/// Write a decoder of random weights with external data
#[derive(clap::Args)]
pub struct Args {
    /// Bytes of weights, in units of 10^9, about
    #[arg(long, default_value_t = 5.0)]
    gigabytes: f64,
    /// Width of the hidden state
    #[arg(long, default_value_t = 2048)]
    width: i64,
    /// Folder to write `decoder.onnx` and `decoder.onnx.data` to
    #[arg(short, long)]
    output: PathBuf,
    /// Seed of the weights
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Size of one attention head.
const HEAD: i64 = 64;
/// The MLP is this many times as wide as the hidden state, in eighths.
const MLP_EIGHTHS: i64 = 22;
/// Rows of the embedding table per unit of width, which output weights share with it.
const VOCABULARY: i64 = 4;
/// Tensors start at a page boundary.
const PAGE: u64 = 4096;

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (layers, bytes) = write(&args.output, args.gigabytes, args.width, args.seed)?;
    println!("{} layers, {:.2} GB of weights in {}", layers, bytes as f64 / 1e9, args.output.join("decoder.onnx").display());
    Ok(ExitCode::SUCCESS)
}

/// Writes a decoder with about `gigabytes` of weights to `folder`, as `decoder.onnx`; returns its
/// number of layers and its bytes of weights.
pub fn write(folder: &Path, gigabytes: f64, width: i64, seed: u64) -> Result<(i64, u64)> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let (width, mlp) = (width / HEAD * HEAD, width * MLP_EIGHTHS / 8);
    let per_layer = 4 * (4 * width * width + 3 * width * mlp + 2 * width);
    let table = 4 * width * width * VOCABULARY;
    let layers = (((gigabytes * 1e9) as i64 - table) / per_layer).max(1);
    let data = folder.join("decoder.onnx.data");
    let file = File::create(&data).with_context(|| data.display().to_string())?;
    let mut decoder = Decoder {
        graph: GraphProto { name: Some("decoder".into()), ..GraphProto::default() },
        data: BufWriter::with_capacity(1 << 20, file),
        end: 0,
        state: seed.wrapping_mul(2).wrapping_add(1),
        width,
        mlp,
    };
    decoder.build(layers)?;
    decoder.data.flush()?;
    let end = decoder.end;
    let opset = |version| OperatorSetIdProto { domain: None, version: Some(version) };
    let model = ModelProto { ir_version: Some(8), opset_import: vec![opset(17)], graph: Some(decoder.graph), ..ModelProto::default() };
    std::fs::write(folder.join("decoder.onnx"), model.encode_to_vec())?;
    Ok((layers, end))
}

struct Decoder {
    graph: GraphProto,
    data: BufWriter<File>,
    end: u64,
    state: u64,
    width: i64,
    mlp: i64,
}

impl Decoder {
    /// Token ids in, logits out; the number of tokens is open.
    fn build(&mut self, layers: i64) -> Result<()> {
        let (width, vocabulary) = (self.width, self.width * VOCABULARY);
        self.graph.input.push(value("ids", DataType::Int64, &["batch", "tokens"]));
        self.graph.output.push(value("logits", DataType::Float, &["batch", "tokens", &vocabulary.to_string()]));
        self.weight("table", &[vocabulary, width], 0.02)?;
        self.small("two", &[], &[2.0]);
        self.small("epsilon", &[], &[1e-5]);
        self.small("scale", &[], &[1.0 / (HEAD as f32).sqrt()]);
        self.integers("split", &[0, 0, width / HEAD, HEAD]);
        self.integers("merge", &[0, 0, width]);
        self.node("Gather", &["table", "ids"], "h", vec![int("axis", 0)]);
        self.mask();
        let mut hidden = "h".to_string();
        for layer in 0..layers {
            hidden = self.layer(&format!("l{layer}"), &hidden)?;
        }
        let normal = self.norm("final", &hidden)?;
        self.node("Transpose", &["table"], "table_t", vec![ints("perm", &[1, 0])]);
        self.node("MatMul", &[&normal, "table_t"], "logits", vec![]);
        Ok(())
    }

    /// A causal mask, square in the number of tokens: a large negative number above the diagonal.
    fn mask(&mut self) {
        self.node("Shape", &["ids"], "shape", vec![]);
        self.integers("one", &[1]);
        self.node("Gather", &["shape", "one"], "tokens_1", vec![int("axis", 0)]);
        self.node("Concat", &["tokens_1", "tokens_1"], "square", vec![int("axis", 0)]);
        let fill = TensorProto {
            data_type: Some(DataType::Float as i32),
            dims: vec![1],
            raw_data: Some((-1e9f32).to_le_bytes().to_vec().into()),
            ..TensorProto::default()
        };
        let attribute = AttributeProto { t: Some(fill), ..attribute("value", AttributeType::Tensor) };
        self.node("ConstantOfShape", &["square"], "low", vec![attribute]);
        let one = TensorProto { name: Some("first".into()), data_type: Some(DataType::Int64 as i32), ..TensorProto::default() };
        self.graph.initializer.push(TensorProto { raw_data: Some(1i64.to_le_bytes().to_vec().into()), ..one });
        self.node("Trilu", &["low", "first"], "mask", vec![int("upper", 1)]);
    }

    fn layer(&mut self, name: &str, hidden: &str) -> Result<String> {
        let (width, mlp) = (self.width, self.mlp);
        let at = |part: &str| format!("{name}/{part}");
        let normal = self.norm(&at("norm1"), hidden)?;
        for part in ["q", "k", "v"] {
            let (weight, flat) = (at(&format!("w{part}")), at(&format!("{part}_flat")));
            self.weight(&weight, &[width, width], 0.02)?;
            if part == "q" {
                self.node("MatMul", &[&normal, &weight], &at("q_raw"), vec![]);
                self.node("Mul", &[&at("q_raw"), "scale"], &flat, vec![]);
            } else {
                self.node("MatMul", &[&normal, &weight], &flat, vec![]);
            }
            self.node("Reshape", &[&flat, "split"], &at(&format!("{part}_4d")), vec![]);
            let order: &[i64] = if part == "k" { &[0, 2, 3, 1] } else { &[0, 2, 1, 3] };
            self.node("Transpose", &[&at(&format!("{part}_4d"))], &at(part), vec![ints("perm", order)]);
        }
        self.node("MatMul", &[&at("q"), &at("k")], &at("products"), vec![]);
        self.node("Add", &[&at("products"), "mask"], &at("scores"), vec![]);
        self.node("Softmax", &[&at("scores")], &at("weights"), vec![int("axis", -1)]);
        self.node("MatMul", &[&at("weights"), &at("v")], &at("heads"), vec![]);
        self.node("Transpose", &[&at("heads")], &at("rows"), vec![ints("perm", &[0, 2, 1, 3])]);
        self.node("Reshape", &[&at("rows"), "merge"], &at("joined"), vec![]);
        self.weight(&at("wo"), &[width, width], 0.02)?;
        self.node("MatMul", &[&at("joined"), &at("wo")], &at("attended"), vec![]);
        self.node("Add", &[hidden, &at("attended")], &at("h1"), vec![]);
        let normal = self.norm(&at("norm2"), &at("h1"))?;
        self.weight(&at("wgate"), &[width, mlp], 0.02)?;
        self.weight(&at("wup"), &[width, mlp], 0.02)?;
        self.weight(&at("wdown"), &[mlp, width], 0.02)?;
        self.node("MatMul", &[&normal, &at("wgate")], &at("gate"), vec![]);
        self.node("MatMul", &[&normal, &at("wup")], &at("up"), vec![]);
        self.node("Sigmoid", &[&at("gate")], &at("sigmoid"), vec![]);
        self.node("Mul", &[&at("gate"), &at("sigmoid")], &at("silu"), vec![]);
        self.node("Mul", &[&at("silu"), &at("up")], &at("gated"), vec![]);
        self.node("MatMul", &[&at("gated"), &at("wdown")], &at("down"), vec![]);
        self.node("Add", &[&at("h1"), &at("down")], &at("h2"), vec![]);
        Ok(at("h2"))
    }

    /// RMS normalization, decomposed as exporters do.
    fn norm(&mut self, name: &str, hidden: &str) -> Result<String> {
        let at = |part: &str| format!("{name}/{part}");
        self.weight(&at("gain"), &[self.width], 1.0)?;
        self.node("Pow", &[hidden, "two"], &at("squares"), vec![]);
        self.node("ReduceMean", &[&at("squares")], &at("mean"), vec![ints("axes", &[-1]), int("keepdims", 1)]);
        self.node("Add", &[&at("mean"), "epsilon"], &at("shifted"), vec![]);
        self.node("Sqrt", &[&at("shifted")], &at("root"), vec![]);
        self.node("Div", &[hidden, &at("root")], &at("unit"), vec![]);
        self.node("Mul", &[&at("unit"), &at("gain")], &at("out"), vec![]);
        Ok(at("out"))
    }

    fn node(&mut self, op: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) {
        self.graph.node.push(NodeProto {
            op_type: Some(op.into()),
            name: Some(format!("{output}_node")),
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.to_string()],
            attribute,
            ..NodeProto::default()
        });
    }

    /// Random weights, written directly to the data file.
    fn weight(&mut self, name: &str, dims: &[i64], spread: f32) -> io::Result<()> {
        let start = self.end.next_multiple_of(PAGE);
        io::copy(&mut io::Read::take(io::repeat(0), start - self.end), &mut self.data)?;
        let count: i64 = dims.iter().product();
        for _ in 0..count {
            // xorshift: fast, and no two tensors are equal.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let unit = (self.state >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
            self.data.write_all(&(unit * spread).to_le_bytes())?;
        }
        let length = count as u64 * 4;
        self.end = start + length;
        let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        let entries =
            vec![entry("location", "decoder.onnx.data".into()), entry("offset", start.to_string()), entry("length", length.to_string())];
        self.graph.initializer.push(TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(DataType::Float as i32),
            external_data: entries,
            data_location: Some(DataLocation::External as i32),
            ..TensorProto::default()
        });
        Ok(())
    }

    fn small(&mut self, name: &str, dims: &[i64], values: &[f32]) {
        self.graph.initializer.push(TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(DataType::Float as i32),
            raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ..TensorProto::default()
        });
    }

    fn integers(&mut self, name: &str, values: &[i64]) {
        self.graph.initializer.push(TensorProto {
            name: Some(name.into()),
            dims: vec![values.len() as i64],
            data_type: Some(DataType::Int64 as i32),
            raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ..TensorProto::default()
        });
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i: Some(i), ..attribute(name, AttributeType::Int) }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, AttributeType::Ints) }
}

fn value(name: &str, kind: DataType, dims: &[&str]) -> ValueInfoProto {
    let dim = |d: &&str| Dimension {
        value: Some(d.parse().map_or_else(|_| dimension::Value::DimParam((*d).into()), dimension::Value::DimValue)),
        ..Dimension::default()
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(kind as i32), shape: Some(shape) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.into()), r#type: Some(ty), ..ValueInfoProto::default() }
}
