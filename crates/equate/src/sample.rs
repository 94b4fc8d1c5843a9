//! What values look like on one random input: values that look different are not compared further.

use regraft_ir::op::EvalContext;
use regraft_ir::{Bindings, Class, DType, Graph, NodeId, Op, SplitMix64, Tensor, TensorType, Value, ValueId};
use rustc_hash::FxHashMap;

/// Weighted sums kept for a value.
const SUMS: usize = 4;
/// Relative difference of weighted sums that may come from rounded constants.
const TOLERANCE: f64 = 1e-4;
/// Sizes assigned to symbols, in turn.
const SIZES: [i64; 4] = [4, 3, 5, 2];

/// A value on one random input: sums of its elements under random weights, and the size of the
/// terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    sums: [f64; SUMS],
    scale: f64,
    /// True if all elements are the same number.
    pub flat: bool,
}

impl Sample {
    fn of(value: &Value<f64>) -> Sample {
        let elements: Vec<f64> = match value {
            Value::Real(t) => t.data.clone(),
            Value::Int(t) => t.data.iter().map(|v| *v as f64).collect(),
            Value::Bool(t) => t.data.iter().map(|v| f64::from(u8::from(*v))).collect(),
        };
        let (mut sums, mut scale) = ([0.0; SUMS], 0.0);
        for (at, element) in elements.iter().enumerate() {
            // NaN and overflow only count by their position.
            let element = if element.is_finite() { *element } else { 0.5 };
            scale += element.abs();
            for (which, sum) in sums.iter_mut().enumerate() {
                *sum += element * weight(at as u64, which as u64);
            }
        }
        let flat = elements.windows(2).all(|pair| pair[0] == pair[1]);
        Sample { sums, scale, flat }
    }

    /// True if both may be samples of one value, up to rounded constants.
    pub fn is_near(&self, other: &Sample) -> bool {
        let most = TOLERANCE * self.scale.max(other.scale);
        self.sums.iter().zip(&other.sums).all(|(x, y)| (x - y).abs() <= most)
    }
}

/// A pseudorandom number of magnitude at most 1, determined by its arguments.
fn weight(at: u64, which: u64) -> f64 {
    (mix(at.wrapping_mul(SUMS as u64).wrapping_add(which)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A pseudorandom word determined by another.
fn mix(word: u64) -> u64 {
    SplitMix64(word).word()
}

/// Samples of a graph's values, for at most `work` operations. `called` names inputs and results of
/// opaque operators: equal names have equal elements in all graphs.
pub(crate) fn samples(graph: &Graph, bindings: &Bindings, work: f64, called: &dyn Fn(ValueId) -> String) -> FxHashMap<ValueId, Sample> {
    let mut samples = FxHashMap::default();
    let mut values: FxHashMap<ValueId, Value<f64>> = FxHashMap::default();
    let mut readers: Vec<usize> = vec![0; graph.capacity()];
    graph.ids().flat_map(|id| &graph.node(id).inputs).for_each(|v| readers[v.node.0 as usize] += 1);
    let mut spent = 0.0;
    for id in graph.topological() {
        let results = computed(graph, id, bindings, &values, &mut spent, work, called);
        for operand in &graph.node(id).inputs {
            let left = &mut readers[operand.node.0 as usize];
            *left -= 1;
            if *left == 0 {
                (0..graph.node(operand.node).types.len() as u32).for_each(|port| drop(values.remove(&operand.node.port(port))));
            }
        }
        for (port, value) in (0..).zip(results.unwrap_or_default()) {
            samples.insert(id.port(port), Sample::of(&value));
            values.insert(id.port(port), value);
        }
    }
    samples
}

fn computed(
    graph: &Graph,
    id: NodeId,
    bindings: &Bindings,
    values: &FxHashMap<ValueId, Value<f64>>,
    spent: &mut f64,
    work: f64,
    called: &dyn Fn(ValueId) -> String,
) -> Option<Vec<Value<f64>>> {
    let node = graph.node(id);
    let shape = |ty: &Option<TensorType>| ty.as_ref()?.bind(bindings);
    let outputs: Vec<Vec<usize>> = node.types.iter().map(shape).collect::<Option<_>>()?;
    if let Op::Input(_) | Op::Opaque(_) = &node.op {
        let made = node.types.iter().zip(&outputs).zip(0..);
        return made.map(|((ty, shape), port)| made_up(ty.as_ref()?.dtype, shape, &called(id.port(port)))).collect();
    }
    let operands: Vec<Value<f64>> = node.inputs.iter().map(|v| values.get(v).cloned()).collect::<Option<_>>()?;
    let inputs: Vec<Vec<usize>> = operands.iter().map(|v| v.shape().to_vec()).collect();
    let elements: usize = inputs.iter().chain(&outputs).map(|s| s.iter().product::<usize>()).sum();
    *spent += node.op.work(&inputs, &outputs).flops + elements as f64;
    if *spent > work {
        return None;
    }
    let input_types: Vec<TensorType> = node.inputs.iter().map(|v| graph.ty(*v).cloned()).collect::<Option<_>>()?;
    let output_types: Vec<TensorType> = node.types.iter().cloned().collect::<Option<_>>()?;
    node.op.eval(&operands, &EvalContext { bindings, input_types: &input_types, output_types: &output_types }).ok()
}

fn made_up(dtype: DType, shape: &[usize], name: &str) -> Option<Value<f64>> {
    let seed = name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).filter(|n| *n <= 1 << 26)?;
    let words = (0..count as u64).map(|at| mix(seed.wrapping_add(at)));
    Some(match dtype.class() {
        Class::Real => {
            Value::real(Tensor::new(shape.to_vec(), words.map(|w| (w >> 11) as f64 / (1u64 << 52) as f64 * 1.5 - 1.5).collect()))
        }
        Class::Int => Value::int(Tensor::new(shape.to_vec(), words.map(|w| (w >> 33) as i64 % 4).collect())),
        Class::Bool => Value::bool(Tensor::new(shape.to_vec(), words.map(|w| w >> 63 == 1).collect())),
        Class::Other => return None,
    })
}

/// Sizes for all symbols of a graph.
pub(crate) fn sizes(graph: &Graph) -> Bindings {
    let mut symbols = Vec::new();
    let types = graph.ids().flat_map(|id| graph.node(id).types.iter().flatten());
    types.flat_map(|ty| &ty.shape).for_each(|d| d.symbols(&mut symbols));
    let mut bindings = Bindings::new();
    for symbol in symbols {
        let next = SIZES[bindings.len() % SIZES.len()];
        bindings.entry(symbol).or_insert(next);
    }
    bindings
}
