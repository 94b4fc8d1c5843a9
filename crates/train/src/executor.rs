//! Graphs of Regraft's operators on the tensors of a `burn` backend, which may know their
//! gradients.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, bail, ensure};
use burn_backend::ops::ConvOptions;
use burn_backend::tensor::{Device, FloatTensor};
use burn_backend::{Backend, Shape, Slice, TensorData, TensorMetadata};
use regraft_ir::{Graph, NodeId, Op, ValueId};

/// A tensor with these elements.
pub fn tensor<B: Backend>(values: Vec<f32>, shape: &[usize], device: &Device<B>) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(values, shape.to_vec()), device)
}

/// The elements of a tensor.
///
/// # Errors
///
/// If the backend has none.
pub fn values<B: Backend>(tensor: FloatTensor<B>) -> Result<Vec<f32>> {
    let data = ready(B::float_into_data(tensor))?.map_err(|e| anyhow::anyhow!("{e:?}"))?;
    data.try_to_vec::<f32>().map_err(|e| anyhow::anyhow!("{e:?}"))
}

/// The result of a future that has nothing to wait for.
fn ready<F: Future>(future: F) -> Result<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => bail!("the backend computes elsewhere"),
    }
}

/// What a graph computes for the values of its inputs, in their order; its first output.
///
/// # Errors
///
/// If the graph has an operator that networks here do not need, or a size that is not known.
pub fn run<B: Backend>(graph: &Graph, inputs: &[FloatTensor<B>], device: &Device<B>) -> Result<FloatTensor<B>> {
    run_all::<B>(graph, inputs, device)?.into_iter().next().context("a graph without output")
}

/// The same, all its outputs.
///
/// # Errors
///
/// As for [`run`].
pub fn run_all<B: Backend>(graph: &Graph, inputs: &[FloatTensor<B>], device: &Device<B>) -> Result<Vec<FloatTensor<B>>> {
    let mut known: HashMap<ValueId, FloatTensor<B>> = HashMap::new();
    for (input, value) in graph.inputs().iter().zip(inputs) {
        known.insert(input.out(), value.clone());
    }
    for id in graph.topological() {
        if known.contains_key(&id.out()) || graph.node(id).op.kind() == regraft_ir::OpKind::Input {
            continue;
        }
        // Integers are operands of gathers alone.
        if graph.constant(id.out()).is_some_and(|constant| !constant.dtype().is_float()) {
            continue;
        }
        let value = step::<B>(graph, id, &known, device).with_context(|| format!("{:?}", graph.node(id).op.kind()))?;
        known.insert(id.out(), value);
    }
    graph.outputs().iter().map(|output| known.get(&output.value).cloned().context("an output was not computed")).collect()
}

fn shape_of(graph: &Graph, value: ValueId) -> Result<Vec<usize>> {
    let shape = graph.ty(value).and_then(|ty| ty.known_shape()).context("a size is not known")?;
    Ok(shape.into_iter().map(|size| size as usize).collect())
}

fn step<B: Backend>(graph: &Graph, id: NodeId, known: &HashMap<ValueId, FloatTensor<B>>, device: &Device<B>) -> Result<FloatTensor<B>> {
    let node = graph.node(id);
    let operand = |at: usize| known.get(&node.inputs[at]).cloned().context("an operand is missing");
    let result = shape_of(graph, id.out())?;
    let reshaped = |tensor: FloatTensor<B>, shape: &[usize]| B::float_reshape(tensor, Shape::from(shape.to_vec()));
    // Operands of one rank: those with fewer axes have sizes of 1 before them.
    let aligned = |at: usize| -> Result<FloatTensor<B>> {
        let tensor = operand(at)?;
        let own = tensor.shape().to_vec();
        let mut shape = vec![1; result.len().saturating_sub(own.len())];
        shape.extend(&own);
        Ok(if shape.len() == own.len() { tensor } else { reshaped(tensor, &shape) })
    };
    Ok(match &node.op {
        Op::Constant(constant) => {
            let values = constant.value.map_f64(|v| v as f32).context("a constant without numbers")?;
            tensor::<B>(values, &result, device)
        }
        Op::Reshape(_) | Op::Unsqueeze(_) => reshaped(operand(0)?, &result),
        Op::Transpose(op) => B::float_permute(operand(0)?, &op.perm.iter().map(|axis| *axis as usize).collect::<Vec<_>>()),
        Op::Slice(op) => {
            let mut slices: Vec<Slice> =
                shape_of(graph, node.inputs[0])?.into_iter().map(|size| Slice::new(0, Some(size as isize), 1)).collect();
            for (k, axis) in op.axes.iter().enumerate() {
                let (start, end) =
                    (op.starts[k].known().context("a bound is not known")?, op.ends[k].known().context("a bound is not known")?);
                slices[*axis as usize] = Slice::new(start as isize, Some(end as isize), op.steps[k] as isize);
            }
            B::float_slice(operand(0)?, &slices)
        }
        Op::Pad(op) => {
            ensure!(op.mode == "constant" && op.value.0 == 0.0, "padding with zeros only");
            let (mut tensor, mut shape) = (operand(0)?, shape_of(graph, node.inputs[0])?);
            let rank = shape.len();
            for axis in 0..rank {
                let zeros = |size: i64, shape: &[usize]| {
                    let mut shape = shape.to_vec();
                    shape[axis] = size as usize;
                    self::tensor::<B>(vec![0.0; shape.iter().product()], &shape, device)
                };
                let (before, after) = (op.pads[axis], op.pads[rank + axis]);
                if before == 0 && after == 0 {
                    continue;
                }
                let mut parts = vec![];
                parts.extend((before > 0).then(|| zeros(before, &shape)));
                parts.push(tensor);
                parts.extend((after > 0).then(|| zeros(after, &shape)));
                tensor = B::float_cat(parts, axis);
                shape[axis] += (before + after) as usize;
            }
            tensor
        }
        Op::Concat(op) => B::float_cat((0..node.inputs.len()).map(operand).collect::<Result<_>>()?, op.axis as usize),
        Op::Expand(_) => B::float_expand(aligned(0)?, Shape::from(result)),
        Op::Gather(op) => {
            let indices = graph.constant(node.inputs[1]).and_then(|constant| constant.to_i64()).context("indices are not known")?;
            let (count, indices) = (indices.len(), indices.into_iter().map(|i| i as i32).collect::<Vec<i32>>());
            B::float_select(operand(0)?, op.axis as usize, B::int_from_data(TensorData::new(indices, [count]), device))
        }
        Op::ReduceSum(op) => reshaped(summed::<B>(operand(0)?, &op.axes), &result),
        Op::ReduceMean(op) => {
            let before: usize = shape_of(graph, node.inputs[0])?.iter().product();
            let count = before as f32 / result.iter().product::<usize>() as f32;
            reshaped(B::float_div_scalar(summed::<B>(operand(0)?, &op.axes), count.into()), &result)
        }
        Op::Add(_) => B::float_add(aligned(0)?, aligned(1)?),
        Op::Sub(_) => B::float_sub(aligned(0)?, aligned(1)?),
        Op::Mul(_) => B::float_mul(aligned(0)?, aligned(1)?),
        Op::Div(_) => B::float_div(aligned(0)?, aligned(1)?),
        Op::Sqrt(_) => B::float_sqrt(operand(0)?),
        Op::Relu(_) => B::relu(operand(0)?),
        Op::MatMul(_) => B::float_matmul(aligned(0)?, aligned(1)?),
        Op::Conv(op) => {
            let pads: Vec<usize> = op.pads.iter().map(|pad| *pad as usize).collect();
            let pair = |values: &[i64]| [values[0] as usize, values[1] as usize];
            let options = ConvOptions {
                stride: pair(&op.strides),
                padding: [(pads[0], pads[2]), (pads[1], pads[3])],
                dilation: pair(&op.dilations),
                groups: op.group as usize,
            };
            let bias = (node.inputs.len() > 2).then(|| operand(2)).transpose()?;
            B::conv2d(operand(0)?, operand(1)?, bias, options)
        }
        _ => bail!("no network here has this operator"),
    })
}

fn summed<B: Backend>(tensor: FloatTensor<B>, axes: &[i64]) -> FloatTensor<B> {
    axes.iter().fold(tensor, |tensor, axis| B::float_sum_dim(tensor, *axis as usize))
}
