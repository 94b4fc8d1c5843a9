//! Searches compared: what each makes of one model under one price list.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regraft_cost::{CostModel, LayoutTarget};
use regraft_ir::Graph;
use regraft_rules::{Library, Writable};
use regraft_runtime::peak_bytes;
use regraft_search::{Engine, Matcher, Region};
use serde::Serialize;

use crate::error::Failure;
use crate::layouts::{LayoutMode, Layouts, Stage};
use crate::optimize::{Search, SearchKind};
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
    /// The target whose layouts are chosen, by its name or file; without one, there is one layout.
    pub target: Option<String>,
    /// When layouts are chosen, if there is a target: each search runs once for each of these.
    pub layouts: Vec<LayoutMode>,
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
        let (budget, layouts) = (Duration::from_secs(60), LayoutMode::ALL.to_vec());
        CompareRequest { model: model.into(), searches, prices, target: None, layouts, shapes, binds, rules, budget, frozen: false }
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
    /// The target whose layouts are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What a run of the model costs, ns: in the plain layout, unless the target chooses others.
    pub cost: u64,
    /// One row for each search.
    pub searches: Vec<Searched>,
}

/// What one search makes of a model.
#[derive(Clone, Debug, Serialize)]
pub struct Searched {
    /// Its name.
    pub search: String,
    /// The layouts of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layouts: Option<Layouts>,
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
    /// What they cost, ns. What is still to be saved where nothing is proved is at most this
    /// without `saved`.
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
    let target = request.target.as_deref().map(LayoutTarget::read).transpose()?;
    let machine = target.as_ref().and_then(|target| target.machine);
    let wanted = Wanted { model, prices: prices.as_deref(), machine, shapes, binds, rules };
    let Priced { graph, library, writable, prices, name, symbols, .. } = Priced::open(&wanted)?;
    let stage = target.as_ref().map(|target| Stage::new(&*prices, target, symbols, &graph));
    let mut comparison = Comparison {
        model: request.model.display().to_string(),
        nodes: graph.len(),
        rules: library.rules().len(),
        prices: name,
        target: target.as_ref().map(|target| target.name.clone()),
        cost: stage.as_ref().map_or_else(|| prices.total(&graph), |stage| stage.judged(LayoutMode::None, &graph).0),
        searches: Vec::new(),
    };
    let before = comparison.cost;
    for search in &request.searches {
        let Some(stage) = &stage else {
            if stop() {
                break;
            }
            begins(&search.to_string());
            comparison.searches.push(searched(request, (&graph, &*prices), (&library, &writable), *search, stop).0);
            continue;
        };
        for mode in &request.layouts {
            if stop() {
                break;
            }
            begins(&format!("{search}, layouts {mode}"));
            let never = || *mode == LayoutMode::Only || stop();
            let prices = (&graph, stage.searched(*mode));
            let (mut row, result) = searched(request, prices, (&library, &writable), *search, &never);
            let (cost, layouts) = stage.judged(*mode, if *mode == LayoutMode::Only { &graph } else { &result });
            // Regions are proved by prices that add up.
            row.regions.clear();
            row.optimal &= search.kind != SearchKind::Exact;
            comparison.searches.push(Searched { cost, speedup: before as f64 / cost.max(1) as f64, layouts: Some(layouts), ..row });
        }
    }
    Ok(comparison)
}

/// Runs one search; also what it makes of the model.
fn searched(
    request: &CompareRequest,
    (graph, prices): (&Graph, &dyn CostModel),
    (library, writable): (&Library, &dyn Writable),
    search: Search,
    stop: &dyn Fn() -> bool,
) -> (Searched, Graph) {
    let resident = reset_peak();
    let start = Instant::now();
    let until = start + request.budget;
    let mut engine = Engine::new(graph.clone(), prices);
    let mut matcher = Matcher::new(library, writable);
    let mut budget = || stop() || !request.frozen && Instant::now() >= until;
    let before = engine.cost();
    let strategy = search.strategy();
    let (outcome, regions) = strategy.search_regions(&mut engine, &mut matcher, &mut budget);
    let (seconds, peak) = (start.elapsed().as_secs_f64(), peak_bytes().zip(resident).map(|(peak, before)| peak.saturating_sub(before)));
    let (cost, rewrites) = outcome.scripts.first().map_or((before, 0), |best| (best.cost, best.moves.len()));
    if let Some(best) = outcome.scripts.first() {
        best.moves.iter().for_each(|step| engine.apply(step));
    }
    let row = Searched {
        search: search.to_string(),
        layouts: None,
        cost,
        speedup: before as f64 / cost.max(1) as f64,
        rewrites,
        states: outcome.visited,
        complete: outcome.complete,
        optimal: outcome.complete && strategy.is_exhaustive(),
        regions: regions.into_iter().map(told).collect(),
        seconds: (!request.frozen).then_some(seconds),
        peak_bytes: peak.filter(|_| !request.frozen),
    };
    (row, engine.into_graph())
}

fn told(region: Region) -> SearchedRegion {
    let Region { nodes, cost, saved, states, alike, complete } = region;
    SearchedRegion { nodes, cost, saved, states, alike, proved: complete }
}

/// Forgets the peak of this process's resident memory, and tells what is resident now.
fn reset_peak() -> Option<u64> {
    // Linux, since 4.0: the peak is then what is resident.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    peak_bytes()
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
    fn layouts_chosen_with_rewrites_beside_before_and_after() {
        let target = Some("gpu-model".to_owned());
        let request = CompareRequest { frozen: true, target, ..CompareRequest::new("paper-resnet-n2", vec![SearchKind::Greedy.into()]) };
        let told = compare(&request, &|| false, &mut |_| {}).expect("a network");
        let cost = |mode: LayoutMode| {
            let of = |row: &&Searched| row.layouts.as_ref().is_some_and(|layouts| layouts.mode == mode);
            told.searches.iter().find(of).map_or(0, |row| row.cost)
        };
        let [none, only, last, first, joint] = LayoutMode::ALL.map(cost);
        assert!(0 < joint && joint <= last && last <= none && only < told.cost && first > 0, "{told:?}");
        for row in &told.searches {
            let layouts = row.layouts.as_ref().expect("there is a target");
            assert!(layouts.bound <= row.cost && layouts.changes_cost < row.cost, "{row:?}");
            assert_eq!(layouts.mode == LayoutMode::None, layouts.laid_out == 0, "{row:?}");
            assert!(layouts.mode != LayoutMode::Only || row.rewrites == 0, "{row:?}");
        }
        let unknown = CompareRequest { target: Some("no-such-target".into()), ..request };
        let why = compare(&unknown, &|| false, &mut |_| {}).expect_err("there is none").to_string();
        assert!(why.contains("gpu-model"), "{why}");
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
