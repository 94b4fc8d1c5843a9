//! A rule prepared for typing: leaves in the order they get sizes, each followed by the operators
//! that can then be typed.

use std::ops::Range;

use crate::operator::Operator;
use crate::rule::{Ref, Rule, Side};

/// Index of a value: leaves first, then the results of the operators.
pub type Slot = usize;

/// A slot that gets its sizes from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A variable of the rule.
    Variable(usize),
    /// A constant with a size inferred from context.
    Constant(Operator),
}

/// An operator of either side.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operator.
    pub operator: Operator,
    /// Its operands.
    pub operands: Vec<Slot>,
    /// Slot of its first result; the others follow.
    pub results: Slot,
}

/// Both sides of a rule, with shared parts computed once.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Variables in the order of their first use, then constants. Leaf `i` is slot `i`.
    pub leaves: Vec<Leaf>,
    /// Operators; those that need leaf `i` but no later one are `ready[i]`.
    pub steps: Vec<Step>,
    /// For every leaf, the steps that become possible once it is known.
    pub ready: Vec<Range<usize>>,
    /// Slots of the results of both sides.
    pub outputs: [Vec<Slot>; 2],
    /// Number of slots.
    pub slots: usize,
}

impl Plan {
    /// The plan of a rule. Unused variables are left out.
    pub fn new(rule: &Rule) -> Plan {
        let mut leaves = Vec::new();
        let sides = [&rule.before, &rule.after];
        for side in sides {
            let operands = side.nodes.iter().flat_map(|n| &n.operands).chain(&side.outputs);
            for operand in operands {
                if let Ref::Variable(variable) = *operand
                    && !leaves.contains(&Leaf::Variable(variable))
                {
                    leaves.push(Leaf::Variable(variable));
                }
            }
        }
        let mut constants = [Vec::new(), Vec::new()];
        for (side, slots) in sides.into_iter().zip(&mut constants) {
            for node in &side.nodes {
                slots.push(node.operator.is_constant().then_some(leaves.len()));
                if node.operator.is_constant() {
                    leaves.push(Leaf::Constant(node.operator.clone()));
                }
            }
        }
        let mut builder = Builder { steps: Vec::new(), needs: (0..leaves.len()).collect(), next: leaves.len(), leaves: &leaves };
        let outputs = [builder.side(sides[0], &constants[0]), builder.side(sides[1], &constants[1])];
        let Builder { mut steps, needs, next, .. } = builder;
        // Stable, so operands still precede their readers: they need no later leaf.
        steps.sort_by_key(|s| needs[s.results]);
        let mut from = 0;
        let ready = (0..leaves.len())
            .map(|leaf| {
                let count = steps[from..].iter().take_while(|s| needs[s.results] <= leaf).count();
                from += count;
                from - count..from
            })
            .collect();
        Plan { leaves, steps, ready, outputs, slots: next }
    }

    /// The steps that one side's results depend on.
    pub fn needed(&self, side: usize) -> Vec<bool> {
        let mut wanted = vec![false; self.slots];
        for slot in &self.outputs[side] {
            wanted[*slot] = true;
        }
        let mut needed = vec![false; self.steps.len()];
        for (at, step) in self.steps.iter().enumerate().rev() {
            if (step.results..step.results + step.operator.results()).any(|slot| wanted[slot]) {
                needed[at] = true;
                step.operands.iter().for_each(|slot| wanted[*slot] = true);
            }
        }
        needed
    }
}

struct Builder<'a> {
    steps: Vec<Step>,
    /// For every slot, the last leaf it depends on.
    needs: Vec<usize>,
    next: Slot,
    leaves: &'a [Leaf],
}

impl Builder<'_> {
    fn side(&mut self, side: &Side, constants: &[Option<Slot>]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::with_capacity(side.nodes.len());
        let find = |leaves: &[Leaf], slots: &[Slot], at: &Ref| match *at {
            Ref::Variable(variable) => leaves.iter().position(|l| *l == Leaf::Variable(variable)).unwrap_or(0),
            Ref::Result { node, port } => slots[node] + port,
        };
        for (node, constant) in side.nodes.iter().zip(constants) {
            let slot = constant.unwrap_or_else(|| {
                let operands = node.operands.iter().map(|r| find(self.leaves, &slots, r)).collect();
                self.step(&node.operator, operands)
            });
            slots.push(slot);
        }
        side.outputs.iter().map(|r| find(self.leaves, &slots, r)).collect()
    }

    fn step(&mut self, operator: &Operator, operands: Vec<Slot>) -> Slot {
        if let Some(same) = self.steps.iter().find(|s| s.operator == *operator && s.operands == operands) {
            return same.results;
        }
        let need = operands.iter().map(|slot| self.needs[*slot]).max().unwrap_or(0);
        let results = self.next;
        self.next += operator.results();
        self.needs.resize(self.next, need);
        self.steps.push(Step { operator: operator.clone(), operands, results });
        results
    }
}
