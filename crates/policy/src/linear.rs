//! Products of vectors and matrices in plain loops, in a fixed order: the same to the bit
//! everywhere.

/// Adds to `sum` what each input, times its row of `matrix`, gives.
pub(crate) fn add_product<const N: usize>(sum: &mut [f32; N], inputs: &[f32], matrix: &[f32]) {
    let (rows, _) = matrix.as_chunks::<N>();
    let mut total = *sum;
    for (input, row) in inputs.iter().zip(rows) {
        if *input != 0.0 {
            for (total, value) in total.iter_mut().zip(row) {
                *total += input * value;
            }
        }
    }
    *sum = total;
}

/// Adds `scale` times a row.
pub(crate) fn add_scaled(sum: &mut [f32], scale: f32, row: &[f32]) {
    for (total, value) in sum.iter_mut().zip(row) {
        *total += scale * value;
    }
}

/// No negative numbers.
pub(crate) fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

/// Added to a mean square before its root is taken.
pub const EPSILON: f32 = 1e-5;

/// Divides by the root of the mean square (Zhang and Sennrich, "Root mean square layer
/// normalization", 2019, without gains).
pub(crate) fn normalize(values: &mut [f32]) {
    let square: f32 = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
    let scale = 1.0 / (square + EPSILON).sqrt();
    values.iter_mut().for_each(|value| *value *= scale);
}
