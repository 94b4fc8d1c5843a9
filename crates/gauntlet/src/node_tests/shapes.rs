//! Our shape inference: never less precise than the `onnx` package's, and right wherever runs
//! reveal the sizes.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use prost::Message;
use regraft_ir::{Bindings, TensorType};
use regraft_onnx::Model;
use regraft_onnx::proto::{ModelProto, type_proto};
use regraft_zoo::{Options, Weights};

use super::case::{Case, DataSet};
use super::inferred::{Ours, Relation, Theirs};
use super::{Args, script, variant};
use crate::caught::caught;
use crate::summary::Summary;

/// Values where the package is wrong and no run decides: `subject value: reason`, reviewed by
/// people.
const ALLOWED: &str = include_str!("contradictions.txt");

/// Weights with more bytes are omitted from the files for the package: it only reads their types.
const HOLLOW: usize = 4096;

/// A model whose types are inferred.
struct Subject<'a> {
    name: String,
    model: ModelProto,
    /// Runs that reveal the sizes of inputs and outputs.
    sets: &'a [DataSet],
}

/// Infers the types of all cases, with sizes as declared and with symbols, and of the zoo.
pub fn run(cases: &[Case], python: &Path, folder: &Path, args: &Args) -> Result<Summary> {
    let folder = folder.join("shapes");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut subjects = Vec::new();
    for case in cases {
        for symbolic in [false, true] {
            let mut model = case.model.clone();
            if symbolic {
                variant::open(&mut model);
            }
            let name = format!("{}{}", case.name, if symbolic { ".symbolic" } else { "" });
            subjects.push(Subject { name, model, sets: &case.sets });
        }
    }
    subjects.extend(zoo(args)?);
    for subject in &mut subjects {
        bare(&mut subject.model);
        let path = folder.join(format!("{}.onnx", subject.name));
        std::fs::write(&path, hollow(&subject.model).encode_to_vec()).with_context(|| path.display().to_string())?;
    }
    script(python, "infer", &folder)?;
    let mut tally = Tally::default();
    for subject in &subjects {
        let theirs = Theirs::read(&folder.join(format!("{}.json", subject.name)))?;
        if let Err(why) = caught(|| tally.add(subject, &theirs)) {
            tally.summary.broken.push(format!("{} (types): {why:#}", subject.name));
        }
    }
    let Tally { summary, values, refused, decided, allowed, no_rank, below, sizes } = tally;
    println!(
        "types: {} models, {values} values that both name, {sizes} sizes that runs confirm; the package refuses {refused} models, runs show it \
         wrong on {decided} values, review on {allowed}; not compared: {no_rank} values without a rank, {below} below bodies; {} broken",
        subjects.len(),
        summary.broken.len()
    );
    Ok(summary)
}

fn zoo(args: &Args) -> Result<Vec<Subject<'static>>> {
    let mut subjects = Vec::new();
    for (at, entry) in regraft_zoo::list().iter().enumerate() {
        if !entry.name.contains(&args.only) || args.short && at % super::STRIDE != 0 {
            continue;
        }
        for dynamic_batch in [false, true] {
            if dynamic_batch && !entry.dynamic {
                continue;
            }
            let options = Options { dynamic_batch, weights: Weights::Zeros, ..Options::default() };
            let model = regraft_zoo::build(entry.name, &options)?;
            subjects.push(Subject { name: format!("zoo.{}{}", entry.name, if dynamic_batch { ".dynamic" } else { "" }), model, sets: &[] });
        }
    }
    Ok(subjects)
}

/// Removes all declared sizes except those of the inputs.
fn bare(model: &mut ModelProto) {
    let Some(graph) = &mut model.graph else { return };
    variant::strip(graph);
    for output in &mut graph.output {
        if let Some(type_proto::Value::TensorType(tensor)) = output.r#type.as_mut().and_then(|t| t.value.as_mut()) {
            tensor.shape = None;
        }
    }
}

/// The model without the contents of its weights.
fn hollow(model: &ModelProto) -> ModelProto {
    let mut model = model.clone();
    for tensor in model.graph.iter_mut().flat_map(|g| &mut g.initializer) {
        if tensor.raw_data.as_ref().is_some_and(|raw| raw.len() > HOLLOW) {
            tensor.raw_data = None;
        }
    }
    model
}

#[derive(Default)]
struct Tally {
    summary: Summary,
    /// Values named by both.
    values: usize,
    /// Models refused by the package.
    refused: usize,
    /// Values for which a run shows that the package is wrong.
    decided: usize,
    /// Values allowed by the reviewed list.
    allowed: usize,
    /// Values for which the package gives an element type without a rank, and we give nothing.
    no_rank: usize,
    /// Results of nodes with bodies, and values computed from them, about which we know nothing:
    /// bodies are not followed.
    below: usize,
    /// Sizes of results compared with those of runs.
    sizes: usize,
}

impl Tally {
    fn add(&mut self, subject: &Subject<'_>, theirs: &Theirs) -> Result<()> {
        let model = Model::from_proto(subject.model.clone()).context("reading")?;
        let ours = Ours::of(&model);
        let runs = actual(subject, &ours);
        let below = below_bodies(&subject.model);
        let mut broken = Vec::new();
        for (name, shapes) in &runs {
            let Some(Some(ty)) = ours.types.get(*name) else { continue };
            for (bindings, shape) in shapes {
                match wrong(ty, bindings, shape) {
                    Ok(sizes) => self.sizes += sizes,
                    Err(why) => broken.push(format!("`{name}` is inferred to be {ty}, but {why}")),
                }
            }
        }
        self.refused += usize::from(theirs.refused.is_some());
        let mut names: Vec<_> = theirs.types.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        for (name, their_type) in names {
            let Some(ty) = ours.types.get(name) else { continue };
            if below.contains(name.as_str()) && ty.is_none() {
                self.below += 1;
                continue;
            }
            self.values += 1;
            let shown = runs.get(name.as_str()).into_iter().flatten();
            if shown.map(|(_, shape)| shape).any(|shape| their_type.is_refuted(shape)) {
                self.decided += 1;
                continue;
            }
            match ours.relate(ty.as_ref(), their_type) {
                Relation::Covers => {}
                Relation::NoRank => self.no_rank += 1,
                _ if is_allowed(&subject.name, name) => self.allowed += 1,
                Relation::Weaker(what) => broken.push(format!("`{name}`: {what}")),
                Relation::Contradicts(how) => broken.push(format!("`{name}`: {how}, and no run speaks for ours")),
            }
        }
        if broken.is_empty() {
            self.summary.held += 1;
        }
        self.summary.broken.extend(broken.into_iter().map(|why| format!("{} (types): {why}", subject.name)));
        Ok(())
    }
}

/// Values that depend on nodes with bodies, directly or not.
fn below_bodies(model: &ModelProto) -> HashSet<&str> {
    let mut below: HashSet<&str> = HashSet::new();
    for node in model.graph.iter().flat_map(|g| &g.node) {
        let body = node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty());
        if body || node.input.iter().any(|name| below.contains(name.as_str())) {
            below.extend(node.output.iter().map(String::as_str));
        }
    }
    below
}

fn is_allowed(subject: &str, value: &str) -> bool {
    ALLOWED.lines().filter_map(|line| line.split_once(": ")).any(|(key, _)| key.split_once(' ') == Some((subject, value)))
}

/// What runs reveal: for every result the bound symbols and its sizes.
fn actual<'a>(subject: &'a Subject<'_>, ours: &Ours) -> HashMap<&'a str, Vec<(Bindings, Vec<usize>)>> {
    let mut shown: HashMap<&str, Vec<(Bindings, Vec<usize>)>> = HashMap::new();
    let Some(graph) = &subject.model.graph else { return shown };
    for set in subject.sets {
        let mut bindings = Bindings::new();
        for (info, datum) in graph.input.iter().zip(&set.inputs) {
            let (Some(Some(ty)), Some(tensor)) = (ours.types.get(info.name()), &datum.proto) else { continue };
            for (dim, size) in ty.shape.iter().zip(&tensor.dims) {
                bindings.extend(dim.solve_number(*size).map(|(symbol, number)| (symbol.to_string(), number)));
            }
        }
        for (info, datum) in graph.output.iter().zip(&set.outputs) {
            let Some(tensor) = &datum.proto else { continue };
            let shape = tensor.dims.iter().map(|d| *d as usize).collect();
            shown.entry(info.name()).or_default().push((bindings.clone(), shape));
        }
    }
    shown
}

/// The number of sizes that a type predicts correctly, or where it is wrong.
fn wrong(ty: &TensorType, bindings: &Bindings, shape: &[usize]) -> Result<usize, String> {
    if ty.rank() != shape.len() {
        return Err(format!("the run gives {shape:?}"));
    }
    let mut checked = 0;
    for (dim, size) in ty.shape.iter().zip(shape) {
        match dim.eval(bindings) {
            Some(known) if known != *size as i64 => return Err(format!("the run gives {shape:?}, where `{dim}` is {known}")),
            Some(_) => checked += 1,
            None => {}
        }
    }
    Ok(checked)
}
