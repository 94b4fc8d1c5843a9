//! A small residual network with an operator in place of its convolutions.

use regraft_ir::ops::{activation, arithmetic, conv, matmul, reduce, reshape, unary};
use regraft_ir::{Const, DType, Dim, Graph, Op, TensorType, ValueId};
use regraft_synth::{Coordinates, Dims, Layer, Lowered, Operator, Plan, Spec, Spelling, presets};

use crate::task::CLASSES;

/// What training changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name: that of an input of the graph.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The standard deviation that it begins with, around this mean.
    pub start: (f32, f32),
}

/// A network as a graph: the images are its first input, its parameters the others, and for each
/// image a number for each class is its output.
#[derive(Clone, Debug)]
pub struct Network {
    /// The graph.
    pub graph: Graph,
    /// Its parameters, in the order of the graph's inputs.
    pub parameters: Vec<Parameter>,
}

/// The specification of the network's layers, a preset: `[C_in, H, H]` to `[C_out, H, H]`, at two
/// widths.
///
/// # Panics
///
/// Never: the preset is there.
pub fn spec() -> Spec {
    presets::find("small-network").unwrap_or_else(|| unreachable!("a preset that is shipped")).spec
}

/// Height and width of its images.
const SIDE: usize = 16;
/// For images without color.
const CHANNELS: usize = 1;
const WIDTHS: [usize; 2] = [32, 64];
/// Added to a variance before its root is taken.
const EPSILON: f64 = 1e-5;

impl Network {
    /// The network for so many images at once, with an operator of [`spec`] in its layers; `None`
    /// if the operator cannot be written.
    pub fn new(operator: &Operator, plan: &Plan, batch: usize, coordinates: &Coordinates<'_>) -> Option<Network> {
        let mut graph = Graph::new("small-network");
        let x = graph.add_input("x", TensorType::new(DType::F32, [batch as i64, CHANNELS as i64, SIDE as i64, SIDE as i64]));
        let mut builder = Builder { graph, parameters: vec![], operator, plan, coordinates, batch };
        let y = builder.network(x)?;
        let Builder { mut graph, parameters, .. } = builder;
        graph.add_output("y", y);
        Some(Network { graph, parameters })
    }
}

struct Builder<'a, 's> {
    graph: Graph,
    parameters: Vec<Parameter>,
    operator: &'a Operator,
    plan: &'a Plan,
    coordinates: &'a Coordinates<'s>,
    batch: usize,
}

impl Builder<'_, '_> {
    fn network(&mut self, x: ValueId) -> Option<ValueId> {
        let [narrow, wide] = WIDTHS;
        let stem = self.parameter(&[narrow, CHANNELS, 3, 3], (0.0, (2.0f32 / 9.0).sqrt()));
        let conv = conv::Conv { strides: vec![1, 1], pads: vec![1; 4], dilations: vec![1, 1], group: 1 };
        let mut y = self.add(Op::Conv(conv), &[x, stem])?;
        y = self.normalized(y, narrow)?;
        for _ in 0..2 {
            let inner = self.layer(y, 0, narrow)?;
            y = self.add(Op::Add(arithmetic::Add {}), &[y, inner])?;
        }
        let shape = [self.batch, narrow, SIDE / 2, 2, SIDE / 2, 2].map(|size| Dim::from(size as i64)).to_vec();
        y = self.add(Op::Reshape(reshape::Reshape { shape }), &[y])?;
        y = self.add(Op::ReduceMean(reduce::ReduceMean { axes: vec![3, 5], keepdims: false }), &[y])?;
        y = self.layer(y, 1, wide)?;
        let inner = self.layer(y, 2, wide)?;
        y = self.add(Op::Add(arithmetic::Add {}), &[y, inner])?;
        y = self.add(Op::ReduceMean(reduce::ReduceMean { axes: vec![2, 3], keepdims: false }), &[y])?;
        let head = self.parameter(&[wide, CLASSES], (0.0, (1.0 / wide as f32).sqrt()));
        let bias = self.parameter(&[1, CLASSES], (0.0, 0.0));
        y = self.add(Op::MatMul(matmul::MatMul {}), &[y, head])?;
        self.add(Op::Add(arithmetic::Add {}), &[y, bias])
    }

    /// The operator in the specification's layer of this number, normalized, without negative
    /// values.
    fn layer(&mut self, x: ValueId, layer: usize, outputs: usize) -> Option<ValueId> {
        let spec = self.coordinates.spec;
        let mut sizes: Layer = spec.layers[layer].clone();
        let batch = spec.variables.iter().position(|v| v.name == "N")?;
        sizes.values[batch] = self.batch as u64;
        let size = |coord| spec.value(self.coordinates.size(coord), &sizes).map(|v| v as usize);
        let terms: usize = self.operator.sums.iter().map(|sum| size(*sum)).product::<Option<usize>>()?;
        let scale = (2.0 / terms as f32).powf(0.5 / self.operator.weights.len() as f32);
        let shapes = self.operator.weights.iter().map(|weight| weight.iter().map(|coord| size(*coord)).collect::<Option<Vec<usize>>>());
        let shapes = shapes.collect::<Option<Vec<Vec<usize>>>>()?;
        let weights = shapes.iter().map(|shape| self.parameter(shape, (0.0, scale))).collect();
        let lowered = Lowered { plan: self.plan, spelling: Spelling::Convolution, dims: &Dims::of(&sizes) };
        let y = lowered.add_to(&mut self.graph, self.operator, x, weights, self.coordinates).ok()?;
        self.normalized(y, outputs)
    }

    /// Each image's values with mean 0 and variance 1, then scaled by channel, and cut off below 0.
    fn normalized(&mut self, x: ValueId, channels: usize) -> Option<ValueId> {
        let mean = |builder: &mut Self, x| builder.add(Op::ReduceMean(reduce::ReduceMean { axes: vec![1, 2, 3], keepdims: true }), &[x]);
        let middle = mean(self, x)?;
        let centred = self.add(Op::Sub(arithmetic::Sub {}), &[x, middle])?;
        let square = self.add(Op::Mul(arithmetic::Mul {}), &[centred, centred])?;
        let variance = mean(self, square)?;
        let epsilon = self.graph.add_const(Const::from_f64(DType::F32, &[1, 1, 1, 1], &[EPSILON])?);
        let variance = self.add(Op::Add(arithmetic::Add {}), &[variance, epsilon])?;
        let deviation = self.add(Op::Sqrt(unary::Sqrt {}), &[variance])?;
        let y = self.add(Op::Div(arithmetic::Div {}), &[centred, deviation])?;
        let (scale, shift) = (self.parameter(&[1, channels, 1, 1], (1.0, 0.0)), self.parameter(&[1, channels, 1, 1], (0.0, 0.0)));
        let y = self.add(Op::Mul(arithmetic::Mul {}), &[y, scale])?;
        let y = self.add(Op::Add(arithmetic::Add {}), &[y, shift])?;
        self.add(Op::Relu(activation::Relu {}), &[y])
    }

    fn parameter(&mut self, shape: &[usize], start: (f32, f32)) -> ValueId {
        let name = format!("p{}", self.parameters.len());
        let value = self.graph.add_input(&name, TensorType::new(DType::F32, shape.iter().map(|size| *size as i64)));
        self.parameters.push(Parameter { name, shape: shape.to_vec(), start });
        value
    }

    fn add(&mut self, op: Op, inputs: &[ValueId]) -> Option<ValueId> {
        Some(self.graph.add(op, inputs).ok()?.out())
    }
}
