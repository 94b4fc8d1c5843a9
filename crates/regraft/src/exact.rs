//! Two graphs in double precision: the part of a difference that is not due to coarser rounding.

use std::collections::HashMap;

use regraft_ir::parallel::joined;
use regraft_ir::{Const, DType, Graph, NodeId, Op, Tensor, Value, ValueId, eval};
use regraft_runtime::{Feeds, HostTensor};

use crate::agreement::{Agreement, compare};
use crate::optimize::to_values;

/// Relative difference up to which double precision confirms that a larger one in single precision
/// is rounding error: single precision rounds to 6e-8.
pub const CONFIRMED: f64 = 1e-9;

/// The same where constants or attributes were combined and rounded once, or replaced by what they
/// were rounded from: each may be off by 6e-8, and some sixteen of these may add up.
pub const CONFIRMED_ROUNDED: f64 = 1e-6;

/// In double precision, differences up to this multiple of the effect of the inputs' last bit are
/// rounding too.
const NOISE: f64 = 10.0;

/// How far `after` is from `before` on the reference executor, in double precision; integers and
/// booleans must be equal. An error says why one of them could not be computed.
///
/// Constants of `after` that are computed from others must still be expressions: a folded one is
/// rounded.
pub fn agreement(before: &Graph, after: &Graph, feeds: &Feeds) -> Result<Agreement, String> {
    let outputs = |graph: &Graph| graph.outputs().iter().map(|o| o.value).collect::<Vec<_>>();
    let names: Vec<String> = before.outputs().iter().map(|o| o.name.to_string()).collect();
    of_values(&names, (before, &outputs(before)), (after, &outputs(after)), feeds)
}

/// The same for inner values.
pub fn of_values(names: &[String], a: (&Graph, &[ValueId]), b: (&Graph, &[ValueId]), feeds: &Feeds) -> Result<Agreement, String> {
    let (a, b) = std::thread::scope(|scope| {
        let a = scope.spawn(|| computed(a, feeds, false));
        let b = computed(b, feeds, false);
        (joined(a), b)
    });
    Ok(compare(names, &a?, &b?))
}

/// How much of a difference in double precision is rounding error: [`CONFIRMED`], or, if larger,
/// the effect on graph `a` itself of inputs whose last bit changes.
pub fn noise(names: &[String], a: (&Graph, &[ValueId]), feeds: &Feeds) -> Result<f64, String> {
    let moved = moved(names, &computed(a, feeds, false)?, &computed(a, feeds, true)?);
    Ok(moved.map_or(CONFIRMED, |moved| CONFIRMED.max(NOISE * moved)))
}

/// The same where constants may have been rounded to single precision: [`CONFIRMED_ROUNDED`], or,
/// if larger, the effect on graph `a` itself of constants whose last bit changes.
pub fn noise_rounded(names: &[String], a: (&Graph, &[ValueId]), feeds: &Feeds) -> Result<f64, String> {
    let (grown, wanted) = grown(a);
    let Ok(b) = computed((&grown, &wanted), feeds, false) else { return Ok(CONFIRMED_ROUNDED) };
    Ok(moved(names, &computed(a, feeds, false)?, &b).map_or(CONFIRMED_ROUNDED, |moved| CONFIRMED_ROUNDED.max(moved)))
}

/// How far real results move; `None` where others change, or some overflow.
fn moved(names: &[String], a: &[HostTensor], b: &[HostTensor]) -> Option<f64> {
    let moved = compare(names, a, b);
    (moved.broken.is_empty() && moved.lost.is_empty()).then_some(moved.relative)
}

/// The graph with every second element of its constants in single precision grown by its last bit,
/// and the same values in it. Whole numbers stay, as they round to themselves.
fn grown((graph, wanted): (&Graph, &[ValueId])) -> (Graph, Vec<ValueId>) {
    let mut copy = Graph::new(graph.name.clone());
    let mut at: HashMap<NodeId, NodeId> = HashMap::new();
    for id in graph.topological() {
        let node = graph.node(id);
        let inputs: Vec<ValueId> = node.inputs.iter().map(|v| at[&v.node].port(v.port)).collect();
        let copied = match &node.op {
            Op::Input(input) => copy.add_input(&input.name, input.ty.clone()).node,
            Op::Constant(constant) => copy.add_const(next(&constant.value).unwrap_or_else(|| constant.value.clone())).node,
            op => copy.add_typed(op.clone(), &inputs, node.types.to_vec()),
        };
        at.insert(id, copied);
    }
    (copy, wanted.iter().map(|v| at[&v.node].port(v.port)).collect())
}

/// A constant in single precision, every second element grown.
fn next(constant: &Const) -> Option<Const> {
    let mut values = (constant.dtype() == DType::F32).then(|| constant.to_f64())??;
    values.iter_mut().step_by(2).filter(|v| v.fract() != 0.0).for_each(|v| *v *= 1.0 + f64::from(f32::EPSILON));
    Const::from_f64(DType::F32, constant.shape(), &values)
}

/// Values in double precision; with every second real element of the inputs moved by its last bit,
/// on request.
fn computed((graph, wanted): (&Graph, &[ValueId]), feeds: &Feeds, nudged: bool) -> Result<Vec<HostTensor>, String> {
    let mut feeds: HashMap<String, Value<f64>> = to_values(graph, feeds).ok_or("an input has a type that it does not know")?;
    for value in feeds.values_mut().filter(|_| nudged) {
        if let Value::Real(tensor) = value {
            let data = tensor.data.iter().enumerate().map(|(at, v)| if at % 2 == 0 { v * (1.0 + f64::EPSILON) } else { *v }).collect();
            *value = Value::real(Tensor::new(tensor.shape.clone(), data));
        }
    }
    let values = eval::values::<f64>(graph, &feeds, wanted, &mut eval::NoOpaque).map_err(|e| e.to_string())?;
    values.iter().map(|v| double(v).ok_or_else(|| "an output has a type that it does not know".into())).collect()
}

/// A result of the reference executor, in the widest type of its class.
pub(crate) fn double(value: &Value<f64>) -> Option<HostTensor> {
    let dtype = match value {
        Value::Real(_) => DType::F64,
        Value::Int(_) => DType::I64,
        Value::Bool(_) => DType::Bool,
    };
    let constant = value.to_const(dtype)?;
    let shape = constant.shape().iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
    HostTensor::from_bytes(regraft_runtime::DType::from_onnx(dtype.to_onnx()), shape, constant.bytes()).ok()
}

#[cfg(test)]
mod tests {
    use regraft_ir::text;

    use super::*;

    #[test]
    fn doubles_tell_rounding_from_mistakes() {
        let graph = |text: &str| text::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let mut feeds = Feeds::new();
        feeds.insert("x", HostTensor::from_values(vec![3], &[1e8f32, 1.0, -3.5]).expect("a small tensor"));
        let a = graph("graph (x: f32[3]) { const h: f32[] = 0.5 m = Mul(x, h) output Sub(Add(x, m), x) as y, Greater(m, h) as z }");
        let b = graph("graph (x: f32[3]) { const h: f32[] = 0.5 m = Mul(h, x) output m as y, Less(h, m) as z }");
        assert!(agreement(&a, &b, &feeds).is_ok_and(|found| found.within(CONFIRMED)));
        let wrong = graph("graph (x: f32[3]) { const h: f32[] = 0.5000001 m = Mul(h, x) output m as y, Less(h, m) as z }");
        assert!(agreement(&a, &wrong, &feeds).is_ok_and(|found| !found.within(CONFIRMED) && found.relative < 1e-6));
        let flipped = graph("graph (x: f32[3]) { const h: f32[] = 0.5 m = Mul(h, x) output m as y, Less(m, h) as z }");
        assert!(agreement(&a, &flipped, &feeds).is_ok_and(|found| !found.broken.is_empty()));
        // A value that the last bit of a double moves by more is not known any better.
        let wild = graph("graph (x: f32[3]) { const c: f32[] = 1e15 output Sin(Mul(x, c)) as y }");
        let (names, values) = (vec!["y".to_string()], [wild.outputs()[0].value]);
        assert!(noise(&names, (&wild, &values), &feeds).is_ok_and(|noise| noise > 1e-3));
        let tame = graph("graph (x: f32[3]) { output Sin(x) as y }");
        assert!(noise(&names, (&tame, &[tame.outputs()[0].value]), &feeds).is_ok_and(|noise| noise < 1e-6));
        // Constants that are rounded to single precision move some results by more than others.
        let lively = graph("graph (x: f32[3]) { const c: f32[] = 1000.1 output Sin(Mul(x, c)) as y }");
        let rounded = |graph: &Graph, x: &[f32]| {
            let feeds: Feeds = [("x".to_owned(), HostTensor::from_values(vec![3], x).expect("a small tensor"))].into_iter().collect();
            noise_rounded(&names, (graph, &[graph.outputs()[0].value]), &feeds).expect("it computes")
        };
        assert_eq!(rounded(&tame, &[0.5, 1.0, -0.5]), CONFIRMED_ROUNDED);
        assert!((1e-5..1e-3).contains(&rounded(&lively, &[0.5, 1.0, -0.5])));
        let unknown = graph("graph (x: f32[3]) { output opaque:F(x) -> f32[3] as y, Greater(x, x) as z }");
        assert!(agreement(&a, &unknown, &feeds).is_err());
    }
}
