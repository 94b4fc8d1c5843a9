//! Reading and writing ONNX models.

#[allow(missing_docs, clippy::all)]
pub mod proto;
