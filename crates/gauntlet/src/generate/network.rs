//! Pieces of networks: convolutions and products among the operators that rules merge them with.

use regraft_ir::DType;

use super::arrange;
use super::attribute::int;
use super::draft::{Draft, Val};
use super::elementwise::reduced;
use super::layer::{self, Window, convolved, product_of};
use super::size::{Size, known};

/// A convolution with what exporters put before and after it.
pub fn conv_block(d: &mut Draft) -> Option<Val> {
    let x = layer::image(d)?;
    let channels = x.dims[1].known()?;
    let axes = x.rank() - 2;
    let x = match d.random.below(5) {
        0 => {
            let mut pads = vec![0; 2 * x.rank()];
            for axis in 2..x.rank() {
                pads[axis] = d.random.int(0, 2);
                pads[axis + x.rank()] = d.random.int(0, 2);
            }
            let (mode, value) = d.random.pick(&[("constant", 0.0), ("constant", 0.0), ("constant", 0.5), ("edge", 0.0)]);
            arrange::padded(d, &x, &pads, mode, value)?
        }
        1 => {
            let c = if d.random.once_in(3) { d.side(&x, 0.5, 1.5) } else { d.per_channel(&x, 0.5, 1.5)? };
            let op = d.random.pick(&["Mul", "Add", "Sub"]);
            d.binary(op, &x, &c)?
        }
        2 => layer::batch_normalized(d, &x)?,
        _ => x,
    };
    let window = if d.random.once_in(3) { Window::point(axes) } else { Window::random(d, axes, 3) };
    let group = if d.random.once_in(4) { channels } else { 1 };
    let out = group * d.random.int(1, 4);
    let biased = d.random.once_in(2);
    let y = convolved(d, &x, out, group, &window, biased)?;
    match d.random.below(7) {
        0 => layer::batch_normalized(d, &y),
        1 | 2 => {
            let c = if d.random.once_in(2) { d.side(&y, 0.5, 1.5) } else { d.per_channel(&y, 0.5, 1.5)? };
            let op = d.random.pick(&["Mul", "Div", "Add", "Sub"]);
            if d.random.once_in(4) && op != "Div" { d.binary(op, &c, &y) } else { d.binary(op, &y, &c) }
        }
        3 => {
            let op = d.random.pick(&["Relu", "LeakyRelu"]);
            let y = d.unary(op, &y, y.mag);
            let c = d.per_channel(&y, -0.5, 1.5)?;
            d.mul(&y, &c)
        }
        4 => {
            let biased = d.random.once_in(2);
            let out = d.random.int(1, 4);
            convolved(d, &y, out, 1, &Window::point(axes), biased)
        }
        5 => {
            let window = Window::random(d, axes, 3);
            let window = Window { dilations: vec![1; axes], ..window };
            let op = d.random.pick(&["AveragePool", "MaxPool"]);
            layer::pooled(d, op, &y, &window)
        }
        _ => layer::global_pool(d),
    }
}

/// Several convolutions of one value or of its parts, added or concatenated.
pub fn conv_branches(d: &mut Draft) -> Option<Val> {
    let x = layer::image(d)?;
    let axes = x.rank() - 2;
    let channels = x.dims[1].known()?;
    let added = d.random.once_in(2);
    let depthwise = added && d.random.once_in(3);
    let out = if depthwise { channels } else { d.random.int(1, 4) };
    let group = if depthwise { channels } else { 1 };
    let strides = if d.random.once_in(4) { vec![2; axes] } else { vec![1; axes] };
    let centered = |d: &mut Draft| {
        let taps = d.random.pick(&[1i64, 3, 3, 5]);
        Window { kernel: vec![taps; axes], strides: strides.clone(), pads: vec![taps / 2; 2 * axes], dilations: vec![1; axes] }
    };
    let same = d.random.once_in(2).then(|| centered(d));
    let operands: Vec<Val> = match d.random.below(3) {
        0 if channels > 1 => {
            let parts = arrange::parts_of(d, channels);
            arrange::split_into(d, &x, 1, &parts)
        }
        1 => {
            let like = x.clone();
            let other = d.choose(move |v| v.ty == like.ty && v.dims == like.dims)?;
            vec![x.clone(), d.tame(other)]
        }
        _ => vec![x.clone(), x.clone()],
    };
    let mut branches = Vec::new();
    for operand in &operands {
        let window = same.clone().unwrap_or_else(|| centered(d));
        let biased = d.random.once_in(2);
        let group = if operand.dims[1].known() == Some(channels) { group } else { 1 };
        let out = if added { out } else { d.random.int(1, 3) };
        let mut y = convolved(d, operand, out, group, &window, biased)?;
        if d.random.once_in(3) {
            y = layer::batch_normalized(d, &y)?;
        } else if !added && d.random.once_in(2) {
            y = d.unary("Relu", &y, y.mag);
        }
        branches.push(y);
    }
    if !added {
        let y = arrange::concat(d, &branches, 1)?;
        if d.random.once_in(2) {
            let out = d.random.int(1, 4);
            return convolved(d, &y, out, 1, &Window::point(axes), true);
        }
        return Some(y);
    }
    let mut y = d.add(branches.first()?, branches.get(1)?)?;
    if y.dims == x.dims && d.random.once_in(2) {
        y = if d.random.once_in(2) {
            d.add(&y, &x)?
        } else {
            let taps = d.random.pick(&[1, 3]);
            let window =
                Window { kernel: vec![taps; axes], strides: vec![1; axes], pads: vec![taps / 2; 2 * axes], dilations: vec![1; axes] };
            let pooled = layer::pooled(d, "AveragePool", &x, &window)?;
            d.add(&y, &pooled)?
        };
    }
    Some(y)
}

/// Grouped convolutions, channel shuffles, squeeze-and-excitation, upsampling, slices: the
/// neighbours of convolutions.
pub fn conv_neighbours(d: &mut Draft) -> Option<Val> {
    let ty = d.real;
    let x = d.choose(|v| v.ty == ty && v.rank() == 4 && v.dims[1].known().is_some_and(|c| (2..=12).contains(&c)))?;
    let x = d.tame(x);
    let channels = x.dims[1].known()?;
    match d.random.below(7) {
        0 => {
            let g = [2, 3, 4].into_iter().find(|g| channels % g == 0)?;
            let spatial = known(&x.dims[2..])?;
            let split = [x.dims[0], Size::fixed(g), Size::fixed(channels / g), Size::fixed(spatial[0]), Size::fixed(spatial[1])];
            let y = arrange::to_dims(d, &x, &split)?;
            let y = arrange::permuted(d, &y, &[0, 2, 1, 3, 4]);
            arrange::to_dims(d, &y, &x.dims)
        }
        1 => {
            let dims = vec![x.dims[0], x.dims[1], Size::fixed(1), Size::fixed(1)];
            let y = if d.random.once_in(2) {
                d.emit("GlobalAveragePool", &[&x], vec![], x.ty, dims, x.mag)
            } else {
                reduced(d, "ReduceMean", &x, Some(&[2, 3]), true)?
            };
            let y = convolved(d, &y, 2, 1, &Window::point(2), true)?;
            let y = d.unary("Relu", &y, y.mag);
            let y = convolved(d, &y, channels, 1, &Window::point(2), true)?;
            let gate = d.random.pick(&["Sigmoid", "HardSigmoid"]);
            let y = d.unary(gate, &y, 1.0);
            d.mul(&x, &y)
        }
        2 => {
            let y = arrange::enlarged(d, &x, &[1.0, 1.0, 2.0, 2.0]);
            let out = d.random.int(1, 3);
            if d.random.once_in(2) {
                let other = d.unary("Relu", &y, y.mag);
                let y = arrange::concat(d, &[y, other], 1)?;
                return convolved(d, &y, out, 1, &Window::point(2), true);
            }
            let c = d.per_channel(&y, 0.5, 1.5)?;
            let y = d.mul(&y, &c)?;
            convolved(d, &y, out, 1, &Window::point(2), true)
        }
        3 => {
            // Channels last, through a product.
            let y = arrange::permuted(d, &x, &[0, 2, 3, 1]);
            let out = d.random.int(1, 4);
            let w = d.weight(&[channels, out], channels);
            let y = product_of(d, &y, &w)?;
            let b = d.reals(&[out], -0.5, 0.5);
            let y = d.add(&y, &b)?;
            Some(arrange::permuted(d, &y, &[0, 3, 1, 2]))
        }
        4 => {
            let (h, w) = (x.dims[2].known()?, x.dims[3].known()?);
            if h % 2 != 0 || w % 2 != 0 || d.opset < 10 {
                return None;
            }
            let mut parts = Vec::new();
            for (row, column) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let dims = vec![x.dims[0], x.dims[1], Size::fixed(h / 2), x.dims[3]];
                let y = arrange::slice_op(d, &x, &[row], &[i64::MAX], &[2], &[2], dims.clone())?;
                let dims = vec![x.dims[0], x.dims[1], Size::fixed(h / 2), Size::fixed(w / 2)];
                parts.push(arrange::slice_op(d, &y, &[column], &[i64::MAX], &[3], &[2], dims)?);
            }
            let y = arrange::concat(d, &parts, 1)?;
            convolved(d, &y, 2, 1, &Window { kernel: vec![3; 2], pads: vec![1; 4], ..Window::point(2) }, true)
        }
        5 => {
            let window = Window { strides: vec![2, d.random.int(1, 2)], ..Window::point(2) };
            let y = convolved(d, &x, 3, 1, &window, true)?;
            let shape = vec![y.dims[0], y.dims[1].with(y.dims[2], |a, b| a * b), y.dims[3]];
            arrange::to_dims(d, &y, &shape)
        }
        _ => {
            // A wide convolution: large enough for transforms.
            let (h, w) = (x.dims[2].least(), x.dims[3].least());
            if h < 6 || w < 6 {
                return None;
            }
            let y = convolved(d, &x, 32, 1, &Window::point(2), false)?;
            let kernel = d.random.pick(&[vec![3, 3], vec![1, 3], vec![3, 1]]);
            let pads = vec![kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2];
            let y = convolved(d, &y, 32, 1, &Window { kernel, pads, ..Window::point(2) }, true)?;
            convolved(d, &y, 2, 1, &Window::point(2), false)
        }
    }
}

/// Products among sums, transpositions, concatenations and slices.
pub fn products(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=3)?;
    let inner = x.dims[x.rank() - 1].known()?;
    let n = d.random.int(1, 4);
    let shape = [inner, n];
    match d.random.below(10) {
        0 => {
            let (v, w) = (d.weight(&shape, inner), d.weight(&shape, inner));
            let (a, b) = (product_of(d, &x, &v)?, product_of(d, &x, &w)?);
            let op = d.random.pick(&["Add", "Sub"]);
            d.binary(op, &a, &b)
        }
        1 => {
            let v = d.weight(&shape, inner);
            let y = product_of(d, &x, &v)?;
            let y = if d.random.once_in(2) {
                let b = d.side(&y, -0.5, 0.5);
                d.add(&y, &b)?
            } else {
                y
            };
            let w = d.weight(&[n, 3], n);
            product_of(d, &y, &w)
        }
        2 => {
            let (v, w) = (d.weight(&shape, inner), d.weight(&[inner, 2], inner));
            let (a, b) = (product_of(d, &x, &v)?, product_of(d, &x, &w)?);
            if d.random.once_in(2) {
                d.pool.push(a);
                return Some(b);
            }
            let last = x.rank() - 1;
            arrange::concat(d, &[a, b], last)
        }
        3 => {
            let size = inner;
            if size < 2 {
                return None;
            }
            let parts = arrange::parts_of(d, size);
            let last = x.rank() - 1;
            let parts = arrange::split_into(d, &x, last, &parts);
            let mut sum: Option<Val> = None;
            for part in &parts {
                let k = part.dims[last].known()?;
                let w = d.weight(&[k, n], k);
                let y = product_of(d, part, &w)?;
                sum = Some(match sum {
                    Some(sum) => d.add(&sum, &y)?,
                    None => y,
                });
            }
            sum
        }
        4 => {
            let w = d.weight(&[n, inner], inner);
            let w = arrange::permuted(d, &w, &[1, 0]);
            let y = product_of(d, &x, &w)?;
            let mut perm: Vec<usize> = (0..y.rank()).collect();
            perm.swap(y.rank() - 1, y.rank() - 2);
            Some(arrange::permuted(d, &y, &perm))
        }
        5 => {
            let c = if d.random.once_in(2) { d.scalar(0.5) } else { d.side(&x, 0.5, 1.5) };
            let op = d.random.pick(&["Mul", "Div", "Add"]);
            let y = d.binary(op, &x, &c)?;
            let w = d.weight(&shape, inner);
            let y = product_of(d, &y, &w)?;
            let c = if d.random.once_in(2) { d.scalar(0.5) } else { d.side(&y, 0.5, 1.5) };
            let op = d.random.pick(&["Mul", "Div", "Add"]);
            d.binary(op, &y, &c)
        }
        6 if x.rank() == 3 => {
            let flat = [x.dims[0].with(x.dims[1], |a, b| a * b), x.dims[2]];
            let y = arrange::to_dims(d, &x, &flat)?;
            let w = d.weight(&shape, inner);
            let y = product_of(d, &y, &w)?;
            arrange::to_dims(d, &y, &[x.dims[0], x.dims[1], Size::fixed(n)])
        }
        7 => {
            let w = d.weight(&shape, inner);
            let y = product_of(d, &x, &w)?;
            let axis = d.random.below(y.rank());
            let size = y.dims[axis].known()?;
            let index = d.random.int(0, size - 1);
            let at = d.constant(DType::I64, &[], &[index as f64]);
            let mut dims = y.dims.clone();
            dims.remove(axis);
            Some(d.emit("Gather", &[&y, &at], vec![int("axis", axis as i64)], y.ty, dims, y.mag))
        }
        8 => layer::gemm(d).and_then(|y| {
            let c = d.side(&y, 0.5, 1.5);
            let op = d.random.pick(&["Add", "Mul", "Div"]);
            d.binary(op, &y, &c)
        }),
        _ => attention(d, &x),
    }
}

/// One or two heads of attention over `x`.
fn attention(d: &mut Draft, x: &Val) -> Option<Val> {
    if x.rank() != 3 {
        return None;
    }
    let inner = x.dims[2].known()?;
    let heads = d.random.int(1, 2);
    let width = heads * 2;
    let mut three = Vec::new();
    for _ in 0..3 {
        let w = d.weight(&[inner, width], inner);
        let mut y = product_of(d, x, &w)?;
        if d.random.once_in(2) {
            let b = d.reals(&[width], -0.5, 0.5);
            y = d.add(&y, &b)?;
        }
        let y = arrange::to_dims(d, &y, &[x.dims[0], x.dims[1], Size::fixed(heads), Size::fixed(2)])?;
        three.push(y);
    }
    let q = arrange::permuted(d, &three[0], &[0, 2, 1, 3]);
    let k = arrange::permuted(d, &three[1], &[0, 2, 3, 1]);
    let v = arrange::permuted(d, &three[2], &[0, 2, 1, 3]);
    let mut scores = product_of(d, &q, &k)?;
    if d.random.once_in(2) {
        let scale = d.scalar(0.7);
        scores = d.mul(&scores, &scale)?;
    }
    let weights = d.emit("Softmax", &[&scores], vec![int("axis", 3)], scores.ty, scores.dims.clone(), 1.0);
    let y = product_of(d, &weights, &v)?;
    let y = arrange::permuted(d, &y, &[0, 2, 1, 3]);
    arrange::to_dims(d, &y, &[x.dims[0], x.dims[1], Size::fixed(width)])
}

/// Nested concatenations, concatenations of slices and vice versa, and arithmetic across them.
pub fn joints(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let axis = d.random.below(x.rank());
    let like = x.clone();
    let z = d.choose(move |v| v.ty == like.ty && v.dims == like.dims)?;
    let z = d.tame(z);
    match d.random.below(6) {
        0 => {
            let inner = arrange::concat(d, &[x.clone(), z.clone()], axis)?;
            arrange::concat(d, &[inner, x], axis)
        }
        1 => {
            let y = arrange::concat(d, &[x.clone(), z], axis)?;
            let size = x.dims[axis].known()?;
            let parts = arrange::split_into(d, &y, axis, &[size, size]);
            let at = d.random.below(2);
            parts.get(at).cloned()
        }
        2 => {
            let (a, b) = (arrange::concat(d, &[x.clone(), z.clone()], axis)?, arrange::concat(d, &[z, x], axis)?);
            let op = d.random.pick(&["Add", "Sub", "Mul"]);
            d.binary(op, &a, &b)
        }
        3 => {
            let y = arrange::concat(d, &[x, z], axis)?;
            let c = d.side(&y, 0.5, 1.5);
            let op = d.random.pick(&["Add", "Sub", "Mul", "Div"]);
            d.binary(op, &y, &c)
        }
        4 => {
            let (c, e) = (d.side(&x, 0.5, 1.5), d.side(&z, 0.5, 1.5));
            let op = d.random.pick(&["Add", "Mul"]);
            let (a, b) = (d.binary(op, &x, &c)?, d.binary(op, &z, &e)?);
            arrange::concat(d, &[a, b], axis)
        }
        _ => {
            let size = x.dims[axis].known().filter(|s| *s > 1)?;
            let cut = d.random.int(1, size - 1);
            let dims = |from: i64, to: i64| {
                let mut dims = x.dims.clone();
                dims[axis] = Size::fixed(to - from);
                dims
            };
            let a = arrange::slice_op(d, &x, &[0], &[cut], &[axis as i64], &[1], dims(0, cut))?;
            let b = arrange::slice_op(d, &x, &[cut], &[size], &[axis as i64], &[1], dims(cut, size))?;
            arrange::concat(d, &[a, b], axis)
        }
    }
}
