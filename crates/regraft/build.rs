//! A digest of the code that certificate proofs depend on: the store's proofs are tied to it.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Crates that `docs/guide/trust.md` says must be trusted.
const TRUSTED: [&str; 4] = ["ir", "onnx", "prove", "certify"];

fn main() {
    let mut hasher = DefaultHasher::new();
    for name in TRUSTED {
        let folder = Path::new("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        for path in sources(&folder) {
            path.hash(&mut hasher);
            fs::read(&path).unwrap_or_default().hash(&mut hasher);
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=REGRAFT_CHECKER={:016x}", hasher.finish());
}

/// All files below a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(sources(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
