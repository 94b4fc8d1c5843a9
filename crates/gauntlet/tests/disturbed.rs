//! Short modes of the campaigns that run the real command: kills, errors, and little memory.

use std::path::PathBuf;
use std::process::Command;

/// The `regraft` command of the same build. Built here if only this package is tested.
fn regraft() -> PathBuf {
    let gauntlet = PathBuf::from(env!("CARGO_BIN_EXE_regraft-gauntlet"));
    let path = gauntlet.with_file_name(format!("regraft{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        let built = Command::new(env!("CARGO")).args(["build", "--quiet", "-p", "regraft-cli", "--bin", "regraft"]).status();
        assert!(built.is_ok_and(|status| status.success()), "regraft cannot be built");
    }
    path
}

fn holds(words: &[&str]) {
    if regraft::runtime::RuntimeChoice::default().load().is_err() && std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_none() {
        eprintln!("skipped: ONNX Runtime is not installed");
        return;
    }
    let ended = Command::new(env!("CARGO_BIN_EXE_regraft-gauntlet")).args(words).arg("--regraft").arg(regraft()).output();
    let ended = ended.expect("the command starts");
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains(" 0 broken"), "{said}");
}

#[test]
fn nothing_is_lost_when_runs_are_killed_or_cannot_write() {
    holds(&["faults", "--short"]);
}

#[test]
fn a_model_larger_than_the_memory_is_optimized() {
    holds(&["memory", "--gigabytes", "0.6", "--width", "768", "--memory", "360M", "--bound", "420M", "--whole"]);
}
