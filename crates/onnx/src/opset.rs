//! A model at another version of the standard opset.

use regraft_ir::normal;

use crate::error::{LoadError, WriteError};
use crate::model::Model;
use crate::write::WriteOptions;

/// Supported versions.
const OLDEST: i64 = 7;
const NEWEST: i64 = 28;
/// The IR version that each of these opset versions introduced, from the first on (ONNX, table of
/// releases).
const IR_VERSIONS: [(i64, i64); 10] = [(28, 14), (25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (15, 8), (12, 7), (11, 6), (10, 5)];

/// Why a model cannot be converted to another version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsetError {
    /// The version is unknown.
    #[error("opset {0} is not known; versions {OLDEST} to {NEWEST} are")]
    Unknown(i64),
    /// A node is kept as it is, and may mean something else in the other version.
    #[error("node `{node}` ({op_type}) cannot be brought to another opset: it is kept as it is ({why})")]
    Opaque {
        /// Name of the node, or of its first output.
        node: String,
        /// Operator type.
        op_type: String,
        /// Why it is kept as it is.
        why: String,
    },
    /// Functions of the model are written for its own version only.
    #[error("the model defines functions of its own, which are written for its opset {0}")]
    Functions(i64),
    /// An operator cannot be expressed in that version.
    #[error(transparent)]
    Spelling(#[from] WriteError),
    /// The result is not a sound model: a bug in this program.
    #[error("the model at the new opset cannot be read: {0}")]
    Unsound(#[from] LoadError),
}

impl Model {
    /// The same model with every operator expressed as in `version` of the standard opset. Names,
    /// inputs, outputs and weights stay; dead nodes go. The version of the file format is raised
    /// with the opset where necessary.
    pub fn at_opset(mut self, version: i64) -> Result<Model, OpsetError> {
        if !(OLDEST..=NEWEST).contains(&version) {
            return Err(OpsetError::Unknown(version));
        }
        let now = self.opset("").unwrap_or(1);
        if now == version {
            return Ok(self);
        }
        // A custom domain defines a node's meaning, whatever the standard opset.
        if let Some(node) = self.opaque_nodes().iter().find(|n| !n.op_type.contains([':', '.'])) {
            let (node, op_type, why) = (node.node.clone(), node.op_type.clone(), node.why.clone());
            return Err(OpsetError::Opaque { node, op_type, why });
        }
        if !self.proto.functions.is_empty() {
            return Err(OpsetError::Functions(now));
        }
        let standard = |domain: &str| crate::import::standard(domain).is_empty();
        match self.proto.opset_import.iter_mut().find(|o| standard(o.domain())) {
            Some(import) => import.version = Some(version),
            None => self.proto.opset_import.push(crate::proto::OperatorSetIdProto { domain: None, version: Some(version) }),
        }
        let mut graph = self.graph().clone();
        normal::dce(&mut graph);
        let mut written = self.write(&graph, &WriteOptions { respell: true, ..WriteOptions::default() })?;
        let needed = IR_VERSIONS.iter().find(|(opset, _)| version >= *opset).map_or(3, |(_, ir)| *ir);
        written.proto.ir_version = Some(self.proto.ir_version().max(needed));
        let unknown_field = self.unknown_field().map(str::to_string);
        let converted = Model::from_proto(written.proto)?.with_origin(self.external, unknown_field);
        Ok(converted.under(&self)?.into_owned())
    }
}
