//! Equality of two graphs, for all sizes.

use regraft_ir::Graph;

use crate::Verdict;
use crate::index::{Fuel, Poly, Var};
use crate::meaning::{Meaning, Shared};
use crate::value::{Simplifier, Sum, Trouble, vanishes};

/// Sums of at most so many terms are written out where closed forms do not meet.
const EXPANDED: i64 = 8;

/// What one output may cost, about a second.
const FUEL: u64 = 1_000_000;

/// Whether `before` and `after` give the same outputs (by position) for the same inputs (by name), whatever the sizes that their symbols stand for.
///
/// Both are read over the real numbers: each output element as a sum of products of input elements, with sums over index variables of symbolic
/// range, brought to a normal form. Sizes are at least 1, divisors are not 0, windows are not empty, and decimal constants stand for the
/// simplest ratios that round to them.
pub fn equal(before: &Graph, after: &Graph) -> Verdict {
    let (left, right) = (before.outputs(), after.outputs());
    if left.len() != right.len() {
        return Verdict::Unproved(format!("{} outputs against {}", left.len(), right.len()));
    }
    for at in 0..left.len() {
        let tried = [0, EXPANDED].map(|expand| move || output(before, after, at, Simplifier { expand }));
        let mut why = None;
        let proved = tried.iter().any(|attempt| match attempt() {
            Ok(()) => true,
            Err(trouble) => {
                why.get_or_insert(trouble.0);
                false
            }
        });
        if !proved {
            return Verdict::Unproved(format!("output {}: {}", left[at].name, why.unwrap_or_default()));
        }
    }
    Verdict::Proved
}

fn output(before: &Graph, after: &Graph, at: usize, simplifier: Simplifier) -> Result<(), Trouble> {
    let (left, right) = (before.outputs()[at].value, after.outputs()[at].value);
    Fuel::fill(FUEL);
    let mut shared = Shared::default();
    let shape = Meaning::new(before, &mut shared, simplifier).shape(left)?;
    let other = Meaning::new(after, &mut shared, simplifier).shape(right)?;
    if shape != other {
        return Trouble::new(format!("shapes {shape:?} and {other:?}"));
    }
    let variables: Vec<(Var, Poly)> = shape.iter().map(|extent| (shared.variable(extent), extent.clone())).collect();
    let index: Vec<Poly> = variables.iter().map(|(var, _)| Poly::var(*var)).collect();
    let left = Meaning::new(before, &mut shared, simplifier).at(left, &index)?;
    let right = Meaning::new(after, &mut shared, simplifier).at(right, &index)?;
    let difference: Sum = left.sub(&right);
    vanishes(&difference, &variables, &shared.facts, simplifier)
}
