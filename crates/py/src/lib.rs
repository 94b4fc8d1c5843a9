//! The native part of the Python package `regraft`: commands, called in the interpreter's process.

mod environment;
mod notebook;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use regraft_cli::{Call, Exit, START_UP};
use regraft_runtime::Starter;

use notebook::{Notebook, Notes};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a command did: exit code, output, warnings, and cause and hint of a failure.
type Answer = (u8, String, Vec<String>, Option<(String, Option<String>)>);

/// Runs a command and returns what it would print. `progress` is called with the phase and what
/// begins in it. Ctrl-C, or an exception of `progress`, makes the command finish with what there
/// is.
#[pyfunction]
fn call(py: Python<'_>, arguments: Vec<OsString>, interpreter: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<Answer> {
    let notebook = Arc::new(Notebook::new(progress));
    let (command, host) = (command(arguments, interpreter), notebook.clone());
    let done = py.detach(|| regraft_cli::call(command, host));
    let Notes { output, warnings, raised } = notebook.notes();
    if let Some(raised) = raised {
        return Err(raised);
    }
    Ok(match done {
        _ if notebook.was_interrupted() => (Exit::Interrupted as u8, output, warnings, None),
        Ok(exit) => (exit as u8, output, warnings, None),
        Err(failure) => (Exit::Failed as u8, output, warnings, Some((failure.cause, failure.hint))),
    })
}

/// Runs a command in the terminal, and returns its exit code.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>, interpreter: Vec<OsString>) -> u8 {
    let command = command(arguments, interpreter);
    py.detach(|| regraft_cli::run(command)) as u8
}

/// A command with these arguments. Models are loaded in processes of their own by `interpreter`: a
/// program and the arguments that make it this package's command.
fn command(arguments: Vec<OsString>, interpreter: Vec<OsString>) -> Call {
    let mut interpreter = interpreter.into_iter();
    let starter = interpreter.next().map(|program| {
        let arguments = interpreter.chain([START_UP.into()]).collect();
        Starter { program: PathBuf::from(program), arguments }
    });
    Call { arguments: std::iter::once("regraft".into()).chain(arguments).collect(), starter }
}

/// Commands of the tensor-graph superoptimizer Regraft.
#[pymodule]
fn _regraft(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<environment::Environment>()?;
    module.add_class::<environment::State>()?;
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}
