//! Tensor types: an element type and a symbolic shape.

use std::fmt;

use smallvec::SmallVec;

use crate::dim::{Bindings, Dim};
use crate::dtype::DType;

/// The sizes of a tensor, outermost first.
pub type Shape = SmallVec<[Dim; 4]>;

/// Element type and shape of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first; empty for a scalar.
    pub shape: Shape,
}

impl TensorType {
    /// A type from anything that yields dimensions.
    pub fn new<D: Into<Dim>>(dtype: DType, shape: impl IntoIterator<Item = D>) -> TensorType {
        TensorType { dtype, shape: shape.into_iter().map(Into::into).collect() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements, as a symbolic size.
    pub fn elements(&self) -> Dim {
        self.shape.iter().fold(Dim::from(1), |product, d| product * d.clone())
    }

    /// All sizes as numbers, if no symbol is involved.
    pub fn known_shape(&self) -> Option<Vec<i64>> {
        self.shape.iter().map(Dim::known).collect()
    }

    /// All sizes as numbers under `bindings`; `None` if one cannot be evaluated or is negative.
    pub fn bind(&self, bindings: &Bindings) -> Option<Vec<usize>> {
        self.shape.iter().map(|d| d.eval(bindings).and_then(|v| usize::try_from(v).ok())).collect()
    }

    /// The same shape with another element type.
    pub fn with_dtype(&self, dtype: DType) -> TensorType {
        TensorType { dtype, shape: self.shape.clone() }
    }
}

/// The certain part of a tensor type: element type and rank, and some of the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialType {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first; `None` if only known at run time.
    pub shape: Vec<Option<Dim>>,
}

impl From<TensorType> for PartialType {
    fn from(ty: TensorType) -> PartialType {
        PartialType { dtype: ty.dtype, shape: ty.shape.into_iter().map(Some).collect() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (at, d) in self.shape.iter().enumerate() {
            write!(f, "{}{d}", if at == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

/// The shape that broadcasting `shapes` gives, by NumPy's rule; `None` if two sizes can never
/// agree.
pub fn broadcast_shapes<'a>(shapes: impl IntoIterator<Item = &'a [Dim]>) -> Option<Shape> {
    let mut result = Shape::new();
    for shape in shapes {
        while result.len() < shape.len() {
            result.insert(0, Dim::from(1));
        }
        let offset = result.len() - shape.len();
        for (at, d) in shape.iter().enumerate() {
            result[offset + at] = result[offset + at].broadcast(d)?;
        }
    }
    Some(result)
}
