//! From a rewritten graph back to a model: unchanged nodes verbatim, new ones respelled, everything
//! else as it was.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use prost::Message;
use regraft_ir::{Graph, ValueId};

use crate::emit::Emitter;
use crate::error::WriteError;
use crate::flush;
use crate::fold::{self, Folding};
use crate::import::standard;
use crate::model::{Model, PROTOBUF_LIMIT};
use crate::names::Names;
use crate::plan::{Form, Plan};
use crate::proto::{GraphProto, ModelProto, OperatorSetIdProto, TensorProto};
use crate::spell::Speller;
use crate::tensor::encode;

/// Least part of the allowance that another attempt at folding leaves free: attempts stay few.
const MIN_STEP: u64 = 256 << 10;

/// How a model is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Bytes that the constants may grow by, if more than the usual allowance (5 % or 4 MiB,
    /// whichever is more).
    pub allow_growth: Option<u64>,
    /// Respell every operator instead of keeping unchanged nodes verbatim; for tests of the
    /// operators' spellings.
    pub respell: bool,
    /// Before IR version 4, weights are listed among the inputs although callers do not feed them.
    /// By default they stay listed, and so stay in the file, even if nothing reads them any more.
    /// With this, weights that a rewrite made superfluous are removed, with their listing.
    pub drop_parameters: bool,
    /// A folder that holds the constants made by folding, in unnamed files, instead of memory.
    pub park: Option<PathBuf>,
    /// Subnormal and other tiny elements of weights are written as zeros
    /// ([`Const::flushed`](regraft_ir::Const::flushed)),
    /// unless the weights are parked, or the model says how to train them.
    pub flush: bool,
}

/// A model ready to be saved.
#[derive(Clone, Debug)]
pub struct Written {
    /// The model; all tensors are inside, sharing the bytes of the files read.
    pub proto: ModelProto,
    /// Constant expressions that became initializers.
    pub folded: usize,
    /// Constant expressions that were made by rewriting and stay expressions, which a runtime
    /// computes when it loads the model.
    pub kept_expressions: usize,
    /// The graph's values that are in the model, by their names there.
    pub values: HashMap<String, ValueId>,
}

impl Written {
    /// The model as one protobuf message.
    pub fn to_bytes(&self) -> Result<Vec<u8>, WriteError> {
        let size = self.size();
        if size > PROTOBUF_LIMIT {
            return Err(WriteError::TooLarge(size));
        }
        Ok(self.proto.encode_to_vec())
    }

    /// Bytes of the model with all its tensors.
    pub fn size(&self) -> u64 {
        self.proto.encoded_len() as u64
    }
}

impl Model {
    /// Tells whether operators can be written in this model, for use while rewriting.
    pub fn speller(&self) -> Speller {
        Speller::new(self)
    }

    /// Writes `graph`, which was made from [`Model::graph`] by patches (or by anything that keeps
    /// names, origins and meaning).
    ///
    /// Inputs and outputs keep their names, order, and declarations. Unchanged nodes are the
    /// original ones, byte for byte; others are spelled at the model's opset version.
    ///
    /// Constant expressions are folded as long as the whole model stays within [`Model::largest`];
    /// only its nodes can make it larger.
    pub fn write(&self, graph: &Graph, options: &WriteOptions) -> Result<Written, WriteError> {
        let largest = self.largest(options.allow_growth);
        let mut allowance = largest - self.size();
        loop {
            let written = self.write_within(graph, options, allowance)?;
            let over = written.size().saturating_sub(largest);
            if over == 0 || written.folded == 0 || allowance == 0 {
                return Ok(written);
            }
            // New nodes use up part of the allowance: folded constants must make room for them.
            allowance = allowance.saturating_sub(over.max(MIN_STEP));
        }
    }

    /// The most bytes that a rewritten form of this model may take: its size plus the maximum of 5
    /// %, 4 MiB, and `allow_growth`.
    pub fn largest(&self, allow_growth: Option<u64>) -> u64 {
        self.size() + fold::allowance(self.size(), allow_growth)
    }

    fn write_within(&self, graph: &Graph, options: &WriteOptions, allowance: u64) -> Result<Written, WriteError> {
        let mut plan = Plan::new(self, graph, options.respell)?;
        let Folding { folded, kept } = fold::fold(&mut plan, allowance, options.park.as_deref())?;
        if options.flush && options.park.is_none() && self.proto.training_info.is_empty() {
            flush::flush(&mut plan);
        }
        let names = Names::new(&plan)?;
        let emitter = Emitter::emit(&plan, names)?;
        let values = emitter.names.iter().map(|(value, name)| (name.to_string(), value)).collect();
        let proto = self.assemble(&plan, emitter, options);
        Ok(Written { proto, folded, kept_expressions: kept, values })
    }

    fn assemble(&self, plan: &Plan<'_>, emitter: Emitter<'_>, options: &WriteOptions) -> ModelProto {
        let original = self.graph_proto();
        let Emitter { names, nodes, initializers: new_initializers, domains, .. } = emitter;
        let mut kept = self.kept_initializers(plan, &names, options);
        let listed: HashSet<&str> = kept.iter().map(|t| t.name()).collect();
        let gone: HashSet<&str> = original.initializer.iter().map(|t| t.name()).filter(|n| !listed.contains(n)).collect();
        let input = original.input.iter().filter(|i| !gone.contains(i.name())).cloned().collect();
        kept.extend(new_initializers);
        let mut defined: HashSet<String> = kept.iter().map(|t| t.name().to_string()).collect();
        defined.extend(nodes.iter().flat_map(|n| n.output.iter().cloned()));
        defined.extend(original.input.iter().map(|i| i.name().to_string()));
        let sparse = original.sparse_initializer.iter().filter(|s| {
            let name = s.values.as_ref().map_or("", |t| t.name());
            names.contains(name) || !self.read.contains(name)
        });
        let graph = GraphProto {
            node: nodes,
            name: original.name.clone(),
            initializer: kept,
            sparse_initializer: sparse.cloned().collect(),
            doc_string: original.doc_string.clone(),
            input,
            output: original.output.clone(),
            value_info: original.value_info.iter().filter(|i| defined.contains(i.name())).cloned().collect(),
            quantization_annotation: original
                .quantization_annotation
                .iter()
                .filter(|a| defined.contains(a.tensor_name()))
                .cloned()
                .collect(),
            metadata_props: original.metadata_props.clone(),
        };
        let header = ModelProto { graph: None, ..self.proto.clone_header() };
        let mut proto = ModelProto { graph: Some(graph), ..header };
        let mut missing: Vec<&str> =
            domains.into_iter().filter(|d| !self.proto.opset_import.iter().any(|o| standard(o.domain()) == *d)).collect();
        missing.retain(|d| !d.is_empty());
        missing.sort_unstable();
        proto.opset_import.extend(missing.into_iter().map(|d| OperatorSetIdProto { domain: Some(d.to_string()), version: Some(1) }));
        proto
    }

    /// Original initializers that stay, in order, under their current names.
    fn kept_initializers(&self, plan: &Plan<'_>, names: &Names<'_>, options: &WriteOptions) -> Vec<TensorProto> {
        let graph = self.graph_proto();
        let mut used: Vec<Option<&str>> = vec![None; graph.initializer.len()];
        for (id, form) in &plan.forms {
            if let Form::Initializer(at) = form {
                used[*at] = Some(names.get(id.out()));
            }
        }
        let old = self.proto.ir_version() < 4;
        let listed: HashSet<&str> = graph.input.iter().map(|i| i.name()).filter(|_| !(old && options.drop_parameters)).collect();
        let annotated: HashSet<&str> =
            graph.quantization_annotation.iter().flat_map(|a| &a.quant_parameter_tensor_names).map(|entry| entry.value()).collect();
        let trained: HashSet<&str> = self
            .proto
            .training_info
            .iter()
            .flat_map(|t| t.initialization_binding.iter().chain(&t.update_binding))
            .map(|entry| entry.key())
            .collect();
        let stays = |name: &str| {
            plan.originals.contains(name) && plan.initializer(name).is_some()
                || listed.contains(name)
                || !self.read.contains(name)
                || annotated.contains(name)
                || trained.contains(name)
        };
        let mut kept = Vec::new();
        for (at, (tensor, now)) in graph.initializer.iter().zip(used).enumerate() {
            if let (Some(name), Some(flushed)) = (now, plan.flushed.get(&at)) {
                let (doc_string, metadata_props) = (tensor.doc_string.clone(), tensor.metadata_props.clone());
                kept.push(TensorProto { doc_string, metadata_props, ..encode(name, flushed) });
                continue;
            }
            match now {
                Some(name) if name == tensor.name() => kept.push(tensor.clone()),
                Some(name) => kept.push(TensorProto { name: Some(name.to_string()), ..tensor.clone() }),
                None if stays(tensor.name()) => kept.push(tensor.clone()),
                None => {}
            }
        }
        kept
    }
}

impl ModelProto {
    /// Everything except the graph.
    pub(crate) fn clone_header(&self) -> ModelProto {
        ModelProto {
            ir_version: self.ir_version,
            opset_import: self.opset_import.clone(),
            producer_name: self.producer_name.clone(),
            producer_version: self.producer_version.clone(),
            domain: self.domain.clone(),
            model_version: self.model_version,
            doc_string: self.doc_string.clone(),
            graph: None,
            metadata_props: self.metadata_props.clone(),
            training_info: self.training_info.clone(),
            functions: self.functions.clone(),
            configuration: self.configuration.clone(),
        }
    }
}
