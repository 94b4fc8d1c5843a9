//! What can be wrong with a specification.

use thiserror::Error;

/// A specification that no search can begin with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// It is not TOML, or not of this form.
    #[error("{0}")]
    Syntax(String),
    /// `uses` of a variable is no number.
    #[error("`{0}`: how often a search may introduce a variable is a whole number")]
    Uses(String),
    /// A coefficient without value or uses.
    #[error("`{0}`: a coefficient is `[value, uses]`, and its value at least 2")]
    Coefficient(String),
    /// Too many variables.
    #[error("{0} variables; at most {max} are possible", max = crate::size::VARIABLES)]
    TooMany(usize),
    /// A layer with a name that is none of the variables.
    #[error("no variable is called `{0}`")]
    Unknown(String),
    /// A layer lacks a variable.
    #[error("no value for `{0}` in a layer")]
    Missing(String),
    /// A value that is none.
    #[error("`{0} = {1}` in a layer: a size is a whole number from 1 on")]
    Value(String, String),
    /// An axis that is no product of variables.
    #[error("`{0}` is no size: a product of variables, such as `C*g^-1`")]
    Size(String),
    /// The batch is not the beginning of input and output.
    #[error("the batch's axes are the first ones of input and output")]
    Batch,
    /// No layer.
    #[error("at least one layer gives the sizes: [[layers]]")]
    NoLayer,
    /// Nothing but batch.
    #[error("input and output have at least one axis beside the batch")]
    NoAxis,
    /// A size that is no whole number in a layer.
    #[error("`{0}` is no whole number in every layer")]
    Fraction(String),
}

/// A formula that is no operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormulaError {
    /// Something else was expected.
    #[error("expected {expected} at {near}")]
    Syntax {
        /// What was expected.
        expected: String,
        /// What is there.
        near: String,
    },
    /// No such sum, output, function or variable.
    #[error("nothing is called `{0}`")]
    Unknown(String),
    /// The input is read with other sizes.
    #[error("the input is read as [{found}], but it is [{wanted}]")]
    Shape {
        /// What the formula reads.
        found: String,
        /// What the specification says.
        wanted: String,
    },
}

/// An operator that cannot be written as a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LowerError {
    /// A size is no whole number at the sizes given.
    #[error("`{0}` is no whole number at these sizes")]
    Fraction(String),
    /// A size has to be a number.
    #[error("`{0}` has to be a number")]
    Symbol(String),
    /// The plan does not fit the operator.
    #[error("the plan does not compute the operator")]
    Plan,
    /// An operator of the graph does not take its operands.
    #[error(transparent)]
    Type(#[from] regraft_ir::TypeError),
}
