//! Prints what a model becomes in Regraft: operators, opaque nodes with reasons, unknown types; and
//! writes it back on request.
//!
//! `cargo run -p regraft-onnx --example inspect -- MODEL.onnx... [--respell] [-o FOLDER]`

use std::collections::BTreeMap;
use std::path::PathBuf;

use regraft_onnx::{Model, WriteOptions};

fn main() -> std::process::ExitCode {
    let mut files = Vec::new();
    let mut options = WriteOptions::default();
    let mut folder: Option<PathBuf> = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--respell" => options.respell = true,
            "-o" => folder = arguments.next().map(PathBuf::from),
            file => files.push(PathBuf::from(file)),
        }
    }
    let mut failed = false;
    for file in files {
        if let Err(error) = inspect(&file, &options, folder.as_deref()) {
            println!("{}: error: {error}", file.display());
            failed = true;
        }
    }
    if failed { std::process::ExitCode::from(2) } else { std::process::ExitCode::SUCCESS }
}

fn inspect(file: &std::path::Path, options: &WriteOptions, folder: Option<&std::path::Path>) -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::read(file)?;
    let graph = model.graph();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unknown = 0;
    for id in graph.ids() {
        let node = graph.node(id);
        *kinds.entry(node.op.kind().name()).or_default() += 1;
        unknown += node.types.iter().filter(|t| t.is_none()).count();
    }
    let counts: Vec<String> = kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    println!("{}: opset {:?}, {} nodes, {unknown} of unknown type", file.display(), model.opset(""), graph.len());
    println!("  {}", counts.join(", "));
    let mut reasons: BTreeMap<(&str, &str), (usize, &str)> = BTreeMap::new();
    for node in model.opaque_nodes() {
        reasons.entry((&node.op_type, &node.why)).or_insert((0, &node.node)).0 += 1;
    }
    for ((op_type, why), (n, example)) in reasons {
        println!("  opaque: {n} x {op_type}: {why} (such as {example})");
    }
    for note in model.notes() {
        println!("  note: {note}");
    }
    if let Some(field) = model.unknown_field() {
        println!("  unknown field: {field}");
    }
    if let Some(folder) = folder {
        let name = file.components().rev().take(3).filter_map(|c| c.as_os_str().to_str()).collect::<Vec<_>>();
        let target = folder.join(name.into_iter().rev().collect::<Vec<_>>().join("__"));
        let written = model.save(graph, &target, options)?;
        println!(
            "  wrote {}: {} bytes from {}, {} folded, {} kept",
            target.display(),
            written.size(),
            model.size(),
            written.folded,
            written.kept_expressions
        );
    }
    Ok(())
}
