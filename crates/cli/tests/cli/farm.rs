//! `regraft farm` and `regraft task`.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::models::{convolutional, mlp};
use crate::run::{Bench, Ended, has_runtime, trainer};
use crate::synthesize::SPEC;

/// Two models, one that is none, and the jobs to simplify them.
fn planted() -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("models")).expect("the folder can be written");
    bench.write("models/a.onnx", convolutional().bytes());
    bench.write("models/b.onnx", mlp("4").bytes());
    bench.write("models/c.onnx", "no model");
    bench.write("jobs.toml", "[[optimize]]\nmodels = \"models/*.onnx\"\noptions = [\"--untimed\"]\n");
    bench
}

fn rows(bench: &Bench, words: &str, code: i32) -> Vec<serde_json::Value> {
    let ended = bench.run(words);
    assert_eq!(ended.code, Some(code), "`{words}`: {}{}", ended.out, ended.err);
    let table: serde_json::Value = serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {}", ended.out));
    table["rows"].as_array().expect("a list").clone()
}

#[test]
fn what_is_done_is_not_repeated_and_what_failed_is_told() {
    if !has_runtime() {
        return;
    }
    let bench = planted();
    let first = rows(&bench, "farm jobs.toml --json", 1);
    let states: Vec<&str> = first.iter().filter_map(|row| row["state"].as_str()).collect();
    assert_eq!(states, ["done", "done", "failed"]);
    assert!(first[2]["cause"].as_str().is_some_and(|cause| cause.contains("models/c.onnx")), "{}", first[2]);
    assert!(first.iter().all(|row| !row["host"].as_str().unwrap_or_default().is_empty() && row["machine"].is_string()));
    let output = first[0]["output"].as_str().expect("a model was made");
    bench.ok(&format!("check models/a.onnx {output}"));

    let made = std::fs::metadata(bench.path(output)).and_then(|m| m.modified()).expect("it is there");
    let again = rows(&bench, "farm jobs.toml --json --again", 1);
    assert_eq!(first[..2], again[..2]);
    assert_eq!(made, std::fs::metadata(bench.path(output)).and_then(|m| m.modified()).expect("it is there"));
    let table = String::from_utf8(bench.read("jobs/table.csv")).expect("text");
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(bench.run("farm jobs.toml --table").verdict().starts_with("verdict: 2 done · 1 failed"));

    // Another input is another task, and the others stay done.
    bench.write("models/c.onnx", mlp("4").bytes());
    let mended = rows(&bench, "farm jobs.toml --json", 0);
    assert_eq!(first[..2], mended[..2]);
    assert_ne!(first[2]["task"], mended[2]["task"]);
}

#[test]
fn tasks_can_be_worked_on_by_hand_and_end_with_whoever_started_them() {
    if !has_runtime() {
        return;
    }
    let bench = planted();
    let plan = bench.ok("farm jobs.toml --plan");
    let tasks: Vec<&str> = plan.lines().collect();
    assert_eq!(tasks.len(), 3);
    assert!(bench.ok(&format!("task {}", tasks[0])).ends_with(": done\n"));
    assert!(bench.ok(&format!("task {}", tasks[0])).ends_with(": done\n"), "twice is once");
    assert_eq!(bench.run(&format!("task {}", tasks[2])).code, Some(1));
    assert_eq!(bench.ok("farm jobs.toml --plan").lines().count(), 1);

    // Someone holds the task, so this one waits; and ends with its input.
    let id = std::path::Path::new(tasks[1]).file_stem().expect("a name").to_string_lossy().into_owned();
    let lock = std::fs::File::create(bench.path(&format!("jobs/locks/{id}"))).expect("the folder can be written");
    lock.lock().expect("nobody else has it");
    let mut child = bench.command(&["task", tasks[1], "--attached"]);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the command starts");
    child.stdin.take().expect("it has an input").write_all(b"\n").expect("it reads");
    let ended = Ended::new(child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    drop(lock);
    assert!(!bench.path(&format!("jobs/results/{id}/outcome.json")).exists());
    bench.ok(&format!("task {}", tasks[1]));
}

#[test]
fn a_task_is_done_with_the_files_that_it_was_planned_for() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.write("jobs.toml", "[[optimize]]\nmodels = \"**/*.onnx\"\noptions = \"--untimed\"\n");
    let task = bench.ok("farm jobs.toml --plan");
    bench.write("m.onnx", mlp("4").bytes());
    bench.fails(&format!("task {}", task.trim()), &["m.onnx changed since", "was planned"]);
    std::fs::remove_file(bench.path("m.onnx")).expect("it is there");
    bench.fails(&format!("task {}", task.trim()), &["m.onnx", "No such file"]);
    bench.write("m.onnx", convolutional().bytes());
    let rows_of = || rows(&bench, "farm jobs.toml --json", 0);
    let first = rows_of();
    assert_eq!((first.len(), first[0]["input"].as_str()), (1, Some("m.onnx")));
    // What the farm wrote is no model of its own, and what is gone or damaged is made again.
    let output = first[0]["output"].as_str().expect("a model");
    std::fs::remove_file(bench.path(output)).expect("it is there");
    assert_eq!(rows_of().len(), 1);
    assert!(bench.path(output).is_file());
    bench.write(&format!("{}/outcome.json", output.rsplit_once('/').expect("a folder").0), "garbage");
    assert_eq!(rows_of()[0]["state"], "done");
    // The report of a result tells of the input, wherever it is read.
    let report = output.replace(".onnx", ".report.json");
    let ended = bench.run(&format!("report {output} --terminal"));
    assert!(ended.code == Some(0) && ended.err.is_empty(), "{ended:?}");
    bench.fails(&format!("report {output} --input {output}"), &["is not the input that"]);
    bench.fails(&format!("report {report} -o {output}"), &["would overwrite a file of the report"]);
    std::fs::create_dir(bench.path("mine")).expect("the folder can be written");
    bench.write("mine/letter.txt", "");
    bench.write("jobs.toml", "folder = \"mine\"\n[[optimize]]\nmodels = \"m.onnx\"\n");
    bench.fails("farm jobs.toml", &["mine holds other things", "`folder`"]);
}

#[test]
#[cfg(unix)]
fn a_killed_farm_goes_on() {
    let bench = Bench::new();
    bench.write("jobs.toml", "folder = \"parts\"\n[[generate]]\nspec = \"taso\"\nsize = 2\nshards = 6\n");
    let mut child = bench.command(&["farm", "jobs.toml", "--quiet"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    let done = || {
        std::fs::read_dir(bench.path("parts/results")).into_iter().flatten().flatten().filter(|e| e.path().join("outcome.json").exists())
    };
    let until = Instant::now() + Duration::from_secs(60);
    while done().count() == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let before = done().count();
    assert!(before >= 1, "nothing was done in a minute");
    let rows = rows(&bench, "farm jobs.toml --json", 0);
    assert_eq!((rows.len(), done().count()), (8, 8));
    let attempts = |row: &serde_json::Value| {
        let outcome = bench.read(&format!("parts/results/{}/outcome.json", row["task"].as_str().expect("a name")));
        serde_json::from_slice::<serde_json::Value>(&outcome).expect("JSON")["attempts"].as_u64()
    };
    assert!(rows.iter().all(|row| attempts(row) == Some(1)), "what ends with its farm does not count");

    let merged = bench.read(rows[7]["output"].as_str().expect("the pairs"));
    bench.ok("rules generate taso --size 2 -o whole.pairs");
    assert_eq!(merged, bench.read("whole.pairs"), "shards find what one enumeration finds");
}

/// Operators are drawn in rounds and judged in parts; a farm that is killed meanwhile loses
/// nothing.
#[test]
fn operators_are_synthesized_in_rounds() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("layers.toml", SPEC);
    bench.write("jobs.toml", "[[synthesize]]\nlayers = \"layers.toml\"\noperators = 3\ntasks = 2\nrounds = 2\nthreads = 1\n");
    let mut child = bench.command(&["farm", "jobs.toml", "--quiet"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    // Killed once something is drawn: while a part is judged, or soon after.
    let until = Instant::now() + Duration::from_secs(60);
    let drawn = || -> Vec<Vec<u8>> {
        let results = std::fs::read_dir(bench.path("jobs/results")).into_iter().flatten().flatten();
        let draws = results.filter(|entry| entry.file_name().to_string_lossy().starts_with("draw-"));
        draws.filter_map(|entry| std::fs::read(entry.path().join("outcome.json")).ok()).collect()
    };
    while drawn().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let before = drawn();
    assert_eq!(before.len(), 1, "nothing was drawn in a minute");

    let rows = rows(&bench, "farm jobs.toml --json", 0);
    let kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["draw", "judge", "judge", "join", "draw", "judge", "judge", "join"]);
    assert!(drawn().contains(&before[0]), "what was drawn is not drawn again");
    let output = rows[7]["output"].as_str().expect("a report was made");
    let report: serde_json::Value = serde_json::from_slice(&bench.read(output)).expect("JSON");
    assert_eq!(report["timed"].as_array().map(Vec::len), Some(6), "two rounds of three operators, none twice");
    bench.write("jobs.toml", "[[synthesize]]\nlayers = \"layers.toml\"\noperators = 3\ntasks = 4\n");
    bench.fails("farm jobs.toml", &["3 operators in 4 tasks", "equal parts"]);
}

/// Jobs of samples: eight small blocks in three shards, and a training on them.
const POLICY: &str = r#"
[[policy]]
networks = ["squeezenet-1.1", "sru"]
blocks = 4
seed = 3
shards = 3
epochs = 2
options = "--detours=2"
"#;

#[test]
fn samples_of_searches_are_planned_by_the_shard() {
    let bench = Bench::new();
    bench.write("jobs.toml", POLICY);
    let plan = bench.ok("farm jobs.toml --plan");
    let tasks: Vec<serde_json::Value> =
        plan.lines().map(|file| serde_json::from_slice(&std::fs::read(file).expect("a task")).expect("JSON")).collect();
    let text = |task: &serde_json::Value| {
        task["arguments"].as_array().expect("a command").iter().filter_map(|a| a.as_str()).collect::<Vec<_>>().join(" ")
    };
    let kinds: Vec<&str> = tasks.iter().filter_map(|task| task["kind"].as_str()).collect();
    assert_eq!(kinds, ["samples", "samples", "samples", "merge", "train"]);
    let common = "--seed=3 --blocks=4 --models=squeezenet-1.1,sru --detours=2";
    let first = format!(
        "policy data --output=jobs/results/{}/samples.sqlite --shard=1/3 --threads=1 {common}",
        tasks[0]["id"].as_str().expect("a name")
    );
    assert_eq!(text(&tasks[0]), first);
    assert!(
        text(&tasks[3]).contains(&format!("{common} --merge jobs/results/{}", tasks[0]["id"].as_str().expect("a name"))),
        "{}",
        tasks[3]
    );
    assert_eq!((tasks[3]["needs"].as_array().map(Vec::len), tasks[4]["needs"].as_array().map(Vec::len)), (Some(3), Some(1)));
    // Without the program that trains, the tasks say so.
    let rows = rows(&bench, "farm jobs.toml --json", 1);
    assert!(rows[0]["cause"].as_str().is_some_and(|cause| cause.contains("regraft-train is not there (hint: build it")), "{}", rows[0]);
    assert!(rows[3]["state"].is_null(), "{}", rows[3]);
}

/// A farm that is killed meanwhile makes the samples that one command makes.
#[test]
fn samples_of_shards_are_those_of_one_command() {
    let Some(trainer) = trainer() else { return };
    let bench = Bench::new();
    let run = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut command = bench.command(&words);
        command.env("REGRAFT_TRAINER", &trainer);
        command
    };
    bench.write("jobs.toml", POLICY);
    let mut child = run("farm jobs.toml --quiet").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    let done = || {
        let results = std::fs::read_dir(bench.path("jobs/results")).into_iter().flatten().flatten();
        results.filter(|entry| entry.path().join("outcome.json").exists()).count()
    };
    let until = Instant::now() + Duration::from_secs(60);
    while done() == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert!(done() >= 1, "nothing was done in a minute");

    let ended = Ended::new(run("farm jobs.toml --json").output().expect("the command starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let table: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    let output = |at: usize| table["rows"][at]["output"].as_str().expect("a file was made").to_owned();
    let whole = "policy train -o prior.bin --models squeezenet-1.1,sru --blocks 4 --detours 2 --seed 3 --epochs 2";
    let ended = Ended::new(run(whole).output().expect("the command starts"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(bench.read(&output(4)), bench.read("prior.bin"), "the same samples give the same weights");

    bench.write("jobs.toml", POLICY.replace("sru", "sruu"));
    let ended = Ended::new(run("farm jobs.toml --json").output().expect("the command starts"));
    let table: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert!(table["rows"][0]["cause"].as_str().is_some_and(|cause| cause.contains("sruu")), "{table}");
}

#[test]
fn mistakes_in_jobs_are_told_before_anything_runs() {
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    for (jobs, parts) in [
        ("[[optimize]]\nmodels = \"none/*.onnx\"", &["no file is `none/*.onnx`", "relative to the file of jobs"][..]),
        ("[[optimize]]\nmodels = \"m.onnx\"\nthread = [1]", &["[[optimize]] has no key `thread`"]),
        ("[[optimise]]\nmodels = \"m.onnx\"", &["jobs.toml, line 1", "optimise"]),
        ("[[optimize]]\nmodels = 3", &["jobs.toml, line 2"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\nbudget = \"soon\"", &["budget = \"soon\"", "is not a time"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\nsizes = [\"1,3\"]", &["sizes = \"1,3\"", "x:1,3,224,224"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\nthreads = [0]", &["zero threads"]),
        ("[[generate]]\nspec = \"taso\"\nshards = 0", &["0 shards"]),
        ("[[policy]]\nshards = 0", &["0 shards"]),
        ("[[policy]]\nshards = 2\nepochs = 0", &["[[policy]] has 0 epochs", "leave `epochs` out"]),
        ("[[policy]]\nshards = 2\nbudget = \"1s\"", &["[[policy]] has no budget"]),
        ("[[policy]]\nshards = 2\nthreads = [1, 2]", &["several numbers of threads"]),
        ("[[policy]]\nshards = 2\nblock = 3", &["[[policy]] has no key `block`"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\noptions = \"--untimd\"", &["'--untimd'", "the farm itself gives"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\noptions = \"--help\"", &["help is no work"]),
        ("[[optimize]]\nmodels = \"m.onnx\"\ntargets = [\"nope\"]", &["'nope'", "onnxruntime"]),
        ("[[optimize]]\nmodels = []", &["has no models"]),
        ("[[optimize]]\nmodels = 3", &["a text, or a list of texts"]),
        ("folder = \"../x\"\n[[optimize]]\nmodels = \"m.onnx\"", &["`../x` does not lie below"]),
        ("folder = \"m.onnx\"\n[[optimize]]\nmodels = \"m.onnx\"", &["m.onnx is a file"]),
        ("", &["has none", "[[optimize]]"]),
        ("[[optimize]\n", &["jobs.toml, line 1"]),
    ] {
        bench.write("jobs.toml", jobs);
        bench.fails("farm jobs.toml", parts);
    }
    bench.fails("farm none.toml", &["cannot read none.toml"]);
    bench.write("t.json", "{}");
    bench.fails("task t.json", &["t.json does not hold what it should"]);
    assert_eq!(bench.files(), ["jobs.toml", "m.onnx", "t.json"]);
}
