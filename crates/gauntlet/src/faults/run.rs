//! One run of the command, and its disturbance.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use regraft_ir::SplitMix64;

use crate::faults::scene::{Output, Scene, TOKENS, judge_store};

/// The budget of a run. Short: only the end of a run is tested.
const BUDGET: &str = "2s";
/// Latest moment of a kill, in microseconds after writing began.
const LAST_WRITE: u64 = 12_000;
/// Runs that take longer count as hung.
const LONGEST: Duration = Duration::from_secs(120);
/// Largest file that can be written when the disk is full; the models are larger.
const DISK: u64 = 2 << 20;

/// The fault in a run that cannot write, or cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No file may grow beyond a limit: a full disk as seen by a program.
    DiskFull,
    /// The output's folder is removed once the run has begun.
    FolderGone,
    /// The output is a folder.
    OutputIsFolder,
    /// The output's folder does not exist.
    NoFolder,
    /// Files cannot be created in the output's folder.
    ReadOnly,
    /// The report goes to a folder that does not exist.
    NoReport,
    /// The reader of the command's output is gone.
    ClosedPipe,
    /// The command's output cannot be written.
    FullOutput,
    /// The file with the weights is shorter than the model says.
    Truncated,
    /// The store is a folder.
    StoreIsFolder,
    /// The store is another kind of file.
    ForeignStore,
}

/// Every kind of error.
pub const ERRORS: [Error; 11] = [
    Error::DiskFull,
    Error::FolderGone,
    Error::OutputIsFolder,
    Error::NoFolder,
    Error::ReadOnly,
    Error::NoReport,
    Error::ClosedPipe,
    Error::FullOutput,
    Error::Truncated,
    Error::StoreIsFolder,
    Error::ForeignStore,
];

/// The disturbance of a run. Moments are fractions of the duration of a whole run.
#[derive(Clone, Copy, Debug)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// SIGKILL at a moment.
    Kill(f64),
    /// SIGKILL some microseconds after the run began to write.
    KillWriting(u64),
    /// SIGINT at a moment.
    Interrupt(f64),
    /// An error; for a full disk, also its size in bytes.
    Error(Error, u64),
    /// A second run at the same time, on the same store.
    Pair,
}

impl Disturbance {
    /// A kill; half of them happen while the run writes.
    pub fn kill(random: &mut SplitMix64) -> Disturbance {
        if random.word().is_multiple_of(2) {
            Disturbance::Kill(random.unit())
        } else {
            Disturbance::KillWriting(random.word() % LAST_WRITE)
        }
    }

    /// The error at this position in the cycle.
    pub fn error(at: usize, random: &mut SplitMix64) -> Disturbance {
        Disturbance::Error(ERRORS[at % ERRORS.len()], random.word() % DISK)
    }

    /// A name for it.
    pub fn kind(self) -> String {
        match self {
            Disturbance::None => "undisturbed".into(),
            Disturbance::Kill(_) => "killed".into(),
            Disturbance::KillWriting(_) => "killed while writing".into(),
            Disturbance::Interrupt(_) => "interrupted".into(),
            Disturbance::Error(error, _) => format!("{error:?}"),
            Disturbance::Pair => "two runs on one store".into(),
        }
    }
}

/// Runs the command repeatedly on one store.
pub struct Runner {
    regraft: PathBuf,
    store: PathBuf,
    /// Duration of the last undisturbed run: later ones find the same prices in the store.
    whole: Duration,
}

/// How a run ended.
struct Ended {
    status: ExitStatus,
    errors: String,
}

impl Runner {
    /// A runner of the command at `regraft`.
    pub fn new(regraft: PathBuf, store: PathBuf) -> Result<Runner> {
        Ok(Runner { regraft: std::path::absolute(regraft)?, store, whole: Duration::ZERO })
    }

    fn command(&self, scene: &Scene<'_>, output: &str) -> Command {
        self.with_store(scene, output, &self.store)
    }

    fn with_store(&self, scene: &Scene<'_>, output: &str, store: &Path) -> Command {
        let mut command = Command::new(&self.regraft);
        command.args(["optimize", "decoder.onnx", "-o", output, "--budget", BUDGET, "--progress", "json", "--shape"]);
        command.arg(format!("ids:1,{TOKENS}")).arg("--cost-store").arg(store);
        command.current_dir(scene.path("")).env("TMPDIR", scene.path("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs once, disturbed; returns the outcome, or fails if a promise was broken.
    pub fn disturb(&mut self, scene: &Scene<'_>, disturbance: Disturbance) -> Result<String> {
        let ended = match disturbance {
            Disturbance::None => {
                let start = Instant::now();
                let ended = wait(self.command(scene, "out/f.onnx").spawn()?, &mut |_| ())?;
                self.whole = start.elapsed();
                ensure!(ended.status.code() == Some(0), "exit code {:?}: {}", ended.status.code(), ended.errors);
                ended
            }
            Disturbance::Kill(moment) => self.signalled(scene, self.whole.mul_f64(moment), libc::SIGKILL)?,
            Disturbance::Interrupt(moment) => self.signalled(scene, self.whole.mul_f64(moment), libc::SIGINT)?,
            Disturbance::KillWriting(delay) => {
                let child = self.command(scene, "out/f.onnx").spawn()?;
                let process = child.id();
                wait(child, &mut |line| {
                    if line.contains("\"write\"") {
                        std::thread::sleep(Duration::from_micros(delay));
                        signal(process, libc::SIGKILL);
                    }
                })?
            }
            Disturbance::Error(error, size) => return self.fail(scene, error, size),
            Disturbance::Pair => {
                let second = self.command(scene, "out/g.onnx").spawn()?;
                let first = wait(self.command(scene, "out/f.onnx").spawn()?, &mut |_| ())?;
                let second = wait(second, &mut |_| ())?;
                for ended in [&first, &second] {
                    ensure!(ended.status.code() == Some(0), "exit code {:?}: {}", ended.status.code(), ended.errors);
                }
                for name in ["out/g.onnx", "out/g.onnx.data", "out/g.certificate"] {
                    if scene.path(name).exists() {
                        std::fs::remove_file(scene.path(name))?;
                    }
                }
                first
            }
        };
        judge_store(&self.store)?;
        let output = scene.judge()?;
        match (ended.status.code(), ended.status.signal()) {
            // Until the command can catch it, Ctrl-C ends the process like any other.
            (None, Some(signal)) => {
                let expected = if matches!(disturbance, Disturbance::Interrupt(_)) { libc::SIGINT } else { libc::SIGKILL };
                ensure!(signal == expected, "ended by signal {signal}");
            }
            (Some(0 | 130), _) => ensure!(output == Output::Complete, "it ended well, but the output is {output:?}"),
            (code, _) => bail!("exit code {code:?}: {}", ended.errors),
        }
        Ok(format!("{output:?}").to_lowercase())
    }

    fn signalled(&self, scene: &Scene<'_>, after: Duration, number: i32) -> Result<Ended> {
        let child = self.command(scene, "out/f.onnx").spawn()?;
        let process = child.id();
        let timer = std::thread::spawn(move || {
            std::thread::sleep(after);
            signal(process, number);
        });
        let ended = wait_unreaped(child, timer)?;
        Ok(ended)
    }

    /// A run with an error: it must report it on one line with a hint and exit code 2, or succeed
    /// nevertheless.
    fn fail(&self, scene: &Scene<'_>, error: Error, size: u64) -> Result<String> {
        let place = match error {
            Error::OutputIsFolder => "tmp",
            Error::NoFolder => "none/f.onnx",
            // No file can be created there by anyone.
            Error::ReadOnly => "/proc/self/f.onnx",
            _ => "out/f.onnx",
        };
        let store = match error {
            Error::StoreIsFolder => scene.path("tmp"),
            Error::ForeignStore => scene.path("tmp/foreign"),
            _ => self.store.clone(),
        };
        let mut command = self.with_store(scene, place, &store);
        let mut expected = Some(2);
        match error {
            Error::DiskFull => {
                expected = None;
                // SAFETY: between fork and exec only these two calls are made, both of which are
                // allowed there.
                unsafe { command.pre_exec(move || limit_files(size)) };
            }
            Error::NoReport => {
                command.args(["--report", "none/r.json"]);
            }
            Error::ClosedPipe => {
                expected = Some(0);
                command.stdout(Stdio::piped());
            }
            Error::FullOutput => {
                command.stdout(std::fs::File::options().write(true).open("/dev/full")?);
            }
            Error::Truncated => {
                let data = scene.path("decoder.onnx.data");
                let target = if data.exists() { data } else { scene.path("decoder.onnx") };
                let file = std::fs::File::options().write(true).open(&target)?;
                file.set_len(file.metadata()?.len() / 2)?;
                drop(file);
                let ended = wait(command.spawn()?, &mut |_| ())?;
                told(&ended, expected)?;
                ensure!(std::fs::read_dir(scene.path("out"))?.count() == scene.outputs_before(), "something was written");
                return Ok("told".into());
            }
            Error::ForeignStore => std::fs::write(&store, "this is no database, whatever it is called")?,
            _ => {}
        }
        if error == Error::FolderGone {
            let folder = scene.path("out");
            let ended = wait(command.spawn()?, &mut |line| {
                if line.contains("\"load\"") {
                    let _ = std::fs::remove_dir_all(&folder);
                }
            })?;
            told(&ended, expected)?;
            ensure!(!folder.exists(), "the folder was made again");
            judge_store(&self.store)?;
            return Ok("told".into());
        }
        let mut child = command.spawn()?;
        drop(child.stdout.take());
        let ended = wait(child, &mut |_| ())?;
        judge_store(&self.store)?;
        let left = scene.judge()?;
        if ended.status.code() == Some(0) && expected != Some(2) {
            ensure!(left == Output::Complete, "it ended well, but the output is {left:?}");
            return Ok("done nevertheless".into());
        }
        told(&ended, Some(2))?;
        Ok(format!("told, output {left:?}").to_lowercase())
    }
}

/// Fails unless the command ended with the expected exit code and, for a failure, one line that
/// says why and what to do.
fn told(ended: &Ended, code: Option<i32>) -> Result<()> {
    ensure!(ended.status.code() == code, "exit code {:?}, signal {:?}: {}", ended.status.code(), ended.status.signal(), ended.errors);
    let lines: Vec<&str> = ended.errors.lines().filter(|line| line.starts_with("regraft: error: ")).collect();
    let [line] = lines[..] else { bail!("not one line that says why: {}", ended.errors) };
    ensure!(line.contains("(hint: "), "no hint: {line}");
    ensure!(!line.contains("internal error") && !line.contains(".regraft-"), "not for users: {line}");
    Ok(())
}

/// Reads the child's output line by line until it ends.
fn wait(mut child: Child, said: &mut dyn FnMut(&str)) -> Result<Ended> {
    let process = child.id();
    let (done, watched) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(LONGEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            signal(process, libc::SIGKILL);
        }
    });
    let mut errors = String::new();
    let mut lines = BufReader::new(child.stderr.take().context("standard error is piped")?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).into_owned();
        said(&text);
        if !text.starts_with('{') {
            errors.push_str(&text);
        }
        line.clear();
    }
    drop(done);
    let _ = watchdog.join();
    Ok(Ended { status: child.wait()?, errors })
}

/// The same for a child signalled by a timer. It is reaped only afterwards: until then its process
/// id cannot be reused.
fn wait_unreaped(mut child: Child, timer: std::thread::JoinHandle<()>) -> Result<Ended> {
    let mut errors = String::new();
    child.stderr.take().context("standard error is piped")?.read_to_string(&mut errors)?;
    let _ = timer.join();
    let errors = errors.lines().filter(|line| !line.starts_with('{')).map(|line| format!("{line}\n")).collect();
    Ok(Ended { status: child.wait()?, errors })
}

/// Sends a signal to a child that has not been reaped.
fn signal(process: u32, number: i32) {
    let Ok(process) = libc::pid_t::try_from(process) else { return };
    // SAFETY: `kill` only sends a signal, and the number is that of a child of this process.
    unsafe { libc::kill(process, number) };
}

/// Limits files of this process to `bytes`; writing then fails as on a full disk instead of ending
/// the process.
fn limit_files(bytes: u64) -> std::io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: both calls only change settings of this process.
    let failed = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) == libc::SIG_ERR || libc::setrlimit(libc::RLIMIT_FSIZE, &limit) != 0 };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
