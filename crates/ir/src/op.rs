//! What an operator is: one struct per operator, one table for all.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::attr::Attr;
use crate::dim::Bindings;
use crate::error::{AttrError, EvalError, TypeError};
use crate::onnx::{Imported, NoSpelling, OnnxNode, OnnxSpelling, Opaque};
use crate::scalar::Scalar;
use crate::tensor::Value;
use crate::ty::TensorType;

pub use crate::ops::{Op, OpKind};

/// The uniform view of an operator's parameters; written by [`operator!`](crate::operator).
pub trait Attributes: Sized {
    /// The operator's name, the one used in rules, fixtures and reports.
    const NAME: &'static str;
    /// Names of all attributes, in declaration order.
    const ATTRS: &'static [&'static str];
    /// Names and values of all attributes, in declaration order.
    fn attrs(&self) -> Vec<(&'static str, Attr)>;
    /// The operator with these attributes.
    fn from_attrs(attrs: &[(String, Attr)]) -> Result<Self, AttrError>;
}

/// Arithmetic and traffic of one execution, for cost models. Sizes are under concrete bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Floating-point operations (a multiply-add counts two).
    pub flops: f64,
    /// Bytes read and written besides the tensors themselves (packing, transposition): usually 0.
    pub extra_bytes: f64,
    /// The kind of kernel that a runtime uses for it.
    pub kernel: Kernel,
}

/// Coarse kernel classes, each with its own attainable speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Dense products and convolutions near peak.
    Dense,
    /// Grouped and depthwise convolutions, thin products.
    Thin,
    /// One pass over the elements, a few operations each.
    #[default]
    Elementwise,
    /// One pass with transcendental functions.
    Transcendental,
    /// Reductions and pools.
    Window,
    /// Pure data movement.
    Copy,
    /// No work: views and metadata.
    Free,
}

/// What an evaluator may need besides its operands.
pub struct EvalContext<'a> {
    /// Values of the symbols.
    pub bindings: &'a Bindings,
    /// Inferred types of the operands.
    pub input_types: &'a [TensorType],
    /// Inferred types of the results.
    pub output_types: &'a [TensorType],
}

/// An operator's single definition: type rule, meaning, ONNX mapping, cost features.
pub trait Operator: Attributes + Clone + Debug + Eq + Hash {
    /// Swapping the two operands changes nothing.
    const COMMUTATIVE: bool = false;

    /// Each element of the result is an element of an operand, or a given number, whatever the
    /// elements are.
    const MOVES: bool = false;

    /// Each element of the result depends on the elements of the operands at its place alone, after
    /// broadcasting, and in the same way everywhere.
    const ELEMENTWISE: bool = false;

    /// A result on constants is a constant, which may be computed once and stored in its place.
    ///
    /// Not so for operators that runtimes fuse with what is around them: stored weights that are
    /// dequantized when the model runs are smaller than what they become, and products of them are
    /// computed on integers.
    const FOLDS: bool = true;

    /// The result types for these operand types.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError>;

    /// The meaning: results for these operands. Operands fit [`Operator::infer`]; sizes are
    /// concrete.
    fn eval<S: Scalar>(&self, inputs: &[Value<S>], context: &EvalContext<'_>) -> Result<Vec<Value<S>>, EvalError>;

    /// ONNX operator types (standard domain) that [`Operator::import`] accepts.
    fn onnx_types() -> &'static [&'static str];

    /// The operator for an ONNX node of one of [`Operator::onnx_types`], or why the node stays
    /// opaque.
    fn import(node: &OnnxNode) -> Result<Imported, Opaque>;

    /// The ONNX spelling at opset version `version`.
    fn spell(&self, inputs: &[TensorType], outputs: &[TensorType], version: i64) -> Result<OnnxSpelling, NoSpelling>;

    /// Cost features under concrete sizes: `inputs` and `outputs` are bound shapes.
    fn work(&self, _inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> Work {
        Work { flops: outputs.iter().map(|s| s.iter().product::<usize>() as f64).sum(), extra_bytes: 0.0, kernel: Kernel::Elementwise }
    }
}

/// Declares an operator's struct and its uniform attribute view.
///
/// ```ignore
/// operator! {
///     /// What it computes, with shapes.
///     pub struct Concat { /// Axis, ≥ 0.
///         pub axis: i64 }
/// }
/// ```
#[macro_export]
macro_rules! operator {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty),* }

        impl $crate::op::Attributes for $name {
            const NAME: &'static str = stringify!($name);
            const ATTRS: &'static [&'static str] = &[$(stringify!($field)),*];
            fn attrs(&self) -> Vec<(&'static str, $crate::attr::Attr)> {
                vec![$((stringify!($field), $crate::attr::AttrField::to_attr(&self.$field))),*]
            }
            fn from_attrs(attrs: &[(String, $crate::attr::Attr)]) -> Result<Self, $crate::error::AttrError> {
                let known: &[&str] = &[$(stringify!($field)),*];
                if let Some((attr, _)) = attrs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
                    return Err($crate::error::AttrError::Unknown { op: stringify!($name), attr: attr.clone() });
                }
                Ok($name { $($field: {
                    let given = attrs.iter().find(|(name, _)| name == stringify!($field)).map(|(_, value)| value);
                    match given {
                        Some(value) => <$ty as $crate::attr::AttrField>::from_attr(value).ok_or_else(|| $crate::error::AttrError::Kind {
                            op: stringify!($name), attr: stringify!($field), found: value.to_string(),
                        })?,
                        None => <$ty as $crate::attr::AttrField>::absent().ok_or($crate::error::AttrError::Missing {
                            op: stringify!($name), attr: stringify!($field),
                        })?,
                    }
                }),* })
            }
        }
    };
}

/// The table of operators: the enum, its kinds, and dispatch to each definition.
#[macro_export]
macro_rules! operators {
    ($($module:ident :: $name:ident),* $(,)?) => {
        /// Any defined operator, or one kept verbatim.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant is the operator of its name")]
        pub enum Op { $($name($module::$name)),*, Input($crate::ops::Input), Constant($crate::ops::Constant), Opaque($crate::ops::OpaqueOp) }

        /// The operator without its attributes: the key of rule indexes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each variant is the operator of its name")]
        #[repr(u8)]
        pub enum OpKind { $($name),*, Input, Constant, Opaque }

        impl OpKind {
            /// All kinds, in table order.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$name),*, OpKind::Input, OpKind::Constant, OpKind::Opaque];
            /// The name used in rules, fixtures and reports.
            pub fn name(self) -> &'static str {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Attributes>::NAME),*, OpKind::Input => "Input", OpKind::Constant => "Constant", OpKind::Opaque => "Opaque" }
            }
            /// Names of all attributes, in declaration order.
            pub fn attr_names(self) -> &'static [&'static str] {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Attributes>::ATTRS),*, _ => &[] }
            }
            /// True if swapping the two operands changes nothing.
            pub fn commutative(self) -> bool {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Operator>::COMMUTATIVE),*, _ => false }
            }
            /// Whether each element of the result is an element of an operand, or a given number,
            /// whatever the elements are.
            pub fn moves_elements(self) -> bool {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Operator>::MOVES),*, _ => false }
            }
            /// Whether each element of the result depends on the elements of the operands at its
            /// place alone, after broadcasting, and in the same way everywhere.
            pub fn elementwise(self) -> bool {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Operator>::ELEMENTWISE),*, _ => false }
            }
            /// Whether a result on constants is a constant, which may be stored in its place.
            pub fn folds(self) -> bool {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Operator>::FOLDS),*, OpKind::Constant => true, OpKind::Input | OpKind::Opaque => false }
            }
            /// ONNX operator types of the standard domain that import as this kind.
            pub fn onnx_types(self) -> &'static [&'static str] {
                match self { $(OpKind::$name => <$module::$name as $crate::op::Operator>::onnx_types()),*, _ => &[] }
            }
            /// The operator of this kind with these attributes.
            pub fn with_attrs(self, attrs: &[(String, $crate::attr::Attr)]) -> Result<Op, $crate::error::AttrError> {
                match self {
                    $(OpKind::$name => <$module::$name as $crate::op::Attributes>::from_attrs(attrs).map(Op::$name)),*,
                    other => Err($crate::error::AttrError::Unknown { op: other.name(), attr: "(not constructible from attributes)".into() }),
                }
            }
            /// Imports an ONNX node as this kind.
            pub fn import(self, node: &$crate::onnx::OnnxNode) -> Result<$crate::onnx::Imported, $crate::onnx::Opaque> {
                match self {
                    $(OpKind::$name => <$module::$name as $crate::op::Operator>::import(node)),*,
                    _ => Err($crate::onnx::Opaque("not an ONNX operator".into())),
                }
            }
        }

        impl Op {
            /// The kind, without attributes.
            #[inline]
            pub fn kind(&self) -> OpKind {
                match self { $(Op::$name(_) => OpKind::$name),*, Op::Input(_) => OpKind::Input, Op::Constant(_) => OpKind::Constant, Op::Opaque(_) => OpKind::Opaque }
            }
            /// Names and values of all attributes, in declaration order.
            pub fn attrs(&self) -> Vec<(&'static str, $crate::attr::Attr)> {
                match self { $(Op::$name(op) => $crate::op::Attributes::attrs(op)),*, _ => Vec::new() }
            }
            /// The result types for these operand types.
            pub fn infer(&self, inputs: &[$crate::TensorType]) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
                match self {
                    $(Op::$name(op) => $crate::op::Operator::infer(op, inputs)),*,
                    Op::Input(op) => Ok(vec![op.ty.clone()]),
                    Op::Constant(op) => Ok(vec![op.value.ty()]),
                    Op::Opaque(op) => Err($crate::TypeError::undecided(format!("`{}` has no type rule", op.op_type))),
                }
            }
            /// Results for these operands.
            pub fn eval<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::op::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                S::eval(self, inputs, context)
            }
            /// The definition behind [`Op::eval`], compiled wherever it is named, which only
            /// [`Scalar::eval`](crate::Scalar::eval) does.
            pub fn meaning<S: $crate::Scalar>(&self, inputs: &[$crate::Value<S>], context: &$crate::op::EvalContext<'_>) -> Result<Vec<$crate::Value<S>>, $crate::EvalError> {
                match self {
                    $(Op::$name(op) => $crate::op::Operator::eval(op, inputs, context)),*,
                    Op::Input(op) => Err($crate::EvalError::MissingInput(op.name.to_string())),
                    Op::Constant(op) => $crate::Value::from_const(&op.value).map(|v| vec![v]).ok_or_else(|| $crate::EvalError::value("constant of an exotic type")),
                    Op::Opaque(op) => Err($crate::EvalError::Opaque(op.op_type.to_string())),
                }
            }
            /// The ONNX spelling at an opset version.
            pub fn spell(&self, inputs: &[$crate::TensorType], outputs: &[$crate::TensorType], version: i64) -> Result<$crate::onnx::OnnxSpelling, $crate::onnx::NoSpelling> {
                match self {
                    $(Op::$name(op) => $crate::op::Operator::spell(op, inputs, outputs, version)),*,
                    other => Err($crate::onnx::NoSpelling { op: other.kind().name(), why: "it is not a computed node".into() }),
                }
            }
            /// Cost features under concrete sizes.
            pub fn work(&self, inputs: &[Vec<usize>], outputs: &[Vec<usize>]) -> $crate::op::Work {
                match self {
                    $(Op::$name(op) => $crate::op::Operator::work(op, inputs, outputs)),*,
                    Op::Input(_) | Op::Constant(_) => $crate::op::Work { kernel: $crate::op::Kernel::Free, ..Default::default() },
                    Op::Opaque(_) => $crate::op::Work { flops: outputs.iter().map(|s| s.iter().product::<usize>() as f64).sum(), ..Default::default() },
                }
            }
        }
    };
}

impl OpKind {
    /// The kind with this name, ignoring case and dashes (`matmul`, `MatMul`,
    /// `batch-normalization`).
    pub fn from_name(name: &str) -> Option<OpKind> {
        let plain = |s: &str| s.chars().filter(|c| *c != '-' && *c != '_').flat_map(char::to_lowercase).collect::<String>();
        // Guards of rules ask for it at every match.
        static BY_NAME: OnceLock<FxHashMap<String, OpKind>> = OnceLock::new();
        BY_NAME.get_or_init(|| OpKind::ALL.iter().map(|kind| (plain(kind.name()), *kind)).collect()).get(&plain(name)).copied()
    }
}

impl Op {
    /// The attribute `name`.
    pub fn attr(&self, name: &str) -> Option<Attr> {
        self.attrs().into_iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }
}
