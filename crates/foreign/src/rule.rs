//! A foreign rule: two graphs over shared variables, and how they are built.

use crate::operator::Operator;

/// Maximum number of operators on one side of a rule: larger rules are refused, so that judging
/// stays cheap.
pub const MOST_NODES: usize = 64;
/// Maximum number of results of a rule.
pub const MOST_OUTPUTS: usize = 16;
/// Maximum number of variables of a rule.
pub const MOST_VARIABLES: usize = 16;

/// A value in a side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ref {
    /// A variable: index into [`Rule::variables`].
    Variable(usize),
    /// A result of an operator.
    Result {
        /// Index into [`Side::nodes`].
        node: usize,
        /// Which of its results.
        port: usize,
    },
}

/// An operator on values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The operator.
    pub operator: Operator,
    /// Its operands.
    pub operands: Vec<Ref>,
}

/// One side of a rule: operators in topological order, and its results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Operators, operands first.
    pub nodes: Vec<Node>,
    /// Results, matched by position with the other side's.
    pub outputs: Vec<Ref>,
}

/// `before => after`: claims that `after` gives the same results wherever `before` occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Index in the file, from 0.
    pub number: usize,
    /// Names of the variables in the file.
    pub variables: Vec<String>,
    /// What is replaced.
    pub before: Side,
    /// What replaces it.
    pub after: Side,
}

impl Rule {
    /// The first operator without a meaning, if there is one.
    pub fn unjudged(&self) -> Option<&str> {
        self.before.nodes.iter().chain(&self.after.nodes).find_map(|node| match &node.operator {
            Operator::Unjudged(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl Side {
    /// Adds an operator, or finds an existing equal one; constants are never shared, because each
    /// has a size of its own.
    pub(crate) fn add(&mut self, operator: Operator, operands: Vec<Ref>) -> Result<usize, String> {
        let (least, most) = operator.operands();
        if operands.len() < least || operands.len() > most {
            let wanted = if least == most { format!("{least}") } else { format!("at least {least}") };
            return Err(format!("it takes {wanted} operands, not {}", operands.len()));
        }
        if let Some(fault) = operator.fault() {
            return Err(fault);
        }
        let node = Node { operator, operands };
        if !node.operator.is_constant()
            && let Some(at) = self.nodes.iter().position(|n| *n == node)
        {
            return Ok(at);
        }
        if self.nodes.len() >= MOST_NODES {
            return Err(format!("a side of a rule has at most {MOST_NODES} operators"));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// Whether the variable is one of the results.
    pub(crate) fn uses(&self, variable: usize) -> bool {
        let variable = Ref::Variable(variable);
        self.outputs.contains(&variable) || self.nodes.iter().any(|n| n.operands.contains(&variable))
    }
}

/// The index of the variable of this name, added if missing.
pub(crate) fn variable(variables: &mut Vec<String>, name: &str) -> Result<Ref, String> {
    if let Some(at) = variables.iter().position(|v| v == name) {
        return Ok(Ref::Variable(at));
    }
    if variables.len() >= MOST_VARIABLES {
        return Err(format!("a rule has at most {MOST_VARIABLES} variables"));
    }
    variables.push(name.to_owned());
    Ok(Ref::Variable(variables.len() - 1))
}
