//! From the shipped specification to the shipped rules that were found by machine.

use regraft_discover::{Fate, Options, Pruning, SHIPPED, Settings, Shard, Spec, Tables, Unobserved, enumerate, finish, prune};
use regraft_rules::Library;

/// The file of the rules that were found by machine.
const GENERATED: &str = "generated.rules";

/// What the whole way makes of graphs of up to two operators, which takes seconds; `make generated-rules` goes to three.
#[test]
fn shipped_rules_are_what_is_found() {
    let (name, text) = SHIPPED.iter().find(|(name, _)| *name == "taso").unwrap();
    let spec = Spec::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().unwrap();
    let settings =
        Settings { size: 2, threads: 2, memory: 256 << 20, seed: 0, shard: Shard::WHOLE, work: folder.path(), checkpoint: false };
    let tables = Tables::new(&spec, &settings, &mut Unobserved).unwrap();
    let found = enumerate(&spec, &tables, &settings, &mut Unobserved).unwrap();
    let options = Options { seed: 0, threads: 2, derive: true };
    let pairs = finish(&spec, &tables, &found.pairs, options, &mut Unobserved).unwrap().candidates;
    let library = Library::shipped().unwrap();
    let how = Pruning { operators: 2, threads: 2, seed: 0 };
    let pruned = prune(&spec, &pairs, &library, how, &mut Unobserved).unwrap_or_else(|e| panic!("{e}"));
    let shipped = regraft_rules::library::FOUND.iter().find(|(file, _)| *file == GENERATED).map_or("", |(_, text)| text);
    assert!(pruned.rules.len() > 2, "{} rules", pruned.rules.len());
    let missing: Vec<&String> = pruned.rules.iter().filter(|rule| !shipped.contains(rule.as_str())).collect();
    assert!(missing.is_empty(), "not in rules/{GENERATED}; `make generated-rules` writes it anew:\n{missing:?}");
    // What becomes a rule was proved and saves something; what the library does is none.
    for ranked in &pruned.ranked {
        assert!(pruned.proved[ranked.pair] && ranked.rewrite.gain() > 1.0);
    }
    let done = |name: &str| pruned.ranked.iter().any(|r| matches!(&r.fate, Fate::Done(rules) if rules.contains(name)));
    assert!(done("relu-of-relu"), "{:?}", pruned.done());
}
