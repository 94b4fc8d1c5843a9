//! The documentation: its links lead somewhere, its commands are commands, and its examples run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page: its path relative to the repository, and its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut found: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "rules/README.md"].map(PathBuf::from).to_vec();
    for folder in ["docs", "docs/guide"] {
        let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
        let names = entries.flatten().map(|e| Path::new(folder).join(e.file_name()));
        found.extend(names.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    found.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        (path, text)
    };
    found.into_iter().map(read).collect()
}

/// Fenced blocks of a page: what stands behind the fence, and the lines.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => open = Some((info.trim().to_owned(), Vec::new())),
            (Some(_), Some(block)) => found.push(block),
            (None, Some((info, mut lines))) => {
                lines.push(line.to_owned());
                open = Some((info, lines));
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// The text without fenced blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    };
    text.lines().filter(is_prose).collect::<Vec<_>>().join("\n")
}

/// What stands between two characters, wherever it does.
fn between<'t>(text: &'t str, open: &'t str, close: char) -> impl Iterator<Item = &'t str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close)).map(|(inner, _)| inner)
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for (path, text) in pages() {
        for link in between(&prose(&text), "](", ')') {
            if link.contains("://") {
                continue;
            }
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.parent().unwrap_or(Path::new(""));
            let target = if file.is_empty() { root().join(&path) } else { root().join(folder).join(file) };
            let has_anchor = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                text.lines().filter(|l| l.starts_with('#')).any(|l| anchor(l.trim_start_matches('#')) == fragment)
            };
            if !target.exists() || (!fragment.is_empty() && !has_anchor()) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn the_book_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the summary of the book");
    let listed: BTreeSet<PathBuf> = between(&summary, "](", ')').map(|link| normal(&Path::new("docs").join(link))).collect();
    let there: BTreeSet<PathBuf> = pages().into_iter().map(|(path, _)| path).filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, there, "docs/SUMMARY.md (left) and the pages (right) differ");
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = Vec::new();
    for part in path.iter() {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.iter().collect()
}

/// Words of a command line, as a shell splits them; `None` where a shell would do more.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '$' | '`' | '|' | ';' | '<' | '>' | '&' | '*') => return None,
            (None, '#') if words.last().is_some_and(String::is_empty) => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, c) if c.is_whitespace() => words.push(String::new()),
            _ => words.last_mut()?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    Some(words)
}

#[test]
fn commands_are_commands() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        let in_blocks = blocks(&text).into_iter().filter(|(info, _)| info.starts_with("sh")).flat_map(|(_, lines)| lines);
        let prose = prose(&text);
        let inline: Vec<String> = prose.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " ")).collect();
        for line in in_blocks.chain(inline) {
            let Some(words) = words(&line) else { continue };
            // `..`, brackets and these words stand for something; a certificate begins with its
            // own.
            let stands = |w: &String| w.contains("..") || w.contains('[') || ["COMMAND", "NAME", "certificate"].contains(&w.as_str());
            let is_example = words.len() > 1 && words[0] == "regraft" && !words.iter().any(stands);
            if !is_example {
                continue;
            }
            checked += 1;
            if let Err(failure) = regraft_cli::understand(&words) {
                wrong.push(format!("{}: `{}`: {failure}", path.display(), words.join(" ")));
            }
        }
    }
    assert!(checked > 60, "only {checked} commands were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs the examples: blocks of commands that say `run` behind the fence, one page after the other,
/// in a folder with a small network `model.onnx`.
#[test]
#[cfg(unix)]
fn examples_run() {
    let program = env!("CARGO_BIN_EXE_regraft");
    let library = fs::read_dir(root().join(".venv/lib")).into_iter().flatten().flatten();
    let library = library.map(|e| e.path().join("site-packages/onnxruntime/capi")).find(|p| p.is_dir());
    let named = std::env::var_os("REGRAFT_ONNXRUNTIME").map(PathBuf::from).or(library);
    if (regraft::runtime::RuntimeChoice { library: named.clone(), ..Default::default() }).load().is_err() {
        assert!(std::env::var_os("REGRAFT_REQUIRE_ONNXRUNTIME").is_none(), "no runtime");
        println!("skipped: no runtime");
        return;
    }
    let mut ran = 0;
    for (path, text) in pages() {
        let examples: Vec<String> =
            blocks(&text).into_iter().filter(|(info, _)| info == "sh run").map(|(_, lines)| lines.join("\n")).collect();
        if examples.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = Path::new(program).parent().expect("a folder").display();
        let script = format!("set -eu\nregraft zoo emit paper-sru -o model.onnx >/dev/null\n{}", examples.join("\n"));
        let mut command = Command::new("bash");
        command.arg("-c").arg(&script).current_dir(folder.path());
        command.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap_or_default()));
        command.env("REGRAFT_COST_STORE", folder.path().join("costs.sqlite"));
        if let Some(library) = &named {
            command.env("REGRAFT_ONNXRUNTIME", library);
        }
        let output = command.output().expect("bash starts");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}:\n{script}\n{said}", path.display());
        ran += examples.len();
    }
    assert!(ran >= 5, "only {ran} examples");
}
