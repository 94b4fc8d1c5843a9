//! `bodies`: small models with `If`, `Loop` and `Scan`, rewritten at random outside and inside
//! their bodies.

mod build;
mod fixtures;
mod names;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use prost::Message;
use regraft_onnx::Model;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{DType, Feeds, Fill, FillOptions, HostTensor, InputSpec, fill_inputs};
use regraft_search::RandomWalk;

use crate::summary::Summary;
use crate::trial::{Bench, Outcome};

/// Size of every open dimension.
const OPEN: usize = 3;
/// Maximum number of steps of each walk.
const STEPS: usize = 16;

/// Models with bodies, rewritten at random.
#[derive(ClapArgs)]
pub struct Args {
    /// Seed of the first walk
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Walks per model
    #[arg(long, default_value_t = 200)]
    walks: u64,
    /// A few walks only
    #[arg(long)]
    short: bool,
}

/// Runs the campaign.
pub fn run(args: &Args) -> ExitCode {
    let walks = if args.short { 3 } else { args.walks };
    match campaign(args.seed, walks) {
        Ok((summary, rewrites)) => {
            println!("{} models, {walks} walks each, {rewrites} rewrites", fixtures::all().len());
            summary.conclude("bodies", args.seed)
        }
        Err(why) => {
            eprintln!("gauntlet: {why:#}");
            ExitCode::from(2)
        }
    }
}

/// All fixtures, each with several walks. Also returns the number of rewrites.
fn campaign(seed: u64, walks: u64) -> Result<(Summary, usize)> {
    let bench = Bench::open()?;
    let mut summary = Summary::default();
    let mut rewrites = 0;
    for (name, model) in fixtures::all() {
        let bytes = model.encode_to_vec();
        let feeds = feeds(&bytes).with_context(|| name.to_string())?;
        for seed in seed..seed + walks {
            let walk = RandomWalk { steps: STEPS, seed };
            if let Err(why) = survives(&bench, &model, &bytes, walk) {
                summary.broken.push(format!("{name}, seed {seed}: {why:#}"));
                continue;
            }
            match bench.run(&bytes, &feeds, walk) {
                Outcome::Held(count) => (summary.held, rewrites) = (summary.held + 1, rewrites + count),
                Outcome::Skipped(why) => {
                    if summary.skipped.is_multiple_of(walks as usize) {
                        println!("{name}: not comparable: {why}");
                    }
                    summary.skipped += 1;
                }
                Outcome::Broken(why) => summary.broken.push(format!("{name}, seed {seed}: {why}")),
            }
        }
    }
    Ok((summary, rewrites))
}

/// Checks what must hold even if the baseline cannot run the model.
fn survives(bench: &Bench, before: &ModelProto, bytes: &[u8], walk: RandomWalk) -> Result<()> {
    let rewritten = bench.rewrite(bytes, walk)?;
    let after = ModelProto::decode(rewritten.bytes.as_slice())?;
    Model::from_proto(after.clone()).context("reading back")?;
    ensure!(after.functions == before.functions, "a function changed");
    let (was, is) = (names::shadowed(before), names::shadowed(&after));
    ensure!(is.is_subset(&was), "`{:?}` hides an outer name", is.difference(&was).next());
    let twice = names::new_twice(before, &after);
    ensure!(twice.is_none(), "the new name `{}` is given twice", twice.unwrap_or_default());
    Ok(())
}

/// Inputs for both values of every condition.
fn feeds(bytes: &[u8]) -> Result<Vec<Feeds>> {
    let model = Model::from_bytes(bytes.to_vec().into(), None)?;
    let mut specs = Vec::new();
    let mut flags = Vec::new();
    for input in model.inputs() {
        let ty = input.ty.context("an input has no type")?;
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.known().map_or(OPEN, |n| n as usize)).collect();
        if ty.dtype == regraft_ir::DType::Bool {
            flags.push(input.name);
        } else {
            specs.push(InputSpec { name: input.name, dtype: DType::F32, shape });
        }
    }
    let values = fill_inputs(Fill::Normal, &specs, &FillOptions::default())?;
    let mut all = Vec::new();
    for bits in 0..1u32 << flags.len() {
        let mut feeds = values.clone();
        for (at, flag) in flags.iter().enumerate() {
            feeds.insert(flag.as_str(), HostTensor::from_bytes(DType::Bool, vec![], &[(bits >> at & 1) as u8])?);
        }
        all.push(feeds);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fixture_holds_and_bodies_are_rewritten() {
        let Ok(bench) = Bench::open() else {
            assert!(std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_none(), "the baseline cannot be loaded");
            return;
        };
        let mut skipped = Vec::new();
        for (name, model) in fixtures::all() {
            let bytes = model.encode_to_vec();
            let feeds = feeds(&bytes).unwrap();
            let mut inside = 0;
            for seed in 0..3 {
                let walk = RandomWalk { steps: STEPS, seed };
                survives(&bench, &model, &bytes, walk).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why:#}"));
                inside += bench.rewrite(&bytes, walk).unwrap().rules.iter().filter(|r| r.contains(" in the ")).count();
                match bench.run(&bytes, &feeds, walk) {
                    Outcome::Held(_) => {}
                    Outcome::Skipped(_) => skipped.push(name),
                    Outcome::Broken(why) => panic!("{name}, seed {seed}: {why}"),
                }
            }
            assert!(inside > 0, "{name}: nothing was rewritten inside of its bodies");
        }
        skipped.dedup();
        assert_eq!(skipped, ["if-shadowed-names", "if-captured-output"], "the baseline runs all others");
    }

    #[test]
    fn bodies_that_change_nothing_come_back_byte_for_byte() {
        for (name, proto) in fixtures::all() {
            let model = Model::from_proto(proto.clone()).unwrap();
            let untouched = regraft::optimize::rewrite_bodies(&model, &Default::default(), &Default::default(), &mut |_| None);
            assert_eq!(*untouched.model.proto(), proto, "{name}");
            let mut same = model.clone();
            for body in model.bodies() {
                same.put_body(body.write(body.model(), body.model().graph(), &Default::default()).unwrap());
            }
            assert_eq!(*same.proto(), proto, "{name}");
        }
    }

    #[test]
    fn rewrites_say_in_which_body_they_are() {
        let Ok(bench) = Bench::open() else { return };
        let (_, model) = fixtures::all().into_iter().find(|(name, _)| *name == "loop-around-if").unwrap();
        let rules = (0..4).flat_map(|seed| bench.rewrite(&model.encode_to_vec(), RandomWalk { steps: STEPS, seed }).unwrap().rules);
        let rules: Vec<String> = rules.collect();
        assert!(rules.iter().any(|r| r.ends_with(" in the else-branch of n_s2 in the body of n_y_z")), "{rules:?}");
        assert!(rules.iter().any(|r| r.ends_with(" in the body of n_y_z") && !r.contains("branch")), "{rules:?}");
    }

    #[test]
    fn only_sizes_that_every_iteration_keeps_are_known() {
        let types = |wanted: &str| {
            let (_, proto) = fixtures::all().into_iter().find(|(name, _)| *name == wanted).unwrap();
            let model = Model::from_proto(proto).unwrap();
            let bodies = model.bodies();
            let inputs = bodies[0].model().inputs();
            inputs.iter().map(|i| format!("{} {}", i.name, i.ty.as_ref().map_or("?".into(), ToString::to_string))).collect::<Vec<_>>()
        };
        assert_eq!(types("loop-carried")[2..], ["s f32[2,4]", "t f32[2,4]"]);
        assert_eq!(types("loop-growing")[2..], ["s f32[s_d0,4]", "x f32[N,4]"]);
        assert_eq!(types("loop-alternating")[2..], ["a f32[a_d0,a_d1]", "b f32[b_d0,b_d1]"]);
        assert_eq!(types("scan")[..2], ["s f32[2,4]", "slice f32[2,3]"]);
        assert_eq!(types("if-dynamic"), ["d f32[expr(2*N),4]"]);
    }
}
