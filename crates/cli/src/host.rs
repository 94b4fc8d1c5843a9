//! What a command is called by: a terminal, or a program.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use regraft_runtime::Starter;

use crate::interrupt;

/// A call of a command.
#[derive(Clone, Debug)]
pub struct Call {
    /// The arguments; the program's name first.
    pub arguments: Vec<OsString>,
    /// The program that loads models in processes of their own: with these arguments, it must
    /// [`run`](crate::run) the command [`START_UP`](crate::START_UP). `None`: what that takes is
    /// not measured.
    pub starter: Option<Starter>,
}

impl Call {
    /// The program that runs commands, and its arguments before them; `None` where there is none.
    pub(crate) fn program(starter: Option<&Starter>) -> Option<(&Path, &[OsString])> {
        // What starts processes of this program says at last which of its commands they run.
        starter.and_then(|starter| Some((starter.program.as_path(), starter.arguments.split_last()?.1)))
    }
}

/// A program that calls commands, in the place of a terminal.
pub trait Host: Send + Sync {
    /// Takes a result.
    fn print(&self, text: &str);
    /// Takes a warning: something odd that is not an error.
    fn warn(&self, text: &str);
    /// A step begins.
    fn step(&self, phase: &str, detail: &str);
    /// Whether to finish with what there is.
    fn interrupted(&self) -> bool;
}

/// The call of a command, and the program that made it; none for a terminal.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) starter: Option<Starter>,
    pub(crate) host: Option<Arc<dyn Host>>,
}

impl Caller {
    /// Of a call.
    pub(crate) fn of(call: Call, host: Option<Arc<dyn Host>>) -> Caller {
        Caller { arguments: call.arguments, starter: call.starter, host }
    }

    /// The program that called, if one did.
    pub(crate) fn host(&self) -> Option<&dyn Host> {
        self.host.as_deref()
    }

    /// Whether the command is to finish with what there is.
    pub(crate) fn interrupted(&self) -> bool {
        self.host().map_or_else(interrupt::requested, Host::interrupted)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}
