//! Exact comparison of two graphs of known small sizes, with numbers where expressions do not
//! decide.

use std::collections::HashMap;

use regraft_ir::tensor::magnitude;
use regraft_ir::{Class, Const, Graph, Op, SplitMix64, Value, eval};

use crate::exact::{Exactness, exact_equal};

/// Relative difference above which two numbers differ by more than rounding.
const DIFFERENT: f64 = 1e-7;

/// Like [`exact_equal`]; graphs that expressions do not decide are [`Exactness::Different`] if they
/// give different numbers.
///
/// Integers and booleans are taken from `given`, by the input's name. So are reals where numbers
/// are compared; those not given are positive in one run, and of mixed sign in another.
pub fn settled(before: &Graph, after: &Graph, given: &HashMap<String, Const>) -> Exactness {
    let verdict = exact_equal(before, after, given);
    let Exactness::Undecided(_) = verdict else { return verdict };
    [0.0, 1.5].into_iter().find_map(|shift| differing(before, after, given, shift)).unwrap_or(verdict)
}

/// Where the two sides give different numbers, with reals that are not given drawn from [-1, 1) +
/// `shift`; `None` too if they cannot be computed.
fn differing(before: &Graph, after: &Graph, given: &HashMap<String, Const>, shift: f64) -> Option<Exactness> {
    let mut random = SplitMix64(0x1234_5678_9abc_def1);
    let mut feeds = HashMap::new();
    for id in before.inputs() {
        let Op::Input(input) = &before.node(*id).op else { continue };
        let name = input.name.to_string();
        if let Some(value) = given.get(&name).and_then(Value::from_const) {
            feeds.insert(name, value);
            continue;
        }
        let shape = input.ty.known_shape().filter(|_| input.ty.dtype.class() == Class::Real)?;
        let elements: Vec<f64> = (0..shape.iter().product::<i64>()).map(|_| random.unit() * 2.0 - 1.0 + shift).collect();
        feeds.insert(name, Const::from_f64(input.ty.dtype, &shape, &elements).and_then(|c| Value::from_const(&c))?);
    }
    let run = |graph: &Graph| eval::run::<f64>(graph, &feeds, &mut eval::NoOpaque);
    let (Ok(a), Ok(b)) = (run(before), run(after)) else { return None };
    a.iter().zip(&b).enumerate().find_map(|(output, pair)| {
        let element = match pair {
            (Value::Real(x), Value::Real(y)) if x.shape == y.shape => {
                let scale = magnitude(&x.data).max(1.0);
                x.data.iter().zip(&y.data).position(|(p, q)| (p - q).abs() > DIFFERENT * scale)?
            }
            (x, y) if x == y => return None,
            _ => 0,
        };
        Some(Exactness::Different { output, element })
    })
}
