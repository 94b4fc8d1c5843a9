//! Errors of this crate: one per boundary.

use crate::dim::Dim;
use crate::scalar::Unsupported;
use crate::ty::PartialType;

/// Why operands and attributes do not form a well-typed operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// Wrong for all symbol values: the graph is malformed, or a rule's guard is too weak.
    #[error("{0}")]
    Invalid(String),
    /// May be right for some symbol values, but cannot be shown.
    #[error("cannot be shown for symbolic sizes: {message}")]
    Undecided {
        /// The condition.
        message: String,
        /// The result types wherever it holds, that is, whenever the operator runs without an
        /// error; empty if nothing is certain.
        types: Vec<PartialType>,
        /// Pairs of sizes that are equal wherever the operator runs without an error.
        needs: Vec<(Dim, Dim)>,
    },
}

impl TypeError {
    /// A [`TypeError::Invalid`] from a message.
    pub fn invalid(message: impl Into<String>) -> TypeError {
        TypeError::Invalid(message.into())
    }
    /// A [`TypeError::Undecided`] from a message, without types.
    pub fn undecided(message: impl Into<String>) -> TypeError {
        TypeError::Undecided { message: message.into(), types: Vec::new(), needs: Vec::new() }
    }

    /// The error with two sizes that the operator compares when it runs: it fails where they
    /// differ.
    pub(crate) fn needing(self, a: &Dim, b: &Dim) -> TypeError {
        match self {
            TypeError::Undecided { message, types, .. } => TypeError::Undecided { message, types, needs: vec![(a.clone(), b.clone())] },
            invalid => invalid,
        }
    }

    /// Both errors as one: the first message, and what both need.
    pub(crate) fn and(self, other: TypeError) -> TypeError {
        match (self, other) {
            (TypeError::Undecided { message, types, mut needs }, TypeError::Undecided { needs: more, .. }) => {
                needs.extend(more);
                TypeError::Undecided { message, types, needs }
            }
            (invalid @ TypeError::Invalid(_), _) | (_, invalid) => invalid,
        }
    }

    /// The error with the result types that hold whenever the operator runs without an error; an
    /// operator that never runs has none.
    pub(crate) fn with_types(self, types: impl IntoIterator<Item = impl Into<PartialType>>) -> TypeError {
        match self {
            TypeError::Undecided { message, needs, .. } => {
                TypeError::Undecided { message, types: types.into_iter().map(Into::into).collect(), needs }
            }
            invalid => invalid,
        }
    }
}

/// Why the reference executor could not compute a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The scalar does not support a function.
    #[error(transparent)]
    Scalar(#[from] Unsupported),
    /// Concrete sizes or values do not fit the operator (out-of-range index, sizes that differ at
    /// run time).
    #[error("{0}")]
    Value(String),
    /// The operator has no definition here.
    #[error("operator `{0}` has no reference definition")]
    Opaque(String),
    /// A symbol has no value.
    #[error("the size {0} is not bound")]
    Unbound(String),
    /// A graph input was not given.
    #[error("no value for the graph input `{0}`")]
    MissingInput(String),
}

impl EvalError {
    /// An [`EvalError::Value`] from a message.
    pub fn value(message: impl Into<String>) -> EvalError {
        EvalError::Value(message.into())
    }
}

/// Why attributes do not form an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttrError {
    /// A required attribute is missing.
    #[error("`{op}` needs the attribute `{attr}`")]
    Missing {
        /// Operator name.
        op: &'static str,
        /// Attribute name.
        attr: &'static str,
    },
    /// An attribute has the wrong kind of value.
    #[error("attribute `{attr}` of `{op}` cannot be {found}")]
    Kind {
        /// Operator name.
        op: &'static str,
        /// Attribute name.
        attr: &'static str,
        /// The value found, printed.
        found: String,
    },
    /// No such attribute.
    #[error("`{op}` has no attribute `{attr}`")]
    Unknown {
        /// Operator name.
        op: &'static str,
        /// Attribute name.
        attr: String,
    },
}
