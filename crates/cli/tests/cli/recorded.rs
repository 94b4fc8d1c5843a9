//! `cost record`, `optimize --cost profile:FILE` and `bench --here`.

use serde_json::{Value, json};

use crate::models::Builder;
use crate::run::{Bench, has_runtime};

/// Operators that cancel out, and one that stays.
fn pairs() -> Builder {
    let mut model = Builder::new().input("x", &["64", "256"]);
    let mut last = "x".to_owned();
    for at in 0..8 {
        let next = format!("n{at}");
        model = model.node("Neg", &[&last], &[&next]);
        last = next;
    }
    model.node("Erf", &[&last], &["y"]).output("y", &["64", "256"])
}

/// A folder with the model, a recording of it in which every price is what `price` says of its
/// operator, and a store in which there is something.
fn recorded(price: impl Fn(&str) -> u64) -> Bench {
    let bench = Bench::new();
    bench.write("m.onnx", pairs().bytes());
    let said = bench.ok("cost record m.onnx -o device.json --threads 1 --budget 3s");
    assert!(said.contains("m.onnx") && said.contains(" prices on ") && said.contains("1 thread in device.json"), "{said}");
    assert!(!bench.path("store.sqlite").exists(), "recording has a store of its own");
    edit(&bench, "device.json", |file| {
        let model = &mut file["models"][0];
        assert!(model["error"].as_f64().is_some_and(|error| error >= 0.0), "{model}");
        (model["error"], model["spread_ns"]) = (json!(0.0), json!(0.0));
        for row in file["prices"].as_array_mut().expect("prices") {
            let operator = row["signature"].as_str().and_then(|text| text.split('(').next()).expect("an operator").to_owned();
            (row["median_ns"], row["spread_ns"], row["samples"]) = (price(&operator).into(), 0.into(), 9.into());
        }
    });
    bench.write("some.jsonl", r#"{"machine":"m","runtime":"r","threads":1,"signature":"s","median_ns":1,"spread_ns":0,"samples":1}"#);
    bench.ok("cost import some.jsonl");
    bench
}

fn edit(bench: &Bench, name: &str, change: impl Fn(&mut Value)) {
    let mut value = serde_json::from_slice(&bench.read(name)).expect("JSON");
    change(&mut value);
    bench.write(name, value.to_string());
}

const OPTIMIZE: &str = "optimize m.onnx -o f.onnx --cost profile:device.json --frozen";

#[test]
fn recorded_prices_decide() {
    if !has_runtime() {
        return;
    }
    // Where both take time, leaving one out gains.
    let bench = recorded(|_| 50_000);
    let ended = bench.run(OPTIMIZE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in ["predicted ", "x faster [", "from prices recorded on ", "not measured here", "`regraft bench --here m.onnx f.onnx`"] {
        assert!(ended.verdict().contains(part), "{ended:?}");
    }
    assert!(ended.out.contains("time there") && ended.out.contains("certificate: proved"), "{ended:?}");
    let report: Value = serde_json::from_slice(&bench.read("f.report.json")).expect("a report");
    assert_eq!((&report["cost"], &report["speedup"]["pairs"], &report["measured_models"]), (&json!("recorded"), &json!(0), &json!(0)));
    assert!(report["speedup"]["low"].as_f64().is_some_and(|low| low > 1.1), "{report}");
    let prediction = &report["prediction"];
    assert_eq!((&prediction["threads"], &prediction["is_kept"]), (&json!(1), &json!(false)), "{prediction}");
    assert!(prediction["run_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{prediction}");
    assert!(bench.ok("explain f.onnx").contains("prices     device.json: "));
    bench.ok("check m.onnx f.onnx --require proved");

    // Where only what stays takes time, it does not.
    let bench = recorded(|operator| if operator == "Erf" { 1_000_000 } else { 0 });
    let ended = bench.run(OPTIMIZE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.verdict().contains("; the input was written unchanged"), "{ended:?}");
    assert_eq!(bench.read("f.onnx"), bench.read("m.onnx"));
    assert!(bench.ok("bench --here m.onnx f.onnx").contains("the input was kept: there is nothing to confirm"));
}

#[test]
fn a_promise_needs_the_whole_predicted_interval() {
    if !has_runtime() {
        return;
    }
    let bench = recorded(|_| 50_000);
    assert_eq!(bench.run(&format!("{OPTIMIZE} --min-speedup 1.1")).code, Some(0));
    assert_eq!(bench.run(&format!("{OPTIMIZE} --min-speedup 100")).code, Some(1));
}

#[test]
fn predictions_are_confirmed_or_not() {
    if !has_runtime() {
        return;
    }
    let bench = recorded(|_| 50_000);
    bench.ok(OPTIMIZE);
    let predict = |low: f64, high: f64| {
        edit(&bench, "f.report.json", |report| {
            let speedup = &mut report["prediction"]["speedup"];
            (speedup["median"], speedup["low"], speedup["high"]) = ((low * high).sqrt().into(), low.into(), high.into());
        });
    };
    for (low, high, outcomes) in [
        // What really is faster, or not by how much, depends on the machine.
        (0.001, 1000.0, &["held", "open"][..]),
        (500.0, 1000.0, &["missed"]),
        (0.0001, 0.001, &["better"]),
    ] {
        predict(low, high);
        let ended = bench.run("bench --here m.onnx f.onnx --runs 12 --json");
        let done: Value = serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        let outcome = done["outcome"].as_str().expect("an outcome");
        assert!(outcomes.contains(&outcome), "{done}");
        assert_eq!(ended.code, Some(i32::from(matches!(outcome, "missed" | "open"))), "{done}");
        assert_eq!((&done["threads"], &done["same_machine"]), (&json!(1), &json!(true)), "{done}");
    }
    predict(500.0, 1000.0);
    let ended = bench.run("bench --here m.onnx f.onnx --runs 12");
    assert!(ended.verdict().starts_with("verdict: the prediction did not hold: "), "{ended:?}");
    assert!(ended.out.contains("predicted from prices recorded on "), "{ended:?}");

    edit(&bench, "f.report.json", |report| report["prediction"]["machine"] = json!("another/0/4"));
    let ended = bench.run("bench --here m.onnx f.onnx --runs 12");
    assert!(ended.err.contains("the prediction is for another/0/4"), "{ended:?}");

    bench.fails("bench --here f.onnx m.onnx --predicted f.report.json", &["f.onnx is not the model that f.report.json is about"]);
    bench.fails("bench --here m.onnx", &["a prediction is about two models"]);
    bench.fails("bench --here f.onnx m.onnx", &["m.onnx has no report beside it"]);
    bench.ok("optimize m.onnx -o g.onnx --untimed --report g.report.json");
    bench.fails("bench --here m.onnx g.onnx", &["g.report.json predicts nothing", "--cost profile:FILE"]);
}

#[test]
fn recordings_that_do_not_fit_are_refused() {
    if !has_runtime() {
        return;
    }
    let bench = recorded(|_| 50_000);
    bench.write("other.onnx", crate::models::mlp("4").bytes());
    let optimize = |file: &str, more: &str| format!("optimize m.onnx -o f.onnx --cost profile:{file} {more}");
    let with = |name: &str, field: &str, value: Value| {
        bench.write(name, bench.read("device.json"));
        edit(&bench, name, |file| *file.pointer_mut(field).expect("a field") = value.clone());
    };
    with("version.json", "/version", json!(7));
    with("runtime.json", "/target/runtime", json!("openvino 2026.4.1"));
    with("price.json", "/prices/0/median_ns", json!(-3));
    with("model.json", "/models/0/digest/0", json!("ab"));
    with("sizes.json", "/models/0/shapes/0/1/0", json!(65));
    let whole = bench.read("device.json");
    bench.write("half.json", &whole[..whole.len() / 2]);
    bench.write("binary.json", [0xff, 0xfe, 0]);
    for (words, parts) in [
        (optimize("none.json", ""), &["cannot read none.json", "profile:"][..]),
        (optimize("half.json", ""), &["half.json is no recording of prices", "regraft cost record"]),
        (optimize("binary.json", ""), &["cannot read binary.json"]),
        (optimize("m.onnx", ""), &["cannot read m.onnx"]),
        (optimize("some.jsonl", ""), &["some.jsonl is no recording of prices"]),
        (optimize("version.json", ""), &["in layout 7, this version reads 2", "record the model again"]),
        (optimize("price.json", ""), &["price.json is a damaged recording"]),
        (optimize("runtime.json", ""), &["was recorded under openvino 2026.4.1", "--target openvino"]),
        (optimize("model.json", ""), &["model.json is not about m.onnx: it was recorded with m.onnx", "regraft cost record m.onnx"]),
        (optimize("sizes.json", ""), &["recorded at x:65,256, and this run is at x:64,256", "--shape x:64,256"]),
        (optimize("device.json", "--untimed"), &["--untimed"]),
        (optimize("device.json", "--max-load 2s"), &["--max-load"]),
        (optimize("device.json", "--target fastest"), &["a recording is of one runtime"]),
        ("optimize other.onnx -o f.onnx --cost profile:device.json".into(), &["device.json is not about other.onnx"]),
        ("cost record none.onnx -o r.json".into(), &["there is no file none.onnx"]),
        ("cost record m.onnx -o nowhere/r.json".into(), &["there is no folder nowhere"]),
        ("cost record m.onnx -o m.onnx".into(), &["the recording would overwrite a model"]),
        ("cost record m.onnx other.onnx -o r.json --shape x:4,16".into(), &["sizes were given for more than one model"]),
    ] {
        bench.fails(&words, parts);
    }
    assert!(!bench.path("f.onnx").exists() && !bench.path("r.json").exists());
    assert_eq!(bench.read("m.onnx"), pairs().bytes());
}
