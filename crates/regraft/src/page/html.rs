//! The page as HTML.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use crate::page::changes::{Changed, Drawing};
use crate::page::times::{Row, Times};
use crate::render;
use crate::report::{Report, Trial};
use crate::units::{show_bytes, show_ns};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Lays out drawings: <https://github.com/dagrejs/dagre>, 3.1.3, MIT.
const DAGRE: &str = include_str!("dagre.min.js");

/// What the page shows.
pub struct Page {
    /// The report.
    pub report: Report,
    /// The certificate and its changes, or why they are not known.
    pub changed: Result<Changed, String>,
    /// Where the time goes, or why that is not known.
    pub times: Result<Times, String>,
}

impl Page {
    /// What it cannot tell, and why.
    pub fn missing(&self) -> Vec<String> {
        let changes = self.changed.as_ref().err().map(|why| format!("the changes are not known: {why}"));
        let times = self.times.as_ref().err().map(|why| format!("where the time goes is not known: {why}"));
        changes.into_iter().chain(times).collect()
    }

    /// The whole file.
    pub fn to_html(&self) -> String {
        let report = &self.report;
        let title = format!("{} · Regraft", report.output.as_deref().unwrap_or(&report.input));
        let verdict = render::verdict(report, &[]);
        let verdict = verdict.strip_prefix("verdict: ").unwrap_or(&verdict);
        // At the end of the page.
        let verdict = verdict.strip_suffix(&format!(" · {}", report.reproduce)).unwrap_or(verdict).replace(" (-v says why)", "");
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n<p class=\"verdict\">{}</p>\n",
            escaped(&title),
            escaped(&report.input),
            escaped(&verdict),
        );
        let parts = [
            ("summary", "Before and after", self.summary()),
            ("time", "Where the time goes", self.time()),
            ("changes", "What was changed", self.changes()),
            ("rules", "Rules by gain", self.rules()),
            ("search", "How it was found", self.search()),
            ("check", "How it was checked", self.check()),
            ("certificate", "Certificate", self.certificate()),
            ("not-done", "What was not done", self.not_done()),
        ];
        let links = parts.iter().map(|(id, name, _)| format!("<a href=\"#{id}\">{name}</a>")).collect::<String>();
        let _ = writeln!(text, "<nav aria-label=\"Parts\">{links}</nav>");
        for (id, name, body) in parts {
            let _ =
                writeln!(text, "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{name}</h2>\n{body}</section>");
        }
        let made = format!("{} · {} · {}", report.tool, report.runtime, report.machine);
        let _ = writeln!(text, "</main>\n<footer>{}<br><code>{}</code></footer>", escaped(&made), escaped(&report.reproduce));
        if let Ok(changed) = &self.changed {
            let data = serde_json::to_string(&changed.changes).unwrap_or_else(|_| "[]".into()).replace("</", "<\\/");
            let _ = writeln!(text, "<script type=\"application/json\" id=\"changes-data\">{data}</script>");
            let _ = writeln!(text, "<script>{DAGRE}</script>\n<script>\n{SCRIPT}</script>");
        }
        text.push_str("</body>\n</html>\n");
        text
    }

    /// A gain by the price list.
    fn gain(&self, ns: i64) -> String {
        render::gain(&self.report, ns).replace('-', "−")
    }

    fn summary(&self) -> String {
        let report = &self.report;
        let mut table = Table::new(&["", "before", "after"]);
        if let (Some(before), Some(after)) = render::medians(report) {
            let (run, faster) = match &report.prediction {
                Some(prediction) => (format!("a run on {}", prediction.place()), "times as fast there, not measured"),
                None => ("a run".into(), "times as fast, run beside each other"),
            };
            table.row([&run, &show_ns(before), &show_ns(after)]);
            table.row([&faster, &"", &render::speedup(report)]);
        }
        if let Some(single) = &report.single_thread {
            table.row([&"at one thread", &show_ns(single.median_ns.0), &show_ns(single.median_ns.1)]);
        }
        table.row([&"nodes", &report.nodes.0, &report.nodes.1]);
        table.row([&"file", &show_bytes(report.bytes.0), &show_bytes(report.bytes.1)]);
        if let Some(startup) = &report.startup {
            table.row([&"loading", &show_ns(startup.input.load_ns as f64), &show_ns(startup.output.load_ns as f64)]);
            if let (Some(a), Some(b)) = (startup.input.peak_bytes, startup.output.peak_bytes) {
                table.row([&"memory at its peak", &show_bytes(a), &show_bytes(b)]);
            }
        }
        if let Some(headroom) = &report.headroom {
            let giga = |flops: f64| format!("{:.2} GFLOP", flops / 1e9);
            table.row([&"arithmetic of products", &giga(headroom.flops.0), &giga(headroom.flops.1)]);
            if let Some((a, b)) = headroom.share {
                let percent = |share: f64| format!("{:.0} % of the peak", 100.0 * share);
                table.row([&"reached", &percent(a), &percent(b)]);
            }
        }
        let sizes = report.shapes.iter().map(|(name, sizes)| format!("{name} {sizes:?}")).collect::<Vec<_>>().join(", ");
        format!("{}<p>At {}; threads: {}.</p>\n", table.html(), escaped(&sizes), report.threads)
    }

    fn time(&self) -> String {
        let times = match &self.times {
            Ok(times) => times,
            Err(why) => return missing("No profile", why),
        };
        let longest = times.operators.iter().chain(&times.blocks).map(|row| row.before.0.max(row.after.0)).fold(0.0, f64::max);
        let of = |rows: &[Row], what: &str| {
            let mut table = Table::new(&[what, "kernels before", "after", "time before", "after"]);
            for row in rows {
                let bar = |ns: f64, kind: &str| {
                    let width = if longest > 0.0 { 100.0 * ns / longest } else { 0.0 };
                    Html(format!("{}<span class=\"bar {kind}\" style=\"width:{width:.1}%\"></span>", render::measured(ns)))
                };
                table.row([&row.name, &row.before.1, &row.after.1, &bar(row.before.0, "old"), &bar(row.after.0, "new")]);
            }
            table.html()
        };
        let mut text = format!("<p>A profiled run: {} before, {} after.</p>\n", show_ns(times.total.0), show_ns(times.total.1));
        text.push_str(&of(&times.operators, "operator"));
        if !times.blocks.is_empty() {
            text.push_str(&of(&times.blocks, "block"));
        }
        if let Some(headroom) = self.report.headroom.as_ref().filter(|headroom| !headroom.slowest.is_empty()) {
            text.push_str("<h3>Furthest from what the machine can do</h3>\n");
            let mut table = Table::new(&["operator", "at", "time", "its roofline"]);
            for slow in &headroom.slowest {
                table.row([&slow.operator, &slow.at, &show_ns(slow.ns), &show_ns(slow.limit_ns)]);
            }
            text.push_str(&table.html());
        }
        text
    }

    fn changes(&self) -> String {
        let changes = match &self.changed {
            Ok(changed) if changed.changes.is_empty() => return "<p>Nothing.</p>\n".into(),
            Ok(changed) => &changed.changes,
            Err(why) => return missing("The changes are not known", why),
        };
        let mut text = String::new();
        for (at, change) in changes.iter().enumerate() {
            let rules = change.rules.iter().map(|(rule, count)| counted(rule, *count)).collect::<Vec<_>>().join(", ");
            let places = change.places.join(", ");
            let more = if change.count > change.places.len() {
                format!(" and {} more", change.count - change.places.len())
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "<details class=\"change\" data-change=\"{at}\"><summary><span class=\"gain\">{}</span> {} \
                 <span class=\"count\">×{}</span></summary>\n<p>At {}{more}.</p>\n{}<div class=\"drawings\"></div></details>",
                self.gain(change.gain_ns),
                escaped(&rules),
                change.count,
                escaped(&places),
                beside(&change.before, &change.after),
            );
        }
        text
    }

    fn rules(&self) -> String {
        let mut rules: BTreeMap<&str, (usize, i64, String)> = BTreeMap::new();
        for applied in &self.report.applied {
            let (count, gain, _) = rules.entry(&applied.rule).or_insert((0, 0, applied.trust.to_string()));
            (*count, *gain) = (*count + 1, *gain + applied.gain_ns);
        }
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_key(|(_, (_, gain, _))| std::cmp::Reverse(*gain));
        let mut table = Table::new(&["rule", "times", "gain by the price list", "trust"]);
        for (rule, (count, ns, trust)) in rules {
            table.row([&rule, &count, &self.gain(ns), &trust]);
        }
        for (name, count) in &self.report.cleaned {
            table.row([name, count, &"", &"normal form"]);
        }
        table.html()
    }

    fn search(&self) -> String {
        let report = &self.report;
        let seconds = &report.seconds;
        let mut spent = Table::new(&["spent on", "seconds"]);
        let phases = [
            ("loading", seconds.load),
            ("searching", seconds.search),
            ("measuring prices", seconds.measure),
            ("choosing", seconds.choose),
            ("checking", seconds.check),
            ("all", seconds.total),
        ];
        phases.iter().for_each(|(name, time)| spent.row([name, &format!("{time:.1}")]));
        let mut trials = Table::new(&["tried out", "to", "rewrites", "predicted", "of it guessed", "measured", "took"]);
        for Trial { model, aim, rewrites, predicted, guessed, measured, seconds, .. } in &report.trials {
            let measured = measured.map_or_else(|| "did not run".into(), |ratio| format!("{ratio:.3}x"));
            let (predicted, guessed, took) = (format!("{predicted:.3}x"), format!("{:.0} %", 100.0 * guessed), format!("{seconds:.1} s"));
            trials.row([model, aim, rewrites, &predicted, &guessed, &measured, &took]);
        }
        let states =
            format!("<p>{} states visited by {}; it ended: {}.</p>\n", report.visited, escaped(&report.search), escaped(&report.ended));
        format!("{}{states}{}", spent.html(), trials.html())
    }

    fn check(&self) -> String {
        let check = &self.report.check;
        let mut table = Table::new(&["", ""]);
        table.row([&"inputs", &check.fills.join(", ")]);
        table.row([&"largest difference", &format!("{:.1e}", check.worst)]);
        table.row([&"noise floor", &format!("{:.1e}", check.floor)]);
        table.row([&"tolerance", &format!("{:.0e}", check.tolerance)]);
        if let Some(worst) = check.worst_reference {
            table.row([&"against double precision", &format!("{worst:.1e}")]);
        }
        if let Some(replay) = &check.replay {
            table.row([&"rewrites proved", &format!("{} of {}", replay.proved + replay.bounded, replay.steps)]);
            table.row([&"which assumes", &replay.assumptions.join("; ")]);
            table.row([&"constants folded", &format!("{}, within {:.1e}", replay.rounded, replay.bound)]);
        }
        let notes = list(check.notes.iter().map(String::as_str));
        format!("{}{notes}", table.html())
    }

    fn certificate(&self) -> String {
        let Changed { file, bytes, certificate, .. } = match &self.changed {
            Ok(changed) => changed,
            Err(why) => return missing("There is none", why),
        };
        let mut table = Table::new(&["", ""]);
        table.row([&"file", &format!("{}, {}", file.display(), show_bytes(*bytes))]);
        table.row([&"written by", &certificate.tool]);
        table.row([&"rewrites, each as data", &certificate.steps()]);
        table.row([&"graphs that were changed", &certificate.trails.len()]);
        for fixed in &certificate.fixed.0 {
            let sizes: Vec<String> = fixed.sizes.iter().map(|size| size.map_or_else(|| "any".into(), |size| size.to_string())).collect();
            table.row([&format!("{} is limited to", fixed.name), &sizes.join(", ")]);
        }
        for (what, digest) in [("input", &certificate.input), ("output", &certificate.output)] {
            for file in &digest.0 {
                let name = if file.place.is_empty() { what.to_owned() } else { format!("{what}, {}", file.place) };
                table.row([&format!("BLAKE3 digest of the {name}"), &file.hash]);
            }
        }
        let output = self.report.output.as_deref().unwrap_or("OUT");
        let command = format!("regraft check {} {output}", self.report.input);
        format!("{}<p>Replay it, step by step, by a checker that knows no rules: <code>{}</code></p>\n", table.html(), escaped(&command))
    }

    fn not_done(&self) -> String {
        let report = &self.report;
        let mut table = Table::new(&["what", "at", "because"]);
        report.not_done.iter().for_each(|one| table.row([&one.what, &one.at, &one.because]));
        let warnings = list(report.warnings.iter().map(String::as_str));
        if report.not_done.is_empty() { format!("<p>Nothing was left out.</p>\n{warnings}") } else { format!("{}{warnings}", table.html()) }
    }
}

/// Both sides of a change by operator: for those who see no drawing.
fn beside(before: &Drawing, after: &Drawing) -> String {
    let named = |drawing: &Drawing| drawing.operators.iter().map(|(name, count)| counted(name, *count)).collect::<Vec<_>>().join(", ");
    let mut table = Table::new(&["before", "after"]);
    let or_nothing = |text: String| if text.is_empty() { "nothing".to_string() } else { text };
    table.row([&or_nothing(named(before)), &or_nothing(named(after))]);
    table.html()
}

fn counted(name: &str, count: usize) -> String {
    if count == 1 { name.to_string() } else { format!("{name} ×{count}") }
}

fn missing(what: &str, why: &str) -> String {
    format!("<p>{what}: {}.</p>\n", escaped(why))
}

fn list<'t>(lines: impl Iterator<Item = &'t str>) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

/// Text that is HTML already.
struct Html(String);

/// A cell of a table.
trait Cell {
    fn html(&self) -> String;
}

impl<T: Display> Cell for T {
    fn html(&self) -> String {
        escaped(&self.to_string())
    }
}

impl Cell for Html {
    fn html(&self) -> String {
        self.0.clone()
    }
}

/// A table.
struct Table {
    columns: usize,
    text: String,
    rows: usize,
}

impl Table {
    fn new(columns: &[&str]) -> Table {
        let head: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
        Table { columns: columns.len(), text: format!("<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"), rows: 0 }
    }

    fn row<const N: usize>(&mut self, cells: [&dyn Cell; N]) {
        debug_assert_eq!(N, self.columns);
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", cell.html())).collect();
        let _ = writeln!(self.text, "<tr>{cells}</tr>");
        self.rows += 1;
    }

    fn html(&self) -> String {
        if self.rows == 0 { String::new() } else { format!("{}</tbody>\n</table></div>\n", self.text) }
    }
}

/// Text in HTML or XML, also within an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two colours (WCAG 2.2, "contrast ratio").
    fn contrast(a: &str, b: &str) -> f64 {
        let channel = |hex: &str| {
            let value = f64::from(u8::from_str_radix(hex, 16).expect("two digits")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = |colour: &str| 0.2126 * channel(&colour[1..3]) + 0.7152 * channel(&colour[3..5]) + 0.0722 * channel(&colour[5..7]);
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn everything_can_be_read_in_the_light_and_in_the_dark() {
        let (light, rest) = STYLE.split_once("@media (prefers-color-scheme: dark)").expect("both schemes");
        for scheme in [light, rest] {
            let colour = |name: &str| {
                let value = scheme.split_once(&format!("--{name}: ")).unwrap_or_else(|| panic!("no colour {name}")).1;
                value.split(';').next().expect("a value").to_owned()
            };
            for ground in ["ground", "node"] {
                for text in ["text", "quiet", "old", "new", "link"] {
                    let ratio = contrast(&colour(text), &colour(ground));
                    assert!(ratio >= 4.5, "{text} on {ground}: {ratio:.2}");
                }
            }
        }
        assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
    }

    #[test]
    fn names_are_no_markup() {
        let mut table = Table::new(&["name"]);
        table.row([&"<script>alert(\"&\")</script>"]);
        assert!(table.html().contains("&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"));
        assert_eq!(Table::new(&["name"]).html(), "");
    }
}
