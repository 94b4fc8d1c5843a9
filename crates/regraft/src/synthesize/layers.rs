//! The layers of a model that an operator can replace.

use regraft_ir::ops::conv::Conv;
use regraft_ir::{Bindings, Const, Dim, Graph, NodeId, Op, TensorType, ValueId};
use regraft_synth::{Dims, Layer as Sizes, Limits, Offset, Spec};

/// A convolution that keeps height and width, or a product of features, with known weights.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The node.
    pub node: NodeId,
    /// What it reads.
    pub x: ValueId,
    /// Its matrix from patches to outputs, a row for each output: the positions of a patch
    /// outermost, as [`Kind::offsets`] lists them.
    pub matrix: Vec<f32>,
    /// What it adds, if anything.
    pub bias: Option<ValueId>,
    /// The shape of what it reads, as the graph says.
    pub shape: Vec<Dim>,
    /// Its sizes.
    pub kind: Kind,
}

/// What a layer slides over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Images `[N, C, height, width]`, with square windows.
    Convolution {
        /// Height and width.
        space: [usize; 2],
        /// Height and width of the kernel.
        window: usize,
    },
    /// Nothing: features are the last axis, after so many others.
    Product {
        /// Axes before the features.
        axes: usize,
    },
}

/// Layers of one kind have the same sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The batch: for a product, all axes before the features together.
    pub batch: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// What it slides over.
    pub form: Form,
}

impl Kind {
    fn window(&self) -> usize {
        match self.form {
            Form::Convolution { window, .. } => window,
            Form::Product { .. } => 1,
        }
    }

    /// Places that it is computed at.
    fn places(&self) -> usize {
        match self.form {
            Form::Convolution { space: [height, width], .. } => self.batch * height * width,
            Form::Product { .. } => self.batch,
        }
    }

    /// Multiplications of one run.
    pub fn macs(&self) -> f64 {
        self.parameters() * self.places() as f64
    }

    /// Weights.
    pub fn parameters(&self) -> f64 {
        (self.channels * self.outputs * self.window() * self.window()) as f64
    }

    /// As people write it: `64 -> 128, 3x3, 28x28`, or `512 -> 64, 49 rows`.
    pub fn show(&self) -> String {
        match self.form {
            Form::Convolution { space: [height, width], window } => {
                format!("{} -> {}, {window}x{window}, {height}x{width}", self.channels, self.outputs)
            }
            Form::Product { .. } => format!("{} -> {}, {} rows", self.channels, self.outputs, self.batch),
        }
    }

    /// Where the layer reads, as seen from an output.
    pub fn offsets(&self) -> Vec<Offset> {
        match self.form {
            Form::Convolution { window, .. } => {
                let half = (window / 2) as i32;
                let span = || -half..=half;
                span().flat_map(|h| span().map(move |w| vec![h, w])).collect()
            }
            Form::Product { .. } => vec![vec![]],
        }
    }

    /// The matrix of a convolution with this kernel, `[C_out, C_in, window, window]`.
    fn of_kernel(&self, kernel: &[f32]) -> Vec<f32> {
        let places = self.window() * self.window();
        let width = places * self.channels;
        let mut matrix = vec![0.0; self.outputs * width];
        for (output, row) in matrix.chunks_exact_mut(width).enumerate() {
            for place in 0..places {
                for channel in 0..self.channels {
                    row[place * self.channels + channel] = kernel[(output * self.channels + channel) * places + place];
                }
            }
        }
        matrix
    }

    /// What operators for it are searched in: windows of the layer's own width, and channels in
    /// halves, thirds or quarters, whichever divide them.
    pub fn spec(&self) -> Spec {
        let divides = |by: usize| self.channels.is_multiple_of(by) && self.outputs.is_multiple_of(by);
        let small = [2, 3, 5].into_iter().find(|s| divides(*s));
        let large = [8, 4, 6, 9].into_iter().find(|g| divides(*g) && small.is_some_and(|s| divides(g * s) || self.channels >= 16));
        // For a product all axes but the features pass through.
        let (batch, space, size) = match self.form {
            Form::Convolution { space: [height, width], .. } => {
                ("\"N\"".to_string(), ", \"H\", \"W\"", format!("N = {}\nH = {height}\nW = {width}\n", self.batch))
            }
            Form::Product { axes } => {
                let sizes = (0..axes).map(|axis| format!("N_{axis} = {}\n", if axis == 0 { self.batch } else { 1 }));
                ((0..axes).map(|axis| format!("\"N_{axis}\"")).collect::<Vec<_>>().join(", "), "", sizes.collect())
            }
        };
        let dense = match self.form {
            Form::Product { .. } => "sum r0: C_in; x[r0] * w[i0, r0]",
            Form::Convolution { window: 1, .. } => "sum r0: C_in; x[r0, i1, i2] * w[i0, r0]",
            Form::Convolution { .. } => "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]",
        };
        let mut text = format!(
            "dense = \"{dense}\"\ninput = [{batch}, \"C_in\"{space}]\noutput = [{batch}, \"C_out\"{space}]\nbatch = [{batch}]\n\
             unordered = [\"C_in\", \"C_out\"]\n[variables]\nC_in = 3\nC_out = 4\n[coefficients]\n"
        );
        if self.window() > 1 {
            text += &format!("k = [{}, 2]\n", self.window());
        }
        for (name, value) in [("s", small), ("g", large)] {
            if let Some(value) = value {
                text += &format!("{name} = [{value}, 3]\n");
            }
        }
        text += &format!("[[layers]]\nC_in = {}\nC_out = {}\n{size}", self.channels, self.outputs);
        let mut spec = Spec::parse(&text).unwrap_or_else(|e| unreachable!("{e}: {text}"));
        spec.name = self.show();
        spec.limits = Limits {
            depth: 11,
            reductions: 5,
            weights: 2,
            shared: (2, self.outputs.max(self.channels) as u64),
            added: u64::MAX,
            weight: 1,
            most_macs: WORTHWHILE,
            window_ratio: 1.0,
            dense_window: (self.window() * self.window()) as u64,
            ..Limits::default()
        };
        spec
    }

    /// The sizes of an operator's specification for one image with this height and width, or for
    /// this many rows.
    fn sizes(&self, spec: &Spec, [height, width]: [usize; 2]) -> Sizes {
        let layer = &spec.layers[0];
        let values = spec.variables.iter().zip(&layer.values).map(|(variable, own)| match variable.name.as_str() {
            "N" => 1,
            "N_0" | "H" => height as u64,
            "W" => width as u64,
            _ => *own,
        });
        Sizes { values: values.collect(), count: 1 }
    }

    /// Small sizes at which kernels are compared with their definition, odd and even.
    pub fn small(&self, spec: &Spec) -> Vec<Sizes> {
        [[5, 5], [6, 4], [7, 8]].map(|place| self.sizes(spec, place)).to_vec()
    }

    /// Sizes at which a patch lies inside, whatever windows an operator has.
    pub fn around(&self, spec: &Spec) -> Sizes {
        self.sizes(spec, [self.window() + 6; 2])
    }
}

impl Layer {
    /// The variables' sizes where the layer stands.
    pub fn dims(&self, spec: &Spec) -> Dims {
        let numbers = spec.variables.iter().zip(&spec.layers[0].values);
        let dim = |name: &str, own: u64| match name {
            "N" => self.shape[0].clone(),
            "H" => self.shape[2].clone(),
            "W" => self.shape[3].clone(),
            name => match name.strip_prefix("N_").and_then(|axis| axis.parse::<usize>().ok()) {
                Some(axis) => self.shape[axis].clone(),
                None => Dim::from(own as i64),
            },
        };
        Dims::new(numbers.map(|(variable, own)| dim(&variable.name, *own)).collect())
    }
}

/// Operators that take a larger share of the layer's multiplications are not looked at.
const WORTHWHILE: f64 = 0.8;

/// Why a node is no layer that can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    /// It is neither a convolution nor a product with weights.
    Operator,
    /// Its weights are computed when the model runs.
    Weights,
    /// It strides, dilates, has groups, changes height or width, or is small.
    Form,
    /// Its sizes are not known.
    Sizes,
}

/// All layers of a graph, at these sizes of its symbols, and how many convolutions and products
/// with weights are none.
pub fn layers(graph: &Graph, symbols: &Bindings) -> (Vec<Layer>, usize) {
    let (mut found, mut others) = (Vec::new(), 0);
    for id in graph.topological() {
        let layer = match &graph.node(id).op {
            Op::Conv(conv) => convolution(graph, id, conv, symbols),
            Op::MatMul(_) => product(graph, id, false, symbols),
            Op::Gemm(gemm) if gemm.alpha.0 == 1.0 && gemm.beta.0 == 1.0 && !gemm.trans_a => product(graph, id, gemm.trans_b, symbols),
            _ => Err(Unfit::Operator),
        };
        match layer {
            Ok(layer) => found.push(layer),
            Err(Unfit::Operator) => {}
            Err(_) => others += 1,
        }
    }
    (found, others)
}

/// Below, nothing can be gained, and channels cannot be parted.
const FEWEST_CHANNELS: usize = 8;
const FEWEST_MACS: f64 = 1e5;

fn convolution(graph: &Graph, id: NodeId, conv: &Conv, symbols: &Bindings) -> Result<Layer, Unfit> {
    let node = graph.node(id);
    let &[x, w, ..] = &node.inputs[..] else { return Err(Unfit::Operator) };
    let kernel = graph.constant(w).ok_or(Unfit::Weights)?;
    let &[outputs, channels, height, width] = kernel.shape() else { return Err(Unfit::Form) };
    let plain = Conv { strides: vec![1, 1], pads: vec![height / 2; 4], dilations: vec![1, 1], group: 1 };
    if height != width || height % 2 == 0 || *conv != plain {
        return Err(Unfit::Form);
    }
    let (shape, sizes) = sizes(graph, x, symbols)?;
    let form = Form::Convolution { space: [sizes[2], sizes[3]], window: height as usize };
    let kind = Kind { batch: sizes[0], channels: channels as usize, outputs: outputs as usize, form };
    let matrix = kind.of_kernel(&numbers(kernel, &kind)?);
    Ok(Layer { node: id, x, matrix, bias: node.inputs.get(2).copied(), shape, kind })
}

/// A product of features with weights `[K, N]`, or `[N, K]` if they are `transposed`.
fn product(graph: &Graph, id: NodeId, transposed: bool, symbols: &Bindings) -> Result<Layer, Unfit> {
    let node = graph.node(id);
    let &[x, w, ..] = &node.inputs[..] else { return Err(Unfit::Operator) };
    // A product of two data tensors has no weights at all.
    let weights = graph.constant(w).ok_or(Unfit::Operator)?;
    let &[first, second] = weights.shape() else { return Err(Unfit::Form) };
    let (inner, outer) = if transposed { (second, first) } else { (first, second) };
    let (shape, sizes) = sizes(graph, x, symbols)?;
    if sizes.len() < 2 {
        return Err(Unfit::Form);
    }
    let axes = sizes.len() - 1;
    let batch = sizes[..axes].iter().product();
    let kind = Kind { batch, channels: inner as usize, outputs: outer as usize, form: Form::Product { axes } };
    let numbers = numbers(weights, &kind)?;
    let at = |output: usize, channel: usize| {
        if transposed { output * kind.channels + channel } else { channel * kind.outputs + output }
    };
    let matrix = (0..kind.outputs).flat_map(|output| (0..kind.channels).map(move |channel| (output, channel)));
    let matrix = matrix.map(|(output, channel)| numbers[at(output, channel)]).collect();
    Ok(Layer { node: id, x, matrix, bias: node.inputs.get(2).copied(), shape, kind })
}

/// The shape of a value, and what that is at these sizes.
fn sizes(graph: &Graph, x: ValueId, symbols: &Bindings) -> Result<(Vec<Dim>, Vec<usize>), Unfit> {
    let ty = graph.ty(x).ok_or(Unfit::Sizes)?;
    Ok((ty.shape.to_vec(), TensorType::bind(ty, symbols).ok_or(Unfit::Sizes)?))
}

/// The weights of a layer that is worth replacing.
fn numbers(weights: &Const, kind: &Kind) -> Result<Vec<f32>, Unfit> {
    let small = kind.channels < FEWEST_CHANNELS || kind.outputs < FEWEST_CHANNELS || kind.macs() < FEWEST_MACS;
    if small || weights.dtype() != regraft_ir::DType::F32 {
        return Err(Unfit::Form);
    }
    weights.map_f64(|v| v as f32).ok_or(Unfit::Weights)
}
