//! `Parser`: a rule being read, and what its names stand for.

use std::collections::BTreeMap;

use regraft_ir::OpKind;
use regraft_ir::text::Position;

use super::error;
use super::number::Matrix;
use crate::error::RuleError;
use crate::rule::Var;
use crate::sexp::Sexp;

/// A rule being read.
pub(super) struct Parser<'a> {
    /// The name of the file, for errors.
    pub(super) file: &'a str,
    /// The text of the whole file.
    pub(super) text: &'a str,
    /// Matrices defined above.
    pub(super) matrices: &'a BTreeMap<String, Matrix>,
    /// Domains defined above.
    pub(super) domains: &'a BTreeMap<String, Vec<Sexp>>,
    /// Variables, and parameters with a `$` before their names.
    variables: Vec<String>,
    /// Whether a source pattern or a `let` binds each variable.
    bound: Vec<bool>,
}

impl<'a> Parser<'a> {
    /// A parser that has read nothing of the rule.
    pub(super) fn new(
        file: &'a str,
        text: &'a str,
        matrices: &'a BTreeMap<String, Matrix>,
        domains: &'a BTreeMap<String, Vec<Sexp>>,
    ) -> Parser<'a> {
        Parser { file, text, matrices, domains, variables: Vec::new(), bound: Vec::new() }
    }

    /// An error at this position.
    pub(super) fn fail<T>(&self, place: Position, message: impl Into<String>, hint: impl Into<String>) -> Result<T, RuleError> {
        Err(error(self.file, place, message, hint))
    }

    /// The variable of this name, bound or not.
    pub(super) fn var(&mut self, name: &str) -> Var {
        if let Some(at) = self.variables.iter().position(|v| v == name) {
            return at;
        }
        self.variables.push(name.to_string());
        self.bound.push(false);
        self.variables.len() - 1
    }

    /// Binds the variable of this atom.
    pub(super) fn define(&mut self, atom: &Sexp) -> Result<Var, RuleError> {
        let Some(name) = atom.atom().filter(|a| a.starts_with('?')) else {
            return self.fail(atom.position(), "expected a variable", "variables start with `?`");
        };
        let var = self.var(&name[1..]);
        self.bound[var] = true;
        Ok(var)
    }

    /// The bound variable of this name.
    pub(super) fn lookup(&mut self, word: &str, place: Position) -> Result<Var, RuleError> {
        match self.variables.iter().position(|v| *v == word[1..]) {
            Some(var) if self.bound[var] => Ok(var),
            _ => {
                let known: Vec<String> = self.variables.iter().filter(|v| !v.starts_with('$')).map(|v| format!("?{v}")).collect();
                self.fail(place, format!("`{word}` is not bound by the source"), format!("bound here: {}", known.join(" ")))
            }
        }
    }

    /// True if such a variable exists, bound or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|v| v == name)
    }

    /// Which variables are bound.
    pub(super) fn bound(&self) -> &[bool] {
        &self.bound
    }

    /// The names of all variables and parameters, by index.
    pub(super) fn into_variables(self) -> Vec<String> {
        self.variables
    }

    /// The parameter of this name, if there is one.
    ///
    /// Parameters of the instance clause are written without the question mark, and kept apart from
    /// variables.
    pub(super) fn known_parameter(&self, word: &str) -> Option<Var> {
        self.variables.iter().position(|v| v.strip_prefix('$') == Some(word))
    }

    /// The parameter of this name, which is kept apart from variables.
    pub(super) fn parameter(&mut self, name: &Sexp) -> Result<Var, RuleError> {
        match name.atom() {
            Some(word) => Ok(self.var(&format!("${word}"))),
            None => self.fail(name.position(), "expected the name of a parameter", "(size n c), (fixed s 1 2)"),
        }
    }

    /// The bound variable that stands here.
    pub(super) fn reference(&mut self, form: &Sexp) -> Result<Var, RuleError> {
        match form.atom() {
            Some(word) if word.starts_with('?') => self.lookup(word, form.position()),
            _ => self.fail(form.position(), "expected a variable", "variables start with `?`"),
        }
    }

    /// The operator of this name.
    pub(super) fn kind(&self, word: &str, place: Position) -> Result<OpKind, RuleError> {
        match OpKind::from_name(word).filter(|k| !matches!(k, OpKind::Input | OpKind::Opaque)) {
            Some(kind) => Ok(kind),
            None => {
                let near =
                    OpKind::ALL.iter().map(|k| k.name()).min_by_key(|n| distance(&n.to_lowercase(), &word.to_lowercase())).unwrap_or("");
                self.fail(place, format!("no operator `{word}`"), format!("did you mean `{}`?", near.to_lowercase()))
            }
        }
    }

    /// Checks that operators of this kind have such an attribute.
    pub(super) fn check_attr(&self, kind: OpKind, attr: &str, place: Position) -> Result<(), RuleError> {
        if kind.attr_names().contains(&attr) {
            return Ok(());
        }
        let hint = format!("its attributes: {}", kind.attr_names().join(", "));
        self.fail(place, format!("`{}` has no attribute `{attr}`", kind.name()), hint)
    }
}

/// Edit distance, for hints.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}
