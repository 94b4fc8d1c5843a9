//! Specifications: variables, sizes and operators to enumerate graphs over.

use regraft_ir::text::Position;
use regraft_ir::{Bindings, DType, Dim, TensorType};
use regraft_rules::RuleError;
use regraft_rules::sexp::{self, Sexp};

use crate::operator::Operator;
use crate::read;
use crate::set::MOST_OPERATORS;

/// Elements of the largest tensor to evaluate, unless the file sets another limit.
const MOST_ELEMENTS: usize = 512;
/// Operators of the largest graph, unless the file or the command sets another limit.
const OPERATORS: usize = 3;

/// Specifications shipped with Regraft, by name.
pub const SHIPPED: &[(&str, &str)] =
    &[("taso", include_str!("../../../rules/specs/taso.spec")), ("dense", include_str!("../../../rules/specs/dense.spec"))];

/// An input variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Unique name.
    pub name: String,
    /// Element type and symbolic shape.
    pub ty: TensorType,
    /// Declared with `weight`: operators can refuse it as data.
    pub weight: bool,
}

/// What to enumerate graphs over.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Digest of the text: work folders and shards belong to one specification.
    pub digest: u64,
    /// Names of the size parameters.
    pub sizes: Vec<String>,
    /// Sets of values of all size parameters. Candidates hold under all of them; pairs are formed
    /// with the first.
    pub assignments: Vec<Bindings>,
    /// Input variables.
    pub variables: Vec<Variable>,
    /// Operators.
    pub operators: Vec<Operator>,
    /// Elements that a tensor may have under the first assignment.
    pub limit_elements: usize,
    /// Default limit on the operators of a graph.
    pub limit_operators: usize,
}

impl Spec {
    /// Reads a specification; `file` is its name in messages. The format is described in
    /// `docs/guide/generating-rules.md`.
    pub fn parse(file: &str, text: &str) -> Result<Spec, RuleError> {
        let forms = sexp::parse(file, text)?;
        let forms = read::expand(file, &forms)?;
        let mut spec = Spec {
            digest: xxhash_rust::xxh3::xxh3_64(text.as_bytes()),
            sizes: Vec::new(),
            assignments: Vec::new(),
            variables: Vec::new(),
            operators: Vec::new(),
            limit_elements: MOST_ELEMENTS,
            limit_operators: OPERATORS,
        };
        for form in &forms {
            spec.form(form).map_err(|e| e.in_file(file))?;
        }
        spec.complete().map_err(|e| e.in_file(file))?;
        Ok(spec)
    }

    fn form(&mut self, form: &Sexp) -> Result<(), read::Mistake> {
        let items = form
            .list()
            .ok_or_else(|| read::mistake(form.position(), "a word outside of all lists", "write a form such as `(sizes m k)`"))?;
        let rest = items.get(1..).unwrap_or_default();
        match form.head() {
            Some("sizes") => self.sizes = rest.iter().map(read::name).collect::<Result<_, _>>()?,
            Some("assignment") => {
                let bindings = self.assignment(rest, form.position())?;
                self.assignments.push(bindings);
            }
            Some("variable") => self.variable(rest, form.position(), false)?,
            Some("weight") => self.variable(rest, form.position(), true)?,
            Some("operator") => {
                let operator = read::operator(rest, form.position(), &self.sizes)?;
                if self.operators.iter().any(|o| o.name == operator.name) {
                    return Err(read::mistake(form.position(), format!("operator `{}` is defined twice", operator.name), "rename one"));
                }
                self.operators.push(operator);
            }
            Some("limit-elements") => self.limit_elements = read::number(rest, form.position(), 1..=1 << 20)?,
            Some("limit-operators") => self.limit_operators = read::number(rest, form.position(), 1..=MOST_OPERATORS)?,
            _ => {
                let hint = "one of sizes, assignment, variable, weight, operator, define, limit-elements, limit-operators";
                return Err(read::mistake(form.position(), "an unknown form", hint));
            }
        }
        Ok(())
    }

    fn assignment(&self, items: &[Sexp], place: Position) -> Result<Bindings, read::Mistake> {
        let mut bindings = Bindings::new();
        for item in items {
            let pair = item.list().and_then(|pair| Some((pair.first()?.atom()?, pair.get(1)?.atom()?.parse::<i64>().ok()?)));
            let Some((name, value)) = pair.filter(|(name, value)| *value >= 1 && self.sizes.iter().any(|s| s == name)) else {
                return Err(read::mistake(
                    item.position(),
                    format!("`{item}` is no value of a size"),
                    "write `(m 3)`, after `(sizes m ..)`",
                ));
            };
            bindings.insert(name.to_string(), value);
        }
        match self.sizes.iter().find(|name| !bindings.contains_key(*name)) {
            Some(name) => Err(read::mistake(place, format!("size `{name}` has no value"), "an assignment gives all sizes")),
            None => Ok(bindings),
        }
    }

    fn variable(&mut self, items: &[Sexp], place: Position, weight: bool) -> Result<(), read::Mistake> {
        let [names, shape @ ..] = items else { return Err(read::mistake(place, "a variable without a name", "write `(variable x m k)`")) };
        let names = match names.list() {
            Some(list) => list.iter().map(read::name).collect::<Result<Vec<_>, _>>()?,
            None => vec![read::name(names)?],
        };
        let shape: Vec<Dim> = shape.iter().map(|item| read::dim(item, &self.sizes)).collect::<Result<_, _>>()?;
        for name in names {
            if self.variables.iter().any(|v| v.name == name) || self.sizes.contains(&name) {
                return Err(read::mistake(place, format!("`{name}` is defined twice"), "rename one"));
            }
            self.variables.push(Variable { name, ty: TensorType::new(DType::F32, shape.clone()), weight });
        }
        Ok(())
    }

    fn complete(&self) -> Result<(), read::Mistake> {
        let start = Position { line: 1, column: 1 };
        for (missing, what) in [
            (self.assignments.is_empty(), "an `(assignment ..)` of the sizes"),
            (self.variables.is_empty(), "a `(variable ..)`"),
            (self.operators.is_empty(), "an `(operator ..)`"),
        ] {
            if missing {
                return Err(read::mistake(start, format!("a specification needs {what}"), "see docs/guide/generating-rules.md"));
            }
        }
        Ok(())
    }
}
