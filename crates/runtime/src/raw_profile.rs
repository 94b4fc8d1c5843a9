//! A runtime's record of its runs, in a runtime-independent form.

use serde::Deserialize;

/// One node of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// The node's name in the optimized graph; if it has none, one that the runtime made up.
    pub name: String,
    /// The runtime's number of the node; distinguishes nodes with equal names.
    pub index: u64,
    /// Operator type.
    pub op_type: String,
    /// Its execution provider, such as `CPUExecutionProvider`.
    pub provider: String,
    /// Elapsed time, ns.
    pub ns: u64,
    /// Element type (in the runtime's words) and shape of each input that was present.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// Element type and shape of each output.
    pub outputs: Vec<(String, Vec<i64>)>,
}

/// One run of a whole model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfiledRun {
    /// Elapsed time of the run, ns.
    pub ns: u64,
    /// Its nodes, in the order in which they finished.
    pub nodes: Vec<NodeEvent>,
}

/// All runs since a session was opened with profiling, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawProfile {
    /// The runs.
    pub runs: Vec<ProfiledRun>,
    /// Width to which times are rounded down, ns.
    pub resolution_ns: u64,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    dur: i64,
    #[serde(default)]
    args: Args,
}

#[derive(Deserialize, Default)]
struct Args {
    #[serde(default)]
    op_name: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    node_index: String,
    #[serde(default)]
    input_type_shape: Vec<std::collections::BTreeMap<String, Vec<i64>>>,
    #[serde(default)]
    output_type_shape: Vec<std::collections::BTreeMap<String, Vec<i64>>>,
}

impl RawProfile {
    /// ONNX Runtime's profile: a JSON array of events with durations in whole microseconds, rounded
    /// down. The nodes of a run come before the run's own `model_run`.
    pub(crate) fn from_onnxruntime_json(text: &[u8]) -> Result<Self, String> {
        const NS_PER_TICK: u64 = 1000;
        const KERNEL: &str = "_kernel_time";
        let events: Vec<Event> = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        let mut profile = Self { runs: Vec::new(), resolution_ns: NS_PER_TICK };
        let mut run = ProfiledRun::default();
        for event in events {
            let ns = u64::try_from(event.dur).unwrap_or(0).saturating_mul(NS_PER_TICK);
            if event.cat == "Session" && event.name == "model_run" {
                run.ns = ns;
                profile.runs.push(std::mem::take(&mut run));
            } else if event.cat == "Node"
                && let Some(name) = event.name.strip_suffix(KERNEL)
            {
                let flat = |v: Vec<std::collections::BTreeMap<_, _>>| v.into_iter().flatten().collect();
                run.nodes.push(NodeEvent {
                    name: name.to_owned(),
                    index: event.args.node_index.parse().unwrap_or(0),
                    op_type: event.args.op_name,
                    provider: event.args.provider,
                    ns,
                    inputs: flat(event.args.input_type_shape),
                    outputs: flat(event.args.output_type_shape),
                });
            }
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_runs() {
        let text = br#"[
            {"cat":"Session","dur":5,"ts":1,"ph":"X","name":"model_loading_array","args":{}},
            {"cat":"Node","dur":0,"ts":2,"ph":"X","name":"a_fence_before","args":{"op_name":"Relu"}},
            {"cat":"Node","dur":7,"ts":2,"ph":"X","name":"a_kernel_time","args":{"op_name":"Relu","provider":"CPUExecutionProvider",
             "node_index":"3","input_type_shape":[{"float":[1,2]}],"output_type_shape":[{"float":[1,2]}],"thread_scheduling_stats":""}},
            {"cat":"Session","dur":9,"ts":2,"ph":"X","name":"SequentialExecutor::Execute","args":{}},
            {"cat":"Session","dur":10,"ts":2,"ph":"X","name":"model_run","args":{}},
            {"cat":"Node","dur":8,"ts":2,"ph":"X","name":"a_kernel_time","args":{"op_name":"Relu"}},
            {"cat":"Session","dur":11,"ts":2,"ph":"X","name":"model_run","args":{}}
        ]"#;
        let profile = RawProfile::from_onnxruntime_json(text).unwrap();
        assert_eq!(profile.runs.iter().map(|r| r.ns).collect::<Vec<_>>(), [10_000, 11_000]);
        let node = &profile.runs[0].nodes[0];
        assert_eq!((node.name.as_str(), node.index, node.ns), ("a", 3, 7000));
        assert_eq!(node.inputs, [("float".to_owned(), vec![1, 2])]);
        assert!(RawProfile::from_onnxruntime_json(b"[{").is_err());
    }
}
