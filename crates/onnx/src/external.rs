//! External tensor data: memory-mapped when read, streamed into one data file when saved.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use prost::Message;

use crate::error::{LoadError, LoadFault};
use crate::mapped::{map, release};
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, StringStringEntryProto, TensorProto};

/// Tensors smaller than this stay in the model file when others move out.
const EXTERNAL_THRESHOLD: usize = 1024;

/// Alignment of large tensors in the data file, so that runtimes can map them.
const PAGE: u64 = 4096;

/// Alignment of all other tensors in the data file.
const LINE: u64 = 64;

/// Bytes copied at a time.
const BLOCK: usize = 8 << 20;

/// Calls `f` on every tensor of the model: initializers, attributes, subgraphs, functions, training
/// graphs.
pub(crate) fn each_tensor<E>(model: &mut ModelProto, f: &mut dyn FnMut(&mut TensorProto) -> Result<(), E>) -> Result<(), E> {
    if let Some(graph) = &mut model.graph {
        in_graph(graph, f)?;
    }
    for function in &mut model.functions {
        function.node.iter_mut().try_for_each(|n| in_node(n, f))?;
        function.attribute_proto.iter_mut().try_for_each(|a| in_attribute(a, f))?;
    }
    for training in &mut model.training_info {
        for graph in training.initialization.iter_mut().chain(training.algorithm.iter_mut()) {
            in_graph(graph, f)?;
        }
    }
    Ok(())
}

fn in_graph<E>(graph: &mut GraphProto, f: &mut dyn FnMut(&mut TensorProto) -> Result<(), E>) -> Result<(), E> {
    graph.initializer.iter_mut().try_for_each(&mut *f)?;
    graph.sparse_initializer.iter_mut().try_for_each(|s| in_sparse(s, f))?;
    graph.node.iter_mut().try_for_each(|n| in_node(n, f))
}

fn in_node<E>(node: &mut NodeProto, f: &mut dyn FnMut(&mut TensorProto) -> Result<(), E>) -> Result<(), E> {
    node.attribute.iter_mut().try_for_each(|a| in_attribute(a, f))
}

fn in_sparse<E>(sparse: &mut SparseTensorProto, f: &mut dyn FnMut(&mut TensorProto) -> Result<(), E>) -> Result<(), E> {
    sparse.values.iter_mut().chain(sparse.indices.iter_mut()).try_for_each(f)
}

fn in_attribute<E>(attribute: &mut AttributeProto, f: &mut dyn FnMut(&mut TensorProto) -> Result<(), E>) -> Result<(), E> {
    attribute.t.iter_mut().chain(attribute.tensors.iter_mut()).try_for_each(&mut *f)?;
    attribute.sparse_tensor.iter_mut().chain(attribute.sparse_tensors.iter_mut()).try_for_each(|s| in_sparse(s, f))?;
    attribute.g.iter_mut().chain(attribute.graphs.iter_mut()).try_for_each(|g| in_graph(g, f))
}

/// Files, relative to the model's folder, that hold a model's tensors; none if the file at `path`
/// is not a model.
pub fn data_files(path: &Path) -> BTreeSet<String> {
    let Some(mut model) = map(path).ok().and_then(|bytes| ModelProto::decode(bytes).ok()) else { return BTreeSet::new() };
    let mut locations = BTreeSet::new();
    let _ = each_tensor::<()>(&mut model, &mut |tensor| {
        locations.extend(tensor.external_data.iter().filter(|e| e.key() == "location").map(|e| e.value().to_string()));
        Ok(())
    });
    locations
}

/// Replaces every external reference by the memory-mapped bytes. Returns whether there was one.
pub(crate) fn resolve(model: &mut ModelProto, folder: Option<&Path>) -> Result<bool, LoadError> {
    let mut maps: HashMap<PathBuf, Bytes> = HashMap::new();
    let mut any = false;
    each_tensor::<LoadError>(model, &mut |tensor| {
        if tensor.data_location() != DataLocation::External {
            return Ok(());
        }
        any = true;
        let bytes = fetch(tensor, folder, &mut maps).map_err(LoadError::new)?;
        tensor.raw_data = Some(bytes);
        tensor.data_location = None;
        tensor.external_data.clear();
        Ok(())
    })?;
    Ok(any)
}

fn fetch(tensor: &TensorProto, folder: Option<&Path>, maps: &mut HashMap<PathBuf, Bytes>) -> Result<Bytes, LoadFault> {
    let entry = |key: &str| tensor.external_data.iter().find(|e| e.key() == key).map(StringStringEntryProto::value);
    let location = entry("location").unwrap_or_default();
    let bad =
        |why: &str| LoadFault::ExternalPlace { tensor: tensor.name().to_string(), location: location.to_string(), why: why.to_string() };
    let lost = || LoadFault::NoFolder { tensor: tensor.name().to_string(), location: location.to_string() };
    let folder = folder.ok_or_else(lost)?;
    let relative = Path::new(location);
    if location.is_empty() {
        return Err(bad("the location is missing"));
    }
    if relative.is_absolute() || location.starts_with('\\') {
        return Err(bad("the location is an absolute path"));
    }
    let inside = relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !inside || location.split(['/', '\\']).any(|part| part == "..") {
        return Err(bad("the location leaves the model's folder"));
    }
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| bad(&format!("the {key} `{text}` is not a number"))),
    };
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    let path = folder.join(relative);
    let whole = match maps.get(&path) {
        Some(whole) => whole.clone(),
        None => {
            let whole = map(&path).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => {
                    let need = length.unwrap_or(1).saturating_add(offset);
                    LoadFault::ExternalData { tensor: tensor.name().to_string(), file: path.clone(), need, have: 0 }
                }
                _ => bad(&e.to_string()),
            })?;
            maps.insert(path.clone(), whole.clone());
            whole
        }
    };
    let have = whole.len() as u64;
    let end = offset.saturating_add(length.unwrap_or_else(|| have.saturating_sub(offset)));
    if end > have || offset > have {
        return Err(LoadFault::ExternalData { tensor: tensor.name().to_string(), file: path, need: end.max(offset), have });
    }
    Ok(whole.slice(offset as usize..end as usize))
}

/// Streams the bytes of all large tensors to `out` and leaves references to `location` in the
/// model.
///
/// Small tensors, and tensors not stored as raw bytes, stay in the model.
pub(crate) fn spill(model: &mut ModelProto, location: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut position = 0u64;
    each_tensor(model, &mut |tensor| {
        let Some(bytes) = tensor.raw_data.take_if(|raw| raw.len() >= EXTERNAL_THRESHOLD) else { return Ok(()) };
        let align = if bytes.len() as u64 >= PAGE { PAGE } else { LINE };
        let start = position.next_multiple_of(align);
        io::copy(&mut io::Read::take(io::repeat(0), start - position), out)?;
        for block in bytes.chunks(BLOCK) {
            out.write_all(block)?;
            release(block);
        }
        position = start + bytes.len() as u64;
        let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_string()), value: Some(value) };
        tensor.external_data =
            vec![entry("location", location.to_string()), entry("offset", start.to_string()), entry("length", bytes.len().to_string())];
        tensor.data_location = Some(DataLocation::External as i32);
        Ok(())
    })
}
