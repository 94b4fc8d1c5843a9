//! Compiled models on disk: one that is opened again is not compiled again, which takes a fifth of
//! the time.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::ModelSource;

/// Bytes that all of them may take.
const MOST: u64 = 2 << 30;
/// A model that was in memory, in its folder.
const MODEL: &str = "model.onnx";

/// A folder with a folder for each model, which lasts as long as the runtime. What was used longest
/// ago makes room for others.
pub(super) struct Cache {
    folder: TempDir,
    most: u64,
    /// The folders and the bytes that they take, the one used last at the end.
    models: Mutex<VecDeque<(PathBuf, u64)>>,
}

impl Cache {
    /// An empty one; `None` if there is no place for temporary files.
    pub fn new() -> Option<Cache> {
        let folder = tempfile::Builder::new().prefix("regraft-openvino-").tempdir().ok()?;
        Some(Cache { folder, most: MOST, models: Mutex::default() })
    }

    /// A model's folder.
    pub fn place(&self, model: ModelSource<'_>) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        match model {
            ModelSource::Path(path) => hasher.update(path.as_os_str().as_encoded_bytes()),
            ModelSource::Bytes { bytes, base } => {
                let base = base.map_or(&[][..], |base| base.as_os_str().as_encoded_bytes());
                // So that the one cannot be mistaken for the other.
                hasher.update(&bytes.len().to_le_bytes()).update(bytes).update(base)
            }
        };
        self.folder.path().join(&hasher.finalize().to_hex()[..32])
    }

    /// Notes that this folder was used, and removes others while all take too much.
    pub fn used(&self, place: PathBuf) {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        models.retain(|(other, _)| *other != place);
        let files = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        models.push_back((place, bytes));
        while models.iter().map(|(_, bytes)| bytes).sum::<u64>() > self.most {
            let Some((oldest, _)) = models.pop_front() else { break };
            // What cannot be removed now is removed with the whole.
            let _ = std::fs::remove_dir_all(oldest);
        }
    }
}

/// The file of a model in memory in its folder: what is compiled from a file need not be read when
/// it is opened again, and reading from memory takes OpenVINO longer than that.
pub(super) fn file(place: &Path, bytes: &[u8]) -> std::io::Result<PathBuf> {
    let file = place.join(MODEL);
    if !file.exists() {
        std::fs::create_dir_all(place)?;
        let mut new = tempfile::NamedTempFile::new_in(place)?;
        new.write_all(bytes)?;
        new.persist(&file)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let cache = Cache { most: 100, ..Cache::new().unwrap() };
        let place = |name: &str| cache.folder.path().join(name);
        let put = |name: &str, bytes: usize| {
            std::fs::create_dir_all(place(name)).unwrap();
            std::fs::write(place(name).join("blob"), vec![0; bytes]).unwrap();
            cache.used(place(name));
        };
        put("a", 40);
        put("b", 40);
        cache.used(place("a"));
        put("c", 40);
        let held = |name: &str| place(name).exists();
        assert!(held("a") && !held("b") && held("c"));
        put("large", 101);
        assert!(["a", "c", "large"].iter().all(|name| !held(name)));
        let folder = cache.folder.path().to_path_buf();
        drop(cache);
        assert!(!folder.exists());
    }

    #[test]
    fn models_have_folders_of_their_own() {
        let cache = Cache::new().unwrap();
        let places = [ModelSource::bytes(b"a"), ModelSource::bytes(b"b"), ModelSource::path("a")].map(|model| cache.place(model));
        assert!(places[0] != places[1] && places[0] != places[2]);
        assert_eq!(cache.place(ModelSource::bytes(b"a")), places[0]);
        let written = file(&places[0], b"a").unwrap();
        assert_eq!((std::fs::read(&written).unwrap(), file(&places[0], b"a").unwrap()), (b"a".to_vec(), written));
    }
}
