//! Prices recorded on one machine, as a file that another one decides by.

use regraft_ir::{Bindings, Kernel};
use regraft_runtime::Measurement;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::measured::Measured;
use crate::persist::Target;
use crate::signature::Signature;

/// First field of the file.
const FORMAT: &str = "regraft recording";
/// Version of the file's layout.
const VERSION: u64 = 2;
/// Most threads that a recording may claim: more are a mistake.
const MOST_THREADS: u32 = 1 << 16;

/// Why a file is no recording that this version reads.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum RecordingError {
    /// Not JSON, half a file, or JSON of something else.
    #[error("is no recording of prices: {cause}")]
    Alien { cause: String },
    /// Another version of this program wrote it.
    #[error("is a recording of prices in layout {found}, this version reads {VERSION}")]
    Version { found: u64 },
    /// A field has a value that no recording has.
    #[error("is a damaged recording of prices: {cause}")]
    Damaged { cause: String },
}

/// Prices of operators and times of whole models, recorded for one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    format: String,
    version: u64,
    /// The program that recorded it, and its version.
    pub tool: String,
    /// The processor.
    pub device: String,
    /// What the prices are valid for.
    pub target: Target,
    /// When, in seconds since 1970.
    pub recorded_at: i64,
    /// The models that were recorded.
    pub models: Vec<RecordedModel>,
    /// The prices.
    pub prices: Vec<RecordedPrice>,
    /// Whole runs and speeds, as the store of measurements keeps them.
    pub others: Vec<RecordedPrice>,
}

/// A model as it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedModel {
    /// Its file.
    pub name: String,
    /// BLAKE3 digest of its file and those of its weights, hexadecimal.
    pub digest: Vec<String>,
    /// Sizes of its inputs.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Median of whole runs, ns.
    pub run_ns: f64,
    /// Distance between the quartiles of whole runs, ns.
    pub spread_ns: f64,
    /// Whole runs.
    pub runs: usize,
    /// Models that one of the rules made of it everywhere, and that were profiled for the prices of
    /// their operators.
    pub variants: usize,
    /// Standard deviation of the logarithm of what the prices say of the speed of these, against
    /// what was measured of it.
    pub error: f64,
    /// Its operators: name, signature, and price in ns.
    pub profile: Vec<(String, String, u64)>,
}

/// The price of one signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedPrice {
    /// What was measured.
    pub signature: String,
    /// Class of its kernel, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Median, ns.
    pub median_ns: u64,
    /// Spread, ns.
    pub spread_ns: u64,
    /// Number of samples.
    pub samples: u32,
}

impl Recording {
    /// What was measured for a target; `kernels` has the classes of signatures' cores.
    pub fn new(
        (tool, device): (String, String),
        target: Target,
        recorded_at: i64,
        models: Vec<RecordedModel>,
        measurements: &[Measurement],
        kernels: &FxHashMap<String, Kernel>,
    ) -> Recording {
        let row = |m: &Measurement, kernel: Option<Kernel>| RecordedPrice {
            signature: m.key.signature.clone(),
            kernel: kernel.map(|kernel| word(kernel).to_owned()),
            median_ns: m.median_ns,
            spread_ns: m.spread_ns,
            samples: m.samples,
        };
        let (mut prices, mut others) = (Vec::new(), Vec::new());
        for m in measurements {
            match Signature::parse(&m.key.signature) {
                Some(signature) => prices.push(row(m, kernels.get(&signature.core).copied())),
                None => others.push(row(m, None)),
            }
        }
        Recording { format: FORMAT.into(), version: VERSION, tool, device, target, recorded_at, models, prices, others }
    }

    /// The file's contents.
    pub fn to_text(&self) -> String {
        // Maps with keys that are no strings do not occur.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a file's contents.
    ///
    /// # Errors
    ///
    /// What is no recording, not a whole one, or one of another version.
    pub fn parse(text: &str) -> Result<Recording, RecordingError> {
        let alien = |cause: String| RecordingError::Alien { cause };
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| alien(e.to_string()))?;
        if value.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            return Err(alien(format!("its `format` is not `{FORMAT}`")));
        }
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(VERSION) => {}
            Some(found) => return Err(RecordingError::Version { found }),
            None => return Err(alien("it has no `version`".into())),
        }
        let damaged = |cause: String| RecordingError::Damaged { cause };
        let recording: Recording = serde_json::from_value(value).map_err(|e| damaged(e.to_string()))?;
        recording.flaw().map_or(Ok(recording), |cause| Err(damaged(cause)))
    }

    /// What no recording has.
    fn flaw(&self) -> Option<String> {
        if !(1..=MOST_THREADS).contains(&self.target.threads) {
            return Some(format!("it is of {} threads", self.target.threads));
        }
        if self.prices.is_empty() || self.models.is_empty() {
            return Some("it has no prices, or no models".into());
        }
        for price in &self.prices {
            let named = |what: &str| Some(format!("the price of `{}` {what}", price.signature));
            if Signature::parse(&price.signature).is_none() {
                return named("belongs to no signature");
            }
            if price.kernel.as_ref().is_some_and(|name| kernel(name).is_none()) {
                return named("is of an unknown class of kernels");
            }
            if price.samples == 0 {
                return named("rests on no samples");
            }
        }
        let is_time = |ns: f64| ns.is_finite() && ns >= 0.0;
        let is_bad = |model: &&RecordedModel| model.run_ns == 0.0 || ![model.run_ns, model.spread_ns, model.error].into_iter().all(is_time);
        let bad = self.models.iter().find(is_bad);
        bad.map(|model| format!("the time of `{}` is no time", model.name))
    }

    /// How much whole runs differ: the distance between their quartiles, relative to their median;
    /// the largest of all models.
    pub fn spread(&self) -> f64 {
        self.models.iter().map(|model| model.spread_ns / model.run_ns).fold(0.0, f64::max)
    }

    /// How far prices were off about whole models: the largest error of all models.
    pub fn error(&self) -> f64 {
        self.models.iter().map(|model| model.error).fold(0.0, f64::max)
    }

    /// The price list, for a model whose symbols have these values.
    pub fn measured(&self, bindings: Bindings) -> Measured {
        let row = |price: &RecordedPrice| Measurement {
            key: self.target.key(price.signature.as_str()),
            median_ns: price.median_ns,
            spread_ns: price.spread_ns,
            samples: price.samples,
            context: String::new(),
            updated_at: 0,
        };
        Measured::of(bindings, self.prices.iter().chain(&self.others).map(row))
    }

    /// Classes of kernels by the cores of signatures.
    pub fn kernels(&self) -> FxHashMap<String, Kernel> {
        let known = |price: &RecordedPrice| Some((Signature::parse(&price.signature)?.core, kernel(price.kernel.as_ref()?)?));
        self.prices.iter().filter_map(known).collect()
    }
}

const KERNELS: [(Kernel, &str); 7] = [
    (Kernel::Dense, "dense"),
    (Kernel::Thin, "thin"),
    (Kernel::Elementwise, "elementwise"),
    (Kernel::Transcendental, "transcendental"),
    (Kernel::Window, "window"),
    (Kernel::Copy, "copy"),
    (Kernel::Free, "free"),
];

/// The name of a class of kernels.
pub(crate) fn word(kernel: Kernel) -> &'static str {
    KERNELS.iter().find(|(one, _)| *one == kernel).map_or("free", |(_, name)| name)
}

fn kernel(name: &str) -> Option<Kernel> {
    KERNELS.iter().find(|(_, one)| *one == name).map(|(kernel, _)| *kernel)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A recording of these prices: signature, class, ns.
    pub(crate) fn recording(prices: &[(&str, &str, u64)]) -> Recording {
        let price = |(signature, kernel, ns): &(&str, &str, u64)| RecordedPrice {
            signature: (*signature).into(),
            kernel: Some((*kernel).into()),
            median_ns: *ns,
            spread_ns: 0,
            samples: 1,
        };
        let model = RecordedModel {
            name: "m.onnx".into(),
            digest: vec!["00".into()],
            shapes: Vec::new(),
            run_ns: 1.0,
            spread_ns: 0.0,
            runs: 1,
            variants: 0,
            error: 0.0,
            profile: Vec::new(),
        };
        Recording {
            format: FORMAT.into(),
            version: VERSION,
            tool: "a test".into(),
            device: "a device".into(),
            target: Target { machine: "device/0/4".into(), runtime: "onnxruntime 1.0".into(), threads: 4 },
            recorded_at: 1,
            models: vec![model],
            prices: prices.iter().map(price).collect(),
            others: Vec::new(),
        }
    }

    const RELU: &str = "Relu(f32[4]) |  > out";

    #[test]
    fn what_is_written_is_read() {
        let recording = recording(&[(RELU, "elementwise", 7)]);
        assert_eq!(Recording::parse(&recording.to_text()), Ok(recording.clone()));
        assert_eq!(recording.measured(Bindings::new()).table().len(), 1);
        assert_eq!(recording.kernels().get("Relu(f32[4])"), Some(&Kernel::Elementwise));
    }

    #[test]
    fn no_part_of_a_file_is_a_recording() {
        let text = recording(&[(RELU, "elementwise", 7)]).to_text();
        let whole = text.trim_end().len();
        for end in 0..whole {
            assert!(Recording::parse(&text[..end]).is_err(), "{end} of {whole}");
        }
    }

    #[test]
    fn damage_is_told() {
        let good = recording(&[(RELU, "elementwise", 7)]).to_text();
        for (from, to, told) in [
            ("regraft recording", "something", "`format` is not"),
            ("\"version\": 2", "\"version\": 3", "in layout 3, this version reads 2"),
            ("\"version\": 2", "\"version\": \"x\"", "no `version`"),
            ("\"threads\": 4", "\"threads\": 0", "0 threads"),
            ("\"threads\": 4", "\"threads\": -4", "damaged"),
            ("elementwise", "magic", "unknown class of kernels"),
            (" |  > out", "", "belongs to no signature"),
            ("\"median_ns\": 7", "\"median_ns\": 1e400", "number out of range"),
            ("\"samples\": 1", "\"samples\": 0", "no samples"),
            ("\"run_ns\": 1.0", "\"run_ns\": 0.0", "is no time"),
            ("\"tool\"", "\"trool\"", "unknown field `trool`"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            let why = Recording::parse(&bad).expect_err(to).to_string();
            assert!(why.contains(told), "{from} as {to}: {why}");
        }
    }
}
