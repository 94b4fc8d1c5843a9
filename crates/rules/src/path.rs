//! Choices, made at random or enumerated one by one.

use regraft_ir::SplitMix64;

/// Where choices come from.
#[derive(Clone, Debug)]
pub(crate) enum Choices {
    /// A seeded generator.
    Random(Rng),
    /// A path through the tree of all choices.
    Path(Path),
}

impl Choices {
    /// One of `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        match self {
            Choices::Random(rng) => rng.below(n),
            Choices::Path(path) => path.below(n),
        }
    }

    /// The path, if it is one.
    pub(crate) fn path(&mut self) -> Option<&mut Path> {
        match self {
            Choices::Random(_) => None,
            Choices::Path(path) => Some(path),
        }
    }

    /// A number in [0, 1); one half on a path.
    pub(crate) fn unit(&mut self) -> f64 {
        match self {
            Choices::Random(rng) => rng.unit(),
            Choices::Path(_) => 0.5,
        }
    }
}

/// A path through a tree of choices that advances to the next one in lexicographic order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    /// The choice taken at each fork, and how many there are.
    forks: Vec<(u64, u64)>,
    /// Forks passed on this path.
    at: usize,
    /// Number of forks with given choices.
    given: usize,
}

impl Path {
    /// The first path that starts with the given choices.
    pub(crate) fn new(prefix: &[u64]) -> Path {
        Path { forks: prefix.iter().map(|digit| (*digit, u64::MAX)).collect(), at: 0, given: prefix.len() }
    }

    fn below(&mut self, n: u64) -> u64 {
        if n <= 1 {
            return 0;
        }
        if self.at == self.forks.len() {
            self.forks.push((0, n));
        }
        self.at += 1;
        self.forks[self.at - 1].0.min(n - 1)
    }

    /// Forks passed so far.
    pub(crate) fn passed(&self) -> usize {
        self.at
    }

    /// Passes forks up to the `to`-th, if all choices are as on the previous path; false if not.
    pub(crate) fn pass(&mut self, to: usize) -> bool {
        let same = to < self.forks.len().max(1);
        if same {
            self.at = to;
        }
        same
    }

    /// Advances to the next path that differs in a fork that was passed; false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.forks.truncate(self.at.max(self.given));
        self.at = 0;
        while self.forks.len() > self.given {
            let last = self.forks.len() - 1;
            if self.forks[last].0 + 1 < self.forks[last].1 {
                self.forks[last].0 += 1;
                return true;
            }
            self.forks.pop();
        }
        false
    }
}

/// Random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(SplitMix64);

impl Rng {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(SplitMix64(seed))
    }

    /// One of `0..n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.word() % n.max(1)
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_passes_every_leaf_once() {
        let mut path = Path::default();
        let mut seen = Vec::new();
        loop {
            // The second fork has as many branches as the first choice says.
            let first = path.below(3);
            let second = path.below(first + 1);
            seen.push((first, second));
            if !path.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]);
    }

    #[test]
    fn given_choices_stay() {
        let mut path = Path::new(&[1]);
        let mut seen = vec![(path.below(2), path.below(2))];
        while path.advance() {
            seen.push((path.below(2), path.below(2)));
        }
        assert_eq!(seen, [(1, 0), (1, 1)]);
    }
}
