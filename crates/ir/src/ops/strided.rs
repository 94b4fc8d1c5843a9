//! Gathering a dense tensor through strides: transposition, diagonals and block moves in one loop.

/// The dense row-major elements `data[sum(index[a] * strides[a])]` for every index of `shape`.
///
/// The caller guarantees that every such position is inside `data`.
pub(crate) fn gather<T: Clone>(data: &[T], shape: &[usize], strides: &[usize]) -> Vec<T> {
    let count: usize = shape.iter().product();
    let mut out = Vec::with_capacity(count);
    if count == 0 {
        return out;
    }
    let Some((&inner, outer)) = shape.split_last() else {
        out.extend_from_slice(&data[..1]);
        return out;
    };
    let inner_stride = strides[outer.len()];
    let mut index = vec![0usize; outer.len()];
    let mut base = 0;
    loop {
        match inner_stride {
            1 => out.extend_from_slice(&data[base..base + inner]),
            0 => out.extend(std::iter::repeat_n(&data[base], inner).cloned()),
            step => out.extend(data[base..].iter().step_by(step).take(inner).cloned()),
        }
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return out;
            }
            axis -= 1;
            index[axis] += 1;
            base += strides[axis];
            if index[axis] < outer[axis] {
                break;
            }
            base -= strides[axis] * outer[axis];
            index[axis] = 0;
        }
    }
}

/// `[rows, columns]` row-major as `[columns, rows]` row-major, in tiles that stay in cache.
pub(crate) fn transposed<T: Clone>(data: &[T], rows: usize, columns: usize) -> Vec<T> {
    const TILE: usize = 32;
    let mut out = data.to_vec();
    for row_tile in (0..rows).step_by(TILE) {
        for column_tile in (0..columns).step_by(TILE) {
            for column in column_tile..(column_tile + TILE).min(columns) {
                for row in row_tile..(row_tile + TILE).min(rows) {
                    out[column * rows + row] = data[row * columns + column].clone();
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathers_transpositions_diagonals_and_scalars() {
        let data: Vec<i32> = (0..6).collect();
        assert_eq!(gather(&data, &[3, 2], &[1, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(gather(&data, &[2], &[4]), [0, 4]);
        assert_eq!(gather(&data, &[2, 2], &[3, 0]), [0, 0, 3, 3]);
        assert_eq!(gather(&data, &[], &[]), [0]);
        assert!(gather(&data, &[0, 3], &[3, 1]).is_empty());
    }

    #[test]
    fn tiles_transpose_like_a_plain_loop() {
        let (rows, columns) = (67, 33);
        let data: Vec<usize> = (0..rows * columns).collect();
        assert_eq!(transposed(&data, rows, columns), gather(&data, &[columns, rows], &[1, columns]));
    }
}
