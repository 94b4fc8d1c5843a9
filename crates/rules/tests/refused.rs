//! Sources on which a rule would be false, each found once: its guards refuse them.

use std::fs;
use std::path::Path;

use regraft_ir::text::parse_first;
use regraft_rules::{Library, matches_at};

/// `refused/RULE.graph` says in its first line why the rule of that name would be false there.
#[test]
fn guards_refuse_what_a_rule_is_false_on() {
    let library = Library::shipped().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut seen = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let rule = library.get(&name).unwrap_or_else(|| panic!("there is no rule {name}"));
        let (graph, _) = parse_first(&fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = |guarded: bool| {
            let mut rule = rule.clone();
            if !guarded {
                rule.guards.clear();
            }
            graph.ids().flat_map(|id| matches_at(&graph, &rule, 0, id)).count()
        };
        assert_eq!(found(true), 0, "{name} is false there, and matches");
        assert!(found(false) > 0, "{name} would not match without its guards: the fixture shows nothing");
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} fixtures");
}
