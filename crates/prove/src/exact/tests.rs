//! What exact expressions decide, and what they leave open.

use regraft_ir::text::parse;

use super::*;

fn verdict(before: &str, after: &str) -> Exactness {
    exact_equal(&parse(before).unwrap(), &parse(after).unwrap(), &HashMap::new())
}

fn check(inputs: &str, before: &str, after: &str, expected: &str) {
    let graph = |body: &str| format!("graph ({inputs}) {{\n{body}\n}}\n");
    let found = match verdict(&graph(before), &graph(after)) {
        Exactness::Equal => "equal",
        Exactness::Different { .. } => "different",
        Exactness::Undefined(_) => "undefined",
        Exactness::Undecided(_) => "undecided",
    };
    assert_eq!(found, expected, "{before}\nagainst\n{after}");
}

#[test]
fn polynomials_are_decided() {
    let two = "x: f32[2,3], y: f32[2,3]";
    check(
        two,
        "s = Add(x, y)\n z = Mul(s, s)\n output z",
        "a = Mul(x, x)\n b = Mul(y, y)\n c = Mul(x, y)\n d = Add(c, c)\n e = Add(a, d)\n z = Add(b, e)\n output z",
        "equal",
    );
    check(two, "z = Add(x, y)\n output z", "z = Sub(x, y)\n output z", "different");
    check(
        "x: f32[2,3], y: f32[3,2], z: f32[2,2]",
        "a = MatMul(x, y)\n o = MatMul(a, z)\n output o",
        "a = MatMul(y, z)\n o = MatMul(x, a)\n output o",
        "equal",
    );
}

#[test]
fn quotients_and_exponentials_are_decided() {
    check(
        "x: f32[3], y: f32[3]",
        "s = Add(x, y)\n z = Div(x, s)\n w = Div(y, s)\n o = Add(z, w)\n output o",
        "o = Div(x, x)\n output o",
        "equal",
    );
    check(
        "x: f32[2,3]",
        "o = Softmax(x, axis=1)\n output o",
        "e = Exp(x)\n s = ReduceSum(e, axes=[1], keepdims=true)\n o = Div(e, s)\n output o",
        "equal",
    );
    check(
        "x: f32[2,3]",
        "o = Softmax(x, axis=1)\n output o",
        "e = Exp(x)\n s = ReduceSum(e, axes=[0], keepdims=true)\n o = Div(e, s)\n output o",
        "undecided",
    );
    check(
        "x: f32[2,3]",
        "o = LogSoftmax(x, axis=1)\n output o",
        "e = Exp(x)\n s = ReduceSum(e, axes=[1], keepdims=true)\n l = Log(s)\n o = Sub(x, l)\n output o",
        "equal",
    );
    check("x: f32[3], y: f32[3]", "a = Exp(x)\n b = Exp(y)\n o = Mul(a, b)\n output o", "a = Add(x, y)\n o = Exp(a)\n output o", "equal");
    check(
        "x: f32[3], y: f32[3]",
        "a = Add(x, y)\n o = Reciprocal(a)\n output o",
        "a = Reciprocal(x)\n b = Reciprocal(y)\n o = Add(a, b)\n output o",
        "different",
    );
}

#[test]
fn extremes_are_atoms_with_laws() {
    let three = "x: f32[4], y: f32[4], z: f32[4]";
    check(three, "a = Max(x, y)\n b = Max(a, z)\n output b", "a = Max(z, x)\n b = Max(y, a, x)\n output b", "equal");
    check(three, "a = Max(x, y)\n b = Add(a, z)\n output b", "a = Add(x, z)\n c = Add(y, z)\n b = Max(a, c)\n output b", "equal");
    check(three, "a = Max(x, y)\n b = Max(a, z)\n output b", "a = Max(x, y)\n output a", "undecided");
    check(three, "a = Min(x, y)\n b = Min(a, x)\n output b", "b = Min(y, x)\n output b", "equal");
    check(
        "x: f32[2,2,3,3]",
        "o = MaxPool(x, kernel=[3, 3], strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1], ceil_mode=false)\n output o",
        "o = GlobalMaxPool(x)\n output o",
        "equal",
    );
}
