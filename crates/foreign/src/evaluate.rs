//! Computes and compares both sides of an instance.

use std::collections::HashMap;
use std::fmt;

use regraft_ir::eval::{self, NoOpaque};
use regraft_ir::{Graph, Op, Scalar, Tensor, Value};
use regraft_prove::Field;

use crate::infer::Typing;
use crate::instance::{Instance, type_all};
use crate::lower::lower;
use crate::plan::Plan;
use crate::random::Random;

/// Random inputs on which doubles must agree before a difference in the field is attributed to an
/// order or a function.
const FILLS: u64 = 3;
/// Relative difference of doubles explained by rounding.
const ROUNDING: f64 = 1e-9;

/// Where two results differ.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// In shape.
    Shapes {
        /// Which result.
        output: usize,
        /// Sizes on the left.
        before: Vec<i64>,
        /// Sizes on the right.
        after: Vec<i64>,
    },
    /// In an element.
    Values {
        /// Which result.
        output: usize,
        /// Index of the element.
        index: Vec<usize>,
        /// Its value on the left.
        before: f64,
        /// Its value on the right.
        after: f64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Shapes { before, after, .. } => write!(f, "the shape is {before:?} before, {after:?} after"),
            Difference::Values { index, before, after, .. } => write!(f, "element {index:?} is {before} before, {after} after"),
        }
    }
}

/// What computing both sides showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// They are the same elements of the prime field, or the same doubles where the field cannot
    /// decide.
    Equal,
    /// They are not.
    Differ(Difference),
    /// One side cannot be computed, and why.
    Unknown(String),
}

/// Computes both sides of an instance: in the prime field first, and if they differ there in
/// doubles, because the field has no order of numbers and no laws of functions.
pub(crate) fn compare(plan: &Plan, instance: &Instance, names: &[String], seed: u64) -> Outcome {
    match sides(plan, instance, names) {
        Ok(Sides::Shapes(difference)) => Outcome::Differ(difference),
        Ok(Sides::Graphs(before, after)) => values(&before, &after, seed).unwrap_or_else(Outcome::Unknown),
        Err(why) => Outcome::Unknown(why),
    }
}

enum Sides {
    Shapes(Difference),
    Graphs(Graph, Graph),
}

fn sides(plan: &Plan, instance: &Instance, names: &[String]) -> Result<Sides, String> {
    let slots = type_all(plan, &instance.sizes(), &mut Typing::concrete(instance.reading))?;
    for (output, (before, after)) in plan.outputs[0].iter().zip(&plan.outputs[1]).enumerate() {
        let [before, after] = [before, after].map(|slot| slots[*slot].sizes.iter().map(|d| d.n).collect::<Vec<_>>());
        if before != after {
            return Ok(Sides::Shapes(Difference::Shapes { output, before, after }));
        }
    }
    let [before, after] = [0, 1].map(|side| lower(plan, side, &slots, instance.reading, names));
    Ok(Sides::Graphs(before?, after?))
}

fn values(before: &Graph, after: &Graph, seed: u64) -> Result<Outcome, String> {
    let exact = |graph: &Graph| run(graph, seed, |random| Field::new(random.next()));
    let in_field = Field::with_key(seed, || Ok::<_, String>(exact(before)? == exact(after)?));
    if in_field == Ok(true) {
        return Ok(Outcome::Equal);
    }
    for fill in 0..FILLS {
        // Small nonzero numbers are easy to follow by hand.
        let doubles = |graph: &Graph| {
            run(graph, seed.wrapping_add(fill), |random| {
                let magnitude = (1 + random.below(3)) as f64;
                if random.below(2) == 0 { magnitude } else { -magnitude }
            })
        };
        if let Some(difference) = difference(&doubles(before)?, &doubles(after)?) {
            return Ok(Outcome::Differ(difference));
        }
    }
    Ok(Outcome::Equal)
}

fn run<S: Scalar>(graph: &Graph, seed: u64, mut element: impl FnMut(&mut Random) -> S) -> Result<Vec<Value<S>>, String> {
    let mut random = Random::new(seed);
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape: Vec<usize> = input.ty.known_shape().into_iter().flatten().map(|d| d as usize).collect();
        let data = (0..shape.iter().product::<usize>()).map(|_| element(&mut random)).collect();
        feeds.insert(input.name.to_string(), Value::real(Tensor::new(shape, data)));
    }
    eval::run(graph, &feeds, &mut NoOpaque).map_err(|e| e.to_string())
}

/// The first elements that differ by more than rounding.
fn difference(before: &[Value<f64>], after: &[Value<f64>]) -> Option<Difference> {
    for (output, pair) in before.iter().zip(after).enumerate() {
        let (Value::Real(a), Value::Real(b)) = pair else { continue };
        let apart =
            |(x, y): (&f64, &f64)| !(x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= ROUNDING * (1.0 + x.abs().max(y.abs())));
        let Some(at) = a.data.iter().zip(&b.data).position(apart) else { continue };
        let index = a.strides().iter().zip(&a.shape).map(|(stride, size)| at / stride % size).collect();
        return Some(Difference::Values { output, index, before: a.data[at], after: b.data[at] });
    }
    None
}
