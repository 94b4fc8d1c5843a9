//! `Cores`: processor cores that are a task's alone.
//!
//! Each logical processor of a machine has a lock file; who holds its lock, has the processor. So
//! tasks do not share one, whoever started them: several farms, Ray, another scheduler, or a
//! person. The claim binds the process to its processors, and ends with it. Containers have folders
//! of their own: their processors should be apart to begin with.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use regraft::Failure;
use regraft_ir::parallel;
use serde::{Deserialize, Serialize};

/// How often the locks are looked at, while waiting.
const LOOK: Duration = Duration::from_millis(50);

/// What a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Number of cores; `None` for all that there are.
    pub cores: Option<usize>,
    /// Whether other tasks are kept off the other logical processors of each core, too: times
    /// depend on what runs there.
    pub whole: bool,
}

/// Claimed processors; free again when this is dropped.
#[derive(Debug)]
pub struct Cores {
    processors: Vec<usize>,
    _locks: Vec<File>,
}

impl Cores {
    /// Waits for as many as needed, and binds this thread, and those that it starts, to them.
    /// `stop` is asked while waiting: if it says so, there is nothing.
    ///
    /// # Errors
    ///
    /// More than this process may use, or the lock files cannot be made.
    pub fn claim(need: Need, stop: &dyn Fn() -> bool) -> Result<Option<Cores>, Failure> {
        Cores::claim_in(&std::env::temp_dir().join("regraft-cores"), &topology(), need, stop)
    }

    fn claim_in(folder: &Path, cores: &[Vec<usize>], need: Need, stop: &dyn Fn() -> bool) -> Result<Option<Cores>, Failure> {
        // What has no need for whole cores is content with logical processors.
        let units: Vec<Vec<usize>> = if need.whole { cores.to_vec() } else { cores.iter().flatten().map(|p| vec![*p]).collect() };
        let count = need.cores.unwrap_or(units.len());
        if count > units.len() {
            let failure = Failure::new(format!("the task asks for {count} cores, and this process may use {}", units.len()));
            return Err(failure.hint("work on it on a larger machine, or ask for fewer"));
        }
        make(folder)?;
        // One waits at a time, so that many small tasks do not keep a large one waiting.
        let queue = open(folder, "queue")?;
        let mut turn = None;
        loop {
            if stop() {
                return Ok(None);
            }
            if turn.is_none() {
                turn = queue.try_lock().is_ok().then_some(&queue);
            }
            if turn.is_some() {
                let mut claimed = Cores { processors: Vec::new(), _locks: Vec::new() };
                let mut taken = 0;
                for unit in &units {
                    taken += usize::from(taken < count && claimed.take(folder, unit)?);
                }
                if taken == count {
                    bind(&claimed.processors);
                    return Ok(Some(claimed));
                }
            }
            thread::sleep(LOOK);
        }
    }

    /// Takes all processors of a unit, or none. Returns whether it took them.
    fn take(&mut self, folder: &Path, unit: &[usize]) -> Result<bool, Failure> {
        let mut locks = Vec::new();
        for processor in unit {
            let file = open(folder, &processor.to_string())?;
            if file.try_lock().is_err() {
                return Ok(false);
            }
            locks.push(file);
        }
        self._locks.extend(locks);
        self.processors.extend(unit);
        Ok(true)
    }

    /// The logical processors.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }

    /// How many cores this process may use, whole ones or logical processors.
    pub fn available(whole: bool) -> usize {
        let cores = topology();
        if whole { cores.len() } else { cores.iter().map(Vec::len).sum() }
    }
}

/// The folder of the lock files, for all users.
fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| {
        Failure::new(format!("cannot make the folder {}: {e}", folder.display()))
            .hint("it holds locks of processor cores; TMPDIR names another place")
    })?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Another user's folder has these permissions already.
        let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777));
    }
    Ok(())
}

/// A lock file; it need not be ours to be locked.
fn open(folder: &Path, name: &str) -> Result<File, Failure> {
    let path: PathBuf = folder.join(name);
    let mut make = OpenOptions::new();
    make.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        make.mode(0o644);
    }
    let _ = make.open(&path);
    File::open(&path).map_err(|e| Failure::new(format!("cannot open the lock file {}: {e}", path.display())).hint("check who owns it"))
}

/// The logical processors that this process may use, by the core that they belong to.
fn topology() -> Vec<Vec<usize>> {
    let allowed = allowed();
    let mut seen = BTreeSet::new();
    let mut cores = Vec::new();
    for processor in &allowed {
        let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(path).map_or_else(|_| vec![*processor], |text| listed(&text));
        let core: Vec<usize> = siblings.into_iter().filter(|p| allowed.contains(p) && seen.insert(*p)).collect();
        if !core.is_empty() {
            cores.push(core);
        }
    }
    cores
}

/// The numbers of a list such as `0-1,8`.
fn listed(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse::<usize>().ok()?..=high.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(target_os = "linux")]
fn allowed() -> Vec<usize> {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|p| set.is_set(*p)).collect(),
        Err(_) => (0..parallel::cores()).collect(),
    }
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Vec<usize> {
    (0..parallel::cores()).collect()
}

/// Binds this thread, where the system has a way. Where it refuses, the locks still hold.
#[cfg(target_os = "linux")]
fn bind(processors: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    processors.iter().for_each(|p| set.set(*p));
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
fn bind(_: &[usize]) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(folder: &Path, cores: &[Vec<usize>], count: Option<usize>, whole: bool) -> Option<Cores> {
        // Asked once before the first look at the locks, and once after it.
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) > 0;
        Cores::claim_in(folder, cores, Need { cores: count, whole }, &stop).expect("locks can be made")
    }

    #[test]
    fn whole_cores_are_never_shared() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cores = [vec![0, 4], vec![1, 5]];
        thread::scope(|scope| {
            // Threads of their own, since a claim binds the one that makes it.
            scope.spawn(|| {
                let one = claim(folder.path(), &cores, Some(1), true).expect("both are free");
                assert_eq!(one.processors(), [0, 4]);
                let half = claim(folder.path(), &cores, Some(1), false).expect("one core is free");
                assert_eq!(half.processors(), [1]);
                assert!(claim(folder.path(), &cores, Some(1), true).is_none(), "half of the other core is taken");
                assert!(claim(folder.path(), &cores, None, true).is_none());
                drop(half);
                drop(one);
                assert_eq!(claim(folder.path(), &cores, None, true).expect("all are free").processors(), [0, 4, 1, 5]);
            });
        });
    }

    #[test]
    fn nobody_gets_more_than_there_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let failure = Cores::claim_in(folder.path(), &[vec![0]], Need { cores: Some(2), whole: true }, &|| false).expect_err("one core");
        assert!(failure.to_string().contains("asks for 2 cores") && failure.hint.is_some(), "{failure}");
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!((listed("0-1,8\n"), listed("3"), listed("")), (vec![0, 1, 8], vec![3], vec![]));
        assert!(Cores::available(true) >= 1 && Cores::available(false) >= Cores::available(true));
    }
}
