//! The catalogue's numbers, exactly, in every element type.

use regraft_ir::{Class, Const, DType};

/// The little-endian bytes of `text` as an element of type `ty`; `None` if the type has no such
/// number.
///
/// `3`, `0.1`, `1e-5`, `inf`, `nan`, `true`, `min`, `max`, `min+1`, `2^53+1`; `0.1'` is the next
/// number above `0.1` in the type, and `0.1~f32` the number nearest to `0.1` in single precision.
pub fn bytes(text: &str, ty: DType) -> Option<Vec<u8>> {
    let (text, through) = text.split_once('~').map_or((text, None), |(text, name)| (text, Some(name)));
    let base = text.trim_end_matches('\'');
    let ups = text.len() - base.len();
    let mut bytes = match through {
        None => plain(base, ty)?,
        Some(name) => {
            let narrow = DType::from_name(name)?;
            let narrow = Const::new(narrow, &[], plain(base, narrow)?.into())?;
            Const::from_f64(ty, &[], &narrow.to_f64()?)?.bytes().to_vec()
        }
    };
    for _ in 0..ups {
        next_above(&mut bytes, ty);
    }
    Some(bytes)
}

fn plain(text: &str, ty: DType) -> Option<Vec<u8>> {
    match ty.class() {
        Class::Real => real(text, ty),
        Class::Int | Class::Bool => whole(text, ty),
        Class::Other => None,
    }
}

fn real(text: &str, ty: DType) -> Option<Vec<u8>> {
    let value = match (text, power(text)) {
        (_, Some(value)) => value as f64,
        ("max" | "min", _) => {
            let largest = match ty {
                DType::F16 => 65504.0,
                DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
                DType::F32 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            if text == "max" { largest } else { -largest }
        }
        // The nearest single, not the one nearest to the nearest double.
        _ if ty == DType::F32 => f64::from(text.parse::<f32>().ok()?),
        _ => text.parse().ok()?,
    };
    Some(Const::from_f64(ty, &[], &[value])?.bytes().to_vec())
}

fn whole(text: &str, ty: DType) -> Option<Vec<u8>> {
    let (least, largest) = limits(ty)?;
    let value = match text {
        "false" => 0,
        "true" => 1,
        _ => match (text.strip_prefix("min"), text.strip_prefix("max"), power(text)) {
            (Some(rest), ..) => least + offset(rest)?,
            (_, Some(rest), _) => largest + offset(rest)?,
            (.., Some(value)) => value,
            _ => text.parse().ok()?,
        },
    };
    (least..=largest).contains(&value).then(|| value.to_le_bytes()[..ty.size()].to_vec())
}

/// `2^53+1` and the like.
fn power(text: &str) -> Option<i128> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let rest = text.strip_prefix("2^")?;
    let end = rest.find(['+', '-']).unwrap_or(rest.len());
    let exponent: u32 = rest[..end].parse().ok()?;
    Some(sign * 1i128.checked_shl(exponent)? + offset(&rest[end..])?)
}

fn offset(text: &str) -> Option<i128> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// The least and the largest number of an integer type.
pub fn limits(ty: DType) -> Option<(i128, i128)> {
    let bits = 8 * ty.size() as u32;
    match ty {
        DType::Bool => Some((0, 1)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

/// The next bit pattern: for a positive float, the next float above.
fn next_above(bytes: &mut [u8], ty: DType) {
    let negative = ty.is_float() && bytes.last().is_some_and(|b| b & 0x80 != 0);
    for byte in bytes {
        let (next, carried) = if negative { byte.overflowing_sub(1) } else { byte.overflowing_add(1) };
        *byte = next;
        if !carried {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let double = |text: &str| f64::from_le_bytes(bytes(text, DType::F64).unwrap().try_into().unwrap());
        assert_eq!((double("0.1"), double("0.1~f32")), (0.1, f64::from(0.1f32)));
        assert_eq!((double("1'"), double("-1'")), (1.0 + f64::EPSILON, -1.0 + f64::EPSILON / 2.0));
        assert_eq!(bytes("2^53+1", DType::I64), Some(9_007_199_254_740_993i64.to_le_bytes().to_vec()));
        assert_eq!((bytes("max-1", DType::U8), bytes("min", DType::I8)), (Some(vec![254]), Some(vec![128])));
        assert_eq!((bytes("-1", DType::U8), bytes("0.5", DType::I32), bytes("256", DType::U8)), (None, None, None));
    }
}
