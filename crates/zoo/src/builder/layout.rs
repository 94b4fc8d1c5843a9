//! Operators that move elements.

use super::{Builder, Dim, Value, attribute, shape::fixed};
use crate::catalog::Element;

impl Builder {
    /// `x` with other dimensions and the same number of elements. A batch stays symbolic.
    pub(crate) fn reshape(&mut self, x: &Value, shape: &[Dim]) -> Value {
        let target: Vec<i64> = shape
            .iter()
            .enumerate()
            .map(|(axis, dim)| match dim {
                Dim::Fixed(size) => *size,
                Dim::Batch(_) if axis == 0 && x.shape[0] == *dim => 0,
                Dim::Batch(_) => -1,
            })
            .collect();
        let target = self.ints(&target);
        self.node("Reshape", &[x, &target], vec![], x.element, shape.to_vec())
    }

    /// All axes but the first merged into one.
    pub(crate) fn flatten(&mut self, x: &Value) -> Value {
        let width = (1..x.rank()).map(|axis| x.size(axis)).product();
        let shape = vec![x.shape[0], Dim::Fixed(width)];
        self.node("Flatten", &[x], vec![attribute::int("axis", 1)], x.element, shape)
    }

    /// Axis `i` of the result is axis `order[i]` of `x`.
    pub(crate) fn transpose(&mut self, x: &Value, order: &[usize]) -> Value {
        let shape = order.iter().map(|&axis| x.shape[axis]).collect();
        let order: Vec<i64> = order.iter().map(|&axis| axis as i64).collect();
        self.node("Transpose", &[x], vec![attribute::ints("perm", &order)], x.element, shape)
    }

    /// The parts concatenated along `axis`.
    pub(crate) fn concat(&mut self, parts: &[Value], axis: usize) -> Value {
        let mut shape = parts[0].shape.clone();
        shape[axis] = Dim::Fixed(parts.iter().map(|part| part.size(axis)).sum());
        // An operand may be a class token or an initial state of batch 1 only if the whole graph
        // has batch 1.
        for part in parts {
            for other in (0..shape.len()).filter(|&other| other != axis) {
                assert_eq!(part.shape[other], shape[other], "parts of a concatenation");
            }
        }
        let inputs: Vec<_> = parts.iter().collect();
        self.node("Concat", &inputs, vec![attribute::int("axis", axis as i64)], parts[0].element, shape)
    }

    /// `count` equal parts of `x` along `axis`.
    pub(crate) fn split(&mut self, x: &Value, axis: usize, count: i64) -> Vec<Value> {
        let part = x.size(axis) / count;
        let mut shape = x.shape.clone();
        shape[axis] = Dim::Fixed(part);
        let sizes = self.ints(&vec![part; count as usize]);
        let attributes = vec![attribute::int("axis", axis as i64)];
        self.node_with_results("Split", &[x, &sizes], attributes, vec![(x.element, shape); count as usize])
    }

    /// `x` without its first row and column.
    pub(crate) fn crop_top_left(&mut self, x: &Value) -> Value {
        let (starts, ends, axes) = (self.ints(&[1, 1]), self.ints(&[i64::MAX, i64::MAX]), self.ints(&[2, 3]));
        let steps = self.ints(&[1, 1]);
        let shape = vec![x.shape[0], x.shape[1], Dim::Fixed(x.size(2) - 1), Dim::Fixed(x.size(3) - 1)];
        self.node("Slice", &[x, &starts, &ends, &axes, &steps], vec![], x.element, shape)
    }

    /// `x` with a row of zeros below and a column of zeros to the right.
    pub(crate) fn pad_bottom_right(&mut self, x: &Value) -> Value {
        let (pads, zero) = (self.ints(&[0, 0, 0, 0, 0, 0, 1, 1]), self.scalar(0.0));
        let shape = vec![x.shape[0], x.shape[1], Dim::Fixed(x.size(2) + 1), Dim::Fixed(x.size(3) + 1)];
        self.node("Pad", &[x, &pads, &zero], vec![], x.element, shape)
    }

    /// Element `index` of `axis`, which is removed.
    pub(crate) fn pick(&mut self, x: &Value, axis: usize, index: i64) -> Value {
        let index = self.constant(Element::I64, &[], index.to_le_bytes().to_vec());
        self.gather(x, &index, axis)
    }

    /// Slices of `x` along `axis`, at `indices`.
    pub(crate) fn gather(&mut self, x: &Value, indices: &Value, axis: usize) -> Value {
        let mut shape = x.shape.clone();
        shape.splice(axis..=axis, indices.shape.iter().copied());
        self.node("Gather", &[x, indices], vec![attribute::int("axis", axis as i64)], x.element, shape)
    }

    /// A new axis of size 1.
    pub(crate) fn unsqueeze(&mut self, x: &Value, axis: usize) -> Value {
        let mut shape = x.shape.clone();
        shape.insert(axis, Dim::Fixed(1));
        let axes = self.ints(&[axis as i64]);
        self.node("Unsqueeze", &[x, &axes], vec![], x.element, shape)
    }

    /// Without an axis of size 1.
    pub(crate) fn squeeze(&mut self, x: &Value, axis: usize) -> Value {
        let mut shape = x.shape.clone();
        assert_eq!(shape.remove(axis), Dim::Fixed(1), "the size of a dropped axis");
        let axes = self.ints(&[axis as i64]);
        self.node("Squeeze", &[x, &axes], vec![], x.element, shape)
    }

    /// `x`, whose first axis has size 1, repeated for each element of the batch of `like`.
    pub(crate) fn repeat_for_batch(&mut self, x: &Value, like: &Value) -> Value {
        if x.shape[0] == like.shape[0] {
            return x.clone();
        }
        let rank = like.rank() as i64;
        let sizes = self.node("Shape", &[like], vec![], Element::I64, fixed(&[rank]));
        let batch = self.pick(&sizes, 0, 0);
        let batch = self.unsqueeze(&batch, 0);
        let rest: Vec<i64> = (1..x.rank()).map(|axis| x.size(axis)).collect();
        let rest = self.ints(&rest);
        let target = self.concat(&[batch, rest], 0);
        let mut shape = x.shape.clone();
        shape[0] = like.shape[0];
        self.node("Expand", &[x, &target], vec![], x.element, shape)
    }
}
