//! The shapes to try for each kind of leaf: small, and adversarial. Sizes of 1 broadcast, channels
//! differ, windows are odd, even and oblong.

use crate::kind::Kind;
use crate::operator::Operator;
use crate::plan::Leaf;

/// Heights and widths of weights.
const WINDOWS: [[i64; 2]; 5] = [[1, 1], [3, 3], [1, 3], [2, 2], [3, 1]];

/// All shapes to try for a leaf of this kind.
pub(crate) fn shapes(leaf: &Leaf, kind: Kind) -> Vec<Vec<i64>> {
    match leaf {
        Leaf::Variable(_) | Leaf::Constant(Operator::Ones) => of_kind(kind),
        Leaf::Constant(Operator::PoolKernel { kernel: [h, w] } | Operator::IdentityKernel { kernel: [h, w] }) => {
            let depthwise = (1..=4).map(|c| vec![c, 1, *h, *w]);
            depthwise.chain((2..=4).map(|c| vec![c, c, *h, *w])).collect()
        }
        Leaf::Constant(_) => (1..=4).map(|n| vec![n, n]).collect(),
    }
}

fn of_kind(kind: Kind) -> Vec<Vec<i64>> {
    match kind {
        Kind::Scalar => vec![Vec::new()],
        Kind::Vector => all(&[&[1, 2, 3]]),
        Kind::Matrix => all(&[&[1, 2, 3, 4], &[1, 2, 3, 4]]),
        Kind::Stack => all(&[&[1, 2], &[1, 2, 3], &[1, 2, 3]]),
        Kind::Image => all(&[&[1, 2], &[1, 2, 3, 4], &[1, 4, 5], &[1, 3, 4]]),
        Kind::Tensor => all(&[&[1, 2], &[1, 2, 3], &[1, 2, 3], &[1, 2]]),
        Kind::Kernel => {
            let channels = all(&[&[1, 2, 3, 4], &[1, 2, 3, 4]]);
            channels.iter().flat_map(|c| WINDOWS.map(|w| [c.as_slice(), &w].concat())).collect()
        }
    }
}

fn all(sizes: &[&[i64]]) -> Vec<Vec<i64>> {
    sizes.iter().fold(vec![Vec::new()], |shapes, axis| {
        shapes.iter().flat_map(|shape| axis.iter().map(|n| [shape.as_slice(), &[*n]].concat())).collect()
    })
}
