//! One rewrite, as data.

use std::collections::BTreeMap;

use regraft_ir::{Graph, NewNode, NodeId, Op, Patch, PatchValue, ValueId, text};
use smallvec::SmallVec;

/// One rewrite: which nodes it replaced, and with what. Its replay needs no rule.
///
/// Values of the graph are called `n12.0`: result 0 of node 12. Ids are those of the graph as read;
/// each step's new nodes take the next free ids, in the order they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What made it: a rule, or a normal form such as `cse`. For people; it proves nothing.
    pub rule: String,
    /// The nodes that were matched.
    pub replaces: Vec<NodeId>,
    /// What the rule's variables were bound to. For people.
    pub bindings: Vec<String>,
    /// Guards of the rule that held. For people: what they guarantee is proved again at this site,
    /// or not believed.
    pub guards: Vec<String>,
    /// Values that are replaced by another existing value.
    pub redirects: Vec<(ValueId, ValueId)>,
    /// The new nodes, in the text format of graphs: inputs are values of the graph, outputs are
    /// named after the values they replace. Empty if there are none.
    pub fragment: String,
}

impl Step {
    /// The step that applies `patch` to `graph`, found at `nodes`; `None` if the patch reads a
    /// value of unknown type for a new node.
    pub fn of(graph: &Graph, nodes: &[NodeId], patch: &Patch) -> Option<Step> {
        let mut fragment = Graph::default();
        let mut inputs: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for operand in patch.create.iter().flat_map(|n| &n.inputs) {
            if let PatchValue::Old(value) = operand
                && !inputs.contains_key(value)
            {
                inputs.insert(*value, fragment.add_input(&show(*value), graph.ty(*value)?.clone()));
            }
        }
        let mut created: Vec<NodeId> = Vec::new();
        for new in &patch.create {
            let operand = |v: &PatchValue| match v {
                PatchValue::Old(v) => inputs.get(v).copied(),
                PatchValue::New { index, port } => created.get(*index as usize).map(|id| id.port(*port)),
            };
            let operands: Vec<ValueId> = new.inputs.iter().map(operand).collect::<Option<_>>()?;
            created.push(match &new.op {
                Op::Constant(constant) => fragment.add_const(constant.value.clone()).node,
                op => fragment.add_typed(op.clone(), &operands, new.types.to_vec()),
            });
        }
        let mut redirects = Vec::new();
        for (old, new) in &patch.replace {
            match new {
                PatchValue::Old(new) => redirects.push((*old, *new)),
                PatchValue::New { index, port } => fragment.add_output(&show(*old), created.get(*index as usize)?.port(*port)),
            }
        }
        let fragment = if created.is_empty() { String::new() } else { text::print(&fragment) };
        let replaces = nodes.to_vec();
        Some(Step { rule: patch.cause.to_string(), replaces, redirects, fragment, ..Step::default() })
    }

    /// The edit of `graph` that this step describes, or why it does not apply.
    ///
    /// It guarantees that all values exist, that new nodes are well-typed interpreted operators,
    /// and that every value has the type of the one it replaces. It says nothing about what is
    /// computed.
    pub fn patch(&self, graph: &Graph) -> Result<Patch, String> {
        if let Some(gone) = self.replaces.iter().find(|id| graph.get(**id).is_none()) {
            return Err(format!("there is no node n{}", gone.0));
        }
        let mut patch = Patch { cause: self.rule.as_str().into(), create: Vec::new(), replace: SmallVec::new() };
        for (old, new) in &self.redirects {
            exists(graph, *old)?;
            exists(graph, *new)?;
            if graph.ty(*old) != graph.ty(*new) {
                return Err(format!("{} and {} have different types", show(*old), show(*new)));
            }
            patch.replace.push((*old, PatchValue::Old(*new)));
        }
        if self.fragment.is_empty() {
            return Ok(patch);
        }
        let fragment = text::parse(&self.fragment).map_err(|e| format!("the new nodes: {e}"))?;
        let mut values: BTreeMap<NodeId, Result<ValueId, u32>> = BTreeMap::new();
        for id in fragment.topological() {
            let node = fragment.node(id);
            match &node.op {
                Op::Input(input) => {
                    let value = read(&input.name).ok_or_else(|| format!("`{}` is no value", input.name))?;
                    exists(graph, value)?;
                    if graph.ty(value) != Some(&input.ty) {
                        return Err(format!("{} is not {}", show(value), input.ty));
                    }
                    values.insert(id, Ok(value));
                }
                Op::Opaque(op) => return Err(format!("`{}` has no meaning to prove anything about", op.op_type)),
                _ => {
                    let inputs = node.inputs.iter().map(|v| resolve(&values, *v)).collect::<Option<_>>();
                    let inputs = inputs.ok_or("a new node reads what is not there")?;
                    values.insert(id, Err(patch.create.len() as u32));
                    patch.create.push(NewNode { computation: node.computation.clone(), inputs });
                }
            }
        }
        for output in fragment.outputs() {
            let old = read(&output.name).ok_or_else(|| format!("`{}` is no value", output.name))?;
            exists(graph, old)?;
            if graph.ty(old) != fragment.ty(output.value) || graph.ty(old).is_none() {
                return Err(format!("what stands for {} has another type", show(old)));
            }
            let new = resolve(&values, output.value).ok_or("an output that is not there")?;
            patch.replace.push((old, new));
        }
        Ok(patch)
    }
}

/// A value of a fragment in the graph: an existing one, or a result of a new node.
fn resolve(values: &BTreeMap<NodeId, Result<ValueId, u32>>, value: ValueId) -> Option<PatchValue> {
    Some(match values.get(&value.node)? {
        Ok(old) => PatchValue::Old(*old),
        Err(index) => PatchValue::New { index: *index, port: value.port },
    })
}

fn exists(graph: &Graph, value: ValueId) -> Result<(), String> {
    let known = graph.get(value.node).is_some_and(|node| (value.port as usize) < node.types.len());
    if known { Ok(()) } else { Err(format!("there is no value {}", show(value))) }
}

/// A value's name in certificates.
pub fn show(value: ValueId) -> String {
    format!("n{}.{}", value.node.0, value.port)
}

/// The value of this name.
pub(crate) fn read(name: &str) -> Option<ValueId> {
    let (node, port) = name.strip_prefix('n')?.split_once('.')?;
    Some(NodeId(number(node)?).port(number(port)?))
}

/// A number in canonical form: no sign, no leading zero.
pub(crate) fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}
