//! The e-graph of a model, grown by the rules.

use std::path::PathBuf;

use regraft_saturate::{Alone, Cycles, Growth, Limits, Priced, Rules, Schedule, Stop};

use crate::compare::{prices, read};
use crate::error::Failure;
use crate::optimize::{clean, read_library};
use crate::sizes::Sizes;
use crate::speed::InModel;
use crate::units::ShapeArg;

/// A request for an e-graph. `SaturateRequest::new` has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct SaturateRequest {
    /// Model file, or name in the zoo.
    pub model: PathBuf,
    /// How far it grows.
    pub limits: Limits,
    /// How rules take turns.
    pub schedule: Schedule,
    /// What becomes of cycles.
    pub cycles: Cycles,
    /// Measured prices, as `regraft cost export` writes them; the analytic roofline without.
    pub prices: Option<PathBuf>,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// More rules, beside the shipped ones.
    pub rules: Vec<PathBuf>,
}

impl SaturateRequest {
    /// A request with the defaults of the command line.
    pub fn new(model: impl Into<PathBuf>) -> SaturateRequest {
        let (prices, shapes, binds, rules) = Default::default();
        let (limits, schedule, cycles) = (Limits::default(), Schedule::default(), Cycles::default());
        SaturateRequest { model: model.into(), limits, schedule, cycles, prices, shapes, binds, rules }
    }
}

/// An e-graph.
#[derive(Clone, Debug)]
pub struct Saturated {
    /// The e-graph in the JSON format of the crate `egraph-serialize`; costs are in nanoseconds, of
    /// each e-node by itself.
    pub json: String,
    /// E-nodes, weights and inputs included.
    pub nodes: usize,
    /// Classes of equal values.
    pub classes: usize,
    /// Rewrites that were applied.
    pub rewrites: usize,
    /// Iterations.
    pub iterations: usize,
    /// Why it grew no more.
    pub stop: Stop,
}

/// Grows the e-graph of a model.
///
/// # Errors
///
/// A model, a rule or a price list that cannot be read; a rule that makes values of different types
/// equal.
pub fn saturate(request: &SaturateRequest, stop: &dyn Fn() -> bool) -> Result<Saturated, Failure> {
    let model = read(&request.model)?;
    let library = read_library(&request.rules)?;
    let symbols = Sizes::declared(&model, &request.shapes, &request.binds)?.symbols;
    let prices = prices(request.prices.as_deref(), symbols)?.0;
    let writable = InModel(model.speller());
    let rules = Rules::of(&library)?;
    let growth = Growth::new(clean(model.graph()).0, &rules, &writable, request.limits);
    let mut growth = growth.scheduled(request.schedule).with_cycles(request.cycles);
    let wrong =
        |clash: &dyn std::fmt::Display| Failure::new(clash.to_string()).hint("a rule's sides have one type: `regraft rules check` tells");
    let ended = growth.saturate(&mut || stop()).map_err(|clash| wrong(&clash))?;
    let mut alone = Alone::new(&*prices);
    let priced = Priced::of(&growth, &mut |space, id| alone.price(space, id) as f64);
    let priced = priced.map_err(|error| Failure::new(format!("{}: {error}", request.model.display())).hint(error.hint()))?;
    Ok(Saturated {
        json: priced.egraph().to_json(),
        nodes: growth.space().len(),
        classes: growth.space().classes(),
        rewrites: growth.applied().len(),
        iterations: growth.iterations(),
        stop: ended,
    })
}
