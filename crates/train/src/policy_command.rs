//! `regraft-train policy`: what `regraft policy` does.

use std::path::PathBuf;

use anyhow::{Context, Result};
use regraft_policy::{Digest, Teacher};
use regraft_rules::Library;
use regraft_train::policy::corpus::{Corpus, Plan};
use regraft_train::policy::learning::Learning;
use regraft_train::policy::network::{Quality, descriptors};

/// Learn which rewrite to try next
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make samples: strong searches on blocks of networks
    Data(Data),
    /// Train a policy on samples
    Train(Train),
}

#[derive(Debug, clap::Args)]
pub struct Data {
    /// Database of samples; what is in it is not made again
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Networks of the zoo
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = MODELS)]
    models: Vec<String>,
    /// Blocks of each network
    #[arg(long, value_name = "N", default_value_t = 200)]
    blocks: usize,
    /// Random moves made before a block is looked at, at most
    #[arg(long, value_name = "N", default_value_t = 6)]
    detours: usize,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Networks that blocks are cut from: real ones of all families.
const MODELS: [&str; 15] = [
    "squeezenet-1.1",
    "resnet-50",
    "resnext-50-branches",
    "inception-v3",
    "mobilenet-v2",
    "mobilenet-v3-large",
    "nasnet-a",
    "vdcnn-29",
    "sample-cnn",
    "nasrnn",
    "sru",
    "bert-base",
    "vit-base",
    "gpt2-block",
    "bert-large-layers",
];

#[derive(Debug, clap::Args)]
pub struct Train {
    /// Databases of samples
    #[arg(required = true, value_name = "FILE")]
    corpus: PathBuf,
    /// Where the weights go
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Leave out these families or networks
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    without: Vec<String>,
    /// Epochs
    #[arg(long, value_name = "N", default_value_t = 12)]
    epochs: usize,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// Of so many blocks, one is held back.
const HELD_BACK: usize = 10;

pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Data(args) => data(args),
        Command::Train(args) => train(args),
    }
}

fn shipped() -> Result<Library> {
    Library::shipped().ok().context("the shipped rules cannot be read")
}

fn data(args: &Data) -> Result<()> {
    let library = shipped()?;
    let mut corpus = Corpus::open(&args.output, Digest::of(&library))?;
    let plan = Plan {
        models: args.models.clone(),
        blocks: args.blocks,
        detours: args.detours,
        seed: args.seed,
        threads: args.threads,
        teacher: Teacher::default(),
    };
    corpus.fill(&plan, &library, &mut |done, total| {
        if done % 50 == 0 || done == total {
            eprintln!("{done} of {total} blocks");
        }
    })
}

fn train(args: &Train) -> Result<()> {
    let digest = Digest::of(&shipped()?);
    let corpus = Corpus::open(&args.corpus, digest)?;
    let wanted = |model: &str, family: &str| args.without.iter().all(|out| out != model && out != family);
    let [samples, held_back] = corpus.split(&wanted, HELD_BACK)?;
    let [out, more] = corpus.split(&|model, family| !wanted(model, family), HELD_BACK)?;
    let left_out: Vec<_> = out.into_iter().chain(more).collect();
    let rules = descriptors()?;
    let mut learning = Learning::new(digest, args.epochs, args.seed);
    let start = std::time::Instant::now();
    eprintln!("{} samples, {} held back, {} left out", samples.len(), held_back.len(), left_out.len());
    let tell = |learning: &Learning, loss: f64| -> Result<()> {
        let shown = |quality: Quality| {
            let share = |sum: f64| 100.0 * sum / quality.states.max(1.0);
            format!(
                "first {:.1} %, third {:.1} %, chance {:.1} %, loss {:.3}, value off {:.3}",
                share(quality.first),
                share(quality.third),
                share(quality.chance),
                quality.loss / quality.states.max(1.0),
                quality.off / quality.states.max(1.0)
            )
        };
        eprintln!(
            "epoch {}, {:.0} s: loss {loss:.3}; held back: {}",
            learning.done(),
            start.elapsed().as_secs_f64(),
            shown(learning.quality(&held_back, &rules)?)
        );
        if !left_out.is_empty() {
            eprintln!("  left out: {}", shown(learning.quality(&left_out[..left_out.len().min(3000)], &rules)?));
        }
        Ok(())
    };
    tell(&learning, f64::NAN)?;
    for _ in 0..args.epochs {
        if let Some(loss) = learning.epoch(&samples, &rules, &|| true)? {
            tell(&learning, loss)?;
        }
        std::fs::write(&args.output, learning.weights().to_bytes())?;
    }
    Ok(())
}
