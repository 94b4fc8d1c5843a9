//! A check as JUnit XML, which most servers for continuous integration show.

use std::fmt::Write;

use regraft::check::{CheckReport, Run};
use regraft::page::escaped;

/// One test suite: the verdict, and each comparison of outputs.
pub fn junit(report: &CheckReport, verdict: &str, met: bool) -> String {
    let groups = [("output", &report.runs), ("before saturation", &report.before_saturation), ("reference executor", &report.reference)];
    let mut cases = vec![case(
        "models are the same",
        report.seconds,
        (!(report.same && met)).then(|| verdict.trim_start_matches("verdict: ").to_string()),
    )];
    for (place, runs) in groups {
        cases.extend(runs.iter().map(|run| compared(place, run)));
    }
    let failures = cases.iter().filter(|case| case.contains("<failure")).count();
    let (name, tests) = (escaped(&format!("regraft check {} {}", report.a, report.b)), cases.len());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = writeln!(text, "<testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" time=\"{:.3}\">", report.seconds);
    cases.iter().for_each(|case| text.push_str(case));
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn compared(place: &str, run: &Run) -> String {
    let Run { fill, output, difference, floor, same, .. } = run;
    let failure = (!same).then(|| format!("`{output}` differs by {difference:.1e}, the noise floor is {floor:.1e}"));
    case(&format!("{place}, fill {fill}"), 0.0, failure)
}

fn case(name: &str, seconds: f64, failure: Option<String>) -> String {
    let start = format!("<testcase classname=\"regraft.check\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
    match failure {
        Some(why) => format!("{start}><failure message=\"{}\"/></testcase>\n", escaped(&why)),
        None => format!("{start}/>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(
            case("a<b & \"c\"", 1.5, Some("x > y".into())),
            "<testcase classname=\"regraft.check\" name=\"a&lt;b &amp; &quot;c&quot;\" time=\"1.500\"><failure message=\"x &gt; y\"/></testcase>\n"
        );
    }
}
