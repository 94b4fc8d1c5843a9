//! Conditions on symbolic sizes that cannot be shown: the result types wherever they hold.

mod common;

use common::*;
use regraft_ir::{Attr, DType, Dim, PartialType, TensorType, TypeError};

fn size(text: &str) -> Dim {
    text.parse::<i64>().map_or_else(|_| Dim::symbol(text), Dim::from)
}

fn tensor(shape: &str) -> TensorType {
    TensorType::new(DType::F32, shape.split_whitespace().map(size))
}

/// `?` is a size known only at run time.
fn shown(ty: &PartialType) -> String {
    let sizes = ty.shape.iter().map(|size| size.as_ref().map_or("?".into(), ToString::to_string));
    format!("{}[{}]", ty.dtype, sizes.collect::<Vec<_>>().join(","))
}

/// The operator is undecided on operands of these shapes, and its results have these types.
fn check(name: &str, attrs: &[(&str, Attr)], operands: &[&str], want: &[&str]) {
    let operands: Vec<TensorType> = operands.iter().map(|shape| tensor(shape)).collect();
    match op(name, attrs).infer(&operands) {
        Err(TypeError::Undecided { types, .. }) => assert_eq!(types.iter().map(shown).collect::<Vec<_>>(), want, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn undecided_operators_know_the_types_of_their_results() {
    let ints = |values: &[i64]| Attr::Ints(values.to_vec());
    let dims = |text: &str| Attr::Dims(text.split_whitespace().map(size).collect());
    let equation = |text: &str| [("equation", Attr::Str(text.into()))];
    check("MatMul", &[], &["B 2 N", "1 M 3"], &["f32[B,2,3]"]);
    let no = Attr::Bool(false);
    let gemm = [("alpha", float(1.0)), ("beta", float(1.0)), ("trans_a", no.clone()), ("trans_b", no)];
    check("Gemm", &gemm, &["2 N", "M 3"], &["f32[2,3]"]);
    check("Gemm", &gemm, &["2 N", "N 3", "M"], &["f32[2,3]"]);
    check("Einsum", &equation("bij,bjk->bik"), &["N 2 J", "N K 3"], &["f32[N,2,3]"]);
    check("Einsum", &equation("jii->i"), &["N M K"], &["f32[M]"]);
    check("Einsum", &equation("i,i->i"), &["N", "4"], &["f32[4]"]);
    check("Concat", &[("axis", Attr::Int(0))], &["N M", "2 3"], &["f32[N + 2,3]"]);
    check("Reshape", &[("shape", dims("M 6"))], &["N 6"], &["f32[M,6]"]);
    check("Expand", &[("shape", dims("M 3"))], &["N 3"], &["f32[M,3]"]);
    check("Squeeze", &[("axes", ints(&[1]))], &["N M 2"], &["f32[N,2]"]);
    check("Split", &[("axis", Attr::Int(0)), ("sizes", ints(&[1, 2]))], &["N M"], &["f32[1,M]", "f32[2,M]"]);
    let bounds = [("axes", ints(&[0])), ("starts", dims("0")), ("ends", dims("3")), ("steps", ints(&[1]))];
    check("Slice", &bounds, &["N M"], &["f32[?,M]"]);
    check("PRelu", &[], &["N M", "K"], &["f32[N,M]"]);
    let epsilon = ("epsilon", float(1e-5));
    check("BatchNormalization", std::slice::from_ref(&epsilon), &["N C 4", "K", "C", "C", "C"], &["f32[N,C,4]"]);
    check("LayerNormalization", &[("axis", Attr::Int(1)), epsilon], &["N M", "K"], &["f32[N,M]"]);
    check("SpaceToDepth", &[("blocksize", Attr::Int(2))], &["N 3 H 8"], &["f32[N,12,floor(H, 2),4]"]);
    let window = [("strides", ints(&[2])), ("pads", ints(&[0, 1])), ("dilations", ints(&[1])), ("group", Attr::Int(1))];
    check("Conv", &window, &["N C 9", "5 3 4"], &["f32[N,5,4]"]);
}

#[test]
fn what_never_holds_has_no_types() {
    let wrong = op("MatMul", &[]).infer(&[tensor("2 3"), tensor("4 5")]);
    assert!(matches!(wrong, Err(TypeError::Invalid(_))), "{wrong:?}");
}
