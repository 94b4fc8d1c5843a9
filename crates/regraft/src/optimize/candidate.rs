//! A rewritten model, ready to be compared, checked and saved.

use std::sync::Arc;

use regraft_cost::Ns;
use regraft_ir::Graph;
use regraft_onnx::Written;
use regraft_search::Move;

use crate::optimize::artifact::Artifact;
use crate::optimize::evidence::Rewritten;
use crate::report::Applied;

/// A rewritten model that may be written.
pub struct Candidate {
    /// Name in reports.
    pub name: String,
    /// Its graph.
    pub graph: Graph,
    /// Rewrites that led to it.
    pub applied: Vec<Applied>,
    /// The same as places, for [`Memory`](crate::optimize::memory::Memory).
    pub places: Vec<u64>,
    /// The same as moves, for a certificate.
    pub moves: Vec<Arc<Move>>,
    /// Rewrites inside of bodies as places, for telling candidates apart.
    pub bodies: Vec<u64>,
    /// The same as moves, body by body.
    pub rewritten: Vec<Rewritten>,
    /// Cost under the price list.
    pub predicted: Ns,
    /// Time relative to the input in the profile, if it was measured.
    pub profiled: Option<f64>,
    /// Its serialized form; `None` where whole models are not run.
    pub artifact: Option<Artifact>,
    /// The same, decoded, for saving.
    pub written: Written,
}
