//! `Notebook`: what a command says, kept for the caller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use regraft_cli::Host;

/// How often signals are looked for: that takes the interpreter's lock, and others may hold it.
const LOOK: Duration = Duration::from_millis(50);

/// The output and the warnings of a command. Passes on its progress, and the wish to interrupt it.
pub struct Notebook {
    progress: Option<Py<PyAny>>,
    notes: Mutex<Notes>,
    looked: Mutex<Instant>,
    stop: AtomicBool,
    interrupted: AtomicBool,
}

/// What was said.
#[derive(Default)]
pub struct Notes {
    /// What the command printed.
    pub output: String,
    /// What is odd, but no error.
    pub warnings: Vec<String>,
    /// What the receiver of progress raised.
    pub raised: Option<PyErr>,
}

impl Notebook {
    /// An empty one; `progress` is called with the phase and the detail of every step.
    pub fn new(progress: Option<Py<PyAny>>) -> Notebook {
        let (stop, interrupted) = Default::default();
        Notebook { progress, notes: Mutex::default(), looked: Mutex::new(Instant::now()), stop, interrupted }
    }

    /// Takes out what was said.
    pub fn notes(&self) -> Notes {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether Ctrl-C ended the command.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    fn note(&self, what: impl FnOnce(&mut Notes)) {
        what(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Ends the command. Ctrl-C is no error until the caller says so.
    fn end(&self, py: Python<'_>, raised: PyErr) {
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            self.interrupted.store(true, Ordering::SeqCst);
        } else {
            self.note(|notes| notes.raised = Some(raised));
        }
        self.stop.store(true, Ordering::SeqCst);
    }
}

impl Host for Notebook {
    fn print(&self, text: &str) {
        self.note(|notes| notes.output.push_str(text));
    }

    fn warn(&self, text: &str) {
        self.note(|notes| notes.warnings.push(text.to_string()));
    }

    fn step(&self, phase: &str, detail: &str) {
        let Some(progress) = self.progress.as_ref().filter(|_| !self.stop.load(Ordering::SeqCst)) else { return };
        Python::attach(|py| {
            if let Err(raised) = progress.call1(py, (phase, detail)) {
                self.end(py, raised);
            }
        });
    }

    fn interrupted(&self) -> bool {
        if self.stop.load(Ordering::SeqCst) {
            return true;
        }
        // Another thread looks already.
        let Ok(mut looked) = self.looked.try_lock() else { return false };
        if looked.elapsed() < LOOK {
            return false;
        }
        *looked = Instant::now();
        Python::attach(|py| {
            if let Err(raised) = py.check_signals() {
                self.end(py, raised);
            }
        });
        self.stop.load(Ordering::SeqCst)
    }
}
