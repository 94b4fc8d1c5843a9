//! `Ray`: the machines of a Ray cluster.
//!
//! A script, given to an interpreter that has the package `ray`, passes tasks on to the cluster.
//! There each is the same command in a process of its own as on this machine.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use regraft::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::crew::{Crew, Ended};
use crate::farm::Farm;
use crate::local::cause;
use crate::task::Task;

const SCRIPT: &str = include_str!("ray.py");
/// Connecting to a cluster may take this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection to a cluster.
pub struct Ray {
    farm: Farm,
    interpreter: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    error: Option<String>,
    #[serde(default)]
    again: bool,
}

impl Ray {
    /// Connects to the cluster at an address, as `ray.init` takes it. On its machines, the command
    /// is `own`, a program and its first arguments, or else `regraft` on their path, or else the
    /// package of that name. With `send`, machines get files and give them back though they may see
    /// the folder.
    ///
    /// # Errors
    ///
    /// There is no such interpreter, it has no package `ray`, or there is no cluster.
    pub fn connect(farm: Farm, address: &str, interpreter: &Path, own: &[OsString], send: bool) -> Result<Ray, Failure> {
        let own: Vec<_> = own.iter().map(|word| word.to_string_lossy()).collect();
        let programs = json!([own, ["regraft"], ["python3", "-m", "regraft"]]);
        let (base, name) = (farm.base().to_path_buf(), farm.name().to_path_buf());
        let mut command = Command::new(interpreter);
        command.arg("-c").arg(SCRIPT).arg(&base).arg(&name).arg(address).arg(programs.to_string()).arg(if send { "1" } else { "0" });
        command.env("RAY_USAGE_STATS_ENABLED", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |e: std::io::Error| {
            Failure::new(format!("cannot start {}: {e}", interpreter.display()))
                .hint("REGRAFT_PYTHON names an interpreter that has the package ray")
        };
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stderr = child.stderr.take();
        let said = thread::spawn(move || {
            let mut said = String::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.read_to_string(&mut said);
            }
            said
        });
        let mut ray = Ray { farm, stdin: child.stdin.take(), interpreter: child, lines };
        let is_ready = |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|value| value.get("ready").is_some());
        match ray.lines.recv_timeout(PATIENCE) {
            Ok(line) if is_ready(&line) => return Ok(ray),
            // It is about to end by itself.
            Err(RecvTimeoutError::Disconnected) => {}
            _ => drop(ray.interpreter.kill()),
        }
        let status = ray.interpreter.wait().map_err(failed)?;
        let said = said.join().unwrap_or_default();
        let hint = if said.contains("No module named 'ray'") {
            format!("`{} -m pip install ray`, or name another interpreter by REGRAFT_PYTHON", interpreter.display())
        } else {
            "`ray status` tells whether there is one; the version of ray must be that of the cluster".into()
        };
        Err(Failure::new(format!("no Ray cluster at {address}: {}", cause(&said, status))).hint(hint))
    }
}

impl Crew for Ray {
    fn has_room(&self, _: &Task) -> bool {
        // The cluster has a queue of its own.
        true
    }

    fn begin(&mut self, task: &Task) -> Result<(), Failure> {
        let mut files: Vec<String> = task.inputs.iter().map(|input| input.path.clone()).collect();
        let relative = |path: PathBuf| path.strip_prefix(self.farm.base()).map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        files.push(relative(self.farm.task_file(&task.id)));
        files.push(relative(self.farm.mark_file()));
        for need in &task.needs {
            files.push(relative(self.farm.result_folder(need).join("outcome.json")));
        }
        let line = json!({ "id": task.id, "cores": task.cores.cores, "files": files });
        match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{line}").and_then(|()| stdin.flush()).map_err(|_| gone()),
            None => Ok(()),
        }
    }

    fn wait(&mut self, limit: Duration) -> Result<Option<Ended>, Failure> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => {
                let Line { id, error, again } = serde_json::from_str(&line).map_err(Failure::new)?;
                Ok(Some(Ended { task: id, error, again }))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    fn stop(&mut self) {
        // The script ends with its input, and Ray gives up what it had begun.
        self.stdin = None;
    }
}

fn gone() -> Failure {
    Failure::new("the connection to the Ray cluster is gone").hint("the same command goes on where it was")
}

impl Drop for Ray {
    fn drop(&mut self) {
        self.stdin = None;
        // It ends by itself; if it has to be waited for in vain, it is only a process of its own.
        let _ = self.interpreter.wait();
    }
}
