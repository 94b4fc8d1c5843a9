//! Convolutions, products, pools and normalizations.

use regraft_ir::DType;
use regraft_onnx::proto::AttributeProto;

use super::attribute::{float, int, ints, word};
use super::draft::{Draft, Val};
use super::size::{Size, broadcast, product};

/// Geometry of windows.
#[derive(Clone, Debug)]
pub struct Window {
    /// Taps per axis.
    pub kernel: Vec<i64>,
    /// Steps per axis.
    pub strides: Vec<i64>,
    /// Pads: all at the start, then all at the end.
    pub pads: Vec<i64>,
    /// Distance of taps per axis.
    pub dilations: Vec<i64>,
}

impl Window {
    /// A random window over `axes` axes.
    pub fn random(d: &mut Draft, axes: usize, largest: i64) -> Window {
        let same = d.random.once_in(2);
        let kernel: Vec<i64> = {
            let first = d.random.int(1, largest);
            (0..axes).map(|_| if same { first } else { d.random.int(1, largest) }).collect()
        };
        let plain = d.random.once_in(2);
        let strides = (0..axes).map(|_| if plain { 1 } else { d.random.int(1, 2) }).collect();
        let dilations: Vec<i64> = (0..axes).map(|_| if d.random.once_in(6) { 2 } else { 1 }).collect();
        let centered = d.random.once_in(2);
        let pads = (0..2 * axes)
            .map(|at| {
                if centered { (kernel[at % axes] - 1) * dilations[at % axes] / 2 } else { d.random.int(0, (kernel[at % axes] - 1).min(2)) }
            })
            .collect();
        Window { kernel, strides, pads, dilations }
    }

    /// A window of one tap.
    pub fn point(axes: usize) -> Window {
        Window { kernel: vec![1; axes], strides: vec![1; axes], pads: vec![0; 2 * axes], dilations: vec![1; axes] }
    }

    /// Sizes of the result over `spatial`, if there is a result.
    pub fn sizes(&self, spatial: &[Size]) -> Option<Vec<Size>> {
        let axes = self.kernel.len();
        (0..axes)
            .map(|a| {
                let reach = (self.kernel[a] - 1) * self.dilations[a] + 1;
                let size = spatial[a].map(|s| (s + self.pads[a] + self.pads[a + axes] - reach).div_euclid(self.strides[a]) + 1);
                (size.least() >= 1).then_some(size)
            })
            .collect()
    }

    /// The window as attributes; some default values are omitted.
    pub fn attributes(&self, d: &mut Draft) -> Vec<AttributeProto> {
        let mut all = vec![ints("kernel_shape", &self.kernel)];
        if self.strides.iter().any(|s| *s != 1) || d.random.once_in(2) {
            all.push(ints("strides", &self.strides));
        }
        if self.pads.iter().any(|s| *s != 0) || d.random.once_in(2) {
            all.push(ints("pads", &self.pads));
        }
        if self.dilations.iter().any(|s| *s != 1) || d.random.once_in(2) {
            all.push(ints("dilations", &self.dilations));
        }
        all
    }
}

/// An image: rank 3 to 5 with known channels.
pub fn image(d: &mut Draft) -> Option<Val> {
    let ty = d.real;
    let val = d.choose(|v| v.ty == ty && (3..=5).contains(&v.rank()) && v.dims[1].known().is_some_and(|c| (1..=48).contains(&c)))?;
    Some(d.tame(val))
}

/// A convolution of `x`.
pub fn convolved(d: &mut Draft, x: &Val, out: i64, group: i64, window: &Window, biased: bool) -> Option<Val> {
    let channels = x.dims[1].known()?;
    if channels % group != 0 || out % group != 0 {
        return None;
    }
    let mut dims = vec![x.dims[0], Size::fixed(out)];
    dims.extend(window.sizes(&x.dims[2..])?);
    let taps: i64 = window.kernel.iter().product();
    let mut shape = vec![out, channels / group];
    shape.extend(&window.kernel);
    let w = d.weight(&shape, taps * channels / group);
    let b = if biased { d.reals(&[out], -0.5, 0.5) } else { Val::none() };
    let mut attributes = window.attributes(d);
    if group != 1 || d.random.once_in(2) {
        attributes.push(int("group", group));
    }
    Some(d.emit("Conv", &[x, &w, &b], attributes, x.ty, dims, x.mag + 1.0))
}

/// A convolution of any kind: grouped, depthwise, dilated, in one to three dimensions.
pub fn conv(d: &mut Draft) -> Option<Val> {
    let x = image(d)?;
    let channels = x.dims[1].known()?;
    let window = Window::random(d, x.rank() - 2, 3);
    let groups: Vec<i64> = [1, 1, 1, 2, 3, channels].into_iter().filter(|g| channels % g == 0).collect();
    let group = d.random.pick(&groups);
    let out = group * d.random.int(1, 3);
    let biased = d.random.once_in(2);
    if d.random.once_in(8) && window.dilations.iter().all(|v| *v == 1) {
        let mode = d.random.pick(&["SAME_UPPER", "SAME_LOWER", "VALID"]);
        return auto_padded(d, &x, out, group, &window, mode);
    }
    convolved(d, &x, out, group, &window, biased)
}

fn auto_padded(d: &mut Draft, x: &Val, out: i64, group: i64, window: &Window, mode: &str) -> Option<Val> {
    let channels = x.dims[1].known()?;
    let mut shape = vec![out, channels / group];
    shape.extend(&window.kernel);
    let w = d.weight(&shape, channels / group);
    let mut dims = vec![x.dims[0], Size::fixed(out)];
    for (axis, size) in x.dims[2..].iter().enumerate() {
        let (stride, taps) = (window.strides[axis], window.kernel[axis]);
        let size = if mode == "VALID" { size.map(|s| (s - taps).div_euclid(stride) + 1) } else { size.map(|s| (s + stride - 1) / stride) };
        if size.least() < 1 {
            return None;
        }
        dims.push(size);
    }
    let attributes = vec![word("auto_pad", mode), ints("strides", &window.strides), int("group", group)];
    Some(d.emit("Conv", &[x, &w], attributes, x.ty, dims, x.mag * 2.0 + 1.0))
}

/// A transposed convolution.
pub fn conv_transpose(d: &mut Draft) -> Option<Val> {
    let x = image(d)?;
    let channels = x.dims[1].known()?;
    let axes = x.rank() - 2;
    if axes > 2 {
        return None;
    }
    let group = if channels % 2 == 0 && d.random.once_in(3) { 2 } else { 1 };
    let each = d.random.int(1, 3);
    let kernel: Vec<i64> = (0..axes).map(|_| d.random.int(1, 3)).collect();
    let strides: Vec<i64> = (0..axes).map(|_| d.random.int(1, 2)).collect();
    let pads: Vec<i64> = (0..2 * axes).map(|at| d.random.int(0, 1.min(kernel[at % axes] - 1))).collect();
    let mut shape = vec![channels, each];
    shape.extend(&kernel);
    let w = d.weight(&shape, channels / group * 2);
    let mut dims = vec![x.dims[0], Size::fixed(each * group)];
    for axis in 0..axes {
        let (taps, stride, pad) = (kernel[axis], strides[axis], pads[axis] + pads[axis + axes]);
        let size = x.dims[axis + 2].map(|s| (s - 1) * stride + taps - pad);
        if size.least() < 1 {
            return None;
        }
        dims.push(size);
    }
    let b = if d.random.once_in(2) { d.reals(&[each * group], -0.5, 0.5) } else { Val::none() };
    let attributes = vec![ints("strides", &strides), ints("pads", &pads), int("group", group)];
    let y = d.emit("ConvTranspose", &[&x, &w, &b], attributes, x.ty, dims, x.mag * 1.5 + 1.0);
    Some(match d.random.below(4) {
        0 => batch_normalized(d, &y)?,
        1 => {
            let c = d.per_channel(&y, 0.5, 1.5)?;
            d.mul(&y, &c)?
        }
        2 => {
            let c = d.per_channel(&y, -0.5, 0.5)?;
            d.add(&y, &c)?
        }
        _ => y,
    })
}

/// A pool whose windows must each contain an element.
pub fn pool(d: &mut Draft) -> Option<Val> {
    let x = image(d)?;
    let op = d.random.pick(&["MaxPool", "AveragePool"]);
    let mut window = Window::random(d, x.rank() - 2, 3);
    if d.opset < if op == "MaxPool" { 10 } else { 19 } {
        window.dilations = vec![1; x.rank() - 2];
    }
    pooled(d, op, &x, &window)
}

/// `x` pooled.
pub fn pooled(d: &mut Draft, op: &str, x: &Val, window: &Window) -> Option<Val> {
    let axes = window.kernel.len();
    if (0..2 * axes).any(|a| window.pads[a] >= window.kernel[a % axes]) {
        return None;
    }
    let mut dims = x.dims[..2].to_vec();
    let sizes = window.sizes(&x.dims[2..])?;
    dims.extend(&sizes);
    let mut attributes = window.attributes(d);
    if window.dilations.iter().all(|v| *v == 1) {
        let before_dilations = if op == "MaxPool" { 10 } else { 19 };
        if d.opset < before_dilations {
            attributes.retain(|a| a.name() != "dilations");
        }
        let whole = |a: usize| x.dims[a + 2].map(|s| (s + window.pads[a] + window.pads[a + axes] - window.kernel[a]) % window.strides[a]);
        // Rounding up: the size is only certain where it changes nothing.
        if d.opset >= 10 && (0..axes).all(|a| whole(a) == Size::fixed(0)) && d.random.once_in(4) {
            attributes.push(int("ceil_mode", 1));
        }
    }
    if op == "AveragePool" && d.random.once_in(2) {
        attributes.push(int("count_include_pad", 1));
    }
    Some(d.emit(op, &[x], attributes, x.ty, dims, x.mag))
}

/// A pool over the whole image.
pub fn global_pool(d: &mut Draft) -> Option<Val> {
    let x = image(d)?;
    let op = d.random.pick(&["GlobalAveragePool", "GlobalMaxPool", "GlobalAveragePool"]);
    let mut dims = x.dims[..2].to_vec();
    dims.resize(x.rank(), Size::fixed(1));
    Some(d.emit(op, &[&x], vec![], x.ty, dims, x.mag))
}

/// A batch normalization.
pub fn batch_norm(d: &mut Draft) -> Option<Val> {
    let x = image(d)?;
    batch_normalized(d, &x)
}

/// `x`, normalized per channel.
pub fn batch_normalized(d: &mut Draft, x: &Val) -> Option<Val> {
    let channels = [x.dims[1].known()?];
    let (s, b) = (d.reals(&channels, 0.5, 1.5), d.reals(&channels, -0.5, 0.5));
    let (m, v) = (d.reals(&channels, -0.5, 0.5), d.reals(&channels, 0.5, 1.5));
    let mut attributes = if d.random.once_in(2) { vec![float("epsilon", d.random.pick(&[1e-3, 1e-2]))] } else { vec![] };
    if d.opset < 9 && d.random.once_in(2) {
        attributes.push(int("spatial", 1));
    }
    Some(d.emit("BatchNormalization", &[x, &s, &b, &m, &v], attributes, x.ty, x.dims.clone(), x.mag * 2.0 + 1.0))
}

/// A normalization over rows, instances, groups, or neighbouring channels.
pub fn normalize(d: &mut Draft) -> Option<Val> {
    match d.random.below(5) {
        4 if d.opset >= 23 => {
            let x = d.real(2..=4)?;
            let axis = d.random.below(x.rank());
            let shape = super::size::known(&x.dims[axis..])?;
            let s = d.reals(&shape, 0.5, 1.5);
            let attributes = vec![int("axis", axis as i64), float("epsilon", 0.01)];
            Some(d.emit("RMSNormalization", &[&x, &s], attributes, x.ty, x.dims.clone(), 4.0))
        }
        0 if d.opset >= 17 => {
            let x = d.real(2..=4)?;
            let axis = d.random.int(0, x.rank() as i64 - 1) as usize;
            let shape = super::size::known(&x.dims[axis..])?;
            if shape.iter().product::<i64>() < 3 {
                return None;
            }
            let s = d.reals(&shape, 0.5, 1.5);
            let b = if d.random.once_in(2) { d.reals(&shape, -0.5, 0.5) } else { Val::none() };
            let written = if d.random.once_in(2) { axis as i64 } else { axis as i64 - x.rank() as i64 };
            let attributes = vec![int("axis", written), float("epsilon", 0.01)];
            Some(d.emit("LayerNormalization", &[&x, &s, &b], attributes, x.ty, x.dims.clone(), 4.0))
        }
        1 if d.opset >= 18 => {
            let x = image(d)?;
            let channels = x.dims[1].known()?;
            let group = [2, 3, 1].into_iter().find(|g| channels % g == 0)?;
            let length = [if d.opset >= 21 { channels } else { group }];
            let (s, b) = (d.reals(&length, 0.5, 1.5), d.reals(&length, -0.5, 0.5));
            let attributes = vec![int("num_groups", group), float("epsilon", 0.01)];
            Some(d.emit("GroupNormalization", &[&x, &s, &b], attributes, x.ty, x.dims.clone(), 4.0))
        }
        2 => {
            let x = image(d)?;
            let channels = [x.dims[1].known()?];
            if product(&x.dims[2..]).least() < 2 {
                return None;
            }
            let (s, b) = (d.reals(&channels, 0.5, 1.5), d.reals(&channels, -0.5, 0.5));
            Some(d.emit("InstanceNormalization", &[&x, &s, &b], vec![float("epsilon", 0.01)], x.ty, x.dims.clone(), 4.0))
        }
        _ => {
            let ty = d.real;
            let x = d.choose(|v| v.ty == ty && v.rank() == 4)?;
            let x = d.tame(x);
            let mut attributes = vec![int("size", d.random.pick(&[1, 3, 5]))];
            attributes.push(float("alpha", d.random.pick(&[0.0001, 0.5])));
            attributes.push(float("beta", d.random.pick(&[0.75, 0.5, 0.9, 1.0])));
            attributes.push(float("bias", d.random.pick(&[1.0, 2.0])));
            Some(d.emit("LRN", &[&x], attributes, x.ty, x.dims.clone(), x.mag))
        }
    }
}

/// A rotary embedding of two heads.
pub fn rotate(d: &mut Draft) -> Option<Val> {
    let x = d.real(3..=3)?;
    let (width, positions) = (x.dims[2].known()?, x.dims[1].known()?);
    if d.opset < 23 || width % 4 != 0 || x.ty == DType::F64 {
        return None;
    }
    let (cosines, sines) = (d.reals(&[positions, width / 4], -1.0, 1.0), d.reals(&[positions, width / 4], -1.0, 1.0));
    let rows = x.dims[0].known()? * positions;
    let places: Vec<f64> = (0..rows).map(|_| d.random.int(0, positions - 1) as f64).collect();
    let places = d.constant(DType::I64, &[rows / positions, positions], &places);
    let attributes = vec![int("num_heads", 2), int("interleaved", d.random.int(0, 1))];
    Some(d.emit("RotaryEmbedding", &[&x, &cosines, &sines, &places], attributes, x.ty, x.dims.clone(), 2.0 * x.mag))
}

/// Attention of a sequence to itself, by ONNX Runtime's own operator.
pub fn attention(d: &mut Draft) -> Option<Val> {
    let x = d.real(3..=3)?;
    let width = x.dims[2].known()?;
    if x.ty != DType::F32 || width % 2 != 0 {
        return None;
    }
    let mut attributes = vec![int("num_heads", if width % 4 == 0 { d.random.pick(&[1, 2, 4]) } else { 2 })];
    if d.random.once_in(2) {
        attributes.push(float("scale", d.random.pick(&[0.25, 0.5])));
    }
    let bias = if d.random.once_in(2) { d.reals(&[3 * width], -0.5, 0.5) } else { Val::none() };
    let out = d.fresh();
    d.node("MultiHeadAttention", "com.microsoft", &[&x, &x, &x, &bias], vec![out.clone()], attributes);
    Some(Val { name: out, ty: x.ty, dims: x.dims.clone(), mag: x.mag + 0.5, constant: false })
}

/// The product of two values, if they fit.
pub fn product_of(d: &mut Draft, a: &Val, b: &Val) -> Option<Val> {
    if a.rank() < 2 || b.rank() < 2 || a.dims[a.rank() - 1] != b.dims[b.rank() - 2] || a.ty != b.ty {
        return None;
    }
    let mut dims = broadcast(&a.dims[..a.rank() - 2], &b.dims[..b.rank() - 2])?;
    dims.extend([a.dims[a.rank() - 2], b.dims[b.rank() - 1]]);
    let terms = a.dims[a.rank() - 1].0.into_iter().max().unwrap_or(1) as f64;
    Some(d.emit("MatMul", &[a, b], vec![], a.ty, dims, a.mag * b.mag * terms.sqrt()))
}

/// A product with a weight on either side, or of two values.
pub fn matmul(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    match d.random.below(4) {
        0 => {
            let rows = x.dims[x.rank() - 2].known()?;
            let m = d.random.int(1, 4);
            let mut shape = vec![m, rows];
            if d.random.once_in(4) && x.rank() > 2 {
                shape.insert(0, 1);
            }
            let w = d.weight(&shape, rows);
            product_of(d, &w, &x)
        }
        1 => {
            let (ty, inner) = (x.ty, x.dims[x.rank() - 1]);
            let y = d.choose(|v| v.ty == ty && v.rank() >= 2 && v.dims[v.rank() - 2] == inner)?;
            let y = d.tame(y);
            product_of(d, &x, &y)
        }
        _ => {
            let inner = x.dims[x.rank() - 1].known()?;
            let columns = d.random.int(1, 4);
            let w = d.weight(&[inner, columns], inner);
            product_of(d, &x, &w)
        }
    }
}

/// A general matrix product with any of its parameters.
pub fn gemm(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=2)?;
    let flipped = d.random.once_in(3);
    let (rows, inner) = if flipped { (x.dims[1], x.dims[0]) } else { (x.dims[0], x.dims[1]) };
    let inner = inner.known()?;
    let columns = d.random.int(1, 4);
    let turned = d.random.once_in(2);
    let w = d.weight(&if turned { [columns, inner] } else { [inner, columns] }, inner);
    let shapes: [&[i64]; 4] = [&[columns], &[1, columns], &[1], &[1, 1]];
    let shape = d.random.pick(&shapes);
    let c = if d.opset >= 11 && d.random.once_in(3) { Val::none() } else { d.reals(shape, -0.5, 0.5) };
    let mut attributes = vec![int("transA", i64::from(flipped)), int("transB", i64::from(turned))];
    if d.random.once_in(2) {
        attributes.extend([float("alpha", d.random.pick(&[1.0, 0.5, -2.0])), float("beta", d.random.pick(&[1.0, 0.5, 0.0]))]);
    }
    let dims = vec![rows, Size::fixed(columns)];
    Some(d.emit("Gemm", &[&x, &w, &c], attributes, x.ty, dims, x.mag * 2.0 + 1.0))
}

/// A contraction in index notation.
pub fn einsum(d: &mut Draft) -> Option<Val> {
    if d.opset < 12 {
        return None;
    }
    let x = d.real(2..=4)?;
    let last = x.dims[x.rank() - 1].known()?;
    let terms = (last as f64).sqrt();
    let (equation, shape, dims): (&str, Vec<i64>, Vec<Size>) = match x.rank() {
        2 => ("ij,jk->ik", vec![last, 3], vec![x.dims[0], Size::fixed(3)]),
        3 => ("bij,jk->bik", vec![last, 2], vec![x.dims[0], x.dims[1], Size::fixed(2)]),
        _ => {
            let (b, h) = (x.dims[0].known()?, x.dims[1].known()?);
            if d.random.once_in(2) {
                ("bhid,bhjd->bhij", vec![b, h, 3, last], vec![x.dims[0], x.dims[1], x.dims[2], Size::fixed(3)])
            } else {
                ("bhij,bhjd->bhid", vec![b, h, last, 3], vec![x.dims[0], x.dims[1], x.dims[2], Size::fixed(3)])
            }
        }
    };
    let w = d.reals(&shape, -1.0, 1.0);
    Some(d.emit("Einsum", &[&x, &w], vec![word("equation", equation)], x.ty, dims, x.mag * terms))
}
