//! A model at given sizes under a price list, and the rules for it: what searches start from that
//! measure nothing.

use std::path::{Path, PathBuf};

use regraft_cost::{CostModel, Machine, Measured, Pricing, Roofline, Target};
use regraft_ir::{Bindings, Graph};
use regraft_onnx::Model;
use regraft_rules::Library;
use regraft_runtime::{Filter, Store};

use crate::error::Failure;
use crate::optimize::{clean, read_library};
use crate::sizes::Sizes;
use crate::speed::InModel;
use crate::units::ShapeArg;

/// What to open, and how.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// Model file, or name in the zoo.
    pub model: &'w Path,
    /// Measured prices; the analytic roofline without.
    pub prices: Option<&'w Path>,
    /// Speeds for the roofline, if there are no measured prices; those of a common processor
    /// without.
    pub machine: Option<Machine>,
    /// Sizes of inputs.
    pub shapes: &'w [ShapeArg],
    /// Values of symbols.
    pub binds: &'w [(String, i64)],
    /// More rules, beside the shipped ones.
    pub rules: &'w [PathBuf],
}

/// A model in normal form, with what searches need.
pub struct Priced {
    /// The model as it was read.
    pub model: Model,
    /// Its graph, in normal form.
    pub graph: Graph,
    /// The rules.
    pub library: Library,
    /// What a model like this one can hold.
    pub writable: InModel,
    /// The prices.
    pub prices: Box<dyn CostModel>,
    /// The price list: `roofline`, or the file.
    pub name: String,
    /// Sizes by symbols.
    pub symbols: Bindings,
}

impl Priced {
    /// Reads all of it.
    ///
    /// # Errors
    ///
    /// A model, a rule or a price list that cannot be read.
    pub fn open(wanted: &Wanted<'_>) -> Result<Priced, Failure> {
        let model = read(wanted.model)?;
        let library = read_library(wanted.rules)?;
        let symbols = Sizes::declared(&model, wanted.shapes, wanted.binds)?.symbols;
        let (prices, name) = match wanted.prices {
            Some(path) => (listed(path, symbols.clone())?, path.display().to_string()),
            None => {
                let name = if wanted.machine.is_some() { "the target's roofline" } else { "roofline" };
                let roofline = Roofline { bindings: symbols.clone(), machine: wanted.machine.unwrap_or_default() };
                (Box::new(roofline) as Box<dyn CostModel>, name.to_string())
            }
        };
        let (graph, writable) = (clean(model.graph()).0, InModel(model.speller()));
        Ok(Priced { model, graph, library, writable, prices, name, symbols })
    }
}

/// A model file, or a network of the zoo, of whose weights only types matter here.
fn read(model: &Path) -> Result<Model, Failure> {
    if model.exists() {
        return Ok(Model::read(model)?);
    }
    let options = regraft_zoo::Options { weights: regraft_zoo::Weights::Outlines, ..Default::default() };
    Ok(Model::from_proto(regraft_zoo::build(&model.to_string_lossy(), &options)?)?)
}

/// A price list.
fn listed(path: &Path, symbols: Bindings) -> Result<Box<dyn CostModel>, Failure> {
    let unreadable = |e: &dyn std::fmt::Display| Failure::new(format!("{}: {e}", path.display())).hint("`regraft cost export` writes one");
    let file = std::fs::File::open(path).map_err(|e| unreadable(&e))?;
    let mut store = Store::in_memory()?;
    store.import(&mut std::io::BufReader::new(file)).map_err(|e| unreadable(&e))?;
    let mut targets: Vec<Target> = Vec::new();
    for measured in store.list(&Filter::default())? {
        let target = Target { machine: measured.key.machine, runtime: measured.key.runtime, threads: measured.key.threads };
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let [target] = targets.as_slice() else {
        let why = format!("it has prices of {} machines, runtimes or numbers of threads", targets.len());
        return Err(unreadable(&why).hint("a price list is of one: `regraft cost export` takes filters"));
    };
    let mut measured = Measured::load(symbols, &store, target)?;
    measured.pricing = Pricing::Pessimistic;
    Ok(Box::new(measured))
}
