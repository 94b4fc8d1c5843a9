//! Both models as one graph, in which values known to be equal are a single value.

use regraft_ir::op::{EvalContext, OpKind};
use regraft_ir::{Bindings, Class, Const, DType, Graph, NodeId, Op, TensorType, Value, ValueId, eval, typed};
use rustc_hash::FxHashMap;

use crate::rounded::{self, Nearness, Rounded};

/// Constants with more elements are not evaluated with error bounds.
const LARGEST: i64 = 1 << 22;
/// Constants with more elements are not moved.
const LARGEST_MOVED: i64 = 1 << 27;

/// The joint graph. Nodes are only added, operands first; no two nodes have the same operator and
/// the same operands.
#[derive(Default)]
pub(crate) struct Joint {
    /// All nodes. Some are dead: their values turned out to be known.
    pub graph: Graph,
    known: FxHashMap<(Op, Vec<ValueId>), Vec<ValueId>>,
    functions: FxHashMap<(Vec<u8>, Vec<ValueId>), NodeId>,
    cones: FxHashMap<ValueId, Option<Value<Rounded>>>,
    /// Computed constants, and the expressions that compute them.
    unfolded: FxHashMap<NodeId, ValueId>,
    /// Values that turned out to be earlier ones.
    merged: FxHashMap<ValueId, ValueId>,
}

/// Results of an operator in the joint graph.
pub(crate) struct Placed {
    /// Its results.
    pub values: Vec<ValueId>,
    /// True if none of it existed before.
    pub new: bool,
}

impl Joint {
    /// The results of an interpreted operator on values of the joint graph. Constant expressions
    /// that are exact in floating point are folded.
    pub fn place(&mut self, op: Op, mut operands: Vec<ValueId>, types: &[Option<TensorType>]) -> Placed {
        if let (Op::Identity(_), [operand]) = (&op, &operands[..]) {
            return Placed { values: vec![*operand], new: false };
        }
        if op.kind().commutative() && operands.len() == 2 {
            operands.sort_unstable();
        }
        let key = (op, operands);
        if let Some(values) = self.known.get(&key) {
            return Placed { values: values.iter().map(|v| self.merged.get(v).copied().unwrap_or(*v)).collect(), new: false };
        }
        let (op, operands) = key.clone();
        let id = match op {
            Op::Constant(constant) => self.graph.add_const(constant.value).node,
            op => self.graph.add_typed(op, &operands, types.to_vec()),
        };
        let mut values: Vec<ValueId> = (0..types.len() as u32).map(|port| id.port(port)).collect();
        let mut new = true;
        if let Some(constants) = self.folded(id) {
            new = false;
            for (value, constant) in values.iter_mut().zip(constants) {
                let folded = self.constant(constant);
                // Operands must precede what reads them.
                if folded.node > value.node {
                    self.unfolded.entry(folded.node).or_insert(*value);
                }
                *value = folded;
            }
        }
        self.known.insert(key, values.clone());
        Placed { values, new }
    }

    /// Replaces a value, from now on, by an earlier value it is equal to.
    pub fn merge(&mut self, value: ValueId, earlier: ValueId) {
        self.merged.insert(value, earlier);
    }

    /// A constant.
    fn constant(&mut self, value: Const) -> ValueId {
        let key = (Op::Constant(regraft_ir::ops::Constant { value: value.clone() }), Vec::new());
        if let Some(known) = self.known.get(&key).and_then(|values| values.first()) {
            return *known;
        }
        let added = self.graph.add_const(value);
        self.known.insert(key, vec![added]);
        added
    }

    /// The expression a constant was computed from, if any.
    pub fn unfolded(&self, constant: NodeId) -> Option<ValueId> {
        self.unfolded.get(&constant).copied()
    }

    /// The results of an uninterpreted function, identified by its name; without a name, nothing is
    /// known about the operator.
    pub fn place_opaque(&mut self, op: Op, function: Option<Vec<u8>>, operands: &[ValueId], types: &[Option<TensorType>]) -> Placed {
        let known = function.as_ref().and_then(|name| self.functions.get(&(name.clone(), operands.to_vec())));
        let (id, new) = match known {
            Some(id) => (*id, false),
            None => (self.graph.add_typed(op, operands, types.to_vec()), true),
        };
        if let Some(name) = function {
            self.functions.insert((name, operands.to_vec()), id);
        }
        let results = self.graph.node(id).types.len().min(types.len()) as u32;
        Placed { values: (0..results).map(|port| id.port(port)).collect(), new }
    }

    /// What a node computes from constants if no step rounds, or from known sizes.
    fn folded(&self, id: NodeId) -> Option<Vec<Const>> {
        let node = self.graph.node(id);
        if let (Op::Shape(of), [operand]) = (&node.op, &node.inputs[..]) {
            let all = self.graph.ty(*operand)?.known_shape()?;
            let shape = all.get(usize::try_from(of.start).ok()?..usize::try_from(of.end).ok()?)?;
            return Const::from_i64(DType::I64, &[shape.len() as i64], shape).map(|c| vec![c]);
        }
        let operands: Option<Vec<&Const>> = node.inputs.iter().map(|v| self.graph.constant(*v)).collect();
        let types: Option<Vec<TensorType>> = node.types.iter().cloned().collect();
        let (operands, types) = (operands?, types?);
        if !node.constant || node.op.kind() == OpKind::Constant {
            return None;
        }
        let inputs: Vec<TensorType> = operands.iter().map(|c| c.ty()).collect();
        let elements = |ty: &TensorType| ty.elements().known().unwrap_or(i64::MAX);
        let largest = inputs.iter().chain(&types).map(elements).max().unwrap_or(0);
        if largest > LARGEST {
            let value = types.len() == 1 && largest <= LARGEST_MOVED && node.op.kind().moves_elements();
            return value.then(|| eval::constant_value(&self.graph, id.out()).ok()).flatten().map(|c| vec![c]);
        }
        let values: Option<Vec<Value<Rounded>>> = operands.iter().map(|c| Value::from_const(c)).collect();
        let context = EvalContext { bindings: &Bindings::new(), input_types: &inputs, output_types: &types };
        let narrow = inputs.iter().chain(&types).map(|ty| ty.dtype).find(|t| matches!(t, DType::F16 | DType::BF16));
        let values = values?;
        let results = rounded::rounding_to(narrow.unwrap_or(DType::F32), || node.op.eval(&values, &context).ok())?;
        let results = typed(node.op.kind(), &values, &context, results)?;
        results.iter().zip(&types).map(|(value, ty)| rounded::exact(value, ty.dtype).filter(|c| c.ty() == *ty)).collect()
    }

    /// A constant expression's elements with bounds on their rounding, if it is small enough.
    pub fn cone(&mut self, value: ValueId) -> Option<Value<Rounded>> {
        if let Some(known) = self.cones.get(&value) {
            return known.clone();
        }
        let dtype = self.graph.ty(value)?.dtype;
        let bounded = self.graph.is_constant(value) && self.is_bounded(value, dtype);
        let compute = || eval::constants::<Rounded>(&self.graph, &[value]).ok()?.pop();
        let found = bounded.then(|| rounded::rounding_to(dtype, compute)).flatten();
        // Large ones are seldom asked for twice.
        if found.as_ref().is_none_or(|v| v.shape().iter().product::<usize>() <= 1 << 12) {
            self.cones.insert(value, found.clone());
        }
        found
    }

    /// How near the elements of two constant expressions are to each other, whatever their shapes,
    /// if rounding explains the difference.
    pub fn nearness(&mut self, x: ValueId, y: ValueId) -> Option<Nearness> {
        let (dtype, elements) = self.graph.ty(x).map(|ty| (ty.dtype, ty.elements()))?;
        if self.graph.ty(y).is_none_or(|ty| ty.dtype != dtype || ty.elements() != elements) || dtype.class() == Class::Other {
            return None;
        }
        let (x, y) = (self.cone(x)?, self.cone(y)?);
        rounded::nearness(&x, &y, dtype)
    }

    /// Whether everything the cone computes has few elements, and types with at least as many
    /// digits as `dtype`, to which its steps are assumed to round.
    fn is_bounded(&self, value: ValueId, dtype: DType) -> bool {
        let finest = if dtype.is_float() { dtype } else { DType::F32 };
        let is_coarser = |ty: &TensorType| ty.dtype.is_float() && !finest.embeds(ty.dtype);
        let (mut stack, mut seen) = (vec![value.node], rustc_hash::FxHashSet::default());
        while let Some(id) = stack.pop() {
            let node = self.graph.node(id);
            if node.types.iter().any(|ty| ty.as_ref().and_then(|t| t.elements().known()).is_none_or(|n| n > LARGEST)) {
                return false;
            }
            if node.op.kind() != OpKind::Constant && node.types.iter().flatten().any(is_coarser) {
                return false;
            }
            stack.extend(node.inputs.iter().map(|v| v.node).filter(|id| seen.insert(*id)));
        }
        true
    }
}
