//! Convolutions, pools, normalizations, resampling, Gemm and Einsum: meaning, types, and the ONNX
//! boundary.
//!
//! Numbers under "answers of ONNX Runtime" were computed by version 1.31 with its optimizer off.

#[path = "ops_conv/border.rs"]
mod border;
mod common;
#[path = "ops_conv/linear.rs"]
mod linear;
#[path = "ops_conv/naive.rs"]
mod naive;
#[path = "ops_conv/norms.rs"]
mod norms;
#[path = "ops_conv/windows.rs"]
mod windows;
