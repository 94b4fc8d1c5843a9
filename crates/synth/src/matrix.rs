//! Products of matrices.

/// A matrix: elements row by row, or column by column.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'m> {
    elements: &'m [f32],
    rows: usize,
    columns: usize,
    /// Distances between rows, and between columns.
    strides: [usize; 2],
}

impl<'m> Matrix<'m> {
    /// Row by row.
    pub(crate) fn new(elements: &'m [f32], rows: usize, columns: usize) -> Matrix<'m> {
        assert_eq!(elements.len(), rows * columns, "elements of a matrix");
        Matrix { elements, rows, columns, strides: [columns, 1] }
    }

    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    pub(crate) fn columns(self) -> usize {
        self.columns
    }

    /// Its elements, row by row.
    pub(crate) fn to_rows(self) -> Vec<f32> {
        let row = |row: usize| (0..self.columns).map(move |column| self.elements[row * self.strides[0] + column * self.strides[1]]);
        (0..self.rows).flat_map(row).collect()
    }

    pub(crate) fn transposed(self) -> Matrix<'m> {
        Matrix { elements: self.elements, rows: self.columns, columns: self.rows, strides: [self.strides[1], self.strides[0]] }
    }
}

/// Adds the product of two matrices to a third, row by row.
pub(crate) fn add_product(a: Matrix<'_>, b: Matrix<'_>, to: &mut [f32]) {
    let (m, k, n) = (a.rows, a.columns, b.columns);
    assert!(b.rows == k && to.len() == m * n, "a product of {m}x{k} and {}x{n} in {} elements", b.rows, to.len());
    let [a_row, a_column] = a.strides.map(|stride| stride as isize);
    let [b_row, b_column] = b.strides.map(|stride| stride as isize);
    // SAFETY: sizes and strides are those of the slices, as asserted here and where matrices are
    // made.
    unsafe {
        let (a, b) = (a.elements.as_ptr(), b.elements.as_ptr());
        matrixmultiply::sgemm(m, k, n, 1.0, a, a_row, a_column, b, b_row, b_column, 1.0, to.as_mut_ptr(), n as isize, 1);
    }
}
