//! The assumptions of a proof.

use std::fmt;

use regraft_ir::{Attr, Class, Graph, Op, OpKind};

/// What a proof assumes about the numbers in models. Sizes are at least 1 and below 2^31, and
/// tensors have fewer than 2^48 elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Premises {
    /// Floats stand for real numbers: they are finite, and nothing is rounded. Not needed where
    /// floats are only moved, or do not occur.
    pub reals: bool,
    /// Some operator is undefined for some numbers: a divisor may be 0, a root or a logarithm may
    /// not exist. Both graphs then have values in the same places, and are equal there.
    pub defined: bool,
    /// All elements of the inputs have values. Not needed where both graphs read the same elements:
    /// an element without a value, because its operator has none, then leaves both graphs without
    /// values in the same places.
    pub valued: bool,
    /// Sums and products of integers along axes fit their type. Runtimes accumulate in other orders
    /// and widths than the type's own: what does not fit may saturate, or lose its low bits.
    pub fits: bool,
}

impl Premises {
    /// Whether nothing is assumed.
    pub fn is_empty(self) -> bool {
        self == Premises::default()
    }

    /// What either assumes.
    pub fn and(self, other: Premises) -> Premises {
        Premises {
            reals: self.reals || other.reals,
            defined: self.defined || other.defined,
            valued: self.valued || other.valued,
            fits: self.fits || other.fits,
        }
    }

    /// The premises of a proof that two graphs are equal, apart from where elements have values.
    pub fn of(graphs: [&Graph; 2]) -> Premises {
        let any = |holds: fn(&Graph) -> bool| graphs.iter().any(|graph| holds(graph));
        Premises { reals: any(computes_with_floats), fits: any(adds_up_integers), ..Premises::default() }
    }
}

impl fmt::Display for Premises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clauses = [
            (self.reals, "over the reals"),
            (self.defined, "with values in the same places"),
            (self.fits, "where sums of integers fit their type"),
        ];
        let clauses: Vec<&str> = clauses.into_iter().filter_map(|(holds, clause)| holds.then_some(clause)).collect();
        f.write_str(&if clauses.is_empty() { "for all numbers".into() } else { clauses.join(", ") })
    }
}

/// Whether an operator does more with floats than move them, or an element is a float that is not a
/// number of its own: an infinity, or negative zero.
fn computes_with_floats(graph: &Graph) -> bool {
    let is_float = |class: Option<Class>| class == Some(Class::Real);
    graph.ids().any(|id| {
        let node = graph.node(id);
        let results = node.types.iter().map(|ty| ty.as_ref().map(|ty| ty.dtype.class()));
        let operands = node.inputs.iter().map(|v| graph.ty(*v).map(|ty| ty.dtype.class()));
        match &node.op {
            Op::Input(_) => false,
            Op::Constant(constant) => {
                let plain = |v: &f64| v.is_finite() && (*v != 0.0 || v.is_sign_positive());
                constant.value.dtype().class() == Class::Real && !constant.value.to_f64().is_some_and(|all| all.iter().all(plain))
            }
            op => results.chain(operands).any(is_float) && (!moves(op.kind()) || has_negative_zero(op)),
        }
    })
}

/// Whether an attribute is -0, which is 0 over the reals.
fn has_negative_zero(op: &Op) -> bool {
    let is = |v: f64| v == 0.0 && v.is_sign_negative();
    op.attrs().iter().any(|(_, attr)| match attr {
        Attr::Float(v) => is(v.0),
        Attr::Floats(all) => all.iter().any(|v| is(v.0)),
        Attr::Tensor(value) => value.dtype().class() == Class::Real && value.to_f64().is_none_or(|all| all.into_iter().any(is)),
        _ => false,
    })
}

/// Whether some operator adds up or multiplies integers along axes.
fn adds_up_integers(graph: &Graph) -> bool {
    use OpKind::*;
    graph.ids().map(|id| graph.node(id)).any(|node| {
        let is_integer = node.inputs.first().and_then(|v| graph.ty(*v)).is_some_and(|ty| ty.dtype.class() == Class::Int);
        is_integer
            && matches!(
                node.op.kind(),
                ReduceSum | ReduceMean | ReduceProd | ReduceSumSquare | ReduceL1 | ReduceL2 | MatMulInteger | ConvInteger
            )
    })
}

/// Whether an operator computes no numbers: it moves elements, or is an uninterpreted function.
fn moves(kind: OpKind) -> bool {
    use OpKind::*;
    kind.moves_elements() || matches!(kind, Opaque | QuantizeLinear | DynamicQuantizeLinear | QLinearMatMul | QLinearConv)
}
