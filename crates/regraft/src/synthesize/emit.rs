//! Files of operators, for use elsewhere.

use std::path::Path;

use regraft_synth::{Dims, Explorer, Spelling, graph, torch, tvm};

use crate::error::Failure;
use crate::synthesize::candidates::parsed;
use crate::synthesize::judging::Operated;
use crate::synthesize::kernel::standing_alone;

/// Makes the folder that operators are written to.
///
/// # Errors
///
/// If it cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::new(format!("{}: {e}", folder.display())).hint("--emit names a folder"))
}

/// Writes, for each operator, its formula, a model and a module of PyTorch for each layer, and an
/// expression of TVM for the first.
///
/// # Errors
///
/// If a file cannot be written, or a formula is no operator of the specification.
pub fn emit(folder: &Path, operators: &[Operated], explorer: &mut Explorer<'_>) -> Result<(), Failure> {
    // What an earlier search left there is not what this one found.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_emitted) {
            let path = entry.path();
            std::fs::remove_file(&path).map_err(|e| Failure::new(format!("cannot replace {}: {e}", path.display())))?;
        }
    }
    for (at, operated) in operators.iter().enumerate() {
        let formula = &operated.formula;
        let operator = parsed(formula, explorer)?;
        let found = explorer.described(operator).ok_or_else(|| Failure::new(format!("{formula}: it cannot be computed")))?;
        let coordinates = &explorer.coordinates;
        let file = |suffix: &str| folder.join(format!("operator-{:02}{suffix}", at + 1));
        let write = |suffix: &str, bytes: &[u8]| crate::file::write_atomic(&file(suffix), bytes);
        write(".txt", format!("{formula}\n").as_bytes())?;
        let mut graphs = Vec::new();
        for (layer, sizes) in explorer.spec().layers.iter().enumerate() {
            write(&format!("-layer-{}.onnx", layer + 1), &standing_alone(&found, sizes, coordinates)?)?;
            let graph = graph(&found.operator, &found.plan, Spelling::Convolution, &Dims::of(sizes), coordinates);
            graphs.push(graph.map_err(Failure::new)?);
        }
        if let Some(source) = torch::source(formula, &graphs) {
            write(".py", source.as_bytes())?;
        }
        if let Some(expression) = tvm::expression(&found.operator, &found.plan, &explorer.spec().layers[0], coordinates) {
            write("-tvm.py", expression.as_bytes())?;
        }
    }
    Ok(())
}

/// Whether a file has a name that is given here.
fn is_emitted(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("operator-") else { return false };
    let suffix = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let layer = |suffix: &str| Some(suffix.strip_prefix("-layer-")?.strip_suffix(".onnx")?.bytes().all(|b| b.is_ascii_digit()));
    rest.len() > suffix.len() && ([".txt", ".py", "-tvm.py"].contains(&suffix) || layer(suffix) == Some(true))
}
