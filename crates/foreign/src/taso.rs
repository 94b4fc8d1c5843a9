//! TASO's rule files: a protobuf collection of rules.
//!
//! The numbers of operators and parameters are those of TASO's headers. Kernel sizes of
//! convolutions, which the files contain, are ignored, as in TASO's own loader: a rule is meant for
//! every kernel.

use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::error::{ImportError, Location};
use crate::operator::{Activation, Binary, Operator, Padding, Unary};
use crate::rule::{MOST_OUTPUTS, Ref, Rule, Side, variable};
use crate::wire::{OperatorMessage, RuleMessage, TensorMessage};

/// Field of the collection that holds a rule.
const RULE: u32 = 1;

const WINDOW_HINT: &str = "TASO numbers the parameters: 4 and 5 kernel, 6 and 7 stride, 8 padding (0 or 1), 9 activation (0 to 3)";

/// The rules of a protobuf file.
///
/// # Errors
/// The bytes are no such collection, or a rule is malformed: an operator or parameter without its
/// number, an operand that does not precede its operator, a variable of the target that the source
/// does not have.
pub fn read(bytes: &[u8]) -> Result<Vec<Rule>, ImportError> {
    let mut rest = bytes;
    let mut rules = Vec::new();
    while !rest.is_empty() {
        let location = Location::Byte(bytes.len() - rest.len());
        let number = rules.len();
        let bad = |message: String, hint: &str| ImportError { rule: Some(number), location, message, hint: hint.into() };
        let cut = |e: prost::DecodeError| bad(format!("this is no protobuf: {e}"), "is it a rule file of TASO, and complete?");
        let (tag, wire) = decode_key(&mut rest).map_err(cut)?;
        if tag != RULE || wire != WireType::LengthDelimited {
            skip_field(wire, tag, &mut rest, DecodeContext::default()).map_err(cut)?;
            continue;
        }
        let length = decode_varint(&mut rest).map_err(cut)?;
        let Some((message, left)) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)) else {
            return Err(bad(format!("it is {length} bytes long, {} are left", rest.len()), "the file is cut off"));
        };
        rest = left;
        let message = RuleMessage::decode(message).map_err(cut)?;
        rules.push(rule(number, &message).map_err(|(message, hint)| bad(message, hint))?);
    }
    Ok(rules)
}

/// A message and a hint.
type Fault = (String, &'static str);

fn rule(number: usize, message: &RuleMessage) -> Result<Rule, Fault> {
    let mut variables = Vec::new();
    let mut before = side(&message.source, &mut variables).map_err(|(m, hint)| (format!("source {m}"), hint))?;
    let known = variables.len();
    let mut after = side(&message.target, &mut variables).map_err(|(m, hint)| (format!("target {m}"), hint))?;
    if let Some(name) = variables.get(known) {
        return Err((
            format!("the target has the variable {name}, the source has not"),
            "every variable of the target must occur in the source",
        ));
    }
    if message.outputs.len() > MOST_OUTPUTS {
        return Err((format!("it has {} outputs", message.outputs.len()), "a rule has at most 16"));
    }
    for (at, output) in message.outputs.iter().enumerate() {
        let end = |side: &Built, operator: Option<i32>, result: Option<i32>| {
            side.result(operator, result)
                .map_err(|m| (format!("output {at}: {m}"), "outputs name an operator of each side and one of its results"))
        };
        let pair =
            (end(&before, output.source_operator, output.source_result)?, end(&after, output.target_operator, output.target_result)?);
        before.side.outputs.push(pair.0);
        after.side.outputs.push(pair.1);
    }
    if message.outputs.is_empty() {
        return Err(("it has no outputs".into(), "a rule maps at least one result of its source"));
    }
    Ok(Rule { number, variables, before: before.side, after: after.side })
}

/// A side, and the slots of the file's operators in it.
#[derive(Default)]
struct Built {
    side: Side,
    places: Vec<usize>,
}

impl Built {
    fn result(&self, operator: Option<i32>, result: Option<i32>) -> Result<Ref, String> {
        let operator = operator.ok_or("an operand without an operator")?;
        let port = result.ok_or("an operand without the number of its result")?;
        let Some(node) = usize::try_from(operator).ok().and_then(|at| self.places.get(at)).copied() else {
            return Err(format!("no operator {operator} comes before"));
        };
        match usize::try_from(port) {
            Ok(port) if port < self.side.nodes[node].operator.results() => Ok(Ref::Result { node, port }),
            _ => Err(format!("operator {operator} has no result {port}")),
        }
    }

    fn operand(&self, message: &TensorMessage, variables: &mut Vec<String>) -> Result<Ref, String> {
        match message.operator {
            Some(id @ ..0) => variable(variables, &format!("input_{}", id.unsigned_abs())),
            _ => self.result(message.operator, message.result),
        }
    }
}

fn side(messages: &[OperatorMessage], variables: &mut Vec<String>) -> Result<Built, Fault> {
    let mut built = Built::default();
    for (at, message) in messages.iter().enumerate() {
        let wrong = |m: String| {
            (format!("operator {at}: {m}"), "operators refer to earlier ones of their side, or to variables by negative numbers")
        };
        let operator = operator(message).map_err(|(m, hint)| (format!("operator {at}: {m}"), hint))?;
        let operands: Result<Vec<Ref>, String> = message.operands.iter().map(|t| built.operand(t, variables)).collect();
        let mut operands = operands.map_err(wrong)?;
        if matches!(operator, Operator::Pool { .. }) && operands.len() == 2 {
            // The second operand only carries the size of the window.
            operands.truncate(1);
        }
        let node = built.side.add(operator, operands).map_err(wrong)?;
        built.places.push(node);
    }
    Ok(built)
}

/// The parameters of an operator, by number.
struct Parameters<'a>(&'a OperatorMessage);

impl Parameters<'_> {
    fn get(&self, key: i32, name: &str) -> Result<i64, Fault> {
        let found = self.0.parameters.iter().find(|p| p.key == Some(key)).and_then(|p| p.value);
        found.map(i64::from).ok_or_else(|| (format!("its parameter {key} ({name}) is missing"), WINDOW_HINT))
    }

    fn pair(&self, first: i32, name: &str) -> Result<[i64; 2], Fault> {
        Ok([self.get(first, name)?, self.get(first + 1, name)?])
    }

    fn index(&self, key: i32, name: &str) -> Result<usize, Fault> {
        let value = self.get(key, name)?;
        usize::try_from(value).map_err(|_| (format!("its parameter {key} ({name}) is {value}"), "axes and ranks are not negative"))
    }

    fn activation(&self) -> Result<Activation, Fault> {
        let code = self.get(9, "activation")?;
        Activation::of_code(code).ok_or_else(|| (format!("there is no activation {code}"), WINDOW_HINT))
    }

    fn padding(&self) -> Result<Padding, Fault> {
        let code = self.get(8, "padding")?;
        Padding::of_code(code).ok_or_else(|| (format!("there is no padding {code}"), WINDOW_HINT))
    }

    /// A permutation as a number in base `rank`, the first axis in the highest digit.
    fn permutation(&self) -> Result<Vec<usize>, Fault> {
        let rank = self.index(10, "rank").unwrap_or(2).clamp(1, crate::operator::MOST_AXES);
        let mut code = self.index(12, "permutation")?;
        let mut perm = vec![0; rank];
        for axis in perm.iter_mut().rev() {
            *axis = code % rank;
            code /= rank;
        }
        Ok(perm)
    }
}

fn operator(message: &OperatorMessage) -> Result<Operator, Fault> {
    let kind = message.kind.ok_or(("it has no type".to_owned(), "the file is no rule file of TASO, or damaged"))?;
    let p = Parameters(message);
    let pool = |mean: bool| {
        let (kernel, strides) = (p.pair(4, "kernel")?, p.pair(6, "stride")?);
        Ok(Operator::Pool { mean, kernel, strides, padding: p.padding()?, activation: p.activation().unwrap_or(Activation::None) })
    };
    Ok(match kind {
        3 => Operator::Conv { strides: p.pair(6, "stride")?, padding: p.padding()?, activation: p.activation()? },
        6 => pool(false)?,
        7 => pool(true)?,
        4 => Operator::Unary(Unary::Identity),
        8 => Operator::Unary(Unary::Relu),
        9 => Operator::Unary(Unary::Sigmoid),
        10 => Operator::Unary(Unary::Tanh),
        49 => Operator::Unary(Unary::Exp),
        51 => Operator::Unary(Unary::Log),
        53 => Operator::Unary(Unary::Sqrt),
        12 => Operator::Concat { axis: p.index(11, "axis")?, rank: p.index(10, "rank").ok() },
        13 => Operator::Split { axis: p.index(11, "axis")? },
        15 => Operator::Transpose { perm: p.permutation()? },
        16 => Operator::Binary(Binary::Add),
        17 => Operator::Binary(Binary::Mul),
        28 => Operator::Binary(Binary::Sub),
        29 => Operator::Binary(Binary::Div),
        33 => Operator::Binary(Binary::Max),
        34 => Operator::Binary(Binary::Min),
        18 => Operator::MatMul { activation: p.activation()? },
        19 => Operator::Scale,
        20 => Operator::Enlarge { kernel: if message.operands.len() == 2 { None } else { Some(p.pair(4, "kernel")?) } },
        21 => Operator::MergeGroups { count: p.get(14, "count")? },
        22 => Operator::IdentityMatrix,
        23 => Operator::IdentityKernel { kernel: p.pair(4, "kernel")? },
        24 => Operator::Ones,
        25 => Operator::PoolKernel { kernel: p.pair(4, "kernel")? },
        0..=61 => Operator::Unjudged(format!("operator{kind}")),
        _ => return Err((format!("there is no operator type {kind}"), "TASO numbers its operators from 0 to 61")),
    })
}
