//! In which order an operator is best computed: views, products with weights, and sums, with the
//! fewest multiplications.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::coordinate::{Coord, Coordinate, Coordinates};
use crate::operator::Operator;
use crate::size::Size;
use crate::spec::Layer;
use crate::state::Coords;

/// One stage: what is done to the tensor that began as the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// An axis becomes those that it is made of: a split, window, rotation or stride.
    Open(Coord),
    /// Two axes, quotient and remainder of this one, become it.
    Close(Coord, Size),
    /// The tensor is repeated along a new axis.
    Repeat(Coord),
    /// Multiplies by a weight, and sums.
    Contract {
        /// Which weight.
        weight: usize,
        /// Over what is summed at once.
        sums: Coords,
    },
    /// Sums.
    Sum(Coords),
}

/// An order of computing, with its cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// From the input to the output.
    pub stages: Vec<Stage>,
    /// Multiplications in all layers together, the batch included.
    pub macs: f64,
    /// Elements of the largest tensor between two stages, in the layer where it is largest.
    pub largest: f64,
}

/// What was computed so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    /// The tensor's axes, ascending.
    axes: Coords,
    /// Weights that are still to come, one bit each.
    left: u32,
}

/// Tensors that are considered before the search gives up.
const NODES: usize = 20_000;
/// How many multiplications moving an element costs, when plans are compared.
const MOVED: f64 = 0.25;

/// A cost, ordered.
#[derive(Clone, Copy, PartialEq)]
struct Cost(f64);

impl Eq for Cost {}

impl Ord for Cost {
    fn cmp(&self, other: &Cost) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Cost) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The cheapest way to a tensor that is known.
#[derive(Clone, Debug)]
struct Way {
    cost: f64,
    macs: f64,
    /// The tensor before, by place, and what was done to it.
    last: Option<(usize, Stage)>,
}

impl Plan {
    /// The best order for all layers together; `None` if none computes the operator.
    pub fn of(operator: &Operator, coordinates: &mut Coordinates<'_>) -> Option<Plan> {
        let dropped = operator.state(coordinates).dropped;
        let closure = operator.closure(coordinates);
        let planner = Planner { operator, coordinates, dropped, closure };
        planner.best()
    }
}

impl Plan {
    /// The multiplications that it takes at the sizes of one layer, the batch included.
    pub fn macs_at(&self, operator: &Operator, layer: &Layer, coordinates: &Coordinates<'_>) -> f64 {
        let spec = coordinates.spec;
        let volume = |axes: &Coords| -> f64 {
            let size: Size = axes.iter().map(|axis| coordinates.size(*axis)).chain(spec.batch.iter().copied()).collect();
            spec.real(size, layer)
        };
        let mut axes = operator.input.clone();
        let mut macs = 0.0;
        for stage in &self.stages {
            axes = stage.at_work(&axes, operator, coordinates);
            if matches!(stage, Stage::Contract { .. } | Stage::Sum(_)) {
                macs += volume(&axes);
            }
            axes.retain(|axis| !stage.sums().contains(axis));
        }
        macs
    }
}

impl Stage {
    /// The axes that it works on, ascending, for a tensor with these: those that it leaves, and
    /// what it sums over.
    pub fn at_work(&self, axes: &[Coord], operator: &Operator, coordinates: &Coordinates<'_>) -> Coords {
        let mut axes: Coords = axes.iter().copied().collect();
        match self {
            Stage::Open(axis) => {
                axes.retain(|other| other != axis);
                axes.extend(coordinates.parts(*axis));
            }
            Stage::Close(whole, block) => {
                let part = |axis: Coord| matches!(coordinates.get(axis), Coordinate::Quotient(a, b) | Coordinate::Remainder(a, b) if a == *whole && b == *block);
                axes.retain(|axis| !part(*axis));
                axes.push(*whole);
            }
            Stage::Repeat(axis) => axes.push(*axis),
            Stage::Contract { weight, .. } => axes.extend(operator.weights[*weight].iter().copied()),
            Stage::Sum(_) => {}
        }
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// What it sums over.
    pub fn sums(&self) -> &[Coord] {
        match self {
            Stage::Contract { sums, .. } | Stage::Sum(sums) => sums,
            Stage::Open(_) | Stage::Close(..) | Stage::Repeat(_) => &[],
        }
    }
}

struct Planner<'o, 'c, 's> {
    operator: &'o Operator,
    coordinates: &'c mut Coordinates<'s>,
    dropped: Coords,
    closure: Vec<Coord>,
}

impl Planner<'_, '_, '_> {
    fn best(mut self) -> Option<Plan> {
        let mut axes = self.operator.input.clone();
        axes.sort_unstable();
        axes.dedup();
        let start = Node { axes, left: (1 << self.operator.weights.len()) - 1 };
        let goal: Coords = self.coordinates.outputs().collect();
        let mut nodes = vec![start.clone()];
        let mut index: FxHashMap<Node, usize> = FxHashMap::from_iter([(start, 0)]);
        let mut best = vec![Way { cost: 0.0, macs: 0.0, last: None }];
        let mut queue = BinaryHeap::from([(Reverse(Cost(0.0)), 0usize)]);
        while let Some((Reverse(Cost(cost)), at)) = queue.pop() {
            if cost > best[at].cost {
                continue;
            }
            let node = nodes[at].clone();
            if node.left == 0 && node.axes == goal {
                return Some(self.traced(&nodes, &best, at));
            }
            for (stage, next) in self.next(&node) {
                let (macs, moved) = self.cost(&node, &stage, &next);
                let total = cost + macs + MOVED * moved;
                let place = *index.entry(next.clone()).or_insert_with(|| {
                    nodes.push(next);
                    best.push(Way { cost: f64::INFINITY, macs: 0.0, last: None });
                    nodes.len() - 1
                });
                if nodes.len() > NODES {
                    return None;
                }
                if total < best[place].cost {
                    best[place] = Way { cost: total, macs: best[at].macs + macs, last: Some((at, stage)) };
                    queue.push((Reverse(Cost(total)), place));
                }
            }
        }
        None
    }

    fn traced(&self, nodes: &[Node], best: &[Way], mut at: usize) -> Plan {
        let macs = best[at].macs;
        let mut largest: f64 = 0.0;
        let mut stages = Vec::new();
        loop {
            largest = largest.max(self.most(&nodes[at].axes));
            let Some((before, stage)) = &best[at].last else { break };
            stages.push(stage.clone());
            at = *before;
        }
        stages.reverse();
        Plan { stages, macs, largest }
    }

    /// All that can be done next.
    fn next(&mut self, node: &Node) -> Vec<(Stage, Node)> {
        let mut found = Vec::new();
        let with = |axes: &Coords, out: &[Coord], new: &[Coord]| -> Coords {
            let mut axes: Coords = axes.iter().copied().filter(|axis| !out.contains(axis)).chain(new.iter().copied()).collect();
            axes.sort_unstable();
            axes.dedup();
            axes
        };
        for &axis in &node.axes {
            match self.coordinates.get(axis) {
                Coordinate::Split(..) | Coordinate::Unfold(..) | Coordinate::Shift(_) | Coordinate::Stride(..) => {
                    let parts: SmallVec<[Coord; 2]> = self.coordinates.parts(axis).collect();
                    found.push((Stage::Open(axis), Node { axes: with(&node.axes, &[axis], &parts), left: node.left }));
                }
                Coordinate::Quotient(whole, block) => {
                    let rest = self.coordinates.make(Coordinate::Remainder(whole, block));
                    if node.axes.contains(&rest) {
                        found.push((Stage::Close(whole, block), Node { axes: with(&node.axes, &[axis, rest], &[whole]), left: node.left }));
                    } else if self.dropped.contains(&rest) {
                        found.push((Stage::Repeat(rest), Node { axes: with(&node.axes, &[], &[rest]), left: node.left }));
                    }
                }
                Coordinate::Remainder(whole, block) => {
                    let rest = self.coordinates.make(Coordinate::Quotient(whole, block));
                    if !node.axes.contains(&rest) && self.dropped.contains(&rest) && !self.closure.contains(&rest) {
                        found.push((Stage::Repeat(rest), Node { axes: with(&node.axes, &[], &[rest]), left: node.left }));
                    }
                }
                Coordinate::Output(_) | Coordinate::Reduce(..) => {}
            }
        }
        let sums = self.summable(&node.axes, node.left);
        for &sum in &sums {
            found.push((Stage::Sum([sum].into_iter().collect()), Node { axes: with(&node.axes, &[sum], &[]), left: node.left }));
        }
        for weight in (0..self.operator.weights.len()).filter(|w| node.left >> w & 1 == 1) {
            let left = node.left & !(1 << weight);
            let axes = with(&node.axes, &[], &self.operator.weights[weight]);
            let sums = self.summable(&axes, left);
            found.push((Stage::Contract { weight, sums: sums.clone() }, Node { axes: with(&axes, &sums, &[]), left }));
        }
        found
    }

    /// Sums of which nothing that is still to come knows.
    fn summable(&self, axes: &Coords, left: u32) -> Coords {
        let coming = |sum: Coord| {
            let weights = self.operator.weights.iter().enumerate().filter(|(w, _)| left >> w & 1 == 1);
            weights.flat_map(|(_, weight)| weight).any(|coord| self.coordinates.contains(*coord, sum))
        };
        axes.iter()
            .copied()
            .filter(|sum| self.coordinates.is_reduce(*sum))
            .filter(|sum| !axes.iter().any(|axis| axis != sum && self.coordinates.contains(*axis, *sum)) && !coming(*sum))
            .collect()
    }

    /// Multiplications, and elements written.
    fn cost(&self, node: &Node, stage: &Stage, next: &Node) -> (f64, f64) {
        match stage {
            Stage::Contract { weight, .. } => {
                let mut axes: Coords = node.axes.iter().chain(&self.operator.weights[*weight]).copied().collect();
                axes.sort_unstable();
                axes.dedup();
                (self.volume(&axes), self.volume(&next.axes))
            }
            Stage::Sum(_) => (self.volume(&node.axes), self.volume(&next.axes)),
            // Reshaping moves nothing, and what is transposed for it depends on the stages around.
            Stage::Open(axis) if matches!(self.coordinates.get(*axis), Coordinate::Split(..)) => (0.0, 0.0),
            Stage::Close(..) => (0.0, 0.0),
            // A convolution slides its windows itself, but where a window's position is an axis
            // already.
            Stage::Open(axis) if self.is_free_window(*axis, node) => (0.0, 0.0),
            Stage::Open(_) | Stage::Repeat(_) => (0.0, self.volume(&next.axes)),
        }
    }

    fn is_free_window(&self, axis: Coord, node: &Node) -> bool {
        matches!(self.coordinates.get(axis), Coordinate::Unfold(a, b) if !node.axes.contains(&a) && !node.axes.contains(&b))
    }

    fn size(&self, axes: &[Coord]) -> Size {
        axes.iter().map(|axis| self.coordinates.size(*axis)).chain(self.coordinates.spec.batch.iter().copied()).collect()
    }

    /// Elements, in all layers together.
    fn volume(&self, axes: &[Coord]) -> f64 {
        let (size, spec) = (self.size(axes), self.coordinates.spec);
        spec.layers.iter().map(|layer| spec.real(size, layer) * layer.count as f64).sum()
    }

    /// Elements, in the layer with the most.
    fn most(&self, axes: &[Coord]) -> f64 {
        let (size, spec) = (self.size(axes), self.coordinates.spec);
        spec.layers.iter().map(|layer| spec.real(size, layer)).fold(0.0, f64::max)
    }
}
