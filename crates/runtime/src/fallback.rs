//! A runtime that opens some models with less of its optimizer, because it refuses them with all
//! of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Clock, DType, Feeds, ModelSource, OptLevel, Runtime, RuntimeError, Session, SessionOptions, Startup};

/// A valid model that a runtime loads only if its optimizer does less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The highest level at which the runtime loads it.
    pub level: OptLevel,
    /// What the runtime says at the level above.
    pub cause: String,
}

/// A runtime that opens each of some model files at the highest level at which it loads, if that
/// is lower than the level asked for. All other models are opened as asked.
///
/// So whoever has to run such a file runs it as a user would have to. [`Fallback::refusal`] tells
/// that it did.
pub struct Fallback {
    runtime: Arc<dyn Runtime>,
    files: Vec<PathBuf>,
    /// For each file, what is known so far.
    refusals: Mutex<Vec<Option<Refusal>>>,
    probes: bool,
    /// Files and levels at which a process of its own has opened them, or died.
    probed: Mutex<HashMap<(usize, OptLevel), Option<String>>>,
}

impl Fallback {
    /// The runtime, with a fallback for these files.
    pub fn new(runtime: Arc<dyn Runtime>, files: Vec<PathBuf>) -> Self {
        let refusals = Mutex::new(vec![None; files.len()]);
        Self { runtime, files, refusals, probes: false, probed: Mutex::default() }
    }

    /// The same, but each of these files is first opened in a process of its own, where the runtime
    /// has one: if that dies, the runtime refuses the file at this level. Once one did, so does
    /// every other model that is opened.
    pub fn probing(self) -> Self {
        Self { probes: true, ..self }
    }

    /// Fails if a process of its own dies when it opens one of the files at a level.
    fn probe(&self, at: usize, options: &SessionOptions) -> Result<(), RuntimeError> {
        if !self.probes {
            return Ok(());
        }
        let place = (at, options.level);
        let lock = || self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&place).cloned();
        let cause = known.unwrap_or_else(|| self.crash(&self.files[at], options));
        lock().insert(place, cause.clone());
        cause.map_or(Ok(()), |cause| Err(self.refused(self.files[at].display().to_string(), cause)))
    }

    /// How a process of its own dies when it opens a file, if it does.
    fn crash(&self, file: &Path, options: &SessionOptions) -> Option<String> {
        // Without inputs it is not run, only opened.
        match self.runtime.start_up(file, &Feeds::new(), options) {
            Err(RuntimeError::Crashed { status, .. }) => Some(format!("it crashes ({status})")),
            _ => None,
        }
    }

    fn refused(&self, model: String, cause: String) -> RuntimeError {
        RuntimeError::Load { runtime: self.runtime.name().to_owned(), model, cause }
    }

    /// Opens a model that is none of the files; with care if one of those makes the runtime crash.
    fn open_other(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let has_crashed = || self.probed.lock().unwrap_or_else(PoisonError::into_inner).values().any(Option::is_some);
        if has_crashed() {
            let io = |source| RuntimeError::Io { path: model.place(), source };
            let kept = match model {
                ModelSource::Bytes { bytes, base: None } => {
                    let mut file = tempfile::NamedTempFile::new().map_err(io)?;
                    std::io::Write::write_all(&mut file, bytes).map_err(io)?;
                    Some(file)
                }
                _ => None,
            };
            let path = match (&kept, model) {
                (Some(file), _) => file.path(),
                (None, ModelSource::Path(path)) => path,
                _ => return self.runtime.open(model, options),
            };
            if let Some(cause) = self.crash(path, options) {
                return Err(self.refused(model.to_string(), cause));
            }
        }
        self.runtime.open(model, options)
    }

    /// Why a file was opened at a lower level than asked for, if it was.
    pub fn refusal(&self, file: &Path) -> Option<Refusal> {
        self.known(self.index(file)?)
    }

    fn index(&self, file: &Path) -> Option<usize> {
        self.files.iter().position(|known| known == file)
    }

    fn known(&self, at: usize) -> Option<Refusal> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).get(at).cloned().flatten()
    }

    /// The highest level up to this one at which a file may load, by what is known.
    fn highest(&self, at: usize, level: OptLevel) -> OptLevel {
        self.known(at).map_or(level, |refusal| level.min(refusal.level))
    }

    fn learn(&self, at: usize, refusal: Refusal) {
        if let Some(slot) = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
            *slot = Some(refusal);
        }
    }
}

impl Runtime for Fallback {
    fn name(&self) -> &str {
        self.runtime.name()
    }

    fn version(&self) -> &str {
        self.runtime.version()
    }

    fn lacks_kernel(&self, op_type: &str, dtype: DType, opset: i64) -> bool {
        self.runtime.lacks_kernel(op_type, dtype, opset)
    }

    fn default_threads(&self) -> usize {
        self.runtime.default_threads()
    }

    fn clock(&self, threads: usize) -> Clock {
        self.runtime.clock(threads)
    }

    /// # Errors
    ///
    /// For one of the files, the error at the lowest level: it is the one that no optimizer has a
    /// part in.
    fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
        let ModelSource::Path(file) = model else { return self.open_other(model, options) };
        let Some(at) = self.index(file) else { return self.open_other(model, options) };
        let highest = self.highest(at, options.level);
        let open = |level| {
            let options = SessionOptions { level, ..options.clone() };
            self.probe(at, &options).and_then(|()| self.runtime.open(model, &options))
        };
        let mut result = open(highest);
        for level in highest.lower() {
            let Err(RuntimeError::Load { cause, .. }) = &result else { break };
            let cause = cause.clone();
            result = open(level);
            if result.is_ok() {
                self.learn(at, Refusal { level, cause });
            }
        }
        result
    }

    fn start_up(&self, model: &Path, feeds: &Feeds, options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
        let level = self.index(model).map_or(options.level, |at| self.highest(at, options.level));
        self.runtime.start_up(model, feeds, &SessionOptions { level, ..options.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostTensor, RawProfile, ValueInfo};

    /// Loads files only up to a level, which their names say; knows nothing else.
    struct Picky(Mutex<Vec<OptLevel>>);

    struct Opened;

    impl Session for Opened {
        fn inputs(&self) -> &[ValueInfo] {
            &[]
        }

        fn outputs(&self) -> &[ValueInfo] {
            &[]
        }

        fn threads(&self) -> usize {
            1
        }

        fn run(&mut self, _: &Feeds) -> Result<Vec<HostTensor>, RuntimeError> {
            Ok(Vec::new())
        }

        fn bind(&mut self, _: &Feeds) -> Result<(), RuntimeError> {
            Ok(())
        }

        fn run_bound(&mut self) -> Result<(), RuntimeError> {
            Ok(())
        }

        fn end_profile(&mut self) -> Result<RawProfile, RuntimeError> {
            Ok(RawProfile { runs: Vec::new(), resolution_ns: 1 })
        }
    }

    impl Runtime for Picky {
        fn name(&self) -> &str {
            "picky"
        }

        fn version(&self) -> &str {
            "1"
        }

        /// Takes as many ns as the level is high.
        fn start_up(&self, _: &Path, _: &Feeds, options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
            Ok(Some(Startup { load_ns: options.level as u64, peak_bytes: None }))
        }

        fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
            self.0.lock().unwrap().push(options.level);
            let refused = |cause: String| RuntimeError::Load { runtime: "picky".into(), model: model.to_string(), cause };
            let most = match model.to_string().as_str() {
                "basic" => OptLevel::Basic,
                "disabled" => OptLevel::Disabled,
                "all" => OptLevel::All,
                "missing" => {
                    return Err(RuntimeError::Io { path: model.place(), source: std::io::ErrorKind::NotFound.into() });
                }
                _ => return Err(refused(format!("not at {}", options.level))),
            };
            if options.level > most { Err(refused(format!("not at {}", options.level))) } else { Ok(Box::new(Opened)) }
        }
    }

    /// Opens a file at a level; the levels that were tried, and why it failed if it did.
    fn tried(fallback: &Fallback, picky: &Picky, file: &str, level: OptLevel) -> (Vec<OptLevel>, Option<String>) {
        let options = SessionOptions { level, ..SessionOptions::default() };
        let failed = fallback.open(ModelSource::path(file), &options).err().map(|e| e.to_string());
        (std::mem::take(&mut *picky.0.lock().unwrap()), failed)
    }

    /// Crashes where the other one refuses.
    struct Crashing(Picky);

    impl Runtime for Crashing {
        fn name(&self) -> &str {
            "crashing"
        }

        fn version(&self) -> &str {
            "1"
        }

        fn start_up(&self, model: &Path, _: &Feeds, options: &SessionOptions) -> Result<Option<Startup>, RuntimeError> {
            match self.0.open(ModelSource::path(model), options) {
                Ok(_) => Ok(None),
                Err(_) => Err(RuntimeError::Crashed { model: model.to_path_buf(), status: std::process::ExitStatus::default() }),
            }
        }

        fn open(&self, model: ModelSource<'_>, options: &SessionOptions) -> Result<Box<dyn Session>, RuntimeError> {
            match self.0.open(model, options) {
                Err(error) if !matches!(error, RuntimeError::Io { .. }) => panic!("it would have crashed: {error}"),
                opened => opened,
            }
        }
    }

    #[test]
    fn what_makes_a_process_crash_is_not_opened_in_this_one() {
        let crashing = Arc::new(Crashing(Picky(Mutex::default())));
        let fallback = Fallback::new(crashing, ["basic", "all"].map(PathBuf::from).to_vec()).probing();
        let open = |model: ModelSource<'_>| fallback.open(model, &SessionOptions::default());
        assert!(open(ModelSource::path("all")).is_ok());
        assert!(open(ModelSource::path("basic")).is_ok());
        let refusal = fallback.refusal(Path::new("basic")).expect("it loads at a lower level only");
        assert!(refusal.level == OptLevel::Basic && refusal.cause.contains("it crashes"), "{refusal:?}");
        // From then on, nothing is trusted.
        let refused = open(ModelSource::path("disabled")).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("disabled") && refused.contains("it crashes"), "{refused}");
        assert!(open(ModelSource::bytes(&[])).is_err());
    }

    #[test]
    fn only_the_named_files_are_opened_at_the_highest_level_that_loads() {
        use OptLevel::{All, Basic, Disabled, Extended};
        let picky = Arc::new(Picky(Mutex::default()));
        let files = ["basic", "disabled", "all", "never", "missing"].map(PathBuf::from).to_vec();
        let fallback = Fallback::new(picky.clone(), files);
        let tried = |file, level| tried(&fallback, &picky, file, level);
        assert_eq!(tried("all", All), (vec![All], None));
        assert_eq!(tried("basic", Disabled), (vec![Disabled], None));
        assert_eq!(fallback.refusal(Path::new("basic")), None);
        assert_eq!(tried("basic", All), (vec![All, Extended, Basic], None));
        assert_eq!(fallback.refusal(Path::new("basic")), Some(Refusal { level: Basic, cause: "not at extended".into() }));
        let started = |file: &str| fallback.start_up(Path::new(file), &Feeds::new(), &SessionOptions::default()).unwrap();
        assert_eq!(started("basic").map(|startup| startup.load_ns), Some(Basic as u64));
        assert_eq!(started("all").map(|startup| startup.load_ns), Some(All as u64));
        // What is known is not tried again.
        assert_eq!(tried("basic", All), (vec![Basic], None));
        assert_eq!(tried("basic", Disabled), (vec![Disabled], None));
        assert_eq!(tried("disabled", Extended), (vec![Extended, Basic, Disabled], None));
        let (levels, why) = tried("never", All);
        assert_eq!((levels, why.as_deref()), (vec![All, Extended, Basic, Disabled], Some("picky cannot load never: not at disabled")));
        // Only a refusal is a reason to ask for less, and only of these files.
        assert_eq!(tried("missing", All).0, [All]);
        assert!(picky.open(ModelSource::path("basic"), &SessionOptions::default()).is_err());
        let other = Fallback::new(picky.clone(), Vec::new());
        assert!(other.open(ModelSource::path("basic"), &SessionOptions::default()).is_err());
        assert!(fallback.open(ModelSource::bytes(&[]), &SessionOptions::default()).is_err());
        let refused = ["all", "never", "missing"].map(|file| fallback.refusal(Path::new(file)));
        assert_eq!(refused, [None, None, None]);
    }
}
