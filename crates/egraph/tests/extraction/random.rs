//! Random e-graphs, the same for the same seed.

use regraft_egraph::{EGraph, Node};
use regraft_ir::SplitMix64;

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub classes: usize,
    /// Most nodes per class.
    pub members: usize,
    /// Most children per node.
    pub children: usize,
    /// Costs are whole numbers below this; 1 makes all of them 0.
    pub costs: usize,
    /// Share of the children that may be any class, and close cycles; others are later classes.
    pub cycles: f64,
}

/// A shape for brute force.
pub fn small(random: &mut SplitMix64) -> Shape {
    Shape {
        classes: 2 + random.below(7),
        members: 1 + random.below(4),
        children: 1 + random.below(3),
        costs: [1, 2, 3, 10, 1000][random.below(5)],
        cycles: [0.0, 0.2, 0.5, 1.0][random.below(4)],
    }
}

/// The nodes of an e-graph, and its roots.
pub fn nodes(shape: Shape, random: &mut SplitMix64) -> (Vec<Node>, Vec<String>) {
    let Shape { classes, members, children, costs, cycles } = shape;
    let count: Vec<usize> = (0..classes).map(|_| 1 + random.below(members)).collect();
    let mut nodes = Vec::new();
    for class in 0..classes {
        for member in 0..count[class] {
            let arity = random.below(children + 1);
            let mut drawn = Vec::new();
            for _ in 0..arity {
                let anywhere = random.unit() < cycles;
                let first = if anywhere { 0 } else { class + 1 };
                if first < classes {
                    let child = first + random.below(classes - first);
                    drawn.push(format!("{child}.{}", random.below(count[child])));
                }
            }
            nodes.push(Node {
                name: format!("{class}.{member}"),
                op: "f".into(),
                class: class.to_string(),
                children: drawn,
                cost: random.below(costs) as f64 / 8.0,
                subsumed: random.below(50) == 0,
            });
        }
    }
    let roots = (0..classes).filter(|&class| class == 0 || random.below(12) == 0).map(|class| class.to_string()).collect();
    (nodes, roots)
}

/// An e-graph for each seed.
pub fn egraph(shape: Shape, random: &mut SplitMix64) -> EGraph {
    let (nodes, roots) = nodes(shape, random);
    EGraph::new(nodes, &roots).expect("drawn e-graphs are well-formed")
}

/// The same nodes in another order.
pub fn shuffled(mut nodes: Vec<Node>, random: &mut SplitMix64) -> Vec<Node> {
    for at in (1..nodes.len()).rev() {
        nodes.swap(at, random.below(at + 1));
    }
    nodes
}
