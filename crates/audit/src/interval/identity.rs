//! Identities of functions, as written in `rules/functions.identities`.

use regraft_ir::text::Position;
use regraft_rules::RuleError;
use regraft_rules::sexp::{self, Sexp};

use super::dual::{Expr, VARIABLES};

/// The range of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// All numbers.
    Real,
    /// Zero and above.
    Nonnegative,
    /// Above zero.
    Positive,
    /// From zero to one.
    Unit,
}

/// A law of functions: two expressions that are equal over the ranges of their variables.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// The largest admitted distance of the sides, relative to the larger of them and 1.
    pub within: f64,
    /// Why it holds beyond the pieces, if a side is unbounded there.
    pub beyond: Option<String>,
    pub(super) sides: [Expr; 2],
    pub(super) domains: Vec<Domain>,
}

/// The shipped identities, compiled in.
pub const IDENTITIES: &str = include_str!("../../../../rules/functions.identities");

/// The file that the shipped identities come from.
const FILE: &str = "functions.identities";
/// Default tolerance.
const WITHIN: f64 = 1e-6;

/// Parses identities.
pub fn identities(text: &str) -> Result<Vec<Identity>, RuleError> {
    sexp::parse(FILE, text)?.iter().map(identity).collect()
}

fn fail<T>(place: Position, message: impl Into<String>, hint: &str) -> Result<T, RuleError> {
    Err(RuleError { file: FILE.into(), line: place.line, column: place.column, message: message.into(), hint: hint.into() })
}

fn identity(form: &Sexp) -> Result<Identity, RuleError> {
    const SHAPE: &str = "(identity NAME LEFT RIGHT (where (?x real)...) [(within 1e-3)] [(beyond \"why\")])";
    let (Some([head, name, left, right, clauses @ ..]), place) = (form.list(), form.position()) else {
        return fail(form.position(), "expected an identity", SHAPE);
    };
    let (Some("identity"), Some(name)) = (head.atom(), name.atom()) else { return fail(place, "expected an identity", SHAPE) };
    let (mut variables, mut domains, mut within, mut beyond) = (Vec::new(), Vec::new(), WITHIN, None);
    for clause in clauses {
        match (clause.head(), clause.list().unwrap_or_default()) {
            (Some("where"), [_, list @ ..]) => {
                for pair in list {
                    let (name, domain) = match pair.list() {
                        Some([Sexp::Atom(name, _), Sexp::Atom(domain, _)]) => (name, domain),
                        _ => return fail(pair.position(), "a variable has a domain", "(?x real)"),
                    };
                    variables.push(name.clone());
                    domains.push(match domain.as_str() {
                        "real" => Domain::Real,
                        "nonnegative" => Domain::Nonnegative,
                        "positive" => Domain::Positive,
                        "unit" => Domain::Unit,
                        other => return fail(pair.position(), format!("no domain `{other}`"), "real, nonnegative, positive or unit"),
                    });
                }
            }
            (Some("within"), [_, value]) => match value.atom().and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0) {
                Some(value) => within = value,
                None => return fail(clause.position(), "`within` takes a positive number", "(within 1e-3)"),
            },
            (Some("beyond"), [_, Sexp::Text(why, _)]) => beyond = Some(why.clone()),
            _ => return fail(clause.position(), "no such clause", SHAPE),
        }
    }
    if variables.is_empty() || variables.len() > VARIABLES {
        return fail(place, format!("an identity has one or two variables, not {}", variables.len()), SHAPE);
    }
    Ok(Identity { name: name.into(), within, beyond, sides: [expr(left, &variables)?, expr(right, &variables)?], domains })
}

fn expr(form: &Sexp, variables: &[String]) -> Result<Expr, RuleError> {
    if let Some(word) = form.atom() {
        return match (variables.iter().position(|v| v == word), word.parse()) {
            (Some(at), _) => Ok(Expr::Variable(at)),
            (None, Ok(number)) => Ok(Expr::Number(number)),
            _ => fail(form.position(), format!("`{word}` is neither a number nor a variable"), "variables are named in `where`"),
        };
    }
    let operands: Vec<Expr> = form.list().unwrap_or_default().iter().skip(1).map(|f| expr(f, variables)).collect::<Result<_, _>>()?;
    let head = form.head().unwrap_or_default();
    match (head, <[Expr; 2]>::try_from(operands.clone())) {
        ("+", Ok(two)) => return Ok(Expr::Sum(Box::new(two))),
        ("-", Ok(two)) => return Ok(Expr::Difference(Box::new(two))),
        ("*", Ok(two)) => return Ok(Expr::Product(Box::new(two))),
        ("/", Ok(two)) => return Ok(Expr::Quotient(Box::new(two))),
        ("pow", Ok(two)) => return Ok(Expr::Power(Box::new(two))),
        _ => {}
    }
    match (head, <[Expr; 1]>::try_from(operands)) {
        ("exp", Ok([x])) => Ok(Expr::Exp(Box::new(x))),
        ("log", Ok([x])) => Ok(Expr::Log(Box::new(x))),
        ("sqrt", Ok([x])) => Ok(Expr::Sqrt(Box::new(x))),
        ("tanh", Ok([x])) => Ok(Expr::Tanh(Box::new(x))),
        ("erf", Ok([x])) => Ok(Expr::Erf(Box::new(x))),
        ("abs", Ok([x])) => Ok(Expr::Abs(Box::new(x))),
        _ => fail(
            form.position(),
            format!("no function `{head}` of so many operands"),
            "+ - * / pow of two; exp log sqrt tanh erf abs of one",
        ),
    }
}
