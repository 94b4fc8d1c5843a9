//! Cycles in e-graphs: kept, or filtered as TENSAT does (Yang et al., MLSys 2021, section 5).

use regraft_ir::{NodeId, Patch, PatchValue};
use rustc_hash::FxHashSet;

use crate::space::{Class, Space};

/// What becomes of rewrites that make an e-graph cyclic. Extraction has no cycle in any case; what
/// is filtered is what it can choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cycles {
    /// They are applied like any other.
    #[default]
    Kept,
    /// They are not applied: before each application, what its operands depend on is looked up.
    Vanilla,
    /// What an operand depends on is looked up once per iteration. A cycle that is closed all the
    /// same is cut afterwards at the youngest of its e-nodes, which no rule matches any more and no
    /// extraction takes.
    Efficient,
}

/// What classes depend on.
pub(crate) struct Reach {
    cycles: Cycles,
    /// For each class, as a set of bits, the classes below it at the beginning of the iteration.
    below: Vec<Option<Box<[u64]>>>,
    words: usize,
}

impl Reach {
    /// What is needed for a way to treat cycles.
    pub(crate) fn new(cycles: Cycles, space: &Space) -> Reach {
        let count = space.numbers();
        let mut reach = Reach { cycles, below: Vec::new(), words: count.div_ceil(64) };
        if cycles == Cycles::Efficient {
            reach.below = vec![None; count];
            // E-nodes come after their operands: what is cyclic is told one iteration late.
            for id in space.ids() {
                let mut own = vec![0u64; reach.words].into_boxed_slice();
                for value in &space.graph().node(id).inputs {
                    let class = space.class(*value) as usize;
                    own[class / 64] |= 1 << (class % 64);
                    if let Some(below) = &reach.below[class] {
                        own.iter_mut().zip(below.iter()).for_each(|(own, below)| *own |= below);
                    }
                }
                for port in 0..space.graph().node(id).types.len() as u32 {
                    let class = space.class(id.port(port)) as usize;
                    match &mut reach.below[class] {
                        Some(known) => known.iter_mut().zip(own.iter()).for_each(|(known, own)| *known |= own),
                        none => *none = Some(own.clone()),
                    }
                }
            }
        }
        reach
    }

    /// Whether a rewrite would make something depend on itself, as far as this way looks.
    pub(crate) fn closes_cycle(&mut self, space: &Space, blocked: &FxHashSet<NodeId>, patch: &Patch) -> bool {
        if self.cycles == Cycles::Kept {
            return false;
        }
        let replaced: Vec<Class> = patch.replace.iter().map(|(old, _)| space.class(*old)).collect();
        let operands = patch.create.iter().flat_map(|new| &new.inputs);
        let read = operands.filter_map(|value| if let PatchValue::Old(value) = value { Some(space.class(*value)) } else { None });
        let read: Vec<Class> = read.collect();
        if read.iter().any(|class| replaced.contains(class)) {
            return true;
        }
        if self.cycles == Cycles::Vanilla {
            return depends(space, blocked, read, &replaced);
        }
        let is_below = |class: Class, of: Class| {
            let below = self.below.get(of as usize).and_then(Option::as_ref);
            below.is_some_and(|below| below.get(class as usize / 64).is_some_and(|word| word >> (class % 64) & 1 == 1))
        };
        read.iter().any(|of| replaced.iter().any(|class| is_below(*class, *of)))
    }
}

/// Whether one of these classes depends on one of the others.
fn depends(space: &Space, blocked: &FxHashSet<NodeId>, mut open: Vec<Class>, on: &[Class]) -> bool {
    let mut seen: FxHashSet<Class> = open.iter().copied().collect();
    while let Some(class) = open.pop() {
        if on.contains(&class) {
            return true;
        }
        for member in space.members(class).filter(|member| !blocked.contains(&member.node)) {
            let below = space.graph().node(member.node).inputs.iter().map(|value| space.class(*value));
            open.extend(below.filter(|class| seen.insert(*class)));
        }
    }
    false
}

/// Cuts every cycle below the outputs that is not cut yet: the youngest e-node of each.
pub(crate) fn cut(space: &Space, blocked: &FxHashSet<NodeId>) -> FxHashSet<NodeId> {
    let mut cut: FxHashSet<NodeId> = FxHashSet::default();
    while let Some(youngest) = cycle(space, &|id| blocked.contains(&id) || cut.contains(&id)) {
        cut.insert(youngest);
    }
    cut
}

/// A class on a path from an output, the e-node that leads there, and the e-nodes and operands of
/// it that were not looked at yet.
type Visited = (Class, NodeId, Vec<(NodeId, Class)>);

/// The youngest e-node of a cycle below the outputs, if there is one.
fn cycle(space: &Space, is_cut: &dyn Fn(NodeId) -> bool) -> Option<NodeId> {
    let mut finished = vec![false; space.numbers()];
    let mut place: Vec<usize> = vec![usize::MAX; space.numbers()];
    for output in space.graph().outputs() {
        let mut path: Vec<Visited> = Vec::new();
        let below = |class: Class| {
            let members = space.members(class).filter(|member| !is_cut(member.node)).map(|member| member.node);
            members.flat_map(|id| space.graph().node(id).inputs.iter().map(move |value| (id, space.class(*value)))).collect::<Vec<_>>()
        };
        let root = space.class(output.value);
        if finished[root as usize] {
            continue;
        }
        place[root as usize] = 0;
        path.push((root, output.value.node, below(root)));
        while let Some((class, _, open)) = path.last_mut() {
            let Some((by, next)) = open.pop() else {
                finished[*class as usize] = true;
                place[*class as usize] = usize::MAX;
                path.pop();
                continue;
            };
            if finished[next as usize] {
                continue;
            }
            if place[next as usize] != usize::MAX {
                let on = path[place[next as usize] + 1..].iter().map(|(_, by, _)| *by);
                return on.chain([by]).max();
            }
            place[next as usize] = path.len();
            path.push((next, by, below(next)));
        }
    }
    None
}
