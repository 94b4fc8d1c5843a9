//! Two values of the joint graph as two small graphs over the same inputs.

use std::collections::BTreeMap;

use regraft_ir::{Attr, Class, Const, Dim, Graph, NodeId, Op, OpKind, TensorType, ValueId};
use regraft_prove::Assumptions;
use rustc_hash::FxHashMap;

use crate::joint::Joint;

/// Real constants with more elements are free inputs of every region.
const CONTENT: usize = 1 << 12;
/// Real constants with more elements are not checked for their signs.
const SIGNS: usize = 1 << 20;

/// How much of the computation of two values is shown. A value that is not shown is a free input of
/// its type: if both are equal then, they are equal whatever computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Layers above the values that both depend on.
    pub above: u8,
    /// Elements of real constants.
    pub content: bool,
    /// The expressions that compute constants.
    pub cones: bool,
    /// Maximum number of nodes.
    pub nodes: usize,
}

/// What a region claims, wherever it is: the operators with their operands and types, and the
/// outputs, of both sides.
pub(crate) type Claim = (Vec<String>, [(Vec<(Op, Vec<ValueId>, Vec<Option<TensorType>>)>, Vec<ValueId>); 2]);

/// Two values, what computes them, and their common inputs.
pub(crate) struct Region {
    /// The first value, as the only output.
    pub before: Graph,
    /// The second value.
    pub after: Graph,
    /// Which values the inputs and constants stand for.
    pub leaves: Vec<(ValueId, ValueId)>,
    /// Inputs whose elements are all positive.
    pub assumptions: Assumptions,
}

/// Which of the two values need a node.
#[derive(Clone, Copy, Default)]
struct Seen {
    from: [bool; 2],
    /// Layers between it and the lowest value that both depend on.
    above: u8,
}

impl Seen {
    fn join(&mut self, from: [bool; 2], above: u8) {
        self.above = if self.from == [false; 2] { above } else { self.above.min(above) };
        self.from = [self.from[0] || from[0], self.from[1] || from[1]];
    }
}

/// The nodes between two values and their common inputs.
pub(crate) struct Cut {
    /// Nodes that are shown, operands first.
    shown: Vec<NodeId>,
    /// Constants that are not shown, with the values that need them.
    pub constants: Vec<(NodeId, [bool; 2])>,
    /// Constants replaced by the expressions that compute them.
    unfolded: FxHashMap<NodeId, ValueId>,
}

impl Cut {
    /// The nodes of `scope` around `p` and `q`.
    ///
    /// Nodes are visited from the latest to the earliest, so that on reaching a node it is known
    /// which of the two values need it.
    pub fn new(joint: &Joint, p: ValueId, q: ValueId, scope: Scope) -> Cut {
        let graph = &joint.graph;
        let mut seen: BTreeMap<NodeId, Seen> = BTreeMap::new();
        seen.entry(p.node).or_default().join([true, false], 0);
        seen.entry(q.node).or_default().join([false, true], 0);
        let mut cut = Cut { shown: Vec::new(), constants: Vec::new(), unfolded: FxHashMap::default() };
        while let Some((id, Seen { from, above })) = seen.pop_last() {
            let node = graph.node(id);
            if let Op::Constant(_) = &node.op {
                match joint.unfolded(id).filter(|_| scope.cones && cut.shown.len() < scope.nodes) {
                    Some(value) => {
                        cut.unfolded.insert(id, value);
                        seen.entry(value.node).or_default().join(from, above);
                    }
                    None => cut.constants.push((id, from)),
                }
                continue;
            }
            let both = from == [true, true];
            let leaf = matches!(node.op, Op::Input(_) | Op::Opaque(_)) || (both && above >= scope.above) || (node.constant && !scope.cones);
            if leaf || cut.shown.len() >= scope.nodes {
                if node.constant {
                    cut.constants.push((id, from));
                }
                continue;
            }
            cut.shown.push(id);
            for operand in &node.inputs {
                seen.entry(operand.node).or_default().join(from, above + u8::from(both));
            }
        }
        cut.shown.reverse();
        cut
    }

    /// Both values over what is not shown. A leaf in `instead` is replaced by another one with as
    /// many elements.
    pub fn region(&self, joint: &Joint, p: ValueId, q: ValueId, content: Content, instead: &FxHashMap<ValueId, ValueId>) -> Option<Region> {
        let shown = self.shown.iter().copied().collect();
        let mut builder = Builder {
            joint,
            cut: self,
            shown,
            content,
            instead,
            graph: Graph::default(),
            values: FxHashMap::default(),
            leaves: Vec::new(),
            positive: Vec::new(),
            contents: Vec::new(),
        };
        for id in &self.shown {
            let node = joint.graph.node(*id);
            let inputs: Vec<ValueId> = node.inputs.iter().map(|v| builder.value(*v)).collect::<Option<_>>()?;
            let copy = builder.graph.add_typed(node.op.clone(), &inputs, node.types.to_vec());
            builder.values.extend((0..node.types.len() as u32).map(|port| (id.port(port), copy.port(port))));
        }
        let (x, y) = (builder.value(p)?, builder.value(q)?);
        let Builder { graph, leaves, positive, .. } = builder;
        let (mut before, mut after) = (graph.clone(), graph);
        before.add_output("y", x);
        after.add_output("y", y);
        regraft_ir::normal::dce(&mut before);
        regraft_ir::normal::dce(&mut after);
        Some(Region { before, after, leaves, assumptions: Assumptions { positive } })
    }
}

/// Which constants a region contains; the others are free inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Integers, booleans and single numbers.
    Needed,
    /// Also reals, unless they have many elements.
    Elements,
    /// All.
    All,
}

struct Builder<'a> {
    joint: &'a Joint,
    cut: &'a Cut,
    shown: rustc_hash::FxHashSet<NodeId>,
    content: Content,
    instead: &'a FxHashMap<ValueId, ValueId>,
    graph: Graph,
    values: FxHashMap<ValueId, ValueId>,
    leaves: Vec<(ValueId, ValueId)>,
    positive: Vec<String>,
    /// Constants that others may be expressed by.
    contents: Vec<(Const, ValueId)>,
}

impl Builder<'_> {
    /// The copy of a value; leaves are created when they are first read.
    fn value(&mut self, value: ValueId) -> Option<ValueId> {
        let mut value = value;
        while let Some(other) = self.cut.unfolded.get(&value.node) {
            value = *other;
        }
        if let Some(copy) = self.values.get(&value) {
            return Some(*copy);
        }
        let copy = match self.instead.get(&value) {
            Some(other) => {
                let (copy, ty) = (self.value(*other)?, self.joint.graph.ty(value)?);
                if self.joint.graph.ty(*other) == Some(ty) { copy } else { self.reshaped(copy, &ty.known_shape()?)? }
            }
            None => self.leaf(value)?,
        };
        self.values.insert(value, copy);
        Some(copy)
    }

    fn leaf(&mut self, value: ValueId) -> Option<ValueId> {
        if self.shown.contains(&value.node) {
            return None;
        }
        let ty = self.joint.graph.ty(value)?;
        let constant = self.joint.graph.constant(value);
        let copy = match constant {
            Some(constant) if self.content == Content::All || is_flat(constant) => self.graph.add_const(constant.clone()),
            constant => match constant.and_then(|c| self.twin(c)) {
                Some(copy) => copy,
                None => self.free(value, ty, constant),
            },
        };
        if let Some(constant) = constant.filter(|c| !is_flat(c)) {
            self.contents.push((constant.clone(), copy));
        }
        self.leaves.push((value, copy));
        Some(copy)
    }

    /// A leaf unlike any other.
    fn free(&mut self, value: ValueId, ty: &TensorType, constant: Option<&Const>) -> ValueId {
        if let Some(constant) = constant.filter(|c| self.content == Content::Elements && c.elements() <= CONTENT) {
            return self.graph.add_const(constant.clone());
        }
        let name = format!("x{}", self.graph.inputs().len());
        if constant.is_some_and(is_positive) {
            self.positive.push(name.clone());
        }
        // Only rules care whether it depends on constants only.
        if self.joint.graph.is_constant(value) {
            self.graph.add_parameter(&name, ty.clone())
        } else {
            self.graph.add_input(&name, ty.clone())
        }
    }

    /// A constant expressed by one with the same elements in another shape or order.
    fn twin(&mut self, constant: &Const) -> Option<ValueId> {
        let alike = |other: &Const| other.dtype() == constant.dtype() && other.elements() == constant.elements();
        let candidates: Vec<(Const, ValueId)> = self.contents.iter().filter(|(other, _)| alike(other)).cloned().collect();
        for (other, copy) in candidates {
            if other.bytes() == constant.bytes() {
                return self.reshaped(copy, constant.shape());
            }
            if let Some(perm) = permutation(&other, constant) {
                return self.moved(OpKind::Transpose, "perm", Attr::Ints(perm), copy);
            }
        }
        None
    }

    fn reshaped(&mut self, value: ValueId, shape: &[i64]) -> Option<ValueId> {
        self.moved(OpKind::Reshape, "shape", Attr::Dims(shape.iter().map(|d| Dim::from(*d)).collect()), value)
    }

    fn moved(&mut self, kind: OpKind, name: &str, attr: Attr, value: ValueId) -> Option<ValueId> {
        let op = kind.with_attrs(&[(name.to_string(), attr)]).ok()?;
        self.graph.add(op, &[value]).ok().map(NodeId::out)
    }
}

/// True for constants that every region contains: integers and booleans, and reals with a single
/// value.
fn is_flat(constant: &Const) -> bool {
    constant.dtype().class() != Class::Real || constant.elements() == 1 || constant.splat().is_some()
}

/// The permutation of axes that turns `from` into the constant `to`.
fn permutation(from: &Const, to: &Const) -> Option<Vec<i64>> {
    let (shape, rank, size) = (from.shape(), from.shape().len(), from.dtype().size());
    if !(2..=4).contains(&rank) || to.shape().len() != rank || from.elements() > SIGNS {
        return None;
    }
    let strides: Vec<usize> = (0..rank).map(|axis| shape[axis + 1..].iter().product::<i64>() as usize).collect();
    let element = |constant: &'_ Const, at: usize| constant.bytes()[at * size..(at + 1) * size].to_vec();
    permutations(rank)
        .into_iter()
        .find(|perm| {
            let fits = perm.iter().zip(to.shape()).all(|(axis, size)| shape[*axis] == *size);
            fits && (0..to.elements()).all(|at| {
                let mut rest = at;
                let mut origin = 0;
                for (axis, extent) in perm.iter().zip(to.shape()).rev() {
                    origin += rest % *extent as usize * strides[*axis];
                    rest /= *extent as usize;
                }
                element(from, origin) == element(to, at)
            })
        })
        .map(|perm| perm.into_iter().map(|axis| axis as i64).collect())
}

/// All orders of this many axes except the identity.
fn permutations(rank: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..rank {
        all = all
            .iter()
            .flat_map(|p| (0..rank).filter(|axis| !p.contains(axis)).map(|axis| p.iter().copied().chain([axis]).collect()))
            .collect();
    }
    all.into_iter().skip(1).collect()
}

fn is_positive(constant: &Const) -> bool {
    let real = constant.dtype().class() == Class::Real && constant.elements() <= SIGNS;
    real && constant.to_f64().is_some_and(|values| values.iter().all(|v| *v > 0.0))
}

impl Region {
    /// What the region claims. Equal claims are true or false together.
    pub fn claim(&self) -> Claim {
        let sides = [&self.before, &self.after].map(|graph| {
            let node = |id: NodeId| (graph.node(id).op.clone(), graph.node(id).inputs.to_vec(), graph.node(id).types.to_vec());
            (graph.ids().map(node).collect(), graph.outputs().iter().map(|o| o.value).collect())
        });
        (self.assumptions.positive.clone(), sides)
    }
}
