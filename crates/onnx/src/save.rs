//! Saving is atomic; a model's weights are written before the model.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use prost::Message;
use regraft_ir::Graph;

use crate::draft::{Draft, destination, folder_of, is_stream};
use crate::error::WriteError;
use crate::external;
use crate::model::Model;
use crate::proto::ModelProto;
use crate::write::{WriteOptions, Written};

/// Larger models are saved with external data, well below protobuf's own limit of 2 GiB.
const EXTERNAL_ABOVE: u64 = 1_932_735_283;

/// Suffixes of a model's weight file, appended to the model's name. A model being replaced keeps
/// its weights until the new one is complete, so there are two.
const DATA: [&str; 2] = [".data", ".data2"];

impl Model {
    /// Writes `graph` to a file. Returns what was written.
    ///
    /// If weights came from external data files, or the model is larger than 1.8 GiB, they go to
    /// one new file `<name>.data` beside the model, even if the original data files are in the same
    /// folder: the new model never depends on files of the old one. The data file is in place
    /// before the model file is; neither has its name before it is complete.
    pub fn save(&self, graph: &Graph, path: impl AsRef<Path>, options: &WriteOptions) -> Result<Written, WriteError> {
        let written = self.write(graph, options)?;
        written.save(path, self.has_external_data())?;
        Ok(written)
    }
}

impl Written {
    /// Saves the model, with its weights in `<name>.data` if `external` or if it is too large for
    /// one file. Existing files are replaced.
    ///
    /// At every moment the model at `path` is the old or the new one, with all its weights: if the
    /// old one has its weights in `<name>.data`, the new ones are in `<name>.data2`, and vice
    /// versa. The old weights are removed last.
    pub fn save(&self, path: impl AsRef<Path>, external: bool) -> Result<(), WriteError> {
        let named = path.as_ref();
        let fail = |source| WriteError::Io { path: named.to_path_buf(), source };
        let path = &destination(named).map_err(fail)?;
        let old = if is_stream(path).map_err(fail)? { Vec::new() } else { data_of(path) };
        let mut data = None;
        let model = if external || self.size() > EXTERNAL_ABOVE {
            takes_weights(named).map_err(fail)?;
            let name = DATA.iter().map(|ending| beside(path, ending)).find(|name| !old.contains(name)).unwrap_or_default();
            let mut proto = self.proto.clone();
            let location = name.to_string_lossy().into_owned();
            let target = path.with_file_name(&name);
            let draft = draft(&target, |out| external::spill(&mut proto, &location, out))?;
            data = Some((draft, target, name));
            draft_model(path, &proto)?
        } else {
            draft_model(path, &self.proto)?
        };
        let mut new = None;
        if let Some((draft, target, name)) = data {
            draft.put().map_err(|source| WriteError::Io { path: target, source })?;
            new = Some(name);
        }
        model.put().map_err(|source| WriteError::Io { path: path.to_path_buf(), source })?;
        for name in old.into_iter().filter(|name| new.as_ref() != Some(name)) {
            // The new model is complete; leftover old weights only take space.
            let _ = std::fs::remove_file(path.with_file_name(name));
        }
        Ok(())
    }
}

/// Whether weights can lie beside a model at this path, where readers of the model find them.
///
/// # Errors
///
/// Pipes, devices, and symbolic links into another folder.
pub fn takes_weights(path: &Path) -> io::Result<()> {
    let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let target = destination(path)?;
    if is_stream(&target)? {
        return refuse("its weights lie in a file beside it, which a pipe or a device has not");
    }
    if folder_of(path).canonicalize()? != folder_of(&target).canonicalize()? {
        return refuse("its weights lie in a file beside it, and this is a link into another folder");
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> OsString {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(ending);
    name
}

/// The weight files of a model at `path`, among those that [`Written::save`] creates for this name.
fn data_of(path: &Path) -> Vec<OsString> {
    let locations = external::data_files(path);
    let named = |name: &OsString| locations.iter().any(|location| Path::new(location) == Path::new(name));
    DATA.iter().map(|ending| beside(path, ending)).filter(named).collect()
}

fn draft_model(path: &Path, proto: &ModelProto) -> Result<Draft, WriteError> {
    draft(path, |out| out.write_all(&proto.encode_to_vec()))
}

/// A file that can become `target`, complete and on disk.
fn draft(target: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<Draft, WriteError> {
    let fail = |source| WriteError::Io { path: PathBuf::from(target), source };
    let mut draft = Draft::of(target).map_err(fail)?;
    let mut out = BufWriter::with_capacity(1 << 20, draft.file());
    write(&mut out).and_then(|()| out.flush()).map_err(fail)?;
    drop(out);
    draft.settle().map_err(fail)?;
    Ok(draft)
}
