//! Replays a certificate before its model is written: distinct steps are proved on all cores, and
//! those of earlier runs come from the store.
//!
//! The replay uses the code of `regraft check`; only the source of its answers differs: whether a
//! region's sides are equal, and how far written constants are from their expressions. The store is
//! the user's own and trusted here; `check` does not read it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use prost::Message;
use regraft_certify::{Certificate, Finding, Judged, ModelDigest, Oracle, Region, Replayer, Stop, Trail};
use regraft_ir::folded::{Differences, Folded};
use regraft_ir::key::op_key;
use regraft_ir::{Graph, Op, Trust, ValueId, text};
use regraft_onnx::{FixedSizes, Model};
use regraft_prove::{Premises, Rounding, Verdict};
use regraft_runtime::{ProofKey, Store};

use crate::assumptions::{clauses, limited, rounding};
use crate::certificate::Open;
use crate::optimize::questions::Questions;
use crate::optimize::script::Rewritten;
use crate::report::Replayed;

/// The version of everything that determines a proof.
const CHECKER: &str = env!("REGRAFT_CHECKER");
/// Share of the budget that replaying one certificate may take, and the least time it gets.
const SHARE: f64 = 0.25;
const LEAST: Duration = Duration::from_secs(20);
/// Bytes of a constant's digest.
const DIGEST: usize = 16;

/// Proofs of steps: from this run, and from earlier ones in the store.
pub struct Proofs {
    store: Option<RefCell<Store>>,
    answers: RefCell<HashMap<ProofKey, Verdict>>,
    share: Duration,
}

/// A certificate, and the models it is about.
pub struct Subject<'a> {
    /// The input as it is in the file.
    pub input: &'a Model,
    /// Its digest, if the replay is to be remembered.
    pub digest: Option<&'a ModelDigest>,
    /// The sizes it was fixed at first.
    pub fixed: &'a FixedSizes,
    /// The version of the standard opset it was then converted to.
    pub opset: Option<i64>,
    /// The rewritten graphs, as read.
    pub rewritten: &'a [Rewritten],
    /// The edits to each of them.
    pub trails: Vec<Trail>,
    /// The model to be written; or why it is not compared with the result of the rewrites.
    pub output: Result<Model, String>,
}

/// Queries the prover in other threads, and remembers.
struct Asking<'a> {
    proofs: &'a Proofs,
    questions: &'a Questions,
    /// Differences of constants that were computed here.
    fresh: &'a RefCell<Vec<(ProofKey, String)>>,
}

impl Oracle for Asking<'_> {
    fn equal(&mut self, region: &Region) -> Verdict {
        self.questions.ask(region_key(region), region, |key| self.proofs.recall(key).and_then(|note| verdict(&note)))
    }

    fn differences(&mut self, folded: &[Folded]) -> Vec<Differences> {
        let keys: Vec<ProofKey> = folded.iter().map(folded_key).collect();
        let recalled = |key: &ProofKey| self.proofs.recall(key).and_then(|note| numbers(&note));
        let mut known: Vec<Option<Differences>> = keys.iter().map(|key| recalled(key).map(Ok)).collect();
        let unknown: Vec<usize> = (0..folded.len()).filter(|at| known[*at].is_none()).collect();
        let computed = Folded::all_differences(&unknown.iter().map(|at| &folded[*at]).collect::<Vec<_>>());
        for (at, differences) in unknown.into_iter().zip(computed) {
            let shown = differences.as_ref().ok().map(|numbers| (keys[at], numbers_note(numbers)));
            self.fresh.borrow_mut().extend(shown);
            known[at] = Some(differences);
        }
        known.into_iter().flatten().collect()
    }
}

impl Proofs {
    /// With what this store remembers, for a run with this budget.
    pub fn new(store: Option<Store>, budget: Duration) -> Proofs {
        Proofs { store: store.map(RefCell::new), answers: RefCell::default(), share: budget.mul_f64(SHARE).max(LEAST) }
    }

    /// Replays a certificate; an error names the part that is contradicted.
    pub fn replay(&self, subject: Subject<'_>) -> Result<Replayed, String> {
        let start = Instant::now();
        let nobody = ModelDigest(Vec::new());
        let Subject { input, digest, fixed, opset, rewritten, trails, output } = subject;
        let (tool, digest_in) = (String::new(), digest.unwrap_or(&nobody).clone());
        let certificate = Certificate { tool, input: digest_in, output: nobody, fixed: fixed.clone(), opset, trails };
        let whole = match (&output, digest) {
            (Ok(output), Some(_)) => Some(key(&[b"replay 2", certificate.to_text().as_bytes(), &skeleton(output)])),
            _ => None,
        };
        let known = whole.and_then(|whole| self.recall(&whole)).and_then(|note| serde_json::from_str::<Replayed>(&note).ok());
        if let Some(known) = known {
            return Ok(Replayed { remembered: true, seconds: start.elapsed().as_secs_f64(), ..known });
        }
        let questions = Questions::new(self.answers.take(), start + self.share);
        let computed = RefCell::default();
        let asking = || Replayer::asking(Asking { proofs: self, questions: &questions, fresh: &computed });
        let mut replayed = Replayed { steps: certificate.steps(), ..Replayed::default() };
        let follow = || {
            let mut replayer = asking();
            for (rewritten, trail) in rewritten.iter().zip(&certificate.trails) {
                replayer.follow(&mut rewritten.read.clone(), trail).map_err(|(Stop::Broken(why) | Stop::Differs(why))| why)?;
            }
            Ok::<Vec<Judged>, String>(replayer.judged)
        };
        let mut judged: Vec<Judged> = match &output {
            Ok(output) => {
                let finding = questions.while_asking(|| certificate.replay_by(asking(), input, output));
                match finding.map_err(|e| e.to_string())? {
                    Finding::Replayed(replay) => {
                        replay.arrival?;
                        (replayed.rounded, replayed.bound) = (replay.rounding.constants, replay.rounding.bound);
                        replay.judged
                    }
                    Finding::Tampered(why) | Finding::OtherInput(why) => return Err(why),
                }
            }
            Err(why) => {
                replayed.uncompared = Some(why.clone());
                questions.while_asking(follow)?
            }
        };
        // If an answer is not the expected one, the replay asks about a larger region.
        while questions.was_wrong() {
            judged = questions.while_asking(follow)?;
        }
        let count = |trust: Trust| judged.iter().filter(|j| j.trust == trust).count();
        (replayed.proved, replayed.bounded) = (count(Trust::Proved), count(Trust::Bounded));
        replayed.open = judged.iter().filter(|j| j.trust < Trust::Bounded).map(Open::from).collect();
        let premises = judged.iter().fold(Premises::default(), |all, judged| all.and(judged.premises));
        replayed.assumptions = if replayed.steps == 0 { Vec::new() } else { clauses(premises, input) };
        replayed.assumptions.extend(rounding(replayed.rounded, replayed.bound).into_iter().chain(limited(fixed)));
        replayed.seconds = start.elapsed().as_secs_f64();
        let whole = whole.filter(|_| replayed.is_shown()).and_then(|whole| Some((whole, serde_json::to_string(&replayed).ok()?)));
        let (answers, fresh) = questions.done();
        self.answers.replace(answers);
        let shown = self.answers.borrow();
        let fresh = fresh.into_iter().filter_map(|key| Some((key, note(shown.get(&key)?))));
        self.keep(fresh.chain(computed.into_inner()).chain(whole).collect());
        drop(shown);
        Ok(replayed)
    }

    fn recall(&self, key: &ProofKey) -> Option<String> {
        self.store.as_ref()?.borrow().proof(key).ok().flatten()
    }

    /// Failing to write the store is not an error: its proofs only save time.
    fn keep(&self, proofs: Vec<(ProofKey, String)>) {
        if let Some(store) = self.store.as_ref().filter(|store| !proofs.is_empty() && !store.borrow().is_frozen()) {
            let _ = store.borrow_mut().put_proofs(&proofs);
        }
    }
}

/// What the store keeps of a verdict.
fn note(verdict: &Verdict) -> String {
    let premises = |p: &Premises| {
        let words = [(p.reals, " reals"), (p.defined, " defined"), (p.valued, " valued"), (p.fits, " fits")];
        words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect::<String>()
    };
    match verdict {
        Verdict::Proved(p) => format!("proved{}", premises(p)),
        Verdict::Bounded(p, rounding) => format!("bounded {:e}{}", rounding.relative, premises(p)),
        Verdict::Unproved(_) => String::new(),
    }
}

/// The verdict recorded in a note; `None` if there is none.
fn verdict(note: &str) -> Option<Verdict> {
    let mut words = note.split(' ');
    let rounding = match words.next()? {
        "proved" => None,
        "bounded" => Some(Rounding { relative: words.next()?.parse().ok()? }),
        _ => return None,
    };
    let mut premises = Premises::default();
    for word in words {
        match word {
            "reals" => premises.reals = true,
            "defined" => premises.defined = true,
            "valued" => premises.valued = true,
            "fits" => premises.fits = true,
            _ => return None,
        }
    }
    Some(rounding.map_or(Verdict::Proved(premises), |rounding| Verdict::Bounded(premises, rounding)))
}

/// What the store keeps of differences of constants.
fn numbers_note(numbers: &[f64]) -> String {
    numbers.iter().map(|number| format!("{number:e}")).collect::<Vec<_>>().join(" ")
}

/// The differences recorded in a note.
fn numbers(note: &str) -> Option<Vec<f64>> {
    note.split(' ').map(|word| word.parse().ok()).collect()
}

/// A region's content, wherever it is: both sides in the text format, with what that leaves out.
fn region_key(region: &Region) -> ProofKey {
    let said = [&region.before, &region.after].map(said);
    key(&[b"step", said[0].as_slice(), said[1].as_slice()])
}

/// The content of constant expressions and of the values written for them, weights by digest.
fn folded_key(folded: &Folded) -> ProofKey {
    let said = [&folded.expressions, &folded.written].map(|graph| {
        let mut said = Vec::new();
        for id in graph.topological() {
            let node = graph.node(id);
            let types: Vec<String> = node.types.iter().map(|ty| format!("{ty:?}")).collect();
            said.extend(op_key(&node.op).to_le_bytes());
            said.extend(format!("{id:?} {:?} {}\n", node.inputs, types.join(" ")).bytes());
        }
        let outputs: Vec<ValueId> = graph.outputs().iter().map(|output| output.value).collect();
        said.extend(format!("{outputs:?}").bytes());
        said
    });
    key(&[b"folded", said[0].as_slice(), said[1].as_slice()])
}

fn said(graph: &Graph) -> Vec<u8> {
    let mut said = text::print(graph).into_bytes();
    for id in graph.topological() {
        let node = graph.node(id);
        for ty in node.types.iter().flatten() {
            let sizes: Vec<String> = ty.shape.iter().map(|size| format!("{size:#}")).collect();
            said.extend(format!("{}[{}] {}\n", ty.dtype, sizes.join(","), node.constant).bytes());
        }
        if let Op::Constant(constant) = &node.op {
            said.extend(constant.value.bytes());
        }
    }
    said
}

/// A model as written, with digests in place of its weights.
fn skeleton(model: &Model) -> Vec<u8> {
    let graph = model.graph();
    let constants = graph.ids().filter_map(|id| if let Op::Constant(constant) = &graph.node(id).op { Some(&constant.value) } else { None });
    let constants: HashMap<_, _> = constants.map(|value| ((value.bytes().as_ptr(), value.bytes().len()), value)).collect();
    let mut proto = model.proto().clone();
    for tensor in proto.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        let raw = tensor.raw_data.as_ref().filter(|raw| raw.len() > DIGEST);
        if let Some(value) = raw.and_then(|raw| constants.get(&(raw.as_ptr(), raw.len()))) {
            // Shorter than its type requires, so it equals no readable tensor.
            tensor.raw_data = Some(value.fingerprint().to_le_bytes().to_vec().into());
        }
    }
    proto.encode_to_vec()
}

/// A digest of these parts and of the version of the checker.
fn key(parts: &[&[u8]]) -> ProofKey {
    let mut hasher = blake3::Hasher::new();
    for part in [CHECKER.as_bytes()].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use regraft_ir::{Const, DType};
    use regraft_onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto};

    use super::*;

    #[test]
    fn notes_are_read_back() {
        let all = |reals, defined| Premises { reals, defined, valued: defined, fits: !reals };
        for known in [
            Verdict::Proved(all(false, false)),
            Verdict::Proved(all(true, true)),
            Verdict::Bounded(all(true, false), Rounding { relative: 2.98e-8 }),
        ] {
            assert_eq!(verdict(&note(&known)), Some(known));
        }
        for other in ["", "tested", "proved surely", "bounded", &note(&Verdict::Unproved("why".into()))] {
            assert_eq!(verdict(other), None, "{other}");
        }
    }

    fn constant(values: &[f64]) -> Graph {
        let mut graph = Graph::default();
        let value = graph.add_const(Const::from_f64(DType::F32, &[values.len() as i64], values).unwrap());
        graph.add_output("y", value);
        graph
    }

    #[test]
    fn differences_of_constants_are_remembered_and_wrong_constants_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let expressions = text::parse("graph () { const c: f32[2] = [1, 3] const d: f32[] = 3 y = Div(c, d) output y }").unwrap();
        let folded =
            [[1.0 / 3.0, 1.0], [1.0 / 3.0, 1.1]].map(|found| Folded { expressions: expressions.clone(), written: constant(&found) });
        let run = || {
            let proofs = Proofs::new(Some(Store::open(&folder.path().join("store.sqlite")).unwrap()), Duration::ZERO);
            let (questions, fresh) = (Questions::new(HashMap::new(), Instant::now()), RefCell::default());
            let found = Asking { proofs: &proofs, questions: &questions, fresh: &fresh }.differences(&folded);
            let fresh = fresh.into_inner();
            let computed = fresh.len();
            proofs.keep(fresh);
            assert!(found[1].is_err());
            (computed, found[0].as_ref().unwrap().clone())
        };
        let first = run();
        assert!(first.0 == 1 && first.1[0] > 0.0 && first.1[0] < 5e-8, "{first:?}");
        assert_eq!(run(), (0, first.1));
    }

    #[test]
    fn skeletons_tell_weights_apart_without_holding_them() {
        let written = |weight: f32| {
            let node =
                NodeProto { input: vec!["w".into()], output: vec!["y".into()], op_type: Some("Relu".into()), ..NodeProto::default() };
            let raw_data = Some(weight.to_le_bytes().repeat(500).into());
            let w = TensorProto { name: Some("w".into()), data_type: Some(1), dims: vec![500], raw_data, ..TensorProto::default() };
            let output = ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() };
            let graph = GraphProto { node: vec![node], initializer: vec![w], output: vec![output], ..GraphProto::default() };
            let opset_import = vec![OperatorSetIdProto { version: Some(18), ..OperatorSetIdProto::default() }];
            Model::from_proto(ModelProto { graph: Some(graph), opset_import, ir_version: Some(8), ..ModelProto::default() }).unwrap()
        };
        let [one, same, other] = [1.0, 1.0, 2.0].map(|weight| skeleton(&written(weight)));
        assert!(one == same && one != other && one.len() < 500, "{} bytes", one.len());
    }
}
