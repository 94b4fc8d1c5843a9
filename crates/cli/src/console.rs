//! Terminal output, and its verbosity.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use regraft::error::Failure;

use crate::host::Caller;
use crate::interrupt;

/// How much to say; the same for all commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Console {
    /// Print only the verdict, and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print also details: what was applied where, and what was not done and why
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// How to show progress on standard error
    #[arg(long, global = true, value_name = "HOW", default_value = "auto")]
    pub progress: ProgressKind,
    /// Who called the command.
    #[arg(skip)]
    pub(crate) caller: Caller,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressKind {
    /// A line that changes on a terminal, nothing elsewhere
    Auto,
    /// One line of text per step
    Plain,
    /// One JSON object per step
    Json,
    /// Nothing
    None,
}

impl Console {
    /// Turns Ctrl-C into a request to finish from now on; `promise` tells the user what happens
    /// next. A host has its own way.
    pub fn catch(&self, promise: &'static str) {
        if self.caller.host().is_none() {
            interrupt::catch(promise);
        }
    }

    /// Whether the command is to finish with what there is.
    pub fn interrupted(&self) -> bool {
        self.caller.interrupted()
    }

    /// Prints a result. A closed pipe is not an error.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        if let Some(host) = self.caller.host() {
            host.print(text);
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::new(format!("cannot write to standard output: {e}")).hint("check where it goes; files were written before"))
            }
            _ => Ok(()),
        }
    }

    /// Prints a value as JSON.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.print(&to_json(value)?)
    }

    /// Prints a warning: something odd that is not an error.
    pub fn warn(&self, text: &str) {
        if let Some(host) = self.caller.host() {
            host.warn(&Failure::new(text).cause);
        } else if !self.quiet {
            line(&format!("regraft: warning: {}", Failure::new(text).cause));
        }
    }
}

/// A value as indented JSON.
pub fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::new)?;
    text.push('\n');
    Ok(text)
}

/// Prints why the command failed, on one line.
pub fn error(failure: &Failure) {
    line(&format!("regraft: error: {failure}"));
}

/// Prints a line on standard error. If that is closed, there is no one to report to.
pub fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
