//! The scalar type that the operators' evaluators run on.

use std::cell::RefCell;
use std::cmp::Ordering;

use regraft_ir::scalar::{Function, Scalar, Unsupported};
use regraft_ir::{EvalContext, EvalError, Op, Value};

use super::arena::{Arena, Broken, Id, ONE, ZERO};

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::default();
}

/// An expression over named entries, in the arena of this thread. Comparison is by construction,
/// not by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact(pub(super) Id);

/// Runs `work` on the arena of this thread.
pub(super) fn with<T>(work: impl FnOnce(&mut Arena) -> T) -> T {
    ARENA.with_borrow_mut(work)
}

fn refuse(why: Broken) -> Unsupported {
    Unsupported(why)
}

impl Scalar for Exact {
    #[inline(never)]
    fn eval(op: &Op, inputs: &[Value<Exact>], context: &EvalContext<'_>) -> Result<Vec<Value<Exact>>, EvalError> {
        op.meaning(inputs, context)
    }

    fn from_f64(value: f64) -> Exact {
        Exact(with(|arena| arena.constant(value)))
    }

    fn zero() -> Exact {
        Exact(ZERO)
    }

    fn one() -> Exact {
        Exact(ONE)
    }

    fn to_f64(&self) -> Result<f64, Unsupported> {
        let number = with(|arena| arena.as_number(self.0)).map_err(refuse)?;
        number.map(|n| n.to_f64()).ok_or(Unsupported("double for an expression over entries"))
    }

    fn add(&self, other: &Exact) -> Exact {
        if self.0 == ZERO {
            return *other;
        }
        Exact(with(|arena| arena.sum(self.0, other.0)))
    }

    fn sub(&self, other: &Exact) -> Exact {
        Exact(with(|arena| arena.difference(self.0, other.0)))
    }

    fn mul(&self, other: &Exact) -> Exact {
        if self.0 == ZERO || other.0 == ZERO {
            return Exact(ZERO);
        }
        Exact(with(|arena| arena.product(self.0, other.0)))
    }

    fn div(&self, other: &Exact) -> Result<Exact, Unsupported> {
        if other.0 == ONE {
            return Ok(*self);
        }
        with(|arena| {
            let inverse = arena.inverse(other.0).map_err(refuse)?.ok_or(Unsupported("inverse of zero"))?;
            Ok(Exact(arena.product(self.0, inverse)))
        })
    }

    fn pow(&self, other: &Exact) -> Result<Exact, Unsupported> {
        let power = with(|arena| arena.power(self.0, other.0)).map_err(refuse)?;
        power.map(Exact).ok_or(Unsupported("inverse of zero"))
    }

    fn apply(&self, f: Function) -> Result<Exact, Unsupported> {
        with(|arena| arena.function(f, self.0)).map(Exact).map_err(refuse)
    }

    fn compare(&self, other: &Exact) -> Result<Option<Ordering>, Unsupported> {
        with(|arena| {
            let difference = arena.difference(self.0, other.0);
            let number = arena.as_number(difference).map_err(refuse)?.ok_or(Unsupported("order of expressions over entries"))?;
            Ok(Some(number.order(crate::rational::Rational::ZERO)))
        })
    }

    fn extreme(order: Ordering, a: &Exact, b: &Exact) -> Result<Exact, Unsupported> {
        with(|arena| arena.extreme(order == Ordering::Greater, a.0, b.0)).map(Exact).map_err(refuse)
    }

    fn raise(&mut self, other: &Exact) -> Result<(), Unsupported> {
        *self = Exact::extreme(Ordering::Greater, self, other)?;
        Ok(())
    }

    fn gemm(m: usize, k: usize, n: usize, a: &[Exact], b: &[Exact], c: &mut [Exact]) {
        with(|arena| {
            for (i, row) in a.chunks_exact(k.max(1)).take(m).enumerate() {
                for j in 0..n {
                    let sum = &mut c[i * n + j];
                    *sum = Exact(arena.dot(sum.0, row.iter().enumerate().map(|(l, x)| (x.0, b[l * n + j].0))));
                }
            }
        });
    }
}
