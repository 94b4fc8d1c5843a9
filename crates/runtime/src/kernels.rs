//! What ONNX Runtime cannot run, although the standard defines it.

use crate::DType;

/// Operators of the standard domain that ONNX Runtime's processor kernels do not compute in double
/// precision, at any opset.
const NOT_IN_DOUBLE: &[&str] = &[
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "Cosh",
    "Elu",
    "Erf",
    "Gelu",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LeakyRelu",
    "LRN",
    "Mean",
    "Mish",
    "PRelu",
    "Resize",
    "Selu",
    "Sinh",
    "Softplus",
    "Softsign",
    "Tan",
    "ThresholdedRelu",
    "Upsample",
];

/// Operators that it computes in double precision from this opset on.
const IN_DOUBLE_SINCE: &[(&str, i64)] = &[("Clip", 12), ("Max", 8), ("Min", 8)];

/// See [`Runtime::lacks_kernel`](crate::Runtime::lacks_kernel).
pub fn lacks_kernel(op_type: &str, dtype: DType, opset: i64) -> bool {
    if dtype != DType::F64 {
        return false;
    }
    NOT_IN_DOUBLE.contains(&op_type) || IN_DOUBLE_SINCE.iter().any(|(op, since)| *op == op_type && opset < *since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_precision_is_not_everywhere() {
        assert!(lacks_kernel("Conv", DType::F64, 21) && !lacks_kernel("Conv", DType::F32, 21));
        assert!(lacks_kernel("Clip", DType::F64, 11) && !lacks_kernel("Clip", DType::F64, 12));
        assert!(!lacks_kernel("MatMul", DType::F64, 7));
    }
}
