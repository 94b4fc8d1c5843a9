//! Searches compared: what each makes of one model under one price list.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_cost::CostModel;
use regraft_ir::Graph;
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Matcher, Region};
use serde::Serialize;

use crate::error::Failure;
use crate::optimize::Search;
use crate::priced::{Priced, Wanted};
use crate::units::ShapeArg;

/// A request to compare searches. `CompareRequest::new` has the defaults of the command line.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// Model file, or name in the zoo.
    pub model: PathBuf,
    /// Searches, in this order.
    pub searches: Vec<Search>,
    /// Measured prices, as `regraft cost export` writes them; the analytic roofline without.
    pub prices: Option<PathBuf>,
    /// Sizes of inputs.
    pub shapes: Vec<ShapeArg>,
    /// Values of symbols.
    pub binds: Vec<(String, i64)>,
    /// More rules, beside the shipped ones.
    pub rules: Vec<PathBuf>,
    /// Time that each search may take.
    pub budget: Duration,
    /// Whether no clock is asked: searches run to their own ends, and nothing is told that differs
    /// from run to run.
    pub frozen: bool,
}

impl CompareRequest {
    /// A request with the defaults of the command line.
    pub fn new(model: impl Into<PathBuf>, searches: Vec<Search>) -> CompareRequest {
        let (prices, shapes, binds, rules) = Default::default();
        CompareRequest { model: model.into(), searches, prices, shapes, binds, rules, budget: Duration::from_secs(60), frozen: false }
    }
}

/// What searches make of one model.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The model.
    pub model: String,
    /// Its nodes, weights and inputs included.
    pub nodes: usize,
    /// Rules.
    pub rules: usize,
    /// The price list: `roofline`, or the file.
    pub prices: String,
    /// What a run of the model costs, ns.
    pub cost: u64,
    /// One row for each search.
    pub searches: Vec<Searched>,
}

/// What one search makes of a model.
#[derive(Clone, Debug, Serialize)]
pub struct Searched {
    /// Its name.
    pub search: String,
    /// What a run costs then, ns.
    pub cost: u64,
    /// Cost before divided by cost after.
    pub speedup: f64,
    /// Rewrites.
    pub rewrites: usize,
    /// States visited.
    pub states: u64,
    /// Whether it ran to its end, rather than out of time.
    pub complete: bool,
    /// Whether nothing is cheaper within its limits: it has visited, in effect, all there is.
    pub optimal: bool,
    /// The regions that it cut the model into at first, if it goes by regions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<SearchedRegion>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Resident memory that it took at most, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
}

/// A region of a model, and how far a search went through it.
#[derive(Clone, Debug, Serialize)]
pub struct SearchedRegion {
    /// Nodes that are computed in a run.
    pub nodes: usize,
    /// What they cost, ns. What is still to be saved where nothing is proved is at most this without
    /// `saved`.
    pub cost: u64,
    /// What rewrites inside of it save, as far as is known, ns.
    pub saved: u64,
    /// States visited.
    pub states: u64,
    /// The first region that looks like it, by number from 0, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alike: Option<usize>,
    /// Whether nothing saves more, with these rules and prices: all states were visited, and no
    /// rewrite crosses its border.
    pub proved: bool,
}

/// Runs all searches on a model, one after the other, each from the start.
///
/// # Errors
///
/// A model, a rule or a price list that cannot be read.
pub fn compare(request: &CompareRequest, stop: &dyn Fn() -> bool, begins: &mut dyn FnMut(&str)) -> Result<Comparison, Failure> {
    let CompareRequest { model, prices, shapes, binds, rules, .. } = request;
    let wanted = Wanted { model, prices: prices.as_deref(), shapes, binds, rules };
    let Priced { graph, library, writable, prices, name } = Priced::open(&wanted)?;
    let mut comparison = Comparison {
        model: request.model.display().to_string(),
        nodes: graph.len(),
        rules: library.rules().len(),
        prices: name,
        cost: prices.total(&graph),
        searches: Vec::new(),
    };
    for search in &request.searches {
        if stop() {
            break;
        }
        begins(&search.to_string());
        comparison.searches.push(searched(request, (&graph, &*prices), (&library, &writable), *search, stop));
    }
    Ok(comparison)
}

/// Runs one search.
fn searched(
    request: &CompareRequest,
    (graph, prices): (&Graph, &dyn CostModel),
    (library, writable): (&Library, &dyn Writable),
    search: Search,
    stop: &dyn Fn() -> bool,
) -> Searched {
    let resident = reset_peak();
    let start = Instant::now();
    let until = start + request.budget;
    let mut engine = Engine::new(graph.clone(), prices);
    let mut matcher = Matcher::new(library, writable);
    let mut budget = || stop() || !request.frozen && Instant::now() >= until;
    let before = engine.cost();
    let strategy = search.strategy();
    let (outcome, regions) = strategy.search_regions(&mut engine, &mut matcher, &mut budget);
    let (seconds, peak) = (start.elapsed().as_secs_f64(), peak().zip(resident).map(|(peak, before)| peak.saturating_sub(before)));
    let (cost, rewrites) = outcome.scripts.first().map_or((before, 0), |best| (best.cost, best.moves.len()));
    Searched {
        search: search.to_string(),
        cost,
        speedup: before as f64 / cost.max(1) as f64,
        rewrites,
        states: outcome.visited,
        complete: outcome.complete,
        optimal: outcome.complete && strategy.is_exhaustive(),
        regions: regions.into_iter().map(told).collect(),
        seconds: (!request.frozen).then_some(seconds),
        peak_bytes: peak.filter(|_| !request.frozen),
    }
}

fn told(region: Region) -> SearchedRegion {
    let Region { nodes, cost, saved, states, alike, complete } = region;
    SearchedRegion { nodes, cost, saved, states, alike, proved: complete }
}

/// Forgets the peak of this process's resident memory, and tells what is resident now.
fn reset_peak() -> Option<u64> {
    // Linux, since 4.0.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// The peak since then.
fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::SearchKind;

    #[test]
    fn a_frozen_comparison_repeats_byte_for_byte() {
        let limited = |kind| Search { kind, steps: Some(2) };
        let searches = vec![SearchKind::Greedy.into(), limited(SearchKind::Exact), limited(SearchKind::Table)];
        let request = CompareRequest { frozen: true, ..CompareRequest::new("paper-sru", searches) };
        let run = || serde_json::to_string(&compare(&request, &|| false, &mut |_| {}).expect("a network")).expect("text");
        let first = run();
        assert_eq!(first, run());
        let told: Comparison = compare(&request, &|| false, &mut |_| {}).expect("a network");
        assert!(told.searches.iter().all(|row| row.cost <= told.cost && row.seconds.is_none()), "{first}");
        assert!(told.searches[1].optimal && told.searches[2].optimal && !told.searches[0].optimal, "{first}");
        assert_eq!(told.searches[1].cost, told.searches[2].cost, "both are exhaustive: {first}");
        let [greedy, exact, _] = told.searches.as_slice() else { panic!("three searches") };
        assert!(greedy.regions.is_empty() && !exact.regions.is_empty() && exact.regions.iter().all(|region| region.proved), "{first}");
        assert_eq!(exact.regions.iter().map(|region| region.cost).sum::<u64>(), told.cost, "regions cover the model: {first}");
    }

    #[test]
    fn regions_that_were_given_up_are_told() {
        let request = CompareRequest { frozen: true, ..CompareRequest::new("paper-resnet-n2", vec![SearchKind::Exact.into()]) };
        let told = compare(&request, &|| false, &mut |_| {}).expect("a network");
        let [row] = told.searches.as_slice() else { panic!("one search") };
        assert!(!row.optimal && row.regions.iter().any(|region| !region.proved), "{row:?}");
        assert!(row.regions.iter().all(|region| region.saved <= region.cost && region.states > 0), "{row:?}");
    }

    #[test]
    fn a_price_list_is_of_one_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("prices.jsonl");
        std::fs::write(&path, "").expect("writable");
        let request = CompareRequest { prices: Some(path), ..CompareRequest::new("paper-sru", vec![SearchKind::Greedy.into()]) };
        let why = compare(&request, &|| false, &mut |_| {}).expect_err("it is empty").to_string();
        assert!(why.contains("0 machines"), "{why}");
    }
}
