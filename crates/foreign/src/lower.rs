//! Semantics of foreign operators: Regraft's own graphs, with explicit groups, pads and cuts.

use regraft_ir::ops::{
    activation, arithmetic, average_pool, concat, constant_of_shape, conv, expand, identity, matmul, max_pool, pad, slice, transpose,
    unary, variadic,
};
use regraft_ir::{Const, DType, Dim, Float, Graph, Op, TensorType, ValueId};

use crate::infer::Typed;
use crate::operator::{Activation, Binary, Operator, Padding, Unary};
use crate::plan::{Leaf, Plan, Step};
use crate::reading::Reading;

/// One side of a rule as a graph of doubles. Inputs are all variables of the rule, under `names`;
/// outputs are in the rule's order.
///
/// # Errors
/// Symbolic sizes leave open whether an operator is well-typed.
pub(crate) fn lower(plan: &Plan, side: usize, slots: &[Typed], reading: Reading, names: &[String]) -> Result<Graph, String> {
    let mut lowering =
        Lowering { graph: Graph::new(["before", "after"][side]), values: vec![None; plan.slots], slots, reading, leaves: &plan.leaves };
    let needed = plan.needed(side);
    for (slot, leaf) in plan.leaves.iter().enumerate() {
        if let Leaf::Variable(variable) = leaf {
            let ty = TensorType::new(DType::F64, shape(&slots[slot]));
            lowering.values[slot] = Some(lowering.graph.add_input(&names[*variable], ty));
        }
    }
    for (step, _) in plan.steps.iter().zip(needed).filter(|(_, needed)| *needed) {
        lowering.step(step)?;
    }
    for (at, slot) in plan.outputs[side].iter().enumerate() {
        let value = lowering.value(*slot)?;
        lowering.graph.add_output(&format!("out{at}"), value);
    }
    Ok(lowering.graph)
}

fn shape(typed: &Typed) -> Vec<Dim> {
    typed.sizes.iter().map(|d| d.s.clone()).collect()
}

struct Lowering<'a> {
    graph: Graph,
    values: Vec<Option<ValueId>>,
    slots: &'a [Typed],
    reading: Reading,
    leaves: &'a [Leaf],
}

impl Lowering<'_> {
    fn add(&mut self, op: Op, operands: &[ValueId]) -> Result<ValueId, String> {
        self.graph.add(op, operands).map(|node| node.out()).map_err(|e| e.to_string())
    }

    /// The value of a slot; constants are created when first read.
    fn value(&mut self, slot: usize) -> Result<ValueId, String> {
        if let Some(value) = self.values[slot] {
            return Ok(value);
        }
        let Some(Leaf::Constant(constant)) = self.leaves.get(slot) else { return Err("a value is used before it is computed".into()) };
        let value = self.constant(constant, slot)?;
        self.values[slot] = Some(value);
        Ok(value)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let operands: Vec<ValueId> = step.operands.iter().map(|slot| self.value(*slot)).collect::<Result<_, _>>()?;
        if let Operator::Split { axis } = step.operator {
            let size = self.slots[step.operands[0]].sizes[axis].s.clone();
            let cut = self.slots[step.results].sizes[axis].s.clone();
            self.values[step.results] = Some(self.range(operands[0], axis, Dim::from(0), cut.clone())?);
            self.values[step.results + 1] = Some(self.range(operands[0], axis, cut, size)?);
            return Ok(());
        }
        self.values[step.results] = Some(self.result(step, &operands)?);
        Ok(())
    }

    fn range(&mut self, x: ValueId, axis: usize, start: Dim, end: Dim) -> Result<ValueId, String> {
        let slice = slice::Slice { axes: vec![axis as i64], starts: vec![start], ends: vec![end], steps: vec![1] };
        self.add(Op::Slice(slice), &[x])
    }

    fn result(&mut self, step: &Step, operands: &[ValueId]) -> Result<ValueId, String> {
        let first = &self.slots[*step.operands.first().ok_or("an operator without operands")?];
        match &step.operator {
            Operator::Conv { strides, padding, activation } => {
                let (x, w) = (first, &self.slots[step.operands[1]]);
                let pads = self.pads(x, [w.sizes[2].n, w.sizes[3].n], *strides, *padding)?;
                let group = x.sizes[1].n / w.sizes[1].n;
                let weights = match w.merged {
                    Some(count) => self.merge(operands[1], w, count, group)?,
                    None => operands[1],
                };
                let conv = conv::Conv { strides: strides.to_vec(), pads, dilations: vec![1, 1], group };
                let result = self.add(Op::Conv(conv), &[operands[0], weights])?;
                self.activated(*activation, result)
            }
            Operator::Pool { mean, kernel, strides, padding, activation } => {
                let pads = self.pads(first, *kernel, *strides, *padding)?;
                let (kernel, strides, dilations, ceil_mode) = (kernel.to_vec(), strides.to_vec(), vec![1, 1], false);
                let count_include_pad = self.reading.averages_count_padding;
                let op = if *mean {
                    Op::AveragePool(average_pool::AveragePool { kernel, strides, pads, dilations, ceil_mode, count_include_pad })
                } else {
                    Op::MaxPool(max_pool::MaxPool { kernel, strides, pads, dilations, ceil_mode })
                };
                let result = self.add(op, operands)?;
                self.activated(*activation, result)
            }
            Operator::MatMul { activation } => {
                let result = self.add(Op::MatMul(matmul::MatMul {}), operands)?;
                self.activated(*activation, result)
            }
            Operator::Enlarge { .. } => {
                let to = &self.slots[step.results];
                let rooms = [2, 3].map(|axis| to.sizes[axis].n - first.sizes[axis].n);
                let [(top, left), (bottom, right)] = [(rooms[0] / 2, rooms[1] / 2), (rooms[0] - rooms[0] / 2, rooms[1] - rooms[1] / 2)];
                let pads = vec![0, 0, top, left, 0, 0, bottom, right];
                self.add(Op::Pad(pad::Pad { pads, mode: "constant".into(), value: Float(0.0) }), &operands[..1])
            }
            // Its meaning is determined where a convolution uses it.
            Operator::MergeGroups { .. } => Ok(operands[0]),
            Operator::Concat { axis, .. } => self.add(Op::Concat(concat::Concat { axis: *axis as i64 }), operands),
            Operator::Transpose { perm } => {
                self.add(Op::Transpose(transpose::Transpose { perm: perm.iter().map(|a| *a as i64).collect() }), operands)
            }
            Operator::Scale => self.add(Op::Mul(arithmetic::Mul {}), operands),
            Operator::Binary(binary) => {
                let op = match binary {
                    Binary::Add => Op::Add(arithmetic::Add {}),
                    Binary::Sub => Op::Sub(arithmetic::Sub {}),
                    Binary::Mul => Op::Mul(arithmetic::Mul {}),
                    Binary::Div => Op::Div(arithmetic::Div {}),
                    Binary::Max => Op::Max(variadic::Max {}),
                    Binary::Min => Op::Min(variadic::Min {}),
                };
                self.add(op, operands)
            }
            Operator::Unary(unary) => {
                let op = match unary {
                    Unary::Relu => Op::Relu(activation::Relu {}),
                    Unary::Sigmoid => Op::Sigmoid(activation::Sigmoid {}),
                    Unary::Tanh => Op::Tanh(activation::Tanh {}),
                    Unary::Exp => Op::Exp(unary::Exp {}),
                    Unary::Log => Op::Log(unary::Log {}),
                    Unary::Sqrt => Op::Sqrt(unary::Sqrt {}),
                    Unary::Identity => Op::Identity(identity::Identity {}),
                };
                self.add(op, operands)
            }
            _ => Err("an operator without a meaning".into()),
        }
    }

    fn activated(&mut self, activation: Activation, value: ValueId) -> Result<ValueId, String> {
        let op = match activation {
            Activation::None => return Ok(value),
            Activation::Relu => Op::Relu(activation::Relu {}),
            Activation::Sigmoid => Op::Sigmoid(activation::Sigmoid {}),
            Activation::Tanh => Op::Tanh(activation::Tanh {}),
        };
        self.add(op, &[value])
    }

    /// Explicit pads: top, left, bottom, right.
    fn pads(&self, x: &Typed, kernel: [i64; 2], strides: [i64; 2], padding: Padding) -> Result<Vec<i64>, String> {
        if padding == Padding::Valid {
            return Ok(vec![0; 4]);
        }
        let along = |axis: usize| self.reading.same(x.sizes[2 + axis].n, kernel[axis], strides[axis]).ok_or("padding that is not defined");
        let ((top, bottom), (left, right)) = (along(0)?, along(1)?);
        Ok(vec![top, left, bottom, right])
    }

    /// Weights for `group` groups from weights for `count` times as many: those of each old group
    /// are surrounded by zeros.
    fn merge(&mut self, weights: ValueId, merged: &Typed, count: i64, group: i64) -> Result<ValueId, String> {
        let old = group * count;
        let Some(ty) = self.graph.ty(weights).cloned() else { return Err("weights of unknown type".into()) };
        let (rows, inputs) = (ty.shape[0].exact_div(&Dim::from(old)).ok_or("open sizes of grouped weights")?, ty.shape[1].clone());
        let mut blocks = Vec::new();
        for at in 0..old {
            let own = self.range(weights, 0, rows.clone() * Dim::from(at), rows.clone() * Dim::from(at + 1))?;
            let mut parts = Vec::new();
            for (zeros, then) in [(at % count, Some(own)), (count - 1 - at % count, None)] {
                if zeros > 0 {
                    let shape = vec![rows.clone(), inputs.clone() * Dim::from(zeros), merged.sizes[2].s.clone(), merged.sizes[3].s.clone()];
                    parts.push(self.filled(shape, 0.0)?);
                }
                parts.extend(then);
            }
            blocks.push(self.add(Op::Concat(concat::Concat { axis: 1 }), &parts)?);
        }
        self.add(Op::Concat(concat::Concat { axis: 0 }), &blocks)
    }

    fn filled(&mut self, shape: Vec<Dim>, value: f64) -> Result<ValueId, String> {
        let value = literal(&[1], &[value])?;
        self.add(Op::ConstantOfShape(constant_of_shape::ConstantOfShape { shape, value }), &[])
    }

    fn constant(&mut self, constant: &Operator, slot: usize) -> Result<ValueId, String> {
        let typed = &self.slots[slot];
        let sizes: Vec<i64> = typed.sizes.iter().map(|d| d.n).collect();
        match (constant, sizes.as_slice()) {
            (Operator::Ones, _) => self.filled(shape(typed), 1.0),
            (Operator::PoolKernel { kernel: [h, w] }, _) => self.filled(shape(typed), 1.0 / (h * w) as f64),
            (Operator::IdentityMatrix, [n, _]) => {
                let data: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
                Ok(self.graph.add_const(literal(&[*n, *n], &data)?))
            }
            (Operator::IdentityKernel { .. }, [outputs, inputs, h, w]) => {
                let middle = (h - 1) / 2 * w + (w - 1) / 2;
                let one = |at: i64| f64::from(u8::from(at % (h * w) == middle));
                if *inputs == 1 {
                    let data: Vec<f64> = (0..h * w).map(one).collect();
                    let delta = self.graph.add_const(literal(&[1, 1, *h, *w], &data)?);
                    return self.add(Op::Expand(expand::Expand { shape: shape(typed) }), &[delta]);
                }
                let diagonal = |at: i64| at / (h * w * inputs) == at / (h * w) % inputs;
                let data: Vec<f64> = (0..outputs * inputs * h * w).map(|at| if diagonal(at) { one(at) } else { 0.0 }).collect();
                Ok(self.graph.add_const(literal(&sizes, &data)?))
            }
            _ => Err(format!("a constant of the shape {sizes:?}")),
        }
    }
}

fn literal(shape: &[i64], data: &[f64]) -> Result<Const, String> {
    Const::from_f64(DType::F64, shape, data).ok_or_else(|| "a constant that does not fit its shape".into())
}
