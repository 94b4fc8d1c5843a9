//! The numeric check when whole models do not fit into memory: every changed region separately,
//! with its real weights.

use prost::Message;
use regraft_ir::{Bindings, Graph, eval};
use regraft_onnx::proto::ModelProto;
use regraft_onnx::{Model, Written, release_weights};
use regraft_runtime::{
    DType, Feeds, Fill, FillOptions, HostTensor, InputSpec, ModelSource, OptLevel, Runtime, SessionOptions, fill_inputs,
};

use crate::agreement::{Agreement, compare};
use crate::error::Failure;
use crate::exact;
use crate::optimize::cut::{Cutter, End};
use crate::optimize::memory_budget::MemoryBudget;
use crate::optimize::reference::{HEAVY_FLOPS, flops, to_host, to_values};
use crate::optimize::regions::{Region, regions};
use crate::ranges::integer_ranges;
use crate::report::Check;
use crate::sizes::Sizes;
use crate::units::Size;

/// A rewritten model and its original; both share the weights of the files read.
pub struct Pieces<'a> {
    /// The original graph, and as a model file.
    pub before: (&'a Graph, &'a Written),
    /// The rewritten graph, and as a model file.
    pub after: (&'a Graph, &'a Written),
    /// Sizes to run at.
    pub sizes: &'a Sizes,
    /// Seed of made-up inputs.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Tolerance for reals.
    pub tolerance: f64,
    /// Memory to stay within.
    pub memory: MemoryBudget,
}

/// One region as two small models with the same signature.
struct Piece {
    before: ModelProto,
    after: ModelProto,
    inputs: Vec<InputSpec>,
}

/// Why a region fails.
enum Fault {
    /// It cannot be run: it is too large, or its types are unknown.
    Unable(Failure),
    /// It no longer runs, or it computes something else.
    Wrong(Failure),
}

impl<E: Into<Failure>> From<E> for Fault {
    fn from(failure: E) -> Fault {
        Fault::Wrong(failure.into())
    }
}

/// Checks every region where the models differ. If one cannot be checked, because of its size or
/// its types, the check is incomplete.
pub fn verify_pieces(runtime: &dyn Runtime, pieces: &Pieces<'_>) -> Result<Check, Failure> {
    let (old, new) = (Cutter::new(pieces.before.1), Cutter::new(pieces.after.1));
    let typed = |value| pieces.before.0.ty(value).is_some_and(|ty| ty.bind(&pieces.sizes.symbols).is_some());
    let found = regions(pieces.before.0, pieces.after.0, &|v| typed(v) && old.has(v) && new.has(v), &|a, b| old.has(a) && new.has(b));
    let mut check = Check { tolerance: pieces.tolerance, passed: true, ..Check::default() };
    check.fills = Fill::ALL.iter().map(|fill| fill.name().to_string()).collect();
    let (mut worst, mut floor) = (Agreement::default(), Agreement::default());
    for region in &found {
        let checked = piece(pieces, &old, &new, region).map_err(Fault::Unable).and_then(|piece| run(runtime, pieces, &piece, &mut check));
        release_weights();
        match checked {
            Ok((ours, theirs)) => {
                worst.join(ours);
                floor.join(theirs);
            }
            Err(fault) => {
                check.passed = false;
                check.incomplete = matches!(fault, Fault::Unable(_));
                let (Fault::Unable(why) | Fault::Wrong(why)) = fault;
                check.notes.push(format!("the region of {}: {}", place(pieces.before.0, region), why.cause));
                return Ok(check);
            }
        }
    }
    (check.worst, check.floor) = (worst.relative, floor.relative);
    check.notes.push(format!("{} changed regions were checked one by one, each with its own weights", found.len()));
    Ok(check)
}

fn place(graph: &Graph, region: &Region) -> String {
    let name = |value: regraft_ir::ValueId| graph.node(value.node).names.get(value.port as usize).cloned().flatten();
    region.pairs.iter().find_map(|(a, _)| name(*a)).map_or_else(|| "an unnamed value".into(), |name| format!("`{name}`"))
}

fn piece(pieces: &Pieces<'_>, old: &Cutter<'_>, new: &Cutter<'_>, region: &Region) -> Result<Piece, Failure> {
    let ty = |value| pieces.before.0.ty(value).cloned().ok_or_else(|| Failure::new("the type of a value is not known"));
    let (mut inputs, mut specs) = (Vec::new(), Vec::new());
    for (at, value) in region.inputs.iter().enumerate() {
        let (ty, name) = (ty(*value)?, format!("regraft_in_{at}"));
        let sizes = ty.bind(&pieces.sizes.symbols).ok_or_else(|| Failure::new("the sizes of a value are not known"))?;
        let shape = Some(sizes.iter().copied().map(Size::Known).collect());
        specs.push(InputSpec { name: name.clone(), dtype: DType::from_onnx(ty.dtype.to_onnx()), shape: sizes });
        inputs.push(End { name, value: *value, ty, shape });
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (at, (a, b)) in region.pairs.iter().enumerate() {
        let ty = ty(*a)?;
        left.push(End { name: format!("regraft_out_{at}"), value: *a, ty: ty.clone(), shape: None });
        right.push(End { name: format!("regraft_out_{at}"), value: *b, ty, shape: None });
    }
    let before = old.cut(&inputs, &left).map_err(Failure::new)?;
    let after = new.cut(&inputs, &right).map_err(Failure::new)?;
    Ok(Piece { before, after, inputs: specs })
}

/// The difference of the region's outputs, and the one caused by the runtime's own optimizer.
fn run(runtime: &dyn Runtime, pieces: &Pieces<'_>, piece: &Piece, check: &mut Check) -> Result<(Agreement, Agreement), Fault> {
    let model = Model::from_proto(piece.before.clone())?;
    let (graph, ranges) = (model.graph().clone(), integer_ranges(&model, &Bindings::new()));
    drop(model);
    let bytes = (piece.before.encoded_len().max(piece.after.encoded_len())) as u64 + values(&graph);
    if !pieces.memory.fits(bytes) {
        let needed = crate::units::show_bytes(bytes);
        let cause = format!("with {needed} it is too large to be checked in the memory that is allowed");
        return Err(Fault::Unable(Failure::new(cause)));
    }
    let mut cases: Vec<(&str, Feeds)> = Vec::new();
    let options = FillOptions { seed: pieces.seed, ranges, ..FillOptions::default() };
    for fill in Fill::ALL {
        cases.push((fill.name(), fill_inputs(fill, &piece.inputs, &options)?));
    }
    // One session at a time: each holds the weights of the region about twice.
    let outputs = |model: &ModelProto, level| -> Result<Vec<Vec<HostTensor>>, Failure> {
        let options = SessionOptions { level, threads: pieces.threads, ..SessionOptions::default() };
        let serialized = model.encode_to_vec();
        let mut session = runtime.open(ModelSource::bytes(&serialized), &options)?;
        drop(serialized);
        release_weights();
        cases.iter().map(|(_, feeds)| Ok(session.run(feeds)?)).collect()
    };
    let names: Vec<String> = piece.before.graph.iter().flat_map(|g| g.output.iter().map(|o| o.name().to_string())).collect();
    let plain = outputs(&piece.before, OptLevel::Disabled)?;
    let tuned = outputs(&piece.before, OptLevel::All)?;
    let ours = outputs(&piece.after, OptLevel::All)?;
    let (mut worst, mut floor) = (Agreement::default(), Agreement::default());
    let rewritten = Model::from_proto(piece.after.clone())?;
    for (((name, feeds), want), (tuned, ours)) in cases.iter().zip(&plain).zip(tuned.iter().zip(&ours)) {
        let (theirs, ours) = (compare(&names, want, tuned), compare(&names, want, ours));
        if let Some(broken) = ours.breach(name).filter(|_| theirs.breach(name).is_none()) {
            return Err(Failure::new(format!("fill `{name}`: {broken}")).into());
        }
        if ours.relative > pieces.tolerance {
            let (ours, theirs) = (ours.relative, theirs.relative);
            let place = format!("fill `{name}`: it differs by {ours:.1e}, the noise floor is {theirs:.1e}");
            // Constants of a region may be folded, and so rounded, before it is cut out.
            match exact::agreement(&graph, rewritten.graph(), feeds) {
                Ok(exact) if exact.within(pieces.tolerance) => check.confirmed += 1,
                Ok(exact) => return Err(Failure::new(format!("{place}; in double precision, by {:.1e}", exact.relative)).into()),
                Err(why) => return Err(Failure::new(format!("{place}; double precision says nothing of it: {why}")).into()),
            }
        }
        worst.join(ours);
        floor.join(theirs);
    }
    if !pieces.memory.fits_reference(bytes) || flops(&graph, &Sizes::default()) > HEAVY_FLOPS {
        check.reference_note = Some("some regions were too large for the reference executor".into());
        return Ok((worst, floor));
    }
    if let Some(agreement) = reference(rewritten.graph(), &cases[0].1, &names, &plain[0], check) {
        let rounds = || exact::agreement(&graph, rewritten.graph(), &cases[0].1).is_ok_and(|exact| exact.within(pieces.tolerance));
        if !agreement.within(pieces.tolerance) && !rounds() {
            return Err(Failure::new(format!("the reference executor differs by {:.1e}", agreement.relative)).into());
        }
        check.worst_reference = Some(check.worst_reference.unwrap_or(0.0).max(agreement.relative));
        check.reference_fills = 1;
    }
    Ok((worst, floor))
}

/// The rewritten region on the reference executor against the original on the runtime.
fn reference(after: &Graph, feeds: &Feeds, names: &[String], want: &[HostTensor], check: &mut Check) -> Option<Agreement> {
    let values = to_values(after, feeds)?;
    match eval::run::<f64>(after, &values, &mut eval::NoOpaque) {
        Ok(results) => {
            let have: Option<Vec<HostTensor>> = results.iter().zip(want).map(|(value, like)| to_host(value, like)).collect();
            Some(compare(names, want, &have?))
        }
        Err(why) => {
            check.reference_note = Some(why.to_string());
            None
        }
    }
}

/// Bytes of all computed values whose sizes are known.
fn values(graph: &Graph) -> u64 {
    let bytes = |ty: &regraft_ir::TensorType| ty.elements().known().map_or(0, |n| n.unsigned_abs().saturating_mul(ty.dtype.size() as u64));
    graph.ids().filter(|id| !graph.node(*id).constant).flat_map(|id| graph.node(id).types.iter().flatten()).map(bytes).sum()
}
