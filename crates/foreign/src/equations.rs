//! The equations of TENSAT's verification mode: `f(x, g(y)) == h(x, y)`, one after another, with or
//! without white space in between.
//!
//! Their terms carry no ranks, and the right side may have variables that the left does not.

use regraft_ir::text;

use crate::arguments::{Argument, Arguments};
use crate::cursor::{Cursor, DEEPEST};
use crate::error::ImportError;
use crate::operator::{Activation, Binary, Operator, Unary};
use crate::rule::{Ref, Rule, Side, variable};
use crate::tensat::result;

const HINT: &str = "an equation reads `operator(number, .., operand, ..)==operator(..)`";
/// Names in the format.
const NAMES: &str = "ewadd, ewmul, smul, transpose, matmul, conv2d, enlarge, relu, poolmax, poolavg, concat, split_0, split_1, Cpool, Iconv, Imatmul, \
                     Iewmul";

/// All equations of a text; the left side is `before`.
///
/// # Errors
/// A term is not well-formed, or an equation has no right side.
pub fn read(text: &str) -> Result<Vec<Rule>, ImportError> {
    let mut cursor = Cursor::new(text::Cursor::new(text));
    let mut rules = Vec::new();
    while !cursor.is_done() {
        cursor.rule = rules.len();
        let mut rule = Rule { number: rules.len(), variables: Vec::new(), before: Side::default(), after: Side::default() };
        let left = side(&mut cursor, &mut rule.before, &mut rule.variables)?;
        rule.before.outputs.push(left);
        cursor.expect("==", HINT)?;
        let right = side(&mut cursor, &mut rule.after, &mut rule.variables)?;
        rule.after.outputs.push(right);
        rules.push(rule);
    }
    Ok(rules)
}

fn side(cursor: &mut Cursor<'_>, side: &mut Side, variables: &mut Vec<String>) -> Result<Ref, ImportError> {
    cursor.skip_blanks();
    let at = cursor.position();
    match argument(cursor, side, variables, 0)? {
        Argument::Value(value) => Ok(value),
        _ => Err(cursor.error_at(at, "a term is expected", HINT)),
    }
}

fn argument(cursor: &mut Cursor<'_>, side: &mut Side, variables: &mut Vec<String>, depth: usize) -> Result<Argument, ImportError> {
    cursor.skip_blanks();
    let at = cursor.position();
    if depth > DEEPEST {
        return Err(cursor.error(format!("terms are nested more than {DEEPEST} deep"), "no equation needs that"));
    }
    let word = cursor.word(HINT)?;
    if !cursor.take("(") {
        if let Ok(number) = word.parse() {
            return Ok(Argument::Number(number));
        }
        let value = match word {
            "Imatmul" => result(side, Operator::IdentityMatrix, Vec::new(), 0),
            "Iewmul" => result(side, Operator::Ones, Vec::new(), 0),
            _ => variable(variables, word),
        };
        return value.map(Argument::Value).map_err(|m| cursor.error_at(at, m, HINT));
    }
    let mut arguments = Vec::new();
    if !cursor.take(")") {
        loop {
            arguments.push(argument(cursor, side, variables, depth + 1)?);
            if cursor.take(")") {
                break;
            }
            cursor.expect(",", HINT)?;
        }
    }
    let made = term(word, Arguments::new(arguments), side).map_err(|m| cursor.error_at(at, format!("`{word}`: {m}"), HINT))?;
    Ok(Argument::Value(made))
}

fn term(name: &str, mut a: Arguments, side: &mut Side) -> Result<Ref, String> {
    let mut port = 0;
    let operator = match name {
        "ewadd" => Operator::Binary(Binary::Add),
        "ewmul" => Operator::Binary(Binary::Mul),
        "smul" => Operator::Scale,
        "relu" => Operator::Unary(Unary::Relu),
        "transpose" => Operator::Transpose { perm: vec![1, 0] },
        "matmul" => Operator::MatMul { activation: Activation::None },
        "conv2d" => Operator::Conv { strides: a.pair("stride")?, padding: a.padding()?, activation: a.activation()? },
        "concat" => Operator::Concat { axis: a.index("axis")?, rank: None },
        "enlarge" => Operator::Enlarge { kernel: Some(a.pair("kernel")?) },
        "Cpool" => Operator::PoolKernel { kernel: a.pair("kernel")? },
        "Iconv" => Operator::IdentityKernel { kernel: a.pair("kernel")? },
        "poolmax" | "poolavg" => {
            let (kernel, strides, padding) = (a.pair("kernel")?, a.pair("stride")?, a.padding()?);
            Operator::Pool { mean: name == "poolavg", kernel, strides, padding, activation: Activation::None }
        }
        "split_0" | "split_1" => {
            port = usize::from(name == "split_1");
            Operator::Split { axis: a.index("axis")? }
        }
        _ => return Err(format!("there is no such operator; there are {NAMES}")),
    };
    let operands = a.values()?;
    result(side, operator, operands, port)
}
