//! `regraft optimize`.

use prost::Message;
use regraft_onnx::proto::{ModelProto, TensorProto};

use crate::models::{Builder, convolutional, mlp, twin_products, weights};
use crate::run::{Bench, Ended, has_openvino, has_runtime};

const BUDGET: &str = "--budget 3s";

fn decoded(bytes: &[u8]) -> ModelProto {
    ModelProto::decode(bytes).expect("a model")
}

#[test]
fn a_model_is_optimized_checked_reported_and_explained() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx {BUDGET} --report f.report.json"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.verdict().ends_with("seed 0 · regraft optimize m.onnx -o f.onnx --budget 3s --report f.report.json"), "{ended:?}");
    assert_eq!(bench.files(), ["f.onnx", "f.report.json", "m.onnx"]);

    let report: serde_json::Value = serde_json::from_slice(&bench.read("f.report.json")).expect("a report");
    assert_eq!((&report["schema"], &report["output"]), (&1.into(), &"f.onnx".into()));
    let rewrites = report["applied"].as_array().expect("a list").len();
    assert_eq!(ended.out.contains(&format!("{rewrites} rewrite")), rewrites > 0, "{ended:?}");
    if rewrites > 0 {
        let replay = &report["check"]["replay"];
        assert!(replay["steps"].as_u64() >= Some(rewrites as u64) && replay["steps"] == replay["proved"], "{report}");
        assert!(ended.verdict().contains(&format!("certificate: proved ({} of ", replay["proved"])), "{ended:?}");
    }
    let (input, output) = (decoded(&bench.read("m.onnx")), decoded(&bench.read("f.onnx")));
    let signature = |m: &ModelProto| m.graph.as_ref().map(|g| (g.input.clone(), g.output.clone()));
    assert_eq!(signature(&input), signature(&output));
    assert_eq!(bench.run("check m.onnx f.onnx").code, Some(0));
    assert_eq!(bench.json("explain m.onnx f.onnx --json")["nodes"], report["nodes"]);

    let explained = bench.ok("explain f.onnx");
    assert_eq!(explained.lines().last(), ended.out.lines().last());
    assert!(explained.contains("on         onnxruntime "), "{explained}");
    assert_eq!(bench.json("explain f.report.json --json"), report);
    assert_eq!(bench.run("bench m.onnx f.onnx --runs 5").code, Some(0));
}

#[test]
fn another_runtime_and_the_fastest_one() {
    if !has_openvino() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    let report = bench.json(&format!("optimize m.onnx -o f.onnx --target openvino --threads 1 --json {BUDGET}"));
    assert!(report["runtime"].as_str().is_some_and(|name| name.starts_with("openvino ")), "{report}");
    assert_eq!(report["check"]["passed"], true, "{report}");
    assert_eq!(bench.run("check m.onnx f.onnx --target openvino").code, Some(0));
    assert_eq!(bench.run("bench m.onnx f.onnx --target openvino --threads 1 --runs 3").code, Some(0));
    let ended = bench.run("optimize m.onnx -o g.onnx --target fastest --threads 1 --budget 8s --report g.json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&bench.read("g.json")).expect("a report");
    let fastest = &report["fastest"];
    assert_eq!((fastest["runtimes"].as_array().map(Vec::len), &fastest["chosen"]), (Some(2), &report["runtime"]), "{report}");
    assert!(ended.verdict().starts_with(&format!("verdict: deploy on {}", report["runtime"].as_str().unwrap_or("none"))), "{ended:?}");
    assert_eq!((&report["output"], &report["certificate"]), (&"g.onnx".into(), &"g.certificate".into()));
    assert_eq!(bench.files(), ["f.onnx", "g.json", "g.onnx", "m.onnx"]);
    // A certificate knows no target.
    assert_eq!(bench.run("check m.onnx g.onnx").code, Some(0));
    bench.fails("optimize m.onnx -o h.onnx --target fastest --runtime-library x.so", &["several runtimes", "--target"]);
}

#[test]
fn the_output_is_named_after_the_input() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    let quiet = bench.run(&format!("optimize m.onnx -q {BUDGET}"));
    assert_eq!((quiet.code, quiet.out.lines().count()), (Some(0), 1), "{quiet:?}");
    assert!(quiet.verdict().starts_with("verdict: "), "{quiet:?}");
    assert_eq!(bench.files(), ["m.onnx", "m.optimized.onnx"]);
    let json = bench.json(&format!("m.onnx short.onnx --json {BUDGET}"));
    assert_eq!(json["output"], "short.onnx");
    assert!(bench.path("short.onnx").is_file());
}

#[test]
fn an_input_is_overwritten_only_by_force() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.fails("optimize m.onnx -o m.onnx", &["--force-overwrite"]);
    bench.ok(&format!("optimize m.onnx -o m.onnx --force-overwrite {BUDGET}"));
    assert_eq!(bench.files(), ["m.onnx"]);
    assert!(decoded(&bench.read("m.onnx")).graph.is_some());
}

#[test]
fn promises_that_are_not_met_are_told() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx --min-speedup 1000 {BUDGET}"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.verdict().contains("below the 1000x asked for"), "{ended:?}");
    assert!(bench.path("f.onnx").is_file(), "never an end without an output");

    let report = bench.json(&format!("optimize m.onnx -o g.onnx --require proved --json {BUDGET}"));
    let applied = report["applied"].as_array().cloned().unwrap_or_default();
    assert!(applied.iter().all(|rewrite| rewrite["trust"] == "proved"), "{report}");
    let ended = bench.run(&format!("optimize m.onnx -o h.onnx --deny exact,reassociates,rounds-constants,fast-bilinear {BUDGET}"));
    assert!(ended.verdict().contains("all rules were denied"), "{ended:?}");
    assert_eq!(bench.read("h.onnx"), bench.read("m.onnx"), "{ended:?}");
}

#[test]
fn open_sizes_are_guessed_with_a_warning() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("N").bytes());
    let guessed = bench.run(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
    assert_eq!(guessed.code, Some(0), "{guessed:?}");
    assert!(
        guessed.err.starts_with("regraft: warning: ") && guessed.err.contains("x:1,16") && guessed.err.contains("--shape"),
        "{guessed:?}"
    );
    let given = bench.run(&format!("optimize m.onnx -o f.onnx --shape x:3x16 {BUDGET}"));
    assert_eq!((given.code, given.err.as_str()), (Some(0), ""), "{given:?}");
    bench.fails("optimize m.onnx -o f.onnx --shape x:3,16,1", &["3 sizes, the model declares 2"]);
    bench.fails("optimize m.onnx -o f.onnx --shape x:3,17", &["gives 17 where input `x` declares 16"]);
}

/// Models of signals run at no size that is usual elsewhere.
#[test]
fn sizes_are_guessed_where_short_ones_do_not_run() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let windows = Builder::new().input("x", &["B", "1", "N"]).output("y", &["B", "2", "M"]).weight("w", &[2, 1, 200]);
    bench.write("windows.onnx", windows.node("Conv", &["x", "w"], &["y"]).ints("strides", &[50]).bytes());
    let guessed = bench.run("optimize windows.onnx -o f.onnx --untimed");
    assert_eq!(guessed.code, Some(0), "{guessed:?}");
    assert!(guessed.err.contains("x:1,1,256"), "{guessed:?}");

    // Where no step is left, version 1.31 of ONNX Runtime ends the process.
    let steps = Builder::new().input("x", &["1", "N"]).output("y", &["M", "1", "1", "2"]);
    let steps = steps.indices("begin", &[199]).indices("end", &[1 << 40]).indices("axis", &[1]).indices("shape", &[-1, 1, 1]);
    let steps = steps.weight("w", &[1, 6, 1]).weight("r", &[1, 6, 2]).node("Slice", &["x", "begin", "end", "axis"], &["rest"]);
    let steps = steps.node("Reshape", &["rest", "shape"], &["steps"]).node("GRU", &["steps", "w", "r"], &["y"]).int("hidden_size", 2);
    bench.write("steps.onnx", steps.bytes());
    let guessed = bench.run("optimize steps.onnx -o f.onnx --untimed");
    assert_eq!(guessed.code, Some(0), "{guessed:?}");
    assert!(guessed.err.contains("x:1,256"), "{guessed:?}");
}

/// A number of a float type that becomes an index: large ones are out of bounds.
#[test]
fn what_the_input_does_not_run_on_is_not_compared() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let looked_up = Builder::new().input("x", &["1", "64"]).output("y", &["1", "64", "3"]).weight("table", &[16, 3]).weight("shift", &[3]);
    let looked_up = looked_up.node("Cast", &["x"], &["rows"]).int("to", 7).node("Gather", &["table", "rows"], &["found"]);
    let looked_up = looked_up.node("Add", &["found", "shift"], &["moved"]).node("Add", &["moved", "shift"], &["y"]);
    bench.write("m.onnx", looked_up.bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --untimed --json");
    assert!(!report["applied"].as_array().expect("a list").is_empty(), "{report}");
    assert_eq!(report["check"]["fills"], serde_json::json!(["normal", "zeros"]), "{report}");
    assert!(report["check"]["notes"].to_string().contains("fill `large`: the input model does not run on it"), "{report}");
}

#[test]
fn progress_is_text_or_json_on_request() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx --progress json {BUDGET}"));
    let lines: Vec<serde_json::Value> = ended.err.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect();
    assert_eq!(lines.first().map(|l| &l["phase"]), Some(&"load".into()), "{ended:?}");
    assert_eq!(lines.last().map(|l| &l["phase"]), Some(&"write".into()), "{ended:?}");
    let plain = bench.run(&format!("optimize m.onnx -o f.onnx --progress plain {BUDGET}"));
    assert!(plain.err.lines().any(|l| l.contains(" s     load  m.onnx")), "{plain:?}");
}

/// Operators that Regraft does not know, in the standard domain, in the runtime's, and as a
/// function of the model's own.
#[test]
fn unknown_operators_and_domains_pass_through() {
    if !has_runtime() {
        return;
    }
    let start = || Builder::new().input("x", &["2", "8"]).node("Relu", &["x"], &["r"]).node("Relu", &["r"], &["q"]);
    for (kind, model) in [
        ("LpNormalization", start().node("LpNormalization", &["q"], &["y"])),
        ("com.microsoft.BiasGelu", start().weight("bias", &[8]).foreign("com.microsoft", "BiasGelu", &["q", "bias"], &["y"])),
        ("my.own.Twice", start().function("my.own").foreign("my.own", "Twice", &["q"], &["y"])),
    ] {
        let bench = Bench::new();
        let model = model.output("y", &["2", "8"]);
        bench.write("m.onnx", model.bytes());
        let ended = bench.run(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
        assert_eq!(ended.code, Some(0), "{kind}: {ended:?}");
        assert!(ended.err.contains("kept as"), "{kind}: {ended:?}");
        let (input, output) = (decoded(&bench.read("m.onnx")), decoded(&bench.read("f.onnx")));
        let last = |m: &ModelProto| m.graph.as_ref().and_then(|g| g.node.last().cloned()).expect("a node");
        assert_eq!((last(&input).op_type, last(&input).domain), (last(&output).op_type, last(&output).domain), "{kind}");
        assert_eq!((&input.functions, &input.opset_import), (&output.functions, &output.opset_import), "{kind}");
    }
}

/// Nothing can be measured or checked where the runtime lacks an operator.
#[test]
fn operators_that_the_runtime_lacks_are_told() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let model = Builder::new().input("x", &["2", "8"]).foreign("com.example", "Mystery", &["x"], &["y"]).output("y", &["2", "8"]);
    bench.write("m.onnx", model.bytes());
    bench.fails("optimize m.onnx -o f.onnx", &["cannot load m.onnx", "Mystery", "(hint: "]);
    assert_eq!(bench.files(), ["m.onnx"]);
    // What needs no runtime works.
    bench.ok("check m.onnx m.onnx");
    bench.ok("explain m.onnx m.onnx");
}

#[test]
fn external_data_goes_along() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let (model, data) = mlp("4").external("weights.bin");
    bench.write("m.onnx", model.bytes());
    bench.write("weights.bin", data);
    bench.ok(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
    assert_eq!(bench.files(), ["f.onnx", "f.onnx.data", "m.onnx", "weights.bin"]);
    // Weights that a model in place reads are never overwritten: the next output has its own under
    // another name.
    bench.ok(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
    assert_eq!(bench.files(), ["f.onnx", "f.onnx.data2", "m.onnx", "weights.bin"]);
    bench.ok(&format!("optimize m.onnx -o f.onnx {BUDGET}"));
    assert_eq!(bench.files(), ["f.onnx", "f.onnx.data", "m.onnx", "weights.bin"]);
    // The output stands alone: the input's data may go.
    std::fs::remove_file(bench.path("weights.bin")).expect("it is there");
    bench.ok("bench f.onnx --runs 2");
}

#[test]
#[cfg(unix)]
fn outputs_that_are_no_files_are_written_through() {
    use std::os::unix::fs::FileTypeExt;
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.ok(&format!("optimize m.onnx -o /dev/null {BUDGET}"));
    let null = std::fs::metadata("/dev/null").expect("it is there");
    assert!(null.file_type().is_char_device() && !std::path::Path::new("/dev/null.certificate").exists());
    bench.fails(&format!("optimize m.onnx -o /dev/full {BUDGET}"), &["/dev/full"]);
    bench.fails("optimize m.onnx -o /dev/null --certificate c", &["no certificate c"]);
    std::os::unix::fs::symlink("there.onnx", bench.path("link.onnx")).expect("the folder can be written");
    bench.ok(&format!("optimize m.onnx -o link.onnx {BUDGET}"));
    assert!(bench.path("link.onnx").is_symlink());
    assert_eq!(bench.files(), ["link.onnx", "m.onnx", "there.onnx"]);
    let (model, data) = mlp("4").external("weights.bin");
    bench.write("e.onnx", model.bytes());
    bench.write("weights.bin", data);
    bench.fails("optimize e.onnx -o /dev/null", &["/dev/null", "its weights lie in a file beside it"]);
}

#[test]
fn a_second_model_is_not_taken_for_an_output() {
    let bench = Bench::new();
    for name in ["a.onnx", "b.onnx"] {
        bench.write(name, mlp("4").bytes());
    }
    bench.fails("optimize a.onnx b.onnx", &["b.onnx exists", "`-o b.onnx` replaces it"]);
    if has_runtime() {
        bench.ok(&format!("optimize a.onnx c.onnx {BUDGET}"));
        // An earlier result is one to be replaced.
        bench.ok(&format!("optimize a.onnx c.onnx {BUDGET}"));
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_still_writes_a_model() {
    for signal in ["-INT", "-TERM"] {
        interrupted_by(signal);
    }
}

#[cfg(unix)]
fn interrupted_by(signal: &str) {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    let words = ["optimize", "m.onnx", "-o", "f.onnx", "--budget", "120s", "--progress", "json"];
    let mut child = bench.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let mut progress = std::io::BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    // Once the search has begun, the input was read.
    while !line.contains("\"search\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut progress, &mut line).expect("text") > 0, "it ended before the search");
    }
    let asked = Instant::now();
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill is there");
    assert!(sent.success());
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut progress, &mut rest).expect("text");
    let ended = Ended::new(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(130), "{ended:?} {rest}");
    assert!(asked.elapsed() < Duration::from_secs(60), "it took {:?} to stop", asked.elapsed());
    assert!(rest.contains("interrupted: writing the best valid model so far"), "{rest}");
    assert!(ended.verdict().contains("interrupted"), "{ended:?}");
    assert_eq!(bench.files(), ["f.onnx", "m.onnx"]);
    assert!(decoded(&bench.read("f.onnx")).graph.is_some());
}

#[test]
fn frozen_runs_repeat_byte_for_byte() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    // The first run fills the store; the others only read it.
    assert_eq!(bench.run(&format!("optimize m.onnx -o warm.onnx --cost-store s.sqlite {BUDGET}")).code, Some(0));
    let store = bench.read("s.sqlite");
    for output in ["a.onnx", "b.onnx"] {
        let ended = bench.run(&format!("optimize m.onnx -o {output} --cost-store s.sqlite --frozen --seed 7 {BUDGET}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    assert_eq!(bench.read("a.onnx"), bench.read("b.onnx"));
    assert_eq!(bench.read("s.sqlite"), store);
}

#[test]
fn a_settled_hunt_is_not_hunted_again() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    let run = |output: &str, more: &str| -> serde_json::Value {
        let ended = bench.run(&format!("optimize m.onnx -o {output} --cost-store s.sqlite --json --budget 60s {more}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.out).expect("a report")
    };
    let first = run("a.onnx", "");
    assert_eq!(first["ended"], "complete", "{first}");
    assert!(first["measured_models"].as_u64() > Some(0), "{first}");
    let second = run("b.onnx", "");
    // On a busy machine nothing may come out as faster, and then the next run looks again.
    if first["applied"].as_array().is_none_or(Vec::is_empty) {
        assert!(second["visited"].as_u64() > Some(0), "{second}");
        return;
    }
    // The rewrites are taken from the store, compared and checked again.
    assert_eq!((&second["measured_models"], &second["visited"]), (&0.into(), &0.into()), "{second}");
    let rules = |report: &serde_json::Value| -> Vec<String> {
        report["applied"].as_array().expect("a list").iter().map(|a| format!("{} {}", a["rule"], a["at"])).collect()
    };
    if second["speedup"]["median"].as_f64() > Some(1.0) {
        assert_eq!(rules(&second), rules(&first));
        // So is the outcome of the replay, as long as nothing of what was replayed differs.
        assert_eq!(
            (&first["check"]["replay"]["remembered"], &second["check"]["replay"]["remembered"]),
            (&false.into(), &true.into()),
            "{second}"
        );
        assert_eq!(bench.read("a.onnx"), bench.read("b.onnx"));
    }
    // Other rules are searched with anew.
    let other = run("c.onnx", "--deny fast-bilinear");
    assert!(other["visited"].as_u64() > Some(0), "{other}");
}

/// A convolution whose result is scaled: channels of it, by weights.
fn scaled_convolution(result: &str) -> Builder {
    Builder::new()
        .input("x", &["1", "8", "64", "64"])
        .weight("w", &[16, 8, 3, 3])
        .weight("scale", &[16, 1, 1])
        .node("Conv", &["x", "w"], &["c"])
        .node("Mul", &["c", "scale"], &[result])
}

#[test]
fn a_wrong_rule_is_found_out_named_and_left_out() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let model = scaled_convolution("m")
        .node("Neg", &["m"], &["i"])
        .node("Softplus", &["i"], &["s"])
        .node("Neg", &["s"], &["n"])
        .node("Neg", &["n"], &["y"])
        .output("y", &["1", "16", "62", "62"]);
    bench.write("m.onnx", model.bytes());
    bench.write(
        "wrong.rules",
        ";; softplus(-x) is not relu(x)\n(rule softplus-as-relu\n  (softplus (neg ?x))  =>  (relu ?x)\n  (numeric exact)\n  (doc \"Wrong.\")\n  (instance (?x 2 3)))\n",
    );
    let ended = bench.run("optimize m.onnx -o f.onnx --rules wrong.rules --allow tested --untimed --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: serde_json::Value = serde_json::from_str(&ended.out).expect("a report");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("failed its check"), "{warnings}");
    assert!(warnings.contains("the rule `softplus-as-relu` at"), "{warnings}");
    let applied = report["applied"].to_string();
    assert!(applied.contains("neg-neg") && !applied.contains("softplus-as-relu"), "{report}");
    assert_eq!(bench.run("check m.onnx f.onnx").code, Some(0));
}

/// Proved on the squares that its instances make, and matched by any power.
#[test]
fn rewrites_by_rules_of_ones_own_are_proved_where_they_are_made() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write(
        "own.rules",
        "(rule power-as-square (pow (neg ?x) (const ?y)) => (mul ?x ?x) (numeric exact) (doc \"Narrow.\")\n  \
         (instance (n 1 2) (?x n 3) (?y const (splat 2.0))))\n",
    );
    let verified = bench.run("rules verify power-as-square --rules own.rules");
    assert!(verified.code == Some(1) && verified.out.contains("false: power-as-square"), "{verified:?}");
    for (power, applied) in [(2.0f32, true), (5.0, false)] {
        let mut model = Builder::new().input("x", &["64", "4096"]).weight("p", &[1]);
        model.graph().initializer.last_mut().expect("a weight").raw_data = Some(power.to_le_bytes().to_vec().into());
        let model = model.node("Neg", &["x"], &["n"]).node("Pow", &["n", "p"], &["y"]).output("y", &["64", "4096"]);
        bench.write("m.onnx", model.bytes());
        let ended = bench.run("optimize m.onnx -o f.onnx --rules own.rules --untimed --json");
        let report: serde_json::Value = serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        let warnings = report["warnings"].to_string();
        assert_eq!(warnings.contains("no proof of power-as-square at `y`"), !applied, "{report}");
        assert_eq!(report["applied"].to_string().contains("power-as-square"), applied, "{report}");
    }
}

#[test]
fn what_memory_does_not_allow_to_check_is_not_written_and_blames_no_rule() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let model = scaled_convolution("y").output("y", &["1", "16", "62", "62"]);
    bench.write("m.onnx", model.bytes());
    let ended = bench.run("optimize m.onnx -o f.onnx --memory 1K -v --budget 60s");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("could not be checked and was dropped") && !ended.err.contains("to blame"), "{ended:?}");
    assert!(ended.out.contains("which could not be checked") && !ended.out.contains("timed end to end"), "{ended:?}");
    assert_eq!(bench.read("f.onnx"), bench.read("m.onnx"), "{ended:?}");
}

#[test]
fn the_opset_changes_only_when_asked() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    let opset = |name: &str| decoded(&bench.read(name)).opset_import[0].version();
    let own = opset("m.onnx");
    for (version, expected) in [(None, own), (Some(own + 2), own + 2), (Some(11), 11)] {
        let asked = version.map_or_else(String::new, |v| format!("--opset {v}"));
        let ended = bench.run(&format!("optimize m.onnx -o f.onnx --force-overwrite {asked} {BUDGET}"));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(opset("f.onnx"), expected);
        assert_eq!(bench.run("check m.onnx f.onnx").code, Some(0));
    }
    let ended = bench.run(&format!("optimize m.onnx -o g.onnx --opset 99 {BUDGET}"));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("m.onnx: opset 99 is not known; versions 7 to 28 are (hint: "), "{ended:?}");
    assert_eq!(bench.files(), ["f.onnx", "m.onnx"]);
}

#[test]
fn one_model_is_timed_and_checked_at_several_bindings() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let model = weights(Builder::new().input("x", &["N", "384"]));
    bench.write("m.onnx", twin_products(model, "x", "y").output("y", &["N", "384"]).bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --budget 30s --shape x:N,384 --bind N=48,96 --json");
    let bindings = report["bindings"].as_array().unwrap_or_else(|| panic!("{report}"));
    let told: Vec<(&str, i64)> =
        bindings.iter().map(|b| (b["binding"].as_str().unwrap_or(""), b["shapes"][0][1][0].as_i64().unwrap_or(0))).collect();
    assert_eq!(told, [("N=48", 48), ("N=96", 96)]);
    let product: f64 = bindings.iter().map(|b| b["speedup"]["median"].as_f64().unwrap_or(0.0)).product();
    assert!((product.sqrt() - report["speedup"]["median"].as_f64().unwrap_or(0.0)).abs() < 1e-9, "{report}");
    let fills: Vec<&str> = report["check"]["fills"].as_array().into_iter().flatten().filter_map(|f| f.as_str()).collect();
    assert!(fills.contains(&"N=48: normal") && fills.contains(&"N=96: large"), "{fills:?}");
    let sizes = |name: &str| decoded(&bench.read(name)).graph.map(|g| (g.input, g.output));
    assert_eq!(sizes("m.onnx"), sizes("f.onnx"));
    bench.fails("optimize m.onnx -o f.onnx --bind M=1,8", &["`M`", "hint: sizes: N"]);
    bench.fails("optimize m.onnx -o f.onnx --bind N=8,8", &["give the same sizes", "hint: "]);
    bench.fails("optimize m.onnx -o f.onnx --bind N=1 --bind N=8", &["twice", "N=1,8"]);
}

#[test]
fn bodies_are_optimized_and_rewrites_say_where() {
    if !has_runtime() {
        return;
    }
    let branch = |result: &str| {
        let mut inner = twin_products(Builder::new(), "x", result).output(result, &["96", "384"]);
        std::mem::take(inner.graph())
    };
    let mut model = weights(Builder::new().input("x", &["96", "384"]).input("flag", &[])).node("If", &["flag"], &["y"]);
    let graph = model.graph();
    if let Some(regraft_onnx::proto::type_proto::Value::TensorType(flag)) = graph.input[1].r#type.as_mut().and_then(|t| t.value.as_mut()) {
        flag.elem_type = Some(9);
    }
    for (name, result) in [("then_branch", "a"), ("else_branch", "b")] {
        let kind = regraft_onnx::proto::attribute_proto::AttributeType::Graph as i32;
        let body = regraft_onnx::proto::AttributeProto {
            name: Some(name.into()),
            r#type: Some(kind),
            g: Some(branch(result)),
            ..Default::default()
        };
        graph.node[0].attribute.push(body);
    }
    let bench = Bench::new();
    bench.write("m.onnx", model.output("y", &["96", "384"]).bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --untimed --json");
    let places: Vec<&str> = report["applied"].as_array().into_iter().flatten().filter_map(|a| a["at"].as_str()).collect();
    for branch in ["then", "else"] {
        let place = format!(" in the {branch}-branch of ");
        assert!(places.iter().any(|at| at.contains(&place)), "{report}");
    }
    assert_eq!(bench.run("check m.onnx f.onnx").code, Some(0));
}

/// The sine of a large number is a matter of its last digits. In single precision nothing can be
/// told then, in double precision it can; and where not even that helps, nothing but the input is
/// written.
#[test]
fn models_that_amplify_rounding_are_told_apart_in_double_precision_or_not_at_all() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    for (sines, written) in [(1, true), (3, false)] {
        let mut model = twin_products(weights(Builder::new().input("x", &["96", "384"])), "x", "s0").weight("steep", &[1]);
        let steep = model.graph().initializer.last_mut().expect("a weight");
        steep.raw_data = Some(1e7f32.to_le_bytes().to_vec().into());
        if !written {
            // Weights whose sums are rounded: then not even double precision gives the same.
            for weight in &mut model.graph().initializer[..2] {
                let third = |bytes: &[u8]| (f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) / 3.0).to_le_bytes();
                let data = weight.raw_data.take().expect("weights have data");
                weight.raw_data = Some(data.chunks_exact(4).flat_map(third).collect::<Vec<u8>>().into());
            }
        }
        for at in 0..sines {
            let (from, scaled, to) = (format!("s{at}"), format!("t{at}"), format!("s{}", at + 1));
            model = model.node("Mul", &[&from, "steep"], &[&scaled]).node("Sin", &[&scaled], &[&to]);
        }
        bench.write("m.onnx", model.output(&format!("s{sines}"), &["96", "384"]).bytes());
        let report = bench.json("optimize m.onnx -o f.onnx --force-overwrite --untimed --json");
        let told = format!("{} {}", report["check"]["notes"], report["warnings"]);
        let said = if written { "it is rounding: in double precision it differs by" } else { "double precision says nothing of it" };
        assert!(told.contains("fill `normal`: `s") && told.contains(said), "{report}");
        assert_eq!(report["applied"].as_array().is_some_and(|a| !a.is_empty()), written, "{report}");
        assert_eq!(bench.read("f.onnx") != bench.read("m.onnx"), written);
        assert!(written || told.contains("amplifies rounding so much"), "{report}");
    }
}

/// A product of two open sizes may be anything: what holds at the sizes of the run only is not
/// done, and listed.
#[test]
fn what_cannot_be_shown_for_open_sizes_is_listed() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    let shape = |mut model: Builder| {
        let tensor = TensorProto {
            name: Some("shape".into()),
            dims: vec![3],
            data_type: Some(7),
            int64_data: vec![4, -1, 16],
            ..TensorProto::default()
        };
        model.graph().initializer.push(tensor);
        model
    };
    let model = shape(Builder::new().input("x", &["N", "4", "16"])).node("Reshape", &["x", "shape"], &["r"]).node("Relu", &["r"], &["y"]);
    bench.write("m.onnx", model.output("y", &["4", "N", "16"]).bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --budget 5s --bind N=4 --json");
    let listed = |report: &serde_json::Value| report["not_done"].to_string().contains("cannot be shown for all sizes");
    assert!(listed(&report), "{report}");
    let report = bench.json("optimize m.onnx -o g.onnx --budget 5s --shape x:4,4,16 --json");
    assert!(listed(&report), "the model accepts all sizes: {report}");
    let fixed = shape(Builder::new().input("x", &["4", "4", "16"])).node("Reshape", &["x", "shape"], &["r"]).node("Relu", &["r"], &["y"]);
    bench.write("fixed.onnx", fixed.output("y", &["4", "4", "16"]).bytes());
    let report = bench.json("optimize fixed.onnx -o h.onnx --budget 5s --json");
    assert!(!listed(&report), "{report}");
}

#[test]
fn what_it_takes_to_start_a_process_is_told_and_limited() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    let report = bench.json("optimize m.onnx -o f.onnx --json --budget 20s");
    let [input, output] = ["input", "output"].map(|model| &report["startup"][model]);
    assert!(input["load_ns"].as_u64() > Some(0) && output["load_ns"].as_u64() > Some(0), "{report}");
    if cfg!(target_os = "linux") {
        // The library alone takes more, and this process less than it would with what others left.
        let peak = input["peak_bytes"].as_u64().expect("known");
        assert!((8 << 20..1 << 30).contains(&peak), "{peak}");
    }
    assert!(report["headroom"]["flops"][0].as_f64() > Some(0.0), "{report}");
    let ended = bench.run(&format!("optimize m.onnx -o f.onnx -v --max-load 1ms --max-memory 1K {BUDGET}"));
    assert_eq!((ended.code, bench.read("f.onnx")), (Some(1), bench.read("m.onnx")), "{ended:?}");
    assert!(ended.verdict().contains("1024 B are allowed (--max-memory allows more)"), "{ended:?}");
    let wide = bench.run(&format!("optimize m.onnx -o f.onnx --max-load 1000x --max-memory 100x {BUDGET}"));
    assert_eq!(wide.code, Some(0), "{wide:?}");
    bench.fails("optimize m.onnx -o f.onnx --max-load soon", &["`soon` is not a time", "1.5x"]);
    bench.fails("optimize m.onnx -o f.onnx --max-memory 0x", &["`0x` is no factor; write 1.5x"]);
}
