//! An operator at a layer, as something that runs: checked against its definition and against what
//! the machine can do, then timed.

use std::time::{Duration, Instant};

use regraft_cost::Ceiling;
use regraft_ir::ops::{arithmetic, reshape};
use regraft_ir::{Const, DType as IrType, Dim, Graph, Op, SplitMix64, Tensor, TensorType, ValueId};
use regraft_onnx::{Model, WriteOptions, frame};
use regraft_runtime::{Feeds, HostTensor, ModelSource, Runtime, Session, SessionOptions, TimingOptions, time_interleaved};
use regraft_synth::{Coordinates, Dims, Found, Layer as Sizes, Loops, Lowered, Spelling};

use crate::error::Failure;
use crate::synthesize::layers::{Form, Kind};

/// Outputs of a kernel may differ from those of the definition by this share of the largest.
const TOLERANCE: f64 = 1e-4;
/// Terms that a definition may have where a kernel is compared with it.
const TERMS: usize = 20_000_000;

/// Adds an operator with these weights to a graph, in place of a layer that reads `x`.
pub fn add(
    graph: &mut Graph,
    x: ValueId,
    found: &Found,
    weights: &[Vec<f32>],
    dims: &Dims,
    shapes: &[Vec<usize>],
    coordinates: &Coordinates<'_>,
) -> Result<ValueId, Failure> {
    let constants = weights.iter().zip(shapes).map(|(weight, shape)| {
        let shape: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
        let constant = Const::from_reals(IrType::F32, &shape, weight.iter().map(|w| f64::from(*w)));
        constant.map(|constant| graph.add_const(constant)).ok_or_else(|| Failure::new("weights do not fit their shape"))
    });
    let constants = constants.collect::<Result<Vec<ValueId>, Failure>>()?;
    let lowered = Lowered { plan: &found.plan, spelling: Spelling::Convolution, dims };
    lowered.add_to(graph, &found.operator, x, constants, coordinates).map_err(Failure::new)
}

/// Adds a number for each channel, and what the layer itself adds.
pub fn add_bias(graph: &mut Graph, y: ValueId, bias: &[f32], own: Option<ValueId>, kind: &Kind) -> Result<ValueId, Failure> {
    let space: &[i64] = if matches!(kind.form, Form::Convolution { .. }) { &[1, 1] } else { &[] };
    let known = own.and_then(|own| graph.constant(own)?.map_f64(|v| v)).filter(|own| own.len() == bias.len());
    let both = bias.iter().enumerate().map(|(at, b)| f64::from(*b) + known.as_ref().map_or(0.0, |own| own[at]));
    let constant = Const::from_reals(IrType::F32, &[&[bias.len() as i64], space].concat(), both.collect::<Vec<f64>>().into_iter());
    let constant = graph.add_const(constant.ok_or_else(|| Failure::new("a bias does not fit its shape"))?);
    let mut y = graph.add(Op::Add(arithmetic::Add {}), &[y, constant]).map_err(Failure::new)?.out();
    if let Some(mut own) = own.filter(|_| known.is_none()) {
        if !space.is_empty() {
            let shape = vec![Dim::from(kind.outputs as i64), Dim::from(1), Dim::from(1)];
            own = graph.add(Op::Reshape(reshape::Reshape { shape }), &[own]).map_err(Failure::new)?.out();
        }
        y = graph.add(Op::Add(arithmetic::Add {}), &[y, own]).map_err(Failure::new)?.out();
    }
    Ok(y)
}

/// Compares an operator's kernel with its definition at some sizes, as far as the definition can be
/// run in a moment; how many were compared.
///
/// # Errors
///
/// If they differ: a mistake of ours, or of the runtime.
pub fn check(found: &Found, places: &[Sizes], coordinates: &Coordinates<'_>, runtime: &dyn Runtime) -> Result<usize, Failure> {
    let mut compared = 0;
    for (seed, sizes) in places.iter().enumerate() {
        let Some(loops) = Loops::at(&found.operator, sizes, coordinates).filter(|loops| loops.len() <= TERMS) else { continue };
        let mut random = SplitMix64(seed as u64);
        let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
        let shape = shape_of(&loops, sizes, coordinates);
        let x = numbers(shape.iter().product());
        let weights: Vec<Vec<f32>> = loops.weights.iter().map(|shape| numbers(shape.iter().product())).collect();
        let model = model(found, sizes, &weights, &loops.weights, &shape, coordinates)?;
        let y = run(&model, &shape, &x, runtime)?;
        let real = |shape: &[usize], values: &[f32]| Tensor::new(shape.to_vec(), values.iter().map(|v| f64::from(*v)).collect());
        let weights: Vec<Tensor<f64>> = loops.weights.iter().zip(&weights).map(|(shape, values)| real(shape, values)).collect();
        let rows = x.chunks_exact(loops.input.iter().product::<usize>().max(1));
        let expected: Vec<f64> = rows.flat_map(|row| loops.run(&real(&loops.input, row), &weights).data).collect();
        let largest = expected.iter().fold(f64::MIN_POSITIVE, |most, v| most.max(v.abs()));
        let off = expected.iter().zip(&y).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest;
        if expected.len() != y.len() || off > TOLERANCE {
            let formula = found.operator.show(coordinates);
            return Err(Failure::new(format!("a kernel differs from its operator by {off:.1e} for an input {shape:?}: {formula}")));
        }
        compared += 1;
    }
    Ok(compared)
}

/// The input's shape with its batch.
fn shape_of(loops: &Loops, sizes: &Sizes, coordinates: &Coordinates<'_>) -> Vec<usize> {
    let batch = coordinates.spec.batch.iter().map(|size| coordinates.spec.value(*size, sizes).unwrap_or(1) as usize);
    batch.chain(loops.input.iter().copied()).collect()
}

fn model(
    found: &Found,
    sizes: &Sizes,
    weights: &[Vec<f32>],
    shapes: &[Vec<usize>],
    input: &[usize],
    coordinates: &Coordinates<'_>,
) -> Result<Vec<u8>, Failure> {
    let mut graph = Graph::new("layer");
    let x = graph.add_input("x", TensorType::new(IrType::F32, input.iter().map(|size| *size as i64)));
    let y = add(&mut graph, x, found, weights, &Dims::of(sizes), shapes, coordinates)?;
    graph.add_output("y", y);
    let frame = frame(&graph).ok_or_else(|| Failure::new("a layer's result has no known shape"))?;
    let options = WriteOptions { allow_growth: Some(u64::MAX / 2), ..WriteOptions::default() };
    Ok(Model::from_proto(frame)?.write(&graph, &options)?.to_bytes()?)
}

/// An operator at some sizes as a model, with random weights.
pub fn standing_alone(found: &Found, sizes: &Sizes, coordinates: &Coordinates<'_>) -> Result<Vec<u8>, Failure> {
    let loops = Loops::at(&found.operator, sizes, coordinates).ok_or_else(|| Failure::new("a size is no whole number"))?;
    let shape = shape_of(&loops, sizes, coordinates);
    model(found, sizes, &random_weights(&loops), &loops.weights, &shape, coordinates)
}

fn run(model: &[u8], shape: &[usize], x: &[f32], runtime: &dyn Runtime) -> Result<Vec<f64>, Failure> {
    let mut session = runtime.open(ModelSource::bytes(model), &SessionOptions::default())?;
    let mut feeds = Feeds::new();
    feeds.insert("x", HostTensor::from_values(shape.to_vec(), x).map_err(Failure::new)?);
    Ok(session.run(&feeds)?.first().map(HostTensor::to_f64).unwrap_or_default())
}

/// A layer and operators in its place, ready to be timed.
pub struct Bench<'r> {
    runtime: &'r dyn Runtime,
    threads: usize,
    ceiling: Ceiling,
    sizes: Sizes,
    layer: Vec<u8>,
    feeds: Feeds,
    lasts: Duration,
}

/// What timing found.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// A run of the operator, ns.
    pub ns: f64,
    /// A run of the layer beside it, ns.
    pub layer_ns: f64,
}

/// What things are timed with.
#[derive(Clone, Copy)]
pub struct Target<'r> {
    /// The runtime.
    pub runtime: &'r dyn Runtime,
    /// Its threads.
    pub threads: usize,
    /// What the machine can do.
    pub ceiling: Ceiling,
}

impl<'r> Bench<'r> {
    /// For a layer that is an operator itself, at these sizes; each operator is timed for so long.
    pub fn new(
        target: Target<'r>,
        dense: &Found,
        sizes: &Sizes,
        lasts: Duration,
        coordinates: &Coordinates<'_>,
    ) -> Result<Bench<'r>, Failure> {
        let loops = Loops::at(&dense.operator, sizes, coordinates).ok_or_else(|| Failure::new("a size is no whole number"))?;
        let shape = shape_of(&loops, sizes, coordinates);
        let layer = model(dense, sizes, &random_weights(&loops), &loops.weights, &shape, coordinates)?;
        let mut random = SplitMix64(2);
        let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|_| random.normal() as f32).collect();
        let mut feeds = Feeds::new();
        feeds.insert("x", HostTensor::from_values(shape, &values).map_err(Failure::new)?);
        let Target { runtime, threads, ceiling } = target;
        Ok(Bench { runtime, threads, ceiling, sizes: sizes.clone(), layer, feeds, lasts })
    }

    fn open(&self, model: &[u8]) -> Result<Box<dyn Session>, Failure> {
        let options = SessionOptions { threads: self.threads, ..SessionOptions::default() };
        let mut session = self.runtime.open(ModelSource::bytes(model), &options)?;
        session.bind(&self.feeds)?;
        Ok(session)
    }

    /// Times an operator beside the layer, in turns; `None` if the runtime does not take it.
    ///
    /// # Errors
    ///
    /// If it takes less time than its multiplications take on this machine at its best: then it
    /// does not compute what it should.
    pub fn time(&self, found: &Found, coordinates: &Coordinates<'_>) -> Result<Option<Timed>, Failure> {
        let model = standing_alone(found, &self.sizes, coordinates)?;
        let Ok(mut operator) = self.open(&model) else { return Ok(None) };
        let mut layer = self.open(&self.layer)?;
        let until = Instant::now() + self.lasts;
        let timing = TimingOptions { warmup: 2, min_rounds: 6, max_rounds: 200, ..TimingOptions::default() };
        let samples = time_interleaved(&mut [&mut *layer, &mut *operator], &timing, &mut || Instant::now() < until)?;
        let median = |at: usize| regraft_runtime::median(&samples.sessions[at]).unwrap_or(f64::INFINITY);
        let timed = Timed { ns: median(1), layer_ns: median(0) };
        let least = 2.0 * found.plan.macs_at(&found.operator, &self.sizes, coordinates) / self.ceiling.flops;
        if timed.ns * BEYOND < least {
            let formula = found.operator.show(coordinates);
            let cause = format!("an operator takes {:.0} ns, less than the {least:.0} ns of its multiplications: {formula}", timed.ns);
            return Err(Failure::new(cause).hint("this is a mistake in its kernel; please report it"));
        }
        Ok(Some(timed))
    }
}

fn random_weights(loops: &Loops) -> Vec<Vec<f32>> {
    let mut random = SplitMix64(3);
    loops.weights.iter().map(|shape| (0..shape.iter().product::<usize>()).map(|_| random.normal() as f32).collect()).collect()
}

/// How far below the measured roofline a time may lie: the roofline is measured on products, and
/// fluctuates.
const BEYOND: f64 = 1.3;
