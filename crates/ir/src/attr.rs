//! Attribute values: the uniform view of an operator's parameters.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::constant::Const;
use crate::dim::Dim;
use crate::dtype::DType;

/// A float compared and hashed by its bits, so that operators can be keys.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f64);

impl PartialEq for Float {
    fn eq(&self, other: &Float) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

impl Hash for Float {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// The value of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attr {
    /// An integer, or an axis (always ≥ 0 inside Regraft).
    Int(i64),
    /// A float.
    Float(Float),
    /// A flag.
    Bool(bool),
    /// A word.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floats.
    Floats(Vec<Float>),
    /// A list of words.
    Strs(Vec<String>),
    /// A list of symbolic sizes.
    Dims(Vec<Dim>),
    /// An element type.
    DType(DType),
    /// A small constant tensor.
    Tensor(Const),
    /// Not given; the operator's default behaviour applies.
    Absent,
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: impl IntoIterator<Item = T>) -> fmt::Result {
            f.write_str("[")?;
            for (at, item) in items.into_iter().enumerate() {
                write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
            }
            f.write_str("]")
        }
        match self {
            Attr::Int(v) => write!(f, "{v}"),
            Attr::Float(v) => write!(f, "{:?}", v.0),
            Attr::Bool(v) => write!(f, "{v}"),
            Attr::Str(v) => write!(f, "{v:?}"),
            Attr::Ints(v) => list(f, v),
            Attr::Floats(v) => list(f, v.iter().map(|x| format!("{:?}", x.0))),
            Attr::Strs(v) => list(f, v.iter().map(|x| format!("{x:?}"))),
            Attr::Dims(v) => list(f, v),
            Attr::DType(v) => write!(f, "{v}"),
            Attr::Tensor(v) => write!(f, "{v:?}"),
            Attr::Absent => f.write_str("none"),
        }
    }
}

/// A Rust type that can be the field of an operator.
pub trait AttrField: Sized {
    /// The uniform view of this field.
    fn to_attr(&self) -> Attr;
    /// The field from the uniform view; `None` if the kind of value does not fit.
    fn from_attr(attr: &Attr) -> Option<Self>;
    /// The value if none is given; `None` if the attribute is required.
    fn absent() -> Option<Self> {
        None
    }
}

macro_rules! field {
    ($($ty:ty, $variant:ident, $(|$also:pat_param| $convert:expr,)?)*) => {$(
        impl AttrField for $ty {
            fn to_attr(&self) -> Attr {
                Attr::$variant(self.clone())
            }
            fn from_attr(attr: &Attr) -> Option<Self> {
                match attr {
                    Attr::$variant(v) => Some(v.clone()),
                    $($also => $convert,)?
                    _ => None,
                }
            }
        }
    )*};
}

field! {
    i64, Int,
    Float, Float, |Attr::Int(v)| Some(Float(*v as f64)),
    bool, Bool, |Attr::Int(v)| Some(*v != 0),
    String, Str,
    Vec<i64>, Ints, |Attr::Dims(v)| v.iter().map(Dim::known).collect(),
    Vec<Float>, Floats, |Attr::Ints(v)| Some(v.iter().map(|x| Float(*x as f64)).collect()),
    Vec<String>, Strs, |Attr::Ints(v)| v.is_empty().then(Vec::new),
    Vec<Dim>, Dims, |Attr::Ints(v)| Some(v.iter().map(|x| Dim::from(*x)).collect()),
    DType, DType,
    Const, Tensor,
}

impl<T: Clone> AttrField for Box<[T]>
where
    Vec<T>: AttrField,
{
    fn to_attr(&self) -> Attr {
        self.to_vec().to_attr()
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        Vec::from_attr(attr).map(Into::into)
    }
}

impl<T: AttrField> AttrField for Option<T> {
    fn to_attr(&self) -> Attr {
        self.as_ref().map_or(Attr::Absent, AttrField::to_attr)
    }
    fn from_attr(attr: &Attr) -> Option<Self> {
        if *attr == Attr::Absent { Some(None) } else { T::from_attr(attr).map(Some) }
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
}
