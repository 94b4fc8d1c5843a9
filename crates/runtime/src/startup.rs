//! What it takes to start a process with a model: the time to load it, and memory.
//!
//! Both are measured in a process of its own. Where other models were loaded before, freed memory
//! is reused, which makes loading faster than it is for a user, and the peak is that of them all.
//!
//! [`Starter`] starts a program that calls [`answer`], and gives it one errand: a line of JSON,
//! followed by the bytes of the inputs.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::{Backend, DType, Feeds, HostTensor, ModelSource, OptLevel, RuntimeError, SessionOptions};

/// What a process of its own takes that loads a model and runs it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Startup {
    /// Elapsed time from the file to a session that is ready to run, ns. The runtime's library is
    /// loaded before.
    pub load_ns: u64,
    /// Peak of the process's resident memory after one run, bytes, the runtime's library included;
    /// `None` where the system does not tell.
    pub peak_bytes: Option<u64>,
}

/// A program that [`answer`]s errands, one per process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

#[derive(Serialize, Deserialize)]
struct Errand {
    backend: Backend,
    library: PathBuf,
    model: PathBuf,
    level: OptLevel,
    threads: usize,
    inputs: Vec<Input>,
}

#[derive(Serialize, Deserialize)]
struct Input {
    name: String,
    dtype: i32,
    shape: Vec<usize>,
    bytes: usize,
}

type Answer = Result<Startup, Refusal>;

/// Why there is no answer.
#[derive(Serialize, Deserialize)]
struct Refusal {
    cause: String,
    /// Whether another process may well give one.
    passes: bool,
}

impl Starter {
    /// Starts a process that loads the model file with this library of a runtime and runs it once.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or the model cannot be loaded or run, or the process dies of
    /// it.
    pub fn start(
        &self,
        (backend, library): (Backend, &Path),
        model: &Path,
        feeds: &Feeds,
        options: &SessionOptions,
    ) -> Result<Startup, RuntimeError> {
        let failed = |cause: String| RuntimeError::Start { program: self.program.clone(), model: model.to_path_buf(), cause };
        let input = |(name, tensor): (&str, &HostTensor)| Input {
            name: name.to_owned(),
            dtype: tensor.dtype().to_onnx(),
            shape: tensor.shape().to_vec(),
            bytes: tensor.bytes().len(),
        };
        let given = model;
        let (library, model) = (library.to_path_buf(), std::path::absolute(model).unwrap_or_else(|_| model.to_path_buf()));
        let inputs = feeds.iter().map(input).collect();
        let errand = Errand { backend, library, model, level: options.level, threads: options.threads, inputs };
        let mut line = serde_json::to_vec(&errand).map_err(|e| failed(e.to_string()))?;
        line.push(b'\n');
        let answer = match self.ask(&line, feeds, given)? {
            Err(refusal) if refusal.passes => self.ask(&line, feeds, given)?,
            answer => answer,
        };
        answer.map_err(|refusal| failed(refusal.cause))
    }

    /// Starts a process with an errand and its inputs, for this model.
    fn ask(&self, errand: &[u8], feeds: &Feeds, model: &Path) -> Result<Answer, RuntimeError> {
        let failed = |cause: String| RuntimeError::Start { program: self.program.clone(), model: model.to_path_buf(), cause };
        let io = |e: std::io::Error| failed(e.to_string());
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(io)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ends early says why on its output.
            let _ = stdin.write_all(errand).and_then(|()| feeds.iter().try_for_each(|(_, tensor)| stdin.write_all(tensor.bytes())));
        }
        let ended = child.wait_with_output().map_err(io)?;
        if ended.status.code().is_none() {
            return Err(RuntimeError::Crashed { model: model.to_path_buf(), status: ended.status });
        }
        serde_json::from_slice(&ended.stdout).map_err(|_| failed(format!("it gave no answer and ended with {}", ended.status)))
    }
}

/// Reads an errand, does it, and writes what it took. To be called by a process that has done
/// nothing else.
///
/// # Errors
///
/// The errand cannot be read, or the answer cannot be written. That the model cannot be loaded or
/// run is an answer.
pub fn answer(input: &mut dyn BufRead, output: &mut dyn Write) -> std::io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let errand: Errand = serde_json::from_str(&line)?;
    let feeds = errand.inputs.iter().map(|spec| Ok((spec.name.clone(), read(spec, input)?))).collect::<std::io::Result<Feeds>>()?;
    let answer: Answer = start(&errand, &feeds).map_err(|e| Refusal { cause: e.to_string(), passes: e.passes() });
    serde_json::to_writer(&mut *output, &answer)?;
    output.flush()
}

fn read(spec: &Input, input: &mut dyn BufRead) -> std::io::Result<HostTensor> {
    let mut bytes = vec![0; spec.bytes];
    input.read_exact(&mut bytes)?;
    HostTensor::from_bytes(DType::from_onnx(spec.dtype), spec.shape.clone(), &bytes).map_err(std::io::Error::other)
}

fn start(errand: &Errand, feeds: &Feeds) -> Result<Startup, RuntimeError> {
    let runtime = errand.backend.load(Some(&errand.library), None)?;
    let options = SessionOptions { level: errand.level, threads: errand.threads, fresh: true, ..SessionOptions::default() };
    let start = Instant::now();
    let mut session = runtime.open(ModelSource::path(&errand.model), &options)?;
    let load_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    session.run(feeds)?;
    Ok(Startup { load_ns, peak_bytes: peak_bytes() })
}

/// Peak of this process's resident memory, bytes; `None` where it is not known.
///
/// Linux's `ru_maxrss` is no such thing: it survives `exec`, so that it is at least what the
/// process that started this one had.
#[cfg(target_os = "linux")]
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(all(unix, not(target_os = "linux")))]
pub fn peak_bytes() -> Option<u64> {
    // SAFETY: a zeroed `rusage` is one, and a valid place to write to.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    let known = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } == 0;
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    known.then_some(usage.ru_maxrss.unsigned_abs() as u64 * unit)
}

#[cfg(not(unix))]
pub fn peak_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errand_that_fails_is_answered() {
        let inputs = vec![Input { name: "x".into(), dtype: DType::F32.to_onnx(), shape: vec![2], bytes: 8 }];
        let errand = Errand {
            backend: Backend::default(),
            library: "none.so".into(),
            model: "m.onnx".into(),
            level: OptLevel::All,
            threads: 1,
            inputs,
        };
        let mut message = serde_json::to_vec(&errand).unwrap();
        message.extend(*b"\n01234567");
        let mut out = Vec::new();
        answer(&mut message.as_slice(), &mut out).unwrap();
        let answer: Answer = serde_json::from_slice(&out).unwrap();
        let refusal = answer.unwrap_err();
        assert!(refusal.cause.contains("none.so") && !refusal.passes, "{}", refusal.cause);
        // Inputs that are cut short, and no errand at all.
        assert!(super::answer(&mut &message[..message.len() - 1], &mut Vec::new()).is_err());
        assert!(super::answer(&mut &b"{}\n"[..], &mut Vec::new()).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_gives_no_answer_is_an_error() {
        let starter = Starter { program: "false".into(), arguments: Vec::new() };
        let start = |starter: &Starter| {
            starter.start((Backend::default(), Path::new("l")), Path::new("m"), &Feeds::new(), &SessionOptions::default())
        };
        assert!(start(&starter).unwrap_err().to_string().contains("no answer"));
        let missing = Starter { program: "/nonexistent/program".into(), ..starter };
        assert!(start(&missing).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_holds_what_was_touched() {
        let before = peak_bytes().unwrap();
        let touched = vec![1u8; 64 << 20];
        assert!(std::hint::black_box(&touched).len() == 64 << 20 && peak_bytes().unwrap() >= before.max(64 << 20));
    }
}
