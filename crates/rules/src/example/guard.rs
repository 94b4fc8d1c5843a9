//! `Guard`: a condition of a rule that can be lifted.

use std::fmt;

use regraft_ir::{Graph, PatchValue};

use crate::expr::{Expr, GraphScope, Val};
use crate::instantiate::{Anything, Refusal, instantiate};
use crate::matcher::{Found, accept, mentions_let};
use crate::parse::today;
use crate::rule::{Pattern, Rule, Var};
use crate::sexp::{self, Sexp};

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    text: String,
    clause: Clause,
}

/// Where a rule states a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Clause {
    /// In its `when` clauses.
    When(usize),
    /// In its `profitable` clauses.
    Profitable(usize),
    /// In its source: `(const ?c)`.
    Constant(Var),
    /// Nowhere: the rule lacks `(shared)`.
    Private,
}

/// Name of the condition that inner values of the source have no other readers.
const PRIVATE: &str = "(not (shared))";

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Guard {
    /// Whether it only concerns constness and readers, so that the rule is just as true without it.
    pub(super) fn is_of_structure(&self) -> bool {
        matches!(self.clause, Clause::Constant(_) | Clause::Private)
            || self.text.starts_with("(const ?")
            || self.text.starts_with("(not (const ?")
    }

    /// The rule with only this condition, besides those of its source.
    pub(super) fn alone(&self, rule: &Rule) -> Rule {
        let only = |guards: &[Expr], at: usize| guards.get(at).cloned().into_iter().collect();
        let mut alone = bare(rule);
        match self.clause {
            Clause::When(at) => alone.guards = only(&rule.guards, at),
            Clause::Profitable(at) => alone.profitable = only(&rule.profitable, at),
            Clause::Constant(_) => {}
            Clause::Private => alone.shared = false,
        }
        alone
    }

    /// Whether the condition holds at a match; `alone` is the rule with only this condition.
    pub(super) fn holds(&self, graph: &Graph, alone: &Rule, found: &Found) -> bool {
        let constant = |value: &Val| matches!(value, Val::Value(PatchValue::Old(value)) if graph.is_constant(*value));
        if let Clause::Constant(var) = self.clause {
            return match &found.env[var] {
                Some(Val::List(items)) => items.iter().all(constant),
                value => value.as_ref().is_some_and(constant),
            };
        }
        let mut found = found.clone();
        let late = alone.guards.iter().chain(&alone.profitable).any(|guard| mentions_let(alone, guard));
        accept(graph, alone, &mut found) && !(late && matches!(instantiate(graph, alone, &found, &Anything), Err(Refusal::Guard)))
    }

    /// The rule without this condition.
    pub fn lifted(&self, rule: &Rule) -> Rule {
        let mut rule = rule.clone();
        match self.clause {
            Clause::When(at) => drop(rule.guards.remove(at)),
            Clause::Profitable(at) => drop(rule.profitable.remove(at)),
            Clause::Constant(var) => rule.source.iter_mut().for_each(|pattern| lift(pattern, var)),
            Clause::Private => rule.shared = true,
        }
        rule
    }
}

/// The rule without any condition: a source it does not match is not matched with any either.
pub(super) fn bare(rule: &Rule) -> Rule {
    let mut bare = Rule { guards: Vec::new(), profitable: Vec::new(), shared: true, ..rule.clone() };
    let mut constants = Vec::new();
    rule.source.iter().for_each(|pattern| collect(pattern, &mut constants));
    for var in constants {
        bare.source.iter_mut().for_each(|pattern| lift(pattern, var));
    }
    bare
}

/// All conditions of a rule, in text order: those of its source, its guards, and that inner values
/// have no other readers. Conditions that a family's words alone make true are omitted.
pub fn guards(rule: &Rule) -> Vec<Guard> {
    let mut all: Vec<Guard> = Vec::new();
    let mut constants = Vec::new();
    rule.source.iter().for_each(|pattern| collect(pattern, &mut constants));
    for var in constants {
        all.push(Guard { text: format!("(const ?{})", rule.variables[var]), clause: Clause::Constant(var) });
    }
    let stated = |name: &str, exprs: &[Expr], clause: fn(usize) -> Clause| {
        let open: Vec<(usize, String)> =
            texts(rule, name).into_iter().take(exprs.len()).enumerate().filter(|(at, _)| !is_true(rule, &exprs[*at])).collect();
        open.into_iter().map(move |(at, text)| Guard { text, clause: clause(at) })
    };
    all.extend(stated("when", &rule.guards, Clause::When));
    all.extend(stated("profitable", &rule.profitable, Clause::Profitable));
    if !rule.shared && rule.source.iter().any(has_interior) {
        all.push(Guard { text: PRIVATE.into(), clause: Clause::Private });
    }
    all
}

/// Whether a family's words make a condition true, whatever the variables are.
fn is_true(rule: &Rule, condition: &Expr) -> bool {
    condition.holds(&rule.environment(), &GraphScope(&Graph::default())) == Ok(true)
}

/// The conditions of a rule's clauses of this name, as written.
fn texts(rule: &Rule, clause: &str) -> Vec<String> {
    let forms = sexp::parse(&rule.file, &rule.text).unwrap_or_default();
    let clauses =
        forms.first().and_then(Sexp::list).unwrap_or_default().iter().filter(|form| form.head().is_some_and(|word| today(word) == clause));
    clauses.flat_map(|form| &form.list().unwrap_or_default()[1..]).map(Sexp::to_string).collect()
}

fn collect(pattern: &Pattern, into: &mut Vec<Var>) {
    match pattern {
        Pattern::Constant(var) if !into.contains(var) => into.push(*var),
        Pattern::Node(node) => node.operands.iter().for_each(|operand| collect(operand, into)),
        Pattern::Each(inner, _) | Pattern::Elementwise(_, _, inner) => collect(inner, into),
        _ => {}
    }
}

fn lift(pattern: &mut Pattern, wanted: Var) {
    match pattern {
        Pattern::Constant(var) if *var == wanted => *pattern = Pattern::Any(wanted),
        Pattern::Node(node) => node.operands.iter_mut().for_each(|operand| lift(operand, wanted)),
        Pattern::Each(inner, _) | Pattern::Elementwise(_, _, inner) => lift(inner, wanted),
        _ => {}
    }
}

fn has_interior(root: &Pattern) -> bool {
    let inner = |operand: &Pattern| match operand {
        Pattern::Each(inner, _) => matches!(**inner, Pattern::Node(_)),
        operand => matches!(operand, Pattern::Node(_) | Pattern::Elementwise(..)),
    };
    matches!(root, Pattern::Node(node) if node.operands.iter().any(inner))
}
