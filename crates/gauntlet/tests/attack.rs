//! A short attack: pairs that look alike but differ, forged certificates, false rules. None of them
//! may be proved.

use std::process::Command;

#[test]
fn nothing_that_differs_is_proved() {
    let required = std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_some();
    if regraft::runtime::RuntimeChoice::default().load().is_err() && !required {
        eprintln!("skipped: ONNX Runtime is not installed");
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_regraft-gauntlet"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attack");
    command.args(["attack", "--pairs", "200", "--certificates", "40", "--rules", "20", "--seed", "7", "--keep"]).arg(kept);
    let ended = command.output().expect("the command starts");
    let said = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(0), "{said}");
    // All requested cases really differ: an attack with no cases would hold as well.
    assert!(said.contains("verdict: attack: 200 pairs, 40 certificates, 20 rules, 0 proved"), "{said}");
}
