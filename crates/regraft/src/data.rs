//! The user's own inputs: `--data`.

use std::path::{Path, PathBuf};

use regraft_onnx::Model;
use regraft_runtime::{Feeds, HostTensor, read_npz, read_tensor_file};

use crate::error::Failure;
use crate::sizes::{Sizes, declared};
use crate::units::{ShapeArg, Size};

/// What ONNX calls its folders of test data.
const TEST_DATA: &str = "test_data_set_";

/// Sets of values for all inputs, each with its name.
#[derive(Debug, Default)]
pub struct Data {
    sets: Vec<(String, Feeds)>,
}

impl Data {
    /// Reads `--data`: each word is one set of inputs or, as `input:file`, part of one.
    ///
    /// A set is an `.npz` archive with an array per input; a folder with one `.npy` or `.pb` file
    /// per input, named after it or, as ONNX names its test data, `input_0.pb`, `input_1.pb` in the
    /// order of the inputs; or each folder `test_data_set_*` in a folder.
    pub fn read(words: &[String], model: &Model) -> Result<Data, Failure> {
        let inputs: Vec<String> = declared(model).into_iter().map(|info| info.name).collect();
        let mut sets = Vec::new();
        let mut single = Feeds::new();
        for word in words {
            let path = Path::new(word);
            if path.is_dir() {
                for folder in folders(path)? {
                    sets.push((folder.display().to_string(), from_folder(&folder, &inputs)?));
                }
                continue;
            }
            if is_archive(path) {
                sets.push((word.clone(), from_archive(path, &inputs)?));
                continue;
            }
            let (input, file) = match (word.split_once(':'), inputs.as_slice()) {
                (Some((input, file)), _) if inputs.iter().any(|i| i == input) => (input.to_string(), PathBuf::from(file)),
                (Some((input, file)), _) if !path.exists() && Path::new(file).exists() => {
                    return Err(
                        Failure::new(format!("--data names `{input}`, which is no input")).hint(format!("inputs: {}", inputs.join(", ")))
                    );
                }
                (_, [only]) => (only.clone(), path.to_path_buf()),
                _ if !path.exists() => {
                    let failure = Failure::new(format!("--data names {word}, which is neither a file nor a folder"));
                    return Err(failure.hint(format!("check the path; inputs: {}", inputs.join(", "))));
                }
                _ => {
                    return Err(Failure::new(format!("--data `{word}` does not say which input it is"))
                        .hint("write input:file.npy, or name a folder"));
                }
            };
            single.insert(input, from_file(&file)?);
        }
        if !single.is_empty() {
            complete(&single, &inputs, "--data")?;
            sets.push(("data".to_string(), single));
        }
        Ok(Data { sets })
    }

    /// The sizes from `--shape` and, for inputs it does not mention, those of the first set. A
    /// symbol bound by `--bind` keeps its value.
    pub fn sizes(&self, model: &Model, shapes: &[ShapeArg], binds: &[(String, i64)]) -> Vec<ShapeArg> {
        let mut all = shapes.to_vec();
        let Some((_, feeds)) = self.sets.first() else { return all };
        for info in declared(model).iter().filter(|info| !shapes.iter().any(|shape| shape.input == info.name)) {
            let Some(have) = feeds.get(&info.name).map(HostTensor::shape) else { continue };
            // Sizes that do not fit are reported where the set is examined.
            if have.len() == info.dims.len() && info.dims.iter().zip(have).all(|(want, have)| want.is_none_or(|want| want == *have)) {
                let bound = |symbol: &String| binds.iter().any(|(name, _)| name == symbol);
                let size =
                    |(have, symbol): (&usize, &String)| if bound(symbol) { Size::Symbol(symbol.clone()) } else { Size::Known(*have) };
                all.push(ShapeArg { input: info.name.clone(), sizes: have.iter().zip(&info.symbols).map(size).collect() });
            }
        }
        all
    }

    /// The sets, if all of them have the types of the inputs and these sizes.
    pub fn fitting(&self, sizes: &Sizes) -> Result<Vec<(String, Feeds)>, Failure> {
        for (name, feeds) in &self.sets {
            for spec in &sizes.inputs {
                let Some(tensor) = feeds.get(&spec.name) else { continue };
                if tensor.dtype() != spec.dtype || tensor.shape() != spec.shape {
                    let (have, want) = (format!("{}{:?}", tensor.dtype(), tensor.shape()), format!("{}{:?}", spec.dtype, spec.shape));
                    let failure = Failure::new(format!("{name} holds {have} for input `{}`, which is {want}", spec.name));
                    return Err(failure.hint("give data of one type and size, or matching sizes with --shape"));
                }
            }
        }
        Ok(self.sets.clone())
    }
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

fn from_folder(path: &Path, inputs: &[String]) -> Result<Feeds, Failure> {
    let mut feeds = Feeds::new();
    for (at, input) in inputs.iter().enumerate() {
        let name = input.replace('/', "_");
        let names = [format!("{name}.npy"), format!("{name}.pb"), format!("input_{at}.pb"), format!("input_{at}.npy")];
        if let Some(file) = names.iter().map(|name| path.join(name)).find(|file| file.exists()) {
            feeds.insert(input.clone(), from_file(&file)?);
        }
    }
    complete(&feeds, inputs, &path.display().to_string())?;
    Ok(feeds)
}

fn from_archive(path: &Path, inputs: &[String]) -> Result<Feeds, Failure> {
    let arrays = read_npz(path).map_err(|e| Failure::new(e).hint("save the inputs with numpy.savez(file, name=array)"))?;
    let mut feeds = Feeds::new();
    for array in arrays {
        let name = array.name.unwrap_or_default();
        if !inputs.contains(&name) {
            let failure = Failure::new(format!("{}: the array `{name}` is no input", path.display()));
            return Err(failure.hint(format!("inputs: {}", inputs.join(", "))));
        }
        feeds.insert(name, array.tensor);
    }
    complete(&feeds, inputs, &path.display().to_string())?;
    Ok(feeds)
}

fn complete(feeds: &Feeds, inputs: &[String], place: &str) -> Result<(), Failure> {
    match inputs.iter().find(|input| feeds.get(input).is_none()) {
        Some(missing) => Err(Failure::new(format!("{place} gives no value for input `{missing}`")).hint(format!("add {missing}.npy"))),
        None => Ok(()),
    }
}

fn from_file(file: &Path) -> Result<HostTensor, Failure> {
    let named = read_tensor_file(file).map_err(|e| Failure::new(e).hint("give a .npy or .pb file that holds one tensor"))?;
    Ok(named.tensor)
}
