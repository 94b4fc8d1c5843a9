//! `TensorProto` to [`Const`] and back.

use std::fmt::Write;

use bytes::Bytes;
use regraft_ir::{Const, DType};

use crate::error::LoadFault;
use crate::proto::TensorProto;

/// What a `TensorProto` is.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// A dense tensor of a type that Regraft computes with; shares the bytes of the file.
    Const(Const),
    /// A tensor of strings or of an exotic type: carried only.
    Exotic(DType),
    /// The element type code is not defined by ONNX.
    Unknown(i32),
}

/// The largest element type code of the vendored schema.
const LAST_DTYPE: i32 = 28;

/// Decodes a tensor whose external data, if any, is already in `raw_data`.
pub(crate) fn decode(tensor: &TensorProto) -> Result<Decoded, LoadFault> {
    let code = tensor.data_type();
    if !(1..=LAST_DTYPE).contains(&code) {
        return Ok(Decoded::Unknown(code));
    }
    let elements = elements(tensor)?;
    let dtype = DType::from_onnx(code);
    let misfit = |need: u64, have: u64| {
        let mut ty = format!("{dtype}[");
        for (at, d) in tensor.dims.iter().enumerate() {
            let _ = write!(ty, "{}{d}", if at == 0 { "" } else { "," });
        }
        LoadFault::TensorBytes { tensor: tensor.name().to_string(), ty: ty + "]", need, have }
    };
    if dtype.size() == 0 {
        return match exotic_bytes(tensor, elements) {
            Some((need, have)) if need != have => Err(misfit(need, have)),
            _ => Ok(Decoded::Exotic(dtype)),
        };
    }
    let bytes = match &tensor.raw_data {
        Some(raw) => raw.clone(),
        None => typed_bytes(tensor, dtype),
    };
    let need = elements.saturating_mul(dtype.size() as u64);
    let value = Const::new(dtype, &tensor.dims, bytes.clone()).map(|value| value.released_by(crate::mapped::release));
    value.map(Decoded::Const).ok_or_else(|| misfit(need, bytes.len() as u64))
}

/// Number of elements, or why the shape is impossible.
fn elements(tensor: &TensorProto) -> Result<u64, LoadFault> {
    tensor
        .dims
        .iter()
        .try_fold(1u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?))
        .filter(|n| *n <= i64::MAX as u64 / 16)
        .ok_or_else(|| LoadFault::Shape { tensor: tensor.name().to_string(), shape: tensor.dims.clone() })
}

/// Units needed and stored for an exotic tensor, if its packing is known.
fn exotic_bytes(tensor: &TensorProto, elements: u64) -> Option<(u64, u64)> {
    use crate::proto::tensor_proto::DataType as T;
    let code = T::try_from(tensor.data_type()).ok()?;
    if code == T::String {
        return Some((elements, tensor.string_data.len() as u64));
    }
    let bits: u64 = match code {
        T::Complex64 => 64,
        T::Complex128 => 128,
        T::Uint4 | T::Int4 | T::Float4e2m1 => 4,
        T::Uint2 | T::Int2 => 2,
        T::Float8e4m3fn | T::Float8e4m3fnuz | T::Float8e5m2 | T::Float8e5m2fnuz | T::Float8e8m0 => 8,
        _ => return None,
    };
    let raw = tensor.raw_data.as_ref()?;
    Some(((elements * bits).div_ceil(8), raw.len() as u64))
}

/// The typed data fields as little-endian bytes.
fn typed_bytes(tensor: &TensorProto, dtype: DType) -> Bytes {
    let size = dtype.size();
    match dtype {
        DType::F32 => tensor.float_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::F64 => tensor.double_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::I64 => tensor.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::U64 | DType::U32 => tensor.uint64_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(size)).collect(),
        _ => tensor.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(size)).collect(),
    }
}

/// A tensor with this content; the bytes are shared.
pub(crate) fn encode(name: &str, value: &Const) -> TensorProto {
    TensorProto {
        name: Some(name.to_string()),
        dims: value.shape().to_vec(),
        data_type: Some(value.dtype().to_onnx()),
        raw_data: Some(value.bytes().clone()),
        ..TensorProto::default()
    }
}

/// Bytes of a tensor's payload, whichever field holds it.
pub(crate) fn payload(tensor: &TensorProto) -> u64 {
    let typed = tensor.float_data.len() * 4
        + tensor.int32_data.len() * 4
        + tensor.int64_data.len() * 8
        + tensor.double_data.len() * 8
        + tensor.uint64_data.len() * 8
        + tensor.string_data.iter().map(Vec::len).sum::<usize>();
    (typed + tensor.raw_data.as_ref().map_or(0, Bytes::len)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(code: i32, dims: &[i64]) -> TensorProto {
        TensorProto { name: Some("t".into()), data_type: Some(code), dims: dims.to_vec(), ..TensorProto::default() }
    }

    #[test]
    fn every_typed_field_becomes_bytes() {
        let cases = [
            (TensorProto { float_data: vec![1.5, -2.0], ..tensor(1, &[2]) }, vec![1.5, -2.0]),
            (TensorProto { int32_data: vec![200, 3], ..tensor(2, &[2]) }, vec![200.0, 3.0]),
            (TensorProto { int32_data: vec![-5], ..tensor(3, &[1]) }, vec![-5.0]),
            (TensorProto { int32_data: vec![-70000], ..tensor(6, &[]) }, vec![-70000.0]),
            (TensorProto { int64_data: vec![1 << 40], ..tensor(7, &[1]) }, vec![(1u64 << 40) as f64]),
            (TensorProto { int32_data: vec![0, 1], ..tensor(9, &[2]) }, vec![0.0, 1.0]),
            (TensorProto { int32_data: vec![0x3c00], ..tensor(10, &[1]) }, vec![1.0]),
            (TensorProto { double_data: vec![0.1], ..tensor(11, &[1]) }, vec![0.1]),
            (TensorProto { uint64_data: vec![4_000_000_000], ..tensor(12, &[1]) }, vec![4_000_000_000.0]),
            (TensorProto { int32_data: vec![0x3f80], ..tensor(16, &[1]) }, vec![1.0]),
        ];
        for (proto, want) in cases {
            let code = proto.data_type();
            let Decoded::Const(value) = decode(&proto).unwrap() else { panic!("type {code} is dense") };
            assert_eq!(value.to_f64().unwrap(), want, "type {code}");
            let Decoded::Const(again) = decode(&encode("t", &value)).unwrap() else { panic!("type {code} is dense") };
            assert_eq!(again, value, "type {code}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let raw = |n: usize| Some(Bytes::from(vec![0; n]));
        assert!(matches!(
            decode(&TensorProto { raw_data: raw(7), ..tensor(1, &[2]) }),
            Err(LoadFault::TensorBytes { need: 8, have: 7, .. })
        ));
        assert!(matches!(decode(&tensor(1, &[3])), Err(LoadFault::TensorBytes { need: 12, have: 0, .. })));
        assert!(matches!(decode(&tensor(1, &[-1])), Err(LoadFault::Shape { .. })));
        assert!(matches!(decode(&tensor(1, &[i64::MAX, 8])), Err(LoadFault::Shape { .. })));
        assert!(matches!(decode(&tensor(99, &[1])), Ok(Decoded::Unknown(99))));
        assert!(matches!(decode(&TensorProto { raw_data: raw(2), ..tensor(22, &[3]) }), Ok(Decoded::Exotic(DType::Other(22)))));
        assert!(matches!(
            decode(&TensorProto { raw_data: raw(3), ..tensor(22, &[3]) }),
            Err(LoadFault::TensorBytes { need: 2, have: 3, .. })
        ));
    }
}
