//! `Farm`: the folder of tasks and outcomes.
//!
//! ```text
//! tasks/ID.json           what to do
//! locks/ID                locked while it is worked on
//! results/ID/             what the command writes; attempts, one line for each
//! results/ID/outcome.json written last: the task is done
//! table.csv               all tasks and what came of them
//! farm                    what tells this folder from others
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use regraft::Failure;
use regraft::file::write_atomic;
use regraft_certify::FileDigest;
use serde::de::DeserializeOwned;

use crate::outcome::Outcome;
use crate::task::Task;

/// Name of the file that tells a farm from others.
const MARK: &str = "farm";

/// A folder of tasks and outcomes, below the folder of the jobs.
#[derive(Clone, Debug)]
pub struct Farm {
    /// The folder of the jobs, in which commands run.
    base: PathBuf,
    /// The farm's own folder, relative to `base`.
    name: PathBuf,
}

impl Farm {
    /// The farm with this folder, relative to that of the jobs.
    pub fn new(base: &Path, name: &Path) -> Farm {
        Farm { base: base.to_path_buf(), name: name.to_path_buf() }
    }

    /// The farm that a task's file belongs to, and the task.
    ///
    /// # Errors
    ///
    /// The file is not there, is no task, or does not lie in a farm.
    pub fn of_task(path: &Path) -> Result<(Farm, Task), Failure> {
        let task: Task = read(path)?;
        let lost = || Failure::new(format!("{} does not lie in a farm", path.display())).hint("tasks lie in the folder `tasks` of a farm");
        let path = fs::canonicalize(path).map_err(|_| lost())?;
        let folder = path.parent().and_then(Path::parent).ok_or_else(lost)?;
        let mark = fs::read_to_string(folder.join(MARK)).map_err(|_| lost())?;
        let depth = mark.lines().next().map_or(0, |name| Path::new(name).components().count());
        let base = folder.ancestors().nth(depth).ok_or_else(lost)?;
        let name = folder.strip_prefix(base).map_err(|_| lost())?;
        Ok((Farm::new(base, name), task))
    }

    /// The folder of the jobs.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The folder of the farm, relative to that of the jobs.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The folder of the farm.
    pub fn folder(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    /// The folder that tasks write to, relative to that of the jobs.
    pub(crate) fn results(&self) -> String {
        self.name.join("results").to_string_lossy().into_owned()
    }

    /// Where a task is described.
    pub fn task_file(&self, id: &str) -> PathBuf {
        self.folder().join("tasks").join(format!("{id}.json"))
    }

    /// Where a task writes to.
    pub fn result_folder(&self, id: &str) -> PathBuf {
        self.folder().join("results").join(id)
    }

    /// Where a task's lock is.
    pub(crate) fn lock_file(&self, id: &str) -> PathBuf {
        self.folder().join("locks").join(id)
    }

    /// What tells the folder from others.
    pub(crate) fn mark_file(&self) -> PathBuf {
        self.folder().join(MARK)
    }

    fn outcome_file(&self, id: &str) -> PathBuf {
        self.result_folder(id).join("outcome.json")
    }

    /// Makes the folder, and describes the tasks in it.
    ///
    /// # Errors
    ///
    /// Something cannot be written.
    pub fn plant(&self, tasks: &[Task]) -> Result<(), Failure> {
        let mark = self.mark_file();
        let holds_others = || fs::read_dir(self.folder()).is_ok_and(|mut entries| entries.next().is_some());
        if !mark.is_file() && holds_others() {
            let failure = Failure::new(format!("the folder {} holds other things, and would be the farm", self.folder().display()));
            return Err(failure.hint("name another with `folder` in the file of jobs, or empty it"));
        }
        for folder in ["tasks", "locks", "results"] {
            make_folder(&self.folder().join(folder))?;
        }
        if !mark.is_file() {
            let unique = format!("{:?} {} {}", std::time::SystemTime::now(), std::process::id(), self.folder().display());
            let unique = blake3::hash(unique.as_bytes()).to_hex();
            write_atomic(&mark, format!("{}\n{unique}\n", self.name.display()).as_bytes())?;
        }
        for task in tasks {
            let path = self.task_file(&task.id);
            if !path.is_file() {
                write_json(&path, task)?;
            }
        }
        Ok(())
    }

    /// What came of a task, if that is there, and what the task made, too.
    pub fn outcome(&self, task: &Task) -> Option<Outcome> {
        let outcome: Outcome = read(&self.outcome_file(&task.id)).ok()?;
        let is_there = || task.output.as_ref().is_none_or(|name| self.result_folder(&task.id).join(name).is_file());
        (!outcome.state.has_output() || is_there()).then_some(outcome)
    }

    /// Whether a task has made what others need.
    pub fn is_done(&self, id: &str) -> bool {
        read::<Outcome>(&self.outcome_file(id)).is_ok_and(|outcome| outcome.state.has_output())
    }

    /// Writes what came of a task.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn finish(&self, outcome: &Outcome) -> Result<(), Failure> {
        write_json(&self.outcome_file(&outcome.task), outcome)
    }

    /// Forgets what came of a task.
    ///
    /// # Errors
    ///
    /// Its folder cannot be removed.
    pub fn forget(&self, id: &str) -> Result<(), Failure> {
        let folder = self.result_folder(id);
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::new(format!("cannot remove {}: {e}", folder.display()))),
            _ => Ok(()),
        }
    }
}

/// Whether a path lies in a farm, whoever it belongs to.
pub(crate) fn is_in_farm(path: &Path) -> bool {
    path.ancestors().skip(1).any(|folder| folder.join(MARK).is_file() && folder.join("tasks").is_dir())
}

/// BLAKE3 of a file, 64 hexadecimal digits.
pub(crate) fn digest(path: &Path) -> Result<String, Failure> {
    Ok(FileDigest::of(path, String::new())?.hash.to_string())
}

/// Makes a folder, and those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|e| Failure::new(format!("cannot make the folder {}: {e}", path.display())).hint("check the path"))
}

/// Reads a value from a file of JSON.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(path).map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())).hint("check the path"))?;
    serde_json::from_str(&text).map_err(|e| {
        Failure::new(format!("{} does not hold what it should: {e}", path.display())).hint("`regraft farm` writes the files of a farm")
    })
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::new)?;
    write_atomic(path, format!("{text}\n").as_bytes())
}
