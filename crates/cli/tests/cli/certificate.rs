//! Certificates: written by `optimize`, asked by `check`.

use crate::models::{Builder, mlp};
use crate::run::{Bench, has_runtime};

/// Timed, nothing would be certain on a busy machine.
const OPTIMIZE: &str = "optimize m.onnx -o f.onnx --untimed";

/// A model that is rewritten whatever the noise of the machine: two products with one operand are
/// one product of half the arithmetic, and no constant changes.
fn twins() -> Builder {
    let sizes = ["96", "384"];
    Builder::new()
        .input("x", &sizes)
        .input("z", &sizes)
        .weight("w", &[384, 384])
        .node("MatMul", &["x", "w"], &["p"])
        .node("MatMul", &["z", "w"], &["q"])
        .node("Add", &["p", "q"], &["s"])
        .node("Relu", &["s"], &["y"])
        .output("y", &sizes)
}

/// A folder with a model that was rewritten, and its certificate, beside the report; `None` where
/// there is no runtime.
fn optimized() -> Option<(Bench, serde_json::Value)> {
    if !has_runtime() {
        return None;
    }
    let bench = Bench::new();
    bench.write("m.onnx", twins().bytes());
    let report = bench.json(&format!("{OPTIMIZE} --json"));
    assert_eq!(report["certificate"], "f.certificate", "{report}");
    assert_ne!(report["applied"], serde_json::json!([]), "{report}");
    Some((bench, report))
}

#[test]
fn the_certificate_of_a_result_replays() {
    let Some((bench, _)) = optimized() else { return };
    let json = bench.json("check m.onnx f.onnx --json");
    let certificate = &json["certificate"];
    let number = |name: &str| certificate[name].as_u64().unwrap_or_else(|| panic!("{name}: {json}"));
    assert!(number("steps") > 0, "{json}");
    // The steps lead to what was written: what is said of the whole is what is said of the weakest
    // step.
    let summary = certificate["summary"].as_str().unwrap_or_default();
    assert!(!summary.contains("another model") && !summary.contains("not read as it was"), "{json}");
    let open = certificate["open"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(number("proved") + open, number("steps"), "{json}");
    assert_eq!(certificate["word"] == "proved", open == 0, "{json}");
    assert_eq!(json["same"], true, "{json}");
    let text = String::from_utf8(bench.read("f.certificate")).expect("a text");
    // Not every rule has guards.
    assert!(text.starts_with("regraft certificate 3\n") && text.contains("\nstep ") && text.contains("\nwhere "), "{text}");

    // Where it lies is no matter if it is named; without it, the models are proved equal from the
    // graphs alone.
    std::fs::rename(bench.path("f.certificate"), bench.path("elsewhere")).expect("renamed");
    assert_eq!(bench.json("check m.onnx f.onnx --certificate elsewhere --json")["certificate"]["summary"], *summary);
    for words in ["check m.onnx f.onnx --json", "check m.onnx f.onnx --json --no-certificate"] {
        let json = bench.json(words);
        shown_from_the_graphs(&json);
    }
}

#[test]
fn what_optimize_calls_proved_is_proved_to_check() {
    let Some((bench, report)) = optimized() else { return };
    let replay = &report["check"]["replay"];
    let json = bench.json("check m.onnx f.onnx --json");
    assert_eq!(replay["assumptions"], json["certificate"]["assumptions"], "{report}\n{json}");
    let is_proved = replay["proved"] == replay["steps"];
    assert_eq!(json["certificate"]["word"] == "proved", is_proved, "{report}\n{json}");
    // Folded constants are a clause of the proof, and no other word.
    assert_eq!(bench.run("check m.onnx f.onnx --require proved").code, Some(if is_proved { 0 } else { 1 }), "{report}\n{json}");
    let is_exact = is_proved && json["certificate"]["assumptions"] == serde_json::json!([]);
    assert_eq!(bench.run("check m.onnx f.onnx --require proved:exact").code, Some(if is_exact { 0 } else { 1 }), "{json}");
}

/// Without a certificate; which rewrites won tells whether constants were folded.
#[track_caller]
fn shown_from_the_graphs(json: &serde_json::Value) {
    assert_eq!((&json["word"], &json["certificate"]), (&json["equivalence"]["word"], &serde_json::Value::Null), "{json}");
    assert!(json["word"] == "proved" || json["word"] == "bounded", "{json}");
}

#[test]
fn a_changed_byte_is_told_and_ends_with_1() {
    let Some((bench, _)) = optimized() else { return };
    for (file, what) in [("f.onnx", "the result is not the model that was certified"), ("f.certificate", "is not as it was written")] {
        let bytes = bench.read(file);
        for at in (0..bytes.len()).step_by(bytes.len() / 12).chain([bytes.len() - 1]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            bench.write(file, &changed);
            // No runtime is needed for that.
            let ended = bench.run("check m.onnx f.onnx --runtime-library none.so");
            assert_eq!(ended.code, Some(1), "byte {at} of {file}: {ended:?}");
            assert!(ended.verdict().starts_with("verdict: tampered: ") && ended.verdict().contains(what), "byte {at} of {file}: {ended:?}");
        }
        bench.write(file, &bytes);
    }
    assert_eq!(bench.run("check m.onnx f.onnx").code, Some(0));
}

#[test]
fn a_certificate_is_about_one_input() {
    let Some((bench, _)) = optimized() else { return };
    let mut other = twins();
    other.graph().doc_string = Some("another file of the same model".into());
    bench.write("other.onnx", other.bytes());
    let json = bench.json("check other.onnx f.onnx --json");
    shown_from_the_graphs(&json);
    assert!(json["notes"].to_string().contains("f.certificate is not used: the certificate is about another input"), "{json}");
    // Who names it wants it to hold.
    let ended = bench.run("check other.onnx f.onnx --certificate f.certificate");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("about another input"), "{ended:?}");
    bench.fails("check m.onnx f.onnx --certificate none", &["cannot read none"]);
}

#[test]
fn every_result_has_a_certificate_of_its_own() {
    let Some((bench, _)) = optimized() else { return };
    // Unchanged results have one of no steps in the place of the old one; other files stay.
    bench.write("m.onnx", mlp("4").bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --budget 1s --deny exact,reassociates,rounds-constants,fast-bilinear --json");
    assert_eq!((&report["applied"], &report["certificate"]), (&serde_json::json!([]), &"f.certificate".into()), "{report}");
    let replayed = bench.json("check m.onnx f.onnx --json");
    assert_eq!((&replayed["word"], &replayed["certificate"]["steps"]), (&"proved".into(), &0.into()), "{replayed}");
    let mut bytes = bench.read("f.onnx");
    *bytes.last_mut().expect("a byte") ^= 1;
    bench.write("f.onnx", bytes);
    let ended = bench.run("check m.onnx f.onnx");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("is not the model that was certified"), "{ended:?}");
    bench.write("m.onnx", twins().bytes());
    bench.write("f.certificate", "a file of the user's");
    bench.ok(&format!("{OPTIMIZE} --no-certificate"));
    assert_eq!(bench.read("f.certificate"), b"a file of the user's");
    bench.ok(&format!("{OPTIMIZE} --certificate proof.txt"));
    assert!(bench.read("proof.txt").starts_with(b"regraft certificate"));
    bench.fails(&format!("{OPTIMIZE} --certificate f.onnx"), &["would overwrite the result"]);
    bench.fails(&format!("{OPTIMIZE} --certificate none/f.certificate"), &["there is no folder"]);
}
