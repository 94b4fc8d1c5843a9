//! The coverage document agrees with the proofs.

use std::path::Path;

use regraft_audit::coverage_document;
use regraft_rules::{Library, Proofs};

/// `REGRAFT_UPDATE_SNAPSHOTS=1` rewrites the document.
#[test]
fn the_document_says_what_proofs_cover() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rule-coverage.md");
    let said = coverage_document(Library::shipped().unwrap().rules(), &Proofs::shipped());
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&document, &said).unwrap();
    }
    let written = std::fs::read_to_string(&document).unwrap();
    let changed: Vec<&str> = said.lines().filter(|line| !written.lines().any(|w| w == *line)).collect();
    let changed = changed.join("\n");
    assert!(said == written, "REGRAFT_UPDATE_SNAPSHOTS=1 writes docs/rule-coverage.md anew:\n{changed}");
}
