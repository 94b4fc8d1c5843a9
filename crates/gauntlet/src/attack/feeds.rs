//! Inputs that distinguish models: the ends of every type, their neighbours, and numbers of all
//! widths.

use regraft_ir::{Class, DType};
use regraft_runtime::{Feeds, HostTensor};

use super::build::Input;
use super::catalogue::Fill;
use super::number;
use crate::generate::random::Random;

/// Floating-point numbers not near a rounding boundary, in every type.
const REALS: &[f64] = &[
    0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.1, -0.1, 0.75, -0.3, 4.0, 5.0, 7.0, -7.0, 10.0, 16.0, -31.0,
    0.001, -0.01, 60.0, 100.0,
];
/// Numbers of other magnitudes.
const LARGE: &[f64] = &[
    16777215.0,
    16777217.0,
    -16777217.0,
    2147483648.0,
    -2147483649.0,
    4294967296.0,
    9007199254740993.0,
    1e10,
    -1e15,
    1e19,
    -1e19,
    1e20,
    1e30,
    -1e30,
    1e-20,
    1e-30,
    127.5,
    128.0,
    -129.0,
    255.0,
    256.0,
    65535.0,
    70000.0,
    88.0,
    100.0,
    -100.0,
    710.0,
];
/// Values that are not finite numbers.
const WILD: &[f64] = &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// Inputs for run number `run`; the first only has numbers near zero.
pub fn feeds(inputs: &[Input], sizes: &[Vec<usize>], fill: Fill, run: usize, random: &mut Random) -> Option<Feeds> {
    let mut feeds = Feeds::new();
    for (input, shape) in inputs.iter().zip(sizes) {
        let count = shape.iter().product::<usize>();
        let mut bytes = Vec::with_capacity(count * input.ty.size());
        for _ in 0..count {
            bytes.extend(element(input, fill, run, random)?);
        }
        let ty = regraft_runtime::DType::from_onnx(input.ty.to_onnx());
        feeds.insert(input.name.clone(), HostTensor::from_bytes(ty, shape.clone(), &bytes).ok()?);
    }
    Some(feeds)
}

fn element(input: &Input, fill: Fill, run: usize, random: &mut Random) -> Option<Vec<u8>> {
    if let Some((low, high)) = input.range {
        return number::bytes(&random.int(low, high).to_string(), input.ty);
    }
    match input.ty.class() {
        Class::Bool => Some(vec![random.below(2) as u8]),
        Class::Int => whole(input.ty, run, random),
        Class::Real => {
            let value = match (fill, random.below(4)) {
                (_, 0) if run > 0 => random.real(-8.0, 8.0),
                (Fill::Large | Fill::Wild, 1) => random.pick(LARGE),
                (Fill::Wild, 2) => random.pick(WILD),
                _ => random.pick(REALS),
            };
            number::bytes(&value.to_string().replace("NaN", "nan"), input.ty)
        }
        Class::Other => None,
    }
}

/// An integer: small, an end of the type, next to a power of two, or any bit pattern.
fn whole(ty: DType, run: usize, random: &mut Random) -> Option<Vec<u8>> {
    let (least, largest) = number::limits(ty)?;
    let bits = 8 * ty.size();
    let value = match random.below(if run == 0 { 3 } else { 8 }) {
        0..=2 => i128::from(random.int(-4, 9)),
        3 => least + i128::from(random.int(0, 2)),
        4 => largest - i128::from(random.int(0, 2)),
        5 | 6 => {
            let power = 1i128 << random.below(bits);
            let sign = if random.once_in(3) { -1 } else { 1 };
            sign * power + i128::from(random.int(-1, 1))
        }
        _ => return Some(random.next().to_le_bytes()[..ty.size()].to_vec()),
    };
    // What the type does not hold is its absolute value there, or its end.
    let value = if value < least && least == 0 { -value } else { value };
    Some(value.clamp(least, largest).to_le_bytes()[..ty.size()].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_every_type_are_among_the_values() {
        let mut random = Random::new(3, 0);
        for name in ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"] {
            let ty = DType::from_name(name).unwrap();
            let input = Input { name: "x".into(), ty, dims: vec![], range: None };
            let all = feeds(&[input], &[vec![400]], Fill::Moderate, 1, &mut random).unwrap();
            let values = all.get("x").unwrap();
            let chunks: Vec<&[u8]> = values.bytes().chunks(ty.size()).collect();
            for text in ["min", "max", "min+1", "max-1", "0", "1"] {
                assert!(chunks.contains(&&number::bytes(text, ty).unwrap()[..]), "{name} lacks {text}");
            }
        }
    }
}
