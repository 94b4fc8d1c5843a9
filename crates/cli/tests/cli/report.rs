//! `regraft report`, and `optimize --untimed`.

use crate::models::convolutional;
use crate::run::{Bench, has_runtime};

/// The text between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let from = text.split_once(start).unwrap_or_else(|| panic!("no `{start}`")).1;
    from.split_once(end).unwrap_or_else(|| panic!("no `{end}`")).0
}

#[test]
fn a_report_is_one_page_that_needs_no_other() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.ok("optimize m.onnx -o fast.onnx --untimed --report fast.report.json");
    let said = bench.ok("report fast.onnx -o page.html");
    assert!(said.starts_with("page.html: "), "{said}");
    let text = bench.ok("report fast.onnx --terminal");
    assert!(["operator", "kernels", "Conv", "change", "verdict: "].iter().all(|part| text.contains(part)), "{text}");
    bench.ok("report fast.onnx --node-data times.json");
    let times: serde_json::Value = serde_json::from_slice(&bench.read("times.json")).expect("JSON");
    let values: Vec<f64> = times["results"].as_object().expect("an object").values().filter_map(|v| v["value"].as_f64()).collect();
    assert!(!values.is_empty() && values.iter().any(|value| *value > 0.0), "{times}");
    let page = String::from_utf8(bench.read("page.html")).expect("text");
    for part in ["<title>fast.onnx · Regraft</title>", "Where the time goes", "<td>Conv</td>", "Rules by gain", "What was not done"] {
        assert!(page.contains(part), "no `{part}`");
    }
    // Nothing is fetched.
    let style = between(&page, "<style>", "</style>");
    assert!(
        !["src=", "@import", "url(", "<link", "<img"].iter().any(|part| page.replace(style, "").contains(part) || style.contains(part))
    );
    let changes: serde_json::Value = serde_json::from_str(between(&page, "id=\"changes-data\">", "</script>")).expect("JSON");
    let report = bench.json("explain fast.onnx --json");
    let rewrites = report["applied"].as_array().map_or(0, Vec::len);
    let shown =
        |key: &str| changes.as_array().expect("a list").iter().any(|change| change[key]["nodes"].as_array().is_some_and(|n| !n.is_empty()));
    assert!(rewrites > 0 && shown("before") && shown("after"), "{changes}");
    // Every gain is that of one change.
    let gains =
        |list: &serde_json::Value| list.as_array().expect("a list").iter().map(|one| one["gain_ns"].as_i64().expect("a gain")).sum::<i64>();
    assert_eq!(gains(&changes), gains(&report["applied"]));
}

/// A browser that shows pages without a window, if there is one.
#[cfg(unix)]
fn browser() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("REGRAFT_BROWSER").map(std::path::PathBuf::from);
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    named.or_else(|| names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file()))
}

/// In a browser, in the light and in the dark: nothing on its console, drawings there, and pictures
/// in `screenshots` of the folder of test results, to be looked at.
#[test]
#[cfg(unix)]
fn a_report_opens_in_a_browser() {
    let Some(browser) = browser() else { return crate::skipped::skipped("Chromium; REGRAFT_BROWSER names one") };
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.ok("optimize m.onnx -o fast.onnx --untimed --report fast.report.json");
    bench.ok("report fast.onnx -o page.html");
    let page = format!("file://{}", bench.path("page.html").display());
    let open = |more: &[&str]| {
        let mut command = std::process::Command::new(&browser);
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,2000"]);
        command.args(["--enable-logging=stderr", "--virtual-time-budget=5000"]);
        command.arg(format!("--user-data-dir={}", bench.path("profile").display()));
        let output = command.args(more).arg(&page).output().expect("the browser starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("CONSOLE"), "{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = open(&["--dump-dom"]);
    assert!(shown.contains("data-usable=") && shown.contains("<svg viewBox="), "{shown}");
    // What can be clicked can be reached by keyboard, and has a name.
    for node in shown.split("<g ").skip(1).map(|rest| rest.split_once('>').map_or("", |(attributes, _)| attributes)) {
        assert!(["tabindex=\"0\"", "role=\"button\"", "aria-label="].iter().all(|part| node.contains(part)), "{node}");
    }
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&folder).expect("the folder can be written");
    let picture = |name: &str, more: &[&str]| {
        let file = folder.join(name);
        let wanted = format!("--screenshot={}", file.display());
        open(&[&[wanted.as_str()], more].concat());
        std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    };
    let (light, dark) = (picture("light.png", &[]), picture("dark.png", &["--blink-settings=preferredColorScheme=0"]));
    assert!(light.starts_with(b"\x89PNG") && light.len() > 20_000 && light != dark);
}

#[test]
fn what_cannot_be_shown_is_said() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.ok("optimize m.onnx -o fast.onnx --untimed --no-certificate --report r.json");
    std::fs::remove_file(bench.path("m.onnx")).expect("it is there");
    bench.ok("report r.json -o page.html");
    let page = String::from_utf8(bench.read("page.html")).expect("text");
    assert!(page.contains("The changes are not known: no certificate was written.") && page.contains("No profile: "), "{page}");
    bench.fails("report none.onnx", &["there is no file none.onnx"]);
    bench.fails("report fast.onnx", &["fast.onnx has no report beside it"]);
    bench.fails("report r.json -o r.json", &["r.json", "-o"]);
}

#[test]
fn untimed_results_depend_on_the_model_alone() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.ok("optimize m.onnx -o a.onnx --untimed --cost-store a.sqlite");
    bench.ok("optimize m.onnx -o b.onnx --untimed --cost-store b.sqlite --seed 3");
    bench.ok("optimize m.onnx -o c.onnx --untimed --cost-store a.sqlite");
    assert!(bench.read("a.onnx") == bench.read("b.onnx") && bench.read("a.onnx") == bench.read("c.onnx"));
    assert!(bench.read("a.onnx") != bench.read("m.onnx"));
    bench.ok("check m.onnx a.onnx --require bounded");
    bench.fails("optimize m.onnx -o a.onnx --untimed --frozen", &["--untimed", "--frozen"]);
}

#[test]
fn a_check_is_a_test_suite() {
    if !has_runtime() {
        return;
    }
    let bench = Bench::new();
    bench.write("m.onnx", convolutional().bytes());
    bench.write("other.onnx", crate::models::mlp("4").bytes());
    bench.ok("check m.onnx m.onnx --junit same.xml");
    let same = String::from_utf8(bench.read("same.xml")).expect("text");
    assert!(same.contains("<testsuite name=\"regraft check m.onnx m.onnx\"") && same.contains("failures=\"0\""), "{same}");
    assert_eq!(bench.run("check m.onnx other.onnx --junit different.xml").code, Some(1));
    let different = String::from_utf8(bench.read("different.xml")).expect("text");
    assert!(different.contains("failures=\"1\"") && different.contains("<failure message=\"different: "), "{different}");
    bench.fails("check m.onnx m.onnx --junit none/same.xml", &["none/same.xml", "there is no folder none"]);
}
