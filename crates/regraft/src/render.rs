//! Human-readable reports: one short table, one verdict line, and the details on request.

mod headroom;

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use regraft_ir::Trust;
use regraft_onnx::{FixedInput, FixedSizes};
use regraft_runtime::Startup;

use crate::optimize::{FLOOR_FACTOR, MARGIN, SUBNORMAL_WEIGHTS};
use crate::refused::Refused;
use crate::report::{Fastest, Predicted, Replayed, Report, Speedup, Timing, Undecided};
use crate::units::{show_bytes, show_ns};
use regraft_cost::Operators;

/// Maximum number of rules in the table; the report has all.
const RULES_SHOWN: usize = 12;
/// Separates the parts of a verdict.
const DOT: &str = " · ";

/// A table without lines; the columns of `right` are aligned to the right.
pub fn plain_table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().map(ToString::to_string).collect::<Vec<_>>());
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The table as text, without trailing blanks.
pub fn lines(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A ratio and its interval: `1.43x [1.42, 1.45]`.
pub fn ratio(speedup: &Speedup) -> String {
    match speedup.pairs {
        0 => "-".into(),
        _ => format!("{:.2}x [{:.2}, {:.2}]", speedup.median, speedup.low, speedup.high),
    }
}

/// The speed-up of what was written, measured or predicted.
pub(crate) fn speedup(report: &Report) -> String {
    let Speedup { median, low, high, .. } = report.speedup;
    match &report.prediction {
        Some(prediction) if !prediction.is_kept => format!("predicted {median:.2}x [{low:.2}, {high:.2}]"),
        _ => ratio(&report.speedup),
    }
}

/// `1 node`, `2 nodes`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A difference: `3.1e-6`, or `0`.
pub fn difference(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.1e}") }
}

/// A bound: `1e-4`.
pub fn bound(value: f64) -> String {
    format!("{value:e}")
}

/// Seconds, human-readable.
pub fn seconds(value: f64) -> String {
    match value {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

/// Median times of a run of input and output, ns, if they were timed.
pub(crate) fn medians(report: &Report) -> (Option<f64>, Option<f64>) {
    let timed = |timing: &Timing| Some(timing.median_ns).filter(|ns| *ns > 0.0);
    let input = report.timings.iter().find(|t| t.model == "input").and_then(timed);
    // The output is identified by its speed-up; the input again costs what the input costs.
    let output = report.timings.iter().skip(1).find(|t| t.speedup == report.speedup).and_then(timed);
    (input, output.or(input))
}

/// Input against output, and the rules that were applied.
pub fn table(report: &Report) -> String {
    let time = if report.prediction.is_some() { "time there" } else { "time" };
    let mut table = match report.startup {
        Some(_) => plain_table(&["", time, "speed-up", "load", "memory", "nodes", "size", "file"], &[1, 2, 3, 4, 5, 6]),
        None => plain_table(&["", time, "speed-up", "nodes", "size", "file"], &[1, 2, 3, 4]),
    };
    let (input, output) = medians(report);
    let time = |ns: Option<f64>| ns.map_or_else(|| "-".into(), measured);
    let file = report.output.clone().unwrap_or_else(|| "not written".into());
    let rows = [
        ("input", time(input), String::new(), report.nodes.0, report.bytes.0, report.input.clone()),
        ("output", time(output), speedup(report), report.nodes.1, report.bytes.1, file),
    ];
    let startups = report.startup.map(|startup| [startup.input, startup.output]);
    for (at, (name, time, speedup, nodes, bytes, file)) in rows.into_iter().enumerate() {
        let mut row = vec![name.to_string(), time, speedup];
        row.extend(startups.iter().flat_map(|startups| startup(&startups[at])));
        row.extend([nodes.to_string(), show_bytes(bytes), file]);
        table.add_row(row);
    }
    let mut text = lines(&table);
    if let Some(headroom) = report.headroom.as_ref().filter(|headroom| headroom.flops.0 > 0.0) {
        let _ = writeln!(text, "\n{}", headroom::arithmetic(headroom));
    }
    if !report.bindings.is_empty() || report.single_thread.is_some() {
        text.push('\n');
        text.push_str(&settings(report, input.zip(output)));
    }
    if let Some(fastest) = &report.fastest {
        text.push('\n');
        text.push_str(&runtimes(fastest));
    }
    if !report.applied.is_empty() || !report.cleaned.is_empty() {
        text.push('\n');
        text.push_str(&rules(report));
    }
    text
}

/// Input and output on every runtime, all against the input on the first one.
fn runtimes(fastest: &Fastest) -> String {
    let mut table = plain_table(&["on", "input", "speed-up", "output", "speed-up", ""], &[1, 2, 3, 4]);
    for (at, row) in fastest.runtimes.iter().enumerate() {
        let over_first = if at == 0 { String::new() } else { ratio(&row.input) };
        let chosen = if row.runtime == fastest.chosen { "chosen" } else { "" };
        let (input, output) = (measured(row.input_ns), measured(row.output_ns));
        table.add_row([row.runtime.clone(), input, over_first, output, ratio(&row.output), chosen.into()]);
    }
    lines(&table)
}

/// Which runtime to deploy on, and what that gains over the input on the first one.
fn deployed(fastest: &Fastest) -> String {
    let chosen = fastest.runtimes.iter().find(|row| row.runtime == fastest.chosen);
    match (chosen, fastest.runtimes.first()) {
        (Some(row), Some(first)) if row.runtime != first.runtime => {
            format!("deploy on {}: {} the input on {}", row.runtime, ratio(&row.output), first.runtime)
        }
        _ => format!("deploy on {}", fastest.chosen),
    }
}

/// A time; nothing is known where it is 0.
pub(crate) fn measured(ns: f64) -> String {
    if ns > 0.0 { show_ns(ns) } else { "-".into() }
}

/// Time to load, and peak memory.
fn startup(startup: &Startup) -> [String; 2] {
    [show_ns(startup.load_ns as f64), startup.peak_bytes.map_or_else(|| "-".into(), show_bytes)]
}

/// Input against output at every binding, with the threads of the run and at one thread. `times`
/// are those over all bindings.
fn settings(report: &Report, times: Option<(f64, f64)>) -> String {
    let mut table = plain_table(&["at", "input", "output", "speed-up"], &[1, 2, 3]);
    let mut row = |at: String, median_ns: (f64, f64), speedup: &Speedup| {
        table.add_row([at, measured(median_ns.0), measured(median_ns.1), ratio(speedup)]);
    };
    if report.bindings.is_empty() {
        row(count(report.threads, "thread"), times.unwrap_or_default(), &report.speedup);
        report.single_thread.iter().for_each(|single| row(count(1, "thread"), single.median_ns, &single.speedup));
    }
    for at in &report.bindings {
        row(at.binding.clone(), at.median_ns, &at.speedup);
        at.single_thread.iter().for_each(|single| row(format!("{}, 1 thread", at.binding), single.median_ns, &single.speedup));
    }
    lines(&table)
}

fn rules(report: &Report) -> String {
    let mut groups: Vec<(&str, usize, i64)> = Vec::new();
    for applied in &report.applied {
        match groups.iter_mut().find(|g| g.0 == applied.rule) {
            Some(group) => (group.1, group.2) = (group.1 + 1, group.2 + applied.gain_ns),
            None => groups.push((&applied.rule, 1, applied.gain_ns)),
        }
    }
    groups.sort_by_key(|g| (std::cmp::Reverse(g.2), g.0));
    let mut table = plain_table(&["rule", "count", "gain"], &[1, 2]);
    for (rule, count, ns) in groups.iter().take(RULES_SHOWN) {
        table.add_row([(*rule).to_string(), format!("×{count}"), gain(report, *ns)]);
    }
    if groups.len() > RULES_SHOWN {
        let rest = &groups[RULES_SHOWN..];
        let (count, ns) = rest.iter().fold((0, 0), |(n, ns), g| (n + g.1, ns + g.2));
        table.add_row([format!("{} more rules", rest.len()), format!("×{count}"), gain(report, ns)]);
    }
    for (form, removed) in &report.cleaned {
        table.add_row([form.clone(), format!("×{removed}"), String::new()]);
    }
    lines(&table)
}

/// A gain by the price list of a run: time, or operators where it counted those.
pub(crate) fn gain(report: &Report, ns: i64) -> String {
    if report.cost == "operators" {
        let (operators, _) = Operators::parts(ns);
        return format!("{operators} {}", if operators.abs() == 1 { "operator" } else { "operators" });
    }
    let text = show_ns(ns.unsigned_abs() as f64);
    if ns < 0 { format!("-{text}") } else { text }
}

/// True if what was written is the input as it was.
pub fn is_unchanged(report: &Report) -> bool {
    report.applied.is_empty() && report.cleaned.is_empty() && report.frozen.is_empty() && !report.rescued
}

/// One line: the result, how far it is trusted, how long it took, and how to reproduce it.
/// `remarks` precede the time.
pub fn verdict(report: &Report, remarks: &[String]) -> String {
    let mut parts: Vec<String> = report.fastest.iter().map(deployed).collect();
    parts.push(outcome(report));
    parts.extend(report.prediction.as_ref().map(|prediction| rests_on(prediction, report)));
    if !report.frozen.is_empty() {
        parts.push(format!("for {} only", frozen(report)));
    }
    if report.applied.is_empty()
        && report.ended != "interrupted"
        && let [first, ..] = report.undecided.as_slice()
    {
        parts.push(format!("about {} more would tell (hint: --budget {}s)", seconds(first.seconds), first.budget));
    }
    if report.ended == "interrupted" {
        parts.push("interrupted: the best valid model so far".into());
    }
    if !report.applied.is_empty() {
        parts.push(rewrites(report));
    }
    parts.extend(report.check.replay.as_ref().filter(|_| !is_unchanged(report)).map(replayed));
    if !is_unchanged(report) {
        let confirmed = match report.check.confirmed {
            0 => String::new(),
            n => format!(", {} beyond it that double precision confirms to be rounding", count(n, "comparison")),
        };
        parts.push(agreement(report.check.worst, report.check.floor, report.check.tolerance, &confirmed));
    }
    if !report.not_done.is_empty() {
        parts.push(format!("{} not done (-v says why)", report.not_done.len()));
    }
    parts.extend(remarks.iter().cloned());
    parts.push(seconds(report.seconds.total));
    parts.push(format!("seed {}", report.seed));
    parts.push(report.reproduce.clone());
    format!("verdict: {}", parts.join(DOT))
}

/// How far outputs agree, and the yardstick: the tolerance, or the noise floor if that is larger.
/// `more` is appended.
pub fn agreement(worst: f64, floor: f64, tolerance: f64, more: &str) -> String {
    let allowed = match FLOOR_FACTOR * floor {
        noise if noise > tolerance => format!("{FLOOR_FACTOR} times that is rounding"),
        _ => format!("tolerance {}", bound(tolerance)),
    };
    format!("same outputs to {} (noise floor {}, {allowed}{more})", difference(worst), difference(floor))
}

/// The number of rewrites. The trust in their rules adds nothing if each of them was replayed.
fn rewrites(report: &Report) -> String {
    let (rewrites, trust) = (count(report.applied.len(), "rewrite"), trust(report));
    if report.check.replay.is_some() && trust == Trust::Proved { rewrites } else { format!("{rewrites} ({trust})") }
}

/// The sizes that the result is limited to, as `--freeze` takes them.
fn frozen(report: &Report) -> FixedSizes {
    FixedSizes(report.frozen.iter().map(|(name, sizes)| FixedInput { name: name.clone(), sizes: sizes.clone() }).collect())
}

/// What replaying the certificate showed.
fn replayed(replay: &Replayed) -> String {
    let Replayed { steps, proved, bounded, .. } = replay;
    let time = seconds(replay.seconds);
    let rounded = if *bounded > 0 { format!(" and {bounded} up to rounded constants") } else { String::new() };
    let shown = format!("{proved}{rounded} of {}", count(*steps, "step"));
    let assumed: String = replay.assumptions.iter().map(|clause| format!(", {clause}")).collect();
    match &replay.uncompared {
        _ if proved + bounded < *steps => {
            format!("certificate: proved {shown}{assumed}; {} not shown in {time}", steps - proved - bounded)
        }
        Some(why) => format!("certificate: proved {shown}{assumed}, and not compared with the result: {why}"),
        None if *bounded > 0 => format!("certificate: bounded (proved {shown}{assumed})"),
        None => format!("certificate: proved ({shown}{assumed})"),
    }
}

fn outcome(report: &Report) -> String {
    let speedup = &report.speedup;
    let interval = format!("[{:.2}, {:.2}]", speedup.low, speedup.high);
    if let Some(refused) = &report.refused {
        return refusal(refused, report);
    }
    if is_unchanged(report) {
        let others = report.timings.get(1..).unwrap_or_default();
        let why = match others {
            _ if let [first, ..] = report.undecided.as_slice() => undecided(first),
            [] => "no faster model was found".to_string(),
            _ if others.iter().any(|t| t.speedup.low > 1.0 + MARGIN) => "no faster model passed its check".into(),
            _ if report.prediction.is_some() => "no gain beyond its uncertainty is predicted".into(),
            _ if others.iter().any(|t| t.speedup.low > 1.0) => format!("no gain of more than {} %", 100.0 * MARGIN),
            _ => "no gain beyond noise".into(),
        };
        return format!("{why}; the input was written unchanged");
    }
    if report.applied.is_empty() {
        let (flushed, removed): (Vec<_>, Vec<_>) = report.cleaned.iter().partition(|(name, _)| name == SUBNORMAL_WEIGHTS);
        let removed: usize = removed.iter().map(|(_, nodes)| nodes).sum();
        let gain = match report.undecided.as_slice() {
            _ if speedup.low > 1.0 + MARGIN => format!("{:.2}x faster {interval}", speedup.median),
            [first, ..] => undecided(first),
            [] => "no gain beyond noise".into(),
        };
        let frozen = (!report.frozen.is_empty()).then(|| "at fixed sizes".to_string());
        let flushed = flushed.first().map(|(_, weights)| format!("without subnormal numbers in {}", count(*weights, "constant")));
        let only = frozen.is_none() && flushed.is_none();
        let without = (removed > 0 || only).then(|| format!("without {}", count(removed, "superfluous node")));
        let changes = frozen.into_iter().chain(flushed).chain(without).collect::<Vec<_>>().join(", ");
        return format!("{gain}; the input was written {changes}");
    }
    if report.prediction.is_some() {
        return format!("predicted {:.2}x faster {interval}", speedup.median);
    }
    if speedup.pairs == 0 {
        return "rewritten, not timed".into();
    }
    let single = report.single_thread.as_ref().map(|single| {
        let Speedup { median, low, high, .. } = single.speedup;
        format!(" with {}, {median:.2}x [{low:.2}, {high:.2}] with 1", count(report.threads, "thread"))
    });
    let faster = format!("{:.2}x faster {interval}{}", speedup.median, single.unwrap_or_default());
    let least = report.bindings.iter().min_by(|a, b| a.speedup.median.total_cmp(&b.speedup.median));
    least.map_or(faster.clone(), |at| {
        let bindings = count(report.bindings.len(), "binding");
        format!("{faster} over {bindings}, least {:.2}x at {}", at.speedup.median, at.binding)
    })
}

/// What a prediction rests on, and what confirms it.
fn rests_on(prediction: &Predicted, report: &Report) -> String {
    let carried = match 100.0 * prediction.carried {
        share if share < 0.5 => String::new(),
        share => format!(", {share:.0} % of the time carried over from this machine"),
    };
    let recorded = format!("predicted from prices recorded on {}{carried}, not measured here", prediction.place());
    let Some(output) = report.output.as_ref().filter(|_| !prediction.is_kept) else { return recorded };
    format!("{recorded}; `regraft bench --here {} {output}` on that device confirms it", report.input)
}

/// What is known of a model that may or may not be faster.
fn undecided(Undecided { model, at_one_thread, speedup, .. }: &Undecided) -> String {
    let Speedup { median, low, high, pairs } = speedup;
    let open = if *at_one_thread { "is not slower at one thread" } else { "is faster" };
    let known = if *pairs == 0 { "not timed there".into() } else { format!("{median:.3}x [{low:.3}, {high:.3}]") };
    format!("undecided whether {model} {open} ({known})")
}

/// The result where the runtime refuses the input: whether it loads what was written.
fn refusal(refused: &Refused, report: &Report) -> String {
    let without = refused.without();
    if !report.rescued {
        let wanted = "with its own optimizer fully on, and no rewrite was found that it loads";
        return format!("the runtime refuses the input {wanted}; the input was written unchanged, and runs {without}");
    }
    let Speedup { median, low, high, pairs } = report.speedup;
    let speed = match (low > 1.0, high < 1.0) {
        _ if pairs == 0 => "not timed against the input".into(),
        (true, _) => format!("{median:.2}x faster [{low:.2}, {high:.2}] than the input"),
        (_, true) => format!("{:.2}x slower [{:.2}, {:.2}] than the input", 1.0 / median, 1.0 / high, 1.0 / low),
        _ => "as fast as the input".into(),
    };
    format!("rescued: the runtime loads it with its own optimizer fully on, and refuses the input so; {speed} {without}")
}

/// The trust in the least trusted rewrite.
fn trust(report: &Report) -> Trust {
    report.applied.iter().map(|applied| applied.trust).min().unwrap_or_default()
}

/// Everything else a careful reader wants to know: what was applied where, what was not and why,
/// the check, where the time went.
pub fn details(report: &Report) -> String {
    let mut text = String::new();
    if let Some(prediction) = &report.prediction {
        let Predicted { file, run_ns, spread_ns, shared, .. } = prediction;
        let (run, spread) = (show_ns(*run_ns), show_ns(*spread_ns));
        let known = count(*shared, "operator");
        let _ = writeln!(text, "prices     {file}: {}, where the input took {run} (spread {spread})", prediction.place());
        let _ = writeln!(text, "           carried over by what {known} took there and here\n");
    }
    if !report.applied.is_empty() {
        let mut table = plain_table(&["applied", "at", "gain", "numeric", "trust"], &[2]);
        for a in &report.applied {
            table.add_row([a.rule.clone(), a.at.clone(), gain(report, a.gain_ns), a.numeric.to_string(), a.trust.to_string()]);
        }
        let _ = writeln!(text, "{}", lines(&table));
    }
    if !report.not_done.is_empty() {
        let mut table = plain_table(&["not done", "at", "because"], &[]);
        for n in &report.not_done {
            table.add_row([&n.what, &n.at, &n.because]);
        }
        let _ = writeln!(text, "{}", lines(&table));
    }
    if !report.trials.is_empty() {
        let mut table =
            plain_table(&["tried out", "to", "rewrites", "predicted", "of it guessed", "measured", "at", "took"], &[2, 3, 4, 5, 6, 7]);
        for t in &report.trials {
            table.add_row([
                t.model.clone(),
                t.aim.to_string(),
                t.rewrites.to_string(),
                format!("{:.3}x", t.predicted),
                format!("{:.0} %", 100.0 * t.guessed),
                t.measured.map_or_else(|| "-".into(), |speedup| format!("{speedup:.3}x")),
                seconds(t.begun),
                seconds(t.seconds),
            ]);
        }
        let _ = writeln!(text, "{}", lines(&table));
    }
    if report.timings.len() > 1 && report.timings.iter().any(|t| t.median_ns > 0.0) {
        let alone = report.timings.iter().any(|t| t.single_thread.is_some());
        let done = if report.prediction.is_some() { "predicted" } else { "timed end to end" };
        let header = [done, "median", "speed-up", "pairs", "at one thread"];
        let mut table = plain_table(&header[..if alone { 5 } else { 4 }], &[1, 2, 3, 4]);
        for t in report.timings.iter().filter(|t| t.median_ns > 0.0) {
            let Speedup { median, low, high, pairs } = t.speedup;
            let faster = match report.prediction {
                Some(_) if t.model != "input" => format!("{median:.2}x [{low:.2}, {high:.2}]"),
                _ => ratio(&t.speedup),
            };
            let row = [t.model.clone(), show_ns(t.median_ns), faster, pairs.to_string()];
            // The input is not compared with itself.
            let single = t.single_thread.filter(|_| t.model != "input").map_or_else(String::new, |single| ratio(&single));
            table.add_row(row.into_iter().chain(alone.then_some(single)).collect::<Vec<_>>());
        }
        let _ = writeln!(text, "{}", lines(&table));
    }
    if let Some(headroom) = report.headroom.as_ref().filter(|headroom| !headroom.slowest.is_empty()) {
        let _ = writeln!(text, "{}", headroom::slowest(headroom));
    }
    let check = &report.check;
    if !check.fills.is_empty() {
        let _ = writeln!(
            text,
            "check      {} against the runtime without its optimizer, fills {}",
            difference(check.worst),
            check.fills.join(", ")
        );
        if check.histogram.total() > 0 {
            let _ = writeln!(text, "           {}", check.histogram);
        }
        if let Some((difference, floor)) = check.before_saturation {
            let _ =
                writeln!(text, "           {} before saturation (noise floor {})", self::difference(difference), self::difference(floor));
        }
        if let Some(worst) = check.worst_reference {
            let _ = writeln!(text, "           {} against the reference executor, {} fills", difference(worst), check.reference_fills);
        }
        for note in check.reference_note.iter().chain(&check.notes) {
            let _ = writeln!(text, "           {note}");
        }
    }
    if let Some(replay) = &check.replay {
        let _ = writeln!(text, "replay     {}", replay_details(replay));
        for open in &replay.open {
            let place = if open.graph.is_empty() { String::new() } else { format!(" in {}", open.graph) };
            let _ = writeln!(text, "           step {} ({} at {}{place}): {}", open.number, open.rule, open.at, open.why);
        }
    }
    if let Some(predicted) = report.predicted_speedup {
        let _ = writeln!(text, "predicted  {predicted:.2}x by {} prices", report.cost);
    }
    if let Some(refused) = &report.refused {
        let _ = writeln!(text, "input      {refused}");
    }
    let shapes: Vec<String> = report.shapes.iter().map(|(name, sizes)| shape(name, sizes)).collect();
    let guessed = if report.guessed_shapes { " (guessed)" } else { "" };
    let _ = writeln!(text, "at         {}{guessed}, {}", shapes.join(" "), count(report.threads, "thread"));
    let _ = writeln!(text, "on         {}, {}", report.runtime, report.machine);
    let _ = writeln!(
        text,
        "search     {}: {} states, {} models measured, ended: {}",
        report.search, report.visited, report.measured_models, report.ended
    );
    let s = &report.seconds;
    let phases = [("load", s.load), ("search", s.search), ("measure", s.measure), ("choose", s.choose), ("check", s.check)];
    let phases: Vec<String> = phases.iter().map(|(name, value)| format!("{name} {}", seconds(*value))).collect();
    let _ = writeln!(text, "time       {}", phases.join(", "));
    text
}

fn replay_details(replay: &Replayed) -> String {
    let mut text = format!("{} of {} proved in {}", replay.proved, count(replay.steps, "step"), seconds(replay.seconds));
    if replay.bounded > 0 {
        let _ = write!(text, ", {} more if constants are the numbers that they were rounded from", replay.bounded);
    }
    if !replay.assumptions.is_empty() {
        let _ = write!(text, "; {}", replay.assumptions.join(", "));
    }
    if replay.remembered {
        text.push_str(", by an earlier run");
    }
    text
}

/// An input with its sizes, as `--shape` takes it.
pub fn shape(name: &str, sizes: &[usize]) -> String {
    format!("{name}:{}", sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use regraft_rules::Numeric;

    use super::*;
    use crate::report::{Applied, AtBinding, Check, Headroom, NotDone, SCHEMA, Seconds, SingleThread, Slow, Startups, Timing};

    fn report(applied: usize) -> Report {
        let speedup = Speedup { median: 1.43, low: 1.42, high: 1.45, pairs: 40 };
        let one = |at: usize| Applied {
            rule: if at == 0 { "fold-batch-norm".into() } else { "merge-matmul".into() },
            at: format!("y{at}"),
            gain_ns: if at == 0 { 1_000 } else { 25_000 },
            numeric: Numeric::Exact,
            trust: Trust::Tested,
        };
        let speedup = if applied == 0 { Speedup::NONE } else { speedup };
        let timing = |model: &str, median_ns, speedup| Timing { model: model.into(), median_ns, speedup, single_thread: None };
        Report {
            rules: 1,
            schema: SCHEMA,
            tool: "regraft 0".into(),
            input: "m.onnx".into(),
            certificate: None,
            output: Some("f.onnx".into()),
            shapes: vec![("x".into(), vec![1, 3])],
            guessed_shapes: false,
            frozen: Vec::new(),
            runtime: "onnxruntime 1".into(),
            machine: "cpu".into(),
            threads: 1,
            seed: 7,
            search: "auto".into(),
            cost: "measured".into(),
            prediction: None,
            timings: vec![timing("input", 1.43e6, Speedup::NONE), timing("candidate 1", 1e6, speedup)],
            undecided: Vec::new(),
            speedup,
            single_thread: None,
            predicted_speedup: None,
            bindings: Vec::new(),
            refused: None,
            rescued: false,
            startup: None,
            headroom: None,
            applied: (0..applied).map(one).collect(),
            cleaned: Vec::new(),
            not_done: Vec::new(),
            check: Check { passed: true, tolerance: 1e-4, worst: 3.1e-6, floor: 2.2e-6, ..Check::default() },
            bytes: (1_234, 12_340_000),
            nodes: (66, 52),
            seconds: Seconds { total: 41.2, ..Seconds::default() },
            ended: "complete".into(),
            visited: 12,
            measured_models: 1,
            measured_excerpts: 0,
            trials: Vec::new(),
            fastest: None,
            warnings: Vec::new(),
            reproduce: "regraft optimize m.onnx -o f.onnx".into(),
        }
    }

    #[test]
    fn the_verdict_says_all_that_was_promised() {
        let line = verdict(&report(3), &[]);
        assert_eq!(
            line,
            "verdict: 1.43x faster [1.42, 1.45] · 3 rewrites (tested) · same outputs to 3.1e-6 (noise floor 2.2e-6, tolerance 1e-4) \
             · 41 s · seed 7 · regraft optimize m.onnx -o f.onnx"
        );
    }

    #[test]
    fn no_gain_is_said_plainly() {
        let mut report = report(0);
        let verdict = verdict(&report, &["below the 1.20x asked for".into()]);
        let want = "verdict: no gain beyond noise; the input was written unchanged · below the 1.20x asked for · 41 s";
        assert!(verdict.starts_with(want), "{verdict}");
        report.timings[1].speedup = Speedup { median: 2.0, low: 1.9, high: 2.1, pairs: 20 };
        let failed = super::verdict(&report, &[]);
        assert!(failed.starts_with("verdict: no faster model passed its check; the input was written unchanged · "), "{failed}");
        report.timings.truncate(1);
        let nothing = super::verdict(&report, &[]);
        assert!(nothing.starts_with("verdict: no faster model was found; the input was written unchanged · "), "{nothing}");
        report.not_done.push(NotDone { what: "a".into(), at: "b".into(), because: "c".into() });
        report.cleaned.push(("dead-code".into(), 1));
        let verdict = super::verdict(&report, &[]);
        assert!(verdict.contains("written without 1 superfluous node · "), "{verdict}");
        assert!(verdict.contains(" · 1 not done (-v says why) · "), "{verdict}");
    }

    #[test]
    fn a_small_gain_is_told_as_measured() {
        let mut report = report(0);
        report.speedup = Speedup { median: 1.02, low: 1.01, high: 1.04, pairs: 20 };
        report.timings[1].speedup = Speedup { median: 1.004, low: 1.001, high: 1.007, pairs: 20 };
        assert!(verdict(&report, &[]).starts_with("verdict: no gain of more than 0.5 %; the input was written unchanged"));
        report.cleaned.push(("dead-code".into(), 1));
        assert!(verdict(&report, &[]).starts_with("verdict: 1.02x faster [1.01, 1.04]; the input was written without 1 superfluous node"));
    }

    #[test]
    fn a_prediction_is_called_one() {
        let prediction = Predicted {
            file: "device.json".into(),
            device: "a small processor".into(),
            machine: "a small processor/0/4".into(),
            runtime: "onnxruntime 1".into(),
            threads: 4,
            recorded_at: 1,
            run_ns: 2e6,
            spread_ns: 1e4,
            speedup: Speedup { median: 1.2, low: 1.1, high: 1.3, pairs: 0 },
            carried: 0.07,
            shared: 12,
            is_kept: false,
            input: "m.onnx".into(),
            models: Default::default(),
        };
        let mut report = Report { speedup: prediction.speedup, prediction: Some(prediction), ..report(1) };
        let said = verdict(&report, &[]);
        let want = "verdict: predicted 1.20x faster [1.10, 1.30] · predicted from prices recorded on a small processor \
                    (onnxruntime 1, 4 threads), 7 % of the time carried over from this machine, not measured here; \
                    `regraft bench --here m.onnx f.onnx` on that device confirms it · ";
        assert!(said.starts_with(want), "{said}");
        assert!(table(&report).contains("predicted 1.20x [1.10, 1.30]"), "{}", table(&report));
        assert!(details(&report).contains("device.json: a small processor"), "{}", details(&report));
        report.prediction.iter_mut().for_each(|prediction| prediction.is_kept = true);
        (report.applied, report.speedup) = (Vec::new(), Speedup::NONE);
        report.timings[1].speedup = Speedup { median: 1.02, low: 0.9, high: 1.2, pairs: 0 };
        let kept = verdict(&report, &[]);
        assert!(kept.starts_with("verdict: no gain beyond its uncertainty is predicted; the input was written unchanged · "), "{kept}");
        assert!(kept.contains("not measured here") && !kept.contains("bench --here"), "{kept}");
    }

    #[test]
    fn what_is_undecided_is_told_with_the_time_that_decides_it() {
        let mut report = report(0);
        let speedup = Speedup { median: 1.021, low: 0.998, high: 1.044, pairs: 60 };
        report.timings[1].speedup = speedup;
        let model = "candidate 1".to_string();
        report.undecided.push(Undecided { model, at_one_thread: false, speedup, seconds: 35.0, budget: 95.0 });
        let verdict = verdict(&report, &[]);
        let want = "verdict: undecided whether candidate 1 is faster (1.021x [0.998, 1.044]); the input was written unchanged \
                    · about 35 s more would tell (hint: --budget 95s) · 41 s";
        assert!(verdict.starts_with(want), "{verdict}");
        report.cleaned.push(("dead-code".into(), 1));
        let subnormal = Report { cleaned: vec![("dead-code".into(), 1), (SUBNORMAL_WEIGHTS.into(), 3)], ..report.clone() };
        let written = "the input was written without subnormal numbers in 3 constants, without 1 superfluous node";
        assert!(super::verdict(&subnormal, &[]).contains(written));
        let cleaned = super::verdict(&report, &[]);
        assert!(cleaned.contains("is faster (1.021x [0.998, 1.044]); the input was written without 1 superfluous node · "), "{cleaned}");
        report.undecided[0].at_one_thread = true;
        let alone = super::verdict(&report, &[]);
        assert!(alone.starts_with("verdict: undecided whether candidate 1 is not slower at one thread (1.021x [0.998, "), "{alone}");
        report.undecided[0].speedup = Speedup::NONE;
        let alone = super::verdict(&report, &[]);
        assert!(alone.contains("candidate 1 is not slower at one thread (not timed there); "), "{alone}");
    }

    #[test]
    fn agreement_names_what_it_is_measured_by() {
        assert_eq!(agreement(3.1e-6, 2.2e-6, 1e-4, ""), "same outputs to 3.1e-6 (noise floor 2.2e-6, tolerance 1e-4)");
        assert_eq!(agreement(1.1e-3, 2e-4, 1e-4, ""), "same outputs to 1.1e-3 (noise floor 2.0e-4, 10 times that is rounding)");
    }

    #[test]
    fn the_table_groups_rules_by_gain() {
        let text = table(&report(3));
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["input", "1.43", "ms", "66", "1234", "B", "m.onnx"]);
        assert_eq!(rows[2], ["output", "1.00", "ms", "1.43x", "[1.42,", "1.45]", "52", "12.3", "MB", "f.onnx"]);
        assert_eq!(rows[5], ["merge-matmul", "×2", "50.0", "µs"]);
        assert_eq!(rows[6], ["fold-batch-norm", "×1", "1.0", "µs"]);
    }

    #[test]
    fn the_distance_from_the_limit_is_told_if_it_is_known() {
        let slow = Slow { operator: "Conv".into(), at: "y".into(), ns: 2e6, share: 0.25, flops_per_second: 40e9, limit_ns: 7e5 };
        let headroom = Headroom { flops: (3.9e9, 2.1e9), slowest: vec![slow], ..Headroom::default() };
        let told = Report { headroom: Some(headroom), ..report(1) };
        assert!(table(&told).contains("\narithmetic 3.9 -> 2.1 GFLOP\n") && !table(&report(1)).contains("FLOP"));
        assert!(details(&told).contains("above its limit") && !details(&report(1)).contains("above its limit"));
    }

    #[test]
    fn what_it_takes_to_start_is_told_where_it_was_measured() {
        let input = Startup { load_ns: 1_100_000_000, peak_bytes: Some(935_000_000) };
        let startup = Startups { input, output: Startup { load_ns: 60_000_000, peak_bytes: None } };
        let text = table(&Report { startup: Some(startup), ..report(3) });
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["time", "speed-up", "load", "memory", "nodes", "size", "file"]);
        assert_eq!(rows[1], ["input", "1.43", "ms", "1.10", "s", "935.0", "MB", "66", "1234", "B", "m.onnx"]);
        assert_eq!(rows[2][6..10], ["60.00", "ms", "-", "52"]);
        assert!(!table(&report(3)).contains("memory"));
    }

    #[test]
    fn several_bindings_are_told_one_by_one() {
        let mut report = report(1);
        let at = |binding: &str, median| AtBinding {
            binding: binding.into(),
            shapes: vec![("x".into(), vec![1, 3])],
            median_ns: (2e6, 2e6 / median),
            speedup: Speedup { median, low: median, high: median, pairs: 8 },
            single_thread: None,
        };
        report.bindings = vec![at("N=1", 1.6), at("N=8", 1.25)];
        assert!(verdict(&report, &[]).starts_with("verdict: 1.43x faster [1.42, 1.45] over 2 bindings, least 1.25x at N=8 · "));
        let text = table(&report);
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[5], ["N=1", "2.00", "ms", "1.25", "ms", "1.60x", "[1.60,", "1.60]"]);
        assert_eq!(rows[6], ["N=8", "2.00", "ms", "1.60", "ms", "1.25x", "[1.25,", "1.25]"]);
    }

    #[test]
    fn a_run_with_several_threads_tells_what_one_thread_gains() {
        let mut report = report(1);
        let speedup = Speedup { median: 1.2, low: 1.19, high: 1.21, pairs: 12 };
        let single = SingleThread { median_ns: (2.4e6, 2e6), speedup };
        (report.threads, report.single_thread, report.timings[1].single_thread) = (2, Some(single), Some(speedup));
        let verdict = verdict(&report, &[]);
        assert!(verdict.starts_with("verdict: 1.43x faster [1.42, 1.45] with 2 threads, 1.20x [1.19, 1.21] with 1 · "), "{verdict}");
        let text = table(&report);
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(rows[5], ["2", "threads", "1.43", "ms", "1.00", "ms", "1.43x", "[1.42,", "1.45]"]);
        assert_eq!(rows[6], ["1", "thread", "2.40", "ms", "2.00", "ms", "1.20x", "[1.19,", "1.21]"]);
        let details = details(&report);
        assert!(details.contains("at one thread") && details.contains("40  1.20x [1.19, 1.21]"), "{details}");
        report.bindings = ["N=1", "N=8"]
            .map(|binding| {
                let (shapes, median_ns) = (Vec::new(), (1e6, 1e6));
                AtBinding { binding: binding.into(), shapes, median_ns, speedup, single_thread: Some(single) }
            })
            .into();
        let text = table(&report);
        let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!((rows[5][0], rows[6][..3].join(" ")), ("N=1", "N=1, 1 thread".into()), "{text}");
    }

    #[test]
    fn details_say_why_not() {
        let mut report = report(1);
        report.not_done.push(NotDone { what: "winograd".into(), at: "conv1".into(), because: "it is slower".into() });
        let text = details(&report);
        assert!(text.contains("winograd") && text.contains("it is slower") && text.contains("x:1,3, 1 thread"), "{text}");
    }
}
