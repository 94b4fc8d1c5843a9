//! What every shipped rule does, as text: `rules/tests/TOPIC/RULE.graph` holds a graph before and
//! after it, and for each guard a graph on which it does not fire.
//!
//! `REGRAFT_UPDATE_SNAPSHOTS=1` in the environment rewrites the files: what is still right is kept,
//! and what is missing is searched for. Review the difference before committing it.

#[path = "fixtures/difference.rs"]
mod difference;
#[path = "fixtures/fixture.rs"]
mod fixture;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fixture::Fixture;
use regraft_rules::example::shown;
use regraft_rules::library::FOUND;
use regraft_rules::{Library, Rule, parse};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules/tests")
}

/// The shipped rules, and the machine-discovered ones.
fn rules() -> Vec<Rule> {
    let shipped = Library::shipped().unwrap_or_else(|e| panic!("{e}"));
    let found = FOUND.iter().flat_map(|(file, text)| parse(file, text).unwrap_or_else(|e| panic!("{e}")));
    shipped.rules().iter().cloned().chain(found).map(|rule| shown(&rule)).collect()
}

/// The path of a rule's fixture, relative to the folder.
fn place(rule: &Rule) -> PathBuf {
    Path::new(rule.file.trim_end_matches(".rules")).join(format!("{}.graph", rule.name))
}

/// All files below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let files = entries(folder).into_iter().flat_map(|topic| entries(&topic));
    files.map(|file| file.strip_prefix(folder).unwrap().to_path_buf()).collect()
}

#[test]
fn fixtures_say_what_rules_do() {
    let (folder, rules) = (folder(), rules());
    if std::env::var_os("REGRAFT_UPDATE_SNAPSHOTS").is_some() {
        update(&folder, &rules);
    }
    let mut wrong: Vec<String> = Vec::new();
    let (mut refusals, mut without) = (0, 0);
    for rule in &rules {
        let place = place(rule);
        let read = fs::read_to_string(folder.join(&place)).map_err(|e| e.to_string());
        match read.and_then(|text| Fixture::parse(&text).map(|fixture| (fixture, text))) {
            Ok((fixture, text)) => {
                refusals += fixture.refused.len();
                without += fixture.without.len();
                let problems = fixture.problems(rule, &text);
                wrong.extend(problems.into_iter().map(|problem| format!("{}: {problem}", place.display())));
            }
            Err(e) => wrong.push(format!("{}: {e}", place.display())),
        }
    }
    let places: BTreeSet<PathBuf> = rules.iter().map(place).collect();
    wrong.extend(files(&folder).difference(&places).map(|file| format!("{}: there is no such rule", file.display())));
    eprintln!("{} rules, {refusals} graphs on which one does not fire, {without} guards without one", rules.len());
    assert!(7 * without <= refusals, "{without} guards have no near miss, beside {refusals} graphs that are refused");
    assert!(wrong.is_empty(), "{} differ; REGRAFT_UPDATE_SNAPSHOTS=1 writes them anew:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn fixtures_are_made_from_nothing() {
    for rule in rules().iter().filter(|rule| ["relu-of-relu", "matmul-distribute-right-add", "neutral-pow"].contains(&rule.name.as_ref())) {
        let written = fs::read_to_string(folder().join(place(rule))).unwrap();
        let by_hand = written.find("; refused\n").map_or("", |at| &written[at..]);
        let made = Fixture::parse(by_hand).unwrap().updated(rule).text(rule);
        assert!(made == written, "{}: {}", rule.name, difference::difference(&written, &made));
    }
}

#[test]
fn the_guide_shows_a_fixture() {
    let guide = fs::read_to_string(folder().join("../../docs/guide/writing-rules.md")).unwrap();
    let shown = fs::read_to_string(folder().join("matmul/matmul-distribute-right-add.graph")).unwrap();
    assert!(guide.contains(&shown), "the fixture is:\n{shown}");
}

/// Rewrites all fixtures that are not right.
fn update(folder: &Path, rules: &[Rule]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(rule) = rules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    renew(&folder.join(place(rule)), rule);
                }
            });
        }
    });
    let places: BTreeSet<PathBuf> = rules.iter().map(place).collect();
    files(folder).difference(&places).for_each(|file| fs::remove_file(folder.join(file)).unwrap());
}

/// Rewrites a fixture if it is not right.
fn renew(path: &Path, rule: &Rule) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let old = Fixture::parse(&text).unwrap_or_default();
    if old.problems(rule, &text).is_empty() {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, old.updated(rule).text(rule)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}
