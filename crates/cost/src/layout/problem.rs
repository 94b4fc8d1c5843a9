//! The choice of layouts as a labelling: a variable for each node, whose labels are its kernels,
//! and one for each value of several readers, whose labels are the sets of layouts that it is
//! wanted in.

use regraft_ir::{Graph, NodeId, ValueId};
use smallvec::SmallVec;

use super::kernel::{Kernel, Kernels};
use super::min_sum::MinSum;
use super::target::PLAIN;
use crate::model::Ns;

/// Sets of layouts, as bits.
pub(super) type Layouts = u16;

/// A node that reads a value, and the operands that are this value.
pub(super) struct Reader {
    pub(super) id: NodeId,
    slots: SmallVec<[u32; 2]>,
}

impl Reader {
    /// The nodes that read a value when the graph runs.
    pub(super) fn all(graph: &Graph, value: ValueId) -> SmallVec<[Reader; 4]> {
        let mut readers: SmallVec<[Reader; 4]> = SmallVec::new();
        for (id, slot) in reads(graph, value) {
            match readers.iter_mut().find(|reader| reader.id == id) {
                Some(reader) => reader.slots.push(slot),
                None => readers.push(Reader { id, slots: SmallVec::from_slice(&[slot]) }),
            }
        }
        readers
    }

    /// The layouts of the value that a kernel wants.
    pub(super) fn wants(&self, kernel: &Kernel) -> Layouts {
        self.slots.iter().filter_map(|slot| kernel.operands[*slot as usize]).fold(0, |wants, layout| wants | 1 << layout)
    }
}

/// The nodes that read a value when the graph runs, and as which operand.
pub(super) fn reads(graph: &Graph, value: ValueId) -> impl Iterator<Item = (NodeId, u32)> + '_ {
    let is_read = move |(user, slot): &(NodeId, u32)| {
        let node = graph.node(*user);
        !node.constant && node.inputs[*slot as usize] == value
    };
    graph.node(value.node).users.iter().copied().filter(is_read)
}

/// What the caller of the model wants of a value: outputs are plain.
pub(super) fn wanted_outside(graph: &Graph, value: ValueId) -> Layouts {
    Layouts::from(graph.is_output(value)) << PLAIN
}

/// A graph's choice of kernels.
pub(super) struct Problem {
    pub(super) sum: MinSum,
    /// For each node that has a choice, by id: its variable, and what labels stand for.
    pub(super) choices: Vec<Option<Choice>>,
}

/// What a node can be computed with.
pub(super) struct Choice {
    pub(super) variable: u32,
    /// Kernels by their numbers.
    pub(super) kernels: SmallVec<[u16; 8]>,
}

impl Problem {
    /// All kernels of `kernels` that `admits` admits; always the plain one.
    pub(super) fn new<'k>(graph: &Graph, kernels: &dyn Fn(NodeId) -> &'k Kernels, admits: &dyn Fn(NodeId, &Kernel) -> bool) -> Problem {
        let mut problem = Problem { sum: MinSum::default(), choices: Vec::new() };
        let mut is_plain = vec![false; graph.capacity()];
        problem.choices.resize_with(graph.capacity(), || None);
        for id in graph.ids().filter(|id| !graph.node(*id).constant) {
            let all = &kernels(id).all;
            let admitted: SmallVec<[u16; 8]> = (0..all.len() as u16).filter(|at| *at == 0 || admits(id, &all[usize::from(*at)])).collect();
            if admitted.len() == 1 {
                problem.sum.constant(all[0].price);
                is_plain[id.0 as usize] = all[0].is_plain();
                continue;
            }
            let variable = problem.sum.variable(admitted.len());
            problem.sum.unary(variable, |label| all[usize::from(admitted[label])].price);
            problem.choices[id.0 as usize] = Some(Choice { variable, kernels: admitted });
        }
        for id in graph.ids().filter(|id| !graph.node(*id).constant) {
            let is_read_plain = || graph.node(id).users.iter().all(|(user, _)| is_plain[user.0 as usize]);
            if is_plain[id.0 as usize] && is_read_plain() {
                continue;
            }
            for port in 0..graph.node(id).types.len() as u32 {
                problem.add_value(graph, id.port(port), kernels);
            }
        }
        problem
    }

    /// The cost of the layouts that a value is wanted in.
    fn add_value<'k>(&mut self, graph: &Graph, value: ValueId, kernels: &dyn Fn(NodeId) -> &'k Kernels) {
        let own = kernels(value.node);
        let choice = |id: NodeId| self.choices[id.0 as usize].as_ref();
        let mut always = wanted_outside(graph, value);
        let mut readers: SmallVec<[(u32, SmallVec<[Layouts; 8]>); 4]> = SmallVec::new();
        for reader in Reader::all(graph, value) {
            let all = &kernels(reader.id).all;
            match choice(reader.id) {
                None => always |= reader.wants(&all[0]),
                Some(choice) => {
                    let wants = choice.kernels.iter().map(|kernel| reader.wants(&all[usize::from(*kernel)])).collect();
                    readers.push((choice.variable, wants));
                }
            }
        }
        let maker = choice(value.node);
        let result = |kernel: usize| own.all[kernel].results[value.port as usize];
        let (from, of): (SmallVec<[u8; 8]>, Option<u32>) = match maker {
            None => (SmallVec::from_elem(result(0), 1), None),
            Some(choice) => (choice.kernels.iter().map(|kernel| result(usize::from(*kernel))).collect(), Some(choice.variable)),
        };
        let cost = |label: usize, wanted: Layouts| own.changes(value.port, from[label], wanted | always);
        let sum = &mut self.sum;
        match (readers.as_slice(), of) {
            ([], None) => sum.constant(cost(0, 0)),
            ([], Some(of)) => sum.unary(of, |label| cost(label, 0)),
            ([(reader, wants)], None) => sum.unary(*reader, |label| cost(0, wants[label])),
            ([(reader, wants)], Some(of)) => sum.pair((of, *reader), |label, wanted| cost(label, wants[wanted])),
            (readers, of) => {
                // What is wanted always costs nothing more, so sets are those of the others.
                let all = readers.iter().flat_map(|(_, wants)| wants).fold(0, |all, wants| all | wants) & !always;
                let sets = subsets(all);
                if sets.len() == 1 {
                    match of {
                        None => sum.constant(cost(0, 0)),
                        Some(of) => sum.unary(of, |label| cost(label, 0)),
                    }
                    return;
                }
                let set = sum.variable(sets.len());
                match of {
                    None => sum.unary(set, |at| cost(0, sets[at])),
                    Some(of) => sum.pair((of, set), |label, at| cost(label, sets[at])),
                }
                for (reader, wants) in readers {
                    sum.pair((set, *reader), |at, label| if wants[label] & !always & !sets[at] == 0 { 0 } else { Ns::MAX });
                }
            }
        }
    }
}

/// All sets of these layouts.
fn subsets(of: Layouts) -> Vec<Layouts> {
    let mut sets = vec![0];
    let mut set: Layouts = 0;
    while set != of {
        set = set.wrapping_sub(of) & of;
        sets.push(set);
    }
    sets
}
