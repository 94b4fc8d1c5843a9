//! Equality of two graphs, for all sizes.

use std::cell::{Cell, LazyCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use regraft_ir::{Attr, Class, DType, Graph, Op, ValueId};

use crate::Verdict;
use crate::index::{Facts, Fuel, Poly, Source, Var, fresh};
use crate::meaning::{Constants, Meaning, Memory, Need, Shared, shape};
use crate::premises::Premises;
use crate::value::{Claim, Failures, Obligation, Reading, Rounded, Simplifier, Trouble, contracted, may_be_rounded, vanishes};
use crate::verdict::Rounding;
use crate::whole::by_wholes;
use crate::windows;

/// Sums of at most this many terms are written out where closed forms do not match.
pub(crate) const EXPANDED: i64 = 8;

/// What the proof of one output may cost. Work is counted, not timed, so that answers are the same
/// on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// For closed forms; a million takes a few seconds.
    pub closed: u64,
    /// For case distinctions on the output index.
    pub by_cases: u64,
    /// The same where one side has tables that the other lacks, such as the transforms of a fast
    /// convolution.
    pub by_tables: u64,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { closed: 500_000, by_cases: 1_500_000, by_tables: 30_000_000 }
    }
}

/// Whether `before` and `after` give the same outputs (by position) for the same inputs (by name),
/// whatever sizes their symbols stand for.
///
/// Both are read over the real numbers: each output element as a sum of products of input elements,
/// with sums over index variables of symbolic range, brought to a normal form. All sizes of
/// `before` are at least 1, the windows of its convolutions fit into their images, and decimal
/// constants stand for the simplest ratios that round to them.
pub fn equal(before: &Graph, after: &Graph) -> Verdict {
    equal_where(before, after, &Assumptions::default())
}

/// What is known about the inputs of two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    /// Names of inputs whose elements are all above 0.
    pub positive: Vec<String>,
}

/// Like [`equal`], for inputs about which something is known.
pub fn equal_where(before: &Graph, after: &Graph, assumptions: &Assumptions) -> Verdict {
    equal_within(before, after, assumptions, Allowance::default())
}

/// Like [`equal_where`], with a given work budget per attempt: where possible, computed sizes are
/// first treated as opaque; as a last resort, constants may be rounded.
pub fn equal_within(before: &Graph, after: &Graph, assumptions: &Assumptions, allowance: Allowance) -> Verdict {
    if let Err(why) = windows::fit(before, after) {
        return Verdict::Unproved(why);
    }
    let wholes = by_wholes(before, after);
    let shown = |reading: &Reading| {
        let constants = Constants::new(reading.clone());
        let by_wholes = wholes.as_ref().and_then(|[before, after]| powers_apart(before, after, assumptions, allowance, &constants).ok());
        by_wholes.map_or_else(|| powers_apart(before, after, assumptions, allowance, &constants), Ok)
    };
    let why = match shown(&Reading::Stored) {
        Ok(premises) => return Verdict::Proved(premises),
        Err(why) => why,
    };
    let rounded = Rc::<Rounded>::default();
    match has_rounded_numbers(before) || has_rounded_numbers(after) {
        true => match shown(&Reading::Meant(rounded.clone())) {
            Ok(premises) => Verdict::Bounded(premises, Rounding { relative: rounded.relative.get() }),
            Err(_) => Verdict::Unproved(why),
        },
        false => Verdict::Unproved(why),
    }
}

/// Whether a value is multiplied by itself, or taken to a power.
fn has_powers(graph: &Graph) -> bool {
    graph.ids().any(|id| {
        let node = graph.node(id);
        matches!(node.op, Op::Pow(_)) || matches!(node.op, Op::Mul(_)) && node.inputs.first() == node.inputs.get(1)
    })
}

/// Whether a handwritten number, one for all elements of a tensor or an attribute, may have been
/// rounded to its type.
fn has_rounded_numbers(graph: &Graph) -> bool {
    graph.ids().any(|id| match &graph.node(id).op {
        Op::Constant(constant) => {
            let value = constant.value.splat().filter(|_| constant.value.dtype().class() == Class::Real);
            value.is_some_and(|value| may_be_rounded(value, constant.value.dtype()))
        }
        op => op.attrs().iter().any(|(_, attr)| matches!(attr, Attr::Float(v) if may_be_rounded(f64::from(v.0 as f32), DType::F32))),
    })
}

/// Like [`outputs_equal`], but functions of equal sums are equal without multiplying powers of the
/// sums out, of which there may be very much.
fn powers_apart(
    before: &Graph,
    after: &Graph,
    assumptions: &Assumptions,
    allowance: Allowance,
    constants: &Constants,
) -> Result<Premises, String> {
    let equal = |allowance, constants: &Constants| outputs_equal(before, after, assumptions, allowance, constants);
    if has_powers(before) && has_powers(after) {
        let brief = Allowance { closed: allowance.closed / 10, by_cases: 0, by_tables: 0 };
        let apart = Allowance { by_tables: 0, ..allowance };
        let shown = equal(brief, constants).or_else(|_| equal(apart, &constants.with_opaque_powers()));
        if shown.is_ok() {
            return shown;
        }
    }
    equal(allowance, constants)
}

/// What is assumed, if all outputs are equal and have values in the same places; otherwise why that
/// was not shown.
fn outputs_equal(
    before: &Graph,
    after: &Graph,
    assumptions: &Assumptions,
    allowance: Allowance,
    constants: &Constants,
) -> Result<Premises, String> {
    let (left, right) = (before.outputs(), after.outputs());
    if left.len() != right.len() {
        return Err(format!("{} outputs against {}", left.len(), right.len()));
    }
    let own = LazyCell::new(|| tables_of(before) != tables_of(after));
    let mut premises = Premises::of([before, after]);
    for (at, output) in left.iter().enumerate() {
        let pair = Pair { before, after, at, assumptions, constants, premises: Cell::default(), crowded: Cell::default() };
        // Tables are multiplied out before anything is written out.
        let tables = Simplifier { expand: 0, choose: EXPANDED };
        let short = Simplifier { expand: EXPANDED, choose: EXPANDED };
        // Closed forms first: they are short, and hold for symbolic sizes. Most take less than a
        // tenth of the budget.
        let brief = pair.closed(allowance.closed / 10).is_ok() || *own && pair.by_cases(&tables, allowance.by_tables).is_ok();
        if !brief
            && let Err(why) = pair.closed(allowance.closed)
            && pair.by_cases(&short, allowance.by_cases).is_err()
        {
            return Err(format!("output {}: {why}", output.name));
        }
        premises = premises.and(pair.premises.get());
    }
    // An element that is only moved is the same element, with a value or without.
    premises.valued &= premises.reals;
    Ok(premises)
}

/// The distinct constants of real numbers.
fn tables_of(graph: &Graph) -> BTreeSet<u128> {
    let constants = graph.ids().filter_map(|id| match &graph.node(id).op {
        Op::Constant(constant) => Some(&constant.value),
        _ => None,
    });
    let tables = constants.filter(|value| value.dtype().class() == Class::Real && value.splat().is_none());
    tables.map(|value| value.fingerprint()).collect()
}

/// An input that has another element type in the other graph.
fn other_type<'a>(before: &'a Graph, after: &'a Graph) -> Option<&'a str> {
    let inputs = |graph: &'a Graph| {
        graph.inputs().iter().filter_map(|id| match &graph.node(*id).op {
            Op::Input(input) => Some((input.name.as_ref(), input.ty.dtype)),
            _ => None,
        })
    };
    inputs(before).find_map(|(name, dtype)| inputs(after).find(|(other, of)| *other == name && *of != dtype).map(|(name, _)| name))
}

/// One output of two graphs.
struct Pair<'a> {
    before: &'a Graph,
    after: &'a Graph,
    at: usize,
    assumptions: &'a Assumptions,
    constants: &'a Constants,
    /// What the proof assumes about where elements have values.
    premises: Cell<Premises>,
    /// Whether reads of input elements are no longer tracked: there are too many, or they were
    /// found to differ.
    crowded: Cell<bool>,
}

/// What is known where an element is read: sums that are at least 0, and variables of the output
/// index.
type Known = (Vec<Poly>, Vec<(Var, Poly)>);

/// Readings of both graphs under the same facts.
struct Readings {
    shared: Shared,
    memories: [Memory; 2],
}

impl Readings {
    fn new(shared: Shared) -> Readings {
        Readings { shared, memories: Default::default() }
    }
}

/// A partly known output index.
struct Case {
    facts: Facts,
    index: Vec<Poly>,
    variables: Vec<(Var, Poly)>,
}

impl Case {
    /// The case with a variable replaced, and with additional variables.
    fn with(&self, var: Var, value: &Poly, more: &[(Var, Poly)]) -> Case {
        Case {
            facts: self.facts.with(more, []).replaced(var, value),
            index: self.index.iter().map(|p| p.with(var, value)).collect(),
            variables: self.variables.iter().filter(|(v, _)| *v != var).chain(more).cloned().collect(),
        }
    }

    /// The case with every variable replaced that the facts leave only one value.
    fn pinned(self) -> Case {
        let value = |var: Var| self.facts.last(var).filter(|last| *last == self.facts.first(var));
        match self.variables.iter().find_map(|(var, _)| Some((*var, value(*var)?))) {
            Some((var, value)) => self.with(var, &Poly::number(value), &[]).pinned(),
            None => self,
        }
    }
}

impl Pair<'_> {
    fn values(&self) -> (ValueId, ValueId) {
        (self.before.outputs()[self.at].value, self.after.outputs()[self.at].value)
    }

    /// Any output index.
    fn any(&self) -> Result<Case, Trouble> {
        if let Some(name) = other_type(self.before, self.after) {
            return Trouble::new(format!("the input {name} has two types"));
        }
        let mut shared = Shared::default();
        for name in &self.assumptions.positive {
            shared.facts.all_positive(Source::Input(name.as_str().into()));
        }
        let (left, right) = self.values();
        let (shape, other) = (shape(self.before, left)?, shape(self.after, right)?);
        if shape != other {
            return Trouble::new(format!("shapes {shape:?} and {other:?}"));
        }
        let types = || [self.before, self.after].into_iter().flat_map(|g| g.ids().flat_map(|id| g.node(id).types.iter().flatten()));
        shared.facts.set_volumes(&types().map(|ty| Poly::size(&ty.elements())).collect::<Vec<_>>());
        for ty in self.before.ids().flat_map(|id| self.before.node(id).types.iter().flatten()) {
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
        let index = index.collect();
        Ok(Case { facts: shared.facts, index, variables })
    }

    /// For any output index, with sums left as they are.
    fn closed(&self, fuel: u64) -> Result<(), Trouble> {
        Fuel::fill(fuel);
        let case = self.any()?;
        let mut reading = Readings::new(Shared::new(case.facts.clone(), Vec::new(), self.constants.clone()));
        self.compare(&case, &mut reading, Simplifier::default())
    }

    fn compare(&self, case: &Case, readings: &mut Readings, simplifier: Simplifier) -> Result<(), Trouble> {
        readings.shared.crowded = self.crowded.get();
        let result = self.compared(case, readings, simplifier);
        self.crowded.set(readings.shared.crowded);
        readings.shared.obligations.clear();
        result
    }

    fn compared(&self, case: &Case, readings: &mut Readings, simplifier: Simplifier) -> Result<(), Trouble> {
        let (left, right) = self.values();
        let Readings { shared, memories: [of_before, of_after] } = readings;
        let left = Meaning::new(self.before, shared, of_before, simplifier).at(left, &case.index)?;
        let of_left = shared.obligations.split_off(0);
        let right = Meaning::new(self.after, shared, of_after, simplifier).at(right, &case.index)?;
        let of_right = shared.obligations.split_off(0);
        let difference = contracted(&left.sub(&right), &shared.facts)?;
        let simplifier = Simplifier { expand: simplifier.choose, ..simplifier };
        vanishes(&difference, &case.variables, &shared.facts, simplifier)?;
        self.places(shared, simplifier, [of_left, of_right])
    }

    /// Shows that both elements have values in the same places, and records what that assumes.
    fn places(&self, shared: &mut Shared, simplifier: Simplifier, met: [Vec<Obligation>; 2]) -> Result<(), Trouble> {
        let failures = |of: &[Obligation]| Failures::of(of, &shared.shown, &shared.facts, simplifier);
        let is_read = |obligation: &Obligation| matches!(obligation.claim, Claim::Read(_));
        let [(of_left, left_reads), (of_right, right_reads)] = met.map(|all| {
            let (reads, own): (Vec<_>, Vec<_>) = all.into_iter().partition(is_read);
            (own, reads)
        });
        let mut premises = self.premises.get();
        premises.defined |= !(of_left.is_empty() && of_right.is_empty());
        let (of_left, of_right) = (failures(&of_left)?, failures(&of_right)?);
        // Losing a value does more harm than gaining one.
        if let Some(place) = of_right.beyond(&of_left) {
            return Trouble::new(format!("equal, but only the second has no value where {place} is 1"));
        }
        if let Some(place) = of_left.beyond(&of_right) {
            return Trouble::new(format!("equal, but only the first has no value where {place} is 1"));
        }
        premises.valued |= !self.reads_the_same(shared, simplifier, [&left_reads, &right_reads])?;
        self.premises.set(premises);
        Ok(())
    }

    /// Whether both elements are shown to read the same input elements. What one of them reads only
    /// under a condition on data, as `Where(z == 0, 0, x / z)` does, the other must read under the
    /// same condition: it may have no value elsewhere, on purpose.
    fn reads_the_same(&self, shared: &mut Shared, simplifier: Simplifier, [left, right]: [&[Obligation]; 2]) -> Result<bool, Trouble> {
        let choices = [self.before, self.after].map(choices);
        if shared.crowded {
            return if choices[0] == choices[1] { Ok(false) } else { Trouble::new("equal, but what is read where is too much to compare") };
        }
        let failures = |of: &[Obligation]| Failures::of(of, &[], &shared.facts, simplifier);
        match (failures(left), failures(right)) {
            (Ok(left), Ok(right)) if left == right => Ok(true),
            _ if choices == [0, 0] => {
                // Differing reads can only be covered by the same premise.
                shared.crowded = true;
                Ok(false)
            }
            (Ok(left), Ok(right)) if left.reads_on_other_conditions(&right, &shared.facts, simplifier) => {
                Trouble::new("equal, but one reads some element only where a condition on data holds, and the other elsewhere as well")
            }
            (left, right) => left.and(right).map(|_| false),
        }
    }

    /// Distinguishes cases of the output index as elements need them; short sums are written out.
    fn by_cases(&self, simplifier: &Simplifier, fuel: u64) -> Result<(), Trouble> {
        Fuel::fill(fuel);
        let mut open = vec![self.any()?];
        // Cases that differ only in the index read many of the same elements.
        let mut alike: HashMap<Known, Readings> = HashMap::new();
        while let Some(case) = open.pop() {
            let key = (case.facts.known().to_vec(), case.variables.clone());
            let readings = alike
                .entry(key)
                .or_insert_with(|| Readings::new(Shared::new(case.facts.clone(), case.variables.clone(), self.constants.clone())));
            let result = self.compare(&case, readings, *simplifier);
            let (Err(trouble), need) = (result, readings.shared.need.take()) else { continue };
            // Without fuel no sign can be shown, and the same sign would be asked for again.
            if !Fuel::spend(64) {
                return Err(trouble);
            }
            match need {
                None => return Err(trouble),
                Some(Need::Sign(condition)) => {
                    for condition in [condition.clone(), condition.scale(-1).plus(-1)] {
                        let facts = case.facts.with(&[], [condition]);
                        if !facts.contradict() {
                            let case = Case { facts, index: case.index.clone(), variables: case.variables.clone() };
                            open.push(case.pinned());
                        }
                    }
                }
                Some(Need::Value(var)) => {
                    // A value is only asked for where the facts leave few.
                    let extent = case.variables.iter().find(|(v, _)| *v == var).and_then(|(_, extent)| extent.known());
                    let cases = (0..extent.map_or(EXPANDED, |e| e.min(EXPANDED))).map(|value| case.with(var, &Poly::number(value), &[]));
                    open.extend(cases.filter(|case| !case.facts.contradict()));
                }
                Some(Need::Cut(var, low)) => {
                    let Some((_, extent)) = case.variables.iter().find(|(v, _)| *v == var) else { return Err(trouble) };
                    let (h, l) = (fresh(), fresh());
                    let digits = Poly::var(h).mul(&low).add(&Poly::var(l));
                    let high = extent.add(&low).plus(-1).floor(&low);
                    let mut cut = case.with(var, &digits, &[(h, high), (l, low.clone())]);
                    cut.facts.assume(extent.plus(-1).sub(&digits));
                    open.push(cut);
                }
            }
        }
        Ok(())
    }
}

/// How many operators choose between real operands.
fn choices(graph: &Graph) -> usize {
    let is_real = |id| graph.ty(ValueId { node: id, port: 0 }).is_some_and(|ty| ty.dtype.class() == Class::Real);
    graph.ids().filter(|id| matches!(graph.node(*id).op, Op::Where(_)) && is_real(*id)).count()
}
