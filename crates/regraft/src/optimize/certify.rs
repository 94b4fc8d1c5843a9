//! What a candidate's certificate must show before the candidate may be written.

use regraft_certify::Trail;
use regraft_ir::Trust;
use regraft_onnx::Model;
use regraft_rules::Library;

use crate::certificate::OPEN_SHOWN;
use crate::error::Failure;
use crate::optimize::candidate::Candidate;
use crate::optimize::evaluate::open_store;
use crate::optimize::load::Job;
use crate::optimize::proofs::{Proofs, Subject};
use crate::optimize::script::Rewritten;
use crate::report::{Check, Replayed};

/// The checker does not recompute constants with more elements than this.
const COMPUTED: i64 = 1 << 27;
/// Bytes per element needed to recompute a constant: the value and its operand in double precision,
/// the written one likewise, and as stored.
const BYTES: i64 = 40;

/// Replays certificates of candidates.
pub struct Certifier<'a> {
    job: &'a Job,
    proofs: Proofs,
    /// The input as it is in the file, if it is written for fewer sizes or at another opset.
    unconverted: Option<Model>,
    /// Elements of the largest constant that can be recomputed.
    computed: i64,
}

/// The edits to each graph of a candidate, as data; `None` if they cannot be expressed.
pub fn trails(rewritten: &[Rewritten], library: &Library) -> Option<Vec<Trail>> {
    rewritten.iter().map(|rewritten| rewritten.trail(library)).collect()
}

impl<'a> Certifier<'a> {
    /// For candidates of this job.
    pub fn new(job: &'a Job) -> Result<Certifier<'a>, Failure> {
        let Job { request, input, memory, .. } = job;
        let store = open_store(request.cost_store.as_ref(), request.frozen)?;
        let fits = i64::try_from(memory.limit).unwrap_or(i64::MAX) / BYTES;
        Ok(Certifier {
            job,
            proofs: Proofs::new(Some(store), request.budget),
            unconverted: input.is_converted().then(|| Model::read(&request.input)).transpose()?,
            computed: if memory.is_tight() { (fits / 4).min(COMPUTED) } else { COMPUTED },
        })
    }

    /// Whether every step must be proved.
    fn is_strict(&self) -> bool {
        self.job.request.rules.require == Some(Trust::Proved)
    }

    /// Whether each rewrite by this rule must be proved where it applies: the rule is proved on
    /// instances, which may be narrower than what it matches.
    fn is_own(&self, rule: &str) -> bool {
        self.job.rules.own.contains(rule)
    }

    /// The candidate's check, made by `numeric`, with the replay of its certificate. It fails if
    /// the certificate is contradicted, or if a rewrite that must be proved is not.
    pub fn examine(&self, candidate: &Candidate, numeric: impl FnOnce() -> Check) -> Check {
        // A candidate that may well remain unproved is judged before it is run.
        let is_doubtful = candidate.script.rewrites().any(|rewrite| self.is_own(&rewrite.step.patch().cause));
        let judged = is_doubtful.then(|| self.judge(candidate));
        let check = match &judged {
            Some((_, Some(_))) => Check { passed: true, ..Check::default() },
            _ => numeric(),
        };
        if !check.passed {
            return check;
        }
        let (replay, refusal) = judged.unwrap_or_else(|| self.judge(candidate));
        match refusal {
            Some(Refusal { why, blamed }) => Check { passed: false, notes: vec![why], replay, blamed, ..check },
            None => Check { replay, ..check },
        }
    }

    /// What the replay shows, and why it rules out the candidate.
    fn judge(&self, candidate: &Candidate) -> (Option<Replayed>, Option<Refusal>) {
        let rewritten = candidate.script.graphs(self.job.input.model.graph());
        let Some(trails) = trails(&rewritten, &self.job.rules.library) else {
            let why = "a rewrite reads a value of unknown type, and cannot be proved";
            return (None, self.is_strict().then(|| Refusal::of(why.into())));
        };
        let replayed = self.replay(candidate, &rewritten, trails);
        regraft_onnx::release_weights();
        match replayed {
            Err(why) => (None, Some(Refusal::of(format!("its certificate does not hold: {why}")))),
            Ok(mut replayed) => {
                let refusal = self.refusal(&replayed, &rewritten);
                replayed.open.truncate(OPEN_SHOWN);
                (Some(replayed), refusal)
            }
        }
    }

    /// The first step that must be proved and is not: by a user's rule, by one that is proved up to
    /// rounded constants, or outside what its rule's proof covers.
    fn refusal(&self, replayed: &Replayed, rewritten: &[Rewritten]) -> Option<Refusal> {
        if self.is_strict() && replayed.bounded > 0 {
            return Some(Refusal::of(format!("{} of its rewrites are proved up to rounded constants only", replayed.bounded)));
        }
        replayed.open.iter().find_map(|step| {
            let no_proof = format!("no proof of {} at {}: {}", step.rule, step.at, step.why);
            let blamed = Some((step.rule.clone(), step.at.clone()));
            if self.is_strict() || self.is_own(&step.rule) {
                return Some(Refusal { why: no_proof, blamed });
            }
            // Rules match numbers to six digits, of which not all are what the prover reads.
            if self.job.rules.library.get(&step.rule).is_some_and(|rule| rule.trust == Trust::Bounded) {
                return Some(Refusal { why: format!("{no_proof}, and its rule holds up to rounded constants only"), blamed });
            }
            let graph = rewritten.iter().find(|rewritten| rewritten.label == step.graph)?;
            let outside = graph.uncovered(&self.job.rules.library, step.number)?;
            Some(Refusal { why: format!("{no_proof}, and the proof of its rule does not cover it: {outside}"), blamed })
        })
    }

    fn replay(&self, candidate: &Candidate, rewritten: &[Rewritten], trails: Vec<Trail>) -> Result<Replayed, String> {
        let input = &self.job.input;
        let largest = candidate.graph.ids().flat_map(|id| &candidate.graph.node(id).types).flatten();
        let largest = largest.filter_map(|ty| ty.elements().known()).max().unwrap_or(0);
        let output = if largest > self.computed {
            Err("it has constants that are too large to be computed again".into())
        } else {
            Ok(candidate.artifact.read().map_err(|e| e.cause)?)
        };
        let input_model = self.unconverted.as_ref().unwrap_or(&input.model);
        let (digest, fixed, opset) = (input.digest.as_ref(), &input.fixed, input.opset);
        self.proofs.replay(Subject { input: input_model, digest, fixed, opset, rewritten, trails, output })
    }
}

/// Why a candidate may not be written.
struct Refusal {
    why: String,
    /// The rewrite to blame, if known: rule and place.
    blamed: Option<(String, String)>,
}

impl Refusal {
    /// A refusal that no single rewrite is to blame for.
    fn of(why: String) -> Refusal {
        Refusal { why, blamed: None }
    }
}
