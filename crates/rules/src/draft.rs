//! A source as data: its leaves, its operators in order and its roots, to be changed and rebuilt.

use std::collections::HashMap;

use regraft_ir::{Attr, Class, Const, DType, Dim, Graph, NodeId, Op, OpKind, TensorType, ValueId};

use crate::operator::operator;
use crate::spelling::Spelling;

/// Maximum number of elements of a leaf.
const LARGEST: i64 = 4096;
/// Maximum number of axes of a leaf.
const DEEPEST: usize = 6;

/// A source that may or may not be well typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Draft {
    pub leaves: Vec<Leaf>,
    pub steps: Vec<Step>,
    pub roots: Vec<Operand>,
}

/// A node without operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Leaf {
    /// An input, or a weight without given elements.
    Tensor { name: String, dtype: DType, shape: Vec<i64>, constant: bool },
    /// A constant.
    Given(Const),
}

/// An operator and its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub kind: OpKind,
    pub attrs: Vec<(String, Attr)>,
    pub operands: Vec<Operand>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// A leaf, by index.
    Leaf(usize),
    /// A result of a step, by index and port.
    Result(usize, u32),
}

impl Leaf {
    pub fn shape(&self) -> &[i64] {
        match self {
            Leaf::Tensor { shape, .. } => shape,
            Leaf::Given(constant) => constant.shape(),
        }
    }

    pub fn dtype(&self) -> DType {
        match self {
            Leaf::Tensor { dtype, .. } => *dtype,
            Leaf::Given(constant) => constant.dtype(),
        }
    }

    /// The same with another shape; elements are repeated in order if more are needed.
    pub fn resized(&self, shape: Vec<i64>) -> Option<Leaf> {
        self.resized_within(LARGEST, shape)
    }

    /// The same with at most this many elements.
    pub fn resized_within(&self, largest: i64, shape: Vec<i64>) -> Option<Leaf> {
        let count = shape.iter().product::<i64>();
        if shape.len() > DEEPEST || !(1..=largest).contains(&count) || shape.iter().any(|size| *size < 1) {
            return None;
        }
        Some(match self {
            Leaf::Tensor { name, dtype, constant, .. } => Leaf::Tensor { name: name.clone(), dtype: *dtype, shape, constant: *constant },
            Leaf::Given(constant) => {
                let elements: Vec<f64> = constant.to_f64()?.into_iter().cycle().take(count as usize).collect();
                Leaf::Given(Const::from_f64(constant.dtype(), &shape, &elements)?)
            }
        })
    }

    /// The same with elements of another type; `None` if that is impossible.
    pub fn retyped(&self, to: DType) -> Option<Leaf> {
        Some(match self {
            Leaf::Tensor { name, shape, constant, .. } => {
                Leaf::Tensor { name: name.clone(), dtype: to, shape: shape.clone(), constant: *constant }
            }
            Leaf::Given(constant) => {
                let elements = constant.to_f64()?;
                let fits = to.is_float() || elements.iter().all(|v| v.fract() == 0.0);
                Leaf::Given(Const::from_f64(to, constant.shape(), &elements).filter(|_| fits)?)
            }
        })
    }

    /// Whether its elements are real numbers given individually, for which any others would do as
    /// well.
    fn is_any_number(&self) -> bool {
        matches!(self, Leaf::Given(constant) if constant.dtype().class() == Class::Real && constant.elements() > 1 && constant.splat().is_none())
    }
}

impl Draft {
    /// The source of an instance with numeric sizes.
    pub fn of(graph: &Graph) -> Option<Draft> {
        let mut draft = Draft { leaves: Vec::new(), steps: Vec::new(), roots: Vec::new() };
        let mut places: HashMap<NodeId, Operand> = HashMap::new();
        let operand = |places: &HashMap<NodeId, Operand>, value: &ValueId| match places.get(&value.node)? {
            Operand::Result(step, _) => Some(Operand::Result(*step, value.port)),
            leaf => Some(*leaf),
        };
        for id in graph.topological() {
            let node = graph.node(id);
            let leaf = match &node.op {
                Op::Input(input) => {
                    let (name, shape) = (input.name.to_string(), input.ty.known_shape()?);
                    Leaf::Tensor { name, dtype: input.ty.dtype, shape, constant: node.constant }
                }
                Op::Constant(constant) => Leaf::Given(constant.value.clone()),
                op => {
                    let operands = node.inputs.iter().map(|v| operand(&places, v)).collect::<Option<_>>()?;
                    let attrs = op.attrs().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
                    places.insert(id, Operand::Result(draft.steps.len(), 0));
                    draft.steps.push(Step { kind: op.kind(), attrs, operands });
                    continue;
                }
            };
            places.insert(id, Operand::Leaf(draft.leaves.len()));
            draft.leaves.push(leaf);
        }
        draft.roots = graph.outputs().iter().map(|output| operand(&places, &output.value)).collect::<Option<_>>()?;
        Some(draft)
    }

    /// The source as a graph with its roots as outputs; `None` if it is not well typed.
    pub fn graph(&self) -> Option<(Graph, Vec<ValueId>)> {
        self.spelled(Spelling::Numbers)
    }

    /// The same with symbolic sizes; weights of such sizes have no elements. Sizes of constants
    /// that are kept stay numeric everywhere.
    pub fn opened(&self) -> Option<(Graph, Vec<ValueId>)> {
        let kept = self.leaves.iter().filter(|leaf| matches!(leaf, Leaf::Given(_)) && !leaf.is_any_number()).flat_map(|leaf| leaf.shape());
        self.spelled(Spelling::Symbols(Some(kept.fold(!0, |mask, size| mask & !(1 << (size % 16))))))
    }

    /// The same with other spellings of sizes.
    pub fn spelled(&self, spelling: Spelling) -> Option<(Graph, Vec<ValueId>)> {
        let mut graph = Graph::new("instance");
        let leaves: Vec<ValueId> = self.leaves.iter().enumerate().map(|(at, leaf)| spelled_leaf(&mut graph, leaf, at, spelling)).collect();
        let mut results: Vec<NodeId> = Vec::new();
        let value = |graph: &Graph, results: &[NodeId], operand: &Operand| match operand {
            Operand::Leaf(at) => leaves.get(*at).copied(),
            Operand::Result(step, port) => {
                results.get(*step).filter(|id| (*port as usize) < graph.node(**id).types.len()).map(|id| id.port(*port))
            }
        };
        for step in &self.steps {
            let operands: Vec<ValueId> = step.operands.iter().map(|operand| value(&graph, &results, operand)).collect::<Option<_>>()?;
            let attrs = step.attrs.iter().map(|(name, attr)| (name.clone(), spelled_attr(step.kind, name, attr, spelling))).collect();
            results.push(graph.add(operator(step.kind, attrs).ok()?, &operands).ok()?);
        }
        let roots: Vec<ValueId> = self.roots.iter().map(|root| value(&graph, &results, root)).collect::<Option<_>>()?;
        for (at, root) in roots.iter().enumerate() {
            graph.ty(*root)?;
            graph.add_output(&format!("y{at}"), *root);
        }
        Some((graph, roots))
    }
}

fn spelled_leaf(graph: &mut Graph, leaf: &Leaf, at: usize, spelling: Spelling) -> ValueId {
    let dims = || leaf.shape().iter().map(|size| spelling.size(*size)).collect::<Vec<Dim>>();
    match leaf {
        Leaf::Tensor { name, dtype, constant, .. } => {
            // Sizes of indices and conditions are as general as any others.
            let ty = TensorType::new(*dtype, dims());
            if *constant { graph.add_parameter(name, ty) } else { graph.add_input(name, ty) }
        }
        Leaf::Given(constant) if leaf.is_any_number() && dims().iter().any(|dim| dim.known().is_none()) => {
            graph.add_parameter(&format!("c{at}_normal"), TensorType::new(constant.dtype(), dims()))
        }
        Leaf::Given(constant) => graph.add_const(constant.clone()),
    }
}

/// A shape attribute gets symbols for the same numbers.
fn spelled_attr(kind: OpKind, name: &str, attr: &Attr, spelling: Spelling) -> Attr {
    match attr {
        Attr::Dims(dims) if name == "shape" && matches!(kind, OpKind::Reshape | OpKind::Expand) => {
            Attr::Dims(dims.iter().map(|dim| dim.known().map_or_else(|| dim.clone(), |number| spelling.size(number))).collect())
        }
        other => other.clone(),
    }
}
