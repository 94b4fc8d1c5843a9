//! Element types of tensors.

use std::fmt;

/// Element type of a tensor at the interface of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary16.
    F16,
    /// Brain floating point, 16 bits.
    BF16,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// One byte per element, 0 or 1.
    Bool,
    /// Text. Models may have such values; this crate does not support them.
    String,
    /// A type that this crate does not support (complex, 8-bit and smaller floats, sub-byte
    /// integers).
    Other,
}

impl DType {
    /// Bytes per element, or `None` for unsupported types.
    pub fn size(self) -> Option<usize> {
        Some(match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::String | Self::Other => return None,
        })
    }

    /// Whether values are floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F16 | Self::BF16)
    }

    /// The type for ONNX's `TensorProto.DataType` number.
    pub fn from_onnx(data_type: i32) -> Self {
        match data_type {
            1 => Self::F32,
            2 => Self::U8,
            3 => Self::I8,
            4 => Self::U16,
            5 => Self::I16,
            6 => Self::I32,
            7 => Self::I64,
            8 => Self::String,
            9 => Self::Bool,
            10 => Self::F16,
            11 => Self::F64,
            12 => Self::U32,
            13 => Self::U64,
            16 => Self::BF16,
            _ => Self::Other,
        }
    }

    /// ONNX's number of this type; 0 for unsupported types.
    pub fn to_onnx(self) -> i32 {
        match self {
            Self::Other => 0,
            known => (1..=16).find(|code| Self::from_onnx(*code) == known).unwrap_or(0),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Other => "an unsupported element type",
        })
    }
}
