//! Kinds of a rule's variables: ranks, and whether they are images or weights.

use std::fmt;

use crate::operator::Operator;
use crate::plan::{Leaf, Plan};

/// Maximum number of typings of a rule to try; those with a single rank come first.
pub const MOST_TYPINGS: usize = 12;
/// Maximum number of partial typings to examine.
const MOST_STEPS: usize = 20_000;
/// Ranks, in the order they are tried.
const RANKS: [usize; 4] = [4, 2, 3, 1];

/// The kind of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Rank 0.
    Scalar,
    /// Rank 1.
    Vector,
    /// Rank 2.
    Matrix,
    /// Rank 3: a stack of matrices.
    Stack,
    /// Rank 4, convolved or pooled: `[N, C, H, W]`.
    Image,
    /// Rank 4, weights of a convolution: `[O, I, h, w]`.
    Kernel,
    /// Rank 4, neither convolved nor weights.
    Tensor,
}

impl Kind {
    /// Number of axes.
    pub fn rank(self) -> usize {
        match self {
            Kind::Scalar => 0,
            Kind::Vector => 1,
            Kind::Matrix => 2,
            Kind::Stack => 3,
            Kind::Image | Kind::Kernel | Kind::Tensor => 4,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Scalar => "scalar",
            Kind::Vector => "vector",
            Kind::Matrix => "matrix",
            Kind::Stack => "stack of matrices",
            Kind::Image => "image",
            Kind::Kernel => "kernel",
            Kind::Tensor => "tensor of 4 axes",
        })
    }
}

/// How a slot is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Roles {
    image: bool,
    weights: bool,
    factor: bool,
}

/// The typings under which all operators of both sides fit: one kind per leaf.
pub fn typings(plan: &Plan) -> Vec<Vec<Kind>> {
    let roles = roles(plan);
    let mut search = Search { plan, roles: &roles, ranks: vec![0; plan.slots], found: Vec::new(), steps: 0, most: usize::MAX };
    for rank in RANKS {
        search.leaf(0, &[rank]);
    }
    search.most = MOST_TYPINGS.max(search.found.len());
    search.leaf(0, &RANKS);
    search.found.iter().map(|ranks| ranks.iter().zip(&roles).map(|(rank, roles)| kind(*rank, *roles)).collect()).collect()
}

fn kind(rank: usize, roles: Roles) -> Kind {
    match rank {
        0 => Kind::Scalar,
        1 => Kind::Vector,
        2 => Kind::Matrix,
        3 => Kind::Stack,
        _ if roles.weights => Kind::Kernel,
        _ if roles.image => Kind::Image,
        _ => Kind::Tensor,
    }
}

fn roles(plan: &Plan) -> Vec<Roles> {
    let mut roles = vec![Roles::default(); plan.slots];
    for step in plan.steps.iter().rev() {
        let inherited = roles[step.results];
        for (at, slot) in step.operands.iter().enumerate() {
            let role = &mut roles[*slot];
            match (&step.operator, at) {
                (Operator::Conv { .. }, 0) | (Operator::Pool { .. }, _) => role.image = true,
                (Operator::Conv { .. } | Operator::Enlarge { .. } | Operator::MergeGroups { .. }, _) => role.weights = true,
                (Operator::Scale, 1) => role.factor = true,
                _ => *role = Roles { image: role.image || inherited.image, weights: role.weights || inherited.weights, ..*role },
            }
        }
    }
    roles
}

struct Search<'a> {
    plan: &'a Plan,
    roles: &'a [Roles],
    ranks: Vec<usize>,
    found: Vec<Vec<usize>>,
    steps: usize,
    most: usize,
}

impl Search<'_> {
    /// Tries `ranks` for the leaf and all later ones.
    fn leaf(&mut self, leaf: usize, ranks: &[usize]) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.found.len() >= self.most {
            return;
        }
        let Some(kind) = self.plan.leaves.get(leaf) else {
            let chosen = self.ranks[..self.plan.leaves.len()].to_vec();
            if !self.found.contains(&chosen) {
                self.found.push(chosen);
            }
            return;
        };
        let choices = match kind {
            Leaf::Constant(Operator::PoolKernel { .. } | Operator::IdentityKernel { .. }) => &[4],
            Leaf::Constant(Operator::IdentityMatrix) => &[2],
            Leaf::Constant(_) => &RANKS[..],
            Leaf::Variable(_) if self.roles[leaf].factor => &[0],
            Leaf::Variable(_) => ranks,
        };
        for rank in choices {
            self.ranks[leaf] = *rank;
            if self.fits(leaf) {
                self.leaf(leaf + 1, ranks);
            }
        }
    }

    /// Infers the ranks of all results that are now determined.
    fn fits(&mut self, leaf: usize) -> bool {
        for step in &self.plan.steps[self.plan.ready[leaf].clone()] {
            let operands: Vec<usize> = step.operands.iter().map(|slot| self.ranks[*slot]).collect();
            let Some(rank) = result(&step.operator, &operands) else { return false };
            self.ranks[step.results..step.results + step.operator.results()].fill(rank);
        }
        true
    }
}

/// The rank of the results of an operator.
fn result(operator: &Operator, operands: &[usize]) -> Option<usize> {
    let first = operands.first().copied();
    match operator {
        Operator::Conv { .. } | Operator::Pool { .. } | Operator::Enlarge { .. } | Operator::MergeGroups { .. } => {
            operands.iter().all(|r| *r == 4).then_some(4)
        }
        Operator::MatMul { .. } => first.filter(|r| (2..=3).contains(r) && operands.iter().all(|o| o == r)),
        Operator::Binary(_) => operands.iter().copied().max().filter(|r| *r > 0),
        Operator::Unary(_) => first.filter(|r| *r > 0),
        Operator::Scale => first.filter(|r| *r > 0 && operands.get(1) == Some(&0)),
        Operator::Concat { axis, rank } => {
            first.filter(|r| r > axis && rank.is_none_or(|wanted| wanted == *r) && operands.iter().all(|o| o == r))
        }
        Operator::Split { axis } => first.filter(|r| r > axis),
        Operator::Transpose { perm } => first.filter(|r| *r == perm.len()),
        _ => None,
    }
}
