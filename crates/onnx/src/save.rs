//! Saving: a temporary file beside the target, then a rename, so that a half-written model is never seen.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use prost::Message;
use regraft_ir::Graph;
use tempfile::NamedTempFile;

use crate::error::WriteError;
use crate::external;
use crate::model::Model;
use crate::write::{WriteOptions, Written};

/// A model that takes more bytes is saved with external data, some way below protobuf's own limit of 2 GiB.
const EXTERNAL_ABOVE: u64 = 1_932_735_283;

impl Model {
    /// Writes `graph` to a file. Returns what was written.
    ///
    /// If weights came from external data files, or the model is larger than 1.8 GiB, they go to one new file `<name>.data` beside the
    /// model, also where the original data files lie in the same folder: the new model never depends on files of the old one. The data file
    /// is in place before the model file is; both are written under temporary names first.
    pub fn save(&self, graph: &Graph, path: impl AsRef<Path>, options: &WriteOptions) -> Result<Written, WriteError> {
        let written = self.write(graph, options)?;
        written.save(path, self.has_external_data())?;
        Ok(written)
    }
}

impl Written {
    /// Saves the model, with its weights in `<name>.data` if `external` or if it is too large for one file. Existing files are replaced.
    pub fn save(&self, path: impl AsRef<Path>, external: bool) -> Result<(), WriteError> {
        let path = path.as_ref();
        if !external && self.size() <= EXTERNAL_ABOVE {
            let model = in_folder(path, |out| out.write_all(&self.proto.encode_to_vec()))?;
            return put(model, path);
        }
        let mut file_name = path.file_name().map(OsString::from).unwrap_or_default();
        file_name.push(".data");
        let data_path = path.with_file_name(&file_name);
        let mut proto = self.proto.clone();
        let location = file_name.to_string_lossy().into_owned();
        let data = in_folder(&data_path, |out| external::spill(&mut proto, &location, out))?;
        let model = in_folder(path, |out| out.write_all(&proto.encode_to_vec()))?;
        put(data, &data_path)?;
        put(model, path)
    }
}

/// A temporary file in the target's folder, complete and on disk.
fn in_folder(target: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<NamedTempFile, WriteError> {
    let fail = |source| WriteError::Io { path: target.to_path_buf(), source };
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let file = tempfile::Builder::new().prefix(".regraft-").tempfile_in(folder).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out).map_err(fail)?;
    let file = out.into_inner().map_err(|e| fail(e.into_error()))?;
    file.as_file().sync_all().map_err(fail)?;
    Ok(file)
}

fn put(file: NamedTempFile, target: &Path) -> Result<(), WriteError> {
    let fail = |source| WriteError::Io { path: target.to_path_buf(), source };
    permit(file.as_file()).map_err(fail)?;
    file.persist(target).map_err(|e| fail(e.error))?;
    if let Some(folder) = target.parent().filter(|p| !p.as_os_str().is_empty())
        && let Ok(folder) = File::open(folder)
    {
        // Not every file system can sync a folder; the rename itself has happened.
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Temporary files are private; a model is not.
#[cfg(unix)]
fn permit(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn permit(_: &File) -> io::Result<()> {
    Ok(())
}
