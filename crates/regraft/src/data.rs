//! Inputs of the user's own: `--data`.

use std::path::{Path, PathBuf};

use regraft_runtime::{Feeds, HostTensor, read_tensor_file};

use crate::error::Failure;
use crate::sizes::Sizes;

/// Reads `--data`: each a folder with one `.npy` or `.pb` file per input, or `input:file`; all `input:file` together are one set.
pub fn load_data(words: &[String], sizes: &Sizes) -> Result<Vec<(String, Feeds)>, Failure> {
    let mut sets = Vec::new();
    let mut single = Feeds::new();
    for word in words {
        let path = Path::new(word);
        if path.is_dir() {
            sets.push((word.clone(), folder(path, sizes)?));
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
        single.insert(input.clone(), read(&file, &input, sizes)?);
    }
    if !single.is_empty() {
        complete(&single, sizes, "--data")?;
        sets.push(("data".to_string(), single));
    }
    Ok(sets)
}

fn folder(path: &Path, sizes: &Sizes) -> Result<Feeds, Failure> {
    let mut feeds = Feeds::new();
    for input in &sizes.inputs {
        let file = ["npy", "pb"].iter().map(|ext| path.join(format!("{}.{ext}", input.name.replace('/', "_")))).find(|f| f.exists());
        if let Some(file) = file {
            feeds.insert(input.name.clone(), read(&file, &input.name, sizes)?);
        }
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

fn read(file: &Path, input: &str, sizes: &Sizes) -> Result<HostTensor, Failure> {
    let named = read_tensor_file(file).map_err(|e| Failure::new(e).hint("give a .npy or .pb file that holds one tensor"))?;
    let spec = sizes.inputs.iter().find(|i| i.name == input).ok_or_else(|| {
        let names: Vec<&str> = sizes.inputs.iter().map(|i| i.name.as_str()).collect();
        Failure::new(format!("--data names `{input}`, which is no input")).hint(format!("inputs: {}", names.join(", ")))
    })?;
    if named.tensor.dtype() != spec.dtype || named.tensor.shape() != spec.shape {
        let (have, want) = (format!("{}{:?}", named.tensor.dtype(), named.tensor.shape()), format!("{}{:?}", spec.dtype, spec.shape));
        return Err(
            Failure::new(format!("{} holds {have}, input `{input}` is {want}", file.display())).hint("give matching sizes with --shape")
        );
    }
    Ok(named.tensor)
}
