//! `Automaton`: the rules of a library, compiled as far as they were needed.
//!
//! Matching all rules at a node asks a sequence of questions about the nodes around it, and each
//! question depends on the answers before it alone. The automaton remembers these sequences as a
//! tree: a state asks one question, and leads on by the answer; the last states hold the rewrites.
//! Rules share the questions that they have in common, as in a discrimination net (Forgy, "Rete",
//! 1982), and their guards are never asked again where the answers are the same. Nodes are numbered
//! in the order in which answers mention them, so what was learned in one place holds wherever the
//! surroundings are alike.
//!
//! There is one for all rules together, which is what a search walks, and one for each rule: where
//! surroundings differ in what a few rules ask about, only these are matched again. For a rule with
//! two roots they tell where the other root may be; what matches at both is in an automaton of its
//! own, which begins with both. So how many readers an operand has does not matter to it.

use std::sync::Arc;

use regraft_ir::{Graph, NodeId, View};
use regraft_rules::Join;
use rustc_hash::FxHashMap;

use super::facts::Facts;
use super::hash::mix;
use super::numbering::Numbering;
use super::template::Placed;
use super::witness::{Asked, Question};

/// States beyond which everything is forgotten, to bound memory: of all rules together, and of one.
const MOST_STATES: usize = 1 << 20;
const MOST_OF_ONE: usize = 1 << 13;
/// Numbered nodes beyond which a sequence of questions is not remembered.
const MOST_NODES: usize = 1 << 12;

/// Odd numbers without a pattern: of pi, of e, of the square roots of 2 and 3.
const SEEDS: (u64, u64) = (0x243f_6a88_85a3_08d3, 0xb7e1_5162_8aed_2a6b);
const MULTIPLIERS: (u64, u64) = (0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b);

/// What matching rules at a node found.
#[derive(Default)]
pub(super) struct Leaf {
    /// The rewrites.
    pub(super) templates: Vec<Placed>,
    /// Rules that match and cannot be applied, by index, and why.
    pub(super) refusals: Vec<(usize, String)>,
    /// The questions that it took, of one rule alone.
    pub(super) questions: Vec<Question<u32>>,
    /// The nodes asked about whose answers may change.
    pub(super) asked: Vec<u32>,
    /// Where the other root of a rule with two may be, by the rule.
    pub(super) joins: Vec<(usize, Join)>,
}

enum State {
    Asks {
        question: Question<u32>,
        /// The answer that was learned first, and where it leads: nearly all states know no other,
        /// and those along one sequence of questions lie side by side.
        first: (u128, u32),
    },
    Ends(Arc<Leaf>),
}

/// What was learned so far.
pub(super) struct Automaton {
    most: usize,
    /// By number; the first one is the start.
    states: Vec<State>,
    /// The next state by the hash of a state and any other answer.
    others: FxHashMap<u128, u32>,
    /// A hash of the inputs of the graphs that it knows: which of them have the sizes that a
    /// rewrite reads is not asked.
    inputs: u64,
}

impl Default for Automaton {
    /// One for all rules of a library.
    fn default() -> Automaton {
        Automaton { most: MOST_STATES, states: Vec::new(), others: FxHashMap::default(), inputs: 0 }
    }
}

impl Automaton {
    /// One for a single rule.
    pub(super) fn of_one() -> Automaton {
        Automaton { most: MOST_OF_ONE, ..Automaton::default() }
    }

    /// Forgets everything.
    fn clear(&mut self) {
        self.states.clear();
        self.others.clear();
    }

    /// Makes sure that what is known holds for this graph.
    pub(super) fn enter(&mut self, graph: &Graph, facts: &Facts<'_>) {
        let inputs = graph.inputs().iter().fold(0, |hash, id| mix(hash ^ u128::from(facts[*id].core))) as u64;
        if inputs != self.inputs {
            self.inputs = inputs;
            self.clear();
        }
    }

    /// What is known to match at a node, or at two, and the nodes that it speaks of by number;
    /// `None` if that is not known yet.
    pub(super) fn walk(&self, graph: &Graph, facts: &Facts<'_>, anchors: &[NodeId], nodes: &mut Numbering) -> Option<&Arc<Leaf>> {
        nodes.begin(graph, anchors);
        let mut at = 0u32;
        loop {
            match self.states.get(at as usize)? {
                State::Ends(leaf) => return Some(leaf),
                State::Asks { question, first } => {
                    let answer = answer(graph, facts, at, *question, nodes);
                    at = if answer == first.0 { first.1 } else { *self.others.get(&answer)? };
                }
            }
        }
    }

    /// The questions, about the nodes that they and their answers speak of by number, which `nodes`
    /// then holds; `None` if that cannot be remembered.
    pub(super) fn numbered(
        graph: &Graph,
        facts: &Facts<'_>,
        anchors: &[NodeId],
        asked: &Asked,
        nodes: &mut Numbering,
    ) -> Option<Vec<Question<u32>>> {
        nodes.begin(graph, anchors);
        let mut questions = Vec::with_capacity(asked.questions.len());
        for question in &asked.questions {
            let question = relative(graph, *question, nodes)?;
            answer(graph, facts, 0, question, nodes);
            if nodes.len() > MOST_NODES {
                return None;
            }
            questions.push(question);
        }
        Some(questions)
    }

    /// Remembers what matches at a node, and the questions that it took to find out.
    pub(super) fn learn(
        &mut self,
        graph: &Graph,
        facts: &Facts<'_>,
        anchors: &[NodeId],
        questions: &[Question<u32>],
        leaf: Arc<Leaf>,
        nodes: &mut Numbering,
    ) {
        if self.states.len() >= self.most {
            self.clear();
        }
        nodes.begin(graph, anchors);
        let mut at = 0u32;
        for question in questions.iter().copied() {
            let (answer, fresh) = (answer(graph, facts, at, question, nodes), self.states.len() as u32);
            at = match self.states.get(at as usize) {
                None => {
                    self.states.push(State::Asks { question, first: (answer, fresh + 1) });
                    fresh + 1
                }
                Some(State::Asks { question: same, first }) => {
                    debug_assert_eq!(*same, question, "what is asked depends on the answers before alone");
                    if answer == first.0 { first.1 } else { *self.others.entry(answer).or_insert(fresh) }
                }
                Some(State::Ends(_)) => {
                    debug_assert!(false, "more is asked than before after the same answers");
                    return;
                }
            };
        }
        if at as usize == self.states.len() {
            self.states.push(State::Ends(leaf));
        }
    }
}

/// A question about numbered nodes; `None` if one of them has no number.
fn relative(graph: &Graph, question: Question<NodeId>, nodes: &Numbering) -> Option<Question<u32>> {
    question.about(|id| nodes.get(graph, id))
}

/// A hash of a state and of the answer to its question. Nodes that the answer mentions first get
/// the next numbers.
fn answer(graph: &Graph, facts: &Facts<'_>, state: u32, question: Question<u32>, nodes: &mut Numbering) -> u128 {
    let mut hash = (u64::from(state) ^ SEEDS.0, u64::from(state).rotate_left(32) ^ SEEDS.1);
    let mut tell = |word: u64| hash = (folded(hash.0 ^ word, MULTIPLIERS.0), folded(hash.1 ^ word, MULTIPLIERS.1));
    match question {
        Question::Node(at) => {
            let id = nodes.node(graph, at);
            let node = graph.node(id);
            tell(facts[id].outline);
            tell((node.inputs.len() as u64) << 1 | u64::from(node.constant));
            for value in &node.inputs {
                tell(nodes.number(value.node) << 32 | u64::from(value.port));
            }
        }
        Question::Content(at) => tell(facts[nodes.node(graph, at)].core),
        Question::Splat(at) => {
            tell(View::splat(graph, nodes.node(graph, at)).map_or(0, |value| mix(u128::from(value.to_bits())) as u64 | 1))
        }
        Question::Readers(at) => {
            let readers = &graph.node(nodes.node(graph, at)).users;
            tell(readers.len() as u64);
            for (reader, slot) in readers {
                tell(nodes.number(*reader) << 32 | u64::from(*slot));
            }
        }
        Question::Alike(at, core) => {
            for (reader, _) in graph.node(nodes.node(graph, at)).users.iter().filter(|(reader, _)| facts[*reader].core == core) {
                tell(nodes.number(*reader));
            }
        }
        Question::Output(at, port) => tell(u64::from(graph.is_output(nodes.node(graph, at).port(port)))),
        Question::Order(a, b) => tell(u64::from(nodes.node(graph, a) < nodes.node(graph, b))),
    }
    u128::from(hash.0) << 64 | u128::from(hash.1)
}

/// Both halves of a product, together: the mixing step of wyhash.
fn folded(word: u64, multiplier: u64) -> u64 {
    let product = u128::from(word) * u128::from(multiplier);
    (product >> 64) as u64 ^ product as u64
}
