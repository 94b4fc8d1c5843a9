//! What element-wise operators, activations and casts compute.

mod common;

use common::table::{INF, NAN, b, case, check, flag, i, int, r, real, truth, word};
use common::{Random, eval, f32s, op, reals};
use regraft_ir::{Attr, Bindings, DType, TensorType, Value};

#[test]
fn arithmetic_means_what_it_says() {
    use DType::{I8, I32, I64, U8, U32, U64};
    check(vec![
        case(
            "Add",
            &[],
            &[(DType::F64, reals(&[2, 1], &[1.0, 2.0])), r(&[10.0, 20.0, -0.0])],
            reals(&[2, 3], &[11.0, 21.0, 1.0, 12.0, 22.0, 2.0]),
        ),
        case("Add", &[], &[r(&[-0.0, -0.0]), r(&[-0.0, 0.0])], real(&[-0.0, 0.0])),
        case("Add", &[], &[i(I8, &[127, -128]), i(I8, &[1, -1])], int(&[-128, 127])),
        case("Sub", &[], &[i(U8, &[0, 5]), i(U8, &[1, 2])], int(&[255, 3])),
        case("Mul", &[], &[i(I32, &[65536, -3]), i(I32, &[65536, 7])], int(&[0, -21])),
        case("Mul", &[], &[r(&[0.0, INF]), r(&[-1.0, 0.0])], real(&[-0.0, NAN])),
        case("Div", &[], &[r(&[1.0, -1.0, 0.0]), r(&[0.0, 0.0, 0.0])], real(&[INF, -INF, NAN])),
        case("Div", &[], &[i(I64, &[-7, 7, i64::MIN]), i(I64, &[2, -2, -1])], int(&[-3, -3, i64::MIN])),
        case("Div", &[], &[i(U64, &[-2]), i(U64, &[2])], int(&[i64::MAX])),
        case("Pow", &[], &[r(&[2.0, 4.0, -8.0, 0.0]), r(&[10.0, 0.5, 1.0 / 3.0, 0.0])], real(&[1024.0, 2.0, NAN, 1.0])),
        case("Pow", &[], &[r(&[-2.0, 0.5]), i(I32, &[3, -2])], real(&[-8.0, 4.0])),
        case("Pow", &[], &[i(I32, &[3, 2, -1, 7]), i(I64, &[4, 40, 1_000_001, 0])], int(&[81, 0, -1, 1])),
        case("Pow", &[], &[i(I64, &[2, 4, 10]), r(&[-1.0, 0.5, 3.0])], int(&[0, 2, 1000])),
        case("Pow", &[], &[i(I64, &[3]), i(I64, &[39])], int(&[4_052_555_153_018_976_267])),
        case("Mod", &[("fmod", flag(false))], &[i(I32, &[-4, 7, 5, -4, 7, -5]), i(I32, &[2, 3, 8, 3, -3, -8])], int(&[0, 1, 5, 2, -2, -5])),
        case("Mod", &[("fmod", flag(true))], &[i(I32, &[-4, 7, 5, -4, 7, -5]), i(I32, &[2, 3, 8, 3, -3, -8])], int(&[0, 1, 5, -1, 1, -5])),
        case(
            "Mod",
            &[("fmod", flag(true))],
            &[r(&[-4.3, 7.2, 5.0, 1.0]), r(&[2.1, -3.4, INF, 0.0])],
            real(&[-4.3 % 2.1, 7.2 % -3.4, 5.0, NAN]),
        ),
        case("Mod", &[("fmod", flag(false))], &[i(U64, &[-1]), i(U64, &[10])], int(&[5])),
        case("BitShift", &[("direction", word("LEFT"))], &[i(U8, &[1, 255, 3]), i(U8, &[7, 1, 8])], int(&[128, 254, 0])),
        case("BitShift", &[("direction", word("RIGHT"))], &[i(U64, &[-1, 4, 4]), i(U64, &[63, 1, 64])], int(&[1, 2, 0])),
        case(
            "Sum",
            &[],
            &[r(&[1.0, 2.0]), r(&[10.0]), (DType::F64, reals(&[2, 1], &[100.0, 200.0]))],
            reals(&[2, 2], &[111.0, 112.0, 211.0, 212.0]),
        ),
        case("Sum", &[], &[r(&[-0.0])], real(&[-0.0])),
        case("Mean", &[], &[r(&[1.0, 2.0]), r(&[3.0, 4.0]), r(&[5.0, 0.0])], real(&[3.0, 2.0])),
        case("Max", &[], &[r(&[1.0, NAN, 3.0]), r(&[2.0, 0.0, NAN])], real(&[2.0, NAN, NAN])),
        case("Min", &[], &[r(&[1.0, NAN, -INF]), r(&[2.0, 0.0, 0.0])], real(&[1.0, NAN, -INF])),
        case("Max", &[], &[i(U64, &[-1, 1]), i(U64, &[1, 2])], int(&[-1, 2])),
        case("Min", &[], &[i(U32, &[4, 1]), i(U32, &[1, 2]), i(U32, &[0])], int(&[0, 0])),
    ]);
}

#[test]
fn comparisons_and_logic_mean_what_they_say() {
    let (x, y) = (r(&[1.0, 2.0, 0.0, NAN]), r(&[2.0, 1.0, -0.0, NAN]));
    let both = [x, y];
    let unsigned = [i(DType::U64, &[-1, 0]), i(DType::U64, &[1, 0])];
    let (p, q) = (b(&[true, true, false, false]), b(&[true, false, true, false]));
    check(vec![
        case("Equal", &[], &both, truth(&[false, false, true, false])),
        case("Greater", &[], &both, truth(&[false, true, false, false])),
        case("GreaterOrEqual", &[], &both, truth(&[false, true, true, false])),
        case("Less", &[], &both, truth(&[true, false, false, false])),
        case("LessOrEqual", &[], &both, truth(&[true, false, true, false])),
        case("Greater", &[], &unsigned, truth(&[true, false])),
        case("LessOrEqual", &[], &unsigned, truth(&[false, true])),
        case("Equal", &[], &[p.clone(), q.clone()], truth(&[true, false, false, true])),
        case("Equal", &[], &[i(DType::I64, &[3, 4]), i(DType::I64, &[4])], truth(&[false, true])),
        case("And", &[], &[p.clone(), q.clone()], truth(&[true, false, false, false])),
        case("Or", &[], &[p.clone(), q.clone()], truth(&[true, true, true, false])),
        case("Xor", &[], &[p.clone(), q], truth(&[false, true, true, false])),
        case("Not", &[], &[p], truth(&[false, false, true, true])),
        case(
            "Where",
            &[],
            &[b(&[true, false]), (DType::F64, reals(&[2, 1], &[1.0, 2.0])), r(&[-1.0])],
            reals(&[2, 2], &[1.0, -1.0, 2.0, -1.0]),
        ),
        case("Where", &[], &[b(&[false, true]), i(DType::I8, &[1, 2]), i(DType::I8, &[3, 4])], int(&[3, 2])),
        case("Where", &[], &[b(&[true]), b(&[true, false]), b(&[false])], truth(&[true, false])),
        case("IsNaN", &[], &[r(&[NAN, INF, 0.0])], truth(&[true, false, false])),
        case(
            "IsInf",
            &[("detect_negative", flag(true)), ("detect_positive", flag(true))],
            &[r(&[-INF, INF, NAN])],
            truth(&[true, true, false]),
        ),
        case(
            "IsInf",
            &[("detect_negative", flag(false)), ("detect_positive", flag(true))],
            &[r(&[-INF, INF, 1.0])],
            truth(&[false, true, false]),
        ),
        case(
            "IsInf",
            &[("detect_negative", flag(true)), ("detect_positive", flag(false))],
            &[r(&[-INF, INF, 1.0])],
            truth(&[true, false, false]),
        ),
    ]);
}

#[test]
fn functions_of_one_number_mean_what_they_say() {
    check(vec![
        case("Neg", &[], &[r(&[0.0, -0.0, 1.5, NAN])], real(&[-0.0, 0.0, -1.5, NAN])),
        case("Neg", &[], &[i(DType::I8, &[-128, 3])], int(&[-128, -3])),
        case("Abs", &[], &[r(&[-0.0, -INF])], real(&[0.0, INF])),
        case("Abs", &[], &[i(DType::I16, &[-32768, -3])], int(&[-32768, 3])),
        case("Abs", &[], &[i(DType::U64, &[-1])], int(&[-1])),
        case("Sign", &[], &[r(&[-2.0, 0.0, 3.0, NAN])], real(&[-1.0, 0.0, 1.0, NAN])),
        case("Sign", &[], &[i(DType::I32, &[-5, 0, 9])], int(&[-1, 0, 1])),
        case("Sign", &[], &[i(DType::U64, &[-5, 0])], int(&[1, 0])),
        case("Reciprocal", &[], &[r(&[4.0, -0.0, INF])], real(&[0.25, -INF, 0.0])),
        case("Sqrt", &[], &[r(&[4.0, -1.0, -0.0])], real(&[2.0, NAN, -0.0])),
        case("Exp", &[], &[r(&[0.0, -INF, 1.0])], real(&[1.0, 0.0, std::f64::consts::E])),
        case("Log", &[], &[r(&[1.0, 0.0, -1.0])], real(&[0.0, -INF, NAN])),
        case("Floor", &[], &[r(&[-1.5, 1.5, -0.0])], real(&[-2.0, 1.0, -0.0])),
        case("Ceil", &[], &[r(&[-1.5, 1.5])], real(&[-1.0, 2.0])),
        case("Round", &[], &[r(&[0.5, 1.5, 2.5, -2.5, 0.9, -4.5])], real(&[0.0, 2.0, 2.0, -2.0, 1.0, -4.0])),
        case("Erf", &[], &[r(&[0.5, -INF])], real(&[0.520_499_877_813_046_5, -1.0])),
        case("Sin", &[], &[r(&[1.0])], real(&[1f64.sin()])),
        case("Cos", &[], &[r(&[1.0])], real(&[1f64.cos()])),
        case("Tan", &[], &[r(&[1.0])], real(&[1f64.tan()])),
        case("Asin", &[], &[r(&[0.5, 2.0])], real(&[0.5f64.asin(), NAN])),
        case("Acos", &[], &[r(&[0.5])], real(&[0.5f64.acos()])),
        case("Atan", &[], &[r(&[0.5])], real(&[0.5f64.atan()])),
        case("Sinh", &[], &[r(&[0.5])], real(&[0.5f64.sinh()])),
        case("Cosh", &[], &[r(&[0.5])], real(&[0.5f64.cosh()])),
        case("Asinh", &[], &[r(&[0.5])], real(&[0.5f64.asinh()])),
        case("Acosh", &[], &[r(&[1.5, 0.5])], real(&[1.5f64.acosh(), NAN])),
        case("Atanh", &[], &[r(&[0.5, 1.0])], real(&[0.5f64.atanh(), INF])),
    ]);
}

#[test]
fn activations_mean_what_they_say() {
    let half = Attr::Float(regraft_ir::Float(0.5));
    let bound = |v: f64| Attr::Float(regraft_ir::Float(v));
    let e = |v: f64| v.exp() - 1.0;
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    let tanh_gelu = |v: f64| 0.5 * v * (1.0 + (0.797_884_560_802_865_4 * (v + 0.044_715 * v * v * v)).tanh());
    check(vec![
        case("Relu", &[], &[r(&[-1.0, 2.0, NAN])], real(&[0.0, 2.0, NAN])),
        case("Relu", &[], &[i(DType::I32, &[-1, 2])], int(&[0, 2])),
        case("Sigmoid", &[], &[r(&[0.0, -1000.0, 1000.0, 2.0])], real(&[0.5, 0.0, 1.0, sigmoid(2.0)])),
        case("Tanh", &[], &[r(&[0.5, INF])], real(&[0.5f64.tanh(), 1.0])),
        case("LeakyRelu", &[("alpha", half.clone())], &[r(&[-3.0, 2.0, NAN])], real(&[-1.5, 2.0, NAN])),
        case(
            "PRelu",
            &[],
            &[(DType::F64, reals(&[1, 2, 2], &[-1.0, 2.0, -3.0, -4.0])), (DType::F64, reals(&[2, 1], &[0.5, 2.0]))],
            reals(&[1, 2, 2], &[-0.5, 2.0, -6.0, -8.0]),
        ),
        case("PRelu", &[], &[i(DType::I32, &[-2, 2]), i(DType::I32, &[3])], int(&[-6, 2])),
        case("Elu", &[("alpha", half.clone())], &[r(&[-1.0, 2.0, -INF])], real(&[0.5 * e(-1.0), 2.0, -0.5])),
        case("Selu", &[("alpha", bound(2.0)), ("gamma", bound(3.0))], &[r(&[-1.0, 1.0])], real(&[6.0 * e(-1.0), 3.0])),
        case("Celu", &[("alpha", half.clone())], &[(DType::F32, real(&[-1.0, 1.0]))], real(&[0.5 * e(-2.0), 1.0])),
        case("ThresholdedRelu", &[("alpha", half.clone())], &[r(&[0.5, 0.75, -1.0])], real(&[0.0, 0.75, 0.0])),
        case("HardSigmoid", &[("alpha", half.clone()), ("beta", half)], &[r(&[-5.0, 0.25, 5.0, NAN])], real(&[0.0, 0.625, 1.0, NAN])),
        case("HardSwish", &[], &[r(&[-4.0, 1.5, 4.0])], real(&[-0.0, 1.125, 4.0])),
        case("Softplus", &[], &[r(&[0.0, 1000.0, -1000.0])], real(&[2f64.ln(), 1000.0, 0.0])),
        case("Softsign", &[], &[r(&[-1.0, 3.0])], real(&[-0.5, 0.75])),
        case("Mish", &[], &[r(&[0.0, 1.0])], real(&[0.0, (1.0 + 1f64.exp()).ln().tanh()])),
        case(
            "Gelu",
            &[("approximate", word("none"))],
            &[r(&[0.0, std::f64::consts::SQRT_2])],
            real(&[0.0, 0.5 * std::f64::consts::SQRT_2 * (1.0 + 0.842_700_792_949_714_9)]),
        ),
        case("Gelu", &[("approximate", word("tanh"))], &[r(&[1.0, -2.0])], real(&[tanh_gelu(1.0), tanh_gelu(-2.0)])),
        case("FastGelu", &[], &[r(&[1.0, -2.0])], real(&[tanh_gelu(1.0), tanh_gelu(-2.0)])),
        case("QuickGelu", &[("alpha", bound(2.0))], &[r(&[1.0, -1.0])], real(&[sigmoid(2.0), -sigmoid(-2.0)])),
        case("Clip", &[("min", bound(-1.0)), ("max", bound(1.0))], &[r(&[-2.0, -0.0, 3.0, NAN])], real(&[-1.0, -0.0, 1.0, NAN])),
        case("Clip", &[("min", bound(2.0)), ("max", bound(1.0))], &[r(&[0.0, 1.5, 3.0])], real(&[1.0, 1.0, 1.0])),
        case("Clip", &[("max", bound(1.0))], &[r(&[-INF, 3.0])], real(&[-INF, 1.0])),
        case("Clip", &[], &[r(&[-INF, 3.0])], real(&[-INF, 3.0])),
        case("Clip", &[("min", bound(3.0))], &[i(DType::U64, &[-1, 2])], int(&[-1, 3])),
    ]);
}

#[test]
fn casts_and_identities_mean_what_they_say() {
    let to = |dtype| [("to", Attr::DType(dtype))];
    check(vec![
        case("Cast", &to(DType::I32), &[r(&[1.9, -1.9, -0.5, 1e9])], int(&[1, -1, 0, 1_000_000_000])),
        case("Cast", &to(DType::Bool), &[r(&[0.0, -0.0, 0.5, NAN])], truth(&[false, false, true, true])),
        case("Cast", &to(DType::F32), &[i(DType::U64, &[-1])], real(&[18_446_744_073_709_551_615.0])),
        case("Cast", &to(DType::U8), &[i(DType::I32, &[-1, 256, 7])], int(&[255, 0, 7])),
        case("Cast", &to(DType::Bool), &[i(DType::I64, &[0, 2])], truth(&[false, true])),
        case("Cast", &to(DType::F16), &[b(&[true, false])], real(&[1.0, 0.0])),
        case("Cast", &to(DType::I64), &[b(&[true, false])], int(&[1, 0])),
        case("Cast", &to(DType::F16), &[r(&[0.1, -0.0])], real(&[0.1, -0.0])),
        case("Identity", &[], &[i(DType::I64, &[3])], int(&[3])),
        case("Dropout", &[], &[r(&[3.0])], real(&[3.0])),
    ]);
}

#[test]
fn integer_division_by_zero_is_an_error() {
    let types = [TensorType::new(DType::I32, [1]), TensorType::new(DType::I32, [1])];
    for op in [op("Div", &[]), op("Mod", &[("fmod", flag(false))]), op("Mod", &[("fmod", flag(true))])] {
        assert!(eval(&op, &types, &[int(&[1]), int(&[0])], &Bindings::new()).is_err(), "{op:?}");
    }
}

#[test]
fn broadcasting_agrees_on_random_shapes() {
    let mut random = Random::new(11);
    for _ in 0..200 {
        let rank = random.below(4);
        let full: Vec<i64> = (0..rank).map(|_| random.below(4) as i64).collect();
        let part = |random: &mut Random| -> TensorType {
            let skip = random.below(rank + 1);
            f32s(&full[skip..].iter().map(|d| if random.below(3) == 0 { 1 } else { *d }).collect::<Vec<_>>())
        };
        let types = [part(&mut random), part(&mut random), part(&mut random)];
        let values: Vec<Value<f64>> = types.iter().map(|t| random.value(t, &Bindings::new())).collect();
        // Every element of the result, from the operands' elements at the same index.
        let expect = |got: &Value<f64>, operands: &[Value<f64>], f: &dyn Fn(&[f64]) -> f64| {
            let Value::Real(got) = got else { panic!("a real result") };
            let parts: Vec<Vec<f64>> = operands
                .iter()
                .map(|v| match v {
                    Value::Real(t) => t.broadcast_index(&got.shape).into_iter().map(|at| t.data[at]).collect(),
                    Value::Bool(t) => t.broadcast_index(&got.shape).into_iter().map(|at| f64::from(u8::from(t.data[at]))).collect(),
                    Value::Int(_) => panic!("no integers here"),
                })
                .collect();
            for (at, element) in got.data.iter().enumerate() {
                let column: Vec<f64> = parts.iter().map(|part| part[at]).collect();
                assert_eq!(*element, f(&column), "element {at} of {types:?}");
            }
        };
        let run = |name: &str, types: &[TensorType], values: &[Value<f64>]| {
            eval(&op(name, &[]), types, values, &Bindings::new()).unwrap().remove(0)
        };
        expect(&run("Sub", &types[..2], &values[..2]), &values[..2], &|v| v[0] - v[1]);
        expect(&run("Sum", &types, &values), &values, &|v| v[0] + v[1] + v[2]);
        expect(&run("Max", &types, &values), &values, &|v| v[0].max(v[1]).max(v[2]));
        let condition = types[0].with_dtype(DType::Bool);
        let chosen = [random.value(&condition, &Bindings::new()), values[1].clone(), values[2].clone()];
        let picked = run("Where", &[condition, types[1].clone(), types[2].clone()], &chosen);
        expect(&picked, &chosen, &|v| if v[0] == 1.0 { v[1] } else { v[2] });
    }
}
