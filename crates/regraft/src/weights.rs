//! Models with the same nodes: which weights differ.

use std::collections::HashMap;

use regraft_onnx::Model;
use regraft_onnx::proto::TensorProto;

/// Maximum number of weights that are named.
const SHOWN: usize = 6;

/// What to report for models with the same nodes and different weights; `None` for any others.
pub fn changed_weights(a: &Model, b: &Model) -> Option<String> {
    let (a, b) = (a.proto().graph.as_ref()?, b.proto().graph.as_ref()?);
    if a.node != b.node || a.sparse_initializer != b.sparse_initializer || a.initializer.len() != b.initializer.len() {
        return None;
    }
    let named: HashMap<&str, &TensorProto> = b.initializer.iter().map(|tensor| (tensor.name(), tensor)).collect();
    let pairs: Vec<(&TensorProto, &TensorProto)> =
        a.initializer.iter().map(|tensor| Some((tensor, *named.get(tensor.name())?))).collect::<Option<_>>()?;
    let changed: Vec<String> = pairs.into_iter().filter_map(|(a, b)| changed(a, b)).collect();
    let more = match changed.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = changed.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    (!changed.is_empty()).then(|| format!("the models differ in weights only: {shown}{more}"))
}

/// The weight's name and how much of it differs; `None` if nothing does.
fn changed(a: &TensorProto, b: &TensorProto) -> Option<String> {
    if a == b {
        return None;
    }
    let name = a.name();
    let elements = usize::try_from(a.dims.iter().product::<i64>()).unwrap_or(0);
    Some(match (&a.raw_data, &b.raw_data) {
        (Some(x), Some(y)) if a.dims == b.dims && a.data_type == b.data_type && x.len() == y.len() && elements > 0 => {
            let width = (x.len() / elements).max(1);
            let different = x.chunks(width).zip(y.chunks(width)).filter(|(x, y)| x != y).count();
            format!("`{name}` ({different} of {elements} elements)")
        }
        _ => format!("`{name}`"),
    })
}
