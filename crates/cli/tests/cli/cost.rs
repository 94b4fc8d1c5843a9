//! `regraft cost`.

use crate::models::mlp;
use crate::run::{Bench, has_runtime};

const LINES: &str = r#"{"machine":"m","runtime":"onnxruntime 1.0","threads":1,"signature":"Conv(a)","median_ns":2000,"spread_ns":10,"samples":5,"context":"","updated_at":7}
{"machine":"m","runtime":"onnxruntime 1.0","threads":1,"signature":"Relu(a)","median_ns":1000,"spread_ns":10,"samples":5,"context":"","updated_at":7}
"#;

#[test]
fn measurements_come_in_are_shown_and_go_out() {
    let bench = Bench::new();
    assert!(bench.ok("cost show").starts_with("0 measurements in "));
    assert!(!bench.path("store.sqlite").exists(), "looking makes no store");
    bench.write("in.jsonl", LINES);
    assert!(bench.ok("cost import in.jsonl").starts_with("read 2 measurements into "));
    let shown = bench.ok("cost show");
    assert!(shown.contains("Conv(a)") && shown.contains("2.0 µs") && shown.contains("2 measurements in "), "{shown}");
    assert!(!bench.ok("cost show --filter Relu").contains("Conv(a)"));
    assert_eq!(bench.json("cost show --filter Relu --json").as_array().map(Vec::len), Some(1));
    bench.ok("cost export out.jsonl");
    assert_eq!(String::from_utf8_lossy(&bench.read("out.jsonl")), LINES);
    assert_eq!(bench.ok("cost export -"), LINES);
    bench.ok("cost import out.jsonl --cost-store other.sqlite");
    assert_eq!(bench.ok("cost export - --cost-store other.sqlite"), LINES);
}

#[test]
fn clearing_asks_first() {
    let bench = Bench::new();
    bench.write("in.jsonl", LINES);
    bench.ok("cost import in.jsonl");
    bench.fails("cost clear", &["nothing was removed", "--yes"]);
    assert!(bench.ok("cost show -q").starts_with("2 measurements"));
    assert!(bench.ok("cost clear --filter Conv --yes").starts_with("removed 1 measurement from"));
    assert!(bench.ok("cost clear --yes").starts_with("removed 1 measurement from"));
    assert!(bench.ok("cost clear").starts_with("removed 0 measurements from"));
}

#[test]
fn damaged_files_change_nothing() {
    let bench = Bench::new();
    bench.fails("cost import none.jsonl", &["cannot read none.jsonl"]);
    bench.write("bad.jsonl", format!("{LINES}not json\n"));
    bench.fails("cost import bad.jsonl", &["bad.jsonl", "line 3"]);
    assert!(!bench.path("store.sqlite").exists());
    bench.fails("cost export out.jsonl", &["there is no store"]);
    bench.write("store.sqlite", "this is no database, but it is long enough to be looked at as one, one would think; and on it goes");
    for words in ["cost show", "cost clear --yes", "cost export out.jsonl"] {
        bench.fails(words, &["store.sqlite", "(hint: "]);
    }
    assert_eq!(bench.files(), ["bad.jsonl"]);
}

#[test]
fn operators_of_a_model_have_prices() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("N").bytes());
    let shown = bench.ok("cost show m.onnx --shape x:4,16");
    assert!(shown.contains("MatMul(f32[4,16],c f32[16,32])") && shown.contains("total "), "{shown}");
    let json = bench.json("cost show m.onnx --shape x:4,16 --json");
    assert_eq!(json["nodes"].as_array().map(Vec::len), Some(5), "{json}");
    assert!(!bench.path("store.sqlite").exists(), "looking makes no store");
    bench.fails("cost calibrate none.onnx", &["there is no file none.onnx"]);
    bench.fails("cost calibrate no-such-network", &["no-such-network", "regraft zoo list"]);
}

#[test]
fn calibration_measures_and_predicts() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    let json = bench.json("cost calibrate m.onnx --report --budget 3s --json");
    let total = &json["totals"][0];
    assert_eq!(total["model"], "m", "{json}");
    assert!(total["predicted"].as_f64().is_some_and(|ns| ns > 0.0) && total["measured"].as_f64().is_some_and(|ns| ns > 0.0), "{json}");
    let shown = bench.ok("cost show");
    assert!(shown.contains("MatMul("), "{shown}");
    let measured = bench.ok("cost export -");
    learned(&bench, measured.lines().next().expect("a price"));
}

/// What others took predicts what is new, by prices like this one.
fn learned(bench: &Bench, like: &str) {
    let mut price: serde_json::Value = serde_json::from_str(like).expect("JSON");
    for (store, sizes) in [("even", 0), ("odd", 1)] {
        let line = |size: usize| {
            price["signature"] = format!("Relu(f32[1,{size},64,64]) | Add.1 > Conv.0").into();
            price["median_ns"] = (2_000 * size).into();
            format!("{price}\n")
        };
        bench.write(&format!("{store}.jsonl"), (20..120).filter(|size| size % 2 == sizes).map(line).collect::<String>());
        bench.ok(&format!("cost import {store}.jsonl --cost-store {store}.sqlite"));
    }
    let threads = price["threads"].clone();
    bench.ok(&format!("cost predict even.sqlite odd.sqlite --threads {threads} -o learned.bin --json judged.json"));
    assert!(!bench.read("learned.bin").is_empty());
    let judged: serde_json::Value = serde_json::from_slice(&bench.read("judged.json")).expect("JSON");
    for one in judged.as_array().expect("a row for each store") {
        assert!(one["nodes"] == 50 && one["learned"]["median"].as_f64().is_some_and(|off| off < 0.1), "{one}");
    }
    let few = like.replace(&price["machine"].to_string(), "\"another\"");
    bench.write("few.jsonl", few + "\n");
    bench.ok("cost import few.jsonl --cost-store few.sqlite");
    bench.fails(
        &format!("cost predict even.sqlite few.sqlite --threads {threads} -o none.bin"),
        &["few.sqlite has no prices for this machine", "(hint: "],
    );
    assert!(!bench.path("none.bin").exists());
}
