//! `check`: are two models the same?

use std::path::PathBuf;
use std::time::Instant;

use prost::Message;
use regraft_equate::Effort;
use regraft_ir::{DType, Graph, OpKind, Trust, eval};
use regraft_onnx::proto::ModelProto;
use regraft_onnx::{Model, Signature, WriteOptions};
use regraft_runtime::{Fallback, Feeds, Fill, HostTensor, ModelSource, OptLevel, Runtime, RuntimeError, SessionOptions};
use serde::Serialize;

use crate::agreement::{Agreement, compare};
use crate::assumptions::limited;
use crate::certificate::{self, Certified, Source};
use crate::data::Data;
use crate::discrete::decided_by_floats;
use crate::equivalence::{self, Comparison};
use crate::error::Failure;
use crate::exact::double;
use crate::freeze::{freeze, narrower};
use crate::ground::{Ground, Requirement};
use crate::histogram::Histogram;
use crate::optimize::{self, Observer, Phase, TOLERANCE, clean};
use crate::refused::Refused;
use crate::report::SCHEMA;
use crate::runtime::RuntimeChoice;
use crate::sizes::Sizes;
use crate::synthesize::APPROXIMATES;
use crate::units::{FreezeArg, ShapeArg};
use crate::weights::changed_weights;

/// Tolerated half-precision roundoffs: constants are rounded to half precision when they are
/// combined.
const ROUNDOFFS: f64 = 4.0;

/// What to compare, and how.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// The original model.
    pub a: PathBuf,
    /// The model in question.
    pub b: PathBuf,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// Sizes at which B stands for A, if not at all that A accepts.
    pub freeze: Vec<FreezeArg>,
    /// The user's inputs: a folder, or `input:file`.
    pub data: Vec<String>,
    /// Tolerated relative difference of reals. Ten times the noise floor is always tolerated, and
    /// so are four roundoffs of half precision where values have that type.
    pub tolerance: f64,
    /// Also run both graphs on the reference executor.
    pub reference: bool,
    /// Threads per operator; by default, what the runtime itself uses.
    pub threads: Option<usize>,
    /// Seed of made-up inputs.
    pub seed: u64,
    /// The runtime.
    pub runtime: RuntimeChoice,
    /// The certificate of B.
    pub certificate: Source,
    /// How hard to look for a proof if there is no certificate.
    pub effort: Effort,
    /// The weakest acceptable result.
    pub require: Option<Requirement>,
    /// Only look for a proof: run nothing.
    pub proofs_only: bool,
}

impl CheckRequest {
    /// A request with the defaults of the command line.
    pub fn new(a: impl Into<PathBuf>, b: impl Into<PathBuf>) -> CheckRequest {
        CheckRequest {
            a: a.into(),
            b: b.into(),
            shapes: Vec::new(),
            binds: Vec::new(),
            freeze: Vec::new(),
            data: Vec::new(),
            tolerance: TOLERANCE,
            reference: true,
            threads: None,
            seed: 0,
            runtime: RuntimeChoice::default(),
            certificate: Source::Beside,
            effort: Effort::default(),
            require: None,
            proofs_only: false,
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `regraft` and its version.
    pub tool: String,
    /// The original model.
    pub a: String,
    /// The model in question.
    pub b: String,
    /// Verdict.
    pub same: bool,
    /// How the verdict was reached. If it is known to be unproved, nothing was run.
    pub word: Ground,
    /// What the certificate of B says, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certified>,
    /// What the graphs alone show, if no certificate decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalence: Option<Comparison>,
    /// The sizes that this is about, as a clause, if B stands for A at some sizes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<String>,
    /// What differs, most telling first; empty if `same`.
    pub differences: Vec<String>,
    /// Tolerated relative difference of reals.
    pub tolerance: f64,
    /// Comparisons of outputs on the runtime, by fill.
    pub runs: Vec<Run>,
    /// Elements of outputs that were compared, over all fills.
    pub compared: usize,
    /// How many values of real outputs differ by how much, over all fills.
    pub histogram: Histogram,
    /// The same for values before a final softmax or sigmoid, if both models end in one.
    pub before_saturation: Vec<Run>,
    /// The same on the reference executor, in double precision; the noise floor is the runtime's.
    pub reference: Vec<Run>,
    /// Runtime and its version, if it was needed.
    pub runtime: Option<String>,
    /// Sizes of the inputs, if the models were run.
    pub shapes: Vec<(String, Vec<usize>)>,
    /// Remarks.
    pub notes: Vec<String>,
    /// The required result, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Requirement>,
    /// Seconds taken.
    pub seconds: f64,
}

/// The largest difference of several comparisons, and the largest noise floor.
pub fn worst(runs: &[Run]) -> (f64, f64) {
    runs.iter().fold((0.0, 0.0), |(difference, floor), run| (run.difference.max(difference), run.floor.max(floor)))
}

/// One comparison of all outputs.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The input fill, or the name of the user's data.
    pub fill: String,
    /// Output that differs most.
    pub output: String,
    /// Largest relative difference of B from A.
    pub difference: f64,
    /// The same for A with the runtime's optimizer against A without it.
    pub floor: f64,
    /// True if it is within tolerance.
    pub same: bool,
    /// Whether the comparison can tell right from wrong: not if noise hides every difference.
    pub tells: bool,
}

impl CheckReport {
    fn new(request: &CheckRequest) -> CheckReport {
        CheckReport {
            schema: SCHEMA,
            tool: crate::tool(),
            a: request.a.display().to_string(),
            b: request.b.display().to_string(),
            same: true,
            word: Ground::Known(Trust::Tested),
            certificate: None,
            equivalence: None,
            limited: None,
            differences: Vec::new(),
            tolerance: request.tolerance,
            runs: Vec::new(),
            compared: 0,
            histogram: Histogram::default(),
            before_saturation: Vec::new(),
            reference: Vec::new(),
            runtime: None,
            shapes: Vec::new(),
            notes: Vec::new(),
            require: request.require,
            seconds: 0.0,
        }
    }

    /// Whether the models are known to be the same at least as well as required: an identical graph
    /// counts as proved.
    pub fn satisfies(&self, required: Requirement) -> bool {
        self.same && self.known() >= required.trust && (!required.exact || self.assumptions().is_empty() && self.limited.is_none())
    }

    /// What the certificate shows.
    fn certified(&self) -> Option<Trust> {
        self.certificate.as_ref().map(|c| c.word.trust())
    }

    /// What the proof assumes, one clause each; of several proofs, the one with the fewest clauses.
    pub fn assumptions(&self) -> &[String] {
        let proved = |trust: Option<Trust>| trust == Some(Trust::Proved);
        let certified = self.certificate.as_ref().filter(|_| proved(self.certified())).map(|c| &c.assumptions[..]);
        let compared = self.equivalence.as_ref().filter(|e| e.trust == Trust::Proved).map(|e| &e.assumptions[..]);
        let identical = (self.word == Ground::Identical).then_some(&[][..]);
        [identical, certified, compared].into_iter().flatten().min_by_key(|clauses| clauses.len()).unwrap_or_default()
    }

    /// Everything known: comparing outputs as well does not weaken a proof.
    pub fn known(&self) -> Trust {
        let (certified, compared) = (self.certified(), self.equivalence.as_ref().map(|e| e.trust));
        let own = match self.word {
            Ground::Known(Trust::Proved) => certified.or(compared).unwrap_or(Trust::Proved),
            ground => ground.trust(),
        };
        [certified, compared].into_iter().flatten().fold(own, Trust::max)
    }

    /// Judges one comparison. What breaks in A itself under the runtime's optimizer shows nothing
    /// about B.
    fn judge(&mut self, place: &str, fill: &str, b: &Agreement, floor: &Agreement) -> Run {
        let bound = self.tolerance.max(optimize::FLOOR_FACTOR * floor.relative);
        let (mut same, tells) = (true, b.relative <= self.tolerance || bound <= optimize::BLURRED);
        if let Some(broken) = b.breach(fill).filter(|_| floor.breach(fill).is_none()) {
            self.differences.push(format!("{place}, fill `{fill}`: {broken}"));
            same = false;
        }
        if b.relative > bound {
            let (name, relative) = (&b.output, b.relative);
            self.differences.push(format!("{place}, fill `{fill}`: `{name}` differs by {relative:.1e} relative, {bound:.1e} is tolerated"));
            same = false;
        }
        if b.breach(fill).is_none() && !b.lost.is_empty() {
            self.notes.push(format!("{place}, fill `{fill}`: A overflows where B does not: {}", b.lost.join("; ")));
        }
        if b.non_finite {
            self.notes.push(format!("{place}, fill `{fill}`: values overflow in both models alike"));
        }
        Run { fill: fill.into(), output: b.output.clone(), difference: b.relative, floor: floor.relative, same, tells }
    }

    /// Whether some comparison of outputs told right from wrong. Zeros alone cannot.
    fn tells(&self) -> bool {
        let runs = || self.runs.iter().chain(&self.reference);
        let any = |fill: &str| runs().any(|run| run.tells && run.fill == fill);
        self.compared > 0 && (self.runs.is_empty() || self.runs.iter().any(|run| run.fill != Fill::Zeros.name() && any(&run.fill)))
    }
}

/// Compares two model files.
pub fn check(request: &CheckRequest, observer: &mut dyn Observer) -> Result<CheckReport, Failure> {
    let start = Instant::now();
    let mut report = CheckReport::new(request);
    if certified(request, &mut report, observer)? {
        report.limited = report.certificate.as_ref().and_then(|certified| limited(&certified.fixed));
        report.same = report.differences.is_empty();
        report.seconds = start.elapsed().as_secs_f64();
        return Ok(report);
    }
    observer.phase(Phase::Load, &report.a.clone());
    let (a, fixed) = freeze(Model::read(&request.a)?, &request.freeze)?;
    // The certificate did not decide, but says which sizes B is for.
    let claimed = report.certificate.as_ref().map(|certified| certified.fixed.clone()).filter(|_| fixed.is_empty());
    let (a, fixed) = match claimed.filter(|claimed| !claimed.is_empty()) {
        Some(claimed) => (a.at_sizes(&claimed).map_err(Failure::new)?, claimed),
        None => (a, fixed),
    };
    report.limited = limited(&fixed);
    report.notes.extend(needed_sizes(&a));
    observer.phase(Phase::Load, &report.b.clone());
    let b = Model::read(&request.b)?.under(&a)?.into_owned();
    if b.proto().metadata_props.iter().any(|entry| entry.key() == APPROXIMATES) {
        report.notes.push("B says of itself that it approximates another model: `regraft synthesize` made it".into());
    }
    let (differences, remarks) = Signature::of(a.proto()).compare(&Signature::of(b.proto()));
    report.notes.extend(remarks);
    if !differences.is_empty() {
        report.word = Ground::Signature;
        report.notes.extend(narrower(&a, &b).map(|sizes| {
            let args: Vec<String> = sizes.0.iter().map(|input| format!("--freeze {input}")).collect();
            format!("B accepts fewer sizes than A (hint: {} compares the two there)", args.join(" "))
        }));
        report.differences = differences;
    } else if is_identical(&a, &b) {
        report.word = Ground::Identical;
    } else {
        report.notes.extend(changed_weights(&a, &b));
        if compared(request, &a, &b, &mut report, observer)? {
            // A proof is the verdict.
        } else if request.proofs_only {
            report.word = Ground::Known(Trust::Unproved);
        } else {
            run_both(request, &a, &b, &mut report, observer)?;
        }
    }
    report.same = report.differences.is_empty();
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Consults the certificate of B, if there is one; true if it gives the verdict. A proof of every
/// step does, unless the user brings data to compare on.
fn certified(request: &CheckRequest, report: &mut CheckReport, observer: &mut dyn Observer) -> Result<bool, Failure> {
    observer.phase(Phase::Check, "the certificate");
    let Some(certified) = certificate::replay(&request.certificate, &request.a, &request.b)? else { return Ok(false) };
    let refuted = certified.word == Ground::Tampered || certified.other_input && request.certificate != Source::Beside;
    let decided = refuted || certified.word.trust() >= Trust::Bounded && request.data.is_empty();
    if refuted {
        report.differences.push(certified.summary.clone());
    }
    if decided {
        report.word = certified.word;
    }
    if certified.other_input && !decided {
        report.notes.push(format!("{} is not used: {}", certified.file, certified.summary));
        return Ok(false);
    }
    if decided && !refuted {
        report.notes.extend(needed_sizes(&Model::read(&request.a)?.at_sizes(&certified.fixed).map_err(Failure::new)?));
    }
    report.certificate = Some(certified);
    Ok(decided)
}

/// What the sizes of A must be, or A does not run: the two are compared for such sizes only.
fn needed_sizes(a: &Model) -> impl Iterator<Item = String> {
    a.facts().iter().map(|fact| format!("of the sizes at which A runs, {fact}"))
}

/// Looks for a proof; true if it gives the verdict. It does unless the user brings data to compare
/// on.
fn compared(request: &CheckRequest, a: &Model, b: &Model, report: &mut CheckReport, observer: &mut dyn Observer) -> Result<bool, Failure> {
    if request.effort.failures == 0 {
        return Ok(false);
    }
    observer.phase(Phase::Check, "a proof");
    let comparison = equivalence::compare(a, b, &request.effort)?;
    let decided = comparison.trust > Trust::Unproved && request.data.is_empty();
    if decided {
        report.word = Ground::Known(comparison.trust);
    }
    report.equivalence = Some(comparison);
    Ok(decided)
}

/// A model without its raw data, byte by byte: compared as numbers, -0 and 0 would be equal.
fn numbers(proto: &ModelProto) -> Vec<u8> {
    let mut proto = proto.clone();
    proto.graph.iter_mut().flat_map(|graph| &mut graph.initializer).for_each(|tensor| tensor.raw_data = None);
    proto.encode_to_vec()
}

/// True if both compute the same expressions over the same constants, up to the order and names of
/// nodes, duplicates and dead nodes.
fn is_identical(a: &Model, b: &Model) -> bool {
    if a.proto() == b.proto() && numbers(a.proto()) == numbers(b.proto()) {
        return true;
    }
    // Nodes that are kept verbatim are identified only by their place within one model.
    let opaque = |graph: &Graph| graph.ids().any(|id| graph.node(id).op.kind() == OpKind::Opaque);
    if opaque(a.graph()) || opaque(b.graph()) {
        return false;
    }
    let key = |model: &Model| regraft_ir::key::canonical_key(&clean(model.graph()).0);
    key(a) == key(b)
}

fn run_both(request: &CheckRequest, a: &Model, b: &Model, report: &mut CheckReport, observer: &mut dyn Observer) -> Result<(), Failure> {
    let runtime = Fallback::new(request.runtime.load()?, vec![request.a.clone(), request.b.clone()]);
    report.runtime = Some(format!("{} {}", runtime.name(), runtime.version()));
    let (source_a, source_b) = (ModelSource::path(&request.a), ModelSource::path(&request.b));
    let data = Data::read(&request.data, a)?;
    let shapes = data.sizes(a, &request.shapes, &request.binds);
    let sizes = Sizes::resolve(a, source_a, &runtime, &shapes, &request.binds)?;
    let others = sizes.others(a, source_a, &runtime, &shapes, &request.binds)?;
    report.tolerance = report.tolerance.max(ROUNDOFFS * coarsest(a.graph()).max(coarsest(b.graph())));
    report.notes.extend(decided_by_floats(a.graph()).iter().map(ToString::to_string));
    if sizes.guessed {
        let shown: Vec<String> = std::iter::once(&sizes).chain(&others).map(Sizes::shown).collect();
        let shown = shown.join(" and ");
        report.notes.push(format!("sizes that the models leave open were guessed: outputs are those at {shown} (give yours with --shape)"));
    }
    report.shapes = sizes.inputs.iter().map(|i| (i.name.clone(), i.shape.clone())).collect();
    let mut cases: Vec<(String, Feeds)> = Vec::new();
    for fill in Fill::ALL {
        cases.push((fill.name().into(), sizes.feeds(fill, request.seed)?));
    }
    for other in &others {
        cases.push((other.shown(), other.feeds(Fill::Normal, request.seed)?));
    }
    cases.extend(data.fitting(&sizes)?);

    let threads = request.threads.unwrap_or_else(|| runtime.default_threads());
    let trial = Trial { runtime: &runtime, threads, cases: &cases, skip: 0 };
    observer.phase(Phase::Check, "outputs on the runtime");
    report.runs = trial.compare(source_a, source_b, "output", report)?;
    for (name, path) in [("A", &request.a), ("B", &request.b)] {
        let refused = runtime.refusal(path).as_ref().map(Refused::from);
        report.notes.extend(refused.map(|refused| format!("{name}: {refused}")));
    }
    if let Some((exposed_a, exposed_b)) = exposed(a, b, report) {
        observer.phase(Phase::Check, "values before saturation");
        // Zeros add nothing to what they showed above.
        let cases: Vec<(String, Feeds)> = cases.iter().filter(|(name, _)| name != Fill::Zeros.name()).cloned().collect();
        let trial = Trial { cases: &cases, skip: a.graph().outputs().len(), ..trial };
        match trial.compare(ModelSource::bytes(&exposed_a), ModelSource::bytes(&exposed_b), "before saturation", report) {
            Ok(runs) => report.before_saturation = runs,
            Err(RuntimeError::Load { cause, .. }) => report.notes.push(format!("values before saturation were not compared: {cause}")),
            Err(failure) => return Err(failure.into()),
        }
    }
    if request.reference {
        reference(a.graph(), b.graph(), &sizes, &cases, report, observer);
    }
    if report.differences.is_empty() && !report.tells() {
        report.word = Ground::Undecided;
        let why = match report.compared {
            0 => "the outputs have no elements",
            _ => "A does not repeat itself: what it computes depends on chance, or amplifies rounding (inputs given with --data may tell)",
        };
        report.differences.push(format!("no comparison of outputs tells anything: {why}"));
    }
    Ok(())
}

/// The unit roundoff of the coarsest real type in a graph that is coarser than single precision; 0
/// if there is none.
fn coarsest(graph: &Graph) -> f64 {
    let types = graph.ids().flat_map(|id| graph.node(id).types.iter().flatten());
    let units = types.map(|ty| match ty.dtype {
        DType::F16 => 1.0 / 2048.0,
        DType::BF16 => 1.0 / 256.0,
        _ => 0.0,
    });
    units.fold(0.0, f64::max)
}

struct Trial<'a> {
    runtime: &'a dyn Runtime,
    threads: usize,
    cases: &'a [(String, Feeds)],
    /// Outputs that are not compared: the declared ones, if inner values follow them.
    skip: usize,
}

impl Trial<'_> {
    /// Outputs of all cases; the model is then unloaded, so that only one is in memory at a time.
    fn outputs(&self, source: ModelSource<'_>, level: OptLevel) -> Result<(Vec<String>, Vec<Vec<HostTensor>>), RuntimeError> {
        let mut session = self.runtime.open(source, &SessionOptions { level, threads: self.threads, ..SessionOptions::default() })?;
        let names = session.outputs().iter().skip(self.skip).map(|o| o.name.clone()).collect();
        let run = |(_, feeds): &(String, Feeds)| session.run(feeds).map(|all| all.into_iter().skip(self.skip).collect());
        Ok((names, self.cases.iter().map(run).collect::<Result<_, _>>()?))
    }

    /// B as deployed against A without the runtime's optimizer, alongside A as deployed.
    fn compare(&self, a: ModelSource<'_>, b: ModelSource<'_>, place: &str, report: &mut CheckReport) -> Result<Vec<Run>, RuntimeError> {
        let (names, want) = self.outputs(a, OptLevel::Disabled)?;
        let (_, tuned) = self.outputs(a, OptLevel::All)?;
        let have = match self.outputs(b, OptLevel::All) {
            Ok((_, have)) => have,
            // A ran on the same inputs: this is a difference, not a user error.
            Err(RuntimeError::Run { cause, .. }) => {
                report.differences.push(format!("B does not run where A does: {}", Failure::new(cause).cause));
                return Ok(Vec::new());
            }
            Err(e) => return Err(e),
        };
        let mut runs = Vec::new();
        for (at, (fill, _)) in self.cases.iter().enumerate() {
            let (ours, floor) = (compare(&names, &want[at], &have[at]), compare(&names, &want[at], &tuned[at]));
            if self.skip == 0 {
                report.histogram.join(&ours.histogram);
                report.compared += want[at].iter().map(HostTensor::len).sum::<usize>();
            }
            runs.push(report.judge(place, fill, &ours, &floor));
        }
        if !report.differences.is_empty() {
            self.blame(b, &names, &want, report);
        }
        Ok(runs)
    }

    /// Notes it if the runtime's optimizer is what makes B different.
    fn blame(&self, b: ModelSource<'_>, names: &[String], want: &[Vec<HostTensor>], report: &mut CheckReport) {
        let Ok((_, plain)) = self.outputs(b, OptLevel::Disabled) else { return };
        if want.iter().zip(&plain).all(|(a, b)| compare(names, a, b).within(report.tolerance)) {
            report.notes.push("B is the same with the runtime's own optimizer off: it is that which makes the difference".into());
        }
    }
}

/// Both models with the inputs of their final softmax or sigmoid as further outputs, if both end
/// alike.
fn exposed(a: &Model, b: &Model, report: &mut CheckReport) -> Option<(Vec<u8>, Vec<u8>)> {
    let (in_a, in_b) = (optimize::before_saturation(a.graph())?, optimize::before_saturation(b.graph())?);
    if in_a.iter().map(|v| &v.0).ne(in_b.iter().map(|v| &v.0)) {
        report.notes.push("the models end in different operators: values before them were not compared".into());
        return None;
    }
    let expose = |model: &Model, values: &[(String, regraft_ir::ValueId)]| {
        let written = model.write(model.graph(), &WriteOptions::default())?;
        crate::exposed::exposed(&written, model.graph(), &values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
    };
    match (expose(a, &in_a), expose(b, &in_b)) {
        (Ok(Some(a)), Ok(Some(b))) => Some((a, b)),
        (Err(e), _) | (_, Err(e)) => {
            report.notes.push(format!("values before saturation were not compared: {e}"));
            None
        }
        _ => {
            report.notes.push("values before saturation were not compared: they have no names of their own".into());
            None
        }
    }
}

/// Both graphs by the operators' definitions, in double precision.
fn reference(a: &Graph, b: &Graph, sizes: &Sizes, cases: &[(String, Feeds)], report: &mut CheckReport, observer: &mut dyn Observer) {
    let work = optimize::flops(a, sizes).max(optimize::flops(b, sizes));
    let cases = if work > optimize::HEAVY_FLOPS { &cases[..1.min(cases.len())] } else { cases };
    let names: Vec<String> = a.outputs().iter().map(|o| o.name.to_string()).collect();
    for (fill, feeds) in cases {
        if observer.interrupted() {
            report.notes.push("interrupted: not everything was compared".into());
            return;
        }
        observer.phase(Phase::Check, &format!("reference executor, fill `{fill}`"));
        let outputs = |graph: &Graph| -> Result<Vec<HostTensor>, String> {
            let feeds = optimize::to_values(graph, feeds).ok_or("an input has a type that it does not know")?;
            let values = eval::run::<f64>(graph, &feeds, &mut eval::NoOpaque).map_err(|e| e.to_string())?;
            values.iter().map(|v| double(v).ok_or_else(|| "an output has a type that it does not know".into())).collect()
        };
        match outputs(a).and_then(|a| Ok((a, outputs(b)?))) {
            Ok((want, have)) => {
                // Rounded constants are amplified like rounded sums: what the runtime's noise hides
                // is hidden here too.
                let relative = report.runs.iter().find(|r| r.fill == *fill).map_or(0.0, |r| r.floor);
                let floor = Agreement { relative, ..Agreement::default() };
                let run = report.judge("reference executor", fill, &compare(&names, &want, &have), &floor);
                report.reference.push(run);
            }
            Err(why) => {
                report.notes.push(format!("the reference executor did not run: {why}"));
                return;
            }
        }
    }
}
