//! Times of single runs out of OpenVINO's counters, which hold means over all runs so far.

use super::exported::runs;
use super::native::Counter;
use crate::stats::quantile;
use crate::{NodeEvent, OptimizedGraph, ProfiledRun, RawProfile};

/// Runs up to this many times as long as the fastest tenth count as undisturbed.
const UNDISTURBED: f64 = 1.1;

/// What was recorded after one run.
pub struct Reading {
    /// Elapsed time of the run, ns.
    pub ns: u64,
    /// The counters after it.
    pub counters: Vec<Counter>,
}

/// Every run with the same times of its nodes: their means over the undisturbed ones.
///
/// A counter is the mean over all runs so far in whole microseconds, so that one run's time is
/// known to within as many microseconds as there were runs. The errors of runs in succession cancel
/// out: what is left is that of the first and the last one.
pub fn profile(readings: &[Reading], graph: Option<&OptimizedGraph>) -> RawProfile {
    let times: Vec<u64> = readings.iter().map(|reading| reading.ns).collect();
    let limit = quantile(&times, 0.1).unwrap_or(0.0) * UNDISTURBED;
    // The first run prepares what later ones use.
    let counted: Vec<usize> = (1..readings.len()).filter(|at| readings[*at].ns as f64 <= limit).collect();
    let counted = if counted.is_empty() { (0..readings.len()).collect() } else { counted };
    let total = |at: usize, node: usize| readings[at].counters.get(node).map_or(0, |c| c.micros) as f64 * (at + 1) as f64;
    let mean = |node: usize| {
        let sum: f64 = counted.iter().map(|at| total(*at, node) - at.checked_sub(1).map_or(0.0, |before| total(before, node))).sum();
        (sum / counted.len().max(1) as f64).max(0.0)
    };
    let Some(last) = readings.last() else { return RawProfile { runs: Vec::new(), resolution_ns: RESOLUTION_NS } };
    let kinds: std::collections::HashMap<&str, &str> =
        graph.iter().flat_map(|g| &g.nodes).map(|node| (node.name.as_str(), node.op_type.as_str())).collect();
    let nodes: Vec<NodeEvent> = last
        .counters
        .iter()
        .enumerate()
        .filter(|(_, counter)| runs(counter))
        .map(|(at, counter)| NodeEvent {
            name: counter.name.clone(),
            index: at as u64,
            op_type: (*kinds.get(counter.name.as_str()).unwrap_or(&counter.kind.as_str())).to_owned(),
            provider: "CPU".into(),
            ns: (mean(at) * 1000.0) as u64,
            inputs: Vec::new(),
            outputs: Vec::new(),
        })
        .collect();
    let runs = times.iter().map(|ns| ProfiledRun { ns: *ns, nodes: nodes.clone() }).collect();
    RawProfile { runs, resolution_ns: RESOLUTION_NS }
}

/// Width to which the library rounds times down, ns.
const RESOLUTION_NS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters of one node after runs of these times, µs.
    fn readings(times: &[u64]) -> Vec<Reading> {
        let mut sum = 0;
        let reading = |(at, micros): (usize, &u64)| {
            sum += micros;
            let counter = Counter { name: "n".into(), kind: "MatMul".into(), kernel: "k".into(), micros: sum / (at as u64 + 1) };
            Reading { ns: micros * 1000, counters: vec![counter] }
        };
        times.iter().enumerate().map(reading).collect()
    }

    #[test]
    fn disturbed_runs_do_not_count() {
        let profile = profile(&readings(&[900, 100, 101, 100, 4000, 100, 101, 100, 100]), None);
        assert_eq!(profile.runs.len(), 9);
        let ns = profile.runs[8].nodes[0].ns;
        assert!((96_000..105_000).contains(&ns), "{ns}");
        assert!(profile.runs.iter().all(|run| run.nodes == profile.runs[0].nodes));
        assert!(super::profile(&[], None).runs.is_empty());
    }
}
