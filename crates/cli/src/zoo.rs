//! `regraft zoo`.

use std::path::PathBuf;

use prost::Message;
use regraft_onnx::Written;
use regraft_zoo::{Element, Entry, Options, build, list};

use crate::console::Console;
use crate::exit::Exit;
use regraft::error::Failure;
use regraft::file::check_writable;
use regraft::render::{lines, plain_table};
use regraft::units::show_bytes;

/// Networks to try things on: real architectures, and the graphs that papers published
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List all networks
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a network as a model file, with random weights
    Emit(EmitArgs),
}

/// Arguments of `zoo emit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  regraft zoo emit resnet-18 -o r18.onnx --dynamic")]
pub struct EmitArgs {
    /// Name of the network (`regraft zoo list` has all)
    name: String,
    /// Where to write it [default: NAME.onnx]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seed of the weights: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Make the batch the symbolic size N
    #[arg(long)]
    dynamic: bool,
    /// Make the sizes of the image or recording symbolic, too: H and W, or L
    #[arg(long)]
    dynamic_field: bool,
}

/// Runs the command.
pub fn run(command: &Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::List { json } => show(*json, console),
        Command::Emit(args) => emit(args, console),
    }
}

fn inputs(entry: &Entry) -> String {
    let word = |element| match element {
        Element::F32 => "f32",
        Element::I64 => "i64",
        Element::Bool => "bool",
        _ => "?",
    };
    let sizes = |dims: &[i64]| dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    entry.inputs.iter().map(|i| format!("{}: {}[{}]", i.name, word(i.element), sizes(i.dims))).collect::<Vec<_>>().join(", ")
}

fn show(json: bool, console: &Console) -> Result<Exit, Failure> {
    if json {
        let rows = list().iter().map(|e| {
            serde_json::json!({
                "name": e.name, "summary": e.summary, "source": e.source, "dynamic": e.dynamic, "dynamic_field": e.convolutional, "outlined": e.outlined, "paper": e.is_paper_variant(),
                "inputs": e.inputs.iter().map(|i| serde_json::json!({ "name": i.name, "dims": i.dims })).collect::<Vec<_>>(),
            })
        });
        console.json(&rows.collect::<Vec<_>>())?;
        return Ok(Exit::Done);
    }
    let header: &[&str] = if console.verbose { &["name", "inputs", "what it is", "source"] } else { &["name", "what it is"] };
    let mut table = plain_table(header, &[]);
    for entry in list() {
        if console.verbose {
            table.add_row([entry.name, &inputs(entry), entry.summary, entry.source]);
        } else {
            table.add_row([entry.name, entry.summary]);
        }
    }
    console.print(&lines(&table))?;
    Ok(Exit::Done)
}

fn emit(args: &EmitArgs, console: &Console) -> Result<Exit, Failure> {
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.onnx", args.name)));
    let options = Options { seed: args.seed, dynamic_batch: args.dynamic, dynamic_field: args.dynamic_field, ..Options::default() };
    // A mistyped name is reported before an unwritable path, and before gigabytes of weights are
    // generated.
    if list().iter().any(|e| e.name == args.name) {
        check_writable(&path, "-o")?;
    }
    let proto = build(&args.name, &options)?;
    let nodes = proto.graph.as_ref().map_or(0, |g| g.node.len());
    let size = proto.encoded_len() as u64;
    Written { proto, folded: 0, kept_expressions: 0, values: Default::default() }.save(&path, false)?;
    if !console.quiet {
        console.print(&format!("wrote {} ({nodes} nodes, {})", path.display(), show_bytes(size)))?;
    }
    Ok(Exit::Done)
}
