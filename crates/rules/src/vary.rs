//! Generated instances: those of an instance clause with other element types, computed on values at
//! the ends of their ranges.

use std::collections::HashMap;

use regraft_ir::{Class, Const, DType, Graph, Op, SplitMix64, TensorType, Value, ValueId, eval};

use crate::rule::Rule;
use crate::sample::{Instance, Miss, TOLERANCE, draw, rewritten};

/// Element types to try besides the doubles that clauses draw.
pub const TYPES: [DType; 12] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bool,
];

/// The instance with source `before` and elements of `dtype` instead of real numbers. `None` if its
/// operators do not accept them, a constant cannot be converted, or the rule does not match.
pub fn retyped(rule: &Rule, before: &Graph, dtype: DType) -> Option<Result<Instance, Miss>> {
    let mut graph = Graph::new(before.name.clone());
    let mut values: HashMap<ValueId, ValueId> = HashMap::new();
    for id in before.topological() {
        let node = before.node(id);
        let change = |ty: &TensorType| if ty.dtype.class() == Class::Real { TensorType { dtype, ..ty.clone() } } else { ty.clone() };
        let new = match &node.op {
            Op::Input(input) if node.constant => graph.add_parameter(&input.name, change(&input.ty)).node,
            Op::Input(input) => graph.add_input(&input.name, change(&input.ty)).node,
            Op::Constant(constant) if constant.value.dtype().class() == Class::Real => {
                graph.add_const(number(&constant.value, dtype)?).node
            }
            Op::Constant(constant) => graph.add_const(constant.value.clone()).node,
            op => {
                let inputs: Vec<ValueId> = node.inputs.iter().map(|v| values.get(v).copied()).collect::<Option<_>>()?;
                graph.add(op.clone(), &inputs).ok()?
            }
        };
        values.extend((0..node.types.len() as u32).map(|port| (id.port(port), new.port(port))));
    }
    let roots: Vec<ValueId> = before.outputs().iter().map(|o| values.get(&o.value).copied()).collect::<Option<_>>()?;
    for (output, root) in before.outputs().iter().zip(&roots) {
        graph.add_output(&output.name, *root);
    }
    match rewritten(rule, graph, &roots) {
        Err(Miss::Draw(_)) => None,
        made => Some(made),
    }
}

/// What generated instances of a rule show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// Types other than floats that it admits.
    pub admitted: Vec<DType>,
    /// Those on which it is false, or cannot build its target, with an example of each.
    pub wrong: Vec<(DType, String)>,
}

/// Tries a rule on every non-float type that its guards and operators admit, on `instances` drawn
/// sources with `rounds` inputs each.
pub fn types(rule: &Rule, instances: usize, rounds: u64) -> Types {
    let drawn = (0..DRAWS * instances as u64).filter_map(|seed| draw(rule, seed).ok());
    let (mut found, rule) = (Types::default(), &rule.anywhere());
    for instance in drawn.filter(|instance| instance.before.len() + instance.after.len() < LARGEST).take(instances) {
        for dtype in TYPES.into_iter().filter(|t| t.class() != Class::Real) {
            let made = retyped(rule, &instance.before, dtype);
            if made.is_some() && !found.admitted.contains(&dtype) {
                found.admitted.push(dtype);
            }
            let why = match made {
                Some(Ok(instance)) if !found.wrong.iter().any(|(t, _)| *t == dtype) => difference_at_the_ends(&instance, rounds),
                Some(Err(Miss::Wrong(why))) if !found.wrong.iter().any(|(t, _)| *t == dtype) => Some(why),
                _ => None,
            };
            found.wrong.extend(why.map(|why| (dtype, why.chars().take(SHOWN).collect())));
        }
    }
    found
}

/// Draws for each instance.
const DRAWS: u64 = 100;
/// Maximum number of nodes on both sides of an instance to retype.
const LARGEST: usize = 400;
/// Maximum number of characters of an example.
const SHOWN: usize = 300;

/// A constant converted to another type: integers as they are, drawn ones as integers.
fn number(constant: &Const, dtype: DType) -> Option<Const> {
    let elements = constant.to_f64()?;
    let whole = elements.iter().all(|v| v.fract() == 0.0);
    if dtype.is_float() || whole {
        return Const::from_f64(dtype, constant.shape(), &elements);
    }
    let drawn = constant.splat().is_none() || constant.elements() > 1;
    let scaled: Vec<f64> = elements.iter().map(|v| (4.0 * v).round()).collect();
    drawn.then(|| Const::from_f64(dtype, constant.shape(), &scaled)).flatten()
}

/// The first of `rounds` on which the sides differ, and how; inputs are values at the ends of their
/// types' ranges, at zero and in between.
///
/// A round on which the source cannot be computed shows nothing: an index may be out of range.
pub fn difference_at_the_ends(instance: &Instance, rounds: u64) -> Option<String> {
    difference_beyond(TOLERANCE, Value::difference, instance, rounds)
}

/// The same, with another measure of difference, and a threshold for it.
pub(crate) fn difference_beyond(
    tolerance: f64,
    difference: fn(&Value<f64>, &Value<f64>) -> f64,
    instance: &Instance,
    rounds: u64,
) -> Option<String> {
    for round in 0..rounds {
        let feeds = feeds(instance, round)?;
        let run = |graph: &Graph| eval::run::<f64>(graph, &feeds, &mut eval::NoOpaque);
        let Ok(before) = run(&instance.before) else { continue };
        let after = match run(&instance.after) {
            Ok(after) => after,
            Err(e) => return Some(format!("the target cannot be computed: {e}")),
        };
        let worst = before.iter().zip(&after).map(|(a, b)| difference(a, b)).fold(0.0, f64::max);
        if worst > tolerance {
            return Some(format!("round {round}: {before:?} and {after:?}"));
        }
    }
    None
}

fn feeds(instance: &Instance, round: u64) -> Option<HashMap<String, Value<f64>>> {
    let mut random = SplitMix64(round ^ 0x5eed);
    let mut feeds = HashMap::new();
    for id in instance.before.inputs() {
        let Op::Input(input) = &instance.before.node(*id).op else { continue };
        let (shape, dtype) = (input.ty.known_shape()?, input.ty.dtype);
        let count = shape.iter().product::<i64>();
        let ends = ends(dtype);
        let index = input.name.contains("_index_") || round % 2 == 1;
        let mut next = |ways: usize| (random.word() >> 33) as usize % ways;
        let elements: Vec<i64> = match (instance.feeds.get(input.name.as_ref()), dtype.class()) {
            // Small numbers in every other round: wrapping of large ones may hide differences.
            (_, Class::Int) if index => (0..count).map(|_| ends[next(4.min(ends.len()))]).collect(),
            (_, Class::Int | Class::Bool) => (0..count).map(|_| ends[next(ends.len())]).collect(),
            (drawn, _) => {
                let drawn = drawn.filter(|c| c.dtype() == dtype).and_then(Value::from_const);
                let mut made = || Const::from_f64(dtype, &shape, &(0..count).map(|_| next(9) as f64 - 4.0).collect::<Vec<_>>());
                feeds.insert(input.name.to_string(), drawn.or_else(|| Value::from_const(&made()?))?);
                continue;
            }
        };
        feeds.insert(input.name.to_string(), Value::from_const(&Const::from_i64(dtype, &shape, &elements)?)?);
    }
    Some(feeds)
}

/// Numbers of a type: small ones first, then those at the ends of its range.
fn ends(dtype: DType) -> Vec<i64> {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => vec![0, 1],
        DType::U8 | DType::U16 | DType::U32 => vec![1, 0, 2, 3, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1)],
        DType::U64 => vec![1, 0, 2, 3, -1, -2, i64::MIN],
        _ => {
            let most = i64::MAX >> (64 - bits);
            vec![1, 0, -1, 2, -3, most, -most - 1, most - 1, most / 2 + 1]
        }
    }
}
