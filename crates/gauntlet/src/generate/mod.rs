//! Random models that ONNX Runtime can run, made to provoke: forms that rules look for, broadcasts
//! and attributes at the edges of their guards, old and new forms of operators, open sizes. Values
//! stay away from jumps of functions, so that any difference is a defect.

mod arrange;
pub mod attribute;
mod discrete;
mod draft;
mod elementwise;
mod layer;
mod motif;
mod network;
mod opaque;
mod quantized;
pub mod random;
mod recurrent;
mod size;

use prost::Message;
use regraft_ir::{Const, DType};
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{Feeds, HostTensor};

use self::draft::{Draft, Val};
use self::random::Random;
use self::size::{BINDINGS, Size};

/// Versions of the standard operators that ONNX Runtime 1.31 runs.
pub const OPSETS: std::ops::RangeInclusive<i64> = 7..=26;
/// Versions of the file format that ONNX Runtime 1.31 reads.
const FORMATS: std::ops::RangeInclusive<i64> = 3..=13;

/// A random model and what to feed it.
pub struct Case {
    /// The model.
    pub model: ModelProto,
    /// Values for its inputs, at one or more bindings of its open sizes.
    pub feeds: Vec<Feeds>,
    /// Relative difference that passes.
    pub tolerance: f64,
}

impl Case {
    /// The serialized model.
    pub fn bytes(&self) -> Vec<u8> {
        self.model.encode_to_vec()
    }
}

/// A way to extend a model.
type Step = fn(&mut Draft) -> Option<Val>;

/// All ways to extend a model, with their frequencies.
const STEPS: &[(usize, Step)] = &[
    (4, elementwise::unary),
    (3, elementwise::each_unary),
    (4, elementwise::activation),
    (5, elementwise::arithmetic),
    (2, elementwise::power),
    (2, elementwise::variadic),
    (2, elementwise::clip),
    (1, elementwise::prelu),
    (1, elementwise::dropout),
    (1, elementwise::shrink),
    (2, elementwise::softmax),
    (3, elementwise::reduce),
    (3, arrange::transpose),
    (3, arrange::reshape),
    (1, arrange::flatten),
    (2, arrange::squeeze),
    (2, arrange::repeat),
    (2, arrange::pad),
    (3, arrange::slice),
    (3, arrange::split),
    (3, arrange::join),
    (2, arrange::gather),
    (1, arrange::pick_elements),
    (1, arrange::slices),
    (1, arrange::triangle),
    (1, arrange::running_sum),
    (2, arrange::depth_space),
    (1, arrange::enlarge),
    (2, arrange::resample),
    (2, discrete::arithmetic),
    (2, discrete::compare),
    (2, discrete::logic),
    (2, discrete::choice),
    (1, discrete::convert),
    (1, discrete::rounding),
    (1, discrete::finite),
    (1, discrete::arg_extreme),
    (1, discrete::extremes),
    (1, discrete::one_hot),
    (1, discrete::range),
    (1, discrete::filled),
    (1, discrete::sizes),
    (1, discrete::shift),
    (4, layer::conv),
    (2, layer::conv_transpose),
    (3, layer::pool),
    (1, layer::global_pool),
    (2, layer::batch_norm),
    (3, layer::normalize),
    (3, layer::rotate),
    (1, layer::attention),
    (4, layer::matmul),
    (2, layer::gemm),
    (2, recurrent::layer),
    (2, layer::einsum),
    (8, motif::activation),
    (6, motif::algebra),
    (3, motif::normalization),
    (4, motif::affine),
    (4, motif::layout),
    (6, network::conv_block),
    (6, network::conv_branches),
    (4, network::conv_neighbours),
    (6, network::products),
    (4, network::joints),
    (1, opaque::branch),
    (1, opaque::repetition),
    (1, opaque::call),
    (1, opaque::contributed),
    (1, quantized::pointwise),
    (1, quantized::product),
    (1, quantized::convolution),
    (1, quantized::dynamic),
    (1, opaque::undefined),
    (1, opaque::nonzero),
];

/// Model `number` of the campaign with `seed`.
pub fn case(seed: u64, number: u64) -> Case {
    let mut random = Random::new(seed, number);
    let opset = if random.once_in(3) { random.pick(&[11, 13, 17, 20]) } else { random.int(*OPSETS.start(), *OPSETS.end()) };
    let ir = if random.once_in(6) { 3 } else { random.int(*FORMATS.start(), *FORMATS.end()) };
    let real = match random.below(20) {
        0 => DType::F64,
        1 => DType::F16,
        _ => DType::F32,
    };
    let mut draft = Draft::new(random, opset, ir, real);
    inputs(&mut draft);
    let wanted = 5 + draft.random.below(14);
    let total: usize = STEPS.iter().map(|s| s.0).sum();
    // The first step cycles through the table, so that every step is taken; the others are random.
    let mut next = (number % STEPS.len() as u64) as usize;
    for _ in 0..4 * wanted {
        if draft.len() >= wanted {
            break;
        }
        if let Some(val) = STEPS[next].1(&mut draft) {
            draft.pool.push(val);
        }
        let mut at = draft.random.below(total);
        next = STEPS.iter().position(|s| at.checked_sub(s.0).map(|rest| at = rest).is_none()).unwrap_or(0);
    }
    let feeds = feeds(&mut draft);
    let tolerance = if real == DType::F16 { 0.05 } else { crate::trial::TOLERANCE };
    let model = draft.finish(&[("com.microsoft", 1), (opaque::DOMAIN, 1)]);
    Case { model: deduplicated(model), feeds, tolerance }
}

/// One to five inputs, often of similar sizes, so that a mistaken axis does not show up as a
/// mistaken shape.
fn inputs(d: &mut Draft) {
    let n = d.random.pick(&[1, 2, 3, 4]);
    let open = d.random.once_in(3);
    let batch = if open { d.random.pick(&[Size([1, 3, 2]), Size([2, 1, 5])]) } else { Size::fixed(d.random.pick(&[1, 2, n])) };
    let wide = open && d.random.once_in(3);
    let channels = d.random.pick(&[1, 2, 3, 4, 4, 6, 8]);
    let side = |d: &mut Draft| {
        let alike = d.random.once_in(2);
        if alike { channels.max(4) } else { d.random.int(3, 9) }
    };
    let (h, w) = (side(d), side(d));
    let far = if wide { Size([h, h + 2, h + 4]) } else { Size::fixed(h) };
    let image = vec![batch, Size::fixed(channels), far, Size::fixed(w)];
    let rows = vec![batch, Size::fixed(h), Size::fixed(channels * 2)];
    let main = match d.random.below(8) {
        0..=3 => image,
        4 => vec![batch, Size::fixed(channels), far],
        5 => vec![batch, Size::fixed(4)],
        6 if d.opset >= 11 => vec![batch, Size::fixed(channels), Size::fixed(4), Size::fixed(4), Size::fixed(3)],
        _ => rows,
    };
    let real = d.real;
    d.input(real, main.clone());
    if d.random.once_in(2) {
        d.input(real, main.clone());
    }
    if d.random.once_in(3) {
        d.input(DType::I64, main[..main.len().min(2)].to_vec());
    }
    if d.random.once_in(5) {
        let rank = d.random.below(main.len() + 1);
        d.input(real, main[main.len() - rank..].to_vec());
    }
    if d.random.once_in(8) {
        d.input(DType::Bool, vec![]);
    }
}

/// Values for the inputs: at one binding if all sizes are fixed.
fn feeds(d: &mut Draft) -> Vec<Feeds> {
    let open = d.inputs.iter().any(|v| v.dims.iter().any(|s| s.known().is_none()));
    let count = if open { BINDINGS } else { 1 };
    let inputs = d.inputs.clone();
    (0..count)
        .map(|at| {
            let feed = |input: &Val| {
                let shape: Vec<i64> = input.dims.iter().map(|s| s.0[at]).collect();
                let elements = shape.iter().product::<i64>();
                let values: Vec<f64> = (0..elements)
                    .map(|_| match input.ty {
                        DType::Bool => d.random.int(0, 1) as f64,
                        ty if ty.is_float() => d.random.real(-1.5, 1.5),
                        _ => d.random.int(0, 5) as f64,
                    })
                    .collect();
                let bytes = Const::from_f64(input.ty, &shape, &values)?.bytes().clone();
                let ty = regraft_runtime::DType::from_onnx(input.ty.to_onnx());
                let tensor = HostTensor::from_bytes(ty, shape.iter().map(|s| *s as usize).collect(), &bytes).ok()?;
                Some((input.name.clone(), tensor))
            };
            inputs.iter().filter_map(feed).collect()
        })
        .collect()
}

/// The model with every function once, and without imports of unused domains.
fn deduplicated(mut model: ModelProto) -> ModelProto {
    model.functions.sort_by(|a, b| a.name().cmp(b.name()));
    model.functions.dedup_by(|a, b| a.name() == b.name());
    let used = |domain: &str| model.graph.iter().flat_map(|g| &g.node).any(|n| n.domain() == domain);
    // Operators of the runtime's own domain may be written, if it is imported.
    let keep: Vec<bool> = model.opset_import.iter().map(|o| matches!(o.domain(), "" | "com.microsoft") || used(o.domain())).collect();
    let mut keep = keep.into_iter();
    model.opset_import.retain(|_| keep.next().unwrap_or(true));
    model
}
