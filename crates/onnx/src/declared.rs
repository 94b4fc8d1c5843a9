//! Declared types: `TypeProto` to [`TensorType`], with a symbol for every size that is not a
//! number.

use std::collections::HashSet;

use regraft_ir::{DType, Dim, Shape, TensorType};

use crate::facts::Given;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::Value;
use crate::proto::{GraphProto, TypeProto};

/// Names that exporters write for unknown sizes. Two of them need not be equal.
const MEANINGLESS: [&str; 8] = ["none", "unk", "unknown", "undefined", "null", "nan", "dynamic", "any"];

/// Hands out size symbols; names declared by the model stay as they are.
pub(crate) struct Symbols {
    taken: HashSet<String>,
    given: Given,
}

impl Symbols {
    /// Symbols that avoid every size name that the graph declares, where those of its inputs are
    /// `given`.
    pub(crate) fn new(graph: &GraphProto, given: &Given) -> Symbols {
        let mut taken = HashSet::new();
        for info in graph.input.iter().chain(&graph.output).chain(&graph.value_info) {
            let Some(Value::TensorType(tensor)) = info.r#type.as_ref().and_then(|t| t.value.as_ref()) else { continue };
            for dim in tensor.shape.iter().flat_map(|s| &s.dim) {
                if let Some(dimension::Value::DimParam(name)) = &dim.value {
                    taken.insert(name.clone());
                }
            }
        }
        Symbols { taken, given: given.clone() }
    }

    /// Whether the graph declares this name, or it was handed out.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// A symbol that occurs nowhere else, named after the value and axis.
    pub(crate) fn fresh(&mut self, owner: &str, axis: usize) -> Dim {
        let base = format!("{owner}_d{axis}");
        let mut name = base.clone();
        for n in 1.. {
            if self.taken.insert(name.clone())
                && let Some(size) = self.given.size(&name)
            {
                return size;
            }
            name = format!("{base}_{n}");
        }
        Dim::symbol(&name)
    }

    fn dim(&mut self, dim: &Dimension, owner: &str, axis: usize, trust: bool) -> Dim {
        match &dim.value {
            Some(dimension::Value::DimValue(size)) if *size >= 0 && trust => Dim::from(*size),
            Some(dimension::Value::DimParam(name)) if meaningful(name) && trust => {
                self.given.size(name).unwrap_or_else(|| self.fresh(owner, axis))
            }
            _ => self.fresh(owner, axis),
        }
    }

    /// The declared tensor type; `None` for other kinds of values and where element type or rank is
    /// not declared.
    ///
    /// Without `trust`, only element type and rank are used, and every size becomes a fresh symbol.
    pub(crate) fn tensor_type(&mut self, ty: &TypeProto, owner: &str, trust: bool) -> Option<TensorType> {
        let Some(Value::TensorType(tensor)) = &ty.value else { return None };
        let code = tensor.elem_type.filter(|code| *code != 0)?;
        let dims = &tensor.shape.as_ref()?.dim;
        let shape: Shape = dims.iter().enumerate().map(|(axis, d)| self.dim(d, owner, axis, trust)).collect();
        Some(TensorType { dtype: DType::from_onnx(code), shape })
    }
}

/// Whether a declared name identifies a size.
pub(crate) fn meaningful(name: &str) -> bool {
    name.chars().any(char::is_alphabetic) && !MEANINGLESS.contains(&name.to_ascii_lowercase().as_str())
}

/// How a declared type relates to an inferred one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// No contradiction.
    Fits,
    /// The inferred type shows that a declared size is different, or varies.
    Stale,
    /// A different element type or rank.
    Contradicts,
}

/// Compares a declared type with the inferred one. `varies` says which symbols really vary (those
/// of the declared inputs).
pub(crate) fn compare(declared: &TypeProto, inferred: &TensorType, varies: &HashSet<String>) -> Agreement {
    let Some(Value::TensorType(tensor)) = &declared.value else { return Agreement::Contradicts };
    if tensor.elem_type.is_some_and(|code| code != 0 && code != inferred.dtype.to_onnx()) {
        return Agreement::Contradicts;
    }
    let Some(shape) = &tensor.shape else { return Agreement::Fits };
    if shape.dim.len() != inferred.rank() {
        return Agreement::Contradicts;
    }
    for (dim, known) in shape.dim.iter().zip(&inferred.shape) {
        let Some(dimension::Value::DimValue(size)) = dim.value else { continue };
        let mut symbols = Vec::new();
        known.symbols(&mut symbols);
        let stale = match known.known() {
            Some(number) => size >= 0 && size != number,
            None => size >= 0 && symbols.iter().all(|s| varies.contains(s)),
        };
        if stale {
            return Agreement::Stale;
        }
    }
    Agreement::Fits
}
