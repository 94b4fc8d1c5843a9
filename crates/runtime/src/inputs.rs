//! Input values checked against what a model declares.

use crate::{Feeds, HostTensor, RuntimeError, ValueInfo};

/// The value of each input, in the model's order.
///
/// # Errors
///
/// An input has no value, a value has no input, or one does not fit the other.
pub(crate) fn ordered<'f>(model: &str, inputs: &[ValueInfo], feeds: &'f Feeds) -> Result<Vec<&'f HostTensor>, RuntimeError> {
    let expected = || inputs.iter().map(|i| format!("`{}`", i.name)).collect::<Vec<_>>().join(", ");
    if let Some((name, _)) = feeds.iter().find(|(name, _)| !inputs.iter().any(|i| i.name == *name)) {
        return Err(RuntimeError::UnknownInput { model: model.to_owned(), input: name.to_owned(), expected: expected() });
    }
    let value = |info: &ValueInfo| {
        let Some(tensor) = feeds.get(&info.name) else {
            return Err(RuntimeError::MissingInput { model: model.to_owned(), input: info.name.clone(), expected: expected() });
        };
        fits(model, info, tensor).map(|()| tensor)
    };
    inputs.iter().map(value).collect()
}

fn fits(model: &str, info: &ValueInfo, tensor: &HostTensor) -> Result<(), RuntimeError> {
    let unsupported =
        |kind: String| RuntimeError::UnsupportedValue { model: model.to_owned(), role: "input", name: info.name.clone(), kind };
    let Some(dtype) = info.dtype else {
        return Err(unsupported("not a tensor".to_owned()));
    };
    if dtype.size().is_none() {
        return Err(unsupported(dtype.to_string()));
    }
    let rank_fits = info.dims.is_empty() || info.dims.len() == tensor.shape().len();
    let dims_fit = info.dims.iter().zip(tensor.shape()).all(|(d, s)| d.is_none_or(|d| d == *s));
    if dtype == tensor.dtype() && rank_fits && dims_fit {
        return Ok(());
    }
    let dims: Vec<String> = info.dims.iter().map(|d| d.map_or("?".to_owned(), |d| d.to_string())).collect();
    Err(RuntimeError::InputMismatch {
        model: model.to_owned(),
        input: info.name.clone(),
        declared: format!("{dtype}[{}]", dims.join(",")),
        given: format!("{}{:?}", tensor.dtype(), tensor.shape()),
    })
}
