//! A region evaluated at random elements of a prime field, for steps without a proof.

use std::collections::HashMap;

use regraft_ir::{Bindings, Class, Graph, Op, SplitMix64, Tensor, TensorType, Value, eval};
use regraft_prove::Field;

use crate::region::Region;

/// Sizes that stand for the symbols in the two rounds, in turn.
const SIZES: [[i64; 3]; 2] = [[2, 3, 5], [3, 4, 2]];

/// Operations that all trials of one certificate may take together.
const WORK: f64 = 4e8;

/// Whether both sides have the same elements in every round: `Ok` with the sizes tried, otherwise
/// what went wrong. Adds its cost to `work`.
///
/// A false polynomial identity of degree d passes one round with probability d / (2^61 - 1).
/// Functions are uninterpreted here and the order is arbitrary, so a true equality that needs their
/// laws does not pass.
pub fn trial(region: &Region, work: &mut f64) -> Result<String, String> {
    let types: Vec<TensorType> = region.before.inputs().iter().filter_map(|id| region.before.ty(id.out()).cloned()).collect();
    let mut symbols: Vec<String> = Vec::new();
    types.iter().flat_map(|ty| &ty.shape).for_each(|d| d.symbols(&mut symbols));
    symbols.sort();
    symbols.dedup();
    let rounds = if symbols.is_empty() { 1 } else { SIZES.len() };
    let mut tried = Vec::new();
    for (round, sizes) in (0..).zip(&SIZES[..rounds]) {
        let bindings: Bindings = symbols.iter().cloned().zip(sizes.iter().copied().cycle()).collect();
        let cost = eval::effort(&region.before, &bindings).zip(eval::effort(&region.after, &bindings)).map(|(a, b)| a + b);
        let cost = cost.ok_or("a size cannot be computed")?;
        if *work + cost > WORK {
            return Err("too large to be evaluated".into());
        }
        *work += cost;
        let feeds = feeds(&region.before, &bindings, round).ok_or("an input that cannot be made up")?;
        let run = |graph: &Graph| eval::run::<Field>(graph, &feeds, &mut eval::NoOpaque).map_err(|e| e.to_string());
        let (before, after) = Field::with_key(round, || (run(&region.before), run(&region.after)));
        if before? != after? {
            return Err("the sides are different elements of the field".into());
        }
        tried.push(bindings.iter().map(|(symbol, size)| format!("{symbol}={size}")).collect::<Vec<_>>().join(" "));
    }
    Ok(if symbols.is_empty() { "at its sizes".into() } else { format!("at {}", tried.join(" and ")) })
}

fn feeds(graph: &Graph, bindings: &Bindings, round: u64) -> Option<HashMap<String, Value<Field>>> {
    let mut random = SplitMix64(round);
    let mut next = || random.word();
    let mut feeds = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let shape = input.ty.bind(bindings)?;
        let elements = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        let value = match input.ty.dtype.class() {
            Class::Real => Value::real(Tensor::new(shape, (0..elements).map(|_| Field::new(next() >> 3)).collect())),
            Class::Int => Value::int(Tensor::new(shape, (0..elements).map(|_| (next() >> 40) as i64 % 3).collect())),
            Class::Bool => Value::bool(Tensor::new(shape, (0..elements).map(|_| next() >> 63 == 1).collect())),
            Class::Other => return None,
        };
        feeds.insert(input.name.to_string(), value);
    }
    Some(feeds)
}
