//! Recurrent layers of every kind: directions, activations, lengths, optional operands and results.

use regraft_ir::DType;
use regraft_onnx::proto::{AttributeProto, attribute_proto::AttributeType};

use super::attribute::{float, floats, int, word};
use super::draft::{Draft, Val};
use super::size::Size;

/// Activations whose results are between -1 and 1, with how many of `alpha` and `beta` they have.
const BOUNDED: &[(&str, usize)] = &[("Sigmoid", 0), ("Tanh", 0), ("Softsign", 0), ("HardSigmoid", 2), ("ScaledTanh", 2)];
/// Others.
const UNBOUNDED: &[(&str, usize)] = &[("Relu", 0), ("Softplus", 0), ("LeakyRelu", 1), ("Elu", 1), ("Affine", 2)];

/// An `RNN`, a `GRU` or an `LSTM`.
pub fn layer(d: &mut Draft) -> Option<Val> {
    let ty = d.real;
    let small = |size: &Size| size.known().is_some_and(|size| (1..=24).contains(&size));
    let x = d.choose(|v| v.ty == ty && (2..=3).contains(&v.rank()) && v.dims.last().is_some_and(small))?;
    // ONNX Runtime has no kernels for doubles.
    if ty == DType::F64 || d.opset < 7 {
        return None;
    }
    let x = match d.tame(x) {
        // One sequence.
        x if x.rank() == 2 => {
            let sizes = d.ints(&[0, 1, -1]);
            d.emit("Reshape", &[&x, &sizes], vec![], ty, vec![x.dims[0], Size::fixed(1), x.dims[1]], x.mag)
        }
        x => x,
    };
    let (op, gates, curves) = d.random.pick(&[("RNN", 1, 1), ("GRU", 3, 2), ("LSTM", 4, 3)]);
    let direction = d.random.pick(&["forward", "reverse", "bidirectional"]);
    let directions = if direction == "bidirectional" { 2 } else { 1 };
    let (size, hidden) = (x.dims[2].known()?, d.random.int(1, 4));
    let w = d.weight(&[directions, gates * hidden, size], size);
    let r = d.weight(&[directions, gates * hidden, hidden], hidden);
    let mut attributes = vec![int("hidden_size", hidden)];
    if direction != "forward" || d.random.once_in(2) {
        attributes.push(word("direction", direction));
    }
    let is_bounded = d.random.once_in(2) || activations(d, op, directions as usize * curves, curves, &mut attributes);
    if !is_bounded || d.random.once_in(4) {
        attributes.push(float("clip", d.random.real(0.5, 2.0)));
    }
    let flag = if op == "GRU" { "linear_before_reset" } else { "input_forget" };
    if op != "RNN" && d.random.once_in(2) {
        attributes.push(int(flag, d.random.int(0, 1)));
    }
    let mut operands = vec![x.clone(), w, r];
    operands.push(if d.random.once_in(2) { d.reals(&[directions, 2 * gates * hidden], -0.5, 0.5) } else { Val::none() });
    operands.push(lengths(d, &x));
    let states = x.dims[1].known().map(|batch| [directions, batch, hidden]);
    for _ in 0..if op == "LSTM" { 2 } else { 1 } {
        let given = states.filter(|_| d.random.once_in(2));
        operands.push(given.map_or_else(Val::none, |sizes| d.reals(&sizes, -1.0, 1.0)));
    }
    if op == "LSTM" && d.random.once_in(3) {
        operands.push(d.reals(&[directions, 3 * hidden], -0.5, 0.5));
    }
    let longest = x.dims[0].0.into_iter().max().unwrap_or(1) as f64;
    let mag = if is_bounded { 1.0 } else { 4.0 * longest };
    let last = vec![Size::fixed(directions), x.dims[1], Size::fixed(hidden)];
    let all = vec![x.dims[0], Size::fixed(directions), x.dims[1], Size::fixed(hidden)];
    let shapes = [(all, mag), (last.clone(), mag), (last, mag.max(longest))];
    let shapes = &shapes[..if op == "LSTM" { 3 } else { 2 }];
    // Any result may be left out, but one.
    let main = d.random.below(shapes.len());
    let mut results: Vec<Option<Val>> = Vec::new();
    for (at, (dims, mag)) in shapes.iter().enumerate() {
        let is_given = at == main || d.random.once_in(2);
        results.push(is_given.then(|| Val { name: d.fresh(), ty, dims: dims.clone(), mag: *mag, constant: false }));
    }
    while results.last().is_some_and(Option::is_none) {
        results.pop();
    }
    let names = results.iter().map(|result| result.as_ref().map_or_else(String::new, |val| val.name.clone())).collect();
    d.node(op, "", &operands.iter().collect::<Vec<_>>(), names, attributes);
    let result = results[main].take();
    d.pool.extend(results.into_iter().flatten());
    result
}

/// Adds activations, of which the first of each direction is bounded; whether all are.
fn activations(d: &mut Draft, op: &str, count: usize, each: usize, attributes: &mut Vec<AttributeProto>) -> bool {
    let (mut names, mut parameters) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut is_bounded = true;
    for at in 0..count {
        let free = at % each > 0 || op == "RNN";
        let of = if free && d.random.once_in(2) { UNBOUNDED } else { BOUNDED };
        is_bounded &= of == BOUNDED;
        let (name, count) = d.random.pick(of);
        names.push(name.as_bytes().to_vec());
        parameters.iter_mut().take(count).for_each(|list| list.push(d.random.real(0.125, 0.5)));
    }
    attributes.push(AttributeProto {
        name: Some("activations".into()),
        r#type: Some(AttributeType::Strings as i32),
        strings: names,
        ..AttributeProto::default()
    });
    for (name, list) in ["activation_alpha", "activation_beta"].into_iter().zip(&parameters) {
        if !list.is_empty() {
            attributes.push(floats(name, list));
        }
    }
    is_bounded
}

/// The length of each sequence, if their number is known: occasionally the whole length.
fn lengths(d: &mut Draft, x: &Val) -> Val {
    let Some(batch) = x.dims[1].known().filter(|_| d.random.once_in(2)) else { return Val::none() };
    let longest = x.dims[0].least();
    let whole = d.random.once_in(3);
    let values: Vec<f64> = (0..batch).map(|_| if whole { longest } else { d.random.int(1, longest) } as f64).collect();
    d.constant(DType::I32, &[batch], &values)
}
