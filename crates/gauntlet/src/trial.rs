//! Takes one model through all stages: read, rewritten at random, written, loaded, run, compared.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use prost::Message;
use regraft::agreement::compare;
use regraft::optimize::{Bodies, InModel, Proposal, Rewrite, Rewritten as Record, clean, rewrite_bodies, scramble};
use regraft_certify::{Certificate, Finding, GraphPath, Judged, ModelDigest, Replay, Trail};
use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph};
use regraft_onnx::proto::ModelProto;
use regraft_onnx::{FixedSizes, Model, Signature, WriteOptions};
use regraft_rules::Library;
use regraft_runtime::{Feeds, HostTensor, ModelSource, OptLevel, Runtime, SessionOptions};
use regraft_search::RandomWalk;

/// Allowed relative difference: rewrites reassociate sums, and random ones do so repeatedly.
pub const TOLERANCE: f64 = 2e-3;

/// Bytes that rewritten bodies may add.
const GROWTH: u64 = 1 << 28;

/// What all trials of a campaign share.
pub struct Bench {
    /// The baseline.
    pub runtime: Arc<dyn Runtime>,
    /// Rules to rewrite with.
    pub library: Library,
}

/// The outcome for a model.
#[derive(Debug)]
pub enum Outcome {
    /// Everything held; how many rewrites were applied.
    Held(usize),
    /// The baseline itself cannot run the model, or produces nothing to compare: why.
    Skipped(String),
    /// What broke.
    Broken(String),
}

/// A rewritten model as bytes, and what was done to it.
pub struct Rewritten {
    /// The written model.
    pub bytes: Vec<u8>,
    /// The graph as read; both graphs have nothing folded.
    pub before: Graph,
    /// The rewritten graph.
    pub after: Graph,
    /// Rules, in order of application.
    pub rules: Vec<String>,
    /// The certificate's verdict on each of them.
    pub judged: Vec<Judged>,
    /// Why the whole certificate does not lead to the written model, if so: the written model reads
    /// as another expression.
    pub uncertified: Option<String>,
}

impl Bench {
    /// Loads the runtime and the shipped rules.
    pub fn open() -> Result<Bench> {
        let runtime = regraft::runtime::RuntimeChoice::default().load().context("the baseline cannot be loaded")?;
        Ok(Bench { runtime, library: Library::shipped()? })
    }

    /// Takes a model through all stages at the sizes of `feeds`.
    pub fn run(&self, bytes: &[u8], feeds: &[Feeds], walk: RandomWalk) -> Outcome {
        let mut want = Vec::new();
        for feeds in feeds {
            match self.outputs(bytes, OptLevel::Disabled, feeds) {
                Ok(outputs) => want.push(outputs),
                Err(why) => return Outcome::Skipped(format!("{why:#}")),
            }
        }
        match self.hold(bytes, feeds, &want, walk) {
            Ok(rewrites) => Outcome::Held(rewrites),
            Err(why) => Outcome::Broken(format!("{why:#}")),
        }
    }

    /// Rewrites a model with expected outputs `want`, and checks the result against them; returns
    /// the number of rewrites applied.
    pub fn hold(&self, bytes: &[u8], feeds: &[Feeds], want: &[Vec<HostTensor>], walk: RandomWalk) -> Result<usize> {
        let rewritten = self.rewrite(bytes, walk)?;
        let done = || format!("after {}", rewritten.rules.join(", "));
        let (before, after) = (ModelProto::decode(bytes)?, ModelProto::decode(rewritten.bytes.as_slice())?);
        let (before, after) = (Signature::of(&before), Signature::of(&after));
        if before != after {
            bail!("the signature changed {}", done());
        }
        let names: Vec<String> = before.outputs.iter().map(|o| o.name.clone()).collect();
        for (feeds, want) in feeds.iter().zip(want) {
            // Without the runtime's optimizer first: any difference there is ours.
            for level in [OptLevel::Disabled, OptLevel::All] {
                let have = match self.outputs(&rewritten.bytes, level, feeds) {
                    Ok(have) => have,
                    // The runtime's optimizer breaks the original too.
                    Err(_) if level == OptLevel::All && !self.is_right(bytes, &names, feeds, want) => continue,
                    Err(why) => return Err(why).with_context(done),
                };
                let agreement = compare(&names, want, &have);
                if !agreement.within(TOLERANCE) {
                    if level == OptLevel::All && !self.is_right(bytes, &names, feeds, want) {
                        continue;
                    }
                    let what = agreement.broken.iter().chain(&agreement.lost).next().cloned();
                    bail!("{} {}", what.unwrap_or_else(|| format!("`{}` differs by {:.1e}", agreement.output, agreement.relative)), done());
                }
            }
        }
        Ok(rewritten.rules.len())
    }

    /// True if the original stays right under the runtime's own optimizer.
    fn is_right(&self, bytes: &[u8], names: &[String], feeds: &Feeds, want: &[HostTensor]) -> bool {
        self.outputs(bytes, OptLevel::All, feeds).is_ok_and(|have| compare(names, want, &have).within(TOLERANCE))
    }

    /// Reads, rewrites and writes a model.
    pub fn rewrite(&self, bytes: &[u8], walk: RandomWalk) -> Result<Rewritten> {
        let model = Model::from_bytes(bytes.to_vec().into(), None).context("reading")?;
        let (start, _) = clean(model.graph());
        let bodies = self.rewrite_bodies(&model, walk)?;
        let inside = bodies.rewritten.iter().flat_map(|body| &body.rewrites).map(|rewrite| &rewrite.applied);
        let mut rules: Vec<String> = inside.map(|a| format!("{} at {}", a.rule, a.at)).collect();
        let proposal = self.scramble(&model, &start, walk);
        let (graph, rewrites) = proposal.map_or((start, Vec::new()), |p| (p.graph, p.rewrites));
        rules.extend(rewrites.iter().map(|rewrite| rewrite.applied.rule.clone()));
        let written = bodies.model.write(&graph, &WriteOptions::default()).context("writing")?;
        let bytes = written.to_bytes()?;
        let before = model.graph().clone();
        let main = Record { place: GraphPath::default(), label: String::new(), read: before.clone(), rewrites };
        let trails = std::iter::once(&main).chain(&bodies.rewritten).map(|r| r.trail(&self.library));
        let trails = trails.collect::<Option<Vec<_>>>().context("a rewrite cannot be said as data")?;
        let replay = replays(&model, &bytes, trails).with_context(|| format!("after {}", rules.join(", ")))?;
        Ok(Rewritten { bytes, before, after: graph, rules, judged: replay.judged, uncertified: replay.arrival.err() })
    }

    /// Also walks inside every body. A body that cannot be written after rewriting is a defect.
    fn rewrite_bodies(&self, model: &Model, walk: RandomWalk) -> Result<Bodies> {
        let mut seed = walk.seed;
        let options = WriteOptions { allow_growth: Some(GROWTH), ..WriteOptions::default() };
        let bodies = rewrite_bodies(model, &ones(model.graph()), &options, &mut |inside| {
            seed = seed.wrapping_add(1);
            self.scramble(inside.model, inside.start, RandomWalk { seed, ..walk })
        });
        match bodies.not_done.first() {
            Some(refused) => bail!("{}: {}", refused.at, refused.because),
            None => Ok(bodies),
        }
    }

    fn scramble(&self, model: &Model, start: &Graph, walk: RandomWalk) -> Option<Proposal> {
        scramble(start, &Roofline::new(ones(start)), &self.library, &InModel::new(model, &*self.runtime), walk)
    }

    /// Random rewrites of a model's graph, without those inside bodies; `None` if no rule fits.
    pub fn rewrites(&self, model: &Model, walk: RandomWalk) -> Option<Vec<Rewrite>> {
        let (start, _) = clean(model.graph());
        self.scramble(model, &start, walk).map(|proposal| proposal.rewrites)
    }

    /// Runs a model once.
    pub fn outputs(&self, bytes: &[u8], level: OptLevel, feeds: &Feeds) -> Result<Vec<HostTensor>> {
        let options = SessionOptions { level, threads: 1, ..SessionOptions::default() };
        Ok(self.runtime.open(ModelSource::bytes(bytes), &options)?.run(feeds)?)
    }
}

/// Replays the certificate of the rewrites, which must read back as written, and every step of
/// which must fit. Whether its steps can be proved, and whether they lead to the written model, is
/// checked elsewhere.
fn replays(model: &Model, bytes: &[u8], trails: Vec<Trail>) -> Result<Replay> {
    let written = Model::from_bytes(bytes.to_vec().into(), None).context("reading what was written")?;
    let digest = ModelDigest(Vec::new());
    let certificate =
        Certificate { tool: "gauntlet".into(), input: digest.clone(), output: digest, fixed: FixedSizes::default(), opset: None, trails };
    let read = Certificate::parse(certificate.to_text().as_bytes())??;
    if read != certificate {
        bail!("the certificate reads back as another one");
    }
    match read.replay(model, &written)? {
        Finding::Replayed(replay) => Ok(replay),
        Finding::Tampered(why) | Finding::OtherInput(why) => bail!("the certificate does not replay: {why}"),
    }
}

/// Every open size as 1: prices do not matter here.
pub fn ones(graph: &Graph) -> Bindings {
    let mut symbols = Vec::new();
    for ty in graph.inputs().iter().filter_map(|id| graph.ty(id.out())) {
        ty.shape.iter().for_each(|d| d.symbols(&mut symbols));
    }
    symbols.into_iter().map(|s| (s.to_string(), 1)).collect()
}
