//! The part of a graph that a rewrite touches, before and after it, as two small graphs over the
//! same inputs.

use std::collections::{BTreeMap, BTreeSet};

use regraft_ir::{Class, Const, Graph, NodeId, Op, Patch, PatchValue, TensorType, ValueId, normal};

use crate::step::show;

/// Real constants with more elements are free inputs of every region, unless all are alike.
const CONTENT: usize = 1 << 12;

/// Maximum number of nodes in a region.
const LARGEST: usize = 400;

/// Both sides of a rewrite. Their inputs are the same values of the graph, under the same names
/// (`x0`, `x1` and so on); their outputs are the replaced values and their replacements, in order.
#[derive(Clone, Debug)]
pub struct Region {
    /// Before.
    pub before: Graph,
    /// After.
    pub after: Graph,
    /// Number of nodes and constants of the graph that are visible in it.
    pub shown: usize,
}

/// What a region claims, wherever it is: the operators, types and outputs of both sides.
pub type Claim = [(Vec<(Op, Vec<ValueId>, Vec<Option<TensorType>>)>, Vec<ValueId>); 2];

/// How much of a rewrite's surroundings its region includes. A value outside it is a free input of
/// its type: if the sides are equal then, they are equal whatever computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The replaced nodes, existing nodes that the new ones read, and what lies between these and
    /// the operands of the replaced ones. Real constants of different elements are left out.
    Matched,
    /// Also these constants, unless they are large.
    Weights,
    /// Also everything that depends on constants only.
    Constants,
    /// Also what leads to both operands and new nodes from values that both depend on.
    Common,
}

impl Region {
    /// The region of `patch`, which was matched at the nodes `matched`, or why it has none.
    pub fn cut(graph: &Graph, patch: &Patch, matched: &[NodeId], scope: Scope) -> Result<Region, String> {
        let mut inside: BTreeSet<NodeId> = matched.iter().copied().filter(|id| shown(graph, *id)).collect();
        let boundary: BTreeSet<ValueId> = operands(graph, &inside).collect();
        // What computes what the new nodes read beyond the operands of the old ones is there already.
        let reads: BTreeSet<ValueId> = patch.reads().chain(patch.replace.iter().map(|(old, _)| *old)).collect();
        let is_beyond = |v: &&ValueId| !boundary.contains(v) && !inside.contains(&v.node) && shown(graph, v.node);
        let beyond: Vec<ValueId> = reads.iter().filter(is_beyond).copied().collect();
        inside.extend(beyond.iter().map(|v| v.node));
        if scope == Scope::Common {
            let known: BTreeSet<ValueId> = above(graph, boundary.iter(), &BTreeSet::new()).into_iter().collect();
            let new = between(graph, beyond.iter(), &known);
            let read = new.iter().flat_map(|id| &graph.node(*id).inputs).chain(&reads).copied();
            let common: BTreeSet<ValueId> = read.filter(|v| known.contains(v)).collect();
            inside.extend(between(graph, boundary.iter(), &common).into_iter().chain(new));
        }
        inside.extend(between(graph, beyond.iter(), &boundary));
        if !matches!(scope, Scope::Matched | Scope::Weights) {
            let mut stack: Vec<NodeId> = operands(graph, &inside).chain(reads).map(|v| v.node).collect();
            while let Some(id) = stack.pop() {
                if graph.node(id).constant && shown(graph, id) && inside.insert(id) {
                    stack.extend(graph.node(id).inputs.iter().map(|v| v.node));
                }
            }
        }
        if inside.len() > LARGEST {
            return Err(format!("its region has more than {LARGEST} nodes"));
        }
        Cutter { graph, inside: &inside, weights: scope != Scope::Matched }.region(patch)
    }

    /// What the region claims. Equal claims are true or false together.
    pub fn claim(&self) -> Claim {
        [&self.before, &self.after].map(|graph| {
            let node = |id: NodeId| (graph.node(id).op.clone(), graph.node(id).inputs.to_vec(), graph.node(id).types.to_vec());
            (graph.ids().map(node).collect(), graph.outputs().iter().map(|o| o.value).collect())
        })
    }
}

/// True for nodes a region can include; inputs, constants and uninterpreted operators are leaves.
fn shown(graph: &Graph, id: NodeId) -> bool {
    !matches!(graph.node(id).op, Op::Input(_) | Op::Constant(_) | Op::Opaque(_))
}

fn operands<'a>(graph: &'a Graph, inside: &'a BTreeSet<NodeId>) -> impl Iterator<Item = ValueId> + 'a {
    inside.iter().flat_map(|id| graph.node(*id).inputs.iter().copied()).filter(|v| !inside.contains(&v.node))
}

/// Maximum number of nodes above others to look at.
const SEARCHED: usize = 100;

/// These values, and what they are computed from that does not depend on constants only, nearest
/// first. Nothing above a value in `to` is looked at.
fn above<'v>(graph: &Graph, from: impl Iterator<Item = &'v ValueId>, to: &BTreeSet<ValueId>) -> Vec<ValueId> {
    let mut found: Vec<ValueId> = from.copied().collect();
    let mut at = 0;
    while at < found.len().min(SEARCHED) {
        let id = found[at].node;
        let inputs = graph.node(id).inputs.iter().filter(|v| !graph.node(v.node).constant);
        if shown(graph, id) && !to.contains(&found[at]) {
            let new: Vec<ValueId> = inputs.filter(|v| !found.contains(v)).copied().collect();
            found.extend(new);
        }
        at += 1;
    }
    found
}

/// The nodes through which `from` are computed from some of `to`, as far as they are searched.
fn between<'v>(graph: &Graph, from: impl Iterator<Item = &'v ValueId>, to: &BTreeSet<ValueId>) -> BTreeSet<NodeId> {
    let searched: Vec<NodeId> = above(graph, from, to).iter().filter(|v| !to.contains(v)).map(|v| v.node).collect();
    let mut found = BTreeSet::new();
    loop {
        let reaches = |id: &&NodeId| graph.node(**id).inputs.iter().any(|v| to.contains(v) || found.contains(&v.node));
        let more: Vec<NodeId> = searched.iter().filter(|id| shown(graph, **id) && !found.contains(*id)).filter(reaches).copied().collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// A graph and those of its nodes to include.
struct Cutter<'a> {
    graph: &'a Graph,
    inside: &'a BTreeSet<NodeId>,
    weights: bool,
}

impl Cutter<'_> {
    fn region(&self, patch: &Patch) -> Result<Region, String> {
        let old: Vec<ValueId> = patch.replace.iter().map(|(old, _)| *old).collect();
        let read: Vec<ValueId> = patch.reads().collect();
        let order = self.order(old.iter().chain(&read));
        let leaves: BTreeSet<ValueId> = order
            .iter()
            .flat_map(|id| self.graph.node(*id).inputs.iter().copied())
            .chain(old.iter().chain(&read).copied())
            .filter(|v| !self.inside.contains(&v.node))
            .collect();
        let (mut shared, mut shown) = (Graph::default(), self.inside.len());
        let mut values: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for leaf in leaves {
            let content = |c: &&Const| c.dtype().class() != Class::Real || (self.weights && c.elements() <= CONTENT) || c.splat().is_some();
            let value = match self.graph.constant(leaf).filter(content) {
                Some(constant) => {
                    shown += 1;
                    shared.add_const(constant.clone())
                }
                None => {
                    let ty = self.graph.ty(leaf).ok_or_else(|| format!("the type of {} is not known", show(leaf)))?;
                    shared.add_input(&format!("x{}", shared.inputs().len()), ty.clone())
                }
            };
            values.insert(leaf, value);
        }
        for id in order {
            let node = self.graph.node(id);
            let inputs: Vec<ValueId> = node.inputs.iter().map(|v| values.get(v).copied()).collect::<Option<_>>().ok_or("a cycle")?;
            let copy = shared.add_typed(node.op.clone(), &inputs, node.types.to_vec());
            values.extend((0..node.types.len() as u32).map(|port| (id.port(port), copy.port(port))));
        }
        let (mut before, mut after) = (shared.clone(), shared);
        let mut created: Vec<NodeId> = Vec::with_capacity(patch.create.len());
        let resolve = |value: &PatchValue, created: &[NodeId]| match value {
            PatchValue::Old(v) => values.get(v).copied(),
            PatchValue::New { index, port } => created.get(*index as usize).map(|id| id.port(*port)),
        };
        for new in &patch.create {
            let inputs: Vec<ValueId> = new.inputs.iter().map(|v| resolve(v, &created)).collect::<Option<_>>().ok_or("a lost operand")?;
            created.push(match &new.op {
                Op::Constant(constant) => after.add_const(constant.value.clone()).node,
                op => after.add_typed(op.clone(), &inputs, new.types.to_vec()),
            });
        }
        for (at, (old, new)) in patch.replace.iter().enumerate() {
            let name = format!("y{at}");
            before.add_output(&name, resolve(&PatchValue::Old(*old), &[]).ok_or("a lost value")?);
            after.add_output(&name, resolve(new, &created).ok_or("a lost value")?);
        }
        normal::dce(&mut before);
        normal::dce(&mut after);
        Ok(Region { before, after, shown })
    }

    /// Nodes of the region that these values depend on, operands first.
    fn order<'v>(&self, wanted: impl Iterator<Item = &'v ValueId>) -> Vec<NodeId> {
        let mut order = Vec::new();
        let mut seen: BTreeSet<NodeId> = BTreeSet::new();
        let mut stack: Vec<(NodeId, usize)> = Vec::new();
        for value in wanted {
            stack.push((value.node, 0));
            while let Some((id, slot)) = stack.pop() {
                if !self.inside.contains(&id) || (slot == 0 && !seen.insert(id)) {
                    continue;
                }
                match self.graph.node(id).inputs.get(slot) {
                    Some(operand) => stack.extend([(id, slot + 1), (operand.node, 0)]),
                    None => order.push(id),
                }
            }
        }
        order
    }
}
