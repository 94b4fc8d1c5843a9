//! A model as read: the graph to optimize, and everything needed to write it back.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use regraft_ir::{Bindings, Const, Graph, TensorType};

use crate::body::Surroundings;
use crate::error::{LoadError, LoadFault};
use crate::external;
use crate::facts::{self, Contradiction, Fact, Given};
use crate::folds::Folds;
use crate::import::{self, Import, OpaqueNode, OpaqueSource};
use crate::proto::{GraphProto, ModelProto};
use crate::reading::{self, Reading};
use crate::tensor::{self, Decoded};
use crate::wire;

/// Largest number of bytes in one protobuf message.
pub(crate) const PROTOBUF_LIMIT: u64 = (1 << 31) - 1;

/// An ONNX model: its graph for Regraft, and everything else, kept for writing it back.
///
/// Weights are shared with the memory-mapped file (and its external data files); nothing is copied,
/// except tensors stored in typed fields instead of raw bytes.
#[derive(Clone, Debug)]
pub struct Model {
    graph: Graph,
    pub(crate) proto: ModelProto,
    pub(crate) imports: Vec<Option<Import>>,
    pub(crate) opaque_sources: Vec<OpaqueSource>,
    opaque_nodes: Vec<OpaqueNode>,
    /// Nodes that no output depends on.
    pub(crate) idle: HashSet<usize>,
    /// Names that something in the graph reads.
    pub(crate) read: HashSet<String>,
    pub(crate) external: bool,
    unknown_field: Option<String>,
    notes: Vec<String>,
    facts: Vec<Fact>,
    /// Names to avoid, if this is the model of a body.
    pub(crate) surroundings: Surroundings,
    /// What rewritten forms were folded to.
    pub(crate) folds: Arc<Folds>,
}

/// A declared input or output, as in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Name.
    pub name: String,
    /// Element type and shape, if it is a tensor of known rank. Undeclared sizes are distinct
    /// symbols.
    pub ty: Option<TensorType>,
    /// The value used if none is given (an initializer of the same name); inputs only.
    pub default: Option<Const>,
}

impl Model {
    /// Reads a model file. Weights stay in the memory-mapped file.
    pub fn read(path: impl AsRef<Path>) -> Result<Model, LoadError> {
        let path = path.as_ref();
        let in_file = |mut error: LoadError| {
            error.file = Some(path.to_path_buf());
            error
        };
        let bytes = crate::mapped::map(path).map_err(|e| in_file(LoadFault::Io(e).into()))?;
        Model::from_bytes(bytes, Some(path.parent().unwrap_or(Path::new("")))).map_err(in_file)
    }

    /// A model from its serialized form; external data is looked for in `folder`.
    pub fn from_bytes(bytes: Bytes, folder: Option<&Path>) -> Result<Model, LoadError> {
        if bytes.is_empty() {
            return Err(LoadFault::Empty.into());
        }
        if bytes.len() as u64 > PROTOBUF_LIMIT {
            return Err(LoadFault::TooLarge(bytes.len() as u64).into());
        }
        let alien = |fault: LoadFault| match wire::looks_like(&bytes) {
            Some(what) => LoadError::new(LoadFault::NotOnnx(format!("it looks like {what}"))),
            None => LoadError::new(fault),
        };
        let walk = wire::walk(&bytes).map_err(alien)?;
        if !walk.graph {
            return Err(alien(LoadFault::NoGraph));
        }
        let proto = ModelProto::decode(bytes.clone()).map_err(|e| alien(LoadFault::NotOnnx(e.to_string())))?;
        let mut model = Model::load(proto, folder, Reading::Alone)?;
        model.unknown_field = walk.unknown;
        Ok(model)
    }

    /// A model from its decoded form. External data cannot be followed: there is no folder.
    pub fn from_proto(proto: ModelProto) -> Result<Model, LoadError> {
        Model::load(proto, None, Reading::Alone)
    }

    /// A model whose declared intermediate sizes are not trusted. External data is already
    /// resolved.
    pub(crate) fn load_cautiously(proto: ModelProto) -> Result<Model, LoadError> {
        Model::load(proto, None, Reading::Cautious)
    }

    fn load(mut proto: ModelProto, folder: Option<&Path>, reading: Reading<'_>) -> Result<Model, LoadError> {
        let external = external::resolve(&mut proto, folder)?;
        let outcome = reading::read(&proto, reading)?;
        Ok(Model {
            graph: outcome.graph,
            proto,
            imports: outcome.imports,
            opaque_sources: outcome.opaque_sources,
            opaque_nodes: outcome.opaque_nodes,
            idle: outcome.idle,
            read: outcome.read,
            external,
            unknown_field: None,
            notes: outcome.notes,
            facts: outcome.facts,
            surroundings: Surroundings::default(),
            folds: Arc::default(),
        })
    }

    /// The same with what is known of its file: whether weights came from other files, and an
    /// unknown field.
    pub(crate) fn with_origin(self, external: bool, unknown_field: Option<String>) -> Model {
        Model { external, unknown_field, ..self }
    }

    /// The graph, as read.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The protobuf form of the file, with external data filled in.
    pub fn proto(&self) -> &ModelProto {
        &self.proto
    }

    pub(crate) fn graph_proto(&self) -> &GraphProto {
        static EMPTY: std::sync::OnceLock<GraphProto> = std::sync::OnceLock::new();
        self.proto.graph.as_ref().unwrap_or_else(|| EMPTY.get_or_init(GraphProto::default))
    }

    /// Opset version of a domain (empty: the standard one), if the model imports it.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        import::version_of(&self.proto, import::standard(domain))
    }

    /// True if weights came from external data files.
    pub fn has_external_data(&self) -> bool {
        self.external
    }

    /// The first field that the schema of this program does not know (`Message.number`). Writing
    /// the model would lose it.
    pub fn unknown_field(&self) -> Option<&str> {
        self.unknown_field.as_deref()
    }

    /// Nodes that are kept verbatim, and why.
    pub fn opaque_nodes(&self) -> &[OpaqueNode] {
        &self.opaque_nodes
    }

    /// The same model for the inputs of `other`, by name: their sizes are those that `other` knows
    /// them to have, and what this model says about them itself is not used. Where `other` runs and
    /// the two are equal as read, this one runs too.
    ///
    /// # Errors
    ///
    /// Only if the model could not be read in the first place.
    pub fn under(&self, other: &Model) -> Result<Cow<'_, Model>, LoadError> {
        let types = |model: &Model| model.inputs().into_iter().map(|input| (input.name, input.ty)).collect::<Vec<_>>();
        let fed = types(other);
        if self.facts.is_empty() && other.facts.is_empty() || types(self) == fed {
            return Ok(Cow::Borrowed(self));
        }
        let own = reading::declared_inputs(&self.proto)?;
        let fed = |name: &str| fed.iter().find(|(fed, _)| fed == name)?.1.as_ref();
        let given = Given::fed(own.iter().filter_map(|(name, own)| Some((own, fed(name)?))));
        let mut model = Model::load(self.proto.clone(), None, Reading::Under(&given, &other.facts))?;
        (model.external, model.unknown_field) = (self.external, self.unknown_field.clone());
        model.surroundings = self.surroundings.clone();
        Ok(Cow::Owned(model))
    }

    /// What the sizes of its inputs must be, or the model does not run: its graph is typed for such
    /// sizes only.
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// The graph's symbols where its inputs, by name, have these sizes (`None`: not given), and the
    /// first of them at which the model does not run.
    pub fn bind<'a>(&self, sizes: impl IntoIterator<Item = (&'a str, &'a [Option<i64>])>) -> (Bindings, Option<Contradiction>) {
        let inputs: Vec<Declared> = self.inputs();
        let ty = |name: &str| inputs.iter().find(|input| input.name == name)?.ty.as_ref();
        facts::bind(sizes.into_iter().filter_map(|(name, sizes)| Some((name, ty(name)?, sizes))), &self.facts)
    }

    /// What a careful reader should know: declared types that proved wrong, and the facts.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Declared inputs that a caller feeds, in order. Parameters of old models (initializers listed
    /// as inputs) are not among them.
    pub fn inputs(&self) -> Vec<Declared> {
        let graph = self.graph_proto();
        let mut inputs = Vec::new();
        for input in &graph.input {
            let initializer = graph.initializer.iter().find(|t| t.name() == input.name());
            if initializer.is_some() && self.proto.ir_version() < 4 {
                continue;
            }
            let default = initializer.and_then(|t| match tensor::decode(t) {
                Ok(Decoded::Const(value)) => Some(value),
                _ => None,
            });
            let ty = self.graph.inputs().iter().find_map(|id| {
                let node = self.graph.node(*id);
                let named = node.names.first().and_then(Option::as_deref) == Some(input.name());
                if named { node.types.first().cloned().flatten() } else { None }
            });
            inputs.push(Declared { name: input.name().to_string(), ty, default });
        }
        inputs
    }

    /// Declared outputs, in order, with the types inferred for them.
    pub fn outputs(&self) -> Vec<Declared> {
        let outputs = self.graph.outputs().iter();
        outputs.map(|o| Declared { name: o.name.to_string(), ty: self.graph.ty(o.value).cloned(), default: None }).collect()
    }

    /// Bytes of all constants in the graph: initializers and `Constant` nodes.
    pub(crate) fn constant_bytes(&self) -> u64 {
        let graph = self.graph_proto();
        let initializers: u64 = graph.initializer.iter().map(tensor::payload).sum();
        let nodes = self.imports.iter().flatten().map(|import| match import {
            Import::Constant(value) => value.bytes().len() as u64,
            _ => 0,
        });
        initializers + nodes.sum::<u64>()
    }

    /// Bytes that the model takes on disk, external data included.
    pub fn size(&self) -> u64 {
        self.proto.encoded_len() as u64
    }
}
