//! Prices that were recorded on another machine: the file, and whether it is about this run.

use std::path::{Path, PathBuf};

use regraft_certify::ModelDigest;
use regraft_cost::{RecordedModel, Recording, RecordingError};

use crate::error::Failure;
use crate::render;
use crate::sizes::Sizes;

/// A recording, and where it was read.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The file.
    pub file: PathBuf,
    /// What it holds.
    pub recording: Recording,
}

impl Recorded {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no recording, not a whole one, or one of another version.
    pub fn read(file: &Path) -> Result<Recorded, Failure> {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::new(format!("cannot read {}: {e}", file.display())).hint("check the path after profile:"))?;
        let recording = Recording::parse(&text).map_err(|why| {
            let hint = match why {
                RecordingError::Version { .. } => "record the model again with this version of regraft, or use the one that wrote the file",
                _ => "name a file that `regraft cost record MODEL -o FILE` wrote",
            };
            Failure::new(format!("{} {why}", file.display())).hint(hint)
        })?;
        Ok(Recorded { file: file.to_path_buf(), recording })
    }

    /// The runtime that it was recorded under, without its version.
    pub fn backend(&self) -> &str {
        let runtime = &self.recording.target.runtime;
        runtime.split_once(' ').map_or(runtime, |(name, _)| name)
    }

    /// Device, runtime and threads, for people.
    pub fn place(&self) -> String {
        place(&self.recording.device, &self.recording.target.runtime, self.recording.target.threads)
    }

    /// Fails if it was recorded under another runtime than this one; with a warning if only the
    /// versions differ.
    pub fn check_runtime(&self, (name, version): (&str, &str)) -> Result<Option<String>, Failure> {
        let (file, recorded) = (self.file.display(), &self.recording.target.runtime);
        if self.backend() != name {
            let failure = Failure::new(format!("{file} was recorded under {recorded}, and this run is for {name} {version}"));
            return Err(failure.hint(format!("name that runtime with --target {}", self.backend())));
        }
        let here = format!("{name} {version}");
        Ok((*recorded != here).then(|| format!("{file} was recorded under {recorded}, and models are checked under {here}")))
    }

    /// The model as it was recorded at each of these sizes. Fails if it was not.
    pub fn models(&self, model: &Path, digest: &[String], sizes: &[&Sizes]) -> Result<Vec<&RecordedModel>, Failure> {
        let hint = |sizes: &str| format!("on that device: regraft cost record {}{sizes} -o FILE", model.display());
        let file = self.file.display();
        let known: Vec<&RecordedModel> = self.recording.models.iter().filter(|known| known.digest == digest).collect();
        if known.is_empty() {
            let names: Vec<&str> = self.recording.models.iter().map(|model| model.name.as_str()).collect();
            let failure = Failure::new(format!("{file} is not about {}: it was recorded with {}", model.display(), names.join(", ")));
            return Err(failure.hint(hint("")));
        }
        let at = |sizes: &&Sizes| {
            let wanted: Vec<(String, Vec<usize>)> = sizes.inputs.iter().map(|input| (input.name.clone(), input.shape.clone())).collect();
            known.iter().find(|known| known.shapes == wanted).copied().ok_or_else(|| {
                let shapes: Vec<String> = known.iter().map(|known| shown(&known.shapes)).collect();
                let failure =
                    Failure::new(format!("{file} was recorded at {}, and this run is at {}", shapes.join(" and at "), shown(&wanted)));
                failure
                    .hint(hint(&wanted.iter().map(|(name, sizes)| format!(" --shape {}", render::shape(name, sizes))).collect::<String>()))
            })
        };
        sizes.iter().map(at).collect()
    }
}

/// Device, runtime and threads, for people.
pub(crate) fn place(device: &str, runtime: &str, threads: u32) -> String {
    format!("{device} ({runtime}, {})", render::count(threads as usize, "thread"))
}

fn shown(shapes: &[(String, Vec<usize>)]) -> String {
    shapes.iter().map(|(name, sizes)| render::shape(name, sizes)).collect::<Vec<_>>().join(" ")
}

/// BLAKE3 digests of a model's file, and of those of its weights.
///
/// # Errors
///
/// A file cannot be read.
pub fn digest(model: &Path) -> Result<Vec<String>, Failure> {
    Ok(hashes(&ModelDigest::of(model)?))
}

/// The digest of each file of a model.
pub(crate) fn hashes(digest: &ModelDigest) -> Vec<String> {
    digest.0.iter().map(|file| file.hash.to_string()).collect()
}
