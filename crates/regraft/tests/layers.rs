//! The layers of ARCHITECTURE.md: crates depend downwards only, as its table says, and the core is
//! pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that do no I/O, read no clock and print nothing.
const PURE: [&str; 13] =
    ["ir", "egraph", "rules", "prove", "audit", "equate", "foreign", "derive", "search", "saturate", "policy", "xrlflow", "synth"];
/// What the checker of certificates must not depend on: crates that find rewrites, and those that
/// make or judge rules.
const MAKERS: [&str; 9] = ["rules", "audit", "equate", "derive", "search", "saturate", "discover", "cost", "runtime"];
/// Limit on the checker's lines of code.
const CHECKER: usize = 1550;
/// Parts of the standard library that a pure crate must not name.
const IMPURE_MODULES: [&str; 6] = ["fs", "time", "env", "net", "process", "io"];
/// Calls that print.
const PRINTS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The crate table of ARCHITECTURE.md, in order: name and dependencies.
fn table(text: &str) -> Vec<(String, BTreeSet<String>)> {
    let lines = text.lines().skip_while(|l| !l.starts_with("| crate | noun | depends on |")).skip(2);
    lines
        .take_while(|l| l.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, _, depends] = cells[..] else { panic!("not a row of three cells: {line}") };
            let depends = depends.split(',').map(str::trim).filter(|d| *d != "–").map(str::to_owned).collect();
            (name.trim_matches('`').to_owned(), depends)
        })
        .collect()
}

/// True for crates of this workspace.
fn is_ours(name: &str) -> bool {
    name == "regraft" || name.starts_with("regraft-")
}

/// Crates of this workspace that a manifest depends on: in its normal and build sections, and in
/// all sections.
fn dependencies(manifest: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut normal, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            continue;
        }
        let Some(name) = line.split(['.', ' ', '=']).next().filter(|name| is_ours(name)) else { continue };
        let name = name.strip_prefix("regraft-").unwrap_or(name);
        if !section.ends_with("dependencies") {
            continue;
        }
        all.insert(name.to_owned());
        if !section.ends_with("dev-dependencies") {
            normal.insert(name.to_owned());
        }
    }
    (normal, all)
}

/// All crates and their manifests.
fn manifests() -> BTreeMap<String, String> {
    let folder = root().join("crates");
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .flatten()
        .filter(|e| e.path().join("Cargo.toml").is_file())
        .map(|e| (e.file_name().to_string_lossy().into_owned(), read(&e.path().join("Cargo.toml"))))
        .collect()
}

#[test]
fn the_table_lists_every_crate_with_its_dependencies() {
    let table = table(&read(&root().join("ARCHITECTURE.md")));
    let manifests = manifests();
    let listed: BTreeSet<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(listed.len(), table.len(), "a crate is listed twice");
    assert_eq!(listed, manifests.keys().map(String::as_str).collect(), "ARCHITECTURE.md (left) and crates/ (right) differ");
    for (name, depends) in &table {
        let (normal, _) = dependencies(&manifests[name]);
        assert_eq!(depends, &normal, "what `{name}` depends on: ARCHITECTURE.md (left) and its Cargo.toml (right) differ");
    }
}

#[test]
fn crates_depend_downwards_only() {
    let table = table(&read(&root().join("ARCHITECTURE.md")));
    let manifests = manifests();
    let mut below: BTreeSet<&str> = BTreeSet::new();
    for (name, _) in &table {
        let (_, all) = dependencies(&manifests[name]);
        let upwards: Vec<&String> = all.iter().filter(|d| !below.contains(d.as_str())).collect();
        assert!(upwards.is_empty(), "`{name}` depends on {upwards:?}, which are not above it in the table of ARCHITECTURE.md");
        below.insert(name);
    }
}

/// External crates that a manifest names, in all its dependency sections.
fn outside(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            inside = header.trim_end_matches(']').ends_with("dependencies");
            continue;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        if inside && !name.is_empty() && !name.starts_with(['#', '}']) && !is_ours(name) {
            found.insert(name.to_owned());
        }
    }
    found
}

#[test]
fn every_dependency_has_its_reason() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let (_, section) = text.split_once("## Dependencies").expect("ARCHITECTURE.md has a section on dependencies");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: String = section.lines().filter(|l| l.starts_with('|')).collect();
    let missing: BTreeSet<String> =
        manifests().values().flat_map(|m| outside(m)).filter(|name| !rows.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md gives no reason for {missing:?}");
}

/// Rust sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What makes a source impure, with its line.
fn impurities(text: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let mut note = |what: &str| found.push(format!("line {}: {what}", number + 1));
        for print in PRINTS {
            // `print!` is also a suffix of `eprint!`.
            if code.match_indices(print).any(|(at, _)| !code[..at].ends_with(word)) {
                note(print);
            }
        }
        for (at, _) in code.match_indices("std::") {
            let path = &code[at + 5..];
            let named: Vec<&str> = match path.strip_prefix('{') {
                Some(group) => group.split([',', '{', '}']).map(str::trim).collect(),
                None => vec![path],
            };
            for module in named.iter().map(|n| n.split(|c| !word(c)).next().unwrap_or_default()) {
                if IMPURE_MODULES.contains(&module) {
                    note(&format!("std::{module}"));
                }
            }
        }
    }
    found
}

#[test]
fn the_core_is_pure() {
    let mut found = Vec::new();
    for name in PURE {
        let folder = root().join("crates").join(name).join("src");
        for path in sources(&folder) {
            let shown = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
            found.extend(impurities(&read(&path)).into_iter().map(|what| format!("{name}/src/{shown}: {what}")));
        }
    }
    assert!(found.is_empty(), "the core does no I/O, reads no clock, prints nothing:\n{}", found.join("\n"));
}

/// All crates of this workspace that a crate depends on, directly or not; test dependencies
/// excluded.
fn reached(name: &str, manifests: &BTreeMap<String, String>) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = open.pop() {
        open.extend(dependencies(&manifests[&name]).0.into_iter().filter(|name| found.insert(name.clone())));
    }
    found
}

#[test]
fn the_checker_reaches_no_rule_and_no_search() {
    let manifests = manifests();
    let checker = reached("certify", &manifests);
    let makers: Vec<&str> = MAKERS.into_iter().filter(|maker| checker.contains(*maker)).collect();
    assert!(makers.is_empty(), "certify depends on {makers:?}, directly or through {checker:?}");
    assert!(MAKERS.iter().all(|maker| manifests.contains_key(*maker)));
    assert!(reached("regraft", &manifests).contains("audit"));
}

#[test]
fn the_checker_is_small_enough_to_be_read() {
    let lines: usize = sources(&root().join("crates/certify/src")).iter().map(|path| read(path).lines().count()).sum();
    assert!(lines < CHECKER, "crates/certify/src has {lines} lines, and may have fewer than {CHECKER}");
}

#[test]
fn impure_lines_are_found() {
    let cases = [
        ("use std::fs;", 1),
        ("let t = std::time::Instant::now();", 1),
        ("use std::{collections::HashMap, env, fs::File};", 2),
        ("    println!(\"x\");", 1),
        ("    eprint!(\"x\");", 1),
        ("// println!(\"x\") and std::fs", 0),
        ("use std::{fmt, sync::Arc}; let time = a.time;", 0),
        ("pretty_print!(x); std::environment();", 0),
    ];
    for (line, expected) in cases {
        assert_eq!(impurities(line).len(), expected, "{line}: {:?}", impurities(line));
    }
}

#[test]
fn manifests_and_tables_are_understood() {
    let manifest = "[package]\nname = \"regraft-x\"\n[dependencies]\nregraft-ir.workspace = true\nserde = \"1\"\n[dev-dependencies]\nregraft-onnx = { path = \"../onnx\" }\n";
    let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(dependencies(manifest), (set(&["ir"]), set(&["ir", "onnx"])));
    assert_eq!(outside(manifest), set(&["serde"]));
    let text = "text\n| crate | noun | depends on |\n|---|---|---|\n| `ir` | x | – |\n| `onnx` | y | ir |\n\n| `no` | z | ir |\n";
    assert_eq!(table(text), [("ir".to_owned(), set(&[])), ("onnx".to_owned(), set(&["ir"]))]);
}
