//! Shared by convolutions and pools: output sizes, implicit pads made explicit, and the loops'
//! index arithmetic.

use std::ops::Range;

use crate::attr::Attr;
use crate::dim::Dim;
use crate::error::{EvalError, TypeError};
use crate::onnx::{OnnxNode, Opaque};
use crate::ops::operands::LARGEST_SIZE;
use crate::ty::{Shape, TensorType};

/// Most spatial dimensions that a window may have.
pub(crate) const MOST_SPATIAL: usize = 3;

/// A window as an operator states it: one entry per spatial axis, `pads` first all begins, then all
/// ends.
pub(crate) struct Window<'a> {
    pub kernel: &'a [i64],
    pub strides: &'a [i64],
    pub pads: &'a [i64],
    pub dilations: &'a [i64],
}

impl Window<'_> {
    /// Fails unless all lists fit `rank` spatial axes and all entries are in range.
    pub fn check(&self, name: &str, rank: usize) -> Result<(), TypeError> {
        if rank == 0 || rank > MOST_SPATIAL {
            return Err(TypeError::invalid(format!("{name} has 1 to {MOST_SPATIAL} spatial axes, not {rank}")));
        }
        if [self.kernel, self.strides, self.dilations].iter().any(|list| list.len() != rank) || self.pads.len() != 2 * rank {
            return Err(TypeError::invalid(format!("{name} of {rank} spatial axes has attribute lists of other lengths")));
        }
        let positive = [self.kernel, self.strides, self.dilations].into_iter().flatten().all(|v| (1..=LARGEST_SIZE).contains(v));
        if !positive || !self.pads.iter().all(|v| (0..=LARGEST_SIZE).contains(v)) {
            return Err(TypeError::invalid(format!("{name} needs positive windows, strides and dilations, and no negative pads")));
        }
        Ok(())
    }

    /// Fails unless every pad is smaller than the kernel, as pools require.
    pub fn check_pool_pads(&self, name: &str) -> Result<(), TypeError> {
        let rank = self.kernel.len();
        match (0..2 * rank).find(|at| self.pads[*at] >= self.kernel[at % rank]) {
            Some(at) => {
                Err(TypeError::invalid(format!("{name} pads {} positions for a window of {}", self.pads[at], self.kernel[at % rank])))
            }
            None => Ok(()),
        }
    }

    fn begin(&self, axis: usize) -> i64 {
        self.pads[axis]
    }

    fn end(&self, axis: usize) -> i64 {
        self.pads[self.kernel.len() + axis]
    }

    /// First to last position that the window touches, both included.
    pub fn extent(&self, axis: usize) -> i64 {
        self.dilations[axis] * (self.kernel[axis] - 1) + 1
    }

    /// Number of window positions along `axis`, at least 1; the window has passed
    /// [`Window::check`].
    ///
    /// With `ceil`, a last window may hang over the end, but it must start on an element or on the padding before the first one.
    /// That clamp needs `end pad < extent`, and then has a closed form, valid for symbolic sizes too:
    /// `ceil((in + begin - max(extent - end, stride)) / stride) + 1`.
    pub fn output(&self, name: &str, axis: usize, input: &Dim, ceil: bool) -> Result<Dim, TypeError> {
        let stride = Dim::from(self.strides[axis]);
        let (begin, end, extent) = (self.begin(axis), self.end(axis), self.extent(axis));
        let steps = if ceil {
            (input.clone() + Dim::from(begin - (extent - end).max(self.strides[axis]))).ceil_div(&stride)
        } else {
            (input.clone() + Dim::from(begin + end - extent)).floor_div(&stride)
        };
        if steps.known().is_some_and(|s| s < 0) || input.is(0) {
            return Err(TypeError::invalid(format!("{name} has a window of {extent} positions on {input}, padded by {begin} and {end}")));
        }
        Ok(steps + Dim::from(1))
    }

    /// Output sizes of all spatial axes.
    pub fn outputs(&self, name: &str, spatial: &[Dim], ceil: bool) -> Result<Shape, TypeError> {
        spatial.iter().enumerate().map(|(axis, d)| self.output(name, axis, d, ceil)).collect()
    }

    /// The loops' view for these concrete sizes.
    pub fn grid(&self, name: &str, spatial: &[usize], ceil: bool) -> Result<Grid, EvalError> {
        self.check(name, spatial.len()).map_err(|e| EvalError::value(e.to_string()))?;
        let mut output = Vec::with_capacity(spatial.len());
        for (axis, size) in spatial.iter().enumerate() {
            let d = self.output(name, axis, &Dim::from(*size as i64), ceil).map_err(|e| EvalError::value(e.to_string()))?;
            output.push(d.known().and_then(|v| usize::try_from(v).ok()).ok_or_else(|| EvalError::value(format!("{name} has size {d}")))?);
        }
        Ok(self.grid_between(spatial, &output))
    }

    /// The loops' view between given sizes: position `o` of `output` reads `o * stride + tap *
    /// dilation - begin` of `input`.
    pub fn grid_between(&self, input: &[usize], output: &[usize]) -> Grid {
        let unsigned = |v: i64| usize::try_from(v).unwrap_or(0);
        let mut grid = Grid::default();
        let lifted = MOST_SPATIAL - input.len();
        for axis in 0..input.len() {
            grid.axes[lifted + axis] = Axis {
                input: input[axis],
                output: output[axis],
                kernel: unsigned(self.kernel[axis]),
                stride: unsigned(self.strides[axis]),
                dilation: unsigned(self.dilations[axis]),
                begin: unsigned(self.begin(axis)),
                end: unsigned(self.end(axis)),
            };
        }
        grid
    }
}

/// One spatial axis of a concrete window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub input: usize,
    pub output: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub begin: usize,
    pub end: usize,
}

impl Axis {
    /// The input position that tap `tap` of window `at` reads; `None` in the padding.
    pub fn source(&self, at: usize, tap: usize) -> Option<usize> {
        (at * self.stride + tap * self.dilation).checked_sub(self.begin).filter(|p| *p < self.input)
    }

    /// The windows whose tap `tap` reads an element.
    pub fn span(&self, tap: usize) -> Range<usize> {
        let offset = tap * self.dilation;
        let first = self.begin.saturating_sub(offset).div_ceil(self.stride);
        let last = (self.input + self.begin).saturating_sub(offset).div_ceil(self.stride);
        let end = last.min(self.output);
        first.min(end)..end
    }

    /// The first input position that window `at` reads; `None` if the window lies entirely in the
    /// padding.
    pub fn first(&self, at: usize) -> Option<usize> {
        (0..self.kernel).find_map(|tap| self.source(at, tap))
    }

    /// How many taps of window `at` read an element, or with `pads` an element or a pad; overhang
    /// past the pads never counts.
    pub fn counted(&self, at: usize, pads: bool) -> usize {
        let (low, high) = if pads { (0, self.input + self.begin + self.end) } else { (self.begin, self.input + self.begin) };
        (0..self.kernel).filter(|tap| (low..high).contains(&(at * self.stride + tap * self.dilation))).count()
    }
}

/// A concrete window lifted to three spatial axes; missing outer axes have size 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub axes: [Axis; MOST_SPATIAL],
}

impl Default for Grid {
    fn default() -> Grid {
        Grid { axes: [Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 }; MOST_SPATIAL] }
    }
}

impl Grid {
    /// Elements of one input plane.
    pub fn input_size(&self) -> usize {
        self.axes.iter().map(|a| a.input).product()
    }

    /// Elements of one output plane.
    pub fn output_size(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Taps of the window.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.kernel).product()
    }

    /// The taps' coordinates, row-major.
    pub fn tap_list(&self) -> Vec<[usize; MOST_SPATIAL]> {
        let [d, h, w] = self.axes.map(|a| a.kernel);
        (0..d * h * w).map(|t| [t / (h * w), t / w % h, t % w]).collect()
    }

    /// True if output and input positions are the same and each window reads only its own position.
    pub fn is_pointwise(&self) -> bool {
        self.axes.iter().all(|a| a.kernel == 1 && a.stride == 1 && a.begin == 0 && a.end == 0)
    }

    /// The input row that tap `tap` of output row `row` (outer two axes, row-major) reads, as an
    /// offset into the plane.
    pub fn source_row(&self, row: usize, tap: [usize; MOST_SPATIAL]) -> Option<usize> {
        let [depth, height, width] = &self.axes;
        let d = depth.source(row / height.output, tap[0])?;
        let h = height.source(row % height.output, tap[1])?;
        Some((d * height.input + h) * width.input)
    }

    /// Output rows: product of the outer two output sizes.
    pub fn rows(&self) -> usize {
        self.axes[0].output * self.axes[1].output
    }

    /// Fails if some window reads no element at all.
    pub fn check_windows(&self, name: &str) -> Result<(), EvalError> {
        for axis in &self.axes {
            if let Some(at) = (0..axis.output).find(|at| axis.first(*at).is_none()) {
                return Err(EvalError::value(format!("window {at} of {name} lies in the padding as a whole")));
            }
        }
        Ok(())
    }
}

/// Strides, explicit pads and dilations of an ONNX node.
pub(crate) struct ImportedWindow {
    pub strides: Vec<i64>,
    pub pads: Vec<i64>,
    pub dilations: Vec<i64>,
    /// The node's `ceil_mode`, false if it makes no difference.
    pub ceil_mode: bool,
}

/// Reads `strides`, `dilations` and `pads` or `auto_pad` of a convolution or pool with this kernel.
///
/// `SAME_UPPER` and `SAME_LOWER` depend on the input size unless the stride is 1 or shown to divide
/// it; otherwise the node stays opaque. Runtimes disagree on `SAME` with dilations, and on pools
/// that would be padded negatively: those stay opaque too.
pub(crate) fn import_window(node: &OnnxNode, kernel: &[i64], input: Option<&TensorType>, pool: bool) -> Result<ImportedWindow, Opaque> {
    let rank = kernel.len();
    if rank == 0 || rank > MOST_SPATIAL {
        return Err(Opaque(format!("{} of {rank} spatial axes", node.op_type)));
    }
    let (strides, dilations) = (ints_or(node, "strides", rank, 1)?, ints_or(node, "dilations", rank, 1)?);
    let given = ints_or(node, "pads", 2 * rank, 0)?;
    let ceil_mode = node.flag("ceil_mode", false)?;
    let auto_pad = node.str("auto_pad").unwrap_or("NOTSET");
    let pads = match auto_pad {
        "NOTSET" => given,
        _ if given.iter().any(|p| *p != 0) => return Err(Opaque(format!("{} has pads and auto_pad {auto_pad}", node.op_type))),
        "VALID" if ceil_mode => return Err(Opaque("auto_pad VALID with ceil_mode means different things to different runtimes".into())),
        "VALID" => given,
        "SAME_UPPER" | "SAME_LOWER" => {
            let mut pads = vec![0; 2 * rank];
            for axis in 0..rank {
                if dilations[axis] != 1 && kernel[axis] != 1 {
                    return Err(Opaque(format!("{} with dilations and auto_pad {auto_pad}", node.op_type)));
                }
                let total = same_total(node, kernel[axis], strides[axis], input.and_then(|t| t.shape.get(axis + 2)))?;
                if total < 0 && pool {
                    return Err(Opaque(format!("auto_pad {auto_pad} would pad {} by {total}", node.op_type)));
                }
                (pads[axis], pads[rank + axis]) = split_pad(total.max(0), auto_pad == "SAME_UPPER");
            }
            return Ok(ImportedWindow { strides, pads, dilations, ceil_mode: false });
        }
        other => return Err(Opaque(format!("unknown auto_pad {other}"))),
    };
    Ok(ImportedWindow { strides, pads, dilations, ceil_mode })
}

/// A total padding as begin and end; the odd one goes to the end if `upper`.
pub(crate) fn split_pad(total: i64, upper: bool) -> (i64, i64) {
    let (small, large) = (total / 2, total - total / 2);
    if upper { (small, large) } else { (large, small) }
}

/// Pads that `SAME` adds to one undilated axis; negative if the stride is longer than the kernel.
fn same_total(node: &OnnxNode, kernel: i64, stride: i64, size: Option<&Dim>) -> Result<i64, Opaque> {
    let bounded = [kernel, stride].iter().all(|v| (1..=LARGEST_SIZE).contains(v));
    if !bounded {
        return Err(Opaque(format!("{} with a window of {kernel} and stride {stride}", node.op_type)));
    }
    if stride == 1 {
        return Ok(kernel - 1);
    }
    let Some(size) = size else { return Err(Opaque(format!("auto_pad of {} on an unknown size", node.op_type))) };
    match size.known() {
        Some(n) if (1..=LARGEST_SIZE).contains(&n) => Ok(((n + stride - 1) / stride - 1) * stride + kernel - n),
        None if size.exact_div(&Dim::from(stride)).is_some() => Ok(kernel - stride),
        _ => Err(Opaque(format!("auto_pad of {} with stride {stride} on size {size}", node.op_type))),
    }
}

/// The attribute `name` as `count` integers; all `default` if it is not given.
pub(crate) fn ints_or(node: &OnnxNode, name: &str, count: usize, default: i64) -> Result<Vec<i64>, Opaque> {
    match node.attrs.get(name) {
        None => Ok(vec![default; count]),
        Some(Attr::Ints(v)) if v.is_empty() => Ok(vec![default; count]),
        Some(Attr::Ints(v)) if v.len() == count => Ok(v.clone()),
        Some(other) => Err(Opaque(format!("{} has {name} = {other}, not {count} integers", node.op_type))),
    }
}

/// The kernel of a convolution: the known spatial sizes of its weights, its input `at`, which
/// `kernel_shape` must repeat if it is given.
pub(crate) fn weight_kernel(node: &OnnxNode, at: usize) -> Result<Vec<i64>, Opaque> {
    let weights = node.ty(at)?;
    let kernel: Option<Vec<i64>> = weights.shape.iter().skip(2).map(Dim::known).collect();
    let Some(kernel) = kernel else { return Err(Opaque(format!("{} with weights {weights}", node.op_type))) };
    match node.ints("kernel_shape") {
        Some(shape) if !shape.is_empty() && shape != kernel => {
            Err(Opaque(format!("{} has kernel_shape {shape:?}, but its weights are {weights}", node.op_type)))
        }
        _ => Ok(kernel),
    }
}

/// The attributes of a window in ONNX: `kernel_shape`, `strides`, `pads`, and `dilations` if there
/// are any.
pub(crate) fn spelled(window: &Window<'_>) -> Vec<(&'static str, Attr)> {
    let mut attrs = vec![
        ("kernel_shape", Attr::Ints(window.kernel.to_vec())),
        ("strides", Attr::Ints(window.strides.to_vec())),
        ("pads", Attr::Ints(window.pads.to_vec())),
    ];
    if window.dilations.iter().any(|d| *d != 1) {
        attrs.push(("dilations", Attr::Ints(window.dilations.to_vec())));
    }
    attrs
}
