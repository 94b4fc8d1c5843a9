//! Made-up inputs, the same for the same seed on every machine.

use std::collections::BTreeMap;

use half::{bf16, f16};
use regraft_ir::SplitMix64;

use crate::{DType, Feeds, HostTensor, RuntimeError, ValueInfo};

/// Largest magnitude of integers that are data, except in the fill of large values.
const SMALL: i128 = 9;

/// Kinds of made-up values. Booleans and small integers are random in all but [`Fill::Zeros`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Mean 0, variance 1, within ±6. Integers that are data are within ±9.
    Normal,
    /// All zeros, or the nearest integer that the input may hold.
    Zeros,
    /// Either sign, magnitudes spread evenly over the powers of two from 2⁻¹⁰ to 2¹⁰; one in eight
    /// of those above ½ is rounded to a multiple of ½. Integers that are data have magnitudes
    /// spread evenly over all powers of two in their range; one in eight is at a limit, or next to
    /// one or to 0.
    Large,
}

impl Fill {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Zeros, Self::Large];

    /// Name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Zeros => "zeros",
            Self::Large => "large",
        }
    }
}

/// The integers that an input may hold, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntRange {
    /// The least one.
    pub low: i128,
    /// The greatest one.
    pub high: i128,
    /// True if they are indices or choices, all equally likely; otherwise they are data.
    pub index: bool,
}

/// Choices for made-up values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillOptions {
    /// Seed. Values of an input depend only on the seed and on the input's name, type and shape.
    pub seed: u64,
    /// Largest integer; integers are in `0..=int_max`. Small, so that integers that serve as
    /// indices stay valid.
    pub int_max: u64,
    /// What integer inputs may hold, by name, where known.
    pub ranges: BTreeMap<String, IntRange>,
}

impl Default for FillOptions {
    fn default() -> Self {
        Self { seed: 0, int_max: 1, ranges: BTreeMap::new() }
    }
}

/// An input whose sizes are all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSpec {
    /// Name in the model.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<usize>,
}

impl InputSpec {
    /// Specs for declared inputs. `bind` gives the size of each dimension that is not fixed (the
    /// value and the axis).
    pub fn from_values(values: &[ValueInfo], bind: impl Fn(&ValueInfo, usize) -> Option<usize>) -> Result<Vec<Self>, RuntimeError> {
        values
            .iter()
            .map(|value| {
                let size = |(axis, dim): (usize, &Option<usize>)| {
                    dim.or_else(|| bind(value, axis)).ok_or_else(|| RuntimeError::UnboundDim {
                        input: value.name.clone(),
                        axis,
                        symbol: value.symbols.get(axis).filter(|s| !s.is_empty()).map_or(String::new(), |s| format!(" (`{s}`)")),
                    })
                };
                let shape = value.dims.iter().enumerate().map(size).collect::<Result<_, _>>()?;
                Ok(Self { name: value.name.clone(), dtype: value.dtype.unwrap_or(DType::Other), shape })
            })
            .collect()
    }
}

/// Values for all `inputs`.
pub fn fill_inputs(fill: Fill, inputs: &[InputSpec], options: &FillOptions) -> Result<Feeds, RuntimeError> {
    inputs.iter().map(|input| Ok((input.name.clone(), fill_one(fill, input, options)?))).collect()
}

fn fill_one(fill: Fill, input: &InputSpec, options: &FillOptions) -> Result<HostTensor, RuntimeError> {
    if input.dtype.size().is_none() {
        return Err(RuntimeError::CannotFill { input: input.name.clone(), dtype: input.dtype });
    }
    let place = |source| RuntimeError::Tensor { place: format!("input `{}`", input.name), source };
    let mut tensor = HostTensor::zeros(input.dtype, input.shape.clone()).map_err(place)?;
    let range = options.ranges.get(&input.name);
    if fill == Fill::Zeros && range.is_none_or(|range| range.low <= 0 && range.high >= 0) {
        return Ok(tensor);
    }
    let mut random = stream(options.seed, &input.name);
    let float = |random: &mut SplitMix64| match fill {
        Fill::Large => large(random),
        _ => random.normal(),
    };
    match input.dtype {
        DType::F32 => write(&mut tensor, || (float(&mut random) as f32).to_ne_bytes()),
        DType::F64 => write(&mut tensor, || float(&mut random).to_ne_bytes()),
        DType::F16 => write(&mut tensor, || f16::from_f64(float(&mut random)).to_ne_bytes()),
        DType::BF16 => write(&mut tensor, || bf16::from_f64(float(&mut random)).to_ne_bytes()),
        // The two values of a flag are two branches: zeros take one, and this takes the other.
        DType::Bool if tensor.len() == 1 => tensor.bytes_mut().fill(1),
        dtype => {
            let (least, greatest) = width(dtype);
            let limit = if dtype == DType::Bool { 1 } else { options.int_max };
            let narrow = IntRange { low: 0, high: limit.into(), index: true };
            let range = range.copied().filter(|range| dtype != DType::Bool && range.low <= range.high).unwrap_or(narrow);
            let (low, high) = (range.low.clamp(least, greatest), range.high.clamp(least, greatest));
            let mut int = || match fill {
                Fill::Zeros => 0i128.clamp(low, high),
                _ if range.index => uniform(&mut random, low, high),
                Fill::Large => wide(&mut random, low, high),
                Fill::Normal => uniform(&mut random, (-SMALL).clamp(low, high), SMALL.clamp(low, high)),
            };
            let size = dtype.size().unwrap_or(1);
            for element in tensor.bytes_mut().chunks_exact_mut(size) {
                element.copy_from_slice(&int().to_le_bytes()[..size]);
            }
        }
    }
    Ok(tensor)
}

/// The minimum and maximum of an integer type.
fn width(dtype: DType) -> (i128, i128) {
    match dtype {
        DType::Bool => (0, 1),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        _ => (0, u64::MAX.into()),
    }
}

/// A stream for `seed` and a name: values of one input do not depend on the other inputs.
fn stream(seed: u64, name: &str) -> SplitMix64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    SplitMix64(u64::from_le_bytes(first))
}

/// A number in this range, all equally likely.
fn uniform(random: &mut SplitMix64, low: i128, high: i128) -> i128 {
    let count = u64::try_from(high - low).ok().and_then(|n| n.checked_add(1));
    let steps = match count {
        Some(count) => random.below(count as usize) as u64,
        None => random.word(),
    };
    low + i128::from(steps)
}

/// A magnitude whose bit length is uniformly distributed, with either sign; one in eight is a
/// boundary value of a type or sign.
fn wide(random: &mut SplitMix64, low: i128, high: i128) -> i128 {
    let bits = random.word();
    if bits & 7 == 0 {
        let edges = [low, low + 1, high - 1, high, -1, 0, 1];
        return edges[random.below(edges.len())].clamp(low, high);
    }
    let largest = low.unsigned_abs().max(high.unsigned_abs());
    let length = 1 + random.below((128 - largest.leading_zeros()).max(1) as usize) as u32;
    let magnitude = i128::from(random.word() >> (64 - length.min(64)));
    (if bits & 8 == 0 || low >= 0 { magnitude } else { -magnitude }).clamp(low, high)
}

/// Exact on every machine: a mantissa in [1, 2) times a power of two.
fn large(random: &mut SplitMix64) -> f64 {
    let exponent = random.below(20) as i32 - 10;
    let magnitude = (1.0 + random.unit()) * f64::from_bits(((1023 + exponent) as u64) << 52);
    let bits = random.word();
    let magnitude = if bits & 14 == 0 && magnitude >= 0.5 { (2.0 * magnitude).round() / 2.0 } else { magnitude };
    if bits & 1 == 0 { magnitude } else { -magnitude }
}

fn write<const N: usize>(tensor: &mut HostTensor, mut next: impl FnMut() -> [u8; N]) {
    for element in tensor.bytes_mut().chunks_exact_mut(N) {
        element.copy_from_slice(&next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, dtype: DType, shape: &[usize]) -> InputSpec {
        InputSpec { name: name.to_owned(), dtype, shape: shape.to_vec() }
    }

    #[test]
    fn same_seed_same_values_whatever_else_is_filled() {
        let (x, y) = (spec("x", DType::F32, &[3, 5]), spec("y", DType::I64, &[40]));
        let options = FillOptions { seed: 9, int_max: 3, ..FillOptions::default() };
        let both = fill_inputs(Fill::Normal, &[y.clone(), x.clone()], &options).unwrap();
        let one = fill_inputs(Fill::Normal, &[x], &options).unwrap();
        assert_eq!(both.get("x"), one.get("x"));
        let ints = both.get("y").unwrap().values::<i64>().unwrap().to_vec();
        assert!(ints.iter().all(|v| (0..=3).contains(v)) && ints.contains(&3) && ints.contains(&0));
        let limited = FillOptions { ranges: [("y".to_owned(), IntRange { low: -2, high: 5, index: true })].into(), ..options };
        for fill in [Fill::Normal, Fill::Large] {
            let drawn = fill_inputs(fill, std::slice::from_ref(&y), &limited).unwrap().get("y").unwrap().values::<i64>().unwrap().to_vec();
            assert!(drawn.iter().all(|v| (-2..=5).contains(v)) && drawn.contains(&-2) && drawn.contains(&5), "{drawn:?}");
        }
    }

    #[test]
    fn kinds_have_their_ranges() {
        let options = FillOptions::default();
        let of = |fill, dtype| fill_inputs(fill, &[spec("x", dtype, &[1000])], &options).unwrap().get("x").unwrap().to_f64();
        let large = of(Fill::Large, DType::F32);
        assert!(large.iter().all(|v| v.abs() <= 1024.0 && v.abs() >= 1.0 / 1024.0));
        assert!(large.iter().any(|v| *v > 500.0) && large.iter().any(|v| *v < -500.0) && large.iter().any(|v| v.abs() < 0.01));
        assert!(large.iter().filter(|v| (**v * 2.0).fract() == 0.0 && v.fract() != 0.0).count() > 10);
        assert!(of(Fill::Zeros, DType::F16).iter().all(|v| *v == 0.0));
        let bools = of(Fill::Normal, DType::Bool);
        assert!(bools.contains(&0.0) && bools.contains(&1.0));
        assert!(of(Fill::Large, DType::F16).iter().all(|v| v.is_finite()));
        assert!(matches!(fill_inputs(Fill::Normal, &[spec("s", DType::String, &[1])], &options), Err(RuntimeError::CannotFill { .. })));
    }

    #[test]
    fn data_has_either_sign_and_fills_its_range() {
        let of = |fill, dtype, low: i128, high: i128| {
            let options = FillOptions { ranges: [("x".to_owned(), IntRange { low, high, index: false })].into(), ..FillOptions::default() };
            let tensor = fill_inputs(fill, &[spec("x", dtype, &[1000])], &options).unwrap().get("x").unwrap().clone();
            let (size, signed) = (dtype.size().unwrap(), width(dtype).0 < 0);
            let number = |bytes: &[u8]| {
                let fill = if signed && bytes[size - 1] > 127 { 0xff } else { 0 };
                let mut wide = [fill; 16];
                wide[..size].copy_from_slice(bytes);
                i128::from_le_bytes(wide)
            };
            tensor.bytes().chunks_exact(size).map(number).collect::<Vec<i128>>()
        };
        let ends = |values: &[i128]| (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        for dtype in [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64] {
            let (low, high) = width(dtype);
            let large = of(Fill::Large, dtype, low, high);
            assert_eq!(ends(&large), (low, high), "{dtype}");
            let halves = |v: &&i128| v.unsigned_abs() < 1 << (dtype.size().unwrap() * 4);
            assert!(large.contains(&0) && large.iter().filter(halves).count() > 250, "{dtype}");
            assert_eq!(ends(&of(Fill::Normal, dtype, low, high)), (low.max(-9), 9), "{dtype}");
            assert_eq!(ends(&of(Fill::Zeros, dtype, low, high)), (0, 0), "{dtype}");
        }
        // Divisors are never 0.
        for fill in Fill::ALL {
            let (low, high) = ends(&of(fill, DType::I32, 1, i32::MAX.into()));
            assert!(low == 1 && high < 1 << 31, "{fill:?}");
        }
        assert_eq!(ends(&of(Fill::Large, DType::I64, -1024, 1024)), (-1024, 1024));
        let flag = |fill| fill_inputs(fill, &[spec("f", DType::Bool, &[])], &FillOptions::default()).unwrap().get("f").unwrap().to_f64();
        assert_eq!((flag(Fill::Zeros), flag(Fill::Normal)), (vec![0.0], vec![1.0]));
    }

    #[test]
    fn unknown_sizes_need_a_value() {
        let value = ValueInfo {
            name: "x".to_owned(),
            dtype: Some(DType::F32),
            dims: vec![None, Some(4)],
            symbols: vec!["N".to_owned(), String::new()],
        };
        let error = InputSpec::from_values(std::slice::from_ref(&value), |_, _| None).unwrap_err().to_string();
        assert!(error.contains("`x`") && error.contains("`N`"), "{error}");
        assert_eq!(InputSpec::from_values(&[value], |_, _| Some(2)).unwrap()[0].shape, [2, 4]);
    }
}
