//! Equality of two graphs, for all sizes.

use regraft_ir::Graph;

use crate::Verdict;
use crate::index::{Fuel, Poly, Source, Var};
use crate::meaning::{Meaning, Shared};
use crate::value::{Simplifier, Sum, Trouble, vanishes};

/// Sums of at most so many terms are written out where closed forms do not meet.
const EXPANDED: i64 = 8;

/// What one output may cost, about a second.
const FUEL: u64 = 1_000_000;

/// Whether `before` and `after` give the same outputs (by position) for the same inputs (by name), whatever the sizes that their symbols stand for.
///
/// Both are read over the real numbers: each output element as a sum of products of input elements, with sums over index variables of symbolic
/// range, brought to a normal form. All sizes of `before` are at least 1, divisors are not 0, windows are not empty, and decimal constants stand for the
/// simplest ratios that round to them.
pub fn equal(before: &Graph, after: &Graph) -> Verdict {
    equal_where(before, after, &Assumptions::default())
}

/// What is known of the inputs of two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// Names of inputs whose elements are all above 0.
    pub positive: Vec<String>,
}

/// As [`equal`], for inputs of which something is known.
pub fn equal_where(before: &Graph, after: &Graph, assumptions: &Assumptions) -> Verdict {
    let (left, right) = (before.outputs(), after.outputs());
    if left.len() != right.len() {
        return Verdict::Unproved(format!("{} outputs against {}", left.len(), right.len()));
    }
    for at in 0..left.len() {
        let tried = [0, EXPANDED].map(|expand| move || output(before, after, at, assumptions, Simplifier { expand }));
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

fn output(before: &Graph, after: &Graph, at: usize, assumptions: &Assumptions, simplifier: Simplifier) -> Result<(), Trouble> {
    let (left, right) = (before.outputs()[at].value, after.outputs()[at].value);
    Fuel::fill(FUEL);
    let mut shared = Shared::default();
    for name in &assumptions.positive {
        shared.facts.all_positive(Source::Input(name.as_str().into()));
    }
    let shape = Meaning::new(before, &mut shared, simplifier).shape(left)?;
    let other = Meaning::new(after, &mut shared, simplifier).shape(right)?;
    if shape != other {
        return Trouble::new(format!("shapes {shape:?} and {other:?}"));
    }
    for ty in before.ids().flat_map(|id| before.node(id).types.iter().flatten()) {
        ty.shape.iter().for_each(|d| shared.facts.assume(Poly::size(d).plus(-1)));
    }
    let mut variables: Vec<(Var, Poly)> = Vec::new();
    let index = shape.iter().map(|extent| {
        if extent.known() == Some(1) {
            return Poly::default();
        }
        let var = shared.variable(extent);
        variables.push((var, extent.clone()));
        Poly::var(var)
    });
    let index: Vec<Poly> = index.collect();
    let left = Meaning::new(before, &mut shared, simplifier).at(left, &index)?;
    let right = Meaning::new(after, &mut shared, simplifier).at(right, &index)?;
    let difference: Sum = left.sub(&right);
    vanishes(&difference, &variables, &shared.facts, simplifier)
}
