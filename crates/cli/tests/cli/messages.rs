//! What the command says when it fails, word by word: one case per class of failure, in the files
//! of `messages/`.
//!
//! With `REGRAFT_UPDATE_SNAPSHOTS=1` in the environment the files are written anew; read the
//! difference before committing it.

use std::fmt::Write;
use std::path::Path;

use crate::bad_input::{Bad, table};
use crate::models::mlp;
use crate::run::{Bench, Ended, has_runtime};

/// A folder in which everything that the cases name is there, and wrong.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("good.onnx", mlp("4").bytes());
    bench.write("open.onnx", mlp("N").bytes());
    for Bad(name, bytes, _) in table() {
        if let Some(bytes) = bytes {
            bench.write(name, bytes);
        }
    }
    let (cut, data) = mlp("4").external("cut.bin");
    bench.write("cut.onnx", cut.bytes());
    bench.write("cut.bin", &data[..data.len() / 2]);
    bench.write("foreign.sqlite", "this is no database, whatever its name says");
    bench.write("words.npy", "no array");
    bench.write("target.rules", "(rule mine\n  (relu ?x)  =>  (relu ?y)\n  (numeric exact))\n");
    std::fs::create_dir(bench.path("folder")).expect("the folder can be written");
    bench
}

/// Commands that fail before a runtime is asked.
const ALONE: [&str; 14] = [
    "optimize good.onnx -o none/out.onnx",
    "optimize good.onnx -o folder",
    "optimize good.onnx -o good.onnx",
    "optimize good.onnx -o out.onnx --report none/r.json",
    "optimize folder -o out.onnx",
    "optimize cut.onnx -o out.onnx",
    "optimize good.onnx -o out.onnx --rules target.rules",
    "optimize good.onnx -o out.onnx --rules none.rules",
    "optimize good.onnx -o out.onnx --deny nothing-of-that-name",
    "optimize good.onnx -o out.onnx --memory much",
    "optimize good.onnx -o out.onnx --steps 0",
    "optimize good.onnx -o out.onnx --runtime-library none.so",
    "check good.onnx none.onnx",
    "zoo emit no-such-network -o out.onnx",
];

/// Commands that fail later.
const RUNNING: [&str; 9] = [
    "optimize good.onnx -o out.onnx --data z:none.npy",
    "optimize good.onnx -o out.onnx --shape z:4,16",
    "optimize good.onnx -o out.onnx --shape x:4",
    "optimize good.onnx -o out.onnx --shape x:5,16",
    "optimize good.onnx -o out.onnx --data x:none.npy",
    "optimize good.onnx -o out.onnx --data x:words.npy",
    "optimize good.onnx -o out.onnx --cost-store foreign.sqlite",
    "optimize good.onnx -o out.onnx --cost-store folder",
    "optimize good.onnx -o out.onnx --frozen --cost-store none.sqlite",
];

fn told(commands: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for command in commands {
        let bench = bench();
        let before = bench.files();
        let Ended { code, out, err } = bench.run(&command);
        assert_eq!(bench.files(), before, "`{command}` left something behind");
        assert_eq!((code, out.as_str()), (Some(2), ""), "`{command}`: {err}");
        assert!(err.lines().filter(|line| line.starts_with("regraft: error: ")).count() == 1, "`{command}`: {err}");
        assert!(err.contains(" (hint: "), "`{command}`: {err}");
        let _ = writeln!(text, "$ regraft {command}\n{err}");
    }
    text
}

/// Compares with a section of the file, or writes it.
fn matches(section: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/messages").join(section).with_extension("txt");
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for (have, want) in text.lines().zip(wanted.lines()) {
        assert_eq!(have, want, "REGRAFT_UPDATE_SNAPSHOTS=1 writes {section} anew");
    }
    assert_eq!(text.lines().count(), wanted.lines().count(), "REGRAFT_UPDATE_SNAPSHOTS=1 writes {section} anew");
}

#[test]
fn damaged_models() {
    matches("damaged", &told(table().into_iter().map(|Bad(name, ..)| format!("explain good.onnx {name}"))));
}

#[test]
fn mistakes_that_are_seen_at_once() {
    matches("at-once", &told(ALONE.iter().map(ToString::to_string)));
}

#[test]
fn mistakes_that_are_seen_later() {
    if has_runtime() {
        matches("later", &told(RUNNING.iter().map(ToString::to_string)));
    }
}
