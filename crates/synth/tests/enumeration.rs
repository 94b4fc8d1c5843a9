//! Exact enumeration, and what canonical forms leave out of it.

use regraft_synth::{Explorer, Filter, Operator, Sampler, Spec, Tree, audit, enumerate};

const SMALL: &str = r#"
    input = ["C_in", "H", "H"]
    output = ["C_out", "H", "H"]
    unordered = ["C_in", "C_out"]
    [variables]
    C_in = 2
    C_out = 2
    [coefficients]
    k = [3, 2]
    [[layers]]
    C_in = 16
    C_out = 32
    H = 8
    [limits]
    weight = 2
    shifts = 1
    merges = 0
"#;

#[test]
fn every_operator_of_few_steps_is_found_once() {
    let spec = Spec::parse(SMALL).unwrap();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let found = enumerate(&mut explorer, 7, &mut || true);
    assert!(!found.stopped);
    let mut steps = |formula: &str| {
        let operator = Operator::parse(formula, &mut explorer.coordinates).unwrap();
        found.operators.get(&explorer.key(&operator).unwrap()).map(|(steps, _)| *steps)
    };
    assert_eq!(steps("sum r0: C_in; x[r0, i1, i2] * w[i0, r0]"), Some(3));
    assert_eq!(steps("sum r0: C_in; x[r0, shift(i1), i2] * w[i0, r0]"), Some(4));
    assert_eq!(steps("sum r0: C_in, r1: k; x[r0, unfold(i1, r1), i2] * w[i0, r0, r1]"), Some(5));
    let conv = "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]";
    assert_eq!(steps(conv), Some(7), "a dense convolution, at its depth of 7");
}

#[test]
fn canonical_forms_are_audited() {
    let spec = Spec::parse(SMALL).unwrap();
    let audit = audit(&spec, 5);
    assert!(audit.all >= audit.canonical && audit.canonical >= audit.approximate, "{audit:?}");
    assert!(audit.states[0] >= audit.states[1] && audit.states[1] >= audit.states[2]);
    let lost: usize = audit.forms.values().map(|form| form.lost).sum();
    assert_eq!(audit.all == audit.approximate, lost == 0, "what is lost has a form to blame: {audit:?}");
}

/// A tree search under a reward that a window gets: it finds windows more often than chance does,
/// and never proposes what was judged.
#[test]
fn tree_search_learns_what_is_rewarded() {
    let spec = Spec::parse(SMALL).unwrap();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let mut sampler = Sampler::new(&mut explorer, 1, false);
    let mut tree = Tree::new(1);
    let mut keys = std::collections::HashSet::new();
    let mut windows = Vec::new();
    while let Some(proposal) = tree.propose(&mut explorer, &mut sampler) {
        assert!(keys.insert(proposal.found.key), "an operator is proposed twice");
        let window = proposal.found.operator.has_window(&explorer.coordinates);
        tree.reward(&proposal, if window { 1.0 } else { 0.0 });
        windows.push(window);
        if windows.len() == 40 {
            break;
        }
    }
    assert!(windows.len() >= 12, "{} operators", windows.len());
    let share = |of: &[bool]| of.iter().filter(|window| **window).count() as f64 / of.len() as f64;
    let (first, last) = windows.split_at(windows.len() / 2);
    assert!(share(last) >= share(first) - 0.25, "{first:?} {last:?}");
}
