//! Definitions written as directly as possible, and helpers shared by the other tests.

use regraft_ir::{Attr, Bindings, DType, Dim, Op, Tensor, TensorType, Value};

use crate::common::{Random, eval, f32s, op};

/// Attributes of a window, in the operators' own terms.
#[derive(Clone, Debug)]
pub struct Window {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub pads: Vec<i64>,
    pub dilations: Vec<i64>,
}

impl Window {
    /// A random window of `rank` axes: even and odd kernels, stride up to 3, dilation up to 2, pads
    /// up to `most_pad`, each side drawn separately.
    pub fn random(random: &mut Random, rank: usize, pool: bool) -> Window {
        let mut list = |bound: usize| (0..rank).map(|_| 1 + random.below(bound) as i64).collect::<Vec<_>>();
        let (kernel, strides, dilations) = (list(4), list(3), list(2));
        let pads = (0..2 * rank).map(|at| random.below(if pool { kernel[at % rank] as usize } else { 4 }) as i64).collect();
        Window { kernel, strides, pads, dilations }
    }

    pub fn begin(&self, axis: usize) -> i64 {
        self.pads[axis]
    }

    pub fn end(&self, axis: usize) -> i64 {
        self.pads[self.kernel.len() + axis]
    }

    pub fn extent(&self, axis: usize) -> i64 {
        self.dilations[axis] * (self.kernel[axis] - 1) + 1
    }

    /// Attributes shared by convolutions and pools.
    pub fn attrs(&self, with_kernel: bool) -> Vec<(&'static str, Attr)> {
        let mut attrs = vec![
            ("strides", Attr::Ints(self.strides.clone())),
            ("pads", Attr::Ints(self.pads.clone())),
            ("dilations", Attr::Ints(self.dilations.clone())),
        ];
        if with_kernel {
            attrs.push(("kernel", Attr::Ints(self.kernel.clone())));
        }
        attrs
    }

    /// All taps, row-major.
    pub fn taps(&self) -> Vec<Vec<i64>> {
        indices(&self.kernel)
    }

    /// The position that `tap` of window `at` reads, counted from the first element; may lie
    /// outside.
    pub fn position(&self, at: &[i64], tap: &[i64]) -> Vec<i64> {
        (0..tap.len()).map(|a| at[a] * self.strides[a] + tap[a] * self.dilations[a] - self.begin(a)).collect()
    }
}

/// All index vectors below `sizes`, row-major.
pub fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    sizes
        .iter()
        .fold(vec![vec![]], |all, size| all.iter().flat_map(|prefix| (0..*size).map(move |i| [prefix.as_slice(), &[i]].concat())).collect())
}

/// The element at `index`, or `None` outside.
pub fn at(t: &Tensor<f64>, index: &[i64]) -> Option<f64> {
    let mut flat = 0;
    for (i, size) in index.iter().zip(&t.shape) {
        flat = flat * size + usize::try_from(*i).ok().filter(|i| i < size)?;
    }
    Some(t.data[flat])
}

pub fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|d| *d as i64).collect()
}

/// A tensor of random values.
pub fn tensor(random: &mut Random, shape: &[i64]) -> Tensor<f64> {
    let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
    let n = shape.iter().product();
    Tensor::new(shape, (0..n).map(|_| random.real()).collect())
}

/// The result of `op` on these tensors in double precision, after checking its type; single
/// precision must agree.
pub fn run(op: &Op, tensors: &[&Tensor<f64>]) -> Result<Tensor<f64>, String> {
    let types: Vec<TensorType> = tensors.iter().map(|t| f32s(&signed(&t.shape))).collect();
    op.infer(&types).map_err(|e| e.to_string())?;
    let values: Vec<Value<f64>> = tensors.iter().map(|t| Value::real((*t).clone())).collect();
    let results = eval(op, &types, &values, &Bindings::new()).map_err(|e| e.to_string())?;
    let Value::Real(wide) = &results[0] else { return Err("not real".into()) };
    let narrow: Vec<Value<f32>> =
        tensors.iter().map(|t| Value::real(Tensor::new(t.shape.clone(), t.data.iter().map(|v| *v as f32).collect()))).collect();
    let bindings = Bindings::new();
    let output_types = op.infer(&types).map_err(|e| e.to_string())?;
    let context = regraft_ir::EvalContext { bindings: &bindings, input_types: &types, output_types: &output_types };
    let results = op.eval(&narrow, &context).map_err(|e| e.to_string())?;
    let Value::Real(narrow) = &results[0] else { return Err("not real".into()) };
    let narrow = Tensor::new(narrow.shape.clone(), narrow.data.iter().map(|v| f64::from(*v)).collect());
    close(&narrow, wide, 2e-3, &format!("{op:?} in single precision"));
    Ok(wide.as_ref().clone())
}

/// Fails unless shapes agree, and elements agree within `tolerance` relative to their magnitude or
/// 1, whichever is larger.
pub fn close(found: &Tensor<f64>, want: &Tensor<f64>, tolerance: f64, what: &str) {
    assert_eq!(found.shape, want.shape, "{what}: shape");
    for (i, (a, b)) in found.data.iter().zip(&want.data).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what}: element {i} is {a}, not {b}");
    }
}

/// If symbolic sizes are replaced by concrete ones, the result types must be those for the concrete
/// sizes.
///
/// The sizes of operand 0 listed in `free` become symbols; a type rule may refuse to decide, but
/// must never decide differently.
pub fn check_symbolic(op: &Op, shapes: &[Vec<i64>], free: &[usize]) {
    let concrete: Vec<TensorType> = shapes.iter().map(|s| f32s(s)).collect();
    let mut symbolic = concrete.clone();
    let mut bindings = Bindings::new();
    for axis in free {
        let name = format!("d{axis}");
        bindings.insert(name.clone(), shapes[0][*axis]);
        symbolic[0].shape[*axis] = Dim::symbol(&name);
    }
    let (Ok(known), Ok(open)) = (op.infer(&concrete), op.infer(&symbolic)) else { return };
    for (known, open) in known.iter().zip(&open) {
        assert_eq!(open.bind(&bindings).map(|s| signed(&s)), known.known_shape(), "{op:?} on {symbolic:?}");
    }
}

/// A row of numbers `1, 2, ..` of shape `[1, 1, n]`.
pub fn ramp(n: usize) -> Tensor<f64> {
    counted(&[1, 1, n])
}

/// Numbers `1, 2, ..` of this shape.
pub fn counted(shape: &[usize]) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    Tensor::new(shape.to_vec(), (1..=n).map(|v| v as f64).collect())
}

/// A type with symbolic and known sizes.
pub fn typed(dims: &[&str]) -> TensorType {
    let dim = |d: &&str| d.parse::<i64>().map_or_else(|_| Dim::symbol(d), Dim::from);
    TensorType::new(DType::F32, dims.iter().map(dim))
}

/// A pool with these attributes.
pub fn pool(name: &str, window: &Window, ceil: bool, include_pad: Option<bool>) -> Op {
    let mut attrs = window.attrs(true);
    attrs.push(("ceil_mode", Attr::Bool(ceil)));
    if let Some(include) = include_pad {
        attrs.push(("count_include_pad", Attr::Bool(include)));
    }
    op(name, &attrs)
}
