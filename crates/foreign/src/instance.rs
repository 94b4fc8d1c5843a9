//! Instances of a rule: concrete sizes for its leaves that make both sides well-typed.

use regraft_ir::Dim;
use smallvec::SmallVec;

use crate::facts::Facts;
use crate::guard::Guards;
use crate::infer::{Misfit, Typed, Typing};
use crate::kind::Kind;
use crate::operator::Operator;
use crate::plan::{Leaf, Plan};
use crate::random::Random;
use crate::reading::Reading;
use crate::shapes::shapes;
use crate::size::{Obligation, Size, Sizes};

/// Restarts when no shape fits a leaf.
const ATTEMPTS: usize = 24;

/// Concrete sizes for every leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    /// Sizes of the leaves, in order.
    pub shapes: Vec<Vec<i64>>,
    /// How ambiguities are read.
    pub reading: Reading,
    /// The guards it satisfies.
    pub guards: Guards,
    /// Groups of the convolutions, in order of computation.
    pub groups: Vec<i64>,
}

impl Instance {
    /// Total number of elements of the leaves: the fewer, the easier to inspect.
    pub fn elements(&self) -> i64 {
        self.shapes.iter().map(|s| s.iter().product::<i64>()).sum()
    }

    /// The leaves' sizes, without symbols.
    pub fn sizes(&self) -> Vec<Sizes> {
        self.shapes.iter().map(|s| s.iter().map(|n| Size::known(*n)).collect()).collect()
    }
}

/// The shapes to choose from under one typing.
pub struct Choices<'a> {
    plan: &'a Plan,
    shapes: Vec<Vec<Vec<i64>>>,
}

impl<'a> Choices<'a> {
    /// Choices for leaves of these kinds.
    pub fn new(plan: &'a Plan, kinds: &[Kind]) -> Choices<'a> {
        Choices { plan, shapes: plan.leaves.iter().zip(kinds).map(|(leaf, kind)| shapes(leaf, *kind)).collect() }
    }

    /// A random instance that satisfies `guards`, if one is found. Every shape that fits the
    /// earlier leaves is equally likely.
    pub(crate) fn draw(&self, reading: Reading, guards: Guards, random: &mut Random) -> Option<Instance> {
        (0..ATTEMPTS).find_map(|_| self.attempt(reading, guards, random))
    }

    fn attempt(&self, reading: Reading, guards: Guards, random: &mut Random) -> Option<Instance> {
        let mut slots: Vec<Option<Typed>> = vec![None; self.plan.slots];
        let mut facts = Facts::default();
        let mut chosen = Vec::with_capacity(self.shapes.len());
        for (leaf, shapes) in self.shapes.iter().enumerate() {
            let mut order: Vec<usize> = (0..shapes.len()).collect();
            let fitting = (0..shapes.len()).find_map(|at| {
                let pick = at + random.below(shapes.len() - at);
                order.swap(at, pick);
                let shape = &shapes[order[at]];
                let mut typing = Typing { facts: facts.clone(), ..Typing::concrete(reading) };
                let sizes = shape.iter().map(|n| Size::known(*n)).collect();
                take(self.plan, leaf, sizes, &mut slots, &mut typing).ok()?;
                typing.facts.guards(reading).include(guards).then_some((shape.clone(), typing.facts))
            });
            let (shape, seen) = fitting?;
            facts = seen;
            chosen.push(shape);
        }
        let groups = facts.convolutions.iter().map(|(group, _)| *group).collect();
        Some(Instance { shapes: chosen, reading, guards: facts.guards(reading), groups })
    }
}

/// Gives `leaf` its sizes, and types everything that can then be typed.
pub(crate) fn take(plan: &Plan, leaf: usize, sizes: Sizes, slots: &mut [Option<Typed>], typing: &mut Typing) -> Result<(), Misfit> {
    slots[leaf] = Some(typed(&plan.leaves[leaf], sizes, typing));
    for step in &plan.steps[plan.ready[leaf].clone()] {
        let results = {
            let operands: SmallVec<[&Typed; 4]> = step.operands.iter().filter_map(|slot| slots[*slot].as_ref()).collect();
            typing.infer(&step.operator, &operands)?
        };
        for (at, result) in results.into_iter().enumerate() {
            slots[step.results + at] = Some(result);
        }
    }
    Ok(())
}

/// A leaf with these sizes.
fn typed(leaf: &Leaf, sizes: Sizes, typing: &mut Typing) -> Typed {
    let mut typed = Typed::new(sizes);
    let Leaf::Constant(constant) = leaf else { return typed };
    typed.placed = true;
    let [outputs, inputs, ..] = typed.sizes.as_slice() else { return typed };
    let depthwise = inputs.n == 1;
    let (dense, one) = ((outputs.s.clone(), inputs.s.clone()), Dim::from(1));
    if matches!(constant, Operator::PoolKernel { .. } | Operator::IdentityKernel { .. }) {
        typing.facts.constants.0 |= !depthwise;
        typing.facts.constants.1 |= depthwise && outputs.n > 1;
    }
    let Some(list) = &mut typing.obligations else { return typed };
    match constant {
        Operator::PoolKernel { .. } | Operator::IdentityKernel { .. } if depthwise => list.push(Obligation::Equal(dense.1, one)),
        Operator::PoolKernel { .. } | Operator::IdentityKernel { .. } | Operator::IdentityMatrix => {
            list.extend([Obligation::Known(dense.0), Obligation::Known(dense.1)]);
        }
        _ => {}
    }
    typed
}

/// The types of all slots when the leaves have these sizes.
pub(crate) fn type_all(plan: &Plan, leaves: &[Sizes], typing: &mut Typing) -> Result<Vec<Typed>, Misfit> {
    let mut slots: Vec<Option<Typed>> = vec![None; plan.slots];
    for (leaf, sizes) in leaves.iter().enumerate() {
        take(plan, leaf, sizes.clone(), &mut slots, typing)?;
    }
    slots.into_iter().collect::<Option<_>>().ok_or("a value has no type")
}
