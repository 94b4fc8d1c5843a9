//! Operators that move, select and repeat elements.

use regraft_ir::DType;

use super::attribute::{float, floats, int, ints, word};
use super::draft::{Draft, Val};
use super::size::{Size, broadcast, known, product};

/// Ends of slices that mean "to the end".
const ENDS: &[i64] = &[i64::MAX, i32::MAX as i64];

/// A transposition.
pub fn transpose(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=5)?;
    let common: &[&[usize]] = match x.rank() {
        3 => &[&[0, 2, 1], &[1, 0, 2]],
        4 => &[&[0, 2, 3, 1], &[0, 3, 1, 2], &[0, 2, 1, 3], &[0, 1, 3, 2]],
        _ => &[],
    };
    let perm = if common.is_empty() || d.random.once_in(2) { d.random.order(x.rank()) } else { d.random.pick(common).to_vec() };
    Some(permuted(d, &x, &perm))
}

/// `x` with its axes in this order.
pub fn permuted(d: &mut Draft, x: &Val, perm: &[usize]) -> Val {
    let list: Vec<i64> = perm.iter().map(|p| *p as i64).collect();
    let reversed = perm.iter().rev().copied().eq(0..x.rank());
    let attributes = if reversed && d.random.once_in(2) { vec![] } else { vec![ints("perm", &list)] };
    let dims = perm.iter().map(|p| x.dims[*p]).collect();
    d.emit("Transpose", &[x], attributes, x.ty, dims, x.mag)
}

/// A reshape: with numbers, with 0 and -1, or to a computed shape.
pub fn reshape(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=5)?;
    let y = reshaped(d, &x)?;
    if d.random.once_in(3) {
        // Back and forth, by the shape of the operand.
        let y = if d.random.once_in(2) { d.unary("Relu", &y, y.mag) } else { y };
        let shape = d.emit("Shape", &[&x], vec![], DType::I64, vec![Size::fixed(x.rank() as i64)], 8.0);
        return Some(d.emit("Reshape", &[&y, &shape], vec![], y.ty, x.dims.clone(), y.mag));
    }
    Some(y)
}

fn reshaped(d: &mut Draft, x: &Val) -> Option<Val> {
    // Merge neighbours or split a known size; then at most one open size may be -1, others 0 in
    // place.
    let mut dims = x.dims.clone();
    if d.random.once_in(2) && dims.len() > 1 {
        let at = d.random.below(dims.len() - 1);
        dims[at] = dims[at].with(dims[at + 1], |a, b| a * b);
        dims.remove(at + 1);
    } else {
        let at = d.random.below(dims.len());
        let size = dims[at].known()?;
        let part = [2, 3, 4, 1].into_iter().find(|p| size % p == 0)?;
        dims[at] = Size::fixed(size / part);
        dims.insert(at + d.random.below(2), Size::fixed(part));
    }
    to_dims(d, x, &dims)
}

/// `x` reshaped to `dims`.
pub fn to_dims(d: &mut Draft, x: &Val, dims: &[Size]) -> Option<Val> {
    let mut free = true;
    let mut list = Vec::new();
    let any = d.random.once_in(3);
    for (at, size) in dims.iter().enumerate() {
        let in_place = x.dims.get(at) == Some(size);
        let number = match size.known() {
            Some(_) if in_place && d.random.once_in(3) => 0,
            Some(_) if any && free && dims.iter().all(|s| s.known().is_some()) => {
                free = false;
                -1
            }
            Some(size) => size,
            None if in_place => 0,
            None if free => {
                free = false;
                -1
            }
            None => return None,
        };
        list.push(number);
    }
    if product(dims) != product(&x.dims) {
        return None;
    }
    let shape = d.ints(&list);
    Some(d.emit("Reshape", &[x, &shape], vec![], x.ty, dims.to_vec(), x.mag))
}

/// Flattens a value.
pub fn flatten(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=5)?;
    let axis = d.random.below(x.rank() + 1);
    let dims = vec![product(&x.dims[..axis]), product(&x.dims[axis..])];
    let negative = d.opset >= 11 && axis < x.rank() && d.random.once_in(2);
    let written = if negative { axis as i64 - x.rank() as i64 } else { axis as i64 };
    Some(d.emit("Flatten", &[&x], vec![int("axis", written)], x.ty, dims, x.mag))
}

/// Adds or removes axes of size 1.
pub fn squeeze(d: &mut Draft) -> Option<Val> {
    let x = d.real(0..=4)?;
    let ones: Vec<usize> = (0..x.rank()).filter(|a| x.dims[*a].is_one()).collect();
    let (op, axes, dims, rank) = if !ones.is_empty() && d.random.once_in(2) {
        let axes: Vec<usize> = if d.random.once_in(2) { ones } else { vec![d.random.pick(&ones)] };
        let dims = (0..x.rank()).filter(|a| !axes.contains(a)).map(|a| x.dims[a]).collect::<Vec<_>>();
        ("Squeeze", axes, dims, x.rank())
    } else {
        let mut dims = x.dims.clone();
        let at = d.random.below(dims.len() + 1);
        dims.insert(at, Size::fixed(1));
        let rank = dims.len();
        ("Unsqueeze", vec![at], dims, rank)
    };
    let negative = d.opset >= 11 && d.random.once_in(2);
    let list: Vec<i64> = axes.iter().map(|a| *a as i64 - if negative { rank as i64 } else { 0 }).collect();
    Some(axes_op(d, op, &x, &list, dims))
}

/// `Squeeze` or `Unsqueeze`, in the opset's form.
pub fn axes_op(d: &mut Draft, op: &str, x: &Val, axes: &[i64], dims: Vec<Size>) -> Val {
    if d.opset >= 13 {
        let axes = d.ints(axes);
        return d.emit(op, &[x, &axes], vec![], x.ty, dims, x.mag);
    }
    d.emit(op, &[x], vec![ints("axes", axes)], x.ty, dims, x.mag)
}

/// Repeats along axes: to a larger shape, or by factors.
pub fn repeat(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    if d.opset >= 8 && d.random.once_in(2) {
        let mut target: Vec<Size> = x.dims.iter().map(|s| if s.is_one() && d.random.once_in(2) { Size::fixed(3) } else { *s }).collect();
        if d.random.once_in(3) && x.rank() < 4 {
            target.insert(0, Size::fixed(2));
        }
        // Sizes of 1 keep the existing size.
        let offset = target.len() - x.rank();
        let list: Vec<i64> = (0..target.len())
            .map(|at| match target[at].known() {
                Some(size) if at < offset || x.dims[at - offset].is_one() || d.random.once_in(2) => size,
                _ => 1,
            })
            .collect();
        let shape = d.ints(&list);
        let dims = broadcast(&x.dims, &list.iter().map(|s| Size::fixed(*s)).collect::<Vec<_>>())?;
        return Some(d.emit("Expand", &[&x, &shape], vec![], x.ty, dims, x.mag));
    }
    let factors: Vec<i64> = (0..x.rank()).map(|_| d.random.pick(&[1, 1, 2])).collect();
    let dims = x.dims.iter().zip(&factors).map(|(s, f)| s.map(|v| v * f)).collect();
    let factors = d.ints(&factors);
    Some(d.emit("Tile", &[&x, &factors], vec![], x.ty, dims, x.mag))
}

/// Padding of any kind; occasionally negative.
pub fn pad(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let rank = x.rank();
    let mode = d.random.pick(&["constant", "constant", "constant", "edge", "reflect"]);
    let mut pads = vec![0i64; 2 * rank];
    for axis in 0..rank {
        if d.random.once_in(2) {
            let most = if mode == "constant" { 2 } else { (x.dims[axis].least() - 1).min(2) };
            pads[axis] = d.random.int(0, most);
            pads[axis + rank] = d.random.int(0, most);
            if mode == "constant" && x.dims[axis].least() > 2 && d.random.once_in(8) {
                pads[axis] = -1;
            }
        }
    }
    let value = d.random.pick(&[0.0, 0.0, 0.5]);
    padded(d, &x, &pads, mode, value)
}

/// `x` padded, in the opset's form.
pub fn padded(d: &mut Draft, x: &Val, pads: &[i64], mode: &str, value: f64) -> Option<Val> {
    let rank = x.rank();
    let dims = (0..rank).map(|a| x.dims[a].map(|s| s + pads[a] + pads[a + rank])).collect();
    let mag = x.mag.max(value);
    let mut attributes = vec![word("mode", mode)];
    if d.opset < 11 {
        attributes.extend([ints("pads", pads), float("value", value)]);
        return Some(d.emit("Pad", &[x], attributes, x.ty, dims, mag));
    }
    let pads = d.ints(pads);
    if value == 0.0 && d.random.once_in(2) {
        return Some(d.emit("Pad", &[x, &pads], attributes, x.ty, dims, mag));
    }
    let value = d.constant(x.ty, &[], &[value]);
    Some(d.emit("Pad", &[x, &pads, &value], attributes, x.ty, dims, mag))
}

/// A slice: negative starts, steps of either sign, ends far beyond.
pub fn slice(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let count = 1 + d.random.below(2.min(x.rank()));
    let axes = d.random.order(x.rank())[..count].to_vec();
    sliced(d, &x, &axes)
}

fn sliced(d: &mut Draft, x: &Val, axes: &[usize]) -> Option<Val> {
    let mut dims = x.dims.clone();
    let (mut starts, mut ends, mut steps, mut named) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &axis in axes {
        let size = x.dims[axis];
        let step = if d.opset >= 10 { d.random.pick(&[1, 1, 1, 2, -1, -2]) } else { 1 };
        let start = d.random.int(0, (size.least() - 1).min(2));
        let (from, to, length) = if step > 0 {
            let cut = if d.random.once_in(2) && size.least() > start + 1 { 1 } else { 0 };
            let to = if cut == 1 { -1 } else { d.random.pick(ENDS) };
            (start, to, size.map(move |s| (s - cut - start + step - 1) / step))
        } else {
            // From the end or beyond it, down to the start or before it.
            let from = d.random.pick(&[-1, i64::from(i32::MAX), i64::MAX]);
            let keep_first = d.random.once_in(2) || size.least() < 2;
            let to = if keep_first { d.random.pick(&[i64::from(i32::MIN), -1000]) } else { 0 };
            let span = i64::from(!keep_first);
            (from, to, size.map(move |s| (s - span - 1) / -step + 1))
        };
        let from = match size.known() {
            Some(size) if from < size && from >= 0 && d.random.once_in(3) => from - size,
            _ => from,
        };
        dims[axis] = length;
        starts.push(from);
        ends.push(to);
        steps.push(step);
        named.push(if d.opset >= 10 && d.random.once_in(2) { axis as i64 - x.rank() as i64 } else { axis as i64 });
    }
    slice_op(d, x, &starts, &ends, &named, &steps, dims)
}

/// A `Slice`, in the opset's form.
pub fn slice_op(d: &mut Draft, x: &Val, starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64], dims: Vec<Size>) -> Option<Val> {
    if d.opset < 10 {
        let attributes = vec![ints("starts", starts), ints("ends", ends), ints("axes", axes)];
        return Some(d.emit("Slice", &[x], attributes, x.ty, dims, x.mag));
    }
    let (starts, ends, axes) = (d.ints(starts), d.ints(ends), d.ints(axes));
    if steps.iter().all(|s| *s == 1) && d.random.once_in(2) {
        return Some(d.emit("Slice", &[x, &starts, &ends, &axes], vec![], x.ty, dims, x.mag));
    }
    let steps = d.ints(steps);
    Some(d.emit("Slice", &[x, &starts, &ends, &axes, &steps], vec![], x.ty, dims, x.mag))
}

/// A split of which all parts or one are used further, or that is concatenated again.
pub fn split(d: &mut Draft) -> Option<Val> {
    let x = d.choose(|v| v.ty.is_float() && v.dims.iter().any(|s| s.known().is_some_and(|s| s > 1)))?;
    let axes: Vec<usize> = (0..x.rank()).filter(|a| x.dims[*a].known().is_some_and(|s| s > 1)).collect();
    let axis = d.random.pick(&axes);
    let parts = parts_of(d, x.dims[axis].known()?);
    let values = split_into(d, &x, axis, &parts);
    match d.random.below(3) {
        0 => {
            d.pool.extend(values.iter().skip(1).cloned());
            values.into_iter().next()
        }
        1 => {
            let op = d.random.pick(&["Relu", "Sigmoid", "Neg"]);
            let values: Vec<Val> = values.iter().map(|v| d.unary(op, v, v.mag + 1.0)).collect();
            concat(d, &values, axis)
        }
        _ => {
            let mut values = values;
            if d.random.once_in(2) {
                values.reverse();
            }
            concat(d, &values, axis)
        }
    }
}

/// Sizes that sum to `size`.
pub fn parts_of(d: &mut Draft, size: i64) -> Vec<i64> {
    if size % 2 == 0 && d.random.once_in(2) {
        return vec![size / 2; 2];
    }
    let first = d.random.int(1, (size - 1).max(1));
    if first == size { vec![size] } else { vec![first, size - first] }
}

/// `Split`, in the opset's form.
pub fn split_into(d: &mut Draft, x: &Val, axis: usize, parts: &[i64]) -> Vec<Val> {
    let negative = d.opset >= 11 && d.random.once_in(3);
    let mut attributes = vec![int("axis", axis as i64 - if negative { x.rank() as i64 } else { 0 })];
    let even = parts.iter().all(|p| *p == parts[0]);
    let mut sizes = Val::none();
    if d.opset >= 18 && even && d.random.once_in(2) {
        attributes.push(int("num_outputs", parts.len() as i64));
    } else if d.opset >= 13 {
        sizes = d.ints(parts);
    } else if !even || d.random.once_in(2) {
        attributes.push(ints("split", parts));
    }
    let names: Vec<String> = parts.iter().map(|_| d.fresh()).collect();
    let operands: &[&Val] = if sizes.name.is_empty() { &[x] } else { &[x, &sizes] };
    let implied = d.opset >= 13 && d.opset < 18 && sizes.name.is_empty();
    debug_assert!(!implied, "between opset 13 and 18 sizes are given");
    d.node("Split", "", operands, names.clone(), attributes);
    let part = |(name, size): (String, &i64)| {
        let mut dims = x.dims.clone();
        dims[axis] = Size::fixed(*size);
        Val { name, dims, ..x.clone() }
    };
    names.into_iter().zip(parts).map(part).collect()
}

/// `values` concatenated along `axis`.
pub fn concat(d: &mut Draft, values: &[Val], axis: usize) -> Option<Val> {
    let first = values.first()?;
    let mut dims = first.dims.clone();
    for other in &values[1..] {
        let fits = other.rank() == first.rank() && (0..first.rank()).all(|a| a == axis || other.dims[a] == first.dims[a]);
        if !fits || other.ty != first.ty {
            return None;
        }
        dims[axis] = dims[axis].with(other.dims[axis], |a, b| a + b);
    }
    let negative = d.opset >= 11 && d.random.once_in(3);
    let written = axis as i64 - if negative { first.rank() as i64 } else { 0 };
    let mag = values.iter().fold(0.0f64, |m, v| m.max(v.mag));
    let operands: Vec<&Val> = values.iter().collect();
    Some(d.emit("Concat", &operands, vec![int("axis", written)], first.ty, dims, mag))
}

/// A concat of values that happen to fit, including the same one twice.
pub fn join(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let axis = d.random.below(x.rank());
    let mut values = vec![x.clone()];
    for _ in 0..d.random.below(3) {
        let x = x.clone();
        let fits = move |v: &Val| v.ty == x.ty && v.rank() == x.rank() && (0..x.rank()).all(|a| a == axis || v.dims[a] == x.dims[a]);
        values.extend(d.choose(fits));
    }
    if d.random.once_in(4)
        && let Some(dims) = known(&values[0].dims)
    {
        values.push(d.reals(&dims, -1.0, 1.0));
    }
    concat(d, &values, axis)
}

/// Elements selected by constant or computed indices.
pub fn gather(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let axis = d.random.below(x.rank());
    let least = x.dims[axis].least();
    let low = if d.opset >= 11 { -least } else { 0 };
    let indices = match d.random.below(4) {
        0 => {
            let index = d.random.int(low, least - 1);
            d.constant(DType::I64, &[], &[index as f64])
        }
        1 => {
            let dims = [d.random.int(1, 2), d.random.int(1, 3)];
            let values: Vec<f64> = (0..dims[0] * dims[1]).map(|_| d.random.int(low, least - 1) as f64).collect();
            let ty = d.random.pick(&[DType::I64, DType::I32]);
            d.constant(ty, &dims, &values)
        }
        2 if d.opset >= 10 => {
            let ints = d.choose(|v| v.ty == DType::I64 && v.rank() <= 1 && !v.constant)?;
            let modulus = d.constant(DType::I64, &[], &[least as f64]);
            d.emit("Mod", &[&ints, &modulus], vec![], DType::I64, ints.dims.clone(), 8.0)
        }
        _ => {
            let count = d.random.int(1, 3);
            let values: Vec<i64> = (0..count).map(|_| d.random.int(low, least - 1)).collect();
            d.ints(&values)
        }
    };
    let mut dims = x.dims[..axis].to_vec();
    dims.extend(&indices.dims);
    dims.extend(&x.dims[axis + 1..]);
    if dims.len() > 5 {
        return None;
    }
    let negative = d.opset >= 11 && d.random.once_in(3);
    let written = axis as i64 - if negative { x.rank() as i64 } else { 0 };
    Some(d.emit("Gather", &[&x, &indices], vec![int("axis", written)], x.ty, dims, x.mag))
}

/// Single elements selected along an axis.
pub fn pick_elements(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    if d.opset < 11 {
        return None;
    }
    let axis = d.random.below(x.rank());
    let least = x.dims[axis].least();
    let dims: Vec<i64> =
        (0..x.rank()).map(|at| if at == axis { d.random.int(1, 3) } else { d.random.int(1, x.dims[at].least().min(3)) }).collect();
    let values: Vec<f64> = (0..dims.iter().product()).map(|_| d.random.int(-least, least - 1) as f64).collect();
    let ty = d.random.pick(&[DType::I64, DType::I32]);
    let indices = d.constant(ty, &dims, &values);
    let written = axis as i64 - if d.random.once_in(3) { x.rank() as i64 } else { 0 };
    Some(d.emit("GatherElements", &[&x, &indices], vec![int("axis", written)], x.ty, indices.dims.clone(), x.mag))
}

/// Slices selected, or replaced, by tuples of indices.
pub fn slices(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    if d.opset < 11 {
        return None;
    }
    let (width, count) = (d.random.int(1, x.rank().min(2) as i64) as usize, d.random.int(1, 3));
    let writes = d.opset >= 16 && d.random.once_in(2);
    let rest = &x.dims[width..];
    let tuple = |d: &mut Draft| -> Vec<i64> {
        let along = |at: usize| x.dims[at].least();
        (0..width).map(|at| d.random.int(if writes { 0 } else { -along(at) }, along(at) - 1)).collect()
    };
    let mut places: Vec<Vec<i64>> = (0..count).map(|_| tuple(d)).collect();
    if writes {
        // Of two slices at the same place, either may be written last.
        places.sort_unstable();
        places.dedup();
    }
    let count = places.len() as i64;
    let flat: Vec<f64> = places.concat().into_iter().map(|at| at as f64).collect();
    let indices = d.constant(DType::I64, &[count, width as i64], &flat);
    let dims: Vec<Size> = [Size::fixed(count)].into_iter().chain(rest.iter().copied()).collect();
    match known(&dims).filter(|_| writes) {
        Some(sizes) => {
            let updates = d.reals(&sizes, -1.0, 1.0);
            Some(d.emit("ScatterND", &[&x, &indices, &updates], vec![], x.ty, x.dims.clone(), x.mag.max(1.0)))
        }
        None => Some(d.emit("GatherND", &[&x, &indices], vec![], x.ty, dims, x.mag)),
    }
}

/// What is above a diagonal, or below it.
pub fn triangle(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    if d.opset < 14 {
        return None;
    }
    let diagonal = d.random.int(-2, 2);
    let k = if diagonal == 0 && d.random.once_in(2) { Val::none() } else { d.constant(DType::I64, &[], &[diagonal as f64]) };
    let attributes = if d.random.once_in(3) { vec![] } else { vec![int("upper", d.random.int(0, 1))] };
    Some(d.emit("Trilu", &[&x, &k], attributes, x.ty, x.dims.clone(), x.mag))
}

/// A running sum.
pub fn running_sum(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    if d.opset < if x.ty == DType::F16 { 14 } else { 11 } {
        return None;
    }
    let axis = d.random.below(x.rank());
    let written = axis as i64 - if d.random.once_in(3) { x.rank() as i64 } else { 0 };
    let ty = d.random.pick(&[DType::I64, DType::I32]);
    let at = d.constant(ty, &[], &[written as f64]);
    let mut attributes = vec![];
    for name in ["exclusive", "reverse"] {
        if d.random.once_in(2) {
            attributes.push(int(name, d.random.int(0, 1)));
        }
    }
    let most = x.dims[axis].0.iter().copied().max().unwrap_or(1);
    Some(d.emit("CumSum", &[&x, &at], attributes, x.ty, x.dims.clone(), x.mag * most as f64))
}

/// Depth to space or back.
pub fn depth_space(d: &mut Draft) -> Option<Val> {
    let x = d.real(4..=4)?;
    let both = |v: &Val| v.dims[2..].iter().all(|s| s.0.iter().all(|s| s % 2 == 0));
    if both(&x) && d.random.once_in(2) {
        let dims = vec![x.dims[0], x.dims[1].map(|c| c * 4), x.dims[2].map(|s| s / 2), x.dims[3].map(|s| s / 2)];
        return Some(d.emit("SpaceToDepth", &[&x], vec![int("blocksize", 2)], x.ty, dims, x.mag));
    }
    if x.dims[1].0.iter().any(|c| c % 4 != 0) {
        return None;
    }
    let dims = vec![x.dims[0], x.dims[1].map(|c| c / 4), x.dims[2].map(|s| s * 2), x.dims[3].map(|s| s * 2)];
    let mut attributes = vec![int("blocksize", 2)];
    if d.opset >= 11 && d.random.once_in(2) {
        attributes.push(word("mode", d.random.pick(&["DCR", "CRD"])));
    }
    Some(d.emit("DepthToSpace", &[&x], attributes, x.ty, dims, x.mag))
}

/// Nearest-neighbour upsampling.
pub fn enlarge(d: &mut Draft) -> Option<Val> {
    let x = d.real(4..=4)?;
    if x.dims[2..].iter().any(|s| s.0.iter().any(|s| *s > 12)) {
        return None;
    }
    let scales = [1.0, 1.0, d.random.pick(&[1.0, 2.0, 2.0, 3.0]), d.random.pick(&[2.0, 1.0])];
    Some(enlarged(d, &x, &scales))
}

/// `x` upsampled by integer factors, in the opset's form.
pub fn enlarged(d: &mut Draft, x: &Val, scales: &[f64]) -> Val {
    let dims = x.dims.iter().zip(scales).map(|(s, f)| s.map(|v| v * *f as i64)).collect();
    let mode = word("mode", "nearest");
    if d.opset < 9 {
        return d.emit("Upsample", &[x], vec![mode, floats("scales", scales)], x.ty, dims, x.mag);
    }
    let factors = d.constant(DType::F32, &[scales.len() as i64], scales);
    if d.opset < 11 {
        let op = if d.opset == 9 { "Upsample" } else { "Resize" };
        return d.emit(op, &[x, &factors], vec![mode], x.ty, dims, x.mag);
    }
    let roi = if d.opset < 13 { d.constant(DType::F32, &[0], &[]) } else { Val::none() };
    let transform = d.random.pick(&["asymmetric", "half_pixel"]);
    let attributes = vec![
        mode,
        word("coordinate_transformation_mode", transform),
        word("nearest_mode", if transform == "asymmetric" { "floor" } else { "round_prefer_floor" }),
    ];
    d.emit("Resize", &[x, &roi, &factors], attributes, x.ty, dims, x.mag)
}

/// Interpolation, or the nearest position, at any size.
pub fn resample(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    if d.opset < 13 || x.ty == DType::F64 {
        return None;
    }
    let mode = d.random.pick(&["nearest", "linear", "linear", "cubic"]);
    if x.rank() == 3 && mode == "cubic" {
        return None;
    }
    let first = if x.rank() == 4 { 2 } else { 0 };
    let own = known(&x.dims[first..]).filter(|own| own.iter().all(|n| *n <= 12))?;
    let sizes: Vec<i64> = own.iter().map(|n| d.random.int(1, 2 * n)).collect();
    let transform = d.random.pick(&["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]);
    let mut attributes = vec![word("mode", mode), word("coordinate_transformation_mode", transform)];
    if mode == "nearest" {
        attributes.push(word("nearest_mode", d.random.pick(&["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])));
    }
    if mode == "cubic" {
        attributes.push(float("cubic_coeff_a", d.random.pick(&[-0.75, -0.5])));
        attributes.push(int("exclude_outside", d.random.int(0, 1)));
    }
    let dims: Vec<Size> = x.dims[..first].iter().copied().chain(sizes.iter().map(|n| Size::fixed(*n))).collect();
    let asked = if d.opset >= 18 {
        if mode != "nearest" {
            attributes.push(int("antialias", d.random.int(0, 1)));
        }
        attributes.push(ints("axes", &(first as i64..x.rank() as i64).collect::<Vec<i64>>()));
        d.ints(&sizes)
    } else {
        let all = known(&dims)?;
        d.ints(&all)
    };
    let none = Val::none();
    Some(d.emit("Resize", &[&x, &none, &none, &asked], attributes, x.ty, dims, 3.0 * x.mag))
}
