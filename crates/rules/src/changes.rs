//! Sources that differ from a given one in one respect: a size, a rank, an operand, an attribute or
//! a constant.

use regraft_ir::{Attr, Class, Const, DType, Dim, Float, OpKind};

use crate::draft::{Draft, Leaf, Operand, Step};

/// Numbers to try in constants and attributes.
const NUMBERS: [f64; 5] = [0.0, 1.0, -1.0, 0.5, 2.0];
/// Element types to try for leaves.
const TYPES: [DType; 8] = [DType::F64, DType::F32, DType::I32, DType::I64, DType::U8, DType::I8, DType::U64, DType::Bool];
/// Maximum number of axes whose orders are all tried.
const PERMUTED: usize = 4;
/// Maximum number of operands of a variadic operator.
const OPERANDS: usize = 5;

/// All sources that differ from this one in one respect, in a fixed order. Most are not well typed.
pub(crate) fn changes(draft: &Draft) -> Vec<Draft> {
    let mut all = Vec::new();
    sizes(draft, &mut all);
    ranks(draft, &mut all);
    spatial_ranks(draft, &mut all);
    operands(draft, &mut all);
    groups(draft, &mut all);
    attributes(draft, &mut all);
    constants(draft, &mut all);
    types(draft, &mut all);
    all.retain(|changed| changed != draft);
    all
}

/// The draft with other leaf shapes: `shape` maps the index and the shape of a leaf.
fn reshaped(draft: &Draft, shape: impl Fn(usize, &[i64]) -> Vec<i64>) -> Option<Draft> {
    let leaves = draft.leaves.iter().enumerate().map(|(at, leaf)| {
        let shape = shape(at, leaf.shape());
        if shape == leaf.shape() { Some(leaf.clone()) } else { leaf.resized(shape) }
    });
    Some(Draft { leaves: leaves.collect::<Option<_>>()?, ..draft.clone() })
}

/// The draft with other attributes: those for which `change` returns a value.
fn respelled(draft: &Draft, change: impl Fn(&Step, &str, &Attr) -> Option<Attr>) -> Draft {
    let mut draft = draft.clone();
    for step in &mut draft.steps {
        let new: Vec<Option<Attr>> = step.attrs.iter().map(|(name, value)| change(step, name, value)).collect();
        for ((_, value), new) in step.attrs.iter_mut().zip(new) {
            if let Some(new) = new {
                *value = new;
            }
        }
    }
    draft
}

/// The distinct sizes of leaves, ascending.
fn numbers(draft: &Draft) -> Vec<i64> {
    let mut all: Vec<i64> = draft.leaves.iter().flat_map(|leaf| leaf.shape().iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Changes a size wherever the same number occurs: to 1, by one, doubled, or to another size; all
/// sizes to one number; and a single axis: to 1, and from 1 to any other size.
fn sizes(draft: &Draft, all: &mut Vec<Draft>) {
    let numbers = numbers(draft);
    for from in numbers.iter().copied().filter(|n| *n > 1) {
        let others = numbers.iter().copied().filter(|to| *to > 1);
        all.extend([1, from + 1, 2 * from].into_iter().chain(others).filter_map(|to| resized(draft, |n| if n == from { to } else { n })));
    }
    all.extend([2, 3].into_iter().filter_map(|to| resized(draft, |n| if n > 1 { to } else { n })));
    for (at, leaf) in draft.leaves.iter().enumerate() {
        for axis in 0..leaf.shape().len() {
            let others: Vec<i64> = if leaf.shape()[axis] == 1 { numbers.clone() } else { vec![1] };
            let with = |to: i64| {
                reshaped(draft, |place, shape| {
                    let mut shape = shape.to_vec();
                    if place == at {
                        shape[axis] = to;
                    }
                    shape
                })
            };
            all.extend(others.into_iter().filter_map(with));
        }
    }
}

/// Replaces every size, also in attributes that are shapes.
fn resized(draft: &Draft, swap: impl Fn(i64) -> i64) -> Option<Draft> {
    let mut changed = reshaped(draft, |_, shape| shape.iter().map(|n| swap(*n)).collect())?;
    for leaf in &mut changed.leaves {
        // Indices are drawn below the size of the axis they index.
        if let Leaf::Tensor { name, .. } = leaf
            && let Some((stem, bound)) = name.rsplit_once("_index_")
        {
            *name = format!("{stem}_index_{}", swap(bound.parse().ok()?));
        }
    }
    Some(respelled(&changed, |_, name, value| match value {
        Attr::Dims(dims) => Some(Attr::Dims(dims.iter().map(|d| d.known().map_or_else(|| d.clone(), |n| Dim::from(swap(n)))).collect())),
        Attr::Ints(ints) if name == "kernel" => Some(Attr::Ints(ints.iter().map(|n| swap(*n)).collect())),
        Attr::Int(n) if name == "depth" || name == "group" => Some(Attr::Int(swap(*n))),
        _ => None,
    }))
}

/// Adds or removes a leading axis: of all leaves, of those of the highest rank, and of each.
fn ranks(draft: &Draft, all: &mut Vec<Draft>) {
    let most = draft.leaves.iter().map(|leaf| leaf.shape().len()).max().unwrap_or(0);
    let every = |_: usize, _: &[i64]| true;
    let longest = |_: usize, shape: &[i64]| shape.len() == most;
    let longer = |size: i64, which: &dyn Fn(usize, &[i64]) -> bool| {
        reshaped(draft, |at, shape| if which(at, shape) { [&[size], shape].concat() } else { shape.to_vec() })
    };
    let shorter = |which: &dyn Fn(usize, &[i64]) -> bool| {
        reshaped(draft, |at, shape| if which(at, shape) && !shape.is_empty() { shape[1..].to_vec() } else { shape.to_vec() })
    };
    for size in [2, 1] {
        for which in [&every, &longest] as [&dyn Fn(usize, &[i64]) -> bool; 2] {
            let more = longer(size, which);
            all.extend(more.iter().map(|draft| respelled(draft, |step, name, value| shifted(step, name, value, Some(size)))));
            all.extend(more);
        }
    }
    for which in [&every, &longest] as [&dyn Fn(usize, &[i64]) -> bool; 2] {
        let less = shorter(which);
        all.extend(less.iter().map(|draft| respelled(draft, |step, name, value| shifted(step, name, value, None))));
        all.extend(less);
    }
    for one in 0..draft.leaves.len() {
        let only = |at: usize, _: &[i64]| at == one;
        all.extend([1, 2, 3].into_iter().filter_map(|size| longer(size, &only)));
        all.extend(shorter(&only));
    }
}

/// An attribute adjusted to operands with one more leading axis of this size, or with one less.
fn shifted(step: &Step, name: &str, value: &Attr, more: Option<i64>) -> Option<Attr> {
    let by = if more.is_some() { 1 } else { -1 };
    let front = |ints: &[i64], one: i64| if more.is_some() { [&[one], ints].concat() } else { ints.get(1..).unwrap_or_default().to_vec() };
    Some(match (name, value) {
        ("axis", Attr::Int(axis)) => Attr::Int(axis + by),
        ("axes", Attr::Ints(axes)) => Attr::Ints(axes.iter().map(|axis| axis + by).collect()),
        ("perm", Attr::Ints(perm)) if more.is_some() => Attr::Ints(std::iter::once(0).chain(perm.iter().map(|axis| axis + 1)).collect()),
        ("perm", Attr::Ints(perm)) if perm.first() == Some(&0) => Attr::Ints(perm[1..].iter().map(|axis| axis - 1).collect()),
        ("repeats" | "scales", Attr::Ints(ints)) => Attr::Ints(front(ints, 1)),
        ("shape", Attr::Dims(dims)) => Attr::Dims(match more {
            Some(size) => std::iter::once(Dim::from(size)).chain(dims.iter().cloned()).collect(),
            None => dims.get(1..).unwrap_or_default().to_vec(),
        }),
        ("pads", Attr::Ints(pads)) if step.kind == OpKind::Pad => {
            let (begins, ends) = pads.split_at(pads.len() / 2);
            Attr::Ints([front(begins, 0), front(ends, 0)].concat())
        }
        _ => return None,
    })
}

/// Adds or removes a spatial axis: of all leaves that have any, and their sliding windows.
fn spatial_ranks(draft: &Draft, all: &mut Vec<Draft>) {
    let more = reshaped(draft, |_, shape| if shape.len() > 2 { [shape, &shape[shape.len() - 1..]].concat() } else { shape.to_vec() });
    let less = reshaped(draft, |_, shape| if shape.len() > 3 { shape[..shape.len() - 1].to_vec() } else { shape.to_vec() });
    for (changed, longer) in [(more, true), (less, false)] {
        let end = |ints: &[i64]| match (ints.split_last(), longer) {
            (Some((last, _)), true) => [ints, &[*last]].concat(),
            (Some((_, rest)), false) => rest.to_vec(),
            (None, _) => Vec::new(),
        };
        let change = |step: &Step, name: &str, value: &Attr| {
            Some(match (name, value) {
                ("strides" | "dilations" | "kernel" | "repeats" | "scales", Attr::Ints(ints)) => Attr::Ints(end(ints)),
                ("pads", Attr::Ints(pads)) => {
                    let (begins, ends) = pads.split_at(pads.len() / 2);
                    Attr::Ints([end(begins), end(ends)].concat())
                }
                ("perm", Attr::Ints(perm)) if longer => Attr::Ints(perm.iter().copied().chain([perm.len() as i64]).collect()),
                ("axes", Attr::Ints(axes)) if step.kind.name().starts_with("Reduce") => Attr::Ints(match longer {
                    true => axes.iter().copied().chain([axes.last()? + 1]).collect(),
                    false => axes[..axes.len().saturating_sub(1)].to_vec(),
                }),
                ("shape", Attr::Dims(dims)) if longer => Attr::Dims(dims.iter().chain(dims.last()).cloned().collect()),
                ("shape", Attr::Dims(dims)) => Attr::Dims(dims[..dims.len().saturating_sub(1)].to_vec()),
                _ => return None,
            })
        };
        all.extend(changed.iter().map(|changed| respelled(changed, change)));
        all.extend(changed);
    }
}

/// Omits the last operand, or adds one, like one of the leaves or a vector.
fn operands(draft: &Draft, all: &mut Vec<Draft>) {
    for (at, step) in draft.steps.iter().enumerate() {
        if step.operands.len() > 1 {
            let mut less = draft.clone();
            less.steps[at].operands.pop();
            all.push(less);
        }
        if step.operands.len() >= OPERANDS {
            continue;
        }
        let dtype = draft.leaves.first().map_or(DType::F64, Leaf::dtype);
        let vectors = numbers(draft).into_iter().map(|size| (dtype, vec![size]));
        let mut shapes: Vec<(DType, Vec<i64>)> =
            draft.leaves.iter().map(|leaf| (leaf.dtype(), leaf.shape().to_vec())).chain(vectors).collect();
        shapes.sort();
        shapes.dedup();
        for (dtype, shape) in shapes {
            for constant in [false, true] {
                let mut more = draft.clone();
                let name = format!("x{}_normal", 100 + more.leaves.len());
                more.steps[at].operands.push(Operand::Leaf(more.leaves.len()));
                more.leaves.push(Leaf::Tensor { name, dtype, shape: shape.clone(), constant });
                all.push(more);
            }
        }
    }
}

/// Grouped convolutions, whose weights have fewer channels.
fn groups(draft: &Draft, all: &mut Vec<Draft>) {
    let Some((graph, _)) = draft.graph() else { return };
    let steps: Vec<_> = graph.ids().filter(|id| !matches!(graph.node(*id).op.kind(), OpKind::Input | OpKind::Constant)).collect();
    for (at, step) in draft.steps.iter().enumerate() {
        let (Some(group), Some(Operand::Leaf(weights))) = (step.attrs.iter().position(|(name, _)| name == "group"), step.operands.get(1))
        else {
            continue;
        };
        let channels = graph.ty(graph.node(steps[at]).inputs[0]).and_then(|ty| ty.shape.get(1)).and_then(Dim::known).unwrap_or(1);
        for count in [1, 2, 3, 4, channels] {
            let per_group = if step.kind == OpKind::Conv { channels / count.max(1) } else { draft.leaves[*weights].shape()[1] };
            let changed = reshaped(draft, |place, shape| match shape {
                [outs, _, rest @ ..] if place == *weights => [&[*outs, per_group], rest].concat(),
                _ => shape.to_vec(),
            });
            all.extend(changed.map(|mut changed| {
                changed.steps[at].attrs[group].1 = Attr::Int(count);
                changed
            }));
        }
    }
}

/// Another value of each attribute: in one operator, and in all that share it.
fn attributes(draft: &Draft, all: &mut Vec<Draft>) {
    let rank = draft.leaves.iter().map(|leaf| leaf.shape().len()).max().unwrap_or(0) as i64;
    for (at, step) in draft.steps.iter().enumerate() {
        for (place, (name, value)) in step.attrs.iter().enumerate() {
            let alike = |other: &&Step| other.kind == step.kind && other.attrs[place].1 == *value;
            let alone = draft.steps.iter().filter(alike).count() == 1;
            for other in others(step.kind, name, value, rank) {
                let mut one = draft.clone();
                one.steps[at].attrs[place].1 = other.clone();
                all.push(one);
                if !alone && draft.steps.iter().position(|s| alike(&s)) == Some(at) {
                    let mut every = draft.clone();
                    every.steps.iter_mut().filter(|s| alike(&&**s)).for_each(|s| s.attrs[place].1 = other.clone());
                    all.push(every);
                }
            }
        }
    }
}

/// Alternative values of an attribute.
fn others(kind: OpKind, name: &str, value: &Attr, rank: i64) -> Vec<Attr> {
    let n = |ints: &[i64]| ints.len();
    match (name, value) {
        (_, Attr::Bool(flag)) => vec![Attr::Bool(!flag)],
        ("axis", Attr::Int(_)) => (0..=rank).map(Attr::Int).collect(),
        ("group", Attr::Int(_)) => Vec::new(),
        (_, Attr::Int(number)) => [number - 1, number + 1, 1, 2, 3].into_iter().filter(|n| *n >= 0).map(Attr::Int).collect(),
        ("perm", Attr::Ints(perm)) => permutations(n(perm)).into_iter().map(Attr::Ints).collect(),
        ("axes", Attr::Ints(_)) => {
            (1u32..1 << rank.min(5)).map(|mask| Attr::Ints((0..rank.min(5)).filter(|axis| mask >> axis & 1 == 1).collect())).collect()
        }
        ("strides" | "dilations" | "kernel", Attr::Ints(ints)) => windows(n(ints), &[1, 2, 3]),
        ("pads", Attr::Ints(ints)) if kind != OpKind::Pad => windows(n(ints), &[0, 1]),
        ("repeats" | "scales", Attr::Ints(ints)) => windows(n(ints), &[1, 2, 3]),
        ("sizes", Attr::Ints(ints)) => {
            let moved = (0..n(ints)).flat_map(|from| (0..n(ints)).map(move |to| (from, to)));
            let moved = moved.filter(|(from, to)| from != to && ints[*from] > 1).map(|(from, to)| {
                let mut sizes = ints.clone();
                (sizes[from], sizes[to]) = (sizes[from] - 1, sizes[to] + 1);
                Attr::Ints(sizes)
            });
            let split = [ints.iter().flat_map(|size| vec![1; *size as usize]).collect(), vec![ints.iter().sum()]];
            moved.chain(split.map(Attr::Ints)).collect()
        }
        (_, Attr::Ints(ints)) => (0..n(ints))
            .flat_map(|at| [-1, 1].map(|by| ints.iter().enumerate().map(|(i, v)| if i == at { v + by } else { *v }).collect()))
            .map(Attr::Ints)
            .collect(),
        ("shape", Attr::Dims(dims)) => shapes(dims),
        (_, Attr::Dims(dims)) => {
            let with = |at: usize, by: i64| {
                let mut dims = dims.clone();
                dims[at] = dims[at].clone() + Dim::from(by);
                Attr::Dims(dims)
            };
            (0..dims.len()).flat_map(|at| [with(at, -1), with(at, 1)]).collect()
        }
        (_, Attr::Float(_)) => NUMBERS.map(|n| Attr::Float(Float(n))).into_iter().chain([Attr::Absent]).collect(),
        (_, Attr::Absent) => [0.5, -0.5].map(|n| Attr::Float(Float(n))).to_vec(),
        (_, Attr::Str(_)) => {
            ["constant", "reflect", "edge", "wrap", "DCR", "CRD", "none", "tanh", "add", "mul"].map(|word| Attr::Str(word.into())).to_vec()
        }
        (_, Attr::DType(_)) => TYPES.map(Attr::DType).to_vec(),
        _ => Vec::new(),
    }
}

/// Lists of this length with equal items, and those that differ in one item.
fn windows(length: usize, values: &[i64]) -> Vec<Attr> {
    let mut all = Vec::new();
    for value in values {
        all.push(Attr::Ints(vec![*value; length]));
        for (at, other) in (0..length).flat_map(|at| values.iter().map(move |other| (at, other))).filter(|(_, other)| *other != value) {
            let mut list = vec![*value; length];
            list[at] = *other;
            all.push(Attr::Ints(list));
        }
    }
    all
}

/// All orders of this many axes; for many axes, those that differ from ascending by one swap.
fn permutations(n: usize) -> Vec<Vec<i64>> {
    if n > PERMUTED {
        let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
        return pairs
            .map(|(a, b)| {
                let mut perm: Vec<i64> = (0..n as i64).collect();
                perm.swap(a, b);
                perm
            })
            .collect();
    }
    (0..n as i64).fold(vec![Vec::new()], |all, axis| {
        all.iter().flat_map(|perm| (0..=perm.len()).map(move |at| [&perm[..at], &[axis], &perm[at..]].concat())).collect()
    })
}

/// Shapes with the same number of elements: neighbours swapped or merged, a 1 added or removed.
fn shapes(dims: &[Dim]) -> Vec<Attr> {
    let mut all = Vec::new();
    for at in 0..=dims.len() {
        all.push([&dims[..at], &[Dim::from(1)], &dims[at..]].concat());
    }
    for at in 0..dims.len() {
        if dims[at].is(1) {
            all.push([&dims[..at], &dims[at + 1..]].concat());
        }
        if at > 0 {
            let merged = dims[at - 1].clone() * dims[at].clone();
            all.push([&dims[..at - 1], &[merged], &dims[at + 1..]].concat());
            all.push([&dims[..at - 1], &[dims[at].clone(), dims[at - 1].clone()], &dims[at + 1..]].concat());
        }
    }
    all.into_iter().map(Attr::Dims).collect()
}

/// Another element type: of all real leaves, and of each leaf.
fn types(draft: &Draft, all: &mut Vec<Draft>) {
    let real = |leaf: &Leaf| leaf.dtype().class() == Class::Real;
    for dtype in TYPES {
        let leaves = |which: &dyn Fn(usize, &Leaf) -> bool| {
            let retyped =
                draft.leaves.iter().enumerate().map(|(at, leaf)| if which(at, leaf) { leaf.retyped(dtype) } else { Some(leaf.clone()) });
            Some(Draft { leaves: retyped.collect::<Option<_>>()?, ..draft.clone() })
        };
        all.extend(leaves(&|_, leaf| real(leaf)));
        all.extend((0..draft.leaves.len()).filter_map(|one| leaves(&|at, _| at == one)));
    }
}

/// Other elements of a constant: one number everywhere, and for few integers, another one at each
/// position.
fn constants(draft: &Draft, all: &mut Vec<Draft>) {
    for (at, leaf) in draft.leaves.iter().enumerate() {
        let Leaf::Given(constant) = leaf else { continue };
        let Some(elements) = constant.to_f64() else { continue };
        let numbers: &[f64] = if constant.dtype().class() == Class::Real { &NUMBERS } else { &[0.0, 1.0, -1.0, 2.0] };
        let mut lists: Vec<Vec<f64>> = numbers.iter().map(|n| vec![*n; elements.len()]).collect();
        if constant.dtype().class() != Class::Real && elements.len() < PERMUTED {
            for (place, n) in (0..elements.len()).flat_map(|place| numbers.iter().map(move |n| (place, n))) {
                lists.push(elements.iter().enumerate().map(|(i, v)| if i == place { *n } else { *v }).collect());
            }
        }
        lists.push(elements.iter().rev().copied().collect());
        lists.push((0..elements.len()).map(|i| i as f64 * 0.5 - 1.0).collect());
        for list in lists {
            if let Some(value) = Const::from_f64(constant.dtype(), constant.shape(), &list) {
                let mut changed = draft.clone();
                changed.leaves[at] = Leaf::Given(value);
                all.push(changed);
            }
        }
    }
}
