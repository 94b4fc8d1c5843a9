//! The least cost, by trying everything.

use regraft_egraph::EGraph;

/// The least cost of an extraction, if there is one. Nothing of the library is used but
/// [`EGraph::check`].
pub fn least(egraph: &EGraph) -> Option<f64> {
    let mut members = vec![Vec::new(); egraph.classes().len()];
    (0..egraph.nodes().len()).filter(|&node| !egraph.nodes()[node].subsumed).for_each(|node| members[egraph.class_of(node)].push(node));
    let roots = egraph.roots().filter_map(|root| egraph.classes().iter().position(|name| name == root)).collect();
    let mut best = None;
    choose(egraph, &members, roots, &mut Vec::new(), &mut best);
    best
}

/// Tries all nodes of the next class that is needed and has none.
fn choose(egraph: &EGraph, members: &[Vec<usize>], mut needed: Vec<usize>, chosen: &mut Vec<usize>, best: &mut Option<f64>) {
    let class = loop {
        match needed.pop() {
            None => {
                let cost: f64 = chosen.iter().map(|&node| egraph.nodes()[node].cost).sum();
                if best.is_none_or(|best| cost < best) && egraph.check(chosen).is_ok() {
                    *best = Some(cost);
                }
                return;
            }
            Some(class) if chosen.iter().any(|&node| egraph.class_of(node) == class) => {}
            Some(class) => break class,
        }
    };
    for &node in &members[class] {
        chosen.push(node);
        let all = needed.iter().copied().chain(egraph.child_classes(node)).collect();
        choose(egraph, members, all, chosen, best);
        chosen.pop();
    }
}
