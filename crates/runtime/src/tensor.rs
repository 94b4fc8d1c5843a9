//! Dense tensors in host memory.

use half::{bf16, f16};

use crate::DType;

/// Why bytes do not make a tensor. Always the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum TensorError {
    /// The shape needs a different number of bytes.
    #[error("a {dtype} tensor of shape {shape:?} needs {need} bytes, {have} were given")]
    Length { dtype: DType, shape: Vec<usize>, need: usize, have: usize },
    /// The shape describes more bytes than memory can hold.
    #[error("shape {shape:?} is too large for memory")]
    TooLarge { shape: Vec<usize> },
    /// Tensors of this type are not supported.
    #[error("tensors of {dtype} are not supported; use a numeric or boolean type")]
    Unsupported { dtype: DType },
    /// A boolean byte is neither 0 nor 1.
    #[error("element {index} of a bool tensor is {value}, expected 0 or 1")]
    Bool { index: usize, value: u8 },
}

/// A dense tensor in host memory: row-major, native byte order, aligned to 8 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<usize>,
    /// Backing words; the bytes after `len` are zero.
    words: Vec<u64>,
    len: usize,
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensor elements can be viewed as. Every bit pattern is a valid value.
pub trait Element: sealed::Sealed + Copy + 'static {
    /// The element type that this views.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),+ $(,)?) => {
        $(impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$d;
        })+
    };
}
elements!(f32 => F32, f64 => F64, f16 => F16, bf16 => BF16, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64);

impl HostTensor {
    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: Vec<usize>) -> Result<Self, TensorError> {
        let len = byte_len(dtype, &shape)?;
        // Failing to allocate a vector aborts the program.
        if Vec::<u64>::new().try_reserve_exact(len.div_ceil(8)).is_err() {
            return Err(TensorError::TooLarge { shape });
        }
        Ok(Self { dtype, shape, words: vec![0; len.div_ceil(8)], len })
    }

    /// A tensor with a copy of `bytes`: row-major, native byte order, exactly as long as the shape
    /// requires.
    pub fn from_bytes(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Result<Self, TensorError> {
        let need = byte_len(dtype, &shape)?;
        if need != bytes.len() {
            return Err(TensorError::Length { dtype, shape, need, have: bytes.len() });
        }
        if dtype == DType::Bool
            && let Some((index, &value)) = bytes.iter().enumerate().find(|(_, b)| **b > 1)
        {
            return Err(TensorError::Bool { index, value });
        }
        let mut tensor = Self { dtype, shape, words: vec![0; need.div_ceil(8)], len: need };
        tensor.bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// A tensor with a copy of `values`.
    pub fn from_values<T: Element>(shape: Vec<usize>, values: &[T]) -> Result<Self, TensorError> {
        // SAFETY: `Element` is only implemented for plain numbers without padding; any of their
        // bytes may be read.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Self::from_bytes(T::DTYPE, shape, bytes)
    }

    /// A boolean tensor.
    pub fn from_bools(shape: Vec<usize>, values: &[bool]) -> Result<Self, TensorError> {
        let bytes: Vec<u8> = values.iter().map(|b| u8::from(*b)).collect();
        Self::from_bytes(DType::Bool, shape, &bytes)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether a dimension is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements' bytes: row-major, native byte order.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least `len` initialized bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u8>(), self.len) }
    }

    /// The elements' bytes, writable within the crate (a boolean's byte must stay 0 or 1).
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the words hold at least `len` initialized bytes and are uniquely borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast::<u8>(), self.len) }
    }

    /// The elements as `T`, or `None` if the element type differs.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        if T::DTYPE != self.dtype {
            return None;
        }
        // SAFETY: the buffer is aligned to 8 bytes, which no `Element` exceeds, holds `len()`
        // elements, and every bit pattern is a valid element.
        Some(unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<T>(), self.len / size_of::<T>()) })
    }

    /// The elements as booleans, or `None` if the element type differs.
    pub fn bools(&self) -> Option<Vec<bool>> {
        (self.dtype == DType::Bool).then(|| self.bytes().iter().map(|b| *b != 0).collect())
    }

    /// All elements as `f64`, for comparing and printing; 64-bit integers above 2^53 round.
    /// Booleans are 0 and 1.
    pub fn to_f64(&self) -> Vec<f64> {
        macro_rules! convert {
            ($($t:ty),+; $($h:ty),+) => {
                $(if let Some(v) = self.values::<$t>() {
                    return v.iter().map(|x| *x as f64).collect();
                })+
                $(if let Some(v) = self.values::<$h>() {
                    return v.iter().map(|x| x.to_f64()).collect();
                })+
            };
        }
        convert!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64; f16, bf16);
        self.bytes().iter().map(|b| f64::from(*b)).collect()
    }
}

impl std::fmt::Debug for HostTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostTensor({}{:?})", self.dtype, self.shape)
    }
}

fn byte_len(dtype: DType, shape: &[usize]) -> Result<usize, TensorError> {
    let size = dtype.size().ok_or(TensorError::Unsupported { dtype })?;
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(size, |n, d| n.checked_mul(*d))
        .filter(|n| *n <= isize::MAX as usize / 2)
        .ok_or_else(|| TensorError::TooLarge { shape: shape.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_give_back_what_was_put_in() {
        let t = HostTensor::from_values(vec![2, 3], &[1.0f32, 2.0, 3.0, -4.0, 5.5, f32::MAX]).unwrap();
        assert_eq!(t.values::<f32>().unwrap()[3], -4.0);
        assert_eq!(t.values::<f64>(), None);
        assert_eq!(t.to_f64()[4], 5.5);
        assert_eq!(t.bytes().len(), 24);
        let b = HostTensor::from_bools(vec![3], &[true, false, true]).unwrap();
        assert_eq!(b.bools().unwrap(), [true, false, true]);
        assert_eq!(b.to_f64(), [1.0, 0.0, 1.0]);
    }

    #[test]
    fn wrong_sizes_are_errors() {
        assert!(matches!(HostTensor::from_values(vec![2], &[1i64]), Err(TensorError::Length { need: 16, have: 8, .. })));
        assert!(matches!(HostTensor::zeros(DType::F32, vec![usize::MAX, 9]), Err(TensorError::TooLarge { .. })));
        assert!(matches!(HostTensor::zeros(DType::String, vec![1]), Err(TensorError::Unsupported { .. })));
        assert!(matches!(HostTensor::from_bytes(DType::Bool, vec![2], &[0, 7]), Err(TensorError::Bool { index: 1, value: 7 })));
        assert_eq!(HostTensor::zeros(DType::F32, vec![0, usize::MAX]).unwrap().len(), 0);
    }
}
