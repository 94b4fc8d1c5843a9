//! First stage: reads the model, the rules and the runtime, and refuses what cannot be done.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use regraft_certify::ModelDigest;
use regraft_ir::Trust;
use regraft_ir::{Graph, Op, OpKind, TensorType, normal};
use regraft_onnx::{FixedSizes, Model, OpaqueNode, Speller, WriteOptions, Written};
use regraft_rules::{Numeric, Writable};
use regraft_runtime::{Fallback, ModelSource, Refusal, Runtime, RuntimeError, SessionOptions};

use crate::discrete::decided_by_floats;
use crate::error::Failure;
use crate::freeze::freeze;
use crate::optimize::binding::Binding;
use crate::optimize::library::{Usable, load_library};
use crate::optimize::memory_budget::MemoryBudget;
use crate::optimize::observer::{Observer, Phase};
use crate::optimize::request::{CostKind, Request};
use crate::optimize::run::Journal;
use crate::optimize::subnormal;
use crate::optimize::time_budget::TimeBudget;
use crate::recording::hashes;
use crate::refused::Refused;
use crate::sizes::{PROBED, Sizes};

/// Maximum number of kinds of kept nodes listed in the warning.
const KINDS_SHOWN: usize = 6;

/// The task, with everything it needs.
pub struct Job {
    /// The request, as far as it can be met: if memory is short, nothing is measured.
    pub request: Request,
    /// The model to optimize.
    pub input: Input,
    /// Rules that may be applied.
    pub rules: Usable,
    /// What the result is to run on. It opens the input's file at the highest level at which that
    /// loads.
    pub runtime: Arc<dyn Runtime>,
    /// Threads per operator in deployment.
    pub threads: usize,
    /// Set if the runtime refuses the input as deployed. A result that it loads is then a gain,
    /// however fast.
    pub refusal: Option<Refusal>,
    /// Sizes to price, decide and check at.
    pub bindings: Vec<Binding>,
    /// Memory that the run may take.
    pub memory: MemoryBudget,
}

/// The model to optimize.
pub struct Input {
    /// As the request wants it, possibly at another opset than the file, or for fewer sizes.
    pub model: Model,
    /// Sizes that it is fixed at and the file is not.
    pub fixed: FixedSizes,
    /// Its opset, if that differs from the file's.
    pub opset: Option<i64>,
    /// Digest of the file's contents, for the certificate and for recordings. The output may
    /// replace the file.
    pub digest: Option<ModelDigest>,
    /// Its graph in normal form: where searches start.
    pub graph: Graph,
    /// What the normal form removed, name and nodes, and how many constants are written with zeros
    /// instead of subnormal numbers.
    pub cleaned: Vec<(String, usize)>,
    /// Whether constants are written so, those of rewritten models too.
    pub flushes: bool,
}

impl Input {
    /// Whether it has nodes that are superfluous.
    pub fn has_superfluous(&self) -> bool {
        self.cleaned.iter().any(|(name, _)| name != subnormal::NAME)
    }

    /// Whether it has constants that are written with zeros instead of subnormal numbers.
    pub fn has_subnormal(&self) -> bool {
        self.cleaned.iter().any(|(name, _)| name == subnormal::NAME)
    }

    /// Whether the request wants another model than the file has, however fast it is.
    pub fn is_converted(&self) -> bool {
        self.opset.is_some() || !self.fixed.is_empty()
    }
}

impl Job {
    /// The input as a file.
    pub fn source(&self) -> ModelSource<'_> {
        ModelSource::path(&self.request.input)
    }

    /// The first of the sizes to decide at.
    pub fn sizes(&self) -> &Sizes {
        &self.bindings[0].sizes
    }

    /// What the model can express and the runtime can run.
    pub fn writable(&self) -> InModel<'_> {
        InModel::new(&self.input.model, &*self.runtime)
    }

    /// A rewritten graph as a model. If memory is short, new constants are kept in the output's
    /// folder.
    pub fn write(&self, graph: &Graph) -> Result<Written, Failure> {
        Ok(self.input.model.write(graph, &self.write_options())?)
    }

    /// Runs a model once, as deployed, at the first binding.
    pub fn run_once(&self, model: ModelSource<'_>) -> Result<(), RuntimeError> {
        let options = SessionOptions { threads: self.threads, ..SessionOptions::default() };
        self.runtime.open(model, &options)?.run(&self.bindings[0].feeds).map(drop)
    }

    /// How models are written.
    pub fn write_options(&self) -> WriteOptions {
        let park = self.memory.is_tight().then(|| regraft_onnx::folder_of(&self.request.output));
        WriteOptions { allow_growth: self.request.allow_growth, park, flush: self.input.flushes, ..WriteOptions::default() }
    }
}

/// What a model can express, at its opset, and a runtime can run.
pub struct InModel<'a> {
    speller: Speller,
    runtime: &'a dyn Runtime,
}

impl<'a> InModel<'a> {
    /// What `model` can express and `runtime` can run.
    pub fn new(model: &Model, runtime: &'a dyn Runtime) -> InModel<'a> {
        InModel { speller: model.speller(), runtime }
    }
}

impl Writable for InModel<'_> {
    fn check(&self, op: &Op, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), String> {
        if op.kind() == OpKind::Constant {
            return Ok(());
        }
        let first = inputs.first().map(|ty| regraft_runtime::DType::from_onnx(ty.dtype.to_onnx()));
        if first.is_some_and(|dtype| self.runtime.lacks_kernel(op.kind().name(), dtype, self.speller.version())) {
            return Err(format!("the runtime has no `{}` for such elements", op.kind().name()));
        }
        self.speller.can_spell(op, inputs, outputs).map_err(|e| e.to_string())
    }
}

/// Reads everything a request names; the runtime is loaded last.
///
/// # Errors
///
/// Input that cannot be read or would lose data, and requests contradicting the model or the
/// memory.
pub fn load(
    request: &Request,
    runtime: &dyn Fn() -> Result<Arc<dyn Runtime>, Failure>,
    clock: &mut TimeBudget,
    observer: &mut dyn Observer,
) -> Result<(Job, Journal), Failure> {
    observer.phase(Phase::Load, &request.input.display().to_string());
    let mut journal = Journal { complete: true, ..Journal::default() };
    let mut rules = load_library(&request.rules, request.runtime.backend.name())?;
    let mut input = read(request)?;
    clock.read();
    let memory = MemoryBudget::new(&input.model, request.memory);
    if !memory.is_tight() && subnormal::are_flushed(request) {
        let flushed = input.model.flushable(&input.graph);
        input.cleaned.extend((flushed > 0).then(|| (subnormal::NAME.to_string(), flushed)));
        input.flushes = true;
    }
    journal.warnings = warnings(&input.model, &rules, request.rules.require)?;
    let fallback = Fallback::new(runtime()?, vec![request.input.clone()]);
    // A crash of the runtime would take this process with it; in a short time that is worth finding
    // out.
    let is_quick = request.untimed || input.model.size() <= PROBED;
    let runtime = Arc::new(if is_quick { fallback.probing() } else { fallback });
    let recorded_threads = request.cost.recorded().map_or(usize::MAX, |recorded| recorded.recording.target.threads as usize);
    let threads = request.threads.unwrap_or_else(|| runtime.default_threads().min(recorded_threads));
    let mut request = request.clone();
    if request.untimed {
        // They make many operators of one.
        rules.library = rules.library.filter(|r| r.numeric != Numeric::FastBilinear);
    }
    if let Some(recorded) = request.cost.recorded() {
        journal.warnings.extend(recorded.check_runtime((runtime.name(), runtime.version()))?);
        refuse_measuring(&request, &memory)?;
    }
    if memory.is_tight() {
        if input.is_converted() {
            let what = "a model that is frozen or brought to another opset must be run";
            return Err(Failure::new(format!("{what}, and there is not memory enough for that"))
                .hint("give more with --memory, or leave --freeze and --opset out"));
        }
        rules.library = rules.library.filter(|r| !r.explore && r.runtime.is_none());
        request.cost = CostKind::Roofline;
        regraft_runtime::return_freed_memory();
        journal.warnings.push(memory.explain());
    }
    let run = (!memory.is_tight()).then(|| (ModelSource::path(&request.input), &*runtime as &dyn Runtime));
    let bindings = Binding::all(&request, &input.model, run)?;
    if let Some((recorded, digest)) = request.cost.recorded().zip(input.digest.as_ref()) {
        let sizes: Vec<&Sizes> = bindings.iter().map(|binding| &binding.sizes).collect();
        recorded.models(&request.input, &hashes(digest), &sizes)?;
    }
    let refusal = runtime.refusal(&request.input);
    journal.warnings.extend(request.search.warning(&request.input));
    journal.warnings.extend(refusal.as_ref().map(|refusal| format!("{}: {}", request.input.display(), Refused::from(refusal))));
    let sizes = &bindings[0].sizes;
    if sizes.guessed {
        let done = if memory.is_tight() { "priced" } else { "measured" };
        let warning = format!("sizes that the model leaves open were guessed; {done} at {} (give yours with --shape)", sizes.shown());
        journal.warnings.push(warning);
    }
    journal.warnings.extend(decided_by_floats(input.model.graph()).iter().map(ToString::to_string));
    journal.seconds.load = clock.elapsed().as_secs_f64();
    Ok((Job { request, input, rules, runtime, threads, refusal, bindings, memory }, journal))
}

/// Of a decision by recorded prices, what would have to be measured where they were recorded, or
/// needs models to be run here.
fn refuse_measuring(request: &Request, memory: &MemoryBudget) -> Result<(), Failure> {
    let refused = |what: &str, hint: &str| Err(Failure::new(format!("prices recorded on another machine {what}")).hint(hint));
    if request.untimed {
        return refused("and --untimed contradict each other", "leave one of them out");
    }
    if !request.limits.is_empty() {
        return refused("do not tell what it takes to load a model there", "leave --max-load and --max-memory out");
    }
    if memory.is_tight() {
        return refused("are of no use where there is not memory enough to run the model", "give more with --memory");
    }
    Ok(())
}

/// The model, at the requested sizes and opset.
fn read(request: &Request) -> Result<Input, Failure> {
    let model = Model::read(&request.input)?;
    if model.has_external_data() {
        let refused = |why| Failure::new(format!("cannot write {}: {why}", request.output.display())).hint("name a file with -o");
        regraft_onnx::takes_weights(&request.output).map_err(refused)?;
    }
    let (model, fixed) = freeze(model, &request.freeze)?;
    let opset = request.opset.filter(|version| model.opset("") != Some(*version));
    let model = match opset {
        Some(version) => model
            .at_opset(version)
            .map_err(|e| Failure::new(format!("{}: {e}", request.input.display())).hint("leave --opset out to keep its version"))?,
        None => model,
    };
    let is_asked = request.certificate.is_some() || request.cost.recorded().is_some();
    let digest = is_asked.then(|| ModelDigest::of(&request.input)).transpose()?;
    let (graph, cleaned) = clean(model.graph());
    Ok(Input { model, fixed, opset, digest, graph, cleaned, flushes: false })
}

/// The graph in normal form, and what that removed.
pub fn clean(graph: &Graph) -> (Graph, Vec<(String, usize)>) {
    let mut graph = graph.clone();
    let removed = [("common-subexpressions", normal::cse(&mut graph)), ("dead-code", normal::dce(&mut graph))];
    let done = removed.into_iter().filter(|(_, nodes)| *nodes > 0).map(|(name, nodes)| (name.to_string(), nodes)).collect();
    (graph, done)
}

/// Warnings for the user before work begins; refusals that would lose data are failures.
fn warnings(model: &Model, rules: &Usable, require: Option<Trust>) -> Result<Vec<String>, Failure> {
    if let Some(field) = model.unknown_field() {
        return Err(Failure::new(format!("the model has a field that this version does not know ({field}): writing it would lose data"))
            .hint("update regraft"));
    }
    let mut warnings: Vec<String> = model.notes().to_vec();
    warnings.extend(kept(model.opaque_nodes()));
    // What --require leaves out was asked for.
    let is_asked = |trust: Trust| require.is_some_and(|least| trust < least);
    let untrusted =
        |(rule, trust): &(String, Trust)| format!("the rule `{rule}` is {trust} and was left out (hint: --allow {trust} takes it)");
    warnings.extend(rules.left_out.iter().filter(|(_, trust)| !is_asked(*trust)).map(untrusted));
    warnings.extend(rules.library.rules().iter().flat_map(|rule| rule.hints.iter().cloned()));
    Ok(warnings)
}

/// What is reported about nodes that no rule looks into, and why; the most frequent first.
fn kept(nodes: &[OpaqueNode]) -> Option<String> {
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *kinds.entry((&node.op_type, &node.why)).or_default() += 1);
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, number)| Reverse(*number));
    let shown = |((op_type, why), number): &((&str, &str), usize)| match number {
        1 => format!("{op_type} ({why})"),
        _ => format!("{op_type} ×{number} ({why})"),
    };
    let mut said: Vec<String> = kinds.iter().take(KINDS_SHOWN).map(shown).collect();
    if kinds.len() > KINDS_SHOWN {
        said.push(format!("{} more kinds", kinds.len() - KINDS_SHOWN));
    }
    let how_many = if nodes.len() == 1 { "1 node is kept as it is".into() } else { format!("{} nodes are kept as they are", nodes.len()) };
    (!nodes.is_empty()).then(|| format!("{how_many}: {}", said.join(", ")))
}
