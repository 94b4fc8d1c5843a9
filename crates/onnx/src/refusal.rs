//! Why a node stays opaque, and what is still certain about its results.

use regraft_ir::onnx::ImportOperand;
use regraft_ir::{Dim, PartialType, TensorType, TypeError};

/// Why a node stays opaque.
pub(crate) struct Refusal {
    /// The reason, human-readable.
    pub why: String,
    /// What is still certain about its results; empty if nothing is.
    pub types: Vec<PartialType>,
    /// Sizes that are equal wherever it runs.
    pub needs: Vec<(Dim, Dim)>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal { why, types: Vec::new(), needs: Vec::new() }
    }
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Refusal {
        why.to_string().into()
    }
}

impl From<TypeError> for Refusal {
    fn from(error: TypeError) -> Refusal {
        let why = error.to_string();
        match error {
            TypeError::Undecided { types, needs, .. } => Refusal { why, types, needs },
            TypeError::Invalid(_) => why.into(),
        }
    }
}

/// The type of an import's operand for inputs of these types.
pub(crate) fn operand_type(operand: &ImportOperand, input: &dyn Fn(usize) -> Result<TensorType, String>) -> Result<TensorType, Refusal> {
    match operand {
        ImportOperand::Input(at) => Ok(input(*at)?),
        ImportOperand::Const(value) => Ok(value.ty()),
        ImportOperand::Node(inner) => {
            let inputs = inner.operands.iter().map(|operand| operand_type(operand, input)).collect::<Result<Vec<_>, Refusal>>()?;
            // What is certain about this operand is not certain about the node's results.
            let types = inner.op.infer(&inputs).map_err(|e| e.to_string())?;
            types.into_iter().next().ok_or_else(|| "an operator without results".into())
        }
    }
}
