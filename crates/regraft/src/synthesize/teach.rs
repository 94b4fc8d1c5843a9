//! What the layers of a model read when it runs, and operators that are fitted to them.

use regraft_ir::SplitMix64;
use regraft_onnx::Written;
use regraft_onnx::proto::ValueInfoProto;
use regraft_runtime::{Feeds, HostTensor, ModelSource, Runtime, SessionOptions};
use regraft_synth::Coordinates;
use regraft_synth::fit::{Effort, Fit, Stencil, Teacher, fit};

use crate::error::Failure;
use crate::synthesize::candidates::Candidate;
use crate::synthesize::layers::{Kind, Layer};

/// Patches that a layer is fitted on.
const PATCHES: usize = 1024;
/// The same where patches are long.
const FEW_PATCHES: usize = 512;
/// Elements from which a patch is long.
const LONG: usize = 2000;
/// Terms that an operator to be fitted may have.
const TERMS: usize = 40_000_000;

/// What each layer reads in some runs, by layer.
pub struct Activations {
    /// For each layer, a tensor `[N, C, H, W]` of each run.
    pub inputs: Vec<Vec<HostTensor>>,
}

impl Activations {
    /// Runs a model and keeps what its layers read.
    ///
    /// # Errors
    ///
    /// If a layer's input has no name in the file, or the model does not run.
    pub fn of(written: &Written, layers: &[Layer], runs: &[Feeds], runtime: &dyn Runtime) -> Result<Activations, Failure> {
        let name = |layer: &Layer| {
            let mut names: Vec<&String> = written.values.iter().filter(|(_, value)| **value == layer.x).map(|(name, _)| name).collect();
            names.sort_unstable();
            names.first().map(|name| (*name).clone()).ok_or_else(|| Failure::new("a layer's input is not in the file"))
        };
        let names = layers.iter().map(name).collect::<Result<Vec<String>, Failure>>()?;
        let mut proto = written.proto.clone();
        let graph = proto.graph.get_or_insert_default();
        let mut wanted: Vec<&String> =
            names.iter().filter(|name| !graph.output.iter().any(|output| output.name() == name.as_str())).collect();
        wanted.sort_unstable();
        wanted.dedup();
        // An input of the model cannot be an output under the same name.
        wanted.retain(|name| !graph.input.iter().any(|input| input.name() == name.as_str()));
        graph.output.extend(wanted.iter().map(|name| ValueInfoProto { name: Some((*name).clone()), ..ValueInfoProto::default() }));
        let order: Vec<String> = graph.output.iter().map(|output| output.name().to_string()).collect();
        let bytes = Written { proto, ..written.clone() }.to_bytes()?;
        let mut session = runtime.open(ModelSource::bytes(&bytes), &SessionOptions::default().unpacked())?;
        let mut inputs = vec![Vec::new(); layers.len()];
        for feeds in runs {
            let outputs = session.run(feeds)?;
            for (layer, name) in names.iter().enumerate() {
                let tensor = order.iter().position(|output| output == name).map(|at| &outputs[at]).or_else(|| feeds.get(name));
                inputs[layer].push(tensor.ok_or_else(|| Failure::new(format!("`{name}` has no value")))?.clone());
            }
        }
        Ok(Activations { inputs })
    }

    /// Patches of what a layer reads, in a stencil's layout, at random places.
    fn patches(&self, layer: usize, stencil: &Stencil, seed: u64) -> Vec<f32> {
        let count = if stencil.width() >= LONG { FEW_PATCHES } else { PATCHES };
        let mut random = SplitMix64(seed);
        let tensors = &self.inputs[layer];
        let mut patches = Vec::with_capacity(count * stencil.width());
        for _ in 0..count {
            let tensor = &tensors[random.below(tensors.len())];
            let &[batch, channels, height, width] = tensor.shape() else { continue };
            let Some(values) = tensor.values::<f32>() else { continue };
            let (n, h, w) = (random.below(batch), random.below(height), random.below(width));
            for offset in &stencil.offsets {
                let (row, column) = (h as i64 + i64::from(offset[0]), w as i64 + i64::from(offset[1]));
                let inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
                let at = |channel: usize| ((n * channels + channel) * height + row as usize) * width + column as usize;
                patches.extend((0..channels).map(|channel| if inside { values[at(channel)] } else { 0.0 }));
            }
        }
        patches
    }
}

/// Fits a candidate to a layer; `None` if it does not treat all positions alike, or is too large.
pub fn taught(
    layer: usize,
    layers: &[Layer],
    candidate: &Candidate,
    activations: &Activations,
    coordinates: &Coordinates<'_>,
    effort: Effort,
    go_on: &dyn Fn() -> bool,
) -> Option<Fit> {
    let kind: &Kind = &layers[layer].kind;
    let side = kind.window + 6;
    let sizes = kind.sizes(coordinates.spec, side, side);
    let offsets = kind.offsets();
    let stencil = Stencil::of(&candidate.found.operator, &sizes, &offsets, TERMS, coordinates)?;
    let own = kind.matrix(&layers[layer].kernel);
    // Offsets that the operator alone reads come after the layer's own.
    let (from, to) = (offsets.len() * kind.channels, stencil.width());
    let mut matrix = vec![0.0; kind.outputs * to];
    for (wide, row) in matrix.chunks_exact_mut(to).zip(own.chunks_exact(from)) {
        wide[..from].copy_from_slice(row);
    }
    let patches = activations.patches(layer, &stencil, layer as u64 + 1);
    Some(fit(&stencil, &Teacher { matrix, patches }, effort, 1, go_on))
}
