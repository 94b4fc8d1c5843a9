//! `regraft-train`: how accurate small networks with these operators become; and networks to try
//! them on.

mod policy_command;
mod xrlflow_command;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use prost::Message;
use regraft::file::write_atomic;
use regraft_onnx::proto::TensorProto;
use regraft_synth::Coordinates;
use regraft_train::halving::{Schedule, network, train};
use regraft_train::{HELD_BACK, Images, ResNet, Shape, Store, Task, Training, onnx, spec, told_right};

/// Train small networks with operators in them, and print how accurate they become
///
/// The network has four layers, at 16x16 and 8x8, with 32 and 64 channels; the task is to tell ten
/// textures apart under noise. Half of the operators are dropped at each milestone.
#[derive(Debug, Parser)]
#[command(name = "regraft-train", version, max_term_width = 100, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    operators: Operators,
}

#[derive(Debug, clap::Args)]
struct Operators {
    /// Formulas, as `regraft synthesize` prints them
    #[arg(required = true, value_name = "FORMULA")]
    formulas: Vec<String>,
    /// Seeds; each trains all operators
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// Epochs after which half of the operators are dropped, the last one for those that stay
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4")]
    milestones: Vec<usize>,
    /// Size of the noise, relative to the textures
    #[arg(long, value_name = "SIZE", default_value_t = 1.0)]
    noise: f32,
    /// Database of runs: what is in it is not trained again
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Print runs as JSON, one a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Train a ResNet-18 on the same textures, and write it as a model with some images
    Resnet(Resnet),
    Policy(policy_command::Args),
}

#[derive(Debug, clap::Args)]
struct Resnet {
    /// A folder: model.onnx, and images as data/test_data_set_N/x.pb
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Height and width of the images
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = at_least_one)]
    side: usize,
    /// Channels of the first stage
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    width: usize,
    /// Residual blocks of each stage
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one)]
    blocks: usize,
    /// Epochs
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_one)]
    epochs: usize,
    /// Images of an epoch
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = at_least_one)]
    images: usize,
    /// Images at once in the model
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    batch: usize,
    /// Images that are written, in files of one batch each
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = at_least_one)]
    samples: usize,
    /// Size of the noise, relative to the textures
    #[arg(long, value_name = "SIZE", default_value_t = 1.0)]
    noise: f32,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("`{text}` is no number from 1 on"))
}

/// Exit code for mistakes, as `regraft` has it.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Some(Command::Resnet(resnet)) => trained_resnet(resnet),
        Some(Command::Policy(args)) => policy_command::run(args),
        None => trained_operators(args.operators),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regraft-train: error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

fn trained_operators(args: Operators) -> Result<()> {
    anyhow::ensure!(args.milestones.is_sorted_by(|a, b| a < b) && args.milestones.first() > Some(&0), "milestones are not ascending");
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    let store = args.store.as_deref().map_or_else(Store::in_memory, Store::open)?;
    let schedule = Schedule { milestones: args.milestones, task: Task { noise: args.noise, ..Task::default() }, ..Schedule::default() };
    // Those that do not fit the network's layers are told, and left out.
    let mut operators = Vec::new();
    let mut unfit = None;
    for formula in &args.formulas {
        match network(formula, schedule.batch, &mut coordinates) {
            Ok(network) => operators.push((formula.clone(), network)),
            Err(error) => {
                eprintln!("regraft-train: {error:#}");
                unfit = Some(error);
            }
        }
    }
    if let Some(error) = unfit.filter(|_| operators.is_empty()) {
        return Err(error);
    }
    for seed in args.seeds {
        let mut each = |run: &regraft_train::Run| {
            eprintln!(
                "seed {}, epoch {}: {:.3} after {:.1} s, loss {:.3}: {}",
                run.seed, run.epoch, run.accuracy, run.seconds, run.loss, run.formula
            );
        };
        for run in train(&operators, &schedule, seed, &store, &mut each, &|| true)?.into_iter().flatten() {
            match args.json {
                true => println!("{}", serde_json::to_string(&run)?),
                false => println!("{:6.2} %  epoch {}  seed {}  {}", 100.0 * run.accuracy, run.epoch, run.seed, run.formula),
            }
        }
    }
    Ok(())
}

/// Images at once in training.
const BATCH: usize = 32;

fn trained_resnet(args: &Resnet) -> Result<()> {
    let task = Task { side: args.side, noise: args.noise, images: args.images, held_back: 256 };
    let shape = Shape { side: args.side, width: args.width, blocks: args.blocks };
    std::fs::create_dir_all(&args.output).with_context(|| args.output.display().to_string())?;
    anyhow::ensure!(args.images >= BATCH, "an epoch has at least {BATCH} images");
    let resnet = ResNet::new(shape, BATCH).context("the images are too small: each of three stages halves them")?;
    let mut training = Training::new(&resnet.network, BATCH, args.epochs, task, args.seed);
    for _ in 0..args.epochs {
        let progress = training.epoch()?;
        eprintln!("epoch {}: {:.1} % right, loss {:.3}", progress.epoch, 100.0 * progress.accuracy, progress.loss);
    }
    let parameters: Vec<Vec<f32>> = training.parameters().map(<[f32]>::to_vec).collect();
    let seen = task.images(256, args.seed);
    let held_back = task.images(task.held_back, HELD_BACK);
    let accuracy = told_right(&resnet.inferring(&parameters, &seen, BATCH)?, &[], &held_back, &[BATCH, 1, args.side, args.side])?;
    let model = resnet.inferring(&parameters, &seen, args.batch)?;
    write_atomic(&args.output.join("model.onnx"), &onnx(&model)?)?;
    samples(&args.output.join("data"), &task.images(args.samples, args.seed.wrapping_add(1)), &[args.batch, 1, args.side, args.side])?;
    println!("{:.1} % of held-back images are told right: {}", 100.0 * accuracy, args.output.join("model.onnx").display());
    Ok(())
}

/// Writes images as inputs of a model, a folder for each batch.
fn samples(folder: &Path, images: &Images, shape: &[usize]) -> Result<()> {
    for (at, pixels) in images.pixels.chunks_exact(shape.iter().product()).enumerate() {
        let folder = folder.join(format!("test_data_set_{at}"));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let tensor = TensorProto {
            name: Some("x".into()),
            data_type: Some(1),
            dims: shape.iter().map(|size| *size as i64).collect(),
            raw_data: Some(pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect::<Vec<u8>>().into()),
            ..TensorProto::default()
        };
        write_atomic(&folder.join("x.pb"), &tensor.encode_to_vec())?;
    }
    Ok(())
}
