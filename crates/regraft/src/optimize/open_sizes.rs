//! What is not done because sizes are open: rewrites that hold at the run's sizes but cannot be
//! shown for all.

use std::collections::{BTreeMap, BTreeSet};

use regraft_cost::Roofline;
use regraft_ir::{Bindings, Graph};
use regraft_onnx::Model;
use regraft_rules::{Library, Writable};
use regraft_search::{Engine, Matcher, all_moves};

use crate::optimize::load::clean;
use crate::optimize::reference::at_sizes;
use crate::optimize::tune::place;
use crate::report::NotDone;
use crate::sizes::Sizes;

/// Longest list.
const LONGEST: usize = 40;

/// Rewrites that apply to the model at `sizes` but not to `start`, the same model with open sizes;
/// one entry per rule.
pub fn not_shown(model: &Model, start: &Graph, sizes: &Sizes, library: &Library, writable: &dyn Writable) -> Vec<NotDone> {
    if sizes.symbols.is_empty() {
        return Vec::new();
    }
    let Ok(bound) = Model::from_proto(at_sizes(model.proto(), sizes)) else { return Vec::new() };
    let (bound, _) = clean(bound.graph());
    let open = places(start, &sizes.symbols, library, writable);
    let row = |(rule, places): (String, BTreeSet<String>)| {
        let first = places.first().cloned().unwrap_or_default();
        let at = if places.len() > 1 { format!("{first} and {} more", places.len() - 1) } else { first };
        NotDone {
            what: rule,
            at,
            because: "it holds at the sizes of this run and cannot be shown for all sizes that the model accepts (--freeze limits the result to these)".into(),
        }
    };
    let mut bound = places(&bound, &Bindings::new(), library, writable);
    for (rule, places) in &mut bound {
        places.retain(|at| !open.get(rule).is_some_and(|shown| shown.contains(at)));
    }
    bound.into_iter().filter(|(_, places)| !places.is_empty()).map(row).take(LONGEST).collect()
}

/// Where each rule applies.
fn places(graph: &Graph, bindings: &Bindings, library: &Library, writable: &dyn Writable) -> BTreeMap<String, BTreeSet<String>> {
    let prices = Roofline::new(bindings.clone());
    let mut engine = Engine::new(graph.clone(), &prices);
    let mut matcher = Matcher::new(library, writable);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for step in &all_moves(&mut engine, &mut matcher) {
        let at = step.patch().replace.first().map_or_else(String::new, |(old, _)| place(graph, *old));
        found.entry(library.rules()[step.rule].name.to_string()).or_default().insert(at);
    }
    found
}
