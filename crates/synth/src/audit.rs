//! What canonical forms wrongly leave out, and what they wrongly keep apart.

use std::collections::BTreeMap;

use crate::canonical::Form;
use crate::enumerate::{Enumerated, enumerate};
use crate::explorer::Explorer;
use crate::spec::Spec;
use crate::state::State;
use crate::steps::Filter;

/// What was found of one form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormAudit {
    /// Operators that it leaves out, by itself, and that no other sequence of steps makes.
    pub lost: usize,
    /// One of them, as a formula.
    pub example: Option<String>,
}

/// What was found of all forms together.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Operators that steps without any filter make, by key.
    pub all: usize,
    /// Those that the exact forms leave.
    pub canonical: usize,
    /// Those that exact and approximate forms leave.
    pub approximate: usize,
    /// Complete operators without any filter, of which most share a key with others.
    pub unfiltered: usize,
    /// Complete operators that the exact forms leave, and that share a key with others.
    pub apart: usize,
    /// Two of them, as formulas.
    pub twins: Option<(String, String)>,
    /// For each form that breaks on the way to an operator that is lost, what is lost.
    pub forms: BTreeMap<Form, FormAudit>,
    /// States that were looked at: without filter, with exact forms, with all forms.
    pub states: [usize; 3],
}

/// Compares all operators of at most `depth` steps with those that forms leave.
///
/// For each operator that is lost, the forms are named that break on the sequence of steps which
/// made it without them.
pub fn audit(spec: &Spec, depth: usize) -> Audit {
    let run = |filter: Filter| {
        let mut explorer = Explorer::new(spec, filter);
        let found = enumerate(&mut explorer, depth, &mut || true);
        (explorer, found)
    };
    let unfiltered = Filter { canonical: false, approximate: false, distance: true };
    let (mut free, all) = run(unfiltered);
    let (exact, canonical) = run(Filter::default());
    let (_, approximate) = run(Filter { approximate: true, ..Filter::default() });
    let mut forms: BTreeMap<Form, FormAudit> = BTreeMap::new();
    for (key, (_, found)) in &all.operators {
        let kept = canonical.operators.contains_key(key) && approximate.operators.contains_key(key);
        if kept {
            continue;
        }
        let formula = found.operator.show(&free.coordinates);
        for form in broken_on_the_way(&mut free, found.operator.clone()) {
            // A form that is exact is at fault only if the exact ones lose the operator.
            if !form.is_approximate() && canonical.operators.contains_key(key) {
                continue;
            }
            let audit = forms.entry(form).or_default();
            audit.lost += 1;
            // The shortest example says most.
            if audit.example.as_ref().is_none_or(|known| (known.len(), known) > (formula.len(), &formula)) {
                audit.example = Some(formula.clone());
            }
        }
    }
    let show = |state: &State| {
        let operators = crate::Operator::of(state, &exact.coordinates);
        operators.first().map(|operator| operator.show(&exact.coordinates)).unwrap_or_default()
    };
    let shortest = canonical.twins.iter().map(|(a, b)| (show(a), show(b))).min_by_key(|(a, b)| (a.len() + b.len(), a.clone()));
    let total = |found: &Enumerated| found.operators.len() + found.duplicates;
    Audit {
        all: all.operators.len(),
        canonical: canonical.operators.len(),
        approximate: approximate.operators.len(),
        unfiltered: total(&all),
        apart: canonical.duplicates,
        twins: shortest,
        forms,
        states: [all.states, canonical.states, approximate.states],
    }
}

/// The forms that the steps to an operator break.
fn broken_on_the_way(explorer: &mut Explorer<'_>, operator: crate::Operator) -> Vec<Form> {
    let Some(path) = explorer.path(&operator) else { return vec![] };
    let mut state = explorer.start();
    let mut forms = Vec::new();
    for step in path {
        forms.extend(crate::canonical::broken(&state, &step, &mut explorer.coordinates));
        state = state.after(&step, &mut explorer.coordinates);
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}
