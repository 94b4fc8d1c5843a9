//! Operators of rules, with attributes as files store them.

use regraft_ir::{Attr, AttrError, Float, Op, OpKind};

/// The operator of this kind. Its numbers are in single precision, as in every file, except those
/// that a file stores as operands.
pub(crate) fn operator(kind: OpKind, mut attrs: Vec<(String, Attr)>) -> Result<Op, AttrError> {
    if !matches!(kind, OpKind::Clip | OpKind::Pad) {
        for (_, attr) in &mut attrs {
            if let Attr::Float(number) = attr {
                *number = Float(f64::from(number.0 as f32));
            }
        }
    }
    kind.with_attrs(&attrs)
}
