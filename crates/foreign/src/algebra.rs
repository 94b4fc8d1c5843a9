//! Rules in algebraic notation: for people, and to find rules that are equal up to variable names.
//!
//! `@` is the matrix product, `+ - * /` are elementwise. `conv` is a convolution with stride 1 and
//! `SAME` padding, other windows are written as in `conv[2x2 valid]`; `conv.relu` ends with an
//! activation. `cat1/4(a, b)` concatenates rank-4 tensors along axis 1, and `split1(x).0` is the
//! first part of `x`, cut where it was last concatenated along axis 1. `Kavg`, `Kid`, `I` and `One`
//! are constants.

use std::fmt::Write;

use crate::operator::{Activation, Binary, Operator, Padding, Unary};
use crate::rule::{Ref, Rule, Side};

/// Longest algebra to write out: shared parts are repeated, so it could grow without bound.
const LONGEST: usize = 4000;

/// Both sides, with the variables named `a, b, ..` in the order of their first use. Outputs are
/// separated by ` ; `.
pub fn algebra(rule: &Rule) -> String {
    let mut names = vec![None; rule.variables.len()];
    let before = side(&rule.before, &mut names);
    let after = side(&rule.after, &mut names);
    format!("{before} => {after}")
}

/// The names that [`algebra`] gives to the rule's variables, and other names for those it does not
/// reach.
pub fn names(rule: &Rule) -> Vec<String> {
    let mut names = vec![None; rule.variables.len()];
    side(&rule.before, &mut names);
    side(&rule.after, &mut names);
    let reached = names.iter().flatten().count();
    let mut next = reached..;
    names.into_iter().map(|n| name(n.unwrap_or_else(|| next.next().unwrap_or(reached)))).collect()
}

fn name(at: usize) -> String {
    match u8::try_from(at) {
        Ok(letter @ 0..26) => char::from(b'a' + letter).to_string(),
        _ => format!("v{at}"),
    }
}

type Names = Vec<Option<usize>>;

fn side(side: &Side, names: &mut Names) -> String {
    let mut text = String::new();
    for (at, output) in side.outputs.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { " ; " });
        value(side, *output, names, &mut text, true);
    }
    if text.len() > LONGEST {
        text.push('…');
    }
    text
}

fn value(side: &Side, at: Ref, names: &mut Names, text: &mut String, outermost: bool) {
    if text.len() > LONGEST {
        return;
    }
    let Ref::Result { node, port } = at else {
        if let Ref::Variable(variable) = at {
            let next = names.iter().flatten().count();
            text.push_str(&name(*names[variable].get_or_insert(next)));
        }
        return;
    };
    let node = &side.nodes[node];
    let infix = match &node.operator {
        Operator::MatMul { activation: Activation::None } => Some("@"),
        Operator::Binary(Binary::Add) => Some("+"),
        Operator::Binary(Binary::Sub) => Some("-"),
        Operator::Binary(Binary::Mul) => Some("*"),
        Operator::Binary(Binary::Div) => Some("/"),
        _ => None,
    };
    if let (Some(sign), [left, right]) = (infix, node.operands.as_slice()) {
        text.push_str(if outermost { "" } else { "(" });
        value(side, *left, names, text, false);
        let _ = write!(text, " {sign} ");
        value(side, *right, names, text, false);
        text.push_str(if outermost { "" } else { ")" });
        return;
    }
    text.push_str(&head(&node.operator));
    if !node.operator.is_constant() {
        text.push('(');
        for (at, operand) in node.operands.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { ", " });
            value(side, *operand, names, text, true);
        }
        text.push(')');
    }
    if node.operator.results() > 1 {
        let _ = write!(text, ".{port}");
    }
}

pub(crate) fn head(operator: &Operator) -> String {
    match operator {
        Operator::Conv { strides, padding, activation } => format!("conv{}{}", window(*strides, *padding), after(*activation)),
        Operator::Pool { mean, kernel: [h, w], strides, padding, activation } => {
            let kind = if *mean { "avg" } else { "max" };
            format!("{kind}{h}x{w}{}{}", window(*strides, *padding), after(*activation))
        }
        Operator::MatMul { activation } => format!("matmul{}", after(*activation)),
        Operator::Binary(binary) => match binary {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Max => "max",
            Binary::Min => "min",
        }
        .into(),
        Operator::Unary(unary) => match unary {
            Unary::Relu => "relu",
            Unary::Sigmoid => "sigmoid",
            Unary::Tanh => "tanh",
            Unary::Exp => "exp",
            Unary::Log => "log",
            Unary::Sqrt => "sqrt",
            Unary::Identity => "id",
        }
        .into(),
        Operator::Scale => "scale".into(),
        Operator::Concat { axis, rank: Some(rank) } => format!("cat{axis}/{rank}"),
        Operator::Concat { axis, rank: None } => format!("cat{axis}"),
        Operator::Split { axis } => format!("split{axis}"),
        Operator::Transpose { perm } if perm == &[1, 0] => "t".into(),
        Operator::Transpose { perm } => format!("t{}", perm.iter().map(usize::to_string).collect::<String>()),
        Operator::Enlarge { kernel: Some([h, w]) } => format!("enlarge{h}x{w}"),
        Operator::Enlarge { kernel: None } => "enlarge".into(),
        Operator::MergeGroups { count } => format!("merge{count}"),
        Operator::PoolKernel { kernel: [h, w] } => format!("Kavg{h}x{w}"),
        Operator::IdentityKernel { kernel: [h, w] } => format!("Kid{h}x{w}"),
        Operator::IdentityMatrix => "I".into(),
        Operator::Ones => "One".into(),
        Operator::Unjudged(name) => name.clone(),
    }
}

fn window(strides: [i64; 2], padding: Padding) -> String {
    match (strides, padding) {
        ([1, 1], Padding::Same) => String::new(),
        ([1, 1], Padding::Valid) => "[valid]".into(),
        ([h, w], Padding::Same) => format!("[{h}x{w}]"),
        ([h, w], Padding::Valid) => format!("[{h}x{w} valid]"),
    }
}

fn after(activation: Activation) -> &'static str {
    match activation {
        Activation::None => "",
        Activation::Sigmoid => ".sigmoid",
        Activation::Relu => ".relu",
        Activation::Tanh => ".tanh",
    }
}
