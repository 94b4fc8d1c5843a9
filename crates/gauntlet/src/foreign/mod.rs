//! Simplifies random models with other tools: are the results proved equivalent, and tampered ones
//! never?

mod tally;
pub mod tamper;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use prost::Message;
use regraft::agreement::compare;
use regraft::check::CheckRequest;
use regraft::equivalence;
use regraft::optimize::{Silent, clean};
use regraft_equate::Effort;
use regraft_ir::{OpKind, Trust};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{ModelProto, TensorShapeProto, type_proto};
use regraft_onnx::{Model, Signature};
use regraft_runtime::{Feeds, HostTensor, OptLevel};

use self::tally::{Campaign, Tally};
use self::tamper::Kind;
use crate::generate::{self, Case, random::Random};
use crate::trial::Bench;

/// The script that runs the simplifiers.
const SCRIPT: &str = "scripts/simplify.py";
/// Models simplified at a time.
const BATCH: u64 = 100;
/// Models of the short mode.
const SHORT: u64 = 40;
/// Outputs that differ by more than this, relative to their largest magnitude, count as different.
const DIFFERENT: f64 = 1e-2;

/// What other simplifiers make of random models, proved, and wrong models, not proved.
#[derive(clap::Args, Clone, Debug)]
pub struct Foreign {
    /// How many models.
    #[arg(long, default_value_t = 1_000)]
    models: u64,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first model.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Leave out models without open sizes.
    #[arg(long)]
    open: bool,
    /// A few models only.
    #[arg(long)]
    short: bool,
    /// Simplifiers; those that are installed by default.
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// Wrong models to make of every changed one.
    #[arg(long, default_value_t = 1)]
    tampered: usize,
    /// Questions that the prover may leave open, per pair.
    #[arg(long, default_value_t = Effort::default().failures)]
    effort: usize,
    /// Do not compare outputs where nothing is proved.
    #[arg(long)]
    proofs_only: bool,
    /// A Python interpreter with the simplifiers and the `onnx` package.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Also write the result as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Keep pairs that are not proved in this folder.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Print every pair that is not proved.
    #[arg(long)]
    verbose: bool,
}

/// Runs the campaign.
pub fn run(args: &Foreign) -> Result<ExitCode> {
    let python = args.python.clone().map_or_else(crate::python::interpreter, Ok)?;
    let installed = versions(&python)?;
    let tools: Vec<String> = installed.keys().filter(|tool| args.tools.is_empty() || args.tools.contains(tool)).cloned().collect();
    if tools.is_empty() {
        bail!("{} has no simplifier: run scripts/setup.sh foreign, or name an interpreter with --python", python.display());
    }
    let bench = Bench::open()?;
    let start = Instant::now();
    let mut campaign = Campaign::new(args.seed, installed);
    let models = if args.short { SHORT.min(args.models) } else { args.models };
    let mut from = args.from;
    while from < args.from + models {
        let until = (from + BATCH).min(args.from + models);
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let cases = written(&bench, args, from..until, folder.path())?;
        for tool in &tools {
            let out = folder.path().join(tool);
            simplify(&python, tool, folder.path(), &out)?;
            for (number, (case, want)) in &cases {
                let subject = Subject { number: *number, case, want, folder: folder.path(), out: &out, tool };
                let tally = campaign.tally(tool, is_open(case));
                subject.judge(args, &bench, tally)?;
            }
        }
        from = until;
        campaign.seconds = start.elapsed().as_secs_f64();
        eprintln!("{from} models, {:.0} s", campaign.seconds);
        // After every batch, so that little is lost if the runtime crashes the process.
        if let Some(path) = &args.json {
            std::fs::write(path, serde_json::to_vec_pretty(&campaign)?).with_context(|| path.display().to_string())?;
        }
    }
    println!("{campaign}");
    Ok(campaign.conclude())
}

/// The simplifiers installed for an interpreter, with their versions.
fn versions(python: &Path) -> Result<BTreeMap<String, String>> {
    ensure!(Path::new(SCRIPT).is_file(), "there is no {SCRIPT} here: run this in the project's folder");
    let output =
        Command::new(python).args([SCRIPT, "--versions"]).output().with_context(|| format!("{} cannot be run", python.display()))?;
    ensure!(
        output.status.success(),
        "{SCRIPT} --versions ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.split_once(' ')).map(|(tool, version)| (tool.into(), version.into())).collect())
}

fn simplify(python: &Path, tool: &str, folder: &Path, out: &Path) -> Result<()> {
    let status = Command::new(python).args([SCRIPT, tool]).arg(folder).arg(out).status().context("the simplifier cannot be run")?;
    if status.success() { Ok(()) } else { bail!("{SCRIPT} {tool} ended with {status}") }
}

/// A case with its expected outputs.
type Wanted = (Case, Vec<Vec<HostTensor>>);

/// Writes models that the baseline can run.
fn written(bench: &Bench, args: &Foreign, numbers: std::ops::Range<u64>, folder: &Path) -> Result<Vec<(u64, Wanted)>> {
    let mut cases = Vec::new();
    for number in numbers {
        let mut case = generate::case(args.seed, number);
        if args.open && !is_open(&case) {
            continue;
        }
        let Ok(want) = outputs(bench, &case.bytes(), &case.feeds) else { continue };
        declare(&mut case.model, &want);
        let bytes = case.bytes();
        std::fs::write(folder.join(format!("{number:06}.onnx")), &bytes).context("a model cannot be written")?;
        cases.push((number, (case, want)));
    }
    Ok(cases)
}

/// Declares the shapes of outputs, which simplifiers insist on: the known sizes, and the number of
/// axes.
fn declare(model: &mut ModelProto, want: &[Vec<HostTensor>]) {
    let known = Model::from_proto(model.clone()).map(|m| m.outputs()).unwrap_or_default();
    let Some(graph) = &mut model.graph else { return };
    for (at, output) in graph.output.iter_mut().enumerate() {
        let name = output.name().to_string();
        let Some(type_proto::Value::TensorType(tensor)) = output.r#type.as_mut().and_then(|t| t.value.as_mut()) else { continue };
        if tensor.shape.is_some() {
            continue;
        }
        let declared = known.iter().find(|k| k.name == name).and_then(|k| k.ty.as_ref());
        let sizes: Vec<Option<dimension::Value>> = match (declared, want.first().and_then(|w| w.get(at))) {
            (Some(ty), _) => ty.shape.iter().map(|d| d.known().map(dimension::Value::DimValue)).collect(),
            (None, Some(value)) => vec![None; value.shape().len()],
            (None, None) => continue,
        };
        let dim = sizes.into_iter().map(|value| Dimension { value, denotation: None }).collect();
        tensor.shape = Some(TensorShapeProto { dim });
    }
}

fn outputs(bench: &Bench, bytes: &[u8], feeds: &[Feeds]) -> Result<Vec<Vec<HostTensor>>> {
    feeds.iter().map(|f| bench.outputs(bytes, OptLevel::Disabled, f)).collect()
}

/// True if the model has an input with an open size.
fn is_open(case: &Case) -> bool {
    let Ok(model) = Model::from_proto(case.model.clone()) else { return false };
    model.inputs().iter().filter_map(|i| i.ty.as_ref()).any(|ty| ty.known_shape().is_none())
}

/// A model and a tool's result.
struct Subject<'a> {
    number: u64,
    case: &'a Case,
    want: &'a [Vec<HostTensor>],
    folder: &'a Path,
    out: &'a Path,
    tool: &'a str,
}

impl Subject<'_> {
    fn judge(&self, args: &Foreign, bench: &Bench, tally: &mut Tally) -> Result<()> {
        let name = format!("{:06}.onnx", self.number);
        let (path_a, path_b) = (self.folder.join(&name), self.out.join(&name));
        let Ok(bytes) = std::fs::read(&path_b) else {
            let why = std::fs::read_to_string(path_b.with_extension("txt")).unwrap_or_default();
            tally.refused += 1;
            *tally.refusals.entry(brief(&why)).or_default() += 1;
            return Ok(());
        };
        let (Ok(a), Ok(b)) = (Model::read(&path_a), Model::read(&path_b)) else {
            tally.unreadable += 1;
            return Ok(());
        };
        if !is_changed(&a, &b) {
            tally.unchanged += 1;
            return Ok(());
        }
        if !Signature::of(a.proto()).compare(&Signature::of(b.proto())).0.is_empty() {
            // An input with a default value can no longer be fed: not the same model, and `check`
            // reports so first.
            tally.resigned += 1;
            return Ok(());
        }
        tally.changed += 1;
        let effort = Effort { failures: args.effort, ..Effort::default() };
        let found = equivalence::compare(&a, &b, &effort).map_err(|e| anyhow::anyhow!("{e}"))?;
        tally.times.push(found.seconds);
        let place = format!("model {} of seed {}, {}", self.number, args.seed, self.tool);
        let shown = found.trust > Trust::Unproved;
        if let Some(keep) = args.keep.as_ref().filter(|_| found.trust < Trust::Proved) {
            std::fs::create_dir_all(keep)?;
            for (path, side) in [(&path_a, "a"), (&path_b, "b")] {
                std::fs::copy(path, keep.join(format!("{}-{}-{}-{side}.onnx", found.trust, self.number, self.tool)))?;
            }
        }
        if args.verbose && found.trust == Trust::Bounded {
            eprintln!("bounded: {place}: {}", found.summary);
        }
        match found.trust {
            Trust::Proved => tally.proved += 1,
            Trust::Bounded => {
                tally.bounded += 1;
                tally.worst = tally.worst.max(found.bound);
            }
            _ => {
                for gap in found.gaps.iter().take(1) {
                    tally.open.entry(kinds(gap)).or_default().push(self.number);
                }
                if args.verbose {
                    eprintln!(
                        "open in {:.1} s, {} questions: {place}: {}: {}",
                        found.seconds,
                        found.asked,
                        found.summary,
                        found.gaps.first().map_or("", |g| &g.why)
                    );
                }
            }
        }
        let differs = self.differs(bench, &bytes);
        if shown && let Some(what) = &differs {
            tally.broken.push(format!("{place} is {} and different: {what}", found.trust));
        }
        if !shown && !args.proofs_only {
            // The whole command, as users run it.
            let request = CheckRequest {
                reference: false,
                effort: Effort { failures: 0, ..Effort::default() },
                ..CheckRequest::new(&path_a, &path_b)
            };
            match regraft::check(&request, &mut Silent) {
                Ok(report) if report.same => tally.tested += 1,
                Ok(report) => {
                    let first = report.differences.first().map_or("", String::as_str);
                    match &differs {
                        // The simplifier is wrong here: outputs also differ on the model's own
                        // inputs.
                        Some(_) => tally.wrong.push(format!("{place}: {first}")),
                        None => tally.refuted.push(format!("{place}: {first}")),
                    }
                }
                Err(why) => tally.unrun.push(format!("{place}: {why}")),
            }
        }
        if shown {
            self.tamper(args, bench, &a, b.proto(), tally)?;
        }
        Ok(())
    }

    /// The difference on the case's own inputs, if there is a clear one.
    fn differs(&self, bench: &Bench, bytes: &[u8]) -> Option<String> {
        let names: Vec<String> = self.case.model.graph.iter().flat_map(|g| &g.output).map(|o| o.name().to_string()).collect();
        let have = outputs(bench, bytes, &self.case.feeds).ok()?;
        for (want, have) in self.want.iter().zip(&have) {
            let agreement = compare(&names, want, have);
            if let Some(broken) = agreement.broken.first() {
                return Some(broken.clone());
            }
            if agreement.relative > DIFFERENT.max(10.0 * self.case.tolerance) {
                return Some(format!("`{}` differs by {:.1e}", agreement.output, agreement.relative));
            }
        }
        None
    }

    /// Tampers with the tool's result, and checks that the wrong models are never proved.
    fn tamper(&self, args: &Foreign, bench: &Bench, a: &Model, b: &ModelProto, tally: &mut Tally) -> Result<()> {
        let mut random = Random::new(args.seed ^ 0x7a31, self.number);
        for _ in 0..args.tampered {
            let kind = random.pick(&Kind::ALL);
            let Some((wrong, what)) = tamper::tampered(b, kind, &mut random) else { continue };
            let bytes = wrong.encode_to_vec();
            // A model is only wrong if the baseline runs it and it really differs.
            let Some(difference) = self.differs(bench, &bytes) else { continue };
            let Ok(wrong) = Model::from_bytes(bytes.into(), None) else { continue };
            let effort = Effort { failures: args.effort.min(10), ..Effort::default() };
            let found = equivalence::compare(a, &wrong, &effort).map_err(|e| anyhow::anyhow!("{e}"))?;
            *tally.tampered.entry(format!("{kind:?}")).or_default() += 1;
            if found.trust > Trust::Unproved {
                let place = format!("model {} of seed {}, {}", self.number, args.seed, self.tool);
                tally.broken.push(format!("{place}, tampered ({what}; {difference}), is {}", found.trust));
            }
        }
        Ok(())
    }
}

/// True if the graph really changed: not only in names, duplicates, order, and where constants are
/// stored.
fn is_changed(a: &Model, b: &Model) -> bool {
    let opaque = |model: &Model| model.graph().ids().any(|id| model.graph().node(id).op.kind() == OpKind::Opaque);
    if opaque(a) || opaque(b) {
        // Nodes kept verbatim have no key of their own.
        return operators(a.proto()) != operators(b.proto());
    }
    let key = |model: &Model| regraft_ir::canonical_key(&clean(model.graph()).0);
    key(a) != key(b)
}

/// How often every operator occurs.
fn operators(model: &ModelProto) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for node in model.graph.iter().flat_map(|g| &g.node).filter(|n| !matches!(n.op_type(), "Constant" | "Identity")) {
        *counts.entry(node.op_type()).or_default() += 1;
    }
    counts
}

/// A reason without names and numbers, so that similar reasons are counted together.
fn brief(why: &str) -> String {
    let plain: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
    plain.chars().take(120).collect()
}

/// Operators at which a proof stops, without names.
fn kinds(gap: &equivalence::Gap) -> String {
    let kind = |text: &str| text.rsplit_once('(').map_or(text, |(_, kind)| kind.trim_end_matches(')')).to_string();
    match &gap.beside {
        Some(beside) => format!("{} beside {}", kind(&gap.value), kind(beside)),
        None => kind(&gap.value),
    }
}
