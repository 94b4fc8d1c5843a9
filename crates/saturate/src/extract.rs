//! What is cheapest in an e-graph, each e-node counted once.

use std::hash::{Hash, Hasher};

use regraft_cost::{CostModel, Ns};
use regraft_egraph::{EGraph, EGraphError, Exact, ExtractError, Extraction, Extractor, GreedyDag, Node, Shared, Tree};
use regraft_ir::key::op_key;
use regraft_ir::{Budget, Graph, NodeId, Op, OpKind, PatchValue, Steps, TensorType, ValueId};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::grow::Growth;
use crate::matches::Application;
use crate::space::{Class, Space};

/// What e-nodes cost by themselves: with operands that nobody computes, and results that nobody
/// reads.
pub struct Alone<'m> {
    model: &'m dyn CostModel,
    known: FxHashMap<u64, Ns>,
}

/// An operand as a price sees it: its type, whether it is constant, and the first operand that is
/// the same value.
type Operand<'t> = (&'t TensorType, bool, usize);

impl<'m> Alone<'m> {
    /// Prices of this model.
    pub fn new(model: &'m dyn CostModel) -> Alone<'m> {
        Alone { model, known: FxHashMap::default() }
    }

    /// The price of an e-node.
    pub fn price(&mut self, space: &Space, id: NodeId) -> Ns {
        let (graph, node) = (space.graph(), space.graph().node(id));
        if node.constant || matches!(node.op, Op::Input(_)) {
            return 0;
        }
        let first = |value: &ValueId| node.inputs.iter().position(|input| input == value).unwrap_or_default();
        let operand = |value: &ValueId| Some((graph.ty(*value)?, graph.is_constant(*value), first(value)));
        let operands: Option<SmallVec<[Operand<'_>; 4]>> = node.inputs.iter().map(operand).collect();
        match operands {
            Some(operands) => self.of(space.key(id), &node.op, &operands, &node.types),
            // Below operators without a definition, prices are what they are in the graph.
            None => self.model.price(graph, id),
        }
    }

    /// What a rewrite saves if all that it replaces is computed for its sake alone, ns; less than
    /// nothing if what it makes costs more.
    pub(crate) fn gain(&mut self, space: &Space, application: &Application) -> f64 {
        let mut gain: f64 = application.source.iter().map(|(id, _)| self.price(space, *id) as f64).sum();
        let create = &application.patch.create;
        let mut constant: SmallVec<[bool; 8]> = SmallVec::new();
        for new in create {
            let operand = |value: &PatchValue| match value {
                PatchValue::Old(value) => Some((space.graph().ty(*value)?, space.graph().is_constant(*value))),
                PatchValue::New { index, port } => {
                    let ty = create[*index as usize].types.get(*port as usize)?.as_ref()?;
                    Some((ty, constant[*index as usize]))
                }
            };
            let first = |value: &PatchValue| new.inputs.iter().position(|input| input == value).unwrap_or_default();
            let operands: Option<SmallVec<[Operand<'_>; 4]>> =
                new.inputs.iter().map(|value| operand(value).map(|(ty, constant)| (ty, constant, first(value)))).collect();
            let is_constant = operands.as_ref().is_some_and(|all| all.iter().all(|(_, constant, _)| *constant));
            constant.push(is_constant);
            if let Some(operands) = operands.filter(|_| !is_constant) {
                gain -= self.of(op_key(&new.op), &new.op, &operands, &new.types) as f64;
            }
        }
        gain
    }

    /// The price of an operator with these operands and results.
    fn of(&mut self, key: u128, op: &Op, operands: &[Operand<'_>], types: &[Option<TensorType>]) -> Ns {
        let mut hasher = FxHasher::default();
        (key, operands).hash(&mut hasher);
        *self.known.entry(hasher.finish()).or_insert_with(|| {
            let mut alone = Graph::default();
            let mut inputs: SmallVec<[ValueId; 4]> = SmallVec::new();
            for (at, (ty, is_constant, first)) in operands.iter().enumerate() {
                let input = match inputs.get(*first) {
                    Some(known) => *known,
                    None if *is_constant => alone.add_parameter(&format!("w{at}"), (*ty).clone()),
                    None => alone.add_input(&format!("x{at}"), (*ty).clone()),
                };
                inputs.push(input);
            }
            let copy = alone.add_typed(op.clone(), &inputs, types.to_vec());
            self.model.price(&alone, copy)
        })
    }
}

/// How to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Each class by its cheapest tree: what is shared counts as often as it is read (egg).
    Tree,
    /// What is shared counts once, as far as a table of overlaps tells (PACT 2024, Algorithm 2).
    Shared,
    /// Sets of nodes.
    Quick,
    /// The same, improved by local search.
    GreedyDag,
    /// The least cost, as far as the effort allows.
    #[default]
    Exact,
}

/// Work that extraction may take, in checks of its budget.
const EFFORT: u64 = 20_000;

impl Method {
    fn extractor(self) -> &'static dyn Extractor {
        match self {
            Method::Tree => &Tree,
            Method::Shared => &Shared,
            Method::Quick => &GreedyDag { local_search: false },
            Method::GreedyDag => &GreedyDag { local_search: true },
            Method::Exact => &Exact,
        }
    }
}

/// An e-graph as extraction sees it, and which of its nodes is which e-node.
pub struct Priced {
    egraph: EGraph,
    /// For each node, the value that it stands for; `None` for a node with several results, which
    /// are nodes of their own.
    of: Vec<Option<ValueId>>,
}

/// The e-nodes that the outputs may need, as nodes: those with several results are followed by one
/// node for each of them.
struct Needed {
    nodes: Vec<(NodeId, Option<u32>)>,
    /// The first node of each class, by the number of the class; `u32::MAX` if it is not needed.
    first: Vec<u32>,
    /// Classes of the outputs.
    roots: Vec<Class>,
}

impl Needed {
    fn of(growth: &Growth<'_>) -> Needed {
        let (space, graph) = (growth.space(), growth.space().graph());
        let mut roots: Vec<Class> = graph.outputs().iter().map(|output| space.class(output.value)).collect();
        roots.sort_unstable();
        roots.dedup();
        let mut is_needed = vec![false; space.numbers()];
        let mut open = roots.clone();
        roots.iter().for_each(|root| is_needed[*root as usize] = true);
        let mut taken = vec![false; graph.capacity()];
        while let Some(class) = open.pop() {
            for member in space.members(class).filter(|member| !growth.is_blocked(member.node)) {
                if std::mem::replace(&mut taken[member.node.0 as usize], true) {
                    continue;
                }
                let below = graph.node(member.node).inputs.iter().map(|value| space.class(*value));
                open.extend(below.filter(|class| !std::mem::replace(&mut is_needed[*class as usize], true)));
            }
        }
        let mut nodes = Vec::new();
        for id in space.ids().filter(|id| taken[id.0 as usize]) {
            let results = graph.node(id).types.len() as u32;
            nodes.push((id, (results == 1).then_some(0)));
            let needed = (0..results).filter(|port| results != 1 && is_needed[space.class(id.port(*port)) as usize]);
            nodes.extend(needed.map(|port| (id, Some(port))));
        }
        let mut first = vec![u32::MAX; space.numbers()];
        for (number, (id, port)) in (0..).zip(&nodes) {
            if let Some(port) = port {
                let first = &mut first[space.class(id.port(*port)) as usize];
                *first = number.min(*first);
            }
        }
        Needed { nodes, first, roots }
    }
}

impl Priced {
    /// All e-nodes that the outputs may need, without names.
    ///
    /// # Errors
    ///
    /// None if the graph has outputs, and prices are finite.
    pub fn of(growth: &Growth<'_>, price: &mut dyn FnMut(&Space, NodeId) -> f64) -> Result<Priced, EGraphError> {
        let space = growth.space();
        let Needed { nodes: needed, first, roots } = Needed::of(growth);
        // Classes in the order of their numbers; a node with several results is a class of its own.
        let mut dense = vec![u32::MAX; space.numbers()];
        let mut classes = 0;
        for (class, _) in first.iter().enumerate().filter(|(_, first)| **first != u32::MAX) {
            dense[class] = classes;
            classes += 1;
        }
        let mut last = (0, 0);
        let mut nodes = Vec::with_capacity(needed.len());
        for (number, (id, port)) in (0..).zip(&needed) {
            let node = space.graph().node(*id);
            // What reads a class without e-nodes is on no extraction, like what reads itself.
            let known = |value: &ValueId| Some(first[space.class(*value) as usize]).filter(|first| *first != u32::MAX);
            let children = || node.inputs.iter().map(|value| known(value).unwrap_or(number)).collect();
            nodes.push(match port {
                Some(0) if node.types.len() == 1 => (dense[space.class(id.out()) as usize], children(), price(space, *id)),
                Some(port) => (dense[space.class(id.port(*port)) as usize], vec![last.0], 0.0),
                None => {
                    last = (number, classes);
                    classes += 1;
                    (last.1, children(), price(space, *id))
                }
            });
        }
        let roots: Vec<u32> = roots.iter().map(|root| dense[*root as usize]).collect();
        let of = needed.iter().map(|(id, port)| Some(id.port((*port)?))).collect();
        Ok(Priced { egraph: EGraph::unnamed(nodes, classes as usize, &roots)?, of })
    }

    /// The same with names: of e-nodes, by their numbers in the graph, and of their operators.
    ///
    /// # Errors
    ///
    /// As [`Priced::of`].
    pub fn named(growth: &Growth<'_>, price: &mut dyn FnMut(&Space, NodeId) -> f64) -> Result<EGraph, EGraphError> {
        let space = growth.space();
        let Needed { nodes: needed, first, roots } = Needed::of(growth);
        let class_name = |class: Class| format!("c{class}");
        let name = |(id, port): (NodeId, Option<u32>)| match port {
            Some(port) if space.graph().node(id).types.len() != 1 => format!("n{}.{port}", id.0),
            _ => format!("n{}", id.0),
        };
        let mut nodes = Vec::with_capacity(needed.len());
        for (id, port) in &needed {
            let node = space.graph().node(*id);
            let is_result = port.is_some() && node.types.len() != 1;
            // A child is named by a node of its class.
            let child = |value: &ValueId| name(*needed.get(first[space.class(*value) as usize] as usize).unwrap_or(&(*id, *port)));
            nodes.push(Node {
                name: name((*id, *port)),
                op: port.filter(|_| is_result).map_or_else(|| spelled(&node.op), |port| format!("result {port}")),
                class: port.map_or_else(|| format!("t{}", id.0), |port| class_name(space.class(id.port(port)))),
                children: if is_result { vec![name((*id, None))] } else { node.inputs.iter().map(child).collect() },
                cost: if is_result { 0.0 } else { price(space, *id) },
                subsumed: false,
            });
        }
        EGraph::new(nodes, &roots.into_iter().map(class_name).collect::<Vec<_>>())
    }

    /// The e-graph.
    pub fn egraph(&self) -> &EGraph {
        &self.egraph
    }

    /// The cheapest choice of a value for each class that the outputs need, operands first.
    ///
    /// # Errors
    ///
    /// A defect of the method.
    pub fn cheapest(&self, method: Method, budget: &mut dyn Budget) -> Result<(Vec<ValueId>, Extraction), ExtractError> {
        // The effort is limited by counting, so that results repeat; the budget is asked less
        // often. What was exhausted once stays so.
        let (mut effort, mut is_over) = (Steps(EFFORT), false);
        let mut limited = || {
            is_over = is_over || effort.exhausted() || effort.0.is_multiple_of(64) && budget.exhausted();
            is_over
        };
        let found = self.egraph.extract(method.extractor(), None, &mut limited)?;
        Ok((found.nodes.iter().filter_map(|node| self.of[*node]).collect(), found))
    }
}

/// An operator with its attributes, as text.
fn spelled(op: &Op) -> String {
    let attrs: Vec<String> = op.attrs().iter().map(|(name, value)| format!("{name}={value}")).collect();
    match op {
        Op::Input(input) => format!("Input {}", input.name),
        op if op.kind() == OpKind::Constant || attrs.is_empty() => op.kind().name().to_string(),
        op => format!("{}({})", op.kind().name(), attrs.join(", ")),
    }
}
