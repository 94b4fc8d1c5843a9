//! Transforms of the Cook-Toom (Winograd) family of fast correlations.

/// Evaluation points, small ones first: they keep the transforms well conditioned. The last point
/// is always infinity.
const POINTS: [f64; 9] = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0];

/// `F(m, r)`: `m` outputs of a correlation with `r` taps by `a = m + r - 1` products, `y = AT ((G g
/// / s) * (BT d))`. Row-major. All numbers are short binary fractions, so that none is rounded:
/// only the division by `s` produces thirds and fifths.
#[derive(Clone, Debug, PartialEq)]
pub struct CookToom {
    /// `AT`, `m x a`.
    pub output: Vec<f64>,
    /// `G`, `a x r`.
    pub kernel: Vec<f64>,
    /// `s`, an odd integer.
    pub divisor: f64,
    /// `BT`, `a x a`.
    pub input: Vec<f64>,
}

/// The transforms of `F(m, r)`; an error if there are not enough points.
pub fn cook_toom(m: usize, r: usize) -> Result<CookToom, String> {
    if m == 0 || r == 0 {
        return Err("a correlation has at least one output and one tap".into());
    }
    let a = m + r - 1;
    let Some(points) = POINTS.get(..a - 1) else { return Err(format!("F({m}, {r}) needs {} points, there are {}", a - 1, POINTS.len())) };
    let power = |x: f64, n: usize| x.powi(n as i32);
    let mut output = vec![0.0; m * a];
    let mut kernel = vec![0.0; a * r];
    let mut input = vec![0.0; a * a];
    let others = |j: usize| points.iter().enumerate().filter(move |(k, _)| *k != j).map(|(_, z)| *z);
    let scales: Vec<f64> = points.iter().enumerate().map(|(j, x)| others(j).map(|z| x - z).product()).collect();
    let divisor = scales.iter().map(|scale| odd_part(*scale)).fold(1, |all, odd| all / gcd(all, odd) * odd) as f64;
    for (j, x) in points.iter().enumerate() {
        (0..m).for_each(|i| output[i * a + j] = power(*x, i));
        (0..r).for_each(|i| kernel[j * r + i] = power(*x, i) * (divisor / scales[j]));
        let polynomial = with_roots(others(j));
        input[j * a..][..polynomial.len()].copy_from_slice(&polynomial);
    }
    output[m * a - 1] = 1.0;
    kernel[a * r - 1] = divisor;
    input[(a - 1) * a..].copy_from_slice(&with_roots(points.iter().copied()));
    Ok(CookToom { output, kernel, divisor, input })
}

/// The magnitude of a short binary fraction without its factors of two.
fn odd_part(mut value: f64) -> u64 {
    while value.fract() != 0.0 {
        value *= 2.0;
    }
    let whole = value.abs() as u64;
    whole >> whole.trailing_zeros()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Coefficients, lowest first, of the monic polynomial with these roots.
fn with_roots(roots: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut polynomial = vec![1.0];
    for root in roots {
        let mut next = vec![0.0; polynomial.len() + 1];
        for (i, c) in polynomial.iter().enumerate() {
            next[i] -= root * c;
            next[i + 1] += c;
        }
        polynomial = next;
    }
    polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows x columns` times a vector.
    fn product(matrix: &[f64], v: &[f64]) -> Vec<f64> {
        matrix.chunks_exact(v.len()).map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
    }

    #[test]
    fn every_size_computes_the_correlation() {
        for (m, r) in [(1, 1), (2, 1), (1, 3), (2, 3), (3, 3), (4, 3), (6, 3), (2, 5), (4, 5), (3, 7), (4, 7)] {
            let transform = cook_toom(m, r).unwrap();
            let d: Vec<f64> = (0..m + r - 1).map(|i| (i * i % 7) as f64 - 2.5).collect();
            let g: Vec<f64> = (0..r).map(|i| 1.0 - (i % 3) as f64 * 0.75).collect();
            let spectrum: Vec<f64> =
                product(&transform.kernel, &g).iter().zip(product(&transform.input, &d)).map(|(a, b)| a * b / transform.divisor).collect();
            for (i, y) in product(&transform.output, &spectrum).into_iter().enumerate() {
                let direct: f64 = g.iter().zip(&d[i..]).map(|(a, b)| a * b).sum();
                assert!((y - direct).abs() < 1e-9, "F({m}, {r}) output {i}: {y} instead of {direct}");
            }
        }
    }

    #[test]
    fn no_number_is_rounded() {
        for (m, r) in [(2, 3), (4, 3), (2, 5), (4, 5), (3, 7), (4, 7)] {
            let transform = cook_toom(m, r).unwrap();
            let all = transform.output.iter().chain(&transform.kernel).chain(&transform.input).chain([&transform.divisor]);
            all.for_each(|v| assert!((v * 4096.0).fract() == 0.0 && v.abs() < 4096.0, "F({m}, {r}): {v}"));
        }
    }

    #[test]
    fn too_many_points_are_an_error() {
        assert!(cook_toom(5, 7).is_err() && cook_toom(0, 3).is_err());
    }
}
