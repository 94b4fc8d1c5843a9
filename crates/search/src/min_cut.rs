//! Minimum vertex cuts of undirected graphs, by maximum flow (Dinic 1970).

use std::collections::VecDeque;

/// More than all capacities together.
const UNLIMITED: u64 = u64::MAX / 4;

/// The vertices without which no path leads from `source` to `sink`, of least capacity in all: a
/// minimum vertex cut. Then, for each vertex, whether it is on the side of the source.
pub(crate) struct Cut {
    pub(crate) cut: Vec<usize>,
    pub(crate) is_before: Vec<bool>,
}

/// A minimum vertex cut between two vertices, of several the one nearest to the source; `None` if
/// they are neighbours or the same.
pub(crate) fn vertex_cut(neighbours: &[Vec<usize>], capacity: &[u64], source: usize, sink: usize) -> Option<Cut> {
    if source == sink || neighbours[source].contains(&sink) {
        return None;
    }
    // Each vertex is an arc from where it is entered (2v) to where it is left (2v + 1).
    let mut flow = Flow::new(2 * neighbours.len());
    for (vertex, near) in neighbours.iter().enumerate() {
        let through = if vertex == source || vertex == sink { UNLIMITED } else { capacity[vertex] };
        flow.arc(2 * vertex, 2 * vertex + 1, through);
        for other in near {
            flow.arc(2 * vertex + 1, 2 * other, UNLIMITED);
        }
    }
    flow.maximize(2 * source, 2 * sink + 1);
    let before = flow.reachable(2 * source);
    let vertices = 0..neighbours.len();
    let is_cut = |vertex: &usize| before[2 * vertex] && !before[2 * vertex + 1];
    Some(Cut { cut: vertices.clone().filter(is_cut).collect(), is_before: vertices.map(|vertex| before[2 * vertex + 1]).collect() })
}

/// A network with a flow.
struct Flow {
    /// Arcs that leave each vertex; those with odd numbers take back what the one before carries.
    leaving: Vec<Vec<usize>>,
    /// Where each arc leads, and how much more it can carry.
    arcs: Vec<(usize, u64)>,
}

impl Flow {
    fn new(vertices: usize) -> Flow {
        Flow { leaving: vec![Vec::new(); vertices], arcs: Vec::new() }
    }

    fn arc(&mut self, from: usize, to: usize, capacity: u64) {
        for (from, arc) in [(from, (to, capacity)), (to, (from, 0))] {
            self.leaving[from].push(self.arcs.len());
            self.arcs.push(arc);
        }
    }

    fn maximize(&mut self, source: usize, sink: usize) {
        loop {
            let levels = self.levels(source);
            if levels[sink] == usize::MAX {
                return;
            }
            let mut next = vec![0; levels.len()];
            while self.augment(source, sink, &levels, &mut next) {}
        }
    }

    /// Distance of each vertex from the source, along arcs that can carry more.
    fn levels(&self, source: usize) -> Vec<usize> {
        let mut levels = vec![usize::MAX; self.leaving.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            for arc in &self.leaving[vertex] {
                let (to, left) = self.arcs[*arc];
                if left > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[vertex] + 1;
                    queue.push_back(to);
                }
            }
        }
        levels
    }

    /// Sends more along one path of ascending levels; false if there is none.
    fn augment(&mut self, source: usize, sink: usize, levels: &[usize], next: &mut [usize]) -> bool {
        let mut path: Vec<usize> = Vec::new();
        let mut at = source;
        while at != sink {
            let arc = self.leaving[at].get(next[at]).copied();
            match arc {
                Some(arc) if self.arcs[arc].1 > 0 && levels[self.arcs[arc].0] == levels[at].saturating_add(1) => {
                    path.push(arc);
                    at = self.arcs[arc].0;
                }
                Some(_) => next[at] += 1,
                None => {
                    let Some(last) = path.pop() else { return false };
                    at = self.arcs[last ^ 1].0;
                    next[at] += 1;
                }
            }
        }
        let more = path.iter().map(|arc| self.arcs[*arc].1).min().unwrap_or(0);
        for arc in path {
            self.arcs[arc].1 -= more;
            self.arcs[arc ^ 1].1 += more;
        }
        more > 0
    }

    /// Which vertices more could flow to from here.
    fn reachable(&self, from: usize) -> Vec<bool> {
        self.levels(from).into_iter().map(|level| level != usize::MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regraft_ir::SplitMix64;

    fn undirected(vertices: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); vertices];
        for (a, b) in edges {
            neighbours[*a].push(*b);
            neighbours[*b].push(*a);
        }
        neighbours
    }

    #[test]
    fn a_chain_is_cut_at_its_weakest_vertex_nearest_to_the_source() {
        let chain = undirected(7, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
        let found = vertex_cut(&chain, &[9, 1, 5, 5, 1, 5, 9], 0, 6).expect("a cut");
        assert_eq!(found.cut, [1]);
        assert_eq!(found.is_before, [true, false, false, false, false, false, false]);
        assert!(vertex_cut(&chain, &[1; 7], 2, 3).is_none() && vertex_cut(&chain, &[1; 7], 2, 2).is_none());
    }

    #[test]
    fn no_cut_of_a_small_graph_is_cheaper() {
        let mut random = SplitMix64(3);
        for _ in 0..300 {
            let vertices = 3 + random.below(6);
            let pairs = (0..vertices).flat_map(|a| (0..a).map(move |b| (a, b)));
            let edges: Vec<(usize, usize)> = pairs.filter(|_| random.below(3) == 0).collect();
            let capacity: Vec<u64> = (0..vertices).map(|_| 1 + random.below(5) as u64).collect();
            let neighbours = undirected(vertices, &edges);
            let separates = |cut: usize| {
                let (mut seen, mut stack) = (cut | 1, vec![0]);
                while let Some(at) = stack.pop() {
                    for to in &neighbours[at] {
                        if seen & (1 << to) == 0 {
                            seen |= 1 << to;
                            stack.push(*to);
                        }
                    }
                }
                seen & (1 << 1) == 0 || cut & (1 << 1) != 0
            };
            let Some(found) = vertex_cut(&neighbours, &capacity, 0, 1) else { continue };
            let mask = found.cut.iter().map(|vertex| 1usize << vertex).sum::<usize>();
            let weigh = |cut: usize| (0..vertices).filter(|v| cut & (1 << v) != 0).map(|v| capacity[v]).sum::<u64>();
            let least = (0..1usize << vertices).filter(|cut| cut & 3 == 0 && separates(*cut)).map(weigh).min();
            assert!(separates(mask) && mask & 3 == 0);
            assert_eq!(Some(weigh(mask)), least, "{edges:?} {capacity:?}");
        }
    }
}
