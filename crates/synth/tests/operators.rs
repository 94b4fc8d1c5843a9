//! Operators with a name: reached from the specification, computed as they are defined.

use std::collections::HashMap;

use regraft_ir::eval::{self, NoOpaque};
use regraft_ir::{Graph, SplitMix64, Tensor, Value};
use regraft_synth::{Bindings, Coordinates, Dims, Explorer, Filter, Layer, Loops, Operator, Plan, Sampler, Spec, Spelling, graph, presets};

fn spec() -> Spec {
    presets::find("resnet-18-layer").unwrap().spec
}

fn random(shape: &[usize], random: &mut SplitMix64) -> Tensor<f64> {
    Tensor::from_fn(shape.to_vec(), |_| random.normal())
}

/// What a graph computes.
fn run(graph: &Graph, inputs: &[(String, Tensor<f64>)]) -> Tensor<f64> {
    let inputs: HashMap<String, Value<f64>> = inputs.iter().map(|(name, tensor)| (name.clone(), Value::real(tensor.clone()))).collect();
    let outputs = eval::run(graph, &inputs, &mut NoOpaque).unwrap();
    match outputs.into_iter().next().unwrap() {
        Value::Real(tensor) => Tensor::clone(&tensor),
        other => panic!("{other:?}"),
    }
}

/// Both spellings of an operator against its loops, at one binding.
fn compare(operator: &Operator, plan: &Plan, layer: &Layer, coordinates: &Coordinates<'_>, seed: u64) {
    let Some(loops) = Loops::at(operator, layer, coordinates) else { return };
    let mut source = SplitMix64(seed);
    let batch = 1;
    let x = random(&loops.input, &mut source);
    let weights: Vec<Tensor<f64>> = loops.weights.iter().map(|shape| random(shape, &mut source)).collect();
    let expected = loops.run(&x, &weights);
    let shape: Vec<usize> = [batch].into_iter().chain(loops.input.iter().copied()).collect();
    let mut inputs = vec![("x".to_string(), x.reshaped(shape))];
    inputs.extend(weights.into_iter().enumerate().map(|(w, weight)| (format!("w{w}"), weight)));
    for spelling in [Spelling::Convolution, Spelling::Einsum] {
        let graph = graph(operator, plan, spelling, &Dims::of(layer), coordinates).unwrap();
        let found = run(&graph, &inputs);
        let off = found.data.iter().zip(&expected.data).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-9, "{spelling:?}: off by {off}: {}\n{plan:?}", operator.show(coordinates));
    }
}

#[test]
fn operators_with_a_name_are_reached() {
    let spec = spec();
    for named in presets::OPERATORS {
        let mut explorer = Explorer::new(&spec, Filter::default());
        let operator = presets::operator(named.name, &mut explorer.coordinates).unwrap_or_else(|| panic!("{}", named.name));
        let path = explorer.path(&operator).unwrap_or_else(|| panic!("no path to {}", named.name));
        let expected = match named.name {
            "conv2d" => 6,
            "pointwise" => 2,
            "operator-1" => 10,
            "operator-2" => 11,
            _ => path.len(),
        };
        assert_eq!(path.len(), expected, "{}", named.name);
    }
}

#[test]
fn operators_with_a_name_compute_what_they_say() {
    let spec = spec();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let bindings = Bindings::new(&spec);
    for named in presets::OPERATORS {
        let operator = presets::operator(named.name, &mut explorer.coordinates).unwrap();
        let plan = Plan::of(&operator, &mut explorer.coordinates).unwrap();
        for (seed, layer) in bindings.layers().iter().enumerate() {
            compare(&operator, &plan, layer, &explorer.coordinates, seed as u64);
        }
    }
}

#[test]
fn drawn_operators_compute_what_they_say() {
    let spec = spec();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let mut sampler = Sampler::new(&mut explorer, 1, false);
    let bindings = Bindings::new(&spec);
    let mut compared = 0;
    while compared < 12 {
        for found in sampler.draw(&mut explorer).unwrap_or_default() {
            for (seed, layer) in bindings.layers().iter().enumerate() {
                compare(&found.operator, &found.plan, layer, &explorer.coordinates, seed as u64);
            }
            compared += 1;
        }
    }
}

#[test]
fn formulas_read_as_they_are_written() {
    let spec = spec();
    let mut coordinates = Coordinates::new(&spec);
    for named in presets::OPERATORS {
        let operator = Operator::parse(named.formula, &mut coordinates).unwrap();
        let text = operator.show(&coordinates);
        assert_eq!(Operator::parse(&text, &mut coordinates).unwrap(), operator, "{text}");
    }
    for (formula, expected) in [
        ("x[i0, i1, i2]", "the input is read as [C_out, H, H], but it is [C_in, H, H]"),
        ("sum r0: C_in; x[r0, i1, i2] * v[i0]", "expected `w` at `v[i0]`"),
        ("sum r0: C; x[r0, i1, i2]", "nothing is called `C`"),
        ("sum r0: C_in; x[r0, turn(i1), i2]", "nothing is called `turn`"),
        ("sum r0: C_in; x[r0, i1, i2", "expected `]` at the end"),
    ] {
        assert_eq!(Operator::parse(formula, &mut coordinates).unwrap_err().to_string(), expected);
    }
}

#[test]
fn keys_tell_operators_apart() {
    let spec = spec();
    let mut explorer = Explorer::new(&spec, Filter::default());
    let mut keys = std::collections::BTreeMap::new();
    for named in presets::OPERATORS {
        let operator = presets::operator(named.name, &mut explorer.coordinates).unwrap();
        let key = explorer.key(&operator).unwrap();
        assert_eq!(keys.insert(key, named.name), None, "{} has the key of another", named.name);
    }
    for (same, of) in [
        // Height and width exchanged, weights laid out anew.
        ("sum r0: k_1, r1: C_in, r2: k_1; x[r1, unfold(i1, r2), unfold(i2, r0)] * w[r2, r0, i0, r1]", "conv2d"),
        // A weight that another one determines.
        ("sum r0: C_in; x[r0, i1, i2] * w[i0] * w[i0, r0]", "pointwise"),
        // A weight with an element for each half of a sum.
        ("sum r0: C_in/s, r1: s; x[split(r0, r1), i1, i2] * w[i0, r0, r1]", "pointwise"),
        ("sum r0: C_in/s, r1: s; x[split(r1, r0), i1, i2] * w[i0, r0, r1]", "pointwise"),
    ] {
        let operator = Operator::parse(same, &mut explorer.coordinates).unwrap();
        assert_eq!(keys.get(&explorer.key(&operator).unwrap()), Some(&of), "{same}");
    }
}
