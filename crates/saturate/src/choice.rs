//! `Choice`: an e-graph as a graph, where one value stands for each class.

use std::cell::{Cell, OnceCell, RefCell};

use regraft_ir::{Carrier, Const, Dim, EvalError, NodeId, Op, OpKind, TensorType, ValueId, View, eval};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::space::{Class, Space};

/// What does not change while rules are matched.
pub(crate) struct Frozen<'s> {
    pub(crate) space: &'s Space,
    /// E-nodes that no pattern looks at.
    hidden: &'s dyn Fn(NodeId) -> bool,
    /// The value that stands for each class unless another one is chosen.
    usual: Vec<ValueId>,
    /// Operands of each node, as those values.
    inputs: Vec<SmallVec<[ValueId; 3]>>,
    /// Readers of a value of each class.
    readers: Vec<Vec<(NodeId, u32)>>,
    /// Readers of nodes with several results.
    readers_of_all: FxHashMap<NodeId, Vec<(NodeId, u32)>>,
}

/// A question about a class whose answer another choice would change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Which operator computes it.
    Kind(Class),
    /// Its attributes or operands.
    Node(Class),
}

/// Choices, those of the anchor first.
type Chosen = SmallVec<[(Class, ValueId); 4]>;

/// An e-graph in which every class is computed by one e-node, chosen by whoever asks.
pub(crate) struct Choice<'f> {
    frozen: &'f Frozen<'f>,
    /// Choices other than usual.
    chosen: Chosen,
    /// How many of them are about the anchor.
    own: usize,
    asked: RefCell<SmallVec<[Question; 8]>>,
    is_recording: Cell<bool>,
    looked: OnceCell<Box<Looked>>,
}

/// Operands of nodes that read a class with another choice: a list that only grows.
struct Looked {
    id: NodeId,
    inputs: SmallVec<[ValueId; 3]>,
    next: OnceCell<Box<Looked>>,
}

impl<'s> Frozen<'s> {
    /// The e-graph as it is. E-nodes that are `hidden` are chosen by nobody.
    pub(crate) fn new(space: &'s Space, hidden: &'s dyn Fn(NodeId) -> bool) -> Frozen<'s> {
        let graph = space.graph();
        let mut usual: Vec<ValueId> = (0..space.numbers() as u32).map(|number| space.numbered(number)).collect();
        for (class, value) in usual.iter_mut().enumerate() {
            let members = || space.members(class as Class).filter(|member| !hidden(member.node));
            let constant = members().find(|member| graph.is_constant(*member));
            *value = constant.or_else(|| members().next()).unwrap_or(*value);
        }
        let mut inputs = vec![SmallVec::new(); graph.capacity()];
        let mut readers = vec![Vec::new(); space.numbers()];
        for id in space.ids().filter(|id| !hidden(*id)) {
            for (slot, value) in (0..).zip(&graph.node(id).inputs) {
                let class = space.class(*value) as usize;
                inputs[id.0 as usize].push(usual[class]);
                readers[class].push((id, slot));
            }
        }
        let several = |id: &NodeId| graph.node(*id).types.len() > 1;
        let all = |id: NodeId| {
            let mut classes: Vec<Class> = (0..graph.node(id).types.len() as u32).map(|port| space.class(id.port(port))).collect();
            classes.sort_unstable();
            classes.dedup();
            classes.into_iter().flat_map(|class| readers[class as usize].iter().copied()).collect()
        };
        let readers_of_all = space.ids().filter(several).map(|id| (id, all(id))).collect();
        Frozen { space, hidden, usual, inputs, readers, readers_of_all }
    }

    /// Hands out views of the e-graph such that every match at an e-node is found in one of them:
    /// whatever a view is asked about is chosen in all ways, one after the other. False if there
    /// are more than `limit`. Operators that are of none of these `kinds`, if given, are all alike.
    pub(crate) fn all(&self, anchor: NodeId, limit: usize, kinds: Option<&[OpKind]>, mut visit: impl FnMut(&Choice<'_>)) -> bool {
        let mut chosen = Chosen::new();
        for value in (0..self.space.graph().node(anchor).types.len() as u32).map(|port| anchor.port(port)) {
            let class = self.space.class(value);
            if chosen.iter().all(|(known, _)| *known != class) {
                chosen.push((class, value));
            }
        }
        let own = chosen.len();
        let mut open = vec![(chosen, SmallVec::<[Question; 8]>::new())];
        for _ in 0..limit {
            let Some((chosen, decided)) = open.pop() else { return true };
            let (asked, looked) = Default::default();
            let view = Choice { frozen: self, chosen, own, asked, is_recording: Cell::new(true), looked };
            visit(&view);
            let (chosen, asked) = (view.chosen, view.asked.into_inner());
            let mut now = decided;
            for question in asked {
                if now.contains(&question) {
                    continue;
                }
                // From here on, the other answers; what was asked before stays as it was answered.
                now.push(question);
                for (class, value) in self.alternatives(question, &chosen, kinds) {
                    let mut other = chosen.clone();
                    match other.iter_mut().find(|(known, _)| *known == class) {
                        Some(known) => known.1 = value,
                        None => other.push((class, value)),
                    }
                    open.push((other, now.clone()));
                }
            }
        }
        open.is_empty()
    }

    /// Other answers to a question.
    fn alternatives(&self, question: Question, chosen: &Chosen, wanted: Option<&[OpKind]>) -> SmallVec<[(Class, ValueId); 4]> {
        let (Question::Kind(class) | Question::Node(class)) = question;
        let graph = self.space.graph();
        let kind = |value: ValueId| graph.node(value.node).op.kind();
        let now = chosen.iter().find(|(known, _)| *known == class).map_or(self.usual[class as usize], |(_, value)| *value);
        let mut kinds: SmallVec<[OpKind; 4]> = SmallVec::from_slice(&[kind(now)]);
        let members = self.space.members(class).filter(|member| !(self.hidden)(member.node));
        let is_other = |member: &ValueId| match question {
            Question::Node(_) => *member != now && kind(*member) == kinds[0],
            Question::Kind(_) if kinds.contains(&kind(*member)) => false,
            Question::Kind(_) if wanted.is_some_and(|wanted| !wanted.contains(&kind(*member))) => false,
            Question::Kind(_) => {
                kinds.push(kind(*member));
                true
            }
        };
        members.filter(is_other).map(|member| (class, member)).collect()
    }
}

impl Choice<'_> {
    /// Does something that asks nothing whose other answers matter.
    pub(crate) fn quietly<T>(&self, act: impl FnOnce() -> T) -> T {
        self.is_recording.set(false);
        let result = act();
        self.is_recording.set(true);
        result
    }

    /// The value that stands for a class.
    fn standing(&self, class: Class) -> ValueId {
        let chosen = self.chosen.iter().find(|(known, _)| *known == class);
        chosen.map_or(self.frozen.usual[class as usize], |(_, value)| *value)
    }

    fn note(&self, id: NodeId, question: fn(Class) -> Question) {
        let space = self.frozen.space;
        if !self.is_recording.get() || space.graph().node(id).constant {
            return;
        }
        for port in 0..space.graph().node(id).types.len() as u32 {
            let class = space.class(id.port(port));
            let is_own = || self.chosen[..self.own].iter().any(|(known, _)| *known == class);
            if space.members(class).len() > 1 && self.standing(class) == id.port(port) && !is_own() {
                let mut asked = self.asked.borrow_mut();
                for question in [Question::Kind(class), question(class)] {
                    if !asked.contains(&question) {
                        asked.push(question);
                    }
                }
            }
        }
    }
}

impl View for Choice<'_> {
    fn kind(&self, id: NodeId) -> OpKind {
        self.note(id, Question::Kind);
        self.frozen.space.graph().node(id).op.kind()
    }

    fn op(&self, id: NodeId) -> &Op {
        self.note(id, Question::Node);
        &self.frozen.space.graph().node(id).op
    }

    fn inputs(&self, id: NodeId) -> &[ValueId] {
        self.note(id, Question::Node);
        let usual = &self.frozen.inputs[id.0 as usize];
        let own = &self.frozen.space.graph().node(id).inputs;
        let classes = || own.iter().map(|value| self.frozen.space.class(*value));
        if self.chosen.is_empty() || usual.iter().zip(classes()).all(|(value, class)| self.standing(class) == *value) {
            return usual;
        }
        let mut at = &self.looked;
        while let Some(looked) = at.get() {
            if looked.id == id {
                return &looked.inputs;
            }
            at = &looked.next;
        }
        let inputs = classes().map(|class| self.standing(class)).collect();
        &at.get_or_init(|| Box::new(Looked { id, inputs, next: OnceCell::new() })).inputs
    }

    fn types(&self, id: NodeId) -> &[Option<TensorType>] {
        &self.frozen.space.graph().node(id).types
    }

    fn depends_on_constants_only(&self, id: NodeId) -> bool {
        self.frozen.space.graph().node(id).constant
    }

    /// Readers of all values that equal its results: more than any graph has in which it is
    /// computed.
    fn readers(&self, id: NodeId) -> &[(NodeId, u32)] {
        match self.frozen.readers_of_all.get(&id) {
            Some(readers) => readers,
            None => &self.frozen.readers[self.frozen.space.class(id.out()) as usize],
        }
    }

    fn is_output(&self, value: ValueId) -> bool {
        let class = self.frozen.space.class(value);
        self.frozen.space.graph().outputs().iter().any(|output| self.frozen.space.class(output.value) == class)
    }

    fn is_before(&self, a: NodeId, b: NodeId) -> bool {
        let class = |id: NodeId| (self.frozen.space.class(id.out()), id);
        class(a) < class(b)
    }

    fn carrier(&self, symbol: &str) -> Option<Carrier> {
        self.frozen.space.graph().carrier(symbol)
    }

    fn bearer(&self, size: &Dim) -> Option<(ValueId, usize)> {
        self.frozen.space.graph().bearer(size)
    }

    fn splat(&self, id: NodeId) -> Option<f64> {
        View::splat(self.frozen.space.graph(), id)
    }

    fn evaluate(&self, value: ValueId) -> Result<Const, EvalError> {
        eval::constant_value(self.frozen.space.graph(), value)
    }
}
