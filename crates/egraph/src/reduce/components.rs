//! Strongly connected components.

use crate::problem::Problem;

/// The number of each class's strongly connected component, where classes lead to the children of
/// their nodes (Tarjan 1972).
pub(crate) fn components(problem: &Problem) -> Vec<u32> {
    const NEW: u32 = u32::MAX;
    let classes = problem.classes();
    let next: Vec<Vec<u32>> = (0..classes as u32)
        .map(|class| problem.members.get(class).iter().flat_map(|&node| problem.children.get(node)).copied().collect())
        .collect();
    let (mut index, mut low, mut component) = (vec![NEW; classes], vec![0u32; classes], vec![NEW; classes]);
    let (mut stack, mut visited, mut found) = (Vec::new(), 0, 0);
    for start in 0..classes as u32 {
        let mut path: Vec<(u32, usize)> = if index[start as usize] == NEW { vec![(start, 0)] } else { Vec::new() };
        while let Some((class, at)) = path.last_mut() {
            let class = *class as usize;
            if *at == 0 && index[class] == NEW {
                (index[class], low[class]) = (visited, visited);
                visited += 1;
                stack.push(class);
            }
            if let Some(&child) = next[class].get(*at) {
                *at += 1;
                if index[child as usize] == NEW {
                    path.push((child, 0));
                } else if component[child as usize] == NEW {
                    low[class] = low[class].min(index[child as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[class]);
            }
            if low[class] == index[class] {
                while let Some(member) = stack.pop() {
                    component[member] = found;
                    if member == class {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}
