//! Running the command in a folder of its own.

use regraft::runtime::RuntimeChoice;
use regraft_runtime::Backend;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A folder with model files, and the command run in it. Measurements stay in the folder.
pub struct Bench {
    folder: TempDir,
}

/// How a run of the command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("the folder can be written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Names of all files but the store of measurements and certificates, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder can be read").flatten();
        let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|n| !n.starts_with("store.sqlite") && !n.ends_with(".certificate")).collect();
        names.sort();
        names
    }

    /// The command with these words, ready to run.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regraft"));
        command.args(words).current_dir(self.folder.path()).env("REGRAFT_COST_STORE", self.path("store.sqlite"));
        command.env_remove("RUST_BACKTRACE");
        // Nothing is trained in tests of the command.
        command.env("REGRAFT_TRAINER", "");
        for backend in Backend::ALL {
            command.envs(own_library(backend).map(|library| (variables(backend)[0], library)));
        }
        command
    }

    /// Runs the command line `words`, split at blanks.
    pub fn run(&self, words: &str) -> Ended {
        let words: Vec<&str> = words.split_whitespace().collect();
        Ended::new(self.command(&words).output().expect("the command starts"))
    }

    /// The same, and it must end well.
    pub fn ok(&self, words: &str) -> String {
        let ended = self.run(words);
        assert_eq!(ended.code, Some(0), "`{words}`: {}{}", ended.out, ended.err);
        ended.out
    }

    /// The same, and it must fail with one line on standard error that holds all of `parts`.
    pub fn fails(&self, words: &str, parts: &[&str]) {
        let ended = self.run(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "`{words}`: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "`{words}`: {}", ended.err);
        assert!(ended.err.starts_with("regraft: error: "), "`{words}`: {}", ended.err);
        for part in parts {
            assert!(ended.err.contains(part), "`{words}` does not say `{part}`: {}", ended.err);
        }
    }

    /// The same as [`ok`](Self::ok), and it must print JSON.
    pub fn json(&self, words: &str) -> serde_json::Value {
        let out = self.ok(words);
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("`{words}`: {e}: {out}"))
    }
}

impl Ended {
    pub fn new(output: Output) -> Ended {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The verdict line, which is the last.
    pub fn verdict(&self) -> &str {
        self.out.lines().last().filter(|l| l.starts_with("verdict: ")).unwrap_or_else(|| panic!("no verdict: {self:?}"))
    }
}

/// The program that trains, beside this one; `None` if it was not built.
pub fn trainer() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_regraft")).with_file_name(format!("regraft-train{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        println!("skipped: there is no {}", path.display());
    }
    Some(path).filter(|path| path.is_file())
}

/// Environment variables that name a runtime's library.
fn variables(backend: Backend) -> &'static [&'static str] {
    match backend {
        Backend::OnnxRuntime(_) => &["REGRAFT_ONNXRUNTIME", "ORT_DYLIB_PATH"],
        Backend::OpenVino => &["REGRAFT_OPENVINO"],
    }
}

/// The library in the checkout's own virtual environment, unless another place is named.
fn own_library(backend: Backend) -> Option<PathBuf> {
    let named = variables(backend).iter().any(|v| std::env::var_os(v).is_some());
    let folder = match backend {
        Backend::OnnxRuntime(_) => "onnxruntime/capi",
        Backend::OpenVino => "openvino/libs",
    };
    let packages = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib")).into_iter().flatten().flatten();
    let own = packages.map(|e| e.path().join("site-packages").join(folder)).find(|p| p.is_dir());
    own.filter(|_| !named)
}

fn has(backend: Backend, required: &str) -> bool {
    match (RuntimeChoice { backend, library: own_library(backend) }).load() {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os(required).is_none(), "{error}");
            println!("skipped: {error}");
            false
        }
    }
}

/// Whether tests that need ONNX Runtime can run.
pub fn has_runtime() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| has(Backend::default(), "REGRAFT_REQUIRE_ONNXRUNTIME"))
}

/// Whether tests that need OpenVINO, too, can run.
pub fn has_openvino() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    has_runtime() && *FOUND.get_or_init(|| has(Backend::OpenVino, "REGRAFT_REQUIRE_OPENVINO"))
}
