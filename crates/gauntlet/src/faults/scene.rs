//! A folder with a model, and the judgement of what a run leaves behind in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use regraft::agreement::compare;
use regraft_onnx::{Model, WriteOptions};
use regraft_runtime::{
    Feeds, Fill, FillOptions, HostTensor, InputSpec, ModelSource, OptLevel, Runtime, SessionOptions, Store, fill_inputs,
};
use tempfile::TempDir;

use crate::decoder;

/// Width and size of the models: large enough that writing them takes some time.
const WIDTH: i64 = 192;
const GIGABYTES: f64 = 0.003;
/// Tokens to run them at.
pub const TOKENS: usize = 4;
/// Relative difference allowed between the output and its input.
const TOLERANCE: f64 = 1e-3;

/// The models that all scenes are copied from, and their results.
pub struct Models {
    folder: TempDir,
    runtime: Arc<dyn Runtime>,
    feeds: Feeds,
    want: Vec<HostTensor>,
}

/// The initial state of a scene.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The model has its weights in a separate file.
    pub external: bool,
    /// The output exists already, from an earlier run on another model.
    pub old: bool,
}

/// A separate folder in which one run is disturbed.
pub struct Scene<'a> {
    models: &'a Models,
    folder: TempDir,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// The state of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// There is none.
    Absent,
    /// The previous one.
    Old,
    /// A complete model equivalent to the input.
    Complete,
}

impl Models {
    /// Makes the models.
    pub fn new(seed: u64) -> Result<Models> {
        let folder = tempfile::tempdir()?;
        let runtime = regraft::runtime::RuntimeChoice::default().load().context("the runtime cannot be loaded")?;
        for (name, seed) in [("external", seed), ("old", seed.wrapping_add(1))] {
            decoder::write(&folder.path().join(name), GIGABYTES, WIDTH, seed)?;
        }
        let model = Model::read(folder.path().join("external/decoder.onnx"))?;
        let bytes = model.write(model.graph(), &WriteOptions::default())?.to_bytes()?;
        std::fs::write(folder.path().join("embedded.onnx"), &bytes)?;
        let old = Model::read(folder.path().join("old/decoder.onnx"))?;
        for (name, external) in [("old-external", true), ("old-embedded", false)] {
            std::fs::create_dir(folder.path().join(name))?;
            old.write(old.graph(), &WriteOptions::default())?.save(folder.path().join(name).join("f.onnx"), external)?;
        }
        let ids = InputSpec { name: "ids".into(), dtype: regraft_runtime::DType::I64, shape: vec![1, TOKENS] };
        let feeds = fill_inputs(Fill::Normal, &[ids], &FillOptions { seed, ..FillOptions::default() })?;
        let plain = SessionOptions { level: OptLevel::Disabled, ..SessionOptions::default() };
        let want = runtime.open(ModelSource::bytes(&bytes), &plain)?.run(&feeds)?;
        Ok(Models { folder, runtime, feeds, want })
    }

    /// A fresh scene.
    pub fn scene(&self, setting: Setting) -> Result<Scene<'_>> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("out"))?;
        std::fs::create_dir(folder.path().join("tmp"))?;
        let from = self.folder.path();
        if setting.external {
            copy(&from.join("external"), folder.path())?;
        } else {
            std::fs::copy(from.join("embedded.onnx"), folder.path().join("decoder.onnx"))?;
        }
        if setting.old {
            copy(&from.join(if setting.external { "old-external" } else { "old-embedded" }), &folder.path().join("out"))?;
        }
        let mut before = BTreeMap::new();
        for place in [folder.path().to_path_buf(), folder.path().join("out")] {
            for path in files(&place)? {
                before.insert(path.clone(), std::fs::read(&path)?);
            }
        }
        Ok(Scene { models: self, folder, before })
    }
}

impl Scene<'_> {
    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of the output.
    pub fn output(&self) -> PathBuf {
        self.path("out/f.onnx")
    }

    /// Number of files in the output's folder before the run.
    pub fn outputs_before(&self) -> usize {
        let folder = self.path("out");
        self.before.keys().filter(|path| path.parent() == Some(&folder)).count()
    }

    /// Fails if anything was lost or half-written.
    pub fn judge(&self) -> Result<Output> {
        for (path, bytes) in self.before.iter().filter(|(path, _)| path.parent() == Some(self.folder.path())) {
            let now = std::fs::read(path).with_context(|| format!("the input {} is gone", path.display()))?;
            if now != *bytes {
                bail!("the input {} was changed", path.display());
            }
        }
        let output = self.output();
        if !output.exists() {
            if self.before.contains_key(&output) {
                bail!("the old output is gone");
            }
            self.no_strays()?;
            return Ok(Output::Absent);
        }
        self.no_strays()?;
        if self.before.get(&output).is_some_and(|old| std::fs::read(&output).is_ok_and(|now| now == *old)) {
            for (path, bytes) in self.before.iter().filter(|(path, _)| path.parent() == output.parent()) {
                if std::fs::read(path).ok().as_ref() != Some(bytes) {
                    bail!("the old output stayed, but its {} was changed", path.display());
                }
            }
            return Ok(Output::Old);
        }
        let model = Model::read(&output).context("the output cannot be read")?;
        let mut session =
            self.models.runtime.open(ModelSource::path(&output), &SessionOptions::default()).context("the output does not load")?;
        let have = session.run(&self.models.feeds)?;
        let names: Vec<String> = model.outputs().into_iter().map(|o| o.name).collect();
        let agreement = compare(&names, &self.models.want, &have);
        if !agreement.within(TOLERANCE) {
            bail!("the output computes something else: {agreement:?}");
        }
        Ok(Output::Complete)
    }

    /// Checks for temporary files next to the output.
    fn no_strays(&self) -> Result<()> {
        let stray = files(&self.path("out"))?.into_iter().find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            !(name.starts_with("f.onnx") || name == "f.certificate") || name.contains("tmp")
        });
        match stray {
            Some(path) => bail!("{} was left behind", path.display()),
            None => Ok(()),
        }
    }
}

/// Fails if the store cannot be opened or is damaged. A missing store is sound.
pub fn judge_store(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    match Store::open(path).context("the store cannot be opened")?.check()? {
        None => Ok(()),
        Some(damage) => bail!("the store is damaged: {damage}"),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for path in files(from)? {
        std::fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}
