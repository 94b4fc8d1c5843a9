//! Pairs of graphs that are equal and must be proved, and pairs that differ at some sizes and must
//! not be.

use std::fs;
use std::path::Path;

use regraft_ir::Graph;
use regraft_ir::text::parse_first;
use regraft_prove::equal;

/// The pairs in a folder of this name, each a file of two graphs.
fn pairs(folder: &str) -> Vec<(String, Graph, Graph)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let (before, end) = parse_first(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (after, _) = parse_first(&text[end..]).unwrap_or_else(|e| panic!("{name}, second graph: {e}"));
        (name, before, after)
    };
    files.iter().map(|path| read(path)).collect()
}

#[test]
fn equal_graphs_are_proved_both_ways_round() {
    for (name, before, after) in pairs("equal") {
        for (a, b) in [(&before, &after), (&after, &before)] {
            let verdict = equal(a, b);
            assert!(verdict.is_proved(), "{name}: {verdict}");
        }
    }
}

#[test]
fn different_graphs_are_not_proved() {
    let proved = |(name, before, after): (String, Graph, Graph)| {
        let any = [(&before, &after), (&after, &before)].into_iter().any(|(a, b)| equal(a, b).is_proved());
        any.then_some(name)
    };
    let proved: Vec<String> = pairs("different").into_iter().filter_map(proved).collect();
    assert!(proved.is_empty(), "{} pairs that differ are proved: {proved:#?}", proved.len());
}
