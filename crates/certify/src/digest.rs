//! What identifies the files of a model.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::CertifyError;

/// A BLAKE3 digest of 256 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(blake3::hash(bytes).into())
    }

    /// The digest that is written as 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Hash> {
        if text.len() != 64 || text.bytes().any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Hash(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// Its path in the model's folder; empty for the model file itself, which may be renamed.
    pub place: String,
    /// Its length.
    pub bytes: u64,
    /// Its content.
    pub hash: Hash,
}

impl FileDigest {
    /// Reads the file at `path`, block by block.
    pub fn of(path: &Path, place: String) -> Result<FileDigest, CertifyError> {
        let failed = |source: io::Error| CertifyError::Read { path: path.to_path_buf(), source };
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
        Ok(FileDigest { place, bytes: hasher.count(), hash: Hash(hasher.finalize().into()) })
    }
}

/// All files of a model: the model file, then its external data by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelDigest(pub Vec<FileDigest>);

impl ModelDigest {
    /// Reads the files of the model at `path`, block by block; one file if it is malformed.
    pub fn of(path: &Path) -> Result<ModelDigest, CertifyError> {
        let mut files = vec![FileDigest::of(path, String::new())?];
        for place in regraft_onnx::data_files(path) {
            files.push(FileDigest::of(&path.with_file_name(&place), place)?);
        }
        Ok(ModelDigest(files))
    }

    /// What differs in `found`, in words; `None` if nothing does.
    pub fn difference(&self, found: &ModelDigest) -> Option<String> {
        let pair = self.0.iter().zip(&found.0).find(|(want, have)| want != have);
        if let Some((want, have)) = pair {
            let file = if want.place.is_empty() { "its BLAKE3 digest" } else { "that of its external data" };
            return Some(format!("{file} is {}, and was {}", have.hash, want.hash));
        }
        (self != found).then(|| format!("it has {} files, and had {}", found.0.len(), self.0.len()))
    }
}
