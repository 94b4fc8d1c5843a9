//! Predicted against measured gain of rewritten models: the first model is the input, the others
//! are rewrites of it.
//!
//! `cargo run --release -p regraft-cost --example gain -- INPUT.onnx OTHER.onnx... [--shape
//! x:1,3,48,320]... [--runs N]`
//!
//! Each other model is predicted twice: from the prices of the input alone (with guesses for what
//! is new), and after profiling it beside the input. Both predictions are compared with a later
//! sitting that the prices have not seen.

use std::collections::BTreeMap;
use std::error::Error;

use regraft_cost::{Calibration, CostModel, Gain, Measured, NameTable, Observation};
use regraft_ir::Bindings;
use regraft_onnx::Model;
use regraft_runtime::{
    Feeds, Fill, FillOptions, InputSpec, ModelSource, OnnxRuntime, ProfileOptions, ProfileSubject, Runtime, SessionOptions, TimingOptions,
    fill_inputs, median, paired_ratio, profile_interleaved, time_interleaved,
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut paths, mut shapes, mut runs) = (Vec::new(), BTreeMap::<String, Vec<i64>>::new(), 20);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--shape" => {
                let text = args.next().ok_or("a shape is missing")?;
                let (name, sizes) = text.rsplit_once(':').ok_or("a shape looks like x:1,3,48,320")?;
                shapes.insert(name.to_owned(), sizes.split(',').map(str::parse).collect::<Result<_, _>>()?);
            }
            "--runs" => runs = args.next().ok_or("a number is missing")?.parse()?,
            _ => paths.push(arg),
        }
    }
    let runtime = OnnxRuntime::load(None)?;
    let models = paths.iter().map(Model::read).collect::<Result<Vec<_>, _>>()?;
    let mut bindings = Bindings::new();
    for node in models.iter().flat_map(|m| m.graph().inputs().iter().map(|id| m.graph().node(*id))) {
        let (Some(name), Some(ty)) = (&node.names[0], &node.types[0]) else { continue };
        let sizes = shapes.get(name.as_ref());
        for (axis, dim) in ty.shape.iter().enumerate() {
            let size = sizes.and_then(|s| s.get(axis)).copied().unwrap_or(1);
            bindings.extend(dim.solve_number(size).map(|(symbol, number)| (symbol.to_owned(), number)));
        }
    }
    let feeds = {
        let session = runtime.open(ModelSource::path(&paths[0]), &SessionOptions::default())?;
        let specs = InputSpec::from_values(session.inputs(), |value, axis| {
            shapes.get(&value.name).and_then(|sizes| sizes.get(axis)).map_or(Some(1), |size| usize::try_from(*size).ok())
        })?;
        fill_inputs(Fill::Normal, &specs, &FillOptions::default())?
    };
    let profiling = ProfileOptions { runs, with_graph: true, ..ProfileOptions::default() };
    let subjects: Vec<ProfileSubject<'_>> = paths.iter().map(|p| ProfileSubject { model: ModelSource::path(p), feeds: &feeds }).collect();
    let profiles = profile_interleaved(&runtime, &subjects, &profiling)?;
    let times = time(&runtime, &paths, &feeds, runs)?;
    let names: Vec<NameTable> = models.iter().map(|m| NameTable::of(m.graph()).with_nodes_of(m.proto())).collect();
    let observations: Vec<Observation<'_>> = models
        .iter()
        .zip(&names)
        .zip(profiles.iter().zip(&times))
        .map(|((m, names), (profile, times))| Observation { graph: m.graph(), names, profile, run_ns: median(times) })
        .collect();

    let mut blind = Measured::new(bindings.clone());
    blind.observe(&observations[..1]);
    let mut informed = Measured::new(bindings);
    informed.observe(&observations);
    let later = time(&runtime, &paths, &feeds, runs)?;
    let mut calibration = Calibration::default();
    for (at, path) in paths.iter().enumerate().skip(1) {
        let graph = models[at].graph();
        let measured = paired_ratio(&later[0], &later[at], 0).ok_or("no pairs")?.median;
        let gain = |model: &Measured| Gain {
            model: path.clone(),
            predicted_before: model.total(models[0].graph()) as f64,
            predicted_after: model.total(graph) as f64,
            measured,
        };
        let (guess, known) = (gain(&blind), gain(&informed));
        let knowledge = blind.known(graph);
        println!(
            "{path}: measured {measured:.3}; predicted {:.3} ({:+.1} points); before it was profiled {:.3}, {} of {} nodes known",
            known.predicted(),
            known.error_points(),
            guess.predicted(),
            knowledge.known,
            knowledge.known + knowledge.unknown.len()
        );
        calibration.gains.push(known);
    }
    println!("{} of {} gains within 5 points", calibration.gains_within(5.0), calibration.gains.len());
    Ok(())
}

/// Times the models against each other; returns ns per round for each.
fn time(runtime: &OnnxRuntime, paths: &[String], feeds: &Feeds, rounds: usize) -> Result<Vec<Vec<u64>>, Box<dyn Error>> {
    let mut sessions = Vec::new();
    for path in paths {
        let mut session = runtime.open(ModelSource::path(path), &SessionOptions::default())?;
        session.bind(feeds)?;
        sessions.push(session);
    }
    let mut borrowed: Vec<&mut dyn regraft_runtime::Session> = sessions.iter_mut().map(|s| &mut **s as _).collect();
    let options = TimingOptions { min_rounds: rounds, max_rounds: rounds, ..TimingOptions::default() };
    Ok(time_interleaved(&mut borrowed, &options, &mut || true)?.sessions)
}
