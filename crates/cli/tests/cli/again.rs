//! Commands that failed by what passes run once more.

use std::process::Command;

use regraft_runtime::OnnxRuntime;

use crate::models::mlp;
use crate::run::{Bench, Ended, has_runtime};

/// ONNX Runtime, but that each file of `FAILURES` is one start that fails.
const UNSTEADY: &str = r#"
use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
struct Base {
    api: extern "C" fn(u32) -> *const c_void,
    version: extern "C" fn() -> *const c_char,
}

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn base() -> &'static Base {
    let path = std::ffi::CString::new(std::env::var("SOUND").unwrap()).unwrap();
    unsafe {
        let library = dlopen(path.as_ptr(), 1);
        let base: extern "C" fn() -> *const Base = std::mem::transmute(dlsym(library, c"OrtGetApiBase".as_ptr()));
        &*base()
    }
}

type CreateStatus = extern "C" fn(c_int, *const c_char) -> *mut c_void;

extern "C" fn fail(_: *const c_void, _: *const c_void, _: c_int, _: *const c_char, _: *const c_void) -> *mut c_void {
    let create: CreateStatus = unsafe { std::mem::transmute(*((base().api)(17) as *const *const c_void)) };
    create(1, c"basic_string::_M_create".as_ptr())
}

extern "C" fn api(version: u32) -> *const c_void {
    let sound = (base().api)(version) as *const *const c_void;
    let folder = std::env::var("FAILURES").unwrap();
    let Some(file) = std::fs::read_dir(folder).unwrap().flatten().next() else { return sound.cast() };
    let _ = std::fs::remove_file(file.path());
    // As many functions as version 1.17 has; the fifth makes the environment.
    let mut table = unsafe { std::slice::from_raw_parts(sound, 276) }.to_vec();
    table[4] = fail as *const c_void;
    table.leak().as_ptr().cast()
}

extern "C" fn version() -> *const c_char {
    (base().version)()
}

#[no_mangle]
pub extern "C" fn OrtGetApiBase() -> *const Base {
    &Base { api, version }
}
"#;

/// A folder with a model and an unsteady runtime.
fn unsteady() -> Bench {
    let bench = Bench::new();
    bench.write("m.onnx", mlp("4").bytes());
    bench.write("unsteady.rs", UNSTEADY);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compiler = Command::new(rustc);
    compiler.args(["--edition", "2021", "--crate-type", "cdylib", "-A", "warnings", "unsteady.rs", "-o", "libunsteady.so"]);
    let compiled = compiler.current_dir(bench.path("")).output().expect("rustc starts");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    bench
}

/// Runs a command with so many starts that fail ahead of it.
fn run(bench: &Bench, words: &[&str], failures: usize) -> Ended {
    std::fs::create_dir_all(bench.path("failures")).expect("the folder can be written");
    (0..failures).for_each(|i| bench.write(&format!("failures/{i}"), ""));
    let sound = OnnxRuntime::load(None).expect("it was found").library().to_path_buf();
    let mut command = bench.command(words);
    command.env("REGRAFT_ONNXRUNTIME", bench.path("libunsteady.so")).env("SOUND", sound).env("FAILURES", bench.path("failures"));
    let ended = Ended::new(command.output().expect("the command starts"));
    assert_eq!(std::fs::read_dir(bench.path("failures")).expect("the folder is there").count(), 0, "{ended:?}");
    ended
}

#[test]
fn a_runtime_that_fails_to_start_is_started_again_in_another_process() {
    if !has_runtime() {
        return;
    }
    let bench = unsteady();
    let once = run(&bench, &["bench", "m.onnx", "--runs", "3"], 1);
    assert_eq!((once.code, once.out.matches("verdict").count()), (Some(0), 1), "{once:?}");
    let twice = run(&bench, &["bench", "m.onnx", "--runs", "3"], 2);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.err.contains("libunsteady.so failed to start: ") && twice.err.contains("(hint: start the program again)"), "{twice:?}");
    assert!(twice.err.contains("basic_string::_M_create"), "{twice:?}");
}

#[test]
fn a_task_whose_runtime_fails_to_start_is_tried_again() {
    if !has_runtime() {
        return;
    }
    let bench = unsteady();
    bench.write("jobs.toml", "[[optimize]]\nmodels = [\"m.onnx\"]\nbudget = \"1s\"\n");
    let farmed = run(&bench, &["farm", "jobs.toml"], 1);
    assert_eq!(farmed.code, Some(0), "{farmed:?}");
}
