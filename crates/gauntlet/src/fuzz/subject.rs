//! Whether a rewritten random model is still the same model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use prost::Message;
use regraft::agreement::compare;
use regraft::exact::{self, CONFIRMED};
use regraft_certify::Judged;
use regraft_onnx::Signature;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{Feeds, HostTensor, OptLevel};
use regraft_search::RandomWalk;

use crate::caught::message;
use crate::trial::Bench;

/// The outcome for a random model.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The same model.
    Held {
        /// Number of rewrites.
        rewrites: usize,
        /// The certificate's verdict on each step.
        steps: Vec<Judged>,
        /// Why the certificate does not lead to the model, if so.
        uncertified: Option<String>,
        /// Differences beyond the tolerance that double precision confirms to be rounding.
        excused: Vec<String>,
    },
    /// Not the same model.
    Broken {
        /// What is wrong.
        kind: Kind,
        /// The description.
        what: String,
        /// Rules, in order of application.
        rules: Vec<String>,
    },
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another result.
    Wrong,
    /// Cannot be read, written or run.
    Invalid,
    /// A panic.
    Crash,
    /// Another signature.
    Signature,
}

/// A model with its feeds, and the baseline's outputs.
pub struct Subject<'a> {
    bytes: &'a [u8],
    feeds: &'a [Feeds],
    tolerance: f64,
    want: Vec<Vec<HostTensor>>,
}

impl<'a> Subject<'a> {
    /// Runs the model on the baseline. Rules are laws of the reals: where the expected outputs are
    /// not finite numbers, kernels choose freely, and nothing can be compared.
    pub fn new(bench: &Bench, bytes: &'a [u8], feeds: &'a [Feeds], tolerance: f64) -> Result<Subject<'a>, String> {
        let want: Vec<Vec<HostTensor>> =
            feeds.iter().map(|f| bench.outputs(bytes, OptLevel::Disabled, f).map_err(|e| format!("{e:#}"))).collect::<Result<_, _>>()?;
        if want.iter().flatten().any(|tensor| tensor.dtype().is_float() && tensor.to_f64().iter().any(|v| v.is_nan())) {
            return Err("outputs are no numbers".into());
        }
        Ok(Subject { bytes, feeds, tolerance, want })
    }

    /// Rewrites the model and compares.
    pub fn check(&self, bench: &Bench, walk: RandomWalk) -> Outcome {
        let broken = |kind, what: String, rules: &[String]| Outcome::Broken { kind, what, rules: rules.to_vec() };
        let rewritten = match catch_unwind(AssertUnwindSafe(|| bench.rewrite(self.bytes, walk))) {
            Ok(Ok(rewritten)) => rewritten,
            Ok(Err(why)) => return broken(Kind::Invalid, format!("{why:#}"), &[]),
            Err(panic) => return broken(Kind::Crash, message(panic.as_ref()), &[]),
        };
        let rules = &rewritten.rules;
        let (Ok(before), Ok(after)) = (ModelProto::decode(self.bytes), ModelProto::decode(rewritten.bytes.as_slice())) else {
            return broken(Kind::Invalid, "the written model is no model".into(), rules);
        };
        let (before, after) = (Signature::of(&before), Signature::of(&after));
        if before != after {
            return broken(Kind::Signature, format!("{before:?} became {after:?}"), rules);
        }
        let names: Vec<String> = before.outputs.iter().map(|o| o.name.clone()).collect();
        let mut excused = Vec::new();
        for (feeds, want) in self.feeds.iter().zip(&self.want) {
            let have = match bench.outputs(&rewritten.bytes, OptLevel::Disabled, feeds) {
                Ok(have) => have,
                Err(why) => return broken(Kind::Invalid, format!("{why:#}"), rules),
            };
            let agreement = compare(&names, want, &have);
            if agreement.within(self.tolerance) {
                continue;
            }
            let wrong = agreement.broken.iter().chain(&agreement.lost).next().cloned();
            let what = wrong.unwrap_or_else(|| format!("`{}` differs by {:.1e}", agreement.output, agreement.relative));
            match exact::agreement(&rewritten.before, &rewritten.after, feeds) {
                Ok(exact) if exact.within(CONFIRMED) => excused.push(format!("{what}, and by {:.1e} in double precision", exact.relative)),
                Ok(exact) => {
                    let exact =
                        exact.broken.iter().chain(&exact.lost).next().cloned().unwrap_or_else(|| format!("by {:.1e}", exact.relative));
                    return broken(Kind::Wrong, format!("{what}; in double precision, {exact}"), rules);
                }
                Err(why) => return broken(Kind::Wrong, format!("{what}; double precision says nothing of it: {why}"), rules),
            }
        }
        Outcome::Held { rewrites: rules.len(), steps: rewritten.judged, uncertified: rewritten.uncertified, excused }
    }
}
