//! The Python environment with the package `onnx`, which contains node tests and light models.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The interpreter of the first environment with the package.
pub fn interpreter() -> Result<PathBuf> {
    let mut found = environments().filter(|folder| package(folder).is_some()).map(|folder| folder.join("bin").join("python"));
    found.find(|python| python.is_file()).context("no Python with the `onnx` package: run scripts/setup.sh test, or name one with --python")
}

/// The package's folder of light models.
pub fn light_models() -> Option<PathBuf> {
    let packages = environments().filter_map(|folder| package(&folder));
    packages.map(|package| package.join("backend/test/data/light")).find(|folder| folder.is_dir())
}

/// The active environment, that of the working directory, and that of the checkout of this build.
fn environments() -> impl Iterator<Item = PathBuf> {
    let active = std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    active.into_iter().chain([PathBuf::from(".venv"), checkout])
}

fn package(environment: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(environment.join("lib")).ok()?.flatten();
    versions.map(|version| version.path().join("site-packages/onnx")).find(|package| package.is_dir())
}
