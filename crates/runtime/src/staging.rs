//! Models in memory as files, beside their external data.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A private directory with the model as a file, among links to what is in `base`: for runtimes
/// that find external data only beside a model file.
pub(crate) fn stage(bytes: &[u8], base: &Path) -> Result<(TempDir, PathBuf), String> {
    let io = |e: std::io::Error| format!("{}: {e}", base.display());
    let dir = tempfile::Builder::new().prefix("regraft-").tempdir().map_err(io)?;
    let file = dir.path().join(format!("regraft-{}.onnx", std::process::id()));
    std::fs::write(&file, bytes).map_err(io)?;
    for entry in std::fs::read_dir(base).map_err(io)? {
        let entry = entry.map_err(io)?;
        link(&entry.path(), &dir.path().join(entry.file_name())).map_err(io)?;
    }
    Ok((dir, file))
}

#[cfg(unix)]
fn link(to: &Path, from: &Path) -> std::io::Result<()> {
    // OpenVINO follows no link out of the folder.
    let hard = if to.is_file() { std::fs::hard_link(to, from) } else { Err(std::io::ErrorKind::Unsupported.into()) };
    hard.or_else(|_| std::os::unix::fs::symlink(to, from))
}

#[cfg(not(unix))]
fn link(to: &Path, from: &Path) -> std::io::Result<()> {
    if to.is_file() { std::fs::hard_link(to, from) } else { Ok(()) }
}
