//! A certificate replayed before its model is written: distinct steps are proved on all cores, and those of earlier runs are known from the store.
//!
//! The replay is that of `regraft check`, by the same code; only who answers whether a region's sides are equal differs. The store is the user's own, and
//! believed here; `check` does not read it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use regraft_certify::{Certificate, Finding, Judged, ModelDigest, Region, Replayer, Stop, Trail, Word};
use regraft_ir::{Graph, Op, text};
use regraft_onnx::Model;
use regraft_prove::{Premises, Rounding, Verdict};
use regraft_runtime::{ProofKey, Store};

use crate::assumptions::clauses;
use crate::certificate::Open;
use crate::optimize::evidence::Rewritten;
use crate::optimize::questions::Questions;
use crate::report::Replayed;

/// The version of all that decides a proof.
const CHECKER: &str = env!("REGRAFT_CHECKER");
/// Part of the budget that replaying one certificate may take, and the least that it is given.
const SHARE: f64 = 0.25;
const LEAST: Duration = Duration::from_secs(5);

/// Proofs of steps: those of this run, and those of earlier ones in the store.
pub struct Proofs {
    store: Option<RefCell<Store>>,
    answers: RefCell<HashMap<ProofKey, Verdict>>,
    share: Duration,
}

/// A certificate, and the models that it is about.
pub struct Subject<'a> {
    /// The input as the file has it.
    pub input: &'a Model,
    /// Its digest, if the replay is to be remembered.
    pub digest: Option<&'a ModelDigest>,
    /// The version of the standard opset that it was brought to first.
    pub opset: Option<i64>,
    /// The rewritten graphs as they were read.
    pub rewritten: &'a [Rewritten],
    /// What was done to each of them.
    pub trails: Vec<Trail>,
    /// The model that would be written, and its bytes; or why it is not compared with where the rewrites lead.
    pub output: Result<(Model, Option<&'a [u8]>), String>,
}

impl Proofs {
    /// With what this store remembers, for a run of this budget.
    pub fn new(store: Option<Store>, budget: Duration) -> Proofs {
        Proofs { store: store.map(RefCell::new), answers: RefCell::default(), share: budget.mul_f64(SHARE).max(LEAST) }
    }

    /// Replays a certificate; an error says what of it is contradicted.
    pub fn replay(&self, subject: Subject<'_>) -> Result<Replayed, String> {
        let start = Instant::now();
        let nobody = ModelDigest(Vec::new());
        let Subject { input, digest, opset, rewritten, trails, output } = subject;
        let certificate = Certificate { tool: String::new(), input: digest.unwrap_or(&nobody).clone(), output: nobody, opset, trails };
        let whole = match (&output, digest) {
            (Ok((_, Some(bytes))), Some(_)) => Some(key(&[b"replay", certificate.to_text().as_bytes(), bytes])),
            _ => None,
        };
        let known = whole.and_then(|whole| self.recall(&whole)).and_then(|note| serde_json::from_str::<Replayed>(&note).ok());
        if let Some(known) = known {
            return Ok(Replayed { remembered: true, seconds: start.elapsed().as_secs_f64(), ..known });
        }
        let questions = Questions::new(self.answers.take(), start + self.share);
        let ask = |region: &Region| questions.ask(region_key(region), region, |key| self.recall(key).and_then(|note| verdict(&note)));
        let mut replayed = Replayed { steps: certificate.steps(), ..Replayed::default() };
        let follow = || {
            let mut asking = ask;
            let mut replayer = Replayer::asking(&mut asking);
            for (rewritten, trail) in rewritten.iter().zip(&certificate.trails) {
                replayer.follow(&mut rewritten.read.clone(), trail).map_err(|(Stop::Broken(why) | Stop::Differs(why))| why)?;
            }
            Ok::<Vec<Judged>, String>(replayer.judged)
        };
        let mut judged: Vec<Judged> = match &output {
            Ok((output, _)) => {
                let finding = questions.while_asking(|| certificate.replay_by(Replayer::asking(&mut |r| ask(r)), input, output));
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
        // Where an answer is not the one that was expected, more of the surroundings is looked at.
        while questions.was_wrong() {
            judged = questions.while_asking(follow)?;
        }
        let count = |word: Word| judged.iter().filter(|j| j.word == word).count();
        (replayed.proved, replayed.bounded) = (count(Word::Proved), count(Word::Bounded));
        replayed.open = judged.iter().filter(|j| j.word < Word::Bounded).map(Open::from).collect();
        let premises = judged.iter().fold(Premises::default(), |all, judged| all.and(judged.premises));
        replayed.assumptions = if replayed.steps == 0 { Vec::new() } else { clauses(premises, input) };
        replayed.seconds = start.elapsed().as_secs_f64();
        let whole = whole.filter(|_| replayed.is_shown()).and_then(|whole| Some((whole, serde_json::to_string(&replayed).ok()?)));
        let (answers, fresh) = questions.done();
        self.answers.replace(answers);
        let shown = self.answers.borrow();
        let fresh = fresh.into_iter().filter_map(|key| Some((key, note(shown.get(&key)?))));
        self.keep(fresh.chain(whole).collect());
        drop(shown);
        Ok(replayed)
    }

    fn recall(&self, key: &ProofKey) -> Option<String> {
        self.store.as_ref()?.borrow().proof(key).ok().flatten()
    }

    /// A store that cannot be written is no reason to fail: proofs in it save time only.
    fn keep(&self, proofs: Vec<(ProofKey, String)>) {
        if let Some(store) = self.store.as_ref().filter(|store| !proofs.is_empty() && !store.borrow().is_frozen()) {
            let _ = store.borrow_mut().put_proofs(&proofs);
        }
    }
}

/// What the store keeps of a verdict.
fn note(verdict: &Verdict) -> String {
    let premises = |p: &Premises| {
        let words = [(p.reals, " reals"), (p.defined, " defined"), (p.valued, " valued")];
        words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word).collect::<String>()
    };
    match verdict {
        Verdict::Proved(p) => format!("proved{}", premises(p)),
        Verdict::Bounded(p, rounding) => format!("bounded {:e}{}", rounding.relative, premises(p)),
        Verdict::Unproved(_) => String::new(),
    }
}

/// The verdict that a note is of; `None` if it is of none.
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
            _ => return None,
        }
    }
    Some(rounding.map_or(Verdict::Proved(premises), |rounding| Verdict::Bounded(premises, rounding)))
}

/// What a region says, wherever it is: both sides in the text format, with what that leaves out.
fn region_key(region: &Region) -> ProofKey {
    let said = [&region.before, &region.after].map(said);
    key(&[b"step", said[0].as_slice(), said[1].as_slice()])
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

/// A digest of these parts and of the program that judges them.
fn key(parts: &[&[u8]]) -> ProofKey {
    let mut hasher = blake3::Hasher::new();
    for part in [CHECKER.as_bytes()].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back() {
        let all = |reals, defined| Premises { reals, defined, valued: defined };
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
}
