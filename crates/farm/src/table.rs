//! `Table`: all tasks and what came of them.

use std::collections::BTreeMap;
use std::fs;

use regraft::Failure;
use regraft::file::write_atomic;
use regraft::render::{lines, plain_table, ratio, seconds};
use regraft::report::Speedup;
use serde::Serialize;
use serde_json::Value;

use crate::farm::Farm;
use crate::outcome::{Outcome, State};
use crate::task::{Kind, Task};

/// One task.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The task.
    pub task: String,
    /// What it does.
    pub kind: Kind,
    /// Model or specification.
    pub subject: String,
    /// The file that it is about, relative to the folder of the jobs; none for what is shipped.
    pub input: String,
    /// Sizes, or shard.
    pub sizes: String,
    /// Threads per operator, if given.
    pub threads: Option<u16>,
    /// Runtime, if given.
    pub target: String,
    /// How it ended; none if it did not.
    pub state: Option<State>,
    /// How many times faster, if that was measured.
    pub speedup: Option<Speedup>,
    /// Nodes before and after, of an optimized model.
    pub nodes: Option<(usize, usize)>,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// Name of the machine.
    pub host: String,
    /// Processor, digest of its features, number of logical processors.
    pub machine: String,
    /// What it made, relative to the folder of the jobs.
    pub output: String,
    /// Why it did not.
    pub cause: String,
}

/// All tasks of a file of jobs, in its order.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// One row for each task.
    pub rows: Vec<Row>,
}

impl Table {
    /// Of tasks, what came of them, and why there is nothing of others.
    pub(crate) fn of(farm: &Farm, tasks: &[Task], done: &BTreeMap<String, Outcome>, lost: &BTreeMap<String, String>) -> Table {
        Table { rows: tasks.iter().map(|task| row(farm, task, done.get(&task.id), lost.get(&task.id))).collect() }
    }

    /// Of tasks, as their folder has them.
    pub fn read(farm: &Farm, tasks: &[Task]) -> Table {
        let done = tasks.iter().filter_map(|task| Some((task.id.clone(), farm.outcome(task)?))).collect();
        Table::of(farm, tasks, &done, &BTreeMap::new())
    }

    /// Writes `table.csv` into the folder of the farm.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn write(&self, farm: &Farm) -> Result<(), Failure> {
        write_atomic(&farm.folder().join("table.csv"), self.csv().as_bytes())
    }

    /// How many ended so; `None`: not at all.
    pub fn count(&self, state: Option<State>) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }

    /// Geometric mean of all speed-ups of optimized models, and how many there are.
    pub fn mean(&self) -> Option<(f64, usize)> {
        let logs: Vec<f64> =
            self.rows.iter().filter(|row| row.kind == Kind::Optimize).filter_map(|row| Some(row.speedup?.median.ln())).collect();
        (!logs.is_empty()).then(|| ((logs.iter().sum::<f64>() / logs.len() as f64).exp(), logs.len()))
    }

    /// As comma-separated values, with a header.
    pub fn csv(&self) -> String {
        let header = "task,kind,subject,input,sizes,threads,target,state,speedup,low,high,nodes_before,nodes_after,seconds,host,machine,output,cause\n";
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
        let line = |row: &Row| {
            let [median, low, high] =
                [|s: Speedup| s.median, |s: Speedup| s.low, |s: Speedup| s.high].map(|of| number(row.speedup.map(of)));
            let threads = row.threads.map_or(String::new(), |threads| threads.to_string());
            let state = row.state.map_or("", State::name);
            let seconds = number(row.seconds);
            let [before, after] =
                [|n: (usize, usize)| n.0, |n: (usize, usize)| n.1].map(|of| row.nodes.map_or(String::new(), |n| of(n).to_string()));
            let cells = [
                &row.task,
                row.kind.name(),
                &row.subject,
                &row.input,
                &row.sizes,
                &threads,
                &row.target,
                state,
                &median,
                &low,
                &high,
                &before,
                &after,
                &seconds,
                &row.host,
                &row.machine,
                &row.output,
                &row.cause,
            ];
            format!("{}\n", cells.map(quoted).join(","))
        };
        std::iter::once(header.to_owned()).chain(self.rows.iter().map(line)).collect()
    }

    /// As a table for people.
    pub fn shown(&self) -> String {
        let mut table = plain_table(&["task", "state", "speed-up", "nodes", "time", "host"], &[2, 3, 4]);
        for row in &self.rows {
            let speedup = row.speedup.as_ref().map_or(String::new(), |speedup| match speedup.pairs {
                0 if *speedup == Speedup::NONE => "1.00x".into(),
                0 => format!("{:.2}x untimed", speedup.median),
                _ => ratio(speedup),
            });
            let time = row.seconds.map_or(String::new(), seconds);
            let state = row.state.map_or("open", State::name).to_owned();
            let nodes = row.nodes.map_or(String::new(), |(before, after)| format!("{before} -> {after}"));
            table.add_row([row.task.clone(), state, speedup, nodes, time, row.host.clone()]);
        }
        let mut text = lines(&table);
        // Each cause once, with the first task that it is about.
        let mut causes: Vec<(&str, &str, usize)> = Vec::new();
        for row in self.rows.iter().filter(|row| !row.cause.is_empty()) {
            match causes.iter_mut().find(|(cause, ..)| *cause == row.cause) {
                Some((.., count)) => *count += 1,
                None => causes.push((&row.cause, &row.task, 1)),
            }
        }
        for (cause, task, count) in causes {
            let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            text.push_str(&format!("\n{task}{more}: {cause}\n"));
        }
        text
    }
}

/// A cell, quoted where it must be (RFC 4180).
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

fn row(farm: &Farm, task: &Task, outcome: Option<&Outcome>, lost: Option<&String>) -> Row {
    let has_output = outcome.is_some_and(|outcome| outcome.state.has_output());
    let output = task.output.as_ref().filter(|_| has_output).map(|name| format!("{}/{}/{name}", farm.results(), task.id));
    let place = outcome.map(|outcome| outcome.place.clone()).unwrap_or_default();
    let report = outcome.filter(|_| has_output).and_then(|outcome| report(farm, task, outcome));
    Row {
        task: task.id.clone(),
        kind: task.kind,
        subject: task.labels.subject.clone(),
        input: task.inputs.first().map(|input| input.path.clone()).unwrap_or_default(),
        sizes: task.labels.sizes.clone(),
        threads: task.labels.threads,
        target: task.labels.target.clone(),
        state: outcome.map(|outcome| outcome.state),
        speedup: report.as_ref().and_then(speedup),
        nodes: report.as_ref().and_then(|report| serde_json::from_value(report.get("nodes")?.clone()).ok()),
        seconds: outcome.map(|outcome| outcome.seconds),
        host: place.host,
        machine: place.machine,
        output: output.unwrap_or_default(),
        cause: outcome.map(cause).or_else(|| lost.cloned()).unwrap_or_default(),
    }
}

/// Why a task did not do what it was to, and how to mend that.
fn cause(outcome: &Outcome) -> String {
    match (&outcome.cause, &outcome.hint) {
        (Some(cause), Some(hint)) => format!("{cause} (hint: {hint})"),
        (Some(cause), None) => cause.clone(),
        (None, _) => String::new(),
    }
}

/// What a task reports: of the model that it made, or that it timed.
fn report(farm: &Farm, task: &Task, outcome: &Outcome) -> Option<Value> {
    match task.kind {
        Kind::Optimize => {
            let name = task.output.as_ref()?.strip_suffix(".onnx")?;
            let text = fs::read_to_string(farm.result_folder(&task.id).join(format!("{name}.report.json"))).ok()?;
            serde_json::from_str(&text).ok()
        }
        Kind::Bench => serde_json::from_str::<Value>(&outcome.output).ok()?.pointer("/models/1").cloned(),
        _ => None,
    }
}

/// What was measured, if something was: an input that was kept is as fast as itself.
fn speedup(report: &Value) -> Option<Speedup> {
    let is_timed = report.get("cost").is_none_or(|cost| cost != "operators");
    serde_json::from_value::<Speedup>(report.get("speedup")?.clone()).ok().filter(|_| is_timed)
}
