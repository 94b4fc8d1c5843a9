//! ONNX's own node tests, all of them, with one random walk each.

use std::process::Command;

#[test]
fn nothing_of_the_node_tests_is_lost_or_wrong() {
    let required = std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_some();
    if regraft::runtime::RuntimeChoice::default().load().is_err() && !required {
        eprintln!("skipped: ONNX Runtime is not installed");
        return;
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-tests");
    let mut command = Command::new(env!("CARGO_BIN_EXE_regraft-gauntlet"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let ended = command.args(["node-tests", "--walks", "1", "--folder"]).arg(folder).output().expect("the command starts");
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if said.contains("no Python with the `onnx` package") && !required {
        eprintln!("skipped: {said}");
        return;
    }
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains(" 0 broken"), "{said}");
}
