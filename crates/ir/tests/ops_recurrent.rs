//! Recurrent operators: values computed apart, by the text of the standard, and compared with those
//! of ONNX Runtime; directions and lengths; types; ONNX round trips; what stays opaque.

mod common;

use common::{Random, as_read, eval, f32s, import, ints, op, reals, round_trip};
use regraft_ir::onnx::{ImportOperand, OnnxInput, OnnxNode};
use regraft_ir::{Attr, Bindings, Const, DType, Dim, Float, Op, TensorType, TypeError, Value};

/// A recurrent operator, and its results over three elements of two sequences, all sizes 2.
#[derive(Clone, Copy)]
struct Case {
    kind: &'static str,
    direction: &'static str,
    activations: &'static [&'static str],
    alphas: &'static [f64],
    betas: &'static [f64],
    clip: Option<f64>,
    /// `linear_before_reset` or `input_forget`.
    flag: bool,
    optional: &'static [&'static str],
    states: &'static [f64],
    cells: &'static [f64],
}

const PLAIN: Case = Case {
    kind: "LSTM",
    direction: "forward",
    activations: &["Sigmoid", "Tanh", "Tanh"],
    alphas: &[],
    betas: &[],
    clip: None,
    flag: false,
    optional: &[],
    states: &[],
    cells: &[],
};

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { kind: "RNN", direction: "forward", activations: &["Tanh"], alphas: &[], betas: &[], clip: None, flag: false, optional: &[], states: &[-0.244918662, -0.170202308, 0.1853332, 0.093476304, 0.270481693, 0.161565114, 0.190048045, 0.193516775, 0.203706094, 0.254858444, 0.282176017, 0.353327094], cells: &[] },
    Case { kind: "RNN", direction: "bidirectional", activations: &["Relu", "HardSigmoid"], alphas: &[0.25], betas: &[0.5], clip: Some(0.5), flag: false, optional: &["B", "sequence_lens", "initial_h"], states: &[0.0, 0.0, 0.5, 0.0, 0.625, 0.44140625, 0.625, 0.375, 0.5, 0.0, 0.375, 0.0, 0.625, 0.375, 0.625, 0.375, 0.40625, 0.0, 0.0, 0.0, 0.625, 0.375, 0.0, 0.0], cells: &[] },
    Case { kind: "RNN", direction: "reverse", activations: &["ScaledTanh"], alphas: &[0.75], betas: &[0.5], clip: None, flag: false, optional: &["initial_h"], states: &[-0.100762953, -0.06481113, 0.06812837, 0.041085254, 0.088208107, 0.063382439, 0.078914324, 0.091026678, -0.035130523, 0.0, 0.263646902, 0.248115838], cells: &[] },
    Case { kind: "GRU", direction: "forward", activations: &["Sigmoid", "Tanh"], alphas: &[], betas: &[], clip: None, flag: false, optional: &["B"], states: &[0.359800981, -0.023122922, 0.225622767, -0.395012493, 0.480956254, -0.402446601, 0.400009154, -0.502756723, 0.561636478, -0.504621754, 0.500941703, -0.539745447], cells: &[] },
    Case { kind: "GRU", direction: "reverse", activations: &["Sigmoid", "Tanh"], alphas: &[], betas: &[], clip: Some(0.5), flag: true, optional: &["B", "sequence_lens", "initial_h"], states: &[0.51450408, -0.094252798, -0.007524446, -0.368464525, 0.570053718, -0.396248384, -0.292376478, -0.214057437, 0.641312519, -0.287649137, 0.0, 0.0], cells: &[] },
    Case { kind: "GRU", direction: "bidirectional", activations: &["Sigmoid", "Softsign", "HardSigmoid", "Elu"], alphas: &[0.25, 0.5], betas: &[0.5], clip: None, flag: false, optional: &["sequence_lens", "initial_h"], states: &[0.398187959, 0.169656349, -0.553229049, -0.031085893, 0.039977956, 0.165336582, 0.29493215, 0.417921197, 0.098220805, -0.027282036, -0.426002707, -0.120664943, 0.193477574, 0.397034542, -0.01751709, 0.427919149, -0.053209474, -0.121028734, 0.0, 0.0, -0.132955074, 0.381320953, 0.0, 0.0], cells: &[] },
    Case { kind: "LSTM", direction: "forward", activations: &["Sigmoid", "Tanh", "Tanh"], alphas: &[], betas: &[], clip: None, flag: false, optional: &[], states: &[0.082318343, 0.113810837, -0.096729251, -0.107192849, -0.072114504, -0.064233641, -0.136271557, -0.120754688, -0.128889314, -0.096196724, -0.15578511, -0.107679934], cells: &[-0.232454189, -0.23956685, -0.274040684, -0.289485066] },
    Case { kind: "LSTM", direction: "reverse", activations: &["Sigmoid", "Tanh", "Tanh"], alphas: &[], betas: &[], clip: Some(0.5), flag: false, optional: &["B", "sequence_lens", "initial_h", "initial_c", "P"], states: &[-0.004503722, 0.043162762, -0.243953758, -0.050556849, -0.22807983, -0.034658147, -0.200970049, 0.039601649, -0.155924768, 0.08112473, 0.0, 0.0], cells: &[-0.007235494, 0.103932712, -0.414065504, -0.134720163] },
    Case { kind: "LSTM", direction: "bidirectional", activations: &["Sigmoid", "Affine", "Softplus", "Sigmoid", "LeakyRelu", "Tanh"], alphas: &[0.5, 0.125], betas: &[-0.25], clip: None, flag: true, optional: &["initial_c", "P"], states: &[0.280755964, 0.470125919, 0.258502951, 0.3684859, 0.006820703, -0.013775315, 0.085645976, 0.009545936, 0.284443901, 0.351302512, 0.277794169, 0.31114024, 0.061937747, -0.026971137, 0.108808301, 0.027839623, 0.28181086, 0.275229213, 0.287835201, 0.257234613, 0.064244832, -0.090903795, 0.113782331, -0.043719192], cells: &[-0.414120486, -0.291212964, -0.423628409, -0.309703645, 0.017530941, -0.035623009, 0.141509677, 0.016626686] },
];

impl Case {
    fn op(&self) -> Op {
        let words = |all: &[&str]| Attr::Strs(all.iter().map(ToString::to_string).collect());
        let floats = |all: &[f64]| Attr::Floats(all.iter().copied().map(Float).collect());
        let mut attrs = vec![
            ("direction", Attr::Str(self.direction.into())),
            ("activations", words(self.activations)),
            ("alphas", floats(self.alphas)),
            ("betas", floats(self.betas)),
            ("clip", self.clip.map_or(Attr::Absent, |clip| Attr::Float(Float(clip)))),
            ("optional", words(self.optional)),
        ];
        match self.kind {
            "GRU" => attrs.push(("linear_before_reset", Attr::Bool(self.flag))),
            "LSTM" => attrs.push(("input_forget", Attr::Bool(self.flag))),
            _ => {}
        }
        op(self.kind, &attrs)
    }

    fn directions(&self) -> i64 {
        if self.direction == "bidirectional" { 2 } else { 1 }
    }

    /// The types of all operands; the length and the number of sequences may be symbols.
    fn types(&self, length: Dim, batch: Dim) -> Vec<TensorType> {
        let (directions, hidden) = (Dim::from(self.directions()), Dim::from(2));
        let rows = |each: i64| {
            Dim::from(
                each * if self.kind == "RNN" {
                    1
                } else if self.kind == "GRU" {
                    3
                } else {
                    4
                },
            )
        };
        let mut types = vec![
            TensorType::new(DType::F32, [length, batch.clone(), Dim::from(2)]),
            TensorType::new(DType::F32, [directions.clone(), rows(2), Dim::from(2)]),
            TensorType::new(DType::F32, [directions.clone(), rows(2), hidden.clone()]),
        ];
        types.extend(self.optional.iter().map(|name| match *name {
            "B" => TensorType::new(DType::F32, [directions.clone(), rows(4)]),
            "sequence_lens" => TensorType::new(DType::I32, [batch.clone()]),
            "P" => TensorType::new(DType::F32, [directions.clone(), Dim::from(6)]),
            _ => TensorType::new(DType::F32, [directions.clone(), batch.clone(), hidden.clone()]),
        }));
        types
    }

    fn fixed(&self) -> Vec<TensorType> {
        self.types(Dim::from(3), Dim::from(2))
    }

    /// Numbers that the names of the operands tell, and the lengths 3 and 2.
    fn values(&self) -> Vec<Value<f64>> {
        let names = ["x", "w", "r"].iter().chain(self.optional);
        let value = |(name, ty): (&&str, TensorType)| {
            let shape = ty.bind(&Bindings::new()).unwrap();
            let seed = ["", "x", "w", "r", "B", "initial_h", "initial_c", "P"].iter().position(|known| known == name);
            match seed {
                Some(seed) => {
                    let data: Vec<f64> = (0..shape.iter().product()).map(|at| ((at * 7 + seed * 5) % 13) as f64 / 8.0 - 0.75).collect();
                    reals(&shape, &data)
                }
                None => ints(&shape, &[3, 2]),
            }
        };
        names.zip(self.fixed()).map(value).collect()
    }

    fn results(&self) -> Vec<Value<f64>> {
        eval(&self.op(), &self.fixed(), &self.values(), &Bindings::new()).unwrap()
    }
}

fn data(value: &Value<f64>) -> &[f64] {
    let Value::Real(tensor) = value else { panic!("a real") };
    &tensor.data
}

fn assert_near(found: &[f64], want: &[f64], what: &str) {
    assert_eq!(found.len(), want.len(), "{what}");
    let far = found.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(far < 2e-9, "{what}: {far} apart\n{found:?}\n{want:?}");
}

#[test]
fn values_are_those_of_the_standard_and_of_onnx_runtime() {
    for case in CASES {
        let what = format!("{} {} {:?}", case.kind, case.direction, case.optional);
        let results = case.results();
        assert_near(data(&results[0]), case.states, &what);
        assert_eq!(results.len(), 2 + usize::from(case.kind == "LSTM"), "{what}");
        // The last states are among all, where each sequence ends, or begins.
        let lengths = if case.optional.contains(&"sequence_lens") { [3, 2] } else { [3, 3] };
        let directions = case.directions() as usize;
        for direction in 0..directions {
            for (n, length) in lengths.into_iter().enumerate() {
                let element = if direction == 1 || case.direction == "reverse" { 0 } else { length - 1 };
                let (all, last) = (((element * directions + direction) * 2 + n) * 2, (direction * 2 + n) * 2);
                assert_eq!(data(&results[0])[all..all + 2], data(&results[1])[last..last + 2], "{what}");
            }
        }
        if let Some(cells) = results.get(2) {
            assert_near(data(cells), case.cells, &what);
        }
    }
}

#[test]
fn both_directions_are_those_of_either() {
    for case in CASES.iter().filter(|case| case.direction == "bidirectional") {
        let each = case.activations.len() / 2;
        let whole = case.results();
        let parameters = |at: usize, names: &[&str]| {
            let counted = |name: &&&str| ["Affine", "HardSigmoid"].contains(*name) || at == 0 && ["LeakyRelu", "Elu"].contains(*name);
            names.iter().filter(counted).count()
        };
        let first = [0, 1].map(|at| parameters(at, &case.activations[..each]));
        for (direction, name) in ["forward", "reverse"].into_iter().enumerate() {
            let half = |list: &'static [f64], at: usize| if direction == 0 { &list[..first[at]] } else { &list[first[at]..] };
            let one = Case {
                direction: name,
                activations: &case.activations[direction * each..][..each],
                alphas: half(case.alphas, 0),
                betas: half(case.betas, 1),
                ..*case
            };
            let parts = |(at, value): (usize, &Value<f64>)| match value {
                Value::Real(tensor) if at > 0 => {
                    let size = tensor.data.len() / 2;
                    let mut shape = tensor.shape.clone();
                    shape[0] = 1;
                    reals(&shape, &tensor.data[direction * size..][..size])
                }
                other => other.clone(),
            };
            let values: Vec<Value<f64>> = case.values().iter().enumerate().map(parts).collect();
            let results = eval(&one.op(), &one.fixed(), &values, &Bindings::new()).unwrap();
            for element in 0..3 {
                let from = (element * 2 + direction) * 4;
                assert_eq!(data(&results[0])[element * 4..][..4], data(&whole[0])[from..from + 4], "{} {name}", case.kind);
            }
            assert_eq!(data(&results[1]), &data(&whole[1])[direction * 4..][..4], "{} {name}", case.kind);
        }
    }
}

#[test]
fn lengths_outside_the_tensor_have_no_value() {
    for kind in ["RNN", "GRU", "LSTM"] {
        let case = CASES.iter().find(|case| case.kind == kind && case.optional.contains(&"sequence_lens")).unwrap();
        let at = 3 + case.optional.iter().position(|name| *name == "sequence_lens").unwrap();
        for (length, has_value) in [(-1, false), (0, false), (1, true), (3, true), (4, false)] {
            let mut values = case.values();
            values[at] = ints(&[2], &[2, length]);
            assert_eq!(eval(&case.op(), &case.fixed(), &values, &Bindings::new()).is_ok(), has_value, "{kind} {length}");
        }
    }
}

#[test]
fn empty_batches_and_states() {
    for (size, hidden, batch) in [(2, 2, 0), (0, 2, 2), (2, 0, 2)] {
        let types = [f32s(&[3, batch, size]), f32s(&[1, 4 * hidden, size]), f32s(&[1, 4 * hidden, hidden])];
        let values: Vec<Value<f64>> = types.iter().map(|ty| Random::new(1).value(ty, &Bindings::new())).collect();
        let results = eval(&PLAIN.op(), &types, &values, &Bindings::new()).unwrap();
        assert_eq!(results[2].shape(), [1, batch as usize, hidden as usize]);
    }
}

#[test]
fn types() {
    let (length, batch) = (Dim::symbol("T"), Dim::symbol("N"));
    for case in CASES {
        let types = case.op().infer(&case.types(length.clone(), batch.clone())).unwrap();
        let states = [Dim::from(case.directions()), batch.clone(), Dim::from(2)];
        assert_eq!(types[0].shape[..], [std::slice::from_ref(&length), &states[..]].concat()[..]);
        assert!(types[1..].iter().all(|ty| ty.shape[..] == states), "{types:?}");
        // Any operand of another size, rank or type.
        for at in 0..3 + case.optional.len() {
            let is_length = at >= 3 && case.optional[at - 3] == "sequence_lens";
            let mut wrong = case.fixed();
            let mut more = wrong[at].clone();
            more.shape.push(Dim::from(1));
            let mut larger = wrong[at].clone();
            larger.shape[usize::from(at == 0) * 2] = Dim::from(17);
            for ty in [more, larger, wrong[at].with_dtype(if is_length { DType::I64 } else { DType::I32 })] {
                wrong[at] = ty;
                assert!(matches!(case.op().infer(&wrong), Err(TypeError::Invalid(_))), "{} {at} {wrong:?}", case.kind);
            }
            let mut open = case.fixed();
            open[at].shape[0] = Dim::symbol("K");
            let decided = case.op().infer(&open);
            // The length of `x` is free; all other sizes are those of other operands.
            assert_eq!(matches!(decided, Err(TypeError::Undecided { .. })), at > 0, "{} {at} {decided:?}", case.kind);
        }
        assert!(case.op().infer(&case.fixed()[..2]).is_err());
    }
    let mut empty = PLAIN.fixed();
    empty[0].shape[0] = Dim::from(0);
    assert!(matches!(PLAIN.op().infer(&empty), Err(TypeError::Invalid(_))));
    for wrong in [
        Case { direction: "sideways", ..PLAIN },
        Case { activations: &["Sigmoid", "Tanh"], ..PLAIN },
        Case { activations: &["Sigmoid", "Tanh", "ThresholdedRelu"], alphas: &[1.0], ..PLAIN },
        Case { activations: &["Sigmoid", "Tanh", "Elu"], ..PLAIN },
        Case { alphas: &[1.0], ..PLAIN },
        Case { activations: &["Sigmoid", "Tanh", "Elu"], alphas: &[f64::NAN], ..PLAIN },
        Case { clip: Some(0.0), ..PLAIN },
        Case { clip: Some(f64::INFINITY), ..PLAIN },
        Case { optional: &["initial_h", "B"], ..PLAIN },
        Case { optional: &["B", "B"], ..PLAIN },
        Case { optional: &["bias"], ..PLAIN },
    ] {
        assert!(matches!(wrong.op().infer(&wrong.fixed()), Err(TypeError::Invalid(_))), "{:?}", wrong.op());
    }
}

#[test]
fn round_trips() {
    for case in CASES {
        assert_eq!(round_trip(&case.op(), &case.fixed()), (7..=21).collect::<Vec<i64>>(), "{} {}", case.kind, case.direction);
    }
    let some = Case { optional: &["sequence_lens", "P"], ..PLAIN };
    assert_eq!(round_trip(&some.op(), &some.fixed()).len(), 15);
    assert!(round_trip(&PLAIN.op(), &PLAIN.fixed().iter().map(|ty| ty.with_dtype(DType::BF16)).collect::<Vec<_>>()).is_empty());
}

/// A node of an LSTM as it is written at opset 14, with other attributes, and inputs.
fn node(case: &Case, attrs: &[(&str, Attr)], change: impl Fn(&mut OnnxNode)) -> OnnxNode {
    let types = case.fixed();
    let spelling = case.op().spell(&types, &case.op().infer(&types).unwrap(), 14).unwrap();
    let mut node = as_read(&spelling, &types, 3, 14);
    node.attrs = attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    change(&mut node);
    node
}

#[test]
fn what_a_node_may_say() {
    let slots = |node: &OnnxNode| -> Vec<usize> {
        let (_, operands) = import(node).unwrap();
        operands.iter().map(|operand| if let ImportOperand::Input(at) = operand { *at } else { usize::MAX }).collect()
    };
    // Everything by default.
    assert_eq!(import(&node(&PLAIN, &[], |_| ())).unwrap().0, PLAIN.op());
    // Lengths that are all the whole length are none.
    let lengths = Case { optional: &["sequence_lens", "initial_c"], ..PLAIN };
    let given = |values: [i64; 2]| {
        move |node: &mut OnnxNode| {
            let value = Const::from_i64(DType::I32, &[2], &values);
            node.inputs[4] = Some(OnnxInput { ty: Some(TensorType::new(DType::I32, [2])), value, dims: None });
        }
    };
    assert_eq!(slots(&node(&lengths, &[], given([3, 3]))), [0, 1, 2, 6]);
    assert_eq!(slots(&node(&lengths, &[], given([3, 2]))), [0, 1, 2, 4, 6]);
    assert_eq!(slots(&node(&lengths, &[], |_| ())), [0, 1, 2, 4, 6]);
    for wrong in [[0, 3], [4, 3]] {
        assert!(import(&node(&lengths, &[], given(wrong))).is_err(), "{wrong:?}");
    }
    // The last parameters may be left out where defaults are agreed on.
    let words = |all: &[&str]| Attr::Strs(all.iter().map(ToString::to_string).collect());
    let floats = |all: &[f64]| Attr::Floats(all.iter().copied().map(Float).collect());
    let names = words(&["HardSigmoid", "LeakyRelu", "Tanh"]);
    let (read, _) = import(&node(&PLAIN, &[("activations", names.clone()), ("activation_alpha", floats(&[0.5]))], |_| ())).unwrap();
    assert_eq!(read.attr("alphas"), Some(floats(&[0.5, f64::from(0.01f32)])));
    assert_eq!(read.attr("betas"), Some(floats(&[0.5])));
    let too_many = [("activations", names), ("activation_beta", floats(&[0.5, 0.5]))];
    let opaque: [&[(&str, Attr)]; 11] = [
        &[("layout", Attr::Int(1))],
        &[("hidden_size", Attr::Int(3))],
        &[("direction", Attr::Str("Forward".into()))],
        &[("clip", Attr::Float(Float(-1.0)))],
        &[("clip", Attr::Float(Float(0.0)))],
        &[("input_forget", Attr::Int(2))],
        &[("activations", words(&["Tanh"]))],
        &[("activations", words(&["sigmoid", "tanh", "tanh"]))],
        &[("activations", words(&["Sigmoid", "Tanh", "ScaledTanh"]))],
        &[("activations", words(&["Sigmoid", "Tanh", "ThresholdedRelu"])), ("activation_alpha", floats(&[1.0]))],
        &too_many,
    ];
    for attrs in opaque {
        assert!(import(&node(&PLAIN, attrs, |_| ())).is_err(), "{attrs:?}");
    }
    assert!(import(&node(&PLAIN, &[], |node| node.version = 6)).is_err());
    assert!(import(&node(&PLAIN, &[], |node| node.inputs.resize(9, node.inputs[0].clone()))).is_err());
}

#[test]
fn the_work_is_that_of_the_products() {
    let shapes = [vec![5, 8, 3], vec![2, 16, 3], vec![2, 16, 4]];
    let work = PLAIN.op().work(&shapes, &[]);
    assert_eq!((work.flops, work.extra_bytes), (2.0 * 5.0 * 8.0 * 2.0 * 16.0 * (3.0 + 4.0), 4.0 * 4.0 * 2.0 * 16.0 * 4.0));
}
