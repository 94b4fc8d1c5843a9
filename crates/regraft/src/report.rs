//! The report of a run: what `--json` and `--report` print, and what the table and the verdict line
//! are made from.

use std::path::{Path, PathBuf};

use regraft_ir::Trust;
use regraft_rules::Numeric;
use regraft_runtime::Startup;
use serde::{Deserialize, Serialize};

use crate::certificate::Open;
use crate::error::Failure;
use crate::histogram::Histogram;
use crate::refused::Refused;

/// Version of the report's layout; incremented when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// What `optimize` did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `regraft` and its version.
    pub tool: String,
    /// Rules that the run could apply.
    #[serde(skip)]
    pub rules: usize,
    /// Input file.
    pub input: String,
    /// Output file, if one was written.
    pub output: Option<String>,
    /// The record of how the output was made, step by step, if one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Sizes under which costs were measured: `input -> sizes`.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Sizes that were guessed, because the model leaves them open and the command line does not
    /// give them.
    pub guessed_shapes: bool,
    /// Sizes that what was written is limited to, where the input accepts others: `input -> sizes`,
    /// `None` for one that is still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<(String, Vec<Option<i64>>)>,
    /// Runtime and its version.
    pub runtime: String,
    /// Processor.
    pub machine: String,
    /// Threads per operator: all times and speed-ups are with so many, unless they say otherwise.
    pub threads: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Search strategy.
    pub search: String,
    /// Cost model: `measured`, `roofline`, `operators` or `recorded`.
    pub cost: String,
    /// What the decision rests on, if prices of another machine made it. Times and speed-ups are
    /// then predicted ones of that machine, with the threads that it was recorded with, and have no
    /// pairs; everything else is of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Predicted>,
    /// Times of the input and of the models tried end to end.
    pub timings: Vec<Timing>,
    /// Rewritten models of which the time did not suffice to tell whether they are faster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<Undecided>,
    /// The speed-up of what was written over the input.
    pub speedup: Speedup,
    /// What was written at one thread, if `threads` is more; over all bindings, if there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_thread: Option<SingleThread>,
    /// Gain that the price list predicted for what was written (ratio of totals), if something was
    /// rewritten.
    pub predicted_speedup: Option<f64>,
    /// What was written at each binding, if several were asked for; `speedup` and `timings` then
    /// hold geometric means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<AtBinding>,
    /// How the input is run, if the runtime refuses it with its own optimizer fully on: times and
    /// outputs of the input are those without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// True if the runtime loads what was written with its optimizer fully on, where it refuses the
    /// input so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rescued: bool,
    /// What a process takes that loads input and output, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<Startups>,
    /// How far input and output are from what the machine can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
    /// Every rewrite in what was written, in order.
    pub applied: Vec<Applied>,
    /// Normal forms and clean-ups: name and number of nodes removed.
    pub cleaned: Vec<(String, usize)>,
    /// What could have been done but was not, and why.
    pub not_done: Vec<NotDone>,
    /// The numeric check.
    pub check: Check,
    /// Size of input and output in bytes, external data included.
    pub bytes: (u64, u64),
    /// Nodes before and after.
    pub nodes: (usize, usize),
    /// Seconds: total, and by phase.
    pub seconds: Seconds,
    /// Why the search ended: `complete`, `budget` or `interrupted`.
    pub ended: String,
    /// States that the search visited.
    pub visited: u64,
    /// Models measured as wholes.
    pub measured_models: usize,
    /// Rewritten excerpts measured: parts of the model with one of each kind of place.
    #[serde(default)]
    pub measured_excerpts: usize,
    /// The models measured while tuning, in order: what each was to tell, and what it took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// What every runtime of the machine made of the model, if all of them were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fastest: Option<Fastest>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The command that reproduces the run.
    pub reproduce: String,
}

impl Report {
    /// The file of a report: the one named, or a subject that is no model, or the one beside a
    /// model.
    ///
    /// # Errors
    ///
    /// There is no such model, or none beside it.
    pub fn of(subject: &Path, named: Option<&Path>) -> Result<PathBuf, Failure> {
        if let Some(report) = named {
            return Ok(report.to_path_buf());
        }
        if subject.is_dir() {
            return Err(Failure::new(format!("{} is a folder", subject.display())).hint("name a model or a report in it"));
        }
        if subject.extension().is_none_or(|e| e != "onnx") {
            return Ok(subject.to_path_buf());
        }
        if !subject.is_file() {
            return Err(Failure::new(format!("there is no file {}", subject.display())).hint("check the path"));
        }
        let mut long = subject.as_os_str().to_os_string();
        long.push(".report.json");
        let places = [subject.with_extension("report.json"), PathBuf::from(long)];
        places.iter().find(|p| p.is_file()).cloned().ok_or_else(|| {
            let failure = Failure::new(format!("{} has no report beside it ({})", subject.display(), places[0].display()));
            failure.hint("write one with `regraft optimize --report FILE`, or name the input too: `regraft explain IN OUT`")
        })
    }

    /// Reads a report.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no report, or is one of another version.
    pub fn read(path: &Path) -> Result<Report, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())).hint("check the path"))?;
        let alien = |why: &dyn std::fmt::Display| {
            Failure::new(format!("{} is no report: {why}", path.display())).hint("name a file that `regraft optimize --report` wrote")
        };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| alien(&e))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => serde_json::from_value(value).map_err(|e| alien(&e)),
            Some(schema) => {
                let failure = Failure::new(format!("{} has layout {schema}, this version reads {SCHEMA}", path.display()));
                Err(failure.hint("use the version of regraft that wrote it"))
            }
            None => Err(alien(&"it names no layout")),
        }
    }
}

/// A decision by prices that were recorded on another machine. Nothing was timed to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// The recording.
    pub file: String,
    /// The processor that it was made on.
    pub device: String,
    /// The same with its features and number of cores, as measurements are kept under.
    pub machine: String,
    /// The runtime that it was made under, and its version.
    pub runtime: String,
    /// Threads per operator there.
    pub threads: u32,
    /// When, in seconds since 1970.
    pub recorded_at: i64,
    /// Median of whole runs of the input there, ns, as recorded at the first binding.
    pub run_ns: f64,
    /// Distance between the quartiles of these runs, ns.
    pub spread_ns: f64,
    /// The predicted speed-up of what was written over the input, and its interval.
    pub speedup: Speedup,
    /// Part of the predicted time of what was written that was not recorded, but carried over from
    /// this machine; the largest over all bindings.
    pub carried: f64,
    /// Operators that both machines know in the same context: what they took on either says how the
    /// rest is carried over.
    pub shared: usize,
    /// Whether the input was kept.
    pub is_kept: bool,
    /// The input.
    pub input: String,
    /// BLAKE3 digests of the files of the input and of what was written; empty if that is no file.
    pub models: (Vec<String>, Vec<String>),
}

impl Predicted {
    /// Device, runtime and threads, for people.
    pub fn place(&self) -> String {
        crate::recording::place(&self.device, &self.runtime, self.threads)
    }
}

/// End-to-end time of one model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// `input`, `cleaned`, or the candidate's number.
    pub model: String,
    /// Median time of one run in nanoseconds.
    pub median_ns: f64,
    /// Ratio input/model over all sittings, and its 95 % interval.
    pub speedup: Speedup,
    /// The same at one thread, if the run has more and the model was timed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_thread: Option<Speedup>,
}

/// Times at one thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SingleThread {
    /// Median time of one run of input and output in nanoseconds.
    pub median_ns: (f64, f64),
    /// Speed-up of what was written over the input.
    pub speedup: Speedup,
}

/// What processes of their own take that load input and output and run them once: time to load in
/// ns, and peak of the resident memory in bytes. Medians of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Startups {
    /// The input.
    pub input: Startup,
    /// What was written; as the input, if that was kept.
    pub output: Startup,
}

/// How far input and output are from what the machine can do, at the first binding. What was not
/// measured is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// Floating-point operations of the products and convolutions in one run of input and output; a
    /// multiply-add counts two. Bodies of `If`, `Loop` and `Scan` are not counted.
    pub flops: (f64, f64),
    /// Operators of input and output that may hold products, and whose arithmetic is not known.
    #[serde(default)]
    pub uncounted: (usize, usize),
    /// Floating-point operations per second that a product reaches on this machine, with as many
    /// threads, in single precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
    /// Bytes per second that an element-wise operator reads and writes in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// Floating-point operations of products per second of whole runs of input and output, relative
    /// to the peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<(f64, f64)>,
    /// The operators of the output with the most time above their roofline, up to three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slow>,
}

/// An operator that takes longer than the machine would have to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Its type.
    pub operator: String,
    /// Its result's name, or what is nearest below it.
    pub at: String,
    /// Its time in a profiled run, with what the runtime fuses into it, ns.
    pub ns: f64,
    /// The part of the profiled run that this is.
    pub share: f64,
    /// Floating-point operations per second that it reaches.
    pub flops_per_second: f64,
    /// Its roofline, ns: the time for its arithmetic at the peak, or for its operands and results
    /// at the bandwidth of memory, whichever is longer.
    pub limit_ns: f64,
}

/// A model that may or may not be faster than the input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Undecided {
    /// The candidate's number.
    pub model: String,
    /// True if it is faster with the threads of the run, and what is open is whether it is slower
    /// at one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_one_thread: bool,
    /// What is known of what is open.
    pub speedup: Speedup,
    /// About how many more seconds of comparing would tell, judging by the spread so far.
    pub seconds: f64,
    /// The budget that has them, in seconds.
    pub budget: f64,
}

/// A model that was measured while tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The candidate's number; with `excerpt:` before it if it is a part of the model.
    pub model: String,
    /// Why it was measured.
    pub aim: Aim,
    /// Rewrites in it.
    pub rewrites: usize,
    /// Speed-up that the price list predicted before.
    pub predicted: f64,
    /// Share of the predicted time that rested on guesses.
    pub guessed: f64,
    /// Its speed-up in the trial; `None` if it did not run. One sitting: less sure than a
    /// comparison.
    pub measured: Option<f64>,
    /// Seconds since the run began, and seconds that it took.
    pub begun: f64,
    /// See `begun`.
    pub seconds: f64,
}

/// What a trial is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Whether what an earlier run found still holds.
    Remembered,
    /// Which choice pays in a block that is repeated: each repetition has another one.
    Choices,
    /// What exploratory rules cost.
    Explore,
    /// Whether it is as fast as prices allow that are not known yet.
    Learn,
    /// Whether it is as fast as known prices say.
    Exploit,
    /// Whether a model is faster without one of its rules.
    Prune,
}

impl std::fmt::Display for Aim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Aim::Remembered => "remembered",
            Aim::Choices => "choices",
            Aim::Explore => "explore",
            Aim::Learn => "learn",
            Aim::Exploit => "exploit",
            Aim::Prune => "prune",
        })
    }
}

/// What was written at one binding of the symbolic sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtBinding {
    /// The binding: `N=8`.
    pub binding: String,
    /// Sizes of the inputs.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Median time of one run of input and output in nanoseconds.
    pub median_ns: (f64, f64),
    /// Speed-up of what was written over the input.
    pub speedup: Speedup,
    /// The same at one thread, if the run has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_thread: Option<SingleThread>,
}

/// A ratio with its interval; above 1 is faster than the input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// Geometric mean over sittings of the median of paired ratios.
    pub median: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Number of pairs; 0 if nothing was timed.
    pub pairs: usize,
}

impl Speedup {
    /// The input itself.
    pub const NONE: Speedup = Speedup { median: 1.0, low: 1.0, high: 1.0, pairs: 0 };
}

impl From<regraft_runtime::Ratio> for Speedup {
    fn from(r: regraft_runtime::Ratio) -> Speedup {
        Speedup { median: r.median, low: r.low, high: r.high, pairs: r.n }
    }
}

/// A model on several runtimes, of which one was chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fastest {
    /// The runtime that the result was written for, and its version.
    pub chosen: String,
    /// A row for each runtime. All speed-ups are over the input on the first one.
    pub runtimes: Vec<OnRuntime>,
}

/// What one runtime made of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OnRuntime {
    /// The runtime and its version.
    pub runtime: String,
    /// Median time of the input there, ns.
    pub input_ns: f64,
    /// The input there.
    pub input: Speedup,
    /// Median time of the result for this runtime, ns; that of the input if it was kept.
    pub output_ns: f64,
    /// The result for this runtime.
    pub output: Speedup,
    /// The result over the input, both on this runtime.
    pub gained: Speedup,
}

/// One rewrite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// Rule.
    pub rule: String,
    /// Name of the value it replaced, in the input model where it has one there.
    pub at: String,
    /// Its gain according to the price list, in nanoseconds; negative for a step that pays off only
    /// through a later one.
    pub gain_ns: i64,
    /// Numeric class.
    #[serde(with = "crate::words")]
    pub numeric: Numeric,
    /// How far the rule is trusted.
    #[serde(with = "crate::words")]
    pub trust: Trust,
}

/// A rewrite, or a kind of rewrite, that was not applied.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct NotDone {
    /// Rule or area.
    pub what: String,
    /// Where, or how often.
    pub at: String,
    /// Why.
    pub because: String,
}

/// What the numeric check compared.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Check {
    /// True if every comparison passed.
    pub passed: bool,
    /// True if a comparison could not be made, which is no evidence against the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Tolerance for reals, relative to the largest magnitude of each output.
    pub tolerance: f64,
    /// Largest relative difference of the output model (as deployed) from the input model without
    /// the runtime's optimizer. Exceeds the tolerance only where double precision confirms it as
    /// rounding.
    pub worst: f64,
    /// Comparisons beyond the tolerance that double precision confirms as rounding (see
    /// [`exact`](crate::exact)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub confirmed: usize,
    /// Largest relative difference from the reference executor in double precision, if it could
    /// run.
    pub worst_reference: Option<f64>,
    /// Noise floor: the input model with the runtime's optimizer against without.
    pub floor: f64,
    /// The same before saturating final operators (softmax, sigmoid), where the model ends in one:
    /// difference and floor.
    pub before_saturation: Option<(f64, f64)>,
    /// How many values of real outputs differ by how much, over all fills.
    #[serde(default)]
    pub histogram: Histogram,
    /// Input fills compared.
    pub fills: Vec<String>,
    /// Fills that the reference executor ran.
    pub reference_fills: usize,
    /// Why the reference executor did not run, or not on all fills.
    pub reference_note: Option<String>,
    /// Remarks, such as outputs that overflow in both models.
    pub notes: Vec<String>,
    /// What replaying the certificate showed, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replayed>,
    /// The rewrite that made it fail, if known: rule and place.
    #[serde(skip)]
    pub blamed: Option<(String, String)>,
}

/// What replaying the certificate showed, before the model was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Rewrites.
    pub steps: usize,
    /// Rewrites that are proved.
    pub proved: usize,
    /// Rewrites that are proved if constants are the simple numbers they were rounded from.
    #[serde(default)]
    pub bounded: usize,
    /// What the proofs assume, one clause each.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// Rewrites that are not proved, or the first of them.
    pub open: Vec<Open>,
    /// Constants that were computed ahead of time and parameters that were rounded.
    pub rounded: usize,
    /// Bound on their error, relative to the largest magnitude of each.
    pub bound: f64,
    /// Why the output was not compared with the result of the rewrites, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncompared: Option<String>,
    /// True if an earlier run replayed the same certificate on the same models.
    #[serde(default)]
    pub remembered: bool,
    /// Seconds it took.
    pub seconds: f64,
}

impl Replayed {
    /// True if everything was shown.
    pub fn is_shown(&self) -> bool {
        self.proved + self.bounded == self.steps && self.uncompared.is_none()
    }
}

impl Check {
    /// Adds the check at another binding.
    pub fn join(&mut self, label: &str, other: Check) {
        let at = |text: String| if label.is_empty() { text } else { format!("{label}: {text}") };
        self.passed &= other.passed;
        self.incomplete |= other.incomplete;
        self.tolerance = self.tolerance.max(other.tolerance);
        self.worst = self.worst.max(other.worst);
        self.floor = self.floor.max(other.floor);
        self.confirmed += other.confirmed;
        self.worst_reference = self.worst_reference.into_iter().chain(other.worst_reference).reduce(f64::max);
        let larger = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
        self.before_saturation = self.before_saturation.into_iter().chain(other.before_saturation).reduce(larger);
        self.fills.extend(other.fills.into_iter().map(at));
        self.reference_fills += other.reference_fills;
        self.reference_note = self.reference_note.take().or(other.reference_note.map(at));
        self.notes.extend(other.notes.into_iter().map(at));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Reading and loading.
    pub load: f64,
    /// Searching.
    pub search: f64,
    /// Measuring prices.
    pub measure: f64,
    /// Choosing by end-to-end runs.
    pub choose: f64,
    /// Numeric check.
    pub check: f64,
    /// All.
    pub total: f64,
}
