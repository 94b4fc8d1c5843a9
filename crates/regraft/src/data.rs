//! Inputs of the user's own: `--data`.

use std::path::{Path, PathBuf};

use regraft_runtime::{Feeds, HostTensor, read_npz, read_tensor_file};

use crate::error::Failure;
use crate::sizes::Sizes;

/// What the folders of ONNX's own test data are called.
const TEST_DATA: &str = "test_data_set_";

/// Reads `--data`: each word is one set of inputs or, as `input:file`, a part of one.
///
/// A set is an `.npz` archive with an array per input; a folder with one `.npy` or `.pb` file per input, named after it or, as ONNX names its test
/// data, `input_0.pb`, `input_1.pb` in the order of the inputs; or each folder `test_data_set_*` in a folder.
pub fn load_data(words: &[String], sizes: &Sizes) -> Result<Vec<(String, Feeds)>, Failure> {
    let mut sets = Vec::new();
    let mut single = Feeds::new();
    for word in words {
        let path = Path::new(word);
        if path.is_dir() {
            for folder in folders(path)? {
                sets.push((folder.display().to_string(), from_folder(&folder, sizes)?));
            }
            continue;
        }
        if is_archive(path) {
            sets.push((word.clone(), from_archive(path, sizes)?));
            continue;
        }
        let (input, file) = match word.split_once(':') {
            Some((input, file)) if sizes.inputs.iter().any(|i| i.name == input) => (input.to_string(), PathBuf::from(file)),
            _ if sizes.inputs.len() == 1 => (sizes.inputs[0].name.clone(), path.to_path_buf()),
            _ => {
                return Err(
                    Failure::new(format!("--data `{word}` does not say which input it is")).hint("write input:file.npy, or name a folder")
                );
            }
        };
        single.insert(input.clone(), from_file(&file, &input, sizes)?);
    }
    if !single.is_empty() {
        complete(&single, sizes, "--data")?;
        sets.push(("data".to_string(), single));
    }
    Ok(sets)
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"))
}

/// The folders of test data in a folder, in the order of their names, or else the folder itself.
fn folders(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |e| Failure::new(format!("{}: {e}", path.display())).hint("name a folder that can be read");
    let mut found = Vec::new();
    for entry in path.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_string_lossy().starts_with(TEST_DATA) && entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(if found.is_empty() { vec![path.to_path_buf()] } else { found })
}

fn from_folder(path: &Path, sizes: &Sizes) -> Result<Feeds, Failure> {
    let mut feeds = Feeds::new();
    for (at, input) in sizes.inputs.iter().enumerate() {
        let name = input.name.replace('/', "_");
        let names = [format!("{name}.npy"), format!("{name}.pb"), format!("input_{at}.pb"), format!("input_{at}.npy")];
        if let Some(file) = names.iter().map(|name| path.join(name)).find(|file| file.exists()) {
            feeds.insert(input.name.clone(), from_file(&file, &input.name, sizes)?);
        }
    }
    complete(&feeds, sizes, &path.display().to_string())?;
    Ok(feeds)
}

fn from_archive(path: &Path, sizes: &Sizes) -> Result<Feeds, Failure> {
    let arrays = read_npz(path).map_err(|e| Failure::new(e).hint("save the inputs with numpy.savez(file, name=array)"))?;
    let mut feeds = Feeds::new();
    for array in arrays {
        let name = array.name.unwrap_or_default();
        let place = format!("{}: array `{name}`", path.display());
        feeds.insert(name.clone(), fitting(array.tensor, &place, &name, sizes)?);
    }
    complete(&feeds, sizes, &path.display().to_string())?;
    Ok(feeds)
}

fn complete(feeds: &Feeds, sizes: &Sizes, place: &str) -> Result<(), Failure> {
    match sizes.inputs.iter().find(|i| feeds.get(&i.name).is_none()) {
        Some(missing) => {
            Err(Failure::new(format!("{place} gives no value for input `{}`", missing.name)).hint(format!("add {}.npy", missing.name)))
        }
        None => Ok(()),
    }
}

fn from_file(file: &Path, input: &str, sizes: &Sizes) -> Result<HostTensor, Failure> {
    let named = read_tensor_file(file).map_err(|e| Failure::new(e).hint("give a .npy or .pb file that holds one tensor"))?;
    fitting(named.tensor, &file.display().to_string(), input, sizes)
}

/// The tensor, if it has the input's type.
fn fitting(tensor: HostTensor, place: &str, input: &str, sizes: &Sizes) -> Result<HostTensor, Failure> {
    let spec = sizes.inputs.iter().find(|i| i.name == input).ok_or_else(|| {
        let names: Vec<&str> = sizes.inputs.iter().map(|i| i.name.as_str()).collect();
        Failure::new(format!("--data names `{input}`, which is no input")).hint(format!("inputs: {}", names.join(", ")))
    })?;
    if tensor.dtype() != spec.dtype || tensor.shape() != spec.shape {
        let (have, want) = (format!("{}{:?}", tensor.dtype(), tensor.shape()), format!("{}{:?}", spec.dtype, spec.shape));
        return Err(Failure::new(format!("{place} holds {have}, input `{input}` is {want}")).hint("give matching sizes with --shape"));
    }
    Ok(tensor)
}
