//! Exact comparison of two graphs of known small sizes: every element of every output as an
//! expression over named entries of the inputs.
//!
//! The operators' own evaluators run over expressions, so this reading has no semantics of its own.
//! Polynomials and their quotients are decided; exponentials of sums are products; other functions,
//! powers and extremes are atoms that are equal where their arguments are. Extremes are also
//! associative, commutative and idempotent, and terms that all operands share move outside. So
//! equal expressions are equal wherever both sides are defined, and different ones are different
//! functions if they contain no atoms.

mod arena;
mod decide;
mod monomial;
mod scalar;

use std::collections::HashMap;

use regraft_ir::{Class, Const, EvalError, Graph, Op, Tensor, Value, eval};

use arena::{Broken, Term};
use scalar::{Exact, with};

/// What exact expressions say about two graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Every element of every output is the same expression.
    Equal,
    /// An element is another function: its output and flat index.
    Different {
        /// Index of the output.
        output: usize,
        /// Flat index of the element.
        element: usize,
    },
    /// The first graph has no value for these sizes (a window lies entirely in the padding): why.
    Undefined(String),
    /// Neither was shown: why.
    Undecided(String),
}

/// Compares two graphs with the same inputs and outputs, of known sizes, element by element.
///
/// Real inputs get a name for each element; integers and booleans are taken from `discrete`, by the
/// input's name.
pub fn exact_equal(before: &Graph, after: &Graph, discrete: &HashMap<String, Const>) -> Exactness {
    with(arena::Arena::clear);
    let compared = compare(before, after, discrete);
    match (compared, with(|arena| arena.broken)) {
        (Ok(verdict), None) => verdict,
        (Err(why), _) => Exactness::Undecided(why),
        (_, Some(why)) => Exactness::Undecided(why.into()),
    }
}

fn compare(before: &Graph, after: &Graph, discrete: &HashMap<String, Const>) -> Result<Exactness, String> {
    let feeds = feeds(before, discrete)?;
    let run = |graph: &Graph| eval::run::<Exact>(graph, &feeds, &mut eval::NoOpaque);
    let before = match run(before) {
        Ok(values) => values,
        Err(EvalError::Value(why)) => return Ok(Exactness::Undefined(why)),
        Err(other) => return Err(other.to_string()),
    };
    let after = run(after).map_err(|e| e.to_string())?;
    if before.len() != after.len() {
        return Err("the graphs have different numbers of outputs".into());
    }
    let mut buffers = [Vec::new(), Vec::new()];
    for (output, (x, y)) in before.iter().zip(&after).enumerate() {
        if x.shape() != y.shape() {
            return Ok(Exactness::Different { output, element: 0 });
        }
        let (Value::Real(x), Value::Real(y)) = (x, y) else {
            if x != y {
                return Ok(Exactness::Different { output, element: 0 });
            }
            continue;
        };
        for (element, (a, b)) in x.data.iter().zip(&y.data).enumerate() {
            match same(*a, *b, &mut buffers) {
                Ok(true) => {}
                Ok(false) if with(|arena| arena.is_rational()) => return Ok(Exactness::Different { output, element }),
                Ok(false) => return Err(format!("element {element} of output {output} has other atoms on both sides")),
                Err(why) => return Err(why.into()),
            }
        }
    }
    Ok(Exactness::Equal)
}

fn same(a: Exact, b: Exact, buffers: &mut [Vec<Term>; 2]) -> Result<bool, Broken> {
    with(|arena| {
        if arena.same(a.0, b.0, buffers)? {
            return Ok(true);
        }
        if arena.only_entries() {
            return Ok(false);
        }
        let difference = arena.difference(a.0, b.0);
        decide::vanishes(arena, difference)
    })
}

/// A name for every element of the real inputs; the given values for the others.
fn feeds(graph: &Graph, discrete: &HashMap<String, Const>) -> Result<HashMap<String, Value<Exact>>, String> {
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let name = input.name.to_string();
        if input.ty.dtype.class() != Class::Real {
            let given = discrete.get(&name).and_then(Value::from_const);
            feeds.insert(name, given.ok_or_else(|| format!("input `{}` has no elements", input.name))?);
            continue;
        }
        let shape = input.ty.known_shape().ok_or_else(|| format!("input `{}` has symbolic sizes", input.name))?;
        let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
        let elements = shape.iter().product::<usize>();
        let data = with(|arena| (0..elements).map(|_| Exact(arena.entry())).collect());
        feeds.insert(name, Value::real(Tensor::new(shape, data)));
    }
    Ok(feeds)
}

#[cfg(test)]
mod tests;
