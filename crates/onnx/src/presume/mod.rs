//! Result types of nodes that stay opaque, by the meaning of their operators: true whenever the
//! node runs without an error.
//!
//! Some nodes are opaque only because a condition on symbolic sizes cannot be shown (a `Concat` of
//! sizes that are equal at run time, or else the model fails), others because their operator has no
//! definition here. With types for their results, the graph below them is still optimized.

use regraft_ir::{Attr, DType, Dim, TensorType, broadcast_shapes};

use crate::symbolic::View;

mod layers;
mod moves;
mod reductions;
mod selections;

/// The type of a result, as far as it is sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presumed {
    /// Element type.
    pub dtype: DType,
    /// Sizes; `None` where only a run can tell.
    pub shape: Vec<Option<Dim>>,
}

impl From<&TensorType> for Presumed {
    fn from(ty: &TensorType) -> Presumed {
        Presumed::new(ty.dtype, ty.shape.iter().cloned().map(Some))
    }
}

impl Presumed {
    fn new(dtype: DType, shape: impl IntoIterator<Item = Option<Dim>>) -> Presumed {
        Presumed { dtype, shape: shape.into_iter().collect() }
    }

    /// A tensor of known sizes.
    fn sized(dtype: DType, shape: impl IntoIterator<Item = Dim>) -> Presumed {
        Presumed::new(dtype, shape.into_iter().map(Some))
    }

    /// A tensor of which only the rank is known.
    fn ranked(dtype: DType, rank: usize) -> Presumed {
        Presumed::new(dtype, vec![None; rank])
    }

    fn with_dtype(mut self, dtype: DType) -> Presumed {
        self.dtype = dtype;
        self
    }

    fn with_size(mut self, axis: usize, size: Option<Dim>) -> Presumed {
        if let Some(slot) = self.shape.get_mut(axis) {
            *slot = size;
        }
        self
    }
}

/// Operators whose first result has the type of the first input.
const LIKE_FIRST: [&str; 28] = [
    "BatchNormalization",
    "BitwiseNot",
    "CausalConvWithState",
    "Clip",
    "CumProd",
    "CumSum",
    "Dropout",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LpNormalization",
    "MeanVarianceNormalization",
    "PRelu",
    "QLinearSigmoid",
    "RMSNormalization",
    "Relu",
    "ReverseSequence",
    "RotaryEmbedding",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Shrink",
    "Softmax",
    "Swish",
    "TensorScatter",
    "Trilu",
    "ai.onnx.ml:Binarizer",
];

/// Operators that broadcast all their inputs and keep the first one's element type.
const BROADCAST: [&str; 13] =
    ["Add", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Min", "Mod", "Mul", "Pow", "StringConcat", "Sub"];

/// Operators that broadcast all their inputs and give booleans.
const COMPARE: [&str; 5] = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"];

/// The types of the node's results, `None` where nothing is sure; there may be fewer or more
/// entries than results.
pub(crate) fn presume(view: &View<'_>) -> Vec<Option<Presumed>> {
    let like = |at: usize| view.ty(at).map(Presumed::from);
    let first = match view.op_type {
        name if BROADCAST.contains(&name) => broadcast(view, view.ty(0).map(|t| t.dtype)),
        name if COMPARE.contains(&name) => broadcast(view, Some(DType::Bool)),
        "Where" => broadcast(view, view.ty(1).map(|t| t.dtype)),
        "Cast" | "BitCast" => like(0).zip(named_type(view, "to")).map(|(x, to)| x.with_dtype(to)),
        "CastLike" => like(0).zip(view.ty(1)).map(|(x, to)| x.with_dtype(to.dtype)),
        "Bernoulli" | "RandomNormalLike" | "RandomUniformLike" | "EyeLike" => {
            like(0).map(|x| Presumed { dtype: named_type(view, "dtype").unwrap_or(x.dtype), ..x })
        }
        "RegexFullMatch" => like(0).map(|x| x.with_dtype(DType::Bool)),
        "DequantizeLinear" => like(0).zip(named_type(view, "output_dtype").or(view.ty(1).map(|t| t.dtype))).map(|(x, to)| x.with_dtype(to)),
        "QuantizeLinear" => {
            let zero_point = if view.given(2) { view.ty(2).map(|t| t.dtype) } else { Some(DType::U8) };
            like(0).zip(named_type(view, "output_dtype").or(zero_point)).map(|(x, to)| x.with_dtype(to))
        }
        "OptionalGetElement" => like(0),
        "OptionalHasElement" => Some(Presumed::ranked(DType::Bool, 0)),
        "SequenceLength" => Some(Presumed::ranked(DType::I64, 0)),
        "ai.onnx.ml:LabelEncoder" => like(0).zip(label_type(view)).map(|(x, to)| x.with_dtype(to)),
        _ => {
            let families = [layers::presume, moves::presume, reductions::presume, selections::presume];
            if let Some(types) = families.into_iter().map(|family| family(view)).find(|types| !types.is_empty()) {
                return types;
            }
            None
        }
    };
    let mut types = vec![first];
    if LIKE_FIRST.contains(&view.op_type) {
        types = vec![like(0)];
    }
    match view.op_type {
        "Dropout" => types.push(like(0).map(|x| x.with_dtype(DType::Bool))),
        "BatchNormalization" => types.extend([like(3), like(4)]),
        "LayerNormalization" => types.extend(moments(view)),
        "CausalConvWithState" => types.push(layers::window_state(view)),
        _ => {}
    }
    types
}

impl View<'_> {
    fn ty(&self, input: usize) -> Option<&TensorType> {
        self.types.get(input)?.as_ref()
    }

    /// An axis counted from the front.
    fn axis(&self, value: i64, rank: usize) -> Option<usize> {
        usize::try_from(if value < 0 { value + rank as i64 } else { value }).ok().filter(|axis| *axis < rank)
    }

    /// Elements of a 1-D tensor of sizes.
    fn list(&self, input: usize) -> Option<&[Dim]> {
        self.sizes.get(input)?.as_ref().filter(|s| !s.scalar).map(|s| s.dims.as_slice())
    }

    /// Elements of a 1-D size tensor, none of them negative for sure.
    fn stated_sizes(&self, input: usize) -> Option<Vec<Dim>> {
        self.list(input).filter(|s| s.iter().all(|d| d.known().is_none_or(|n| n >= 0))).map(<[Dim]>::to_vec)
    }

    /// Number of elements of a 1-D input.
    fn length(&self, input: usize) -> Option<usize> {
        match self.ty(input)?.shape.as_slice() {
            [length] => usize::try_from(length.known()?).ok(),
            _ => None,
        }
    }

    fn word(&self, name: &str) -> Option<String> {
        match (self.attr)(name)? {
            Attr::Str(word) => Some(word),
            _ => None,
        }
    }
}

/// The element type that an attribute names by its code.
fn named_type(view: &View<'_>, name: &str) -> Option<DType> {
    view.int(name).and_then(|code| i32::try_from(code).ok()).filter(|code| *code > 0).map(DType::from_onnx)
}

fn broadcast(view: &View<'_>, dtype: Option<DType>) -> Option<Presumed> {
    let types: Vec<&TensorType> = view.types.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let rank = types.iter().map(|t| t.rank()).max()?;
    match broadcast_shapes(types.iter().map(|t| t.shape.as_slice())) {
        Some(shape) => Some(Presumed::sized(dtype?, shape)),
        None => Some(Presumed::ranked(dtype?, rank)),
    }
}

fn label_type(view: &View<'_>) -> Option<DType> {
    let given = |name: &str| (view.attr)(name).is_some();
    match (view.attr)("values_tensor") {
        Some(Attr::Tensor(values)) => Some(values.dtype()),
        _ if given("values_int64s") => Some(DType::I64),
        _ if given("values_floats") => Some(DType::F32),
        _ if given("values_strings") => Some(DType::Str),
        _ => None,
    }
}

/// Mean and inverse deviation of a layer normalization.
fn moments(view: &View<'_>) -> Vec<Option<Presumed>> {
    let Some(x) = view.ty(0) else { return Vec::new() };
    let Some(axis) = view.axis(view.int("axis").unwrap_or(-1), x.rank()) else { return Vec::new() };
    let dtype = named_type(view, "stash_type").unwrap_or(DType::F32);
    let shape = x.shape.iter().enumerate().map(|(at, d)| if at < axis { d.clone() } else { Dim::from(1) });
    let moment = Presumed::sized(dtype, shape);
    vec![Some(moment.clone()), Some(moment)]
}
