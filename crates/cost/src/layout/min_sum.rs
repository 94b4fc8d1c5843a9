//! The cheapest labelling of variables whose costs are tables over few of them.
//!
//! Variables are eliminated one after the other (bucket elimination: Dechter, "Bucket elimination:
//! a unifying framework for reasoning", Artificial Intelligence 113, 1999): the tables that speak
//! of one become a table over the others in them. Where that table would be too large, the bucket
//! is divided (mini-buckets: Dechter and Rish, JACM 50(2), 2003), which leaves a lower bound; a
//! labelling is then read off and improved one variable at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

use crate::model::Ns;

/// Variables of a table.
type Scope = SmallVec<[u32; 4]>;

/// Entries of a table: most have two variables of two labels.
type Costs = SmallVec<[Ns; 4]>;

/// Costs of the labels of a few variables, the last one fastest.
#[derive(Clone, Debug)]
struct Table {
    scope: Scope,
    costs: Costs,
}

/// Variables, each with a number of labels, and what labels cost. Sums saturate; [`Ns::MAX`] is
/// forbidden.
#[derive(Clone, Debug, Default)]
pub struct MinSum {
    labels: Vec<u32>,
    tables: Vec<Table>,
    constant: Ns,
}

/// A labelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelling {
    /// Label of each variable.
    pub labels: Vec<u32>,
    /// Its cost.
    pub total: Ns,
    /// No labelling costs less; equal to `total` if it is the cheapest.
    pub bound: Ns,
}

/// The tables that a variable was eliminated with: all of them, or, if together they were too
/// large, groups.
struct Bucket {
    variable: u32,
    tables: Vec<Table>,
}

impl MinSum {
    /// Adds a variable with at least one label.
    pub fn variable(&mut self, labels: usize) -> u32 {
        self.labels.push(labels as u32);
        self.labels.len() as u32 - 1
    }

    /// Adds a cost that no label changes.
    pub fn constant(&mut self, cost: Ns) {
        self.constant = self.constant.saturating_add(cost);
    }

    /// Adds the cost of every label of a variable.
    pub fn unary(&mut self, of: u32, cost: impl FnMut(usize) -> Ns) {
        let costs = (0..self.labels[of as usize] as usize).map(cost).collect();
        self.tables.push(Table { scope: SmallVec::from_slice(&[of]), costs });
    }

    /// Adds the cost of every pair of labels of two different variables.
    pub fn pair(&mut self, (a, b): (u32, u32), mut cost: impl FnMut(usize, usize) -> Ns) {
        let (rows, columns) = (self.labels[a as usize] as usize, self.labels[b as usize] as usize);
        let costs = (0..rows * columns).map(|at| cost(at / columns, at % columns)).collect();
        self.tables.push(Table { scope: SmallVec::from_slice(&[a, b]), costs });
    }

    /// What a labelling costs.
    pub fn cost(&self, labels: &[u32]) -> Ns {
        self.tables.iter().fold(self.constant, |sum, table| sum.saturating_add(table.at(&self.labels, labels)))
    }

    /// The least cost, if no table of more than `limit` entries is needed to find it. In any case a
    /// lower bound.
    pub fn least(&self, limit: usize) -> (Ns, bool) {
        let (bound, is_exact, _) = self.eliminate(limit, false);
        (bound, is_exact)
    }

    /// A labelling, the cheapest one if no table of more than `limit` entries is needed to find it.
    pub fn solve(&self, limit: usize) -> Labelling {
        let (bound, is_exact, buckets) = self.eliminate(limit, true);
        let mut labels = vec![0; self.labels.len()];
        for bucket in buckets.iter().rev() {
            labels[bucket.variable as usize] = self.best(bucket.variable, bucket.tables.iter(), &mut labels);
        }
        if !is_exact {
            self.improve(&mut labels);
        }
        Labelling { total: self.cost(&labels), labels, bound }
    }

    /// The label of one variable that is cheapest in these tables, the others as they are; the
    /// first of several.
    fn best<'t>(&self, variable: u32, tables: impl Iterator<Item = &'t Table> + Clone, labels: &mut [u32]) -> u32 {
        let cost = |label: u32, labels: &mut [u32]| {
            labels[variable as usize] = label;
            tables.clone().fold(0, |sum: Ns, table| sum.saturating_add(table.at(&self.labels, labels)))
        };
        let all = (0..self.labels[variable as usize]).map(|label| (cost(label, labels), label));
        all.min().map_or(0, |(_, label)| label)
    }

    /// Relabels one variable at a time until that saves nothing.
    fn improve(&self, labels: &mut [u32]) {
        let mut of: Vec<Vec<&Table>> = vec![Vec::new(); self.labels.len()];
        for table in &self.tables {
            table.scope.iter().for_each(|variable| of[*variable as usize].push(table));
        }
        loop {
            let before = self.cost(labels);
            for variable in 0..labels.len() as u32 {
                labels[variable as usize] = self.best(variable, of[variable as usize].iter().copied(), labels);
            }
            if self.cost(labels) >= before {
                return;
            }
        }
    }

    /// A lower bound of all costs, whether it is reached, and, if asked for, what each variable was
    /// eliminated with, in order.
    fn eliminate(&self, limit: usize, keep: bool) -> (Ns, bool, Vec<Bucket>) {
        let mut tables: Vec<Option<Table>> = self.tables.iter().cloned().map(Some).collect();
        let mut of: Vec<Vec<u32>> = vec![Vec::new(); self.labels.len()];
        for (at, table) in self.tables.iter().enumerate() {
            table.scope.iter().for_each(|variable| of[*variable as usize].push(at as u32));
        }
        let (mut bound, mut is_exact, mut buckets) = (self.constant, true, Vec::new());
        let mut queue: BinaryHeap<Reverse<(u64, u32)>> =
            (0..self.labels.len() as u32).map(|variable| Reverse((self.size(&of[variable as usize], &tables), variable))).collect();
        let mut is_done = vec![false; self.labels.len()];
        while let Some(Reverse((size, variable))) = queue.pop() {
            if is_done[variable as usize] {
                continue;
            }
            let now = self.size(&of[variable as usize], &tables);
            if now > size {
                queue.push(Reverse((now, variable)));
                continue;
            }
            is_done[variable as usize] = true;
            let bucket: Vec<Table> =
                std::mem::take(&mut of[variable as usize]).iter().filter_map(|at| tables[*at as usize].take()).collect();
            let groups = self.groups(&bucket, limit);
            is_exact &= groups.len() <= 1;
            for group in groups {
                let message = self.message(variable, &group);
                if message.scope.is_empty() {
                    bound = bound.saturating_add(message.costs[0]);
                    continue;
                }
                for other in message.scope.iter() {
                    let known = &mut of[*other as usize];
                    known.retain(|at| tables[*at as usize].is_some());
                    known.push(tables.len() as u32);
                }
                let changed = message.scope.clone();
                tables.push(Some(message));
                for other in changed {
                    queue.push(Reverse((self.size(&of[other as usize], &tables), other)));
                }
            }
            if keep {
                buckets.push(Bucket { variable, tables: bucket });
            }
        }
        (bound, is_exact, buckets)
    }

    /// Entries of the table over all variables in these tables.
    fn size(&self, of: &[u32], tables: &[Option<Table>]) -> u64 {
        let mut scope = Scope::new();
        for table in of.iter().filter_map(|at| tables[*at as usize].as_ref()) {
            scope.extend(table.scope.iter().copied());
        }
        scope.sort_unstable();
        scope.dedup();
        scope.iter().fold(1, |size, variable| u64::saturating_mul(size, u64::from(self.labels[*variable as usize])))
    }

    /// The tables in groups whose joint tables have at most `limit` entries each, if no single
    /// table has more.
    fn groups<'t>(&self, bucket: &'t [Table], limit: usize) -> Vec<Vec<&'t Table>> {
        let size = |scope: &Scope| scope.iter().fold(1usize, |size, one| size.saturating_mul(self.labels[*one as usize] as usize));
        let mut groups: Vec<(Scope, Vec<&Table>)> = Vec::new();
        for table in bucket {
            let joint = |scope: &Scope| {
                let mut joint: Scope = scope.iter().chain(&table.scope).copied().collect();
                joint.sort_unstable();
                joint.dedup();
                joint
            };
            match groups.iter_mut().find(|(scope, _)| size(&joint(scope)) <= limit) {
                Some((scope, group)) => {
                    *scope = joint(scope);
                    group.push(table);
                }
                None => groups.push((joint(&Scope::new()), vec![table])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// The least sum of tables for all labels of the variables in them but one.
    fn message(&self, variable: u32, tables: &[&Table]) -> Table {
        let mut scope: Scope = tables.iter().flat_map(|table| table.scope.iter().copied()).filter(|one| *one != variable).collect();
        scope.sort_unstable();
        scope.dedup();
        let count = |one: &u32| self.labels[*one as usize] as usize;
        let entries = scope.iter().map(count).product();
        // How far one label more of each variable, the eliminated one last, is in each table.
        let steps: Vec<SmallVec<[usize; 5]>> =
            tables.iter().map(|table| scope.iter().chain([&variable]).map(|one| table.step(&self.labels, *one)).collect()).collect();
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, tables.len());
        let mut labels: SmallVec<[usize; 4]> = SmallVec::from_elem(0, scope.len());
        let mut costs = Costs::with_capacity(entries);
        loop {
            let sum = |label: usize| {
                let entry = |(one, table): (usize, &&Table)| table.costs[at[one] + label * steps[one][scope.len()]];
                tables.iter().enumerate().map(entry).fold(0, Ns::saturating_add)
            };
            costs.push((0..count(&variable)).map(sum).min().unwrap_or(Ns::MAX));
            let Some(turn) = (0..scope.len()).rev().find(|axis| labels[*axis] + 1 < count(&scope[*axis])) else { break };
            for axis in turn..scope.len() {
                let back = if axis == turn { 0 } else { std::mem::take(&mut labels[axis]) };
                for (one, steps) in steps.iter().enumerate() {
                    at[one] -= back * steps[axis];
                }
            }
            labels[turn] += 1;
            for (one, steps) in steps.iter().enumerate() {
                at[one] += steps[turn];
            }
        }
        Table { scope, costs }
    }
}

impl Table {
    /// How far one label more of a variable is in the table.
    fn step(&self, labels: &[u32], variable: u32) -> usize {
        let Some(axis) = self.scope.iter().position(|one| *one == variable) else { return 0 };
        self.scope[axis + 1..].iter().map(|one| labels[*one as usize] as usize).product()
    }

    /// The cost under a labelling.
    fn at(&self, labels: &[u32], of: &[u32]) -> Ns {
        let at = self.scope.iter().fold(0, |at, one| at * labels[*one as usize] as usize + of[*one as usize] as usize);
        self.costs[at]
    }
}

#[cfg(test)]
mod tests {
    use regraft_ir::SplitMix64;

    use super::*;

    fn random(random: &mut SplitMix64) -> MinSum {
        let mut problem = MinSum::default();
        for _ in 0..1 + random.below(7) as u32 {
            let labels = 1 + random.below(3);
            problem.variable(labels);
        }
        let count = problem.labels.len();
        for _ in 0..random.below(3 * count) {
            let (a, b) = (random.below(count) as u32, random.below(count) as u32);
            let mut draw = |_: usize, _: usize| if random.below(9) == 0 { Ns::MAX } else { random.below(20) as Ns };
            if a == b {
                problem.unary(a, |label| draw(label, 0));
            } else {
                problem.pair((a, b), &mut draw);
            }
        }
        problem
    }

    fn brute_force(problem: &MinSum) -> Ns {
        let mut labels = vec![0; problem.labels.len()];
        let mut best = Ns::MAX;
        loop {
            best = best.min(problem.cost(&labels));
            let Some(turn) = (0..labels.len()).find(|at| labels[*at] + 1 < problem.labels[*at]) else { return best };
            labels[turn] += 1;
            labels[..turn].fill(0);
        }
    }

    #[test]
    fn elimination_finds_what_trying_all_labellings_finds() {
        let mut draw = SplitMix64(7);
        let mut split = 0;
        for _ in 0..2_000 {
            let problem = random(&mut draw);
            let least = brute_force(&problem);
            let found = problem.solve(usize::MAX);
            assert_eq!((found.total, found.bound, problem.least(usize::MAX)), (least, least, (least, true)));
            assert_eq!(problem.cost(&found.labels), found.total);
            // With tables too small, what is found is a labelling, and the bound is one.
            let rough = problem.solve(4);
            assert!(rough.bound <= least && least <= rough.total, "{rough:?} {least}");
            assert_eq!(problem.cost(&rough.labels), rough.total);
            split += usize::from(rough.bound < rough.total);
        }
        assert!(split > 50, "{split}");
    }
}
