//! The rule files shipped by TASO and TENSAT, if available: next to the checkout, or in the folder
//! named by `REGRAFT_FOREIGN_RULES`.

mod skipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regraft_foreign::{Format, Judgement, Rule, Soundness, algebra, judge_all};
use regraft_ir::Trust;
use skipped::skipped;

/// The rules of a file; none if it is not there.
fn read(name: &str) -> Option<Vec<Rule>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("REGRAFT_FOREIGN_RULES").map_or_else(beside, PathBuf::from).join(name);
    let Ok(bytes) = std::fs::read(&path) else {
        skipped("../shared/data");
        return None;
    };
    Some(Format::of(&bytes).read(&bytes).unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// The judgements of a file, with this many proofs per rule.
fn judged(name: &str, proofs: usize) -> Option<Vec<Judgement>> {
    Some(judge_all(&read(name)?, 2, proofs, &|_| true))
}

/// Numbers of rules by their verdict, ranges written `from-to`.
fn grouped(judgements: &[Judgement]) -> BTreeMap<String, String> {
    let mut groups: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for j in judgements.iter().filter(|j| j.soundness != Soundness::True) {
        let ranges = groups.entry(j.soundness.to_string()).or_default();
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == j.number => *last = j.number,
            _ => ranges.push((j.number, j.number)),
        }
    }
    let shown = |(from, to): &(usize, usize)| if from == to { format!("{from}") } else { format!("{from}-{to}") };
    groups.into_iter().map(|(verdict, ranges)| (verdict, ranges.iter().map(shown).collect::<Vec<_>>().join(" "))).collect()
}

#[test]
fn the_rules_of_taso() {
    let Some(judgements) = judged("taso_graph_subst.pb", 1) else { return };
    assert_eq!(judgements.len(), 133);
    let expected = [
        ("true if equal output channels per group", "99-100 130-131"),
        ("true if groups = 1", "98 105 125-129"),
        ("true if no broadcasting", "59-62 71-72 74-75 82-83 85-90 96-97 101-102 121-124"),
    ];
    assert_eq!(grouped(&judgements), expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    let open: Vec<usize> =
        judgements.iter().filter(|j| !matches!(j.trust, Trust::Proved | Trust::ProvedInRange)).map(|j| j.number).collect();
    assert!(open.is_empty(), "not proved: {open:?}");
    assert!(judgements.iter().all(|j| !j.pairs.is_empty()), "all have families");
    let repeated: Vec<(usize, usize)> = judgements.iter().filter_map(|j| Some((j.number, j.same_as?))).collect();
    assert_eq!(repeated, [(65, 63), (91, 73), (105, 98), (130, 99), (131, 100)], "128 are distinct");
    assert!(judgements.iter().all(|j| j.instances >= 16 && (j.soundness == Soundness::True) == j.counterexample.is_none()));
}

#[test]
fn the_rules_of_tensat_are_those_of_taso() {
    let files = ["taso_graph_subst.pb", "tensat_single.txt", "tensat_multi.txt"];
    let [Some(taso), Some(singles), Some(pairs)] = files.map(read) else { return };
    assert_eq!((singles.len(), pairs.len()), (120, 13));
    let sorted = |rules: &[Rule]| {
        let mut shown: Vec<String> = rules.iter().map(algebra).collect();
        shown.sort();
        shown
    };
    assert_eq!(sorted(&taso), sorted(&[singles, pairs].concat()));
}

#[test]
fn the_equations_of_tensat() {
    let Some(judgements) = judged("tensat_taso_rules.txt", 0) else { return };
    assert_eq!(judgements.len(), 931);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for j in &judgements {
        *counts.entry(j.soundness.to_string()).or_default() += 1;
    }
    let expected = [
        ("true for all shapes", 672),
        ("true if averages count padding", 1),
        ("true if averages count padding, constant kernels are depthwise", 44),
        ("true if groups = 1", 29),
        ("true if groups = 1, odd kernels", 4),
        ("true if no broadcasting", 34),
        ("true if no broadcasting, odd kernels", 2),
        ("true if odd kernels", 145),
    ];
    assert_eq!(counts, expected.map(|(k, v)| (k.to_owned(), v)).into());
    // The document has the same verdicts, and a derivation of each rule.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/foreign-equations.md");
    let document = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule")).collect();
    assert_eq!(rows.len(), judgements.len());
    let other: Vec<&str> = rows
        .iter()
        .zip(&judgements)
        .filter(|(row, j)| {
            !row.starts_with(&format!("| {} | `{}` | {} | proved", j.number, j.algebra, j.soundness)) || row.contains("not derived")
        })
        .map(|(row, _)| *row)
        .collect();
    assert!(
        other.is_empty(),
        "`regraft rules import tensat_taso_rules.txt --derive --proofs 4 --markdown` writes it anew:\n{}",
        other.join("\n")
    );
}
