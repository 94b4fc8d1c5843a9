//! `Corrections`: how far off predictions are on this machine, and for this model.

use regraft_ir::Kernel;
use rustc_hash::FxHashMap;

use crate::signature::Signature;

/// What so many operators have in common counts half by itself, and half as what it is a part of.
const SHRINKAGE: f64 = 30.0;

/// How far off a prediction was, of an operator whose time is known.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// The class of its kernels.
    pub kernel: Kernel,
    /// Logarithm of the true time, less the predicted one.
    pub off: f64,
    /// What it counts.
    pub weight: f64,
}

/// What is added to the logarithms of predictions: medians of residuals over those of a class of
/// kernels, drawn to that over all operators where there are few, as that is to nothing.
///
/// Operators of a model are off together by chance, too. Drawn less, predictions are worse for
/// other operators of the same model on the machine that they were learned on; medians for each
/// kind of operator are no better anywhere.
#[derive(Clone, Debug, Default)]
pub struct Corrections {
    residuals: FxHashMap<Signature, Residual>,
    all: f64,
    kernels: FxHashMap<Kernel, f64>,
}

impl Corrections {
    /// Learns from operators whose times are known; later times replace earlier ones.
    pub fn learn(&mut self, residuals: impl IntoIterator<Item = (Signature, Residual)>) {
        self.residuals.extend(residuals);
        let mut kernels: FxHashMap<Kernel, Vec<Residual>> = FxHashMap::default();
        self.residuals.values().for_each(|one| kernels.entry(one.kernel).or_default().push(*one));
        self.all = drawn(self.residuals.values().copied().collect(), 0.0);
        self.kernels = kernels.into_iter().map(|(kernel, own)| (kernel, drawn(own, self.all))).collect();
    }

    /// What is added to the logarithm of a prediction.
    pub fn of(&self, kernel: Kernel) -> f64 {
        self.kernels.get(&kernel).copied().unwrap_or(self.all)
    }
}

/// The weighted median, drawn to what is usual.
fn drawn(mut residuals: Vec<Residual>, usual: f64) -> f64 {
    residuals.sort_by(|a, b| a.off.total_cmp(&b.off));
    let half = 0.5 * residuals.iter().map(|one| one.weight).sum::<f64>();
    let mut so_far = 0.0;
    let median = residuals.iter().find(|one| {
        so_far += one.weight;
        so_far >= half
    });
    let count = residuals.len() as f64;
    (count * median.map_or(usual, |one| one.off) + SHRINKAGE * usual) / (count + SHRINKAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: usize, kernel: Kernel, off: f64) -> (Signature, Residual) {
        let signature = Signature { core: format!("{at}"), producers: String::new(), readers: String::new() };
        (signature, Residual { kernel, off, weight: 1.0 })
    }

    #[test]
    fn few_operators_are_corrected_as_all_are() {
        let mut corrections = Corrections::default();
        assert_eq!(corrections.of(Kernel::Dense), 0.0);
        corrections.learn((0..1000).map(|at| seen(at, Kernel::Dense, 1.0)));
        corrections.learn([seen(1000, Kernel::Copy, -1.0)]);
        let [dense, copy, window] = [Kernel::Dense, Kernel::Copy, Kernel::Window].map(|kernel| corrections.of(kernel));
        assert!(0.8 < copy && copy < window && window < dense && dense < 1.0, "{copy} {window} {dense}");
        // What was seen again is one operator still.
        corrections.learn((0..1000).map(|at| seen(at, Kernel::Dense, 1.0)));
        assert_eq!(corrections.of(Kernel::Dense), dense);
    }
}
