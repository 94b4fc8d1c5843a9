//! Takes every variant of every case through all stages: read, written unchanged, rewritten at
//! random, written, loaded, run, compared.

use anyhow::{Context, Result, bail};
use prost::Message;
use regraft::agreement::compare;
use regraft_ir::parallel;
use regraft_onnx::proto::ModelProto;
use regraft_onnx::{Model, Signature, WriteOptions};
use regraft_runtime::{Feeds, HostTensor, ModelSource, OptLevel, SessionOptions};
use regraft_search::RandomWalk;

use super::Args;
use super::case::Case;
use super::variant::{Prepared, Variant};
use crate::caught::caught;
use crate::summary::Summary;
use crate::trial::{Bench, TOLERANCE};

/// Steps of a walk: more than any case allows.
const STEPS: usize = 24;

/// How far a variant of a case could be tested.
enum Reach {
    /// Run and compared; rewrites applied over all walks.
    Compared(usize),
    /// Written unchanged, and its rewritten forms load: it has values that cannot be fed or read
    /// here, or results that differ from run to run.
    Loaded(String),
    /// Written unchanged. The baseline cannot load or run it.
    Carried(String),
}

/// Runs all variants of all cases.
pub fn run(bench: &Bench, cases: &[Case], args: &Args) -> Summary {
    let mut summary = Summary::default();
    for (number, variant) in Variant::ALL.into_iter().enumerate() {
        let (mut compared, mut loaded, mut carried, mut rewritten, mut rewrites) = (0, 0, 0, 0, 0);
        let broken = summary.broken.len();
        let places: Vec<usize> = (0..cases.len()).collect();
        let reached = parallel::map(&places, parallel::cores(), |at| {
            let seed = args.seed.wrapping_add(1_000_003 * (4 * at + number) as u64);
            let walks = (0..args.walks).map(|walk| RandomWalk { steps: STEPS, seed: seed.wrapping_add(walk << 32) });
            caught(|| journey(bench, &variant.prepare(&cases[*at]), walks))
        });
        for (case, reached) in cases.iter().zip(reached) {
            let note = |kind: &str, why: &str| {
                if args.verbose {
                    println!("    {kind} {} ({}): {why}", case.name, variant.name());
                }
            };
            match reached {
                Ok(Reach::Compared(steps)) => {
                    compared += 1;
                    rewritten += usize::from(steps > 0);
                    rewrites += steps;
                }
                Ok(Reach::Loaded(why)) => {
                    loaded += 1;
                    note("loaded", &why);
                }
                Ok(Reach::Carried(why)) => {
                    carried += 1;
                    note("carried", &why);
                }
                Err(why) => summary.broken.push(format!("{} ({}): {why:#}", case.name, variant.name())),
            }
        }
        println!(
            "{}: {compared} compared ({rewritten} of them rewritten, {rewrites} rewrites), {loaded} only written and loaded, {carried} only \
             written, for the baseline cannot run them; {} broken",
            variant.name(),
            summary.broken.len() - broken
        );
        summary.held += compared + loaded;
        summary.skipped += carried;
    }
    summary
}

fn journey(bench: &Bench, prepared: &Prepared, walks: impl Iterator<Item = RandomWalk>) -> Result<Reach> {
    let Prepared { bytes, feeds } = prepared;
    unchanged(bytes)?;
    if let Err(why) = open(bench, bytes) {
        return Ok(Reach::Carried(why.to_string()));
    }
    let want = match feeds.as_deref().map(|feeds| baseline(bench, bytes, feeds)) {
        Some(Ok(want)) => want,
        Some(Err(why)) if !is_uncarried(&why) => return Ok(Reach::Carried(format!("{why:#}"))),
        Some(Err(why)) => return only_loaded(bench, bytes, walks, &format!("{why:#}")),
        None => return only_loaded(bench, bytes, walks, "an input cannot be fed"),
    };
    let feeds = feeds.as_deref().unwrap_or_default();
    if let Some(why) = unsteady(bench, bytes, feeds, &want)? {
        return only_loaded(bench, bytes, walks, &why);
    }
    let mut rewrites = 0;
    for walk in walks {
        match bench.hold(bytes, feeds, &want, walk)? {
            0 => break,
            steps => rewrites += steps,
        }
    }
    Ok(Reach::Compared(rewrites))
}

/// A model read and written without a rewrite is unchanged.
fn unchanged(bytes: &[u8]) -> Result<()> {
    let before = ModelProto::decode(bytes)?;
    let model = Model::from_bytes(bytes.to_vec().into(), None).context("reading")?;
    let after = model.write(model.graph(), &WriteOptions::default()).context("writing")?.proto;
    // Compared as bytes: a NaN among the attributes is not equal to itself.
    if after.encode_to_vec() == bytes {
        return Ok(());
    }
    let nodes = |model: &ModelProto| model.graph.as_ref().map(|g| g.node.clone()).unwrap_or_default();
    let (want, have) = (nodes(&before), nodes(&after));
    match want.iter().zip(&have).find(|(a, b)| a.encode_to_vec() != b.encode_to_vec()) {
        Some((node, _)) => bail!("written unchanged, the node `{}` of type {} differs", node.name(), node.op_type()),
        None => bail!("written unchanged, the model has {} nodes instead of {}, or differs outside of its nodes", have.len(), want.len()),
    }
}

/// Rewritten forms must load and keep the signature.
fn only_loaded(bench: &Bench, bytes: &[u8], walks: impl Iterator<Item = RandomWalk>, why: &str) -> Result<Reach> {
    let before = Signature::of(&ModelProto::decode(bytes)?);
    for walk in walks {
        let rewritten = bench.rewrite(bytes, walk)?;
        if Signature::of(&ModelProto::decode(rewritten.bytes.as_slice())?) != before {
            bail!("the signature changed after {}", rewritten.rules.join(", "));
        }
        open(bench, &rewritten.bytes).with_context(|| format!("after {}", rewritten.rules.join(", ")))?;
        if rewritten.rules.is_empty() {
            break;
        }
    }
    Ok(Reach::Loaded(why.to_string()))
}

fn open(bench: &Bench, bytes: &[u8]) -> Result<()> {
    let options = SessionOptions { level: OptLevel::Disabled, threads: 1, ..SessionOptions::default() };
    bench.runtime.open(ModelSource::bytes(bytes), &options)?;
    Ok(())
}

fn baseline(bench: &Bench, bytes: &[u8], feeds: &[Feeds]) -> Result<Vec<Vec<HostTensor>>> {
    feeds.iter().map(|feeds| bench.outputs(bytes, OptLevel::Disabled, feeds)).collect()
}

/// True if the model runs, and only its values cannot be read here.
fn is_uncarried(why: &anyhow::Error) -> bool {
    use regraft_runtime::RuntimeError;
    matches!(why.downcast_ref(), Some(RuntimeError::UnsupportedValue { .. } | RuntimeError::Tensor { .. }))
}

/// Why nothing can be compared: the baseline draws random numbers.
fn unsteady(bench: &Bench, bytes: &[u8], feeds: &[Feeds], want: &[Vec<HostTensor>]) -> Result<Option<String>> {
    let names: Vec<String> = Signature::of(&ModelProto::decode(bytes)?).outputs.into_iter().map(|o| o.name).collect();
    let again = baseline(bench, bytes, feeds)?;
    let steady = want.iter().zip(&again).all(|(a, b)| compare(&names, a, b).within(TOLERANCE));
    Ok((!steady).then(|| "two runs of the baseline differ".into()))
}
