//! The reference executor: models in double precision, as the operators define them.

use std::collections::HashMap;
use std::time::Instant;

use regraft_ir::{Class, Graph, Op, Tensor, Value, ValueId, eval};
use regraft_onnx::Model;
use regraft_onnx::proto::ModelProto;
use regraft_runtime::{Feeds, HostTensor};

use crate::agreement::{Agreement, compare};
use crate::sizes::Sizes;

/// For graphs above this many floating-point operations, the reference executor runs one fill;
/// below, all.
pub(crate) const HEAVY_FLOPS: f64 = 4e9;

/// Floating-point operations per second of the reference executor, a conservative estimate.
pub(crate) const REFERENCE_SPEED: f64 = 6e9;

/// What the reference executor makes of a written model, for sets of inputs in turn.
///
/// The model is read back with its inputs at fixed sizes: this checks the writer as well, and
/// shapes that depend on open sizes, and so stay opaque in the graph, become known.
pub struct Reference {
    /// Floating-point operations of a run.
    pub flops: f64,
    /// One for each set of inputs, as far as they were run.
    pub runs: Vec<Run>,
}

/// A run of the reference executor, or why there is none.
pub enum Run {
    /// The inputs and the results.
    Done(HashMap<String, Value<f64>>, Vec<Value<f64>>),
    /// What stopped it.
    Stopped(String),
}

impl Reference {
    /// Runs a model until a run cannot be made, or would not end before the deadline. Where a run
    /// takes long, one is enough.
    ///
    /// # Errors
    ///
    /// A model that cannot be read back.
    pub fn of<'f>(
        model: &ModelProto,
        sizes: &Sizes,
        feeds: impl ExactSizeIterator<Item = &'f Feeds>,
        deadline: Instant,
    ) -> Result<Reference, String> {
        let model = Model::from_proto(at_sizes(model, sizes)).map_err(|e| format!("the written model cannot be read back: {e}"))?;
        let graph = model.graph();
        let flops = flops(graph, sizes);
        let wanted = if flops > HEAVY_FLOPS { 1 } else { feeds.len() };
        let mut runs = Vec::with_capacity(wanted);
        for feeds in feeds.take(wanted) {
            let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
            let run = if flops / REFERENCE_SPEED > left {
                Run::Stopped("no time left for the reference executor".into())
            } else if let Some(values) = to_values(graph, feeds) {
                match eval::run::<f64>(graph, &values, &mut eval::NoOpaque) {
                    Ok(results) => Run::Done(values, results),
                    Err(e) => Run::Stopped(e.to_string()),
                }
            } else {
                Run::Stopped("an input has a type that the reference executor does not know".into())
            };
            let is_over = matches!(run, Run::Stopped(_));
            runs.push(run);
            if is_over {
                break;
            }
        }
        Ok(Reference { flops, runs })
    }
}

/// Floating-point operations of a run at these sizes.
pub(crate) fn flops(graph: &Graph, sizes: &Sizes) -> f64 {
    let bound = |v: &ValueId| graph.ty(*v).and_then(|t| t.bind(&sizes.symbols));
    graph
        .ids()
        .filter(|id| !graph.node(*id).constant)
        .filter_map(|id| {
            let node = graph.node(id);
            let inputs: Option<Vec<Vec<usize>>> = node.inputs.iter().map(bound).collect();
            let outputs: Option<Vec<Vec<usize>>> = (0..node.types.len() as u32).map(|p| bound(&id.port(p))).collect();
            Some(node.op.work(&inputs?, &outputs?).flops)
        })
        .sum()
}

/// Inputs as the reference executor represents them; `None` if it does not know their type.
pub(crate) fn to_values(graph: &Graph, feeds: &Feeds) -> Option<HashMap<String, Value<f64>>> {
    let mut values = HashMap::new();
    for id in graph.inputs() {
        let Op::Input(input) = &graph.node(*id).op else { continue };
        let Some(tensor) = feeds.get(&input.name) else { continue };
        let shape = tensor.shape().to_vec();
        values.insert(
            input.name.to_string(),
            match input.ty.dtype.class() {
                Class::Real => Value::real(Tensor::new(shape, tensor.to_f64())),
                Class::Int => Value::int(Tensor::new(shape, whole(tensor))),
                Class::Bool => Value::bool(Tensor::new(shape, tensor.bools()?)),
                Class::Other => return None,
            },
        );
    }
    Some(values)
}

/// Integers as the reference executor represents them: unsigned 64-bit ones keep their bits.
fn whole(tensor: &HostTensor) -> Vec<i64> {
    match (tensor.values::<i64>(), tensor.values::<u64>()) {
        (Some(values), _) => values.to_vec(),
        (_, Some(values)) => values.iter().map(|v| *v as i64).collect(),
        _ => tensor.to_f64().into_iter().map(|v| v as i64).collect(),
    }
}

/// A reference result as a tensor of the runtime's type.
pub(crate) fn to_host(value: &Value<f64>, like: &HostTensor) -> Option<HostTensor> {
    let constant = value.to_const(element_type(like.dtype())?)?;
    let shape = constant.shape().iter().map(|d| *d as usize).collect();
    HostTensor::from_bytes(like.dtype(), shape, constant.bytes()).ok()
}

/// The results of a model on these values, if they can be computed.
pub fn results_of(model: &ModelProto, sizes: &Sizes, values: &HashMap<String, Value<f64>>) -> Option<Vec<Value<f64>>> {
    let model = Model::from_proto(at_sizes(model, sizes)).ok()?;
    eval::run::<f64>(model.graph(), values, &mut eval::NoOpaque).ok()
}

/// Compares results as tensors of the runtime's types.
pub fn compare_values(names: &[String], want: &[Value<f64>], have: &[Value<f64>], like: &[HostTensor]) -> Agreement {
    let host = |values: &[Value<f64>]| values.iter().zip(like).map(|(v, l)| to_host(v, l)).collect::<Option<Vec<_>>>();
    match (host(want), host(have)) {
        (Some(want), Some(have)) => compare(names, &want, &have),
        _ => Agreement { broken: vec!["another number of elements".into()], ..Agreement::default() },
    }
}

/// The model with its inputs declared at fixed sizes.
pub(crate) fn at_sizes(model: &ModelProto, sizes: &Sizes) -> ModelProto {
    use regraft_onnx::proto::{tensor_shape_proto::dimension, type_proto};
    let mut model = model.clone();
    let Some(graph) = &mut model.graph else { return model };
    for input in &mut graph.input {
        let Some(spec) = sizes.inputs.iter().find(|i| i.name == input.name()) else { continue };
        let Some(type_proto::Value::TensorType(tensor)) = input.r#type.as_mut().and_then(|t| t.value.as_mut()) else { continue };
        for (dim, size) in tensor.shape.iter_mut().flat_map(|s| &mut s.dim).zip(&spec.shape) {
            dim.value = Some(dimension::Value::DimValue(*size as i64));
        }
    }
    // Declared sizes of other values hold for all inputs, and say less than what follows from these
    // sizes.
    graph.value_info.clear();
    model
}

fn element_type(dtype: regraft_runtime::DType) -> Option<regraft_ir::DType> {
    use regraft_ir::DType as Ir;
    use regraft_runtime::DType as Host;
    Some(match dtype {
        Host::F32 => Ir::F32,
        Host::F64 => Ir::F64,
        Host::F16 => Ir::F16,
        Host::BF16 => Ir::BF16,
        Host::I8 => Ir::I8,
        Host::I16 => Ir::I16,
        Host::I32 => Ir::I32,
        Host::I64 => Ir::I64,
        Host::U8 => Ir::U8,
        Host::U16 => Ir::U16,
        Host::U32 => Ir::U32,
        Host::U64 => Ir::U64,
        Host::Bool => Ir::Bool,
        _ => return None,
    })
}
