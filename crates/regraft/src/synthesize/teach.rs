//! What the layers of a model read when it runs, and operators that are fitted to them.

use regraft_ir::{SplitMix64, ValueId};
use regraft_onnx::Written;
use regraft_onnx::proto::ValueInfoProto;
use regraft_runtime::{Feeds, HostTensor, ModelSource, Runtime, SessionOptions};
use regraft_synth::fit::{Effort, Fit, Teacher, fit};
use regraft_synth::{Coordinates, Stencil};

use crate::error::Failure;
use crate::synthesize::candidates::Candidate;
use crate::synthesize::layers::{Form, Kind, Layer};

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
    /// For each layer, a tensor of each run.
    pub inputs: Vec<Vec<HostTensor>>,
}

impl Activations {
    /// Runs a model and keeps these values, of which each layer reads one.
    ///
    /// # Errors
    ///
    /// If a value has no name in the file, or the model does not run.
    pub fn of(written: &Written, read: &[ValueId], runs: &[Feeds], runtime: &dyn Runtime) -> Result<Activations, Failure> {
        let name = |read: &ValueId| {
            let mut names: Vec<&String> = written.values.iter().filter(|(_, value)| *value == read).map(|(name, _)| name).collect();
            names.sort_unstable();
            names.first().map(|name| (*name).clone()).ok_or_else(|| Failure::new("a layer's input is not in the file"))
        };
        let names = read.iter().map(name).collect::<Result<Vec<String>, Failure>>()?;
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
        let mut inputs = vec![Vec::new(); read.len()];
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
    fn patches(&self, layer: usize, kind: &Kind, stencil: &Stencil, seed: u64) -> Vec<f32> {
        let count = if stencil.width() >= LONG { FEW_PATCHES } else { PATCHES };
        let tensors = &self.inputs[layer];
        let places = |tensor: &HostTensor| -> usize {
            let shape = tensor.shape();
            if matches!(kind.form, Form::Convolution { .. }) {
                shape[0] * shape[2] * shape[3]
            } else {
                shape[..shape.len() - 1].iter().product()
            }
        };
        let mut patches = Vec::with_capacity(count * stencil.width());
        for mut at in chosen(tensors.iter().map(places).sum(), count, seed) {
            let Some(tensor) = tensors.iter().find(|tensor| {
                let (all, here) = (places(tensor), at);
                at = here.wrapping_sub(if here < all { 0 } else { all });
                here < all
            }) else {
                continue;
            };
            let Some(values) = tensor.values::<f32>() else { continue };
            match (kind.form, tensor.shape()) {
                (Form::Convolution { .. }, &[_, channels, height, width]) => {
                    let (n, h, w) = (at / (height * width), at / width % height, at % width);
                    for offset in &stencil.offsets {
                        let (row, column) = (h as i64 + i64::from(offset[0]), w as i64 + i64::from(offset[1]));
                        let inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
                        let at = |channel: usize| ((n * channels + channel) * height + row as usize) * width + column as usize;
                        patches.extend((0..channels).map(|channel| if inside { values[at(channel)] } else { 0.0 }));
                    }
                }
                (Form::Product { .. }, _) => patches.extend(&values[at * kind.channels..][..kind.channels]),
                _ => {}
            }
        }
        patches
    }
}

/// So many of some places: all different where there are few, at random.
fn chosen(places: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64(seed);
    if places > 2 * count {
        return (0..count).map(|_| random.below(places)).collect();
    }
    let mut all: Vec<usize> = (0..places).collect();
    for at in 0..places.min(count) {
        let other = at + random.below(places - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// A layer that operators are fitted to.
#[derive(Clone, Copy)]
pub struct Lesson<'a> {
    /// Its number.
    pub layer: usize,
    /// The layer.
    pub of: &'a Layer,
    /// What all layers read in the model.
    pub activations: &'a Activations,
    /// What the operator will read: the same, or what comes out of operators before it.
    pub read: &'a Activations,
    /// How much is spent.
    pub effort: Effort,
}

impl Lesson<'_> {
    /// Fits a candidate, from the weights that it has, if any; `None` if it does not treat all
    /// positions alike, or is too large.
    pub fn taught(
        &self,
        candidate: &Candidate,
        start: Option<&Fit>,
        coordinates: &Coordinates<'_>,
        go_on: &dyn Fn() -> bool,
    ) -> Option<Fit> {
        let kind: &Kind = &self.of.kind;
        let sizes = kind.around(coordinates.spec);
        let offsets = kind.offsets();
        let stencil = Stencil::of(&candidate.found.operator, &sizes, &offsets, TERMS, coordinates)?;
        // Offsets that the operator alone reads come after the layer's own.
        let (from, to) = (offsets.len() * kind.channels, stencil.width());
        let mut matrix = vec![0.0; kind.outputs * to];
        for (wide, row) in matrix.chunks_exact_mut(to).zip(self.of.matrix.chunks_exact(from)) {
            wide[..from].copy_from_slice(row);
        }
        let seed = self.layer as u64 + 1;
        let taught = self.activations.patches(self.layer, kind, &stencil, seed);
        let patches =
            if std::ptr::eq(self.read, self.activations) { taught.clone() } else { self.read.patches(self.layer, kind, &stencil, seed) };
        let start = start.map(|fit| fit.weights.clone());
        Some(fit(&stencil, &Teacher { matrix, taught, patches }, start, self.effort, 1, go_on))
    }
}
