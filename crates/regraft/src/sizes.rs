//! Concrete sizes for measuring: declared, given, or guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regraft_ir::{Bindings, Dim, TensorType};
use regraft_onnx::Model;
use regraft_onnx::proto::tensor_shape_proto::dimension;
use regraft_onnx::proto::{ValueInfoProto, type_proto};
use regraft_runtime::{
    DType, Feeds, Fill, FillOptions, InputSpec, IntRange, ModelSource, Runtime, RuntimeError, Session, SessionOptions, ValueInfo,
    fill_inputs,
};

use crate::error::Failure;
use crate::guess::Guess;
use crate::ranges::integer_ranges;
use crate::units::{ShapeArg, Size};

/// Sizes of all inputs, and the symbols that they bind.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Inputs with known sizes, in the model's order.
    pub inputs: Vec<InputSpec>,
    /// Values of the model's symbols.
    pub symbols: Bindings,
    /// True if a size was guessed.
    pub guessed: bool,
    /// What integer inputs may hold.
    pub ranges: BTreeMap<String, IntRange>,
}

/// Bytes of a model up to which it is opened and run in a process of its own first, which may die
/// of it; larger ones take too much of the time of a run.
pub(crate) const PROBED: u64 = 32 << 20;

impl Sizes {
    /// The inputs' sizes as `--shape` takes them.
    pub fn shown(&self) -> String {
        let shape = |i: &InputSpec| i.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        self.inputs.iter().map(|i| format!("{}:{}", i.name, shape(i))).collect::<Vec<_>>().join(" ")
    }

    /// Sizes from the command line, completed by guesses under which the model runs.
    pub fn resolve(
        model: &Model,
        bytes: ModelSource<'_>,
        runtime: &dyn Runtime,
        shapes: &[ShapeArg],
        binds: &[(String, i64)],
    ) -> Result<Sizes, Failure> {
        let mut trial = Trial::new(model, bytes, runtime).map_err(|e| {
            Failure::from(e).hint("the model must load as it is: operators, opset and IR version must be known to the runtime")
        })?;
        let infos = as_declared(trial.session.inputs(), model);
        check_names(&infos, shapes, binds)?;
        let mut last = None;
        for guess in Guess::all() {
            let mut sizes = Sizes::attempt(model, &infos, shapes, binds, guess)?;
            match sizes.runs(&mut trial)? {
                None => return Ok(sizes),
                Some(e) => last = Some(e),
            }
            if !sizes.guessed {
                break;
            }
        }
        let why = last.map_or_else(String::new, |e| format!(": {e}"));
        let open: Vec<String> = infos.iter().filter(|i| i.dims.contains(&None)).map(|i| format!("--shape {}", open_sizes(i))).collect();
        let failure = Failure::new(format!("the model does not run at the sizes tried{why}"));
        let hint = || format!("give sizes that it accepts: {}, with a number for each size", open.join(" "));
        Err(if open.is_empty() { failure } else { failure.hint(hint()) })
    }

    /// The same with other guesses, where the model runs: all above 1 and different, odd ones and
    /// even ones. Size 1 and round sizes hide differences. Empty if nothing was guessed.
    pub fn others(
        &self,
        model: &Model,
        bytes: ModelSource<'_>,
        runtime: &dyn Runtime,
        shapes: &[ShapeArg],
        binds: &[(String, i64)],
    ) -> Result<Vec<Sizes>, Failure> {
        let mut found = Vec::new();
        if !self.guessed {
            return Ok(found);
        }
        let mut trial = Trial::new(model, bytes, runtime)?;
        let infos = as_declared(trial.session.inputs(), model);
        for guesses in Guess::OTHERS {
            for guess in guesses {
                let mut sizes = Sizes::attempt(model, &infos, shapes, binds, guess)?;
                if sizes.runs(&mut trial)?.is_none() {
                    found.push(sizes);
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Sizes from the command line, completed by guesses, without running the model.
    pub fn declared(model: &Model, shapes: &[ShapeArg], binds: &[(String, i64)]) -> Result<Sizes, Failure> {
        let infos = declared(model);
        check_names(&infos, shapes, binds)?;
        Sizes::attempt(model, &infos, shapes, binds, Guess::USUAL)
    }

    fn attempt(model: &Model, infos: &[ValueInfo], shapes: &[ShapeArg], binds: &[(String, i64)], guess: Guess) -> Result<Sizes, Failure> {
        let mut symbols: BTreeMap<String, i64> = binds.iter().cloned().collect();
        // What `--shape` says about a symbol holds wherever the symbol occurs.
        for shape in shapes {
            let Some(info) = infos.iter().find(|i| i.name == shape.input) else { continue };
            if info.dims.len() != shape.sizes.len() {
                return Err(Failure::new(format!(
                    "--shape gives input `{}` {} sizes, the model declares {}",
                    info.name,
                    shape.sizes.len(),
                    info.dims.len()
                ))
                .hint(format!("for example {}", example(info))));
            }
            for ((declared, symbol), size) in info.dims.iter().zip(&info.symbols).zip(&shape.sizes) {
                match (declared, size) {
                    (Some(d), Size::Known(n)) if d != n => {
                        return Err(Failure::new(format!("--shape gives {n} where input `{}` declares {d}", info.name))
                            .hint("fixed sizes cannot be changed"));
                    }
                    (Some(d), Size::Symbol(name)) if binds.iter().any(|(bound, n)| bound == name && usize::try_from(*n) != Ok(*d)) => {
                        return Err(Failure::new(format!(
                            "--bind gives `{name}`, as --shape names it, another size than input `{}` declares, {d}",
                            info.name
                        ))
                        .hint("fixed sizes cannot be changed"));
                    }
                    (None, Size::Known(n)) if !symbol.is_empty() && symbol != "?" => {
                        symbols.entry(symbol.clone()).or_insert(*n as i64);
                    }
                    _ => {}
                }
            }
        }
        let given = |info: &ValueInfo, axis: usize, symbols: &BTreeMap<String, i64>| {
            let named = |s: &str| symbols.get(s).map(|v| *v as usize);
            let from_shape = shapes.iter().find(|s| s.input == info.name).and_then(|g| match &g.sizes[axis] {
                Size::Known(n) => Some(*n),
                Size::Symbol(s) => named(s),
            });
            info.dims[axis].or(from_shape).or_else(|| named(&info.symbols[axis]))
        };
        let mut known = known(model, infos, |info, axis| given(info, axis, &symbols))?;
        let types: BTreeMap<String, TensorType> = model.inputs().into_iter().filter_map(|i| Some((i.name, i.ty?))).collect();
        let mut guesses = 0;
        let mut inputs = Vec::new();
        for info in infos {
            let mut shape = Vec::new();
            for axis in 0..info.dims.len() {
                let own = types.get(&info.name).and_then(|ty| ty.shape.get(axis));
                let told = given(info, axis, &symbols).or_else(|| usize::try_from(own?.eval(&known)?).ok());
                let size = told.unwrap_or_else(|| {
                    let made_up = fitting(own, guess.size(&info.dims, axis, guesses), &mut known);
                    guesses += 1;
                    if !info.symbols[axis].is_empty() && info.symbols[axis] != "?" {
                        symbols.insert(info.symbols[axis].clone(), made_up as i64);
                    }
                    made_up
                });
                shape.push(size);
            }
            let dtype = info.dtype.ok_or_else(|| {
                Failure::new(format!("input `{}` is not a tensor: it cannot be made up", info.name))
                    .hint("only models with tensor inputs can be measured")
            })?;
            inputs.push(InputSpec { name: info.name.clone(), dtype, shape });
        }
        // The graph's own symbols: its inputs' dims against the sizes just chosen.
        let chosen: Vec<Vec<Option<i64>>> = inputs.iter().map(|i| i.shape.iter().map(|size| i64::try_from(*size).ok()).collect()).collect();
        let (bindings, _) = model.bind(inputs.iter().zip(&chosen).map(|(input, sizes)| (input.name.as_str(), sizes.as_slice())));
        let ranges = integer_ranges(model, &bindings);
        Ok(Sizes { inputs, symbols: bindings, guessed: guesses > 0, ranges })
    }

    /// Why the model does not run at these sizes, if so. If it runs only with indices of 0 and 1,
    /// it gets no others.
    fn runs(&mut self, trial: &mut Trial<'_>) -> Result<Option<RuntimeError>, Failure> {
        let Err(why) = trial.run(&self.feeds(Fill::Normal, 0)?) else { return Ok(None) };
        if !self.ranges.values().any(|range| range.index) {
            return Ok(Some(why));
        }
        let narrow = self.ranges.iter().filter(|(_, range)| !range.index).map(|(name, range)| (name.clone(), *range)).collect();
        let narrow = Sizes { ranges: narrow, ..self.clone() };
        let ended = trial.run(&narrow.feeds(Fill::Normal, 0)?).err();
        if ended.is_none() {
            *self = narrow;
        }
        Ok(ended)
    }

    /// Made-up input values at these sizes.
    pub fn feeds(&self, fill: Fill, seed: u64) -> Result<Feeds, Failure> {
        Ok(fill_inputs(fill, &self.inputs, &FillOptions { seed, ranges: self.ranges.clone(), ..FillOptions::default() })?)
    }
}

/// A model that is run at sizes of which nobody knows whether it does.
struct Trial<'a> {
    runtime: &'a dyn Runtime,
    session: Box<dyn Session>,
    /// The file to be run in a process of its own.
    probed: Option<&'a Path>,
}

impl<'a> Trial<'a> {
    fn new(model: &Model, source: ModelSource<'a>, runtime: &'a dyn Runtime) -> Result<Trial<'a>, RuntimeError> {
        let session = runtime.open(source, &SessionOptions::default().unpacked())?;
        let probed = if let ModelSource::Path(file) = source { Some(file) } else { None };
        Ok(Trial { runtime, session, probed: probed.filter(|_| model.size() <= PROBED) })
    }

    /// Runs it once, if it may crash the runtime in a process of its own before: here, that would
    /// end this process.
    fn run(&mut self, feeds: &Feeds) -> Result<(), RuntimeError> {
        if let Some(file) = self.probed
            && let Err(crash @ RuntimeError::Crashed { .. }) = self.runtime.start_up(file, feeds, &SessionOptions::default().unpacked())
        {
            return Err(crash);
        }
        self.session.run(feeds).map(drop)
    }
}

/// The graph's symbols as far as the sizes `given` tell them.
fn known(model: &Model, infos: &[ValueInfo], given: impl Fn(&ValueInfo, usize) -> Option<usize>) -> Result<Bindings, Failure> {
    let sizes = |info: &ValueInfo| (0..info.dims.len()).map(|axis| given(info, axis).and_then(|size| i64::try_from(size).ok())).collect();
    let sizes: Vec<Vec<Option<i64>>> = infos.iter().map(sizes).collect();
    match model.bind(infos.iter().zip(&sizes).map(|(info, sizes)| (info.name.as_str(), sizes.as_slice()))) {
        (known, None) => Ok(known),
        (_, Some(excluded)) => Err(Failure::new(excluded).hint("the model does not run at such sizes, give others")),
    }
}

/// A size that an input's axis can have, from `guess` on.
fn fitting(own: Option<&Dim>, guess: usize, known: &mut Bindings) -> usize {
    let Some((factor, symbol, offset)) = own.and_then(Dim::linear) else { return guess };
    let steps = (guess as i64 - offset + factor - 1).div_euclid(factor).max(1);
    known.insert(symbol.to_string(), steps);
    usize::try_from(factor * steps + offset).unwrap_or(guess)
}

/// What the model declares about the inputs that a caller must feed.
pub fn declared(model: &Model) -> Vec<ValueInfo> {
    let Some(graph) = &model.proto().graph else { return Vec::new() };
    let given = |info: &&ValueInfoProto| !graph.initializer.iter().any(|t| t.name() == info.name());
    graph.input.iter().filter(given).map(value_info).collect()
}

/// What a runtime reports about the inputs of a file, with the sizes that `model` declares where
/// the file leaves them open: the model may be fixed at some of the sizes that its file accepts.
pub(crate) fn as_declared(reported: &[ValueInfo], model: &Model) -> Vec<ValueInfo> {
    let declared = declared(model);
    let mut infos = reported.to_vec();
    for info in &mut infos {
        let Some(own) = declared.iter().find(|own| own.name == info.name) else { continue };
        if info.dims.is_empty() {
            (info.dims, info.symbols) = (own.dims.clone(), own.symbols.clone());
        }
        for ((dim, symbol), size) in info.dims.iter_mut().zip(&mut info.symbols).zip(&own.dims) {
            if dim.is_none() && size.is_some() {
                (*dim, *symbol) = (*size, String::new());
            }
        }
    }
    infos
}

/// What a model declares about an input or output.
pub(crate) fn value_info(info: &ValueInfoProto) -> ValueInfo {
    let tensor = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
        Some(type_proto::Value::TensorType(tensor)) => Some(tensor),
        _ => None,
    };
    let (mut dims, mut symbols) = (Vec::new(), Vec::new());
    for dim in tensor.and_then(|t| t.shape.as_ref()).iter().flat_map(|s| &s.dim) {
        let (size, symbol) = match &dim.value {
            Some(dimension::Value::DimValue(n)) => (usize::try_from(*n).ok(), String::new()),
            Some(dimension::Value::DimParam(symbol)) => (None, symbol.clone()),
            None => (None, String::new()),
        };
        dims.push(size);
        symbols.push(symbol);
    }
    ValueInfo { name: info.name().to_string(), dtype: tensor.map(|t| DType::from_onnx(t.elem_type())), dims, symbols }
}

fn check_names(infos: &[ValueInfo], shapes: &[ShapeArg], binds: &[(String, i64)]) -> Result<(), Failure> {
    for shape in shapes {
        if !infos.iter().any(|i| i.name == shape.input) {
            let names: Vec<&str> = infos.iter().map(|i| i.name.as_str()).collect();
            return Err(
                Failure::new(format!("--shape names `{}`, which is no input", shape.input)).hint(format!("inputs: {}", names.join(", ")))
            );
        }
    }
    let declared = infos.iter().flat_map(|i| &i.symbols).map(String::as_str);
    let given =
        shapes.iter().flat_map(|s| &s.sizes).filter_map(|size| if let Size::Symbol(name) = size { Some(name.as_str()) } else { None });
    let names: BTreeSet<&str> = declared.chain(given).filter(|name| !name.is_empty() && *name != "?").collect();
    match binds.iter().find(|(name, _)| !names.contains(name.as_str())) {
        Some((name, _)) if names.is_empty() => {
            Err(Failure::new(format!("--bind names `{name}`, but no size has a name")).hint("--shape gives sizes without a name"))
        }
        Some((name, _)) => Err(Failure::new(format!("--bind names `{name}`, which is no size of an input"))
            .hint(format!("sizes: {}", names.into_iter().collect::<Vec<_>>().join(", ")))),
        None => Ok(()),
    }
}

/// Sizes for an input as `--shape` takes them.
fn example(info: &ValueInfo) -> String {
    let size = |(axis, known): (usize, &Option<usize>)| known.unwrap_or(if axis == 0 { 1 } else { 224 }).to_string();
    format!("{}:{}", info.name, info.dims.iter().enumerate().map(size).collect::<Vec<_>>().join(","))
}

/// An input or output with the sizes it declares: `x:N,3,?,?`.
pub(crate) fn open_sizes(info: &ValueInfo) -> String {
    let size = |(known, symbol): (&Option<usize>, &String)| match known {
        Some(size) => size.to_string(),
        None if symbol.is_empty() => "?".into(),
        None => symbol.clone(),
    };
    format!("{}:{}", info.name, info.dims.iter().zip(&info.symbols).map(size).collect::<Vec<_>>().join(","))
}
