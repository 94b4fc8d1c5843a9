//! The forms of specification files.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use regraft_ir::text::Position;
use regraft_ir::{DType, Dim, OpKind};
use regraft_rules::RuleError;
use regraft_rules::sexp::Sexp;

use crate::expr::{AttrExpr, Expr, Size, scalar, word};
use crate::operator::{Guard, OperandGuard, Operator};

/// Maximum nesting of definitions.
const DEEPEST: usize = 32;

/// A mistake in a file whose name is not yet known.
#[derive(Debug)]
pub struct Mistake {
    at: Position,
    message: String,
    hint: String,
}

impl Mistake {
    /// The mistake, in the file of this name.
    pub fn in_file(self, file: &str) -> RuleError {
        RuleError { file: file.into(), line: self.at.line, column: self.at.column, message: self.message, hint: self.hint }
    }
}

/// A mistake at a position.
pub fn mistake(at: Position, message: impl Display, hint: impl Display) -> Mistake {
    Mistake { at, message: message.to_string(), hint: hint.to_string() }
}

/// A name: a word that is neither a number nor an operand.
pub fn name(item: &Sexp) -> Result<String, Mistake> {
    match item.atom() {
        Some(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok(word.to_string()),
        _ => Err(mistake(item.position(), format!("`{item}` is no name"), "names start with a letter")),
    }
}

/// The single number of a form.
pub fn number(items: &[Sexp], at: Position, range: RangeInclusive<usize>) -> Result<usize, Mistake> {
    let found = match items {
        [item] => item.atom().and_then(|word| word.parse().ok()),
        _ => None,
    };
    let hint = format!("one number from {} to {}", range.start(), range.end());
    found.filter(|n| range.contains(n)).ok_or_else(|| mistake(at, "not a number that fits here", hint))
}

/// A size over size parameters only.
pub fn dim(item: &Sexp, sizes: &[String]) -> Result<Dim, Mistake> {
    let size = Scope { operands: &[], cut: None, sizes }.size(item)?;
    size.resolve(&[], None).ok_or_else(|| mistake(item.position(), "no operand can be meant here", "use sizes and numbers"))
}

/// Replaces uses of `(define (NAME PARAMETER..) BODY)`, and drops the definitions.
pub fn expand(file: &str, forms: &[Sexp]) -> Result<Vec<Sexp>, RuleError> {
    let mut definitions: HashMap<String, (Vec<String>, Sexp)> = HashMap::new();
    let mut rest = Vec::new();
    for form in forms {
        if form.head() != Some("define") {
            rest.push(expanded(form, &definitions, 0).map_err(|e| e.in_file(file))?);
            continue;
        }
        let wrong = || mistake(form.position(), "a definition of another form", "write `(define (eye d) BODY)`").in_file(file);
        let [_, head, body] = form.list().unwrap_or_default() else { return Err(wrong()) };
        let words: Option<Vec<String>> = head.list().unwrap_or_default().iter().map(|w| w.atom().map(str::to_string)).collect();
        let Some((name, parameters)) = words.as_deref().and_then(<[String]>::split_first) else { return Err(wrong()) };
        let body = expanded(body, &definitions, 0).map_err(|e| e.in_file(file))?;
        definitions.insert(name.clone(), (parameters.to_vec(), body));
    }
    Ok(rest)
}

fn expanded(form: &Sexp, definitions: &HashMap<String, (Vec<String>, Sexp)>, depth: usize) -> Result<Sexp, Mistake> {
    if depth > DEEPEST {
        return Err(mistake(form.position(), "lists within lists within lists", format!("at most {DEEPEST} deep")));
    }
    let Sexp::List(items, place, comments) = form else { return Ok(form.clone()) };
    let items: Vec<Sexp> = items.iter().map(|item| expanded(item, definitions, depth + 1)).collect::<Result<_, _>>()?;
    let definition = items.first().and_then(Sexp::atom).and_then(|name| definitions.get(name));
    let Some((parameters, body)) = definition else { return Ok(Sexp::List(items, *place, comments.clone())) };
    if parameters.len() + 1 != items.len() {
        return Err(mistake(*place, format!("a use with {} arguments", items.len() - 1), format!("it takes {}", parameters.len())));
    }
    let values: HashMap<&str, &Sexp> = parameters.iter().map(String::as_str).zip(&items[1..]).collect();
    Ok(filled(body, &values))
}

fn filled(form: &Sexp, values: &HashMap<&str, &Sexp>) -> Sexp {
    match form {
        Sexp::Atom(word, _) => values.get(word.as_str()).map_or_else(|| form.clone(), |value| (*value).clone()),
        Sexp::List(items, place, comments) => Sexp::List(items.iter().map(|i| filled(i, values)).collect(), *place, comments.clone()),
        Sexp::Text(..) => form.clone(),
    }
}

/// `(operator NAME (OPERAND..) CLAUSE..)`, without its first word.
pub fn operator(items: &[Sexp], at: Position, sizes: &[String]) -> Result<Operator, Mistake> {
    let usage = "write `(operator NAME (?a ?b) commutative (when ..) (cut ?p ?a AXIS) (is EXPRESSION..))`";
    let [head, operands, clauses @ ..] = items else { return Err(mistake(at, "an operator without operands", usage)) };
    let variable = |item: &Sexp| match item.atom().filter(|word| word.starts_with('?')) {
        Some(word) => Ok(word.to_string()),
        None => Err(mistake(item.position(), format!("`{item}` is no operand"), "operands start with `?`")),
    };
    let operands: Vec<String> = operands.list().unwrap_or_default().iter().map(variable).collect::<Result<_, _>>()?;
    let mut operator = Operator {
        name: name(head)?,
        operands,
        commutative: false,
        guards: Vec::new(),
        operand_guards: Vec::new(),
        cut: None,
        results: Vec::new(),
    };
    let mut cut = None;
    // The point of a cut must be known before expressions that use it are read.
    for clause in clauses.iter().filter(|c| c.head() == Some("cut")) {
        let [_, point, operand, axis] = clause.list().unwrap_or_default() else {
            return Err(mistake(clause.position(), "not a cut", usage));
        };
        let operand = index(&operator.operands, operand)?;
        operator.cut = Some((operand, number(std::slice::from_ref(axis), axis.position(), 0..=7)?));
        cut = Some(variable(point)?);
    }
    for clause in clauses {
        let scope = Scope { operands: &operator.operands, cut: cut.as_deref(), sizes };
        match (clause.atom(), clause.head()) {
            (Some("commutative"), _) if operator.operands.len() == 2 => operator.commutative = true,
            (_, Some("cut")) => {}
            (_, Some("when")) => {
                let (mut guards, mut operand_guards) = (Vec::new(), Vec::new());
                for guard in clause.list().unwrap_or_default().iter().skip(1) {
                    scope.guard(guard, &mut guards, &mut operand_guards)?;
                }
                operator.guards.extend(guards);
                operator.operand_guards.extend(operand_guards);
            }
            (_, Some("is")) => {
                let results = clause.list().unwrap_or_default().iter().skip(1).map(|e| scope.expr(e)).collect::<Result<_, _>>()?;
                operator.results = results;
            }
            _ => return Err(mistake(clause.position(), format!("no clause `{clause}`"), usage)),
        }
    }
    if operator.results.is_empty() {
        return Err(mistake(at, format!("operator `{}` computes nothing", operator.name), usage));
    }
    Ok(operator)
}

fn index(operands: &[String], item: &Sexp) -> Result<usize, Mistake> {
    let found = item.atom().and_then(|word| operands.iter().position(|o| o == word));
    found.ok_or_else(|| mistake(item.position(), format!("`{item}` is no operand"), format!("one of {}", operands.join(" "))))
}

/// What names mean inside an operator.
struct Scope<'a> {
    operands: &'a [String],
    cut: Option<&'a str>,
    sizes: &'a [String],
}

impl Scope<'_> {
    fn guard(&self, form: &Sexp, guards: &mut Vec<Guard>, operand_guards: &mut Vec<OperandGuard>) -> Result<(), Mistake> {
        let items = form.list().unwrap_or_default();
        match (form.head(), items) {
            (Some("rank"), [_, a, rank]) => {
                guards.push(Guard::Rank(index(self.operands, a)?, number(std::slice::from_ref(rank), rank.position(), 0..=8)?));
            }
            (Some("tensor"), [_, a]) => guards.push(Guard::Tensor(index(self.operands, a)?)),
            (Some("same-shape"), [_, a, b]) => guards.push(Guard::SameShape(index(self.operands, a)?, index(self.operands, b)?)),
            (Some("sizes"), [_, a, sizes @ ..]) => {
                let any = |item: &Sexp| if item.atom() == Some("_") { Ok(None) } else { self.size(item).map(Some) };
                guards.push(Guard::Sizes(index(self.operands, a)?, sizes.iter().map(any).collect::<Result<_, _>>()?));
            }
            (Some("variable"), [_, a]) => operand_guards.push(OperandGuard::Variable(index(self.operands, a)?)),
            (Some("data"), [_, a]) => operand_guards.push(OperandGuard::Data(index(self.operands, a)?)),
            (Some("distinct"), [_, a, b]) => {
                operand_guards.push(OperandGuard::Distinct(index(self.operands, a)?, index(self.operands, b)?))
            }
            _ => {
                let hint = "(rank ?a N), (tensor ?a), (same-shape ?a ?b), (sizes ?a _ N..), (variable ?a), (data ?a), (distinct ?a ?b)";
                return Err(mistake(form.position(), format!("no condition `{form}`"), hint));
            }
        }
        Ok(())
    }

    fn size(&self, item: &Sexp) -> Result<Size, Mistake> {
        let unknown =
            || mistake(item.position(), format!("`{item}` is no size"), "a number, a size parameter, (dim ?a N), (+ ..), (* ..), (- A B)");
        if let Some(word) = item.atom() {
            return match word.parse::<i64>() {
                Ok(n) => Ok(Size::Number(n)),
                Err(_) if self.cut == Some(word) => Ok(Size::Cut),
                Err(_) if self.sizes.iter().any(|s| s == word) => Ok(Size::Parameter(word.to_string())),
                Err(_) => Err(unknown()),
            };
        }
        let items = item.list().unwrap_or_default();
        let all = |items: &[Sexp]| items.iter().map(|i| self.size(i)).collect::<Result<Vec<_>, _>>();
        match (item.head(), items) {
            (Some("dim"), [_, a, axis]) => {
                Ok(Size::Of(index(self.operands, a)?, number(std::slice::from_ref(axis), axis.position(), 0..=7)?))
            }
            (Some("+"), [_, parts @ ..]) => Ok(Size::Sum(all(parts)?)),
            (Some("*"), [_, parts @ ..]) => Ok(Size::Product(all(parts)?)),
            (Some("-"), [_, a, b]) => Ok(Size::Difference(Box::new([self.size(a)?, self.size(b)?]))),
            _ => Err(unknown()),
        }
    }

    fn expr(&self, form: &Sexp) -> Result<Expr, Mistake> {
        if form.atom().is_some() {
            return Ok(Expr::Operand(index(self.operands, form)?));
        }
        let items = form.list().unwrap_or_default();
        let number = |item: &Sexp| {
            item.atom()
                .and_then(|word| word.parse::<f64>().ok())
                .ok_or_else(|| mistake(item.position(), format!("`{item}` is no number"), ""))
        };
        let constant = |dtype: DType, shape: &[i64], item: &Sexp| {
            let value = number(item)?;
            scalar(dtype, shape, value).ok_or_else(|| mistake(item.position(), format!("`{item}` does not fit {dtype}"), ""))
        };
        let filled = |dtype: DType, shape: &Sexp, value: &Sexp| {
            let sizes = shape.list().unwrap_or_default().iter().map(|s| self.size(s)).collect::<Result<_, _>>()?;
            Ok(Expr::Fill(sizes, constant(dtype, &[1], value)?))
        };
        match (form.head(), items) {
            (Some("scalar"), [_, value]) => Ok(Expr::Constant(constant(DType::F32, &[], value)?)),
            (Some("int"), [_, value]) => Ok(Expr::Constant(constant(DType::I64, &[], value)?)),
            (Some("fill"), [_, shape, value]) => filled(DType::F32, shape, value),
            (Some("fill-int"), [_, shape, value]) => filled(DType::I64, shape, value),
            (Some(head), [_, rest @ ..]) => self.apply(head, form, rest),
            _ => {
                Err(mistake(form.position(), format!("`{form}` is no expression"), "an operand, or `(OP ARGUMENT.. :attribute VALUE ..)`"))
            }
        }
    }

    fn apply(&self, head: &str, form: &Sexp, rest: &[Sexp]) -> Result<Expr, Mistake> {
        let kind = OpKind::from_name(head)
            .filter(|kind| !matches!(kind, OpKind::Input | OpKind::Constant | OpKind::Opaque))
            .ok_or_else(|| mistake(form.position(), format!("no operator `{head}`"), "operators are named as in rule files"))?;
        let (mut args, mut attrs) = (Vec::new(), Vec::new());
        let mut items = rest.iter();
        while let Some(item) = items.next() {
            let Some(attribute) = item.atom().and_then(|word| word.strip_prefix(':')) else {
                args.push(self.expr(item)?);
                continue;
            };
            let known = kind.attr_names();
            if !known.contains(&attribute) {
                return Err(mistake(
                    item.position(),
                    format!("`{head}` has no attribute `{attribute}`"),
                    format!("it has: {}", known.join(", ")),
                ));
            }
            let value = items.next().ok_or_else(|| mistake(item.position(), format!("`{item}` has no value"), "add it"))?;
            let value = match (value.atom(), value.list()) {
                (Some(text), _) => AttrExpr::Given(word(text)),
                (None, Some(list)) => AttrExpr::Sizes(list.iter().map(|s| self.size(s)).collect::<Result<_, _>>()?),
                (None, None) => {
                    return Err(mistake(value.position(), "a quoted string", "attributes are words, numbers or lists of sizes"));
                }
            };
            attrs.push((attribute.to_string(), value));
        }
        Ok(Expr::Apply { kind, attrs, args })
    }
}
