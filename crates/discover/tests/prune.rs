//! From the shipped specification to the shipped machine-discovered rules.

use regraft_discover::{
    Candidate, Fate, Journal, Options, Pruning, SHIPPED, Settings, Shard, Spec, Tables, Unobserved, Wanted, enumerate, finish, prune,
};
use regraft_rules::Library;

/// The file of the machine-discovered rules.
const GENERATED: &str = "generated.rules";

/// What the whole pipeline derives from graphs of up to two operators, which takes seconds; `make
/// generated-rules` goes up to three.
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
    let how = Pruning { operators: 2, threads: 2, ..Pruning::DEFAULT };
    let pruned = prune(&spec, &pairs, &library, how, &Wanted::Saving, &mut Journal::none(), &mut Unobserved);
    let pruned = pruned.unwrap_or_else(|e| panic!("{e}"));
    let shipped = regraft_rules::library::FOUND.iter().find(|(file, _)| *file == GENERATED).map_or("", |(_, text)| text);
    assert!(pruned.rules.len() > 2, "{} rules", pruned.rules.len());
    let missing: Vec<&String> = pruned.rules.iter().filter(|rule| !shipped.contains(rule.as_str())).collect();
    assert!(missing.is_empty(), "not in rules/{GENERATED}; `make generated-rules` writes it anew:\n{missing:?}");
    // Every rule was proved and saves something; what the library covers becomes no rule.
    for ranked in &pruned.ranked {
        assert!(pruned.proved[ranked.pair] && ranked.rewrite.gain() > 1.0);
    }
    let done = |name: &str| pruned.ranked.iter().any(|r| matches!(&r.fate, Fate::Done(rules) if rules.contains(name)));
    assert!(done("relu-of-relu"), "{:?}", pruned.done());
}

#[test]
fn what_is_met_is_stated_whatever_it_saves() {
    let (name, text) = SHIPPED.iter().find(|(name, _)| *name == "taso").unwrap();
    let spec = Spec::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
    // The first is true, saves nothing in either direction, and occurs where its two operators do;
    // the second is false; the third occurs nowhere.
    let pairs = "(pair 1 (inputs (x1 m k)) (left (relu (transpose x1))) (right (transpose (relu x1))))
                 (pair 2 (inputs (x1 m k)) (left (relu (transpose x1))) (right (relu (transpose (relu (relu (transpose (transpose x1))))))))
                 (pair 3 (inputs (x1 m k) (x2 m k)) (left (ewadd x1 x2)) (right (relu (ewadd x1 x2))))
                 (pair 4 (inputs (i1 n c h w)) (left (maxpool3x3 (relu i1))) (right (relu (maxpool3x3 i1))))";
    let pairs = Candidate::parse(&spec, "t", pairs).unwrap_or_else(|e| panic!("{e}"));
    let met = |rule: &regraft_rules::Rule| {
        let text = format!("{:?}", rule.source);
        text.contains("Transpose") && !text.contains("MaxPool")
    };
    let mut journal = Journal::none();
    let empty = Library::default();
    let pruned = prune(&spec, &pairs, &empty, Pruning::DEFAULT, &Wanted::Met(&met), &mut journal, &mut Unobserved);
    let pruned = pruned.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(pruned.proved, [true, true, false, true]);
    assert_eq!(journal.len(), 4);
    let rules = |pair: usize| pruned.ranked.iter().filter(|r| r.pair == pair && matches!(r.fate, Fate::Rule(_))).count();
    assert_eq!([rules(0), rules(1), rules(2), rules(3)], [2, 2, 0, 0], "{:?}", pruned.ranked);
    assert!(pruned.ranked.iter().filter(|r| r.pair == 3).all(|r| r.fate == Fate::Unmet));
}
