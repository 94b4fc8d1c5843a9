//! Pareto fronts: what nothing else is better than in every respect.

/// Points of which none is worse than another in every respect; smaller numbers are better.
#[derive(Clone, Debug)]
pub struct Front<T, const N: usize> {
    points: Vec<([f64; N], T)>,
    /// All points that were offered, for ranks.
    offered: Vec<[f64; N]>,
}

impl<T, const N: usize> Default for Front<T, N> {
    fn default() -> Self {
        Front { points: vec![], offered: vec![] }
    }
}

/// Whether one point is at least as good in every respect, and better in one.
pub fn dominates<const N: usize>(a: &[f64; N], b: &[f64; N]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a != b
}

impl<T, const N: usize> Front<T, N> {
    /// Offers a point; whether it is on the front.
    pub fn offer(&mut self, at: [f64; N], what: T) -> bool {
        self.offered.push(at);
        if self.points.iter().any(|(other, _)| dominates(other, &at) || *other == at) {
            return false;
        }
        self.points.retain(|(other, _)| !dominates(&at, other));
        self.points.push((at, what));
        true
    }

    /// How good a point is beside all that were offered, from 0 to 1: 1 if none of them dominates
    /// it.
    pub fn rank(&self, at: &[f64; N]) -> f64 {
        let above = self.offered.iter().filter(|other| dominates(other, at)).count();
        1.0 - above as f64 / self.offered.len().max(1) as f64
    }

    /// The points, by the first respect.
    pub fn points(&self) -> Vec<&([f64; N], T)> {
        let mut points: Vec<_> = self.points.iter().collect();
        points.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_keeps_what_nothing_dominates() {
        let mut front = Front::default();
        assert!(front.offer([1.0, 5.0], "a"));
        assert!(front.offer([5.0, 1.0], "b"));
        assert!(!front.offer([6.0, 1.0], "c"));
        assert!(!front.offer([1.0, 5.0], "again"));
        assert!(front.offer([1.0, 4.0], "d"));
        assert_eq!(front.points().iter().map(|point| point.1).collect::<Vec<_>>(), ["d", "b"]);
        assert_eq!(front.rank(&[0.0, 0.0]), 1.0);
        assert!(front.rank(&[9.0, 9.0]) == 0.0 && front.rank(&[2.0, 4.5]) < 1.0);
    }
}
