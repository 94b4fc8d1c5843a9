//! What is known of a rule without having seen it before: so that new rules need no training.

use regraft_ir::OpKind;
use regraft_rules::{Numeric, Pattern, Rule, Target};

use crate::features::flag;

/// Numbers that describe a rule.
pub const DESCRIPTOR: usize = 2 * CLASSES + 8;
/// Classes of operators.
pub(crate) const CLASSES: usize = 12;

/// What kind of work an operator does, roughly.
pub(crate) fn class(kind: OpKind) -> usize {
    match kind {
        OpKind::Conv | OpKind::ConvTranspose => 0,
        OpKind::MatMul | OpKind::Gemm | OpKind::Einsum => 1,
        OpKind::Transpose => 2,
        OpKind::Reshape | OpKind::Flatten | OpKind::Squeeze | OpKind::Unsqueeze => 3,
        OpKind::Concat => 4,
        OpKind::Split | OpKind::Slice | OpKind::Gather => 5,
        OpKind::Add | OpKind::Sub => 6,
        OpKind::Mul | OpKind::Div => 7,
        OpKind::Pad | OpKind::Expand | OpKind::Tile => 8,
        kind if kind.moves_elements() => 8,
        kind if kind.elementwise() => 9,
        OpKind::Input | OpKind::Constant | OpKind::Opaque => 11,
        _ => 10,
    }
}

/// The numbers of a rule: which classes of operators its source has, which its target, and what
/// kind of rule it is.
pub fn descriptor(rule: &Rule) -> [f32; DESCRIPTOR] {
    let mut numbers = [0.0; DESCRIPTOR];
    let (source, rest) = numbers.split_at_mut(CLASSES);
    let (target, rest) = rest.split_at_mut(CLASSES);
    rule.source.iter().for_each(|pattern| read(pattern, source));
    let bound = rule.lets.iter().map(|(_, target)| target);
    bound.chain(&rule.target).for_each(|one| build(one, target));
    let [nodes, made]: [f32; 2] = [source, target].map(|classes| classes.iter().sum());
    let kind = [
        rule.source.len() as f32 / 2.0,
        nodes / 4.0,
        made / 4.0,
        (made - nodes) / 4.0,
        flag(rule.shared),
        flag(rule.explore),
        flag(rule.numeric == Numeric::Exact),
        flag(rule.numeric == Numeric::FastBilinear),
    ];
    rest.copy_from_slice(&kind);
    numbers
}

fn read(pattern: &Pattern, classes: &mut [f32]) {
    match pattern {
        Pattern::Any(_) | Pattern::Constant(_) | Pattern::Optional(_) | Pattern::Rest(_) | Pattern::Number(_) => {}
        Pattern::Each(inner, _) | Pattern::Elementwise(_, _, inner) => read(inner, classes),
        Pattern::Node(node) => {
            classes[class(node.kind)] += 1.0;
            node.operands.iter().for_each(|operand| read(operand, classes));
        }
    }
}

fn build(target: &Target, classes: &mut [f32]) {
    match target {
        Target::Node { kind, operands, .. } => {
            classes[class(*kind)] += 1.0;
            operands.iter().for_each(|operand| build(operand, classes));
        }
        Target::With(_, value, body) => [value, body].into_iter().for_each(|part| build(part, classes)),
        Target::Combine(_, parts) => {
            classes[class(OpKind::Add)] += 1.0;
            parts.iter().for_each(|part| build(part, classes));
        }
        Target::If(_, then, otherwise) => [Some(then), otherwise.as_ref()].into_iter().flatten().for_each(|part| build(part, classes)),
        Target::Each(_, inner)
        | Target::Repeat(_, _, inner)
        | Target::Apply(_, inner, _)
        | Target::Unshifted(_, inner, _)
        | Target::Out(_, inner)
        | Target::Vector(_, inner) => build(inner, classes),
        Target::Use(_)
        | Target::Shift(..)
        | Target::Scalar(..)
        | Target::Tensor(..)
        | Target::Ints(_)
        | Target::Counted(_)
        | Target::Fill(..)
        | Target::Item(..) => {}
    }
}
