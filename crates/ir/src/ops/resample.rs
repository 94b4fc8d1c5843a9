//! Resampling along one axis: which positions of the operand each position of the result reads, and
//! with which weights.
//!
//! Everything here is computed in single precision and in the order of ONNX Runtime, which decides
//! what is nearest where exact arithmetic and rounded arithmetic differ.

use std::collections::BTreeMap;

/// How positions of the result are mapped to the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

/// Which position is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
}

/// What is read between positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Nearest(Rounding),
    Linear,
    /// By Keys' kernel with this coefficient.
    Cubic(f32),
}

/// A position of the operand with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tap {
    /// The position.
    pub at: usize,
    /// The weight.
    pub weight: f64,
}

/// What a position of the result reads, by position; `None` where it lies outside of the operand
/// and gets a given number.
pub type Taps = Option<Vec<Tap>>;

/// Resampling along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resampling {
    pub mode: Mode,
    pub coordinates: Coordinates,
    /// Positions outside of the operand have no weight, rather than that of the border.
    pub exclude_outside: bool,
    /// Smooths what is made smaller.
    pub antialias: bool,
    /// Size of the operand, ≥ 1.
    pub operand: usize,
    /// Size of the result, ≥ 1.
    pub result: usize,
    /// The factor, > 0.
    pub scale: f32,
    /// The part of the operand that is read, relative to its size.
    pub region: (f32, f32),
}

impl Coordinates {
    pub(crate) fn named(name: &str) -> Option<Coordinates> {
        Some(match name {
            "half_pixel" => Coordinates::HalfPixel,
            "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
            "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            "tf_half_pixel_for_nn" => Coordinates::TfHalfPixelForNn,
            "tf_crop_and_resize" => Coordinates::TfCropAndResize,
            _ => return None,
        })
    }
}

impl Rounding {
    pub(crate) fn named(name: &str) -> Option<Rounding> {
        Some(match name {
            "round_prefer_floor" => Rounding::PreferFloor,
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            _ => return None,
        })
    }
}

impl Resampling {
    /// What every position of the result reads.
    pub(crate) fn taps(&self) -> Vec<Taps> {
        (0..self.result).map(|i| self.reads(i)).collect()
    }

    /// The smallest distance, other than 0, of a position from the middle between two positions of
    /// the operand.
    pub(crate) fn nearest_to_middle(&self) -> Option<f64> {
        let distance = |i: usize| {
            let x = f64::from(self.position(i));
            (x - x.floor() - 0.5).abs()
        };
        (0..self.result).map(distance).filter(|d| *d > 0.0).min_by(f64::total_cmp)
    }

    /// The position of the operand that position `i` of the result stands for.
    fn position(&self, i: usize) -> f32 {
        let (i, scale, result, operand) = (i as f32, self.scale, self.result as f32, self.operand as f32);
        if scale == 1.0 {
            return i;
        }
        let (start, end) = self.region;
        match self.coordinates {
            Coordinates::HalfPixel => (i + 0.5) / scale - 0.5,
            Coordinates::HalfPixelSymmetric => {
                let adjustment = result / (scale * operand);
                let offset = operand / 2.0 * (1.0 - adjustment);
                (f64::from(offset) + (f64::from(i) + 0.5) / f64::from(scale) - 0.5) as f32
            }
            Coordinates::PytorchHalfPixel if self.result == 1 => 0.0,
            Coordinates::PytorchHalfPixel => (i + 0.5) / scale - 0.5,
            Coordinates::AlignCorners if self.result == 1 => 0.0,
            Coordinates::AlignCorners => i * (operand - 1.0) / (result - 1.0),
            Coordinates::Asymmetric => i / scale,
            Coordinates::TfHalfPixelForNn => (i + 0.5) / scale,
            Coordinates::TfCropAndResize if self.result == 1 => (0.5 * f64::from(start + end) * f64::from(operand - 1.0)) as f32,
            Coordinates::TfCropAndResize => start * (operand - 1.0) + (i * (end - start) * (operand - 1.0)) / (result - 1.0),
        }
    }

    fn reads(&self, i: usize) -> Taps {
        if self.scale == 1.0 {
            return Some(vec![Tap { at: i, weight: 1.0 }]);
        }
        let x = self.position(i);
        let last = self.operand as f32 - 1.0;
        if self.coordinates == Coordinates::TfCropAndResize && (x < 0.0 || x > last) {
            return None;
        }
        if self.antialias {
            return Some(self.smoothed(x));
        }
        Some(match self.mode {
            Mode::Nearest(rounding) => {
                // Exact: halves are representable.
                let x = f64::from(x);
                let nearest = match rounding {
                    Rounding::PreferFloor => (x - 0.5).ceil(),
                    Rounding::PreferCeil => (x + 0.5).floor(),
                    Rounding::Floor => x.floor(),
                    Rounding::Ceil => x.ceil(),
                };
                vec![Tap { at: self.inside(nearest as i64), weight: 1.0 }]
            }
            Mode::Linear => {
                let x = x.min(last).max(0.0);
                let low = self.inside(x as i64);
                let high = (low + 1).min(self.operand - 1);
                if low == high {
                    return Some(vec![Tap { at: low, weight: 1.0 }]);
                }
                let weight = |other: usize| f64::from((x - other as f32).abs());
                vec![Tap { at: low, weight: weight(high) }, Tap { at: high, weight: weight(low) }]
            }
            Mode::Cubic(a) => {
                let first = x.floor() as i64 - 1;
                let mut weights = cubic(x - x.floor(), a);
                if self.exclude_outside {
                    for (offset, weight) in (0i64..).zip(&mut weights) {
                        if !(0..self.operand as i64).contains(&first.saturating_add(offset)) {
                            *weight = 0.0;
                        }
                    }
                    let sum = weights.iter().fold(0.0, |sum, w| sum + w);
                    weights.iter_mut().for_each(|w| *w /= sum);
                }
                self.merged((0i64..).zip(weights).map(|(offset, weight)| (first.saturating_add(offset), weight)))
            }
        })
    }

    /// Weights of the kernel stretched to the distance of the result's positions, as Pillow
    /// computes them.
    fn smoothed(&self, x: f32) -> Vec<Tap> {
        let step = 1.0 / self.scale;
        let radius = if matches!(self.mode, Mode::Cubic(_)) { 2.0 } else { 1.0 };
        let (support, narrowed) = if step >= 1.0 { (radius * step, 1.0 / step) } else { (radius, 1.0) };
        let centre = 0.5 + x;
        let (first, end) = ((centre - support + 0.5).floor() as i64, (centre + support + 0.5).floor() as i64);
        let (mut weights, mut total) = (Vec::new(), 0.0f32);
        for at in first..end {
            if self.exclude_outside && !(0..self.operand as i64).contains(&at) {
                continue;
            }
            let weight = self.kernel((at as f32 - centre + 0.5) * narrowed);
            total += weight;
            weights.push((at, weight));
        }
        let share = if total == 0.0 { 1.0 } else { 1.0 / total };
        let mut taps = self.merged(weights.into_iter());
        taps.iter_mut().for_each(|tap| tap.weight = f64::from(tap.weight as f32 * share));
        taps
    }

    fn kernel(&self, distance: f32) -> f32 {
        let x = distance.abs();
        match self.mode {
            Mode::Cubic(a) if x < 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
            Mode::Cubic(a) if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * a,
            Mode::Cubic(_) => 0.0,
            _ => (1.0 - x).max(0.0),
        }
    }

    fn inside(&self, at: i64) -> usize {
        at.clamp(0, self.operand as i64 - 1) as usize
    }

    /// The weights by position, those outside of the operand at its border.
    fn merged(&self, weights: impl Iterator<Item = (i64, f32)>) -> Vec<Tap> {
        let mut sums: BTreeMap<usize, f32> = BTreeMap::new();
        weights.for_each(|(at, weight)| *sums.entry(self.inside(at)).or_default() += weight);
        sums.into_iter().map(|(at, weight)| Tap { at, weight: f64::from(weight) }).collect()
    }
}

/// Weights of the positions from one before to two after a position, which is `t` away from the one
/// below it.
fn cubic(t: f32, a: f32) -> [f32; 4] {
    let far = |d: f32| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
    let near = |d: f32| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}
