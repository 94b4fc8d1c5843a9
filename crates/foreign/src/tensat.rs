//! TENSAT's rule files: one rule `(before)=>(after)` per line; in its files of pairs, two lines
//! form one rule with two results.
//!
//! Operators are those of TENSAT's e-graph language: parameters first, as numbers, then the
//! operands.

use std::iter;

use regraft_ir::text;

use crate::arguments::{Argument, Arguments};
use crate::cursor::{Cursor, DEEPEST};
use crate::error::ImportError;
use crate::operator::{Binary, Operator, Unary};
use crate::rule::{Ref, Rule, Side, variable};

const HINT: &str = "a rule reads `(operator number.. operand..)=>(operator ..)`, a variable `?name`";
/// Names in the language.
const NAMES: &str = "ewadd, ewmul, smul, transpose, matmul, conv2d, enlarge, dropout, relu, tanh, sigmoid, poolmax, poolavg, concat, concat3 to concat5, \
                     split, split_0, split_1, Cpool, Iconv, Imatmul, Iewmul, merge";

/// Rules, one per line; empty lines are skipped.
///
/// # Errors
/// A line is not a rule, or its target has a variable that its source does not.
pub fn read_rules(text: &str) -> Result<Vec<Rule>, ImportError> {
    let mut rules = Vec::new();
    for mut cursor in lines(text) {
        cursor.rule = rules.len();
        let rule = read(&mut cursor, None)?;
        check_variables(&rule, &cursor)?;
        rules.push(rule);
    }
    Ok(rules)
}

/// Rules with two results: the first two lines, the next two, and so on.
///
/// # Errors
/// A line is not a rule, the last line has no partner, or a target has a variable that neither
/// source has.
pub fn read_pairs(text: &str) -> Result<Vec<Rule>, ImportError> {
    let mut rules = Vec::new();
    let mut waiting: Option<Rule> = None;
    let mut last = None;
    for mut cursor in lines(text) {
        cursor.rule = rules.len();
        let half = waiting.is_none();
        let rule = read(&mut cursor, waiting.take())?;
        if half {
            waiting = Some(rule);
        } else {
            check_variables(&rule, &cursor)?;
            rules.push(rule);
        }
        last = Some(cursor);
    }
    match (waiting, last) {
        (Some(_), Some(cursor)) => Err(cursor.error("this line has no partner", "in a file of pairs two lines make a rule")),
        _ => Ok(rules),
    }
}

/// Whether the lines are pairs: their number is even, and some line's target has a variable that
/// its source does not.
pub(crate) fn are_pairs(text: &str) -> bool {
    let alone = |mut cursor: Cursor<'_>| read(&mut cursor, None).is_ok_and(|rule| check_variables(&rule, &cursor).is_err());
    lines(text).count().is_multiple_of(2) && lines(text).any(alone)
}

fn lines(text: &str) -> impl Iterator<Item = Cursor<'_>> {
    let mut rest = text::Cursor::new(text);
    let lines = iter::from_fn(move || rest.peek().map(|_| rest.line()));
    lines.filter(|line| !line.rest().trim().is_empty()).map(Cursor::new)
}

/// The rule of a line, merged into `first` if there is one.
fn read(cursor: &mut Cursor<'_>, first: Option<Rule>) -> Result<Rule, ImportError> {
    let mut rule =
        first.unwrap_or_else(|| Rule { number: cursor.rule, variables: Vec::new(), before: Side::default(), after: Side::default() });
    let output = value(cursor, &mut rule.before, &mut rule.variables)?;
    rule.before.outputs.push(output);
    cursor.expect("=>", HINT)?;
    let output = value(cursor, &mut rule.after, &mut rule.variables)?;
    rule.after.outputs.push(output);
    if !cursor.is_done() {
        cursor.skip_blanks();
        return Err(cursor.error("the rule has ended before", "one rule per line"));
    }
    Ok(rule)
}

fn check_variables(rule: &Rule, cursor: &Cursor<'_>) -> Result<(), ImportError> {
    let Some(at) = (0..rule.variables.len()).find(|at| !rule.before.uses(*at)) else { return Ok(()) };
    let message = format!("the target has the variable `?{}`, the source has not", rule.variables[at]);
    Err(cursor.error(message, "every variable of the target must occur in the source; are these lines pairs?"))
}

fn value(cursor: &mut Cursor<'_>, side: &mut Side, variables: &mut Vec<String>) -> Result<Ref, ImportError> {
    let at = cursor.position();
    match argument(cursor, side, variables, 0)? {
        Argument::Value(value) => Ok(value),
        _ => Err(cursor.error_at(at, "a term or a variable is expected", HINT)),
    }
}

fn argument(cursor: &mut Cursor<'_>, side: &mut Side, variables: &mut Vec<String>, depth: usize) -> Result<Argument, ImportError> {
    cursor.skip_blanks();
    let at = cursor.position();
    if depth > DEEPEST {
        return Err(cursor.error(format!("terms are nested more than {DEEPEST} deep"), "no rule needs that"));
    }
    if !cursor.take("(") {
        let word = cursor.word(HINT)?;
        if let Some(name) = word.strip_prefix('?') {
            let named = variable(variables, name).map_err(|m| cursor.error_at(at, m, HINT))?;
            return Ok(Argument::Value(named));
        }
        if let Ok(number) = word.parse() {
            return Ok(Argument::Number(number));
        }
        let constant = match word {
            "Imatmul" => Operator::IdentityMatrix,
            "Iewmul" => Operator::Ones,
            _ => return Ok(Argument::Word(word.to_owned())),
        };
        let node = side.add(constant, Vec::new()).map_err(|m| cursor.error_at(at, m, HINT))?;
        return Ok(Argument::Value(Ref::Result { node, port: 0 }));
    }
    let name = cursor.word(HINT)?;
    let mut arguments = Vec::new();
    while !cursor.take(")") {
        arguments.push(argument(cursor, side, variables, depth + 1)?);
    }
    let made = term(name, Arguments::new(arguments), side).map_err(|m| cursor.error_at(at, format!("`{name}`: {m}"), HINT))?;
    Ok(Argument::Value(made))
}

/// The value of a term in TENSAT's language.
fn term(name: &str, mut a: Arguments, side: &mut Side) -> Result<Ref, String> {
    let operator = match name {
        "ewadd" => Operator::Binary(Binary::Add),
        "ewmul" => Operator::Binary(Binary::Mul),
        "smul" => Operator::Scale,
        "relu" => Operator::Unary(Unary::Relu),
        "tanh" => Operator::Unary(Unary::Tanh),
        "sigmoid" => Operator::Unary(Unary::Sigmoid),
        "dropout" => Operator::Unary(Unary::Identity),
        "matmul" => Operator::MatMul { activation: a.activation()? },
        "conv2d" => Operator::Conv { strides: a.pair("stride")?, padding: a.padding()?, activation: a.activation()? },
        "concat" | "concat3" | "concat4" | "concat5" => {
            let (axis, rank) = (a.index("axis")?, a.index("rank")?);
            let operands = a.values()?;
            let wanted = name.strip_prefix("concat").and_then(|n| n.parse().ok()).unwrap_or(2);
            if operands.len() != wanted {
                return Err(format!("it takes {wanted} operands, not {}", operands.len()));
            }
            return result(side, Operator::Concat { axis, rank: Some(rank) }, operands, 0);
        }
        "enlarge" => Operator::Enlarge { kernel: None },
        "split" => Operator::Split { axis: a.index("axis")? },
        "Cpool" => Operator::PoolKernel { kernel: a.pair("kernel")? },
        "Iconv" => Operator::IdentityKernel { kernel: a.pair("kernel")? },
        "poolmax" | "poolavg" => {
            let x = a.value("operand")?;
            let (kernel, strides, padding) = (a.pair("kernel")?, a.pair("stride")?, a.padding()?);
            let operator = Operator::Pool { mean: name == "poolavg", kernel, strides, padding, activation: a.activation()? };
            return finished(a, result(side, operator, vec![x], 0)?);
        }
        "merge" => {
            let w = a.value("operand")?;
            let operator = Operator::MergeGroups { count: a.number("count")? };
            return finished(a, result(side, operator, vec![w], 0)?);
        }
        "transpose" => {
            let x = a.value("operand")?;
            let named = a.word("permutation")?;
            let perm: Result<Vec<usize>, _> = named.split('_').map(str::parse).collect();
            let operator = Operator::Transpose { perm: perm.map_err(|_| format!("there is no permutation `{named}`"))? };
            a.number("shuffle")?;
            return finished(a, result(side, operator, vec![x], 0)?);
        }
        "split_0" | "split_1" => {
            let parts = a.value("operand")?;
            return match parts {
                Ref::Result { node, .. } if side.nodes[node].operator.results() == 2 => {
                    finished(a, Ref::Result { node, port: usize::from(name == "split_1") })
                }
                _ => Err("its operand is no split".into()),
            };
        }
        "reshape" | "batchnorm" | "noop" | "input" | "weight" => {
            return result(side, Operator::Unjudged(name.to_owned()), a.only_values(), 0);
        }
        _ => return Err(format!("there is no such operator; there are {NAMES}")),
    };
    let operands = a.values()?;
    result(side, operator, operands, 0)
}

fn finished(arguments: Arguments, value: Ref) -> Result<Ref, String> {
    if arguments.is_done() { Ok(value) } else { Err("it has too many arguments".into()) }
}

pub(crate) fn result(side: &mut Side, operator: Operator, operands: Vec<Ref>, port: usize) -> Result<Ref, String> {
    Ok(Ref::Result { node: side.add(operator, operands)?, port })
}
