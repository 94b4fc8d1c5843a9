//! Ambiguities in the sources that systems resolve differently.

/// How padding is divided, and what averages divide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// `SAME` pads equally before and after, with one more in total if necessary (TASO at run
    /// time); otherwise the odd one comes after (its verifier, TensorFlow).
    ///
    /// Where equal padding gives a wrong size, as for even windows with stride 1, the operator is
    /// undefined.
    pub symmetric: bool,
    /// Averages count the padding as zeros (TASO's verifier); otherwise they divide by the number
    /// of elements inside (its run time).
    pub averages_count_padding: bool,
}

impl Reading {
    /// All of them.
    pub const ALL: [Reading; 4] = [
        Reading { symmetric: true, averages_count_padding: true },
        Reading { symmetric: false, averages_count_padding: true },
        Reading { symmetric: true, averages_count_padding: false },
        Reading { symmetric: false, averages_count_padding: false },
    ];

    /// `SAME` padding before and after, for a window of `kernel` with step `stride` over `size`
    /// elements; `None` if undefined.
    pub fn same(self, size: i64, kernel: i64, stride: i64) -> Option<(i64, i64)> {
        let outputs = (size + stride - 1).div_euclid(stride);
        let total = ((outputs - 1) * stride + kernel - size).max(0);
        if !self.symmetric {
            return Some((total / 2, total - total / 2));
        }
        let half = (total + 1) / 2;
        ((size + 2 * half - kernel).div_euclid(stride) + 1 == outputs).then_some((half, half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_padding_is_symmetric_or_not_defined_at_run_time() {
        let (runtime, upper) = (Reading::ALL[0], Reading::ALL[1]);
        for (size, kernel, stride, expected, above) in [
            (5, 3, 1, Some((1, 1)), (1, 1)),
            (5, 2, 1, None, (0, 1)),
            (4, 3, 2, Some((1, 1)), (0, 1)),
            (5, 3, 2, Some((1, 1)), (1, 1)),
            (4, 1, 2, Some((0, 0)), (0, 0)),
            (5, 2, 2, Some((1, 1)), (0, 1)),
        ] {
            assert_eq!(runtime.same(size, kernel, stride), expected, "{size} {kernel} {stride}");
            assert_eq!(upper.same(size, kernel, stride), Some(above), "{size} {kernel} {stride}");
        }
    }
}
