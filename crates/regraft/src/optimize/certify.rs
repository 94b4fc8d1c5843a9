//! What is asked of a candidate's certificate before the candidate may be written.

use std::collections::BTreeSet;

use regraft_certify::{GraphPlace, ModelDigest, Trail};
use regraft_onnx::Model;
use regraft_rules::Library;

use crate::certificate::OPEN_SHOWN;
use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::evidence::Rewritten;
use crate::optimize::prices::open_store;
use crate::optimize::proofs::{Proofs, Subject};
use crate::optimize::request::Request;
use crate::optimize::room::Room;
use crate::report::{Check, Replayed};

/// Constants of more elements are not computed again by the checker.
const COMPUTED: i64 = 1 << 27;
/// Bytes per element that computing a constant again takes: the value and its operand in double precision, the written one likewise, and as stored.
const BYTES: i64 = 40;

/// Replays certificates of candidates.
pub struct Certifier<'a> {
    proofs: Proofs,
    model: &'a Model,
    /// The input as the file has it, if it was brought to another opset.
    unconverted: Option<Model>,
    opset: Option<i64>,
    digest: Option<&'a ModelDigest>,
    library: &'a Library,
    own: &'a BTreeSet<String>,
    /// Every step has to be proved.
    strict: bool,
    /// Elements of the largest constant that can be computed again.
    computed: i64,
}

impl<'a> Certifier<'a> {
    /// For candidates made of `model`. A rewrite by a rule in `own` is proved on instances that may be narrower than what it matches, and has to be proved
    /// where it is made.
    pub fn new(
        request: &Request,
        model: &'a Model,
        converted: bool,
        digest: Option<&'a ModelDigest>,
        library: &'a Library,
        own: &'a BTreeSet<String>,
        room: Room,
    ) -> Result<Certifier<'a>, Failure> {
        let store = open_store(request.cost_store.as_ref(), request.frozen)?;
        let fits = i64::try_from(room.limit).unwrap_or(i64::MAX) / BYTES;
        Ok(Certifier {
            proofs: Proofs::new(Some(store), request.budget),
            model,
            unconverted: converted.then(|| Model::read(&request.input)).transpose()?,
            opset: request.opset.filter(|_| converted),
            digest,
            library,
            own,
            strict: request.rules.require.as_deref() == Some("proved"),
            computed: if room.is_tight() { (fits / 4).min(COMPUTED) } else { COMPUTED },
        })
    }

    /// The graphs that were rewritten, and what was done to each; `None` if that cannot be said as data.
    pub fn trails(&self, candidate: &Candidate) -> Option<(Vec<Rewritten>, Vec<Trail>)> {
        let (place, read) = (GraphPlace::default(), self.model.graph().clone());
        let main = Rewritten { place, label: String::new(), read, moves: candidate.moves.clone() };
        let rewritten: Vec<Rewritten> = std::iter::once(main).chain(candidate.rewritten.iter().cloned()).collect();
        let trails = rewritten.iter().map(|r| r.trail(self.library)).collect::<Option<_>>()?;
        Some((rewritten, trails))
    }

    /// The candidate's check, which `numeric` makes, with what replaying the certificate shows. It fails if the certificate is contradicted, or if a rewrite is
    /// not proved that has to be.
    pub fn examine(&self, candidate: &Candidate, numeric: impl FnOnce() -> Check) -> Check {
        let is_own = |cause: &str| self.own.contains(cause);
        let mut moves = candidate.moves.iter().chain(candidate.rewritten.iter().flat_map(|r| &r.moves));
        // What may well not be proved is not run first.
        let judged = moves.any(|step| is_own(&step.patch.cause)).then(|| self.judge(candidate));
        let check = match &judged {
            Some((_, Some(_))) => Check { passed: true, ..Check::default() },
            _ => numeric(),
        };
        if !check.passed {
            return check;
        }
        let (replay, refused) = judged.unwrap_or_else(|| self.judge(candidate));
        match refused {
            Some(why) => Check { passed: false, notes: vec![why], replay, ..check },
            None => Check { replay, ..check },
        }
    }

    /// What the replay shows, and why the candidate is refused for it.
    fn judge(&self, candidate: &Candidate) -> (Option<Replayed>, Option<String>) {
        let Some((rewritten, trails)) = self.trails(candidate) else {
            return (None, self.strict.then(|| "a rewrite reads a value of unknown type, and cannot be proved".into()));
        };
        let replayed = self.replay(candidate, &rewritten, trails);
        regraft_onnx::release_weights();
        match replayed {
            Err(why) => (None, Some(format!("its certificate does not hold: {why}"))),
            Ok(mut replayed) => {
                let refused = self.refused(&replayed, &rewritten);
                replayed.open.truncate(OPEN_SHOWN);
                (Some(replayed), refused)
            }
        }
    }

    /// The first step that is not proved and has to be: by a rule of the user's, or outside of what the proof of its rule covers.
    fn refused(&self, replayed: &Replayed, rewritten: &[Rewritten]) -> Option<String> {
        if self.strict && replayed.bounded > 0 {
            return Some(format!("{} of its rewrites are proved up to rounded constants only", replayed.bounded));
        }
        replayed.open.iter().find_map(|step| {
            let no_proof = format!("no proof of {} at {}: {}", step.rule, step.at, step.why);
            if self.strict || self.own.contains(&step.rule) {
                return Some(no_proof);
            }
            let graph = rewritten.iter().find(|rewritten| rewritten.label == step.graph)?;
            let outside = graph.uncovered(self.library, step.number)?;
            Some(format!("{no_proof}, and the proof of its rule does not cover it: {outside}"))
        })
    }

    fn replay(&self, candidate: &Candidate, rewritten: &[Rewritten], trails: Vec<Trail>) -> Result<Replayed, String> {
        let largest = candidate.graph.ids().flat_map(|id| &candidate.graph.node(id).types).flatten();
        let largest = largest.filter_map(|ty| ty.elements().known()).max().unwrap_or(0);
        let output = match &candidate.artifact {
            _ if largest > self.computed => Err("it has constants that are too large to be computed again".into()),
            Some(artifact) => Ok(artifact.read().map_err(|e| e.cause)?),
            None => Ok(Model::from_proto(candidate.written.proto.clone()).map_err(|e| e.to_string())?),
        };
        let input = self.unconverted.as_ref().unwrap_or(self.model);
        let subject = Subject { input, digest: self.digest, opset: self.opset, rewritten, trails, output };
        self.proofs.replay(subject)
    }
}
