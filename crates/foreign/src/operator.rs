//! The operators of foreign rules, with their parameters.

/// How a window treats the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Enough padding to make the result `ceil(size / stride)` long; how it is divided is a matter
    /// of [`Reading`](crate::Reading).
    Same,
    /// No padding.
    Valid,
}

/// The activation applied to a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    None,
    /// The logistic function.
    Sigmoid,
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// The activation with this number in TASO and TENSAT.
    pub(crate) fn of_code(code: i64) -> Option<Activation> {
        [Activation::None, Activation::Sigmoid, Activation::Relu, Activation::Tanh].get(usize::try_from(code).ok()?).copied()
    }
}

impl Padding {
    /// The padding with this number in TASO and TENSAT.
    pub(crate) fn of_code(code: i64) -> Option<Padding> {
        [Padding::Same, Padding::Valid].get(usize::try_from(code).ok()?).copied()
    }
}

/// Elementwise functions of two tensors, with broadcasting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// The larger.
    Max,
    /// The smaller.
    Min,
}

/// Elementwise functions of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `max(x, 0)`.
    Relu,
    /// The logistic function.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The exponential.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// The operand itself: dropout at inference.
    Identity,
}

/// One operator of a foreign rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `x[N, C, H, W], w[O, I, h, w] → [N, O, H', W']` in `C / I` groups, a number that no
    /// parameter states.
    Conv {
        /// Steps down and across.
        strides: [i64; 2],
        /// Border.
        padding: Padding,
        /// Applied to the result.
        activation: Activation,
    },
    /// The mean or the maximum of each window of `x[N, C, H, W]`.
    Pool {
        /// The mean instead of the maximum.
        mean: bool,
        /// Height and width of the window.
        kernel: [i64; 2],
        /// Steps down and across.
        strides: [i64; 2],
        /// Border.
        padding: Padding,
        /// Applied to the result.
        activation: Activation,
    },
    /// `[.., M, K], [.., K, N] → [.., M, N]` with equal leading sizes.
    MatMul {
        /// Applied to the result.
        activation: Activation,
    },
    /// Two operands of the same shape, or of shapes that broadcast.
    Binary(Binary),
    /// One operand.
    Unary(Unary),
    /// A tensor times a scalar of rank 0.
    Scale,
    /// Operands concatenated along an axis.
    Concat {
        /// Axis.
        axis: usize,
        /// Rank of the operands, if the rule states it.
        rank: Option<usize>,
    },
    /// Two results: the operand before and after the position of the last concatenation along an
    /// axis.
    Split {
        /// Axis.
        axis: usize,
    },
    /// Axis `i` of the result is axis `perm[i]` of the operand.
    Transpose {
        /// A permutation.
        perm: Vec<usize>,
    },
    /// Convolution weights centred in larger ones that are zero elsewhere.
    Enlarge {
        /// The larger height and width; if not given, those of a second operand.
        kernel: Option<[i64; 2]>,
    },
    /// Weights `[O, I, h, w]` for `count` times fewer groups: `[O, count * I, h, w]`, zero outside
    /// the old groups.
    MergeGroups {
        /// Old groups per new one.
        count: i64,
    },
    /// Convolution weights that average a window.
    PoolKernel {
        /// Height and width.
        kernel: [i64; 2],
    },
    /// Convolution weights that reproduce the image.
    IdentityKernel {
        /// Height and width.
        kernel: [i64; 2],
    },
    /// The identity matrix.
    IdentityMatrix,
    /// A tensor of ones.
    Ones,
    /// An operator of the format without a meaning here.
    Unjudged(String),
}

impl Operator {
    /// Whether it is a constant with a size inferred from context.
    pub fn is_constant(&self) -> bool {
        matches!(self, Operator::PoolKernel { .. } | Operator::IdentityKernel { .. } | Operator::IdentityMatrix | Operator::Ones)
    }

    /// Number of results.
    pub fn results(&self) -> usize {
        if matches!(self, Operator::Split { .. }) { 2 } else { 1 }
    }

    /// Minimum and maximum number of operands.
    pub fn operands(&self) -> (usize, usize) {
        match self {
            Operator::Conv { .. } | Operator::MatMul { .. } | Operator::Binary(_) | Operator::Scale => (2, 2),
            Operator::Pool { .. } | Operator::Unary(_) | Operator::Split { .. } | Operator::Transpose { .. } => (1, 1),
            Operator::MergeGroups { .. } | Operator::Enlarge { kernel: Some(_) } => (1, 1),
            Operator::Enlarge { kernel: None } => (2, 2),
            Operator::Concat { .. } => (2, usize::MAX),
            Operator::PoolKernel { .. } | Operator::IdentityKernel { .. } | Operator::IdentityMatrix | Operator::Ones => (0, 0),
            Operator::Unjudged(_) => (0, usize::MAX),
        }
    }

    /// Whether an element of the result depends only on the elements at its own index.
    pub fn is_pointwise(&self) -> bool {
        matches!(self, Operator::Binary(_) | Operator::Unary(_) | Operator::Scale)
    }

    /// Why it has no meaning for any operands, if it has none.
    pub(crate) fn fault(&self) -> Option<String> {
        let within = |v: i64| (1..=LARGEST).contains(&v);
        let sizes: &[&[i64; 2]] = match self {
            Operator::Conv { strides, .. } => &[strides],
            Operator::Pool { kernel, strides, .. } => &[kernel, strides],
            Operator::Enlarge { kernel: Some(kernel) } | Operator::PoolKernel { kernel } | Operator::IdentityKernel { kernel } => &[kernel],
            Operator::MergeGroups { count } if !within(*count) => return Some(format!("a count of {count}")),
            Operator::Transpose { perm } => {
                let mut sorted = perm.clone();
                sorted.sort_unstable();
                let fits = sorted.iter().copied().eq(0..perm.len()) && perm.len() <= MOST_AXES;
                return (!fits).then(|| format!("{perm:?} is no permutation of axes"));
            }
            Operator::Concat { axis, rank } if *axis >= rank.unwrap_or(MOST_AXES).min(MOST_AXES) => {
                return Some(format!("axis {axis} of {} axes", rank.unwrap_or(MOST_AXES)));
            }
            Operator::Split { axis } if *axis >= MOST_AXES => return Some(format!("axis {axis}")),
            _ => return None,
        };
        let wrong = sizes.iter().copied().flatten().find(|v| !within(**v))?;
        Some(format!("a window or stride of {wrong}"))
    }
}

/// Largest supported kernel, stride and group count.
const LARGEST: i64 = 64;
/// Maximum number of axes of a tensor.
pub(crate) const MOST_AXES: usize = 4;
