//! How finely this machine can tell models apart: times a model against itself, with and without
//! profiling.
//!
//! `cargo run --release -p regraft-runtime --example noise -- MODEL.onnx... [--rounds N] [--repeats
//! N] [--threads N]`

use std::error::Error;
use std::path::PathBuf;

use regraft_runtime::{
    Clock, Fill, FillOptions, InputSpec, MachineKey, ModelSource, OnnxRuntime, ProfileOptions, ProfileSubject, Ratio, Runtime,
    SessionOptions, TimingOptions, fill_inputs, median, paired_ratio, profile_interleaved, quantile, time_interleaved,
};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut models, mut rounds, mut repeats, mut threads) = (Vec::new(), 30, 10, 1);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let slot = match arg.as_str() {
            "--rounds" => &mut rounds,
            "--repeats" => &mut repeats,
            "--threads" => &mut threads,
            _ => {
                models.push(PathBuf::from(arg));
                continue;
            }
        };
        *slot = args.next().ok_or("a number is missing")?.parse()?;
    }
    let runtime = OnnxRuntime::load(None)?;
    println!("{} {} from {}", runtime.name(), runtime.version(), runtime.library().display());
    println!("machine {}", MachineKey::detect());
    for model in &models {
        measure(&runtime, model, rounds, repeats, threads)?;
    }
    Ok(())
}

fn measure(runtime: &OnnxRuntime, path: &std::path::Path, rounds: usize, repeats: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let options = SessionOptions { threads, ..SessionOptions::default() };
    let profiled = SessionOptions { profile: true, ..options.clone() };
    let mut sessions = Vec::new();
    let mut feeds = None;
    for options in [&options, &options, &profiled] {
        let mut session = runtime.open(ModelSource::path(path), options)?;
        let specs = InputSpec::from_values(session.inputs(), |_, _| Some(1))?;
        let values = fill_inputs(Fill::Normal, &specs, &FillOptions::default())?;
        session.bind(&values)?;
        feeds = Some(values);
        sessions.push(session);
    }
    println!("\n{}", path.display());
    for clock in [Clock::for_threads(threads), Clock::Wall] {
        let timing = TimingOptions { warmup: 3, min_rounds: rounds, max_rounds: rounds, clock: Some(clock), ..TimingOptions::default() };
        let (mut same, mut recording) = (Vec::new(), Vec::new());
        let mut times = Vec::new();
        for repeat in 0..repeats {
            let mut borrowed = sessions.iter_mut().map(|s| &mut **s as _).collect::<Vec<_>>();
            let samples = time_interleaved(&mut borrowed, &timing, &mut || true)?;
            let ratio = |with: usize| paired_ratio(&samples.sessions[with], &samples.sessions[0], repeat as u64);
            same.extend(ratio(1));
            recording.extend(ratio(2));
            times.extend_from_slice(&samples.sessions[0]);
        }
        let ms = |q| quantile(&times, q).unwrap_or(0.0) / 1e6;
        println!(
            "  {}: median {:.3} ms, quartiles {:.3} to {:.3}, least {:.3}, most {:.3}",
            clock.name(),
            ms(0.5),
            ms(0.25),
            ms(0.75),
            ms(0.0),
            ms(1.0)
        );
        print_ratios("against itself", &same);
        print_ratios("recording a profile", &recording);
        if clock == Clock::Wall {
            break;
        }
    }
    let subject = ProfileSubject { model: ModelSource::path(path), feeds: feeds.as_ref().ok_or("no inputs")? };
    let profile_options = ProfileOptions { runs: rounds, session: options, with_graph: true, ..ProfileOptions::default() };
    let profiles = profile_interleaved(runtime, &[subject, subject], &profile_options)?;
    for profile in &profiles {
        let sum = |f: fn(&regraft_runtime::NodeProfile) -> f64| profile.nodes.iter().map(f).sum::<f64>() / 1e6;
        println!(
            "  profile: {} nodes; sum of medians {:.3} ms of {:.3}; sum of 25 % quantiles {:.3} ms of {:.3}",
            profile.nodes.len(),
            sum(|n| n.median_ns),
            profile.run_median_ns / 1e6,
            sum(|n| n.q25_ns),
            profile.run_q25_ns / 1e6
        );
        if let Some(graph) = &profile.graph {
            let found = profile.places_of(graph).iter().flatten().count();
            println!("  optimized graph: {} nodes, {found} with times", graph.nodes.len());
        }
    }
    Ok(())
}

fn print_ratios(what: &str, ratios: &[Ratio]) {
    let in_ppm = |f: fn(&Ratio) -> f64| ratios.iter().map(|r| (f(r) * 1e6) as u64).collect::<Vec<_>>();
    let medians = in_ppm(|r| r.median);
    let at = |q| quantile(&medians, q).unwrap_or(0.0) / 1e6;
    let width = median(&in_ppm(|r| r.high - r.low)).unwrap_or(0.0) / 1e6;
    let noticed = ratios.iter().filter(|r| r.is_beyond_noise()).count();
    println!(
        "    {what}: ratio {:.4} (least {:.4}, most {:.4} of {}), interval {width:.4} wide, beyond noise {noticed} times",
        at(0.5),
        at(0.0),
        at(1.0),
        ratios.len()
    );
}
