//! From rule files to rules: every name is resolved, every variable is bound, and every error has a
//! position and a hint.
//!
//! One file per construct: a rule with its clauses, patterns, targets, expressions and instance
//! clauses; `names.rs` knows what names stand for.

mod expression;
mod instance;
mod names;
mod number;
mod pattern;
mod rule;
mod target;

use std::collections::BTreeMap;

use regraft_ir::text::Position;

use crate::error::RuleError;
use crate::family;
use crate::rule::Rule;
use crate::sexp::{self, Sexp};
use names::Parser;
use number::matrix;

/// All rules of a file.
pub fn parse(file: &str, text: &str) -> Result<Vec<Rule>, RuleError> {
    let mut matrices = BTreeMap::new();
    let mut domains = BTreeMap::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut forms = Vec::new();
    for form in sexp::parse(file, text)? {
        forms.extend(family::expand(file, &form)?);
    }
    for (form, choices) in forms {
        match form.head() {
            Some("rule") => {
                let mut rule = Parser::new(file, text, &matrices, &domains).rule(&form)?;
                rule.text = family::substitute_text(rule.text, &choices);
                if let Some(twin) = rules.iter().find(|r| r.name == rule.name) {
                    let message = format!("rule `{}` is already defined on line {}", rule.name, twin.line);
                    return Err(error(file, form.position(), message, "rule names are unique"));
                }
                rules.push(rule);
            }
            Some("matrix") => {
                let (name, rows) = matrix(file, &form)?;
                matrices.insert(name, rows);
            }
            Some("domain") => {
                let items = form.list().unwrap_or_default();
                let name = items.get(1).and_then(Sexp::atom).ok_or_else(|| error(file, form.position(), "a domain needs a name", ""))?;
                domains.insert(name.to_string(), items[2..].to_vec());
            }
            _ => {
                return Err(error(
                    file,
                    form.position(),
                    "expected `(rule NAME SOURCE => TARGET ...)`, `(family $X (...) RULE...)`, `(matrix NAME (ROW...)...)` or `(domain NAME CLAUSE...)`",
                    "",
                ));
            }
        }
    }
    Ok(rules)
}

/// The current name of a clause from an earlier release; other names are unchanged.
pub(crate) fn today(clause: &str) -> &str {
    if clause == "worth" { "profitable" } else { clause }
}

fn error(file: &str, place: Position, message: impl Into<String>, hint: impl Into<String>) -> RuleError {
    RuleError { file: file.into(), line: place.line, column: place.column, message: message.into(), hint: hint.into() }
}
