//! A model under construction: nodes, constants, and what is known about every value.

use bytes::Bytes;
use regraft_ir::{Const, DType};
use regraft_onnx::proto::tensor_shape_proto::{Dimension, dimension};
use regraft_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};

use super::attribute;
use super::random::Random;
use super::size::{Size, broadcast, fixed};

/// Values above this are scaled down before further use, so that nothing overflows and sums keep
/// their digits.
const LOUD: f64 = 24.0;

/// A value of the model.
#[derive(Clone, Debug)]
pub struct Val {
    /// Name in the graph; empty for an omitted optional operand.
    pub name: String,
    /// Element type.
    pub ty: DType,
    /// Sizes.
    pub dims: Vec<Size>,
    /// Typical largest magnitude.
    pub mag: f64,
    /// True for constants.
    pub constant: bool,
}

impl Val {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// An omitted optional operand.
    pub fn none() -> Val {
        Val { name: String::new(), ty: DType::F32, dims: Vec::new(), mag: 0.0, constant: true }
    }
}

/// A model under construction.
pub struct Draft {
    /// Source of choices.
    pub random: Random,
    /// Version of the standard operators.
    pub opset: i64,
    /// Version of the file format.
    pub ir: i64,
    /// The type of real values here.
    pub real: DType,
    /// Values available for further use.
    pub pool: Vec<Val>,
    /// Values that must not be dropped.
    pub outputs: Vec<Val>,
    /// Inputs.
    pub inputs: Vec<Val>,
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    functions: Vec<FunctionProto>,
    names: usize,
}

impl Draft {
    /// An empty model.
    pub fn new(random: Random, opset: i64, ir: i64, real: DType) -> Draft {
        Draft {
            random,
            opset,
            ir,
            real,
            pool: Vec::new(),
            outputs: Vec::new(),
            inputs: Vec::new(),
            nodes: Vec::new(),
            initializers: Vec::new(),
            functions: Vec::new(),
            names: 0,
        }
    }

    /// Number of nodes so far.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A name that is not taken.
    pub fn fresh(&mut self) -> String {
        self.names += 1;
        // Numeric names, and names with path characters, occur in exported models.
        match self.names % 5 {
            0 => format!("{}", self.names),
            1 => format!("/block.{}/out:0", self.names),
            _ => format!("v{}", self.names),
        }
    }

    /// A graph input; real values are uniform within ±1.5, integers in 0..=5.
    pub fn input(&mut self, ty: DType, dims: Vec<Size>) -> Val {
        let mag = if ty.is_float() { 1.5 } else { 5.0 };
        let val = Val { name: format!("in{}", self.inputs.len()), ty, dims, mag, constant: false };
        self.inputs.push(val.clone());
        self.pool.push(val.clone());
        val
    }

    /// One of the recent values that satisfy `fits`, otherwise an older one.
    pub fn choose(&mut self, fits: impl Fn(&Val) -> bool) -> Option<Val> {
        let fitting: Vec<usize> = (0..self.pool.len()).filter(|at| fits(&self.pool[*at])).collect();
        let recent = fitting.len().saturating_sub(3);
        let from = if self.random.once_in(3) { 0 } else { recent };
        let at = fitting.get(from + self.random.below(fitting.len() - from.min(fitting.len())))?;
        Some(self.pool[*at].clone())
    }

    /// A real value of a rank in this range, not too loud.
    pub fn real(&mut self, ranks: std::ops::RangeInclusive<usize>) -> Option<Val> {
        let ty = self.real;
        let val = self.choose(|v| v.ty == ty && ranks.contains(&v.rank()))?;
        Some(self.tame(val))
    }

    /// The value, scaled down if it is loud.
    pub fn tame(&mut self, val: Val) -> Val {
        if val.mag <= LOUD {
            return val;
        }
        let by = self.scalar(2.0 / val.mag);
        let mag = 2.0;
        self.emit("Mul", &[&val, &by], vec![], val.ty, val.dims.clone(), mag)
    }

    /// A node with one result.
    pub fn emit(&mut self, op: &str, inputs: &[&Val], attributes: Vec<AttributeProto>, ty: DType, dims: Vec<Size>, mag: f64) -> Val {
        let name = self.fresh();
        self.node(op, "", inputs, vec![name.clone()], attributes);
        Val { name, ty, dims, mag, constant: false }
    }

    /// A node of any domain with any results.
    pub fn node(&mut self, op: &str, domain: &str, inputs: &[&Val], output: Vec<String>, attribute: Vec<AttributeProto>) {
        let named = !self.random.once_in(3);
        let mut input: Vec<String> = inputs.iter().map(|v| v.name.clone()).collect();
        if !self.random.once_in(4) {
            while input.last().is_some_and(String::is_empty) {
                input.pop();
            }
        }
        self.nodes.push(NodeProto {
            input,
            output,
            name: named.then(|| format!("node{}", self.nodes.len())),
            op_type: Some(op.into()),
            domain: (!domain.is_empty()).then(|| domain.to_string()),
            attribute,
            ..NodeProto::default()
        });
    }

    /// A local function.
    pub fn function(&mut self, function: FunctionProto) {
        self.functions.push(function);
    }

    /// A tensor of these values.
    pub fn tensor(&self, name: &str, ty: DType, dims: &[i64], values: &[f64]) -> TensorProto {
        let bytes = Const::from_f64(ty, dims, values).map(|c| c.bytes().to_vec()).unwrap_or_default();
        TensorProto {
            dims: dims.to_vec(),
            data_type: Some(ty.to_onnx()),
            name: Some(name.into()),
            raw_data: Some(Bytes::from(bytes)),
            ..TensorProto::default()
        }
    }

    /// A constant: an initializer, or a `Constant` node.
    pub fn constant(&mut self, ty: DType, dims: &[i64], values: &[f64]) -> Val {
        let name = self.fresh();
        let tensor = self.tensor(&name, ty, dims, values);
        if self.random.once_in(3) {
            self.node("Constant", "", &[], vec![name.clone()], vec![attribute::tensor("value", TensorProto { name: None, ..tensor })]);
        } else {
            self.initializers.push(tensor);
        }
        let mag = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        Val { name, ty, dims: fixed(dims), mag, constant: true }
    }

    /// A constant of real numbers in `low..high`, occasionally with equal elements.
    pub fn reals(&mut self, dims: &[i64], low: f64, high: f64) -> Val {
        let splat = self.random.once_in(8).then(|| self.random.real(low, high));
        let count = dims.iter().product::<i64>().max(0);
        let values: Vec<f64> = (0..count).map(|_| splat.unwrap_or_else(|| self.random.real(low, high))).collect();
        self.constant(self.real, dims, &values)
    }

    /// A weight for sums of `fan` products that preserves magnitudes.
    pub fn weight(&mut self, dims: &[i64], fan: i64) -> Val {
        let bound = (3.0 / fan.max(1) as f64).sqrt();
        self.reals(dims, -bound, bound)
    }

    /// A real number, of rank 0 or 1.
    pub fn scalar(&mut self, value: f64) -> Val {
        let dims: &[i64] = if self.random.once_in(2) { &[] } else { &[1] };
        self.constant(self.real, dims, &[value])
    }

    /// A real number that a motif expects next to `x`: occasionally another one, of a higher rank,
    /// or one per element.
    pub fn number(&mut self, value: f64, x: &Val) -> Val {
        let value = if self.random.once_in(14) { value * 1.125 } else { value };
        match self.random.below(10) {
            0 => self.constant(self.real, &vec![1; x.rank()], &[value]),
            1 => self.constant(self.real, &vec![1; x.rank() + 1], &[value]),
            2 => {
                let dims = self.side_dims(x);
                let count = dims.iter().product::<i64>() as usize;
                self.constant(self.real, &dims, &vec![value; count])
            }
            _ => self.scalar(value),
        }
    }

    /// Integers, one-dimensional.
    pub fn ints(&mut self, values: &[i64]) -> Val {
        let reals: Vec<f64> = values.iter().map(|v| *v as f64).collect();
        let name = self.fresh();
        let tensor = self.tensor(&name, DType::I64, &[values.len() as i64], &reals);
        // 2^63 - 1 is not a double: the bytes are written here.
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = TensorProto { raw_data: Some(Bytes::from(bytes)), ..tensor };
        if self.random.once_in(3) {
            self.node("Constant", "", &[], vec![name.clone()], vec![attribute::tensor("value", TensorProto { name: None, ..tensor })]);
        } else {
            self.initializers.push(tensor);
        }
        Val { name, ty: DType::I64, dims: fixed(&[values.len() as i64]), mag: 8.0, constant: true }
    }

    /// Sizes that broadcast into `x`: every axis full or 1, leading ones occasionally omitted.
    pub fn side_dims(&mut self, x: &Val) -> Vec<i64> {
        let skip = if self.random.once_in(2) { self.random.below(x.rank() + 1) } else { 0 };
        let lone = self.random.once_in(2).then(|| self.random.below(x.rank().max(1)));
        let whole = |random: &mut Random, axis: usize| lone.map_or_else(|| random.once_in(2), |only| only == axis);
        let axes = skip..x.rank();
        axes.map(|axis| if whole(&mut self.random, axis) { x.dims[axis].known().unwrap_or(1) } else { 1 }).collect()
    }

    /// A constant that broadcasts into `x`: per channel, per row, per image, a number...
    pub fn side(&mut self, x: &Val, low: f64, high: f64) -> Val {
        let dims = self.side_dims(x);
        self.reals(&dims, low, high)
    }

    /// A constant with one element per channel of `x` (axis 1), in any form.
    pub fn per_channel(&mut self, x: &Val, low: f64, high: f64) -> Option<Val> {
        let channels = x.dims.get(1)?.known()?;
        let mut dims = vec![1; x.rank() - 1];
        dims[0] = channels;
        if self.random.once_in(2) {
            dims.insert(0, 1);
        }
        Some(self.reals(&dims, low, high))
    }

    /// An arithmetic operator of two values, if they broadcast.
    pub fn binary(&mut self, op: &str, a: &Val, b: &Val) -> Option<Val> {
        let dims = broadcast(&a.dims, &b.dims)?;
        let mag = match op {
            "Mul" => a.mag * b.mag,
            "Div" => a.mag * 2.0,
            "Pow" => a.mag.powi(3).max(1.0),
            "Max" | "Min" => a.mag.max(b.mag),
            _ => a.mag + b.mag,
        };
        Some(self.emit(op, &[a, b], vec![], a.ty, dims, mag))
    }

    /// `a + b` in either order.
    pub fn add(&mut self, a: &Val, b: &Val) -> Option<Val> {
        if self.random.once_in(2) { self.binary("Add", a, b) } else { self.binary("Add", b, a) }
    }

    /// `a * b` in either order.
    pub fn mul(&mut self, a: &Val, b: &Val) -> Option<Val> {
        if self.random.once_in(2) { self.binary("Mul", a, b) } else { self.binary("Mul", b, a) }
    }

    /// `a - b`.
    pub fn sub(&mut self, a: &Val, b: &Val) -> Option<Val> {
        self.binary("Sub", a, b)
    }

    /// `a / b`; `b` is bounded away from zero.
    pub fn div(&mut self, a: &Val, b: &Val) -> Option<Val> {
        self.binary("Div", a, b)
    }

    /// An elementwise operator of one value.
    pub fn unary(&mut self, op: &str, x: &Val, mag: f64) -> Val {
        self.emit(op, &[x], vec![], x.ty, x.dims.clone(), mag)
    }

    /// `|x| + least`.
    pub fn positive(&mut self, x: &Val, least: f64) -> Option<Val> {
        let size = self.unary("Abs", x, x.mag);
        let shift = self.scalar(least);
        self.add(&size, &shift)
    }

    /// The name of an open size.
    fn symbol(size: Size) -> String {
        format!("s{}_{}_{}", size.0[0], size.0[1], size.0[2])
    }

    fn info(&mut self, val: &Val, may_hide: bool) -> ValueInfoProto {
        let hidden = may_hide && self.random.once_in(4);
        let dim = |random: &mut Random, size: Size| match size.known() {
            Some(size) => Some(dimension::Value::DimValue(size)),
            None if may_hide && random.once_in(5) => None,
            None => Some(dimension::Value::DimParam(Self::symbol(size))),
        };
        let dims = val.dims.clone();
        let dim = dims.into_iter().map(|s| Dimension { value: dim(&mut self.random, s), ..Dimension::default() }).collect();
        let tensor = type_proto::Tensor { elem_type: Some(val.ty.to_onnx()), shape: (!hidden).then_some(TensorShapeProto { dim }) };
        let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
        ValueInfoProto { name: Some(val.name.clone()), r#type: Some(ty), ..ValueInfoProto::default() }
    }

    /// Declares a value of the graph or of a body.
    pub fn declare(&mut self, val: &Val) -> ValueInfoProto {
        self.info(val, false)
    }

    /// The model. Unread values become outputs, and so do some that are read.
    pub fn finish(mut self, domains: &[(&str, i64)]) -> ModelProto {
        let read: std::collections::HashSet<String> = self.nodes.iter().flat_map(|n| n.input.iter().cloned()).collect();
        let mut outputs = std::mem::take(&mut self.outputs);
        for val in self.pool.clone() {
            let is_input = self.inputs.iter().any(|i| i.name == val.name);
            let wanted = if read.contains(&val.name) || is_input { self.random.once_in(9) } else { !self.random.once_in(12) };
            if wanted && !val.constant && outputs.iter().all(|o| o.name != val.name) {
                outputs.push(val);
            }
        }
        if outputs.is_empty() {
            outputs.extend(self.pool.iter().rev().find(|v| !v.constant).cloned());
        }
        let mut input: Vec<ValueInfoProto> = Vec::new();
        for val in self.inputs.clone() {
            let mut info = self.info(&val, false);
            // Some open sizes of inputs have no name.
            if let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), .. }) = &mut info.r#type {
                for dim in tensor.shape.iter_mut().flat_map(|s| &mut s.dim) {
                    if matches!(dim.value, Some(dimension::Value::DimParam(_))) && self.random.once_in(12) {
                        dim.value = None;
                    }
                }
            }
            input.push(info);
        }
        let listed = if self.ir < 4 { self.initializers.len() } else { usize::from(self.random.once_in(10)).min(self.initializers.len()) };
        for tensor in self.initializers.iter().take(listed).cloned().collect::<Vec<_>>() {
            let ty = DType::from_onnx(tensor.data_type());
            let val = Val { name: tensor.name().into(), ty, dims: fixed(&tensor.dims), mag: 0.0, constant: true };
            input.push(self.info(&val, false));
        }
        let output = outputs.iter().map(|v| self.info(v, true)).collect();
        let mut value_info = Vec::new();
        for val in self.pool.clone() {
            if self.random.once_in(4) && !val.constant && !self.inputs.iter().chain(&outputs).any(|v| v.name == val.name) {
                value_info.push(self.info(&val, true));
            }
        }
        let opset = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
        let mut opset_import = vec![opset("", self.opset)];
        opset_import.extend(domains.iter().map(|(domain, version)| opset(domain, *version)));
        ModelProto {
            ir_version: Some(self.ir),
            opset_import,
            producer_name: Some("gauntlet".into()),
            functions: self.functions,
            graph: Some(GraphProto {
                node: self.nodes,
                name: Some("random".into()),
                initializer: self.initializers,
                input,
                output,
                value_info,
                ..GraphProto::default()
            }),
            ..ModelProto::default()
        }
    }
}
