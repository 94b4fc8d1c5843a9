//! `Local`: processes on this machine.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Read;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use regraft::Failure;

use crate::cores::Cores;
use crate::crew::{Crew, Ended};
use crate::farm::Farm;
use crate::task::Task;

/// Exit code of a command that failed, and said why.
const FAILED: i32 = 2;

/// A process for each task, as many at a time as there are cores.
pub struct Local {
    farm: Farm,
    /// The `regraft` command: a program and its first arguments.
    own: Vec<OsString>,
    /// A task ends when its standard input does.
    at_work: HashMap<String, (usize, ChildStdin)>,
    ended: (Sender<Ended>, Receiver<Ended>),
}

impl Local {
    /// With `own`, a program and its first arguments, as the `regraft` command.
    pub fn new(farm: Farm, own: Vec<OsString>) -> Local {
        Local { farm, own, at_work: HashMap::new(), ended: channel() }
    }
}

/// Logical processors that a task takes.
fn taken(task: &Task) -> usize {
    let all = Cores::available(false);
    let each = if task.cores.whole { (all / Cores::available(true).max(1)).max(1) } else { 1 };
    task.cores.cores.map_or(all, |cores| cores * each)
}

impl Crew for Local {
    fn has_room(&self, task: &Task) -> bool {
        let used: usize = self.at_work.values().map(|(cores, _)| cores).sum();
        self.at_work.is_empty() || used + taken(task) <= Cores::available(false)
    }

    fn begin(&mut self, task: &Task) -> Result<(), Failure> {
        let program = self.own.first().cloned().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(self.own.iter().skip(1)).arg("task").arg(self.farm.task_file(&task.id)).arg("--attached");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let failed = |e: std::io::Error| Failure::new(format!("cannot start {}: {e}", program.to_string_lossy())).hint("check the program");
        let mut child = command.spawn().map_err(failed)?;
        if let Some(stdin) = child.stdin.take() {
            self.at_work.insert(task.id.clone(), (taken(task), stdin));
        }
        let (id, ended) = (task.id.clone(), self.ended.0.clone());
        thread::spawn(move || {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                // What is no text is lost; it is only there to be shown.
                let _ = stderr.read_to_string(&mut said);
            }
            let (error, again) = match child.wait() {
                Ok(status) if status.success() => (None, false),
                Ok(status) => (Some(cause(&said, status)), status.code() != Some(FAILED)),
                Err(e) => (Some(e.to_string()), true),
            };
            // Nobody waits any more where the farm has ended.
            let _ = ended.send(Ended { task: id, error, again });
        });
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> Result<Option<Ended>, Failure> {
        match self.ended.1.recv_timeout(limit) {
            Ok(ended) => {
                self.at_work.remove(&ended.task);
                Ok(Some(ended))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    fn stop(&mut self) {
        for (_, stdin) in std::mem::take(&mut self.at_work).into_values() {
            drop(stdin);
        }
    }
}

/// Why a process ended: its own words, or those of the system.
pub(crate) fn cause(said: &str, status: ExitStatus) -> String {
    let line = said.lines().rev().find(|line| !line.trim().is_empty());
    match line.map(|line| line.strip_prefix("regraft: error: ").unwrap_or(line)) {
        Some(line) if status.code().is_some() => line.to_owned(),
        Some(line) => format!("{line} ({status})"),
        None => status.to_string(),
    }
}
