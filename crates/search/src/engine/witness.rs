//! `Witness`: a graph that remembers what was asked of it.

use std::cell::RefCell;

use regraft_ir::{Carrier, Const, Dim, EvalError, Graph, NodeId, Op, OpKind, TensorType, ValueId, View};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::hash::core;

/// A question about nodes of a graph, which may be ids or anything else that stands for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question<N> {
    /// Operator, operands, types, and whether it depends on constants only; of a constant, all but
    /// its elements.
    Node(N),
    /// The elements of a constant.
    Content(N),
    /// The common value of all elements of a constant.
    Splat(N),
    /// Readers of all results, with the operand slots, as they are listed.
    Readers(N),
    /// Those readers whose operators, attributes and operand types have this hash.
    Alike(N, u64),
    /// Whether a declared output returns the result at a port.
    Output(N, u32),
    /// Whether the first node is before the second.
    Order(N, N),
}

impl<N: Copy> Question<N> {
    /// The node whose change may change the answer, if there is one.
    pub(super) fn subject(self) -> Option<N> {
        match self {
            Question::Node(node) | Question::Readers(node) | Question::Alike(node, _) | Question::Output(node, _) => Some(node),
            // Constants and the order of nodes stay as they are.
            Question::Content(_) | Question::Splat(_) | Question::Order(..) => None,
        }
    }

    /// The same about what `other` says; `None` if it says nothing about one of the nodes.
    pub(super) fn about<M>(self, other: impl Fn(N) -> Option<M>) -> Option<Question<M>> {
        Some(match self {
            Question::Node(node) => Question::Node(other(node)?),
            Question::Content(node) => Question::Content(other(node)?),
            Question::Splat(node) => Question::Splat(other(node)?),
            Question::Readers(node) => Question::Readers(other(node)?),
            Question::Alike(node, core) => Question::Alike(other(node)?, core),
            Question::Output(node, port) => Question::Output(other(node)?, port),
            Question::Order(a, b) => Question::Order(other(a)?, other(b)?),
        })
    }
}

/// A graph that remembers what was asked of it, each question once, in order.
pub(super) struct Witness<'a> {
    graph: &'a Graph,
    asked: RefCell<Asked>,
}

/// What was asked.
#[derive(Default)]
pub(super) struct Asked {
    /// The questions, in order.
    pub(super) questions: Vec<Question<NodeId>>,
    /// Inputs whose sizes are read at run time. They are the same in every state, and asking about
    /// them does not count.
    inputs: Vec<NodeId>,
    seen: FxHashSet<Question<NodeId>>,
}

impl Asked {
    /// Adds a question, unless it was asked before.
    pub(super) fn note(&mut self, question: Question<NodeId>) {
        let about_input = matches!(question, Question::Node(id) if self.inputs.contains(&id));
        if !about_input && self.seen.insert(question) {
            self.questions.push(question);
        }
    }
}

impl<'a> Witness<'a> {
    /// Nothing was asked yet.
    pub(super) fn new(graph: &'a Graph) -> Witness<'a> {
        Witness { graph, asked: RefCell::default() }
    }

    /// What was asked.
    pub(super) fn into_asked(self) -> Asked {
        self.asked.into_inner()
    }

    fn lean_on(&self, value: Option<ValueId>) {
        let id = value.map(|value| value.node).filter(|id| self.graph.kind(*id) == OpKind::Input);
        self.asked.borrow_mut().inputs.extend(id);
    }

    fn note(&self, question: Question<NodeId>) {
        self.asked.borrow_mut().note(question);
    }
}

impl View for Witness<'_> {
    fn kind(&self, id: NodeId) -> OpKind {
        self.note(Question::Node(id));
        self.graph.kind(id)
    }

    fn op(&self, id: NodeId) -> &Op {
        self.note(Question::Node(id));
        let op = View::op(self.graph, id);
        if op.kind() == OpKind::Constant {
            self.note(Question::Content(id));
        }
        op
    }

    fn inputs(&self, id: NodeId) -> &[ValueId] {
        self.note(Question::Node(id));
        View::inputs(self.graph, id)
    }

    fn types(&self, id: NodeId) -> &[Option<TensorType>] {
        self.note(Question::Node(id));
        self.graph.types(id)
    }

    fn depends_on_constants_only(&self, id: NodeId) -> bool {
        self.note(Question::Node(id));
        self.graph.depends_on_constants_only(id)
    }

    fn readers(&self, id: NodeId) -> &[(NodeId, u32)] {
        self.note(Question::Readers(id));
        self.graph.readers(id)
    }

    fn readers_alike(&self, id: NodeId, op: &Op, operands: &[Option<&TensorType>]) -> SmallVec<[NodeId; 2]> {
        self.note(Question::Alike(id, core(op, operands.iter().copied())));
        self.graph.readers_alike(id, op, operands)
    }

    fn is_output(&self, value: ValueId) -> bool {
        self.note(Question::Output(value.node, value.port));
        View::is_output(self.graph, value)
    }

    fn is_before(&self, a: NodeId, b: NodeId) -> bool {
        self.note(Question::Order(a, b));
        self.graph.is_before(a, b)
    }

    fn carrier(&self, symbol: &str) -> Option<Carrier> {
        let found = View::carrier(self.graph, symbol);
        self.lean_on(found.map(|carrier| carrier.value));
        found
    }

    fn bearer(&self, size: &Dim) -> Option<(ValueId, usize)> {
        let found = View::bearer(self.graph, size);
        self.lean_on(found.map(|(value, _)| value));
        found
    }

    fn splat(&self, id: NodeId) -> Option<f64> {
        self.note(Question::Splat(id));
        View::splat(self.graph, id)
    }

    fn evaluate(&self, value: ValueId) -> Result<Const, EvalError> {
        let mut stack = vec![value.node];
        let mut seen = FxHashSet::default();
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                self.op(id);
                stack.extend(self.inputs(id).iter().map(|v| v.node));
            }
        }
        self.graph.evaluate(value)
    }
}
