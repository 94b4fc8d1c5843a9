//! Where the time of a model's run goes, and how well prices predict it.
//!
//! `cargo run --release -p regraft-cost --example attribute -- MODEL.onnx... [--shape
//! x:1,3,48,320]... [--runs N] [--top N] [--target onnxruntime]`

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use regraft_cost::{Calibration, CostModel, Measured, NameTable, Observation, Total, describe};
use regraft_ir::Bindings;
use regraft_onnx::Model;
use regraft_runtime::{
    Backend, Fill, FillOptions, InputSpec, ModelSource, ProfileOptions, ProfileSubject, Runtime, SessionOptions, TimingOptions,
    fill_inputs, median, profile_interleaved, time_interleaved,
};

struct Options {
    models: Vec<PathBuf>,
    shapes: BTreeMap<String, Vec<i64>>,
    runs: usize,
    top: usize,
    backend: Backend,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options { models: Vec::new(), shapes: BTreeMap::new(), runs: 20, top: 8, backend: Backend::default() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or("a value is missing");
        match arg.as_str() {
            "--shape" => {
                let text = value()?;
                let (name, sizes) = text.rsplit_once(':').ok_or("a shape looks like x:1,3,48,320")?;
                options.shapes.insert(name.to_owned(), sizes.split(',').map(str::parse).collect::<Result<_, _>>()?);
            }
            "--runs" => options.runs = value()?.parse()?,
            "--target" => options.backend = value()?.parse()?,
            "--top" => options.top = value()?.parse()?,
            _ => options.models.push(PathBuf::from(arg)),
        }
    }
    let runtime = options.backend.load(None, None)?;
    let mut calibration = Calibration::default();
    for path in &options.models {
        calibration.totals.push(measure(&*runtime, path, &options)?);
    }
    for total in &calibration.totals {
        println!(
            "{:32} predicted {:9.3} ms, measured {:9.3} ms, {:+.1} %",
            total.model,
            total.predicted / 1e6,
            total.measured / 1e6,
            100.0 * total.error()
        );
    }
    println!(
        "median error {:.1} %, {} of {} within 10 %",
        100.0 * calibration.median_error().unwrap_or(0.0),
        calibration.totals_within(0.1),
        calibration.totals.len()
    );
    Ok(())
}

/// The sizes of the model's symbols and inputs: as given, otherwise 1.
fn bind(model: &Model, options: &Options) -> Bindings {
    let mut bindings = Bindings::new();
    for id in model.graph().inputs() {
        let node = model.graph().node(*id);
        let (Some(name), Some(ty)) = (&node.names[0], &node.types[0]) else { continue };
        let given = options.shapes.get(name.as_ref());
        for (axis, dim) in ty.shape.iter().enumerate() {
            let size = given.and_then(|sizes| sizes.get(axis)).copied().unwrap_or(1);
            bindings.extend(dim.solve_number(size).map(|(symbol, number)| (symbol.to_owned(), number)));
        }
    }
    bindings
}

fn measure(runtime: &dyn Runtime, path: &Path, options: &Options) -> Result<Total, Box<dyn Error>> {
    let model = Model::read(path)?;
    let graph = model.graph();
    let mut measured = Measured::new(bind(&model, options));
    let mut session = runtime.open(ModelSource::path(path), &SessionOptions::default())?;
    let specs = InputSpec::from_values(session.inputs(), |value, axis| {
        options.shapes.get(&value.name).and_then(|sizes| sizes.get(axis)).map_or(Some(1), |size| usize::try_from(*size).ok())
    })?;
    let feeds = fill_inputs(Fill::Normal, &specs, &FillOptions::default())?;
    session.bind(&feeds)?;
    let timing = TimingOptions { min_rounds: options.runs, max_rounds: options.runs, ..TimingOptions::default() };
    let mut time = || -> Result<f64, Box<dyn Error>> {
        let samples = time_interleaved(&mut [&mut *session], &timing, &mut || true)?;
        Ok(median(&samples.sessions[0]).unwrap_or(0.0))
    };
    let run = time()?;
    let profiling = ProfileOptions { runs: options.runs, with_graph: true, ..ProfileOptions::default() };
    let profile = profile_interleaved(runtime, &[ProfileSubject { model: ModelSource::path(path), feeds: &feeds }], &profiling)?.remove(0);
    let again = time()?;
    let names = NameTable::of(graph).with_nodes_of(model.proto());
    let run_ns = run;
    let learned = measured
        .observe(&[Observation { graph, names: &names, profile: &profile, run_ns: Some(run_ns) }])
        .remove(0)
        .ok_or("no optimized graph")?;

    let times = &learned.attribution;
    let optimized = profile.graph.as_ref().ok_or("no optimized graph")?;
    println!("\n{}: {} nodes, {} run, {} opaque", path.display(), graph.len(), optimized.nodes.len(), model.opaque_nodes().len());
    println!(
        "  run {:.3} ms (then {:.3}); profiled nodes {:.3} ms = {:.1} % of it; unattributed {:.2} %; scaled by {:.3} (long ones by {:.3}), {:+.0} ns a kernel, {} ns a run",
        run / 1e6,
        again / 1e6,
        times.total() / 1e6,
        100.0 * times.total() / run_ns,
        100.0 * learned.unattributed,
        learned.fit.factor,
        learned.fit.factor * learned.fit.long_factor,
        learned.fit.dispatch - learned.fit.recording,
        measured.overhead()
    );
    let located = times.charges.iter().filter(|c| !c.owners.is_empty()).count();
    let reorders = times.charges.iter().filter(|c| c.reorder).fold(0.0, |sum, c| sum + c.ns);
    println!(
        "  {located} of {} located; layout changes {:.1} %; {} signatures",
        times.charges.len(),
        100.0 * reorders / times.total(),
        measured.table().len()
    );
    for (node, charge) in optimized.nodes.iter().zip(&times.charges).filter(|(_, c)| c.owners.is_empty()) {
        println!("    lost: {} `{}` {:.1} µs", node.op_type, node.name, charge.ns / 1e3);
    }
    for (node, charge) in optimized.nodes.iter().zip(&times.charges).filter(|(_, c)| !c.reorder) {
        let plain = |t: &str| t.trim_start_matches("Fused").to_owned();
        for owner in &charge.owners {
            let kind = graph.node(*owner).op.kind().name();
            if kind != plain(&node.op_type) {
                println!("    {} `{}` {:.1} µs goes to {kind} {:?}", node.op_type, node.name, charge.ns / 1e3, graph.node(*owner).names[0]);
            }
        }
    }
    for row in describe(&measured, graph, options.top) {
        println!(
            "  {:8.1} µs {:5.1} % {:13} {} {}",
            row.ns as f64 / 1e3,
            f64::from(row.per_mille) / 10.0,
            row.source.name(),
            row.name,
            row.signature
        );
    }
    let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    Ok(Total { model: name, predicted: measured.total(graph) as f64, measured: again })
}
