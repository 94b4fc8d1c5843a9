//! One attempt at a task: lock, cores, command, outcome.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use regraft::Failure;

use crate::cores::Cores;
use crate::farm::{Farm, digest, make_folder};
use crate::outcome::{Outcome, Place, State};
use crate::task::Task;

/// A task whose process died so often is not tried again.
const MOST_ATTEMPTS: usize = 3;
/// How often the lock is looked at, while another works on the task.
const LOOK: Duration = Duration::from_millis(100);
/// Name of the file that counts attempts.
const ATTEMPTS: &str = "attempts";

/// What a command did.
#[derive(Debug, Default)]
pub struct Ran {
    /// Its exit code; that of a failure is 2.
    pub exit: u8,
    /// What it printed.
    pub output: String,
    /// What it warned of.
    pub warnings: Vec<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// What carries out commands.
pub trait Command: Sync {
    /// Runs a command with these arguments, in the folder that the process is in.
    fn run(&self, arguments: &[String]) -> Ran;

    /// Whether to stop; asked while waiting.
    fn interrupted(&self) -> bool;
}

/// Works on a task, unless that is done. The process moves into the folder of the jobs, and is
/// bound to the cores of the task.
///
/// Returns what came of it; `None` if the work was interrupted, and the task is as it was.
///
/// # Errors
///
/// Another version of the program planned the task; what it needs is not done; its cores or its
/// files cannot be had; the first attempt failed by what passes.
pub fn attempt(farm: &Farm, task: &Task, command: &dyn Command) -> Result<Option<Outcome>, Failure> {
    if task.version != env!("CARGO_PKG_VERSION") {
        let failure = Failure::new(format!("{}: regraft {} planned it, and this is {}", task.id, task.version, env!("CARGO_PKG_VERSION")));
        return Err(failure.hint("install one version on all machines"));
    }
    let Some(_lock) = lock(farm, task, command)? else { return Ok(None) };
    if let Some(outcome) = farm.outcome(task) {
        return Ok(Some(outcome));
    }
    for need in &task.needs {
        if !farm.is_done(need) {
            return Err(Failure::new(format!("{} needs {need}, which is not done", task.id)).hint("work on that first"));
        }
    }
    check_inputs(farm, task)?;
    let start = Instant::now();
    let Some(cores) = Cores::claim(task.cores, &|| command.interrupted())? else { return Ok(None) };
    let waited = start.elapsed().as_secs_f64();

    let folder = farm.result_folder(&task.id);
    let attempts = begin(&folder, &task.keeps)?;
    let place = Place::here(cores.processors());
    let (mut ran, seconds) = if attempts > MOST_ATTEMPTS {
        let cause = format!("its process died {MOST_ATTEMPTS} times");
        let failure = Failure::new(cause).hint("memory that ran out, or a crash of the runtime; `regraft farm --again` tries it once more");
        (Ran { failure: Some(failure), ..Ran::default() }, 0.0)
    } else {
        std::env::set_current_dir(farm.base())
            .map_err(|e| Failure::new(format!("cannot enter the folder {}: {e}", farm.base().display())))?;
        let start = Instant::now();
        (command.run(&task.arguments), start.elapsed().as_secs_f64())
    };
    if let Some(failure) = ran.failure.take_if(|failure| failure.passes && attempts == 1) {
        return Err(failure);
    }
    let state = match (ran.exit, &ran.failure) {
        _ if command.interrupted() => {
            withdraw(farm, task);
            return Ok(None);
        }
        (_, Some(_)) if attempts > MOST_ATTEMPTS => State::Crashed,
        (_, Some(_)) | (2.., None) => State::Failed,
        (1, None) => State::Unmet,
        (0, None) => State::Done,
    };
    let cause = ran.failure.as_ref().map(|failure| failure.cause.clone());
    let outcome = Outcome {
        task: task.id.clone(),
        state,
        cause,
        hint: ran.failure.and_then(|failure| failure.hint),
        warnings: ran.warnings,
        output: ran.output,
        place,
        seconds,
        waited,
        attempts: attempts.min(MOST_ATTEMPTS),
        program: format!("regraft {}", env!("CARGO_PKG_VERSION")),
    };
    farm.finish(&outcome)?;
    Ok(Some(outcome))
}

/// Fails if a file is not the one that the task was planned for.
fn check_inputs(farm: &Farm, task: &Task) -> Result<(), Failure> {
    for input in task.inputs.iter().filter(|input| !input.digest.is_empty()) {
        if digest(&farm.base().join(&input.path))? != input.digest {
            let failure = Failure::new(format!("{} changed since {} was planned", input.path, task.id));
            return Err(failure.hint("`regraft farm JOBS.toml` makes a task of what it is now"));
        }
    }
    Ok(())
}

/// Held while an attempt is counted.
static COUNTING: Mutex<()> = Mutex::new(());

/// Takes back what this process began, and lets it begin nothing any more: it is about to end, with
/// whoever started it.
pub fn withdraw_for_good(farm: &Farm, task: &Task) {
    let counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    withdraw(farm, task);
    std::mem::forget(counting);
}

/// Takes back what this process began and somebody ended on purpose: it does not count.
fn withdraw(farm: &Farm, task: &Task) {
    let path = farm.result_folder(&task.id).join(ATTEMPTS);
    let Ok(text) = fs::read_to_string(&path) else { return };
    let own = signature();
    let kept: String = text.lines().filter(|line| *line != own).map(|line| format!("{line}\n")).collect();
    // If it cannot be written, it counts after all.
    let _ = fs::write(&path, kept);
}

/// The line of this process in the file of attempts.
fn signature() -> String {
    format!("process {} on {}", std::process::id(), Place::here(&[]).host)
}

/// The lock of a task: nobody else works on it meanwhile.
fn lock(farm: &Farm, task: &Task, command: &dyn Command) -> Result<Option<File>, Failure> {
    let path = farm.lock_file(&task.id);
    let failed = |e: std::io::Error| Failure::new(format!("cannot open the lock file {}: {e}", path.display())).hint("check who owns it");
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
    while file.try_lock().is_err() {
        if command.interrupted() {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
    Ok(Some(file))
}

/// Clears what an earlier attempt left, but for databases that the command goes on with, and counts
/// this one.
fn begin(folder: &Path, kept: &[String]) -> Result<usize, Failure> {
    make_folder(folder)?;
    let failed = |e: std::io::Error| Failure::new(format!("cannot write in {}: {e}", folder.display())).hint("check the folder");
    // SQLite has a journal beside a database, which is named after it.
    let stays = |name: &str| name == ATTEMPTS || kept.iter().any(|file| name.strip_prefix(file).is_some_and(|rest| !rest.contains('.')));
    for entry in fs::read_dir(folder).map_err(failed)?.flatten().filter(|entry| !stays(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.map_err(failed)?;
    }
    let path = folder.join(ATTEMPTS);
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let before = fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
    writeln!(file, "{}", signature()).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(before + 1)
}
