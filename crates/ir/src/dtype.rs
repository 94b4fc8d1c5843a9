//! Element types.

use std::fmt;

/// The element type of a tensor, with the codes of ONNX `TensorProto.DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// UTF-8 strings.
    Str,
    /// Booleans, one byte each.
    Bool,
    /// 16-bit IEEE float.
    F16,
    /// 64-bit IEEE float.
    F64,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// Brain float.
    BF16,
    /// Any other code (complex, 8-bit floats, 4-bit integers...): carried, never computed with.
    Other(i32),
}

/// Broad families of element types: the reference executor keeps one representation for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Floating point.
    Real,
    /// Signed and unsigned integers.
    Int,
    /// Booleans.
    Bool,
    /// Strings and exotic types: no arithmetic here.
    Other,
}

impl DType {
    const TABLE: [(DType, i32, &'static str, usize); 14] = [
        (DType::F32, 1, "f32", 4),
        (DType::U8, 2, "u8", 1),
        (DType::I8, 3, "i8", 1),
        (DType::U16, 4, "u16", 2),
        (DType::I16, 5, "i16", 2),
        (DType::I32, 6, "i32", 4),
        (DType::I64, 7, "i64", 8),
        (DType::Str, 8, "str", 0),
        (DType::Bool, 9, "bool", 1),
        (DType::F16, 10, "f16", 2),
        (DType::F64, 11, "f64", 8),
        (DType::U32, 12, "u32", 4),
        (DType::U64, 13, "u64", 8),
        (DType::BF16, 16, "bf16", 2),
    ];

    /// The type with this ONNX code.
    pub fn from_onnx(code: i32) -> DType {
        Self::TABLE.iter().find(|row| row.1 == code).map_or(DType::Other(code), |row| row.0)
    }

    /// The ONNX code of this type.
    pub fn to_onnx(self) -> i32 {
        match self {
            DType::Other(code) => code,
            known => Self::TABLE.iter().find(|row| row.0 == known).map_or(0, |row| row.1),
        }
    }

    /// The type with this short name (`f32`, `i64`, ...).
    pub fn from_name(name: &str) -> Option<DType> {
        Self::TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// Bytes per element; 0 if the width is not fixed or unknown.
    pub fn size(self) -> usize {
        Self::TABLE.iter().find(|row| row.0 == self).map_or(0, |row| row.3)
    }

    /// Bytes of a tensor of this shape; 0 if the width is not fixed or unknown.
    pub fn bytes(self, shape: &[usize]) -> f64 {
        shape.iter().map(|size| *size as f64).product::<f64>() * self.size() as f64
    }

    /// The family that determines how the reference executor represents it.
    pub fn class(self) -> Class {
        match self {
            DType::F32 | DType::F16 | DType::F64 | DType::BF16 => Class::Real,
            DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::I32 | DType::I64 | DType::U32 | DType::U64 => Class::Int,
            DType::Bool => Class::Bool,
            DType::Str | DType::Other(_) => Class::Other,
        }
    }

    /// True for floating-point types.
    pub fn is_float(self) -> bool {
        self.class() == Class::Real
    }

    /// Whether every value of this type is also a value of type `wider`, so that a cast is
    /// lossless. Booleans count as the numbers 0 and 1.
    pub fn embeds(self, wider: DType) -> bool {
        let fits = |narrow: Numbers, wide: Numbers| {
            narrow.digits <= wide.digits && narrow.reach <= wide.reach && (wide.negative || !narrow.negative)
        };
        self == wider || self.numbers().zip(wider.numbers()).is_some_and(|(narrow, wide)| fits(narrow, wide))
    }

    fn numbers(self) -> Option<Numbers> {
        let whole = |digits, negative| Some(Numbers { digits, reach: 0, negative });
        let float = |digits, reach| Some(Numbers { digits, reach, negative: true });
        match self {
            DType::Bool => whole(1, false),
            DType::U8 => whole(8, false),
            DType::I8 => whole(7, true),
            DType::U16 => whole(16, false),
            DType::I16 => whole(15, true),
            DType::U32 => whole(32, false),
            DType::I32 => whole(31, true),
            DType::U64 => whole(64, false),
            DType::I64 => whole(63, true),
            DType::F16 => float(11, 5),
            DType::BF16 => float(8, 8),
            DType::F32 => float(24, 8),
            DType::F64 => float(53, 11),
            DType::Str | DType::Other(_) => None,
        }
    }
}

/// The numbers of a type.
struct Numbers {
    /// Number of bits up to which every integer is among them, signs apart.
    digits: u32,
    /// Bits of the exponent; 0 for integers.
    reach: u32,
    /// Whether some are negative.
    negative: bool,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DType::Other(code) => write!(f, "dtype{code}"),
            known => f.write_str(Self::TABLE.iter().find(|row| row.0 == *known).map_or("?", |row| row.2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_embed_where_no_number_is_lost() {
        let expected = [
            ("bool", "u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64"),
            ("u8", "u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64"),
            ("i8", "i16 i32 i64 f16 bf16 f32 f64"),
            ("u16", "u32 i32 u64 i64 f32 f64"),
            ("i16", "i32 i64 f32 f64"),
            ("u32", "u64 i64 f64"),
            ("i32", "i64 f64"),
            ("u64", ""),
            ("i64", ""),
            ("f16", "f32 f64"),
            ("bf16", "f32 f64"),
            ("f32", "f64"),
            ("f64", ""),
            ("str", ""),
        ];
        for (name, wider) in expected {
            let narrow = DType::from_name(name).unwrap();
            for (other, _, text, _) in DType::TABLE {
                assert_eq!(narrow.embeds(other), narrow == other || wider.split(' ').any(|w| w == text), "{name} to {text}");
            }
        }
        assert!(DType::Other(77).embeds(DType::Other(77)) && !DType::Other(77).embeds(DType::F64));
    }
}
