//! How far two sets of outputs agree.

use regraft_ir::tensor::magnitude;
use regraft_runtime::{DType, Fill, HostTensor};
use serde::Serialize;

use crate::histogram::Histogram;

/// Fraction of a type's largest number above which reordering may overflow.
const EDGE: f64 = 0.125;

/// The largest differences between two sets of outputs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Agreement {
    /// Largest difference of a real output, relative to the largest magnitude of that output in the
    /// first set.
    pub relative: f64,
    /// Largest absolute difference of a real output.
    pub absolute: f64,
    /// How many real values differ by how much.
    pub histogram: Histogram,
    /// Name of the output that differs most.
    pub output: String,
    /// Outputs that differ where no difference is allowed: shape, type, integers, booleans, an
    /// infinity of the wrong sign, NaN against an infinity, or either where a number is expected.
    pub broken: Vec<String>,
    /// Outputs that are infinite or NaN in the first set and numbers in the second: the first
    /// overflowed, or an infinity was lost.
    pub lost: Vec<String>,
    /// True if an output holds infinities or NaN in both sets: such places show nothing.
    pub non_finite: bool,
}

impl Agreement {
    /// True if nothing is broken, nothing is lost, and the relative difference is at most
    /// `tolerance`.
    pub fn within(&self, tolerance: f64) -> bool {
        self.broken.is_empty() && self.lost.is_empty() && self.relative <= tolerance
    }

    /// A difference where none is allowed, under inputs of this fill. Large inputs may overflow in
    /// the first set alone: there, and only there, a number may stand where the first set has an
    /// infinity or NaN.
    pub fn breach(&self, fill: &str) -> Option<&String> {
        let lost = self.lost.first().filter(|_| !fill.ends_with(Fill::Large.name()));
        self.broken.first().or(lost)
    }

    /// The worse of two agreements.
    pub fn join(&mut self, other: Agreement) {
        if other.relative > self.relative {
            (self.relative, self.output) = (other.relative, other.output);
        }
        self.absolute = self.absolute.max(other.absolute);
        self.histogram.join(&other.histogram);
        self.broken.extend(other.broken);
        self.lost.extend(other.lost);
        self.non_finite |= other.non_finite;
    }
}

/// Compares outputs name by name. Integers and booleans must be equal; reals are compared in double
/// precision.
///
/// An infinity must match an infinity of the same sign, and NaN must match NaN; such places show
/// nothing, because large inputs overflow in both models alike. Near overflow, from an eighth of
/// the type's largest number on, a number may match the infinity of its sign. A number where an
/// infinity or NaN is expected is `lost`; any other mismatch is `broken`.
pub fn compare(names: &[String], want: &[HostTensor], have: &[HostTensor]) -> Agreement {
    let mut worst = Agreement::default();
    if want.len() != have.len() {
        worst.broken.push(format!("{} outputs instead of {}", have.len(), want.len()));
        return worst;
    }
    for ((name, a), b) in names.iter().zip(want).zip(have) {
        if a.shape() != b.shape() || a.dtype() != b.dtype() {
            worst.broken.push(format!("`{name}` is {}{:?} instead of {}{:?}", b.dtype(), b.shape(), a.dtype(), a.shape()));
            continue;
        }
        if !a.dtype().is_float() {
            if a.bytes() != b.bytes() {
                worst.broken.push(format!("`{name}` of type {} is not equal", a.dtype()));
            }
            continue;
        }
        worst.join(compare_reals(name, &a.to_f64(), &b.to_f64(), edge(a.dtype())));
    }
    worst
}

/// Numbers of this magnitude may overflow when their last bits change a few times.
fn edge(dtype: DType) -> f64 {
    EDGE * match dtype {
        DType::F16 => 65504.0,
        DType::F64 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}

fn compare_reals(name: &str, want: &[f64], have: &[f64], edge: f64) -> Agreement {
    let scale = magnitude(want);
    // An output that is zero throughout is compared absolutely.
    let unit = if scale > 0.0 { scale } else { 1.0 };
    let mut result = Agreement { output: name.to_string(), ..Agreement::default() };
    for (x, y) in want.iter().zip(have) {
        if !x.is_finite() || !y.is_finite() {
            // One side may overflow and the other not, close to the type's limit.
            let overflows = |v: f64| v.abs() >= edge;
            let alike = (x.is_nan() && y.is_nan()) || (overflows(*x) && overflows(*y) && x.signum() == y.signum());
            let what = || vec![format!("`{name}` is {y} where {x} is expected")];
            if alike {
                result.non_finite = true;
            } else if y.is_finite() {
                result.lost = what();
            } else {
                result.broken = what();
            }
            continue;
        }
        result.absolute = result.absolute.max((x - y).abs());
        result.histogram.add((x - y).abs() / unit);
    }
    result.relative = result.absolute / unit;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> HostTensor {
        HostTensor::from_values(vec![values.len()], values).expect("a small tensor")
    }

    #[test]
    fn relative_to_the_largest_magnitude() {
        let a = compare(&["y".into()], &[tensor(&[100.0, 0.0])], &[tensor(&[100.0, 1.0])]);
        assert_eq!((a.relative, a.absolute), (0.01, 1.0));
        assert_eq!((a.histogram.counts[0], a.histogram.total()), (1, 2));
        assert!(a.within(0.01) && !a.within(0.009));
    }

    #[test]
    fn nan_against_a_number_is_broken() {
        assert!(!compare(&["y".into()], &[tensor(&[1.0])], &[tensor(&[f32::NAN])]).broken.is_empty());
        let both = compare(&["y".into()], &[tensor(&[f32::NAN])], &[tensor(&[f32::NAN])]);
        assert!(both.broken.is_empty() && both.non_finite);
    }

    #[test]
    fn infinities_are_no_numbers_and_have_signs() {
        let compared = |want: f32, have: f32| compare(&["y".into()], &[tensor(&[want, 1.0])], &[tensor(&[have, 1.0])]);
        let broken = |want: f32, have: f32| compared(want, have).breach("normal").is_some();
        let infinity = f32::INFINITY;
        for (want, have) in
            [(100.0, infinity), (infinity, 100.0), (infinity, -infinity), (3e38, -infinity), (f32::NAN, 0.0), (0.0, infinity)]
        {
            assert!(broken(want, have), "{want} and {have}");
        }
        for (want, have) in [(infinity, infinity), (3e38, infinity), (-infinity, -3e38), (f32::NAN, -f32::NAN)] {
            assert!(!broken(want, have), "{want} and {have}");
            assert!(compared(want, have).within(0.0), "{want} and {have}");
        }
        // NaN is not an infinity, whatever the inputs are.
        for (want, have) in [(infinity, f32::NAN), (f32::NAN, infinity), (-infinity, f32::NAN), (f32::NAN, 3e38), (3e38, f32::NAN)] {
            assert!(broken(want, have) && !compared(want, have).within(1.0), "{want} and {have}");
        }
        assert!(compared(infinity, f32::NAN).breach("large").is_some() && compared(f32::NAN, infinity).breach("large").is_some());
        assert!(compared(infinity, infinity).non_finite);
        // A value that overflows at large inputs, as log(softmax(x)) does, may be a number in the
        // other model; the other way round, a number is lost.
        assert!(compared(-infinity, -441.0).breach("N=8: large").is_none());
        assert!(compared(-441.0, -infinity).breach("N=8: large").is_some());
    }

    #[test]
    fn integers_are_compared_exactly() {
        let int = |v: i64| HostTensor::from_values(vec![1], &[v]).expect("a small tensor");
        assert!(compare(&["y".into()], &[int(3)], &[int(3)]).broken.is_empty());
        assert!(!compare(&["y".into()], &[int(3)], &[int(4)]).broken.is_empty());
    }
}
