//! ResNet-18 for small images (He and others, "Deep Residual Learning for Image Recognition", 2016,
//! table 1 and section 4.2: a 3x3 stem that keeps the size).

use anyhow::{Context, Result, ensure};
use burn_flex::{Flex, FlexDevice};
use regraft_ir::ops::{activation, arithmetic, conv, matmul, reduce, unary};
use regraft_ir::{Const, DType, Graph, Op, TensorType, ValueId};
use regraft_onnx::{Model, WriteOptions, frame};

use crate::executor::{run_all, tensor, values};
use crate::network::{Network, Parameter};
use crate::task::{CLASSES, Images};

/// How large a network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Height and width of images.
    pub side: usize,
    /// Channels of the first stage; each stage has twice those of the one before. ResNet-18 has 64.
    pub width: usize,
    /// Blocks of each stage: two in ResNet-18.
    pub blocks: usize,
}

/// Stages.
const STAGES: usize = 4;
/// Added to a variance before its root is taken.
const EPSILON: f64 = 1e-5;

/// A network in training, and where its batch normalizations are.
#[derive(Clone, Debug)]
pub struct ResNet {
    /// The network; its normalizations use the batch's own means and variances.
    pub network: Network,
    shape: Shape,
    /// Means and variances of its normalizations.
    moments: Vec<[ValueId; 2]>,
}

impl ResNet {
    /// For so many images at once; `None` if a size does not fit.
    pub fn new(shape: Shape, batch: usize) -> Option<ResNet> {
        let mut builder = Builder::new(shape, batch, None);
        builder.network()?;
        let Builder { graph, parameters, moments, .. } = builder;
        Some(ResNet { network: Network { graph, parameters }, shape, moments })
    }

    /// The network with these parameters, for inference on so many images at once: each convolution
    /// with its normalization is one convolution. Means and variances are those of the images.
    ///
    /// # Errors
    ///
    /// If the network cannot be computed, or there are fewer images than a batch.
    pub fn inferring(&self, parameters: &[Vec<f32>], images: &Images, batch: usize) -> Result<Graph> {
        let moments = self.moments(parameters, images)?;
        let mut builder = Builder::new(self.shape, batch, Some(Learned { parameters, moments: &moments }));
        builder.network().context("the network cannot be written")?;
        Ok(builder.graph)
    }

    /// Means and variances over all images, batch by batch.
    fn moments(&self, parameters: &[Vec<f32>], images: &Images) -> Result<Vec<[Vec<f32>; 2]>> {
        let mut graph = Graph::clone(&self.network.graph);
        let inputs = graph.ty(graph.inputs()[0].out()).and_then(TensorType::known_shape).context("the input has no size")?;
        let inputs: Vec<usize> = inputs.iter().map(|size| *size as usize).collect();
        for (at, moment) in self.moments.iter().flatten().enumerate() {
            graph.add_output(&format!("moment {at}"), *moment);
        }
        let (mut sums, mut count) = (vec![Vec::<f64>::new(); 2 * self.moments.len()], 0.0);
        for pixels in images.pixels.chunks_exact(inputs.iter().product()) {
            let mut operands = vec![tensor::<Flex>(pixels.to_vec(), &inputs, &FlexDevice)];
            let given = parameters.iter().zip(&self.network.parameters);
            operands.extend(given.map(|(value, parameter)| tensor::<Flex>(value.clone(), &parameter.shape, &FlexDevice)));
            let outputs = run_all::<Flex>(&graph, &operands, &FlexDevice)?.into_iter().skip(1);
            for (sum, output) in sums.iter_mut().zip(outputs) {
                let output = values::<Flex>(output)?;
                sum.resize(output.len(), 0.0);
                sum.iter_mut().zip(output).for_each(|(sum, value)| *sum += f64::from(value));
            }
            count += 1.0;
        }
        ensure!(count > 0.0, "there are fewer images than in one batch");
        let mut means = sums.into_iter().map(|sum| sum.into_iter().map(|value| (value / count) as f32).collect::<Vec<f32>>());
        Ok(std::iter::from_fn(|| Some([means.next()?, means.next()?])).collect())
    }
}

/// A graph as an ONNX file.
///
/// # Errors
///
/// If an operator in it has no spelling.
pub fn onnx(graph: &Graph) -> Result<Vec<u8>> {
    let model = Model::from_proto(frame(graph).context("a size is not known")?)?;
    let options = WriteOptions { allow_growth: Some(u64::MAX / 2), ..WriteOptions::default() };
    Ok(model.write(graph, &options)?.to_bytes()?)
}

/// What training came to: parameters, and means and variances.
#[derive(Clone, Copy)]
struct Learned<'l> {
    parameters: &'l [Vec<f32>],
    moments: &'l [[Vec<f32>; 2]],
}

struct Builder<'l> {
    graph: Graph,
    shape: Shape,
    batch: usize,
    /// None while training.
    learned: Option<Learned<'l>>,
    parameters: Vec<Parameter>,
    moments: Vec<[ValueId; 2]>,
    /// Parameters and normalizations that were used.
    used: (usize, usize),
}

impl<'l> Builder<'l> {
    fn new(shape: Shape, batch: usize, learned: Option<Learned<'l>>) -> Builder<'l> {
        Builder { graph: Graph::new("resnet"), shape, batch, learned, parameters: vec![], moments: vec![], used: (0, 0) }
    }

    fn network(&mut self) -> Option<()> {
        let Shape { side, width, blocks } = self.shape;
        let size = [self.batch, 1, side, side].map(|size| size as i64);
        let x = self.graph.add_input("x", TensorType::new(DType::F32, size));
        let mut y = self.convolution(x, [1, width], 3, 1)?;
        y = self.relu(y)?;
        let mut channels = width;
        for stage in 0..STAGES {
            let outputs = width << stage;
            for block in 0..blocks {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                let mut inner = self.convolution(y, [channels, outputs], 3, stride)?;
                inner = self.relu(inner)?;
                inner = self.convolution(inner, [outputs, outputs], 3, 1)?;
                if stride != 1 || channels != outputs {
                    y = self.convolution(y, [channels, outputs], 1, stride)?;
                }
                y = self.add(Op::Add(arithmetic::Add {}), &[y, inner])?;
                y = self.relu(y)?;
                channels = outputs;
            }
        }
        y = self.add(Op::ReduceMean(reduce::ReduceMean { axes: vec![2, 3], keepdims: false }), &[y])?;
        let head = self.parameter(&[channels, CLASSES], (0.0, (1.0 / channels as f32).sqrt()))?;
        let bias = self.parameter(&[1, CLASSES], (0.0, 0.0))?;
        y = self.add(Op::MatMul(matmul::MatMul {}), &[y, head])?;
        y = self.add(Op::Add(arithmetic::Add {}), &[y, bias])?;
        self.graph.add_output("y", y);
        Some(())
    }

    fn relu(&mut self, x: ValueId) -> Option<ValueId> {
        self.add(Op::Relu(activation::Relu {}), &[x])
    }

    /// A convolution, then batch normalization.
    fn convolution(&mut self, x: ValueId, [inputs, outputs]: [usize; 2], window: usize, stride: i64) -> Option<ValueId> {
        let terms = inputs * window * window;
        let op = conv::Conv { strides: vec![stride; 2], pads: vec![(window / 2) as i64; 4], dilations: vec![1, 1], group: 1 };
        let kernel = [outputs, inputs, window, window];
        if self.learned.is_some() {
            let [weights, scale, shift] = [self.next()?, self.next()?, self.next()?];
            let [mean, variance] = &self.learned?.moments[self.used.1];
            self.used.1 += 1;
            let factors: Vec<f64> =
                scale.iter().zip(variance).map(|(scale, v)| f64::from(*scale) / (f64::from(*v) + EPSILON).sqrt()).collect();
            let rows = weights.chunks_exact(terms).zip(&factors);
            let folded: Vec<f64> = rows.flat_map(|(row, factor)| row.iter().map(move |w| f64::from(*w) * factor)).collect();
            let bias = shift.iter().zip(mean).zip(&factors).map(|((shift, mean), factor)| f64::from(*shift) - f64::from(*mean) * factor);
            let folded = Const::from_reals(DType::F32, &kernel.map(|size| size as i64), folded.into_iter())?;
            let bias = Const::from_reals(DType::F32, &[outputs as i64], bias)?;
            let (folded, bias) = (self.graph.add_const(folded), self.graph.add_const(bias));
            return self.add(Op::Conv(op), &[x, folded, bias]);
        }
        let weights = self.parameter(&kernel, (0.0, (2.0 / terms as f32).sqrt()))?;
        let (scale, shift) = (self.parameter(&[1, outputs, 1, 1], (1.0, 0.0))?, self.parameter(&[1, outputs, 1, 1], (0.0, 0.0))?);
        let y = self.add(Op::Conv(op), &[x, weights])?;
        let mean = |builder: &mut Self, x| builder.add(Op::ReduceMean(reduce::ReduceMean { axes: vec![0, 2, 3], keepdims: true }), &[x]);
        let middle = mean(self, y)?;
        let centred = self.add(Op::Sub(arithmetic::Sub {}), &[y, middle])?;
        let square = self.add(Op::Mul(arithmetic::Mul {}), &[centred, centred])?;
        let variance = mean(self, square)?;
        self.moments.push([middle, variance]);
        let epsilon = self.graph.add_const(Const::from_f64(DType::F32, &[1, 1, 1, 1], &[EPSILON])?);
        let deviation = self.add(Op::Add(arithmetic::Add {}), &[variance, epsilon])?;
        let deviation = self.add(Op::Sqrt(unary::Sqrt {}), &[deviation])?;
        let y = self.add(Op::Div(arithmetic::Div {}), &[centred, deviation])?;
        let y = self.add(Op::Mul(arithmetic::Mul {}), &[y, scale])?;
        self.add(Op::Add(arithmetic::Add {}), &[y, shift])
    }

    /// What was learned of the next parameter.
    fn next(&mut self) -> Option<&'l [f32]> {
        let value = self.learned?.parameters.get(self.used.0)?;
        self.used.0 += 1;
        Some(value)
    }

    fn parameter(&mut self, shape: &[usize], start: (f32, f32)) -> Option<ValueId> {
        let sizes: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
        if self.learned.is_some() {
            let value = self.next()?;
            return Some(self.graph.add_const(Const::from_reals(DType::F32, &sizes, value.iter().map(|v| f64::from(*v)))?));
        }
        let name = format!("p{}", self.parameters.len());
        let value = self.graph.add_input(&name, TensorType::new(DType::F32, sizes));
        self.parameters.push(Parameter { name, shape: shape.to_vec(), start });
        Some(value)
    }

    fn add(&mut self, op: Op, inputs: &[ValueId]) -> Option<ValueId> {
        Some(self.graph.add(op, inputs).ok()?.out())
    }
}
