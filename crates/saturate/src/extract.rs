//! What is cheapest in an e-graph, each e-node counted once.

use std::hash::{Hash, Hasher};

use regraft_cost::{CostModel, Ns};
use regraft_egraph::{EGraph, EGraphError, Exact, ExtractError, Extraction, Extractor, GreedyDag, Node};
use regraft_ir::{Budget, Graph, NodeId, Op, OpKind, Steps, ValueId};
use rustc_hash::{FxHashMap, FxHasher};

use crate::grow::Growth;
use crate::space::{Class, Space};

/// What e-nodes cost by themselves: with operands that nobody computes, and results that nobody reads.
pub struct Alone<'m> {
    model: &'m dyn CostModel,
    known: FxHashMap<u64, Ns>,
}

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
        let mut hasher = FxHasher::default();
        space.key(id).hash(&mut hasher);
        for value in &node.inputs {
            (graph.ty(*value), graph.is_constant(*value)).hash(&mut hasher);
        }
        *self.known.entry(hasher.finish()).or_insert_with(|| {
            let mut alone = Graph::default();
            let mut inputs: Vec<(ValueId, ValueId)> = Vec::new();
            let mut operands = Vec::with_capacity(node.inputs.len());
            for (at, value) in node.inputs.iter().enumerate() {
                let known = inputs.iter().find(|(known, _)| known == value).map(|(_, input)| *input);
                let input = match (known, graph.ty(*value)) {
                    (Some(known), _) => known,
                    (None, Some(ty)) if graph.is_constant(*value) => alone.add_parameter(&format!("w{at}"), ty.clone()),
                    (None, Some(ty)) => alone.add_input(&format!("x{at}"), ty.clone()),
                    // Below operators without a definition, prices are what they are in the graph.
                    (None, None) => return self.model.price(graph, id),
                };
                inputs.push((*value, input));
                operands.push(input);
            }
            let copy = alone.add_typed(node.op.clone(), &operands, node.types.to_vec());
            self.model.price(&alone, copy)
        })
    }
}

/// How to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
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
            Method::Quick => &GreedyDag { local_search: false },
            Method::GreedyDag => &GreedyDag { local_search: true },
            Method::Exact => &Exact,
        }
    }
}

/// An e-graph as extraction sees it, and which of its nodes is which e-node.
pub struct Priced {
    egraph: EGraph,
    /// For each node, the value that it stands for; `None` for a node with several results, which are
    /// nodes of their own.
    of: Vec<Option<ValueId>>,
    /// The nodes of the input.
    input: Vec<usize>,
}

impl Priced {
    /// All e-nodes that the outputs may need.
    ///
    /// # Errors
    ///
    /// None if the graph has outputs.
    pub fn of(growth: &Growth<'_>, price: &mut dyn FnMut(&Space, NodeId) -> f64) -> Result<Priced, EGraphError> {
        let space = growth.space();
        let graph = space.graph();
        let mut roots: Vec<Class> = graph.outputs().iter().map(|output| space.class(output.value)).collect();
        roots.sort_unstable();
        roots.dedup();
        let class_name = |class: Class| format!("c{class}");
        let mut is_needed = vec![false; space.numbers()];
        let mut open = roots.clone();
        roots.iter().for_each(|root| is_needed[*root as usize] = true);
        let mut wanted: Vec<NodeId> = Vec::new();
        let mut taken = vec![false; graph.capacity()];
        while let Some(class) = open.pop() {
            for member in space.members(class).filter(|member| !growth.is_blocked(member.node)) {
                if std::mem::replace(&mut taken[member.node.0 as usize], true) {
                    continue;
                }
                wanted.push(member.node);
                let below = graph.node(member.node).inputs.iter().map(|value| space.class(*value));
                open.extend(below.filter(|class| !std::mem::replace(&mut is_needed[*class as usize], true)));
            }
        }
        wanted.sort_unstable();
        let name = |value: ValueId| {
            if graph.node(value.node).types.len() == 1 { format!("n{}", value.node.0) } else { format!("n{}.{}", value.node.0, value.port) }
        };
        // A child is named by a node of its class.
        let child = |value: &ValueId| {
            let mut members = space.members(space.class(*value)).filter(|member| taken[member.node.0 as usize]);
            members.next().map_or_else(String::new, name)
        };
        let (mut nodes, mut of, mut input) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()), Vec::new());
        for id in wanted {
            let node = graph.node(id);
            let results = node.types.len() as u32;
            let (own, class) = match results {
                1 => (name(id.out()), class_name(space.class(id.out()))),
                _ => (format!("n{}", id.0), format!("t{}", id.0)),
            };
            if space.is_original(id) {
                input.push(nodes.len());
            }
            let children = node.inputs.iter().map(child).collect();
            nodes.push(Node { name: own.clone(), op: spelled(&node.op), class, children, cost: price(space, id), subsumed: false });
            of.push((results == 1).then_some(id.out()));
            for port in (0..results).filter(|_| results != 1) {
                let class = space.class(id.port(port));
                if !is_needed[class as usize] {
                    continue;
                }
                let op = format!("result {port}");
                nodes.push(Node {
                    name: name(id.port(port)),
                    op,
                    class: class_name(class),
                    children: vec![own.clone()],
                    cost: 0.0,
                    subsumed: false,
                });
                of.push(Some(id.port(port)));
            }
        }
        let roots: Vec<String> = roots.into_iter().map(class_name).collect();
        Ok(Priced { egraph: EGraph::new(nodes, &roots)?, of, input })
    }

    /// The e-graph.
    pub fn egraph(&self) -> &EGraph {
        &self.egraph
    }

    /// Number of e-nodes that were there from the start.
    pub fn originals(&self) -> usize {
        self.input.len()
    }

    /// The cheapest choice of a value for each class that the outputs need, operands first.
    ///
    /// # Errors
    ///
    /// A defect of the method.
    pub fn cheapest(&self, method: Method, budget: &mut dyn Budget) -> Result<(Vec<ValueId>, Extraction), ExtractError> {
        // The effort is limited by counting, so that results repeat; the budget is asked less often.
        let mut effort = Steps(EFFORT);
        let mut limited = || effort.exhausted() || effort.0.is_multiple_of(64) && budget.exhausted();
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
