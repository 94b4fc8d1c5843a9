//! Whether two models really differ: compares their results in ONNX Runtime with its optimizer off.

use anyhow::Result;
use regraft_ir::tensor::magnitude;
use regraft_onnx::proto::{ModelProto, type_proto};
use regraft_runtime::{DType, Feeds, HostTensor, ModelSource, OptLevel, Runtime, SessionOptions};

use prost::Message;

use super::claim::Clause;

/// A difference of reals, relative to the largest magnitude, that rounding cannot cause.
const CLEAR: f64 = 1e-3;
/// The same in half precision.
const CLEAR_HALF: f64 = 5e-2;

/// How outputs of two models differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Not at all, or by no more than rounding explains.
    None,
    /// In the sign of a zero, if outputs must be `exact`.
    Sign,
    /// One has an infinity or NaN where the other does not; this cannot happen if all numbers are
    /// finite.
    NotFinite,
    /// In numbers.
    Clear,
}

impl Difference {
    /// The assumption under which such outputs would be equal, if there is one.
    pub fn clause(self) -> Option<Clause> {
        match self {
            Difference::Sign => Some(Clause::Reals),
            Difference::NotFinite => Some(Clause::Finite),
            Difference::None | Difference::Clear => None,
        }
    }
}

/// Outputs of a model on several inputs.
pub fn outputs(runtime: &dyn Runtime, model: &ModelProto, feeds: &[Feeds]) -> Result<Vec<Vec<HostTensor>>> {
    let bytes = model.encode_to_vec();
    let options = SessionOptions { level: OptLevel::Disabled, threads: 1, ..SessionOptions::default() };
    let mut session = runtime.open(ModelSource::bytes(&bytes), &options)?;
    feeds.iter().map(|feeds| Ok(session.run(feeds)?)).collect()
}

/// How much the outputs of two models differ; if they must be `exact`, any difference of finite
/// numbers is clear.
pub fn difference(a: &[Vec<HostTensor>], b: &[Vec<HostTensor>], exact: bool) -> Difference {
    let runs = a.iter().zip(b);
    let pairs = runs.flat_map(|(a, b)| a.iter().zip(b));
    pairs.map(|(a, b)| between(a, b, exact)).max().unwrap_or(Difference::None)
}

fn between(a: &HostTensor, b: &HostTensor, exact: bool) -> Difference {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return Difference::Clear;
    }
    if !a.dtype().is_float() {
        return if a.bytes() == b.bytes() { Difference::None } else { Difference::Clear };
    }
    let (a_values, b_values) = (a.to_f64(), b.to_f64());
    let scale = magnitude(a_values.iter().chain(&b_values));
    let clear = if matches!(a.dtype(), DType::F16 | DType::BF16) { CLEAR_HALF } else { CLEAR };
    let bound = if exact { 0.0 } else { clear * scale };
    let one = |(x, y): (&f64, &f64)| match (x.is_finite(), y.is_finite()) {
        (true, true) if (x - y).abs() > bound => Difference::Clear,
        (true, true) if exact && *x == 0.0 && *y == 0.0 && x.is_sign_negative() != y.is_sign_negative() => Difference::Sign,
        (true, true) => Difference::None,
        _ if x == y || (x.is_nan() && y.is_nan()) => Difference::None,
        _ => Difference::NotFinite,
    };
    a_values.iter().zip(&b_values).map(one).max().unwrap_or(Difference::None)
}

/// Declares the types of outputs without one.
pub fn declare(model: &mut ModelProto, outputs: &[HostTensor]) {
    let Some(graph) = &mut model.graph else { return };
    for (info, tensor) in graph.output.iter_mut().zip(outputs) {
        if info.r#type.is_none() {
            let value = type_proto::Value::TensorType(type_proto::Tensor { elem_type: Some(tensor.dtype().to_onnx()), shape: None });
            info.r#type = Some(regraft_onnx::proto::TypeProto { value: Some(value), ..Default::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounding_explains_is_no_difference() {
        let tensor = |values: &[f32]| vec![vec![HostTensor::from_values(vec![values.len()], values).unwrap()]];
        let one = tensor(&[100.0, 1.0]);
        for (other, exact, want) in [
            (&[100.0, 1.01][..], false, Difference::None),
            (&[100.0, 1.01], true, Difference::Clear),
            (&[100.0, 2.0], false, Difference::Clear),
            (&[f32::NAN, 1.0], true, Difference::NotFinite),
            (&[f32::INFINITY, 2.0], false, Difference::Clear),
            (&[100.0], false, Difference::Clear),
        ] {
            assert_eq!(difference(&one, &tensor(other), exact), want, "{other:?}");
        }
        let zeros = [tensor(&[0.0]), tensor(&[-0.0])];
        assert_eq!(difference(&zeros[0], &zeros[1], true), Difference::Sign);
        assert_eq!(difference(&zeros[0], &zeros[1], false), Difference::None);
    }
}
