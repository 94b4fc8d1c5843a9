//! Made-up inputs, the same for the same seed on every machine.

use std::collections::{BTreeMap, BTreeSet};

use half::{bf16, f16};

use crate::random::Random;
use crate::{DType, Feeds, HostTensor, RuntimeError, ValueInfo};

/// Kinds of made-up values. Booleans and small integers are random in all but [`Fill::Zeros`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Mean 0, variance 1, within ±6. Free integers are within ±9.
    Normal,
    /// All zeros.
    Zeros,
    /// Either sign, magnitudes spread evenly over the powers of two from 2⁻¹⁰ to 2¹⁰; one in eight of those above ½ is rounded to a multiple of it.
    /// Free integers are these without their fractions, as far as their type has them.
    Large,
}

impl Fill {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Zeros, Self::Large];

    /// Word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Zeros => "zeros",
            Self::Large => "large",
        }
    }
}

/// Choices for made-up values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillOptions {
    /// Seed. Values of an input depend on the seed and the input's name, type and shape only.
    pub seed: u64,
    /// Largest integer; integers are in `0..=int_max`. Small, so that integers that serve as indices stay valid.
    pub int_max: u64,
    /// Largest integer of single inputs, by name.
    pub int_max_of: BTreeMap<String, u64>,
    /// Names of integer inputs to which `int_max` does not apply: any integer will do.
    pub free: BTreeSet<String>,
}

impl Default for FillOptions {
    fn default() -> Self {
        Self { seed: 0, int_max: 1, int_max_of: BTreeMap::new(), free: BTreeSet::new() }
    }
}

/// An input with all its sizes known.
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
    /// Specs for declared inputs. `bind` gives the size of each dimension that is not fixed (the value and the axis).
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
    if fill == Fill::Zeros {
        return Ok(tensor);
    }
    let mut random = Random::named(options.seed, &input.name);
    let limit = options.int_max_of.get(&input.name).copied().unwrap_or(options.int_max);
    let mut float = |fill| match fill {
        Fill::Large => large(&mut random),
        _ => random.normal(),
    };
    match input.dtype {
        DType::F32 => write(&mut tensor, || (float(fill) as f32).to_ne_bytes()),
        DType::F64 => write(&mut tensor, || float(fill).to_ne_bytes()),
        DType::F16 => write(&mut tensor, || f16::from_f64(float(fill)).to_ne_bytes()),
        DType::BF16 => write(&mut tensor, || bf16::from_f64(float(fill)).to_ne_bytes()),
        // The two values of a flag are two branches: zeros are the one, and this is the other.
        DType::Bool if tensor.len() == 1 => tensor.bytes_mut().fill(1),
        dtype => {
            let (low, high) = range(dtype);
            let free = options.free.contains(&input.name);
            let limit = if dtype == DType::Bool { 1 } else { limit };
            let mut int = || match fill {
                _ if !free => random.below(limit.saturating_add(1)).into(),
                Fill::Large => large(&mut random) as i128,
                _ => i128::from(random.below(19)) - 9,
            };
            let size = dtype.size().unwrap_or(1);
            for element in tensor.bytes_mut().chunks_exact_mut(size) {
                element.copy_from_slice(&int().clamp(low, high).to_le_bytes()[..size]);
            }
        }
    }
    Ok(tensor)
}

/// The least and the greatest value of an integer type.
fn range(dtype: DType) -> (i128, i128) {
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

/// Exact on every machine: a mantissa in [1, 2) times a power of two.
fn large(random: &mut Random) -> f64 {
    let exponent = random.below(20) as i32 - 10;
    let magnitude = (1.0 + random.unit()) * f64::from_bits(((1023 + exponent) as u64) << 52);
    let bits = random.next_u64();
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
        let limited = FillOptions { int_max_of: [("y".to_owned(), 0)].into(), ..options };
        let zeros = fill_inputs(Fill::Large, &[y], &limited).unwrap();
        assert!(zeros.get("y").unwrap().values::<i64>().unwrap().iter().all(|v| *v == 0));
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
    fn free_integers_have_either_sign_and_fill_their_type() {
        let options = FillOptions { free: ["x".to_owned()].into(), ..FillOptions::default() };
        let of = |fill, dtype| fill_inputs(fill, &[spec("x", dtype, &[1000])], &options).unwrap().get("x").unwrap().to_f64();
        let ends = |values: Vec<f64>| values.iter().fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(*v), high.max(*v)));
        assert_eq!(ends(of(Fill::Normal, DType::I32)), (-9.0, 9.0));
        assert_eq!(ends(of(Fill::Large, DType::I8)), (-128.0, 127.0));
        assert_eq!(ends(of(Fill::Large, DType::U8)), (0.0, 255.0));
        let (low, high) = ends(of(Fill::Large, DType::I64));
        assert!(low < -900.0 && high > 900.0);
        let flag = |fill| fill_inputs(fill, &[spec("f", DType::Bool, &[])], &options).unwrap().get("f").unwrap().to_f64();
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
