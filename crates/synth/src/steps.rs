//! Which steps may follow.

use smallvec::SmallVec;

use crate::canonical::{Form, broken};
use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::size::{Size, VARIABLES};
use crate::spec::Limits;
use crate::state::{Coords, State, Step};

/// Which steps a search considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Leave out steps that break an exact canonical form.
    pub canonical: bool,
    /// Leave out those that break an approximate one, too.
    pub approximate: bool,
    /// Leave out steps after which the input's sizes are out of reach.
    pub distance: bool,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter { canonical: true, approximate: false, distance: true }
    }
}

impl Filter {
    /// The form that a step breaks, of those that count.
    pub fn breaks(self, state: &State, step: &Step, coordinates: &mut Coordinates<'_>) -> Option<Form> {
        if !self.canonical {
            return None;
        }
        broken(state, step, coordinates).filter(|form| self.approximate || !form.is_approximate())
    }
}

/// Largest exponent of a variable in a size that is enumerated.
const EXPONENT: i8 = 2;

/// The sizes that a specification's variables can make.
#[derive(Clone, Debug)]
pub struct Sizes {
    all: Vec<Size>,
    divisors: rustc_hash::FxHashMap<Size, Vec<Size>>,
}

impl Sizes {
    /// Those that sums may have.
    pub fn new(coordinates: &mut Coordinates<'_>) -> Sizes {
        let ranges: Vec<(i8, i8)> = coordinates
            .spec
            .variables
            .iter()
            .map(|variable| {
                let most = variable.uses.clamp(0, 4) as i8;
                if variable.primary { (0, most) } else { (-most.min(EXPONENT), most.min(EXPONENT)) }
            })
            .collect();
        Sizes { all: products(&ranges, coordinates), divisors: Default::default() }
    }

    /// Blocks into which a size can be merged.
    pub(crate) fn divisors(&mut self, size: Size, coordinates: &mut Coordinates<'_>) -> &[Size] {
        self.divisors.entry(size).or_insert_with(|| {
            let variables = coordinates.spec.variables.iter().enumerate();
            let ranges: Vec<(i8, i8)> = variables
                .map(|(v, variable)| {
                    let (most, e) = (variable.uses.clamp(0, i32::from(EXPONENT)) as i8, size.exponent(v));
                    if variable.primary { (0, e) } else { (e.min(0) - most, e.max(0) + most) }
                })
                .collect();
            let found = products(&ranges, coordinates);
            found.into_iter().filter(|block| coordinates.is_size(size / *block)).collect()
        })
    }
}

/// All sizes with exponents in these ranges.
fn products(ranges: &[(i8, i8)], coordinates: &mut Coordinates<'_>) -> Vec<Size> {
    let most = coordinates.spec.limits.variables_in_size;
    let mut found = vec![(Size::ONE, 0)];
    for (variable, (least, largest)) in ranges.iter().enumerate() {
        let more: Vec<(Size, usize)> = found
            .iter()
            .filter(|(_, used)| *used < most)
            .flat_map(|(size, used)| (*least..=*largest).filter(|e| *e != 0).map(move |e| (*size * Size::power(variable, e), used + 1)))
            .collect();
        found.extend(more);
    }
    found.into_iter().map(|(size, _)| size).filter(|size| coordinates.is_size(*size)).collect()
}

/// How often each variable was introduced.
fn used(state: &State, coordinates: &Coordinates<'_>) -> [i32; VARIABLES] {
    let mut used = [0; VARIABLES];
    for sum in &state.sums {
        for (variable, exponent) in coordinates.size(*sum).exponents() {
            used[variable] += i32::from(exponent.abs());
        }
    }
    for coord in state.weights.iter().flatten() {
        for (variable, exponent) in coordinates.size(*coord).exponents() {
            if !coordinates.spec.is_coefficient(variable) {
                used[variable] += i32::from(exponent.abs());
            }
        }
    }
    used
}

/// Whether a size can still be introduced.
fn is_left(size: Size, used: &[i32; VARIABLES], coordinates: &Coordinates<'_>, weight: bool) -> bool {
    size.exponents().all(|(variable, exponent)| {
        weight && coordinates.spec.is_coefficient(variable)
            || used[variable] + i32::from(exponent.abs()) <= coordinates.spec.variables[variable].uses
    })
}

/// All steps that the limits allow, in a fixed order; canonical forms and distances are asked
/// elsewhere.
pub fn steps(state: &State, sizes: &mut Sizes, coordinates: &mut Coordinates<'_>) -> Vec<Step> {
    let limits = coordinates.spec.limits.clone();
    let (used, counts) = (used(state, coordinates), state.counts(coordinates));
    let mut steps = openings(state, sizes, coordinates);
    let free: SmallVec<[Coord; 8]> = first_of_alike(state, coordinates);
    let movable = |coord: &&Coord| coordinates.facts(**coord).height < limits.chain;
    let movable: SmallVec<[Coord; 8]> = free.iter().filter(movable).copied().collect();
    if state.weights.len() < limits.weights {
        contractions(state, &limits, &used, coordinates, &mut steps);
    }
    for &a in &movable {
        if counts.shifts < limits.shifts && !coordinates.facts(a).skips {
            steps.push(Step::Shift(a));
        }
        let part = matches!(coordinates.get(a), Coordinate::Quotient(..) | Coordinate::Remainder(..));
        if part && counts.expands < limits.expands {
            steps.push(Step::Expand(a));
        }
        if counts.merges < limits.merges && !coordinates.is_reduce(a) {
            let size = coordinates.size(a);
            let blocks = sizes.divisors(size, coordinates).to_vec();
            steps.extend(blocks.into_iter().map(|block| Step::Merge(a, block)));
        }
        if counts.strides < limits.strides {
            let window = coordinates.size(a);
            for by in sizes.all.clone() {
                let small = coordinates.values(window * by).is_some_and(|v| v.iter().all(|v| *v <= limits.window));
                if small && coordinates.is_size(window * by) && is_left(by, &used, coordinates, false) {
                    steps.push(Step::Stride(a, by));
                }
            }
        }
        for &b in &movable {
            if a == b {
                continue;
            }
            let (left, right) = (coordinates.facts(a), coordinates.facts(b));
            if counts.splits < limits.splits && coordinates.is_size(left.size * right.size) {
                steps.push(Step::Split(a, b));
            }
            if counts.unfolds < limits.unfolds && is_window(left.size, right.size, &limits, coordinates) {
                steps.push(Step::Unfold(a, b));
            }
        }
    }
    steps
}

/// Whether windows of one size can slide over an axis of another: odd in every layer, and not too
/// wide.
pub(crate) fn is_window(axis: Size, window: Size, limits: &Limits, coordinates: &mut Coordinates<'_>) -> bool {
    let (Some(axis), Some(window)) = (coordinates.values(axis), coordinates.values(window)) else { return false };
    axis.iter().zip(window.iter()).all(|(n, k)| k % 2 == 1 && *k > 1 && *k <= limits.window && *n as f64 >= limits.window_ratio * *k as f64)
}

/// The data's coordinates, of those sums of one size that nothing has touched the first only: what
/// can be done with one can be done with any.
fn first_of_alike(state: &State, coordinates: &Coordinates<'_>) -> SmallVec<[Coord; 8]> {
    let untouched = |coord: Coord| coordinates.is_reduce(coord) && !state.is_weighted(coord);
    let mut kept: SmallVec<[Coord; 8]> = SmallVec::new();
    for &coord in &state.data {
        let alike = |other: &Coord| untouched(*other) && coordinates.size(*other) == coordinates.size(coord);
        // Two are kept, for steps that take both.
        if !untouched(coord) || kept.iter().filter(|other| alike(other)).count() < 2 {
            kept.push(coord);
        }
    }
    kept
}

/// New sums, as long as there is nothing else.
pub(crate) fn openings(state: &State, sizes: &mut Sizes, coordinates: &mut Coordinates<'_>) -> Vec<Step> {
    let limits = &coordinates.spec.limits;
    let mut steps = Vec::new();
    if !state.is_opening(coordinates) || state.sums.len() >= limits.reductions {
        return steps;
    }
    let used = used(state, coordinates);
    let volume = coordinates.spec.input_volume();
    let summed: Size = state.sums.iter().map(|sum| coordinates.size(*sum)).collect();
    let largest = state.sums.iter().map(|sum| coordinates.size(*sum)).max();
    for &size in &sizes.all {
        // Sums have no order: ascending sizes reach each set of them once.
        if largest.is_some_and(|largest| size < largest) || !is_left(size, &used, coordinates, false) {
            continue;
        }
        let spec = coordinates.spec;
        let few = spec.layers.iter().all(|l| spec.real(summed * size, l) <= limits.reduction_growth * spec.real(volume, l));
        if few {
            steps.push(Step::Reduce(size));
        }
    }
    steps
}

/// What a new weight does with an axis of the data.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Skip,
    Share,
    Add,
}

fn contractions(state: &State, limits: &Limits, used: &[i32; VARIABLES], coordinates: &mut Coordinates<'_>, steps: &mut Vec<Step>) {
    let can_hold = |coord: &Coord| !coordinates.facts(*coord).skips && is_left(coordinates.size(*coord), used, coordinates, true);
    let candidates: Coords = state.data.iter().copied().filter(can_hold).collect();
    let mut roles: SmallVec<[Role; 8]> = SmallVec::new();
    let mut chosen = Vec::new();
    choose(&candidates, &mut roles, state, coordinates, &mut |roles| chosen.push(roles.to_vec()));
    for roles in chosen {
        let pick = |role| -> Coords { candidates.iter().zip(&roles).filter(|(_, r)| **r == role).map(|(c, _)| *c).collect() };
        let (shared, added) = (pick(Role::Share), pick(Role::Add));
        if !shared.is_empty() && is_weight(&shared, &added, limits, used, coordinates) {
            steps.push(Step::Contract { shared, added });
        }
    }
}

/// Whether a sum of this size may link two weights alone.
pub(crate) fn can_link(size: Size, coordinates: &mut Coordinates<'_>) -> bool {
    let (least, most) = coordinates.spec.limits.shared;
    coordinates.values(size).and_then(|values| values.iter().copied().max()).is_some_and(|v| (least..=most).contains(&v))
}

/// All ways to give each candidate a role. Of sums alike that nothing has touched, the first ones
/// are taken.
fn choose(
    candidates: &Coords,
    roles: &mut SmallVec<[Role; 8]>,
    state: &State,
    coordinates: &mut Coordinates<'_>,
    then: &mut dyn FnMut(&[Role]),
) {
    let Some(&coord) = candidates.get(roles.len()) else { return then(roles) };
    let untouched = |coord: Coord, coordinates: &Coordinates<'_>| coordinates.is_reduce(coord) && !state.is_weighted(coord);
    let size = coordinates.size(coord);
    let skipped_alike = untouched(coord, coordinates)
        && candidates
            .iter()
            .zip(roles.iter())
            .any(|(other, role)| *role == Role::Skip && untouched(*other, coordinates) && coordinates.size(*other) == size);
    let can_add = match coordinates.get(coord) {
        Coordinate::Output(_) | Coordinate::Quotient(..) | Coordinate::Remainder(..) => true,
        Coordinate::Reduce(size, _) => state.is_weighted(coord) && can_link(size, coordinates),
        _ => false,
    };
    for role in [Role::Skip, Role::Share, Role::Add] {
        if role == Role::Add && !can_add || role == Role::Share && skipped_alike {
            continue;
        }
        roles.push(role);
        choose(candidates, roles, state, coordinates, then);
        roles.pop();
    }
}

fn is_weight(shared: &Coords, added: &Coords, limits: &Limits, used: &[i32; VARIABLES], coordinates: &mut Coordinates<'_>) -> bool {
    let mut used = *used;
    for coord in shared.iter().chain(added) {
        let size = coordinates.size(*coord);
        if !is_left(size, &used, coordinates, true) {
            return false;
        }
        for (variable, exponent) in size.exponents() {
            if !coordinates.spec.is_coefficient(variable) {
                used[variable] += i32::from(exponent.abs());
            }
        }
    }
    let spec = coordinates.spec;
    let product = |coords: &Coords| -> Size { coords.iter().map(|coord| coordinates.size(*coord)).collect() };
    let (added, all) = (product(added), product(shared) * product(added));
    spec.layers.iter().all(|layer| spec.real(added, layer) <= limits.added as f64 && spec.real(all, layer) >= limits.weight as f64)
}
