//! Numbers and matrices of numbers in rule files.

use super::error;
use crate::error::RuleError;
use crate::sexp::Sexp;

/// The rows of a `(matrix NAME (ROW...)...)`, all of the same length.
pub(super) type Matrix = Vec<Vec<f64>>;

/// A number: `2`, `-0.5`, `1/6`.
pub(super) fn number(word: &str) -> Option<f64> {
    match word.split_once('/') {
        Some((a, b)) if !a.is_empty() => Some(a.parse::<f64>().ok()? / b.parse::<f64>().ok()?),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => word.parse().ok(),
        _ => None,
    }
}

/// The name and the rows of a `(matrix NAME (ROW...)...)`.
pub(super) fn matrix(file: &str, form: &Sexp) -> Result<(String, Matrix), RuleError> {
    let items = form.list().unwrap_or_default();
    let name = items.get(1).and_then(Sexp::atom).ok_or_else(|| error(file, form.position(), "a matrix needs a name", ""))?;
    let mut rows = Vec::new();
    for row in &items[2..] {
        let entries = row.list().and_then(|r| r.iter().map(|e| number(e.atom()?)).collect::<Option<Vec<f64>>>());
        rows.push(entries.ok_or_else(|| error(file, row.position(), "a row is a list of numbers", "fractions are written 1/6"))?);
    }
    if rows.is_empty() || rows.iter().any(|r| r.len() != rows[0].len()) {
        return Err(error(file, form.position(), format!("matrix `{name}` has rows of different lengths"), ""));
    }
    Ok((name.to_string(), rows))
}
