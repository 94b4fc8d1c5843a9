//! Tensors and their types as ONNX Runtime has them.

use ort::memory::Allocator;
use ort::value::{DynTensor, DynTensorValueType, DynValue, Outlet, Shape, TensorElementType, ValueType};

use crate::{DType, HostTensor, TensorError, ValueInfo};

/// What an input or output is.
pub(super) fn value_info(outlet: &Outlet) -> ValueInfo {
    let name = outlet.name().to_owned();
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, dimension_symbols } => ValueInfo {
            name,
            dtype: Some(from_element_type(*ty)),
            dims: shape.iter().map(|d| usize::try_from(*d).ok()).collect(),
            symbols: dimension_symbols.iter().map(|s| s.to_string()).collect(),
        },
        _ => ValueInfo { name, dtype: None, dims: Vec::new(), symbols: Vec::new() },
    }
}

/// Why a runtime's value cannot become a tensor.
pub(super) enum Conversion {
    Kind(String),
    Tensor(TensorError),
}

/// A runtime's value as a tensor.
pub(super) fn from_ort(value: &DynValue) -> Result<HostTensor, Conversion> {
    let ValueType::Tensor { ty, shape, .. } = value.dtype() else {
        return Err(Conversion::Kind(value.dtype().to_string()));
    };
    let dtype = from_element_type(*ty);
    if dtype.size().is_none() {
        return Err(Conversion::Kind(ty.to_string()));
    }
    let shape: Vec<usize> = shape.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
    let mut tensor = HostTensor::zeros(dtype, shape).map_err(Conversion::Tensor)?;
    let view = value.view().downcast::<DynTensorValueType>().map_err(|e| Conversion::Kind(e.to_string()))?;
    let bytes = tensor.bytes_mut();
    if !bytes.is_empty() {
        let data = view.data_ptr().cast::<u8>();
        // SAFETY: the tensor is on the CPU and holds as many bytes as its element type and shape
        // say.
        bytes.copy_from_slice(unsafe { std::slice::from_raw_parts(data, bytes.len()) });
    }
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(tensor)
}

/// A tensor as a runtime's value.
pub(super) fn to_ort(tensor: &HostTensor) -> ort::Result<DynValue> {
    let shape = Shape::new(tensor.shape().iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)));
    let mut value = DynTensor::new(&Allocator::default(), to_element_type(tensor.dtype()), shape)?;
    let bytes = tensor.bytes();
    if !bytes.is_empty() {
        let data = value.data_ptr_mut().cast::<u8>();
        // SAFETY: the value was just allocated on the CPU with the tensor's element type and shape,
        // and nothing else holds it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
    }
    Ok(value.into_dyn())
}

fn from_element_type(ty: TensorElementType) -> DType {
    match ty {
        TensorElementType::Float32 => DType::F32,
        TensorElementType::Float64 => DType::F64,
        TensorElementType::Float16 => DType::F16,
        TensorElementType::Bfloat16 => DType::BF16,
        TensorElementType::Int8 => DType::I8,
        TensorElementType::Int16 => DType::I16,
        TensorElementType::Int32 => DType::I32,
        TensorElementType::Int64 => DType::I64,
        TensorElementType::Uint8 => DType::U8,
        TensorElementType::Uint16 => DType::U16,
        TensorElementType::Uint32 => DType::U32,
        TensorElementType::Uint64 => DType::U64,
        TensorElementType::Bool => DType::Bool,
        TensorElementType::String => DType::String,
        _ => DType::Other,
    }
}

fn to_element_type(dtype: DType) -> TensorElementType {
    match dtype {
        DType::F32 => TensorElementType::Float32,
        DType::F64 => TensorElementType::Float64,
        DType::F16 => TensorElementType::Float16,
        DType::BF16 => TensorElementType::Bfloat16,
        DType::I8 => TensorElementType::Int8,
        DType::I16 => TensorElementType::Int16,
        DType::I32 => TensorElementType::Int32,
        DType::I64 => TensorElementType::Int64,
        DType::U8 => TensorElementType::Uint8,
        DType::U16 => TensorElementType::Uint16,
        DType::U32 => TensorElementType::Uint32,
        DType::U64 => TensorElementType::Uint64,
        DType::Bool => TensorElementType::Bool,
        DType::String => TensorElementType::String,
        DType::Other => TensorElementType::Undefined,
    }
}
