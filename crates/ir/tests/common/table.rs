//! Tables of meanings: an operator, its attributes, operands and result, one row each.

use regraft_ir::{Attr, Bindings, DType, TensorType, Value};

use super::{bools, eval, ints, op, reals};

pub const INF: f64 = f64::INFINITY;
pub const NAN: f64 = f64::NAN;

/// One row of a table of meanings: operator, attributes, operands, result.
pub struct Case {
    pub op: &'static str,
    pub attrs: Vec<(&'static str, Attr)>,
    pub inputs: Vec<(DType, Value<f64>)>,
    pub want: Value<f64>,
}

/// A row.
pub fn case(op: &'static str, attrs: &[(&'static str, Attr)], inputs: &[(DType, Value<f64>)], want: Value<f64>) -> Case {
    Case { op, attrs: attrs.to_vec(), inputs: inputs.to_vec(), want }
}

/// A real vector as an operand.
pub fn r(data: &[f64]) -> (DType, Value<f64>) {
    (DType::F64, reals(&[data.len()], data))
}

/// An integer vector of a type as an operand.
pub fn i(dtype: DType, data: &[i64]) -> (DType, Value<f64>) {
    (dtype, ints(&[data.len()], data))
}

/// A boolean vector as an operand.
pub fn b(data: &[bool]) -> (DType, Value<f64>) {
    (DType::Bool, bools(&[data.len()], data))
}

/// A real vector as a result.
pub fn real(data: &[f64]) -> Value<f64> {
    reals(&[data.len()], data)
}

/// An integer vector as a result.
pub fn int(data: &[i64]) -> Value<f64> {
    ints(&[data.len()], data)
}

/// A boolean vector as a result.
pub fn truth(data: &[bool]) -> Value<f64> {
    bools(&[data.len()], data)
}

/// A flag as an attribute.
pub fn flag(value: bool) -> Attr {
    Attr::Bool(value)
}

/// A word as an attribute.
pub fn word(value: &str) -> Attr {
    Attr::Str(value.to_string())
}

/// The attributes of a reduction.
pub fn axes(axes: &[i64], keepdims: bool) -> [(&'static str, Attr); 2] {
    [("axes", Attr::Ints(axes.to_vec())), ("keepdims", Attr::Bool(keepdims))]
}

/// The attributes of an arg-reduction.
pub fn position(axis: i64, keepdims: bool, last: bool) -> [(&'static str, Attr); 3] {
    [("axis", Attr::Int(axis)), ("keepdims", Attr::Bool(keepdims)), ("select_last_index", Attr::Bool(last))]
}

/// Equal, both not-a-number, or within double precision; zeros must agree in sign.
fn near(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan())
        || (a == b && a.is_sign_negative() == b.is_sign_negative())
        || (a != b && (a - b).abs() <= 1e-12 * a.abs().max(b.abs()))
}

/// Checks every row: the result, and that its shape and kind match the inferred ones.
pub fn check(cases: Vec<Case>) {
    for case in cases {
        let types: Vec<TensorType> =
            case.inputs.iter().map(|(dtype, v)| TensorType::new(*dtype, v.shape().iter().map(|d| *d as i64))).collect();
        let values: Vec<Value<f64>> = case.inputs.iter().map(|(_, v)| v.clone()).collect();
        let op = op(case.op, &case.attrs);
        let got = eval(&op, &types, &values, &Bindings::new()).unwrap_or_else(|e| panic!("{op:?}: {e}")).remove(0);
        let agree = match (&got, &case.want) {
            (Value::Real(g), Value::Real(w)) => g.shape == w.shape && g.data.iter().zip(&w.data).all(|(x, y)| near(*x, *y)),
            _ => got == case.want,
        };
        assert!(agree, "{op:?} of {:?}\n is {got:?}\n not {:?}", case.inputs, case.want);
    }
}
