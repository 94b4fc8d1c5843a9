//! Whether a rewritten random model is still the same model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use prost::Message;
use regraft::agreement::compare;
use regraft_certify::Judged;
use regraft_onnx::Signature;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{DType, Feeds, HostTensor, OptLevel};
use regraft_search::RandomWalk;

use crate::trial::Bench;

/// How much of a difference may come from rounding: that of inputs and weights, times this.
const AMPLIFICATION: f64 = 100.0;
/// Relative change of inputs and weights that shows how a model amplifies rounding; about eight units in the last place.
const NUDGE: f32 = 1e-6;

/// What became of a random model.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The same model.
    Held {
        /// How many rewrites there were.
        rewrites: usize,
        /// What their certificate says of each step.
        steps: Vec<Judged>,
        /// Why it does not lead to the model, if so.
        uncertified: Option<String>,
    },
    /// Rounding alone changes the outputs as much.
    Unstable,
    /// Not the same model.
    Broken {
        /// What is wrong.
        kind: Kind,
        /// In words.
        what: String,
        /// Rules, in the order in which they were applied.
        rules: Vec<String>,
    },
}

/// Ways to be wrong.
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

/// A model with its feeds, and what the baseline makes of it.
pub struct Subject<'a> {
    bytes: &'a [u8],
    feeds: &'a [Feeds],
    tolerance: f64,
    want: Vec<Vec<HostTensor>>,
}

impl<'a> Subject<'a> {
    /// Runs the model on the baseline. Rules are laws of the reals: where the right outputs are no numbers, kernels choose freely, and nothing can
    /// be compared.
    pub fn new(bench: &Bench, bytes: &'a [u8], feeds: &'a [Feeds], tolerance: f64) -> Result<Subject<'a>, String> {
        let want: Vec<Vec<HostTensor>> =
            feeds.iter().map(|f| bench.outputs(bytes, OptLevel::Disabled, f).map_err(|e| format!("{e:#}"))).collect::<Result<_, _>>()?;
        if want.iter().flatten().any(|tensor| tensor.dtype().is_float() && tensor.to_f64().iter().any(|v| v.is_nan())) {
            return Err("outputs are no numbers".into());
        }
        Ok(Subject { bytes, feeds, tolerance, want })
    }

    /// Rewrites the model and compares.
    pub fn judge(&self, bench: &Bench, walk: RandomWalk) -> Finding {
        let broken = |kind, what: String, rules: &[String]| Finding::Broken { kind, what, rules: rules.to_vec() };
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
        for (feeds, want) in self.feeds.iter().zip(&self.want) {
            let have = match bench.outputs(&rewritten.bytes, OptLevel::Disabled, feeds) {
                Ok(have) => have,
                Err(why) => return broken(Kind::Invalid, format!("{why:#}"), rules),
            };
            let agreement = compare(&names, want, &have);
            if agreement.within(self.tolerance) {
                continue;
            }
            if let Some(what) = agreement.broken.first() {
                return broken(Kind::Wrong, what.clone(), rules);
            }
            if self.unstable(bench, &names, feeds, want, agreement.relative) {
                return Finding::Unstable;
            }
            return broken(Kind::Wrong, format!("`{}` differs by {:.1e}", agreement.output, agreement.relative), rules);
        }
        Finding::Held { rewrites: rules.len(), steps: rewritten.judged, uncertified: rewritten.uncertified }
    }

    /// True if the original itself changes as much when inputs and weights change in their last digits.
    fn unstable(&self, bench: &Bench, names: &[String], feeds: &Feeds, want: &[HostTensor], difference: f64) -> bool {
        let Ok(mut model) = ModelProto::decode(self.bytes) else { return false };
        for tensor in model.graph.iter_mut().flat_map(|g| &mut g.initializer).filter(|t| t.data_type() == 1) {
            tensor.raw_data = tensor.raw_data.take().map(|raw| Bytes::from(nudged(&raw)));
        }
        let nudge = |(name, tensor): (&str, &HostTensor)| {
            let changed = (tensor.dtype() == DType::F32)
                .then(|| HostTensor::from_bytes(DType::F32, tensor.shape().to_vec(), &nudged(tensor.bytes())).ok())
                .flatten();
            (name.to_string(), changed.unwrap_or_else(|| tensor.clone()))
        };
        let feeds: Feeds = feeds.iter().map(nudge).collect();
        let Ok(have) = bench.outputs(&model.encode_to_vec(), OptLevel::Disabled, &feeds) else { return false };
        let agreement = compare(names, want, &have);
        !agreement.broken.is_empty() || agreement.relative * AMPLIFICATION >= difference
    }
}

/// Every other number a little larger, the rest a little smaller.
fn nudged(raw: &[u8]) -> Vec<u8> {
    let numbers = raw.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    numbers.enumerate().flat_map(|(at, v)| (v * if at % 2 == 0 { 1.0 + NUDGE } else { 1.0 - NUDGE }).to_le_bytes()).collect()
}

/// What a panic said.
pub fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without a message"))
}
