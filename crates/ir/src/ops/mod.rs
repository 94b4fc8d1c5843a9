//! All operators: one definition each, one line each in the table below.

pub(crate) mod accepts;
pub mod activation;
pub mod arg_reduce;
pub mod arithmetic;
pub mod cast;
pub mod clip;
pub mod compare;
pub(crate) mod elementwise;
pub mod gelu;
pub mod identity;
mod leaf;
pub mod logic;
pub mod matmul;
pub mod nonfinite;
pub mod prelu;
pub mod reduce;
pub mod select;
pub mod softmax;
pub mod unary;
pub mod variadic;

pub mod concat;
pub mod constant_of_shape;
pub mod cum_sum;
pub mod expand;
pub mod flatten;
pub mod gather;
pub mod gather_elements;
pub mod gather_nd;
pub(crate) mod movement;
pub mod one_hot;
pub mod pad;
pub mod range;
pub mod reshape;
pub mod shape;
pub mod size;
pub mod slice;
pub mod split;
pub mod squeeze;
pub mod tile;
pub mod top_k;
pub mod transpose;
pub mod trilu;
pub mod unsqueeze;

pub mod attention;
pub mod average_pool;
pub mod batch_norm;
pub mod conv;
pub mod conv_integer;
pub mod conv_transpose;
pub mod depth_space;
pub mod dequantize_linear;
pub mod dynamic_quantize_linear;
pub mod einsum;
pub mod gemm;
pub mod global_pool;
pub mod group_norm;
pub mod gru;
pub mod instance_norm;
pub mod layer_norm;
pub mod lrn;
pub mod lstm;
pub mod matmul_integer;
pub mod max_pool;
pub(crate) mod moments;
pub(crate) mod operands;
pub(crate) mod quantization;
pub mod quantize_linear;
pub(crate) mod recurrent;
pub mod resample;
pub mod resize;
pub mod rms_norm;
pub mod rnn;
pub mod rotary_embedding;
pub(crate) mod strided;
pub mod upsample;
pub(crate) mod window;

pub use leaf::{Constant, Input, OpaqueOp};

crate::operators! {
    matmul::MatMul,
    arithmetic::Add,
    arithmetic::Sub,
    arithmetic::Mul,
    arithmetic::Div,
    arithmetic::Pow,
    arithmetic::Mod,
    arithmetic::BitShift,
    variadic::Sum,
    variadic::Max,
    variadic::Min,
    variadic::Mean,
    compare::Equal,
    compare::Greater,
    compare::GreaterOrEqual,
    compare::Less,
    compare::LessOrEqual,
    logic::And,
    logic::Or,
    logic::Xor,
    logic::Not,
    select::Where,
    nonfinite::IsNaN,
    nonfinite::IsInf,
    unary::Neg,
    unary::Abs,
    unary::Sign,
    unary::Reciprocal,
    unary::Sqrt,
    unary::Exp,
    unary::Log,
    unary::Floor,
    unary::Ceil,
    unary::Round,
    unary::Erf,
    unary::Sin,
    unary::Cos,
    unary::Tan,
    unary::Asin,
    unary::Acos,
    unary::Atan,
    unary::Sinh,
    unary::Cosh,
    unary::Asinh,
    unary::Acosh,
    unary::Atanh,
    activation::Relu,
    activation::Sigmoid,
    activation::Tanh,
    activation::LeakyRelu,
    prelu::PRelu,
    activation::Elu,
    activation::Selu,
    activation::Celu,
    activation::ThresholdedRelu,
    activation::HardSigmoid,
    activation::HardSwish,
    activation::Softplus,
    activation::Softsign,
    activation::Mish,
    gelu::Gelu,
    gelu::FastGelu,
    gelu::QuickGelu,
    clip::Clip,
    softmax::Softmax,
    softmax::LogSoftmax,
    reduce::ReduceSum,
    reduce::ReduceMean,
    reduce::ReduceMax,
    reduce::ReduceMin,
    reduce::ReduceProd,
    reduce::ReduceL1,
    reduce::ReduceL2,
    reduce::ReduceLogSum,
    reduce::ReduceLogSumExp,
    reduce::ReduceSumSquare,
    arg_reduce::ArgMax,
    arg_reduce::ArgMin,
    cast::Cast,
    identity::Identity,
    identity::Dropout,
    concat::Concat,
    split::Split,
    slice::Slice,
    transpose::Transpose,
    reshape::Reshape,
    flatten::Flatten,
    squeeze::Squeeze,
    unsqueeze::Unsqueeze,
    expand::Expand,
    tile::Tile,
    pad::Pad,
    gather::Gather,
    one_hot::OneHot,
    shape::Shape,
    size::Size,
    range::Range,
    constant_of_shape::ConstantOfShape,
    gemm::Gemm,
    einsum::Einsum,
    conv::Conv,
    conv_transpose::ConvTranspose,
    max_pool::MaxPool,
    average_pool::AveragePool,
    global_pool::GlobalAveragePool,
    global_pool::GlobalMaxPool,
    batch_norm::BatchNormalization,
    layer_norm::LayerNormalization,
    instance_norm::InstanceNormalization,
    group_norm::GroupNormalization,
    lrn::LRN,
    upsample::Upsample,
    depth_space::DepthToSpace,
    depth_space::SpaceToDepth,
    // Later ones follow: weights of policies know operators by their places.
    gather_elements::GatherElements,
    gather_nd::GatherND,
    gather_nd::ScatterND,
    trilu::Trilu,
    cum_sum::CumSum,
    rms_norm::RMSNormalization,
    quantize_linear::QuantizeLinear,
    dequantize_linear::DequantizeLinear,
    dynamic_quantize_linear::DynamicQuantizeLinear,
    matmul_integer::MatMulInteger,
    matmul_integer::QLinearMatMul,
    conv_integer::ConvInteger,
    conv_integer::QLinearConv,
    resize::Resize,
    rotary_embedding::RotaryEmbedding,
    attention::MultiHeadAttention,
    top_k::TopK,
    rnn::RNN,
    gru::GRU,
    lstm::LSTM,
}
