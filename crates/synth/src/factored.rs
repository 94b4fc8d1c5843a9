//! Where fits of factored operators begin: at the principal components of what the layer computes
//! or reads.

use regraft_ir::SplitMix64;

use crate::matrix::{Matrix, add_product};
use crate::stencil::Stencil;

/// Two weights that are the factors of one matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Factored {
    /// The weights of rows and of columns.
    pub(crate) weights: [usize; 2],
    /// Where the elements of their product lie in the layer's matrix, row by row.
    pub(crate) places: Vec<u32>,
    /// Rows of their product.
    pub(crate) rows: usize,
    /// Columns of their product.
    pub(crate) columns: usize,
    /// Its rank, at most.
    pub(crate) rank: usize,
    /// What a row is.
    pub(crate) side: Side,
}

/// What the rows of a factored matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Outputs; columns are all that is read.
    Outputs,
    /// Outputs at each offset; columns are channels.
    OutputsAtOffsets,
}

/// Steps of the subspace iteration.
const STEPS: usize = 10;

impl Factored {
    /// Both factors, row by row, the second transposed: `[rows, rank]` and `[columns, rank]`. For
    /// outputs they are the best there are, up to what patches do not show.
    pub(crate) fn start(&self, teacher: &[f32], stencil: &Stencil, goal: &[f32], patches: &[f32], seed: u64) -> [Vec<f32>; 2] {
        let target: Vec<f32> = self.places.iter().map(|place| teacher[*place as usize]).collect();
        let target = Matrix::new(&target, self.rows, self.columns);
        let mut random = SplitMix64(seed);
        let mut drawn = |n: usize| -> Vec<f32> { (0..n).map(|_| random.normal() as f32).collect() };
        match self.side {
            Side::Outputs => {
                let count = goal.len() / self.rows;
                let outputs = Matrix::new(goal, self.rows, count);
                let spread = product(outputs, outputs.transposed());
                let spread = Matrix::new(&spread, self.rows, self.rows);
                let mut vectors = drawn(self.rows * self.rank);
                for _ in 0..STEPS {
                    vectors = product(spread, Matrix::new(&vectors, self.rows, self.rank));
                    orthonormal(&mut vectors, self.rank, None);
                }
                let second = product(target.transposed(), Matrix::new(&vectors, self.rows, self.rank));
                [vectors, second]
            }
            Side::OutputsAtOffsets => {
                let channels = Matrix::new(patches, patches.len() / stencil.channels, stencil.channels);
                let spread = product(channels.transposed(), channels);
                let spread = Matrix::new(&spread, self.columns, self.columns);
                let square = product(target.transposed(), target);
                let square = Matrix::new(&square, self.columns, self.columns);
                let mut vectors = drawn(self.columns * self.rank);
                for _ in 0..STEPS {
                    let seen = product(spread, Matrix::new(&vectors, self.columns, self.rank));
                    vectors = product(square, Matrix::new(&seen, self.columns, self.rank));
                    orthonormal(&mut vectors, self.rank, None);
                }
                // With columns that are orthonormal on the patches, the other factor is a product.
                orthonormal(&mut vectors, self.rank, Some(spread));
                let seen = product(spread, Matrix::new(&vectors, self.columns, self.rank));
                let first = product(target, Matrix::new(&seen, self.columns, self.rank));
                [first, vectors]
            }
        }
    }
}

fn product(a: Matrix<'_>, b: Matrix<'_>) -> Vec<f32> {
    let mut product = vec![0.0; a.rows() * b.columns()];
    add_product(a, b, &mut product);
    product
}

/// Makes columns orthonormal, in the scalar product that a symmetric matrix defines (Gram and
/// Schmidt). Columns that depend on those before become zero.
fn orthonormal(vectors: &mut [f32], rank: usize, metric: Option<Matrix<'_>>) {
    let rows = vectors.len() / rank.max(1);
    let columns = Matrix::new(vectors, rows, rank).transposed().to_rows();
    let mut images = match metric {
        Some(metric) => product(Matrix::new(&columns, rank, rows), metric),
        None => columns.clone(),
    };
    let mut columns = columns;
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    for at in 0..rank {
        let (before, rest) = columns.split_at_mut(at * rows);
        let (images_before, images_rest) = images.split_at_mut(at * rows);
        let (own, image) = (&mut rest[..rows], &mut images_rest[..rows]);
        let whole = dot(own, image);
        for (other, other_image) in before.chunks_exact(rows).zip(images_before.chunks_exact(rows)) {
            let part = dot(own, other_image) as f32;
            own.iter_mut().zip(other).for_each(|(x, y)| *x -= part * y);
            image.iter_mut().zip(other_image).for_each(|(x, y)| *x -= part * y);
        }
        let left = dot(own, image);
        let scale = if left > whole * 1e-9 && left > 0.0 { (1.0 / left.sqrt()) as f32 } else { 0.0 };
        own.iter_mut().chain(image).for_each(|x| *x *= scale);
    }
    vectors.copy_from_slice(&Matrix::new(&columns, rank, rows).transposed().to_rows());
}
