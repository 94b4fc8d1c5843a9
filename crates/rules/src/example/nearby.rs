//! Sources that differ from a given one in a respect that its types do not show: the readers of a
//! value, what is constant, what computes an operand.

use regraft_ir::{Attr, Const, DType, Float, OpKind};

use crate::changes::changes;
use crate::draft::{Draft, Leaf, Operand, Step};

/// Operators to insert between a leaf and its readers.
const BETWEEN: [OpKind; 2] = [OpKind::Neg, OpKind::Relu];

/// Element types to try for leaves, constants with arbitrary elements included.
const TYPES: [DType; 6] = [DType::F32, DType::I32, DType::U8, DType::F16, DType::F64, DType::Bool];
/// Maximum number of elements of an input and of a constant.
const LARGEST: [i64; 2] = [1 << 20, 1 << 17];

/// All sources that differ from this one in one respect, with these numbers also tried as
/// attributes. Most are not well typed.
pub(super) fn nearby(draft: &Draft, numbers: &[f64]) -> Vec<Draft> {
    let mut all = Vec::new();
    constants(draft, &mut all);
    readers(draft, &mut all);
    between(draft, &mut all);
    elements(draft, &mut all);
    types(draft, &mut all);
    ranks(draft, &mut all);
    sizes(draft, &mut all);
    axes(draft, &mut all);
    groups(draft, &mut all);
    attributes(draft, numbers, &mut all);
    omitted(draft, &mut all);
    all.extend(changes(draft));
    let uneven: Vec<Draft> = all.iter().filter_map(|changed| uneven(draft, changed)).collect();
    all.extend(uneven);
    all
}

/// `n` small numbers, with no two equal neighbours.
fn numbers(dtype: DType, shape: &[i64]) -> Option<Const> {
    let count = shape.iter().product::<i64>();
    Const::from_f64(dtype, shape, &(0..count).map(|n| (n % 7 + 2) as f64).collect::<Vec<_>>())
}

/// The changed draft, with unequal elements in constants of new shapes.
fn uneven(draft: &Draft, changed: &Draft) -> Option<Draft> {
    let mut uneven = changed.clone();
    for (leaf, old) in uneven.leaves.iter_mut().zip(&draft.leaves) {
        if let Leaf::Given(constant) = leaf
            && constant.shape() != old.shape()
            && constant.splat().is_some()
            && constant.elements() > 1
        {
            *leaf = Leaf::Given(numbers(constant.dtype(), constant.shape())?);
        }
    }
    (uneven != *changed).then_some(uneven)
}

/// Another element type for all leaves of one type; constants then hold integers.
fn types(draft: &Draft, all: &mut Vec<Draft>) {
    let mut present: Vec<DType> = draft.leaves.iter().map(Leaf::dtype).collect();
    present.sort_unstable();
    present.dedup();
    for (old, new) in present.into_iter().flat_map(|old| TYPES.map(|new| (old, new))) {
        let mut changed = draft.clone();
        for leaf in changed.leaves.iter_mut().filter(|leaf| leaf.dtype() == old) {
            let constant = match leaf {
                Leaf::Given(constant) => numbers(new, constant.shape()).map(Leaf::Given),
                Leaf::Tensor { .. } => None,
            };
            if let Some(other) = leaf.retyped(new).or(constant) {
                *leaf = other;
            }
        }
        all.push(changed);
    }
}

/// A leaf with more axes than all others.
fn ranks(draft: &Draft, all: &mut Vec<Draft>) {
    let most = draft.leaves.iter().map(|leaf| leaf.shape().len()).max().unwrap_or(0);
    for (at, leaf) in draft.leaves.iter().enumerate() {
        let shape = [vec![1; most + 1 - leaf.shape().len()].as_slice(), leaf.shape()].concat();
        all.extend(leaf.resized(shape).map(|leaf| {
            let mut changed = draft.clone();
            changed.leaves[at] = leaf;
            changed
        }));
    }
}

/// Changes sizes of large leaves, which other changes skip: all axes of one size, or one axis.
fn sizes(draft: &Draft, all: &mut Vec<Draft>) {
    if !draft.is_large() {
        return;
    }
    let mut sizes: Vec<i64> = draft.leaves.iter().flat_map(|leaf| leaf.shape().iter().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let axes = draft.leaves.iter().enumerate().flat_map(|(at, leaf)| (0..leaf.shape().len()).map(move |axis| (at, axis)));
    let places: Vec<(usize, usize)> = axes.collect();
    for size in &sizes {
        for to in [1, 2, 5, 6, 8, size + 1, 2 * size, 8 * size].into_iter().chain(sizes.iter().copied()) {
            all.extend(resized(draft, &|_, _, n| if n == *size { to } else { n }));
            for (at, axis) in &places {
                all.extend(resized(draft, &|leaf, place, n| if (leaf, place, n) == (*at, *axis, *size) { to } else { n }));
            }
        }
    }
}

/// Grows an axis of a leaf by one, or empties it; and grows two leaves by one along one of the last
/// axes, or by an axis.
pub(super) fn axes(draft: &Draft, all: &mut Vec<Draft>) {
    let count = draft.leaves.len();
    for at in 0..count {
        for axis in 0..draft.leaves[at].shape().len() {
            let mut empty = draft.clone();
            if let Leaf::Tensor { shape, .. } = &mut empty.leaves[at] {
                shape[axis] = 0;
                all.push(empty);
            }
            all.extend(resized(draft, &|leaf, place, n| if (leaf, place) == (at, axis) { n + 1 } else { n }));
        }
    }
    for (one, other) in (0..count).flat_map(|one| (0..one).map(move |other| (one, other))) {
        let both = |leaf: usize| leaf == one || leaf == other;
        for from_end in 1..=4 {
            let last = |leaf: usize, axis: usize| axis + from_end == draft.leaves[leaf].shape().len();
            all.extend(resized(draft, &|leaf, axis, n| if both(leaf) && last(leaf, axis) { n + 1 } else { n }));
        }
        let longer = |leaf: &Leaf| leaf.resized([&[2], leaf.shape()].concat());
        if let (Some(first), Some(second)) = (longer(&draft.leaves[one]), longer(&draft.leaves[other])) {
            let mut changed = draft.clone();
            (changed.leaves[one], changed.leaves[other]) = (first, second);
            all.push(changed);
        }
    }
}

/// Convolutions with other numbers of groups and the same channels per group: one, and all.
fn groups(draft: &Draft, all: &mut Vec<Draft>) {
    let attr = |step: &Step| step.attrs.iter().position(|(name, value)| name == "group" && matches!(value, Attr::Int(1..)));
    let steps: Vec<usize> = (0..draft.steps.len()).filter(|at| attr(&draft.steps[*at]).is_some()).collect();
    for group in [1, 2, 3, 9] {
        for chosen in steps.iter().map(std::slice::from_ref).chain([steps.as_slice()]) {
            let old = |leaf: usize, axis: usize| {
                chosen.iter().map(|at| &draft.steps[*at]).find_map(|step| {
                    let place = step.operands.iter().position(|operand| *operand == Operand::Leaf(leaf))?;
                    let Attr::Int(old) = step.attrs[attr(step)?].1 else { return None };
                    ((place, axis) == (0, 1) || (place > 0 && axis == 0)).then_some(old)
                })
            };
            let Some(mut grouped) = resized(draft, &|leaf, axis, n| old(leaf, axis).map_or(n, |old| n / old * group)) else { continue };
            for at in chosen {
                let step = &mut grouped.steps[*at];
                if let Some(place) = attr(step) {
                    step.attrs[place].1 = Attr::Int(group);
                }
            }
            all.push(grouped);
        }
    }
}

/// Attributes replaced by these numbers.
fn attributes(draft: &Draft, numbers: &[f64], all: &mut Vec<Draft>) {
    for (at, step) in draft.steps.iter().enumerate() {
        for (place, (_, value)) in step.attrs.iter().enumerate() {
            for number in numbers {
                let mut changed = draft.clone();
                changed.steps[at].attrs[place].1 = match value {
                    Attr::Float(_) => Attr::Float(Float(*number)),
                    Attr::Int(_) => Attr::Int(*number as i64),
                    _ => continue,
                };
                all.push(changed);
            }
        }
    }
}

/// A large source with inputs three times the size along spatial axes.
pub(super) fn larger(draft: &Draft) -> Option<Draft> {
    let is_input = |at: usize| matches!(draft.leaves[at], Leaf::Tensor { constant: false, .. });
    let larger = |at: usize, axis: usize, n: i64| if is_input(at) && axis > 1 { 3 * n } else { n };
    if draft.is_large() { resized(draft, &larger) } else { None }
}

fn resized(draft: &Draft, size: &dyn Fn(usize, usize, i64) -> i64) -> Option<Draft> {
    let shape = |at: usize, leaf: &Leaf| leaf.shape().iter().enumerate().map(|(axis, n)| size(at, axis, *n)).collect();
    let leaves = draft
        .leaves
        .iter()
        .enumerate()
        .map(|(at, leaf)| leaf.resized_within(LARGEST[usize::from(matches!(leaf, Leaf::Given(_)))], shape(at, leaf)));
    Some(Draft { leaves: leaves.collect::<Option<_>>()?, ..draft.clone() })
}

/// Omits all optional operands from one on.
fn omitted(draft: &Draft, all: &mut Vec<Draft>) {
    for (at, step) in draft.steps.iter().enumerate() {
        for kept in 1..step.operands.len() {
            let mut less = draft.clone();
            less.steps[at].operands.truncate(kept);
            all.push(less.without_unread());
        }
    }
}

/// An input instead of a constant, and vice versa.
fn constants(draft: &Draft, all: &mut Vec<Draft>) {
    for (at, leaf) in draft.leaves.iter().enumerate() {
        let other = match leaf {
            Leaf::Given(constant) => {
                Some(Leaf::Tensor { name: format!("x{at}"), dtype: constant.dtype(), shape: constant.shape().to_vec(), constant: false })
            }
            Leaf::Tensor { dtype, shape, .. } => numbers(*dtype, shape).map(Leaf::Given),
        };
        all.extend(other.map(|other| {
            let mut changed = draft.clone();
            changed.leaves[at] = other;
            changed
        }));
    }
}

/// Adds a reader of a value: an output, or an operator.
fn readers(draft: &Draft, all: &mut Vec<Draft>) {
    let leaves = (0..draft.leaves.len()).map(Operand::Leaf);
    let results = (0..draft.steps.len()).map(|step| Operand::Result(step, 0));
    for value in results.chain(leaves) {
        let mut returned = draft.clone();
        returned.roots.push(value);
        all.push(returned);
        for kind in BETWEEN {
            let mut read = draft.clone();
            read.roots.push(Operand::Result(read.steps.len(), 0));
            read.steps.push(Step { kind, attrs: Vec::new(), operands: vec![value] });
            all.push(read);
        }
    }
}

/// Sources with two leaves merged into one.
pub(super) fn joined(draft: &Draft) -> Vec<Draft> {
    let mut all = Vec::new();
    for one in 0..draft.leaves.len() {
        for other in (0..draft.leaves.len()).filter(|other| *other != one) {
            let mut changed = draft.clone();
            let operands = changed.steps.iter_mut().flat_map(|step| &mut step.operands);
            operands.filter(|operand| **operand == Operand::Leaf(other)).for_each(|operand| *operand = Operand::Leaf(one));
            all.push(changed.without_unread());
        }
    }
    all
}

/// An operator inserted between a leaf and one of its readers.
fn between(draft: &Draft, all: &mut Vec<Draft>) {
    for (step, place) in draft.steps.iter().enumerate().flat_map(|(at, step)| (0..step.operands.len()).map(move |place| (at, place))) {
        let operand = draft.steps[step].operands[place];
        if !matches!(operand, Operand::Leaf(_)) {
            continue;
        }
        for kind in BETWEEN {
            let mut changed = draft.clone();
            // Steps are in order, and this one comes first.
            let moved = |operand: &mut Operand| {
                if let Operand::Result(at, _) = operand {
                    *at += 1;
                }
            };
            changed.steps.iter_mut().flat_map(|step| &mut step.operands).chain(&mut changed.roots).for_each(moved);
            changed.steps[step].operands[place] = Operand::Result(0, 0);
            changed.steps.insert(0, Step { kind, attrs: Vec::new(), operands: vec![operand] });
            all.push(gathered(&changed));
            all.push(changed);
        }
    }
}

/// The source with its first operator replaced by a gather of all rows.
fn gathered(draft: &Draft) -> Draft {
    let mut gathered = draft.clone();
    let rows = match draft.steps[0].operands[0] {
        Operand::Leaf(at) => draft.leaves[at].shape().first().copied().unwrap_or(1),
        Operand::Result(..) => 1,
    };
    gathered.steps[0].kind = OpKind::Gather;
    gathered.steps[0].attrs = vec![("axis".into(), Attr::Int(0))];
    gathered.steps[0].operands.push(Operand::Leaf(draft.leaves.len()));
    gathered.leaves.extend(Const::from_i64(DType::I64, &[rows], &(0..rows).collect::<Vec<_>>()).map(Leaf::Given));
    gathered
}

/// A constant with another first element.
fn elements(draft: &Draft, all: &mut Vec<Draft>) {
    for (at, leaf) in draft.leaves.iter().enumerate() {
        let Leaf::Given(constant) = leaf else { continue };
        let Some(elements) = constant.to_f64() else { continue };
        for first in [0.0, -1.0, 3.0, 0.25].into_iter().filter(|_| !elements.is_empty()) {
            let mut elements = elements.clone();
            elements[0] = first;
            if let Some(value) = Const::from_f64(constant.dtype(), constant.shape(), &elements) {
                let mut changed = draft.clone();
                changed.leaves[at] = Leaf::Given(value);
                all.push(changed);
            }
        }
    }
}

impl Draft {
    /// Whether other changes leave some of its sizes alone.
    pub(super) fn is_large(&self) -> bool {
        self.leaves.iter().map(|leaf| leaf.shape().iter().product::<i64>()).sum::<i64>() >= 4096
    }

    /// The same without leaves that nothing reads.
    fn without_unread(self) -> Draft {
        let operands = || self.steps.iter().flat_map(|step| &step.operands).chain(&self.roots);
        let kept: Vec<usize> = (0..self.leaves.len()).filter(|at| operands().any(|operand| *operand == Operand::Leaf(*at))).collect();
        let moved = |operand: &Operand| match operand {
            Operand::Leaf(at) => Operand::Leaf(kept.iter().position(|leaf| leaf == at).unwrap_or(*at)),
            result => *result,
        };
        Draft {
            leaves: kept.iter().map(|at| self.leaves[*at].clone()).collect(),
            steps: self.steps.iter().map(|step| Step { operands: step.operands.iter().map(moved).collect(), ..step.clone() }).collect(),
            roots: self.roots.iter().map(moved).collect(),
        }
    }
}
