//! A runtime for tests: it computes on the reference executor and takes as long as a script says.

use std::path::Path;

use prost::Message;
use regraft_ir::{Graph, eval};
use regraft_onnx::Model;
use regraft_onnx::proto::{ModelProto, TensorProto, ValueInfoProto};
use regraft_runtime::{
    Clock, DType, Feeds, HostTensor, ModelSource, NodeEvent, OptLevel, OptimizedGraph, ProfiledRun, RawProfile, Runtime, RuntimeError,
    Session, SessionOptions, Startup, ValueInfo,
};

use crate::optimize::reference::to_values;
use crate::sizes::value_info;

/// Nanoseconds of every run that are not spent in any operator.
const CALL: u64 = 1_000;

/// What a process takes that loads a model, or why it fails.
pub type Starts = fn(&[&str], usize) -> Result<Startup, &'static str>;

/// How long models take.
#[derive(Clone, Copy)]
pub struct Scripted {
    /// Nanoseconds of one run of an operator of this type.
    pub operator: fn(&str) -> u64,
    /// Nanoseconds that an operator of this type takes more for each row that the model is fed.
    pub per_row: fn(&str) -> u64,
    /// Extra nanoseconds that a run of a model with these operators takes: effects that reach
    /// beyond one operator.
    pub besides: fn(&[&str]) -> u64,
    /// Why a model with these operators, in this order, is refused at this level of the runtime's
    /// own optimizer.
    pub refuses: fn(&[&str], OptLevel) -> Option<&'static str>,
    /// Threads that it uses unless told otherwise.
    pub threads: usize,
    /// Extra nanoseconds that a run of a model with these operators takes at one thread.
    pub alone: fn(&[&str]) -> u64,
    /// What it takes to start with a model with these operators, whose written constants have so
    /// many elements, or that a process fails. `None` if no process can be started.
    pub starts: Option<Starts>,
    /// Results of rewritten models are reported with this many rows, and cut to them.
    pub rows: Option<usize>,
}

/// An open model.
struct Opened {
    graph: Graph,
    /// What the runtime says that it runs, until asked for it.
    ran: Option<OptimizedGraph>,
    /// Each with its time per row.
    nodes: Vec<(NodeEvent, u64)>,
    besides: u64,
    fed: u64,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
    rows: Option<usize>,
    threads: usize,
    runs: usize,
}

fn refused(cause: impl ToString) -> RuntimeError {
    RuntimeError::Load { runtime: "scripted".into(), model: "a model".into(), cause: cause.to_string() }
}

fn failed(cause: impl ToString) -> RuntimeError {
    RuntimeError::Run { runtime: "scripted".into(), model: "a model".into(), cause: cause.to_string() }
}

fn bytes_of(model: ModelSource<'_>) -> Result<Vec<u8>, RuntimeError> {
    let read = |path: &Path| std::fs::read(path).map_err(|source| RuntimeError::Io { path: path.to_path_buf(), source });
    match model {
        ModelSource::Path(path) => read(path),
        ModelSource::Bytes { bytes, .. } => Ok(bytes.to_vec()),
        _ => Err(refused("an unknown source")),
    }
}

impl Runtime for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn version(&self) -> &str {
        "1.0"
    }

    fn default_threads(&self) -> usize {
        self.threads
    }

    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let bytes = bytes_of(model)?;
        let proto = ModelProto::decode(bytes.as_slice()).map_err(refused)?;
        let graph = Model::from_proto(proto.clone()).map_err(refused)?.graph().clone();
        let written = proto.graph.unwrap_or_default();
        let event = |(index, node): (usize, &regraft_onnx::proto::NodeProto)| NodeEvent {
            name: node.name().to_owned(),
            index: index as u64,
            op_type: node.op_type().to_owned(),
            provider: "scripted".into(),
            ns: (self.operator)(node.op_type()),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let ran = options.graph.then(|| OptimizedGraph::of_onnx(&written));
        let nodes = written.node.iter().map(|node| (self.per_row)(node.op_type()));
        let nodes = written.node.iter().enumerate().map(event).zip(nodes).collect();
        let kinds: Vec<&str> = written.node.iter().map(|node| node.op_type()).collect();
        if let Some(cause) = (self.refuses)(&kinds, options.level) {
            return Err(refused(cause));
        }
        let alone = if options.threads == 1 { (self.alone)(&kinds) } else { 0 };
        let besides = CALL + (self.besides)(&kinds) + alone;
        let infos = |values: &[ValueInfoProto]| values.iter().map(value_info).collect();
        let rows = self.rows.filter(|_| matches!(model, ModelSource::Bytes { .. }));
        let mut outputs: Vec<ValueInfo> = infos(&written.output);
        outputs.iter_mut().filter_map(|info| info.dims.first_mut()).for_each(|dim| *dim = rows.or(*dim));
        Ok(Box::new(Opened {
            graph,
            besides,
            inputs: infos(&written.input),
            outputs,
            rows,
            ran,
            nodes,
            fed: 0,
            threads: options.threads,
            runs: 0,
        }))
    }

    fn start_up(&self, model: &Path, _: &Feeds, _: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
        let Some(starts) = self.starts else { return Ok(None) };
        let written = ModelProto::decode(bytes_of(ModelSource::path(model))?.as_slice()).map_err(refused)?.graph.unwrap_or_default();
        let kinds: Vec<&str> = written.node.iter().map(|node| node.op_type()).collect();
        let elements = |tensor: &TensorProto| tensor.dims.iter().product::<i64>() as usize;
        starts(&kinds, written.initializer.iter().map(elements).sum()).map(Some).map_err(failed)
    }
}

impl Opened {
    /// What one run on the bound values executes.
    fn events(&self) -> Vec<NodeEvent> {
        self.nodes.iter().map(|(node, per_row)| NodeEvent { ns: node.ns + per_row * self.fed, ..node.clone() }).collect()
    }
}

impl Session for Opened {
    fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&mut self, feeds: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
        let values = to_values(&self.graph, feeds).ok_or_else(|| failed("an input of an unknown type"))?;
        let results = eval::run::<f64>(&self.graph, &values, &mut eval::NoOpaque).map_err(failed)?;
        let tensor = |(output, value): (&regraft_ir::Output, &regraft_ir::Value<f64>)| {
            let dtype = self.graph.ty(output.value).ok_or_else(|| failed("an output of an unknown type"))?.dtype;
            let value = value.to_const(dtype).ok_or_else(|| failed("an output of another type"))?;
            let mut shape: Vec<usize> = value.shape().iter().map(|size| *size as usize).collect();
            let row = value.bytes().len() / shape[0];
            shape[0] = self.rows.map_or(shape[0], |rows| rows.min(shape[0]));
            let bytes = &value.bytes()[..row * shape[0]];
            HostTensor::from_bytes(DType::from_onnx(dtype.to_onnx()), shape, bytes).map_err(failed)
        };
        self.graph.outputs().iter().zip(&results).map(tensor).collect()
    }

    fn bind(&mut self, feeds: &Feeds) -> Result<(), RuntimeError> {
        self.fed = feeds.iter().filter_map(|(_, value)| value.shape().first()).max().map_or(0, |rows| *rows as u64);
        Ok(())
    }

    fn run_bound(&mut self) -> Result<(), RuntimeError> {
        self.runs += 1;
        Ok(())
    }

    fn time_bound(&mut self, _: Clock) -> Result<u64, RuntimeError> {
        self.run_bound()?;
        Ok(self.besides + self.events().iter().map(|node| node.ns).sum::<u64>())
    }

    fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
        let nodes = self.events();
        let run = ProfiledRun { ns: self.besides + nodes.iter().map(|node| node.ns).sum::<u64>(), nodes };
        Ok(RawProfile { runs: vec![run; self.runs], resolution_ns: 1 })
    }

    fn take_graph(&mut self) -> Option<OptimizedGraph> {
        self.ran.take()
    }
}
