//! What Regraft keeps verbatim: bodies with captures, functions, operators of other domains.

use regraft_ir::DType;
use regraft_onnx::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto};

use super::attribute::{float, graph, int};
use super::draft::{Draft, Val};
use super::size::Size;

/// Domain of the functions of random models.
pub const DOMAIN: &str = "gauntlet.test";

fn plain(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    NodeProto { op_type: Some(op.into()), input: names(inputs), output: names(outputs), ..NodeProto::default() }
}

/// A branch that captures outer values by name; inner names occur in both bodies.
pub fn branch(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=4)?;
    let outer = d.side(&x, 0.5, 1.5);
    let condition = match d.choose(|v| v.ty == DType::Bool && v.rank() == 0) {
        Some(condition) => condition,
        None if d.random.once_in(2) && d.inputs.len() < 6 => d.input(DType::Bool, vec![]),
        None => {
            let value = d.random.int(0, 1) as f64;
            d.constant(DType::Bool, &[], &[value])
        }
    };
    let result = Val { name: "body_out".into(), mag: x.mag + 2.0, constant: false, ..x.clone() };
    let own = d.tensor("body_own", x.ty, &[1], &[0.5]);
    let mut bodies = Vec::new();
    for op in ["Mul", "Add"] {
        let info = d.declare(&result);
        let captured = if d.random.once_in(2) { outer.name.as_str() } else { "body_own" };
        let node = vec![plain(op, &[&x.name, captured], &["body_sum"]), plain("Tanh", &["body_sum"], &["body_out"])];
        let initializer = if captured == "body_own" && d.ir >= 4 { vec![own.clone()] } else { vec![] };
        let node = if captured == "body_own" && d.ir < 4 { vec![plain("Relu", &[&x.name], &["body_out"])] } else { node };
        bodies.push(GraphProto { name: Some("body".into()), node, initializer, output: vec![info], ..GraphProto::default() });
    }
    let otherwise = bodies.pop()?;
    let then = bodies.pop()?;
    let y =
        d.emit("If", &[&condition], vec![graph("then_branch", then), graph("else_branch", otherwise)], x.ty, x.dims.clone(), result.mag);
    Some(y)
}

/// A loop with a carried value whose body captures another.
pub fn repetition(d: &mut Draft) -> Option<Val> {
    let x = d.real(1..=3)?;
    let start = d.unary("Sigmoid", &x, 1.0);
    let (trips, go) = (d.constant(DType::I64, &[], &[2.0]), d.constant(DType::Bool, &[], &[1.0]));
    let scalar = |name: &str, ty| Val { name: name.into(), ty, dims: vec![], mag: 1.0, constant: false };
    let carried = |name: &str| Val { name: name.into(), ..start.clone() };
    let input = vec![d.declare(&scalar("body_i", DType::I64)), d.declare(&scalar("body_c", DType::Bool)), d.declare(&carried("body_v"))];
    let output = vec![d.declare(&scalar("body_go", DType::Bool)), d.declare(&carried("body_next"))];
    let node = vec![
        plain("Identity", &["body_c"], &["body_go"]),
        plain("Add", &["body_v", &x.name], &["body_s"]),
        plain("Tanh", &["body_s"], &["body_next"]),
    ];
    let body = GraphProto { name: Some("loop".into()), node, input, output, ..GraphProto::default() };
    Some(d.emit("Loop", &[&trips, &go, &start], vec![graph("body", body)], x.ty, x.dims.clone(), 1.0))
}

/// A call to a local function.
pub fn call(d: &mut Draft) -> Option<Val> {
    if d.ir < 8 {
        return None;
    }
    let x = d.real(1..=4)?;
    let name = format!("Halve{}", d.random.below(2));
    let negate = name == "Halve1";
    let node = vec![
        plain("Sigmoid", &["a"], &["b"]),
        plain(if negate { "Neg" } else { "Relu" }, &["b"], &["t"]),
        plain("Mul", &["t", "a"], &["r"]),
    ];
    let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(d.opset) };
    d.function(FunctionProto {
        name: Some(name.clone()),
        domain: Some(DOMAIN.into()),
        input: vec!["a".into()],
        output: vec!["r".into()],
        node,
        opset_import: vec![opset],
        ..FunctionProto::default()
    });
    let out = d.fresh();
    d.node(&name, DOMAIN, &[&x], vec![out.clone()], vec![]);
    Some(Val { name: out, constant: false, ..x })
}

/// An operator of the runtime's own domain.
pub fn contributed(d: &mut Draft) -> Option<Val> {
    let x = d.real(2..=4)?;
    if x.ty != DType::F32 {
        return None;
    }
    let out = d.fresh();
    let last = x.dims[x.rank() - 1].known();
    let mut dims = x.dims.clone();
    match d.random.below(5) {
        0 => d.node("Gelu", "com.microsoft", &[&x], vec![out.clone()], vec![]),
        1 if last.is_some() && d.random.once_in(2) => {
            let b = d.reals(&[last?], -0.5, 0.5);
            d.node("FastGelu", "com.microsoft", &[&x, &b], vec![out.clone()], vec![]);
        }
        1 => d.node("FastGelu", "com.microsoft", &[&x], vec![out.clone()], vec![]),
        2 => {
            let alpha = d.random.pick(&[1.0, 1.702]);
            d.node("QuickGelu", "com.microsoft", &[&x], vec![out.clone()], vec![float("alpha", alpha)]);
        }
        3 => {
            let b = d.reals(&[last?], -0.5, 0.5);
            d.node("BiasGelu", "com.microsoft", &[&x, &b], vec![out.clone()], vec![]);
        }
        _ => {
            let w = d.weight(&[3, last?], last?);
            d.node("FusedMatMul", "com.microsoft", &[&x, &w], vec![out.clone()], vec![int("transB", 1), float("alpha", 0.5)]);
            *dims.last_mut()? = Size::fixed(3);
        }
    }
    Some(Val { name: out, ty: x.ty, dims, mag: x.mag + 2.0, constant: false })
}

/// A standard operator not defined here.
pub fn undefined(d: &mut Draft) -> Option<Val> {
    if d.opset < 14 {
        return None;
    }
    let x = d.real(2..=4)?;
    let columns = x.dims[1].known()?;
    let lengths: Vec<i64> = (0..columns).map(|_| d.random.int(1, x.dims[0].least())).collect();
    let lengths = d.ints(&lengths);
    Some(d.emit("ReverseSequence", &[&x, &lengths], vec![], x.ty, x.dims.clone(), x.mag))
}

/// The positions of nonzero integers, however many there are.
pub fn nonzero(d: &mut Draft) -> Option<Val> {
    if d.opset < 9 {
        return None;
    }
    let x = d.choose(|v| v.ty == DType::I64 && v.rank() >= 1)?;
    let rank = x.rank() as i64;
    // The second size is unknown before the run: declared as if it were the only open size of that
    // kind.
    let dims = vec![Size::fixed(rank), Size([-1, -2, -3 - d.len() as i64])];
    let places = d.emit("NonZero", &[&x], vec![], DType::I64, dims, 8.0);
    d.outputs.push(places);
    None
}
