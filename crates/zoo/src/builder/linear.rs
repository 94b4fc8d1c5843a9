//! Matrix products.

use super::{Builder, Dim, Value, attribute, conv::uniform_bound, shape::broadcast};

impl Builder {
    /// The matrix product over the last two axes.
    pub(crate) fn matmul(&mut self, left: &Value, right: &Value) -> Value {
        let (rows, columns) = (left.rank() - 2, right.rank() - 2);
        assert_eq!(left.shape[rows + 1], right.shape[columns], "inner dimensions of a product");
        let mut shape = broadcast(&left.shape[..rows], &right.shape[..columns]);
        shape.extend([left.shape[rows], right.shape[columns + 1]]);
        self.node("MatMul", &[left, right], vec![], left.element, shape)
    }

    /// A weight matrix of `rows` by `columns`, for use on the right of a product.
    pub(crate) fn matrix(&mut self, name: &str, rows: i64, columns: i64, gain: f32) -> Value {
        let bound = uniform_bound(gain, rows);
        self.weight(name, &[rows, columns], -bound, bound)
    }

    /// `x @ W`: a product of the last axis with a fresh weight.
    pub(crate) fn project(&mut self, name: &str, x: &Value, out: i64, gain: f32) -> Value {
        let width = x.size(x.rank() - 1);
        self.within(name, |b| {
            let weight = b.matrix("weight", width, out, gain);
            b.matmul(x, &weight)
        })
    }

    /// `x @ W + bias`, as a product and a sum, for any rank.
    pub(crate) fn linear(&mut self, name: &str, x: &Value, out: i64, gain: f32) -> Value {
        let product = self.project(name, x, out, gain);
        self.within(name, |b| {
            let bias = b.weight("bias", &[out], -0.1, 0.1);
            b.add(&product, &bias)
        })
    }

    /// A fully connected layer on a matrix: one `Gemm` with the weight stored as (out, in).
    pub(crate) fn dense(&mut self, name: &str, x: &Value, out: i64, gain: f32) -> Value {
        let dims = [out, x.size(1)];
        self.gemm(name, x, dims, 1, gain)
    }

    /// A fully connected layer on a matrix: one `Gemm` with the weight stored as (in, out).
    pub(crate) fn dense_untransposed(&mut self, name: &str, x: &Value, out: i64, gain: f32) -> Value {
        let dims = [x.size(1), out];
        self.gemm(name, x, dims, 0, gain)
    }

    fn gemm(&mut self, name: &str, x: &Value, dims: [i64; 2], transposed: usize, gain: f32) -> Value {
        let bound = uniform_bound(gain, dims[transposed]);
        let out = dims[1 - transposed];
        let shape = vec![x.shape[0], Dim::Fixed(out)];
        let attributes = vec![attribute::float("alpha", 1.0), attribute::float("beta", 1.0), attribute::int("transB", transposed as i64)];
        self.within(name, |b| {
            let weight = if transposed == 1 { b.filters("weight", &dims, bound) } else { b.weight("weight", &dims, -bound, bound) };
            let bias = b.weight("bias", &[out], -0.1, 0.1);
            b.node("Gemm", &[x, &weight, &bias], attributes, x.element, shape)
        })
    }
}
