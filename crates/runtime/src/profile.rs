//! Where the time of whole-model runs goes, node by node of the graph that the runtime really runs.

use std::collections::HashMap;

use crate::optimized::OptimizedGraph;
use crate::stats::{binned_quantile, quantile};
use crate::{Feeds, ModelSource, Runtime, RuntimeError, Session, SessionOptions, ValueInfo};

/// How to profile.
#[derive(Debug, Clone)]
pub struct ProfileOptions {
    /// Recorded runs of each model.
    pub runs: usize,
    /// Runs of each model that are not counted.
    pub warmup: usize,
    /// How to open the models; what is recorded is replaced.
    pub session: SessionOptions,
    /// Also read the optimized graph, from the same sessions.
    pub with_graph: bool,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { runs: 20, warmup: 3, session: SessionOptions::default(), with_graph: false }
    }
}

/// A model to profile and its inputs.
#[derive(Debug, Clone, Copy)]
pub struct ProfileSubject<'a> {
    /// The model.
    pub model: ModelSource<'a>,
    /// Its input values.
    pub feeds: &'a Feeds,
}

/// Times of one node over the counted runs. Elapsed time: on a busy machine prefer the 25 %
/// quantile.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProfile {
    /// The node's name in the optimized graph; if it has none, one that the runtime made up.
    pub name: String,
    /// The runtime's number of the node.
    pub index: u64,
    /// Operator type.
    pub op_type: String,
    /// Its execution provider.
    pub provider: String,
    /// Nanoseconds per run in which it ran, summed over its executions within a run (bodies of
    /// loops run many times).
    pub samples: Vec<u64>,
    /// Median, ns, corrected for the clock's resolution.
    pub median_ns: f64,
    /// 25 % quantile, ns, corrected for the clock's resolution.
    pub q25_ns: f64,
    /// Element type (in the runtime's words) and shape of each input that was present, in the last
    /// run.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// Element type and shape of each output, in the last run.
    pub outputs: Vec<(String, Vec<i64>)>,
}

/// Times of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its nodes, in the order in which they first ran. Bodies of loops and branches appear beside
    /// the node that contains them, whose time includes theirs.
    pub nodes: Vec<NodeProfile>,
    /// Elapsed nanoseconds of each counted run, recording included.
    pub runs: Vec<u64>,
    /// Median of `runs`, ns.
    pub run_median_ns: f64,
    /// 25 % quantile of `runs`, ns.
    pub run_q25_ns: f64,
    /// Width to which node times are rounded down, ns.
    pub resolution_ns: u64,
    /// The graph that ran, if requested.
    pub graph: Option<OptimizedGraph>,
    /// Declared inputs of the model.
    pub inputs: Vec<ValueInfo>,
}

/// Profiles models against each other: all are open at once and their runs alternate, so that
/// machine drift affects all alike.
pub fn profile_interleaved(
    runtime: &dyn Runtime,
    subjects: &[ProfileSubject<'_>],
    options: &ProfileOptions,
) -> Result<Vec<Profile>, RuntimeError> {
    let mut open: Vec<Profiling> = subjects
        .iter()
        .map(|subject| Profiling::open(runtime, *subject, &options.session, options.with_graph))
        .collect::<Result<_, _>>()?;
    for round in 0..options.warmup + options.runs {
        // Back and forth, as in `time_interleaved`.
        let count = open.len();
        for step in 0..count {
            let which = if round.is_multiple_of(2) { step } else { count - 1 - step };
            open[which].run()?;
        }
    }
    open.into_iter().map(|profiling| profiling.finish(options.warmup).map(|(profile, _)| profile)).collect()
}

/// A model that is being profiled.
pub struct Profiling {
    session: Box<dyn Session>,
    graph: Option<OptimizedGraph>,
}

impl Profiling {
    /// Opens a model for profiling with `options`, except for what they say of recording.
    pub fn open(
        runtime: &dyn Runtime,
        subject: ProfileSubject<'_>,
        options: &SessionOptions,
        with_graph: bool,
    ) -> Result<Self, RuntimeError> {
        let options = SessionOptions { profile: true, graph: with_graph, ..options.clone() };
        let mut session = runtime.open(subject.model, &options)?;
        let graph = session.take_graph();
        session.bind(subject.feeds)?;
        Ok(Self { session, graph })
    }

    /// Runs the model once.
    pub fn run(&mut self) -> Result<(), RuntimeError> {
        self.session.run_bound()
    }

    /// Ends profiling: the profile without its first `warmup` runs, and the session, which
    /// continues as if it had never been profiled.
    pub fn finish(mut self, warmup: usize) -> Result<(Profile, Box<dyn Session>), RuntimeError> {
        let raw = self.session.end_profile()?;
        let counted = raw.runs.get(warmup..).unwrap_or_default();
        let inputs = self.session.inputs().to_vec();
        Ok((summarize(counted, raw.resolution_ns, self.graph, inputs), self.session))
    }
}

fn summarize(runs: &[crate::ProfiledRun], resolution_ns: u64, graph: Option<OptimizedGraph>, inputs: Vec<ValueInfo>) -> Profile {
    let mut nodes: Vec<NodeProfile> = Vec::new();
    // The run of a node's last sample, and the node's index.
    let mut places: HashMap<(&str, u64, &str), (usize, usize)> = HashMap::new();
    for (run, profiled) in runs.iter().enumerate() {
        for event in &profiled.nodes {
            let key = (event.name.as_str(), event.index, event.op_type.as_str());
            let (place, last_run) = places.entry(key).or_insert_with(|| {
                nodes.push(NodeProfile {
                    name: event.name.clone(),
                    index: event.index,
                    op_type: event.op_type.clone(),
                    provider: event.provider.clone(),
                    samples: Vec::new(),
                    median_ns: 0.0,
                    q25_ns: 0.0,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                });
                (nodes.len() - 1, usize::MAX)
            });
            let node = &mut nodes[*place];
            match node.samples.last_mut() {
                Some(sample) if *last_run == run => *sample = sample.saturating_add(event.ns),
                _ => node.samples.push(event.ns),
            }
            *last_run = run;
            if run + 1 == runs.len() {
                node.inputs.clone_from(&event.inputs);
                node.outputs.clone_from(&event.outputs);
            }
        }
    }
    for node in &mut nodes {
        node.median_ns = binned_quantile(&node.samples, resolution_ns, 0.5).unwrap_or(0.0);
        node.q25_ns = binned_quantile(&node.samples, resolution_ns, 0.25).unwrap_or(0.0);
    }
    let runs: Vec<u64> = runs.iter().map(|r| r.ns).collect();
    Profile {
        nodes,
        run_median_ns: quantile(&runs, 0.5).unwrap_or(0.0),
        run_q25_ns: quantile(&runs, 0.25).unwrap_or(0.0),
        resolution_ns,
        runs,
        graph,
        inputs,
    }
}

impl Profile {
    /// For each node of an optimized graph, the index of its times in [`Profile::nodes`]. Nodes
    /// match by name; unnamed ones match in order among the remaining nodes of the same operator.
    /// `None` for nodes that did not run, and for all of a type whose counts differ.
    pub fn places_of(&self, graph: &OptimizedGraph) -> Vec<Option<usize>> {
        let mut places: Vec<Option<usize>> = vec![None; graph.nodes.len()];
        let mut taken = vec![false; self.nodes.len()];
        let mut by_name: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            by_name.entry((&node.name, &node.op_type)).or_default().push(place);
        }
        for (slot, node) in places.iter_mut().zip(&graph.nodes) {
            if node.name.is_empty() {
                continue;
            }
            if let Some(place) = by_name.get_mut(&(node.name.as_str(), node.op_type.as_str())).and_then(Vec::pop) {
                *slot = Some(place);
                taken[place] = true;
            }
        }
        let mut unnamed: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, node) in graph.nodes.iter().enumerate().filter(|(at, _)| places[*at].is_none()) {
            unnamed.entry(&node.op_type).or_default().push(at);
        }
        for (op_type, wanted) in unnamed {
            let free: Vec<usize> = (0..self.nodes.len()).filter(|p| !taken[*p] && self.nodes[*p].op_type == op_type).collect();
            if free.len() == wanted.len() {
                for (at, place) in wanted.into_iter().zip(free) {
                    places[at] = Some(place);
                }
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeEvent, ProfiledRun};

    fn event(name: &str, ns: u64) -> NodeEvent {
        NodeEvent {
            name: name.to_owned(),
            index: 0,
            op_type: "Add".to_owned(),
            provider: "P".to_owned(),
            ns,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    #[test]
    fn executions_within_a_run_add_up() {
        let run = |a, b| ProfiledRun { ns: 100_000, nodes: vec![event("x", a), event("y", 5000), event("x", b)] };
        let profile = summarize(&[run(1000, 2000), run(4000, 2000)], 1000, None, Vec::new());
        assert_eq!(profile.nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(profile.nodes[0].samples, [3000, 6000]);
        assert_eq!(profile.nodes[1].median_ns, 5500.0);
        assert_eq!(profile.runs.len(), 2);
    }
}
