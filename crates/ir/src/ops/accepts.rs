//! Which element types an ONNX operator accepts, and since which opset.

use crate::dtype::DType;
use crate::error::TypeError;
use crate::onnx::NoSpelling;

/// A set of element types that Regraft computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u32);

/// From this opset on, these element types are accepted as well.
pub(crate) type Since = (i64, Types);

const fn one(bit: u32) -> Types {
    Types(1 << bit)
}

impl Types {
    pub(crate) const F32: Types = one(0);
    pub(crate) const F64: Types = one(1);
    pub(crate) const F16: Types = one(2);
    pub(crate) const BF16: Types = one(3);
    pub(crate) const I32: Types = one(4);
    pub(crate) const I64: Types = one(5);
    pub(crate) const U32: Types = one(6);
    pub(crate) const U64: Types = one(7);
    pub(crate) const I8: Types = one(8);
    pub(crate) const I16: Types = one(9);
    pub(crate) const U8: Types = one(10);
    pub(crate) const U16: Types = one(11);
    pub(crate) const BOOL: Types = one(12);
    /// The IEEE floats.
    pub(crate) const FLOATS: Types = Types::F32.and(Types::F64).and(Types::F16);
    /// 32-bit and 64-bit integers.
    pub(crate) const WIDE_INTS: Types = Types::I32.and(Types::I64).and(Types::U32).and(Types::U64);
    /// 8-bit and 16-bit integers.
    pub(crate) const NARROW_INTS: Types = Types::I8.and(Types::I16).and(Types::U8).and(Types::U16);
    /// Signed integers.
    pub(crate) const SIGNED_INTS: Types = Types::I8.and(Types::I16).and(Types::I32).and(Types::I64);
    /// Unsigned integers.
    pub(crate) const UNSIGNED_INTS: Types = Types::U8.and(Types::U16).and(Types::U32).and(Types::U64);
    /// All integers.
    pub(crate) const INTS: Types = Types::WIDE_INTS.and(Types::NARROW_INTS);

    /// Both sets.
    pub(crate) const fn and(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    fn has(self, dtype: DType) -> bool {
        let set = match dtype {
            DType::F32 => Types::F32,
            DType::F64 => Types::F64,
            DType::F16 => Types::F16,
            DType::BF16 => Types::BF16,
            DType::I32 => Types::I32,
            DType::I64 => Types::I64,
            DType::U32 => Types::U32,
            DType::U64 => Types::U64,
            DType::I8 => Types::I8,
            DType::I16 => Types::I16,
            DType::U8 => Types::U8,
            DType::U16 => Types::U16,
            DType::Bool => Types::BOOL,
            DType::Str | DType::Other(_) => Types(0),
        };
        self.0 & set.0 != 0
    }
}

/// The operator accepts elements of type `dtype` at some opset.
pub(crate) fn check(op: &str, rows: &[Since], dtype: DType) -> Result<(), TypeError> {
    if rows.iter().any(|(_, types)| types.has(dtype)) {
        Ok(())
    } else {
        Err(TypeError::invalid(format!("{op} is not defined for elements of type {dtype}")))
    }
}

/// The operator exists at opset `version`, and accepts elements of type `dtype` there.
pub(crate) fn spelled(op: &'static str, rows: &[Since], version: i64, dtype: DType) -> Result<(), NoSpelling> {
    let why = match (rows.first(), rows.iter().find(|(_, types)| types.has(dtype))) {
        (_, Some((first, _))) if version >= *first => return Ok(()),
        (Some((first, _)), _) if version < *first => format!("it exists since opset {first}, the model has {version}"),
        (_, Some((first, _))) => format!("it takes {dtype} since opset {first}, the model has {version}"),
        (_, None) => format!("it takes no {dtype}"),
    };
    Err(NoSpelling { op, why })
}
