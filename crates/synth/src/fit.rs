//! Weights of an operator that make it compute what a layer computes, nearly.
//!
//! Away from the borders, a layer and an operator that treats all positions alike are matrices from
//! patches of the input to the outputs at one position. The operator's matrix is linear in each of
//! its weights, so alternating least squares find them: one weight after another, by conjugate
//! gradients, with the error measured on patches of the layer's own inputs.

use regraft_ir::SplitMix64;

use crate::factored::Side;
use crate::matrix::{Matrix, add_product};
use crate::stencil::Stencil;

/// What is to be matched: a layer, and patches of its inputs.
#[derive(Clone, Debug)]
pub struct Teacher {
    /// The layer's matrix, a row for each output, in the stencil's layout.
    pub matrix: Vec<f32>,
    /// Patches that the layer reads, one after another, in the stencil's layout.
    pub taught: Vec<f32>,
    /// What the operator reads in their place: the same, unless what comes before was replaced,
    /// too.
    pub patches: Vec<f32>,
}

/// Weights that were found.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The elements of each weight, row-major.
    pub weights: Vec<Vec<f32>>,
    /// What has to be added to each output, since the mean of its error is not zero.
    pub bias: Vec<f32>,
    /// The error's size relative to that of the layer's outputs, without their means, on the
    /// patches.
    pub error: f64,
}

/// How much is spent on a fit.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Times that each weight is fitted.
    pub rounds: usize,
    /// Steps of conjugate gradients each time.
    pub steps: usize,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { rounds: 12, steps: 8 }
    }
}

/// A fit ends where a round leaves more than this share of the error before it.
const SETTLED: f64 = 0.985;
/// After so many rounds a fit with an error above this ends.
const HOPELESS: (usize, f64) = (3, 0.6);
/// Share of the patches' mean square that is added to the diagonal: what patches do not show is
/// kept near the layer's own matrix.
const RIDGE: f32 = 1e-3;

/// Fits an operator to a layer, from these weights or random ones. The same seed gives the same
/// weights. `go_on` is asked before each round.
///
/// # Panics
///
/// If the teacher's layout is not that of the stencil.
pub fn fit(stencil: &Stencil, teacher: &Teacher, start: Option<Vec<Vec<f32>>>, effort: Effort, seed: u64, go_on: &dyn Fn() -> bool) -> Fit {
    let (rows, width) = (stencil.outputs, stencil.width());
    assert_eq!(teacher.matrix.len(), rows * width, "the layer's matrix");
    assert_eq!(teacher.patches.len(), teacher.taught.len(), "patches before and now");
    let (taught_mean, taught) = centred(&teacher.taught, width);
    let (mean, patches) = centred(&teacher.patches, width);
    let square = patches.iter().map(|x| f64::from(x * x)).sum::<f64>() / patches.len().max(1) as f64;
    let metric = Metric { patches: &patches, rows, width, ridge: (RIDGE * square as f32).max(f32::MIN_POSITIVE) };
    let goal = Metric { patches: &taught, ..metric }.outputs(&teacher.matrix);
    let mut random = SplitMix64(seed);
    // Terms that meet in one place add up: weights begin so that the matrix is of the layer's size.
    let size = (teacher.matrix.iter().map(|k| f64::from(k * k)).sum::<f64>() / teacher.matrix.len() as f64).sqrt().max(1e-12);
    let meet = stencil.terms() as f64 / (rows * width) as f64;
    let scale = (size / meet.max(1.0).sqrt()).powf(1.0 / stencil.weights.len() as f64);
    let mut drawn = |elements: &usize| -> Vec<f32> { (0..*elements).map(|_| (random.normal() * scale) as f32).collect() };
    let factored = if start.is_none() { stencil.factored() } else { None };
    let mut weights = match (start, &factored) {
        (Some(weights), _) => weights,
        (None, Some(factored)) => stencil.of_factors(factored, factored.start(&teacher.matrix, stencil, &goal, &patches, seed)),
        (None, None) => stencil.weights.iter().map(&mut drawn).collect(),
    };
    balance(&mut weights);
    // The principal components of the outputs are the best factors that there are.
    let rounds = if factored.is_some_and(|factored| factored.side == Side::Outputs) { 0 } else { effort.rounds };
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|y| f64::from(y) * f64::from(y)).sum::<f64>();
    let size = square(&mut goal.iter().copied()).max(f64::MIN_POSITIVE);
    let error = |matrix: &[f32]| {
        let off = square(&mut metric.outputs(matrix).iter().zip(&goal).map(|(ours, theirs)| ours - theirs));
        (off / size).sqrt()
    };
    let mut before = f64::INFINITY;
    let wanted = metric.back(&goal, &teacher.matrix);
    for round in 0..rounds {
        let now = error(&stencil.matrix(&weights));
        let settled = now > before * SETTLED || round >= HOPELESS.0 && now > HOPELESS.1;
        if round > 0 && (settled || !go_on()) {
            break;
        }
        before = now;
        for weight in 0..weights.len() {
            let with = |elements: &[f32]| {
                let mut all = weights.clone();
                all[weight] = elements.to_vec();
                all
            };
            let forward = |elements: &[f32]| stencil.matrix(&with(elements));
            let backward = |matrix: &[f32]| stencil.gradient(weight, &weights, matrix);
            let right = backward(&wanted);
            let apply = |elements: &[f32]| backward(&metric.times(&forward(elements)));
            let mut elements = weights[weight].clone();
            conjugate_gradients(&mut elements, &right, &apply, effort.steps);
            weights[weight] = elements;
        }
        // The same product with weights of equal size, so that no factor grows out of bounds.
        balance(&mut weights);
    }
    let matrix = stencil.matrix(&weights);
    let dot = |row: &[f32], mean: &[f32]| row.iter().zip(mean).map(|(k, mean)| k * mean).sum::<f32>();
    let rows = teacher.matrix.chunks_exact(width).zip(matrix.chunks_exact(width));
    let bias = rows.map(|(theirs, ours)| dot(theirs, &taught_mean) - dot(ours, &mean)).collect();
    let error = error(&matrix);
    Fit { weights, bias, error }
}

/// The mean of patches, and what they are without it.
fn centred(patches: &[f32], width: usize) -> (Vec<f32>, Vec<f32>) {
    let count = patches.len() / width;
    let mut mean = vec![0.0f32; width];
    for patch in patches.chunks_exact(width) {
        mean.iter_mut().zip(patch).for_each(|(mean, x)| *mean += x / count as f32);
    }
    let centred = patches.chunks_exact(width).flat_map(|patch| patch.iter().zip(&mean).map(|(x, mean)| x - mean)).collect();
    (mean, centred)
}

fn balance(weights: &mut [Vec<f32>]) {
    let sizes: Vec<f64> = weights.iter().map(|weight| weight.iter().map(|w| f64::from(w * w)).sum::<f64>().sqrt()).collect();
    if sizes.iter().any(|size| *size <= 0.0 || !size.is_finite()) {
        return;
    }
    let mean = sizes.iter().product::<f64>().powf(1.0 / sizes.len() as f64);
    for (weight, size) in weights.iter_mut().zip(sizes) {
        weight.iter_mut().for_each(|w| *w *= (mean / size) as f32);
    }
}

/// Solves `apply(x) = right`, for a symmetric map that is not negative, from what `x` is.
fn conjugate_gradients(x: &mut [f32], right: &[f32], apply: &dyn Fn(&[f32]) -> Vec<f32>, steps: usize) {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let mut residual: Vec<f32> = apply(x).iter().zip(right).map(|(ax, b)| b - ax).collect();
    let mut direction = residual.clone();
    let mut size = dot(&residual, &residual);
    let enough = size * 1e-12;
    for _ in 0..steps {
        if size <= enough || size == 0.0 {
            break;
        }
        let image = apply(&direction);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 || !curvature.is_finite() {
            break;
        }
        let step = (size / curvature) as f32;
        x.iter_mut().zip(&direction).for_each(|(x, d)| *x += step * d);
        residual.iter_mut().zip(&image).for_each(|(r, i)| *r -= step * i);
        let next = dot(&residual, &residual);
        let keep = (next / size) as f32;
        direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + keep * *d);
        size = next;
    }
}

/// How large a difference of matrices is: on the patches, and by itself a little.
struct Metric<'p> {
    patches: &'p [f32],
    rows: usize,
    width: usize,
    ridge: f32,
}

impl Metric<'_> {
    /// `matrix * (patches^T * patches / count + ridge)`.
    fn times(&self, matrix: &[f32]) -> Vec<f32> {
        self.back(&self.outputs(matrix), matrix)
    }

    /// `outputs * patches / count + ridge * matrix`.
    fn back(&self, outputs: &[f32], matrix: &[f32]) -> Vec<f32> {
        let count = self.patches.len() / self.width;
        let mut result: Vec<f32> = matrix.iter().map(|k| k * self.ridge).collect();
        let share = 1.0 / count.max(1) as f32;
        let outputs: Vec<f32> = outputs.iter().map(|y| y * share).collect();
        add_product(Matrix::new(&outputs, self.rows, count), Matrix::new(self.patches, count, self.width), &mut result);
        result
    }

    /// What a matrix makes of each patch: `[rows, count]`.
    fn outputs(&self, matrix: &[f32]) -> Vec<f32> {
        let count = self.patches.len() / self.width;
        let mut outputs = vec![0.0; self.rows * count];
        let patches = Matrix::new(self.patches, count, self.width).transposed();
        add_product(Matrix::new(matrix, self.rows, self.width), patches, &mut outputs);
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;
    use crate::{Coordinates, Layer, Operator};

    /// A layer whose kernel has exactly the form of an operator is matched; one of full rank is
    /// not.
    #[test]
    fn a_kernel_of_the_operators_form_is_found() {
        let spec = presets::find("resnet-18-layer").unwrap().spec;
        let mut coordinates = Coordinates::new(&spec);
        let text = "sum r0: C_out/s, r1: C_in, r2: k_1, r3: k_1; \
                    x[r1, unfold(i1, r2), unfold(i2, r3)] * w[i0, r0, r2] * w[r0, r1, r3]";
        let operator = Operator::parse(text, &mut coordinates).unwrap();
        let layer = Layer {
            values: spec
                .variables
                .iter()
                .map(|v| match v.name.as_str() {
                    "C_in" => 6,
                    "C_out" => 8,
                    "H" => 7,
                    "k_1" => 3,
                    "s" => 2,
                    _ => 1,
                })
                .collect(),
            count: 1,
        };
        let stencil = Stencil::of(&operator, &layer, &[], 1 << 20, &coordinates).unwrap();
        assert_eq!((stencil.outputs, stencil.width()), (8, 54));
        let mut random = SplitMix64(3);
        let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
        let truth: Vec<Vec<f32>> = stencil.weights.iter().map(|n| numbers(*n)).collect();
        let patches = numbers(54 * 200);
        let teacher = Teacher { matrix: stencil.matrix(&truth), taught: patches.clone(), patches };
        let found = fit(&stencil, &teacher, None, Effort { rounds: 60, steps: 20 }, 1, &|| true);
        assert!(found.error < 1e-2, "{}", found.error);
        // What comes before is off by a factor: the weights make up for it, from where they are.
        let patches = teacher.taught.iter().map(|x| 1.5 * x + 0.5).collect();
        let scaled = Teacher { patches, ..teacher.clone() };
        let before = fit(&stencil, &scaled, Some(found.weights.clone()), Effort { rounds: 0, steps: 0 }, 1, &|| true);
        let after = fit(&stencil, &scaled, Some(found.weights), Effort { rounds: 20, steps: 10 }, 1, &|| true);
        assert!(before.error > 0.4 && after.error < 2e-2, "{} {}", before.error, after.error);
        let teacher = Teacher { matrix: numbers(8 * 54), ..teacher };
        let found = fit(&stencil, &teacher, None, Effort::default(), 1, &|| true);
        assert!(found.error > 0.2, "{}", found.error);
    }

    /// Factors that begin at principal components need no rounds, or few.
    #[test]
    fn factors_begin_near_the_end() {
        let spec = presets::find("resnet-18-layer").unwrap().spec;
        let mut coordinates = Coordinates::new(&spec);
        let x = "sum r0: C_in, r1: k_1, r2: k_1, r3: C_out/s; x[r0, unfold(i1, r1), unfold(i2, r2)]";
        let sizes = [("C_in", 10), ("C_out", 8), ("H", 7), ("k_1", 3), ("s", 2)];
        let value = |name: &str| sizes.iter().find(|(known, _)| *known == name).map_or(1, |(_, value)| *value);
        let layer = Layer { values: spec.variables.iter().map(|v| value(&v.name)).collect(), count: 1 };
        for (text, rounds) in [
            (format!("{x} * w[i0, r3] * w[r3, r0, r1, r2]"), 0),
            (format!("{x} * w[r3, r0, r1, r2] * w[i0, r3]"), 0),
            (format!("{x} * w[i0, r3, r1, r2] * w[r3, r0]"), 4),
        ] {
            let operator = Operator::parse(&text, &mut coordinates).unwrap();
            let stencil = Stencil::of(&operator, &layer, &[], 1 << 20, &coordinates).unwrap();
            assert!(stencil.factored().is_some(), "{text}");
            let mut random = SplitMix64(3);
            let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
            let truth: Vec<Vec<f32>> = stencil.weights.iter().map(|n| numbers(*n)).collect();
            let patches = numbers(stencil.width() * 300);
            let teacher = Teacher { matrix: stencil.matrix(&truth), taught: patches.clone(), patches };
            let found = fit(&stencil, &teacher, None, Effort { rounds, steps: 20 }, 1, &|| true);
            assert!(found.error < 1e-2, "{text}: {}", found.error);
        }
    }

    #[test]
    fn what_depends_on_the_position_has_no_stencil() {
        let spec = presets::find("resnet-18-layer").unwrap().spec;
        let mut coordinates = Coordinates::new(&spec);
        let text = "sum r0: C_in; x[r0, unfold(i1, remainder(i1, k_1)), i2] * w[i0, r0]";
        let operator = Operator::parse(text, &mut coordinates).unwrap();
        let layer = Layer { values: spec.variables.iter().map(|v| if v.name == "H" { 9 } else { 3 }).collect(), count: 1 };
        assert!(Stencil::of(&operator, &layer, &[], 1 << 20, &coordinates).is_none());
    }
}
