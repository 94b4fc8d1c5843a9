//! Resampling by interpolation, and to any size.

use crate::attr::{Attr, Float};
use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::{Class, DType};
use crate::error::{EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque, SpellingInput};
use crate::op::{EvalContext, Kernel, Operator, Work};
use crate::operator;
use crate::ops::accepts::{self, Since, Types};
use crate::ops::identity::Identity;
use crate::ops::movement::{axes_below, no_spelling, operands, sizes_of, values};
use crate::ops::resample::{Coordinates, Mode, Resampling, Rounding, Taps};
use crate::scalar::Scalar;
use crate::tensor::{Tensor, Value};
use crate::ty::TensorType;

/// Element types by opset.
const TYPES: &[Since] = &[(7, Types::FLOATS.and(Types::INTS).and(Types::BOOL)), (13, Types::BF16)];

/// Largest known size along a resampled axis.
const LARGEST: i64 = 1 << 16;

/// Positions closer than this to the middle between two others, and not there, are not decided:
/// versions of ONNX Runtime round them differently.
const UNDECIDED: f64 = 1e-4;

operator! {
    /// `x` resampled along some axes, one after the other: each element of the result is a sum of
    /// elements of `x` with weights that depend on sizes alone, or a given number.
    ///
    /// Positions and weights are computed in single precision, as ONNX Runtime does.
    pub struct Resize {
        /// The axes, ascending.
        pub axes: Box<[i64]>,
        /// The result's sizes along them, ≥ 1; empty if `scales` says them.
        pub sizes: Box<[i64]>,
        /// Factors along them, single-precision numbers above 0, of which the result's sizes are
        /// the products, rounded down; empty if `sizes` says them.
        pub scales: Box<[Float]>,
        /// `stretch`; or `not_larger` or `not_smaller`: all axes by the least or the greatest of
        /// the factors that `sizes` asks for.
        pub keep_aspect_ratio_policy: String,
        /// `nearest`, `linear` or `cubic`.
        pub mode: String,
        /// How positions of the result are mapped to the operand, by ONNX's names.
        pub coordinate_transformation_mode: String,
        /// Which position is the nearest, by ONNX's names.
        pub nearest_mode: String,
        /// Of the cubic kernel.
        pub cubic_coeff_a: Float,
        /// Gives positions outside of the operand no weight.
        pub exclude_outside: bool,
        /// Smooths what is made smaller.
        pub antialias: bool,
        /// Starts, then ends, of what `tf_crop_and_resize` reads along the axes; otherwise empty.
        pub roi: Box<[Float]>,
        /// The number outside of it.
        pub extrapolation_value: Float,
    }
}

impl Operator for Resize {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let [x] = operands("Resize", inputs)?;
        accepts::check("Resize", TYPES, x.dtype)?;
        let axes = axes_below("Resize", &self.axes, x.rank())?;
        if self.mode != "nearest" && !x.dtype.is_float() {
            return Err(TypeError::invalid(format!("Resize interpolates floats, not {}", x.dtype)));
        }
        self.well_formed().map_err(TypeError::Invalid)?;
        let own: Vec<&Dim> = axes.iter().map(|axis| &x.shape[*axis]).collect();
        let known: Option<Vec<i64>> = own.iter().map(|d| d.known()).collect();
        let mut shape = x.shape.clone();
        for (place, axis) in axes.iter().enumerate() {
            shape[*axis] = match (&known, self.scales.get(place)) {
                (Some(known), _) => self.steps(known).map_err(TypeError::Invalid)?[place].0.into(),
                (None, None) if self.stretches() => self.sizes[place].into(),
                (None, Some(scale)) if scale.0.fract() == 0.0 => own[place].clone() * Dim::from(scale.0 as i64),
                (None, _) => return Err(TypeError::undecided(format!("Resize of {x} by {:?} has unknown sizes", self.scales))),
            };
        }
        Ok(vec![TensorType { dtype: x.dtype, shape }])
    }

    fn eval<S: Scalar>(&self, inputs: &[Value<S>], _: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError> {
        let [x] = values("Resize", inputs)?;
        let sizes: Vec<i64> = x.shape().iter().map(|d| *d as i64).collect();
        let taps = self.taps(&sizes).map_err(EvalError::Value)?;
        let fill = self.extrapolation_value.0;
        Ok(vec![match x {
            Value::Real(t) if self.mode == "nearest" => Value::real(self.picked(t, &taps, &S::from_f64(fill))),
            Value::Real(t) => Value::real(self.weighted(t, &taps)),
            Value::Int(t) if self.mode == "nearest" => Value::int(self.picked(t, &taps, &(fill as i64))),
            Value::Bool(t) if self.mode == "nearest" => Value::bool(self.picked(t, &taps, &(fill != 0.0))),
            _ => return Err(EvalError::value("Resize interpolates reals")),
        }])
    }

    /// None of its own: what is no repetition by whole factors of `Upsample` and `Resize` nodes.
    fn onnx_types() -> &'static [&'static str] {
        &[]
    }

    fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
        import(node)
    }

    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let x = &inputs[0];
        accepts::spelled("Resize", TYPES, version, x.dtype)?;
        self.runs(x).map_err(|why| no_spelling("Resize", why))?;
        if version < 11 {
            return self.spelled_without_transformation(x, version);
        }
        let since = |first: i64, used: bool| {
            let why = || no_spelling("Resize", format!("its attributes exist since opset {first}, the model has {version}"));
            (version >= first || !used).then_some(()).ok_or_else(why)
        };
        let cropped = self.coordinate_transformation_mode == "tf_crop_and_resize";
        let bound = !self.stretches();
        since(18, self.antialias || bound)?;
        since(19, self.coordinate_transformation_mode == "half_pixel_symmetric")?;
        let word = |text: &str| Attr::Str(text.into());
        let mut spelling = OnnxSpelling::plain("Resize", 1)
            .with("mode", word(&self.mode))
            .with("coordinate_transformation_mode", word(&self.coordinate_transformation_mode));
        if self.mode == "nearest" {
            spelling = spelling.with("nearest_mode", word(&self.nearest_mode));
        }
        if self.mode == "cubic" {
            spelling = spelling.with("cubic_coeff_a", Attr::Float(self.cubic_coeff_a));
        }
        if self.exclude_outside {
            spelling = spelling.with("exclude_outside", Attr::Int(1));
        }
        if self.antialias {
            spelling = spelling.with("antialias", Attr::Int(1));
        }
        if bound {
            spelling = spelling.with("keep_aspect_ratio_policy", word(&self.keep_aspect_ratio_policy));
        }
        if cropped {
            spelling = spelling.with("extrapolation_value", Attr::Float(self.extrapolation_value));
        }
        // Only the axes that are resampled, where the opset allows it.
        let listed = version >= 18;
        if listed {
            spelling = spelling.with("axes", Attr::Ints(self.axes.to_vec()));
        }
        let everywhere = |own: &[Float], rest: f64| -> Vec<f64> {
            let along = |axis: usize| self.place(axis).map_or(rest, |at| own[at].0);
            if listed { own.iter().map(|v| v.0).collect() } else { (0..x.rank()).map(along).collect() }
        };
        let floats = |values: Vec<f64>| {
            let value = Const::from_f64(DType::F32, &[values.len() as i64], &values);
            value.map(SpellingInput::Const).ok_or_else(|| no_spelling("Resize", "its numbers are no vector"))
        };
        // Until opset 12 both were required, and may be empty.
        let none = || if version < 13 { floats(Vec::new()) } else { Ok(SpellingInput::Missing) };
        let (starts, ends) = self.roi.split_at(self.roi.len() / 2);
        spelling.inputs.push(if cropped { floats([everywhere(starts, 0.0), everywhere(ends, 1.0)].concat())? } else { none()? });
        if !self.scales.is_empty() {
            spelling.inputs.push(floats(everywhere(&self.scales, 1.0))?);
            return Ok(spelling);
        }
        spelling.inputs.push(none()?);
        Ok(if listed { spelling.with_ints(&self.sizes) } else { spelling.with_dims(&outputs[0].shape) })
    }

    fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        let out: usize = outputs.first().map_or(0, |o| o.iter().product());
        let reach = match self.mode.as_str() {
            "nearest" => return Work { flops: 0.0, extra_bytes: 0.0, kernel: Kernel::Copy },
            "linear" => 2.0,
            _ => 4.0,
        };
        let along = |axis: &i64| {
            let size = |shapes: &[Vec<usize>]| shapes.first().and_then(|s| s.get(*axis as usize)).map_or(1.0, |d| *d as f64);
            let shrinks = (size(inputs) / size(outputs).max(1.0)).max(1.0);
            reach * if self.antialias { shrinks } else { 1.0 }
        };
        // With weights in several directions at once, as runtimes do it, but for smoothing.
        let taps: Vec<f64> = self.axes.iter().map(along).collect();
        let reads = if self.antialias { taps.iter().sum::<f64>() } else { taps.iter().product() };
        Work { flops: 2.0 * reads * out as f64, extra_bytes: 0.0, kernel: Kernel::Window }
    }
}

impl Resize {
    /// For each of the axes, what every position of the result reads, for an operand of this shape.
    ///
    /// # Errors
    /// The sizes do not fit, or a weight is no number.
    pub fn taps(&self, shape: &[i64]) -> Result<Vec<Vec<Taps>>, String> {
        self.well_formed()?;
        let axes = axes_below("Resize", &self.axes, shape.len()).map_err(|e| e.to_string())?;
        let own: Vec<i64> = axes.iter().map(|axis| shape[*axis]).collect();
        let steps = self.steps(&own)?;
        (0..axes.len())
            .map(|place| {
                let taps = self.along(place, own[place], steps[place])?.taps();
                let finite = taps.iter().flatten().flatten().all(|tap| tap.weight.is_finite());
                finite.then_some(taps).ok_or_else(|| "Resize with weights that are no numbers".into())
            })
            .collect()
    }

    fn stretches(&self) -> bool {
        self.keep_aspect_ratio_policy == "stretch"
    }

    fn place(&self, axis: usize) -> Option<usize> {
        self.axes.iter().position(|a| *a == axis as i64)
    }

    fn well_formed(&self) -> Result<(), String> {
        let count = self.axes.len();
        let lists = (self.sizes.len(), self.scales.len());
        let sized = lists == (count, 0) || (lists == (0, count) && self.stretches());
        let cropped = self.coordinate_transformation_mode == "tf_crop_and_resize";
        let region = self.roi.len() == if cropped { 2 * count } else { 0 } && self.roi.iter().all(|v| v.0.is_finite());
        let policy = matches!(self.keep_aspect_ratio_policy.as_str(), "stretch" | "not_larger" | "not_smaller");
        let numbers = self.sizes.iter().all(|s| (1..=LARGEST).contains(s))
            && self.scales.iter().all(|s| s.0 > 0.0 && s.0 <= LARGEST as f64 && f64::from(s.0 as f32) == s.0);
        let smooth = (!self.antialias || self.mode != "nearest") && (!self.exclude_outside || self.antialias || self.mode == "cubic");
        if count == 0 || !sized || !region || !policy || !numbers || !smooth {
            return Err(format!("Resize cannot have these attributes: {self:?}"));
        }
        self.resampling().map(|_| ())
    }

    fn resampling(&self) -> Result<(Mode, Coordinates), String> {
        let coordinates = Coordinates::named(&self.coordinate_transformation_mode);
        let mode = match self.mode.as_str() {
            "nearest" => Rounding::named(&self.nearest_mode).map(Mode::Nearest),
            "linear" => Some(Mode::Linear),
            "cubic" => Some(Mode::Cubic(self.cubic_coeff_a.0 as f32)),
            _ => None,
        };
        let unknown = || format!("Resize has no mode {} {} {}", self.mode, self.coordinate_transformation_mode, self.nearest_mode);
        mode.zip(coordinates).ok_or_else(unknown)
    }

    /// The result's sizes and the factors along the axes, where the operand has these sizes.
    fn steps(&self, own: &[i64]) -> Result<Vec<(i64, f32)>, String> {
        let unfit = || format!("Resize of sizes {own:?} to {:?} or by {:?}", self.sizes, self.scales);
        if !own.iter().all(|n| (1..=LARGEST).contains(n)) {
            return Err(unfit());
        }
        let asked = || self.sizes.iter().zip(own).map(|(size, n)| *size as f32 / *n as f32);
        let steps: Vec<(i64, f32)> = match self.keep_aspect_ratio_policy.as_str() {
            _ if !self.scales.is_empty() => {
                self.scales.iter().zip(own).map(|(s, n)| ((s.0 as f32 * *n as f32) as i64, s.0 as f32)).collect()
            }
            "stretch" => self.sizes.iter().copied().zip(asked()).collect(),
            policy => {
                let common = asked().reduce(if policy == "not_larger" { f32::min } else { f32::max }).ok_or_else(unfit)?;
                own.iter().map(|n| ((common * *n as f32).round() as i64, common)).collect()
            }
        };
        let fits = steps.len() == own.len() && steps.iter().all(|(size, _)| (1..=LARGEST).contains(size));
        fits.then_some(steps).ok_or_else(unfit)
    }

    fn along(&self, place: usize, own: i64, (size, scale): (i64, f32)) -> Result<Resampling, String> {
        let (mode, coordinates) = self.resampling()?;
        let bound = |at: usize, default: f32| self.roi.get(at).map_or(default, |v| v.0 as f32);
        Ok(Resampling {
            mode,
            coordinates,
            exclude_outside: self.exclude_outside,
            antialias: self.antialias,
            operand: own as usize,
            result: size as usize,
            scale,
            region: (bound(place, 0.0), bound(self.axes.len() + place, 1.0)),
        })
    }

    /// Why ONNX Runtime does not run it on such an operand.
    fn runs(&self, x: &TensorType) -> Result<(), String> {
        let within = |lowest: i64, highest: i64| self.axes.iter().all(|axis| (lowest..=highest).contains(axis));
        let grows = || {
            let own: Option<Vec<i64>> = self.axes.iter().map(|axis| x.shape[*axis as usize].known()).collect();
            let steps = own.and_then(|own| self.steps(&own).ok());
            self.antialias
                || steps.map_or(self.scales.iter().all(|s| s.0 >= 1.0) && !self.scales.is_empty(), |s| s.iter().all(|s| s.1 >= 1.0))
        };
        let runs = match (self.mode.as_str(), x.rank()) {
            ("nearest", _) | ("linear", 2 | 3) | ("cubic", 2) => true,
            ("linear", 4) => within(2, 3) || within(1, 2),
            ("linear", 5) => within(2, 4),
            ("cubic", 4) => within(2, 3) || (within(1, 2) && grows()),
            _ => false,
        };
        runs.then_some(()).ok_or_else(|| format!("ONNX Runtime does no {} interpolation of {x} along the axes {:?}", self.mode, self.axes))
    }

    /// Before opset 11 positions are divided by the factors.
    fn spelled_without_transformation(&self, x: &TensorType, version: i64) -> Result<OnnxSpelling, NoSpelling> {
        let grows = self.scales.iter().all(|s| s.0 >= 1.0);
        let alike = match self.mode.as_str() {
            "nearest" => self.nearest_mode == "floor" && grows,
            "linear" => grows || version == 10,
            _ => false,
        };
        if !alike || self.antialias || self.coordinate_transformation_mode != "asymmetric" || self.scales.is_empty() {
            return Err(no_spelling("Resize", format!("its attributes exist since opset 11, the model has {version}")));
        }
        let scales: Vec<f64> = (0..x.rank()).map(|axis| self.place(axis).map_or(1.0, |at| self.scales[at].0)).collect();
        let name = if version < 10 { "Upsample" } else { "Resize" };
        let spelling = OnnxSpelling::plain(name, 1).with("mode", Attr::Str(self.mode.clone()));
        if version < 9 {
            return Ok(spelling.with("scales", Attr::Floats(scales.into_iter().map(Float).collect())));
        }
        let scales = Const::from_f64(DType::F32, &[scales.len() as i64], &scales);
        Ok(spelling.with_const(scales.ok_or_else(|| no_spelling("Resize", "its factors are no vector"))?))
    }

    fn picked<T: Clone>(&self, x: &Tensor<T>, taps: &[Vec<Taps>], fill: &T) -> Tensor<T> {
        let mut result = x.clone();
        for (axis, taps) in self.axes.iter().zip(taps) {
            let (axis, run, mut shape) = (*axis as usize, run(&result.shape, *axis), result.shape.clone());
            let before = std::mem::replace(&mut shape[axis], taps.len());
            let mut data = Vec::with_capacity(shape.iter().product());
            for block in result.data.chunks_exact((before * run).max(1)) {
                for taps in taps {
                    match taps.as_ref().and_then(|taps| taps.first()) {
                        Some(tap) => data.extend_from_slice(&block[tap.at * run..(tap.at + 1) * run]),
                        None => data.extend(std::iter::repeat_n(fill, run).cloned()),
                    }
                }
            }
            result = Tensor::new(shape, data);
        }
        result
    }

    fn weighted<S: Scalar>(&self, x: &Tensor<S>, taps: &[Vec<Taps>]) -> Tensor<S> {
        let mut result = x.clone();
        for (axis, taps) in self.axes.iter().zip(taps) {
            let (axis, run, mut shape) = (*axis as usize, run(&result.shape, *axis), result.shape.clone());
            let before = std::mem::replace(&mut shape[axis], taps.len());
            let mut data = Vec::with_capacity(shape.iter().product());
            let weights: Vec<Vec<(usize, S)>> =
                taps.iter().map(|taps| taps.iter().flatten().map(|tap| (tap.at, S::from_f64(tap.weight))).collect()).collect();
            for block in result.data.chunks_exact((before * run).max(1)) {
                for weights in &weights {
                    let element = |i: usize| weights.iter().fold(S::zero(), |sum, (at, weight)| sum.add(&weight.mul(&block[at * run + i])));
                    data.extend((0..run).map(element));
                }
            }
            result = Tensor::new(shape, data);
        }
        // What is outside along one axis is not weighted along the others.
        let fill = S::from_f64(self.extrapolation_value.0);
        for (axis, taps) in self.axes.iter().zip(taps) {
            let run = run(&result.shape, *axis);
            for (at, row) in result.data.chunks_exact_mut(run.max(1)).enumerate() {
                if taps[at % taps.len()].is_none() {
                    row.fill(fill.clone());
                }
            }
        }
        result
    }
}

/// Elements from one position along an axis to the next.
fn run(shape: &[usize], axis: i64) -> usize {
    shape[axis as usize + 1..].iter().product()
}

/// A `Resize` or `Upsample` node that is no plain repetition, or why it stays opaque.
pub(crate) fn import(node: &OnnxNode) -> Result<Imported, Opaque> {
    let x = node.ty(0)?;
    let opaque = |why: &str| Opaque(format!("{} {why}", node.op_type));
    let word = |name: &str, default: &str| node.str(name).unwrap_or(default).to_string();
    let explicit = node.version >= 11;
    let mode = word("mode", "nearest");
    // Attributes that are not in use are checked all the same: the runtime does.
    let mut coordinates = word("coordinate_transformation_mode", "half_pixel");
    let mut nearest_mode = word("nearest_mode", "round_prefer_floor");
    let antialias = node.flag("antialias", false)?;
    let exclude_outside = node.flag("exclude_outside", false)?;
    let cubic_coeff_a = node.float("cubic_coeff_a").unwrap_or(-0.75);
    let extrapolation_value = node.float("extrapolation_value").unwrap_or(0.0);
    let policy = word("keep_aspect_ratio_policy", "stretch");
    if !explicit {
        (coordinates, nearest_mode) = ("asymmetric".into(), "floor".into());
    }
    let cropped = coordinates == "tf_crop_and_resize";
    let listed: Vec<i64> = match node.ints("axes").filter(|axes| !axes.is_empty()) {
        Some(axes) => axes.iter().map(|a| node.axis(*a, x.rank())).collect::<Result<_, _>>()?,
        None => (0..x.rank() as i64).collect(),
    };
    if listed.iter().any(|axis| listed.iter().filter(|a| *a == axis).count() > 1) {
        return Err(opaque("lists an axis twice"));
    }
    let numbers = |at: usize| -> Result<Option<Vec<f64>>, Opaque> {
        let empty = node.ty(at).is_ok_and(|t| t.shape.as_slice() == [Dim::from(0)]);
        let Some(value) = (if empty { None } else { node.constant(at)? }) else { return Ok(None) };
        match value.to_f64().filter(|_| value.dtype().class() == Class::Real) {
            Some(v) => Ok(Some(v).filter(|v| !v.is_empty())),
            None => Err(opaque("has unreadable numbers")),
        }
    };
    let scales = match node.attrs.get("scales").filter(|_| node.version < 9) {
        Some(Attr::Floats(v)) => Some(v.iter().map(|f| f.0).collect()),
        Some(_) => return Err(opaque("has unreadable scales")),
        None => numbers(if explicit { 2 } else { 1 })?,
    };
    let sizes = if scales.is_none() && explicit { sizes_of(node, 3)? } else { None };
    let count = scales.as_ref().map(Vec::len).or(sizes.as_ref().map(Vec::len));
    if count != Some(listed.len()) {
        return Err(opaque("without one scale or size for each axis"));
    }
    let roi = match if cropped { numbers(1)? } else { None } {
        Some(roi) if roi.len() == 2 * listed.len() => roi,
        None if !cropped => [vec![0.0; listed.len()], vec![1.0; listed.len()]].concat(),
        _ => return Err(opaque("without a region to crop")),
    };
    let stretches = policy == "stretch";
    if scales.is_some() && !stretches {
        return Err(opaque("by factors keeps its own aspect ratio"));
    }
    let mut resized: Vec<(i64, usize)> = listed.iter().copied().zip(0..).collect();
    resized.sort_unstable();
    if stretches {
        let same = |axis: i64, at: usize| match (&scales, &sizes) {
            (Some(scales), _) => scales[at] == 1.0,
            (_, Some(sizes)) => sizes[at] == x.shape[axis as usize],
            _ => false,
        };
        resized.retain(|(axis, at)| !same(*axis, *at));
    }
    // The runtime copies along an axis whose factor is 1; the standard maps positions there, too.
    let kept = |axis: &i64| resized.iter().all(|(a, _)| a != axis);
    if cropped && listed.iter().zip(0..).any(|(axis, at)| kept(axis) && (roi[at] != 0.0 || roi[listed.len() + at] != 1.0)) {
        return Err(opaque("crops along an axis that keeps its size"));
    }
    let shifts = coordinates == "tf_half_pixel_for_nn";
    if shifts && (mode != "nearest" || !matches!(nearest_mode.as_str(), "floor" | "round_prefer_floor")) {
        return Err(opaque("with tf_half_pixel_for_nn between neighbours"));
    }
    if resized.is_empty() {
        return Ok(node.import_with(crate::Op::Identity(Identity {}), &[0]));
    }
    let known = |sizes: &[Dim]| resized.iter().map(|(_, at)| sizes[*at].known()).collect::<Option<Vec<i64>>>();
    let sizes = sizes.as_deref().map(|sizes| known(sizes).ok_or_else(|| opaque("to sizes computed at run time"))).transpose()?;
    let op = Resize {
        axes: resized.iter().map(|(axis, _)| *axis).collect(),
        sizes: sizes.unwrap_or_default().into(),
        scales: scales.iter().flat_map(|scales| resized.iter().map(|(_, at)| Float(scales[*at]))).collect(),
        keep_aspect_ratio_policy: policy,
        nearest_mode: if mode == "nearest" { nearest_mode } else { "floor".into() },
        cubic_coeff_a: Float(if mode == "cubic" { cubic_coeff_a } else { -0.75 }),
        mode,
        exclude_outside,
        antialias,
        roi: if cropped {
            let bounds = |from: usize| resized.iter().map(move |(_, at)| from + at);
            bounds(0).chain(bounds(listed.len())).map(|at| Float(roi[at])).collect()
        } else {
            Box::default()
        },
        coordinate_transformation_mode: coordinates,
        extrapolation_value: Float(if cropped { extrapolation_value } else { 0.0 }),
    };
    op.decided(x, explicit).map_err(|why| opaque(&why))?;
    Ok(node.import_with(crate::Op::Resize(op), &[0]))
}

impl Resize {
    /// Whether the standard and all versions of ONNX Runtime agree on the result.
    fn decided(&self, x: &TensorType, explicit: bool) -> Result<(), String> {
        self.infer(std::slice::from_ref(x)).map_err(|e| e.to_string())?;
        self.runs(x)?;
        if x.dtype.class() != Class::Real && self.extrapolation_value.0 != 0.0 {
            return Err("extrapolates integers".into());
        }
        let shrinks = self.scales.iter().any(|s| s.0 < 1.0);
        if !explicit && self.mode == "nearest" && shrinks {
            return Err("to nearest, of which no opset before 11 says which it is".into());
        }
        let own: Option<Vec<i64>> = self.axes.iter().map(|axis| x.shape[*axis as usize].known()).collect();
        let to_nearest = self.mode == "nearest" && self.nearest_mode.starts_with("round");
        let coordinates = self.coordinate_transformation_mode.as_str();
        let Some(own) = own else {
            let single = coordinates == "pytorch_half_pixel" && (self.mode == "cubic" || self.antialias);
            return if to_nearest || single { Err("of open sizes, on which the nearest position depends".into()) } else { Ok(()) };
        };
        for (place, (n, step)) in own.iter().zip(self.steps(&own)?).enumerate() {
            let (size, scale) = step;
            let exact = f64::from(scale) * *n as f64;
            if !self.scales.is_empty() && size != exact.floor() as i64 {
                return Err(format!("of {n} by {scale}, whose product depends on the rounding"));
            }
            if !self.stretches() && ((exact.fract() - 0.5).abs() < UNDECIDED || exact < 0.5) {
                return Err(format!("of {n} by {scale}, whose product depends on the rounding"));
            }
            if size == *n && scale != 1.0 {
                return Err(format!("of {n} by {scale}, which the runtime copies"));
            }
            let whole = exact == size as f64 || self.scales.is_empty() && self.stretches();
            if !whole && (matches!(coordinates, "align_corners" | "tf_crop_and_resize") || coordinates == "pytorch_half_pixel" && size == 1)
            {
                return Err(format!("of {n} by {scale} with {coordinates}, which the standard maps otherwise"));
            }
            if coordinates == "pytorch_half_pixel" && size == 1 && (self.mode == "cubic" || self.antialias) {
                return Err("to a single position with pytorch_half_pixel, which the standard maps otherwise".into());
            }
            let along = self.along(place, *n, step)?;
            if to_nearest && scale != 1.0 && along.nearest_to_middle().is_some_and(|d| d < UNDECIDED) {
                return Err(format!("of {n} by {scale}, whose nearest positions depend on the rounding"));
            }
        }
        let shape: Vec<i64> = x.shape.iter().map(|d| d.known().unwrap_or(1)).collect();
        self.taps(&shape).map(|_| ())
    }
}
