//! The layers of a model that an operator can replace.

use regraft_ir::ops::conv::Conv;
use regraft_ir::{Bindings, Dim, Graph, NodeId, Op, TensorType, ValueId};
use regraft_synth::fit::Offset;
use regraft_synth::{Layer as Sizes, Limits, Spec};

/// A convolution that keeps height and width, with known weights.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The node.
    pub node: NodeId,
    /// Its operands.
    pub x: ValueId,
    /// Its weights, `[C_out, C_in, k, k]`.
    pub kernel: Vec<f32>,
    /// What it adds, one for each output channel, if anything.
    pub bias: Option<ValueId>,
    /// The input's shape, as the graph says.
    pub shape: Vec<Dim>,
    /// Its sizes.
    pub kind: Kind,
}

/// Layers of one kind have the same sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// The batch.
    pub batch: usize,
    /// Channels of the input.
    pub channels: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Height and width.
    pub height: usize,
    /// Width.
    pub width: usize,
    /// Height and width of the kernel.
    pub window: usize,
}

impl Kind {
    /// Multiplications of one run.
    pub fn macs(&self) -> f64 {
        (self.batch * self.channels * self.outputs * self.height * self.width * self.window * self.window) as f64
    }

    /// As people write it: `64 -> 128, 3x3, 28x28`.
    pub fn show(&self) -> String {
        format!("{} -> {}, {k}x{k}, {}x{}", self.channels, self.outputs, self.height, self.width, k = self.window)
    }

    /// Where the layer reads, as seen from an output.
    pub fn offsets(&self) -> Vec<Offset> {
        let half = (self.window / 2) as i32;
        let span = || -half..=half;
        span().flat_map(|h| span().map(move |w| vec![h, w])).collect()
    }

    /// The layer's matrix from patches to outputs: offsets outermost, as [`Self::offsets`] lists them.
    pub fn matrix(&self, kernel: &[f32]) -> Vec<f32> {
        let (places, width) = (self.window * self.window, self.window * self.window * self.channels);
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
        let mut text = String::from(
            "input = [\"N\", \"C_in\", \"H\", \"W\"]\noutput = [\"N\", \"C_out\", \"H\", \"W\"]\nbatch = [\"N\"]\nunordered = [\"C_in\", \"C_out\"]\n\
             [variables]\nC_in = 3\nC_out = 4\n[coefficients]\n",
        );
        let dense = match self.window {
            1 => "sum r0: C_in; x[r0, i1, i2] * w[i0, r0]",
            _ => "sum r0: C_in, r1: k, r2: k; x[r0, unfold(i1, r1), unfold(i2, r2)] * w[i0, r0, r1, r2]",
        };
        text = format!("dense = \"{dense}\"\n{text}");
        if self.window > 1 {
            text += &format!("k = [{}, 2]\n", self.window);
        }
        for (name, value) in [("s", small), ("g", large)] {
            if let Some(value) = value {
                text += &format!("{name} = [{value}, 3]\n");
            }
        }
        text += &format!(
            "[[layers]]\nN = {}\nC_in = {}\nC_out = {}\nH = {}\nW = {}\n",
            self.batch, self.channels, self.outputs, self.height, self.width
        );
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
            dense_window: (self.window * self.window) as u64,
            ..Limits::default()
        };
        spec
    }

    /// The sizes of an operator's specification, with other heights and widths.
    pub fn sizes(&self, spec: &Spec, height: usize, width: usize) -> Sizes {
        let value = |name: &str| match name {
            "N" => 1,
            "H" => height as u64,
            "W" => width as u64,
            _ => 0,
        };
        let layer = &spec.layers[0];
        let values = spec.variables.iter().zip(&layer.values).map(|(variable, own)| match value(&variable.name) {
            0 => *own,
            other => other,
        });
        Sizes { values: values.collect(), count: 1 }
    }
}

/// Heights and widths at which kernels are compared with their definition, odd and even.
const PLACES: [(usize, usize); 3] = [(5, 5), (6, 4), (7, 8)];

impl Kind {
    /// The layer's channels at small heights and widths.
    pub fn small(&self, spec: &Spec) -> Vec<Sizes> {
        PLACES.iter().map(|(height, width)| self.sizes(spec, *height, *width)).collect()
    }
}

/// Operators that take a larger share of the layer's multiplications are not looked at.
const WORTHWHILE: f64 = 0.8;

/// Why a node is no layer that can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no convolution.
    Operator,
    /// Its weights are computed when the model runs.
    Weights,
    /// It strides, dilates, has groups, or changes height or width.
    Form,
    /// Its sizes are not known.
    Sizes,
}

/// All layers of a graph, at these sizes of its symbols, and how many convolutions are none.
pub fn layers(graph: &Graph, symbols: &Bindings) -> (Vec<Layer>, usize) {
    let (mut found, mut others) = (Vec::new(), 0);
    for id in graph.topological() {
        match layer(graph, id, symbols) {
            Ok(layer) => found.push(layer),
            Err(Unfit::Operator) => {}
            Err(_) => others += 1,
        }
    }
    (found, others)
}

fn layer(graph: &Graph, id: NodeId, symbols: &Bindings) -> Result<Layer, Unfit> {
    let node = graph.node(id);
    let Op::Conv(conv) = &node.op else { return Err(Unfit::Operator) };
    let &[x, w, ..] = &node.inputs[..] else { return Err(Unfit::Operator) };
    let kernel = graph.constant(w).ok_or(Unfit::Weights)?;
    let &[outputs, channels, height, width] = kernel.shape() else { return Err(Unfit::Form) };
    let half = height / 2;
    let plain = Conv { strides: vec![1, 1], pads: vec![half; 4], dilations: vec![1, 1], group: 1 };
    if height != width || height % 2 == 0 || *conv != plain {
        return Err(Unfit::Form);
    }
    let ty = graph.ty(x).ok_or(Unfit::Sizes)?;
    let sizes = TensorType::bind(ty, symbols).ok_or(Unfit::Sizes)?;
    let kind = Kind {
        batch: sizes[0],
        channels: channels as usize,
        outputs: outputs as usize,
        height: sizes[2],
        width: sizes[3],
        window: height as usize,
    };
    // Below, nothing can be gained, and channels cannot be parted.
    if kind.channels < 8 || kind.outputs < 8 || kind.macs() < 1e5 || kernel.dtype() != regraft_ir::DType::F32 {
        return Err(Unfit::Form);
    }
    let kernel = kernel.map_f64(|v| v as f32).ok_or(Unfit::Weights)?;
    Ok(Layer { node: id, x, kernel, bias: node.inputs.get(2).copied(), shape: ty.shape.to_vec(), kind })
}
