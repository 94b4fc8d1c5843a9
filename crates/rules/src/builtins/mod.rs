//! The functions of the expression language, one file per kind of argument.

mod arguments;
mod graph;
mod lists;
mod matrices;
mod numbers;
mod shapes;
mod values;

use crate::expr::{Scope, Val};
use crate::truth::equal;

/// A function of the expression language.
pub struct Builtin {
    /// Name in rule files.
    pub name: &'static str,
    /// Smallest and largest number of arguments.
    pub arity: (usize, usize),
    /// One line for the rule author.
    pub help: &'static str,
    /// The function.
    pub run: fn(&[Val], &dyn Scope) -> Result<Val, String>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All functions.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    [numbers::TABLE, lists::TABLE, shapes::TABLE, values::TABLE, graph::TABLE, matrices::TABLE].into_iter().flatten()
}

/// The function of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    all().find(|b| b.name == name)
}

/// True where equality in the language's sense (numbers by value, flags as 0 and 1) is shown.
pub fn same(a: &Val, b: &Val) -> bool {
    equal(a, b) == Some(true)
}

/// As a maximum number of arguments: unlimited.
const MANY: usize = usize::MAX;
