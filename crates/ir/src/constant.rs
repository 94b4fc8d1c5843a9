//! Constants by reference: bytes are shared or memory-mapped, never copied.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use half::{bf16, f16};

use crate::dtype::{Class, DType};
use crate::ty::TensorType;

/// A constant tensor: little-endian, row-major bytes behind a shared reference.
///
/// Equality and hashing are by content (a 128-bit fingerprint, computed once on demand).
#[derive(Clone)]
pub struct Const(Arc<Inner>);

struct Inner {
    dtype: DType,
    shape: Vec<i64>,
    bytes: Bytes,
    release: Option<fn(&[u8])>,
    fingerprint: OnceLock<u128>,
}

/// Bytes hashed at a time, between calls of the function that releases them.
const BLOCK: usize = 4 << 20;

impl Const {
    /// A constant from its bytes; `None` if their number does not match the shape or the element
    /// type has no fixed width.
    pub fn new(dtype: DType, shape: &[i64], bytes: Bytes) -> Option<Const> {
        let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?))?;
        if dtype.size() == 0 || elements.checked_mul(dtype.size())? != bytes.len() {
            return None;
        }
        Some(Const(Arc::new(Inner { dtype, shape: shape.to_vec(), bytes, release: None, fingerprint: OnceLock::new() })))
    }

    /// The same constant, with a function to call on bytes that were just read from end to end and
    /// will not be read again soon: their owner may evict them from memory, as long as they stay
    /// readable.
    pub fn released_by(mut self, release: fn(&[u8])) -> Const {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.release = Some(release);
        }
        self
    }

    /// A constant of a float type (rounded once) or an integer type (truncated, wrapped) from
    /// doubles; `None` if the count does not match.
    pub fn from_f64(dtype: DType, shape: &[i64], values: &[f64]) -> Option<Const> {
        Const::from_reals(dtype, shape, values.iter().copied())
    }

    /// The same from an iterator.
    pub fn from_reals(dtype: DType, shape: &[i64], values: impl ExactSizeIterator<Item = f64>) -> Option<Const> {
        let mut bytes = vec![0; values.len() * dtype.size()];
        match dtype {
            DType::F32 => put(&mut bytes, values.map(|v| (v as f32).to_le_bytes())),
            DType::F64 => put(&mut bytes, values.map(f64::to_le_bytes)),
            DType::F16 => put(&mut bytes, values.map(|v| f16::from_f64(v).to_le_bytes())),
            DType::BF16 => put(&mut bytes, values.map(|v| bf16::from_f64(v).to_le_bytes())),
            DType::Bool => put(&mut bytes, values.map(|v| [u8::from(v != 0.0)])),
            _ => {
                bytes.clear();
                for value in values {
                    push_int(&mut bytes, dtype, value as i64)?;
                }
            }
        }
        Const::new(dtype, shape, bytes.into())
    }

    /// A constant of an integer or boolean type from integers (wrapped to the type's width); `None`
    /// if the count does not match.
    pub fn from_i64(dtype: DType, shape: &[i64], values: &[i64]) -> Option<Const> {
        let mut bytes = Vec::with_capacity(values.len() * dtype.size());
        for v in values {
            match dtype.class() {
                Class::Bool => bytes.push(u8::from(*v != 0)),
                _ => push_int(&mut bytes, dtype, *v)?,
            }
        }
        Const::new(dtype, shape, bytes.into())
    }

    /// A float scalar of type `dtype`.
    pub fn scalar(dtype: DType, value: f64) -> Option<Const> {
        Const::from_f64(dtype, &[], &[value])
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Sizes.
    pub fn shape(&self) -> &[i64] {
        &self.0.shape
    }

    /// Element type and shape.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.0.dtype, self.0.shape.iter().copied())
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.0.shape.iter().product::<i64>() as usize
    }

    /// The bytes, little-endian and row-major.
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// Positions of the elements that are not 0, in order, `[rank, count]` as `NonZero` gives them;
    /// `None` for a scalar, or if the elements cannot be read.
    pub fn nonzero(&self) -> Option<Const> {
        let found: Vec<usize> = match self.dtype().class() {
            Class::Real => places(&self.to_f64()?, |v| *v != 0.0),
            _ => places(&self.to_i64()?, |v| *v != 0),
        };
        let shape = Some(self.shape()).filter(|shape| !shape.is_empty())?;
        let strides = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<i64>() as usize);
        let along = strides.zip(shape).flat_map(|(stride, size)| found.iter().map(move |at| (at / stride) as i64 % size));
        Const::from_i64(DType::I64, &[shape.len() as i64, found.len() as i64], &along.collect::<Vec<_>>())
    }

    /// A 128-bit fingerprint of type, shape and content.
    pub fn fingerprint(&self) -> u128 {
        *self.0.fingerprint.get_or_init(|| {
            let mut hasher = xxhash_rust::xxh3::Xxh3::new();
            hasher.update(&self.0.dtype.to_onnx().to_le_bytes());
            for d in &self.0.shape {
                hasher.update(&d.to_le_bytes());
            }
            hasher.update(&[0xff]);
            for block in self.0.bytes.chunks(BLOCK) {
                hasher.update(block);
                if let Some(release) = self.0.release {
                    release(block);
                }
            }
            hasher.digest128()
        })
    }

    /// All elements as doubles; `None` for strings and exotic types.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        self.map_f64(|v| v)
    }

    /// The results of `f` on all elements as doubles; `None` for strings and exotic types.
    pub fn map_f64<T>(&self, f: impl Fn(f64) -> T) -> Option<Vec<T>> {
        let b = &self.0.bytes;
        Some(match self.0.dtype {
            DType::F32 => b.chunks_exact(4).map(|c| f(f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])))).collect(),
            DType::F64 => b.chunks_exact(8).map(|c| f(f64::from_le_bytes(c.try_into().unwrap_or_default()))).collect(),
            DType::F16 => b.chunks_exact(2).map(|c| f(f16::from_le_bytes([c[0], c[1]]).to_f64())).collect(),
            DType::BF16 => b.chunks_exact(2).map(|c| f(bf16::from_le_bytes([c[0], c[1]]).to_f64())).collect(),
            DType::U64 => self.to_i64()?.into_iter().map(|v| f(v as u64 as f64)).collect(),
            _ => self.to_i64()?.into_iter().map(|v| f(v as f64)).collect(),
        })
    }

    /// All elements of an integer or boolean constant; `None` for other types. `u64` wraps.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        let b = &self.0.bytes;
        let wide = |n: usize, signed: bool| -> Vec<i64> {
            b.chunks_exact(n)
                .map(|c| {
                    let fill = if signed && c[n - 1] & 0x80 != 0 { 0xff } else { 0 };
                    let mut wide = [fill; 8];
                    wide[..n].copy_from_slice(c);
                    i64::from_le_bytes(wide)
                })
                .collect()
        };
        Some(match self.0.dtype {
            DType::I64 | DType::U64 => wide(8, true),
            DType::I32 => wide(4, true),
            DType::I16 => wide(2, true),
            DType::I8 => wide(1, true),
            DType::U32 => wide(4, false),
            DType::U16 => wide(2, false),
            DType::U8 | DType::Bool => wide(1, false),
            _ => return None,
        })
    }

    /// The one value that all elements share, if there is one.
    pub fn splat(&self) -> Option<f64> {
        let size = self.0.dtype.size();
        let bytes = &self.0.bytes;
        // All elements are equal if each equals the next.
        if bytes.get(size..)? != &bytes[..bytes.len() - size] {
            return None;
        }
        Const::new(self.0.dtype, &[], bytes.slice(..size))?.to_f64()?.first().copied()
    }
}

/// Writes elements one after the other.
fn put<const SIZE: usize>(bytes: &mut [u8], elements: impl Iterator<Item = [u8; SIZE]>) {
    bytes.chunks_exact_mut(SIZE).zip(elements).for_each(|(place, element)| place.copy_from_slice(&element));
}

fn push_int(bytes: &mut Vec<u8>, dtype: DType, value: i64) -> Option<()> {
    if dtype.class() != Class::Int {
        return None;
    }
    bytes.extend(&value.to_le_bytes()[..dtype.size()]);
    Some(())
}

impl PartialEq for Const {
    fn eq(&self, other: &Const) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.bytes.len() == other.0.bytes.len() && self.fingerprint() == other.fingerprint())
    }
}

impl Eq for Const {}

impl Hash for Const {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint().hash(state);
    }
}

impl fmt::Debug for Const {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "const {}", self.ty())?;
        match self.splat() {
            Some(v) if self.elements() <= 64 => write!(f, " = {v:?}"),
            _ => Ok(()),
        }
    }
}

/// Indices of the elements that hold.
fn places<T>(elements: &[T], holds: impl Fn(&T) -> bool) -> Vec<usize> {
    elements.iter().enumerate().filter(|(_, element)| holds(element)).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_beyond_the_signed_ones_are_not_negative() {
        let constant = Const::from_i64(DType::U64, &[2], &[-1, 7]).unwrap();
        assert_eq!(constant.to_f64(), Some(vec![u64::MAX as f64, 7.0]));
        assert_eq!(Const::from_i64(DType::U64, &[], &[-1]).unwrap().splat(), Some(u64::MAX as f64));
    }
}
